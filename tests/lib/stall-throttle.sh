# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Limits on block devices, set through blkio.throttle of cgroup v1 or io.max of cgroup v2.
# Sourced by stall.sh.
# Limits only the given devices, and leaves neither a limit nor a cgroup behind.

# STALL_LIMITS has the limits that are set, as "major:minor what". The first limit finds the cgroups.
STALL_THROTTLED=()
STALL_CGROUP_DIRS=()
STALL_CGROUP_VERSION=

_stall_cgroup_mount()
{
	local type=$1 option=$2

	findmnt -rn -t "$type" ${option:+-O "$option"} -o TARGET | head -n 1
}

# Version 1 is not hierarchical, and kworkers and jbd2 are in the root, so both groups get the limit.
_stall_cgroup_v1()
{
	local root own

	root=$(_stall_cgroup_mount cgroup blkio)
	[[ -n $root && -w $root/blkio.throttle.read_bps_device ]] || return 1
	own=$(sed -n 's/^[0-9]*:\([^:]*,\)*blkio\(,[^:]*\)*://p' /proc/self/cgroup)
	STALL_CGROUP_VERSION=1
	STALL_CGROUP_DIRS=("$root")
	if [[ -n ${own#/} && -d $root$own ]]; then
		STALL_CGROUP_DIRS+=("$root$own")
	fi
}

# In version 2 the root cannot have limits, so the script moves into a new group below the root.
_stall_cgroup_v2()
{
	local root group old

	root=$(_stall_cgroup_mount cgroup2 '')
	[[ -n $root ]] && grep -qw io "$root/cgroup.controllers" || return 1
	if ! grep -qw io "$root/cgroup.subtree_control"; then
		_stall_write +io "$root/cgroup.subtree_control" || return 1
		stall_undo _stall_write -io "$root/cgroup.subtree_control"
	fi
	group=$root/iostall-test.$$
	if [[ ! -d $group ]]; then
		old=$root$(sed -n 's/^0:://p' /proc/self/cgroup)
		mkdir "$group" || return 1
		stall_undo _stall_cgroup_leave "$group" "$old"
	fi
	[[ -e $group/io.max ]] && _stall_write $$ "$group/cgroup.procs" || return 1
	STALL_CGROUP_VERSION=2
	STALL_CGROUP_DIRS=("$group")
}

_stall_cgroup_leave()
{
	local pid

	[[ -d $1 ]] || return 0
	while read -r pid; do
		_stall_write "$pid" "$2/cgroup.procs"
	done <"$1/cgroup.procs"
	wait_until 5 rmdir "$1"
}

# stall_can_throttle: returns 0 when the kernel can limit devices; otherwise it prints the reason.
stall_can_throttle()
{
	((${#STALL_CGROUP_DIRS[@]} > 0)) && return 0
	_stall_cgroup_v1 || _stall_cgroup_v2 && return 0
	echo "neither cgroup v1 blkio.throttle nor cgroup v2 io.max is available"
	return 1
}

# _stall_throttle_set VERSION DIR MAJOR:MINOR WHAT VALUE: VALUE 0 removes the limit.
_stall_throttle_set()
{
	local version=$1 dir=$2 devno=$3 what=$4 value=$5

	if ((version == 1)); then
		_stall_write "$devno $value" "$dir/blkio.throttle.${what}_device"
		return
	fi
	((value > 0)) || value=max
	_stall_write "$devno ${what:0:1}${what#*_}=$value" "$dir/io.max"
}

_stall_throttle_all_dirs()
{
	local dir

	for dir in "${STALL_CGROUP_DIRS[@]}"; do
		_stall_throttle_set "$STALL_CGROUP_VERSION" "$dir" "$@" || return 1
	done
}

# stall_throttle DEV read_bps|write_bps|read_iops|write_iops VALUE: limits DEV to VALUE bytes or requests per
# second, for this script, for every process it starts from now on, and in version 1 for kernel threads.
stall_throttle()
{
	local devno dir reason what=$2 value=$3

	if [[ ! $what =~ ^(read|write)_(bps|iops)$ || ! $value =~ ^[1-9][0-9]*$ ]]; then
		stall_error "$what $value is no limit: want read_bps 1048576 or the like"
		return 2
	fi
	if ! reason=$(stall_can_throttle) || ! stall_can_throttle >/dev/null; then
		stall_error "$1: $reason"
		return 1
	fi
	devno=$(lsblk -dnro MAJ:MIN "$1") || return 1
	for dir in "${STALL_CGROUP_DIRS[@]}"; do
		_stall_undo_first _stall_throttle_set "$STALL_CGROUP_VERSION" "$dir" \
			"$devno" "$what" 0
	done
	STALL_THROTTLED+=("$devno $what")
	_stall_throttle_all_dirs "$devno" "$what" "$value" && return 0
	stall_error "$1: the kernel refused $what $value"
	return 1
}

# stall_unthrottle [DEV]: removes the limits of one device, or of all.
stall_unthrottle()
{
	local devno='' limit rest=() status=0

	if [[ -n ${1-} ]]; then
		devno=$(lsblk -dnro MAJ:MIN "$1") || return 1
	fi
	for limit in "${STALL_THROTTLED[@]}"; do
		if [[ -n $devno && $devno != "${limit% *}" ]]; then
			rest+=("$limit")
		else
			_stall_throttle_all_dirs "${limit% *}" "${limit#* }" 0 || status=1
		fi
	done
	STALL_THROTTLED=("${rest[@]}")
	return "$status"
}
