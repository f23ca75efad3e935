// SPDX-License-Identifier: GPL-2.0
/*
 * Tests events that need an extra register: offcore response, load latency,
 * front end, snoop response. The value of the register selects the counted accesses; events
 * with the same value share the register, others rotate.
 *
 * The counts are those of the emulated PMU (selftests/vpmu/README.md): (loads +
 * stores) * requests * responses / 8192. counted_loop() has as many loads and
 * stores as instructions. On hardware the tests do not check the counts, but
 * which events run.
 */
#define _GNU_SOURCE

#include "kselftest_harness.h"
#include "perf_util.h"

#define NOT_EMULATED	"not the emulated PMU, whose figures these are"
#define FEW_COUNTERS	"this CPU has fewer than four counters"
#define LOOPS		500000UL
#define INSTRUCTIONS	LOOP_INSTRUCTIONS(LOOPS)

/* Offcore response registers (Nehalem has one), and the other extra registers. */
static const struct cpu {
	enum cpu_model model;
	__u64 offcore[2];		/* OFFCORE_RESPONSE_0 and _1 */
	unsigned int first_response;	/* the first bit that is not a request */
	unsigned int responses;		/* responses that the first response bit includes */
	unsigned int reserved;		/* a bit that does not exist */
	__u64 latency;			/* load latency, 0 if not known */
	__u64 front_end;		/* FRONTEND_RETIRED.*, if there is one */
} cpus[] = {
	{ MODEL_NEHALEM, { 0x01b7 }, 8, 1, 16, 0, 0 },
	{ MODEL_WESTMERE, { 0x01b7, 0x01bb }, 8, 1, 16, 0, 0 },
	{ MODEL_SANDY_BRIDGE, { 0x01b7, 0x01bb }, 16, 22, 12, 0x01cd, 0 },
	/*
	 * On these two models, only counter 3 counts latencies, for precise
	 * events only
	 */
	{ MODEL_IVY_BRIDGE, { 0x01b7, 0x01bb }, 16, 22, 12, 0, 0 },
	{ MODEL_BROADWELL, { 0x01b7, 0x01bb }, 16, 22, 12, 0, 0 },
	{ MODEL_HASWELL, { 0x01b7, 0x01bb }, 16, 22, 12, 0x01cd, 0 },
	{ MODEL_SKYLAKE, { 0x01b7, 0x01bb }, 16, 22, 12, 0x01cd, 0x01c6 },
	{ MODEL_ICE_LAKE, { 0x01b7, 0x01bb }, 16, 22, 14, 0x01cd, 0x01c6 },
	{ MODEL_SILVERMONT, { 0x01b7, 0x02b7 }, 16, 22, 19, 0, 0 },
	{ MODEL_GOLDMONT, { 0x01b7, 0x02b7 }, 16, 22, 6, 0, 0 },
	{ MODEL_GOLDMONT_PLUS, { 0x01b7, 0x02b7 }, 16, 22, 6, 0, 0 },
	{ MODEL_TREMONT, { 0x01b7, 0x02b7 }, 16, 22, 13, 0, 0 },
	{ MODEL_GOLDEN_COVE, { 0x012a, 0x012b }, 16, 22, 38, 0x01cd, 0x01c6 },
	{ MODEL_REDWOOD_COVE, { 0x012a, 0x012b }, 16, 22, 38, 0x01cd, 0x03c6 },
	{ MODEL_GRACEMONT, { 0x01b7, 0x02b7 }, 16, 22, 38, 0x05d0, 0 },
	{ MODEL_CRESTMONT, { 0x01b7, 0x02b7 }, 16, 22, 42, 0x05d0, 0 },
};

static const struct cpu *this_cpu(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cpus); i++)
		if (cpus[i].model == cpu_model())
			return &cpus[i];
	return NULL;
}

static int registers(const struct cpu *cpu)
{
	return cpu->offcore[1] ? 2 : 1;
}

