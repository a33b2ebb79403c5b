# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the verdict of a record. The output is as in stalls.jq.
#   $record          lines of the record
#   --arg class NAME      --arg dev NAME (the judged device, "" when there is none)
#   --argjson tid N       the culprit; without it there may be no culprit
#   --arg path REGEX      the file with most of the culprit's bytes
#   --arg statement REGEX the culprit's statement in the verdict; without it there may be none

def must($what; condition): if condition then empty else $what end;

# Whether somebody else happened to wait for a disk at its limit is not of these freezes.
def kind: if . == "busy" and $class == "saturated" then "saturated" else . end;

[$record[] | select(.type == "verdict" and .final)] as $all
| ($all[0] // {}) as $v
| ($v.parts // [] | map({key: .what, value: .}) | from_entries) as $part
| "# \($v.sentence)",
  must("not one line right before close: \($all | length)";
	($all | length) == 1 and $record[-2].type == "verdict" and $record[-1].type == "close"),
  must("it is \($v.class), not \($class): \($v | tojson)"; ($v.class | kind) == $class),
  must("the device is \($v.dev_name), not \($dev)"; ($v.dev_name // "") == $dev),
  must("a part that is neither measured nor inferred: \($v.parts | tojson)";
	[$v.parts[]? | select(.what != "missing") | .basis | IN("measured", "inferred")] | all),
  ($ARGS.named.tid as $tid | if $tid == null then
	must("somebody is blamed: \($part.culprit | tojson)"; $part.culprit == null)
  else
	must("the culprit is \($part.culprit | tojson), not \($tid)";
		$part.culprit.tid == $tid or ($part.culprit.tid == null and $part.culprit.pid == $tid)),
	must("the culprit's part is only inferred"; $part.culprit.basis == "measured"),
	must("the file is \($part.culprit.path | tojson)";
		$part.culprit.path // "" | test($ARGS.named.path // ""))
  end),
  ($ARGS.named.statement as $statement | if $statement == null then
	must("a statement is named: \($part.statement | tojson)"; $part.statement == null)
  else
	($part.statement.text // "") as $said
	| ($said | capture("^session .*? had run for [^:]*: \"(?<text>.*?)\"(; .*)?$"; "s") | .text) // "" | . as $text
	| must("the statement is \($said), not \($statement)"; $text | test($statement)),
	must("the record has no session of \($part.culprit.tid) with it: \($record | map(select(.type == "sql")
		| [.phase, .tid, .text]) | tojson)";
		any($record[]; .type == "sql" and .tid == ($part.culprit.tid // $part.culprit.pid) and
			(.text // "" | gsub("\\s+"; " ") | startswith($text)))),
	must("it is not in the sentence"; $v.sentence | contains("\"\($text[:100])")),
	must("the basis does not fit the sentence: \($part.statement.basis), \($v.sentence)";
		$part.statement.basis == "measured" or ($v.sentence | contains(" probably took "))),
	must("the message for logs has the statement's text, or does not mention it: \($v.message)";
		$v.message | test("^(A statement|[0-9]+ sessions) of ") and (contains($text) | not))
  end)
