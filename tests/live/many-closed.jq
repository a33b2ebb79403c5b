# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the record of an incident that was closed while thousands of threads hung, or just after. The output is as in
# stalls.jq.
#   $record  lines of the record        $threads  how many threads hung
#   $reason  why it was closed          $late_ms  what the event loop may be late by

def must($what; condition): if condition then empty else $what end;

$record[-1] as $close
| ($close.lost // {}) as $lost
| "# \($threads) threads: \($close.stuck_threads) stuck, \($close.stalls) stalls, turn \($close.cost.turn_ms) ms, " +
	"delay \($close.cost.delay_ms) ms, disarm \($close.cost.disarm_ms) ms, armed \($close.cost.armed_ms) ms, cpu " +
	"\($close.cost.cpu_ms) ms, lost \($lost | with_entries(select(.value > 0)) | tojson)",
  must("it did not end as it should: \($close.reason)"; $close.reason == $reason),
  must("not each thread is accounted for"; $close.stuck_threads + $lost.stuck_unreported >= $threads and
	$lost.not_visited == 0),
  must("the loop did not look at its descriptors for \($close.cost.turn_ms) ms"; $close.cost.turn_ms < $late_ms),
  must("the loop was late by \($close.cost.delay_ms) ms"; $close.cost.delay_ms < $late_ms),
  must("the record was closed only after \($close.cost.disarm_ms) ms";
	$close.cost.disarm_ms < 250 + $late_ms)
