/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Who has the file open that grows on a file system; a file in /proc hangs while it has a lease. */
#include "test_fifo.h"
#include "test_watch_tree.h"

#include <signal.h>
#include <sys/stat.h>

#include "enrich/writers.h"
#include "util/cleanup.h"
#include "util/clock.h"
#include "watch/open_files.h"

#define KIB 1024

bool __real_open_files_visit(const struct open_files *files);
bool __wrap_open_files_visit(const struct open_files *files);

/* A search has time for this process alone, and for its descriptor 3; 0: for all. */
static int32_t cut_off_behind;

bool __wrap_open_files_visit(const struct open_files *files)
{
	if (!cut_off_behind)
		return __real_open_files_visit(files);
	if (files->wants(files->arg, cut_off_behind))
		(void)files->visit(files->arg, cut_off_behind, "3");
	return false;
}

struct fixture {
	struct tree *t;
	int procfs_fd;
	struct writers *writers;
	struct mount list[16];
	struct mounts mounts;
	char mount[PATH_MAX + 16];
	uint64_t incident_ns;
	uint64_t now_ns; /* of the questions */
};

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));
	char mountinfo[4 * PATH_MAX];

	snprintf(f->mount, sizeof(f->mount), "%s/full", f->t->root);
	snprintf(mountinfo, sizeof(mountinfo),
		"21 1 0:21 / / rw - btrfs /dev/sda1 rw\n22 1 0:22 / %s rw - btrfs /dev/sda2 rw\n"
		"23 1 0:23 / %s/nested rw - btrfs /dev/sda3 rw\n",
		f->mount, f->mount);
	f->mounts.list = f->list;
	mounts_parse(&f->mounts, ARRAY_SIZE(f->list), mountinfo, strlen(mountinfo));
	f->procfs_fd = tree_open_procfs(f->t);
	assert_int_equal(writers_new(f->procfs_fd, &f->writers), 0);
	f->incident_ns = f->now_ns = NSEC_PER_SEC;
	cut_off_behind = 0;
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(writers_free(f->writers));
	close(f->procfs_fd);
	return tree_fixture_free(f);
}

static void put_file(struct fixture *f, const char *name, size_t bytes)
{
	char *text = malloc(bytes);

	assert_non_null(text);
	memset(text, 'x', bytes);
	tree_put_bytes(f->t, name, text, bytes);
	free(text);
}

/* More of the same file. */
static void grow(struct fixture *f, const char *name, size_t bytes)
{
	char path[PATH_MAX + 64], *text = malloc(bytes);
	int fd;

	assert_non_null(text);
	memset(text, 'y', bytes);
	snprintf(path, sizeof(path), "%s/%s", f->t->root, name);
	fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, bytes), bytes);
	close(fd);
	free(text);
}

/* As if nobody had changed it for an hour. */
static void make_old(struct fixture *f, const char *name)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	char path[PATH_MAX + 64];

	times[1].tv_sec = (time_t)(clock_real_ns() / NSEC_PER_SEC) - 3600;
	snprintf(path, sizeof(path), "%s/%s", f->t->root, name);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static void open_file(struct fixture *f, int pid, int fd, const char *file, const char *flags)
{
	char name[64], link[PATH_MAX + 64], target[PATH_MAX + 64];

	snprintf(name, sizeof(name), "proc/%d/fdinfo/%d", pid, fd);
	tree_put(f->t, name, "pos:\t0\nflags:\t%s\nmnt_id:\t22\n", flags);
	snprintf(name, sizeof(name), "proc/%d/comm", pid);
	tree_put(f->t, name, "program%d\n", pid);
	/* For its directory. */
	snprintf(name, sizeof(name), "proc/%d/fd/x", pid);
	tree_put(f->t, name, "x");
	snprintf(link, sizeof(link), "%s/%d/fd/%d", f->t->procfs, pid, fd);
	snprintf(target, sizeof(target), "%s/%s", f->t->root, file);
	assert_int_equal(symlink(target, link), 0);
}

static struct record_writer ask(struct fixture *f, const char *mount)
{
	const struct writers_question question = {
		.mounts = &f->mounts,
		.mount = mount,
		.incident_ns = f->incident_ns,
		.now_ns = f->now_ns,
	};
	struct record_writer writer;

	writers_find(f->writers, &question, &writer);
	return writer;
}

