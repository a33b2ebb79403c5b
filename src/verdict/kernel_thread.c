/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "verdict/kernel_thread.h"

#include <string.h>

#include "util/cleanup.h"

static bool begins_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* "_resync" of "md0_resync"; the name of an array may have such a line, too. */
static const char *work_of(const char *comm)
{
	const char *end = strrchr(comm, '_');

	return begins_with(comm, "md") && end ? end : "";
}

const char *verdict_kernel_thread_role(const char *comm)
{
	static const struct {
		const char *prefix;
		const char *role;
	} roles[] = {
		{ "jbd2/", "the journal of a file system" },
		{ "xfsaild/", "XFS, which writes back its metadata" },
		{ "kswapd", "which frees memory" },
		{ "loop", "a loop device" },
		{ "dmcrypt_write", "dm-crypt" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(roles); i++)
		if (begins_with(comm, roles[i].prefix))
			return roles[i].role;
	return begins_with(work_of(comm), "_raid") ? "an array" : NULL;
}

bool verdict_is_resync(const char *comm)
{
	const char *work = work_of(comm);

	return strcmp(work, "_resync") == 0 || strcmp(work, "_reshape") == 0;
}

bool verdict_is_worker(const char *comm)
{
	return begins_with(comm, "kworker/");
}

bool verdict_writes_back(const char *comm)
{
	return verdict_is_worker(comm) || begins_with(comm, "jbd2/") ||
		begins_with(comm, "xfsaild/");
}

int verdict_array_length(const char *comm)
{
	return (int)(strlen(comm) - strlen(work_of(comm)));
}

bool verdict_is_same_array(const char *a, const char *b)
{
	int length = verdict_array_length(a);

	/* All arrays that LVM makes have the name "mdX". */
	return *work_of(a) && *work_of(b) && length == verdict_array_length(b) &&
		strncmp(a, b, (size_t)length) == 0 &&
		!(begins_with(a, "mdX_") && strcmp(a, b) != 0);
}
