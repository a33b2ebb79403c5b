/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sinks/files.h"

#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/cleanup.h"

/* All of it is locked in memory; the deepest frames hold two paths. */
#ifdef __SANITIZE_ADDRESS__
#define THREAD_STACK_BYTES (256 * 1024)
#else
#define THREAD_STACK_BYTES (48 * 1024)
#endif

gid_t files_find_group(void)
{
	/* Not getgrnam(): it loads name service modules, which then stay in locked memory. */
	_cleanup_fclose_ FILE *f = fopen("/etc/group", "re");
	const struct group *group;

	while (f && (group = fgetgrent(f)))
		if (strcmp(group->gr_name, FILES_GROUP) == 0)
			return group->gr_gid;
	return FILES_NO_GROUP;
}

int files_set_access(int fd, mode_t mode, gid_t group)
{
	int r = 0;

	if (group != FILES_NO_GROUP && fchown(fd, (uid_t)-1, group) < 0)
		r = -errno;
	/* The umask may have taken the group's bits. */
	fchmod(fd, mode);
	return r;
}

bool files_name_is_spare(const char *name)
{
	return strncmp(name, FILES_SPARE_PREFIX, strlen(FILES_SPARE_PREFIX)) == 0;
}

int files_start_thread(void *(*run)(void *), void *arg)
{
	sigset_t all, old;
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	r = pthread_attr_init(&attr);
	if (r != 0)
		return -r;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK_BYTES);
	/* Signals belong to the event loop's signalfd. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&thread, &attr, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -r;
}
