# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Real stalls on private devices: pairs of loop devices and frozen file systems, and how all is undone.
# Sourced by tests and by the demo, as root. It runs itself as a program only for the guard (see below).
# Never touches a file system or device that it did not make, and never calls sync(2).
#
# The file $STALL_DIR/undo has one command in each line, which undoes one thing. The traps of the script run
# these commands. If the script is killed, a guard process runs them. The guard also thaws a file system that
# has been frozen for longer than $STALL_FREEZE_MAX_S. Bash runs a trap only after the command in the
# foreground has ended, and that command may wait for the thaw, so start it with stall_bg or stall_run.
#
# 	. tests/lib/stall.sh
# 	stall_init && stall_loop_pair && stall_need_stallio
# 	stall_make_file "$U_MNT/table" 8
# 	stall_throttle "$L_DEV" read_bps 1048576
# 	stall_bg "$STALLIO" --op pread --file "$U_MNT/table" --threads 8 >"$STALL_DIR/out"
# 	wait_blocked "$STALL_PID" 8

STALL_LIB=$(readlink -f "${BASH_SOURCE[0]}")
STALL_DIR=${STALL_DIR-}
STALL_PID=
STALL_FREEZE_MAX_S=${STALL_FREEZE_MAX_S:-60}
STALL_L_MIB=${STALL_L_MIB:-192}
STALL_U_MIB=${STALL_U_MIB:-128}

# shellcheck disable=SC1091 source=tests/lib/wait.sh
. "${STALL_LIB%/*}/wait.sh"
# shellcheck disable=SC1091 source=tests/lib/stall-throttle.sh
. "${STALL_LIB%/*}/stall-throttle.sh"
# shellcheck disable=SC1091 source=tests/lib/stall-cpu.sh
. "${STALL_LIB%/*}/stall-cpu.sh"
# shellcheck disable=SC1091 source=tests/lib/stall-dm.sh
. "${STALL_LIB%/*}/stall-dm.sh"

# --- undo -----------------------------------------------------------------------------------------

# _stall_note_undo first|later COMMAND...: the guard has no function of the script but those that are kept here.
_stall_note_undo()
{
	local when=$1
	shift

	if declare -F "$1" >/dev/null; then
		declare -f "$1" >>"$STALL_DIR/functions"
	fi
	printf '%s %s\n' "$when" "${*@Q}" >>"$STALL_DIR/undo"
}

# Commands that end a stall. They run before every command that the stall could block.
_stall_undo_first()
{
	_stall_note_undo first "$@"
}

# stall_undo COMMAND...: runs at the end, the last command first. It must do no harm when it runs twice, and a function
# may use its arguments and the functions of this library only.
stall_undo()
{
	_stall_note_undo later "$@"
}

