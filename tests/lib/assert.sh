# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# The counters of one test script, and its TAP-like output on standard output.
# Sourced by test scripts; nothing else sources it.
# Never ends the script: the status of assert_finish, called last, is the status of the script.

ASSERT_PASSED=0
ASSERT_FAILED=0
ASSERT_SKIPPED=0

_assert_number()
{
	echo $((ASSERT_PASSED + ASSERT_FAILED + ASSERT_SKIPPED))
}

# ok NAME
ok()
{
	ASSERT_PASSED=$((ASSERT_PASSED + 1))
	printf 'ok %s - %s\n' "$(_assert_number)" "$1"
}

# not_ok NAME [DETAIL]: each line of DETAIL follows as a comment.
not_ok()
{
	ASSERT_FAILED=$((ASSERT_FAILED + 1))
	printf 'not ok %s - %s\n' "$(_assert_number)" "$1"
	if [[ -n ${2-} ]]; then
		printf '# %s\n' "${2//$'\n'/$'\n# '}"
	fi
	return 0
}

# final ASSERTION...: no noise of the host explains a failure of this assertion, so tests/world does not try it again.
final()
{
	local failed=$ASSERT_FAILED

	"$@"
	((ASSERT_FAILED == failed)) || echo "# final: no noise of the host explains this"
}

# clock_is_another: whether this is a time namespace with another clock than that of the kernel's events, so that a
# stall that is recorded here has wrong times. CLOCK_REASON says so.
# shellcheck disable=SC2034
CLOCK_REASON="this is a time namespace with another clock than the kernel's"
clock_is_another()
{
	awk '$2 != 0 || $3 != 0 { other = 1 } END { exit !other }' /proc/self/timens_offsets 2>/dev/null
}

# skip NAME REASON
skip()
{
	ASSERT_SKIPPED=$((ASSERT_SKIPPED + 1))
	printf 'ok %s - %s # SKIP %s\n' "$(_assert_number)" "$1" "$2"
}

# assert_eq GOT WANT NAME
assert_eq()
{
	if [[ $1 == "$2" ]]; then
		ok "$3"
	else
		not_ok "$3" "got '$1', want '$2'"
	fi
}

# assert_between VALUE MIN MAX NAME: whole numbers, bounds included.
assert_between()
{
	if [[ $1 =~ ^-?[0-9]+$ ]] && (($1 >= $2 && $1 <= $3)); then
		ok "$4"
	else
		not_ok "$4" "got '$1', want $2 to $3"
	fi
}

# assert_cmd NAME COMMAND...: the command must succeed. Its output is shown when it fails.
assert_cmd()
{
	local name=$1 output status=0
	shift

	output=$("$@" 2>&1) || status=$?
	if ((status == 0)); then
		ok "$name"
	else
		not_ok "$name" "$* ended with $status"$'\n'"$output"
	fi
}

# assert_rc WANT NAME COMMAND...: the command must end with exactly this status.
assert_rc()
{
	local want=$1 name=$2 output status=0
	shift 2

	output=$("$@" 2>&1) || status=$?
	if ((status == want)); then
		ok "$name"
	else
		not_ok "$name" "$* ended with $status, want $want"$'\n'"$output"
	fi
}

# _assert_looked_at FILE FILTER: the first lines of FILE of the types that FILTER names.
_assert_looked_at()
{
	local type

	grep -oE '\.type == "[a-z_]+"' <<<"$2" | cut -d '"' -f 2 | sort -u | while read -r type; do
		printf '\n%s lines: ' "$type"
		grep -sa "\"type\":\"$type\"" "$1" | head -n 2 | cut -c 1-1200
	done
}

_assert_jq()
{
	local file=$1 filter=$2 name=$3 output status=0
	shift 3

	output=$(jq -e "$@" "$filter" "$file" 2>&1) || status=$?
	if ((status == 0)); then
		ok "$name"
	else
		output=$(tail -n 5 <<<"$output" | cut -c 1-2000)
		not_ok "$name" "jq -e $* '$filter' $file ended with $status"$'\n'"$output$(_assert_looked_at "$file" "$filter")"
	fi
}

# assert_jq FILE FILTER NAME [JQ-OPTION...]: runs the filter on every line of FILE. It must have at least one
# output, and the last output must be neither false nor null. So 'select(...)' asks for at least one line. The
# option -e of jq 1.6 is not enough, because it looks at the outputs of the last line only.
assert_jq()
{
	local file=$1 filter=$2 name=$3
	shift 3

	_assert_jq "$file" "last(inputs | ($filter))" "$name" -n "$@"
}

# assert_jq_slurp FILE FILTER NAME [JQ-OPTION...]: the filter sees all lines as one array.
assert_jq_slurp()
{
	_assert_jq "$@" -s
}

# assert_finish: prints the summary. Returns 0 when at least one test passed or was skipped and none failed.
assert_finish()
{
	printf '1..%s\n' "$(_assert_number)"
	printf '%s passed, %s failed, %s skipped\n' "$ASSERT_PASSED" "$ASSERT_FAILED" \
		"$ASSERT_SKIPPED"
	((ASSERT_FAILED == 0 && ASSERT_PASSED + ASSERT_SKIPPED > 0))
}
