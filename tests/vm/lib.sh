# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Names, paths and exit codes that the scripts of tests/vm share.
# Sourced by the other scripts here only.
# Never starts a VM, never writes outside the cache and temporary directories.

VM_DIR=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
VM_CACHE=${VM_CACHE:-$(cd "$VM_DIR/../.." && pwd)/build/vm}
# shellcheck disable=SC2034 # read by the scripts that source this file
VM_KERNELS=(5.10 6.1 6.12 7.2)
# With the suffix -arm64 it is the kernel for that architecture, and the userland is Debian's packages for it.
# shellcheck disable=SC2034
VM_KERNELS_ARM64=(6.12-arm64)

# Of Debian bookworm: what live tests call, and what the program is built with.
# shellcheck disable=SC2034
VM_PACKAGES_ARM64=(base-files base-passwd bash bpftool bsdutils busybox-static coreutils dash debianutils diffutils
	dmsetup e2fsprogs findutils grep gzip hostname iproute2 jq kmod libc-bin mawk mount procps psmisc sed
	strace tar util-linux util-linux-extra
	libbpf-dev libc6-dev libdw-dev libelf-dev libjansson-dev libmariadb-dev libpq-dev zlib1g-dev)

# Exit codes; everything else is the exit status of the command in the VM.
# shellcheck disable=SC2034
RC_USAGE=2 RC_UNAVAILABLE=77 RC_TIMEOUT=124 RC_RIG=125

say()
{
	printf '%s: %s\n' "${0##*/}" "$*" >&2
}

die()
{
	local rc=$1

	shift
	say "$@"
	exit "$rc"
}

kernel_suite()
{
	case ${1%-arm64} in
	5.10) echo bullseye ;;
	6.1) echo bookworm ;;
	6.12) echo trixie ;;
	7.2) echo sid ;;
	*) return 1 ;;
	esac
}

# As Debian calls it.
kernel_architecture()
{
	case $1 in
	*-arm64) echo arm64 ;;
	*) echo amd64 ;;
	esac
}

# vm_image KERNEL: the directory of its userland.
vm_image()
{
	case $1 in
	*-arm64) echo "$VM_CACHE/image-arm64" ;;
	*) echo "$VM_CACHE/image" ;;
	esac
}

# The script holds the lock until it ends. A second script waits and then finds the work done.
lock_cache()
{
	mkdir -p "$VM_CACHE"
	exec {LOCK_FD}>"$VM_CACHE/$1.lock"
	flock "$LOCK_FD"
}

# As many VMs run at a time as there are CPUs, since a VM never idles: its clock jumps over the time that it waits.
# The script holds its place until it ends; the first script that asks gets the next place.
take_slot()
{
	local queue_fd slot slots

	mkdir -p "$VM_CACHE"
	exec {queue_fd}>"$VM_CACHE/queue.lock"
	flock "$queue_fd"
	slots=$(nproc)
	while :; do
		for ((slot = 0; slot < slots; slot++)); do
			exec {SLOT_FD}>"$VM_CACHE/slot.$slot.lock"
			if flock -n "$SLOT_FD"; then
				exec {queue_fd}>&-
				return
			fi
			exec {SLOT_FD}>&-
		done
		sleep 0.5
	done
}

# vm_test NAME KERNEL ARGUMENT...: runs a test in a VM, see run, and finishes it (assert.sh) where the VM cannot. False
# when it failed. A kernel sometimes crashes in emulation. The test then runs again, and a line reports that.
vm_test()
{
	local name="$1 on $2" kernel=$2 try rc

	shift 2
	for try in 1 2 3; do
		rc=0
		"$VM_DIR/run" "$kernel" "$@" || rc=$?
		[ "$rc" -eq "$RC_RIG" ] || break
		echo "# try $try of 3: the VM died under the test"
	done
	if [ "$rc" -le 1 ]; then
		return "$rc"
	elif [ "$rc" -eq "$RC_UNAVAILABLE" ]; then
		skip "$name" "the kernel cannot be had"
	else
		not_ok "$name" "the VM or the test ended with $rc"
	fi
	assert_finish
}

# copy_files ROOT: copies the absolute paths on stdin into ROOT, a tree with merged /usr.
copy_files()
{
	sed -E 's,^/(bin|sbin|lib|lib32|lib64)/,/usr/\1/,; s,^/,,' | sort -u |
		tar -C / -cf - --no-recursion -T - | tar -C "$1" -xf -
}

# copy_libraries ROOT [SKIP]: adds the shared libraries that ELF files below ROOT need, except those in the list
# SKIP. It reads the dynamic section, because ldd executes the file.
copy_libraries()
{
	local root=$1 skip=${2:-/dev/null} before=-1 wanted

	wanted=$(mktemp)
	while [ "$before" != "$(find "$root" -type f | wc -l)" ]; do
		before=$(find "$root" -type f | wc -l)
		{ find "$root" -type f \( -perm /111 -o -name '*.so*' \) -print0 |
			xargs -0 -r readelf -d 2>/dev/null || true; } |
			sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | sort -u >"$wanted"
		/sbin/ldconfig -p | awk 'NR == FNR { want[$1]; next } $1 in want { print $NF }' \
			"$wanted" - | grep -v -e '/lib32/' -e '/libx32/' | readlink_chain |
			grep -vxFf "$skip" | copy_files "$root"
	done
	rm -f "$wanted"
}

# A library has several names, which are symbolic links to a file. All of them are needed.
readlink_chain()
{
	local path

	while read -r path; do
		while [ -L "$path" ]; do
			echo "$path"
			path=$(cd "$(dirname "$path")" && realpath -s "$(readlink "$path")")
		done
		echo "$path"
	done | sed -E 's,^/(lib|lib64)/,/usr/\1/,'
}