/* What a look finds that begins now. When it returns, the thread has nothing to do. */
static struct record_writer look(struct fixture *f)
{
	struct record_writer writer;

	f->now_ns += 10 * NSEC_PER_SEC;
	(void)ask(f, f->mount);
	/* Until it has ended, it is late. No other one begins where nothing is mounted. */
	f->now_ns += WRITERS_LIMIT_NS;
	while ((writer = ask(f, "/nowhere")).search == RECORD_SEARCH_timed_out)
		usleep(1000);
	return writer;
}

static void assert_writer(const struct record_writer *writer, int pid, const char *path)
{
	char comm[RECORD_COMM_SIZE];

	snprintf(comm, sizeof(comm), "program%d", pid);
	assert_true(writer->present);
	assert_int_equal(writer->search, RECORD_SEARCH_complete);
	assert_int_equal(writer->pid, pid);
	assert_string_equal(writer->comm, comm);
	assert_non_null(strstr(writer->path, path));
}

/* Where nothing grows: of those that were changed and are open for writing, and none elsewhere. */
static void test_the_largest_file(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;

	put_file(f, "full/small", 4 * KIB);
	put_file(f, "full/large", 32 * KIB);
	put_file(f, "full/read", 64 * KIB);
	put_file(f, "full/old", 128 * KIB);
	put_file(f, "full/nested/other", 256 * KIB);
	put_file(f, "elsewhere", 256 * KIB);
	make_old(f, "full/old");
	writer = look(f);
	assert_int_equal(writer.search, RECORD_SEARCH_complete);
	assert_int_equal(writer.pid, 0);
	open_file(f, 10, 3, "full/small", "0100001");
	open_file(f, 20, 4, "full/read", "0100000");
	open_file(f, 30, 5, "elsewhere", "0100002");
	open_file(f, 40, 6, "full/large", "02100002");
	open_file(f, 50, 7, "full/old", "0100002");
	open_file(f, 60, 8, "full/nested/other", "0100002");
	f->incident_ns++;
	writer = look(f);
	assert_writer(&writer, 40, "full/large");
	assert_int_equal(writer.bytes, 32 * KIB);
	assert_int_equal(writer.grown_bytes, 0);
}

#define SIXTY "/var-lib-kubelet-pods-0123456789-volumes-csi-pvc-01234567890"

/* A record has the end of a long path. */
static void test_a_long_mount_point(void **state)
{
	struct fixture *f = *state;
	char mountinfo[4 * PATH_MAX], root[PATH_MAX + 16];
	struct record_writer writer;

	text_copy(root, sizeof(root), f->mount);
	snprintf(mountinfo, sizeof(mountinfo), "22 1 0:22 / %s" SIXTY " rw - btrfs /dev/sda2 rw\n",
		root);
	mounts_parse(&f->mounts, ARRAY_SIZE(f->list), mountinfo, strlen(mountinfo));
	put_file(f, "full" SIXTY "/large", 32 * KIB);
	put_file(f, "full/elsewhere", 64 * KIB);
	open_file(f, 10, 3, "full" SIXTY "/large", "0100001");
	open_file(f, 20, 3, "full/elsewhere", "0100001");
	text_copy(f->mount, sizeof(f->mount), "..." SIXTY);
	writer = look(f);
	assert_writer(&writer, 10, "/large");
	/* That of another one may end like it. */
	snprintf(mountinfo, sizeof(mountinfo),
		"22 1 0:22 / %s" SIXTY " rw - btrfs /dev/sda2 rw\n"
		"23 1 0:23 / /other%s rw - btrfs /dev/sda3 rw\n",
		root, SIXTY);
	mounts_parse(&f->mounts, ARRAY_SIZE(f->list), mountinfo, strlen(mountinfo));
	f->incident_ns++;
	assert_false(look(f).present);
}

/* With a mount namespace of its own, if it has mounts. */
static void put_mounts(struct fixture *f, int pid, const char *mounts)
{
	char name[64], link[PATH_MAX + 64];

	snprintf(name, sizeof(name), "proc/%d/mountinfo", pid);
	tree_put(f->t, name, "%s", mounts);
	/* For its directory. */
	snprintf(name, sizeof(name), "proc/%d/ns/x", pid);
	tree_put(f->t, name, "x");
	snprintf(link, sizeof(link), "%s/%d/ns/mnt", f->t->procfs, pid);
	assert_int_equal(symlink(*mounts ? "mnt:[4026532999]" : "mnt:[4026531841]", link), 0);
}

