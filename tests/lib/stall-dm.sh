# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Slow and suspended disks, made with device-mapper and scsi_debug. Virtual machines have both.
# Sourced by stall.sh.
# Never touches a dm device or a scsi_debug that somebody else made.

# stall_have_dm: returns 0 when the kernel has device-mapper; otherwise it prints the reason.
stall_have_dm()
{
	modprobe -q dm-mod 2>/dev/null || :
	if ! command -v dmsetup >/dev/null; then
		echo "dmsetup is not installed"
	elif ! dmsetup version >/dev/null 2>&1; then
		echo "the kernel has no device-mapper"
	else
		return 0
	fi
	return 1
}

# Without udev, dmsetup must create the device nodes itself and must not wait for udev.
_stall_dmsetup()
{
	if [[ -e /run/udev/control ]]; then
		dmsetup "$@"
	else
		DM_DISABLE_UDEV=1 dmsetup "$@"
	fi
}

# stall_dm_setup: makes an ext4 file system on a linear dm target on a loop device. Sets DM_NAME DM_DEV DM_MNT.
stall_dm_setup()
{
	local image=$STALL_DIR/dm.img

	stall_have_dm >/dev/null || return 1
	modprobe -q loop 2>/dev/null || :
	truncate -s "${STALL_U_MIB}M" "$image" || return 1
	_stall_loop "$image" || return 1
	DM_BASE=$STALL_LOOP
	DM_SECTORS=$(blockdev --getsz "$DM_BASE")
	DM_NAME=iostall-test-$$
	DM_DEV=/dev/mapper/$DM_NAME DM_MNT=$STALL_DIR/dm
	_stall_dmsetup create "$DM_NAME" --table "0 $DM_SECTORS linear $DM_BASE 0" || return 1
	stall_undo _stall_dm_remove "$DM_NAME"
	_stall_undo_first _stall_dm_heal "$DM_NAME"
	_stall_mkfs_mount "$DM_DEV" "$DM_MNT"
}

# stall_array MIB LEG LEG [none]: makes /dev/md0, a mirror of two block devices without metadata. It resynchronises,
# unless "none" says that the two are alike.
stall_array()
{
	local leg dev md=/sys/block/md0/md

	modprobe raid1 2>/dev/null && echo md0 >/sys/module/md_mod/parameters/new_array || return 1
	stall_undo _stall_array_clear
	echo none >$md/metadata_version && echo raid1 >$md/level && echo 2 >$md/raid_disks || return 1
	for leg in 0 1; do
		dev=$(stat -Lc '%Hr:%Lr' "${@:2+leg:1}")
		echo "$dev" >$md/new_dev && echo $leg >"$md/dev-$(basename "$(readlink -f "/sys/dev/block/$dev")")/slot" || return 1
	done
	echo $(($1 * 1024)) >$md/component_size && echo "${4-0}" >$md/resync_start && echo active >$md/array_state
}

_stall_array_clear()
{
	echo clear >/sys/block/md0/md/array_state
}

_stall_dm_heal()
{
	_stall_dmsetup resume "$1" 2>/dev/null
}

_stall_dm_remove()
{
	wait_until 10 _stall_dmsetup remove "$1"
}

# stall_dm_suspend: every request waits until stall_dm_resume is called.
stall_dm_suspend()
{
	_stall_heal_later
	_stall_dmsetup suspend --noudevsync --nolockfs "$DM_NAME"
}

stall_dm_resume()
{
	rm -f "$STALL_DIR/thaw_at"
	_stall_dmsetup resume "$DM_NAME"
}

# stall_dm_delay MS: every request takes at least MS milliseconds; 0 removes the delay.
stall_dm_delay()
{
	local table="0 $DM_SECTORS linear $DM_BASE 0"

	if (($1 > 0)); then
		modprobe -q dm-delay 2>/dev/null || :
		table="0 $DM_SECTORS delay $DM_BASE 0 $1"
	fi
	_stall_dmsetup reload "$DM_NAME" --table "$table" || return 1
	_stall_dmsetup suspend --noudevsync --nolockfs "$DM_NAME" || return 1
	_stall_dmsetup resume "$DM_NAME"
}

_STALL_SCSI=/sys/bus/pseudo/drivers/scsi_debug

# stall_have_scsi: returns 0 when scsi_debug is available and not in use; otherwise it prints the reason.
stall_have_scsi()
{
	if [[ -d $_STALL_SCSI ]]; then
		echo "scsi_debug is in use already"
	elif ! modprobe -nq scsi_debug 2>/dev/null; then
		echo "the kernel has no scsi_debug"
	else
		return 0
	fi
	return 1
}

_stall_scsi_disk()
{
	compgen -G "$_STALL_SCSI/adapter*/host*/target*/*:*/block/*"
}

# stall_scsi_disk MIB [OPTION...]: makes a RAM disk of scsi_debug. Sets SCSI_DEV. Unlike a dm device, this disk has a
# correct utilisation while it is slow.
stall_scsi_disk()
{
	stall_have_scsi >/dev/null || return 1
	modprobe -q sd_mod 2>/dev/null || :
	modprobe scsi_debug delay=0 "dev_size_mb=$1" "${@:2}" || return 1
	stall_undo wait_until 10 modprobe -r scsi_debug
	_stall_undo_first _stall_write 0 "$_STALL_SCSI/delay"
	wait_until 10 _stall_scsi_disk || return 1
	SCSI_DEV=/dev/$(basename "$(_stall_scsi_disk)")
	wait_until 10 test -b "$SCSI_DEV"
}

# stall_scsi_setup: an ext4 file system on such a disk. Sets SCSI_DEV SCSI_MNT.
stall_scsi_setup()
{
	stall_scsi_disk 64 || return 1
	SCSI_MNT=$STALL_DIR/scsi
	_stall_mkfs_mount "$SCSI_DEV" "$SCSI_MNT"
}

# stall_scsi_delay TICKS: each request takes TICKS kernel ticks (Debian has 250 a second); 0 removes the delay.
# The driver refuses the change while a request is in flight, so the function retries.
stall_scsi_delay()
{
	wait_until 10 _stall_write "$1" "$_STALL_SCSI/delay"
}

# stall_scsi_delay_ns NS: the same, not by the kernel's ticks.
stall_scsi_delay_ns()
{
	wait_until 10 _stall_write "$1" "$_STALL_SCSI/ndelay"
}
