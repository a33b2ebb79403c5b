# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the `stall` lines of a record with what stallio measured. It prints one "#" line with figures, and then
# one line for each difference.
#   $record  lines of the record        $ran  lines of stallio (one process or more)
#   --arg path P   the path that the record must have, when stallio does not know it
#   --arg none 1   a record without stalls is correct, too
#   $held    from when until when all operations hung, on the clock of both; [0, 0] when the test does not know
#   $bounded   whether the test may have bounds of time; one that may not must have noted a hold
#
# What the kernel measures lies within what stallio measures around it, and is no shorter than the hold. So nothing
# depends on how fast the host is. An operation that was not held may have a line or none, whatever it took: a thread
# that waits for a CPU does not sleep. Where no hold is known, lengths may differ by 5 %, or by 2 ms if that is more.
#
# Only the operations of stallio's threads on their files are compared. Their output, and what else makes them
# sleep on a busy machine, is ignored.
#
# A name that could not be read in time is null, or the path lacks its beginning, and `lost` counts it; it is never wrong.
#
# A lost return is not a difference when `lost` counts it. `lost` also counts returns of short operations and of
# other processes.

def slack: [. * 0.05, 2000000] | max;
def hold: $held[1] - $held[0];
def is_held: hold > 0 and .start_mono_ns <= $held[0] and .start_mono_ns + .dur_ns >= $held[1];
def must_have_line($min_ns): if hold > 0 then is_held else .dur_ns > $min_ns + ($min_ns | slack) end;
def kernel_op: {read: "read", pread: "read", preadv: "read", write: "write", pwrite: "write",
	pwritev: "write", fsync: "fsync"}[.];

def lost_names: [$record[] | select(.type == "close").lost.names_unread] | add // 0;

def compare($what; $op; $got; $lost):
	($ARGS.named.path // $op.path) as $path
	| (if $got.path_truncated and lost_names > 0 and ($path | endswith($got.path[3:])) then $got else
		{$path, path_truncated: false} end) as $name
	| ({pid: $op.pid, tid: $op.tid, comm: $op.comm, fd: $op.fd, path: $name.path, dev: $op.dev, inode: $op.inode,
	  op: ($op.op | kernel_op), ret: $op.ret,
	  offset: (if $op.op == "fsync" then null else $op.offset end),
	  bytes: (if $op.op == "fsync" then null else $op.bytes end),
	  probe: (if $op.op == "fsync" then "sync" else "vfs" end), user: "root",
	  path_truncated: $name.path_truncated} | to_entries[]
		| select($got[.key] != .value)
		# If the kernel skipped the return, only the sleep is known, which has no result.
		| select($got.probe != "wait" or $lost == 0 or
			(.key | IN("ret", "probe", "offset", "bytes") | not))
		| "\($what): \(.key) is \($got[.key] | tojson), not \(.value | tojson)"),
	(if ($got.exe == null and lost_names > 0) or ($got.exe // "" | test("/(stallio(32)?|(wanted|many)-23)$"))
	 then empty else "\($what): exe is \($got.exe)" end),
	# A program at the end of a call that slept nowhere is given no stack by older kernels.
	(if $got.cgroup > 0 and (($got.kstack | length) > 0 or $got.sleeps == 0)
	 then empty else "\($what): no kernel stack, or no cgroup" end),
	(if $got.start_mono_ns + $got.dur_ns > $op.start_mono_ns + $op.dur_ns
	 then "\($what): it ends \($got.start_mono_ns + $got.dur_ns - $op.start_mono_ns - $op.dur_ns) ns too late" else empty end),
	(if ($op | is_held) and $got.dur_ns < hold
	 then "\($what): dur_ns is \($got.dur_ns), although it was held for \(hold)" else empty end),
	(if hold == 0 and ($op.dur_ns - $got.dur_ns > ($op.dur_ns | slack))
	 then "\($what): dur_ns is \($got.dur_ns), not \($op.dur_ns)" else empty end);

(first($record[] | select(.type == "open")).min_stall_ns) as $min_ns
| ([first($record[] | select(.type == "close")).lost | .return_missed, .prog_skipped // 0] | add // 0)
	as $lost
| ($ran | map({key: (.tid | tostring), value: true}) | from_entries) as $tids
| ($record | map(select(.type == "stall" and $tids[.tid | tostring] and
	(.op | IN("read", "write", "fsync")) and
	(.path // "" | endswith(".ran") | not)))) as $stalls
| ($stalls | group_by(.tid) | map({key: (.[0].tid | tostring), value: .})
	| from_entries) as $by_tid
| [$ran[] | . as $op
	| {op: $op, what: "tid \(.tid) \(.op) at \(.offset), \(.dur_ns / 1000000) ms",
	   found: ($by_tid[.tid | tostring] // [] | map(select(
		.start_mono_ns >= $op.start_mono_ns and
		.start_mono_ns <= $op.start_mono_ns + $op.dur_ns)))}] as $pairs
| [$pairs[] | select(.found | length == 0)
	| select(.op | must_have_line($min_ns)) | "\(.what): no line"] as $missing
| ([$pairs[].found | length] | add // 0) as $matched
| [($pairs[] | select(.found | length > 0)
	| .op.start_mono_ns as $start
	| if (.found | length) > 1 then "\(.what): \(.found | length) lines: \(.found | map(
		[.start_mono_ns - $start, .dur_ns, .mono_ns - $start, .path, .ret]) | tojson)"
	  elif .found[0].dur_ns < $min_ns then "\(.what): a line of \(.found[0].dur_ns) ns, shorter than min_stall"
	  else compare(.what; .op; .found[0]; $lost) end),
   (if ($missing | length) > $lost then $missing[] else empty end),
   (if $matched != ($stalls | length)
	then "\(($stalls | length) - $matched) lines for what never ran" else empty end),
   (if hold == 0 and ($bounded | not) then "the test did not note from when until when operations hung" else empty end),
   (if ($stalls | length) == 0 and ($ARGS.named.none == null)
	then "no stall at all" else empty end)] as $differences
| [$pairs[] | select(.found | length == 1)
	| .op.dur_ns - .found[0].dur_ns | fabs / 1000] as $errors_us
| "# \($ran | length) operations, \($stalls | length) stalls, longest " +
	"\(($ran | map(.dur_ns) | max // 0) / 1000000 | round) ms, lengths differ by at most " +
	"\($errors_us | max // 0 | round) us, \([$ran[] | select(is_held)] | length) were held for \(hold / 1000000 | round) ms" +
	(if ($missing | length) > 0 then ", \($missing | length) returns missed, lost says \($lost)"
	 else "" end),
  $differences[]
