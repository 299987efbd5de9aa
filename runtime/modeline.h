/* SPDX-License-Identifier: Apache-2.0
 *
 * The first line of each profile that is written: editors take the schema from it, and complete and
 * check what is typed.
 */
#ifndef ATP_MODELINE_H
#define ATP_MODELINE_H

/* A comment of YAML, with its line feed. The place is chosen by the build (-Dschemas), so that it
 * is the same on any machine. */
extern const char atp_profile_modeline[];

#endif
