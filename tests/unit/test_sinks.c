/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* The spool and the writer: what is written arrives complete, whoever reads it meanwhile. */
#include "test_sinks_dirs.h"

#include "sinks/dir.h"

#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static void test_every_sink_of_the_list_is_in_the_table(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < SINK_COUNT; i++) {
		assert_non_null(sinks_table[i]);
		assert_non_null(sinks_table[i]->open);
		assert_non_null(sinks_table[i]->write);
		assert_non_null(sinks_table[i]->tick);
		assert_non_null(sinks_table[i]->dropped);
		assert_non_null(sinks_table[i]->close);
	}
	assert_string_equal(sinks_table[SINK_spool]->name, "spool");
	assert_string_equal(sinks_table[SINK_journald]->name, "journald");
	assert_string_equal(sinks_table[SINK_syslog]->name, "syslog");
	assert_string_equal(sinks_table[SINK_terminal]->name, "terminal");
}

static void test_which_sinks_are_used(void **state)
{
	struct dirs *d = *state;
	struct config *config = &d->config;
	const unsigned int these =
		SINK_BIT(spool) | SINK_BIT(terminal) | SINK_BIT(journald) | SINK_BIT(syslog);

	config->journal.enabled = true;
	config->syslog.enabled = true;
	assert_int_equal(sinks_used(config, true) & these, SINK_BIT(spool) | SINK_BIT(terminal));
	assert_int_equal(sinks_used(config, false) & these,
		SINK_BIT(spool) | SINK_BIT(journald) | SINK_BIT(syslog));
	config->journal.enabled = false;
	assert_int_equal(sinks_used(config, false) & these, SINK_BIT(spool) | SINK_BIT(syslog));
	config->syslog.enabled = false;
	assert_int_equal(sinks_used(config, false) & these, SINK_BIT(spool));
}

static void test_a_record_arrives_complete(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_free_ char *stored = malloc(65536), *line_buf = malloc(RECORD_LINE_SIZE);
	_cleanup_free_ struct record *r = malloc(sizeof(*r));
	const char *at = stored;
	char path[2 * PATH_MAX];
	struct stat st;

	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++)
		dirs_write_record(sinks, type, 0);
	dirs_flush(sinks);
	dirs_read(d->config.record.dir, FIRST, stored, 65536);
	for (unsigned int type = 0; type < RECORD_TYPE_COUNT; type++) {
		struct text line = { .buf = line_buf, .size = RECORD_LINE_SIZE };

		dirs_record(r, type, 0);
		record_encode_json(r, &line);
		assert_memory_equal(at, line.buf, line.len);
		at += line.len;
	}
	assert_int_equal(*at, '\0');
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
	/* The next file is ready before it is needed. */
	dirs_wait_count(d->config.record.spool_dir, "", 1);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".preallocated-"), 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
}

static void test_an_open_record_can_be_read(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false), *other;
	struct record_summary s;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	dirs_write_record(sinks, RECORD_STALL, 0);
	s = dirs_summary(d->config.record.spool_dir, FIRST_ID);
	assert_true(s.being_written);
	assert_int_equal(s.counts.records, 2);
	assert_int_equal(s.counts.garbage, 0);
	assert_false(s.counts.torn);
	/* A starting process moves records of killed daemons, but not this one, which is locked. */
	other = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(other);
	sinks_free(other);
	assert_int_equal(dirs_count(d->config.record.dir, "Z-0000.jsonl"),
		dirs_count(d->config.record.dir, ".part"));
	dirs_write_record(sinks, RECORD_STALL, 0);
	dirs_close(sinks, 0);
	dirs_flush(sinks);
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_int_equal(s.counts.records, 4);
	sinks_free(sinks);
}

static void test_an_incident_right_after_another_begins_late(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct record_summary s;

	for (unsigned int i = 0; i < 30; i++) {
		char id[RECORD_ID_SIZE];
		uint64_t begin_ns = clock_mono_ns();
		uint64_t lines = 1;

		record_make_id(DATA_REAL_NS + i * NSEC_PER_SEC, i, id);
		dirs_write_record(sinks, RECORD_OPEN, i);
		while (dirs_count(d->config.record.spool_dir, id) == 0 &&
			clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS) {
			dirs_write_record(sinks, RECORD_STALL, i);
			sinks_tick(sinks, clock_mono_ns());
			lines++;
		}
		lines -= dirs_close(sinks, i).lost[RECORD_LOST_spool_dropped];
		dirs_flush(sinks);
		s = dirs_summary(d->config.record.dir, id);
		assert_true(s.closed);
		/* The `open` line is never lost. */
		assert_int_equal(s.counts.records, lines + 1);
	}
	sinks_free(sinks);
}

