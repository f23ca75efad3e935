// SPDX-License-Identifier: GPL-2.0
/*
 * Tests precise events that share a buffer of records: events of several tasks,
 * on all counters, more events than counters, and events of a CPU that goes
 * offline.
 */
#define _GNU_SOURCE
#include <asm/perf_regs.h>
#include <errno.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "precise_util.h"

FIXTURE(precise_shared)
{
	struct sample_limits limits;
	int max;
};

FIXTURE_SETUP(precise_shared)
{
	self->max = most_precise();
	if (!self->max)
		SKIP(return, NO_PRECISE);
	ASSERT_TRUE(prepare_precise(&self->limits));
}

FIXTURE_TEARDOWN(precise_shared)
{
	if (self->max)
		put_back_sample_limits(&self->limits);
}

#define TASKS		2
#define TURNS		100

/* Walks over its own buffer and yields the CPU to another task, many times. */
static void take_turns(unsigned long *own, int from, int to)
{
	char turn;

	fill(own);
	for (int i = 0; i < TURNS; i++) {
		if (read(from, &turn, 1) != 1)
			break;
		walk(200, own);
		if (write(to, &turn, 1) != 1)
			break;
	}
	/* A sample of an exiting task would have no pid. */
	while (1)
		pause();
}

/* Records are buffered only while their task is on the CPU. */
TEST_F(precise_shared, tasks_that_take_turns)
{
	static unsigned long buffers[TASKS][WALK_BUFFER / 8];
	struct perf_event_attr attr = sampling_registers(RAW_INSTRUCTIONS, 101, 1);
	unsigned int samples[TASKS] = {}, all = 0, wrong = 0;
	int pipes[TASKS + 1][2];
	struct values values;
	struct sample sample;
	pid_t tasks[TASKS];
	struct ring ring;
	char turn = 0;
	int beside;

	for (int i = 0; i <= TASKS; i++)
		ASSERT_EQ(0, pipe(pipes[i]));
	for (int i = 0; i < TASKS; i++) {
		tasks[i] = fork_helper();
		ASSERT_LE(0, tasks[i]);
		if (!tasks[i])
			take_turns(buffers[i], pipes[i][0], pipes[i + 1][1]);
	}
	ASSERT_TRUE(open_ring(&ring, &attr, -1, 0, -1));
	attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	attr.disabled = 0;
	attr.read_format = PERF_FORMAT_GROUP;
	beside = perf_open(&attr, -1, 0, ring.fd, 0);
	ASSERT_LE(0, beside);
	ASSERT_TRUE(enable(&ring));
	for (int i = 0; i < TURNS; i++) {
		ASSERT_EQ(1, write(pipes[0][1], &turn, 1));
		ASSERT_EQ(1, read(pipes[TASKS][0], &turn, 1));
	}
	ASSERT_TRUE(disable(&ring));
	ASSERT_TRUE(read_values(ring.fd, &values));
	for (; next_sample(&ring, &sample); all++) {
		int step = sampled_step(&sample, 1);

		for (int i = 0; step >= 0 && i < TASKS; i++) {
			if (sample.registers[PERF_REG_X86_SI] != (unsigned long)buffers[i])
				continue;
			/* This is the instruction before the loop. */
			if (step == WALK_JNZ && sample.registers[PERF_REG_X86_DI] == 200)
				continue;
			samples[i]++;
			wrong += sample.pid != (__u32)tasks[i] || sample.tid != (__u32)tasks[i] ||
				 !are_after(sample.registers, step, 200, buffers[i]);
		}
	}
	for (int i = 0; i < TASKS; i++) {
		EXPECT_EQ(0, kill(tasks[i], SIGKILL));
		EXPECT_EQ(tasks[i], waitpid(tasks[i], NULL, 0));
		/* Each turn may lose or gain a part of a period. */
		EXPECT_LE((TURNS * 200 * WALK_STEPS) / 102 - TURNS, samples[i]);
		EXPECT_GE((TURNS * 200 * WALK_STEPS) / 102 + TURNS, samples[i]);
	}
	TH_LOG("%u samples, %u and %u of the tasks, %llu of %llu counted", all, samples[0],
	       samples[1], values.of[0], values.of[1]);
	EXPECT_EQ(0, wrong);
	EXPECT_NEAR(102, values.of[1], all * 102ULL);
	EXPECT_EQ(values.of[1] - all, values.of[0]);
	EXPECT_EQ(0, ring.throttled + ring.lost_records + ring.lost_samples);
	close(beside);
	close_ring(&ring);
}

/* The periods are distinct, so that records rarely coincide. */
static const unsigned int periods[] = {
	1009, 1013, 1019, 1021, 1031, 1033, 1039, 1049, 1051, 1061
};

#define MOST		((int)ARRAY_SIZE(periods))

/*
 * One group with as many events as there are general-purpose counters with
 * PEBS. From Golden Cove on, all counters except 0 sample instructions; counter 0
 * samples branches, of which a pass has one.
 */
