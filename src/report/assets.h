/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a browser shows, from report/ by way of the build: the page with its places, the styles, the
 * scripts, and the hashes by which the policy of the page admits these.
 * Used by write.c, and by the daemon to be rid of them.
 * Never read at run time.
 */
#ifndef IOSTALL_REPORT_ASSETS_H
#define IOSTALL_REPORT_ASSETS_H

/* Each terminated. */
extern const char report_page[];
extern const char report_pair_page[];
extern const char report_style[];
extern const char report_script[];
extern const char report_style_hash[];
extern const char report_script_hash[];

/* For the daemon, which locks all its memory and makes no page. */
void report_unlock_assets(void);

#endif
