// SPDX-License-Identifier: GPL-2.0
/* Shared by the tests of precise events: see precise_util.h. */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <errno.h>
#include <sys/mman.h>

#include "kselftest.h"
#include "precise_util.h"

#define PAGE		4096UL
#define PAGES		256UL

/* The value of a buffer's words, less their number. */
#define FILLED		0x5a0000000000UL

unsigned long buffer[WALK_BUFFER / 8];

int most_precise(void)
{
	char text[16];

	return read_line(CPU_PMU "/caps/max_precise", text, sizeof(text)) ? atoi(text) : 0;
}

bool is_adaptive(void)
{
	return cpu_model() >= MODEL_ICE_LAKE;
}

bool any_event_is_precise(void)
{
	return is_adaptive() || cpu_model() == MODEL_GOLDMONT_PLUS;
}

int precise_counters(void)
{
	if (any_event_is_precise())
		return gp_counters();
	return cpu_model() == MODEL_SILVERMONT || cpu_model() == MODEL_GOLDMONT ? 1 : 4;
}

bool lacks_ip(void)
{
	return cpu_model() < MODEL_HASWELL;
}

__u64 code(enum kind kind)
{
	switch (kind) {
	case INSTRUCTIONS:
		return RAW_INSTRUCTIONS;
	case CYCLES:
		return 0x003c;
	case BRANCHES:
		/*
		 * BR_INST_RETIRED.ALL_BRANCHES_PEBS; on later models and small
		 * cores, any branch event can be precise
		 */
		return is_adaptive() || is_small_core() ? INTEL_RAW_BRANCHES : 0x04c4;
	case LOADS:
		if (cpu_model() == MODEL_SILVERMONT)
			return 0;
		/* MEM_LOAD_RETIRED.L1D_HIT, MEM_{UOPS,INST}_RETIRED.ALL_LOADS */
		return cpu_model() <= MODEL_WESTMERE ? 0x01cb : 0x81d0;
	case STORES:
		return cpu_model() <= MODEL_WESTMERE || cpu_model() == MODEL_SILVERMONT ? 0 :
		       0x82d0;
	default:
		return 0;
	}
}

unsigned int per_pass(enum kind kind)
{
	switch (kind) {
	case INSTRUCTIONS:
		return WALK_STEPS;
	case CYCLES:
		return 0;
	case LOADS:
		/* On Nehalem, only loads that hit */
		return cpu_model() > MODEL_WESTMERE;
	default:
		return 1;
	}
}

bool can_hit(enum kind kind, int step)
{
	switch (kind) {
	case BRANCHES:
		return step == WALK_JNZ;
	case LOADS:
		return step == WALK_LOAD;
	case STORES:
		return step == WALK_STORE;
	default:
		return true;
	}
}

unsigned long passes(enum kind kind, unsigned int samples, unsigned int period)
{
	return (2 * samples + 1) * (period + 1UL) / 2 / (per_pass(kind) ?: WALK_STEPS);
}

int error_of(const struct perf_event_attr *attr)
{
	int fd = perf_open_self(attr, -1);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

bool open_ring(struct ring *ring, const struct perf_event_attr *attr, pid_t pid, int cpu,
	       int leader)
{
	*ring = (struct ring){
		.fd = perf_open(attr, pid, cpu, leader, 0),
		.sample_type = attr->sample_type,
		.regs_intr = attr->sample_regs_intr,
		.branch_type = attr->branch_sample_type,
	};
	if (ring->fd < 0)
		return false;
	ring->page = map_buffer(ring->fd, PAGES);
	return ring->page != MAP_FAILED;
}

void close_ring(struct ring *ring)
{
	munmap(ring->page, (PAGES + 1) * PAGE);
	close(ring->fd);
}

bool enable(const struct ring *ring)
{
	return !ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0);
}

