/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/parsers.h"

#include <errno.h>
#include <string.h>

#include "util/cleanup.h"

/* Reads up to max numbers and returns how many there were. */
static size_t cursor_numbers(struct cursor *c, uint64_t *values, size_t max)
{
	size_t n = 0;

	while (n < max && cursor_u64(c, &values[n]) == 0)
		n++;
	return n;
}

static int parse_cpu_line(struct cursor c, struct watch_stat *stat)
{
	enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, FIELDS };
	uint64_t v[FIELDS] = { 0 };

	if (stat->has_cpu)
		return 0;
	if (cursor_numbers(&c, v, FIELDS) <= IOWAIT)
		return -EINVAL;
	stat->has_cpu = true;
	stat->busy_ticks = v[USER] + v[NICE] + v[SYSTEM] + v[IRQ] + v[SOFTIRQ] + v[STEAL];
	stat->idle_ticks = v[IDLE];
	stat->iowait_ticks = v[IOWAIT];
	return 0;
}

int watch_parse_stat_line(struct cursor line, struct watch_stat *stat)
{
	uint64_t value;

	if (cursor_take(&line, "cpu ")) {
		return parse_cpu_line(line, stat);
	} else if (cursor_take(&line, "cpu")) {
		if (cursor_u64(&line, &value) < 0)
			return -EINVAL;
		stat->cpus++;
		if (value < UINT32_MAX && value >= stat->cpus_end)
			stat->cpus_end = (uint32_t)value + 1;
	} else if (cursor_take(&line, "procs_running ")) {
		return cursor_u64(&line, &stat->procs_running) < 0 ? -EINVAL : 0;
	} else if (cursor_take(&line, "procs_blocked ")) {
		return cursor_u64(&line, &stat->procs_blocked) < 0 ? -EINVAL : 0;
	}
	return 0;
}

