# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# A limit on the CPU time of a control group, by cfs_quota of cgroup v1 or cpu.max of cgroup v2.
# Sourced by stall.sh.
# Leaves neither a limit nor a cgroup behind.

STALL_CPU_GROUP=

_stall_cpu_make()
{
	mkdir "$STALL_CPU_GROUP" || return 1
	stall_undo _stall_cgroup_leave "$STALL_CPU_GROUP" "$1"
}

# stall_cpu_group PERCENT: makes STALL_CPU_GROUP, which may use so much of one CPU. 1: there is no such controller.
stall_cpu_group()
{
	local root

	root=$(_stall_cgroup_mount cgroup cpu)
	if [[ -n $root ]]; then
		STALL_CPU_GROUP=$root/iostall-cpu.$$
		_stall_cpu_make "$root" && _stall_write $((1000 * $1)) "$STALL_CPU_GROUP/cpu.cfs_quota_us"
		return
	fi
	root=$(_stall_cgroup_mount cgroup2 '')
	[[ -n $root ]] && grep -qw cpu "$root/cgroup.controllers" || return 1
	if ! grep -qw cpu "$root/cgroup.subtree_control"; then
		_stall_write +cpu "$root/cgroup.subtree_control" || return 1
		stall_undo _stall_write -cpu "$root/cgroup.subtree_control"
	fi
	STALL_CPU_GROUP=$root/iostall-cpu.$$
	_stall_cpu_make "$root" && _stall_write "$((1000 * $1)) 100000" "$STALL_CPU_GROUP/cpu.max"
}
