# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each stall of a thread is inside one of the calls that the thread measured, and each long call has one. The
# output is as in stalls.jq.
#   $record  lines of the record        $ran  lines of stallio

def kernel_op: {pread: "read", pwrite: "write", fsync: "fsync"}[.];
def overlaps($op): .start_mono_ns < $op.start_mono_ns + $op.dur_ns and .start_mono_ns + .dur_ns > $op.start_mono_ns;
# The two clocks are read within this time.
def is_inside($op): 1e8 as $margin
	| .start_mono_ns > $op.start_mono_ns - $margin
		and .start_mono_ns + .dur_ns < $op.start_mono_ns + $op.dur_ns + $margin;

# The printing of its lines may stall, too.
[$record[] | select(.type == "stall" and (. as $s | any($ran[]; .tid == $s.tid and (.op | kernel_op) == $s.op)))]
	as $stalls
| [$ran[] | select(.dur_ns >= 1e9)] as $long
| "# \($ran | map("\(.op) took \(.dur_ns / 1e6 | round) ms") | join(", ")); stalls of " +
	"\($stalls | map("\(.op) \(.dur_ns / 1e6 | round) ms, ret \(.ret)") | join(", "))",
  (if $long == [] then "no call was delayed" else empty end),
  ($stalls[] | . as $stall | select(any($ran[]; . as $op | ($op.op | kernel_op) == $stall.op
		and ($stall | is_inside($op))) | not)
	| "a stall of \(.op) with \(.dur_ns / 1e6) ms is in no call"),
  ($long[] | . as $op | select(any($stalls[]; overlaps($op)) | not) | "a \($op.op) of \($op.dur_ns / 1e6) ms has no stall")
