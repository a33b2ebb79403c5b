/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The drop-ins of a configuration: which files of a directory, in which order.
 * Used by config.c only.
 * Never opens one of them.
 */
#ifndef IOSTALL_CONFIG_DIR_H
#define IOSTALL_CONFIG_DIR_H

/* Errors point to the paths until the whole configuration is checked. */
struct config_dir {
	char **paths;
	unsigned int count;
};

/* 0 with none when there is no such directory; otherwise a negative errno. */
int config_dir_read(const char *dir, struct config_dir *ret_dir);
void config_dir_done(struct config_dir *dir);

#endif
