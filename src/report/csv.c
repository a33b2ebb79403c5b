/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The operations of an incident, a line for each as RFC 4180 has it, for a spreadsheet. */
#include <inttypes.h>
#include <string.h>

#include "report/internal.h"
#include "util/clock.h"
#include "util/sort.h"

/* A byte that is no character of a text becomes "\x1b". */
#define TEXT_SIZE (4 * RECORD_PATH_SIZE + 1)

/*
 * A program that opens the file may take a text that begins so for a formula, and who makes files
 * and processes chooses the texts.
 */
static bool begins_as_formula(const char *s)
{
	return *s && strchr("=+-@\t\r", *s);
}

/* As a person reads it: it may be printed on a terminal. */
static void put_text(const char *s, FILE *out)
{
	char buf[TEXT_SIZE];
	struct text t = TEXT_ON(buf);

	text_reset(&t);
	record_add_printable(&t, s);
	fputs(begins_as_formula(s) ? ",\"'" : ",\"", out);
	for (const char *p = buf; *p; p++) {
		if (*p == '"')
			putc('"', out);
		putc(*p, out);
	}
	putc('"', out);
}

static void put_number(uint64_t number, FILE *out)
{
	putc(',', out);
	if (number)
		fprintf(out, "%" PRIu64, number);
}

static void put_operation(const struct report *p, const struct report_operation *o, FILE *out)
{
	const struct statement_query query = { o->tid, o->request, o->start_ns, o->ns,
		o->connection_id };
	const struct statement *statement = statements_find(p->runs, &query);
	const char *stack = strings_get(&p->strings, o->stack);
	char begun[RECORD_TIME_SIZE], function[RECORD_NAME_SIZE], text[STATEMENT_TEXT_SIZE + 4];
	const size_t len = strcspn(stack, "\n");

	clock_format_rfc3339(p->opened_real_ns + o->start_ns - p->opened_mono_ns, begun,
		sizeof(begun));
	text_copy(function, len < sizeof(function) ? len + 1 : sizeof(function), stack);
	report_cut_offset(function);
	fprintf(out, "%s,%.3f,%s", begun, (double)o->ns / NSEC_PER_MSEC,
		o->stuck ? "stuck" : "done");
	put_number((uint64_t)o->pid, out);
	put_number((uint64_t)o->tid, out);
	put_text(strings_get(&p->strings, o->comm), out);
	put_text(record_op_text(o->op), out);
	put_text(strings_get(&p->strings, o->path), out);
	put_text(strings_get(&p->strings, o->dev_name), out);
	put_text(o->cause ? record_cause_text(o->cause) : "", out);
	put_text(function, out);
	put_number(statement ? statement->connection_id : o->connection_id, out);
	snprintf(text, sizeof(text), "%s%s", statement ? statement->text : "",
		statement && statement->cut ? " ..." : "");
	put_text(text, out);
	fputs("\r\n", out);
}

static int compare_begins(const void *a, const void *b)
{
	const struct report_operation *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->tid > y->tid) - (x->tid < y->tid);
}

uint64_t report_write_csv(struct report *p, FILE *out)
{
	report_sort_operations(p);
	sort_in_place(p->operations.items, p->operations.count, sizeof(*p->operations.items),
		compare_begins);
	fputs("begun,ms,state,pid,tid,comm,op,path,disk,waits_for,function,session,statement\r\n",
		out);
	for (uint32_t i = 0; i < p->operations.count; i++)
		put_operation(p, &p->operations.items[i], out);
	return p->alike;
}
