# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# Owns what the tests of asynchronous requests share: their workload and the course of the test.
# Sourced by uring and aio instead of lib.sh.
# Never looks at threads: who submitted a request may do anything meanwhile.
#
# REQUESTIO names the workload program when it is built already.

# shellcheck disable=SC1091 source=tests/live/lib.sh
. "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/lib.sh"

# What the record says of each request while it hangs: at least so often.
REQUESTS_LINES=2

requests_need_program()
{
	[[ ! -x ${REQUESTIO-} ]] || return 0
	REQUESTIO=$STALL_DIR/requestio
	"${CC:-cc}" -std=gnu11 -O2 -o "$REQUESTIO" "$LIVE_HERE/../tools/requestio.c"
}

# requests_load NAME ARGUMENT...: as live_load.
requests_load()
{
	stall_bg "$REQUESTIO" --engine "$REQUESTS_ENGINE" --comm "$1" \
		--ready "$STALL_DIR/$1.ready" --go "$STALL_DIR/$LIVE_GO" --file "$LIVE_MNT/$1" "${@:2}" \
		>"$STALL_DIR/$1.ran" 2>"$STALL_DIR/$1.err"
	LIVE_LOADS+=("$STALL_PID") LIVE_NAMES+=("$1")
	wait_until "$LIVE_WAIT_S" test -e "$STALL_DIR/$1.ready" && return 0
	stall_error "$1: $(<"$STALL_DIR/$1.err")"
	return 1
}

# requests_are_stuck REQUESTS MIN: so many requests of the probe have MIN stuck lines so far.
requests_are_stuck()
{
	local count

	count=$(awk -v min="$2" -v probe="\"probe\":\"$REQUESTS_PROBE\"" '
		/^$/ { exit }
		/"type":"stuck"/ && index($0, probe) && match($0, /"tid":[0-9]+/) {
			key = substr($0, RSTART, RLENGTH)
			match($0, /"start_mono_ns":[0-9]+/)
			n += ++lines[key substr($0, RSTART, RLENGTH)] == min
		}
		END { print n + 0 }' "$LIVE_SPOOL"/*.jsonl 2>/dev/null)
	((count >= $1)) && return 0
	echo "$count of $1 requests have $2 stuck lines"
	return 1
}

# requests_need_probe: skips the rest where the kernel has nothing for the backend asked for.
requests_need_probe()
{
	local reason

	live_read_spool
	reason=$(jq -n -r --arg path "$REQUESTS_PATH" --arg probe "$REQUESTS_PROBE" 'first(inputs).coverage[]
		| select(.path == $path and .probe != $probe) | .reason' "$RECORD")
	[[ -n $reason ]] || return 0
	skip "requests of $REQUESTS_PROBE" "$reason"
	live_stop
	assert_finish
	exit
}

requests_check()
{
	live_compare "$1" requests.jq --slurpfile ran "$STALL_DIR/ran" \
		--argjson skipped "$LIVE_SKIPPED" --argjson unread "$(jq -n 'last(inputs).lost.names_unread > 0' "$STALL_DIR/whole.jsonl")" --arg probe "$REQUESTS_PROBE" "${@:2}"
}

# requests_test ENGINE PATH KIND...: what the coverage calls PATH; each kind is "NAME COUNT ARGUMENT...", all on one held disk.
requests_test()
{
	local kind name count arguments total=0 reported=yes

	REQUESTS_ENGINE=$1 REQUESTS_PROBE=$1 REQUESTS_PATH=$2
	shift 2
	live_disk || exit 1
	requests_need_program || exit 1
	# shellcheck disable=SC2046 # words
	live_fill $(printf "$LIVE_MNT/%s\n" "${@%% *}") || exit 1
	live_part "arming"
	live_watch || exit 1
	requests_need_probe
	for kind; do
		read -r name count arguments <<<"$kind"
		# shellcheck disable=SC2086 # words
		requests_load "$name" --count "$count" $arguments || exit 1
		total=$((total + count))
	done
	live_part "$total requests on a disk that answers nobody"
	live_hold
	live_go
	if live_wait requests_are_stuck "$total" 1; then
		live_hold_seen
	fi
	live_wait requests_are_stuck "$total" "$REQUESTS_LINES" || reported=no
	live_read_spool
	cp "$RECORD" "$STALL_DIR/hung.jsonl"
	live_hold_ends
	assert_cmd "the disk answers again" live_release
	live_wait_loads "$total requests"
	live_stop
	live_part "comparing"
	live_check_end
	live_skipped
	cp "$RECORD" "$STALL_DIR/whole.jsonl"
	name="each of $total requests is reported $REQUESTS_LINES times while it hangs"
	if [[ $reported == yes ]]; then
		ok "$name"
	elif ((LIVE_SKIPPED > 0)); then
		skip "$name" "this kernel skipped $LIVE_SKIPPED program runs"
	else
		not_ok "$name"
	fi
	cat "$STALL_DIR"/*.ran >"$STALL_DIR/ran"
	requests_check "the record has each of $total requests, exact" --arg type stall
	RECORD=$STALL_DIR/hung.jsonl
	requests_check "each was stuck with a growing age" --arg type stuck \
		--argjson lines "$REQUESTS_LINES"
}
