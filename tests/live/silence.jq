# SPDX-License-Identifier: GPL-2.0-or-later
#
# The lines of a disk that ended nothing while one operation hung, and of the kernel's log. Output as in
# stalls.jq.
#   $record  lines of the record    $ran  the one operation, by stallio    $upper  the disk, "7:1"
#   $error  how the line begins that the kernel wrote to its log

def must($what; condition): if condition then empty else $what end;

$ran[0] as $op
| [$record[] | select(.type == "device" and .dev == $upper and (.final | not))] as $lines
| "# \($lines | length) lines, the last after \($lines[-1].no_completion_ns / 1000000 | round) ms",
  must("its lines: \($lines)"; $lines | length >= 2 and length <= 10 and all(
	.no_completion_ns >= 1000000000 and .in_flight >= 1 and
	.oldest.age_ns >= 1000000000 and .oldest.age_ns <= $op.dur_ns and
	.oldest.tid == $op.tid and .oldest.pid == $op.pid and .oldest.comm == $op.comm and
	.oldest.path == $op.path)),
  # Only reads are held: the journal of the file system may end a write meanwhile.
  must("it does not grow older: \($lines)"; $lines | map(.oldest.age_ns) | . == sort),
  must("the kernel's log: \([$record[] | select(.type == "kernel")])";
	[$record[] | select(.type == "kernel" and (.text | startswith($error)) and
		(.text | endswith("iostall-test")) and .level == "crit" and .kernel_ns > 0)]
	| length == 1)
