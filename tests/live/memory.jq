# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the verdict about a group at its memory limit. The output is as in stalls.jq.
#   $record             lines of the record
#   --arg class NAME    --arg dev NAME     the class, the device that is judged
#   --arg group PATH    --argjson counted_mib N   the group, and what it read again by its own counter, in all
#   --arg culprit COMM  who did it; without it there may be no culprit

def must($what; condition): if condition then empty else $what end;
def mib: . / 1048576;

[$record[] | select(.type == "verdict" and .final)] as $all
| ($all[0] // {}) as $v
# Of several parts of a kind the first counts: pressure on the whole host has one, too.
| ($v.parts // [] | reverse | map({key: .what, value: .}) | from_entries) as $part
| "# \($v.sentence)",
  must("not one verdict: \($all | length)"; ($all | length) == 1),
  must("it is \($v.class), not \($ARGS.named.class): \($v.sentence); \($part.memory.text)"; ($v.class | if . == "busy" then "saturated" else . end) == $ARGS.named.class),
  must("the device is \($v.dev_name), not \($ARGS.named.dev)"; $v.dev_name == $ARGS.named.dev),
  must("the culprit is \($part.culprit | tojson), not \($ARGS.named.culprit)"; $part.culprit.comm == $ARGS.named.culprit),
  ($ARGS.named.group as $group | if $group == null then empty else
	must("the sentence does not name \($group) and its limit";
		$v.sentence | startswith("Control group \($group) ran at its memory limit of 48.0 MiB, so it read ")),
	($part.memory.bytes // 0 | mib) as $mib
	| must("\($mib) MiB of \($ARGS.named.counted_mib) MiB were read again";
		$mib <= $ARGS.named.counted_mib and $mib >= 0.6 * $ARGS.named.counted_mib),
	must("\($part.memory.share_pct) % of what the disk read"; $part.memory.share_pct | . >= 80 and . <= 100),
	must("nobody waited: \($part.victims | tojson)"; $part.victims.threads > 0)
  end)
