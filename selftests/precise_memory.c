// SPDX-License-Identifier: GPL-2.0
/*
 * Tests precise events of loads and stores: the address, the latency and the
 * data source of every sample.
 */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <errno.h>

#include "kselftest_harness.h"
#include "precise_util.h"

FIXTURE(precise_memory)
{
	struct sample_limits limits;
	int max;
};

FIXTURE_SETUP(precise_memory)
{
	self->max = most_precise();
	if (!self->max)
		SKIP(return, NO_PRECISE);
	ASSERT_TRUE(prepare_precise(&self->limits));
}

FIXTURE_TEARDOWN(precise_memory)
{
	if (self->max)
		put_back_sample_limits(&self->limits);
}

/* Reads an event's config from sysfs. Returns false if there is none. */
static bool event_of_sysfs(const char *name, struct perf_event_attr *attr)
{
	char path[128], text[128], *rest = text, *term;

	snprintf(path, sizeof(path), CPU_PMU "/events/%s", name);
	if (!read_line(path, text, sizeof(text)))
		return false;
	attr->config = 0;
	while ((term = strsep(&rest, ","))) {
		const char *value = strchr(term, '=');
		__u64 number = value ? strtoull(value + 1, NULL, 0) : 0;

		if (!strncmp(term, "event=", 6))
			attr->config |= number;
		else if (!strncmp(term, "umask=", 6))
			attr->config |= number << 8;
		else if (!strncmp(term, "ldlat=", 6))
			attr->config1 = number;
		else
			return false;
	}
	return true;
}

static struct perf_event_attr sampling_memory(__u64 config, unsigned int period)
{
	struct perf_event_attr attr = sampling_registers(config, period,
							 most_precise() < 2 ? 1 : 2);

	attr.sample_type |= PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT_STRUCT |
			    PERF_SAMPLE_DATA_SRC;
	if (lacks_ip())
		attr.wakeup_events = 1;
	return attr;
}

static union perf_mem_data_src source(const struct sample *sample)
{
	return (union perf_mem_data_src){ .val = sample->data_src };
}

static unsigned int op(const struct sample *sample)
{
	return source(sample).mem_op;
}

static unsigned int level(const struct sample *sample)
{
	return source(sample).mem_lvl;
}

static unsigned int level_number(const struct sample *sample)
{
	return source(sample).mem_lvl_num;
}

/* Checks the address of a sample of a load or a store: it must match its registers. */
static void check_address(struct __test_metadata *_metadata, const struct sample *sample,
			  enum kind kind)
{
	const __u64 *registers = sample->registers;
	__u64 address = registers[PERF_REG_X86_SI] + 8 * registers[PERF_REG_X86_CX];

	if (kind == STORES)
		address += WALK_STORES;
	EXPECT_TRUE(can_hit(kind, step_at(sample->ip)));
	EXPECT_EQ(address, sample->address);
}

/* Checks a sample of a load or a store. */
static void check_access(struct __test_metadata *_metadata, const struct sample *sample,
			 enum kind kind)
{
	check_address(_metadata, sample, kind);
	EXPECT_EQ(kind == STORES ? PERF_MEM_OP_STORE : PERF_MEM_OP_LOAD, op(sample));
}

/*
 * On Golden Cove, Redwood Cove, Gracemont and Crestmont, records have the instruction's latency
 * and the cache latency.
 */
static bool has_two_latencies(void)
{
	return cpu_model() >= MODEL_GOLDEN_COVE;
}

/* Returns the latency in cycles that the threshold is compared with. */
static __u64 latency(const struct sample *sample)
{
	return has_two_latencies() ? sample->weight.var2_w : sample->weight.var1_dw;
}

/*
 * Returns the latency that the emulated PMU declares for the retirement of the instruction at an
 * address; 0 on models whose records lack it.
 */
static __u16 declared_retirement(__u64 ip)
{
	return cpu_model() == MODEL_REDWOOD_COVE ? 1 + ip % 16 : 0;
}

