# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the lines of a disk that completed nothing while one operation hung, and those of the kernel's log. The
# output is as in stalls.jq.
#   $record  lines of the record    $ran  the one operation, by stallio    $upper  the disk, "7:1"
#   $error  the beginning of the line in the kernel's log

def must($what; condition): if condition then empty else $what end;

$ran[0] as $op
| [$record[] | select(.type == "device" and .dev == $upper and (.final | not) and
	.no_completion_ns >= 1000000000)] as $lines
| "# \($lines | length) lines, the last after \($lines[-1].no_completion_ns / 1000000 | round) ms",
  must("its lines: \($lines)"; $lines | length >= 2 and length <= 10 and all(
	.in_flight >= 1 and
	.oldest.age_ns >= 1000000000 and .oldest.age_ns <= $op.dur_ns and
	.oldest.tid == $op.tid and .oldest.pid == $op.pid and .oldest.comm == $op.comm and
	.oldest.path == $op.path)),
  # Only reads hang. A write of the file system journal may complete meanwhile.
  must("it does not grow older: \($lines)"; $lines | map(.oldest.age_ns) | . == sort),
  must("the kernel's log: \([$record[] | select(.type == "kernel")])";
	[$record[] | select(.type == "kernel" and (.text | startswith($error)) and
		(.text | endswith("iostall-test")) and .level == "crit" and .kernel_ns > 0)]
	| length == 1)
