/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/*
 * What a process is: its unit or container, and a cache that never mistakes one process for
 * another.
 */
#include "test_watch_tree.h"

#include "enrich/process.h"
#include "iostall/event.h"
#include "util/cleanup.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void assert_unit(const char *cgroup, const char *want)
{
	char unit[RECORD_LIST_SIZE];

	memset(unit, 0x5a, sizeof(unit));
	process_parse_cgroup(cgroup, strlen(cgroup), unit, sizeof(unit));
	assert_string_equal(unit, want);
}

static void test_systemd_units(void **state)
{
	(void)state;
	assert_unit("0::/system.slice/mariadb.service\n", "mariadb.service");
	assert_unit("0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n",
		"postgresql@15-main.service");
	/* A service that makes cgroups of its own. */
	assert_unit("0::/system.slice/mongod.service/workers/3\n", "mongod.service");
	assert_unit("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope");
	assert_unit("0::/user.slice/user-1000.slice/user@1000.service/app.slice/app-x.scope\n",
		"app-x.scope");
	assert_unit("0::/system.slice\n", "system.slice");
	assert_unit("0::/init.scope", "init.scope");
}

static void test_no_unit(void **state)
{
	(void)state;
	assert_unit("", "");
	assert_unit("\n", "");
	assert_unit("0::/\n", "");
	assert_unit("0::/plain/group\n", "");
	assert_unit("no colons at all.service\n", "");
	assert_unit("0:one.service\n", "");
	/* A suffix alone is no name. */
	assert_unit("0::/.service\n", "");
	assert_unit("0::/a/.scope/b\n", "");
}

static void test_containers(void **state)
{
	(void)state;
	/* docker, cgroup v2 with systemd and without */
	assert_unit("0::/system.slice/docker-" ID ".scope\n", "container:0123456789ab");
	assert_unit("0::/docker/" ID "\n", "container:0123456789ab");
	/* podman, as root and as a user */
	assert_unit("0::/machine.slice/libpod-" ID ".scope/container\n", "container:0123456789ab");
	assert_unit("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID
		    ".scope\n",
		"container:0123456789ab");
	/* Kubernetes, by containerd and by CRI-O; the pod's id has dashes and is no container's */
	assert_unit("0::/kubepods.slice/kubepods-burstable.slice/"
		    "kubepods-burstable-pod11111111_2222_3333_4444_555555555555.slice/"
		    "cri-containerd-" ID ".scope\n",
		"container:0123456789ab");
	assert_unit("0::/kubepods/besteffort/pod11111111-2222-3333-4444-555555555555/" ID "\n",
		"container:0123456789ab");
	/* One digit too few is not an id. */
	assert_unit("0::/docker/0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n",
		"");
}

static void test_version_1(void **state)
{
	(void)state;
	assert_unit("12:pids:/system.slice/mysql.service\n"
		    "11:blkio:/system.slice/mysql.service\n"
		    "1:name=systemd:/system.slice/mysql.service\n"
		    "0::/system.slice/mysql.service\n",
		"mysql.service");
	/* The first line that says anything. */
	assert_unit("9:name=systemd:/\n8:blkio:/\n1:cpu,cpuacct:/docker/" ID "\n",
		"container:0123456789ab");
	assert_unit("3:blkio:/\n2:cpu:/\n1:name=systemd:/system.slice/redis-server.service\n",
		"redis-server.service");
}

static void test_unit_longer_than_its_place(void **state)
{
	char unit[16];
	const char *text = "0::/system.slice/a-very-long-name-of-a-unit.service\n";

	(void)state;
	/* Half a name would be another unit's. */
	process_parse_cgroup(text, strlen(text), unit, sizeof(unit));
	assert_string_equal(unit, "");
}

static void assert_unit_of_names(const char *leaf, const char *parent, const char *want)
{
	char unit[RECORD_LIST_SIZE];

	memset(unit, 0x5a, sizeof(unit));
	process_unit_of_names(leaf, parent, unit, sizeof(unit));
	assert_string_equal(unit, want);
}

static void test_unit_of_names(void **state)
{
	char leaf[EVENT_CGROUP_NAME_SIZE];

	(void)state;
	assert_unit_of_names("mariadb.service", "system.slice", "mariadb.service");
	assert_unit_of_names("workers", "mongod.service", "mongod.service");
	assert_unit_of_names("init.scope", "", "init.scope");
	assert_unit_of_names("docker-" ID ".scope", "system.slice", "container:0123456789ab");
	assert_unit_of_names("container", "libpod-" ID ".scope", "container:0123456789ab");
	assert_unit_of_names(ID, "docker", "container:0123456789ab");
	/* cgroup v1: no names. The root; and a group too deep for two names to tell. */
	assert_unit_of_names("", "", "");
	assert_unit_of_names("/", "", "");
	assert_unit_of_names("3", "workers", "");
	assert_unit_of_names(".service", ".scope", "");
	/* Digits of two names are not one id. */
	assert_unit_of_names(&ID[32], &ID[32], "");
	/* A name that is cut off says nothing, and its parent would say something wrong. */
	memset(leaf, 'x', sizeof(leaf) - 1);
	leaf[sizeof(leaf) - 1] = '\0';
	assert_unit_of_names(leaf, "system.slice", "");
	memcpy(leaf + 8, ID, 64);
	assert_unit_of_names(leaf, "system.slice", "container:0123456789ab");
}

/* Start in clock ticks, of which there are sysconf(_SC_CLK_TCK) a second. */
static uint64_t start_ns(uint64_t ticks)
{
	return ticks * (NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK));
}

static void put_process(struct tree *t, int pid, unsigned int ticks, const char *exe,
	const char *unit)
{
	char name[64], path[2 * PATH_MAX];

	snprintf(name, sizeof(name), "proc/%d/task/%d/stat", pid, pid);
	tree_put(t, name, "%d (a) b) S 1 %d %d 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 %u 100 200\n",
		pid, pid, pid, ticks);
	snprintf(name, sizeof(name), "proc/%d/cgroup", pid);
	tree_put(t, name, "0::/system.slice/%s\n", unit);
	snprintf(path, sizeof(path), "%s/proc/%d/exe", t->root, pid);
	unlink(path);
	assert_int_equal(symlink(exe, path), 0);
}

struct lookup {
	struct tree *t;
	int procfs;
	struct process_cache cache;
};

static int setup(void **state)
{
	struct lookup *l = tree_fixture_new(sizeof(*l));

	l->procfs = tree_open_procfs(l->t);
	*state = l;
	return process_cache_init(&l->cache, l->procfs);
}

static int teardown(void **state)
{
	struct lookup *l = *state;

	process_cache_done(&l->cache);
	close(l->procfs);
	return tree_fixture_free(l);
}

#define lookup_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

static void wait_for_thread(struct lookup *l)
{
	for (unsigned int i = 0; i < 500 && renewable_worker_is_busy(&l->cache.worker); i++)
		usleep(10000);
	assert_false(renewable_worker_is_busy(&l->cache.worker));
}

/* On a busy host the thread may answer later than in the time that a lookup waits for it. */
static const struct process_program *lookup(struct lookup *l, int32_t pid, uint64_t ns)
{
	const struct process_program *p = process_lookup(&l->cache, pid, ns);

	if (!p) {
		wait_for_thread(l);
		p = process_lookup(&l->cache, pid, ns);
	}
	return p;
}

static void learn(struct lookup *l, int32_t pid, const char *comm)
{
	struct watch_process process = { .pid = pid };

	text_copy(process.comm, sizeof(process.comm), comm);
	process_learn(&l->cache, &process, 1);
	wait_for_thread(l);
}

static void test_lookup(void **state)
{
	struct lookup *l = *state;
	const struct process_program *p;

	put_process(l->t, 7, 1234, "/usr/sbin/mariadbd", "mariadb.service");
	p = lookup(l, 7, start_ns(1234));
	assert_non_null(p);
	assert_string_equal(p->exe, "/usr/sbin/mariadbd");
	/* For it the kernel takes cgroup_mutex. */
	assert_string_equal(p->unit, "");
	/* The kernel's start is exact, /proc rounds it down to a tick. */
	assert_ptr_equal(lookup(l, 7, start_ns(1235) - 1), p);
	assert_null(lookup(l, 7, start_ns(1235)));
	assert_null(lookup(l, 8, start_ns(1234)));
}

/* The number and the begin are those of the one before. */
static void test_another_program(void **state)
{
	struct lookup *l = *state;

	put_process(l->t, 7, 1234, "/usr/bin/dash", "mariadb.service");
	tree_put(l->t, "proc/7/comm", "sh\n");
	assert_string_equal(lookup(l, 7, start_ns(1234))->exe, "/usr/bin/dash");
	put_process(l->t, 7, 1234, "/usr/sbin/mariadbd", "mariadb.service");
	assert_string_equal(lookup(l, 7, start_ns(1234))->exe, "/usr/bin/dash");
	tree_put(l->t, "proc/7/comm", "mariadbd\n");
	lookup(l, 7, start_ns(1234));
	wait_for_thread(l);
	assert_string_equal(lookup(l, 7, start_ns(1234))->exe, "/usr/sbin/mariadbd");
	/* Its unit is learned all the same. */
	learn(l, 7, "mariadbd");
	assert_string_equal(lookup(l, 7, start_ns(1234))->unit, "mariadb.service");
}

/* A process that has ended is still known; its id given away is another process. */
static void test_pid_reuse(void **state)
{
	struct lookup *l = *state;
	const struct process_program *p;

	put_process(l->t, 7, 1234, "/usr/sbin/mariadbd", "mariadb.service");
	assert_non_null(lookup(l, 7, start_ns(1234)));
	tree_remove(l->t, "proc/7");
	p = lookup(l, 7, start_ns(1234));
	assert_non_null(p);
	assert_string_equal(p->exe, "/usr/sbin/mariadbd");

	put_process(l->t, 7, 9999, "/usr/bin/postgres", "postgresql.service");
	p = lookup(l, 7, start_ns(9999));
	assert_non_null(p);
	assert_string_equal(p->exe, "/usr/bin/postgres");
	p = lookup(l, 7, start_ns(1234));
	assert_non_null(p);
	assert_string_equal(p->exe, "/usr/sbin/mariadbd");
	/* A third, between them, that nobody ever saw. */
	assert_null(lookup(l, 7, start_ns(5000)));
}

static void test_what_cannot_be_read(void **state)
{
	struct lookup *l = *state;
	const struct process_program *p;

	put_process(l->t, 7, 1234, "/usr/sbin/mariadbd", "mariadb.service");
	tree_remove(l->t, "proc/7/exe");
	tree_remove(l->t, "proc/7/cgroup");
	learn(l, 7, "mariadbd");
	p = lookup(l, 7, start_ns(1234));
	assert_non_null(p);
	assert_string_equal(p->exe, "");
	assert_string_equal(p->unit, "");
	tree_put(l->t, "proc/8/task/8/stat", "8 (cut off) S 1 2 3\n");
	assert_null(lookup(l, 8, start_ns(1234)));
	tree_put(l->t, "proc/9/task/9/stat", "no name\n");
	assert_null(lookup(l, 9, start_ns(1234)));
}

/* Once under each name; what an incident has found is completed afterwards. */
static void test_learning(void **state)
{
	struct lookup *l = *state;
	const struct process_program *p;

	put_process(l->t, 7, 1234, "/bin/sh", "mariadb.service");
	assert_non_null(lookup(l, 7, start_ns(1234)));
	learn(l, 7, "sh");
	p = lookup(l, 7, start_ns(1234));
	assert_non_null(p);
	assert_string_equal(p->exe, "/bin/sh");
	assert_string_equal(p->unit, "mariadb.service");

	put_process(l->t, 7, 1234, "/usr/sbin/mariadbd", "other.service");
	learn(l, 7, "sh");
	assert_string_equal(lookup(l, 7, start_ns(1234))->exe, "/bin/sh");
	learn(l, 7, "mariadbd");
	p = lookup(l, 7, start_ns(1234));
	assert_string_equal(p->exe, "/usr/sbin/mariadbd");
	assert_string_equal(p->unit, "other.service");
}

static bool hangs(const struct renewable_worker *w)
{
	for (unsigned int i = 0; i < RENEWABLE_WORKER_HUNG_MAX; i++)
		if (renewable_worker_hangs_at(w, i))
			return true;
	return false;
}

/* Nobody writes to the FIFO, so the thread that opens it hangs like one that waits for a lock. */
static void hang(struct lookup *l, int pid)
{
	char path[2 * PATH_MAX];

	put_process(l->t, pid, 1234, "/bin/x", "x.service");
	snprintf(path, sizeof(path), "%s/%d/task/%d/stat", l->t->procfs, pid, pid);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
}

/* Has the thread that hangs go on, since a sanitizer waits for its memory. */
static void let_go(struct lookup *l, int pid)
{
	char path[2 * PATH_MAX];
	int fd;

	snprintf(path, sizeof(path), "%s/%d/task/%d/stat", l->t->procfs, pid, pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
}

/* All questions of an incident wait for 20 ms together, and the next ones are answered again. */
static void test_process_that_hangs(void **state)
{
	struct lookup *l = *state;
	struct watch_process watched = { .pid = 8, .comm = "x" };
	uint64_t begin_ns = clock_mono_ns();
	char path[64];

	hang(l, 7);
	hang(l, 8);
	put_process(l->t, 9, 1234, "/usr/sbin/mariadbd", "mariadb.service");
	for (unsigned int i = 0; i < 100; i++) {
		assert_null(process_lookup(&l->cache, 7, start_ns(1234)));
		assert_null(process_lookup(&l->cache, 9, start_ns(1234)));
		assert_false(process_read_fd(&l->cache, 9, 3, path, sizeof(path)));
	}
	print_message("300 questions took %.1f ms\n",
		(double)(clock_mono_ns() - begin_ns) / NSEC_PER_MSEC);
	assert_in_range(clock_mono_ns() - begin_ns, 0, 500 * NSEC_PER_MSEC);
	assert_int_equal(l->cache.unread, 300);
	let_go(l, 7);
	wait_for_thread(l);
	assert_non_null(lookup(l, 9, start_ns(1234)));

	/* While idle, another thread takes the place of one that hangs, and asks the others. */
	process_learn(&l->cache, &watched, 1);
	process_learn(&l->cache, &watched, 1);
	assert_true(renewable_worker_is_busy(&l->cache.worker));
	l->cache.worker.started_ns -= 60 * NSEC_PER_SEC;
	process_learn(&l->cache, &watched, 1);
	assert_false(renewable_worker_is_busy(&l->cache.worker));
	learn(l, 9, "mariadbd");
	assert_string_equal(lookup(l, 9, start_ns(1234))->unit, "mariadb.service");
	let_go(l, 8);
	for (unsigned int i = 0; i < 500 && hangs(&l->cache.worker); i++)
		usleep(10000);
}

/* Those beside one that hangs are asked for again, and so is one that could not be read once. */
static void test_neighbours_of_one_that_hangs(void **state)
{
	struct lookup *l = *state;
	struct watch_process list[PROCESS_LEARN_MAX] = { 0 };
	unsigned int learned = 0;
	char path[2 * PATH_MAX];
	int fd;

	for (int i = 0; i < PROCESS_LEARN_MAX; i++) {
		list[i] = (struct watch_process){ .pid = 10 + i, .comm = "x" };
		put_process(l->t, 10 + i, 1234, "/bin/x", "x.service");
	}
	tree_remove(l->t, "proc/17/task");
	hang(l, 12);
	snprintf(path, sizeof(path), "%s/12/cgroup", l->t->procfs);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	alarm(20);
	process_learn(&l->cache, list, PROCESS_LEARN_MAX);
	/* It opens when the thread has got as far as this process. */
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	close(fd);
	l->cache.worker.started_ns -= 60 * NSEC_PER_SEC;
	for (unsigned int i = 0; i < 3; i++) {
		process_learn(&l->cache, list, PROCESS_LEARN_MAX);
		wait_for_thread(l);
		put_process(l->t, 17, 1234, "/bin/x", "x.service");
	}
	for (unsigned int i = 0; i < PROCESS_CACHE_MAX; i++)
		learned += l->cache.entries[i].start_ticks != 0;
	print_message("%u of 7 neighbours learned\n", learned);
	let_go(l, 12);
	for (unsigned int i = 0; i < 500 && hangs(&l->cache.worker); i++)
		usleep(10000);
	alarm(0);
	assert_int_equal(learned, 7);
}

static void test_descriptor(void **state)
{
	struct lookup *l = *state;
	char path[2 * PATH_MAX];

	put_process(l->t, 7, 1234, "/bin/x", "x.service");
	tree_put(l->t, "proc/7/fd/x", "%s", "");
	snprintf(path, sizeof(path), "%s/7/fd/41", l->t->procfs);
	assert_int_equal(symlink("/srv/table", path), 0);
	assert_true(process_read_fd(&l->cache, 7, 41, path, sizeof(path)));
	assert_string_equal(path, "/srv/table");
	assert_false(process_read_fd(&l->cache, 7, 42, path, sizeof(path)));
}

/* The one not used for longest makes room. */
static void test_cache_is_bounded(void **state)
{
	const int other = PROCESS_CACHE_MAX + 1;
	struct lookup *l = *state;

	for (int pid = 1; pid <= PROCESS_CACHE_MAX; pid++) {
		put_process(l->t, pid, 1234, "/bin/x", "x.service");
		assert_non_null(lookup(l, pid, start_ns(1234)));
	}
	assert_non_null(lookup(l, 1, start_ns(1234)));
	put_process(l->t, other, 1234, "/bin/y", "y.service");
	assert_non_null(lookup(l, other, start_ns(1234)));
	tree_remove(l->t, "proc");
	assert_non_null(lookup(l, 1, start_ns(1234)));
	assert_null(lookup(l, 2, start_ns(1234)));
	assert_non_null(lookup(l, 3, start_ns(1234)));
	assert_string_equal(lookup(l, other, start_ns(1234))->exe, "/bin/y");
}

/* With more programs than there is place for, the one not used for longest is asked for again. */
static void test_programs_are_bounded(void **state)
{
	struct lookup *l = *state;
	char exe[32];

	for (int pid = 1; pid <= PROCESS_PROGRAMS_MAX; pid++) {
		snprintf(exe, sizeof(exe), "/bin/%d", pid);
		put_process(l->t, pid, 1234, exe, "x.service");
		assert_string_equal(lookup(l, pid, start_ns(1234))->exe, exe);
	}
	put_process(l->t, 1000, 1234, "/bin/2", "x.service");
	assert_string_equal(lookup(l, 1000, start_ns(1234))->exe, "/bin/2");
	assert_string_equal(lookup(l, 1, start_ns(1234))->exe, "/bin/1");
	put_process(l->t, 1001, 1234, "/bin/other", "x.service");
	assert_string_equal(lookup(l, 1001, start_ns(1234))->exe, "/bin/other");
	tree_remove(l->t, "proc");
	assert_string_equal(lookup(l, 1, start_ns(1234))->exe, "/bin/1");
	assert_string_equal(lookup(l, 2, start_ns(1234))->exe, "/bin/2");
	assert_null(lookup(l, 3, start_ns(1234)));
	assert_string_equal(lookup(l, 4, start_ns(1234))->exe, "/bin/4");
	assert_string_equal(lookup(l, 1001, start_ns(1234))->exe, "/bin/other");
}

/* Once each of them is known, nothing is read. */
static void test_as_many_as_are_watched(void **state)
{
	static struct watch_process list[1000];
	struct lookup *l = *state;

	for (int i = 0; i < 1000; i++) {
		list[i] = (struct watch_process){ .pid = 10 + i, .comm = "postgres" };
		put_process(l->t, 10 + i, 1234, "/usr/lib/postgresql/17/bin/postgres",
			"postgresql@17-main.service");
	}
	for (unsigned int i = 0; i < 1000 / PROCESS_LEARN_MAX; i++) {
		process_learn(&l->cache, list, 1000);
		wait_for_thread(l);
	}
	tree_remove(l->t, "proc");
	process_learn(&l->cache, list, 1000);
	assert_false(l->cache.asked);
	for (int i = 0; i < 1000; i++)
		assert_string_equal(process_lookup(&l->cache, 10 + i, start_ns(1234))->unit,
			"postgresql@17-main.service");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_systemd_units),
		cmocka_unit_test(test_no_unit),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_version_1),
		cmocka_unit_test(test_unit_longer_than_its_place),
		cmocka_unit_test(test_unit_of_names),
		lookup_test(test_lookup),
		lookup_test(test_learning),
		lookup_test(test_process_that_hangs),
		lookup_test(test_neighbours_of_one_that_hangs),
		lookup_test(test_descriptor),
		lookup_test(test_another_program),
		lookup_test(test_pid_reuse),
		lookup_test(test_what_cannot_be_read),
		lookup_test(test_cache_is_bounded),
		lookup_test(test_programs_are_bounded),
		lookup_test(test_as_many_as_are_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
