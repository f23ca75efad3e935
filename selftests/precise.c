// SPDX-License-Identifier: GPL-2.0
/*
 * Tests precise events (PEBS): the address and the registers of every sample,
 * the number of samples, the counts, and errors. The program is in assembly
 * (precise_programs.S), so that each instruction's registers and addresses are
 * known.
 */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <errno.h>

#include "kselftest_harness.h"
#include "precise_util.h"

#define EDGE			0x040000ULL

FIXTURE(precise)
{
	struct sample_limits limits;
	int max;
};

FIXTURE_SETUP(precise)
{
	self->max = most_precise();
	if (!self->max)
		SKIP(return, NO_PRECISE);
	ASSERT_TRUE(prepare_precise(&self->limits));
}

FIXTURE_TEARDOWN(precise)
{
	if (self->max)
		put_back_sample_limits(&self->limits);
}

/* The samples of an event. */
struct seen {
	unsigned int samples;
	unsigned int outside;	/* addresses that are no step of walk() */
	unsigned int exact;
	unsigned int impossible;	/* addresses of steps without the event */
	unsigned int wrong;	/* samples with wrong registers */
	unsigned int steps[WALK_STEPS];
};

static struct seen look(struct ring *ring, enum kind kind, int precise, unsigned long passes)
{
	struct seen seen = {};
	struct sample sample;

	while (next_sample(ring, &sample)) {
		int step = sampled_step(&sample, precise);

		seen.samples++;
		seen.exact += !!(sample.misc & PERF_RECORD_MISC_EXACT_IP);
		if (step < 0) {
			seen.outside++;
			continue;
		}
		seen.steps[step]++;
		seen.impossible += !can_hit(kind, step);
		if (ring->sample_type & PERF_SAMPLE_REGS_INTR)
			seen.wrong += !are_after(sample.registers, step, passes, buffer);
	}
	return seen;
}

/*
 * Every sample is at an instruction that has the event, with the registers
 * after that instruction.
 */
static void check_samples(struct __test_metadata *_metadata, enum kind kind)
{
	/* Nehalem and Westmere have no precise store event. */
	if (!code(kind))
		return;
	for (int precise = 1; precise <= most_precise(); precise++) {
		struct perf_event_attr attr = sampling_registers(code(kind), PERIOD, precise);
		unsigned long n = passes(kind, SAMPLES, PERIOD);
		struct ring ring;
		struct seen seen;

		/*
		 * Records are not buffered: on Nehalem, a record needs the last
		 * branch before it.
		 */
		attr.wakeup_events = 1;
		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1)) {
			TH_LOG("precise_ip %d: %s", precise, strerror(errno));
		}
		ASSERT_TRUE(enable(&ring));
		walk(n, buffer);
		ASSERT_TRUE(disable(&ring));
		seen = look(&ring, kind, precise, n);
		TH_LOG("precise_ip %d: %u samples, %u exact, %u outside", precise, seen.samples,
		       seen.exact, seen.outside);
		EXPECT_EQ(precise > 1 ? seen.samples : 0, seen.exact);
		/* The number of cycles of the code around the loop is not known. */
		EXPECT_GE(per_pass(kind) ? 0 : 2, seen.outside);
		EXPECT_EQ(0, seen.impossible);
		EXPECT_EQ(0, seen.wrong);
		EXPECT_EQ(0, ring.throttled + ring.lost_records + ring.lost_samples);
		if (per_pass(kind)) {
			for (int step = 0; step < WALK_STEPS; step++)
				EXPECT_EQ(can_hit(kind, step), !!seen.steps[step]);
			EXPECT_LE(SAMPLES - 1, seen.samples);
			EXPECT_GE(SAMPLES + 1, seen.samples);
		}
		close_ring(&ring);
	}
}

TEST_F(precise, instructions)
{
	check_samples(_metadata, INSTRUCTIONS);
}