/* Requests: data reads, RFOs, and both together with code reads. */
enum value { DATA_READ = 1, RFO = 2, DATA_CODE_RFO = 7 };

/* Returns the value that counts the first type of response to the requests. */
static __u64 config1(const struct cpu *cpu, __u64 requests)
{
	return requests | 1ULL << cpu->first_response;
}

static int open_event(__u64 config, __u64 value, int group_fd)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.config1 = value;
	attr.disabled = group_fd < 0;
	return perf_open_self(&attr, group_fd);
}

/* Opens an enabled event of a CPU. */
static int open_on(int cpu, __u64 config, __u64 value)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.config1 = value;
	attr.disabled = 0;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/* Returns the emulated PMU's count of counted_loop(). */
static __u64 amount(const struct cpu *cpu, __u64 requests)
{
	return INSTRUCTIONS * __builtin_popcountll(requests) * cpu->responses /
	       8192;
}

/*
 * A context switch may cost a fraction of an event. On hardware, any count is
 * accepted.
 */
static bool near(__u64 value, __u64 expected)
{
	if (!is_tcg())
		return value != NO_COUNT;
	return value + 4 + expected / 1000 >= expected &&
	       value <= expected + 4 + expected / 1000;
}

FIXTURE(offcore)
{
	const struct cpu *cpu;
};

FIXTURE_SETUP(offcore)
{
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	self->cpu = this_cpu();
	if (!self->cpu || registers(self->cpu) < 2)
		SKIP(return, "this CPU does not have two registers, or is unknown to the test");
}

FIXTURE_TEARDOWN(offcore)
{
}

/* The register's value decides what is counted, not the register that contains it. */
TEST_F(offcore, value)
{
	static const enum value requests[] = { DATA_READ, RFO, DATA_CODE_RFO, 0 };
	const struct cpu *cpu = self->cpu;
	__u64 count, expected;
	unsigned int i, r;
	int fd;

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	for (r = 0; r < 2; r++)
		for (i = 0; i < ARRAY_SIZE(requests); i++) {
			fd = open_event(cpu->offcore[r],
					config1(cpu, requests[i]), -1);
			ASSERT_LE(0, fd);
			counted_loop(fd, 0, LOOPS);
			count = read_value(fd);
			expected = amount(cpu, requests[i]);
			EXPECT_TRUE(near(count, expected)) {
				TH_LOG("register %u, requests %#x: %llu, expected %llu",
				       r, requests[i], count, expected);
			}
			close(fd);
		}
}

/* Events with the same value share a register; another value gets the other register. */
TEST_F(offcore, same_value_shares)
{
	static const enum value requests[] = {
		DATA_READ, DATA_READ, DATA_READ, DATA_CODE_RFO
	};
	struct one_count count;
	__u64 expected;
	int fd[4];
	int i;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	for (i = 0; i < 4; i++) {
		fd[i] = open_event(self->cpu->offcore[0],
				   config1(self->cpu, requests[i]),
				   i ? fd[0] : -1);
		ASSERT_LE(0, fd[i]);
	}
	counted_loop(fd[0], PERF_IOC_FLAG_GROUP, LOOPS);
	for (i = 0; i < 4; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		EXPECT_LT(0, count.running);
		EXPECT_EQ(count.enabled, count.running);
		expected = amount(self->cpu, requests[i]);
		EXPECT_TRUE(near(count.value, expected)) {
			TH_LOG("event %d: %llu, expected %llu", i, count.value,
			       expected);
		}
	}
}

/*
 * A group with three values is refused; without the third event, the group
 * still counts.
 */
TEST_F(offcore, three_values_are_no_group)
{
	const struct cpu *cpu = self->cpu;
	int leader = open_event(cpu->offcore[0], config1(cpu, DATA_READ), -1);
	int i, sibling;

	ASSERT_LE(0, leader);
	sibling = open_event(cpu->offcore[1], config1(cpu, RFO), leader);
	ASSERT_LE(0, sibling);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, open_event(cpu->offcore[i],
					 config1(cpu, DATA_CODE_RFO), leader));
		EXPECT_EQ(EINVAL, errno);
	}
	counted_loop(leader, PERF_IOC_FLAG_GROUP, LOOPS);
	EXPECT_TRUE(near(read_value(leader), amount(cpu, DATA_READ)));
	EXPECT_TRUE(near(read_value(sibling), amount(cpu, RFO)));
}

