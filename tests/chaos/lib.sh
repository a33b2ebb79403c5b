# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Owns what all faults have in common: the daemon under test, what must hold whatever happens, the row of the table.
# Sourced by the scripts of this directory; it sources tests/live/lib.sh, which undoes everything.
# Never counts what does not hold as passed.
#
# A script names each fault with chaos_fault, does it, says with chaos_held what held, and ends it with chaos_end.
# CHAOS_ROWS names the file that the rows of the table are added to.

CHAOS_HERE=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck disable=SC1091 source=tests/live/lib.sh
. "$CHAOS_HERE/../live/lib.sh"

# The loop may be late by this much; who starves it of CPU time sets another limit.
CHAOS_LATE_MS=50
BPFTOOL=${BPFTOOL:-/usr/sbin/bpftool}
# The most that the daemon may have resident at any time of a fault: it has 12 MiB while idle, and libbpf reads the
# whole BTF of the kernel when probes are loaded.
CHAOS_MEMORY_MIB=64
# What a script that repeats something may take.
CHAOS_LOOP_S=${CHAOS_LOOP_S:-20}
CHAOS_PIDS=()
CHAOS_RUN=()
CHAOS_TABLE=()

# chaos_init PROBE...: as live_init, with these probes only, and incidents that end soon.
chaos_init()
{
	live_init
	live_only_probes "$@"
	LIVE_SET+=(--set watch.interval=100ms --set incident.clear_time=100ms
		--set incident.cooldown=0 --set incident.max_time=20s)
	CHAOS_DIRS=("$LIVE_SPOOL" "$LIVE_RECORDS")
	if ! "$BPFTOOL" version >/dev/null; then
		echo "$BPFTOOL is missing, which lists the BPF objects that are left" >&2
		exit 1
	fi
	chaos_list_machine >"$STALL_DIR/machine"
	declare -gA CHAOS_SEEN=()
}

# chaos_start COMMAND [OPTION...]: `iostall daemon` or `iostall watch` with the priority that the unit gives it, by
# CHAOS_RUN if that is set. Sets LIVE_PID.
chaos_start()
{
	stall_bg env "IOSTALL_CHAOS=$STALL_DIR" nice -n "$LIVE_NICE" "${CHAOS_RUN[@]}" "$IOSTALL" "$1" \
		"${LIVE_SET[@]}" "${@:2}" >"$STALL_DIR/terminal" 2>"$STALL_DIR/log"
	LIVE_PID=$STALL_PID
	CHAOS_PIDS+=("$LIVE_PID")
}

# chaos_daemon [OPTION...]: idle when this returns.
chaos_daemon()
{
	chaos_start daemon "$@"
	live_wait live_state_is idle
}

# chaos_incident [DURATION]: opens an incident by hand and waits for its end.
chaos_incident()
{
	live_ask trigger --time "${1:-200ms}" >"$STALL_DIR/answer" && live_wait live_state_is idle
}

log_says()
{
	grep -qE -- "$1" "$STALL_DIR/log"
}

# --- one fault ------------------------------------------------------------------------------------

# chaos_fault NAME DONE: a fault begins; DONE says for the table what is done.
chaos_fault()
{
	CHAOS_NAME=$1 CHAOS_DONE=$2
	CHAOS_HELD=() CHAOS_FIGURES=()
	CHAOS_FDS=
	CHAOS_FIRST_S=$SECONDS
	CHAOS_FAILED=$ASSERT_FAILED
	live_part "$1: $2"
	if chaos_is_alive; then
		CHAOS_FDS=$(chaos_count_fds)
		# From here on VmHWM is the peak of this fault.
		_stall_write 5 "/proc/$LIVE_PID/clear_refs"
	fi
}

# chaos_figure TEXT: a measured number, for the table.
chaos_figure()
{
	CHAOS_FIGURES+=("$1")
}

