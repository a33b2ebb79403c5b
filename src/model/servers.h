/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who has to answer about files, by what threads wait for and on which file system.
 * Part of struct model; filled by model_add(), read by the verdict and the session.
 */
#ifndef IOSTALL_MODEL_SERVERS_H
#define IOSTALL_MODEL_SERVERS_H

#include "model/waits.h"
#include "record/record.h"

#define MODEL_SERVERS_MAX 8

struct model_server {
	struct record_file_server found; /* as last told of that process */
	bool was_stopped;
};

struct model_servers {
	uint32_t count;
	struct model_server list[MODEL_SERVERS_MAX];
};

struct model;

void model_servers_add(struct model_servers *servers, const struct record_file_server *found);
/* What was found for those who wait so; NULL: nothing was. */
const struct model_server *model_servers_find(const struct model_servers *servers,
	const struct model_wait *wait);
/* Whether both wait for the same server, as far as is known. */
bool model_servers_is_same(const struct model_servers *servers, const struct model_wait *a,
	const struct model_wait *b);
/*
 * Those whose server should be looked for: who hangs now, since it may be another one when they
 * have gone on. NULL: nobody hangs.
 */
const struct model_wait *model_servers_to_find(const struct model *model, uint64_t now_ns);

#endif