/* Samples the instructions of a walk. Leaves the samples in @ring, which is then open. */
static void sample_walk(struct __test_metadata *_metadata, struct ring *ring,
			struct perf_event_attr attr)
{
	if (lacks_ip())
		attr.wakeup_events = 1;
	ASSERT_TRUE(open_ring(ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(ring));
	walk(passes(INSTRUCTIONS, SAMPLES, PERIOD), buffer);
	ASSERT_TRUE(disable(ring));
}

/* With the highest precision, a record needs only the address. */
TEST_F(precise, addresses)
{
	struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, PERIOD, self->max);
	struct ring ring;
	struct seen seen;

	sample_walk(_metadata, &ring, attr);
	seen = look(&ring, INSTRUCTIONS, self->max, 0);
	EXPECT_NEAR(1, SAMPLES, seen.samples);
	EXPECT_GE(2, seen.outside);
	EXPECT_EQ(0, ring.throttled + ring.lost_records + ring.lost_samples);
	close_ring(&ring);
}

TEST_F(precise, cycles)
{
	check_samples(_metadata, CYCLES);
}

TEST_F(precise, branches)
{
	check_samples(_metadata, BRANCHES);
}

TEST_F(precise, loads)
{
	check_samples(_metadata, LOADS);
}

TEST_F(precise, stores)
{
	check_samples(_metadata, STORES);
}

/* Only adaptive records have XMM registers. */
TEST_F(precise, xmm)
{
	struct perf_event_attr attr = sampling_registers(RAW_INSTRUCTIONS, PERIOD, 1);
	struct sample sample;
	struct ring ring;

	attr.sample_regs_intr |= XMM;
	if (!is_adaptive()) {
		EXPECT_EQ(-1, perf_open_self(&attr, -1));
		EXPECT_EQ(EINVAL, errno);
		return;
	}
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(&ring));
	walk(passes(INSTRUCTIONS, SAMPLES, PERIOD), buffer);
	ASSERT_TRUE(disable(&ring));
	for (int i = 0; i < SAMPLES - 1; i++) {
		ASSERT_TRUE(next_sample(&ring, &sample));
		for (int half = 0; half < 32; half++)
			EXPECT_EQ((__u64)WALK_XMM * (half + 1),
				  sample.registers[PERF_REG_X86_XMM0 + half]);
	}
	close_ring(&ring);
	attr.precise_ip = 0;
	EXPECT_EQ(-1, perf_open_self(&attr, -1));
	EXPECT_EQ(EINVAL, errno);
}

/* How the records of an event are delivered. */
enum mode {
	TOGETHER,	/* many at a time */
	SINGLE,		/* one per interrupt; the processor reloads the counter */
	RELOADED,	/* one per interrupt, which reloads the counter */
	MODES
};

static struct perf_event_attr sampling_by(enum mode mode, __u64 config, unsigned int period)
{
	struct perf_event_attr attr = sampling(config, period, 1);

	if (mode == SINGLE)
		attr.sample_type |= PERF_SAMPLE_READ;
	if (mode == RELOADED)
		attr.wakeup_events = 1;
	return attr;
}

/* The number of samples and the event's count follow from the number of events. */
static void check_counts(struct __test_metadata *_metadata, enum kind kind)
{
	/* Nehalem and Westmere have no precise store event. */
	if (!code(kind))
		return;
	for (int mode = 0; mode < MODES; mode++) {
		struct perf_event_attr attr = sampling_by(mode, code(kind), PERIOD);
		struct values values;
		unsigned int samples;
		struct ring ring;
		int beside;

		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		beside = count_beside(&ring, code(kind));
		ASSERT_LE(0, beside);
		ASSERT_TRUE(enable(&ring));
		walk(passes(kind, SAMPLES, PERIOD), buffer);
		ASSERT_TRUE(disable(&ring));
		ASSERT_TRUE(read_values(ring.fd, &values));
		samples = count_samples(&ring);
		TH_LOG("mode %d: %u samples, %llu of %llu counted", mode, samples, values.of[0],
		       values.of[1]);
		if (kind == CYCLES) {
			/*
			 * An instruction has several of these events, so
			 * records are later.
			 */
			EXPECT_GE(values.of[1], values.of[0]);
			EXPECT_NEAR(PERIOD + 1, values.of[0], samples * (PERIOD + 0ULL));
		} else {
			EXPECT_NEAR(PERIOD + 1, values.of[1], samples * (PERIOD + 1ULL));
			EXPECT_EQ(values.of[1] - samples, values.of[0]);
		}
		EXPECT_EQ(0, ring.throttled + ring.lost_records + ring.lost_samples);
		close(beside);
		close_ring(&ring);
	}
}

