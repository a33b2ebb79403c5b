# SPDX-License-Identifier: GPL-2.0-or-later
#
# Of 120 writes of 64 KiB each into 1 MiB, at least 100 fail. The output is as in stalls.jq.
#   $record  lines of the record        --arg path FILE

def must($what; condition): if condition then empty else $what end;

[$record[] | select(.type == "error" and .path == $ARGS.named.path)] as $errors
| ($errors | map(1 + (.alike.count // 0)) | add) as $count
| ($record[] | select(.type == "verdict" and .final) | .sentence) as $sentence
| "# \($errors | length) lines for \($count) writes; \($sentence)",
  must("there is no line"; $errors != []),
  must("a line is of another operation: \($errors[] | select(.op != "write" or .ret != -28) | tojson)";
	all($errors[]; .op == "write" and .ret == -28)),
  must("it took \([$errors[].dur_ns] | max)"; all($errors[]; .dur_ns == 0)),
  must("two lines in a second"; [$errors[].mono_ns] | [., .[1:]] | transpose[:-1] | all(.[1] - .[0] >= 999000000)),
  must("the descriptor or the device is missing"; all($errors[]; .fd == 1 and .dev != null)),
  must("only \($count) are counted"; $count > 40),
  must("more than were written are counted: \($count)"; $count <= 120),
  must("a stall"; all($record[]; .type != "stall" or .path != $ARGS.named.path)),
  must("the verdict does not say it: \($sentence)";
	$sentence | test("^At least \($count) operations failed with ENOSPC, the first of \\S+ \\(pid \\d+\\) on \($ARGS.named.path)"))