/* A value with a reserved bit is refused; a running event continues to count. */
TEST_F(offcore, refusals_change_nothing)
{
	const struct cpu *cpu = self->cpu;
	int fd = open_event(cpu->offcore[0], config1(cpu, DATA_READ), -1);
	int i;

	ASSERT_LE(0, fd);
	counted_loop(fd, 0, LOOPS);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-1, open_event(cpu->offcore[i],
					 1ULL << cpu->reserved, -1));
		EXPECT_EQ(EINVAL, errno);
	}
	EXPECT_TRUE(near(read_value(fd), amount(cpu, DATA_READ)));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	counted_loop(fd, 0, LOOPS);
	EXPECT_TRUE(near(read_value(fd), amount(cpu, DATA_READ)));
}

/*
 * Two events of each code with two different values: two registers are enough
 * for the four events in any order. The built-in driver places them one by one
 * and gives an event a register although another one already holds the value:
 * it refuses 8 of the 24 orders.
 */
TEST_F(offcore, every_order)
{
	static const enum value requests[] = { DATA_READ, DATA_CODE_RFO };
	const struct cpu *cpu = self->cpu;
	int order[4], fd[4], opened, refused = 0, orders = 0;
	struct one_count count;
	unsigned int i, code;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	for (code = 0; code < 4 * 4 * 4 * 4; code++) {
		unsigned int seen = 0;

		for (i = 0; i < 4; i++) {
			order[i] = code >> 2 * i & 3;
			seen |= 1 << order[i];
		}
		if (seen != 0xf)
			continue;
		orders++;
		for (opened = 0; opened < 4; opened++) {
			i = order[opened];
			fd[opened] = open_event(cpu->offcore[i & 1],
						config1(cpu, requests[i >> 1]),
						opened ? fd[0] : -1);
			if (fd[opened] < 0)
				break;
		}
		if (opened == 4) {
			counted_loop(fd[0], PERF_IOC_FLAG_GROUP, LOOPS);
			for (i = 0; i < 4; i++) {
				ASSERT_TRUE(read_one(fd[i], &count));
				EXPECT_TRUE(near(count.value,
						 amount(cpu, requests[order[i] >> 1])));
				EXPECT_EQ(count.enabled, count.running);
			}
		} else {
			EXPECT_EQ(EINVAL, errno);
			refused++;
		}
		while (opened-- > 0)
			close(fd[opened]);
	}
	EXPECT_EQ(24, orders);
	TH_LOG("%d of %d orders are refused", refused, orders);
	EXPECT_EQ(on_rpmu() ? 0 : 8, refused);
}

/*
 * The events of every_order as single events: all of them run all the time. With
 * the built-in driver, some do not run for a while.
 */
TEST_F(offcore, every_order_on_its_own)
{
	static const int orders[][4] = {
		{ 0, 1, 2, 3 }, { 1, 0, 2, 3 }, { 1, 0, 3, 2 }, { 2, 3, 0, 1 },
		{ 3, 2, 0, 1 }, { 0, 2, 1, 3 }, { 3, 0, 2, 1 }, { 1, 2, 3, 0 },
	};
	static const enum value requests[] = { DATA_READ, DATA_CODE_RFO };
	const struct cpu *cpu = self->cpu;
	struct one_count count;
	unsigned int i, o;
	int fd[4], which;

	if (!on_rpmu())
		SKIP(return, "the built-in driver does not place them all");
	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	for (o = 0; o < ARRAY_SIZE(orders); o++) {
		for (i = 0; i < 4; i++) {
			which = orders[o][i];
			fd[i] = open_event(cpu->offcore[which & 1],
					   config1(cpu, requests[which >> 1]), -1);
			ASSERT_LE(0, fd[i]);
		}
		for (i = 0; i < 4; i++)
			ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
		branch_loop(20000);
		for (i = 0; i < 4; i++) {
			ASSERT_TRUE(read_one(fd[i], &count));
			EXPECT_LT(0, count.running);
			EXPECT_EQ(count.enabled, count.running) {
				TH_LOG("order %u, event %u", o, i);
			}
			close(fd[i]);
		}
	}
}

