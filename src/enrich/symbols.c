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

/* Names that are found by the name before them: one in so many stands by itself. */
#define GROUP 16
#define NAME_MAX_BYTES UINT8_MAX

/*
 * A kernel has about 120 000 of them, and they are in locked memory. In the order of their
 * addresses many names begin like the one before: each is stored as a byte with how much of that
 * one it begins with, 0 for the first of a group, and the rest of it as a string.
 */
struct symbols {
	uint64_t base;
	uint32_t count;
	uint32_t *offsets; /* from base */
	uint32_t *groups;  /* where each group begins in names */
	char *names;
};

/* As the listing has them, in any order. */
struct listed {
	uint32_t offset; /* from base */
	uint32_t name;	 /* offset into names */
};

struct listing {
	uint64_t base;
	struct listed *table;
	uint32_t count;
	size_t table_size;
	char *names;
	size_t names_len;
	size_t names_size;
};

static void listing_done(struct listing *l)
{
	free(l->table);
	free(l->names);
}

struct symbols *symbols_free(struct symbols *symbols)
{
	if (symbols) {
		free(symbols->offsets);
		free(symbols->groups);
		free(symbols->names);
		free(symbols);
	}
	return NULL;
}

static int compare_offset(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

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

static void share_name(const char **name, size_t *len)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(shared_names); i++) {
		size_t prefix = strlen(shared_names[i]);

		if (*len < prefix || memcmp(*name, shared_names[i], prefix) != 0)
			continue;
		*name = shared_names[i];
		*len = prefix;
		return;
	}
}

static int list(struct listing *l, uint32_t offset, const char *name, size_t len)
{
	share_name(&name, &len);
	if (len > NAME_MAX_BYTES)
		len = NAME_MAX_BYTES;
	if (l->count == l->table_size) {
		size_t grown = l->table_size ? l->table_size * 2 : 16384;
		struct listed *table = reallocarray(l->table, grown, sizeof(*table));

		if (!table)
			return -ENOMEM;
		l->table = table;
		l->table_size = grown;
	}
	if (l->names_len + len + 1 > l->names_size) {
		size_t grown = l->names_size ? l->names_size * 2 : 1 << 18;
		char *names = realloc(l->names, grown);

		if (!names)
			return -ENOMEM;
		l->names = names;
		l->names_size = grown;
	}
	l->table[l->count++] = (struct listed){ offset, (uint32_t)l->names_len };
	memcpy(l->names + l->names_len, name, len);
	l->names_len += len;
	l->names[l->names_len++] = '\0';
	return 0;
}

static int read_listing(FILE *f, struct listing *l)
{
	uint64_t address;
	const char *name;
	char line[1024];
	size_t len;
	int r = 0;

	while (r == 0 && fgets(line, sizeof(line), f)) {
		if (!parse_line(line, &address, &name, &len) || address < SYMBOLS_REACH)
			continue;
		if (l->count == 0)
			l->base = address - SYMBOLS_REACH;
		if (address - l->base <= UINT32_MAX)
			r = list(l, (uint32_t)(address - l->base), name, len);
	}
	/* Hidden addresses read as 0. */
	return r == 0 && l->count == 0 ? -EPERM : r;
}

static uint8_t count_equal(const char *a, const char *b)
{
	uint8_t n = 0;

	while (a[n] && a[n] == b[n] && n < UINT8_MAX)
		n++;
	return n;
}

/* Of the sorted listing; with `out`, writes it and where the groups begin. Returns its length. */
static uint32_t pack_names(const struct listing *l, char *out, uint32_t *groups)
{
	const char *previous = "";
	uint32_t len = 0;

	for (uint32_t i = 0; i < l->count; i++) {
		const char *name = l->names + l->table[i].name;
		uint8_t equal = i % GROUP ? count_equal(name, previous) : 0;
		size_t rest = strlen(name) - equal + 1;

		if (out) {
			if (i % GROUP == 0)
				groups[i / GROUP] = len;
			out[len] = (char)equal;
			memcpy(out + len + 1, name + equal, rest);
		}
		len += 1 + (uint32_t)rest;
		previous = name;
	}
	return len;
}

static int pack(struct listing *l, struct symbols *s)
{
	qsort(l->table, l->count, sizeof(*l->table), compare_offset);
	s->base = l->base;
	s->count = l->count;
	s->offsets = calloc(l->count, sizeof(*s->offsets));
	s->groups = calloc(l->count / GROUP + 1, sizeof(*s->groups));
	s->names = malloc(pack_names(l, NULL, NULL));
	if (!s->offsets || !s->groups || !s->names)
		return -ENOMEM;
	for (uint32_t i = 0; i < l->count; i++)
		s->offsets[i] = l->table[i].offset;
	pack_names(l, s->names, s->groups);
	return 0;
}

int symbols_new(const char *kallsyms, struct symbols **ret_symbols)
{
	_cleanup_fclose_ FILE *f = fopen(kallsyms, "re");
	struct listing listing = {};
	struct symbols *s;
	int r;

	if (!f)
		return -errno;
	s = calloc(1, sizeof(*s));
	r = s ? read_listing(f, &listing) : -ENOMEM;
	if (r == 0)
		r = pack(&listing, s);
	listing_done(&listing);
	if (r < 0) {
		symbols_free(s);
		return r;
	}
	*ret_symbols = s;
	return 0;
}

static void unpack_name(const struct symbols *s, uint32_t index, char ret_name[NAME_MAX_BYTES + 1])
{
	const char *p = s->names + s->groups[index / GROUP];

	for (uint32_t i = index / GROUP * GROUP; i <= index; i++) {
		size_t rest = strlen(p + 1) + 1;

		memcpy(ret_name + (uint8_t)*p, p + 1, rest);
		p += 1 + rest;
	}
}

void symbols_add_name(const struct symbols *symbols, uint64_t address, struct text *out)
{
	uint32_t low = 0, high = symbols ? symbols->count : 0, offset = 0;
	char name[NAME_MAX_BYTES + 1];

	if (symbols && address >= symbols->base && address - symbols->base <= UINT32_MAX)
		offset = (uint32_t)(address - symbols->base);

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (symbols->offsets[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || offset - symbols->offsets[low - 1] >= SYMBOL_BYTES_MAX) {
		text_addf(out, "0x%" PRIx64, address);
		return;
	}
	unpack_name(symbols, low - 1, name);
	text_addf(out, "%s+0x%" PRIx32, name, offset - symbols->offsets[low - 1]);
}
