# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the lines of asynchronous requests with what requestio measured. The output is as in stalls.jq.
#   $record  lines of the record        $ran  lines of requestio (one process or more)
#   $probe   probe of the lines         $type  stall, or stuck for lines read while the requests hung
#   $skipped   how many runs of BPF programs the kernel skipped; they explain missing lines
#   --argjson lines N   stuck lines that each request must have
#   $held      from when until when all requests hung, as in stalls.jq
#   $bounded   whether the test may have bounds of time
#   $unread    names could not be read in time, and that is counted
#
# Thread, file and offset identify a request. The requests of one fsync() have the same, so the longest ones are
# compared.

def key: "\(.tid) \(.path) \(.offset)";
def end_ns: .start_mono_ns + .dur_ns;

def compare($what; $r; $got):
	({pid: $r.pid, tid: $r.tid, comm: $r.comm, fd: $r.fd, path: $r.path, dev: $r.dev,
	  inode: $r.inode, op: $r.op, offset: $r.offset, bytes: $r.bytes, user: "root",
	  path_truncated: false, path_given: false, since: "after_arm", kstack: [], syscall: null,
	  ret: (if $type == "stall" then $r.ret else null end)} | to_entries[]
		| select($got[.key] != .value)
		| "\($what): \(.key) is \($got[.key] | tojson), not \(.value | tojson)"),
	(if ($got.exe == null and $unread) or ($got.exe // "" | endswith("/requestio"))
	 then empty else "\($what): exe is \($got.exe)" end),
	(if $got.cgroup > 0 then empty else "\($what): no cgroup" end);

def compare_stall($what; $r; $got):
	compare($what; $r; $got),
	(if $got.dur_ns < $held[1] - $held[0]
	 then "\($what): dur_ns is \($got.dur_ns), although it was held for \($held[1] - $held[0])" else empty end);

# What the kernel measures of the requests of one key lies within what requestio measures of them.
def compare_times($what; $requests; $got):
	($requests | map(.start_mono_ns) | min) as $start_ns | ($requests | map(end_ns) | max) as $end_ns
	| $got[] | select(.start_mono_ns < $start_ns or end_ns > $end_ns)
	| "\($what): it is from \(.start_mono_ns) to \(end_ns), not within \($start_ns) and \($end_ns)";

def compare_stuck($what; $r; $got):
	compare($what; $r; $got),
	(if $got.age_ns > $r.dur_ns then "\($what): older than it ever got" else empty end);

($record | map(select(.type == $type and .probe == $probe)) | group_by(key)
	| map({key: (.[0] | key), value: .}) | from_entries) as $lines
| ($ran | group_by(key) | map({key: (.[0] | key), value: sort_by(.dur_ns)})) as $groups
| ($groups | map({key: .key, value: true}) | from_entries) as $known
| [$groups[] | .key as $key | .value as $requests | ($lines[$key] // []) as $got
	| "\($requests[0].comm) \($requests[0].op) at \($requests[0].offset)" as $what
	| if $skipped > 0 and ($got | length) < ($requests | length) then empty
	  elif $type == "stall" then
		if ($got | length) != ($requests | length)
		then "\($what): \($got | length) lines, not \($requests | length)"
		else ([$requests, ($got | sort_by(.dur_ns))] | transpose[] | compare_stall($what; .[0]; .[1])),
			compare_times($what; $requests; $got) end
	  else ($got | group_by(.start_mono_ns)) as $each
		| (if ($each | length) != ($requests | length)
		     and $skipped == 0
		   then "\($what): \($each | length) were stuck, not \($requests | length)" else empty end),
		($each[] | select(length < $ARGS.named.lines and $skipped == 0) | "\($what): only \(length) lines"),
		($each[] | map(.age_ns) | select(. != (sort | unique)) | "\($what): the age does not grow"),
		($got[] | compare_stuck($what; $requests[-1]; .))
	  end] as $differences
| [$lines | to_entries[] | select($known[.key] | not)
	| "\(.value | length) lines for what never ran: \(.value[0] | [.comm, .op, .path, .offset] | tojson)"
	] as $strangers
| "# \($ran | length) requests, \($lines | map(length) | add // 0) \($type) lines, longest " +
	"\(($ran | map(.dur_ns) | max // 0) / 1000000 | round) ms" +
	(if $type == "stall" then ", lengths differ by at most " +
		"\([$groups[] | [.value, ($lines[.key] // [] | sort_by(.dur_ns))] | transpose[]
			| select(.[0] and .[1]) | (.[1].dur_ns - .[0].dur_ns) | fabs / 1000] | max // 0 | round) us"
	 else "" end) +
	(if $skipped > 0 then ", \($skipped) program runs were skipped" else "" end),
  (if $held[0] == 0 and ($bounded | not) then "the test did not note from when until when requests hung" else empty end),
  $differences[], $strangers[]
