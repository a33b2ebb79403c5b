/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/facts.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "util/cleanup.h"
#include "util/clock.h"

static_assert(VERDICT_DEVICES_MAX <= INT8_MAX, "a thread keeps the index of its device");
/* It is locked into memory with the session. */
static_assert(sizeof(struct verdict_facts) <= 32 * 1024, "the facts of one incident are small");

enum verdict_wait verdict_wait_of(const char *waits_for)
{
	static const struct {
		enum verdict_wait wait;
		const char *prefix;
	} table[] = {
#define KIND(kind, name)
#define WAIT(kind, prefix) { VERDICT_WAIT_##kind, prefix },
#include "verdict/waits.def"
#undef KIND
#undef WAIT
	};

	if (*waits_for == '\0')
		return VERDICT_WAIT_none;
	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		if (strncmp(waits_for, table[i].prefix, strlen(table[i].prefix)) == 0)
			return table[i].wait;
	return VERDICT_WAIT_other;
}

const char *verdict_wait_name(enum verdict_wait wait)
{
	static const char *const names[VERDICT_WAIT_COUNT] = {
#define KIND(kind, name) [VERDICT_WAIT_##kind] = name,
#define WAIT(kind, prefix)
#include "verdict/waits.def"
#undef KIND
#undef WAIT
	};

	return names[wait];
}

void verdict_begin(struct verdict_facts *f, uint64_t trigger_ns, uint64_t min_stall_ns)
{
	memset(f, 0, sizeof(*f));
	f->trigger_ns = trigger_ns;
	f->min_stall_ns = min_stall_ns;
	for (unsigned int i = 0; i < VERDICT_WAIT_COUNT; i++)
		f->waits[i].device = -1;
}

static void set_who(struct verdict_who *who, int32_t pid, int32_t tid, const char *comm)
{
	*who = (struct verdict_who){ .pid = pid, .tid = tid };
	text_copy(who->comm, sizeof(who->comm), comm);
}

/* The end of a path is the name of the file. */
static void set_path(char to[static VERDICT_PATH_SIZE], const char *path)
{
	size_t len = strlen(path);

	text_copy(to, VERDICT_PATH_SIZE,
		len < VERDICT_PATH_SIZE ? path : path + len - (VERDICT_PATH_SIZE - 1));
}

/* Devices */

static int find_device(const struct verdict_facts *f, uint32_t major, uint32_t minor)
{
	for (uint32_t i = 0; i < f->devices_count; i++)
		if (f->devices[i].major == major && f->devices[i].minor == minor)
			return (int)i;
	return -1;
}

/* "sdb1" is of "sdb", "nvme0n1p2" of "nvme0n1". */
static bool is_partition_of(const char *name, const char *disk)
{
	size_t len = strlen(disk);

	if (len == 0 || strncmp(name, disk, len) != 0)
		return false;
	name += len;
	if (isdigit((unsigned char)disk[len - 1]) && *name++ != 'p')
		return false;
	return *name && name[strspn(name, "0123456789")] == '\0';
}

/* A partition whose files were waited for before its disk had anything to say. */
static int find_orphan(const struct verdict_facts *f, const char *disk)
{
	for (uint32_t i = 0; i < f->devices_count; i++)
		if (!f->devices[i].sampled && !f->devices[i].has_totals &&
			is_partition_of(f->devices[i].name, disk))
			return (int)i;
	return -1;
}

static int add_device(struct verdict_facts *f, uint32_t major, uint32_t minor, const char *name)
{
	struct verdict_device *d;
	int i = find_device(f, major, minor);

	if (i >= 0 || (major == 0 && minor == 0))
		return i;
	i = find_orphan(f, name);
	if (i < 0 && f->devices_count == VERDICT_DEVICES_MAX) {
		f->devices_left_out++;
		return -1;
	}
	if (i < 0)
		i = (int)f->devices_count++;
	d = &f->devices[i];
	d->major = major;
	d->minor = minor;
	text_copy(d->name, sizeof(d->name), name);
	return i;
}

/* That of a file system: its disk when it is on a partition. */
static int add_fs_device(struct verdict_facts *f, uint32_t major, uint32_t minor, const char *name)
{
	int i = find_device(f, major, minor);

	for (uint32_t j = 0; i < 0 && j < f->devices_count; j++)
		if (is_partition_of(name, f->devices[j].name))
			i = (int)j;
	/* Anonymous ones, of major 0, are no disks: FUSE, NFS, overlay, btrfs. */
	return i >= 0 || major == 0 ? i : add_device(f, major, minor, name);
}

/* Samples */

static void add_work(struct verdict_work *work, const struct watch_disk *disk, uint64_t ns)
{
	double await_ns, seconds = (double)ns / NSEC_PER_SEC, requests = 0;

	/* Which of the two awaits counts how much is not known; the larger one is the one that hurts. */
	await_ns = (disk->read_await_ms > disk->write_await_ms ? disk->read_await_ms :
							     disk->write_await_ms) * NSEC_PER_MSEC;
	if (await_ns > 0)
		requests = disk->queue * seconds * NSEC_PER_SEC / await_ns;
	work->ns += ns;
	work->bytes += disk->read_bytes + disk->write_bytes;
	work->finished += requests;
	work->await_ns_sum += await_ns * requests;
	work->queue_ns_sum += disk->queue * (double)ns;
	work->util_ns_sum += disk->util_pct / 100 * (double)ns;
}

