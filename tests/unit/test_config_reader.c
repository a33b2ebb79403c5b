/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Reading the configuration again: what is read, errors, and files that do not answer. */
#include "test_watch_tree.h"

#include <errno.h>

#include "daemon/config_reader.h"
#include "util/loop.h"
#include "util/renewable_worker.h"

#define LATE_NS (50 * NSEC_PER_MSEC)

struct fixture {
	struct tree *t;
	struct loop *loop;
	struct loop_source *guard;
	struct config_source source;
	struct config_reader *reader;
	bool guarded;
	char file[PATH_MAX + 16];
	char passwd[PATH_MAX + 16];
};

static void on_told(void *userdata)
{
	struct fixture *f = userdata;

	loop_stop(f->loop);
}

static void on_guard(void *userdata, uint64_t expirations)
{
	struct fixture *f = userdata;

	(void)expirations;
	f->guarded = true;
	loop_stop(f->loop);
}

static void make_reader(struct fixture *f, uint64_t limit_ns)
{
	const struct config_reader_options options = {
		.loop = f->loop,
		.source = &f->source,
		.passwd = f->passwd,
		.limit_ns = limit_ns,
		.tell = on_told,
		.userdata = f,
	};

	assert_int_equal(config_reader_new(&options, &f->reader), 0);
	assert_int_equal(config_reader_get_state(f->reader), CONFIG_READER_RESTING);
}

static int setup(void **state)
{
	struct fixture *f = tree_fixture_new(sizeof(*f));

	snprintf(f->file, sizeof(f->file), "%s/iostall.conf", f->t->root);
	snprintf(f->passwd, sizeof(f->passwd), "%s/passwd", f->t->root);
	f->source.file = f->file;
	tree_put(f->t, "passwd", "root:x:0:0:::\nprobe:x:7:8:::\n");
	assert_int_equal(loop_new(&f->loop), 0);
	assert_int_equal(loop_add_timer(f->loop, on_guard, f, &f->guard), 0);
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(config_reader_free(f->reader));
	loop_free(f->loop);
	return tree_fixture_free(f);
}

/* Until the reader has told something. */
static enum config_reader_state read_config(struct fixture *f)
{
	assert_int_equal(config_reader_start(f->reader), 0);
	loop_set_timer(f->guard, 60 * NSEC_PER_SEC, 0);
	assert_int_equal(loop_run(f->loop), 0);
	assert_false(f->guarded);
	return config_reader_get_state(f->reader);
}

static void test_settings_and_users(void **state)
{
	struct fixture *f = *state;
	const struct config_answer *a;

	make_reader(f, 60 * NSEC_PER_SEC);
	tree_put(f->t, "iostall.conf", "[health]\ncommand = /bin/check\nrun_as = probe\n");
	tree_put(f->t, "conf.d/a.conf", "[watch]\ninterval = 7s\n");
	assert_int_equal(read_config(f), CONFIG_READER_READ);
	a = config_reader_answer(f->reader);
	assert_int_equal(a->error, 0);
	assert_int_equal(a->config.watch.interval_ns, 7 * NSEC_PER_SEC);
	assert_int_equal(a->users.count, 2);
	assert_true(a->accounts.has_run_as);
	assert_int_equal(a->accounts.run_as.uid, 7);
	config_reader_rest(f->reader);
	assert_int_equal(config_reader_get_state(f->reader), CONFIG_READER_RESTING);
	/* It reads again what is there now. */
	tree_put(f->t, "conf.d/a.conf", "[watch]\ninterval = 8s\n");
	assert_int_equal(read_config(f), CONFIG_READER_READ);
	a = config_reader_answer(f->reader);
	assert_int_equal(a->config.watch.interval_ns, 8 * NSEC_PER_SEC);
}

static void test_error(void **state)
{
	struct fixture *f = *state;
	const struct config_answer *a;

	make_reader(f, 60 * NSEC_PER_SEC);
	tree_put(f->t, "iostall.conf", "[watch]\ninterval = soon\n");
	assert_int_equal(read_config(f), CONFIG_READER_READ);
	a = config_reader_answer(f->reader);
	assert_int_equal(a->error, -EINVAL);
	assert_non_null(strstr(a->message, "iostall.conf:2: watch.interval: "));
}

/* An open for reading waits until somebody opens it for writing, like that of a disk that hangs. */
static void make_passwd_hang(struct fixture *f)
{
	assert_int_equal(unlink(f->passwd), 0);
	assert_int_equal(mkfifo(f->passwd, 0600), 0);
}

static void let_passwd_go(struct fixture *f)
{
	int fd = open(f->passwd, O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	while (config_reader_get_state(f->reader) == CONFIG_READER_LATE)
		usleep(1000);
	close(fd);
}

static void test_late(void **state)
{
	struct fixture *f = *state;

	make_reader(f, LATE_NS);
	make_passwd_hang(f);
	tree_put(f->t, "iostall.conf", "[watch]\ninterval = 7s\n");
	assert_int_equal(read_config(f), CONFIG_READER_LATE);
	/* An answer may be late. */
	let_passwd_go(f);
	assert_int_equal(config_reader_get_state(f->reader), CONFIG_READER_READ);
	assert_int_equal(config_reader_answer(f->reader)->config.watch.interval_ns,
		7 * NSEC_PER_SEC);
}

static int start_again(struct fixture *f)
{
	int r = 0;

	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		r = config_reader_start(f->reader);
		if (r == 0)
			return 0;
		usleep(1000);
	}
	return r;
}

static void test_readers_that_hang(void **state)
{
	struct fixture *f = *state;
	int fd;

	make_reader(f, LATE_NS);
	make_passwd_hang(f);
	tree_put(f->t, "iostall.conf", "\n");
	for (unsigned int i = 0; i <= RENEWABLE_WORKER_HUNG_MAX; i++) {
		assert_int_equal(read_config(f), CONFIG_READER_LATE);
		config_reader_rest(f->reader);
		assert_int_equal(config_reader_get_state(f->reader), CONFIG_READER_RESTING);
	}
	assert_int_equal(config_reader_start(f->reader), -EBUSY);
	assert_int_equal(config_reader_get_state(f->reader), CONFIG_READER_RESTING);
	/* When the disk answers again, all of them end, and there is room. */
	fd = open(f->passwd, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(start_again(f), 0);
	assert_int_equal(loop_run(f->loop), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_settings_and_users, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_readers_that_hang, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
