// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Processes that read a block of a file and are gone: each ends, executes another program, or
 * leaves a child behind as soon as its read returns, and the next one gets the same process id.
 * Prints how many there were, and how many had the id of another one before.
 * Build: cc churn.c
 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BLOCK_BYTES 4096
#define BLOCKS 256

struct counts {
	unsigned long processes;
	unsigned long reused;
};

/* As fork(), with the given process id if it is free; 0: any. */
static pid_t fork_as(pid_t want)
{
	struct clone_args args = {
		.exit_signal = SIGCHLD,
		.set_tid = want > 0 ? (uintptr_t)&want : 0,
		.set_tid_size = want > 0,
	};

	return (pid_t)syscall(SYS_clone3, &args, sizeof(args));
}

/* What a process does once its read has returned. */
static void leave(unsigned int how)
{
	switch (how % 4) {
	case 0:
		execl("/proc/self/exe", "left", "--left", NULL);
		break;
	case 1:
		if (fork() == 0)
			usleep(2000);
		break;
	case 2:
		prctl(PR_SET_NAME, "renamed");
		break;
	}
	_exit(0);
}

static void read_and_leave(const char *path, unsigned int number)
{
	static char buffer[BLOCK_BYTES] __attribute__((aligned(BLOCK_BYTES)));
	int fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);

	prctl(PR_SET_NAME, "churn");
	if (fd < 0 || pread(fd, buffer, sizeof(buffer), (off_t)(number % BLOCKS) * BLOCK_BYTES) < 0)
		_exit(1);
	leave(number);
}

static void run_worker(const char *path, time_t end, unsigned int seed, int report_fd)
{
	struct counts counts = {};
	pid_t last = 0;

	while (time(NULL) < end) {
		pid_t pid = fork_as(last);

		/* Somebody else has it now. */
		if (pid < 0 && last > 0)
			pid = fork_as(0);
		if (pid == 0)
			read_and_leave(path, seed + (unsigned int)counts.processes);
		if (pid < 0)
			break;
		counts.processes++;
		counts.reused += pid == last;
		waitpid(pid, NULL, 0);
		last = pid;
	}
	if (write(report_fd, &counts, sizeof(counts)) != sizeof(counts))
		_exit(1);
	_exit(0);
}

int main(int argc, char **argv)
{
	struct counts sum = {}, counts;
	int workers, report[2];
	time_t end;

	if (argc == 2 && strcmp(argv[1], "--left") == 0)
		return 0;
	if (argc != 4) {
		fprintf(stderr, "usage: churn FILE WORKERS SECONDS\n");
		return 2;
	}
	workers = atoi(argv[2]);
	end = time(NULL) + atoi(argv[3]);
	if (pipe2(report, O_CLOEXEC) < 0)
		return 1;
	for (int i = 0; i < workers; i++)
		if (fork() == 0)
			run_worker(argv[1], end, (unsigned int)i, report[1]);
	close(report[1]);
	while (read(report[0], &counts, sizeof(counts)) == sizeof(counts)) {
		sum.processes += counts.processes;
		sum.reused += counts.reused;
	}
	while (wait(NULL) > 0)
		;
	printf("%lu processes, %lu with the id of another\n", sum.processes, sum.reused);
	return 0;
}
