/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "enrich/symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "enrich/waits.h"
#include "util/cleanup.h"
#include "util/hash.h"
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
/* No function is larger: where the listing does not say where the kernel's text ends. */
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
	uint32_t regions_count;
	struct region *regions; /* by begin */
	uint64_t modules_stamp;
	bool server_waits_fit;
	struct event_server_waits server_waits;
};

/*
 * The code of the kernel or of a module. A symbol outside of them, as of a BPF program or of a
 * module that is being loaded, has no name: there the next one to come or go is not noticed. It
 * only ends the function before it.
 */
struct region {
	uint32_t begin; /* from base */
	uint32_t end;
};

struct module {
	uint64_t begin;
	/*
	 * From ac3b43283923 ("module: replace module_layout with module_memory", 6.4) on all memory
	 * of the module, of which the code is a part.
	 */
	uint64_t size;
	char name[64];
};

struct modules {
	uint64_t stamp;
	uint32_t count;
	size_t size;
	struct module *list;
};

/* As the listing has them, in any order. */
struct listed {
	uint32_t offset; /* from base */
	uint32_t name;	 /* offset into names */
};

struct listing {
	uint64_t base;
	/* The kernel's own code. */
	uint64_t text_begin;
	uint64_t text_end; /* 0: not listed */
	uint64_t text_last;
	struct modules modules;
	uint32_t module; /* the last one that was looked up */
	struct listed *table;
	uint32_t count;
	size_t table_size;
	char *names;
	size_t names_len;
	size_t names_size;
};

static void listing_done(struct listing *l)
{
	free(l->modules.list);
	free(l->table);
	free(l->names);
}

struct symbols *symbols_free(struct symbols *symbols)
{
	if (symbols) {
		free(symbols->offsets);
		free(symbols->groups);
		free(symbols->names);
		free(symbols->regions);
		free(symbols);
	}
	return NULL;
}

static FILE *open_at(int dirfd, const char *name)
{
	int fd = openat(dirfd, name, O_RDONLY | O_CLOEXEC);
	FILE *f = fd >= 0 ? fdopen(fd, "r") : NULL;

	if (!f)
		close_fd(fd);
	return f;
}

/* "xfs 2068480 1 - Live 0xffffffffc0a00000"; false: the line has no module. */
static bool parse_module(const char *line, struct module *ret_module, bool *ret_live)
{
	struct cursor c = { line, line + strlen(line) };
	const char *name, *state, *ignored;
	size_t name_len, len;

	if (cursor_word(&c, &name, &name_len) < 0 || name_len >= sizeof(ret_module->name) ||
		cursor_u64(&c, &ret_module->size) < 0 || cursor_word(&c, &ignored, &len) < 0 ||
		cursor_word(&c, &ignored, &len) < 0 || cursor_word(&c, &state, &len) < 0 ||
		cursor_hex(&c, &ret_module->begin) < 0)
		return false;
	memset(ret_module->name, 0, sizeof(ret_module->name));
	memcpy(ret_module->name, name, name_len);
	*ret_live = strncmp(state, "Live ", 5) == 0;
	return true;
}

/* A kernel without modules has no such file. */
static int read_modules(int procfs_fd, struct modules *m)
{
	_cleanup_fclose_ FILE *f = open_at(procfs_fd, "modules");
	_cleanup_free_ char *line = NULL;
	struct module module;
	size_t size = 0;
	bool live;

	*m = (struct modules){ .stamp = HASH_BEGIN };
	if (!f)
		return errno == ENOENT ? 0 : -errno;
	while (getline(&line, &size, f) >= 0) {
		if (!parse_module(line, &module, &live))
			continue;
		if (m->count == m->size) {
			size_t grown = m->size ? m->size * 2 : 128;
			struct module *list = reallocarray(m->list, grown, sizeof(*list));

			if (!list)
				return -ENOMEM;
			m->list = list;
			m->size = grown;
		}
		m->list[m->count++] = module;
		m->stamp = hash_bytes(m->stamp, &module, sizeof(module));
		/* Of one that is being loaded, functions are listed that go when it is Live. */
		m->stamp = hash_bytes(m->stamp, &live, sizeof(live));
	}
	return 0;
}

