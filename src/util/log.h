/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program's own messages, one line each, to standard error.
 * Used by every room; depends on no room.
 * Never blocks once log_never_wait() has been called: a line that standard error cannot take at
 * once is dropped and counted.
 */
#ifndef IOSTALL_UTIL_LOG_H
#define IOSTALL_UTIL_LOG_H

#include <stdint.h>

/* Values are those of syslog(3), so that a line can carry its level as "<N>". */
enum log_level {
	LOG_LEVEL_ERROR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6,
	LOG_LEVEL_DEBUG = 7,
};

/* Looks at standard error once: when it is a socket, journald reads it and wants a level prefix. */
void log_setup(void);
/* For what must go on whatever its reader does; a command waits for it instead. */
void log_never_wait(void);
void log_set_level(enum log_level level);
uint64_t log_dropped_lines(void);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif
