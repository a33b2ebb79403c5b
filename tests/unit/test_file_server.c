/* SPDX-License-Identifier: GPL-2.0-or-later */
/* time: none */
/* Which process has to answer about files; a fifo in /proc is a file that hangs. */
#include "test_fifo.h"
#include "test_watch_tree.h"

#include "enrich/file_server.h"
#include "util/cleanup.h"
#include "util/text.h"

#define FUSE_MINOR 52
#define MOUNT "/srv/data"

struct fixture {
	struct tree *t;
	int procfs_fd;
	struct file_server *server;
	struct mount list[16];
	struct mounts mounts;
	struct file_server_question q;
};

static int setup(void **state)
{
	static const char mountinfo[] = "21 1 8:1 / / rw - ext4 /dev/sda1 rw\n"
					"22 1 0:52 / /srv/data rw - fuse.sshfs me@host:/data rw\n"
					"23 1 0:60 / /export rw - nfs4 10.0.0.1:/export rw\n";
	struct fixture *f = tree_fixture_new(sizeof(*f));

	f->mounts.list = f->list;
	mounts_parse(&f->mounts, ARRAY_SIZE(f->list), mountinfo, strlen(mountinfo));
	f->procfs_fd = tree_open_procfs(f->t);
	assert_int_equal(file_server_new(f->procfs_fd, &f->server), 0);
	f->q = (struct file_server_question){ .mounts = &f->mounts,
		.minor = FUSE_MINOR,
		.waits_for = RECORD_CAUSE_fuse_server,
		.incident_ns = NSEC_PER_SEC,
		.now_ns = NSEC_PER_SEC };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	assert_null(file_server_free(f->server));
	close(f->procfs_fd);
	return tree_fixture_free(f);
}

static void put_thread(struct fixture *f, int pid, int tid, const char *state)
{
	char name[64];

	snprintf(name, sizeof(name), "proc/%d/task/%d/status", pid, tid);
	tree_put(f->t, name, "Name:\tx\nState:\t%s\nTgid:\t%d\nPid:\t%d\n", state, pid, tid);
}

/* A process whose descriptor 3 is the target; fdinfo has the text. */
static void put_process(struct fixture *f, int pid, const char *comm, const char *target,
	const char *fdinfo)
{
	char name[64], link[PATH_MAX + 64];

	snprintf(name, sizeof(name), "proc/%d/comm", pid);
	tree_put(f->t, name, "%s\n", comm);
	snprintf(name, sizeof(name), "proc/%d/fdinfo/3", pid);
	tree_put(f->t, name, "pos:\t0\nflags:\t0100002\n%s", fdinfo);
	/* For its directory. */
	snprintf(name, sizeof(name), "proc/%d/fd/x", pid);
	tree_put(f->t, name, "x");
	snprintf(link, sizeof(link), "%s/%d/fd/3", f->t->procfs, pid);
	assert_int_equal(symlink(target, link), 0);
	put_thread(f, pid, pid, "S (sleeping)");
}

static void put_command_line(struct fixture *f, int pid, const char *last)
{
	char name[64], text[256];
	int len = snprintf(text, sizeof(text), "serve%c-f%c%s", '\0', '\0', last);

	snprintf(name, sizeof(name), "proc/%d/cmdline", pid);
	tree_put_bytes(f->t, name, text, (size_t)len + 1);
}

static struct record_file_server ask(struct fixture *f)
{
	struct record_file_server found;

	file_server_find(f->server, &f->q);
	file_server_get(f->server, f->q.incident_ns, f->q.now_ns, &found);
	return found;
}

/* What a search finds that begins now. */
static struct record_file_server search(struct fixture *f)
{
	struct record_file_server found;

	f->q.incident_ns++;
	for (unsigned int i = 0; i < WAITS_MAX; i++) {
		found = ask(f);
		if (found.search == RECORD_SEARCH_complete)
			return found;
		usleep(1000);
	}
	fail_msg("no search ends");
	return found;
}

static void assert_found(const struct record_file_server *found, int pid, const char *comm,
	enum record_basis basis)
{
	assert_int_equal(found->pid, pid);
	assert_string_equal(found->comm, comm);
	assert_int_equal(found->basis, basis);
	assert_string_equal(found->mount, MOUNT);
	assert_string_equal(found->source, "me@host:/data");
}

static void test_the_kernel_tells(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "other", "/dev/fuse", "fuse_connection:\t5\n");
	put_process(f, 20, "fusermount3", "/dev/fuse", "fuse_connection:\t52\n");
	put_process(f, 30, "sshfs", "/dev/fuse", "fuse_connection:\t52\n");
	put_process(f, 40, "cat", "/srv/data/file", "");
	put_thread(f, 30, 30, "T (stopped)");
	found = search(f);
	assert_found(&found, 30, "sshfs", RECORD_BASIS_measured);
	assert_int_equal(found.state, 'T');
}

/* On such a kernel a descriptor without a connection serves nothing. */
static void test_the_kernel_tells_of_others_only(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "other", "/dev/fuse", "fuse_connection:\t5\n");
	put_process(f, 20, "idle", "/dev/fuse", "");
	put_command_line(f, 20, MOUNT);
	found = search(f);
	assert_found(&found, 0, "", RECORD_BASIS_NONE);
}

static void test_the_only_one(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "");
	put_process(f, 20, "cat", "/dev/null", "");
	found = search(f);
	assert_found(&found, 10, "sshfs", RECORD_BASIS_inferred);
	assert_int_equal(found.state, 'S');
	put_process(f, 30, "s3fs", "/dev/fuse", "");
	found = search(f);
	assert_found(&found, 0, "", RECORD_BASIS_NONE);
}

static void test_the_one_with_the_mount_point(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "");
	put_process(f, 20, "s3fs", "/dev/fuse", "");
	put_process(f, 30, "gluster", "/dev/fuse", "");
	put_command_line(f, 10, "/srv/data2");
	put_command_line(f, 20, "/srv");
	put_command_line(f, 30, MOUNT "/");
	found = search(f);
	assert_found(&found, 30, "gluster", RECORD_BASIS_inferred);
}

/* As a server that hangs, whose mount was taken away with `umount -l`, and the one after it. */
static void test_two_with_the_mount_point(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "");
	put_process(f, 20, "sshfs", "/dev/fuse", "");
	put_command_line(f, 10, MOUNT);
	put_command_line(f, 20, MOUNT);
	found = search(f);
	assert_found(&found, 0, "", RECORD_BASIS_NONE);
}

/* It ends when its descriptor has been seen. */
static void test_a_server_that_has_ended(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "fuse_connection:\t52\n");
	tree_remove(f->t, "proc/10/comm");
	tree_remove(f->t, "proc/10/task");
	found = search(f);
	assert_found(&found, 0, "", RECORD_BASIS_NONE);
	assert_int_equal(found.state, '\0');
}

/* Its first thread sleeps while another one waits for a disk. */
/* It still runs, and what was found before is not said again. */
static void test_a_server_that_has_let_go(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "fuse_connection:\t52\n");
	found = search(f);
	assert_int_equal(found.pid, 10);
	tree_remove(f->t, "proc/10");
	put_process(f, 10, "sshfs", "/dev/null", "");
	found = search(f);
	assert_int_equal(found.pid, 0);
}

static void test_a_thread_in_d_state(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "fuse_connection:\t52\n");
	put_thread(f, 10, 11, "S (sleeping)");
	put_thread(f, 10, 12, "D (disk sleep)");
	found = search(f);
	assert_int_equal(found.state, 'D');
}

#define FANOTIFY "anon_inode:[fanotify]"
#define OF_MOUNT "fanotify mnt_id:22 mflags:0 mask:10000 ignored_mask:0\n"
/* 0:52, as the kernel writes it. */
#define OF_FILE_SYSTEM "fanotify sdev:34 mflags:0 mask:30000 ignored_mask:0\n"

static struct record_file_server search_for(struct fixture *f, enum record_cause waits_for)
{
	f->q.waits_for = waits_for;
	return search(f);
}

static void assert_who(const struct record_file_server *found, int pid, enum record_basis basis)
{
	assert_int_equal(found->pid, pid);
	assert_int_equal(found->basis, basis);
}

/* Others are told what happens, and may not forbid it. */
static void test_the_only_listener(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "indexer", FANOTIFY,
		"fanotify flags:0 event-flags:0\nfanotify sdev:34 mflags:0 mask:3b ignored_mask:0\n");
	put_process(f, 20, "sshfs", "/dev/fuse", "fuse_connection:\t52\n");
	put_process(f, 30, "clamd", FANOTIFY, "fanotify flags:5 event-flags:8000\n" OF_MOUNT);
	put_thread(f, 30, 30, "T (stopped)");
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 30, RECORD_BASIS_measured);
	assert_string_equal(found.comm, "clamd");
	assert_int_equal(found.state, 'T');
	assert_int_equal(found.waits_for, RECORD_CAUSE_access_check);
}

static void test_thousands_of_marks(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;
	char marks[16384];
	struct text t = TEXT_ON(marks);

	text_reset(&t);
	while (t.len + sizeof(OF_MOUNT) < sizeof(marks))
		text_add(&t, OF_MOUNT);
	put_process(f, 30, "clamd", FANOTIFY, marks);
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 30, RECORD_BASIS_measured);
}

static void test_the_listener_of_the_file_system(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "clamd", FANOTIFY,
		"fanotify sdev:800001 mflags:0 mask:10000 ignored_mask:0\n");
	put_process(f, 20, "fapolicyd", FANOTIFY, OF_FILE_SYSTEM);
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 20, RECORD_BASIS_measured);
}

static void test_a_listener_that_takes_its_mark_back(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 30, "clamd", FANOTIFY, "fanotify flags:5 event-flags:8000\n" OF_MOUNT);
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 30, RECORD_BASIS_measured);
	tree_put(f->t, "proc/30/fdinfo/3",
		"pos:\t0\nflags:\t0100002\nfanotify flags:5 event-flags:8000\n");
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 0, RECORD_BASIS_NONE);
	put_process(f, 40, "clamd", FANOTIFY, "fanotify flags:5 event-flags:8000\n" OF_MOUNT);
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 40, RECORD_BASIS_measured);
	tree_remove(f->t, "proc/40");
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 0, RECORD_BASIS_NONE);
}

/* A mark of a file says nothing of the one that is opened. */
static void test_several_listeners(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "clamd", FANOTIFY,
		"fanotify ino:1a sdev:34 mflags:0 mask:10000 ignored_mask:0\n");
	put_process(f, 20, "fapolicyd", FANOTIFY, OF_MOUNT);
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 0, RECORD_BASIS_NONE);
	put_process(f, 30, "other", FANOTIFY, OF_FILE_SYSTEM);
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 30, RECORD_BASIS_measured);
	put_process(f, 40, "another", FANOTIFY, OF_FILE_SYSTEM);
	found = search_for(f, RECORD_CAUSE_access_check);
	assert_who(&found, 0, RECORD_BASIS_NONE);
}

#define NETLINK_TABLE                                                                              \
	"sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"
/* The kernel's own, that of sshd, and that of journald, which reads copies. */
#define NETLINK_OTHERS                                                                             \
	NETLINK_TABLE                                                                              \
	"0000000081d28e88 9   0          00000000 0        0        0     2        0        17\n"  \
	"0000000081d28e89 9   50         00000000 768      0        0     2        0        50\n"  \
	"0000000081d28e8a 9   60         00000001 212992   0        0     2        9        60\n"  \
	"0000000081d28e8b 15  70         00000000 4096     0        0     2        0        70\n"
/* Of the process 20, and of one that has another netlink socket, too. */
#define NETLINK_FULL                                                                               \
	"0000000081d28e8c 9   20         00000000 212992   0        0     2        0        4711\n"
