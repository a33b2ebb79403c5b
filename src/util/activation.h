/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Socket activation, as sd_listen_fds(3) has it: sockets that the service manager has opened.
 * Used by the daemon; depends on no room.
 */
#ifndef IOSTALL_UTIL_ACTIVATION_H
#define IOSTALL_UTIL_ACTIVATION_H

#define ACTIVATION_FIRST_FD 3

/*
 * How many sockets were passed to this process, as descriptors from ACTIVATION_FIRST_FD on.
 * Programs that it starts do not get them.
 */
unsigned int activation_take(void);
/* For the program that this process becomes by exec. */
void activation_pass_on(void);

#endif
