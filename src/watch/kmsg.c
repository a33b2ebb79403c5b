/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/kmsg.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/parse.h"

#define KMSG_WARNING 4
#define KILLED "Killed process "

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

static const char *const oom_beginnings[] = {
	"oom-kill:",
	"Out of memory",
	"Memory cgroup out of memory",
};

bool kmsg_is_oom_kill(const char *text)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(oom_beginnings); i++)
		if (strncmp(text, oom_beginnings[i], strlen(oom_beginnings[i])) == 0)
			return true;
	return false;
}

/* A drive without a medium is not watched either, see watch.device_ignore. */
bool kmsg_is_failure(const char *text)
{
	/*
	 * What a new disk says of its cache was an error up to 5.15. A table that the device mapper
	 * refuses is a program's: multipathd tries one for each new disk.
	 */
	static const char *const others[] = { "blocked for more than", " dev sr", " dev fd",
		"Caching mode page", "Assuming drive cache", "cache data failed",
		"device-mapper: table:", "device-mapper: ioctl:" };

	for (unsigned int i = 0; i < ARRAY_SIZE(others); i++)
		if (strstr(text, others[i]))
			return false;
	/* A process that is killed may have any of those words in its name. */
	return !kmsg_is_oom_kill(text) && kmsg_is_about_storage(text) &&
		strncmp(text, "sr ", 3) != 0;
}

static const struct {
	const char *text;
	enum kmsg_stopped what;
} stops[] = {
	{ "Remounting filesystem read-only", KMSG_STOPPED_READ_ONLY },
	{ "forced readonly", KMSG_STOPPED_READ_ONLY },
	{ "hutting down filesystem", KMSG_STOPPED_SHUT_DOWN },
	{ "ilesystem has been shut down", KMSG_STOPPED_SHUT_DOWN },
};

/* "(sda1)", "(device sda1)" or "(device sda1 state EA)" */
static void copy_disk(const char *text, char ret_disk[static KMSG_DISK_SIZE])
{
	const char *at = strchr(text, '(');

	*ret_disk = '\0';
	if (!at)
		return;
	at++;
	if (strncmp(at, "device ", strlen("device ")) == 0)
		at += strlen("device ");
	snprintf(ret_disk, KMSG_DISK_SIZE, "%.*s", (int)strcspn(at, " )"), at);
}

enum kmsg_stopped kmsg_find_stopped(const char *text, char ret_disk[static KMSG_DISK_SIZE])
{
	for (unsigned int i = 0; i < ARRAY_SIZE(stops); i++) {
		if (!strstr(text, stops[i].text))
			continue;
		copy_disk(text, ret_disk);
		return *ret_disk ? stops[i].what : KMSG_STOPPED_NOT;
	}
	return KMSG_STOPPED_NOT;
}

static bool is_part_of_name(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* A word, with the number of a partition or without. */
bool kmsg_names_disk(const char *text, const char *disk)
{
	size_t len = strlen(disk);

	for (const char *at = strstr(text, disk); len && at; at = strstr(at + 1, disk)) {
		const char *end = at + len;

		if (at > text && (is_part_of_name(at[-1]) || at[-1] == '-'))
			continue;
		if (isdigit((unsigned char)end[-1]))
			end += *end == 'p' && isdigit((unsigned char)end[1]);
		if (end > at + len || !isdigit((unsigned char)end[-1]))
			end += strspn(end, "0123456789");
		if (!is_part_of_name(*end))
			return true;
	}
	return false;
}

/* "Out of memory: Killed process 1234 (mysqld) total-vm:..."; a name may have brackets, too. */
bool kmsg_parse_killed(const char *text, int32_t *ret_pid, char *ret_comm, size_t size,
	bool *ret_of_group)
{
	const char *killed = kmsg_is_oom_kill(text) ? strstr(text, KILLED) : NULL;
	const char *name, *end = NULL;
	struct cursor c;
	uint64_t pid;

	if (!killed)
		return false;
	c = (struct cursor){ killed + strlen(KILLED), text + strlen(text) };
	if (cursor_u64(&c, &pid) < 0 || pid > INT32_MAX || c.end - c.p < 2 ||
		strncmp(c.p, " (", 2) != 0)
		return false;
	name = c.p + 2;
	for (size_t i = 0; name[i] && i < size; i++)
		if (name[i] == ')')
			end = name + i;
	if (!end)
		return false;
	*ret_pid = (int32_t)pid;
	memcpy(ret_comm, name, (size_t)(end - name));
	ret_comm[end - name] = '\0';
	*ret_of_group = strncmp(text, "Memory cgroup", strlen("Memory cgroup")) == 0;
	return true;
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
	if (kmsg->fd < 0)
		return -errno;
	lseek(kmsg->fd, 0, SEEK_END);
	return 0;
}

void kmsg_close(struct kmsg *kmsg)
{
	kmsg->fd = close_fd(kmsg->fd);
}

void kmsg_take(struct kmsg *kmsg, struct kmsg *from)
{
	if (from->fd < 0)
		return;
	kmsg_close(kmsg);
	*kmsg = *from;
	from->fd = -1;
}

static void drop_oldest(struct kmsg *kmsg)
{
	kmsg->recent_first = (kmsg->recent_first + 1) % KMSG_RECENT_MAX;
	kmsg->recent_count--;
}

static void forget_lost(struct kmsg *kmsg, uint64_t now_ns)
{
	if (now_ns - kmsg->lost_since_ns < KMSG_RECENT_NS)
		return;
	kmsg->lost_since_ns = now_ns;
	kmsg->lost = 0;
}

void kmsg_begin(struct kmsg *kmsg, uint64_t now_ns)
{
	forget_lost(kmsg, now_ns);
	while (kmsg->recent_count > 0 &&
		kmsg->recent[kmsg->recent_first].read_ns + KMSG_RECENT_NS < now_ns)
		drop_oldest(kmsg);
}

static int read_next(struct kmsg *kmsg, unsigned int *budget, struct kmsg_line *ret_line)
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
		ret_line->read_ns = 0;
		if (kmsg->expected && ret_line->sequence > kmsg->expected)
			kmsg->lost += ret_line->sequence - kmsg->expected;
		kmsg->expected = ret_line->sequence + 1;
		if (ret_line->by_kernel &&
			(kmsg_is_about_storage(ret_line->text) || kmsg_is_oom_kill(ret_line->text)))
			return 1;
	}
	return 0;
}

int kmsg_watch(struct kmsg *kmsg, uint64_t now_ns, unsigned int *budget, struct kmsg_line *ret_line)
{
	forget_lost(kmsg, now_ns);
	if (read_next(kmsg, budget, ret_line) == 0) {
		/*
		 * Whoever fills the log must not make the daemon lag behind it. The number of the
		 * next record tells how many this skips.
		 */
		if (*budget == 0)
			lseek(kmsg->fd, 0, SEEK_END);
		return 0;
	}
	if (ret_line->level > KMSG_WARNING && !strstr(ret_line->text, "out-of-data-space"))
		return 1;
	if (kmsg->recent_count == KMSG_RECENT_MAX)
		drop_oldest(kmsg);
	ret_line->read_ns = now_ns;
	kmsg->recent[(kmsg->recent_first + kmsg->recent_count++) % KMSG_RECENT_MAX] = *ret_line;
	return 1;
}

int kmsg_next(struct kmsg *kmsg, unsigned int *budget, struct kmsg_line *ret_line)
{
	if (kmsg->recent_count == 0)
		return read_next(kmsg, budget, ret_line);
	*ret_line = kmsg->recent[kmsg->recent_first];
	drop_oldest(kmsg);
	return 1;
}
