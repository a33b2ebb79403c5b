/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * Lines of a page: what is cut, and where; bars, histograms; the terminal and its
 * environment.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include "page/draw.h"
#include "util/cleanup.h"
#include "util/clock.h"

struct fixture {
	struct draw draw;
	struct text out;
	char buf[4096];
};

static int setup(void **state)
{
	*state = calloc(1, sizeof(struct fixture));
	return 0;
}

static int teardown(void **state)
{
	free(*state);
	return 0;
}

static struct draw *begin(struct fixture *f, unsigned int columns, bool utf8)
{
	const struct page_style style = { .columns = columns, .utf8 = utf8 };

	f->out = TEXT_ON(f->buf);
	text_reset(&f->out);
	draw_begin(&f->draw, &style, &f->out);
	return &f->draw;
}

static void assert_text(struct fixture *f, bool utf8, unsigned int columns, const char *s,
	const char *expected)
{
	draw_text(begin(f, 200, utf8), columns, s);
	assert_string_equal(f->draw.line_buf, expected);
}

static void assert_path(struct fixture *f, unsigned int columns, const char *s,
	const char *expected)
{
	draw_path(begin(f, 200, true), columns, s);
	assert_string_equal(f->draw.line_buf, expected);
	assert_in_range(draw_width(f->draw.line_buf), 0, columns);
}

static void test_text_is_cut_between_characters(void **state)
{
	struct fixture *f = *state;

	assert_text(f, true, 5, "abcde", "abcde");
	assert_text(f, true, 4, "abcde", "abc…");
	assert_text(f, false, 5, "abcdef", "ab...");
	assert_text(f, true, 4, "äöüß", "äöüß");
	assert_text(f, true, 3, "äöüß", "äö…");
	/* Two columns each; half of one is none. */
	assert_text(f, true, 4, "漢字漢", "漢…");
	assert_text(f, true, 2, "a\x1b", "a…");
	assert_text(f, true, 9, "a\n\x1b", "a\\x0a\\x1b");
	assert_text(f, true, 0, "abc", "");
	/* What a record has for a byte that is not UTF-8. */
	assert_text(f, true, 3, "a\xff", "a\xef\xbf\xbd");
}

static void test_paths_keep_their_ends(void **state)
{
	struct fixture *f = *state;

	assert_path(f, 30, "/var/lib/mysql/shop/orders.ibd", "/var/lib/mysql/shop/orders.ibd");
	assert_path(f, 29, "/var/lib/mysql/shop/orders.ibd", "/var/…/mysql/shop/orders.ibd");
	assert_path(f, 22, "/var/lib/mysql/shop/orders.ibd", "/var/…/shop/orders.ibd");
	assert_path(f, 17, "/var/lib/mysql/shop/orders.ibd", "/var/…/orders.ibd");
	assert_path(f, 12, "/var/lib/mysql/shop/orders.ibd", "…/orders.ibd");
	assert_path(f, 8, "/var/lib/mysql/shop/orders.ibd", "…ers.ibd");
	assert_path(f, 8, "(metadata)", "…tadata)");
	assert_path(f, 5, "/漢字漢字", "…漢字");
	assert_path(f, 3, "/var/lib", "/v…");
}

static void test_a_line_is_no_wider_than_the_page(void **state)
{
	struct fixture *f = *state;
	struct draw *d = begin(f, 10, true);

	draw_add(d, "0123456789  ");
	draw_end(d);
	draw_add(d, "0123456789a");
	draw_end(d);
	draw_add(d, "ab");
	draw_right(d, 6, "cd");
	draw_to(d, 8);
	draw_add(d, "e  ");
	draw_end(d);
	assert_string_equal(f->buf, "0123456789\n012345678…\nab  cd  e\n");
}

static void test_wrapped_text(void **state)
{
	struct fixture *f = *state;
	struct draw *d = begin(f, 12, true);

	draw_add(d, "what ");
	draw_wrapped(d, 5, 3, "one two three four five");
	assert_string_equal(f->buf, "what one two\n     three\n     four f…\n");
	d = begin(f, 12, true);
	draw_wrapped(d, 0, 9, "onetwothreefourfive six");
	assert_string_equal(f->buf, "onetwothreef\nourfive six\n");
}

