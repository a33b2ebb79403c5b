/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "snapshot/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "util/file.h"
#include "util/parse.h"
#include "util/text.h"

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

void thread_read_stack(int procfs_fd, int32_t tid, char ret_stack[THREAD_STACK_SIZE])
{
	char path[64], buf[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "%d/stack", tid);
	n = file_read_at(procfs_fd, path, buf, sizeof(buf));
	/* Of a stack that is too long the innermost frames are read. */
	if (n < 0 && n != -ENOBUFS)
		buf[0] = '\0';
	thread_parse_stack(buf, strlen(buf), ret_stack);
}
