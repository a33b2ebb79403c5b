# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the record of thousands of threads that hung and returned together. The output is as in stalls.jq.
#   $record  lines of the record        $ran  lines of stallio
#   $threads  how many threads hung
#   $late_ms  what the event loop may be late by

def must($what; condition): if condition then empty else $what end;
# How many operations a line stands for.
def operations: 1 + (.alike.count // 0);

($ran | map({key: (.tid | tostring), value: true}) | from_entries) as $tids
| ($record | map(select((.type == "stuck" or .type == "stall") and .op == "read" and $tids[.tid | tostring])))
	as $lines
| $record[-1] as $close
| ($close.lost // {}) as $lost
# Those with lines of their own, and for each kind the line that stands for most of the others.
| ($lines | map(select(.type == "stuck" and .alike == null)) | map(.tid) | unique | length) as $own
| ($lines | map(select(.type == "stuck" and .alike != null)) | group_by([.waits_for, .probe])
	| map(map(operations) | max) | add // 0) as $alike
| ($lines | map(select(.type == "stall")) | map(operations) | add // 0) as $stalls
| ($record | map(select(.type == "sample" and (.before_trigger | not)).mono_ns)) as $samples
| ([range(1; $samples | length)] | map($samples[.] - $samples[. - 1]) | max // 0) as $gap_ns
| ([$record[] | select(.type == "verdict" and .final).parts[] | select(.what == "victims").threads] | max // 0) as $victims
| "# \($threads) threads: stuck \($own) with lines of their own and \($alike) in lines for many, \($stalls) stalls " +
	"in \($lines | map(select(.type == "stall")) | length) lines, verdict \($victims), samples at most " +
	"\($gap_ns / 1000000 | round) ms apart, cpu \($close.cost.cpu_ms) ms, turn \($close.cost.turn_ms) ms, delay " +
	"\($close.cost.delay_ms) ms, disarm \($close.cost.disarm_ms) ms, record " +
	"\($record | map(tojson | length) | add) bytes, lost \($lost | with_entries(select(.value > 0)) | tojson)",
  must("not each thread is accounted for while it hangs"; $own + $alike >= $threads),
  must("not each return is accounted for, nor lost";
	$stalls + $lost.ring_full + $lost.return_missed >= $threads and $stalls <= $threads),
  must("the verdict does not count all threads"; $victims == $threads),
  # It has room for all of them, should iostall not run meanwhile.
  must("the ring buffer was full"; $lost.ring_full == 0),
  must("something else is lost";
	$lost | del(.ring_full, .return_missed, .prog_skipped, .path_truncated) | all(.[]; . == 0)),
  must("a sample is missing"; ($samples | length) > 5 and $gap_ns < 1500000000),
  # An emulated CPU takes far longer.
  must("it took \($close.cost.cpu_ms) ms of a CPU in \($close.duration_ns / 1e6) ms";
	($ENV.LIVE_IN_VM // "") != "" or $close.cost.cpu_ms * 1e6 < 0.35 * $close.duration_ns),
  must("the loop was late"; $close.cost.delay_ms < $late_ms)
