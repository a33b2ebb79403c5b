# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Programs of others from npm, in the versions of tests/pins.
# Sourced by tests/unit/readers and tests/unit/pages. NPM_CACHE names the directory in which they are kept; it is build/npm
# by default.

NPM_CACHE=${NPM_CACHE-build/npm}

# npm_install: 1, with the reason in NPM_WHY, where they cannot be had.
npm_install()
{
	local packages

	mapfile -t packages < <(awk '$1 == "npm" { print $2 "@" $3 }' tests/pins)
	NPM_WHY="npm is not installed"
	command -v npm >/dev/null || return 1
	# shellcheck disable=SC2034 # for the caller
	NPM_WHY="npm gives none of ${packages[*]}"
	[[ $(<"$NPM_CACHE/packages") == "${packages[*]}" ]] 2>/dev/null && return 0
	rm -rf "$NPM_CACHE"
	mkdir -p "$NPM_CACHE" &&
		npm install --prefix "$NPM_CACHE" --no-save --no-audit --no-fund --ignore-scripts "${packages[@]}" \
			>"$NPM_CACHE/log" 2>&1 || return 1
	echo "${packages[*]}" >"$NPM_CACHE/packages"
}
