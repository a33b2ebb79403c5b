/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "util/capability.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "util/cleanup.h"

/* Indexed by number. */
static const char names_of[][20] = {
	"CHOWN",
	"DAC_OVERRIDE",
	"DAC_READ_SEARCH",
	"FOWNER",
	"FSETID",
	"KILL",
	"SETGID",
	"SETUID",
	"SETPCAP",
	"LINUX_IMMUTABLE",
	"NET_BIND_SERVICE",
	"NET_BROADCAST",
	"NET_ADMIN",
	"NET_RAW",
	"IPC_LOCK",
	"IPC_OWNER",
	"SYS_MODULE",
	"SYS_RAWIO",
	"SYS_CHROOT",
	"SYS_PTRACE",
	"SYS_PACCT",
	"SYS_ADMIN",
	"SYS_BOOT",
	"SYS_NICE",
	"SYS_RESOURCE",
	"SYS_TIME",
	"SYS_TTY_CONFIG",
	"MKNOD",
	"LEASE",
	"AUDIT_WRITE",
	"AUDIT_CONTROL",
	"SETFCAP",
	"MAC_OVERRIDE",
	"MAC_ADMIN",
	"SYSLOG",
	"WAKE_ALARM",
	"BLOCK_SUSPEND",
	"AUDIT_READ",
	"PERFMON",
	"BPF",
	"CHECKPOINT_RESTORE",
};

static int find(const char *name, size_t len)
{
	if (len < 4 || strncasecmp(name, "CAP_", 4) != 0)
		return -EINVAL;
	for (unsigned int i = 0; i < sizeof(names_of) / sizeof(names_of[0]); i++)
		if (strlen(names_of[i]) == len - 4 &&
			strncasecmp(name + 4, names_of[i], len - 4) == 0)
			return (int)i;
	return -EINVAL;
}

int capability_parse(const char *names, uint64_t *ret_bits)
{
	*ret_bits = 0;
	for (const char *p = names + strspn(names, " \t"); *p; p += strspn(p, " \t")) {
		const size_t len = strcspn(p, " \t");
		int i = find(p, len);

		if (i < 0)
			return i;
		*ret_bits |= 1ULL << i;
		p += len;
	}
	return 0;
}
