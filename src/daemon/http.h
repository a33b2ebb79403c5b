/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * As much of HTTP/1.1 as it takes to answer GET /metrics (RFC 9110, RFC 9112).
 * Used by scrape.c.
 * Never looks at what follows the headers.
 */
#ifndef IOSTALL_DAEMON_HTTP_H
#define IOSTALL_DAEMON_HTTP_H

#include <stdbool.h>

#include "util/text.h"

struct http_request {
	unsigned int status; /* of the answer: 200, 400, 404 or 405; 0: more has to come */
	bool is_head;
	bool takes_openmetrics;
};

/* `text` is terminated. */
void http_parse(const char *text, struct http_request *ret_request);

/* Begins an answer whose content the caller appends, and http_end() completes. */
void http_begin(struct text *answer, const struct http_request *request, const char *type);
void http_end(struct text *answer, const struct http_request *request);

#endif