static bool is_at_work(const struct watch_disk *disk)
{
	return disk->util_pct > 0 || disk->inflight || disk->no_completion_ns || disk->read_bytes ||
		disk->write_bytes;
}

static void note_disk(struct verdict_facts *f, const struct watch_disk *disk, uint64_t ns, bool calm)
{
	int i = is_at_work(disk) ? add_device(f, disk->major, disk->minor, disk->name) :
				   find_device(f, disk->major, disk->minor);
	struct verdict_device *d;
	uint64_t work_ns;

	if (i < 0)
		return;
	d = &f->devices[i];
	d->sampled = true;
	if (calm) {
		add_work(&d->calm, disk, ns);
		return;
	}
	if (disk->util_pct >= VERDICT_BUSY_PCT)
		add_work(&d->busy, disk, ns);
	work_ns = (uint64_t)(disk->util_pct / 100 * (double)ns);
	d->busy_ns += work_ns;
	if (work_ns > d->busiest_ns)
		d->busiest_ns = work_ns;
	if (disk->util_pct > d->util_max_pct)
		d->util_max_pct = disk->util_pct;
	if (disk->read_await_ms > d->read_await_max_ms)
		d->read_await_max_ms = disk->read_await_ms;
	if (disk->write_await_ms > d->write_await_max_ms)
		d->write_await_max_ms = disk->write_await_ms;
	if (disk->inflight > d->in_flight_max)
		d->in_flight_max = disk->inflight;
	if (disk->no_completion_ns > d->silent_ns) {
		d->silent_ns = disk->no_completion_ns;
		d->silent_in_flight = disk->inflight;
	}
}

void verdict_note_sample(struct verdict_facts *f, const struct record_sample *sample)
{
	const struct watch_sample *s = &sample->sample;
	bool calm = sample->before_trigger && s->mono_ns + VERDICT_LEAD_NS < f->trigger_ns;

	/* The first ever is over no time. */
	if (s->interval_ns == 0)
		return;
	if (!calm) {
		f->samples++;
		if (s->psi_memory.present && s->psi_memory.full_pct > f->memory_full_max_pct)
			f->memory_full_max_pct = s->psi_memory.full_pct;
	}
	for (uint32_t i = 0; i < s->disks_count && i < WATCH_SAMPLE_DISKS_MAX; i++)
		note_disk(f, &s->disks[i], s->interval_ns, calm);
}

/* Operations */

static struct verdict_thread *find_thread(struct verdict_facts *f, int32_t tid)
{
	/* Fibonacci hashing; thread ids come in runs. */
	uint32_t slot = (uint32_t)tid * 2654435769u % VERDICT_THREADS_MAX;

	for (unsigned int i = 0; i < VERDICT_THREADS_MAX; i++) {
		struct verdict_thread *t = &f->threads[(slot + i) % VERDICT_THREADS_MAX];

		if (t->tid == tid || t->tid == 0)
			return t;
	}
	f->threads_left_out++;
	return NULL;
}

/* A request of io_uring or libaio keeps no thread asleep: the device is what it waits for. */
static enum verdict_wait wait_of_operation(const struct record_operation *op)
{
	if (*op->waits_for == '\0' && (strcmp(op->probe, "uring") == 0 || strcmp(op->probe, "aio") == 0))
		return VERDICT_WAIT_device;
	return verdict_wait_of(op->waits_for);
}

static void note_wait(struct verdict_wait_facts *w, const struct record_operation *op, bool kernel,
	int device)
{
	uint64_t *longest_ns = kernel ? &w->kernel_longest_ns : &w->longest_ns;

	if (op->dur_ns <= *longest_ns)
		return;
	*longest_ns = op->dur_ns;
	set_who(kernel ? &w->kernel : &w->who, op->pid, op->tid, op->comm);
	if (kernel)
		return;
	set_path(w->path, op->path);
	text_copy(w->waits_for, sizeof(w->waits_for), op->waits_for);
	w->device = (int8_t)device;
}

/* An operation whose file is not known may be the longest: what it waited for on a device counts as well. */
static void note_thread(struct verdict_facts *f, const struct record_operation *op,
	enum verdict_wait wait, bool kernel, int device)
{
	struct verdict_thread *t = op->tid > 0 ? find_thread(f, op->tid) : NULL;

	if (!t)
		return;
	if (t->tid == 0)
		t->device = -1;
	if (t->tid == 0 || op->dur_ns > t->longest_ns) {
		t->longest_ns = op->dur_ns;
		t->tid = op->tid;
		t->pid = op->pid;
		t->wait = (uint8_t)wait;
		t->kernel = kernel;
		text_copy(t->comm, sizeof(t->comm), op->comm);
	}
	if (device >= 0 && (t->device < 0 || op->dur_ns > t->device_ns)) {
		t->device_ns = op->dur_ns;
		t->device = (int8_t)device;
		t->device_wait = (uint8_t)wait;
	}
}

