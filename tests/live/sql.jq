# SPDX-License-Identifier: GPL-2.0-or-later
#
# Checks the `sql` lines of one database and one phase, or the last line of each statement in any of them. The output is
# as in stalls.jq.
#   $record        lines of the record
#   --arg phase open|end|any
#   --argjson tid N     --argjson pid N   the thread of a statement and the server, or 0
#   --arg user NAME     its user         --arg text TEXT   the statement, without literals
#   --arg secret TEXT   a literal, which no statement of the record may contain; optional
#   --arg error REGEX   why there is no answer; "" when there is one

def must($what; condition): if condition then empty else $what end;

[$record[] | select(.type == "sql")] as $all
| [$all[] | select($phase == "any" or .phase == $phase)] as $lines
| [$lines[] | select(.connection_id == null)] as $answers
| ([$lines[] | select(.connection_id and .tid == $tid)] | group_by([.connection_id, .text]) | map(max_by(.elapsed_ns))) as $mine
| "# \($phase): \($answers | map("\(.active) active, \(.idle) idle, error \(.error | tojson), " +
	"unanswered \(.unanswered_ns)") | join("; ")); tid \($tid): \($mine | map([.user, .command,
	.state, .elapsed_ns, .text]) | tojson)",
  must("not one line about the answer as a whole: \($lines | tojson)";
	$phase == "any" or ($answers | length == 1)),
  must("a literal: \($all | map(.text) | tojson)";
	$ARGS.named.secret as $secret | $secret == null or
		($all | all(.text // "" | contains($secret) | not))),
  must("its phases are \($all | map(.phase) | unique | tojson)";
	$all | all(.phase | IN("open", "during", "end"))),
  (if $error == "" then
	must("not one session with the thread: \($lines | map([.tid, .tid_reason, .text]) | tojson)";
		$mine | length == 1),
	must("it is not that statement of \($user): \($mine | tojson)"; $mine | all(.text == $text and
		.pid == $pid and .user == $user and .elapsed_ns > 0 and (.state | length > 0) and
		.tid_reason == null and .candidates == []))
   else
	must("the reason is \($answers | map(.error) | tojson)"; $answers | all((.error // "" |
		test($error)) and .active == null)),
	must("sessions, although there is no answer"; ($lines | length) == 1)
   end)
