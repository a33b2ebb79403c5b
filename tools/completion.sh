#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# completion.sh IOSTALL CONFIG-GEN: writes the bash completion. Commands and options come from the help
# that the program prints, settings from the table of the configuration.
set -euo pipefail

iostall=$1 config_gen=$2

commands()
{
	"$iostall" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'
}

# options [COMMAND]: those of a command, or those that all commands have.
options()
{
	"$iostall" "$@" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p'
}

# Options whose next word is their argument.
options_with_argument()
{
	for command in "" $(commands); do
		"$iostall" ${command:+"$command"} --help | sed -n 's/^  \(--[a-z-]*\) [A-Z].*/\1/p'
	done | sort -u
}

settings()
{
	"$config_gen" keys | cut -f 1 | grep -v NAME | sed 's/$/=/'
}

# The keys of each section [sql.NAME], whose name is the user's.
sql_keys()
{
	"$config_gen" keys | sed -n 's/^sql\.NAME\.\([a-z_]*\).*/\1/p'
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
	*) echo "$(list options)" ;;
	esac
}

_iostall_commands="$(list commands)"
_iostall_settings="$(list settings)"
_iostall_sql_keys="$(list sql_keys)"

_iostall_dirs=(/run/iostall /var/log/iostall)

# Only the names in two directories are read, which does not wait for a disk that hangs. A name that is no id
# is not offered: in the command line it would be shell code.
_iostall_incidents()
{
	local dir file

	for dir in "\${_iostall_dirs[@]}"; do
		for file in "\$dir"/*.jsonl; do
			file=\${file##*/}
			[[ \$file =~ ^([0-9]{8}T[0-9]{6}Z-[0-9a-f]{4})\.jsonl\$ ]] && echo "\${BASH_REMATCH[1]}"
		done
	done
	echo last
}

# Offers those words of the standard input that begin with WORD. compgen -W would expand the words, and so run
# a command whose text is in one of them.
_iostall_offer()
{
	local -a words
	local candidate

	read -r -d '' -a words
	for candidate in "\${words[@]}"; do
		[[ \$candidate == "\$1"* ]] && COMPREPLY+=("\$candidate")
	done
}

# The settings, with those of the section [sql.NAME] whose name has been typed.
_iostall_settings_for()
{
	local key

	echo "\$_iostall_settings"
	[[ \$1 =~ ^sql\.[a-z0-9_-]+\. ]] || return
	for key in \$_iostall_sql_keys; do
		echo "\${BASH_REMATCH[0]}\$key="
	done
}

# The command, which may stand behind options and their arguments.
_iostall_command()
{
	local i

	for ((i = 1; i < COMP_CWORD; i++)); do
		case \${COMP_WORDS[i]} in
		$(list options_with_argument | sed 's/ / | /g'))
			# The shell makes words of their own of each "=".
			[[ \${COMP_WORDS[i + 1]-} == "=" ]] && ((i++))
			((i++))
			;;
		=) ((i++)) ;;
		-*) ;;
		*)
			echo "\${COMP_WORDS[i]}"
			return
			;;
		esac
	done
}

_iostall()
{
	local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD - 1]}
	local command words

	COMPREPLY=()
	# The "=" of section.key=value ends a word, and any value may follow it.
	[[ \$word == "=" || \$before == "=" ]] && return
	case \$before in
	--set)
		compopt -o nospace
		_iostall_offer "\$word" < <(_iostall_settings_for "\$word")
		return
		;;
	--config | --capture | --output)
		# With this, bash quotes what it offers.
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -f -- "\$word")
		return
		;;
	--procfs | --sysfs)
		compopt -o filenames
		mapfile -t COMPREPLY < <(compgen -d -- "\$word")
		return
		;;
	esac
	command=\$(_iostall_command)
	if [[ \$word == -* ]]; then
		words=\$(_iostall_options "\$command")
	elif [[ -z \$command || \$command == help ]]; then
		words=\$_iostall_commands
	elif [[ \$command =~ ^(show|report|judge)\$ ]]; then
		words=\$(_iostall_incidents)
	else
		return
	fi
	_iostall_offer "\$word" <<<"\$words"
}

# Where nothing is offered, such as for a path, files are.
complete -o default -F _iostall iostall
TAIL
