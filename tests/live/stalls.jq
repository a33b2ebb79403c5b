# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the `stall` lines of a record with what stallio measured. It prints one "#" line with figures, and then
# one line for each difference.
#   $record  lines of the record        $ran  lines of stallio (one process or more)
#   --arg path P   the path that the record must have, when stallio does not know it
#   --arg none 1   a record without stalls is correct, too
#
# Only the operations of stallio's threads on their files are compared. Their output, and what else makes them
# sleep on a busy machine, is ignored.
#
# A lost return is not a difference when `lost` counts it. `lost` also counts returns of short operations and of
# other processes.

# The return to user space takes time, so lengths may differ by 5 %, or by 2 ms if that is more,
# and by the time that a CPU was taken away.
def slack: ([. * 0.05, 2000000] | max) + $gone_ns;
def kernel_op: {read: "read", pread: "read", preadv: "read", write: "write", pwrite: "write",
	pwritev: "write", fsync: "fsync"}[.];

def compare($what; $op; $got; $lost):
	({pid: $op.pid, tid: $op.tid, comm: $op.comm, fd: $op.fd,
	  path: ($ARGS.named.path // $op.path), dev: $op.dev, inode: $op.inode,
	  op: ($op.op | kernel_op), ret: $op.ret,
	  offset: (if $op.op == "fsync" then null else $op.offset end),
	  bytes: (if $op.op == "fsync" then null else $op.bytes end),
	  probe: (if $op.op == "fsync" then "sync" else "vfs" end), user: "root", path_truncated: false} | to_entries[]
		| select($got[.key] != .value)
		# If the kernel skipped the return, only the sleep is known, which has no result.
		| select($got.probe != "wait" or $lost == 0 or
			(.key | IN("ret", "probe", "offset", "bytes") | not))
		| "\($what): \(.key) is \($got[.key] | tojson), not \(.value | tojson)"),
	(if $got.exe // "" | test("/(stallio|wanted-23)$")
	 then empty else "\($what): exe is \($got.exe)" end),
	(if $got.cgroup > 0 and (($got.kstack | length) > 0)
	 then empty else "\($what): no kernel stack, or no cgroup" end),
	(($got.dur_ns - $op.dur_ns) | fabs
		| select(. > ($op.dur_ns | slack))
		| "\($what): dur_ns is \($got.dur_ns), not \($op.dur_ns)");

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
	| select(.op.dur_ns > $min_ns + ($min_ns | slack)) | "\(.what): no line"] as $missing
| ([$pairs[].found | length] | add // 0) as $matched
| [($pairs[] | select(.found | length > 0)
	| .op.start_mono_ns as $start
	| if (.found | length) > 1 then "\(.what): \(.found | length) lines: \(.found | map(
		[.start_mono_ns - $start, .dur_ns, .mono_ns - $start, .path, .ret]) | tojson)"
	  elif .op.dur_ns < $min_ns then "\(.what): a line, but shorter than min_stall"
	  else compare(.what; .op; .found[0]; $lost) end),
   (if ($missing | length) > $lost then $missing[] else empty end),
   (if $matched != ($stalls | length)
	then "\(($stalls | length) - $matched) lines for what never ran" else empty end),
   (if ($stalls | length) == 0 and ($ARGS.named.none == null)
	then "no stall at all" else empty end)] as $differences
| [$pairs[] | select(.found | length == 1)
	| .op.dur_ns - .found[0].dur_ns | fabs / 1000] as $errors_us
| "# \($ran | length) operations, \($stalls | length) stalls, longest " +
	"\(($ran | map(.dur_ns) | max // 0) / 1000000 | round) ms, lengths differ by at most " +
	"\($errors_us | max // 0 | round) us" +
	(if ($missing | length) > 0 then ", \($missing | length) returns missed, lost says \($lost)"
	 else "" end),
  $differences[]
