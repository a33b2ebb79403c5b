# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the verdict of a story. The output is as in stalls.jq.
#   $record             lines of the record
#   --arg class NAME    --arg dev NAME     the class, the device that is judged
#   --arg culprit COMM  who did it, without what follows a "/"; "" for a unit; without it there may be no culprit
#   --arg largest COMM  who did most, where nobody is known to have done half
#   --arg most COMM     who did most, whether that was half or not
#   --arg path REGEX    the file
#   --arg relation NAME the table that the file is of
#   --arg says TEXT     it is in the sentence, or else  --arg or_says REGEX  fits it
#   --argjson earlier PID   a thread of it is said to have been blocked long before

def must($what; condition): if condition then empty else $what end;

# Whether somebody else happened to wait for a disk at its limit is not of these freezes.
def kind: if . == "busy" and $ARGS.named.class == "saturated" then "saturated" else . end;

[$record[] | select(.type == "verdict" and .final)] as $all
| ($all[0] // {}) as $v
| [$record[] | select(.type == "verdict" and (.final | not))] as $so_far
| ($v.parts // [] | map({key: .what, value: .}) | from_entries) as $part
| "# armed by \($record[0].trigger.rule): \($v.sentence) \($so_far |
	map("\((.mono_ns - $record[0].mono_ns) / 1e9 | round) s: \(.class)") | tojson)",
  must("there was none within 10 s: \($so_far | map(.mono_ns))"; $record[-1].duration_ns < 10e9 or
	any($so_far[]; .mono_ns < $record[0].mono_ns + 10e9)),
  must("it was \($so_far[-1].class) so far"; $so_far == [] or ($so_far[-1].class | kind | IN($v.class | kind, "unknown"))),
  must("not one verdict: \($all | length)"; ($all | length) == 1),
  must("armed by hand"; $record[0].trigger.rule != "manual"),
  must("it is \($v.class), not \($ARGS.named.class): \($v.sentence)"; ($v.class | kind) == $ARGS.named.class),
  must("the device is \($v.dev_name), not \($ARGS.named.dev)"; ($v.dev_name // "") == $ARGS.named.dev),
  (($ARGS.named.culprit // (if $part.culprit then $ARGS.named.most else null end)) as $culprit | if $culprit == null then
	must("somebody is blamed: \($part.culprit | tojson)"; $part.culprit == null)
  else
	must("the culprit is \($part.culprit | tojson), not \($culprit)"; $part.culprit != null and ($part.culprit.comm // "" | split("/")[0] // "") == $culprit),
	# Of a statement the other threads of its server are victims; several processes have no number.
	must("the culprit leads its victims"; if $part.culprit.tid then $part.culprit.tid != $part.victims.tid
		else $part.statement or $part.culprit.pid == null or $part.culprit.pid != $part.victims.pid end),
	must("the file is \($part.culprit.path | tojson)"; $part.culprit.path // "" | test($ARGS.named.path // ""))
  end),
  ($ARGS.named.relation as $relation | if $relation == null then empty else
	must("the file is of \($part.culprit.relation)"; $part.culprit.relation == $relation)
  end),
  (($ARGS.named.largest // (if $part.culprit then null else $ARGS.named.most end)) as $largest | if $largest == null then empty else
	must("the largest is \($part.largest | tojson), not \($largest)"; ($part.largest.comm // "" | split("/")[0]) == $largest),
	must("its file is \($part.largest.path | tojson)"; $part.largest.path // "" | test($ARGS.named.path // ""))
  end),
  ($ARGS.named.earlier as $earlier | if $earlier == null then empty else
	must("what hung before is \($part.earlier | tojson)"; $part.earlier.pid == $earlier)
  end),
  (($ARGS.named.says // "") as $says | $ARGS.named.or_says as $other |
	must("it does not say \($says)"; $v.sentence | contains($says) or ($other != null and test($other)))),
  must("it was not closed because all was clear"; $record[-1].reason == "clear")