TEST_F(precise, counts_of_instructions)
{
	check_counts(_metadata, INSTRUCTIONS);
}

TEST_F(precise, counts_of_cycles)
{
	check_counts(_metadata, CYCLES);
}

TEST_F(precise, counts_of_loads)
{
	check_counts(_metadata, LOADS);
}

/* A new period takes effect at once. */
TEST_F(precise, new_period)
{
	static const unsigned int periods[] = { 1009, 503, 2003 };

	for (int mode = 0; mode < MODES; mode++) {
		struct perf_event_attr attr = sampling_by(mode, RAW_INSTRUCTIONS, periods[0]);
		unsigned int samples[ARRAY_SIZE(periods)] = {};
		struct sample sample;
		struct ring ring;

		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		ASSERT_TRUE(enable(&ring));
		for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
			__u64 period = periods[i];

			if (i)
				ASSERT_EQ(0, ioctl(ring.fd, PERF_EVENT_IOC_PERIOD, &period));
			walk(passes(INSTRUCTIONS, SAMPLES / 3, period), buffer);
		}
		ASSERT_TRUE(disable(&ring));
		while (next_sample(&ring, &sample)) {
			for (size_t i = 0; i < ARRAY_SIZE(periods); i++)
				samples[i] += sample.period == periods[i];
		}
		for (size_t i = 0; i < ARRAY_SIZE(periods); i++) {
			EXPECT_NEAR(1, SAMPLES / 3, samples[i]) {
				TH_LOG("mode %d, period %u: %u", mode, periods[i], samples[i]);
			}
		}
		close_ring(&ring);
	}
}

/* PERF_EVENT_IOC_REFRESH: exactly the requested number of samples. */
TEST_F(precise, refresh)
{
	static const int numbers[] = { 5, 1, 20 };

	for (int mode = SINGLE; mode < MODES; mode++) {
		struct perf_event_attr attr = sampling_by(mode, RAW_INSTRUCTIONS, PERIOD);
		struct ring ring;

		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
			ASSERT_EQ(0, ioctl(ring.fd, PERF_EVENT_IOC_REFRESH, numbers[i]));
			walk(passes(INSTRUCTIONS, 30, PERIOD), buffer);
			EXPECT_EQ(numbers[i], count_samples(&ring));
		}
		close_ring(&ring);
	}
}

/* If a count is read while the counter is reloaded, no event is lost or counted twice. */
TEST_F(precise, reads_in_between)
{
	for (int mode = 0; mode < MODES; mode++) {
		struct perf_event_attr attr = sampling_by(mode, RAW_INSTRUCTIONS, PERIOD);
		struct values values;
		struct ring ring;
		int beside;

		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		beside = count_beside(&ring, RAW_INSTRUCTIONS);
		ASSERT_LE(0, beside);
		ASSERT_TRUE(enable(&ring));
		for (int i = 0; i < 200; i++) {
			walk(100, buffer);
			ASSERT_TRUE(read_values(ring.fd, &values));
			EXPECT_NEAR(1, values.of[1] - values.of[1] / (PERIOD + 1), values.of[0]) {
				TH_LOG("mode %d, read %d: %llu of %llu", mode, i, values.of[0],
				       values.of[1]);
			}
		}
		ASSERT_TRUE(disable(&ring));
		ASSERT_TRUE(read_values(ring.fd, &values));
		EXPECT_EQ(values.of[1] - count_samples(&ring), values.of[0]);
		close(beside);
		close_ring(&ring);
	}
}

