# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Owns what the tests of exec-lock share: processes that hang while they execute a program, and questions to iostall.
# Sourced by exec-lock and exec-lock-answers instead of lib.sh.
# Never judges how long something took; it sets EXEC_LOCK_LATEST_MS to the longest time that an answer took.

# shellcheck disable=SC1091 source=tests/live/lib.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/lib.sh"

READERS=12
ANSWERS=15
EXEC_LOCK_LATEST_MS=0

need_fuse()
{
	live_fuse && return
	skip "all" "this kernel has no FUSE"
	assert_finish
	exit
}

is_in_d()
{
	# Newer kernels keep whoever reads stat waiting, too.
	grep -q '^State:.D' "/proc/$1/status"
}

# hang_in_exec OPTION PROGRAM...: sets VICTIM to a watched process that hangs while it executes a program. It waits
# until stall_bg() has read its stat, which newer kernels keep from whoever comes later.
hang_in_exec()
{
	local gate=$STALL_DIR/gate

	[[ -p $gate ]] || mkfifo "$gate" || exit 1
	stall_bg "$BASH" -c 'read -r <"$0"; exec "$@"' "$gate" \
		"$STALL_DIR/$VICTIM_NAME" "$1" "$LIVE_FUSE/file" "${@:2}"
	VICTIM=$STALL_PID
	echo >"$gate"
	assert_cmd "a process hangs while it executes a program" wait_until "$LIVE_WAIT_S" is_in_d "$VICTIM"
}

# ask_often WHEN: some of the questions come before the watchdog has looked again, others after it.
ask_often()
{
	local i before_ms answers=0

	for ((i = 0; i < ANSWERS; i++)); do
		live_now_ms
		before_ms=$LIVE_NOW_MS
		live_ask status >/dev/null && answers=$((answers + 1))
		live_now_ms
		((LIVE_NOW_MS - before_ms <= EXEC_LOCK_LATEST_MS)) || EXEC_LOCK_LATEST_MS=$((LIVE_NOW_MS - before_ms))
		live_wait_until_ms $((LIVE_NOW_MS + 200))
	done
	assert_eq "$answers" "$ANSWERS" "iostall status always answers $1"
}

# watches N: so many processes are watched.
watches()
{
	live_ask status | jq -e --argjson n "$1" '.watched_processes == $n' >/dev/null
}

# Another stack may have to be given up first, and a line with a stack comes after that.
readers_have_stacks()
{
	live_read_spool
	jq -e -s --argjson readers "$READERS" '[.[] | select(.type == "stuck" and .op == "read" and
		.comm == "stallio")] | group_by(.tid) |
		length == $readers and all(last.kstack | length > 0)' "$RECORD"
}

exec_lock_test()
{
	local first before after old

	LIVE_PROBES="vfs wait"
	live_init
	need_fuse
	# A name that no other process of the host has.
	VICTIM_NAME=hang.$$
	cp "$FUSEHANG" "$STALL_DIR/$VICTIM_NAME"
	live_disk || exit 1
	live_fill "$LIVE_MNT/table" || exit 1
	hang_in_exec --exec sleep 600
	first=$VICTIM
	live_daemon --set "watch.process=$VICTIM_NAME" || exit 1
	assert_cmd "it is watched" live_wait watches 1
	ask_often "beside a process that hung before it started"
	live_load readers --op pread --file "$LIVE_MNT/table" --threads $READERS --hold-fd 41 \
		--offset 12345 --length 777 || exit 1
	live_hold
	live_go
	live_assert_blocked $READERS
	hang_in_exec --exec sleep 600
	before=$VICTIM
	assert_cmd "it is watched" live_wait watches 2
	ask_often "beside a process that hangs while idle"
	live_trigger 60s || exit 1
	hang_in_exec --exec sleep 600
	after=$VICTIM
	old=
	if live_has_32; then
		hang_in_exec --exec32 /bin/true
		old=$VICTIM
	fi
	live_part "asking"
	ask_often "in an incident"
	live_wait live_has_stuck $((READERS + 3 + (old > 0))) 2
	assert_cmd "the stacks of the readers are read nevertheless" live_wait readers_have_stacks
	: >"$STALL_DIR/release"
	live_release
	live_wait_loads "$READERS readers"
	live_stop
	assert_eq "$LIVE_STATUS ${RECORD%/*}" "0 $LIVE_RECORDS" "iostall ends with 0 and has moved the record"
	assert_jq_slurp "$RECORD" '[.[] | select(.type == "stuck" and .tid == $tid)] | length > 1 and
		all(.state == "D" and .since == "after_arm" and .waits_for == "FUSE server" and
		(.kstack | any(startswith("fuse_"))))' \
		"the stack of the second process is that of its sleep" --argjson tid "$after"
	if [[ $old ]]; then
		assert_jq_slurp "$RECORD" '[.[] | select(.type == "stuck" and .tid == $tid)] | length > 1 and
			all(.syscall == 59)' \
			"a process that executes like a 32-bit program has the same number" --argjson tid "$old"
	else
		skip "a process that executes like a 32-bit program has the same number" "this kernel has no 32-bit calls"
	fi
	assert_jq_slurp "$RECORD" '[.[] | select(.type == "stuck" and (.tid == $first or .tid == $before))] |
		(map(.tid) | unique | length == 2) and length > 2 and
		all(.state == "D" and .since == "before_arm" and .kstack == [])' \
		"the first two processes are in the record, without a stack" \
		--argjson first "$first" --argjson before "$before"
	assert_jq "$RECORD" 'select(.type == "close").lost.stack_unread >= 1' \
		"and the stack that is missing is counted"
}
