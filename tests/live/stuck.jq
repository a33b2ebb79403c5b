# SPDX-License-Identifier: GPL-2.0-or-later
#
# Holds the stuck lines of a record against what stallio measured once it was let go. Output and
# arguments as in stalls.jq.
#   $record  lines of the record, read while the operations hung
#   --argjson lines N     stuck lines that each operation must have (1)
#   --argjson skipped N   program runs that the kernel skipped: at most so many may have fewer (0)

def kernel_op: {read: "read", pread: "read", write: "write", pwrite: "write"}[.];

def compare($what; $op; $got):
	({pid: $op.pid, tid: $op.tid, comm: $op.comm, fd: $op.fd,
	  path: ($ARGS.named.path // $op.path), dev: $op.dev, inode: $op.inode,
	  op: ($op.op | kernel_op), offset: $op.offset, bytes: $op.bytes, since: "after_arm",
	  state: "D", probe: "vfs", ret: null, dur_ns: null} | to_entries[]
		| select($got[.key] != .value)
		| "\($what): \(.key) is \($got[.key] | tojson), not \(.value | tojson)"),
	# 5.10 has no wchan.
	(if $got.wchan == null and ($ARGS.named.wchan == null) then "\($what): no wchan" else empty end),
	(if ($got.kstack | length) == 0 then "\($what): no kernel stack" else empty end),
	(if $got.age_ns > $op.dur_ns then "\($what): older than it ever got" else empty end),
	# The kernel took the age just before the line got its time.
	(($got.mono_ns - $got.start_mono_ns - $got.age_ns) | fabs | select(. > if $slack > 1 then 5000000000 else 500000000 end)
		| "\($what): the age is off by \(. / 1000000) ms");

($ARGS.named.lines // 1) as $lines
| ($ran | map(select(.op != "fsync"))) as $ran
| ($ran | map({key: (.tid | tostring), value: true}) | from_entries) as $tids
| ($record | map(select(.type == "stuck" and $tids[.tid | tostring] and
	(.op | IN("read", "write")) and (.path // "" | endswith(".ran") | not)))) as $stuck
| ($stuck | group_by(.tid) | map({key: (.[0].tid | tostring), value: .})
	| from_entries) as $by_tid
| [$ran[] | . as $op | ($by_tid[.tid | tostring] // []) as $got
	| select(($got | length) < $lines)
	| "tid \(.tid) \(.op) at \(.offset): \($got | length) lines"] as $missing
| [(if ($missing | length) > ($ARGS.named.skipped // 0) then $missing[] else empty end),
   ($ran[] | . as $op | "tid \(.tid) \(.op) at \(.offset)" as $what
	| ($by_tid[.tid | tostring] // []) as $got
	| ($got[] | compare($what; $op; .)),
	  (if ($got | map(.age_ns) | . != (sort | unique)) then "\($what): the age does not grow"
	   else empty end))] as $differences
| "# \($ran | length) operations, \($stuck | length) stuck lines, oldest " +
	"\(($stuck | map(.age_ns) | max // 0) / 1000000 | round) ms" +
	(if ($missing | length) > 0 then ", \($missing | length) with fewer than \($lines)" else "" end),
  $differences[]