/*
 * Returns the weight, as PERF_SAMPLE_WEIGHT or in parts, that the emulated PMU declares for a load
 * at @ip whose latency is above @threshold.
 */
static __u64 declared_weight(__u64 threshold, bool in_parts, __u64 ip)
{
	const __u64 cycles = threshold < 4 ? 4 : threshold + 1;
	union perf_sample_weight weight = { .var1_dw = cycles };

	if (has_two_latencies()) {
		weight.var1_dw = cycles / 2;
		weight.var2_w = in_parts ? cycles : 0;
	}
	if (in_parts)
		weight.var3_w = declared_retirement(ip);
	return weight.full;
}

/* Small cores have events of latency from Gracemont on. */
static bool has_load_latency(void)
{
	return !is_small_core() || cpu_model() >= MODEL_GRACEMONT;
}

/* Samples loads by their latency, like perf mem. */
TEST_F(precise_memory, load_latency)
{
	static const struct {
		unsigned int least, level, number;
		bool one_weight;
	} cases[] = {
		{ 0, PERF_MEM_LVL_L1, PERF_MEM_LVLNUM_L1, false },	/* 0: as in sysfs */
		{ 12, PERF_MEM_LVL_L2, PERF_MEM_LVLNUM_L2, false },
		{ 64, PERF_MEM_LVL_L3, PERF_MEM_LVLNUM_L3, false },
		{ 140, PERF_MEM_LVL_LOC_RAM, PERF_MEM_LVLNUM_RAM, false },
		{ 12, PERF_MEM_LVL_L2, PERF_MEM_LVLNUM_L2, true },
	};

	if (!has_load_latency())
		SKIP(return, "this CPU has no load latency");
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_event_attr attr = sampling_memory(0, 37), aux = attr;
		unsigned int samples = 0;
		struct sample sample;
		struct ring ring;
		int leader = -1;

		ASSERT_TRUE(event_of_sysfs("mem-loads", &attr));
		EXPECT_LE(3, attr.config1);
		if (cases[i].least)
			attr.config1 = cases[i].least;
		if (cases[i].one_weight)
			attr.sample_type ^= PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_WEIGHT;
		if (event_of_sysfs("mem-loads-aux", &aux)) {
			EXPECT_EQ(MODEL_GOLDEN_COVE, cpu_model());
			EXPECT_EQ(-1, perf_open_self(&attr, -1));
			EXPECT_EQ(ENODATA, errno);
			aux = counting_user(PERF_TYPE_RAW, aux.config);
			leader = perf_open_self(&aux, -1);
			ASSERT_LE(0, leader);
			attr.disabled = 0;
		}
		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, leader));
		ASSERT_EQ(0, ioctl(leader < 0 ? ring.fd : leader, PERF_EVENT_IOC_ENABLE, 0));
		walk(300000, buffer);
		ASSERT_EQ(0, ioctl(leader < 0 ? ring.fd : leader, PERF_EVENT_IOC_DISABLE, 0));
		while (next_sample(&ring, &sample)) {
			if (step_at(sample.ip) < 0)
				continue;
			samples++;
			check_access(_metadata, &sample, LOADS);
			if (!cases[i].one_weight)
				EXPECT_LT(attr.config1, latency(&sample));
			/* As declared by the emulated PMU */
			if (is_tcg()) {
				EXPECT_EQ(declared_weight(attr.config1, !cases[i].one_weight,
							  sample.ip),
					  sample.weight.full);
				EXPECT_TRUE(level(&sample) & cases[i].level);
				EXPECT_EQ(cases[i].number, level_number(&sample));
			}
		}
		TH_LOG("latency %llu: %u samples", attr.config1, samples);
		EXPECT_LE(2, samples);
		EXPECT_EQ(0, ring.lost_records + ring.lost_samples);
		close_ring(&ring);
		if (leader >= 0)
			close(leader);
	}
}