static void note_device_wait(struct verdict_device *d, enum verdict_wait wait, uint64_t ns, bool finished)
{
	/* On a file of the device, but for something else. */
	if (wait != VERDICT_WAIT_device && wait != VERDICT_WAIT_journal && wait != VERDICT_WAIT_none)
		return;
	if (finished) {
		d->operations++;
		d->finished_ns += ns;
	} else if (ns > d->hanging_ns) {
		/* One that hangs has its line again and again: they do not add up. */
		d->hanging_ns = ns;
	}
	if (wait == VERDICT_WAIT_device && ns > d->longest_ns)
		d->longest_ns = ns;
}

uint64_t verdict_waited_ns(const struct verdict_device *d)
{
	return d->finished_ns > d->hanging_ns ? d->finished_ns : d->hanging_ns;
}

void verdict_note_operation(struct verdict_facts *f, const struct record_operation *op, bool finished)
{
	bool kernel = strcmp(op->op, "kernel") == 0;
	enum verdict_wait wait = wait_of_operation(op);
	int device = add_fs_device(f, op->dev_major, op->dev_minor, op->dev_name);

	note_wait(&f->waits[wait], op, kernel, device);
	note_thread(f, op, wait, kernel, device);
	/* What the kernel does by itself is nobody's wait. */
	if (kernel)
		return;
	f->operations += finished;
	if (op->dur_ns > f->longest_ns)
		f->longest_ns = op->dur_ns;
	if (device >= 0)
		note_device_wait(&f->devices[device], wait, op->dur_ns, finished);
}

/* What the block layer says */

void verdict_note_device(struct verdict_facts *f, const struct record_device *device)
{
	int i = add_device(f, device->dev_major, device->dev_minor, device->dev_name);
	struct verdict_device *d;

	if (i < 0)
		return;
	d = &f->devices[i];
	if (device->no_completion_ns >= d->silent_ns && device->no_completion_ns > 0) {
		d->silent_ns = device->no_completion_ns;
		d->silent_in_flight = device->in_flight;
	}
	if (!device->final)
		return;
	d->has_totals = true;
	d->requests = device->requests;
	d->read_bytes = device->read_bytes;
	d->write_bytes = device->write_bytes;
	d->queue_time = device->queue;
	d->device_time = device->device;
}

/* The lines of a kind come with the most bytes first: true for that one. */
static bool note_load(struct verdict_load *load, const struct record_io_by *by)
{
	if (load->count++ > 0)
		return false;
	set_who(&load->who, by->pid, by->tid, by->comm);
	load->requests = by->requests;
	load->bytes = by->bytes;
	load->share_pct = by->share_pct;
	load->inferred = by->inferred;
	return true;
}

static void note_share(struct verdict_facts *f, int device, const struct record_io_by *by)
{
	if (f->shares_count == VERDICT_SHARES_MAX)
		return;
	f->shares[f->shares_count++] = (struct verdict_share){
		.bytes = by->bytes,
		.requests = (uint32_t)by->requests,
		.share_pct = (float)by->share_pct,
		.tid = by->tid,
		.device = (int8_t)device,
	};
}

void verdict_note_io_by(struct verdict_facts *f, const struct record_io_by *by)
{
	int i = find_device(f, by->dev_major, by->dev_minor);
	struct verdict_load *load;

	if (i < 0)
		return;
	load = f->devices[i].load;
	if (strcmp(by->by, "process") == 0) {
		note_load(&load[VERDICT_BY_PROCESS], by);
		if (!by->inferred)
			note_load(&load[VERDICT_BY_PROGRAM], by);
	} else if (strcmp(by->by, "thread") == 0) {
		note_load(&load[VERDICT_BY_THREAD], by);
		note_share(f, i, by);
	} else if (strcmp(by->by, "file") == 0 && note_load(&load[VERDICT_BY_FILE], by)) {
		set_path(f->devices[i].file, by->path);
	}
}

void verdict_note_kernel(struct verdict_facts *f, const struct record_kernel *line)
{
	if (f->kernel_lines++ == 0)
		text_copy(f->kernel_text, sizeof(f->kernel_text), line->text);
}

void verdict_note_silence(struct verdict_facts *f, unsigned int target, const char *name,
	const struct verdict_who *server, const struct verdict_silence *silence)
{
	struct verdict_database *d = &f->databases[target];
	/* One that is over has its note of 0, and the next begins below what the last reached. */
	bool goes_on = silence->ns > d->now.ns;

	/* Of one that was stopped the answer may come a little after it goes on. */
	d->now.stopped = silence->stopped || (goes_on && d->now.stopped);
	d->now.ns = silence->ns;
	if (d->now.ns <= d->longest.ns)
		return;
	d->longest = d->now;
	d->server = *server;
	text_copy(d->target, sizeof(d->target), name);
}
