# SPDX-License-Identifier: GPL-2.0-or-later
#
# Compares the lines of operations that hung before iostall was armed with what stallio measured after their end.
# The output is as in stalls.jq.
#   $record    lines of the record            $ran  lines of stallio
#   $type      stuck (a record read while they hung) or stall (a whole one)
#   $threads   how many operations hung
#   $held      from when until when all of them hung

def kernel_op: {read: "read", pread: "read", write: "write", pwrite: "write", fsync: "fsync"}[.];

# The age when iostall was armed. Any clock could measure by how much it grew afterwards.
def age_at_arming($opened): (.age_ns // .dur_ns) - (if .age_ns then .mono_ns - $opened else 0 end);

def compare($what; $op; $got; $opened):
	({pid: $op.pid, tid: $op.tid, comm: $op.comm, fd: $op.fd, path: $op.path, dev: $op.dev,
	  inode: $op.inode, op: ($op.op | kernel_op), since: "before_arm", user: "root",
	  path_truncated: false} | to_entries[]
		| select($got[.key] != .value)
		| "\($what): \(.key) is \($got[.key] | tojson), not \(.value | tojson)"),
	# If the system call of the thread does not tell them, they are null, but never wrong.
	({offset: $op.offset, bytes: $op.bytes} | to_entries[]
		| select($op.op != "fsync" and $got[.key] != null and $got[.key] != .value)
		| "\($what): \(.key) is \($got[.key]), not \(.value)"),
	# All slept since $held[0]. The kernel keeps when a thread last ran on another clock than that of the records: in
	# a minute they differ by less than 100 ms.
	(if $got | age_at_arming($opened) >= $opened - $held[0] - 1e8 then empty
	 else "\($what): of \(($opened - $held[0]) / 1e6) ms before arming only \($got | age_at_arming($opened) / 1e6) ms are known"
	 end),
	(if ($got.age_ns // $got.dur_ns) <= $op.dur_ns + 1e8 then empty
	 else "\($what): \(($got.age_ns // $got.dur_ns) / 1e6) ms are more than it took" end),
	(if $type == "stuck" and ($got.state == null or ($got.kstack | length) == 0)
	 then "\($what): no state, or no kernel stack" else empty end);

(first($record[] | select(.type == "open")).mono_ns) as $opened
| ([$record[] | select(.type == "close") | .lost | to_entries[] | .value] | add // 0) as $lost
| [$ran[] | select(.start_mono_ns <= $held[0] and .start_mono_ns + .dur_ns >= $held[0])] as $hung
| [$hung[] | . as $op | {op: $op, what: "tid \(.tid) \(.op), \(.path | sub(".*/"; ""))",
	found: [$record[] | select(.type == $type and .tid == $op.tid and
		.op == ($op.op | kernel_op))]}] as $pairs
| [$pairs[] | select(.found | length == 0) | "\(.what): no line"] as $missing
| [(if ($hung | length) != $threads then "\($hung | length) of \($threads) hung" else empty end),
   (if ($missing | length) > $lost then $missing[] else empty end),
   ($pairs[] | select(.found | length > 0)
	| compare(.what; .op; .found[0]; $opened),
	  (if $type == "stall" and (.found | length) > 1
	   then "\(.what): \(.found | length) lines: \(.found | map([.probe, .op, .dur_ns]) | tojson)"
	   else empty end))] as $differences
| "# \($hung | length) hung, \($pairs | map(select(.found | length > 0)) | length) \($type), at arming " +
	"\([$pairs[].found[0] | values | age_at_arming($opened) / 1e6 | round] | [min, max] | tojson) ms of " +
	"\([$hung[].dur_ns / 1e6 | round] | [min, max] | tojson) are known",
  $differences[]
