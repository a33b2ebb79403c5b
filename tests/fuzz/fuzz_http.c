/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a request by HTTP: the answer says its length, and half a request gets none. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/http.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_answer(const struct http_request *request)
{
	static const char content[] = "content\r\n\r\n";
	char buf[512], length[64];
	struct text answer = TEXT_ON(buf);
	const char *end;

	text_reset(&answer);
	http_begin(&answer, request, "text/plain");
	text_add(&answer, content);
	http_end(&answer, request);
	end = strstr(buf, "\r\n\r\n");
	check(end && !answer.overflow && strcmp(end + 4, content) == 0);
	snprintf(length, sizeof(length), "Content-Length: %10zu\r\n", strlen(content));
	check(strstr(buf, length));
	check(answer.len == (size_t)(end + 4 - buf) + (request->is_head ? 0 : strlen(content)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Of its exact size, so that one byte too many is seen. */
	char *text = malloc(size + 1);
	struct http_request request;

	check(text);
	memcpy(text, data, size);
	text[size] = '\0';
	http_parse(text, &request);
	check((request.status == 0) == !strstr(text, "\r\n\r\n"));
	if (request.status)
		check_answer(&request);
	free(text);
	return 0;
}
