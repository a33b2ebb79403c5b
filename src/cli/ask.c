/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "cli/ask.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli/commands.h"
#include "cli/load_config.h"
#include "util/exit.h"
#include "daemon/control.h"
#include "util/cleanup.h"
#include "util/log.h"

int ask_daemon_text(const struct options *o, const char *request,
	char ret_answer[CONTROL_MESSAGE_MAX])
{
	_cleanup_free_ struct config *config = command_load_config_to_ask(o);
	int r;

	if (!config)
		return EXIT_CODE_CONFIG;
	r = control_ask(config->control.socket, request, ret_answer);
	if (r == -ENOENT || r == -ECONNREFUSED) {
		log_error(
			"no iostall daemon listens on %s; start it with `systemctl start iostalld` "
			"or run `iostall watch`",
			config->control.socket);
		return EXIT_CODE_CONTROL;
	}
	if (r < 0) {
		log_error("%s: %s", config->control.socket, strerror(-r));
		return EXIT_CODE_CONTROL;
	}
	return EXIT_CODE_OK;
}

int ask_daemon(const struct options *o, const char *request, json_t **ret_answer)
{
	char buf[CONTROL_MESSAGE_MAX];
	const char *error;
	json_t *answer;
	int code = ask_daemon_text(o, request, buf);

	if (code != EXIT_CODE_OK)
		return code;
	answer = json_loads(buf, 0, NULL);
	if (!json_is_object(answer)) {
		log_error(
			"the answer of the daemon is not valid JSON; expected one from the same version of iostall");
		json_decref(answer);
		return EXIT_CODE_FAILURE;
	}
	error = json_string_value(json_object_get(answer, "error"));
	if (error) {
		log_error("the daemon refused: %s", error);
		json_decref(answer);
		return EXIT_CODE_FAILURE;
	}
	*ret_answer = answer;
	return EXIT_CODE_OK;
}
