/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Processes that look like those for whom a thread waits, and are not: nobody may name them. */
#include "test_lock_looks.h"

#include <bpf/bpf.h>
#include <sys/syscall.h>

#define WAITER 100
#define HOLDER 200
#define OTHER 300
/* The first one finds who waits, the second one that it stands; then its socket is asked for. */
#define LOOKS 4

/* In place of the kernel: the other end of socket 4711 is 4712. */
int bpf_prog_test_run_opts(int program_fd, struct bpf_test_run_opts *opts)
{
	const uint64_t *args = opts->ctx_in;

	(void)program_fd;
	opts->retval = args[2] == 4711 ? 4712 : 0;
	return 0;
}

/* A process whose descriptor 5 is of the target; fdinfo has the text. */
static void put_process(struct fixture *f, int pid, const char *comm, const char *target,
	const char *fdinfo)
{
	char name[64], link[PATH_MAX + 64];

	tree_put_thread(f->t, pid, pid, comm, 'S', 500, 9);
	snprintf(name, sizeof(name), "proc/%d/fdinfo/5", pid);
	tree_put(f->t, name, "pos:\t0\n%s", fdinfo);
	/* For its directory. */
	snprintf(name, sizeof(name), "proc/%d/fd/x", pid);
	tree_put(f->t, name, "x");
	snprintf(link, sizeof(link), "%s/%d/fd/5", f->t->procfs, pid);
	assert_int_equal(symlink(target, link), 0);
}

static void put_waiter(struct fixture *f, const char *target, int syscall_number)
{
	put_process(f, WAITER, "mariadbd", target, "flags:\t01\n");
	tree_put(f->t, "proc/100/task/100/syscall", "%d 0x5 0x7ffc 0x1000 0x0 0x0 0x0 0x7f 0x7f\n",
		syscall_number);
}

static void end(struct fixture *f, int pid)
{
	char name[32];

	snprintf(name, sizeof(name), "proc/%d", pid);
	tree_remove(f->t, name);
}

static const struct held_locks_answer *look_once(struct fixture *f)
{
	const struct watch_process process = { .pid = WAITER };
	const struct held_locks_answer *answer;
	uint64_t before_ns;

	f->now_ns += 60 * NSEC_PER_SEC;
	before_ns = held_locks_find(f->locks, &process, 1, true, f->now_ns)->look_ns;
	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		/* No other look begins: its time has not come. */
		answer = held_locks_find(f->locks, &process, 1, true, f->now_ns);
		if (answer->look_ns != before_ns)
			return answer;
		usleep(1000);
	}
	fail_msg("no look ends");
	return NULL;
}

/* Who holds the only lock for which somebody waits; 0: nobody is named. */
static int32_t find_holder(struct fixture *f)
{
	const struct held_locks_answer *answer = NULL;

	for (unsigned int i = 0; i < LOOKS; i++)
		answer = look_once(f);
	assert_int_equal(answer->count, 1);
	assert_int_equal(answer->list[0].pid, WAITER);
	return answer->list[0].holder_pid;
}

/* Sockets and pipes are numbered apart from each other. */
static void test_socket_with_the_number_of_the_pipe(void **state)
{
	struct fixture *f = *state;

	put_waiter(f, "pipe:[4711]", SYS_write);
	put_process(f, HOLDER, "logger", "pipe:[4711]", "flags:\t00\n");
	put_process(f, OTHER, "logger", "socket:[4711]", "flags:\t02\n");
	assert_int_equal(find_holder(f), HOLDER);
	end(f, HOLDER);
	assert_int_equal(find_holder(f), 0);
}

static void test_same_name_as_the_peer(void **state)
{
	struct fixture *f = *state;

	held_locks_set_socket_program(f->locks, 0);
	put_waiter(f, "socket:[4711]", SYS_sendto);
	put_process(f, HOLDER, "rsyslogd", "socket:[4712]", "flags:\t02\n");
	put_process(f, OTHER, "rsyslogd", "socket:[4713]", "flags:\t02\n");
	assert_int_equal(find_holder(f), HOLDER);
	end(f, HOLDER);
	assert_int_equal(find_holder(f), 0);
}

/* The kernel knows no other end of it, and those of other sockets of that server are none. */
static void test_socket_whose_peer_has_closed_it(void **state)
{
	struct fixture *f = *state;
	const struct held_locks_answer *answer = NULL;

	held_locks_set_socket_program(f->locks, 0);
	put_waiter(f, "socket:[4711]", SYS_sendto);
	put_process(f, HOLDER, "rsyslogd", "socket:[4712]", "flags:\t02\n");
	assert_int_equal(find_holder(f), HOLDER);
	end(f, WAITER);
	put_waiter(f, "socket:[4719]", SYS_sendto);
	for (unsigned int i = 0; i < LOOKS; i++)
		answer = look_once(f);
	for (unsigned int i = 0; i < answer->count; i++)
		assert_int_equal(answer->list[i].holder_pid, 0);
}

#define FLOCK "FLOCK  ADVISORY  WRITE 200 08:01:4711 0 EOF\n"
#define WAITING "1: -> FLOCK  ADVISORY  WRITE 100 08:01:4711 0 EOF\n"

/* The process that took it gave it to another one and ended, and its id is used again. */
static void test_id_of_who_took_the_lock(void **state)
{
	struct fixture *f = *state;

	tree_put(f->t, "proc/locks", "1: " FLOCK WAITING);
	put_waiter(f, "/srv/lock", SYS_flock);
	put_process(f, HOLDER, "backup", "/srv/other", "flags:\t02\n");
	put_process(f, OTHER, "sh", "/srv/lock", "flags:\t02\nlock:\t1: " FLOCK);
	assert_int_equal(find_holder(f), OTHER);
	end(f, OTHER);
	assert_int_equal(find_holder(f), 0);
}

static void test_same_inode_on_another_disk(void **state)
{
	static const char *const others[] = {
		"FLOCK  ADVISORY  WRITE 200 08:02:4711 0 EOF\n",
		"FLOCK  ADVISORY  WRITE 200 09:01:4711 0 EOF\n",
		"FLOCK  ADVISORY  WRITE 200 08:01:4712 0 EOF\n",
	};
	struct fixture *f = *state;

	tree_put(f->t, "proc/locks", "1: " FLOCK WAITING);
	put_waiter(f, "/srv/lock", SYS_flock);
	for (unsigned int i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		char fdinfo[128];

		snprintf(fdinfo, sizeof(fdinfo), "flags:\t02\nlock:\t1: %s", others[i]);
		put_process(f, HOLDER, "backup", "/srv/lock", fdinfo);
		assert_int_equal(find_holder(f), 0);
		end(f, HOLDER);
	}
	put_process(f, HOLDER, "backup", "/srv/lock", "flags:\t02\nlock:\t1: " FLOCK);
	assert_int_equal(find_holder(f), HOLDER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_socket_with_the_number_of_the_pipe, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_same_name_as_the_peer, setup, teardown),
		cmocka_unit_test_setup_teardown(test_socket_whose_peer_has_closed_it, setup,
			teardown),
		cmocka_unit_test_setup_teardown(test_id_of_who_took_the_lock, setup, teardown),
		cmocka_unit_test_setup_teardown(test_same_inode_on_another_disk, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