/* A container has paths of its own: the mount tells, also where such a path is one of the host. */
static void test_a_container(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;

	put_file(f, "full/host", 16 * KIB);
	put_file(f, "full/same", 64 * KIB);
	put_file(f, "var/ibdata1", 32 * KIB);
	put_mounts(f, 1, "");
	put_mounts(f, 10, "");
	put_mounts(f, 20,
		"21 1 0:30 / / rw - overlay overlay rw\n"
		"22 21 0:22 / /var/lib/mysql rw - btrfs /dev/sda2 rw\n");
	put_mounts(f, 30,
		"22 1 0:30 / / rw - overlay overlay rw\n"
		"23 22 0:22 / /data rw - btrfs /dev/sda2 rw\n");
	open_file(f, 10, 3, "full/host", "0100001");
	open_file(f, 30, 3, "full/same", "0100001");
	writer = look(f);
	assert_writer(&writer, 10, "full/host");
	open_file(f, 20, 3, "var/ibdata1", "0100002");
	f->incident_ns++;
	writer = look(f);
	assert_writer(&writer, 20, "var/ibdata1");
}

/* What a container writes outside of its volumes is in a directory of the host. */
static void test_the_layer_of_a_container(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;
	char mounts[16384], lower[4000];

	memset(lower, 'l', sizeof(lower) - 1);
	lower[sizeof(lower) - 1] = '\0';
	put_file(f, "log/access.log", 32 * KIB);
	put_mounts(f, 1, "");
	/* Its layer is below a mount that is nested; then in the full file system. */
	for (unsigned int i = 0; i < 2; i++) {
		snprintf(mounts, sizeof(mounts),
			"22 1 0:30 / / rw - overlay overlay "
			"rw,lowerdir=/%s,upperdir=%s%s/layer,workdir=/w\n",
			lower, f->mount, i ? "" : "/nested");
		put_mounts(f, 20 + (int)i, mounts);
		open_file(f, 20 + (int)i, 3, "log/access.log", "0100001");
	}
	writer = look(f);
	assert_writer(&writer, 21, "log/access.log");
	/* Who may not look at process 1 has the mounts of its own namespace. */
	tree_remove(f->t, "proc/1");
	tree_put(f->t, "proc/self/ns/x", "x");
	snprintf(mounts, sizeof(mounts), "%s/self/ns/mnt", f->t->procfs);
	assert_int_equal(symlink("mnt:[4026531841]", mounts), 0);
	f->incident_ns++;
	writer = look(f);
	assert_writer(&writer, 21, "log/access.log");
}

/* The kernel lists the locks of a file behind its flags. */
static void test_a_file_with_locks(void **state)
{
	char info[1024] = "pos:\t0\nflags:\t0100002\nmnt_id:\t22\nino:\t1234567\n";
	struct fixture *f = *state;
	struct record_writer writer;
	size_t len = strlen(info);

	for (int i = 0; i < 8; i++)
		len += (size_t)snprintf(info + len, sizeof(info) - len,
			"lock:\t%d: POSIX  ADVISORY  WRITE 1070 08:02:1234567 %d %d\n", i + 1,
			1073741824 + i, 1073741824 + i);
	put_file(f, "full/locked", 32 * KIB);
	open_file(f, 10, 3, "full/locked", "0100002");
	tree_put_bytes(f->t, "proc/10/fdinfo/3", info, len);
	writer = look(f);
	assert_writer(&writer, 10, "full/locked");
}

/* A large file that is written all the time does not fill a disk; a small one that grows does. */
static void test_the_file_that_grows(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;
	uint64_t grown_bytes;

	put_file(f, "full/large", 1024 * KIB);
	put_file(f, "full/growing", 4 * KIB);
	put_file(f, "full/log", 4 * KIB);
	open_file(f, 10, 3, "full/large", "0100001");
	open_file(f, 20, 3, "full/growing", "0100001");
	open_file(f, 30, 3, "full/log", "0100001");
	writer = look(f);
	assert_writer(&writer, 10, "full/large");
	grow(f, "full/growing", 128 * KIB);
	grow(f, "full/log", 32 * KIB);
	writer = look(f);
	assert_writer(&writer, 20, "full/growing");
	/* A file system may give it some more blocks than it needs. */
	assert_in_range(writer.grown_bytes, 128 * KIB, 256 * KIB);
	grown_bytes = writer.grown_bytes;
	/* It counts since the incident began, although the file does not grow any more. */
	writer = look(f);
	assert_writer(&writer, 20, "full/growing");
	assert_int_equal(writer.grown_bytes, grown_bytes);
	/* In the next incident nothing has grown yet. */
	f->incident_ns++;
	writer = look(f);
	assert_writer(&writer, 10, "full/large");
	assert_int_equal(writer.grown_bytes, 0);
}

