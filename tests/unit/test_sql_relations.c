/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which relation of PostgreSQL a path belongs to. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sql/relations.h"

static struct sql_relations relations;

static void add(uint32_t database, uint32_t file, const char *name)
{
	struct sql_frame_relation f = { .database = database, .file = file };

	snprintf(f.name, sizeof(f.name), "%s", name);
	sql_relations_add(&relations, &f);
}

static void add_directory(const char *path)
{
	struct sql_frame_directory f = { 0 };

	snprintf(f.path, sizeof(f.path), "%s", path);
	sql_relations_add_directory(&relations, &f);
}

static int setup(void **state)
{
	(void)state;
	memset(&relations, 0, sizeof(relations));
	add_directory("/pg/main");
	add_directory("/fast");
	add(5, 100, "shop.public.orders");
	add(0, 1260, "shop.pg_catalog.pg_authid");
	return 0;
}

static void test_paths(void **state)
{
	static const struct {
		const char *path, *relation;
	} rows[] = {
		{ "/pg/main/base/5/100", "shop.public.orders" },
		{ "/pg/main/base/5/100.12", "shop.public.orders" },
		{ "/pg/main/base/5/100_vm", "shop.public.orders" },
		{ "/fast/PG_15_202209061/5/100", "shop.public.orders" },
		{ "/pg/main/global/1260", "shop.pg_catalog.pg_authid" },
		{ "/pg/main/base/5/101", "" },
		{ "/pg/main/base/6/100", "" },
		{ "/pg/main/base/5/1260", "" },
		{ "/pg/main/global/100", "" },
		{ "/pg/main/base/5/100tmp", "" },
		{ "/pg/main/base/5/t3_100", "" },
		{ "/pg/main/pg_wal/100", "" },
		{ "/pg/main/base/5", "" },
		/* 2^32 more */
		{ "/pg/main/base/5/4294967396", "" },
		{ "/pg/main/base/4294967301/100", "" },
		{ "/pg/other/base/5/100", "" },
		{ "/snapshot/pg/main/base/5/100", "" },
		{ "main/base/5/100", "" },
		{ "base/5/100", "" },
		{ "5/100", "" },
		{ "/5/100", "" },
		{ "/100", "" },
		{ "100", "" },
		{ "/", "" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_string_equal(sql_relations_find(&relations, rows[i].path), rows[i].relation);
	assert_string_equal(sql_relations_find(NULL, rows[0].path), "");
}

/* VACUUM FULL gives a table another file; a file keeps its table, which may get another name. */
static void test_new_name(void **state)
{
	(void)state;
	add(5, 100, "shop.public.old_orders");
	add(5, 200, "shop.public.orders");
	assert_int_equal(relations.count, 3);
	assert_string_equal(sql_relations_find(&relations, "/pg/main/base/5/100"),
		"shop.public.old_orders");
	assert_string_equal(sql_relations_find(&relations, "/pg/main/base/5/200"),
		"shop.public.orders");
}

static void test_no_room(void **state)
{
	char path[64];

	(void)state;
	for (uint32_t i = 0; i < SQL_RELATIONS_MAX; i++)
		add(7, 1 + i, "shop.public.many");
	assert_int_equal(relations.count, SQL_RELATIONS_MAX);
	/* The two that were there first are gone, and the newest is there. */
	assert_string_equal(sql_relations_find(&relations, "/pg/main/base/5/100"), "");
	assert_string_equal(sql_relations_find(&relations, "/pg/main/global/1260"), "");
	snprintf(path, sizeof(path), "/pg/main/base/7/%d", SQL_RELATIONS_MAX);
	assert_string_equal(sql_relations_find(&relations, path), "shop.public.many");
	for (int i = 0; i < SQL_DIRECTORIES_MAX; i++) {
		snprintf(path, sizeof(path), "/space/%d", i);
		add_directory(path);
		add_directory(path);
	}
	assert_string_equal(sql_relations_find(&relations, "/pg/main/base/7/9"), "");
	assert_string_equal(sql_relations_find(&relations, "/space/0/PG_15_1/7/9"),
		"shop.public.many");
	assert_string_equal(sql_relations_find(&relations, "/space/7/PG_15_1/7/9"),
		"shop.public.many");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_paths, setup),
		cmocka_unit_test_setup(test_new_name, setup),
		cmocka_unit_test_setup(test_no_room, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
