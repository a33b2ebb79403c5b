/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "sql/frames.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

/* PID_MAX_LIMIT of the kernel on 64-bit machines. */
#define PID_LIMIT 4194304
/* Ten years: what is beyond is no time that a statement takes. */
#define ELAPSED_MAX_NS (3650ULL * 86400 * 1000000000)

#define IS_TERMINATED(array) (memchr((array), '\0', sizeof(array)) != NULL)

static bool is_pid(int32_t pid)
{
	return pid >= 0 && pid <= PID_LIMIT;
}

static bool check_server(const struct sql_frame_server *f, size_t size)
{
	return size == sizeof(*f) && is_pid(f->server_pid) && IS_TERMINATED(f->version) &&
	       IS_TERMINATED(f->account) && IS_TERMINATED(f->missing);
}

static bool check_session(const struct sql_frame_session *f, size_t size)
{
	const size_t text_at = offsetof(struct sql_frame_session, text);

	if (size <= text_at || size > sizeof(*f))
		return false;
	if (!memchr(f->text, '\0', size - text_at))
		return false;
	return is_pid(f->tid) && is_pid(f->leader_pid) && f->elapsed_ns <= ELAPSED_MAX_NS &&
	       IS_TERMINATED(f->no_tid) && IS_TERMINATED(f->user) && IS_TERMINATED(f->database) &&
	       IS_TERMINATED(f->command) && IS_TERMINATED(f->state);
}

static bool check_end(const struct sql_frame_end *f, size_t size)
{
	return size == sizeof(*f) && IS_TERMINATED(f->error) && IS_TERMINATED(f->missing);
}

int sql_frame_check(const union sql_helper_frame *f, size_t size)
{
	bool right = false;

	if (size < sizeof(f->frame) || size > sizeof(*f) || f->frame.size != size)
		return -EPROTO;
	if (f->frame.type == SQL_FRAME_SERVER)
		right = check_server(&f->server, size);
	else if (f->frame.type == SQL_FRAME_SESSION)
		right = check_session(&f->session, size);
	else if (f->frame.type == SQL_FRAME_END)
		right = check_end(&f->end, size);
	return right ? (int)f->frame.type : -EPROTO;
}