/*
 * More instructions than between one read through the page and the next one, or
 * a read().
 */
#define READ_SHARE	200

/*
 * Counts that are read through the page with RDPMC are consecutive, and read()
 * continues from the last one, also if the processor reloads the counter. The
 * built-in driver discards the sign of the value that it has read.
 */
TEST_F(precise, reads_by_the_page)
{
	const __u64 known = on_rpmu() ? ~0ULL : (1ULL << counter_width()) - 1;

	for (int mode = 0; mode < MODES; mode++) {
		struct perf_event_attr attr = sampling_by(mode, RAW_INSTRUCTIONS, PERIOD);
		unsigned int by_page = 0, wrong = 0;
		__u64 count, last = 0;
		struct values values;
		struct ring ring;
		__u32 index;

		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		ASSERT_TRUE(enable(&ring));
		for (int i = 0; i < 5000; i++) {
			count = read_page(ring.page, &index);
			if (ring.page->cap_user_rdpmc && index) {
				count &= known;
				by_page++;
			} else {
				ASSERT_TRUE(read_values(ring.fd, &values));
				count = values.of[0];
			}
			wrong += count < last || count > last + READ_SHARE;
			last = count;
		}
		ASSERT_TRUE(disable(&ring));
		ASSERT_TRUE(read_values(ring.fd, &values));
		TH_LOG("mode %d: %u of 5000 by the page, %u wrong; %llu, then %llu", mode, by_page,
		       wrong, last, values.of[0]);
		EXPECT_EQ(0, wrong);
		EXPECT_LE(last, values.of[0]);
		EXPECT_GE(last + READ_SHARE, values.of[0]);
		EXPECT_LE(SAMPLES / 4, count_samples(&ring));
		close_ring(&ring);
	}
}

/*
 * The group's counts in each sample are the counts at the time of the sample.
 * The event's own count may lack the last period: the built-in driver adds it
 * after the sample.
 */
TEST_F(precise, group_in_samples)
{
	struct perf_event_attr attr = sampling_by(SINGLE, RAW_INSTRUCTIONS, PERIOD);
	unsigned int samples = 0;
	struct sample sample;
	struct ring ring;
	__u64 before = 0;
	int beside;

	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	beside = count_beside(&ring, RAW_INSTRUCTIONS);
	ASSERT_LE(0, beside);
	ASSERT_TRUE(enable(&ring));
	walk(passes(INSTRUCTIONS, SAMPLES, PERIOD), buffer);
	ASSERT_TRUE(disable(&ring));
	while (next_sample(&ring, &sample)) {
		samples++;
		/* The interrupt may be an instruction or two after the record. */
		EXPECT_NEAR(2, PERIOD + 1, sample.values[1] - before);
		EXPECT_GE(sample.values[1] - samples, sample.values[0]);
		EXPECT_LE(sample.values[1] - samples, sample.values[0] + PERIOD + 2);
		before = sample.values[1];
	}
	EXPECT_NEAR(1, SAMPLES, samples);
	close(beside);
	close_ring(&ring);
}

/* Returns the time of perf's clock. */
static __u64 now(const struct perf_event_mmap_page *page)
{
	__u64 tsc = __builtin_ia32_rdtsc(), part = tsc & ((1ULL << page->time_shift) - 1);

	return page->time_zero + (tsc >> page->time_shift) * page->time_mult +
	       (part * page->time_mult >> page->time_shift);
}

/*
 * A sample has the time of its instruction, not of the interrupt that reads its
 * record.
 */
