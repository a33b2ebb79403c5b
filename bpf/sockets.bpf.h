/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * To which socket a unix socket is connected: only the kernel knows, and the netlink messages that
 * tell are those of one network namespace.
 * Included by wait.bpf.c. User space runs the program through BPF_PROG_TEST_RUN; it is never
 * attached.
 * Never takes a lock or a reference: what changes while it is read has no number.
 */
#ifndef IOSTALL_SOCKETS_BPF_H
#define IOSTALL_SOCKETS_BPF_H

#include "tasks.bpf.h"

/*
 * Args are the id of a thread, a descriptor of its process, and the inode number of the socket that
 * it is of. Returns that of the socket at the other end, as /proc/PID/fd has it; 0: it is no unix
 * socket, or is connected to none that a process has open.
 */
SEC("raw_tp")
int wait_socket_peer(struct bpf_raw_tracepoint_args *ctx)
{
	struct task_struct *task = task_of_tid((__u32)ctx->args[0]);
	struct file *file;
	struct socket *socket;
	struct sock *sock, *peer;

	if (!bpf_core_field_exists(((struct unix_sock *)0)->peer) || !task)
		return 0;
	file = file_of_fd(task, (__u32)ctx->args[1]);
	if (!file || (BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT) != S_IFSOCK ||
		BPF_CORE_READ(file, f_inode, i_ino) != ctx->args[2])
		return 0;
	socket = BPF_CORE_READ(file, private_data);
	sock = BPF_CORE_READ(socket, sk);
	if (!sock || BPF_CORE_READ(sock, __sk_common.skc_family) != AF_UNIX)
		return 0;
	peer = BPF_CORE_READ((struct unix_sock *)sock, peer);
	return peer ? (__u32)BPF_CORE_READ(peer, sk_socket, file, f_inode, i_ino) : 0;
}

#endif