static void test_an_id_that_is_taken_already(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	_cleanup_close_ int fd = -1, lock_fd = -1;
	uint64_t dropped[RECORD_LOST_COUNT] = { 0 }, begin_ns = clock_mono_ns();
	struct record_close c;
	char path[2 * PATH_MAX];

	dirs_flush(sinks);
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.spool_dir);
	lock_fd = dirs_hold(d, FIRST);
	fd = open(path, O_RDWR | O_CLOEXEC);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	while (clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS &&
		dropped[RECORD_LOST_spool_dropped] == 0) {
		dirs_pause();
		sinks_tick(sinks, clock_mono_ns());
		sinks_dropped(sinks, dropped);
	}
	dirs_write_record(sinks, RECORD_STALL, 0);
	c = dirs_close(sinks, 0);
	assert_int_equal(c.lost[RECORD_LOST_spool_dropped], 2);
	assert_int_equal(lseek(fd, 0, SEEK_END), 0);
	/* The next incident is recorded. */
	assert_int_equal(dirs_write_incident(d, sinks, 1, 3), 0);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 1);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 1);
}

/* Reads a directory into memory that is not there until `release`, or until five seconds later. */
struct held_directory {
	const char *path;
	int uffd;
	char *page;
	bool release;
	bool released;
	pthread_t reader, provider;
};

static void *held_read(void *arg)
{
	const struct held_directory *h = arg;
	_cleanup_close_ int fd = open(h->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	syscall(SYS_getdents64, fd, h->page, 4096);
	return NULL;
}

static void *held_provide(void *arg)
{
	struct held_directory *h = arg;
	struct uffdio_zeropage zeros = { .range = { (uintptr_t)h->page, 4096 } };
	uint64_t begin_ns = clock_mono_ns();

	while (!__atomic_load_n(&h->release, __ATOMIC_ACQUIRE) &&
		clock_mono_ns() - begin_ns < 5 * NSEC_PER_SEC)
		dirs_pause();
	__atomic_store_n(&h->released, true, __ATOMIC_RELEASE);
	ioctl(h->uffd, UFFDIO_ZEROPAGE, &zeros);
	return NULL;
}

/* False when this kernel cannot do it. Returns when the reader has the lock of the directory. */
static bool held_begin(struct held_directory *h, const char *path)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register area = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	struct pollfd pfd = { .events = POLLIN };

	*h = (struct held_directory){ .path = path };
	h->uffd = pfd.fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
	if (h->uffd < 0)
		return false;
	h->page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	area.range = (struct uffdio_range){ (uintptr_t)h->page, 4096 };
	assert_int_equal(ioctl(h->uffd, UFFDIO_API, &api), 0);
	assert_int_equal(ioctl(h->uffd, UFFDIO_REGISTER, &area), 0);
	assert_int_equal(pthread_create(&h->reader, NULL, held_read, h), 0);
	assert_int_equal(poll(&pfd, 1, (int)(DIRS_PATIENCE_NS / NSEC_PER_MSEC)), 1);
	assert_int_equal(pthread_create(&h->provider, NULL, held_provide, h), 0);
	return true;
}

static void held_end(struct held_directory *h)
{
	__atomic_store_n(&h->release, true, __ATOMIC_RELEASE);
	pthread_join(h->provider, NULL);
	pthread_join(h->reader, NULL);
	munmap(h->page, 4096);
	close(h->uffd);
}

/* As a member of the group that may read records can do, or whoever has memory on a disk. */
static void test_a_reader_of_the_directory_is_not_waited_for(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct held_directory held;
	struct record_summary s;

	dirs_flush(sinks);
	if (!held_begin(&held, d->config.record.spool_dir)) {
		sinks_free(sinks);
		skip();
	}
	/* None of these waits: the directory is held until they have returned. */
	dirs_write_record(sinks, RECORD_OPEN, 0);
	dirs_write_record(sinks, RECORD_STALL, 0);
	assert_int_equal(dirs_close(sinks, 0).lost[RECORD_LOST_spool_dropped], 0);
	assert_true(sinks_keep_records(sinks));
	held_end(&held);
	dirs_flush(sinks);
	assert_false(sinks_keep_records(sinks));
	s = dirs_summary(d->config.record.dir, FIRST_ID);
	assert_true(s.closed);
	assert_int_equal(s.counts.records, 3);
	sinks_free(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ""), 0);
}

