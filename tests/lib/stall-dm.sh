# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash
#
# Owns slow and suspended disks made of device-mapper and scsi_debug, as virtual machines have them.
# Sourced by stall.sh.
# Never touches a dm device or a scsi_debug that somebody else made.

# stall_have_dm: whether the kernel has device-mapper; prints the reason when it does not.
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

# Without udev the tool makes the nodes itself, and must not wait for anyone.
_stall_dmsetup()
{
	if [[ -e /run/udev/control ]]; then
		dmsetup "$@"
	else
		DM_DISABLE_UDEV=1 dmsetup "$@"
	fi
}

# stall_dm_setup: ext4 on a linear dm target on a loop device; sets DM_NAME DM_DEV DM_MNT.
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

_stall_dm_heal()
{
	_stall_dmsetup resume "$1" 2>/dev/null
}

_stall_dm_remove()
{
	wait_until 10 _stall_dmsetup remove "$1"
}

# stall_dm_suspend: every request waits from now on, until stall_dm_resume.
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

# stall_dm_delay MS: every request takes at least so long; 0 takes the delay away.
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

# stall_have_scsi: whether scsi_debug can be had, prints the reason when not. Not one in use.
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

# stall_scsi_setup: ext4 on a RAM disk of scsi_debug; sets SCSI_DEV SCSI_MNT. Unlike dm it shows
# true utilisation while it is slow.
stall_scsi_setup()
{
	stall_have_scsi >/dev/null || return 1
	modprobe -q sd_mod 2>/dev/null || :
	modprobe scsi_debug delay=0 dev_size_mb=64 || return 1
	stall_undo wait_until 10 modprobe -r scsi_debug
	_stall_undo_first _stall_write 0 "$_STALL_SCSI/delay"
	wait_until 10 _stall_scsi_disk || return 1
	SCSI_DEV=/dev/$(basename "$(_stall_scsi_disk)") SCSI_MNT=$STALL_DIR/scsi
	wait_until 10 test -b "$SCSI_DEV" || return 1
	_stall_mkfs_mount "$SCSI_DEV" "$SCSI_MNT"
}

# stall_scsi_delay TICKS: each request takes so many kernel ticks (250 a second on Debian); 0: none.
# The driver refuses a change while a request is under way, so it is tried for a while.
stall_scsi_delay()
{
	wait_until 10 _stall_write "$1" "$_STALL_SCSI/delay"
}
