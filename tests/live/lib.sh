# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Owns iostall under test: its private directories, its start and end, and what is asked of a record.
# Sourced by the scripts of this directory, as root, on the host and in virtual machines alike.
# Never touches a directory, socket or process of an iostall that it did not start.
#
# IOSTALL and STALLIO name the programs, BACKEND the backend (auto), PAIRING that of vfs (sleep), LIVE_KEEP a directory that gets a copy of each
# record. LIVE_IN_VM is set in a virtual machine: its one CPU computes slowly, and its clock counts instructions.

LIVE_HERE=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
# shellcheck disable=SC1091 source=tests/lib/assert.sh
. "$LIVE_HERE/../lib/assert.sh"
# shellcheck disable=SC1091 source=tests/lib/stall.sh
. "$LIVE_HERE/../lib/stall.sh"

IOSTALL=${IOSTALL:-$LIVE_HERE/../../build/iostall}
BACKEND=${BACKEND:-auto}
PAIRING=${PAIRING:-sleep}
# What a test waits for takes far less; who waits longer has found a bug.
LIVE_WAIT_S=40
# iostall gets as much of the CPUs as iostalld.service gives it.
LIVE_NICE=-10

# live_init: private directories and the settings that keep two tests on one host apart.
live_init()
{
	local rule

	# Small, since an emulated CPU makes them anew for each test.
	STALL_L_MIB=64 STALL_U_MIB=40
	if [[ ! -x $IOSTALL ]]; then
		stall_error "$IOSTALL is not built"
		exit 1
	fi
	stall_init || exit 1
	stall_need_stallio || exit 1
	live_watch_cpus
	LIVE_SPOOL=$STALL_DIR/spool LIVE_RECORDS=$STALL_DIR/records
	LIVE_SOCKET=$STALL_DIR/control.sock
	mkdir "$LIVE_SPOOL" "$LIVE_RECORDS"
	live_tmpfs "$LIVE_SPOOL" 32m || exit 1
	# No configuration of the host: what is set here is all there is.
	: >"$STALL_DIR/iostall.conf"
	LIVE_SET=(--config "$STALL_DIR/iostall.conf" --set "trace.backend=$BACKEND"
		--set "probe.vfs.pairing=$PAIRING"
		--set "record.spool_dir=$LIVE_SPOOL" --set "record.dir=$LIVE_RECORDS"
		--set "control.socket=$LIVE_SOCKET" --set journal.enabled=no
		--set incident.max_time=10m)
	# What the host does beside the test fires nothing; a later --set enables a rule again.
	live_sections rule
	for rule in "${LIVE_SECTIONS[@]}"; do
		LIVE_SET+=(--set "$rule.enabled=no")
	done
	live_choose_probes
}

# live_has_no_bounds: nothing in this test may depend on how fast the host is.
live_has_no_bounds()
{
	grep -qx '# time: none' "$0"
}

# live_watch_cpus: from now on it is known how long a CPU was taken away even from real-time threads, at most within
# one second. The clock of a virtual machine stands still meanwhile.
live_watch_cpus()
{
	echo 0 >"$STALL_DIR/cpu-gap"
	if [[ -n ${LIVE_IN_VM-} ]] || live_has_no_bounds; then
		return
	fi
	"${CC:-cc}" -std=gnu11 -O2 -pthread -o "$STALL_DIR/cpugap" "$LIVE_HERE/../tools/cpugap.c" &&
		stall_bg "$STALL_DIR/cpugap" "$STALL_DIR/cpu-gap"
}

# live_late_ms: sets LIVE_LATE_MS to what the loop may be late by: 50 ms, and what no program could have run in.
live_late_ms()
{
	LIVE_LATE_MS=$((50 + $(<"$STALL_DIR/cpu-gap")))
	if ((LIVE_LATE_MS > 50)); then
		printf '# a CPU was gone for %s ms\n' $((LIVE_LATE_MS - 50))
	fi
}

