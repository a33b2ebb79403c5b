# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2034
#
# What the scripts share that tell freezes as they happen to database hosts: the daemon has its default rules and
# opens each incident itself, and its verdict is compared with what was done.
# Sourced by stories, stories-databases and stories-disks.
# Never starts or ends the daemon.

# The rules that opened the incidents.
RULES=()
STORIES=0

# stories_begin: after live_init.
stories_begin()
{
	STALLIO_PROGRAM=$STALLIO
	mkdir "$STALL_DIR/bin"
	default_rules
}

# run_as NAME: sets STALLIO to a program of that name.
run_as()
{
	[[ -e $STALL_DIR/bin/$1 ]] || cp "$STALLIO_PROGRAM" "$STALL_DIR/bin/$1"
	STALLIO=$STALL_DIR/bin/$1
}

# run_as_service NAME: sets STALLIO to a program of that name, which runs in SERVICE_GROUP.
run_as_service()
{
	run_as "$1"
	mkdir -p "$STALL_DIR/service"
	printf '#!/bin/sh\necho $$ >%s/cgroup.procs && exec %s "$@"\n' "$SERVICE_GROUP" "$STALLIO" >"$STALL_DIR/service/$1"
	chmod +x "$STALL_DIR/service/$1"
	STALLIO=$STALL_DIR/service/$1
}

# service_limit DEV WHAT VALUE: as stall_throttle, for a control group of its own, SERVICE_GROUP, as systemd makes one.
service_limit()
{
	local parent

	stall_can_throttle >/dev/null || return 1
	parent=${STALL_CGROUP_DIRS[0]}
	SERVICE_GROUP=$parent/iostall-service.$$
	# In version 2 the group of the test is the service, since one with processes has no children with limits.
	((STALL_CGROUP_VERSION == 1)) || SERVICE_GROUP=$parent
	if [[ ! -d $SERVICE_GROUP ]]; then
		mkdir "$SERVICE_GROUP" && stall_undo _stall_cgroup_leave "$SERVICE_GROUP" "$parent" || return 1
	fi
	_stall_throttle_set "$STALL_CGROUP_VERSION" "$SERVICE_GROUP" "$(lsblk -dnro MAJ:MIN "$1")" "$2" "$3"
}

# story NAME: it begins when the last incident is over.
story()
{
	live_part "$1"
	STORY=$1 LIVE_GO=go.$((++STORIES))
	live_wait live_state_is idle || exit 1
	# What came before is not what led up to it.
	sleep "${STORIES_REST_S-0}"
	rm -f "$LIVE_RECORDS"/*.jsonl
}

filed()
{
	live_state_is idle && ! compgen -G "$LIVE_SPOOL/*.jsonl" >/dev/null &&
		compgen -G "$LIVE_RECORDS/*.jsonl" >/dev/null
}

# wait_seconds N: since live_go.
wait_seconds()
{
	live_wait_until_ms $((LIVE_GO_MS + $1 * 1000))
}

# verdict_is JQ-OPTION...: the incident closes, and its verdict is what stories.jq is told, now and later.
verdict_is()
{
	local failed=$ASSERT_FAILED name=${STORY//[^a-zA-Z0-9]/-}.jsonl

	assert_cmd "$STORY: the incident that a rule opened closes" live_wait filed
	# On a busy host its end may open another one.
	RECORD=$(compgen -G "$LIVE_RECORDS/*.jsonl" | sort | head -n 1)
	[[ -n $RECORD ]] || return 1
	live_compare "$STORY: the verdict" stories.jq "$@"
	RULES+=("$(jq -r 'select(.type == "open").trigger.rule' "$RECORD")")
	live_check_judged
	[[ -z ${LIVE_KEEP-} ]] || cp "$RECORD" "$LIVE_KEEP/$name"
	# The next story removes it.
	if [[ -n ${STALL_EVIDENCE-} ]] && ((ASSERT_FAILED > failed)); then
		mkdir -p "$STALL_EVIDENCE" && cp "$RECORD" "$STALL_EVIDENCE/$name"
	fi
}

dev_name()
{
	local name=${1#/dev/}

	echo "$name"
}

# The rules are those of a fresh installation, not those that the library has switched off.
default_rules()
{
	local i settings=()

	for ((i = 0; i < ${#LIVE_SET[@]}; i++)); do
		if [[ ${LIVE_SET[i]} == --set && ${LIVE_SET[i + 1]} == rule.*.enabled=no ]]; then
			((i++))
		else
			settings+=("${LIVE_SET[i]}")
		fi
	done
	LIVE_SET=("${settings[@]}")
}

# cpu_limit: a story, wherever the kernel has such limits.
cpu_limit()
{
	story "the control group of a database may use a twentieth of a CPU, and it wants more"
	if ! stall_cpu_group 5; then
		skip "$STORY" "no CPU controller of control groups"
		return
	fi
	mkdir -p "$STALL_DIR/cpu"
	cp "$BASH" "$STALL_DIR/cpu/mysqld"
	# shellcheck disable=SC2016 # expanded by the other shell
	stall_bg "$STALL_DIR/cpu/mysqld" -c 'echo $$ >"$0/cgroup.procs"; while :; do :; done' "$STALL_CPU_GROUP"
	# So often it is looked which processes there are.
	assert_cmd "$STORY: a rule opens an incident" live_wait live_is_recording
	live_now_ms
	live_wait_until_ms $((LIVE_NOW_MS + 4000))
	kill "$STALL_PID"
	verdict_is --arg class cpu --arg dev "" \
		--arg says "used up its limit of 0.05 CPUs for "
}

# stories_end: the daemon ends.
stories_end()
{
	kill -TERM "$LIVE_PID"
	wait "$LIVE_PID"
	live_end_loads
	check_rules
	assert_finish
}

# On real hosts most freezes of a disk are first seen by these rules. They need CPUs that are idle.
check_rules()
{
	local count=0 rule

	for rule in "${RULES[@]}"; do
		[[ $rule != iowait && $rule != iowait_cpus && $rule != psi_io_full ]] || count=$((count + 1))
	done
	printf '# opened by: %s\n' "$(printf '%s\n' "${RULES[@]}" | sort | uniq -c | awk '{ printf "%s%s %s", sep, $1, $2; sep = ", " }')"
	# Which of two rules is first is a matter of luck, so a few incidents say nothing.
	if [[ -z ${LIVE_IN_VM-} && ${#RULES[@]} -ge 15 ]]; then
		assert_between "$count" $(((${#RULES[@]} + 2) / 3)) ${#RULES[@]} \
			"the rules for waiting CPUs open a third of the incidents"
	fi
}
