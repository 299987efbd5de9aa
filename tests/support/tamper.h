/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * What somebody may do to a certificate who wants it to prove more than is true.
 */
#ifndef TAMPER_H
#define TAMPER_H

#include "certificate.h"
#include "random.h"

/* A character of the text changed, or gone. `out` has room for the text. */
void tamper_text(struct random *random, const char *text, char *out);

/* Some multipliers larger, smaller, of the other sign, or of a kind that no file can carry: not a
 * number, infinite, huge, denormal; now and then another mark at a checkpoint. */
void tamper_numbers(struct random *random, const struct certificate *certificate,
                    struct region *region, struct certificate *out);

/* Any steps, with any marks: none that the planner would choose. */
void tamper_grid(struct random *random, uint32_t step_count, struct region *region,
                 struct relax_grid *out);

/* The certificate with the identity that its rows have: nothing in it is secret. ATP_ERR_INVALID
 * where its steps are out of range or order, so that there are no rows. */
enum atp_status tamper_identity(const struct problem *problem, struct region *region,
                                struct certificate *certificate);

#endif