# chaos_held WHAT COMMAND...: must succeed; is in the table when it does.
chaos_held()
{
	local failed=$ASSERT_FAILED

	assert_cmd "$CHAOS_NAME: $1" "${@:2}"
	if ((ASSERT_FAILED == failed)); then
		CHAOS_HELD+=("$1")
	fi
}

# --- what must hold -------------------------------------------------------------------------------

chaos_is_alive()
{
	[[ -n ${LIVE_PID-} ]] && { _stall_starttime "$LIVE_PID" && [[ $(<"/proc/$LIVE_PID/stat") != *') Z '* ]]; } \
		2>/dev/null
}

chaos_count_fds()
{
	local fds=("/proc/$LIVE_PID/fd"/*)

	echo "${#fds[@]}"
}

chaos_fds_are()
{
	local fds

	fds=$(chaos_count_fds)
	((fds <= $1)) && return 0
	echo "it had $1 descriptors before and has $fds now"
	return 1
}

# chaos_new_records: copies of the records that no fault has judged so far, into CHAOS_RECORDS. What is in the spool may
# be moved at any moment.
chaos_new_records()
{
	local dir file copies=$STALL_DIR/judged

	CHAOS_RECORDS=()
	mkdir -p "$copies"
	for dir in "${CHAOS_DIRS[@]}"; do
		for file in "$dir"/*.jsonl; do
			if [[ -e $file && -z ${CHAOS_SEEN[${file##*/}]-} ]]; then
				CHAOS_SEEN[${file##*/}]=1
				cp "$file" "$copies/" 2>/dev/null || cp "$LIVE_RECORDS/${file##*/}" "$copies/"
				CHAOS_RECORDS+=("$copies/${file##*/}")
			fi
		done
	done
}

chaos_records_are_valid()
{
	local schema=$CHAOS_HERE/../../build/record.schema.json

	"$CHAOS_HERE/../lib/validate-record" "$schema" "${CHAOS_RECORDS[@]}"
}

# How late the event loop was at most in the new records, in ms; 0 when none was closed. A turn that was long makes it
# late, and so does a CPU that it waits for; with CHAOS_STOPPED the script has stopped it, and only turns count.
chaos_latest_ms()
{
	jq -n --arg stopped "${CHAOS_STOPPED-}" '[inputs | select(.type == "close") | .cost | .turn_ms,
		(.delay_ms | select($stopped == ""))] | max // 0' "${CHAOS_RECORDS[@]}"
}

# "ring_full 3, sink_dropped 1": what the new records say is missing from them.
chaos_sum_lost()
{
	jq -n -r '[inputs | select(.type == "close") | .lost | to_entries[] | select(.value > 0)] | group_by(.key) |
		map("\(.[0].key) \(map(.value) | add)") | join(", ")' "${CHAOS_RECORDS[@]}"
}

# chaos_is_in_time MAX_MS: otherwise says in which incident the loop was late, what that one cost and, where the script
# wrote it into the file CHAOS_CASES, what failed in it.
chaos_is_in_time()
{
	local incident

	chaos_is_less "$(chaos_latest_ms)" "$1" && return 0
	incident=$(jq -n -r --argjson max_ms "$1" '[inputs | select(.type == "close") |
		select([.cost.turn_ms, .cost.delay_ms] | max >= $max_ms)][] | "\(.incident) \(.cost | tojson)"' \
		"${CHAOS_RECORDS[@]}")
	echo "$incident"
	if [[ -n ${CHAOS_CASES-} ]]; then
		cut -d ' ' -f 1 <<<"$incident" | grep -F -f - "$CHAOS_CASES"
	fi
	return 1
}

# chaos_is_less A B: of numbers with a point.
chaos_is_less()
{
	jq -n -e --argjson a "$1" --argjson b "$2" '$a < $b' >/dev/null && return 0
	echo "$1 is not less than $2"
	return 1
}

