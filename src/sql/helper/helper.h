/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The helper process of one database target: keeps one session and answers the daemon's questions.
 * Called by the hidden command sql-helper, which the daemon starts for each target.
 * Never opens a second session, never forks, and ends when the daemon ends.
 */
#ifndef IOSTALL_SQL_HELPER_H
#define IOSTALL_SQL_HELPER_H

/*
 * Answers on the socket fd until its other end is closed, and returns 0 then. Returns a negative
 * errno, after logging it, when the setup is unusable, the sandbox cannot be entered or the socket
 * fails.
 */
int sql_helper_main(int fd);

#endif