int symbols_read_stamp(int procfs_fd, uint64_t *ret_stamp)
{
	struct modules modules;
	int r = read_modules(procfs_fd, &modules);

	free(modules.list);
	if (r == 0)
		*ret_stamp = modules.stamp;
	return r;
}

static int compare_offset(const void *a, const void *b)
{
	const struct listed *x = a, *y = b;

	return (x->offset > y->offset) - (x->offset < y->offset);
}

struct line {
	uint64_t address;
	char type;
	const char *name;
	size_t len;
	const char *module; /* "[module]"; NULL: of the kernel */
	size_t module_len;
};

/* "ffffffff81000000 T _text" or "... t name\t[module]"; false: the line has no symbol. */
static bool parse_line(const char *text, struct line *ret_line)
{
	struct cursor c = { text, text + strlen(text) };
	const char *type;
	size_t len;

	if (cursor_hex(&c, &ret_line->address) < 0 || cursor_word(&c, &type, &len) < 0 ||
		len != 1 || cursor_word(&c, &ret_line->name, &ret_line->len) < 0)
		return false;
	ret_line->type = *type;
	if (cursor_word(&c, &ret_line->module, &ret_line->module_len) < 0)
		ret_line->module = NULL;
	return true;
}

static bool line_is(const struct line *line, const char *name)
{
	return line->len == strlen(name) && memcmp(line->name, name, line->len) == 0;
}

/* "__pfx_" is the padding before a function. */
static bool is_function(const struct line *line)
{
	return strchr("tTwW", line->type) &&
		(line->len < 6 || memcmp(line->name, "__pfx_", 6) != 0);
}

static bool module_is(const struct module *module, const struct line *line)
{
	size_t len = strlen(module->name);

	return line->module_len == len + 2 && memcmp(line->module + 1, module->name, len) == 0;
}

