#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck disable=SC2016,SC2034,SC2153
#
# Shows that the stalls the other tests build on are real, as long as computed, and always undone.
# Needs root. STALLIO names a built workload program; without it one is built.
set -uo pipefail

HERE=$(dirname "$(readlink -f "$0")")
# shellcheck disable=SC1091 source=tests/lib/assert.sh
. "$HERE/../lib/assert.sh"
# shellcheck disable=SC1091 source=tests/lib/stall.sh
. "$HERE/../lib/stall.sh"

KIB=1024
MIB=$((1024 * 1024))

elapsed_ms_since()
{
	_stall_now
	echo $(((STALL_NOW_CS - $1) * 10))
}

now_cs()
{
	_stall_now
	echo "$STALL_NOW_CS"
}

# Bytes read from a disk so far: the kernel's own count, to hold against what the readers say.
disk_read_bytes()
{
	local name=${1#/dev/} fields

	read -ra fields <"/sys/block/$name/stat"
	echo $((fields[2] * 512))
}

setup()
{
	local start_cs

	stall_init || exit 1
	stall_need_stallio || exit 1
	start_cs=$(now_cs)
	if ! stall_loop_pair; then
		not_ok "loop pair"
		exit 1
	fi
	assert_between "$(elapsed_ms_since "$start_cs")" 0 3000 \
		"loop pair is set up within 3 s"
	assert_eq "$(findmnt -no FSTYPE -M "$L_MNT")" ext4 "lower file system is mounted"
	assert_eq "$(findmnt -no FSTYPE -M "$U_MNT")" ext4 "upper file system is mounted"
	printf '# upper loop bypasses the lower page cache: %s\n' "$U_DIRECT"
}

# --- the workload program -------------------------------------------------------------------------

test_stallio_usage()
{
	local file=$STALL_DIR/small

	head -c 4096 /dev/zero >"$file"
	assert_rc 0 "stallio --help succeeds" "$STALLIO" --help
	assert_rc 2 "no operation is a usage error" "$STALLIO"
	assert_rc 2 "an unknown operation is a usage error" "$STALLIO" --op shout --file "$file"
	assert_rc 2 "a file operation without a file is a usage error" "$STALLIO" --op read
	assert_rc 2 "a bad number is a usage error" \
		"$STALLIO" --op read --file "$file" --threads 4x
	assert_rc 2 "a negative number is a usage error" \
		"$STALLIO" --op read --file "$file" --offset -1
	assert_rc 2 "unaligned direct I/O is a usage error" \
		"$STALLIO" --op pread --file "$file" --direct --length 100
	assert_rc 2 "fsync of a reader is a usage error" "$STALLIO" --op read --file "$file" --fsync
	assert_rc 2 "a stray argument is a usage error" "$STALLIO" --op read --file "$file" more
	assert_rc 1 "a missing file is a failure" "$STALLIO" --op read --file "$file.not"
	assert_rc 1 "a read past the end is a failure" \
		"$STALLIO" --op read --file "$file" --offset 4K
}

test_stallio_record()
{
	local file=$STALL_DIR/'odd "name"' out=$STALL_DIR/record.json

	head -c 1M /dev/urandom >"$file"
	"$STALLIO" --op pread --file "$file" --threads 3 --count 2 --length 8K --offset 64K \
		--hold-fd 23 --comm 'a"b' >"$out"
	assert_jq_slurp "$out" 'length == 6' "one line per operation"
	assert_jq_slurp "$out" 'map(.fd) | unique == [23, 24, 25]' "descriptors are those asked for"
	assert_jq_slurp "$out" 'map(.offset) | sort == [range(6) * 8192 + 65536]' \
		"every operation has pages of its own"
	assert_jq_slurp "$out" 'map(.tid) | unique | length == 3' "a tid for each thread"
	assert_jq_slurp "$out" 'all(.path == $p and .comm == "a\"b")' "names survive quoting" \
		--arg p "$file"
	assert_jq_slurp "$out" 'all(.inode == $i and .dev == $d)' \
		"device and inode are those of stat" --argjson i "$(stat -c %i "$file")" \
		--arg d "$(mountpoint -d "$(stat -c %m "$file")")"
	"$STALLIO" --op write --file "$file" --fsync --count 2 >"$out"
	assert_jq_slurp "$out" 'map(.op) == ["write", "fsync", "write", "fsync"]' \
		"each write is followed by its fsync"
}

test_waits_that_are_no_stalls()
{
	local op out=$STALL_DIR/wait.json pid

	for op in pipe-read socket-read tty-read; do
		stall_bg "$STALLIO" --op "$op" --threads 3 --seconds 1 --hold-fd 23 >"$out"
		pid=$STALL_PID
		assert_cmd "$op blocks in read" wait_blocked "$pid" 3
		wait "$pid"
		assert_eq $? 0 "$op returns"
		assert_jq_slurp "$out" 'length == 3 and all(.ret == 1 and .dur_ns > 900000000)' \
			"$op lasts as long as asked"
	done
	head -c 1M /dev/zero >"$STALL_DIR/cached"
	"$STALLIO" --op spin-read --file "$STALL_DIR/cached" --threads 2 --seconds 1 >"$out"
	assert_eq $? 0 "spin-read ends"
	assert_jq "$out" '.count > 1000 and .dur_ns >= 1000000000' "spin-read counts its reads"
}

# --- throttle -------------------------------------------------------------------------------------

# 8 readers of 256 KiB at 1 MiB/s: 2 s in all. The kernel lets a first slice of up to 100 ms pass.
test_throttled_read()
{
	local out=$STALL_DIR/throttled.json reason pid before after
	local file=$U_MNT/table bytes=$((8 * 256 * KIB))

	if ! reason=$(stall_can_throttle); then
		skip "throttled read takes as long as computed" "$reason"
		return
	fi
	stall_make_file "$file" 4
	assert_cmd "file has no page in the cache" test "$(fincore -nbo PAGES "$file")" -eq 0
	if ! stall_throttle "$L_DEV" read_bps "$MIB"; then
		not_ok "throttle is set"
		return
	fi
	before=$(disk_read_bytes "$L_DEV")
	stall_bg "$STALLIO" --op pread --file "$file" --threads 8 --length 256K --hold-fd 23 \
		--ready "$STALL_DIR/ready" --go "$STALL_DIR/go" >"$out"
	pid=$STALL_PID
	assert_cmd "the workload tells when it is ready" wait_until 10 test -e "$STALL_DIR/ready"
	: >"$STALL_DIR/go"
	assert_cmd "8 threads are blocked at once" wait_blocked "$pid" 8
	wait "$pid"
	assert_eq $? 0 "throttled readers finish"
	after=$(disk_read_bytes "$L_DEV")
	printf '# %s ms for %s bytes\n' "$(span_ms "$out")" "$bytes"
	assert_between "$(span_ms "$out")" 1700 2600 \
		"$((bytes / KIB)) KiB at 1 MiB/s take 2 s"
	assert_between $((after - before)) "$bytes" $((bytes + 64 * KIB)) \
		"the lower disk read these bytes and hardly more"
	assert_cmd "throttle is lifted" stall_unthrottle
	test_unthrottled "$file" "$out"
}

test_unthrottled()
{
	drop_file_cache "$1"
	"$STALLIO" --op pread --file "$1" --threads 8 --length 256K >"$2"
	assert_between "$(span_ms "$2")" 0 500 "the same read is fast without it"
}

span_ms()
{
	jq -s '(map(.start_mono_ns + .dur_ns) | max) - (map(.start_mono_ns) | min) |
		. / 1000000 | round' "$1"
}

test_unthrottle_frees_the_stuck()
{
	local out=$STALL_DIR/freed.json start_cs pid

	stall_can_throttle >/dev/null || return
	drop_file_cache "$U_MNT/table"
	stall_throttle "$L_DEV" read_bps 4096
	stall_bg "$STALLIO" --op pread --file "$U_MNT/table" --length 1M >"$out"
	pid=$STALL_PID
	assert_cmd "a reader is stuck at 4 KiB/s" wait_blocked "$pid" 1
	start_cs=$(now_cs)
	stall_unthrottle "$L_DEV"
	wait "$pid"
	assert_between "$(elapsed_ms_since "$start_cs")" 0 2000 \
		"lifting the limit frees a reader that would have taken 256 s"
}

# --- freeze ---------------------------------------------------------------------------------------

test_frozen_write()
{
	local out=$STALL_DIR/frozen.json pid direct_pid start_cs frozen_ms

	stall_make_file "$U_MNT/wal" 1
	stall_make_file "$U_MNT/pages" 1
	assert_cmd "lower file system freezes" stall_freeze "$L_MNT"
	stall_bg "$STALLIO" --op pwrite --file "$U_MNT/wal" --fsync >"$out"
	pid=$STALL_PID
	stall_bg "$STALLIO" --op write --file "$U_MNT/pages" --direct --offset 64K >"$out.direct"
	direct_pid=$STALL_PID
	assert_cmd "fsync hangs" wait_blocked "$pid" 1
	assert_cmd "direct write hangs" wait_blocked "$direct_pid" 1
	start_cs=$(now_cs)
	# That it is stuck and not slow shows only over time: a second of this kernel's clock.
	wait_until 5 eval "((\$(elapsed_ms_since $start_cs) >= 1000))"
	assert_cmd "both still hang after 1 s" \
		eval "wait_blocked $pid 1 && wait_blocked $direct_pid 1"
	assert_cmd "the direct write has not returned" test ! -s "$out.direct"
	assert_cmd "the fsync has not returned" eval "! grep -q '\"fsync\"' '$out'"
	frozen_ms=$(elapsed_ms_since "$start_cs")
	assert_cmd "lower file system thaws" stall_thaw "$L_MNT"
	wait "$pid"
	assert_eq $? 0 "the fsync returns after the thaw"
	wait "$direct_pid"
	assert_eq $? 0 "the direct write returns after the thaw"
	assert_jq "$out" 'select(.op == "fsync" and .dur_ns > ($ms - 10) * 1000000)' \
		"the fsync measured the freeze" --argjson ms "$frozen_ms"
	assert_jq "$out.direct" 'select(.ret == 4096 and .dur_ns > ($ms - 10) * 1000000)' \
		"the direct write measured the freeze" --argjson ms "$frozen_ms"
}

test_freeze_refused()
{
	assert_rc 1 "the root file system is not frozen" stall_freeze /
	assert_rc 1 "a directory that is no mount is not frozen" stall_freeze "$STALL_DIR"
}

# --- device-mapper, scsi_debug --------------------------------------------------------------------

test_dm()
{
	local reason out=$STALL_DIR/dm.json pid

	if ! reason=$(stall_have_dm); then
		skip "suspended and delayed dm device" "$reason"
		return
	fi
	assert_cmd_here "dm device is set up" stall_dm_setup || return
	stall_make_file "$DM_MNT/table" 1
	stall_dm_suspend
	stall_bg "$STALLIO" --op pread --file "$DM_MNT/table" --threads 3 >"$out"
	pid=$STALL_PID
	assert_cmd "readers of a suspended device block" wait_blocked "$pid" 3
	stall_dm_resume
	wait "$pid"
	assert_eq $? 0 "they return after the resume"
	if ! stall_dm_delay 500; then
		not_ok "dm-delay is set"
		return
	fi
	"$STALLIO" --op pread --file "$DM_MNT/table" --direct >"$out"
	assert_jq "$out" '.dur_ns > 490000000' "a read of a delayed device takes its 500 ms"
	assert_cmd "delay is taken away" stall_dm_delay 0
	"$STALLIO" --op pread --file "$DM_MNT/table" --direct >"$out"
	assert_jq "$out" '.dur_ns < 490000000' "the read is fast again"
}

test_scsi()
{
	local reason out=$STALL_DIR/scsi.json

	if ! reason=$(stall_have_scsi); then
		skip "slow scsi_debug disk" "$reason"
		return
	fi
	assert_cmd_here "scsi_debug disk is set up" stall_scsi_setup || return
	stall_make_file "$SCSI_MNT/table" 1
	assert_cmd "scsi_debug slows down" stall_scsi_delay 125
	"$STALLIO" --op pread --file "$SCSI_MNT/table" --direct >"$out"
	assert_jq "$out" '.dur_ns > 400000000' "a read of the slow disk takes its time"
	assert_cmd "scsi_debug is fast again" stall_scsi_delay 0
}

# As assert_cmd, in this shell: for what sets variables.
assert_cmd_here()
{
	local name=$1
	shift

	if "$@"; then
		ok "$name"
	else
		not_ok "$name" "$* failed"
		return 1
	fi
}

# --- clean-up, whatever the end -------------------------------------------------------------------

# The script that gets killed: throttled, frozen, and with a writer that hangs. How it waits is the
# difference: "wait" reacts to a signal, a command in the foreground does not.
victim()
{
	set -e
	stall_init
	STALL_FREEZE_MAX_S=$2
	stall_loop_pair
	stall_make_file "$U_MNT/wal" 1
	if stall_can_throttle >/dev/null; then
		stall_throttle "$L_DEV" write_bps "$MIB"
		stall_throttle "$U_DEV" read_iops 5
	fi
	stall_bg "$STALLIO" --op pwrite --file "$U_MNT/wal" --fsync --go "$1/go" \
		--ready "$STALL_DIR/ready" >/dev/null
	wait_until 10 test -e "$STALL_DIR/ready"
	stall_freeze "$L_MNT"
	: >"$1/go"
	wait_blocked "$STALL_PID" 1
	echo "STALL_DIR=$STALL_DIR U_DEV=$U_DEV L_DEV=$L_DEV WRITER=$STALL_PID" >"$1/state.new"
	mv "$1/state.new" "$1/state"
	if [[ $3 == foreground ]]; then
		"$STALLIO" --op write --file "$U_MNT/wal" --direct >/dev/null
	else
		wait "$STALL_PID"
	fi
}

# Everything a victim may leave behind, as text; nothing when all is undone.
leftovers()
{
	local dir

	losetup -a | grep -F "$1/" || :
	grep -F " $1/" /proc/self/mounts || :
	if [[ -e $1 ]]; then
		echo "directory $1"
	fi
	if [[ -d /proc/$2 ]]; then
		echo "process $2"
	fi
	compgen -G "/sys/block/dm-*/dm/name" | xargs -r grep -H "iostall-test-$5$" || :
	for dir in "${STALL_CGROUP_DIRS[@]}"; do
		leftover_limits "$dir" "$3"
		leftover_limits "$dir" "$4"
	done
	findmnt -rn -t cgroup,cgroup2 -o TARGET | while read -r dir; do
		compgen -G "$dir/iostall-test.$5" || :
	done
}

leftover_limits()
{
	local devno

	devno=$(lsblk -dnro MAJ:MIN "$2" 2>/dev/null) || return 0
	grep -Hs "^$devno " "$1"/blkio.throttle.*_device "$1/io.max" || :
}

nothing_left()
{
	local left

	left=$(leftovers "$@")
	[[ -z $left ]] && return 0
	echo "$left"
	return 1
}

# test_killed NAME SIGNAL FREEZE-LIMIT HOW STATUS
test_killed()
{
	local dir=$STALL_DIR/$1 signal=$2 status=$5 pid start_cs
	local STALL_DIR=$STALL_DIR U_DEV=$U_DEV L_DEV=$L_DEV WRITER=

	mkdir "$dir"
	# A background command of a script ignores SIGINT from birth, and bash cannot undo that.
	stall_bg env --default-signal=INT "$BASH" "$HERE/selftest.sh" victim "$dir" "$3" "$4" \
		2>"$dir/err"
	pid=$STALL_PID
	if ! wait_until 20 test -e "$dir/state"; then
		not_ok "$1: the victim stands frozen" "$(<"$dir/err")"
		return
	fi
	eval "$(<"$dir/state")"
	assert_cmd "$1: its writer hangs" wait_blocked "$WRITER" 1
	start_cs=$(now_cs)
	kill "-$signal" "$pid"
	wait "$pid" 2>/dev/null
	assert_eq $? "$status" "$1: the status tells the signal"
	assert_cmd "$1: nothing is left behind" wait_until 15 \
		nothing_left "$STALL_DIR" "$WRITER" "$U_DEV" "$L_DEV" "$pid"
	printf '# %s: clean after %s ms\n' "$1" "$(elapsed_ms_since "$start_cs")"
}

main()
{
	local tracefs_before dir

	tracefs_before=$(findmnt -rn -o FSTYPE -M /sys/kernel/tracing)
	setup
	assert_cmd "tracefs is mounted" test -d /sys/kernel/tracing/events
	test_stallio_usage
	test_stallio_record
	test_waits_that_are_no_stalls
	test_throttled_read
	test_unthrottle_frees_the_stuck
	test_frozen_write
	test_freeze_refused
	test_dm
	test_scsi
	export STALLIO
	test_killed term TERM 60 wait 143
	test_killed int INT 60 wait 130
	test_killed foreground TERM 3 foreground 143
	test_killed kill KILL 60 wait 137
	dir=$STALL_DIR
	stall_cleanup
	assert_cmd "own devices and mounts are gone" wait_until 10 \
		nothing_left "$dir" none "$U_DEV" "$L_DEV" $$
	if [[ -n ${SCSI_DEV-} ]]; then
		assert_cmd "scsi_debug is unloaded" wait_until 10 test ! -d "$_STALL_SCSI"
	fi
	if [[ ! -d /run/iostall-tests.tracefs ]]; then
		assert_eq "$(findmnt -rn -o FSTYPE -M /sys/kernel/tracing)" "$tracefs_before" \
			"tracefs is mounted or not, as before"
	fi
	assert_finish
}

if [[ ${1-} == victim ]]; then
	victim "${@:2}"
	exit
fi
main