_stall_run_undo()
{
	local want=$1 lines i

	mapfile -t lines <"$STALL_DIR/undo"
	for ((i = ${#lines[@]} - 1; i >= 0; i--)); do
		if [[ ${lines[i]%% *} == "$want" ]]; then
			eval "${lines[i]#* }" || :
		fi
	done
}

# Files of up to 1 MiB, and the lines of records without the blanks that follow in the spool.
_stall_keep_files()
{
	local file

	while IFS= read -r -d '' file; do
		sed '/^$/Q' "$file" >"$STALL_EVIDENCE/${file##*/}"
	done < <(find "$STALL_DIR" -maxdepth 2 -name '*.jsonl' -size -64M -print0)
	find "$STALL_DIR" -xdev -maxdepth 1 -type f -size -1024k ! -name undo ! -name functions ! -perm /111 \
		-exec cp -t "$STALL_EVIDENCE" {} +
}

# _stall_keep_evidence STATUS: what a script that failed leaves to whoever looks for the cause, in the directory
# $STALL_EVIDENCE if that is set. No stall lasts any more.
_stall_keep_evidence()
{
	[[ -n ${STALL_EVIDENCE-} ]] && (($1 != 0 || ${ASSERT_FAILED:-0} > 0)) || return 0
	mkdir -p "$STALL_EVIDENCE" || return 0
	_stall_keep_files
	{
		uname -a
		cat /proc/uptime /proc/loadavg
		grep -H . /proc/pressure/*
		cat /proc/self/mountinfo /proc/diskstats
		dmesg | tail -n 50
	} >"$STALL_EVIDENCE/host" 2>&1
}

# _stall_undo_all STATUS
_stall_undo_all()
{
	_stall_run_undo first
	_stall_keep_evidence "$1"
	_stall_run_undo later
	rm -f "$STALL_DIR/undo"
	if grep -q " $STALL_DIR/" /proc/self/mounts; then
		stall_error "$STALL_DIR is left behind: something is still mounted in it"
		return 1
	fi
	rm -rf --one-file-system "$STALL_DIR"
}

_stall_make_dir()
{
	local dir

	dir=$(mktemp -d "${TMPDIR:-/tmp}/iostall-test.$$.XXXXXX") || return 1
	# A database under test runs as another user, who must be able to reach its files.
	chmod 0711 "$dir"
	STALL_DIR=$(readlink -f "$dir")
	: >"$STALL_DIR/undo"
}

_stall_start_guard()
{
	_stall_starttime $$
	# It is not a child of the script, because "wait" without arguments must not wait for it.
	(cd / && setsid bash "$STALL_LIB" guard "$STALL_DIR" $$ "$STALL_STARTTIME" \
		</dev/null >/dev/null 2>&1 &)
}

# stall_init: makes the private directory, guard, traps and tracefs. Call it once, not in a subshell.
stall_init()
{
	if ((EUID != 0)); then
		stall_error "real stalls need root"
		return 1
	fi
	_stall_make_dir || return 1
	trap stall_cleanup EXIT
	trap 'exit 129' HUP
	trap 'exit 130' INT
	trap 'exit 141' PIPE
	trap 'exit 143' TERM
	_stall_start_guard
	stall_undo _stall_tracefs_drop $$
	_stall_tracefs_take $$
}

# stall_cleanup: restores everything. The traps call it; a second call does nothing.
stall_cleanup()
{
	local status=$?

	trap '' HUP INT PIPE TERM
	set +e
	if [[ -n $STALL_DIR && -e $STALL_DIR/undo ]]; then
		_stall_undo_all "$status"
	fi
	STALL_DIR=
	STALL_THROTTLED=()
	STALL_CGROUP_DIRS=()
	trap - EXIT HUP INT PIPE TERM
	return "$status"
}

# stall_bg COMMAND...: runs it in the background, sets STALL_PID, and ends it at clean-up. Redirect the call.
stall_bg()
{
	"$@" {STALL_NAP_FD}>&- &
	STALL_PID=$!
	if _stall_starttime "$STALL_PID"; then
		stall_undo _stall_end_process "$STALL_PID" "$STALL_STARTTIME"
	fi
}

# stall_run COMMAND...: waits for the command, but a signal to the script takes effect at once.
stall_run()
{
	stall_bg "$@"
	wait "$STALL_PID"
}

_stall_gone()
{
	! _stall_alive "$1" "$2" || [[ $(<"/proc/$1/stat") == *') Z '* ]]
}

_stall_end_process()
{
	_stall_gone "$1" "$2" && return 0
	kill -TERM "$1"
	if ! wait_until 2 _stall_gone "$1" "$2" 2>/dev/null; then
		kill -KILL "$1"
		wait_until 10 _stall_gone "$1" "$2"
	fi
}

_stall_write()
{
	{ echo "$1" >"$2"; } 2>/dev/null
}

# stall_limit_dirty BACKGROUND_MIB MIB: so much of all files may wait to be written, until the test ends.
stall_limit_dirty()
{
	local vm=/proc/sys/vm name kept

	for name in dirty_background dirty; do
		# Of the two, the one that counts is not 0, and writing it sets the other one to 0.
		kept=$vm/${name}_bytes
		(($(<"$kept") > 0)) || kept=$vm/${name}_ratio
		stall_undo _stall_write "$(<"$kept")" "$kept"
	done
	_stall_write $(($1 << 20)) "$vm/dirty_background_bytes" && _stall_write $(($2 << 20)) "$vm/dirty_bytes"
}

# --- tracefs --------------------------------------------------------------------------------------

# Test scripts that run at the same time share the mount. Each script that uses it has a file.
_STALL_TRACEFS_USERS=/run/iostall-tests.tracefs

# The first script that needs tracefs mounts it, and the last one unmounts it.
_stall_tracefs_take()
{
	(
		flock -w 10 9 || exit 1
		if mountpoint -q /sys/kernel/tracing && [[ ! -d $_STALL_TRACEFS_USERS ]]; then
			exit 0
		fi
		mkdir -p "$_STALL_TRACEFS_USERS"
		: >"$_STALL_TRACEFS_USERS/$1"
		mountpoint -q /sys/kernel/tracing ||
			mount -t tracefs -o nosuid,nodev,noexec tracefs /sys/kernel/tracing
	) 9</run
}

_stall_tracefs_drop()
{
	local user

	[[ -d $_STALL_TRACEFS_USERS ]] || return 0
	(
		flock -w 10 9
		rm -f "$_STALL_TRACEFS_USERS/$1"
		for user in "$_STALL_TRACEFS_USERS"/*; do
			[[ -d /proc/${user##*/} ]] || rm -f "$user"
		done
		if rmdir "$_STALL_TRACEFS_USERS" 2>/dev/null; then
			umount -l /sys/kernel/tracing
		fi
	) 9</run
}

