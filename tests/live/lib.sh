# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Owns iostall under test: its private directories, its start and end, and what is asked of a record.
# Sourced by the scripts of this directory, as root, on the host and in virtual machines alike.
# Never touches a directory, socket or process of an iostall that it did not start.
#
# IOSTALL and STALLIO name the programs, BACKEND the backend (auto), SLACK multiplies time limits,
# LIVE_KEEP a directory that gets a copy of each record.

LIVE_HERE=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck disable=SC1091 source=tests/lib/assert.sh
. "$LIVE_HERE/../lib/assert.sh"
# shellcheck disable=SC1091 source=tests/lib/stall.sh
. "$LIVE_HERE/../lib/stall.sh"

IOSTALL=${IOSTALL:-$LIVE_HERE/../../build/iostall}
BACKEND=${BACKEND:-auto}
SLACK=${SLACK:-1}
# What a test waits for takes far less; who waits longer has found a bug.
LIVE_WAIT_S=$((20 * SLACK))

# live_init: private directories and the settings that keep two tests on one host apart.
live_init()
{
	local rule

	# Small, since mkfs takes its time on an emulated CPU.
	STALL_L_MIB=64 STALL_U_MIB=40
	if [[ ! -x $IOSTALL ]]; then
		stall_error "$IOSTALL is not built"
		exit 1
	fi
	stall_init || exit 1
	stall_need_stallio || exit 1
	LIVE_SPOOL=$STALL_DIR/spool LIVE_RECORDS=$STALL_DIR/records
	LIVE_SOCKET=$STALL_DIR/control.sock
	mkdir "$LIVE_SPOOL" "$LIVE_RECORDS"
	live_tmpfs "$LIVE_SPOOL" 32m || exit 1
	# No configuration of the host: what is set here is all there is.
	: >"$STALL_DIR/iostall.conf"
	LIVE_SET=(--config "$STALL_DIR/iostall.conf" --set "trace.backend=$BACKEND"
		--set "record.spool_dir=$LIVE_SPOOL" --set "record.dir=$LIVE_RECORDS"
		--set "control.socket=$LIVE_SOCKET" --set journal.enabled=no
		--set incident.max_time=10m)
	# What the host does beside the test fires nothing; a later --set enables a rule again.
	for rule in iowait iowait_cpus utilisation await hung psi_io_full psi_io_some blocked \
		space inodes memory memory_growth health sql_longest sql_active sql_state sql_unanswered; do
		LIVE_SET+=(--set "rule.$rule.enabled=no")
	done
	live_choose_probes
}

# On an emulated CPU the verifier takes half a minute for all probes, and each test starts iostall anew: it
# names in LIVE_PROBES those it is about. On a real one all are armed together.
live_choose_probes()
{
	local probe

	if ((SLACK == 1)) || [[ -z ${LIVE_PROBES-} ]]; then
		return
	fi
	for probe in vfs sync uring aio fault block wait; do
		if [[ " $LIVE_PROBES " != *" $probe "* ]]; then
			LIVE_SET+=(--set "probe.$probe.enabled=no")
		fi
	done
}

# live_need_program PROGRAM...: skips the whole test where one is not installed.
live_need_program()
{
	local name

	for name; do
		if ! command -v "$name" >/dev/null; then
			skip "all" "$name is not installed"
			assert_finish
			exit
		fi
	done
}

# live_tmpfs DIR SIZE
live_tmpfs()
{
	mount -t tmpfs -o "size=$2,mode=755" iostall-test "$1" || return 1
	stall_undo _stall_umount "$1"
}

live_now_ms()
{
	_stall_now
	LIVE_NOW_MS=$((STALL_NOW_CS * 10))
}

_live_is_past()
{
	live_now_ms
	((LIVE_NOW_MS >= $1))
}

# live_wait_until_ms MS: until so many milliseconds after boot; what stalls shall last some time.
live_wait_until_ms()
{
	wait_until 60 _live_is_past "$1"
}

# live_part NAME: this part of the test begins; with the seconds that the script has run.
live_part()
{
	printf '# %s s: %s\n' "$SECONDS" "$1"
}

# --- iostall --------------------------------------------------------------------------------------

# live_watch [OPTION...]: `iostall watch --now`, armed when this returns. Sets LIVE_PID.
live_watch()
{
	stall_bg "$IOSTALL" watch --now "${LIVE_SET[@]}" "$@" \
		>"$STALL_DIR/terminal" 2>"$STALL_DIR/log"
	LIVE_PID=$STALL_PID
	live_wait live_is_recording
}

