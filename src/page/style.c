/* SPDX-License-Identifier: GPL-2.0-or-later */
/* How a page is drawn: by the terminal and the environment. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "page/page.h"
#include "util/parse.h"

#define COLUMNS_MIN 40
#define COLUMNS_MAX 240
#define COLUMNS_DEFAULT 100

static unsigned int columns_of(int fd, bool terminal)
{
	struct winsize size = { 0 };
	const char *columns = getenv("COLUMNS");
	uint64_t value = 0;

	if (terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		value = size.ws_col;
	else if (!columns || parse_unsigned(columns, &value) < 0 || value == 0)
		value = COLUMNS_DEFAULT;
	if (value > COLUMNS_MAX)
		return COLUMNS_MAX;
	return value < COLUMNS_MIN ? COLUMNS_MIN : (unsigned int)value;
}

/* The first of them that is set and not empty decides, as in setlocale(3). */
static bool locale_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };

	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

struct page_style page_style_of(int fd)
{
	const char *no_colour = getenv("NO_COLOR"), *term = getenv("TERM");
	bool terminal = isatty(fd);

	return (struct page_style){
		.columns = columns_of(fd, terminal),
		.terminal = terminal,
		.colour =
			terminal && !(no_colour && *no_colour) && term && strcmp(term, "dumb") != 0,
		.utf8 = locale_is_utf8(),
	};
}