/* As a container has them, or memory without a file: the path is that of another device. */
static void test_a_path_of_another_device(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;

	put_file(f, "full/large", 32 * KIB);
	open_file(f, 10, 3, "full/large", "0100001");
	for (unsigned int i = 0; i < f->mounts.count; i++)
		f->mounts.list[i].major = 4095;
	writer = look(f);
	assert_int_equal(writer.search, RECORD_SEARCH_complete);
	assert_int_equal(writer.pid, 0);
}

static bool knows_when_files_were_made(const struct fixture *f)
{
	struct statx st;

	return statx(AT_FDCWD, f->t->root, 0, STATX_BTIME, &st) == 0 && (st.stx_mask & STATX_BTIME);
}

/* All of it is new. */
static void test_a_file_that_is_made_meanwhile(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;

	if (!knows_when_files_were_made(f)) {
		print_message("this file system does not say when a file was made\n");
		skip();
	}
	put_file(f, "full/large", 1024 * KIB);
	open_file(f, 10, 3, "full/large", "0100001");
	writer = look(f);
	/* The clock of file systems goes on only with each tick. */
	usleep(20000);
	put_file(f, "full/new", 512 * KIB);
	open_file(f, 40, 3, "full/new", "0100001");
	writer = look(f);
	assert_writer(&writer, 40, "full/new");
	assert_in_range(writer.grown_bytes, 512 * KIB, 1024 * KIB);
}

/* It may have been large for years. */
static void test_a_file_that_is_only_opened(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;

	put_file(f, "full/large", 1024 * KIB);
	put_file(f, "full/first", 4 * KIB);
	open_file(f, 10, 3, "full/first", "0100001");
	writer = look(f);
	open_file(f, 20, 3, "full/large", "0100001");
	writer = look(f);
	assert_writer(&writer, 20, "full/large");
	assert_int_equal(writer.grown_bytes, 0);
}

/* Files beyond the table have no growth, and the record says so. */
static void test_too_many_files(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;
	char name[64];

	for (int i = 0; i < 4200; i++) {
		snprintf(name, sizeof(name), "full/%d", i);
		put_file(f, name, 1);
		open_file(f, 10, 3 + i, name, "0100001");
	}
	writer = look(f);
	assert_int_equal(writer.search, RECORD_SEARCH_cut_off);
	assert_int_equal(writer.pid, 10);
}

/* A search that is cut off sees some of the processes: the best of all searches is named. */
static void test_searches_that_are_cut_off(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;

	put_file(f, "full/large", 256 * KIB);
	open_file(f, 10, 3, "full/large", "0100001");
	put_file(f, "full/small", 4 * KIB);
	open_file(f, 20, 3, "full/small", "0100001");
	cut_off_behind = 10;
	writer = look(f);
	assert_int_equal(writer.search, RECORD_SEARCH_cut_off);
	assert_int_equal(writer.pid, 10);
	cut_off_behind = 20;
	writer = look(f);
	assert_int_equal(writer.search, RECORD_SEARCH_cut_off);
	assert_int_equal(writer.pid, 10);
	assert_string_equal(writer.comm, "program10");
	grow(f, "full/small", 128 * KIB);
	writer = look(f);
	assert_int_equal(writer.pid, 20);
	/* One that saw all is right, whatever was seen before. */
	cut_off_behind = 0;
	writer = look(f);
	assert_writer(&writer, 20, "full/small");
	f->incident_ns++;
	writer = look(f);
	assert_writer(&writer, 10, "full/large");
}

/*
 * Whoever opens the file of the process hangs until the descriptor is closed that is returned. For
 * a lease the kernel lets others wait, and tells its holder that somebody does.
 */
