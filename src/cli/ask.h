/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Sends a request to the running daemon and reports on stderr why there is no answer.
 * Used by `trigger`, `status` and `metrics`.
 * Never waits longer than control_ask() does.
 */
#ifndef IOSTALL_CLI_ASK_H
#define IOSTALL_CLI_ASK_H

#include <jansson.h>

#include "cli/options.h"
#include "daemon/control.h"

/*
 * EXIT_CODE_OK with the answer, to be released by json_decref(), or another code after an error,
 * which is printed.
 */
int ask_daemon(const struct options *o, const char *request, json_t **ret_answer);
/* The same for a request whose answer is text. */
int ask_daemon_text(const struct options *o, const char *request,
	char ret_answer[CONTROL_MESSAGE_MAX]);

#endif