/* Copies the numbers that follow the name, which are in the order of the file. */
static void diskstats_fill(struct watch_diskstats *row, const uint64_t *v)
{
	static const struct {
		unsigned int group, ios, sectors, ticks;
	} columns[] = {
		{ WATCH_DISKSTATS_READ, 0, 2, 3 },
		{ WATCH_DISKSTATS_WRITE, 4, 6, 7 },
		{ WATCH_DISKSTATS_DISCARD, 11, 13, 14 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(columns); i++) {
		row->ios[columns[i].group] = v[columns[i].ios];
		row->sectors[columns[i].group] = v[columns[i].sectors];
		row->ticks_ms[columns[i].group] = v[columns[i].ticks];
	}
	row->inflight = v[8];
	row->io_ticks_ms = v[9];
	row->weighted_ms = v[10];
	row->ios[WATCH_DISKSTATS_FLUSH] = v[15];
	row->ticks_ms[WATCH_DISKSTATS_FLUSH] = v[16];
}

int watch_parse_diskstats_line(struct cursor line, struct watch_diskstats *ret_row)
{
	enum { FIELDS_OLD = 11, FIELDS_DISCARD = 15, FIELDS = 17 };
	struct watch_diskstats row = { 0 };
	uint64_t major, minor, v[FIELDS] = { 0 };
	const char *name;
	size_t len, n;

	if (cursor_u64(&line, &major) < 0 || cursor_u64(&line, &minor) < 0 ||
		cursor_word(&line, &name, &len) < 0)
		return -EINVAL;
	if (major > UINT32_MAX || minor > UINT32_MAX || len >= sizeof(row.name) ||
		memchr(name, '\0', len))
		return -EINVAL;
	n = cursor_numbers(&line, v, FIELDS);
	if (n < FIELDS_OLD)
		return -EINVAL;
	/* Fields of a group that is not complete are ignored. */
	if (n < FIELDS_DISCARD)
		memset(v + FIELDS_OLD, 0, (FIELDS - FIELDS_OLD) * sizeof(v[0]));
	else if (n < FIELDS)
		memset(v + FIELDS_DISCARD, 0, (FIELDS - FIELDS_DISCARD) * sizeof(v[0]));

	row.major = (uint32_t)major;
	row.minor = (uint32_t)minor;
	memcpy(row.name, name, len);
	diskstats_fill(&row, v);
	*ret_row = row;
	return 0;
}

static int parse_pressure_total(struct cursor c, uint64_t *ret_us)
{
	const char *word;
	size_t len;

	while (cursor_word(&c, &word, &len) == 0) {
		struct cursor value = { word, word + len };

		if (cursor_take(&value, "total="))
			return cursor_u64(&value, ret_us) < 0 ? -EINVAL : 0;
	}
	return -EINVAL;
}

int watch_parse_pressure(const char *buf, size_t len, struct watch_pressure *ret_pressure)
{
	struct cursor c = { buf, buf + len }, line;
	struct watch_pressure pressure = { 0 };
	bool has_some = false;

	while (cursor_line(&c, &line)) {
		if (cursor_take(&line, "some ")) {
			if (parse_pressure_total(line, &pressure.some_us) < 0)
				return -EINVAL;
			has_some = true;
		} else if (cursor_take(&line, "full ")) {
			if (parse_pressure_total(line, &pressure.full_us) < 0)
				return -EINVAL;
			pressure.has_full = true;
		}
	}
	if (!has_some)
		return -EINVAL;
	*ret_pressure = pressure;
	return 0;
}

/* The next word; empty behind the last. */
static struct cursor take_word(struct cursor *c)
{
	const char *word = c->p;
	size_t len = 0;

	return cursor_word(c, &word, &len) < 0 ? (struct cursor){ c->p, c->p }
					       : (struct cursor){ word, word + len };
}

static bool is_empty(struct cursor word)
{
	return word.p == word.end;
}

/* "36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 - ext3 /dev/root rw,errors=continue" */
int watch_parse_mountinfo_line(struct cursor line, struct watch_mountinfo *ret_mount)
{
	struct watch_mountinfo mount = { 0 };
	uint64_t parent, major, minor;
	struct cursor word;

	if (cursor_u64(&line, &mount.id) < 0 || cursor_u64(&line, &parent) < 0 ||
		cursor_u64(&line, &major) < 0 || line.p == line.end || *line.p++ != ':' ||
		cursor_u64(&line, &minor) < 0)
		return -EINVAL;
	mount.major = (uint32_t)major;
	mount.minor = (uint32_t)minor;
	mount.root = take_word(&line);
	mount.point = take_word(&line);
	if (is_empty(mount.point))
		return -EINVAL;
	/* A single dash ends the optional fields, of which there may be any number. */
	do
		word = take_word(&line);
	while (!is_empty(word) && !(word.end - word.p == 1 && *word.p == '-'));
	mount.type = take_word(&line);
	mount.source = take_word(&line);
	mount.options = take_word(&line);
	*ret_mount = mount;
	return 0;
}

int watch_parse_start_ticks(const char *buf, size_t len, uint64_t *ret_ticks)
{
	enum { FIELD_STATE = 3, FIELD_START = 22 };
	/* comm may have blanks, parentheses and newlines; what follows it has no parenthesis. */
	const char *close = memrchr(buf, ')', len), *word;
	struct cursor c = { close ? close + 1 : buf + len, buf + len };
	size_t word_len;

	for (int field = FIELD_STATE; field < FIELD_START; field++)
		if (cursor_word(&c, &word, &word_len) < 0)
			return -EINVAL;
	return cursor_u64(&c, ret_ticks) < 0 ? -EINVAL : 0;
}

/* The kernel writes a newline of a name as "\\n" and a backslash as two. */
static void unescape_name(struct cursor c, char ret_comm[WATCH_COMM_SIZE])
{
	size_t len = 0;

	memset(ret_comm, 0, WATCH_COMM_SIZE);
	for (; c.p < c.end && len < WATCH_COMM_SIZE - 1; c.p++) {
		bool escaped = *c.p == '\\' && c.p + 1 < c.end;

		if (escaped)
			c.p++;
		ret_comm[len++] = escaped && *c.p == 'n' ? '\n' : *c.p;
	}
}

static void parse_id(struct cursor line, int32_t *ret_id)
{
	uint64_t value;

	if (cursor_u64(&line, &value) == 0 && value <= INT32_MAX)
		*ret_id = (int32_t)value;
}

static void parse_switches(struct cursor line, struct watch_thread_status *status)
{
	uint64_t value;

	status->has_switches = cursor_u64(&line, &value) == 0;
	if (status->has_switches)
		status->switches += value;
}

int watch_parse_thread_status(const char *buf, size_t len, struct watch_thread_status *ret_status)
{
	struct cursor c = { buf, buf + len }, line;
	struct watch_thread_status status = { 0 };

	while (cursor_line(&c, &line)) {
		if (cursor_take(&line, "Name:\t"))
			unescape_name(line, status.comm);
		else if (cursor_take(&line, "State:\t") && line.p < line.end)
			status.state = *line.p;
		else if (cursor_take(&line, "Tgid:"))
			parse_id(line, &status.process);
		else if (cursor_take(&line, "Pid:"))
			parse_id(line, &status.id);
		else if (cursor_take(&line, "PPid:"))
			parse_id(line, &status.parent);
		else if (cursor_take(&line, "TracerPid:"))
			parse_id(line, &status.tracer);
		else if (cursor_take(&line, "NSpid:\t"))
			status.has_own_ids = memchr(line.p, '\t', (size_t)(line.end - line.p));
		else if (cursor_take(&line, "voluntary_ctxt_switches:") ||
			cursor_take(&line, "nonvoluntary_ctxt_switches:"))
			parse_switches(line, &status);
	}
	if (!status.id || !status.process || !status.state)
		return -EINVAL;
	*ret_status = status;
	return 0;
}