/* They take no room, survive no cut, and end with the line. */
static void test_colours(void **state)
{
	struct fixture *f = *state;
	struct draw *d = begin(f, 5, true);

	d->style.colour = true;
	draw_colour(d, DRAW_RED);
	draw_add(d, "abcdef");
	assert_int_equal(draw_width(d->line_buf), 6);
	draw_end(d);
	assert_string_equal(f->buf, "\x1b[1;31mabcd…\x1b[0m\n");
	d = begin(f, 5, true);
	draw_colour(d, DRAW_RED);
	draw_add(d, "a");
	draw_end(d);
	assert_string_equal(f->buf, "a\n");
}

static void test_bars(void **state)
{
	struct fixture *f = *state;
	static const struct {
		double share;
		const char *utf8, *ascii;
	} cases[] = { { 0, "    ", "    " }, { 1, "████", "####" }, { 0.5, "██  ", "##  " },
		{ 0.53, "██▏ ", "##  " }, { 7, "████", "####" }, { -1, "    ", "    " },
		{ 0.9, "███▋", "####" } };

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		draw_bar(begin(f, 100, true), 4, cases[i].share);
		assert_string_equal(f->draw.line_buf, cases[i].utf8);
		draw_bar(begin(f, 100, false), 4, cases[i].share);
		assert_string_equal(f->draw.line_buf, cases[i].ascii);
	}
}

static void test_histograms(void **state)
{
	struct fixture *f = *state;
	static const uint64_t counts[] = { 1, 0, 1000000, 500000 };

	draw_histogram(begin(f, 100, true), counts, 4);
	assert_string_equal(f->draw.line_buf, "▁ █▄");
	draw_histogram(begin(f, 100, false), counts, 4);
	assert_string_equal(f->draw.line_buf, ". #:");
}

static void test_the_environment(void **state)
{
	_cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct page_style style;

	(void)state;
	unsetenv("COLUMNS");
	unsetenv("LC_ALL");
	unsetenv("LC_CTYPE");
	setenv("LANG", "de_DE.UTF-8", 1);
	style = page_style_of(null);
	assert_int_equal(style.columns, 100);
	assert_true(style.utf8);
	assert_false(style.colour);
	assert_false(style.terminal);
	setenv("LC_ALL", "C", 1);
	assert_false(page_style_of(null).utf8);
	setenv("COLUMNS", "72", 1);
	assert_int_equal(page_style_of(null).columns, 72);
	setenv("COLUMNS", "7", 1);
	assert_int_equal(page_style_of(null).columns, 40);
	setenv("COLUMNS", "9999999999", 1);
	assert_int_equal(page_style_of(null).columns, 240);
	setenv("COLUMNS", "wide", 1);
	assert_int_equal(page_style_of(null).columns, 100);
}

static void test_a_terminal(void **state)
{
	_cleanup_close_ int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC), slave = -1;
	const struct winsize size = { .ws_col = 132, .ws_row = 50 };

	(void)state;
	if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
		skip();
	slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_int_equal(ioctl(slave, TIOCSWINSZ, &size), 0);
	setenv("COLUMNS", "72", 1);
	setenv("TERM", "xterm", 1);
	unsetenv("NO_COLOR");
	assert_int_equal(page_style_of(slave).columns, 132);
	assert_true(page_style_of(slave).colour);
	setenv("NO_COLOR", "1", 1);
	assert_false(page_style_of(slave).colour);
	unsetenv("NO_COLOR");
	setenv("TERM", "dumb", 1);
	assert_false(page_style_of(slave).colour);
	close(slave);
	slave = -1;
}

#define WITH_DRAW(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_DRAW(test_text_is_cut_between_characters),
		WITH_DRAW(test_paths_keep_their_ends),
		WITH_DRAW(test_a_line_is_no_wider_than_the_page),
		WITH_DRAW(test_wrapped_text),
		WITH_DRAW(test_colours),
		WITH_DRAW(test_bars),
		WITH_DRAW(test_histograms),
		cmocka_unit_test(test_the_environment),
		cmocka_unit_test(test_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
