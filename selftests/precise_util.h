/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests of precise events (PEBS): the events of each model, and
 * their samples. A counter that is reloaded with a period of N has a record at
 * every N + 1st event: the event after the overflow is recorded, and not
 * counted.
 */
#ifndef RPMU_SELFTESTS_PRECISE_UTIL_H
#define RPMU_SELFTESTS_PRECISE_UTIL_H

#include "perf_util.h"
#include "precise_programs.h"

/*
 * The period plus one has no common divisor with the number of steps of walk(),
 * so that all steps are sampled.
 */
#define PERIOD		1006
#define SAMPLES		300
#define MAX_PRECISE	3

#define NO_PRECISE	"the driver reports no precise events"

/* Checks that the two values differ by at most @most. */
#define EXPECT_NEAR(most, expected, seen) \
	EXPECT_GE(most, llabs((long long)(expected) - (long long)(seen)))

/* The buffer of walk(). */
extern unsigned long buffer[WALK_BUFFER / 8];

/* Fills the buffer, lifts the limits on samples and goes to CPU 0. */
bool prepare_precise(struct sample_limits *limits);

/*
 * Returns the highest precise_ip; 0 if there is no PEBS, or the driver has no
 * precise events.
 */
int most_precise(void);

/* Returns whether records are adaptive: any event on any counter, with XMM registers. */
bool is_adaptive(void);

/* Returns whether every event can be precise, also with flags. */
bool any_event_is_precise(void);

/* Returns the number of general-purpose counters that sample precisely. */
int precise_counters(void);

/* Returns whether a record has only the address of the next instruction. */
bool lacks_ip(void);

/* The kinds of events that are sampled. */
enum kind {
	INSTRUCTIONS, CYCLES, BRANCHES, LOADS, STORES, KINDS
};

/* Returns the raw code of a precise event of this kind, 0 if there is none. */
__u64 code(enum kind kind);

/*
 * Returns the number of events in a pass of walk(); 0 if it is not an integer.
 */
unsigned int per_pass(enum kind kind);

/* Returns whether a step of walk() has the event. */
bool can_hit(enum kind kind, int step);

/*
 * Returns the number of passes for about this many samples. The last period
 * does not end with the last pass, so that no sample is after walk().
 */
unsigned long passes(enum kind kind, unsigned int samples, unsigned int period);

/* Registers, as bits of enum perf_event_x86_regs. */
#define GENERAL		0xff01ffULL	/* RAX to RSP, RIP, R8 to R15 */
#define XMM		0xffffffff00000000ULL
#define MAX_REGISTERS	64

struct sample {
	__u16 misc;
	__u64 ip;
	__u32 pid, tid;
	__u64 time;
	__u64 address;
	__u64 period;
	__u64 values[MAX_GROUP];	/* PERF_SAMPLE_READ, of the group */
	__u64 callers;
	const __u64 *caller;
	__u64 branches, latest_branch;	/* the latter with PERF_SAMPLE_BRANCH_HW_INDEX */
	const struct perf_branch_entry *branch;
	__u64 registers[MAX_REGISTERS];
	union perf_sample_weight weight;
	__u64 data_src;
	__u64 transaction;
};

struct ring {
	int fd;
	__u64 sample_type, regs_intr, branch_type;
	struct perf_event_mmap_page *page;
	/* Records other than samples. */
	unsigned int throttled, lost_records, lost_samples, others;
};

/* Opens an event and closes it. Returns the error, 0 if there was none. */
int error_of(const struct perf_event_attr *attr);

/* Opens an event and maps its buffer. Returns false with errno set if that fails. */
bool open_ring(struct ring *ring, const struct perf_event_attr *attr, pid_t pid, int cpu,
	       int leader);

void close_ring(struct ring *ring);

bool enable(const struct ring *ring);

bool disable(const struct ring *ring);

/*
 * Reads the next sample, and counts the other records before it. The buffer
 * does not wrap.
 */
bool next_sample(struct ring *ring, struct sample *sample);

/* Reads all samples. Returns their number. */
unsigned int count_samples(struct ring *ring);

/*
 * Returns the attributes of an event of user mode with a fixed period, whose
 * records may be buffered.
 */
struct perf_event_attr sampling(__u64 config, unsigned int period, int precise);

/* Returns the same attributes with registers in the samples. */
struct perf_event_attr sampling_registers(__u64 config, unsigned int period, int precise);

/*
 * Adds an event that only counts to the group: unlike the sampling event, it also
 * counts the events that are recorded.
 */
int count_beside(const struct ring *leader, __u64 config);

/* The counts of a group. */
struct values {
	__u64 nr, of[MAX_GROUP];
};

/* Reads the counts of a group that was opened with PERF_FORMAT_GROUP only. */
bool read_values(int leader, struct values *values);

/* Returns the step at an address, -1 if there is none. */
int step_at(__u64 ip);

/* Returns the sampled step, -1 if it is not a step of walk(). */
int sampled_step(const struct sample *sample, int precise);

/* Returns whether the registers are those after this step of walk(). */
bool are_after(const __u64 *registers, int step, unsigned long passes, const void *buffer);

/* Fills a buffer of walk(). */
void fill(unsigned long *words);

#endif