TEST_F(precise_shared, all_counters)
{
	const bool has_branches = cpu_model() >= MODEL_GOLDEN_COVE;
	const int n = precise_counters();
	const unsigned long walked = passes(INSTRUCTIONS, SAMPLES, periods[0]);
	struct ring rings[MOST];
	struct values values;
	int beside;

	ASSERT_GE(MOST, n);
	for (int i = 0; i < n; i++) {
		struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, periods[i],
						       self->max < 2 ? 1 : 2);

		if (has_branches && i == n - 1)
			attr.config = code(BRANCHES);
		if (i)
			attr.disabled = 0;
		ASSERT_TRUE(open_ring(&rings[i], &attr, 0, -1, i ? rings[0].fd : -1)) {
			TH_LOG("event %d of %d: %s", i, n, strerror(errno));
		}
	}
	/* On the fixed counter */
	beside = count_beside(&rings[0], RAW_INSTRUCTIONS);
	ASSERT_LE(0, beside);
	ASSERT_TRUE(enable(&rings[0]));
	walk(walked, buffer);
	ASSERT_TRUE(disable(&rings[0]));
	ASSERT_TRUE(read_values(rings[0].fd, &values));
	for (int i = 0; i < n; i++) {
		const bool is_branches = has_branches && i == n - 1;
		unsigned int samples = count_samples(&rings[i]);
		__u64 all = is_branches ? walked : values.of[n];
		__u64 expected = all / (periods[i] + 1);

		TH_LOG("period %u: %u samples and %u lost of %llu", periods[i], samples,
		       rings[i].lost_samples, expected);
		EXPECT_GE(expected + 1, samples);
		EXPECT_LE(expected - 1, samples + rings[i].lost_samples);
		EXPECT_LE(expected * 3 / 4, samples);
		EXPECT_EQ(0, rings[i].throttled + rings[i].lost_records);
		/*
		 * Before Skylake, the events of coinciding records cannot be
		 * identified.
		 */
		if (cpu_model() >= MODEL_SKYLAKE)
			EXPECT_EQ(0, rings[i].lost_samples);
		if (cpu_model() >= MODEL_SKYLAKE && !is_branches)
			EXPECT_EQ(values.of[n] - samples, values.of[i]);
	}
	close(beside);
	for (int i = 0; i < n; i++)
		close_ring(&rings[i]);
}

/*
 * A group with more precise events than counters with PEBS is refused, even if
 * other counters are free.
 */
TEST_F(precise_shared, one_more_than_counters)
{
	struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, PERIOD, 1);
	const int n = precise_counters();
	int leader = -1;

	if (any_event_is_precise())
		SKIP(return, "a fixed counter also samples instructions");
	attr.read_format = 0;
	for (int i = 0; i < n; i++) {
		int fd = perf_open(&attr, 0, -1, leader, 0);

		ASSERT_LE(0, fd);
		if (leader < 0)
			leader = fd;
		attr.disabled = 0;
	}
	EXPECT_EQ(-1, perf_open(&attr, 0, -1, leader, 0));
	EXPECT_EQ(EINVAL, errno);
	attr.precise_ip = 0;
	EXPECT_LE(0, perf_open(&attr, 0, -1, leader, 0));
}

/* The most occurrences of an event between an overflow and its record. */
#define SKID		16

/* Rotating events keep their periods. */
TEST_F(precise_shared, more_than_counters)
{
	const unsigned long long allowed = on_rpmu() ? 1 : 5;
	struct ring rings[MOST];
	char interval[16];

	ASSERT_TRUE(read_line(MUX_INTERVAL, interval, sizeof(interval)));
	ASSERT_TRUE(write_line(MUX_INTERVAL, "1"));
	for (int i = 0; i < MOST; i++) {
		struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, periods[i],
						       self->max < 2 ? 1 : 2);

		attr.read_format = 0;
		ASSERT_TRUE(open_ring(&rings[i], &attr, 0, -1, -1));
	}
	for (int i = 0; i < MOST; i++)
		ASSERT_TRUE(enable(&rings[i]));
	walk(4000000, buffer);
	for (int i = 0; i < MOST; i++)
		ASSERT_TRUE(disable(&rings[i]));
	for (int i = 0; i < MOST; i++) {
		unsigned int samples = count_samples(&rings[i]);
		__u64 count = 0;

		ASSERT_EQ(sizeof(count), read(rings[i].fd, &count, sizeof(count)));
		TH_LOG("period %u: %u samples and %u lost, %llu counted", periods[i], samples,
		       rings[i].lost_samples, count);
		EXPECT_LE(100, samples);
		/*
		 * With the built-in driver, an event that is stopped between an
		 * overflow and its record loses the record.
		 */
		EXPECT_NEAR((rings[i].lost_samples + allowed) * periods[i] + SKID, count,
			    samples * (__u64)periods[i]);
		if (cpu_model() >= MODEL_SKYLAKE)
			EXPECT_EQ(0, rings[i].lost_samples);
		EXPECT_EQ(0, rings[i].lost_records);
		close_ring(&rings[i]);
	}
	EXPECT_TRUE(write_line(MUX_INTERVAL, interval));
}