# live_daemon [OPTION...]: `iostall daemon`, with the rules that OPTION enables; idle when this
# returns. Sets LIVE_PID.
live_daemon()
{
	stall_bg "$IOSTALL" daemon "${LIVE_SET[@]}" "$@" \
		>"$STALL_DIR/terminal" 2>"$STALL_DIR/log"
	LIVE_PID=$STALL_PID
	live_wait live_state_is idle
}

# live_wait CONDITION...: for a state of iostall; fails at once when the process has ended.
live_wait()
{
	wait_until "$LIVE_WAIT_S" _live_or_gone "$@" && { [[ -d /proc/$LIVE_PID ]] || "$@"; } &&
		return 0
	stall_error "iostall said: $(tail -n 5 "$STALL_DIR/log")"
	return 1
}

_live_or_gone()
{
	"$@" || [[ ! -d /proc/$LIVE_PID ]]
}

# live_is_recording: an incident is open. No process for it: iostall itself is still loading, and on
# an emulated CPU each takes as much as it.
live_is_recording()
{
	local file line

	for file in "$LIVE_SPOOL"/*.jsonl; do
		{ IFS= read -r line <"$file"; } 2>/dev/null || continue
		[[ $line == *'"type":"open"'* ]] && return 0
	done
	return 1
}

# live_ask status|trigger [OPTION...]: asks the daemon. Its configuration may be wrong by intent.
live_ask()
{
	"$IOSTALL" "$1" --config /dev/null --set "control.socket=$LIVE_SOCKET" --json "${@:2}"
}

live_state_is()
{
	[[ $(live_ask status 2>/dev/null) == *"\"state\":\"$1\""* ]]
}

# live_trigger [DURATION]: arms the daemon by hand; armed when this returns.
live_trigger()
{
	live_ask trigger --time "${1:-60s}" >"$STALL_DIR/answer" && live_wait live_is_recording
}

# live_stop: ends iostall as an operator would, and the loads that have done their work. Sets
# LIVE_STATUS and RECORD, its newest record.
live_stop()
{
	kill -TERM "$LIVE_PID"
	LIVE_STATUS=0
	wait "$LIVE_PID" 2>/dev/null || LIVE_STATUS=$?
	live_end_loads
	live_find_record || return 1
	[[ -z ${LIVE_KEEP-} ]] || cp "$RECORD" "$LIVE_KEEP"
}

# live_find_record: the newest record, wherever it is, in RECORD.
live_find_record()
{
	local file

	RECORD=
	for file in "$LIVE_SPOOL"/*.jsonl "$LIVE_RECORDS"/*.jsonl; do
		if [[ -e $file && ${file##*/} > ${RECORD##*/} ]]; then
			RECORD=$file
		fi
	done
	[[ -n $RECORD ]]
}

# live_check_end: what every record must say, and where it must be.
live_check_end()
{
	assert_eq "$LIVE_STATUS ${RECORD%/*}" "0 $LIVE_RECORDS" \
		"iostall ends with 0 and has moved the record"
	live_compare "the record is whole and nothing is lost" end.jq \
		--arg backend "$BACKEND"
}

# live_check_turn NAME: whatever a database does, the loop is back within 50 ms.
live_check_turn()
{
	# A number that is missing would be less than any.
	assert_jq "$RECORD" 'select(.type == "close") | (.cost.turn_ms | type == "number" and . > 0 and
		. < 50 * $slack) or error(tojson)' \
		"$1: the loop never waits" --argjson slack "$SLACK"
}

# live_skipped: program runs that the kernel skipped during the incident, into LIVE_SKIPPED. Where BPF
# programs are preempted they make others on the same CPU be skipped: then what is missing has its
# reason in the record.
live_skipped()
{
	LIVE_SKIPPED=$(jq -n 'last(inputs).lost.prog_skipped' "$RECORD")
}

# live_compare NAME PROGRAM [JQ-OPTION...]: the program sees the lines of RECORD in $record. It yields
# one "#" line with figures, and a line for each thing that is wrong. A process for each question
# would take longer than the stalls on an emulated CPU.
live_compare()
{
	local output

	output=$(jq -n -r -f "$LIVE_HERE/$2" --slurpfile record "$RECORD" "${@:3}" 2>&1)
	if [[ $output == '#'* && $output != *$'\n'* ]]; then
		printf '%s\n' "$output"
		ok "$1"
	else
		not_ok "$1" "$(head -n 12 <<<"$output" | cut -c1-500)"
	fi
}