# live_check_answer NAME MS MAX_MS: an answer took MS, which is at most MAX_MS and what no program could have run in.
live_check_answer()
{
	live_late_ms
	assert_between "$2" 0 $(($3 + LIVE_LATE_MS - 50)) "$1"
}

# live_sections KIND: sets LIVE_SECTIONS to the sections that iostall has of a kind: rule.iowait and so
# on. The program lists them itself when it is told to set one that does not exist.
live_sections()
{
	mapfile -t LIVE_SECTIONS < <("$IOSTALL" list --set "$1.?.enabled=no" 2>&1 |
		grep -oE "\\[$1\.[a-z_]+\\]" | tr -d '[]')
	if ((${#LIVE_SECTIONS[@]} == 0)); then
		stall_error "$IOSTALL does not say which sections $1.NAME it has"
		exit 1
	fi
}

# Each test starts iostall anew, and loading all probes would take most of its time in a virtual machine: there only
# those are loaded that the test names in LIVE_PROBES. Otherwise all are armed together.
live_choose_probes()
{
	if [[ -n ${LIVE_IN_VM-} && -n ${LIVE_PROBES-} ]]; then
		# shellcheck disable=SC2086
		live_only_probes $LIVE_PROBES
	fi
}

# live_only_probes PROBE...: disables all others.
live_only_probes()
{
	local section

	live_sections probe
	for section in "${LIVE_SECTIONS[@]}"; do
		if [[ " $* " != *" ${section#probe.} "* ]]; then
			LIVE_SET+=(--set "$section.enabled=no")
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

# live_memory_cgroup: makes a memory cgroup: CGROUP, its files LIMIT, USAGE and PEAK, and LIVE_IN_CGROUP, which runs a
# command there. Fails where the host has none.
live_memory_cgroup()
{
	local root=/sys/fs/cgroup

	if [[ -e $root/memory/memory.limit_in_bytes ]]; then
		root+=/memory LIMIT=memory.limit_in_bytes USAGE=memory.usage_in_bytes PEAK=memory.max_usage_in_bytes
	else
		{ echo +memory >"$root/cgroup.subtree_control"; } 2>/dev/null
		LIMIT=memory.max USAGE=memory.current PEAK=memory.peak
	fi
	CGROUP=$root/iostall-test.$$
	mkdir "$CGROUP" 2>/dev/null || return 1
	stall_undo wait_until 5 rmdir "$CGROUP"
	LIVE_IN_CGROUP=("$BASH" -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$CGROUP")
	[[ -e $CGROUP/$LIMIT ]]
}

# live_charged_kib USAGE|PEAK: what that file of CGROUP says.
live_charged_kib()
{
	echo $(($(<"$CGROUP/$1") / 1024))
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

# live_read_cpu PID: the CPU time of all its threads so far, in nanoseconds, into CPU_NS.
live_read_cpu()
{
	local file ns rest

	CPU_NS=0
	for file in "/proc/$1/task"/*/schedstat; do
		read -r ns rest <"$file"
		CPU_NS=$((CPU_NS + ns))
	done
	: "$rest"
}

# live_clock_ns: sets LIVE_CLOCK_NS to the clock of all records and of what the workloads measure.
live_clock_ns()
{
	LIVE_CLOCK_NS=$("$STALLIO" --clock)
}

# LIVE_HELD is "[FROM, UNTIL]" on that clock: all operations of the loads hung meanwhile, so that the length of none may
# be less, however busy the host was. Without a hold both are 0.
LIVE_HELD='[0, 0]'
LIVE_HELD_FROM_NS=0

# live_hold_seen: all are seen to hang. Seen again in the same hold, it is from the first time on.
live_hold_seen()
{
	((LIVE_HELD_FROM_NS == 0)) || return 0
	live_clock_ns
	LIVE_HELD_FROM_NS=$LIVE_CLOCK_NS
	live_now_ms
	LIVE_HELD_FROM_MS=$LIVE_NOW_MS
}

# live_hold_for MS: they have hung for so long when this returns.
live_hold_for()
{
	live_wait_until_ms $((LIVE_HELD_FROM_MS + $1))
}

# live_hold_ends: called right before what they wait for is let go.
live_hold_ends()
{
	((LIVE_HELD_FROM_NS > 0)) || return 0
	live_clock_ns
	LIVE_HELD="[$LIVE_HELD_FROM_NS, $LIVE_CLOCK_NS]"
	LIVE_HELD_FROM_NS=0
}

# live_part NAME: this part of the test begins; with the seconds that the script has run.
live_part()
{
	printf '# %s s: %s\n' "$SECONDS" "$1"
}

# --- iostall --------------------------------------------------------------------------------------

# live_build_lockhold: makes $STALL_DIR/lockhold.
live_build_lockhold()
{
	if [[ -n ${LOCKHOLD-} ]]; then
		cp "$LOCKHOLD" "$STALL_DIR/lockhold"
		return
	fi
	"${CC:-cc}" -std=gnu11 -O2 -fno-omit-frame-pointer -fno-inline -pthread -Wl,--build-id \
		-o "$STALL_DIR/lockhold" "$LIVE_HERE/../tools/lockhold.c"
}

# live_build_offcpu: makes $STALL_DIR/watched.
live_build_offcpu()
{
	if [[ -n ${OFFCPU-} ]]; then
		cp "$OFFCPU" "$STALL_DIR/watched"
		return
	fi
	"${CC:-cc}" -std=gnu11 -O2 -fno-omit-frame-pointer -pthread -Wl,--build-id -o "$STALL_DIR/watched" \
		"$LIVE_HERE/../tools/offcpu.c"
}

# live_watch [OPTION...]: `iostall watch --now`, armed when this returns. Sets LIVE_PID.
live_watch()
{
	stall_bg nice -n "$LIVE_NICE" "$IOSTALL" watch --now "${LIVE_SET[@]}" "$@" \
		>"$STALL_DIR/terminal" 2>"$STALL_DIR/log"
	LIVE_PID=$STALL_PID
	live_wait live_is_recording
}

# live_daemon [OPTION...]: `iostall daemon`, with the rules that OPTION enables; when this returns its
# probes are loaded, and it is idle unless a rule has fired already. Sets LIVE_PID.
live_daemon()
{
	stall_bg nice -n "$LIVE_NICE" "$IOSTALL" daemon "${LIVE_SET[@]}" "$@" \
		>"$STALL_DIR/terminal" 2>"$STALL_DIR/log"
	LIVE_PID=$STALL_PID
	live_wait _live_is_ready && live_wait live_ask status >/dev/null
}

_live_is_ready()
{
	[[ $(<"$STALL_DIR/log") == *'watching every'* ]]
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

# live_is_recording: an incident is open. No process for it, since iostall is just loading its probes.
live_is_recording()
{
	local file line

	for file in "$LIVE_SPOOL"/*.jsonl; do
		{ IFS= read -r line <"$file"; } 2>/dev/null || continue
		[[ $line == *'"type":"open"'* ]] || continue
		# The log says when it is done.
		[[ $line != *'still being attached'* ]] && return 0
		[[ $(<"$STALL_DIR/log") == *'attached only after'* ]] && return 0
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

# live_find_record: the newest record, wherever it is, in RECORD; where it stays if it is in both directories.
live_find_record()
{
	local file

	RECORD=
	for file in "$LIVE_SPOOL"/*.jsonl "$LIVE_RECORDS"/*.jsonl; do
		if [[ -e $file && ! ${file##*/} < ${RECORD##*/} ]]; then
			RECORD=$file
		fi
	done
	[[ -n $RECORD ]]
}

# live_find_filed_record: the same after an incident, which is recorded in one directory and filed in another.
live_find_filed_record()
{
	live_wait _live_all_are_filed && live_find_record
}

_live_all_are_filed()
{
	! compgen -G "$LIVE_SPOOL/*.jsonl" >/dev/null && compgen -G "$LIVE_RECORDS/*.jsonl" >/dev/null
}

# live_check_end: what every record must say, and where it must be.
live_check_end()
{
	assert_eq "$LIVE_STATUS ${RECORD%/*}" "0 $LIVE_RECORDS" \
		"iostall ends with 0 and has moved the record"
	final live_compare "the record is whole and nothing is lost" end.jq \
		--arg backend "$BACKEND" --arg pairing "$PAIRING"
	final live_check_schema
	final live_check_judged
}

# live_check_judged: RECORD judged once more has the verdict that it has, to the byte, unless lines of it are missing.
live_check_judged()
{
	local judged written

	judged=$("$IOSTALL" judge --json "$RECORD" 2>&1)
	written=$(grep '"type":"verdict".*"final":true' "$RECORD")
	if [[ $judged != "$written" ]] && jq -es '.[-1].lost // {} | any(. > 0)' "$RECORD" >/dev/null; then
		skip "judged once more it has the same verdict" "lines of the record are lost"
	else
		assert_eq "$judged" "$written" "judged once more it has the same verdict"
	fi
}

# live_check_schema: each line of RECORD is what the JSON Schema says, and none is missing. With LIVE_KEEP, a directory,
# whoever runs this test judges that: in a virtual machine it takes too long.
live_check_schema()
{
	local schema=$LIVE_HERE/../../build/record.schema.json wrong

	if [[ -n ${LIVE_KEEP-} ]]; then
		cp "$RECORD" "$(mktemp "$LIVE_KEEP/${0##*/}.XXXXXX")"
	elif ! /usr/bin/python3 -c 'import jsonschema' 2>/dev/null; then
		skip "the record is what the JSON Schema says" "python3-jsonschema is not installed"
	elif wrong=$("$LIVE_HERE/../lib/validate-record" "$schema" "$RECORD" 2>&1); then
		ok "the record is what the JSON Schema says"
	else
		not_ok "the record is what the JSON Schema says" "$wrong"
	fi
}

# live_check_turn NAME: whatever a database does, the loop is back within 50 ms.
live_check_turn()
{
	live_late_ms
	# A number that is missing would be less than any.
	assert_jq "$RECORD" 'select(.type == "close") | (.cost.turn_ms | type == "number" and . > 0 and
		. < $late_ms) or error(tojson)' \
		"$1: the loop never waits" --argjson late_ms "$LIVE_LATE_MS"
}

# live_skipped: program runs that the kernel skipped during the incident, into LIVE_SKIPPED. Where BPF
# programs are preempted they make others on the same CPU be skipped: then what is missing has its
# reason in the record.
live_skipped()
{
	LIVE_SKIPPED=$(jq -n 'last(inputs).lost.prog_skipped' "$RECORD")
}

# live_compare NAME PROGRAM [JQ-OPTION...]: a test of what live_agrees finds.
live_compare()
{
	if live_agrees "${@:2}"; then
		ok "$1"
	else
		not_ok "$1" "$LIVE_DIFFERS"
	fi
}

# live_agrees PROGRAM [JQ-OPTION...]: the program sees the lines of RECORD in $record, LIVE_HELD in $held, and in $bounded
# whether this test may have bounds of time. It yields one "#" line with figures, and a line for each thing that is
# wrong, into LIVE_DIFFERS.
live_agrees()
{
	local output bounded=true

	LIVE_DIFFERS=
	live_has_no_bounds && bounded=false
	output=$(jq -n -r -f "$LIVE_HERE/$1" --slurpfile record "$RECORD" \
		--argjson held "$LIVE_HELD" --argjson bounded "$bounded" "${@:2}" 2>&1)
	if [[ $output == '#'* && $output != *$'\n'* ]]; then
		printf '%s\n' "$output"
		return 0
	fi
	LIVE_DIFFERS=$(head -n 12 <<<"$output" | cut -c1-500)
	return 1
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

# live_build_fusehang: sets FUSEHANG, the program, unless that names one.
live_build_fusehang()
{
	[[ -z ${FUSEHANG-} ]] || return 0
	FUSEHANG=$STALL_DIR/fusehang
	"${CC:-cc}" -std=gnu11 -O2 -pthread -o "$FUSEHANG" "$LIVE_HERE/../tools/fusehang.c" || exit 1
}

# live_has_32: the kernel has the calls of 32-bit x86. Needs FUSEHANG.
live_has_32()
{
	[[ $(uname -m) == x86_64 ]] && "$FUSEHANG" --has32
}

# live_fuse [OPTION]: a FUSE file system (tests/tools/fusehang.c). Sets LIVE_FUSE, its directory, LIVE_FUSE_PID, which
# serves it, and FUSEHANG; creating $STALL_DIR/release lets go what hangs. 1: the kernel has no FUSE.
live_fuse()
{
	modprobe -q fuse 2>/dev/null || :
	[[ -c /dev/fuse ]] && grep -qw fuse /proc/filesystems || return 1
	LIVE_FUSE=$STALL_DIR/fuse
	live_build_fusehang
	mkdir "$LIVE_FUSE"
	stall_undo _stall_umount "$LIVE_FUSE"
	_stall_undo_first touch "$STALL_DIR/release"
	stall_bg "$FUSEHANG" "$@" "$LIVE_FUSE" "$STALL_DIR/served" "$STALL_DIR/release" \
		2>"$STALL_DIR/fusehang.err"
	LIVE_FUSE_PID=$STALL_PID
	_stall_undo_first kill -CONT "$LIVE_FUSE_PID"
	assert_cmd "the FUSE server is ready" wait_until "$LIVE_WAIT_S" test -e "$STALL_DIR/served"
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
	live_hold_ends
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
	local type

	type=$(awk -v mount="$LIVE_MNT" '$2 == mount { type = $3 } END { print type }' /proc/mounts)
	umount "$LIVE_MNT" && mount -t "$type" -o noatime "$LIVE_DEV" "$LIVE_MNT"
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
	live_hold_ends
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

# live_load_many NAME THREADS ARGUMENT...: loads with so many threads in all, in processes of at most 2500.
live_load_many()
{
	local i left=$2

	for ((i = 0; left > 0; i++, left -= 2500)); do
		live_load "$1$i" --threads $((left < 2500 ? left : 2500)) "${@:3}" || return 1
	done
}

# live_are_blocked THREADS: so many threads of all loads hang, without a process for each.
live_are_blocked()
{
	local count=0 pid

	for pid in "${LIVE_LOADS[@]}"; do
		count=$((count + $(cat "/proc/$pid/task"/*/stat 2>/dev/null | grep -c ') D ')))
	done
	((count == $1)) && return 0
	echo "$count of $1 threads are blocked"
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
	live_hold_seen
}

# live_wait_loads NAME: until the operations of all of them have returned.
live_wait_loads()
{
	local i late=()

	for i in "${!LIVE_LOADS[@]}"; do
		wait_until 60 _live_done_or_gone "$STALL_DIR/${LIVE_NAMES[i]}.done" \
			"${LIVE_LOADS[i]}" || late+=("${LIVE_NAMES[i]}")
	done
	LIVE_STAYING+=("${LIVE_LOADS[@]}") LIVE_STAYING_NAMES+=("${LIVE_NAMES[@]}")
	LIVE_LOADS=() LIVE_NAMES=()
	LIVE_HELD_FROM_NS=0
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
	live_compare "$1" "$2.jq" --slurpfile ran "$3" "${@:4}"
}