/*
 * Opens an incident after it has been told to, or closes one then, with a lock that must not
 * outlive it.
 */
static void be_killed(const struct dirs *d, int in, int out, int locked_fd, bool closes)
{
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	char c = 0;

	dirs_flush(sinks);
	flock(locked_fd, LOCK_EX | LOCK_NB);
	if (closes) {
		dirs_write_record(sinks, RECORD_OPEN, 0);
		dirs_wait_count(d->config.record.spool_dir, FIRST, 1);
	}
	if (write(out, &c, 1) != 1 || read(in, &c, 1) != 1)
		_exit(1);
	if (closes)
		(void)dirs_close(sinks, 0);
	else
		dirs_write_record(sinks, RECORD_OPEN, 0);
	if (write(out, &c, 1) != 1)
		_exit(1);
	pause();
	_exit(1);
}

static void kill_while_a_reader_has_the_directory(const struct dirs *d, bool closes)
{
	struct held_directory held;
	int to[2], from[2], fd;
	uint64_t begin_ns;
	char c = 0, path[2 * PATH_MAX];
	struct sinks *sinks;
	pid_t child;

	assert_int_equal(pipe(to) | pipe(from), 0);
	snprintf(path, sizeof(path), "%s/lock", d->config.record.dir);
	dirs_wait_threads();
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		be_killed(d, to[0], from[1], fd, closes);
	}
	assert_int_equal(read(from[0], &c, 1), 1);
	if (!held_begin(&held, d->config.record.spool_dir)) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		skip();
	}
	assert_int_equal(write(to[1], &c, 1), 1);
	assert_int_equal(read(from[0], &c, 1), 1);
	/* Time for the thread to come to the directory. */
	for (unsigned int i = 0; i < 50; i++)
		dirs_pause();
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
	kill(child, SIGKILL);
	begin_ns = clock_mono_ns();
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
		dirs_pause();
	}
	assert_false(__atomic_load_n(&held.released, __ATOMIC_ACQUIRE));
	held_end(&held);
	waitpid(child, NULL, 0);
	close(fd);
	assert_int_equal(unlink(path), 0);
	/* The next one files the record. */
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_flush(sinks);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 1 + closes);
	sinks_free(sinks);
	for (unsigned int i = 0; i < 2; i++) {
		close(to[i]);
		close(from[i]);
	}
}

/* A thread that the kill does not reach keeps nothing of the process but what it hangs at. */
static void test_a_kill_while_a_file_is_to_be_named(void **state)
{
	kill_while_a_reader_has_the_directory(*state, false);
}

static void test_a_kill_while_the_next_file_is_to_be_made(void **state)
{
	kill_while_a_reader_has_the_directory(*state, true);
}

/* The daemon starts meanwhile: its first incidents may have no file, but there is a daemon. */
static void test_a_start_while_a_reader_has_the_directory(void **state)
{
	const struct dirs *d = *state;
	struct held_directory held;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);

	sinks_free(sinks);
	if (!held_begin(&held, d->config.record.spool_dir))
		skip();
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	assert_false(__atomic_load_n(&held.released, __ATOMIC_ACQUIRE));
	held_end(&held);
	dirs_flush(sinks);
	assert_int_equal(dirs_write_incident(d, sinks, 0, 3), 0);
	dirs_flush(sinks);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 5);
	sinks_free(sinks);
}

/* Such as one that removes what it does not know. The next incident is recorded. */
static void test_a_file_that_is_removed_before_it_is_used(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	uint64_t dropped[RECORD_LOST_COUNT] = { 0 }, begin_ns = clock_mono_ns();
	char command[PATH_MAX + 64];

	dirs_flush(sinks);
	snprintf(command, sizeof(command), "rm '%s'/.preallocated-*", d->config.record.spool_dir);
	assert_int_equal(system(command), 0);
	dirs_write_record(sinks, RECORD_OPEN, 0);
	dirs_write_record(sinks, RECORD_STALL, 0);
	while (clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS &&
		dropped[RECORD_LOST_spool_dropped] == 0) {
		dirs_pause();
		sinks_tick(sinks, clock_mono_ns());
		sinks_dropped(sinks, dropped);
	}
	/* All that was written to it until then. */
	assert_in_range(dropped[RECORD_LOST_spool_dropped], 1, 2);
	dirs_close(sinks, 0);
	assert_int_equal(dirs_write_incident(d, sinks, 1, 3), 0);
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.dir, ".jsonl"), 1);
	sinks_free(sinks);
}

