/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "watch/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util/cleanup.h"
#include "util/file.h"
#include "util/log.h"
#include "util/text.h"
#include "watch/cgroups.h"
#include "watch/disks.h"
#include "watch/filesystems.h"
#include "watch/history.h"
#include "watch/host_stats.h"
#include "watch/kmsg.h"
#include "watch/lines.h"
#include "watch/process_io.h"
#include "watch/thread_scanner.h"

/* Holds /proc/stat of a small host and diskstats of a large one in one or two reads. */
#define READ_BUFFER_SIZE 16384

/*
 * Which part of the interval the scans may take while no incident is open. A thread costs 3 us
 * (6.18, 200 threads), so 130 threads are scanned in a second. Both together take less than 0.1 %
 * of a CPU, unless the interval is so short or the CPU so slow that the least number of threads
 * takes longer.
 */
#define IDLE_THREADS_SHARE 2500	  /* 0.04 % */
#define IDLE_PROCESSES_SHARE 5000 /* 0.02 % */
/* This is enough for 3000 threads. A longer scan would delay arming, which needs the sample. */
#define FULL_SCAN_NS (10 * NSEC_PER_MSEC)
#define FULL_SCAN_PSI_PCT 1.0
/* Where the rule psi_memory_full is clear by default. */
#define LACKS_MEMORY_PCT 10.0
/* By so much the clocks of disks and CPUs may differ. */
#define UNEXPLAINED_PCT 5.0
/*
 * A wait that is shorter than a sample explains no waiting all the time, but many at once do, or
 * after each other. A thread that is in D for a third of the time is so in as many looks in a row
 * once in two hours.
 */
#define WAITS_BELIEVED ANY_THREAD_ENOUGH

/* watch_take_sample() waits for so long until the threads have been scanned. */
#define SCAN_PATIENCE_MS 5000

/* A disk that fails logs errors for hours: that is one trouble. */
#define KERNEL_ERRORS_NS (60 * NSEC_PER_SEC)

struct watch {
	struct watch_clock clock;
	uint64_t interval_ns;
	int procfs_fd;
	int sysfs_fd;
	int diskstats_fd;
	struct host_stats host;
	struct history history;
	bool has_begun;
	struct record_reading begun; /* from watch_begin_sample() to watch_end_sample() */
	bool has_threads;	     /* the newest sample */
	double io_pct;		     /* of that; see watch_io_pct() */
	/* Threads in D, in looks one after the other, while no disk explains the waiting. */
	uint32_t waits_seen;
	struct watch_left_out logged;
	struct disks disks;
	struct processes processes;
	struct thread_scanner threads;
	struct filesystems filesystems;
	struct cgroups cgroups;
	struct process_io process_io;
	struct record_limits limits;
	struct record_sql_activity sql;
	struct watch_sql_targets sql_targets;
	struct record_held_mutex mutex;
	int32_t mutex_pid; /* of the last one */
	struct record_lock_stand lock;
	int32_t lock_pid; /* of the last one */
	uint64_t unread;  /* samples that lack mutexes */
	int32_t stopped_pid;
	struct record_health health;
	char health_target[RECORD_SUBJECT_SIZE];
	struct watch_kernel_errors kernel_errors;
	char buf[READ_BUFFER_SIZE];
};

static unsigned int history_size(const struct watch_options *options)
{
	uint64_t size;

	if (options->interval_ns == 0)
		return 1;
	/* n intervals lie between n + 1 samples. */
	size = options->history_ns / options->interval_ns + 1;
	if (size > WATCH_HISTORY_MAX) {
		log_warning("watch: watch.history is more than %d samples; keeping the last %d",
			WATCH_HISTORY_MAX, WATCH_HISTORY_MAX);
		size = WATCH_HISTORY_MAX;
	}
	return (unsigned int)size;
}

void watch_options_from_config(const struct config *config, struct watch_options *options)
{
	options->interval_ns = config->watch.interval_ns;
	options->history_ns = config->watch.history_ns;
	options->process = &config->watch.process;
	options->device = &config->watch.device;
	options->device_ignore = &config->watch.device_ignore;
	options->filesystem = &config->watch.filesystem;
}

