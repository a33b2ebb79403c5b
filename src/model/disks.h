/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The disks of an incident: what they did by the samples and by the block probe, and which stands
 * on which.
 * Part of struct model; disk_lines.h fills it, the verdict and the session read it.
 * Never says what is wrong with a disk: see verdict/condition.h.
 */
#ifndef IOSTALL_MODEL_DISKS_H
#define IOSTALL_MODEL_DISKS_H

#include "model/thresholds.h"
#include "record/record.h"

#define MODEL_DISKS_MAX 64
/* Disks that stand on others: of the first line, and those at work when a rule fires later. */
#define MODEL_STACK_MAX (2 * RECORD_STACKED_MAX)
/* LVM on LUKS on md on partitions of disks is five deep. */
#define MODEL_STACK_DEPTH_MAX 8
/* Samples since the trigger that say how evenly a busy disk works. */
#define MODEL_RATES_MAX 16
enum model_kind {
	MODEL_READ,
	MODEL_WRITE,
	MODEL_DISCARD,
	MODEL_FLUSH,
	MODEL_KINDS,
};

/* What a disk did in some samples. */
struct model_work {
	uint64_t ns;
	uint64_t bytes[MODEL_KINDS];
	uint64_t requests[MODEL_KINDS];
	uint64_t ticks_ns[MODEL_KINDS]; /* what they took, added up */
	double queue_ns;		/* queue depth multiplied by time */
	double util_ns;
	double pressure_ns; /* in which all tasks were stalled on I/O (PSI full) */
};

struct model_disk {
	struct record_dev dev;
	char name[RECORD_DISK_NAME_SIZE];
	char label[RECORD_LABEL_SIZE]; /* the name that people know; "": the same */
	uint32_t turn; /* how many disks had this place before: it is another one for readers */
	/* By samples since MODEL_LEAD_NS before the trigger. */
	bool is_sampled;
	uint32_t samples;	  /* that say how busy it was at most */
	uint32_t newest_sample;	  /* that it is in, counted as model.samples */
	double left_out_max_pct;  /* util at most in samples that leave it out */
	struct model_work before; /* up to MODEL_LEAD_NS before the trigger */
	struct model_work busy;	  /* in samples in which it was busy */
	uint32_t rates_count;
	float rates[MODEL_RATES_MAX]; /* requests a second in those since the trigger */
	uint64_t since_ns;	      /* of the next two */
	uint64_t since_read_bytes;    /* since the trigger */
	uint64_t since_write_bytes;
	uint64_t lead_read_bytes; /* in MODEL_LEAD_NS before the trigger */
	uint64_t lead_write_bytes;
	uint64_t work_ns;	/* at work in all samples */
	uint64_t work_since_ns; /* of it in busy samples since the trigger */
	uint64_t work_most_ns;	/* the most in one sample */
	double util_max_pct;
	double read_await_max_ms;
	double write_await_max_ms;
	uint64_t suspended_ns; /* how long the device mapper held its requests back */
	/* By samples and the block probe. */
	uint64_t no_completion_ns; /* at most */
	uint64_t no_completion_in_flight;
	/* By its final `device` line. */
	bool has_totals;
	uint64_t requests;
	uint64_t read_bytes;
	uint64_t write_bytes;
	uint64_t in_flight; /* at the end */
	struct record_latency queue;
	struct record_latency device;
	uint64_t queue_histogram[RECORD_HISTOGRAM_MAX];
	uint64_t device_histogram[RECORD_HISTOGRAM_MAX];
	uint64_t traced_ns;   /* busy with requests that began when it was traced */
	uint64_t untraced_ns; /* and with those that had begun before */
	uint64_t flush_ns;
	/* Of the files that were read most, and what of it was more than they have. */
	uint64_t files_read_bytes;
	uint64_t files_again_bytes;
};

struct model_stack {
	char name[RECORD_DISK_NAME_SIZE];
	char label[RECORD_LABEL_SIZE];
	char below[RECORD_BELOW_SIZE]; /* names with a newline between them */
};

/*
 * A host may have thousands: one without which more would be lost takes the place of another. What
 * is known of that is then known of the disk that it stands on, if that is kept.
 */
struct model_disks {
	bool samples_leave_out; /* disks that were no busier than those which they have */
	bool left_out;		/* there was no place for one */
	double left_out_ms;	/* at most, what threads waited for it or it worked in a sample */
	uint32_t count;
	struct model_disk list[MODEL_DISKS_MAX];
	uint32_t stack_count;
	struct model_stack stack[MODEL_STACK_MAX];
};

/* Whether a device has a number: disks of some kernels have none, nor have file systems. */
static inline bool model_has_number(struct record_dev dev)
{
	return dev.major || dev.minor;
}

/* The index of the disk; -1: there is none. The second one also looks for its name. */
int model_disks_find(const struct model_disks *disks, struct record_dev dev);
int model_disks_find_named(const struct model_disks *disks, struct record_dev dev,
	const char *name);

/* Notes what a disk stands on: names with a newline between them. */
void model_disks_note_below(struct model_disks *disks, const char *name, const char *label,
	const char *below);
/* The disks that one stands on, and so its partitions, by name, one a line. */
const char *model_disks_list_below(const struct model_disks *disks, const char *upper);
/* Takes the next name off such a list; -1: that one is not known. False: there are no more. */
bool model_disks_next_below(const struct model_disks *disks, const char **list, int *ret_disk);
/* Whether a disk stands on it directly: that it is idle says something, then. */
bool model_disks_is_below_any(const struct model_disks *disks, const char *disk);
/* Whether the one is the other, or stands on it, by their names. */
bool model_disks_name_is_on(const struct model_disks *disks, const char *upper, const char *lower);
bool model_disks_is_on(const struct model_disks *disks, int upper, int lower);
/*
 * The busiest of the disks that it stands on directly, if each was in so many samples; -1: it
 * stands on none, or one of them was not.
 */
int model_disks_find_below(const struct model_disks *disks, int disk, uint32_t samples);

/* How busy it was at most in a sample, also in those that leave it out, in percent. */
double model_disk_util_pct(const struct model_disk *disk);
/* The kind of request that took most of the time while it was busy. */
enum model_kind model_disk_main_kind(const struct model_disk *disk);
/* Mean time of such a request while it was busy; not a number without any. */
double model_disk_await_ms(const struct model_disk *disk, enum model_kind kind);
/* The highest mean of a sample. */
double model_disk_await_max_ms(const struct model_disk *disk);
/* Mean queue depth while it was busy; not a number if it never was. */
double model_disk_queue(const struct model_disk *disk);
/* Requests and bytes a second while it was busy. */
void model_disk_rates(const struct model_disk *disk, double *ret_requests, double *ret_bytes);
/* How long it was at work in the incident: what the load of everybody is compared with. */
double model_disk_work_ns(const struct model_disk *disk);
uint64_t model_work_requests(const struct model_work *work);
uint64_t model_work_bytes(const struct model_work *work);

#endif