FIXTURE(turns)
{
	const struct cpu *cpu;
	char interval[32];
};

FIXTURE_SETUP(turns)
{
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval,
			      sizeof(self->interval)));
	self->cpu = this_cpu();
	if (!self->cpu || registers(self->cpu) < 2)
		SKIP(return, "this CPU does not have two registers, or is unknown to the test");
	/* After the last SKIP: teardown does not run if the setup ends early. */
	ASSERT_TRUE(write_line(MUX_INTERVAL, "4"));
}

FIXTURE_TEARDOWN(turns)
{
	EXPECT_TRUE(write_line(MUX_INTERVAL, self->interval));
}

/*
 * If the registers, one or two, are not enough for the events, each event gets its
 * share, and never more events run than there are registers.
 */
static void take_turns(struct __test_metadata *_metadata, const __u64 *config,
		       const __u64 *value, int nr, int registers)
{
	double share, sum = 0.0;
	__u64 end;
	struct one_count count;
	int fd[8];
	int i;

	ASSERT_GE(8, nr);
	for (i = 0; i < nr; i++) {
		fd[i] = open_event(config[i], value[i], -1);
		ASSERT_LE(0, fd[i]);
	}
	end = now_ns() + 500000000ULL;
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	while (now_ns() < end)
		branch_loop(20000);
	for (i = 0; i < nr; i++) {
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0));
		ASSERT_TRUE(read_one(fd[i], &count));
		share = percent_running(&count);
		sum += share;
		TH_LOG("event %d: %.1f %%", i, share);
		EXPECT_TRUE(share > 100.0 * registers / nr - 8.0 &&
			    share < 100.0 * registers / nr + 8.0);
	}
	EXPECT_GE(100.0 * registers + 1.0, sum);
}

TEST_F(turns, three_offcore_values)
{
	const struct cpu *cpu = self->cpu;
	const __u64 config[] = {
		cpu->offcore[0], cpu->offcore[0], cpu->offcore[1]
	};
	const __u64 value[] = {
		config1(cpu, DATA_READ), config1(cpu, RFO),
		config1(cpu, DATA_CODE_RFO)
	};

	take_turns(_metadata, config, value, 3, 2);
}

/* MEM_TRANS_RETIRED.LOAD_LATENCY, which Haswell counts on counter 3 only. */
TEST_F(turns, two_latencies)
{
	const __u64 config[] = { self->cpu->latency, self->cpu->latency };
	const __u64 value[] = { 8, 16 };

	if (!self->cpu->latency)
		SKIP(return, "no event is known for this CPU");
	take_turns(_metadata, config, value, 2, 1);
}

TEST_F(turns, two_front_end_filters)
{
	const __u64 config[] = { self->cpu->front_end, self->cpu->front_end };
	const __u64 value[] = { 0x11, 0x12 };

	if (!self->cpu->front_end)
		SKIP(return, "this CPU has no front-end filter");
	take_turns(_metadata, config, value, 2, 1);
}

static const __u64 snoop_response[] = { 0x0127, 0x0227 };

static const char *no_snoop_responses(void)
{
	return cpu_model() == MODEL_CRESTMONT ? NULL : "this CPU has no snoop responses";
}

/* Unlike offcore responses, a snoop response cannot use the other register. */
TEST_F(turns, two_snoop_responses)
{
	const __u64 config[] = { snoop_response[0], snoop_response[0] };
	const __u64 value[] = { 1, 2 };

	if (no_snoop_responses())
		SKIP(return, "%s", no_snoop_responses());
	take_turns(_metadata, config, value, 2, 1);
}

