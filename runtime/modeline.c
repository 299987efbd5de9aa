/* SPDX-License-Identifier: Apache-2.0 */
#include "modeline.h"

const char atp_profile_modeline[] =
    "# yaml-language-server: $schema=" ATP_SCHEMAS "/profile.v1.schema.json\n";
