/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A driver whose client library is the test: its functions in place of those of the library.
 * Used by the tests of drivers.
 * Never loads a library.
 */
#ifndef IOSTALL_TESTS_TEST_SQL_CLIENT_H
#define IOSTALL_TESTS_TEST_SQL_CLIENT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sql/helper/driver.h"

struct client_fake {
	const char *name; /* NULL ends a list */
	void (*function)(void);
};

#define CLIENT_FAKE(name, function)                                                                \
	{                                                                                          \
		name, (void (*)(void))function                                                     \
	}

/* A link of the driver with these functions; the setup is borrowed. For test_free(). */
static inline struct sql_link *client_link(const struct sql_driver *driver,
	const struct client_fake *fakes, const struct sql_frame_setup *setup)
{
	char *link = test_calloc(1, driver->link_size);

	memcpy(link, &setup, sizeof(setup));
	for (const struct sql_function *f = driver->functions; f->name; f++)
		for (const struct client_fake *fake = fakes; fake->name; fake++)
			if (strcmp(f->name, fake->name) == 0)
				memcpy(link + f->offset, &fake->function, sizeof(fake->function));
	return (struct sql_link *)(void *)link;
}

#endif