TEST_F(precise, times)
{
	struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, PERIOD, 1);
	__u64 middle, last, end;
	unsigned int early = 0;
	struct sample sample;
	struct ring ring;

	if (cpu_model() < MODEL_SKYLAKE)
		SKIP(return, "records do not contain the time");
	attr.sample_type |= PERF_SAMPLE_TIME;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	if (!ring.page->cap_user_time_zero)
		SKIP(return, "perf's clock is not the TSC");
	ASSERT_TRUE(enable(&ring));
	last = now(ring.page);
	walk(passes(INSTRUCTIONS, SAMPLES / 2, PERIOD), buffer);
	middle = now(ring.page);
	walk(passes(INSTRUCTIONS, SAMPLES / 2, PERIOD), buffer);
	end = now(ring.page);
	ASSERT_TRUE(disable(&ring));
	while (next_sample(&ring, &sample)) {
		EXPECT_LT(last, sample.time);
		EXPECT_GT(end, sample.time);
		early += sample.time < middle;
		last = sample.time;
	}
	EXPECT_NEAR(1, SAMPLES / 2, early);
	close_ring(&ring);
}

/* An event with a frequency is equally precise, with any periods. */
TEST_F(precise, frequency)
{
	struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, 4000, self->max < 2 ? 1 : 2);
	const unsigned long n = passes(INSTRUCTIONS, 100 * SAMPLES, PERIOD);
	unsigned int samples = 0, wrong = 0;
	struct sample sample;
	struct ring ring;
	__u64 sum = 0;

	attr.freq = 1;
	attr.sample_type |= PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_intr = GENERAL;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(&ring));
	walk(n, buffer);
	ASSERT_TRUE(disable(&ring));
	for (; next_sample(&ring, &sample); samples++) {
		int step = sampled_step(&sample, attr.precise_ip);

		/*
		 * The first samples are outside walk(): the kernel's first guess
		 * is a period of 1.
		 */
		wrong += step >= 0 && !are_after(sample.registers, step, n, buffer);
		sum += sample.period;
	}
	TH_LOG("%u samples, %llu of %lu instructions", samples, sum, n * WALK_STEPS);
	EXPECT_LE(20, samples);
	EXPECT_EQ(0, wrong);
	EXPECT_GE(n * WALK_STEPS + 1000, sum);
	close_ring(&ring);
}

TEST_F(precise, more_precise_than_possible)
{
	struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, PERIOD, 1);

	for (int precise = 1; precise <= MAX_PRECISE; precise++) {
		attr.precise_ip = precise;
		EXPECT_EQ(precise <= self->max ? 0 : EOPNOTSUPP, error_of(&attr));
	}
}

TEST_F(precise, counting)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

	for (int precise = 1; precise <= self->max; precise++) {
		attr.precise_ip = precise;
		EXPECT_EQ(EINVAL, error_of(&attr));
	}
	attr.precise_ip = MAX_PRECISE;
	EXPECT_EQ(self->max < MAX_PRECISE ? EOPNOTSUPP : EINVAL, error_of(&attr));
}

/*
 * Events that no counter samples precisely: events with certain flags, and on
 * old models most events.
 */
TEST_F(precise, events_without_counters)
{
	/* LONGEST_LAT_CACHE.MISS; the event for guests' LBRs */
	const struct {
		__u64 config;
		int error;
	} cases[] = {
		{ RAW_INSTRUCTIONS | EDGE, any_event_is_precise() ? 0 : EINVAL },
		{ 0x412e, cpu_model() <= MODEL_WESTMERE ? EINVAL : 0 },
		{ 0x1b00, EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_event_attr attr = sampling(cases[i].config, PERIOD, 1);

		EXPECT_EQ(cases[i].error, error_of(&attr)) {
			TH_LOG("event %llx", cases[i].config);
		}
		attr.precise_ip = 0;
		if (cases[i].config != 0x1b00)
			EXPECT_EQ(0, error_of(&attr));
	}
}

/*
 * Without a guest, events that exclude guests have all samples, and events that
 * exclude the host have none.
 */
TEST_F(precise, guests)
{
	for (int excluded = 0; excluded < 4; excluded++) {
		struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, PERIOD, 1);
		struct ring ring;

		attr.exclude_guest = excluded & 1;
		attr.exclude_host = excluded >> 1;
		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		ASSERT_TRUE(enable(&ring));
		walk(passes(INSTRUCTIONS, SAMPLES, PERIOD), buffer);
		ASSERT_TRUE(disable(&ring));
		EXPECT_NEAR(1, attr.exclude_host ? 0 : SAMPLES, count_samples(&ring));
		close_ring(&ring);
	}
}

