/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* What doctor says of probes, of the kernel's pressure trigger, of sinks and of databases. */
#include "test_watch_tree.h"

#include <errno.h>

#include "cli/doctor.h"
#include "probes/probe.h"
#include "util/cleanup.h"
#include "util/text.h"

#define POSTGRES(number)                                                                           \
	{                                                                                          \
		.pid = (number), .comm = "postgres"                                                \
	}

struct fixture {
	struct tree *tree;
	struct options o;
	struct config config;
	struct doctor d;
	char *out;
	size_t out_size;
};

/* Nothing has been said. */
static void begin(struct fixture *f)
{
	f->d.out = open_memstream(&f->out, &f->out_size);
	assert_non_null(f->d.out);
}

static void end(struct fixture *f)
{
	fclose(f->d.out);
	free(f->out);
}

static int setup(void **state)
{
	struct fixture *f = test_calloc(1, sizeof(*f));
	void *tree;

	tree_setup(&tree);
	f->tree = tree;
	config_set_defaults(&f->config);
	f->o.procfs = f->tree->procfs;
	f->o.json = true;
	f->d = (struct doctor){ .o = &f->o, .config = &f->config };
	begin(f);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	void *tree = f->tree;

	end(f);
	tree_teardown(&tree);
	test_free(f);
	return 0;
}

static void assert_said(struct fixture *f, const char *expected)
{
	fflush(f->d.out);
	assert_string_equal(f->out, expected);
	end(f);
	begin(f);
}

static void parse(struct fixture *f, const char *text)
{
	char error[CONFIG_ERROR_SIZE];

	assert_int_equal(config_parse_text(&f->config, "x", text, strlen(text), error), 0);
}

static void put_parent(struct fixture *f, int pid, const char *comm, int parent)
{
	char name[32];

	snprintf(name, sizeof(name), "proc/%d/status", pid);
	tree_put(f->tree, name, "Name:\t%s\nState:\tS\nTgid:\t%d\nPid:\t%d\nPPid:\t%d\n", comm, pid,
		pid, parent);
}

/*
 * Two servers of one program, one of them with a worker of a worker and started by another program.
 */
static void test_processes(void **state)
{
	static const struct watch_process list[] = { POSTGRES(20), POSTGRES(10), POSTGRES(21),
		POSTGRES(22), { .pid = 30, .comm = "mariadbd" }, { .pid = 40, .comm = "gone" } };
	struct fixture *f = *state;

	put_parent(f, 10, "postgres", 1);
	put_parent(f, 20, "post) gres", 30);
	put_parent(f, 21, "postgres", 20);
	put_parent(f, 22, "postgres", 21);
	put_parent(f, 30, "mariadbd", 1);
	f->o.json = false;
	doctor_report_processes(&f->d, list, 6, 3);
	assert_said(f,
		"ok        trigger   processes      postgres, pid 20, and 2 more processes\n"
		"ok        trigger   processes      postgres, pid 10\n"
		"ok        trigger   processes      mariadbd, pid 30\n"
		"ok        trigger   processes      gone, pid 40\n"
		"degraded  trigger   processes      3 more processes of watch.process are left out: at "
		"most 2048 are watched\n");
	assert_int_equal(f->d.counts[DEGRADED], 1);
}

/* A disk that does not count its requests is never busy for the rules. */
static void test_disks(void **state)
{
	struct fixture *f = *state;
	char expected[2 * PATH_MAX];
	struct watch *watch;

	f->o.json = false;
	f->o.sysfs = f->tree->sysfs;
	tree_put(f->tree, "proc/diskstats",
		" 8 0 sda 9 0 100 1 9 0 200 1 0 1 2\n 8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n");
	tree_put(f->tree, "sys/dev/block/8:0/queue/iostats", "1\n");
	tree_put(f->tree, "sys/dev/block/8:16/queue/iostats", "0\n");
	watch = tree_watch(f->tree);
	tree_sample(f->tree, watch, 0);
	doctor_report_disks(&f->d, watch);
	snprintf(expected, sizeof(expected),
		"degraded  trigger   disks          sdb does not count its requests, so no rule "
		"sees that it is busy: echo 1 >%s/dev/block/8:16/queue/iostats\n"
		"ok        trigger   disks          2 disks are judged\n",
		f->tree->sysfs);
	assert_said(f, expected);
	tree_put(f->tree, "proc/diskstats", "%s", "");
	tree_sample(f->tree, watch, 1000);
	doctor_report_disks(&f->d, watch);
	snprintf(expected, sizeof(expected),
		"degraded  trigger   disks          watch.device matches no disk of "
		"%s/diskstats\n",
		f->tree->procfs);
	assert_said(f, expected);
	watch_free(watch);
}

/* No such kernel is at hand: this one is told to be one, and nothing is loaded. */
static void test_probe_on_a_real_time_kernel(void **state)
{
	const struct probe_settings settings = { .preemption.ring_sleeps = true };
	struct fixture *f = *state;
	struct probe probe;

	f->o.json = false;
	probe_try_all(&probe, probe_ops_get(CONFIG_PROBE_wait), &settings, NULL);
	doctor_report_probe(&f->d, &probe, true);
	assert_said(f,
		"degraded  probe     wait/raw_tp    refused: its events could hang this real-time "
		"kernel (CVE-2024-50138); boot a kernel that has the fix, which 6.12 and later have\n");
}

/* A line for each kind of wait that the kernel has cost the backend in use, and for no other. */
static void test_probe_without_a_part(void **state)
{
	struct fixture *f = *state;
	struct probe probe = { .ops = probe_ops_get(CONFIG_PROBE_block), .tried = { true } };
	static const char works[] =
		"ok        probe     block/tracepoint can be loaded and attached%s\n";
	char expected[256];

	f->o.json = false;
	probe.backend = &probe.ops->backends[0];
	doctor_report_probe(&f->d, &probe, true);
	snprintf(expected, sizeof(expected), works, "; in use");
	assert_said(f, expected);
	probe.lost[0][0] = (struct probe_loss){ "cannot attach", -ENOENT, false };
	doctor_report_probe(&f->d, &probe, true);
	strcat(expected,
		"degraded  missing   block/tracepoint commits of the journal of ext4 are not seen "
		"(cannot attach: No such file or directory)\n");
	assert_said(f, expected);
	doctor_report_probe(&f->d, &probe, false);
	snprintf(expected, sizeof(expected), works, "; disabled");
	assert_said(f, expected);
}

/* Nothing is said of what can be read. */
static void test_unreadable_files(void **state)
{
	struct fixture *f = *state;
	char expected[3 * PATH_MAX];

	f->o.json = false;
	tree_put(f->tree, "proc/locks", "%s", "");
	tree_put(f->tree, "proc/2/syscall", "running\n");
	doctor_report_unreadable(&f->d);
	assert_said(f, "");
	f->o.procfs = f->tree->root;
	doctor_report_unreadable(&f->d);
	snprintf(expected, sizeof(expected),
		"degraded  missing   locks          who holds a lock of a file is not known "
		"(%s/locks: No such file or directory)\n"
		"degraded  missing   syscall        who holds a mutex of a program, and who should "
		"read from a full pipe or socket, is not known (%s/2/syscall: No such file or "
		"directory)\n",
		f->tree->root, f->tree->root);
	assert_said(f, expected);
}

/* What a trigger that the kernel refused with `error` makes doctor say, between result and hint. */
static void assert_pressure_refused(struct fixture *f, int error, const char *hint)
{
	_cleanup_free_ char *expected = NULL;
	int r = asprintf(&expected,
		"degraded  trigger   pressure       not in use: %s/pressure/io: %s; a freeze is noticed "
		"after 2 samples, not after 400 ms; %s\n",
		f->tree->procfs, strerror(error), hint);

	assert_true(r > 0);
	doctor_report_pressure(&f->d, -error);
	assert_said(f, expected);
}

/* Each error that the kernel refuses the trigger with, and what it takes on such a host. */
static void test_pressure_refused(void **state)
{
	struct fixture *f = *state;

	f->o.json = false;
	assert_pressure_refused(f, EINVAL, "grant CAP_SYS_RESOURCE");
	assert_pressure_refused(f, EPERM, "grant CAP_SYS_RESOURCE");
	assert_pressure_refused(f, EACCES, "grant CAP_DAC_OVERRIDE");
	assert_pressure_refused(f, EOPNOTSUPP, "boot with psi=1, if the kernel has CONFIG_PSI");
	assert_pressure_refused(f, ENOENT, "boot with psi=1, if the kernel has CONFIG_PSI");
	assert_int_equal(f->d.counts[DEGRADED], 5);
}

static void test_pressure_after_one_sample(void **state)
{
	struct fixture *f = *state;

	parse(f, "[rule.psi_io_full]\nhold = 1\n");
	doctor_report_pressure(&f->d, -EPERM);
	fflush(f->d.out);
	assert_non_null(strstr(f->out, "a freeze is noticed after 1 sample, not after 400 ms"));
}

static void test_pressure_accepted(void **state)
{
	struct fixture *f = *state;

	doctor_report_pressure(&f->d, 3);
	assert_said(f,
		"{\"area\":\"trigger\",\"name\":\"pressure\",\"result\":\"ok\",\"detail\":"
		"\"in use: psi_io_full fires at once when the kernel reports that all tasks waited "
		"for I/O in 400 of 500 ms\"}\n");
}

/* Whatever the kernel does, psi_io_full cannot fire by what it reports. */
static void test_pressure_unused(void **state)
{
	struct fixture *f = *state;

	parse(f, "[rule.psi_io_full]\nset = 80\n");
	doctor_report_pressure(&f->d, 3);
	assert_said(f,
		"{\"area\":\"trigger\",\"name\":\"pressure\",\"result\":\"ok\",\"detail\":"
		"\"not in use: the kernel reports 80 %, and psi_io_full fires above 80 %\"}\n");
	parse(f, "[rule.psi_io_full]\nenabled = no\n");
	doctor_report_pressure(&f->d, -EPERM);
	assert_said(f,
		"{\"area\":\"trigger\",\"name\":\"pressure\",\"result\":\"ok\",\"detail\":"
		"\"not in use: disabled by rule.psi_io_full.enabled\"}\n");
	assert_int_equal(f->d.counts[WORKS], 2);
}

static void test_user(void **state)
{
	struct fixture *f = *state;

	doctor_report_user(&f->d, "main", "root", false);
	assert_said(f, "");
	doctor_report_user(&f->d, "main", "iostall-nosuch", false);
	assert_said(f,
		"{\"area\":\"sql\",\"name\":\"main.run_as\",\"result\":\"fails\",\"detail\":"
		"\"there is no user iostall-nosuch on this host; the helper runs as nobody, whom "
		"unix_socket and peer do not let in; name a user that exists, or run "
		"`useradd --system iostall-nosuch`\"}\n");
	assert_int_equal(f->d.counts[FAILS], 1);
	doctor_report_user(&f->d, "main", "iostall-nosuch", true);
	assert_said(f,
		"{\"area\":\"sql\",\"name\":\"main.run_as\",\"result\":\"degraded\",\"detail\":"
		"\"there is no user iostall-nosuch on this host; the helper runs as nobody, and "
		"this database answers it; name a user that exists, or run "
		"`useradd --system iostall-nosuch`\"}\n");
	assert_int_equal(f->d.counts[FAILS], 1);
}

/* A line for each directory and each sink with a socket, whatever sinks there are. */
static void test_sinks(void **state)
{
	struct fixture *f = *state;

	text_copy(f->config.record.spool_dir, sizeof(f->config.record.spool_dir),
		"/dev/shm/iostall-test-doctor");
	text_copy(f->config.record.dir, sizeof(f->config.record.dir), "/dev/null/x");
	text_copy(f->config.journal.socket, sizeof(f->config.journal.socket), "/dev/null");
	f->config.syslog.enabled = false;
	f->o.json = false;
	assert_true(doctor_check_sinks(&f->d));
	assert_said(f,
		"ok        sink      spool          /dev/shm/iostall-test-doctor does not exist yet "
		"and can be created\n"
		"fails     sink      record         /dev/null/x: Not a directory\n"
		"degraded  sink      journald       /dev/null is not a socket, so nothing receives "
		"messages there\n"
		"ok        sink      syslog         disabled by syslog.enabled\n");
}

static void test_lost_server(void **state)
{
	static const struct watch_process list[] = { POSTGRES(20), POSTGRES(21) };
	struct fixture *f = *state;

	put_parent(f, 20, "postgres", 1);
	put_parent(f, 21, "postgres", 20);
	doctor_report_unasked(&f->d, NULL, list, 2);
	assert_said(f,
		"{\"area\":\"sql\",\"name\":\"targets\",\"result\":\"degraded\",\"detail\":"
		"\"postgres, pid 20, is not asked, since it does not listen at "
		"/run/postgresql/.s.PGSQL.5432; add a section [sql.NAME] with type = "
		"postgresql and socket = PATH\"}\n");
}

static void test_no_server(void **state)
{
	static const struct watch_process list[] = { { .pid = 7, .comm = "redis" } };
	struct fixture *f = *state;

	doctor_report_unasked(&f->d, NULL, list, 1);
	assert_said(f,
		"{\"area\":\"sql\",\"name\":\"targets\",\"result\":\"ok\",\"detail\":"
		"\"no section [sql.NAME] is configured, and no database server runs\"}\n");
}

/* A server with a disabled section is not to be asked, so nothing is wrong. */
static void test_disabled_target(void **state)
{
	static const struct watch_process list[] = { POSTGRES(20) };
	struct fixture *f = *state;

	put_parent(f, 20, "postgres", 1);
	parse(f, "[sql.main]\ntype = postgresql\nenabled = no\n");
	doctor_report_unasked(&f->d, NULL, list, 1);
	assert_said(f,
		"{\"area\":\"sql\",\"name\":\"main\",\"result\":\"ok\",\"detail\":"
		"\"disabled by sql.main.enabled\"}\n");
}

/* A section about one server does not hide that another is not asked. */
static void test_lost_server_beside_a_section(void **state)
{
	static const struct watch_process list[] = { POSTGRES(20) };
	struct fixture *f = *state;

	put_parent(f, 20, "postgres", 1);
	parse(f, "[sql.main]\ntype = mariadb\n");
	doctor_report_unasked(&f->d, NULL, list, 1);
	assert_said(f,
		"{\"area\":\"sql\",\"name\":\"targets\",\"result\":\"degraded\",\"detail\":"
		"\"postgres, pid 20, is not asked, since it does not listen at "
		"/run/postgresql/.s.PGSQL.5432; add a section [sql.NAME] with type = "
		"postgresql and socket = PATH\"}\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_processes),
		TEST(test_disks),
		TEST(test_probe_on_a_real_time_kernel),
		TEST(test_probe_without_a_part),
		TEST(test_unreadable_files),
		TEST(test_pressure_refused),
		TEST(test_pressure_after_one_sample),
		TEST(test_pressure_accepted),
		TEST(test_pressure_unused),
		TEST(test_user),
		TEST(test_sinks),
		TEST(test_lost_server),
		TEST(test_no_server),
		TEST(test_disabled_target),
		TEST(test_lost_server_beside_a_section),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