# --- loop devices ---------------------------------------------------------------------------------

_stall_umount()
{
	mountpoint -q "$1" || return 0
	wait_until 10 umount "$1" || umount -l "$1"
}

# A loop device is ours only while its backing file is ours.
_stall_loop_detach()
{
	[[ $(losetup -n -O BACK-FILE "$1" 2>/dev/null) == "$2"* ]] || return 0
	losetup -d "$1"
}

# _stall_loop IMAGE [LOSETUP-OPTION...]: attaches the image and sets STALL_LOOP to the device.
_stall_loop()
{
	STALL_LOOP=$(losetup --find --show "${@:2}" "$1") || return 1
	stall_undo _stall_loop_detach "$STALL_LOOP" "$1"
}

# mkfs must neither discard nor postpone work. A discard would punch holes into the preallocated image, and a
# lazy initialisation would load the disk during the test.
_stall_mkfs_mount()
{
	local dev=$1 mnt=$2

	mkfs.ext4 -q -F -E lazy_itable_init=0,lazy_journal_init=0,nodiscard -J size=4 "$dev" ||
		return 1
	mkdir -p "$mnt"
	mount -t ext4 -o noatime "$dev" "$mnt" || return 1
	stall_undo _stall_umount "$mnt"
}

# stall_loop_pair: makes ext4 on loop device U, whose image is on ext4 on loop device L. Sets U_DEV L_DEV U_MNT
# L_MNT U_IMAGE L_IMAGE, and U_DIRECT=1 when U bypasses the page cache of L, if the kernel allows that.
stall_loop_pair()
{
	modprobe -q loop 2>/dev/null || :
	L_IMAGE=$STALL_DIR/lower.img L_MNT=$STALL_DIR/lower
	U_IMAGE=$L_MNT/upper.img U_MNT=$STALL_DIR/upper
	truncate -s "${STALL_L_MIB}M" "$L_IMAGE" || return 1
	_stall_loop "$L_IMAGE" || return 1
	L_DEV=$STALL_LOOP
	_stall_mkfs_mount "$L_DEV" "$L_MNT" || return 1
	fallocate -l "${STALL_U_MIB}M" "$U_IMAGE" || return 1
	U_DIRECT=1
	if ! _stall_loop "$U_IMAGE" --direct-io=on 2>/dev/null; then
		U_DIRECT=0
		_stall_loop "$U_IMAGE" || return 1
	fi
	U_DEV=$STALL_LOOP
	_stall_mkfs_mount "$U_DEV" "$U_MNT"
}

