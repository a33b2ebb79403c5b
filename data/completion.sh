#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# completion.sh IOSTALL CONFIG-GEN: writes the bash completion. Commands and options are those that
# the program itself prints, settings those of its table.
set -euo pipefail

iostall=$1 config_gen=$2

commands()
{
	"$iostall" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

options()
{
	"$iostall" "$1" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p'
}

settings()
{
	"$config_gen" keys | sed 's/[^a-z0-9_.].*//; s/$/=/'
}

# list COMMAND...: its output as one line.
list()
{
	"$@" | tr '\n' ' ' | sed 's/ $//'
}

cat <<HEAD
# bash completion for iostall, generated from its tables
# shellcheck shell=bash

_iostall_options()
{
	case \$1 in
HEAD
for command in $(commands); do
	printf '\t%s) echo "%s" ;;\n' "$command" "$(list options "$command")"
done
cat <<TAIL
	*) echo "--help --version" ;;
	esac
}

_iostall_settings="$(list settings)"

# Only the names of two directories are read: nothing here waits for a disk that hangs.
_iostall_incidents()
{
	local file

	for file in /run/iostall/*.jsonl /var/log/iostall/*.jsonl; do
		[[ -e \$file ]] && basename "\$file" .jsonl
	done
	echo last
}

_iostall()
{
	local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]}
	local command=\${COMP_WORDS[1]} words

	COMPREPLY=()
	# The "=" of section.key=value ends a word; what comes behind it is anybody's guess.
	[[ \$word == "=" || \$before == "=" ]] && return
	case \$before in
	--set)
		compopt -o nospace
		mapfile -t COMPREPLY < <(compgen -W "\$_iostall_settings" -- "\$word")
		return
		;;
	--config | --capture)
		mapfile -t COMPREPLY < <(compgen -f -- "\$word")
		return
		;;
	--procfs | --sysfs)
		mapfile -t COMPREPLY < <(compgen -d -- "\$word")
		return
		;;
	esac
	if ((COMP_CWORD == 1)); then
		words="$(list commands) --help --version"
	elif [[ \$word == -* ]]; then
		words=\$(_iostall_options "\$command")
	elif [[ \$command == show ]]; then
		words=\$(_iostall_incidents)
	else
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "\$words" -- "\$word")
}

complete -F _iostall iostall
TAIL
