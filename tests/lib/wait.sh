# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Waits for a state: clock, identity of processes, blocked threads.
# Sourced by stall.sh; tests use wait_until and wait_blocked.
# It never sleeps for a fixed time when it can check a state, and it starts no process to sleep.

stall_error()
{
	printf 'stall: %s\n' "$*" >&2
}

# Sets STALL_NOW_CS to hundredths of a second since boot. The wall clock may jump, and date(1) is a process.
_stall_now()
{
	local up rest

	read -r up rest </proc/uptime
	: "$rest"
	STALL_NOW_CS=$((10#${up/./}))
}

# A read with a timeout sleeps without a process. The pipe never contains a byte.
exec {STALL_NAP_FD}<> <(:)

_stall_nap()
{
	local byte

	IFS= read -r -t "$1" -u "$STALL_NAP_FD" byte || :
	: "${byte-}"
}

# Start time of a process in clock ticks. Pid and start time together identify a process.
_stall_starttime()
{
	local stat fields

	{ read -r stat <"/proc/$1/stat"; } 2>/dev/null || return 1
	read -ra fields <<<"${stat##*) }"
	STALL_STARTTIME=${fields[19]}
}

_stall_alive()
{
	_stall_starttime "$1" && [[ $STALL_STARTTIME == "$2" ]]
}

# wait_until SECONDS COMMAND...: runs the command every 50 ms until it succeeds. After SECONDS it fails and
# shows the last output.
wait_until()
{
	local deadline_cs seconds=$1 output
	shift

	_stall_now
	deadline_cs=$((STALL_NOW_CS + seconds * 100))
	while ! "$@" >/dev/null 2>&1; do
		_stall_now
		if ((STALL_NOW_CS >= deadline_cs)); then
			output=$("$@" 2>&1) && return 0
			stall_error "gave up after $seconds s waiting for: $*${output:+ ($output)}"
			return 1
		fi
		_stall_nap 0.05
	done
}

# Numbers of read, write, pread64, pwrite64, fsync, fdatasync.
case $(uname -m) in
x86_64) _STALL_IO_SYSCALLS=' 0 1 17 18 74 75 ' ;;
*) _STALL_IO_SYSCALLS=' 63 64 67 68 82 83 ' ;;
esac

# stall_count_blocked PID: counts the threads that are in D state or sleep in a read, write or fsync.
stall_count_blocked()
{
	local task stat call count=0

	for task in "/proc/$1/task"/*; do
		{ read -r stat <"$task/stat"; } 2>/dev/null || continue
		stat=${stat##*) }
		case ${stat%% *} in
		D) count=$((count + 1)) ;;
		S)
			{ read -r call _ <"$task/syscall"; } 2>/dev/null || continue
			if [[ $_STALL_IO_SYSCALLS == *" $call "* ]]; then
				count=$((count + 1))
			fi
			;;
		esac
	done
	echo "$count"
}

_stall_blocked_now()
{
	local count

	count=$(stall_count_blocked "$1")
	((count >= $2)) && return 0
	echo "$count of $2 threads of process $1 are blocked"
	return 1
}

_stall_blocked_or_gone()
{
	_stall_blocked_now "$@" || ! _stall_starttime "$1"
}

# wait_blocked PID N [SECONDS]: waits until at least N threads of the process are blocked, 10 s by default.
# Fails at once when the process ends.
wait_blocked()
{
	wait_until "${3:-10}" _stall_blocked_or_gone "$1" "$2" || return 1
	_stall_starttime "$1" && return 0
	stall_error "process $1 ended before $2 of its threads were blocked"
	return 1
}
