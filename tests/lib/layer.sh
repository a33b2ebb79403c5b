# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Owns what the layers have in common: building, and taking over what a test program counted.
# Sourced by tests/layer/*, in the root of the tree; brings assert.sh with it.
# Never believes a program that counted nothing, or whose exit status says otherwise.

# shellcheck disable=SC1091 source=tests/lib/assert.sh
. tests/lib/assert.sh

# layer_make NAME ARGUMENT...: one test of its own; the layer is over when it fails.
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

# layer_take_summary PROGRAM STATUS LAST-LINE: the counts of a script that ends as assert_finish does.
layer_take_summary()
{
	local program=$1 status=$2 last=$3

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

# layer_run PROGRAM ARGUMENT...: a script with such an end, its output shown as it comes.
layer_run()
{
	local log status=0

	log=$(mktemp) || exit 1
	# The closing line of a part must not be taken for that of the layer.
	"$@" </dev/null 2>&1 | tee "$log" | sed -u '/^[0-9]* passed, [0-9]* failed, [0-9]* skipped$/s/^/# /' ||
		status=$?
	layer_take_summary "$1" "$status" "$(tail -n 1 "$log")"
	rm -f "$log"
}

# layer_run_all COMMAND...: programs with their arguments, all at the same time; the output of each follows when
# it has ended.
layer_run_all()
{
	local command words logs pids=() i status

	logs=$(mktemp -d) || exit 1
	for command; do
		read -ra words <<<"$command"
		# They end when we are gone.
		setpriv --pdeathsig TERM "${words[@]}" </dev/null >"$logs/${#pids[@]}" 2>&1 &
		pids+=($!)
	done
	for i in "${!pids[@]}"; do
		status=0
		wait "${pids[i]}" || status=$?
		sed '/^[0-9]* passed, [0-9]* failed, [0-9]* skipped$/s/^/# /' "$logs/$i"
		layer_take_summary "$1" "$status" "$(tail -n 1 "$logs/$i")"
		shift
	done
	rm -rf "$logs"
}
