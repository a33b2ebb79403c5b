# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# What all layers of tests share: they choose tests, build them, and add up their counts.
# Sourced by tests/layer/* and tests/replay/run, in the root of the tree; it sources assert.sh.
# A program that counted no test, or whose exit status contradicts its counts, has failed.

# shellcheck disable=SC1091 source=tests/lib/assert.sh
. tests/lib/assert.sh

# layer_choose PREFIX [NAME...]: sets LAYER_CHOSEN to the names of the C files PREFIX*.c, or to the given ones.
# Ends the layer when there is no such file.
layer_choose()
{
	local prefix=$1 file all=() name
	shift

	for file in "$prefix"*.c; do
		all+=("$(basename "$file" .c)")
	done
	(($# > 0)) || set -- "${all[@]}"
	LAYER_CHOSEN=("$@")
	for name in "${LAYER_CHOSEN[@]}"; do
		if [[ " ${all[*]} " != *" $name "* ]]; then
			not_ok "$name" "there is no such test; expected one of: ${all[*]#"${prefix##*/}"}"
			assert_finish
			exit 1
		fi
	done
}

# layer_make NAME ARGUMENT...: runs make, which counts as one test. The layer ends when make fails.
layer_make()
{
	local name=$1 output
	shift

	if output=$(make -s -k -j"$(nproc)" "$@" 2>&1); then
		ok "$name"
		return 0
	fi
	not_ok "$name" "$output"
	assert_finish
	exit 1
}

# layer_take_summary PROGRAM STATUS LOG: adds the counts of a script that ended with assert_finish. Its clean-up may print
# something afterwards.
layer_take_summary()
{
	local program=$1 status=$2 last

	last=$(grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped$' "$3" | tail -n 1)
	if [[ ! $last =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
		not_ok "$program" "ended with status $status and without its closing line"
		return
	fi
	ASSERT_PASSED=$((ASSERT_PASSED + BASH_REMATCH[1]))
	ASSERT_FAILED=$((ASSERT_FAILED + BASH_REMATCH[2]))
	ASSERT_SKIPPED=$((ASSERT_SKIPPED + BASH_REMATCH[3]))
	if ((BASH_REMATCH[1] + BASH_REMATCH[2] + BASH_REMATCH[3] == 0)); then
		not_ok "$program" "tested nothing"
	elif ((status != 0 && BASH_REMATCH[2] == 0)); then
		not_ok "$program" "ended with status $status although nothing failed in it"
	elif ((status == 0 && BASH_REMATCH[2] > 0)); then
		not_ok "$program" "ended with status 0 although something failed in it"
	fi
}

# layer_run PROGRAM ARGUMENT...: runs such a script and shows its output at once. With LAYER_LIMIT_S one that hangs is ended.
layer_run()
{
	local log status=0

	log=$(mktemp) || exit 1
	# The summary of one script must not be mistaken for the summary of the layer.
	${LAYER_LIMIT_S:+timeout --foreground --kill-after=60 "$LAYER_LIMIT_S"} "$@" </dev/null 2>&1 | tee "$log" | sed -u '/^[0-9]* passed, [0-9]* failed, [0-9]* skipped$/s/^/# /' ||
		status=$?
	layer_take_summary "$1" "$status" "$log"
	rm -f "$log"
}

# layer_run_all COMMAND...: runs programs with their arguments at the same time. The output of each is printed
# after it has ended.
layer_run_all()
{
	local command words logs pids=() i status

	logs=$(mktemp -d) || exit 1
	for command; do
		read -ra words <<<"$command"
		# The kernel ends them when this script ends.
		setpriv --pdeathsig TERM "${words[@]}" </dev/null >"$logs/${#pids[@]}" 2>&1 &
		pids+=($!)
	done
	for i in "${!pids[@]}"; do
		status=0
		wait "${pids[i]}" || status=$?
		sed '/^[0-9]* passed, [0-9]* failed, [0-9]* skipped$/s/^/# /' "$logs/$i"
		layer_take_summary "$1" "$status" "$logs/$i"
		shift
	done
	rm -rf "$logs"
}
