/* SPDX-License-Identifier: GPL-2.0-or-later */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "sinks/datagram.h"
#include "sinks/message.h"
#include "sinks/sink.h"
#include "util/cleanup.h"

/*
 * These never change: `journalctl MESSAGE_ID=...` and message catalogues find the entries by them.
 */
#define OPEN_MESSAGE_ID "8800df6988ea42819272e240613bf201"
#define CLOSE_MESSAGE_ID "8ed725ce37e54f3184e9797a3706e25a"
#define VERDICT_MESSAGE_ID "08edbfd8011047588d11b5743f783075"

struct journald {
	struct datagram *datagram;
	struct message message;
	char entry_buf[DATAGRAM_SIZE];
	char value_buf[DATAGRAM_SIZE];
};

/*
 * Adds one field of the native protocol (systemd, docs/JOURNAL_NATIVE_PROTOCOL.md). A value with a
 * newline is preceded by its length, or it could forge further fields. A field that does not fit is
 * left out as a whole.
 */
static void add_field(struct text *entry, const char *name, const char *value, size_t len)
{
	uint64_t le_len = htole64(len);
	size_t begin = entry->len;

	text_add(entry, name);
	if (memchr(value, '\n', len)) {
		text_add(entry, "\n");
		text_add_bytes(entry, (const char *)&le_len, sizeof(le_len));
	} else {
		text_add(entry, "=");
	}
	text_add_bytes(entry, value, len);
	text_add(entry, "\n");
	if (!entry->overflow)
		return;
	entry->len = begin;
	entry->overflow = false;
}

static void add_string(struct text *entry, const char *name, const char *value)
{
	if (*value)
		add_field(entry, name, value, strlen(value));
}

static void add_u64(struct text *entry, const char *name, uint64_t value)
{
	text_addf(entry, "%s=%" PRIu64 "\n", name, value);
}

static void add_trigger_fields(struct text *entry, const struct record_trigger *trigger)
{
	add_string(entry, "IOSTALL_RULE", trigger->rule);
	add_string(entry, "IOSTALL_DEVICE", trigger->device);
	add_string(entry, "IOSTALL_SUBJECT", trigger->subject);
	if (trigger->pid > 0)
		text_addf(entry, "IOSTALL_PID=%" PRId32 "\n", trigger->pid);
	text_addf(entry, "IOSTALL_VALUE=%.2f\nIOSTALL_THRESHOLD=%.2f\n", trigger->value,
		trigger->threshold);
	add_string(entry, "IOSTALL_UNIT", trigger->unit);
}

static void add_close_fields(struct text *entry, const struct record_close *c)
{
	add_string(entry, "IOSTALL_REASON", record_reason_text(c->reason));
	add_u64(entry, "IOSTALL_DURATION_NS", c->duration_ns);
	add_u64(entry, "IOSTALL_STALLS", c->stalls);
	add_u64(entry, "IOSTALL_STUCK", c->stuck_threads);
	add_u64(entry, "IOSTALL_LONGEST_NS", c->longest_ns);
	add_u64(entry, "IOSTALL_LOST", message_sum_lost(c));
}

static const char *message_id(const struct record *r)
{
	if (r->type == RECORD_VERDICT)
		return VERDICT_MESSAGE_ID;
	return r->type == RECORD_OPEN ? OPEN_MESSAGE_ID : CLOSE_MESSAGE_ID;
}

static void build_entry(struct journald *j, const struct record *r, struct text *entry)
{
	struct text value = TEXT_ON(j->value_buf);

	text_reset(entry);
	text_reset(&value);
	message_add_text(&j->message, r, &value);
	add_field(entry, "MESSAGE", value.buf, value.len);
	add_string(entry, "MESSAGE_ID", message_id(r));
	text_addf(entry, "PRIORITY=%d\n", message_priority(&j->message, r));
	add_string(entry, "SYSLOG_IDENTIFIER", "iostall");
	add_string(entry, "IOSTALL_INCIDENT", r->incident);
	add_trigger_fields(entry, &j->message.trigger);
	if (r->type != RECORD_OPEN)
		add_string(entry, "IOSTALL_VERDICT", record_class_text(j->message.class));
	if (r->type == RECORD_CLOSE)
		add_close_fields(entry, &r->close);
	text_reset(&value);
	text_addf(&value, "%s/%s" RECORD_FILE_SUFFIX, j->message.dir, r->incident);
	add_string(entry, "IOSTALL_RECORD", value.buf);
	if (r->type != RECORD_OPEN)
		add_string(entry, "IOSTALL_STATEMENT", j->message.statement);
}

static void journald_write(void *state, const struct record *r, const struct text *json)
{
	struct journald *j = state;
	struct text entry = TEXT_ON(j->entry_buf);

	(void)json;
	if (!message_take(&j->message, r))
		return;
	build_entry(j, r, &entry);
	datagram_send(j->datagram, &entry);
}

static void journald_tick(void *state, uint64_t now_mono_ns)
{
	(void)now_mono_ns;
	datagram_retry(((struct journald *)state)->datagram);
}

static void journald_make_room(void *state)
{
	datagram_make_room(((struct journald *)state)->datagram);
}

static uint64_t journald_dropped(const void *state)
{
	return datagram_dropped(((const struct journald *)state)->datagram);
}

static void journald_close(void *state)
{
	struct journald *j = state;

	datagram_free(j->datagram);
	free(j);
}

static int journald_open(const struct sinks_options *options, void **ret_state)
{
	_cleanup_free_ struct journald *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return -ENOMEM;
	text_copy(j->message.dir, sizeof(j->message.dir), options->config->record.dir);
	j->message.statements = options->config->journal.statements;
	r = datagram_new("journald", options->config->journal.socket, &j->datagram);
	if (r < 0)
		return r;
	*ret_state = TAKE_PTR(j);
	return 0;
}

static bool journald_is_used(const struct config *config, bool foreground)
{
	return !foreground && config->journal.enabled;
}

static const char *journald_socket(const struct config *config)
{
	return config->journal.socket;
}

const struct sink sink_journald = {
	.name = "journald",
	.section = "journal",
	.socket = journald_socket,
	.is_used = journald_is_used,
	.open = journald_open,
	.write = journald_write,
	.tick = journald_tick,
	.make_room = journald_make_room,
	.dropped = journald_dropped,
	.close = journald_close,
};