/* Each bit of the register adds to the count. */
TEST_F(turns, snoop_response_value)
{
	if (no_snoop_responses())
		SKIP(return, "%s", no_snoop_responses());
	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	for (unsigned int i = 0; i < 4; i++) {
		__u64 value = i / 2 ? 0xf000000f : 0;
		__u64 expected = INSTRUCTIONS * __builtin_popcountll(value) / 8192;
		int fd = open_event(snoop_response[i % 2], value, -1);

		ASSERT_LE(0, fd);
		counted_loop(fd, 0, LOOPS);
		EXPECT_TRUE(near(read_value(fd), expected));
		close(fd);
	}
}

/* The emulated PMU halves the count if the latency is doubled. */
TEST_F(turns, latency_value)
{
	__u64 count[2];
	int i, fd;

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	if (!self->cpu->latency)
		SKIP(return, "no event is known for this CPU");
	for (i = 0; i < 2; i++) {
		fd = open_event(self->cpu->latency, 8 << i, -1);
		ASSERT_LE(0, fd);
		counted_loop(fd, 0, LOOPS);
		count[i] = read_value(fd);
		close(fd);
	}
	EXPECT_LT(100, count[1]);
	EXPECT_TRUE(near(count[0], 2 * count[1]));
}

/* Without any filter, the count is 0. */
TEST_F(turns, front_end_value)
{
	__u64 count[2];
	int i, fd;

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	if (!self->cpu->front_end)
		SKIP(return, "this CPU has no front-end filter");
	for (i = 0; i < 2; i++) {
		fd = open_event(self->cpu->front_end, i ? 0x11 : 0, -1);
		ASSERT_LE(0, fd);
		counted_loop(fd, 0, LOOPS);
		count[i] = read_value(fd);
		close(fd);
	}
	EXPECT_EQ(0, count[0]);
	EXPECT_LT(100, count[1]);
}

/*
 * The threads of a core. On Nehalem and Westmere, they share the registers: a
 * thread waits while the other one uses all of them, unless it needs one of the
 * same values. From Sandy Bridge on, each thread has its own registers.
 */
FIXTURE(siblings)
{
	const struct cpu *cpu;
	char interval[32];
	int first, second;
	int held[2];		/* events of the first thread, one for each register */
	int last;		/* the event that tests close to free its register */
};

FIXTURE_SETUP(siblings)
{
	char list[16];
	int i;

	self->cpu = this_cpu();
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval,
			      sizeof(self->interval)));
	if (!self->cpu)
		SKIP(return, "the events of this CPU are not known to the test");
	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      list, sizeof(list)));
	if (sscanf(list, "%d%*[-,]%d", &self->first, &self->second) != 2)
		SKIP(return, "a core has one thread");
	/* Events get a register as soon as it is free, not only by rotation. */
	ASSERT_TRUE(forbid_rotation());
	for (i = 0; i < registers(self->cpu); i++) {
		self->held[i] = open_on(self->first, self->cpu->offcore[i],
					config1(self->cpu, i ? RFO : DATA_READ));
		ASSERT_LE(0, self->held[i]);
		self->last = self->held[i];
	}
	usleep(10000);
}

FIXTURE_TEARDOWN(siblings)
{
	EXPECT_TRUE(allow_rotation(self->interval));
}

static bool registers_are_shared(void)
{
	return cpu_model() == MODEL_NEHALEM || cpu_model() == MODEL_WESTMERE;
}

static int open_pinned_on(int cpu, __u64 config, __u64 value)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.config1 = value;
	attr.disabled = 0;
	attr.pinned = 1;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/*
 * A pinned event is in the error state, and cannot be read, while pinned events
 * of the other thread have the registers.
 */