/* A member of the group that may read records can lock what it has open, as long as it likes. */
static void test_a_reader_cannot_keep_a_record_from_being_moved(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	struct flock read_lock = { .l_type = F_RDLCK, .l_whence = SEEK_SET };
	uint64_t begin_ns = clock_mono_ns();
	_cleanup_close_ int fd = -1;
	char path[2 * PATH_MAX];
	struct stat st;

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	snprintf(path, sizeof(path), "%s/" FIRST, d->config.record.spool_dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_OFD_SETLK, &read_lock), 0);
	dirs_close(sinks, 0);
	/* It is locked until its file is closed, for which the loop may have to go on. */
	while (flock(fd, LOCK_SH | LOCK_NB) < 0) {
		assert_true(clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS);
		dirs_pause();
		sinks_tick(sinks, clock_mono_ns());
	}
	dirs_flush(sinks);
	assert_int_equal(dirs_count(d->config.record.spool_dir, ".jsonl"), 0);
	assert_true(dirs_summary(d->config.record.dir, FIRST_ID).closed);
	/* What the locks are on can only be opened by root. */
	snprintf(path, sizeof(path), "%s/" LOCK_NAME, d->config.record.spool_dir);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	sinks_free(sinks);
}

static void test_a_spool_on_a_disk_is_refused(void **state)
{
	struct dirs *d = *state;
	const struct sinks_options options = { .config = &d->config, .wanted = SINK_BIT(spool) };
	char dir[] = "/var/tmp/iostall-sinks-XXXXXX";
	struct sinks *sinks;

	assert_non_null(mkdtemp(dir));
	if (file_is_in_memory(dir)) {
		rmdir(dir);
		print_message("/var/tmp is on tmpfs\n");
		skip();
	}
	text_copy(d->config.record.spool_dir, PATH_MAX, dir);
	assert_int_equal(sinks_new(&options, &sinks), -EMEDIUMTYPE);
	/* Nothing was made in it. */
	assert_int_equal(rmdir(dir), 0);
}

#define NOBODY 65534

static int open_spool(const struct dirs *d)
{
	const struct sinks_options options = { .config = &d->config, .wanted = SINK_BIT(spool) };
	struct sinks *sinks = NULL;
	int r = sinks_new(&options, &sinks);

	if (r == 0)
		sinks_free(sinks);
	return r;
}

/* Whoever made it first, as in /dev/shm, would take away or forge what root writes. */
static void test_a_spool_of_somebody_else_is_refused(void **state)
{
	struct dirs *d = *state;
	char target[PATH_MAX];

	if (geteuid() != 0)
		skip();
	assert_int_equal(mkdir(d->config.record.spool_dir, 0755), 0);
	assert_int_equal(chown(d->config.record.spool_dir, NOBODY, 0), 0);
	assert_int_equal(open_spool(d), -DIR_EUNSAFE);
	assert_int_equal(chown(d->config.record.spool_dir, 0, 0), 0);
	assert_int_equal(open_spool(d), 0);
	/* A group that may write was given that by its owner; everybody was not meant to. */
	assert_int_equal(chmod(d->config.record.spool_dir, 0770), 0);
	assert_int_equal(open_spool(d), 0);
	assert_int_equal(chmod(d->config.record.spool_dir, 01777), 0);
	assert_int_equal(open_spool(d), -DIR_EUNSAFE);
	assert_int_equal(chmod(d->config.record.spool_dir, 0750), 0);
	/* Whoever may rename it puts another one there; in a sticky directory that is its owner. */
	assert_int_equal(chown(d->root, NOBODY, 0), 0);
	assert_int_equal(open_spool(d), -DIR_EUNSAFE);
	assert_int_equal(chown(d->root, 0, 0), 0);
	assert_int_equal(chmod(d->root, 0777), 0);
	assert_int_equal(open_spool(d), -DIR_EUNSAFE);
	assert_int_equal(chmod(d->root, 01777), 0);
	assert_int_equal(open_spool(d), 0);
	snprintf(target, sizeof(target), "%s/elsewhere", d->root);
	assert_int_equal(rename(d->config.record.spool_dir, target), 0);
	assert_int_equal(symlink(target, d->config.record.spool_dir), 0);
	assert_int_equal(open_spool(d), -ENOTDIR);
	assert_non_null(strstr(dir_strerror(-ENOTDIR), "symbolic link"));
}