static bool is_in_nest(__u64 ip)
{
	return ip == nest_ips[NEST_DEC] || ip == nest_ips[NEST_JNZ];
}

/*
 * The call chain of a precise sample is taken in the interrupt, an instruction
 * or two later: the stack at the record may be gone.
 */
TEST_F(precise, call_chains)
{
	for (int precise = 1; precise <= self->max; precise++) {
		struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, PERIOD, precise);
		unsigned int samples = 0, exact = 0, good = 0;
		struct sample sample;
		struct ring ring;

		attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		ASSERT_TRUE(enable(&ring));
		nest(SAMPLES * (PERIOD + 1UL) / 2);
		ASSERT_TRUE(disable(&ring));
		while (next_sample(&ring, &sample)) {
			const __u64 *caller = sample.caller;

			if (!is_in_nest(sample.ip))
				continue;
			samples++;
			exact += !!(sample.misc & PERF_RECORD_MISC_EXACT_IP);
			/* The last entry is in the code of this test. */
			good += sample.callers >= 5 && caller[0] == PERF_CONTEXT_USER &&
				is_in_nest(caller[1]) && caller[2] == nest_ips[NEST_INNER] &&
				caller[3] == nest_ips[NEST_OUTER];
		}
		TH_LOG("precise_ip %d: %u samples, %u good", precise, samples, good);
		EXPECT_NEAR(1, SAMPLES, samples);
		EXPECT_EQ(precise > 1 ? samples : 0, exact);
		/* The last interrupt may be after the loop. */
		EXPECT_NEAR(1, samples, good);
		EXPECT_EQ(0, ring.throttled + ring.lost_records + ring.lost_samples);
		close_ring(&ring);
	}
}

/*
 * The call chain of a precise sample in the kernel continues in the program.
 * Each interrupt executes about a thousand instructions, which also count.
 */
TEST_F(precise, call_chains_of_the_kernel)
{
	struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, 10 * PERIOD + 1, 1);
	unsigned int samples = 0, good = 0;
	struct sample sample;
	struct ring ring;

	attr.sample_type |= PERF_SAMPLE_CALLCHAIN;
	attr.exclude_kernel = 0;
	attr.exclude_user = 1;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(&ring));
	for (int i = 0; i < 5000; i++)
		syscall(SYS_getppid);
	ASSERT_TRUE(disable(&ring));
	for (; next_sample(&ring, &sample); samples++) {
		const __u64 *caller = sample.caller;
		__u64 user = 0;

		while (user < sample.callers && caller[user] != PERF_CONTEXT_USER)
			user++;
		/*
		 * At the end of a system call, the interrupt may already be in
		 * the program.
		 */
		good += user && user + 2 <= sample.callers && sample.ip >> 63 &&
			caller[0] == PERF_CONTEXT_KERNEL && caller[1] >> 63 &&
			!(caller[user + 1] >> 63);
	}
	TH_LOG("%u samples, %u good", samples, good);
	EXPECT_LE(20, samples);
	EXPECT_LE(samples * 3 / 4, good);
	close_ring(&ring);
}

