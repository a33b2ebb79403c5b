/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One question to the running daemon, with a clear message when there is none.
 * Called by `trigger` and `status`.
 * Never waits longer than control_ask().
 */
#ifndef IOSTALL_CLI_ASK_H
#define IOSTALL_CLI_ASK_H

#include <jansson.h>

#include "cli/options.h"

/* EXIT_CODE_OK with the answer, to be released by json_decref(), or another code, said on stderr. */
int ask_daemon(const struct options *o, const char *request, json_t **ret_answer);

#endif
