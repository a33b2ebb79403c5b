/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/helper/peer.h"

#include <errno.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/parse.h"

static bool is_user(const char *name, uid_t uid)
{
	const struct passwd *user;
	uint64_t number;

	if (parse_unsigned(name, &number) == 0)
		return number == uid;
	user = getpwnam(name);
	return user && user->pw_uid == uid;
}

/* A helper that was started by an ordinary user has nothing that this user would not have. */
static bool is_allowed(const struct sql_frame_setup *setup, const char *usual, uid_t uid)
{
	if (uid == 0 || is_user(setup->server_user[0] ? setup->server_user : usual, uid))
		return true;
	return uid == geteuid() && !is_user(setup->run_as, uid);
}

static int refuse(const struct sql_frame_setup *setup, const char *what, const char *usual,
	uid_t uid, struct text *error, struct text *missing)
{
	const struct passwd *user = getpwuid(uid);

	text_addf(error, "%s belongs to user ", what);
	if (user)
		text_add(error, user->pw_name);
	else
		text_addf(error, "%u", uid);
	text_addf(error, "; expected %s or root",
		setup->server_user[0] ? setup->server_user : usual);
	text_addf(missing, "set sql.%s.server_user, if this is the user of the server",
		setup->name);
	return -EPERM;
}

int peer_check_socket(const struct sql_frame_setup *setup, const char *path, const char *usual,
	char ret_user[static SQL_NAME_SIZE], struct text *error, struct text *missing)
{
	const struct passwd *user;
	struct stat st;

	ret_user[0] = '\0';
	if (stat(path, &st) < 0)
		return 0;
	if (!is_allowed(setup, usual, st.st_uid))
		return refuse(setup, "the socket", usual, st.st_uid, error, missing);
	user = getpwuid(st.st_uid);
	text_copy(ret_user, SQL_NAME_SIZE, user ? user->pw_name : "");
	return 0;
}

int peer_check_connection(const struct sql_frame_setup *setup, int fd, const char *usual,
	struct text *error, struct text *missing)
{
	struct sockaddr_storage address;
	socklen_t address_len = sizeof(address), len;
	struct ucred peer = { 0 };

	len = sizeof(peer);
	if (setup->host[0])
		return 0;
	if (getsockname(fd, (struct sockaddr *)&address, &address_len) < 0)
		return -errno;
	if (address.ss_family != AF_UNIX) {
		text_add(error, "option_file leads to a server on the network");
		text_addf(missing, "set sql.%s.host", setup->name);
		return -EPERM;
	}
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return -errno;
	if (is_allowed(setup, usual, peer.uid))
		return 0;
	return refuse(setup, "the server", usual, peer.uid, error, missing);
}