/* Whether it is in the code of the kernel or of the module that it belongs to. */
static bool has_region(struct listing *l, const struct line *line)
{
	if (!line->module)
		return true;
	/* The functions of a module are listed one after the other. */
	for (uint32_t i = 0; i < l->modules.count; i++, l->module++) {
		const struct module *m = &l->modules.list[l->module %= l->modules.count];

		if (module_is(m, line))
			return line->address >= m->begin && line->address - m->begin < m->size;
	}
	return false;
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

static void note_text(struct listing *l, const struct line *line)
{
	if (line->module)
		return;
	if (!l->text_begin || line->address < l->text_begin)
		l->text_begin = line->address;
	if (line->address > l->text_last)
		l->text_last = line->address;
}

static int read_listing(FILE *f, struct listing *l)
{
	struct line line;
	char text[1024];
	int r = 0;

	while (r == 0 && fgets(text, sizeof(text), f)) {
		if (!parse_line(text, &line) || line.address < SYMBOLS_REACH)
			continue;
		if (!line.module && line_is(&line, "_etext"))
			l->text_end = line.address;
		if (!is_function(&line))
			continue;
		if (l->count == 0)
			l->base = line.address - SYMBOLS_REACH;
		if (line.address - l->base > UINT32_MAX)
			continue;
		note_text(l, &line);
		r = list(l, (uint32_t)(line.address - l->base), line.name,
			has_region(l, &line) ? line.len : 0);
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

static int compare_region(const void *a, const void *b)
{
	const struct region *x = a, *y = b;

	return (x->begin > y->begin) - (x->begin < y->begin);
}

static void add_region(struct symbols *s, uint64_t begin, uint64_t end)
{
	if (begin < s->base || begin - s->base > UINT32_MAX || end <= begin)
		return;
	end -= s->base;
	s->regions[s->regions_count++] = (struct region){ (uint32_t)(begin - s->base),
		end < UINT32_MAX ? (uint32_t)end : UINT32_MAX };
}

static int pack_regions(const struct listing *l, struct symbols *s)
{
	s->modules_stamp = l->modules.stamp;
	s->regions = calloc(l->modules.count + 1, sizeof(*s->regions));
	if (!s->regions)
		return -ENOMEM;
	add_region(s, l->text_begin, l->text_end ? l->text_end : l->text_last + SYMBOL_BYTES_MAX);
	for (uint32_t i = 0; i < l->modules.count; i++)
		add_region(s, l->modules.list[i].begin,
			l->modules.list[i].begin + l->modules.list[i].size);
	qsort(s->regions, s->regions_count, sizeof(*s->regions), compare_region);
	return 0;
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
	return pack_regions(l, s);
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

uint64_t symbols_stamp(const struct symbols *symbols)
{
	return symbols->modules_stamp;
}

/* The last symbol at or before the offset; -1: none is. */
static int64_t find_symbol(const struct symbols *s, uint32_t offset)
{
	uint32_t low = 0, high = s->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (s->offsets[middle] <= offset)
			low = middle + 1;
		else
			high = middle;
	}
	return (int64_t)low - 1;
}

/* The region with the offset; NULL: it is in none. */
static const struct region *find_region(const struct symbols *s, uint32_t offset)
{
	const struct region *found = NULL;

	for (uint32_t i = 0; i < s->regions_count && s->regions[i].begin <= offset; i++)
		found = &s->regions[i];
	return found && offset < found->end ? found : NULL;
}

/* Which function the address is in; false: none that is known. */
static bool find_name(const struct symbols *s, uint64_t address, char ret_name[NAME_MAX_BYTES + 1],
	uint32_t *ret_distance)
{
	const struct region *region;
	uint32_t offset;
	int64_t index;

	if (address < s->base || address - s->base > UINT32_MAX)
		return false;
	offset = (uint32_t)(address - s->base);
	index = find_symbol(s, offset);
	region = find_region(s, offset);
	if (index < 0 || !region || s->offsets[index] < region->begin)
		return false;
	unpack_name(s, (uint32_t)index, ret_name);
	*ret_distance = offset - s->offsets[index];
	return ret_name[0] != '\0';
}

bool symbols_find_server_waits(const struct symbols *s, struct event_server_waits *ret_waits)
{
	*ret_waits = s->server_waits;
	return s->server_waits_fit;
}

void symbols_add_name(const struct symbols *symbols, uint64_t address, struct text *out)
{
	char name[NAME_MAX_BYTES + 1];
	uint32_t distance;

	if (symbols && find_name(symbols, address, name, &distance))
		text_addf(out, "%s+0x%" PRIx32, name, distance);
	else
		text_addf(out, "0x%" PRIx64, address);
}

/*
 * A function up to the next symbol or the end of its region. One that the compiler has divided or
 * changed has a suffix such as ".isra.0".
 */
static void note_server_wait(struct symbols *s, uint32_t index)
{
	const struct region *region = find_region(s, s->offsets[index]);
	uint32_t i = s->server_waits.count, end;

	if (!region)
		return;
	end = index + 1 < s->count && s->offsets[index + 1] < region->end ? s->offsets[index + 1]
									  : region->end;
	s->server_waits_fit &= i < EVENT_SERVER_WAITS_MAX;
	if (i == EVENT_SERVER_WAITS_MAX)
		return;
	s->server_waits.ranges[i].begin = s->base + s->offsets[index];
	s->server_waits.ranges[i].size = end - s->offsets[index];
	s->server_waits.count++;
}

static void note_server_waits(struct symbols *s)
{
	char name[NAME_MAX_BYTES + 1];

	s->server_waits_fit = true;
	for (uint32_t i = 0; i < s->count; i++) {
		unpack_name(s, i, name);
		if (waits_is_server_wait(name))
			note_server_wait(s, i);
	}
}

const char *symbols_hint(int error)
{
	return error == -EPERM ? " (kernel.kptr_restrict is 2, or CAP_SYSLOG is missing)" : "";
}

int symbols_new(int procfs_fd, struct symbols **ret_symbols)
{
	_cleanup_fclose_ FILE *f = open_at(procfs_fd, "kallsyms");
	struct listing listing = {};
	struct symbols *s;
	int r;

	if (!f)
		return -errno;
	s = calloc(1, sizeof(*s));
	/* First the modules: one that comes in between makes another stamp next time. */
	r = s ? read_modules(procfs_fd, &listing.modules) : -ENOMEM;
	if (r == 0)
		r = read_listing(f, &listing);
	if (r == 0)
		r = pack(&listing, s);
	if (r == 0)
		note_server_waits(s);
	listing_done(&listing);
	if (r < 0) {
		symbols_free(s);
		return r;
	}
	*ret_symbols = s;
	return 0;
}