bool disable(const struct ring *ring)
{
	return !ioctl(ring->fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* Decodes a sample. PERF_SAMPLE_READ is decoded for groups without times. */
static struct sample decode(const struct ring *ring, const struct perf_event_header *header)
{
	const __u64 *at = (const void *)(header + 1), type = ring->sample_type;
	struct sample sample = { .misc = header->misc };

	if (type & PERF_SAMPLE_IP)
		sample.ip = *at++;
	if (type & PERF_SAMPLE_TID) {
		sample.pid = (__u32)*at;
		sample.tid = *at++ >> 32;
	}
	if (type & PERF_SAMPLE_TIME)
		sample.time = *at++;
	if (type & PERF_SAMPLE_ADDR)
		sample.address = *at++;
	if (type & PERF_SAMPLE_PERIOD)
		sample.period = *at++;
	if (type & PERF_SAMPLE_READ) {
		__u64 nr = *at++;

		for (__u64 i = 0; i < nr && i < MAX_GROUP; i++)
			sample.values[i] = at[i];
		at += nr;
	}
	if (type & PERF_SAMPLE_CALLCHAIN) {
		sample.callers = *at++;
		sample.caller = at;
		at += sample.callers;
	}
	if (type & PERF_SAMPLE_BRANCH_STACK) {
		sample.branches = *at++;
		if (ring->branch_type & PERF_SAMPLE_BRANCH_HW_INDEX)
			sample.latest_branch = *at++;
		sample.branch = (const void *)at;
		at += sample.branches * sizeof(*sample.branch) / sizeof(*at);
	}
	if (type & (PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT))
		sample.weight.full = *at++;
	if (type & PERF_SAMPLE_DATA_SRC)
		sample.data_src = *at++;
	if (type & PERF_SAMPLE_TRANSACTION)
		sample.transaction = *at++;
	if (type & PERF_SAMPLE_REGS_INTR && *at++ != PERF_SAMPLE_REGS_ABI_NONE) {
		for (int i = 0; i < MAX_REGISTERS; i++) {
			if (ring->regs_intr >> i & 1)
				sample.registers[i] = *at++;
		}
	}
	return sample;
}

bool next_sample(struct ring *ring, struct sample *sample)
{
	__u64 head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);

	while (ring->page->data_tail < head) {
		const struct perf_event_header *header =
			(void *)((char *)ring->page + PAGE + ring->page->data_tail);

		ring->page->data_tail += header->size;
		switch (header->type) {
		case PERF_RECORD_SAMPLE:
			*sample = decode(ring, header);
			return true;
		case PERF_RECORD_THROTTLE:
		case PERF_RECORD_UNTHROTTLE:
			ring->throttled++;
			break;
		case PERF_RECORD_LOST:
			ring->lost_records++;
			break;
		case PERF_RECORD_LOST_SAMPLES:
			ring->lost_samples += *(const __u64 *)(header + 1);
			break;
		default:
			ring->others++;
		}
	}
	return false;
}

unsigned int count_samples(struct ring *ring)
{
	unsigned int samples = 0;
	struct sample sample;

	while (next_sample(ring, &sample))
		samples++;
	return samples;
}

struct perf_event_attr sampling(__u64 config, unsigned int period, int precise)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD;
	attr.precise_ip = precise;
	attr.read_format = PERF_FORMAT_GROUP;
	return attr;
}

struct perf_event_attr sampling_registers(__u64 config, unsigned int period, int precise)
{
	struct perf_event_attr attr = sampling(config, period, precise);

	attr.sample_type |= PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = GENERAL;
	return attr;
}

int count_beside(const struct ring *leader, __u64 config)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_GROUP;
	return perf_open_self(&attr, leader->fd);
}

bool read_values(int leader, struct values *values)
{
	return read(leader, values, sizeof(*values)) >= (ssize_t)(2 * sizeof(__u64));
}

int step_at(__u64 ip)
{
	for (int step = 0; step < WALK_STEPS; step++) {
		if (walk_ips[step] == ip)
			return step;
	}
	return -1;
}

int sampled_step(const struct sample *sample, int precise)
{
	int step = step_at(sample->ip);

	/* The address is that of the next instruction. */
	if (precise == 1 && step >= 0)
		return (step + WALK_STEPS - 1) % WALK_STEPS;
	return step;
}

bool are_after(const __u64 *registers, int step, unsigned long passes, const void *buffer)
{
	static const int constant[] = {
		PERF_REG_X86_BX, PERF_REG_X86_DX, PERF_REG_X86_BP, PERF_REG_X86_R8,
		PERF_REG_X86_R9, PERF_REG_X86_R10, PERF_REG_X86_R11, PERF_REG_X86_R12,
		PERF_REG_X86_R13, PERF_REG_X86_R14, PERF_REG_X86_R15,
	};
	/* The number of the pass, from 0 on. */
	__u64 pass = passes - registers[PERF_REG_X86_DI] - (step >= WALK_DEC);
	__u64 word = pass % WALK_WORDS, rcx = word + (step >= WALK_INC);

	if (step >= WALK_AND)
		rcx %= WALK_WORDS;
	for (size_t i = 0; i < ARRAY_SIZE(constant); i++) {
		if (registers[constant[i]] != (__u64)WALK_REGISTER * constant[i])
			return false;
	}
	return pass < passes && registers[PERF_REG_X86_SI] == (unsigned long)buffer &&
	       registers[PERF_REG_X86_CX] == rcx && registers[PERF_REG_X86_AX] == FILLED + word;
}

void fill(unsigned long *words)
{
	for (unsigned long i = 0; i < WALK_WORDS; i++)
		words[i] = FILLED + i;
	memset(words + WALK_WORDS, 0, WALK_STORES);
}

bool prepare_precise(struct sample_limits *limits)
{
	fill(buffer);
	return lift_sample_limits(limits) && run_on(0);
}
