/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/kmsg.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/parse.h"

/* A line about storage begins with one of these; if `numbered`, a digit has to follow. */
static const struct {
	const char *text;
	bool numbered;
} beginnings[] = {
	{ "nvme", false },
	{ "sd ", false },
	{ "sr ", false },
	{ "scsi", false },
	{ "ata", true },
	{ "mmc", true },
	{ "mmcblk", true },
	{ "dm-", true },
	{ "device-mapper:", false },
	{ "md", true },
	{ "md:", false },
	{ "md/", false },
	{ "loop", true },
	{ "nbd", true },
	{ "block ", false },
	{ "virtio_blk", false },
	{ "blk_update_request:", false },
	{ "print_req_error:", false },
	{ "megaraid_sas", false },
	{ "mpt3sas", false },
	{ "mpt2sas", false },
	{ "smartpqi", false },
	{ "hpsa", false },
	{ "aacraid", false },
	{ "JBD2:", false },
	{ "XFS ", false },
	{ "BTRFS", false },
	{ "Aborting journal", false },
};

/* Or it has one of these anywhere, behind the name of a file system or a driver. */
static const char *const parts[] = {
	"I/O error",
	"blocked for more than",
	"EXT4-fs error",
	"EXT4-fs warning",
	"Remounting filesystem read-only",
	"critical medium error",
	"critical target error",
	"timeout error",
	"lost async page write",
	"lost sync page write",
	"task abort",
};

bool kmsg_is_about_storage(const char *text)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(beginnings); i++) {
		size_t len = strlen(beginnings[i].text);

		if (strncmp(text, beginnings[i].text, len) != 0)
			continue;
		if (!beginnings[i].numbered || (text[len] >= '0' && text[len] <= '9'))
			return true;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(parts); i++)
		if (strstr(text, parts[i]))
			return true;
	return false;
}

/* "3,1234,5678901,-;nvme nvme0: I/O 12 QID 3 timeout\n SUBSYSTEM=nvme\n" */
int kmsg_parse(const char *buf, size_t len, struct kmsg_line *ret_line)
{
	struct cursor c = { buf, buf + len };
	uint64_t priority, sequence, us;
	const char *text, *end;

	if (cursor_u64(&c, &priority) < 0 || c.p == c.end || *c.p++ != ',' ||
		cursor_u64(&c, &sequence) < 0 || c.p == c.end || *c.p++ != ',' ||
		cursor_u64(&c, &us) < 0 || us > UINT64_MAX / 1000)
		return -EINVAL;
	text = memchr(c.p, ';', (size_t)(c.end - c.p));
	if (!text)
		return -EINVAL;
	text++;
	end = memchr(text, '\n', (size_t)(c.end - text));
	len = (size_t)((end ? end : c.end) - text);
	if (len >= sizeof(ret_line->text))
		len = sizeof(ret_line->text) - 1;
	ret_line->sequence = sequence;
	ret_line->ns = us * 1000;
	ret_line->level = priority & 7;
	ret_line->by_kernel = priority >> 3 == 0;
	memcpy(ret_line->text, text, len);
	ret_line->text[len] = '\0';
	return 0;
}

int kmsg_open(struct kmsg *kmsg, const char *path)
{
	kmsg->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return kmsg->fd < 0 ? -errno : 0;
}

void kmsg_close(struct kmsg *kmsg)
{
	kmsg->fd = close_fd(kmsg->fd);
}

void kmsg_begin(struct kmsg *kmsg)
{
	kmsg->expected = 0;
	kmsg->lost = 0;
	if (kmsg->fd >= 0)
		lseek(kmsg->fd, 0, SEEK_END);
}

int kmsg_next(struct kmsg *kmsg, unsigned int *budget, struct kmsg_line *ret_line)
{
	while (kmsg->fd >= 0 && *budget > 0) {
		ssize_t n = read(kmsg->fd, kmsg->buf, sizeof(kmsg->buf));

		(*budget)--;
		/* EPIPE: the next record was overwritten; the one after it says how many were. */
		if (n < 0 && errno == EPIPE)
			continue;
		if (n <= 0)
			return 0;
		if (kmsg_parse(kmsg->buf, (size_t)n, ret_line) < 0)
			continue;
		if (kmsg->expected && ret_line->sequence > kmsg->expected)
			kmsg->lost += ret_line->sequence - kmsg->expected;
		kmsg->expected = ret_line->sequence + 1;
		if (ret_line->by_kernel && kmsg_is_about_storage(ret_line->text))
			return 1;
	}
	return 0;
}