# No count can be that large; one that is was computed from what could not be read.
chaos_counts_are_real()
{
	jq -n -e '[inputs | select(.type == "close") | .lost | to_entries[] | select(.value > 1e12)] | length == 0 or
		error(tojson)' "${CHAOS_RECORDS[@]}"
}

chaos_judge_records()
{
	local late late_ms lost

	chaos_new_records
	((${#CHAOS_RECORDS[@]} > 0)) || return 0
	if /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
		final chaos_held "records are valid, no line is torn" chaos_records_are_valid
	else
		skip "$CHAOS_NAME: records are valid" "python3-jsonschema is not installed"
	fi
	late=$(chaos_latest_ms)
	live_late_ms
	late_ms=$((CHAOS_LATE_MS + LIVE_LATE_MS - 50))
	chaos_held "the loop is late by less than $CHAOS_LATE_MS ms" chaos_is_in_time "$late_ms"
	chaos_figure "${#CHAOS_RECORDS[@]} records, loop late by $(printf '%.1f' "$late") ms at most"
	final assert_cmd "$CHAOS_NAME: what is counted can be" chaos_counts_are_real
	lost=$(chaos_sum_lost)
	chaos_figure "lost: ${lost:-nothing}"
}

# chaos_end: judges what must hold in each fault.
chaos_end()
{
	local peak

	if chaos_is_alive; then
		CHAOS_HELD+=("no crash")
		ok "$CHAOS_NAME: no crash"
		peak=$(awk '/^VmHWM:/ { print int($2 / 1024) }' "/proc/$LIVE_PID/status")
		chaos_held "at most $CHAOS_MEMORY_MIB MiB resident" test "$peak" -le "$CHAOS_MEMORY_MIB"
		chaos_figure "$peak MiB resident at most"
		if [[ -n $CHAOS_FDS ]]; then
			chaos_held "no descriptor is left open" wait_until 3 chaos_fds_are "$CHAOS_FDS"
		fi
	elif [[ -n ${CHAOS_ENDED-} ]]; then
		: "it was ended by the test, which has judged how"
	else
		not_ok "$CHAOS_NAME: no crash" "the daemon is gone; it said: $(tail -n 5 "$STALL_DIR/log")"
	fi
	chaos_judge_records
	chaos_add_row
}

chaos_join()
{
	local joined

	printf -v joined '%s; ' "$@"
	joined=${joined%; }
	printf '%s' "${joined//|/\\|}"
}

# The row of the table, where what holds in each fault is one phrase; chaos_finish adds whether the machine is as it was.
chaos_add_row()
{
	local failed='' what held=()

	if ((ASSERT_FAILED > CHAOS_FAILED)); then
		failed="**FAILED**: "
	fi
	for what in "${CHAOS_HELD[@]}"; do
		case $what in
		"no crash" | *" MiB resident" | "no descriptor is left open" | "records are valid"* | \
			"the loop is late by less than 50 ms") ;;
		*) held+=("$what") ;;
		esac
	done
	CHAOS_HELD=("${held[@]}")
	CHAOS_TABLE+=("| $CHAOS_NAME | $CHAOS_DONE | $failed$(chaos_join "${CHAOS_HELD[@]}")@MACHINE@ | $(
		chaos_join "${CHAOS_FIGURES[@]}") |")
	printf '# %s: %s s; %s\n' "$CHAOS_NAME" $((SECONDS - CHAOS_FIRST_S)) \
		"$(chaos_join "${CHAOS_FIGURES[@]}")"
}

# --- how long an answer takes ----------------------------------------------------------------------

# chaos_poll_begin: from now on somebody asks for the status all the time, before all other processes.
chaos_poll_begin()
{
	local run=()

	if chrt -f 1 true 2>/dev/null; then
		run=(chrt -f 1)
	fi
	stall_bg "${run[@]}" "$CHAOS_HERE/poll" "$LIVE_SOCKET" >"$STALL_DIR/poll.out"
	CHAOS_POLL=$STALL_PID
}

# chaos_poll_end: each answer must have come within CHAOS_LATE_MS.
chaos_poll_end()
{
	local longest answered asked late_ms

	live_late_ms
	late_ms=$((CHAOS_LATE_MS + LIVE_LATE_MS - 50))
	kill -TERM "$CHAOS_POLL"
	wait "$CHAOS_POLL" 2>/dev/null
	read -r asked answered longest < <(jq -r '"\(.asked) \(.answered) \(.longest_ms)"' "$STALL_DIR/poll.out")
	chaos_figure "$answered of $asked questions answered, the slowest after $(printf '%.1f' "${longest:-0}") ms"
	chaos_held "status is answered within $CHAOS_LATE_MS ms" chaos_is_less "${longest:-999999}" "$late_ms"
	CHAOS_ANSWERED=${answered:-0}
}

# --- the end of a script --------------------------------------------------------------------------

# chaos_stop: ends the daemon as an operator would. Sets LIVE_STATUS.
chaos_stop()
{
	LIVE_STATUS=0
	kill -TERM "$LIVE_PID" 2>/dev/null
	wait "$LIVE_PID" 2>/dev/null || LIVE_STATUS=$?
}

# chaos_stop_well: ends it within a fault, and judges how.
chaos_stop_well()
{
	chaos_stop
	chaos_held "no crash" test "$LIVE_STATUS" -eq 0
	CHAOS_ENDED=1
}

# The BPF objects of the kernel, and what is mounted, but for the directories of tests. Ids are never used again.
# iostall mounts tracefs and leaves it mounted, as others use it.
chaos_list_machine()
{
	local kind

	for kind in prog map link; do
		"$BPFTOOL" -j "$kind" list | jq -r --arg kind "$kind" '.[] | "BPF \($kind) \(.id) \(.name // .type)"'
	done
	awk '$2 !~ "/iostall-test\\." && $3 != "tracefs" { print "mount", $1, $2, $3 }' /proc/mounts
}

# Whatever an iostall of this script has left on the machine, as text.
chaos_leftovers()
{
	local pid file

	# What is new may be of an iostall of somebody else.
	chaos_list_machine | sort | comm -13 <(sort "$STALL_DIR/machine") - |
		if pgrep -x iostall >/dev/null; then grep -v ^BPF; else cat; fi

	for pid in "${CHAOS_PIDS[@]}"; do
		grep -s "iostall/.*_${pid}_\|iostall/.*_$pid " /sys/kernel/tracing/kprobe_events
	done
	for file in /proc/[0-9]*/environ; do
		{ grep -qzFx "IOSTALL_CHAOS=$STALL_DIR" "$file"; } 2>/dev/null || continue
		pid=${file//[^0-9]/}
		[[ -d /proc/$pid ]] && echo "process $pid: $(tr '\0' ' ' <"/proc/$pid/cmdline")"
	done
	compgen -G "$LIVE_SPOOL/*" "$LIVE_SPOOL/.*"
	return 0
}

chaos_nothing_is_left()
{
	local left

	left=$(chaos_leftovers 2>/dev/null)
	[[ -z $left ]] && return 0
	echo "$left"
	return 1
}

# chaos_finish: the daemon ends, the machine is as it was, the rows of the table are written. Call it last.
chaos_finish()
{
	local machine="; what must always hold" name

	name=$(basename "$0")
	if chaos_is_alive; then
		chaos_stop
		assert_eq "$LIVE_STATUS" 0 "$name: the daemon ends well"
	fi
	if ! wait_until 10 chaos_nothing_is_left 2>/dev/null; then
		machine="; **FAILED**: something is left on the machine"
		not_ok "$name: the machine is as it was" "$(chaos_nothing_is_left)"
	else
		ok "$name: the machine is as it was"
	fi
	if [[ -n ${CHAOS_ROWS-} ]]; then
		printf '%s\n' "${CHAOS_TABLE[@]//@MACHINE@/$machine}" >>"$CHAOS_ROWS"
	fi
	assert_finish
}
