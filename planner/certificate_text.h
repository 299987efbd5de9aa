/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * Certificates as text, the way that plan files carry them (schemas/README.md says how).
 */
#ifndef CERTIFICATE_TEXT_H
#define CERTIFICATE_TEXT_H

#include <atp/status.h>

#include "certificate.h"

/* Lines of printable ASCII, each with its end. */
const char *certificate_write(const struct certificate *certificate, struct region *region);

/* ATP_ERR_INVALID for what is no certificate, with the line of the text in the message. */
ATP_MUST_USE enum atp_status certificate_read(const char *text, struct region *region,
                                              struct certificate *out, struct atp_error *err);

#endif