_stall_drop_cache()
{
	dd if=/dev/null of="$1" conv=notrunc,fdatasync oflag=nocache status=none
	dd if="$1" iflag=nocache count=0 status=none
}

# drop_file_cache FILE: writes its pages back and drops them, also those of the image when U is buffered.
drop_file_cache()
{
	_stall_drop_cache "$1" || return 1
	if [[ ${U_DIRECT-1} == 0 && $1 == "$U_MNT"/* ]]; then
		_stall_drop_cache "$U_IMAGE"
	fi
}

# stall_make_file PATH MIB: writes a file and drops its pages from the cache.
stall_make_file()
{
	dd if=/dev/zero of="$1" bs=1M count="$2" conv=fsync status=none || return 1
	drop_file_cache "$1"
}

# --- freeze ---------------------------------------------------------------------------------------

_stall_is_ours()
{
	[[ -n $STALL_DIR && $1 == "$STALL_DIR"/* ]] && mountpoint -q "$1"
}

_stall_thaw()
{
	mountpoint -q "$1" && fsfreeze -u "$1" 2>/dev/null
}

# Tells the guard when to undo everything, unless it has been undone by then.
_stall_heal_later()
{
	_stall_now
	echo $((STALL_NOW_CS + STALL_FREEZE_MAX_S * 100)) >"$STALL_DIR/thaw_at"
}

# On older kernels a loop device with direct I/O can write although the file system below it is frozen: on 6.1
# a direct write returned at once. A buffered loop device waits on all kernels.
_stall_upper_direct()
{
	if [[ $1 == "${L_MNT-}" && $U_DIRECT == 1 ]]; then
		losetup --direct-io="$2" "$U_DEV"
	fi
}

# stall_freeze MNT: freezes one of our own mounts. It is thawed after STALL_FREEZE_MAX_S at the latest.
stall_freeze()
{
	if ! _stall_is_ours "$1"; then
		stall_error "$1 is not a mount of this script: not frozen"
		return 1
	fi
	_stall_undo_first _stall_thaw "$1"
	_stall_upper_direct "$1" off || return 1
	_stall_heal_later
	fsfreeze -f "$1"
}

# stall_thaw MNT
stall_thaw()
{
	rm -f "$STALL_DIR/thaw_at"
	fsfreeze -u "$1" || return 1
	_stall_upper_direct "$1" on
}

# --- the workload program -------------------------------------------------------------------------

# stall_need_stallio: sets STALLIO. It builds the program in $STALL_DIR when STALLIO is not set.
stall_need_stallio()
{
	local tools

	tools=$(dirname "$STALL_LIB")/../tools
	if [[ -x ${STALLIO-} ]]; then
		return 0
	fi
	STALLIO=$STALL_DIR/stallio
	"${CC:-cc}" -std=gnu11 -O2 -pthread -o "$STALLIO" "$tools/stallio.c" \
		"$tools/stallio_options.c"
}

# --- the guard ------------------------------------------------------------------------------------

_stall_guard_thaw_late()
{
	local thaw_at_cs

	{ read -r thaw_at_cs <"$STALL_DIR/thaw_at"; } 2>/dev/null || return 0
	_stall_now
	if ((STALL_NOW_CS > thaw_at_cs)); then
		rm -f "$STALL_DIR/thaw_at"
		_stall_run_undo first
	fi
}

_stall_guard()
{
	local script_pid=$2 script_start=$3

	STALL_DIR=$1
	trap '' HUP INT PIPE TERM
	while [[ -e $STALL_DIR/undo ]]; do
		if ! _stall_alive "$script_pid" "$script_start"; then
			# shellcheck disable=SC1091 # those of the script
			[[ ! -e $STALL_DIR/functions ]] || . "$STALL_DIR/functions"
			_stall_undo_all 1
			return
		fi
		_stall_guard_thaw_late
		_stall_nap 0.25
	done
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
	if [[ ${1-} != guard || $# != 4 ]]; then
		echo "stall.sh is a library: source it" >&2
		exit 2
	fi
	_stall_guard "${@:2}"
fi