/*
 * Samples stores like perf mem. Nehalem, Westmere and small cores before Gracemont have no such
 * event.
 */
TEST_F(precise_memory, mem_stores)
{
	struct perf_event_attr attr = sampling_memory(0, 101);
	const bool exists = event_of_sysfs("mem-stores", &attr);
	unsigned int samples = 0;
	struct sample sample;
	struct ring ring;

	ASSERT_EQ(cpu_model() > MODEL_WESTMERE && has_load_latency(), exists);
	if (!exists)
		return;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(&ring));
	walk(20000, buffer);
	ASSERT_TRUE(disable(&ring));
	while (next_sample(&ring, &sample)) {
		if (step_at(sample.ip) < 0)
			continue;
		samples++;
		check_access(_metadata, &sample, STORES);
		if (is_tcg())
			EXPECT_EQ(PERF_MEM_LVL_L1 | PERF_MEM_LVL_HIT, level(&sample));
	}
	EXPECT_LE(10, samples);
	EXPECT_EQ(0, ring.lost_records + ring.lost_samples);
	close_ring(&ring);
}

/*
 * From Haswell on, other load and store events also have addresses, and except
 * on small cores a data source.
 */
static void check_accesses(struct __test_metadata *_metadata, enum kind kind)
{
	struct perf_event_attr attr = sampling_memory(code(kind), 101);
	const bool has_addresses = cpu_model() >= MODEL_HASWELL;
	struct sample sample;
	struct ring ring;

	if (!code(kind))
		return;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(&ring));
	walk(passes(kind, SAMPLES, 101), buffer);
	ASSERT_TRUE(disable(&ring));
	for (int i = 0; next_sample(&ring, &sample); i++) {
		if (!has_addresses) {
			EXPECT_EQ(PERF_MEM_OP_NA, op(&sample));
			continue;
		}
		if (step_at(sample.ip) < 0) {
			EXPECT_EQ(0, i);
		} else if (is_small_core()) {
			check_address(_metadata, &sample, kind);
			EXPECT_EQ(PERF_MEM_OP_NA, op(&sample));
		} else {
			check_access(_metadata, &sample, kind);
		}
	}
	close_ring(&ring);
}

TEST_F(precise_memory, addresses_of_loads)
{
	check_accesses(_metadata, LOADS);
}

TEST_F(precise_memory, addresses_of_stores)
{
	check_accesses(_metadata, STORES);
}

/*
 * Every precise event's sample has the latency of retirement. At precise_ip 3, instructions are on
 * fixed counter 0, whose records lack it.
 */
TEST_F(precise_memory, latency_of_retirement)
{
	for (int precise = 2; precise <= self->max; precise++) {
		struct perf_event_attr attr = sampling(code(INSTRUCTIONS), PERIOD, precise);
		unsigned int samples = 0, wrong = 0;
		struct sample sample;
		struct ring ring;

		attr.sample_type |= PERF_SAMPLE_WEIGHT_STRUCT;
		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		ASSERT_TRUE(enable(&ring));
		walk(passes(INSTRUCTIONS, SAMPLES, PERIOD), buffer);
		ASSERT_TRUE(disable(&ring));
		while (next_sample(&ring, &sample)) {
			__u16 declared = precise < 3 ? declared_retirement(sample.ip) : 0;

			samples++;
			wrong += is_tcg() && sample.weight.var3_w != declared;
		}
		TH_LOG("precise_ip %d: %u samples, %u wrong", precise, samples, wrong);
		EXPECT_NEAR(1, SAMPLES, samples);
		EXPECT_EQ(0, wrong);
		close_ring(&ring);
	}
}

/* Events that are meant to be precise also count without precise sampling. */
TEST_F(precise_memory, memory_events_without_precision)
{
	static const char *const names[] = { "mem-loads", "mem-stores" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, 0);

		if (event_of_sysfs(names[i], &attr))
			EXPECT_EQ(0, error_of(&attr));
	}
}

TEST_HARNESS_MAIN