#define CYCLES		3

/*
 * Buffered records are sampled when their CPU goes offline. An event of a task
 * has the samples of the walks before, during and after the time offline; an
 * event of a CPU has the samples of the first walk only.
 */
TEST_F(precise_shared, cpu_goes_off_line)
{
	struct perf_event_attr attr = sampling_registers(RAW_INSTRUCTIONS, PERIOD, 1);
	const int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	const unsigned long n = passes(INSTRUCTIONS, SAMPLES, PERIOD);

	if (cpu < 1)
		SKIP(return, "one CPU only");
	for (int i = 0; i < 2 * CYCLES; i++) {
		const bool of_cpu = i & 1;
		unsigned int samples = 0, right = 0;
		struct sample sample;
		struct ring ring;

		ASSERT_TRUE(open_ring(&ring, &attr, of_cpu ? -1 : 0, of_cpu ? cpu : -1, -1));
		ASSERT_TRUE(run_on(cpu));
		ASSERT_TRUE(enable(&ring));
		walk(n, buffer);
		ASSERT_TRUE(run_on(0));
		ASSERT_TRUE(set_cpu_online(cpu, false));
		walk(n, buffer);
		ASSERT_TRUE(set_cpu_online(cpu, true));
		ASSERT_TRUE(run_on(cpu));
		walk(n, buffer);
		ASSERT_TRUE(run_on(0));
		ASSERT_TRUE(disable(&ring));
		for (; next_sample(&ring, &sample); samples++) {
			int step = sampled_step(&sample, 1);

			right += step >= 0 && are_after(sample.registers, step, n, buffer);
		}
		TH_LOG("event of the %s: %u samples, %u right", of_cpu ? "CPU" : "task", samples,
		       right);
		EXPECT_LE((of_cpu ? 1 : 3) * (SAMPLES - 1), right);
		EXPECT_GE((of_cpu ? 1 : 3) * (SAMPLES + 2), samples);
		EXPECT_EQ(0, ring.throttled + ring.lost_records + ring.lost_samples);
		close_ring(&ring);
	}
}

#define WRITE_MSR	"/sys/kernel/tracing/events/msr/write_msr/enable"
#define TRACE		"/sys/kernel/tracing/trace"
#define PEBS_ENABLE	0x3f1
#define GLOBAL_CTRL	0x38f
#define EVENT_SELECT	0x186

/*
 * Nehalem's event selects must be cleared: the driver runs other events for a
 * moment while no event is recorded (step 1 of erratum AAK100).
 */
TEST_F(precise_shared, cleared_event_selects)
{
	struct perf_event_attr attr = sampling(RAW_INSTRUCTIONS, PERIOD, 1);
	struct perf_event_attr other = counting_user(PERF_TYPE_RAW, INTEL_RAW_BRANCHES);
	unsigned int msr, begun = 0, cleared = 0;
	__u64 value, recorded = 0;
	bool clears = false;
	char *line = NULL;
	struct ring ring;
	size_t size = 0;
	FILE *trace;

	if (cpu_model() != MODEL_NEHALEM && cpu_model() != MODEL_WESTMERE)
		SKIP(return, "event selects need not be cleared");
	if (access(WRITE_MSR, W_OK))
		SKIP(return, "no tracepoint msr:write_msr");
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	/* Opening the file for writing clears it. */
	ASSERT_TRUE(write_line(TRACE, ""));
	EXPECT_TRUE(write_line(WRITE_MSR, "1"));
	EXPECT_TRUE(enable(&ring));
	other.disabled = 0;
	for (int i = 0; i < 3; i++) {
		int fd = perf_open_self(&other, -1);

		EXPECT_LE(0, fd);
		close(fd);
		/* Give the next event another event select, which the driver must write. */
		other.config ^= 0x100;
	}
	EXPECT_TRUE(disable(&ring));
	EXPECT_TRUE(write_line(WRITE_MSR, "0"));
	trace = fopen(TRACE, "r");
	ASSERT_NE(NULL, trace);
	while (getline(&line, &size, trace) > 0) {
		const char *text = strstr(line, "write_msr: ");

		if (!text || sscanf(text, "write_msr: %x, value %llx", &msr, &value) != 2)
			continue;
		switch (msr) {
		case PEBS_ENABLE:
			begun += value && !recorded;
			recorded = value;
			break;
		case EVENT_SELECT:
			clears = value == 0x4300b5;
			break;
		case GLOBAL_CTRL:
			if (clears && value) {
				cleared++;
				EXPECT_EQ(0, recorded);
			}
		}
	}
	TH_LOG("recording has begun %u times, cleared %u times", begun, cleared);
	EXPECT_LE(1, begun);
	EXPECT_LE(3, cleared);
	free(line);
	fclose(trace);
	close_ring(&ring);
}

TEST_HARNESS_MAIN
