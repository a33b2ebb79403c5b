/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a file of users in the format of passwd(5).
 * Used by who needs names or numbers of users, on a thread that may hang with the disk of the file.
 * Never asks NSS: a name service on the network may not answer, and its modules would stay in
 * locked memory.
 */
#ifndef IOSTALL_UTIL_PASSWD_H
#define IOSTALL_UTIL_PASSWD_H

#include <stdint.h>

#define PASSWD_FILE "/etc/passwd"
#define PASSWD_NAME_SIZE 33 /* useradd(8): at most 32 characters */

struct passwd_user {
	uint32_t uid;
	uint32_t gid;
	char name[PASSWD_NAME_SIZE];
};

/*
 * Calls `take` for each user in the order of the file. Lines of another form are ignored. 0 or a
 * negative errno.
 */
int passwd_read(const char *path, void (*take)(void *userdata, const struct passwd_user *user),
	void *userdata);

#endif
