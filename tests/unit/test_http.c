/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Requests for the metrics as clients send them, and as others do. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "daemon/http.h"

#define PROMETHEUS                                                                                 \
	"GET /metrics HTTP/1.1\r\nHost: db1:10079\r\nUser-Agent: Prometheus/2.42.0\r\n"            \
	"Accept: application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5\r\n"    \
	"Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n"

static struct http_request parse(const char *text)
{
	struct http_request request;

	http_parse(text, &request);
	return request;
}

static void test_who_asks_for_metrics_gets_them(void **state)
{
	(void)state;
	assert_int_equal(parse(PROMETHEUS).status, 200);
	assert_int_equal(parse("GET /metrics HTTP/1.0\r\n\r\n").status, 200);
	assert_int_equal(parse("GET /metrics?name[]=up HTTP/1.1\r\n\r\n").status, 200);
	assert_int_equal(parse("GET http://db1:10079/metrics HTTP/1.1\r\n\r\n").status, 200);
	assert_false(parse(PROMETHEUS).is_head);
	assert_int_equal(parse("HEAD /metrics HTTP/1.1\r\n\r\n").status, 200);
	assert_true(parse("HEAD /metrics HTTP/1.1\r\n\r\n").is_head);
}

static void test_who_asks_for_something_else_does_not(void **state)
{
	(void)state;
	assert_int_equal(parse("GET / HTTP/1.1\r\n\r\n").status, 404);
	assert_int_equal(parse("GET /metricsx HTTP/1.1\r\n\r\n").status, 404);
	assert_int_equal(parse("GET http://db1:10079 HTTP/1.1\r\n\r\n").status, 404);
	assert_int_equal(parse("GET http:///metrics HTTP/1.1\r\n\r\n").status, 200);
	assert_int_equal(parse("POST /metrics HTTP/1.1\r\n\r\n").status, 405);
	assert_int_equal(parse("get /metrics HTTP/1.1\r\n\r\n").status, 405);
}

static void test_what_is_no_request_is_refused(void **state)
{
	static const char *const texts[] = { "\r\n\r\n", "x\r\n\r\n", " \r\n\r\n", "GET\r\n\r\n",
		"GET /metrics\r\n\r\n", "GET /metrics HTTP/2.0\r\n\r\n", "GET HTTP/1.1\r\n\r\n",
		"GET /metrics HTTP/1.1 x\r\n\r\n", "\x16\x03\x01\r\n\r\n" };

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(parse(texts[i]).status, 400);
}

/* A request comes in as many pieces as the network likes. */
static void test_half_a_request_is_waited_for(void **state)
{
	char text[sizeof(PROMETHEUS)];

	(void)state;
	for (size_t len = 0; len < strlen(PROMETHEUS); len++) {
		memcpy(text, PROMETHEUS, len);
		text[len] = '\0';
		assert_int_equal(parse(text).status, 0);
	}
}

static void test_openmetrics_is_for_who_accepts_it(void **state)
{
	(void)state;
	assert_true(parse(PROMETHEUS).takes_openmetrics);
	assert_true(parse(
		"GET /metrics HTTP/1.1\r\naccept: text/plain, application/openmetrics-text\r\n\r\n")
			    .takes_openmetrics);
	assert_false(parse("GET /metrics HTTP/1.1\r\nAccept: */*\r\n\r\n").takes_openmetrics);
	assert_false(parse("GET /metrics HTTP/1.1\r\n\r\n").takes_openmetrics);
	assert_true(parse("GET /metrics HTTP/1.1\r\nAccept: Application/OpenMetrics-Text\r\n\r\n")
			    .takes_openmetrics);
	/* That is no header any more. */
	assert_false(parse("GET /metrics HTTP/1.1\r\n\r\nAccept: application/openmetrics-text\r\n")
			     .takes_openmetrics);
	assert_false(parse("GET /metrics HTTP/1.1\r\nAccept: text/plain\r\n"
			   "User-Agent: application/openmetrics-text\r\n\r\n")
			     .takes_openmetrics);
}

static void test_an_answer_says_how_long_it_is(void **state)
{
	struct http_request request = { .status = 200 };
	char buf[256];
	struct text answer = TEXT_ON(buf);

	(void)state;
	text_reset(&answer);
	http_begin(&answer, &request, "text/plain");
	text_add(&answer, "a 1\n\r\n\r\n");
	http_end(&answer, &request);
	assert_string_equal(buf,
		"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
		"Content-Length:          8\r\n\r\na 1\n\r\n\r\n");
	assert_int_equal(answer.len, strlen(buf));
}

static void test_an_answer_to_head_has_no_content(void **state)
{
	struct http_request request = { .status = 405, .is_head = true };
	char buf[256];
	struct text answer = TEXT_ON(buf);

	(void)state;
	text_reset(&answer);
	http_begin(&answer, &request, "text/plain");
	text_add(&answer, "content");
	http_end(&answer, &request);
	assert_int_equal(answer.len, strlen(buf) - strlen("content"));
	assert_non_null(strstr(buf, "Allow: GET, HEAD\r\n"));
	assert_non_null(strstr(buf, "Content-Length:          7\r\n\r\n"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_who_asks_for_metrics_gets_them),
		cmocka_unit_test(test_who_asks_for_something_else_does_not),
		cmocka_unit_test(test_what_is_no_request_is_refused),
		cmocka_unit_test(test_half_a_request_is_waited_for),
		cmocka_unit_test(test_openmetrics_is_for_who_accepts_it),
		cmocka_unit_test(test_an_answer_says_how_long_it_is),
		cmocka_unit_test(test_an_answer_to_head_has_no_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
