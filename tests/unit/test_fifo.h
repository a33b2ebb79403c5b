/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pread() in place of that of the C library, which refuses a fifo: who reads one waits until it
 * has no writer any more. So a fifo in a fixture tree is a file of /proc that hangs.
 * Included by unit tests of threads that read /proc.
 * Never changes how other files are read.
 */
#ifndef IOSTALL_TESTS_TEST_FIFO_H
#define IOSTALL_TESTS_TEST_FIFO_H

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

ssize_t pread(int fd, void *buf, size_t size, off_t offset)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode))
		return read(fd, buf, size);
	return syscall(SYS_pread64, fd, buf, size, offset);
}

#endif
