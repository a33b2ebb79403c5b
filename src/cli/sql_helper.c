/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <sys/socket.h>
#include <unistd.h>

#include "cli/commands.h"
#include "util/exit.h"
#include "sql/helper/helper.h"
#include "util/log.h"

static int run(const struct options *o)
{
	socklen_t size = sizeof(int);
	int type = 0;

	(void)o;
	log_never_wait();
	if (getsockopt(STDIN_FILENO, SOL_SOCKET, SO_TYPE, &type, &size) < 0 ||
		type != SOCK_SEQPACKET) {
		log_error(
			"sql-helper: this command is started by the daemon only; see iostall --help");
		return EXIT_CODE_USAGE;
	}
	return sql_helper_main(STDIN_FILENO) < 0 ? EXIT_CODE_FAILURE : EXIT_CODE_OK;
}

const struct options_command command_sql_helper = {
	.name = "sql-helper",
	.arguments = "[TARGET]",
	.summary = "query one database for the daemon",
	.args_max = 1,
	.run = run,
	.hidden = true,
};
