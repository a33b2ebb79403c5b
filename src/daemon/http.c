/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "daemon/http.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#define PATH "/metrics"
#define ACCEPT "Accept:"
#define LENGTH "Content-Length: "
#define LENGTH_DIGITS 10
#define HEAD_END "\r\n\r\n"

static bool begins_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The target may have a query, and be a whole URI where a proxy is asked. */
static unsigned int status_of(const char *target)
{
	const char *path = target;

	if (begins_with(path, "http://")) {
		path += strlen("http://");
		path += strcspn(path, "/ ");
	}
	if (!begins_with(path, PATH))
		return 404;
	path += strlen(PATH);
	return *path == ' ' || *path == '?' ? 200 : 404;
}

/*
 * Whoever names OpenMetrics can read it; Prometheus prefers it to its own format. A name with q=0
 * is refused, which nobody sends. The headers end with an empty line.
 */
static bool takes_openmetrics(const char *headers)
{
	const char *line = headers + strlen("\r\n"), *end, *found;

	for (; (end = strstr(line, "\r\n")) != line; line = end + strlen("\r\n")) {
		found = strcasestr(line, "application/openmetrics-text");
		if (strncasecmp(line, ACCEPT, strlen(ACCEPT)) == 0 && found && found < end)
			return true;
	}
	return false;
}

void http_parse(const char *text, struct http_request *ret_request)
{
	const char *line_end = strstr(text, "\r\n"), *target, *version;
	struct http_request request = { .status = 400 };

	*ret_request = (struct http_request){ 0 };
	if (!strstr(text, HEAD_END))
		return;
	target = memchr(text, ' ', (size_t)(line_end - text));
	version = memrchr(text, ' ', (size_t)(line_end - text));
	request.is_head = begins_with(text, "HEAD ");
	if (target != version && begins_with(version, " HTTP/1."))
		request.status =
			begins_with(text, "GET ") || request.is_head ? status_of(target + 1) : 405;
	request.takes_openmetrics = takes_openmetrics(line_end);
	*ret_request = request;
}

void http_begin(struct text *answer, const struct http_request *request, const char *type)
{
	static const struct {
		unsigned int status;
		const char *reason;
	} reasons[] = {
		{ 200, "OK" },
		{ 400, "Bad Request" },
		{ 404, "Not Found" },
		{ 405, "Method Not Allowed" },
	};
	const char *reason = "";

	for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++)
		if (reasons[i].status == request->status)
			reason = reasons[i].reason;
	text_addf(answer, "HTTP/1.1 %u %s\r\nContent-Type: %s\r\n%sConnection: close\r\n",
		request->status, reason, type,
		request->status == 405 ? "Allow: GET, HEAD\r\n" : "");
	text_addf(answer, LENGTH "%*s" HEAD_END, LENGTH_DIGITS, "");
}

void http_end(struct text *answer, const struct http_request *request)
{
	char *head_end = strstr(answer->buf, HEAD_END);
	char digits[LENGTH_DIGITS + 1];
	size_t head_len = (size_t)(head_end - answer->buf) + strlen(HEAD_END);

	snprintf(digits, sizeof(digits), "%*zu", LENGTH_DIGITS, answer->len - head_len);
	memcpy(head_end - LENGTH_DIGITS, digits, LENGTH_DIGITS);
	if (request->is_head)
		answer->len = head_len;
}
