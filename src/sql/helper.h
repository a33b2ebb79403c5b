/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The helper process of one database target: its one session, its answers, its backoff.
 * Called by the hidden command sql-helper, which the daemon starts for each target.
 * Never opens a session while it has one, never forks, and ends with the daemon.
 */
#ifndef IOSTALL_SQL_HELPER_H
#define IOSTALL_SQL_HELPER_H

/*
 * Serves the socket fd until its other end is closed, which is 0. A negative errno, logged, when
 * there was no usable setup, the sandbox could not be entered or the socket failed.
 */
int sql_helper_main(int fd);

#endif
