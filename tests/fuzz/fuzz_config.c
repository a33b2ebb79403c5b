/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Any bytes as a configuration file: refused in one printable line, or taken and within limits. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "config/config.h"
#include "config/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(const char *error)
{
	size_t len = strnlen(error, CONFIG_ERROR_SIZE);

	if (len == 0 || len == CONFIG_ERROR_SIZE)
		abort();
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)error[i] < 0x20 || error[i] == 0x7f)
			abort();
}

/* What was taken can be written down and read again, and says the same. */
static void check_values(const struct config *c)
{
	static struct config again;
	char first[8192], second[8192], reason_buf[256];
	struct text a = TEXT_ON(first), b = TEXT_ON(second), reason = TEXT_ON(reason_buf);

	for (unsigned int i = 0; i < config_settings_count; i++) {
		text_reset(&a);
		text_reset(&b);
		text_reset(&reason);
		config_value_format(&config_settings[i], c, &a);
		if (config_value_parse(&config_settings[i], first, &again, &reason) < 0)
			abort();
		config_value_format(&config_settings[i], &again, &b);
		if (a.overflow || strcmp(first, second) != 0)
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct config c;
	char error[CONFIG_ERROR_SIZE] = "";

	config_set_defaults(&c);
	if (config_parse_text(&c, "fuzz.conf", (const char *)data, size, error) < 0)
		check_error(error);
	else
		check_values(&c);
	return 0;
}
