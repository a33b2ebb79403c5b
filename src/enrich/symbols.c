/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/symbols.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/parse.h"

/* A kernel has about 120 000 of them, and they are in locked memory, so both numbers are short. */
struct symbol {
	uint32_t offset; /* from base */
	uint32_t name;	 /* offset into names */
};

/*
 * Code of tracepoints has a tenth of all names and shows that somebody else traces, whatever it is.
 * Names that begin so are one.
 */
static const char *const shared_names[] = {
	"perf_trace_",
	"trace_event_raw_event_",
	"trace_raw_output_",
	"__bpf_trace_",
	"__traceiter_",
	"__probestub_",
};

/* Modules and BPF programs lie within 2 GB before or behind the kernel's text. */
#define SYMBOLS_REACH (1ULL << 31)
/*
 * No function is larger. An address further behind a symbol is in code that is not listed, like a
 * trampoline.
 */
#define SYMBOL_BYTES_MAX (1U << 20)

struct symbols {
	uint64_t base;
	struct symbol *table;
	uint32_t count;
	char *names;
	size_t names_len;
	uint32_t shared[ARRAY_SIZE(shared_names)]; /* offset into names, from 1; 0: not there yet */
};

struct symbols *symbols_free(struct symbols *symbols)
{
	if (symbols) {
		free(symbols->table);
		free(symbols->names);
		free(symbols);
	}
	return NULL;
}

static int compare_offset(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

/* "ffffffff81000000 T _text" or "... t name\t[module]"; false: the line has no function. */
static bool parse_line(const char *line, uint64_t *ret_address, const char **ret_name,
	size_t *ret_len)
{
	struct cursor c = { line, line + strlen(line) };
	const char *type;
	size_t len;

	if (cursor_hex(&c, ret_address) < 0 || cursor_word(&c, &type, &len) < 0 || len != 1 ||
		cursor_word(&c, ret_name, ret_len) < 0)
		return false;
	/* "__pfx_" is the padding before a function. */
	return strchr("tTwW", *type) && (*ret_len < 6 || memcmp(*ret_name, "__pfx_", 6) != 0);
}

/* The offset of the name that it shares; NULL: it has one of its own. */
static uint32_t *find_shared(struct symbols *s, const char **name, size_t *len)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(shared_names); i++) {
		size_t prefix = strlen(shared_names[i]);

		if (*len < prefix || memcmp(*name, shared_names[i], prefix) != 0)
			continue;
		*name = shared_names[i];
		*len = prefix;
		return &s->shared[i];
	}
	return NULL;
}

static int append(struct symbols *s, uint32_t offset, const char *name, size_t len,
	size_t *table_size, size_t *names_size)
{
	uint32_t *shared = find_shared(s, &name, &len);

	if (s->count == *table_size) {
		size_t grown = *table_size ? *table_size * 2 : 16384;
		struct symbol *table = reallocarray(s->table, grown, sizeof(*table));

		if (!table)
			return -ENOMEM;
		s->table = table;
		*table_size = grown;
	}
	if (shared && *shared) {
		s->table[s->count++] = (struct symbol){ offset, *shared - 1 };
		return 0;
	}
	if (s->names_len + len + 1 > *names_size) {
		size_t grown = *names_size ? *names_size * 2 : 1 << 18;
		char *names = realloc(s->names, grown);

		if (!names)
			return -ENOMEM;
		s->names = names;
		*names_size = grown;
	}
	s->table[s->count++] = (struct symbol){ offset, (uint32_t)s->names_len };
	if (shared)
		*shared = (uint32_t)s->names_len + 1;
	memcpy(s->names + s->names_len, name, len);
	s->names_len += len;
	s->names[s->names_len++] = '\0';
	return 0;
}

/* Gives back memory that the doubling left unused, since all memory is locked. */
static void shrink(struct symbols *s)
{
	struct symbol *table = reallocarray(s->table, s->count, sizeof(*table));
	char *names = realloc(s->names, s->names_len);

	if (table)
		s->table = table;
	if (names)
		s->names = names;
}

int symbols_new(const char *kallsyms, struct symbols **ret_symbols)
{
	_cleanup_fclose_ FILE *f = fopen(kallsyms, "re");
	size_t table_size = 0, names_size = 0;
	struct symbols *s;
	uint64_t address;
	const char *name;
	char line[1024];
	size_t len;
	int r = 0;

	if (!f)
		return -errno;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	while (r == 0 && fgets(line, sizeof(line), f)) {
		if (!parse_line(line, &address, &name, &len) || address < SYMBOLS_REACH)
			continue;
		if (s->count == 0)
			s->base = address - SYMBOLS_REACH;
		if (address - s->base <= UINT32_MAX)
			r = append(s, (uint32_t)(address - s->base), name, len, &table_size,
				&names_size);
	}
	/* Hidden addresses read as 0. */
	if (r == 0 && s->count == 0)
		r = -EPERM;
	if (r < 0) {
		symbols_free(s);
		return r;
	}
	shrink(s);
	qsort(s->table, s->count, sizeof(*s->table), compare_offset);
	*ret_symbols = s;
	return 0;
}

void symbols_add_name(const struct symbols *symbols, uint64_t address, struct text *out)
{
	uint32_t low = 0, high = symbols ? symbols->count : 0, offset = 0;

	if (symbols && address >= symbols->base && address - symbols->base <= UINT32_MAX)
		offset = (uint32_t)(address - symbols->base);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (symbols->table[middle].offset <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || offset - symbols->table[low - 1].offset >= SYMBOL_BYTES_MAX) {
		text_addf(out, "0x%" PRIx64, address);
		return;
	}
	text_addf(out, "%s+0x%" PRIx32, symbols->names + symbols->table[low - 1].name,
		offset - symbols->table[low - 1].offset);
}
