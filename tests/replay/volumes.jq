# SPDX-License-Identifier: GPL-2.0-or-later
# Puts the file systems of a record on volumes, each of a disk of its own name, of which there are no samples.
def volume: "dm-" + (.dev_name | explode | add | tostring);
[inputs] as $lines
| [$lines[] | select((.type == "stall" or .type == "stuck") and .dev_name and (.dev_name | test("^(sd|loop|nvme|vd)")))
	| { dev_name: volume, dev: "252:\(.dev_name | explode | add)", label: null, below: [.dev_name] }] | unique as $stack
# Locks of inodes have numbers of their file systems only.
| ([$lines[] | select((.type == "stall" or .type == "stuck") and .dev and .dev_name and (.dev_name | test("^(sd|loop|nvme|vd)")))
	| { (.dev): "252:\(.dev_name | explode | add)" }] | add // {}) as $numbers
| $lines[]
| if .type == "open" then .stack = ((.stack // []) + $stack)
	elif (.type == "stall" or .type == "stuck") and .dev_name and (.dev_name | test("^(sd|loop|nvme|vd)"))
	then .dev = "252:\(.dev_name | explode | add)" | .dev_name = volume
	elif .type == "lock" and .dev then .dev = ($numbers[.dev] // .dev) else . end
