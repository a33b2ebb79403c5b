/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"
#include "watch/parsers.h"

static ssize_t read_thread_file(int procfs_fd, int32_t tid, const char *name, char *buf, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "%d/%s", tid, name);
	return file_read_at(procfs_fd, path, buf, size);
}

int thread_parse_syscall(const char *buf, size_t len, struct thread_syscall *ret_call)
{
	struct cursor c = { buf, buf + len };
	struct thread_syscall call = {};

	if (len >= 7 && memcmp(buf, "running", 7) == 0) {
		call.running = true;
		*ret_call = call;
		return 0;
	}
	if (cursor_i64(&c, &call.nr) < 0 || call.nr < -1)
		return -EINVAL;
	for (unsigned int i = 0; call.nr >= 0 && i < ARRAY_SIZE(call.args); i++)
		if (cursor_hex(&c, &call.args[i]) < 0)
			return -EINVAL;
	*ret_call = call;
	return 0;
}

void thread_parse_stack(const char *buf, size_t len, char ret_stack[THREAD_STACK_SIZE])
{
	struct text out = { .buf = ret_stack, .size = THREAD_STACK_SIZE };
	struct cursor c = { buf, buf + len }, line;

	text_reset(&out);
	/* "[<0>] folio_wait_bit_common+0x134/0x380" */
	while (cursor_line(&c, &line)) {
		const char *address, *symbol, *slash;
		size_t address_len, symbol_len;

		if (cursor_word(&line, &address, &address_len) < 0 ||
			cursor_word(&line, &symbol, &symbol_len) < 0)
			continue;
		slash = memchr(symbol, '/', symbol_len);
		if (slash)
			symbol_len = (size_t)(slash - symbol);
		if (out.len + symbol_len + 2 > out.size)
			break;
		if (out.len > 0)
			text_add(&out, "\n");
		text_add_bytes(&out, symbol, symbol_len);
	}
}

int thread_read_syscall(int procfs_fd, int32_t tid, struct thread_syscall *ret_call)
{
	char buf[256];
	ssize_t n = read_thread_file(procfs_fd, tid, "syscall", buf, sizeof(buf));

	return n < 0 ? (int)n : thread_parse_syscall(buf, (size_t)n, ret_call);
}

int thread_read_stat(int procfs_fd, int32_t tid, struct watch_thread_stat *ret_stat)
{
	char buf[1024];
	ssize_t n = read_thread_file(procfs_fd, tid, "stat", buf, sizeof(buf));

	return n < 0 ? (int)n : watch_parse_thread_stat(buf, (size_t)n, ret_stat);
}

int thread_read_state(int procfs_fd, int32_t tid, char *ret_state)
{
	struct watch_thread_stat stat;
	int r = thread_read_stat(procfs_fd, tid, &stat);

	if (r == 0)
		*ret_state = stat.state;
	return r;
}

void thread_read_wait(int procfs_fd, int32_t tid, char ret_wchan[THREAD_WCHAN_SIZE],
	char ret_stack[THREAD_STACK_SIZE])
{
	char buf[4096];
	ssize_t n;

	n = read_thread_file(procfs_fd, tid, "wchan", buf, sizeof(buf));
	/* "0": not blocked, or not told (5.10) */
	text_copy(ret_wchan, THREAD_WCHAN_SIZE, n > 0 && strcmp(buf, "0") != 0 ? buf : "");
	n = read_thread_file(procfs_fd, tid, "stack", buf, sizeof(buf));
	if (n < 0 && n != -ENOBUFS)
		buf[0] = '\0';
	thread_parse_stack(buf, strlen(buf), ret_stack);
}
