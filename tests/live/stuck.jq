# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the `stuck` lines of a record with what stallio measured after its operations returned. Output and
# arguments are as in stalls.jq.
#   $record  lines of the record, read while the operations hung
#   --argjson lines N     stuck lines that each operation must have (1)
#   --argjson skipped N   runs of BPF programs that the kernel skipped; so many operations may have fewer lines (0)

def kernel_op: {read: "read", pread: "read", write: "write", pwrite: "write"}[.];

def compare($what; $op; $got):
	({pid: $op.pid, tid: $op.tid, comm: $op.comm, fd: $op.fd,
	  path: ($ARGS.named.path // $op.path), dev: $op.dev, inode: $op.inode,
	  op: ($op.op | kernel_op), offset: $op.offset, bytes: $op.bytes, since: "after_arm",
	  state: "D", probe: "wait", ret: null, dur_ns: null} | to_entries[]
		| select($got[.key] != .value)
		| "\($what): \(.key) is \($got[.key] | tojson), not \(.value | tojson)"),
	(if $got.wchan == null then "\($what): no wchan" else empty end),
	(if ($got.kstack | length) == 0 then "\($what): no kernel stack" else empty end),
	(if $got.age_ns > $op.dur_ns then "\($what): older than it ever got" else empty end),
	(if $got.slept_ns != null and ($got.slept_ns > $got.age_ns or $got.slept_ns <= 0)
		then "\($what): slept \($got.slept_ns) of \($got.age_ns) ns" else empty end),
	(if $got.slept_ns == null and ($record[0].coverage | any(.probe == "wait"))
		then "\($what): it is not known how long it slept" else empty end),
	# The age is measured before the line gets its time.
	(if $got.start_mono_ns + $got.age_ns > $got.mono_ns then "\($what): the age is of a time after its line" else empty end);

# compare_next: each line was measured after the one before it was written. All sleep since $held[0].
def compare_next($what; $before; $got):
	(if $got.start_mono_ns + $got.age_ns < $before.mono_ns
	 then "\($what): the age is \($got.age_ns) ns, that of a time before the last line" else empty end),
	(if $held[0] > 0 and $got.slept_ns != null and $got.slept_ns < $before.mono_ns - $held[0]
	 then "\($what): slept \($got.slept_ns) ns, although it slept \($before.mono_ns - $held[0]) ns" else empty end);

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
	  (range(1; $got | length) as $i | compare_next($what; $got[$i - 1]; $got[$i])))] as $differences
| "# \($ran | length) operations, \($stuck | length) stuck lines, oldest " +
	"\(($stuck | map(.age_ns) | max // 0) / 1000000 | round) ms" +
	(if ($missing | length) > 0 then ", \($missing | length) with fewer than \($lines)" else "" end),
  $differences[]