/* Its owner may be another user on purpose. */
static void test_durable_directories(void **state)
{
	const struct dirs *d = *state;
	const char *dir = d->config.record.dir;
	int fd;

	if (geteuid() != 0)
		skip();
	fd = dir_open_or_make(dir, DIR_DURABLE, FILE_NO_GROUP);
	assert_true(fd >= 0);
	assert_int_equal(chown(dir, NOBODY, NOBODY), 0);
	assert_int_equal(dir_check(fd, DIR_DURABLE), 0);
	assert_int_equal(chmod(dir, 0770), 0);
	assert_int_equal(dir_check(fd, DIR_DURABLE), 0);
	assert_int_equal(chmod(dir, 0777), 0);
	assert_int_equal(dir_check(fd, DIR_DURABLE), -DIR_EUNSAFE);
	assert_int_equal(chmod(dir, 0750), 0);
	/* Anybody could have made it there. */
	assert_int_equal(chmod(d->root, 01777), 0);
	assert_int_equal(dir_check(fd, DIR_DURABLE), -DIR_EUNSAFE);
	assert_int_equal(chown(dir, 0, NOBODY), 0);
	assert_int_equal(dir_check(fd, DIR_DURABLE), 0);
	assert_int_equal(chmod(d->root, 0777), 0);
	assert_int_equal(dir_check(fd, DIR_DURABLE), -DIR_EUNSAFE);
	assert_non_null(strstr(dir_strerror(-DIR_EUNSAFE), "others could change the records"));
	close(fd);
}

/* Its file is let go by another thread, which the writer does not wait a second for. */
static void test_a_record_is_moved_without_a_tick(void **state)
{
	const struct dirs *d = *state;
	struct sinks *sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	const uint64_t begin_ns = clock_mono_ns();

	assert_true(dirs_open(d, sinks, 0, DIRS_PATIENCE_NS));
	/* Its beginning is saved as soon as the sink knows that it has its name. */
	while (dirs_count(d->config.record.dir, ".part") == 0 &&
		clock_mono_ns() - begin_ns < DIRS_PATIENCE_NS) {
		sinks_tick(sinks, clock_mono_ns());
		dirs_pause();
	}
	dirs_close(sinks, 0);
	dirs_wait_count(d->config.record.spool_dir, FIRST, 0);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 2);
	sinks_free(sinks);
}

static void test_spool_and_durable_directory_may_be_the_same(void **state)
{
	struct dirs *d = *state;
	struct sinks *sinks;

	text_copy(d->config.record.dir, PATH_MAX, d->config.record.spool_dir);
	sinks = dirs_start(d, SINK_BIT(spool), -1, false);
	dirs_write_incident(d, sinks, 0, 3);
	dirs_flush(sinks);
	sinks_free(sinks);
	assert_int_equal(dirs_summary(d->config.record.dir, FIRST_ID).counts.records, 5);
	assert_int_equal(dirs_count(d->config.record.dir, ""), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_sink_of_the_list_is_in_the_table),
		WITH_DIRS(test_which_sinks_are_used),
		WITH_DIRS(test_a_record_arrives_complete),
		WITH_DIRS(test_an_open_record_can_be_read),
		WITH_DIRS(test_an_incident_right_after_another_begins_late),
		WITH_DIRS(test_an_id_that_is_taken_already),
		WITH_DIRS(test_a_reader_of_the_directory_is_not_waited_for),
		WITH_DIRS(test_a_kill_while_a_file_is_to_be_named),
		WITH_DIRS(test_a_kill_while_the_next_file_is_to_be_made),
		WITH_DIRS(test_a_start_while_a_reader_has_the_directory),
		WITH_DIRS(test_a_file_that_is_removed_before_it_is_used),
		WITH_DIRS(test_a_reader_cannot_keep_a_record_from_being_moved),
		WITH_DIRS(test_a_spool_on_a_disk_is_refused),
		WITH_DIRS(test_a_spool_of_somebody_else_is_refused),
		WITH_DIRS(test_durable_directories),
		WITH_DIRS(test_a_record_is_moved_without_a_tick),
		WITH_DIRS(test_spool_and_durable_directory_may_be_the_same),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