static int watch_open_files(struct watch *w, const struct watch_options *options)
{
	int r;

	w->procfs_fd =
		open(options->procfs ? options->procfs : "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (w->procfs_fd < 0)
		return -errno;
	/* Without sysfs partitions look like disks, and are judged beside them. */
	w->sysfs_fd =
		open(options->sysfs ? options->sysfs : "/sys", O_PATH | O_DIRECTORY | O_CLOEXEC);
	r = host_stats_open(&w->host, w->procfs_fd);
	if (r < 0)
		return r;
	w->diskstats_fd = openat(w->procfs_fd, "diskstats", O_RDONLY | O_CLOEXEC);
	if (w->diskstats_fd < 0)
		log_warning("watch: cannot open %s/diskstats: %s; disks are not watched",
			options->procfs ? options->procfs : "/proc", strerror(errno));
	return 0;
}

/* When the thread cannot be started, everything else is watched all the same. */
static void start_filesystems(struct watch *w, const struct watch_options *options)
{
	int r;

	if (!options->filesystem || options->filesystem->count == 0) {
		filesystems_stop(&w->filesystems);
		memset(&w->filesystems, 0, sizeof(w->filesystems));
		return;
	}
	r = filesystems_start(&w->filesystems, w->procfs_fd, options->filesystem,
		watch_clock_ns(&w->clock));
	if (r < 0)
		log_warning(
			"watch: cannot start the thread that asks file systems: %s; rules space and "
			"inodes are not checked",
			strerror(-r));
}

static void cleanup_watch(struct watch **w)
{
	watch_free(*w);
}

int watch_new(const struct watch_options *options, struct watch **ret_watch)
{
	_cleanup_(cleanup_watch) struct watch *w = calloc(1, sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->clock = options->clock;
	w->interval_ns = options->interval_ns;
	w->procfs_fd = w->sysfs_fd = w->diskstats_fd = -1;
	w->processes.dir_fd = w->processes.new_fd = w->threads.done_fd = -1;
	host_stats_init(&w->host);

	r = watch_open_files(w, options);
	if (r < 0)
		return r;
	r = history_resize(&w->history, history_size(options));
	if (r < 0)
		return r;
	r = processes_init(&w->processes, w->procfs_fd, options->process);
	if (r < 0)
		return r;
	r = thread_scanner_init(&w->threads, w->procfs_fd);
	if (r < 0)
		return r;
	r = disks_init(&w->disks, w->sysfs_fd, options->device, options->device_ignore);
	if (r < 0)
		return r;
	start_filesystems(w, options);
	r = cgroups_init(&w->cgroups, w->procfs_fd, w->sysfs_fd);
	if (r < 0)
		return r;
	r = process_io_init(&w->process_io, w->procfs_fd);
	if (r < 0)
		return r;
	processes_scan(&w->processes, &w->clock, UINT64_MAX, false);
	cgroups_learn(&w->cgroups, &w->processes, watch_clock_ns(&w->clock));
	*ret_watch = TAKE_PTR(w);
	return 0;
}

struct watch *watch_free(struct watch *w)
{
	if (!w)
		return NULL;
	process_io_done(&w->process_io);
	cgroups_done(&w->cgroups);
	disks_done(&w->disks);
	filesystems_stop(&w->filesystems);
	thread_scanner_done(&w->threads);
	processes_done(&w->processes);
	history_free(&w->history);
	host_stats_close(&w->host);
	close_fd(w->diskstats_fd);
	close_fd(w->sysfs_fd);
	close_fd(w->procfs_fd);
	free(w);
	return NULL;
}

int watch_reload(struct watch *w, const struct watch_options *options)
{
	int r = history_resize(&w->history, history_size(options));

	if (r < 0)
		return r;
	w->interval_ns = options->interval_ns;
	disks_set_patterns(&w->disks, options->device, options->device_ignore);
	start_filesystems(w, options);
	/* What has been so for long, as a container that is paused, is not new by this. */
	if (!processes_set_patterns(&w->processes, options->process))
		return 0;
	thread_scanner_reset(&w->threads);
	w->has_begun = false;
	cgroups_reset(&w->cgroups);
	processes_scan(&w->processes, &w->clock, UINT64_MAX, false);
	cgroups_learn(&w->cgroups, &w->processes, watch_clock_ns(&w->clock));
	return 0;
}

bool watch_is_learning(const struct watch *w)
{
	return processes_want_units(&w->processes) || cgroups_are_learning(&w->cgroups);
}

bool watch_is_reading(const struct watch *w)
{
	return cgroup_stats_is_busy(&w->cgroups.stats);
}

static void take_disk_line(void *arg, struct cursor line)
{
	disks_take_line(arg, line);
}

/*
 * Whoever waits for a disk is counted as blocked, and whoever sent it something has changed these
 * counters. Then a disk that hangs is seen as soon as where there are few.
 */
static bool disks_are_at_rest(const struct watch *w, const struct record_reading *s)
{
	return s->procs_blocked == 0 && host_stats_has_no_io(&w->host) &&
		disks_may_rest(&w->disks, watch_clock_ns(&w->clock));
}

static void take_disks(struct watch *w, bool armed, struct record_reading *s)
{
	if (!armed && disks_are_at_rest(w, s)) {
		disks_rest(&w->disks, watch_clock_ns(&w->clock));
		disks_fill_sample(&w->disks, s);
		return;
	}
	disks_begin_reading(&w->disks, watch_clock_ns(&w->clock));
	if (w->diskstats_fd >= 0)
		(void)lines_read_fd(w->diskstats_fd, w->buf, sizeof(w->buf), take_disk_line,
			&w->disks);
	disks_end_reading(&w->disks, armed);
	disks_fill_sample(&w->disks, s);
}

static int take_host(struct watch *w, bool armed, struct record_reading *s)
{
	struct disks_zram zram;
	int r = host_stats_take_cpus(&w->host, &w->clock, w->buf, sizeof(w->buf), s);

	if (r < 0)
		return r;
	/* Before the disks: what is sent in between changes the next sample's counters. */
	host_stats_read_vmstat(&w->host, w->buf, sizeof(w->buf));
	take_disks(w, armed, s);
	host_stats_take_pressures(&w->host, &w->clock, w->buf, sizeof(w->buf), s);
	zram = disks_zram_since(&w->disks);
	host_stats_take_memory(&w->host, &zram, &s->memory);
	return 0;
}

/* More waiting for I/O was counted than there was work for disks. */
static bool is_unexplained(const struct watch *w, const struct record_reading *s)
{
	const double explained_pct = disks_busy_pct(&w->disks) + UNEXPLAINED_PCT;

	return s->cpu.iowait_pct > explained_pct || s->psi.io.some_pct > explained_pct;
}

static void begin_threads(struct watch *w, bool armed, const struct record_reading *s)
{
	struct threads_scan scan = {
		.clock = w->clock,
		.suspect_deadline_ns = FULL_SCAN_NS,
		.last_ns = FULL_SCAN_NS + FULL_SCAN_NS / 2,
		/*
		 * A timer may expire a little early; waiting a whole interval more would be too
		 * long.
		 */
		.min_age_ns = w->interval_ns / 10 * 9,
	};
	const struct record_reading *last = watch_last(w);

	scan.full = armed || s->procs_blocked > 0 || s->psi.io.some_pct > FULL_SCAN_PSI_PCT ||
		s->psi.memory.some_pct > FULL_SCAN_PSI_PCT || (last && last->threads.blocked > 0);
	scan.anybody = is_unexplained(w, s);
	scan.deadline_ns = scan.full ? FULL_SCAN_NS : w->interval_ns / IDLE_THREADS_SHARE;
	thread_scanner_begin(&w->threads, &w->processes, &w->cgroups.freezers, &scan, armed);
}

/* Logs once for each table, when it overflows for the first time. */
static void log_left_out(struct watch *w)
{
	struct watch_left_out now;

	watch_get_left_out(w, &now);
	if (now.processes && !w->logged.processes)
		log_warning(
			"watch: %u processes match watch.process beyond the maximum of %d; they are not "
			"watched",
			now.processes, WATCH_PROCESSES_MAX);
	if (now.threads && !w->logged.threads)
		log_warning(
			"watch: %u threads are in D state or stopped beyond the maximum of %d; they are not counted",
			now.threads, WATCH_THREADS_MAX);
	if (now.disks && !w->logged.disks)
		log_warning(
			"watch: %u disks are at work beyond the maximum of %d; they are not watched",
			now.disks, WATCH_DISKS_MAX);
	if (now.filesystems && !w->logged.filesystems)
		log_warning(
			"watch: %u file systems are beyond the maximum of %d; they are not watched",
			now.filesystems, WATCH_FILESYSTEMS_MAX);
	if (now.cgroups && !w->logged.cgroups)
		log_warning(
			"watch: watched processes have more than %d control groups; the others are not "
			"watched",
			WATCH_CGROUPS_MAX);
	w->logged.processes |= now.processes;
	w->logged.threads |= now.threads;
	w->logged.disks |= now.disks;
	w->logged.filesystems |= now.filesystems;
	w->logged.cgroups |= now.cgroups;
}

bool watch_lacks_memory(const struct watch *w)
{
	const struct record_reading *last = watch_last(w);

	return last && last->psi.memory.present && last->psi.memory.full_pct >= LACKS_MEMORY_PCT;
}

int watch_begin_sample(struct watch *w, bool armed)
{
	const struct record_reading *last = watch_last(w);
	uint64_t now_ns = watch_clock_ns(&w->clock);
	int r;

	w->has_begun = false;
	w->begun = (struct record_reading){
		.mono_ns = now_ns,
		.real_ns = clock_real_ns(),
		.interval_ns = last ? now_ns - last->mono_ns : 0,
	};
	r = take_host(w, armed, &w->begun);
	if (r < 0)
		return r;
	begin_threads(w, armed, &w->begun);
	w->has_begun = true;
	return 0;
}

int watch_sample_fd(const struct watch *w)
{
	return w->threads.done_fd;
}

bool watch_sample_is_ready(struct watch *w)
{
	return thread_scanner_is_ready(&w->threads) && w->has_begun;
}

/*
 * Whoever is seen in D for the first time may have begun to wait for long. By the next look that
 * wait has lasted for a sample, or it was one that explains nothing.
 */
static bool is_explained_by_threads(struct watch *w)
{
	const bool is_first = w->waits_seen == 0;

	if (w->threads.waiting == ANY_THREAD_NONE) {
		w->waits_seen = 0;
		return false;
	}
	w->waits_seen += w->threads.waiting_count;
	if (w->waits_seen > WAITS_BELIEVED)
		w->waits_seen = WAITS_BELIEVED;
	return w->threads.waiting == ANY_THREAD_LASTS || is_first ||
		w->waits_seen == WAITS_BELIEVED;
}

static double find_io_pct(struct watch *w, const struct record_reading *s)
{
	if (!is_unexplained(w, s)) {
		w->waits_seen = 0;
		return INFINITY;
	}
	if (!w->has_threads)
		return INFINITY;
	if (w->threads.waiting == ANY_THREAD_UNKNOWN)
		return NAN;
	return is_explained_by_threads(w) ? INFINITY : disks_busy_pct(&w->disks);
}

bool watch_end_sample(struct watch *w, bool armed)
{
	struct record_reading *s = &w->begun;
	const uint64_t now_ns = s->mono_ns;

	if (!w->has_begun)
		return false;
	w->has_begun = false;
	w->has_threads = thread_scanner_take(&w->threads, &w->processes, &w->cgroups.freezers,
		&w->clock, &s->threads, &w->limits.stopped);
	w->io_pct = find_io_pct(w, s);
	/*
	 * A look at a process that nobody has looked at for long allocates, as does that of others,
	 * for which it may have to wait: without memory only new ones are looked at.
	 */
	processes_scan(&w->processes, &w->clock,
		watch_clock_ns(&w->clock) + w->interval_ns / IDLE_PROCESSES_SHARE,
		armed && !watch_lacks_memory(w));
	filesystems_update(&w->filesystems, now_ns, armed);
	if (!armed)
		filesystems_replace_hung(&w->filesystems, now_ns);
	filesystems_fill_limits(&w->filesystems, &w->limits);
	process_io_update(&w->process_io, &w->processes, armed);
	freezers_update(&w->cgroups.freezers, &w->processes, now_ns, w->buf, sizeof(w->buf));
	if (!armed) {
		cgroups_learn(&w->cgroups, &w->processes, watch_clock_ns(&w->clock));
		process_io_fill(&w->process_io, &w->processes, &w->limits);
	} else {
		w->limits.process_io_count = 0;
	}
	cgroups_update(&w->cgroups, &w->disks, &w->clock, armed, w->buf, sizeof(w->buf));
	cgroups_fill_limits(&w->cgroups, &w->disks, &w->limits);
	if (!w->limits.stopped.present || !w->has_threads)
		freezers_fill(&w->cgroups.freezers, &w->processes, armed, now_ns,
			&w->limits.stopped);
	if (w->limits.stopped.present)
		w->stopped_pid = w->limits.stopped.pid;
	s->sql = w->sql;
	s->health = w->health;
	s->mutex = w->mutex;
	s->lock = w->lock;
	log_left_out(w);
	if (now_ns - w->kernel_errors.last_ns > KERNEL_ERRORS_NS)
		w->kernel_errors =
			(struct watch_kernel_errors){ .serial = w->kernel_errors.serial };

	history_add(&w->history, s);
	return true;
}

int watch_take_sample(struct watch *w, bool armed)
{
	struct pollfd done = { .fd = watch_sample_fd(w), .events = POLLIN };
	int r = watch_begin_sample(w, armed);

	if (r < 0)
		return r;
	while (!watch_sample_is_ready(w) && poll(&done, 1, SCAN_PATIENCE_MS) > 0)
		;
	watch_end_sample(w, armed);
	return 0;
}

uint32_t watch_cpus_end(const struct watch *w)
{
	return w->host.stat_before.cpus_end;
}

void watch_copy_comm(const struct watch *w, int32_t pid, char *ret_comm, size_t size)
{
	processes_copy_comm(&w->processes, pid, ret_comm, size);
}

bool watch_matches(const struct watch *w, int32_t pid, const char *comm)
{
	return processes_match(&w->processes, pid, comm);
}

bool watch_has_threads(const struct watch *w)
{
	return w->has_threads;
}

double watch_io_pct(const struct watch *w)
{
	return w->io_pct;
}

void watch_set_sql(struct watch *w, const struct record_sql_activity *sql,
	const struct watch_sql_targets *targets)
{
	w->sql = *sql;
	w->sql_targets = *targets;
}

const struct watch_sql_targets *watch_sql_targets(const struct watch *w)
{
	return &w->sql_targets;
}

void watch_set_mutex(struct watch *w, const struct record_held_mutex *mutex)
{
	w->mutex = *mutex;
	if (mutex->present)
		w->mutex_pid = mutex->pid;
}

void watch_set_lock(struct watch *w, const struct record_lock_stand *lock)
{
	w->lock = *lock;
	if (lock->present)
		w->lock_pid = lock->pid;
}

void watch_count_unread(struct watch *w)
{
	w->unread++;
}

int32_t watch_mutex_pid(const struct watch *w)
{
	return w->mutex_pid;
}

int32_t watch_lock_pid(const struct watch *w)
{
	return w->lock_pid;
}

int32_t watch_stopped_pid(const struct watch *w)
{
	return w->stopped_pid;
}

void watch_set_health(struct watch *w, const struct record_health *health, const char *target)
{
	w->health = *health;
	text_copy(w->health_target, sizeof(w->health_target), target);
}

/* The watched disk that a line names; "": none. */
static const char *find_named_disk(const struct watch *w, const char *text)
{
	const struct record_disk *disk;
	const char *name = "";
	uint32_t serial;

	for (unsigned int slot = 0; slot < WATCH_DISKS_MAX; slot++) {
		disk = watch_disk_in_slot(w, slot, &serial);
		if (disk && kmsg_names_disk(text, disk->dev_name))
			name = disk->dev_name;
	}
	return name;
}

/* False: another line has named it, or there were too many to tell. */
static bool is_named_first(struct watch_kernel_errors *e, const char *device)
{
	for (uint32_t i = 0; i < e->named_count; i++)
		if (strcmp(e->named[i], device) == 0)
			return false;
	if (!*device || e->named_count == ARRAY_SIZE(e->named))
		return false;
	text_copy(e->named[e->named_count++], sizeof(e->named[0]), device);
	return true;
}

void watch_note_kernel_error(struct watch *w, const char *text, bool is_kill)
{
	struct watch_kernel_errors *e = &w->kernel_errors;
	const struct record_reading *last = watch_last(w);
	const char *device = find_named_disk(w, text);
	const bool is_other = is_named_first(e, device) || is_kill || e->lines == 0;

	e->last_ns = last ? last->mono_ns : watch_clock_ns(&w->clock);
	e->lines++;
	/* Lines of one sample are about one trouble. */
	if (is_other && e->begun_ns != e->last_ns) {
		e->begun_ns = e->last_ns;
		e->serial++;
		e->device[0] = '\0';
	}
	if (is_other && !*e->device)
		text_copy(e->device, sizeof(e->device), device);
}

const struct watch_kernel_errors *watch_kernel_errors(const struct watch *w)
{
	return &w->kernel_errors;
}

const char *watch_health_target(const struct watch *w)
{
	return w->health_target;
}

const struct record_reading *watch_last(const struct watch *w)
{
	return history_last(&w->history);
}

const struct record_limits *watch_limits(const struct watch *w)
{
	return &w->limits;
}

unsigned int watch_history_count(const struct watch *w)
{
	return w->history.count;
}

bool watch_history_is_full(const struct watch *w)
{
	return w->history.size > 1 && w->history.count == w->history.size;
}

const struct record_reading *watch_history_get(const struct watch *w, unsigned int i)
{
	return history_get(&w->history, i);
}

uint32_t watch_disks_generation(const struct watch *w)
{
	return w->disks.generation;
}

const struct record_disk *watch_disk_in_slot(const struct watch *w, unsigned int slot,
	uint32_t *ret_serial)
{
	if (slot >= w->disks.disks_count || !w->disks.disks[slot].used)
		return NULL;
	*ret_serial = w->disks.disks[slot].serial;
	return &w->disks.disks[slot].view;
}

const struct record_file_system *watch_filesystem_in_slot(const struct watch *w, unsigned int slot,
	uint32_t *ret_serial)
{
	if (slot >= WATCH_FILESYSTEMS_MAX || !w->filesystems.slots[slot].used)
		return NULL;
	*ret_serial = w->filesystems.slots[slot].serial;
	return &w->filesystems.slots[slot].view;
}

const struct record_cgroup *watch_cgroup_in_slot(const struct watch *w, unsigned int slot,
	uint32_t *ret_serial)
{
	if (slot >= WATCH_CGROUPS_MAX || !w->cgroups.slots[slot].used ||
		!w->cgroups.slots[slot].limited)
		return NULL;
	*ret_serial = w->cgroups.slots[slot].serial;
	return &w->cgroups.slots[slot].view;
}

const struct record_cpu_limited *watch_cpu_limit_in_slot(const struct watch *w, unsigned int slot,
	uint32_t *ret_serial)
{
	const struct cpu_limits_group *group;

	if (slot >= CPU_LIMITS_GROUPS_MAX)
		return NULL;
	group = &w->cgroups.cpu.groups[slot];
	if (!group->used || !group->limited)
		return NULL;
	*ret_serial = group->serial;
	return &group->view;
}

const struct record_cpu_limited *watch_cpu_limit_of(const struct watch *w, int32_t pid)
{
	for (uint32_t i = 0; i < w->processes.count; i++)
		if (w->processes.list[i].pid == pid)
			return cpu_limits_find(&w->cgroups.cpu, &w->processes.list[i]);
	return NULL;
}

const char *watch_disk_name(const struct watch *w, uint32_t major, uint32_t minor)
{
	return disks_find_name(&w->disks, major, minor);
}

bool watch_next_disk(const struct watch *w, uint32_t *at, struct record_dev *ret_dev,
	const char **ret_name)
{
	return disks_next_row(&w->disks, at, ret_dev, ret_name);
}

const struct watch_process *watch_processes(const struct watch *w, unsigned int *ret_count)
{
	*ret_count = w->processes.count;
	return w->processes.list;
}

void watch_get_left_out(const struct watch *w, struct watch_left_out *ret_left_out)
{
	*ret_left_out = (struct watch_left_out){
		.processes = w->processes.left_out,
		.threads = w->threads.left_out,
		.disks = w->disks.left_out,
		.filesystems = w->filesystems.left_out,
		.cgroups = w->cgroups.left_out + w->cgroups.io.left_out + w->cgroups.cpu.left_out +
			w->cgroups.freezers.left_out,
		.unread = w->cgroups.stats.late + w->threads.late + w->process_io.late + w->unread,
	};
}
