# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Packages of other suites of Debian, which are unpacked for tests and never installed.
# Sourced by tests/vm/fetch and tests/live/fetch-servers.
# Never changes the configuration or the state of this machine's apt, but uses its mirror, proxy and keyring.

# "KIND NAME VERSION": what tests have been passed with. `make world-refresh` moves them to what the archive has now.
ARCHIVE_PINS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)/pins
ARCHIVE_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# apt reads both .sources and .list files, and needs no package lists for this answer. It also lists archives
# that are not Debian's; those fail the signature check.
archive_mirrors()
{
	apt-get update --print-uris |
		sed -nE "/-(security|updates|backports)\/InRelease/d
			s,^'([^']*)/dists/[^/']*/InRelease'.*,\1,p" | awk '!seen[$0]++'
}

# archive_write_config DIR SUITE URI [ARCHITECTURE]: makes apt write all its files to the directory, and ignore the
# suites of this machine. The packages are those for amd64, or for another architecture.
archive_write_config()
{
	local dir=$1 suite=$2 uri=$3 architecture=${4:-amd64} option=

	[ ! -e "$ARCHIVE_KEYRING" ] || option="[signed-by=$ARCHIVE_KEYRING] "
	mkdir -p "$dir/lists/partial" "$dir/cache/archives/partial" "$dir/debs"
	printf 'deb %s%s %s main\n' "$option" "$uri" "$suite" >"$dir/sources.list"
	cat >"$dir/apt.conf" <<-CONF
		Dir::Etc::SourceList "$dir/sources.list";
		Dir::Etc::SourceParts "/dev/null";
		Dir::Etc::Preferences "/dev/null";
		Dir::Etc::PreferencesParts "/dev/null";
		Dir::State::Lists "$dir/lists";
		Dir::State::Status "/dev/null";
		Dir::Cache "$dir/cache";
		APT::Architecture "$architecture";
		APT::Architectures "$architecture";
		APT::Sandbox::User "root";
		APT::Default-Release "";
		Acquire::Languages "none";
		Acquire::Retries "3";
	CONF
}

# archive_pinned KIND NAME
archive_pinned()
{
	awk -v kind="$1" -v name="$2" '$1 == kind && $2 == name { print $3 }' "$ARCHIVE_PINS"
}

# archive_is_pinned KIND NAME VERSION: prints why not.
archive_is_pinned()
{
	local pinned

	pinned=$(archive_pinned "$1" "$2")
	[ "$3" != "$pinned" ] || return 0
	echo "the archive has $2 $3 now, and tests/pins says ${pinned:-nothing}: run make world-refresh"
	return 1
}

# archive_pin KIND NAME VERSION
archive_pin()
{
	{
		grep -v "^$1 $2 " "$ARCHIVE_PINS"
		echo "$1 $2 $3"
	} | LC_ALL=C sort -s -k 1,1.1 -k 1,2 >"$ARCHIVE_PINS.new"
	mv "$ARCHIVE_PINS.new" "$ARCHIVE_PINS"
}

# Those below run with the private configuration in APT_CONFIG and print the reason when they fail.

# archive_update DIR
archive_update()
{
	apt-get -qq -o APT::Update::Error-Mode=any update 2>"$1/log" ||
		{ grep -m 1 '^E:' "$1/log"; return 1; }
}

# archive_closure PACKAGE...: these and all that they depend on.
archive_closure()
{
	apt-cache depends --recurse --no-recommends --no-suggests --no-conflicts --no-breaks \
		--no-replaces --no-enhances "$@" | grep -E '^[a-z0-9]' | sort -u
}

# archive_download DIR PACKAGE...: into DIR/debs.
archive_download()
{
	local dir=$1

	shift
	(cd "$dir/debs" && apt-get -qq download "$@") >"$dir/log" 2>&1 ||
		{ grep -m 1 '^E:' "$dir/log"; return 1; }
}