TEST_F(siblings, pinned_event_waits)
{
	struct one_count count;
	int fd, i;

	if (!registers_are_shared())
		SKIP(return, "each thread has its own registers");
	for (i = 0; i < registers(self->cpu); i++) {
		close(self->held[i]);
		self->last = open_pinned_on(self->first, self->cpu->offcore[i],
					    config1(self->cpu, i ? RFO : DATA_READ));
		ASSERT_LE(0, self->last);
	}
	fd = open_pinned_on(self->second, self->cpu->offcore[0],
			    config1(self->cpu, DATA_CODE_RFO));
	ASSERT_LE(0, fd);
	usleep(20000);
	EXPECT_FALSE(read_one(fd, &count));
	close(self->last);
	usleep(50000);
	if (!on_rpmu()) {
		EXPECT_FALSE(read_one(fd, &count));
		return;
	}
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_LT(0, count.running);
	EXPECT_LT(count.running, count.enabled);
}

/* A flexible event of the other thread yields its register to a pinned event at once. */
TEST_F(siblings, pinned_event_goes_first)
{
	struct one_count count;
	int fd;

	if (!registers_are_shared())
		SKIP(return, "each thread has its own registers");
	if (!on_rpmu())
		SKIP(return, "the built-in driver leaves it in the error state");
	fd = open_pinned_on(self->second, self->cpu->offcore[0],
			    config1(self->cpu, DATA_CODE_RFO));
	ASSERT_LE(0, fd);
	usleep(20000);
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_LT(0, count.running);
}

TEST_F(siblings, another_value_waits)
{
	int fd = open_on(self->second, self->cpu->offcore[0],
			 config1(self->cpu, DATA_CODE_RFO));
	struct one_count count;
	__u64 waited;

	ASSERT_LE(0, fd);
	usleep(20000);
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_LT(0, count.enabled);
	EXPECT_EQ(registers_are_shared() ? 0 : count.enabled, count.running);
	EXPECT_TRUE(read_one(self->held[0], &count));
	EXPECT_EQ(count.enabled, count.running);

	/* The built-in driver retries at this thread's next rotation. */
	if (!on_rpmu())
		return;
	ASSERT_TRUE(read_one(fd, &count));
	waited = count.enabled - count.running;
	close(self->last);
	usleep(50000);
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_LE(40000000, count.running);
	/* From then on it runs. */
	EXPECT_GE(waited + 10000000, count.enabled - count.running);
}

TEST_F(siblings, the_same_value_is_shared)
{
	struct one_count count;
	int i, fd[2], nr = registers(self->cpu);

	/* With two registers, each value has the other register than on the first thread. */
	for (i = 0; i < nr; i++) {
		fd[i] = open_on(self->second, self->cpu->offcore[i],
				config1(self->cpu, i == nr - 1 ? DATA_READ : RFO));
		ASSERT_LE(0, fd[i]);
	}
	usleep(20000);
	for (i = 0; i < nr; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		EXPECT_LT(0, count.enabled);
		EXPECT_EQ(count.enabled, count.running);
		ASSERT_TRUE(read_one(self->held[i], &count));
		EXPECT_EQ(count.enabled, count.running);
	}
}

/* Each value counts its requests, no matter which thread wrote the register last. */
TEST_F(siblings, counts)
{
	const struct cpu *cpu = self->cpu;
	int i, fd;

	if (!is_tcg())
		SKIP(return, NOT_EMULATED);
	close(self->last);
	for (i = 0; i < 4; i++) {
		enum value requests = i & 1 ? DATA_CODE_RFO : DATA_READ;

		ASSERT_TRUE(run_on(i & 2 ? self->first : self->second));
		fd = open_event(cpu->offcore[0], config1(cpu, requests), -1);
		ASSERT_LE(0, fd);
		counted_loop(fd, 0, LOOPS);
		EXPECT_TRUE(near(read_value(fd), amount(cpu, requests))) {
			TH_LOG("round %d: %llu, expected %llu", i,
			       read_value(fd), amount(cpu, requests));
		}
		close(fd);
	}
}

TEST_HARNESS_MAIN