#define NETLINK_READ                                                                               \
	"0000000081d28e8c 9   20         00000000 768      0        0     2        0        4711\n"
#define NETLINK_OF_TWO                                                                             \
	"0000000081d28e8c 9   4294963200 00000000 212992   0        0     2        0        4711\n"

static struct fixture *audited(void **state, const char *sockets)
{
	struct fixture *f = *state;

	tree_put(f->t, "proc/1/net/netlink", NETLINK_OTHERS "%s", sockets);
	tree_put(f->t, "proc/sys/net/core/rmem_default", "212992\n");
	put_process(f, 10, "auditd", "/dev/null", "");
	put_process(f, 50, "sshd", "socket:[50]", "");
	put_process(f, 60, "systemd-journal", "socket:[60]", "");
	put_process(f, 70, "udevd", "socket:[70]", "");
	f->q.minor = 0;
	return f;
}

/* Records lie unread in its socket, which has no room for another one. The name does not tell. */
static void test_audit_daemon(void **state)
{
	static const struct {
		const char *unread;
		int32_t pid;
	} cases[] = { { "212992", 20 }, { "213760", 20 }, { "212224", 20 }, { "190000", 0 } };
	struct fixture *f = audited(state, "");
	struct record_file_server found;

	put_process(f, 20, "auditbeat", "socket:[4711]", "");
	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		tree_put(f->t, "proc/1/net/netlink",
			NETLINK_OTHERS
			"0000000081d28e8c 9   20         00000000 %s   0        0     "
			"2        0        4711\n",
			cases[i].unread);
		found = search_for(f, RECORD_CAUSE_audit);
		assert_who(&found, cases[i].pid,
			cases[i].pid ? RECORD_BASIS_inferred : RECORD_BASIS_NONE);
		assert_string_equal(found.comm, cases[i].pid ? "auditbeat" : "");
	}
}

static void test_audit_daemon_reads_again(void **state)
{
	struct fixture *f = audited(state, NETLINK_FULL);
	struct record_file_server found;

	put_process(f, 20, "auditbeat", "socket:[4711]", "");
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 20, RECORD_BASIS_inferred);
	tree_put(f->t, "proc/1/net/netlink", NETLINK_OTHERS NETLINK_READ);
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 0, RECORD_BASIS_NONE);
}

/* As a child that has the socket, too, and does not read from it. */
static void test_audit_daemon_has_a_child(void **state)
{
	struct fixture *f = audited(state, NETLINK_FULL);
	struct record_file_server found;

	put_process(f, 15, "plugin", "socket:[4711]", "");
	put_process(f, 20, "auditd", "socket:[4711]", "");
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 20, RECORD_BASIS_inferred);
}

static void test_audit_daemon_has_another_socket(void **state)
{
	struct fixture *f = audited(state, NETLINK_OF_TWO);
	struct record_file_server found;

	put_process(f, 20, "auditbeat", "socket:[4711]", "");
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 20, RECORD_BASIS_inferred);
	put_process(f, 30, "auditbeat", "socket:[4711]", "");
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 0, RECORD_BASIS_NONE);
}

/* Then of two sockets with something unread it is neither, and one alone is it. */
static void test_audit_daemon_where_no_size_is_known(void **state)
{
	struct fixture *f = audited(state, NETLINK_FULL);
	struct record_file_server found;

	tree_remove(f->t, "proc/sys/net/core/rmem_default");
	put_process(f, 20, "auditd", "socket:[4711]", "");
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 0, RECORD_BASIS_NONE);
	tree_put(f->t, "proc/1/net/netlink", NETLINK_TABLE NETLINK_FULL);
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 20, RECORD_BASIS_inferred);
}

