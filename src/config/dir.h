/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lists the drop-in files of a configuration directory in the order in which they apply.
 * Used by config.c only.
 * Never opens one of the files.
 */
#ifndef IOSTALL_CONFIG_DIR_H
#define IOSTALL_CONFIG_DIR_H

/* Error messages refer to the paths until the whole configuration has been checked. */
struct config_dir {
	char **paths;
	unsigned int count;
};

/* 0, also without files when the directory does not exist, or a negative errno. */
int config_dir_read(const char *dir, struct config_dir *ret_dir);
void config_dir_done(struct config_dir *dir);

#endif