# live_read_spool: the lines so far of the record that is being written, into RECORD. Four million
# empty lines come after them.
live_read_spool()
{
	RECORD=$STALL_DIR/while.jsonl
	sed '/^$/Q' "$LIVE_SPOOL"/*.jsonl >"$RECORD"
}

# live_count_stuck MIN: threads with at least MIN stuck lines so far, into LIVE_STUCK.
live_count_stuck()
{
	LIVE_STUCK=$(awk -v min="$1" '
		/^$/ { exit }
		/"type":"stuck"/ && match($0, /"tid":[0-9]+/) {
			n += ++lines[substr($0, RSTART, RLENGTH)] == min
		}
		END { print n + 0 }' "$LIVE_SPOOL"/*.jsonl 2>/dev/null)
}

# live_has_stuck THREADS MIN
live_has_stuck()
{
	live_count_stuck "$2"
	((LIVE_STUCK >= $1)) && return 0
	echo "$LIVE_STUCK of $1 threads have $2 stuck lines"
	return 1
}

# --- the disk -------------------------------------------------------------------------------------

# live_disk: a file system whose disk can be held: a dm device where the kernel has one, else a loop
# device with a limit. Sets LIVE_DEV LIVE_MNT. Skips the whole test when there is neither.
live_disk()
{
	local reason

	if stall_have_dm >/dev/null; then
		stall_dm_setup || return 1
		LIVE_DISK=dm LIVE_DEV=$DM_DEV LIVE_MNT=$DM_MNT
	elif reason=$(stall_can_throttle) && stall_can_throttle >/dev/null; then
		stall_loop_pair || return 1
		LIVE_DISK=throttle LIVE_DEV=$U_DEV LIVE_MNT=$U_MNT
	else
		skip "a disk that can be held" "$reason"
		assert_finish
		exit
	fi
}

# live_hold: no request of the disk ends from now on. Two bytes a second are the lowest limit.
live_hold()
{
	if [[ $LIVE_DISK == dm ]]; then
		stall_dm_suspend
		return
	fi
	stall_throttle "$LIVE_DEV" read_bps 2 && stall_throttle "$LIVE_DEV" write_bps 2
}

live_release()
{
	if [[ $LIVE_DISK == dm ]]; then
		stall_dm_resume
	else
		stall_unthrottle "$LIVE_DEV"
	fi
}

# live_slow MS REQUESTS: each request takes MS when so many are under way. A limit lets that many pass
# at the end of each of the kernel's slices of 100 ms, whatever MS is; dm-delay delays each by itself.
live_slow()
{
	if [[ $LIVE_DISK == dm ]]; then
		stall_dm_delay "$1"
		return
	fi
	stall_throttle "$L_DEV" read_iops $(($2 * 10)) && stall_throttle "$L_DEV" write_iops $(($2 * 10))
}

live_fast()
{
	if [[ $LIVE_DISK == dm ]]; then
		stall_dm_delay 0
	else
		stall_unthrottle "$L_DEV"
	fi
}

# live_slow_bytes BYTES: so many are read in a second; dm-delay cannot count, each request takes its time.
live_slow_bytes()
{
	if [[ $LIVE_DISK == dm ]]; then
		stall_dm_delay 80
	else
		stall_throttle "$L_DEV" read_bps "$1"
	fi
}

# live_cold: no page of the file system is in the cache any more. No file of it may be open.
live_cold()
{
	umount "$LIVE_MNT" && mount -t ext4 -o noatime "$LIVE_DEV" "$LIVE_MNT"
}

# live_freeze, live_thaw: writes and fsyncs hang, as on a frozen file system below the disk.
live_freeze()
{
	if [[ $LIVE_DISK == dm ]]; then
		live_hold
	else
		stall_freeze "$L_MNT"
	fi
}

live_thaw()
{
	if [[ $LIVE_DISK == dm ]]; then
		live_release
	else
		stall_thaw "$L_MNT"
	fi
}

# live_fill FILE...: written files of 1 MiB, without a page in the cache.
live_fill()
{
	head -c 1M /dev/zero | tr '\0' x | tee "$@" >/dev/null
	live_cold
}

# --- the workload ---------------------------------------------------------------------------------

# live_load NAME ARGUMENT...: a stallio whose files are open and that waits for live_go, started by
# LIVE_RUN if that is set. Its lines go to $STALL_DIR/NAME.ran. Adds to LIVE_LOADS (pids) and LIVE_NAMES. Loads with
# another LIVE_GO wait for another live_go. It stays until live_stop: iostall asks /proc about a process
# when it has an event of it, and on a busy machine one that ends with its operation is gone by then.
LIVE_LOADS=()
LIVE_NAMES=()
LIVE_STAYING=()
LIVE_STAYING_NAMES=()
LIVE_RUN=()
LIVE_GO=go
live_load()
{
	local name=$1 file=$STALL_DIR/$1

	rm -f "$file".{ready,done,end}
	stall_bg "${LIVE_RUN[@]}" "$STALLIO" --ready "$file.ready" --go "$STALL_DIR/$LIVE_GO" \
		--done "$file.done" --stay "$file.end" "${@:2}" >"$file.ran" 2>"$file.err"
	LIVE_LOADS+=("$STALL_PID") LIVE_NAMES+=("$name")
	wait_until "$LIVE_WAIT_S" test -e "$STALL_DIR/$name.ready" && return 0
	stall_error "$name: $(<"$STALL_DIR/$name.err")"
	return 1
}

live_go()
{
	: >"$STALL_DIR/$LIVE_GO"
	live_now_ms
	LIVE_GO_MS=$LIVE_NOW_MS
}

# live_assert_blocked THREADS: all threads of all loads are blocked soon.
live_assert_blocked()
{
	local i

	for i in "${!LIVE_LOADS[@]}"; do
		assert_cmd "${LIVE_NAMES[i]}: $1 threads block" \
			wait_blocked "${LIVE_LOADS[i]}" "$1" "$LIVE_WAIT_S"
	done
}

# live_wait_loads NAME: until the operations of all of them have returned.
live_wait_loads()
{
	local i late=()

	for i in "${!LIVE_LOADS[@]}"; do
		wait_until $((60 * SLACK)) _live_done_or_gone "$STALL_DIR/${LIVE_NAMES[i]}.done" \
			"${LIVE_LOADS[i]}" || late+=("${LIVE_NAMES[i]}")
	done
	LIVE_STAYING+=("${LIVE_LOADS[@]}") LIVE_STAYING_NAMES+=("${LIVE_NAMES[@]}")
	LIVE_LOADS=() LIVE_NAMES=()
	rm -f "$STALL_DIR/$LIVE_GO"
	assert_eq "${late[*]}" "" "$1: all operations return"
}

_live_done_or_gone()
{
	[[ -e $1 || ! -d /proc/$2 ]]
}

# live_end_loads: those whose operations have returned end, and end well.
live_end_loads()
{
	local pid name status=0

	((${#LIVE_STAYING[@]} > 0)) || return 0
	for name in "${LIVE_STAYING_NAMES[@]}"; do
		: >"$STALL_DIR/$name.end"
	done
	for pid in "${LIVE_STAYING[@]}"; do
		wait "$pid" || status=$?
	done
	assert_eq "$status $(cat "$STALL_DIR"/*.err 2>/dev/null)" "0 " \
		"the workload ends well: ${LIVE_STAYING_NAMES[*]}"
	LIVE_STAYING=() LIVE_STAYING_NAMES=()
}

# live_check_culprit NAME TID PATH [JQ-OPTION...]: the load of live_slow_bytes is its thread's. A dm
# device that delays each request takes them all at once, and is not at its limit.
live_check_culprit()
{
	if [[ $LIVE_DISK == dm ]]; then
		skip "$1" "dm-delay has no limit to be at"
		return
	fi
	live_compare "$1" verdict.jq --arg class saturated --argjson tid "$2" --arg path "$3" \
		--arg dev "${LIVE_DEV#/dev/}" "${@:4}"
}

# --- record against workload ----------------------------------------------------------------------

# live_check NAME stalls|stuck RAN [JQ-OPTION...]: the lines of the processes that wrote RAN are those
# that they measured themselves over min_stall, no more and no less. --arg path P says what the path
# must be when the workload could not know it.
live_check()
{
	live_compare "$1" "$2.jq" --slurpfile ran "$3" --argjson slack "$SLACK" "${@:4}"
}
