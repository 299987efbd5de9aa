/* SPDX-License-Identifier: GPL-3.0-or-later
 *
 * report.css and report.js as text, made by embed.py at build time.
 */
#ifndef REPORT_ASSETS_H
#define REPORT_ASSETS_H

extern const char REPORT_CSS[];
extern const char REPORT_JS[];

#endif