/* Without transactions, precise samples report none, whatever else they contain. */
TEST_F(precise, transactions)
{
	struct perf_event_attr attr = sampling_registers(RAW_INSTRUCTIONS, PERIOD, self->max);
	unsigned int samples = 0;
	struct sample sample;
	struct ring ring;

	attr.sample_type |= PERF_SAMPLE_TRANSACTION;
	sample_walk(_metadata, &ring, attr);
	for (; next_sample(&ring, &sample); samples++) {
		EXPECT_EQ(0, sample.transaction);
		/* The field that follows is at its place. */
		EXPECT_EQ((unsigned long)buffer, sample.registers[PERF_REG_X86_SI]);
	}
	EXPECT_NEAR(1, SAMPLES, samples);
	close_ring(&ring);
}

/* The branches of a precise sample are the program's, up to the sample. */
TEST_F(precise, branch_stacks)
{
	const int precise = self->max < 2 ? 1 : 2;
	struct perf_event_attr attr = sampling(code(BRANCHES), PERIOD, precise);
	unsigned int samples = 0, full = 0, wrong = 0;
	struct sample sample;
	struct ring ring;
	char text[16];

	ASSERT_TRUE(read_line(CPU_PMU "/caps/branches", text, sizeof(text)));
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(&ring));
	walk(passes(BRANCHES, SAMPLES, PERIOD), buffer);
	ASSERT_TRUE(disable(&ring));
	for (; next_sample(&ring, &sample); samples++) {
		EXPECT_TRUE(can_hit(BRANCHES, sampled_step(&sample, precise)));
		full += (int)sample.branches == atoi(text);
		for (__u64 i = 0; i < sample.branches; i++)
			wrong += sample.branch[i].from != walk_ips[WALK_JNZ] ||
				 sample.branch[i].to != walk_ips[WALK_LOAD];
	}
	TH_LOG("%u samples, %u full, %u wrong branches", samples, full, wrong);
	EXPECT_NEAR(1, SAMPLES, samples);
	EXPECT_EQ(0, wrong);
	EXPECT_LE(SAMPLES * 3 / 4, full);
	close_ring(&ring);
	/*
	 * The first format needs all branches at the event's privilege levels
	 * to find the address.
	 */
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_COND | PERF_SAMPLE_BRANCH_USER;
	EXPECT_EQ(lacks_ip() && precise > 1 ? EOPNOTSUPP : 0, error_of(&attr));
}

/*
 * The number of the latest branch increases with the branches, unless records
 * are buffered or the processor has no such number.
 */
TEST_F(precise, latest_branch)
{
	const int records = branch_records();

	for (int mode = TOGETHER; mode <= SINGLE; mode++) {
		struct perf_event_attr attr = sampling_by(mode, code(BRANCHES), PERIOD);
		bool waits = is_adaptive() && mode == TOGETHER;
		bool known = cpu_model() < MODEL_GOLDEN_COVE && !waits;
		unsigned int samples = 0, unknown = 0, next = 0;
		struct sample sample;
		__u64 last = 0;
		struct ring ring;

		attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
		attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_USER |
					  PERF_SAMPLE_BRANCH_HW_INDEX;
		ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
		ASSERT_TRUE(enable(&ring));
		walk(passes(BRANCHES, SAMPLES, PERIOD), buffer);
		ASSERT_TRUE(disable(&ring));
		for (; next_sample(&ring, &sample); samples++) {
			__u64 taken = sample.latest_branch - last;

			unknown += sample.latest_branch == ~0ULL;
			/*
			 * Each pass takes one branch, and the return from the
			 * interrupt is another one.
			 */
			next += (taken - (PERIOD + 1)) % records <= 1;
			last = sample.latest_branch;
		}
		TH_LOG("mode %d: %u samples, %u of them unknown, %u next", mode, samples, unknown,
		       next);
		EXPECT_NEAR(1, SAMPLES, samples);
		EXPECT_EQ(known ? 0 : samples, unknown);
		if (known)
			EXPECT_LE(SAMPLES * 3 / 4, next);
		close_ring(&ring);
	}
}

TEST_HARNESS_MAIN