static void test_audit_daemon_is_not_known(void **state)
{
	static const char *const tables[] = {
		"",
		/* Nothing of it is open any more, or another process has the id. */
		NETLINK_FULL,
		/* As of a client that has not read its answer yet. */
		"0000000081d28e8d 9   50         00000000 768      0        0     2        0        50\n"
		"0000000081d28e8e 9   70         00000000 4096     0        0     2        0        70\n",
	};
	struct fixture *f = audited(state, "");
	struct record_file_server found;

	put_process(f, 20, "other", "socket:[4712]", "");
	for (unsigned int i = 0; i < ARRAY_SIZE(tables); i++) {
		tree_put(f->t, "proc/1/net/netlink", NETLINK_OTHERS "%s", tables[i]);
		found = search_for(f, RECORD_CAUSE_audit);
		assert_who(&found, 0, RECORD_BASIS_NONE);
	}
	tree_remove(f->t, "proc/1");
	found = search_for(f, RECORD_CAUSE_audit);
	assert_who(&found, 0, RECORD_BASIS_NONE);
}

static void test_nfs(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "");
	f->q.minor = 60;
	f->q.waits_for = RECORD_CAUSE_nfs_server;
	for (unsigned int i = 0; i < 10; i++) {
		found = ask(f);
		assert_true(found.present);
		assert_int_equal(found.search, 0);
		assert_int_equal(found.pid, 0);
		assert_string_equal(found.mount, "/export");
		assert_string_equal(found.source, "10.0.0.1:/export");
		usleep(1000);
	}
}

static void test_a_mount_that_is_not_there(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;

	put_process(f, 10, "sshfs", "/dev/fuse", "fuse_connection:\t77\n");
	f->q.minor = 77;
	found = search(f);
	assert_int_equal(found.pid, 10);
	assert_string_equal(found.mount, "");
	assert_string_equal(found.source, "");
}

static int hang(struct fixture *f, int pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "%d/fdinfo/3", pid);
	assert_int_equal(unlinkat(f->procfs_fd, path, 0), 0);
	assert_int_equal(mkfifoat(f->procfs_fd, path, 0600), 0);
	(void)ask(f);
	while ((fd = openat(f->procfs_fd, path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)) < 0)
		usleep(1000);
	/* Nobody comes there again. */
	assert_int_equal(unlinkat(f->procfs_fd, path, 0), 0);
	return fd;
}

static void test_a_search_that_hangs_is_replaced(void **state)
{
	struct fixture *f = *state;
	struct record_file_server found;
	int fd;

	put_process(f, 10, "sshfs", "/dev/fuse", "");
	fd = hang(f, 10);
	f->q.now_ns += FILE_SERVER_LIMIT_NS - 1;
	file_server_replace_hung(f->server, f->q.now_ns);
	found = ask(f);
	assert_int_equal(found.search, 0);
	f->q.now_ns++;
	found = ask(f);
	assert_int_equal(found.search, RECORD_SEARCH_timed_out);
	assert_string_equal(found.source, "me@host:/data");
	file_server_replace_hung(f->server, f->q.now_ns);
	found = search(f);
	assert_found(&found, 10, "sshfs", RECORD_BASIS_inferred);
	close(fd);
}

#define server_test(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		server_test(test_the_kernel_tells),
		server_test(test_the_kernel_tells_of_others_only),
		server_test(test_the_only_one),
		server_test(test_the_one_with_the_mount_point),
		server_test(test_two_with_the_mount_point),
		server_test(test_a_server_that_has_ended),
		server_test(test_a_server_that_has_let_go),
		server_test(test_a_thread_in_d_state),
		server_test(test_the_only_listener),
		server_test(test_thousands_of_marks),
		server_test(test_the_listener_of_the_file_system),
		server_test(test_several_listeners),
		server_test(test_a_listener_that_takes_its_mark_back),
		server_test(test_audit_daemon),
		server_test(test_audit_daemon_reads_again),
		server_test(test_audit_daemon_has_a_child),
		server_test(test_audit_daemon_has_another_socket),
		server_test(test_audit_daemon_where_no_size_is_known),
		server_test(test_audit_daemon_is_not_known),
		server_test(test_nfs),
		server_test(test_a_mount_that_is_not_there),
		server_test(test_a_search_that_hangs_is_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