static int hang(struct fixture *f, int pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%d/fdinfo/3", pid);
	fd = openat(f->procfs_fd, path, O_RDWR | O_TRUNC | O_CLOEXEC);
	assert_true(fd >= 0);
	signal(SIGIO, SIG_IGN);
	assert_int_equal(fcntl(fd, F_SETLEASE, F_WRLCK), 0);
	return fd;
}

/* Returns when the thread is there. */
static void wait_hanging(struct fixture *f, int pid, int fd)
{
	char path[64];

	while (fcntl(fd, F_GETLEASE) == F_WRLCK)
		usleep(1000);
	/* Nobody comes there again. */
	snprintf(path, sizeof(path), "%d/fdinfo/3", pid);
	assert_int_equal(unlinkat(f->procfs_fd, path, 0), 0);
}

/* What was found before stays; the owner goes on, and when the thread returns it searches again. */
static void test_a_search_that_hangs(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;
	int fd;

	put_file(f, "full/a", 4 * KIB);
	open_file(f, 10, 3, "full/a", "0100001");
	writer = look(f);
	assert_writer(&writer, 10, "full/a");
	put_file(f, "full/b", 4 * KIB);
	open_file(f, 20, 3, "full/b", "0100001");
	fd = hang(f, 20);
	f->now_ns += 10 * NSEC_PER_SEC;
	(void)ask(f, f->mount);
	f->now_ns += WRITERS_LIMIT_NS - 1;
	writer = ask(f, f->mount);
	assert_writer(&writer, 10, "full/a");
	f->now_ns++;
	writer = ask(f, f->mount);
	assert_int_equal(writer.search, RECORD_SEARCH_timed_out);
	assert_int_equal(writer.pid, 10);
	/* The next incident does not take over what the last one found. */
	f->incident_ns++;
	writer = ask(f, f->mount);
	assert_int_equal(writer.search, RECORD_SEARCH_timed_out);
	assert_int_equal(writer.pid, 0);
	wait_hanging(f, 20, fd);
	close(fd);
	while ((writer = ask(f, f->mount)).search == RECORD_SEARCH_timed_out) {
		usleep(1000);
		f->now_ns += WRITERS_LIMIT_NS;
	}
	assert_writer(&writer, 10, "full/a");
}

static void test_a_thread_that_hangs_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct record_writer writer;
	int fd;

	put_file(f, "full/a", 4 * KIB);
	open_file(f, 10, 3, "full/a", "0100001");
	put_file(f, "full/b", 4 * KIB);
	open_file(f, 20, 3, "full/b", "0100001");
	fd = hang(f, 20);
	(void)ask(f, f->mount);
	wait_hanging(f, 20, fd);
	f->now_ns += WRITERS_LIMIT_NS - 1;
	writers_replace_hung(f->writers, f->now_ns);
	f->now_ns++;
	writer = ask(f, f->mount);
	assert_int_equal(writer.search, RECORD_SEARCH_timed_out);
	writers_replace_hung(f->writers, f->now_ns);
	f->incident_ns++;
	writer = look(f);
	assert_int_equal(writer.search, RECORD_SEARCH_complete);
	assert_writer(&writer, 10, "full/a");
	close(fd);
}

static void test_it_is_freed_while_it_hangs(void **state)
{
	struct fixture *f = *state;
	int fd;

	put_file(f, "full/b", 4 * KIB);
	open_file(f, 20, 3, "full/b", "0100001");
	fd = hang(f, 20);
	(void)ask(f, f->mount);
	wait_hanging(f, 20, fd);
	f->writers = writers_free(f->writers);
	close(fd);
}

#define writers_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		writers_test(test_the_largest_file),
		writers_test(test_a_long_mount_point),
		writers_test(test_a_container),
		writers_test(test_the_layer_of_a_container),
		writers_test(test_a_file_with_locks),
		writers_test(test_the_file_that_grows),
		writers_test(test_a_path_of_another_device),
		writers_test(test_a_file_that_is_made_meanwhile),
		writers_test(test_a_file_that_is_only_opened),
		writers_test(test_too_many_files),
		writers_test(test_searches_that_are_cut_off),
		writers_test(test_a_search_that_hangs),
		writers_test(test_a_thread_that_hangs_is_replaced),
		writers_test(test_it_is_freed_while_it_hangs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
