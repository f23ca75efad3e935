// SPDX-License-Identifier: GPL-2.0
/*
 * Tests suspend to RAM while events count: events of the boot CPU, which stays
 * online, and of tasks.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <time.h>

#include "kselftest_harness.h"
#include "branch_programs.h"
#include "precise_util.h"

#define LOOPS		100000UL
#define MAX_GP		16
#define WAKEALARM	"/sys/class/rtc/rtc0/wakealarm"
#define SLEEP_S		"3"

static bool can_sleep(void)
{
	char states[80];

	return read_line("/sys/power/mem_sleep", states, sizeof(states)) &&
	       strstr(states, "deep") && access(WAKEALARM, W_OK) == 0;
}

/* Suspends the machine; returns after it has resumed. */
static bool sleep_in_ram(void)
{
	return write_line("/sys/power/mem_sleep", "deep") &&
	       write_line(WAKEALARM, "0") &&
	       write_line(WAKEALARM, "+" SLEEP_S) &&
	       write_line("/sys/power/state", "mem");
}

static int open_on_cpu(int cpu)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_BRANCHES);

	attr.disabled = 0;
	attr.pinned = 1;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/*
 * All general-purpose counters are in use, so that nothing but the resume
 * reschedules the CPU's events.
 */
TEST(boot_cpu_counts_on)
{
	unsigned int gp = gp_counters(), i;
	__u64 before[MAX_GP], after;
	int fd[MAX_GP];

	ASSERT_GE(MAX_GP, gp);
	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(run_on(0));
	ASSERT_TRUE(own_counters());
	for (i = 0; i < gp; i++) {
		fd[i] = open_on_cpu(0);
		ASSERT_LE(0, fd[i]);
	}
	branch_loop(LOOPS);
	for (i = 0; i < gp; i++) {
		before[i] = read_value(fd[i]);
		EXPECT_LE(4 * LOOPS, before[i]);
	}
	ASSERT_TRUE(sleep_in_ram());

	branch_loop(LOOPS);
	for (i = 0; i < gp; i++) {
		after = read_value(fd[i]);
		/*
		 * The built-in driver counts the registers' content after the
		 * resume as events.
		 */
		if (on_rpmu()) {
			EXPECT_LE(before[i] + 4 * LOOPS, after);
			EXPECT_GT(before[i] + 100000 * LOOPS, after);
		}
		close(fd[i]);
	}
}

/* The events of the task that suspends the machine are not lost either. */
TEST(sleeper_counts_on)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	__u64 before, after;
	int fd;

	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(run_on(0));
	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	branch_loop(LOOPS);
	before = read_value(fd);
	EXPECT_LE(4 * LOOPS, before);
	ASSERT_TRUE(sleep_in_ram());
	branch_loop(LOOPS);
	after = read_value(fd);
	if (on_rpmu()) {
		EXPECT_LE(before + 4 * LOOPS, after);
		EXPECT_GT(before + 1000 * LOOPS, after);
	}
	close(fd);
}

/* After the resume, no counter reveals an event's count to another task. */
TEST(leaves_nothing_behind)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	unsigned int gp = gp_counters(), fixed = fixed_counters(), i;
	int fd[2], mine;
	void *page;

	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(run_on(0));
	fd[0] = open_on_cpu(0);
	attr.config = RAW_INSTRUCTIONS;
	attr.disabled = 0;
	fd[1] = perf_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd[0]);
	ASSERT_LE(0, fd[1]);
	ASSERT_TRUE(sleep_in_ram());
	branch_loop(LOOPS);
	close(fd[1]);
	close(fd[0]);

	/* Disabled, so that it has no counter. */
	attr.disabled = 1;
	mine = perf_open_self(&attr, -1);
	ASSERT_LE(0, mine);
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, mine, 0);
	ASSERT_NE(MAP_FAILED, page);
	for (i = 0; i < gp; i++)
		EXPECT_EQ(0, rdpmc(i));
	for (i = 0; i < fixed; i++)
		EXPECT_EQ(0, rdpmc(FIXED | i));
	munmap(page, sysconf(_SC_PAGESIZE));
	close(mine);
}

TEST(task_counts_on)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	int fd;

	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(run_on(0));
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	counted_loop(fd, 0, LOOPS);
	ASSERT_TRUE(sleep_in_ram());
	/* No count is lost, and the second loop is counted. */
	counted_loop(fd, 0, LOOPS);
	EXPECT_EQ(2 * LOOP_INSTRUCTIONS(LOOPS), read_value(fd));
	close(fd);
}

/* Branches between two samples, and the number of samples. */
#define BRANCH_PERIOD	100003UL
#define BRANCH_SAMPLES	20U

/*
 * Samples of the task that suspends the machine have branch stacks, according
 * to their event's filter.
 */
TEST(branch_stacks_go_on)
{
	struct perf_event_mmap_page *page;
	struct sample_limits limits;
	unsigned int full;
	int fd, pass;

	if (!branch_records() || cpu_model() == MODEL_NEHALEM || cpu_model() == MODEL_WESTMERE)
		SKIP(return, "this CPU cannot record indirect calls only");
	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(run_on(0));
	ASSERT_TRUE(lift_sample_limits(&limits));
	fd = open_indirect_calls(BRANCH_PERIOD, &page);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	/* Before the suspend, after it, and after the event is enabled again. */
	for (pass = 0; pass < 3; pass++) {
		if (pass == 1) {
			ASSERT_TRUE(sleep_in_ram());
		} else if (pass == 2) {
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
			ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		}
		mix_a(BRANCH_SAMPLES * BRANCH_PERIOD / IN_MIX);
		full = full_of_calls(page, mix_a_branches[2].from);
		/* The built-in driver does not write the registers after the resume. */
		if (pass != 1 || on_rpmu()) {
			EXPECT_LE(BRANCH_SAMPLES * 3 / 4, full) {
				TH_LOG("pass %d", pass);
			}
		}
	}
	close_indirect_calls(fd, page);
	EXPECT_TRUE(put_back_sample_limits(&limits));
}

/*
 * Precise samples of the task that suspends the machine continue, with their
 * registers.
 */
TEST(precise_samples_go_on)
{
	const unsigned long n = passes(INSTRUCTIONS, SAMPLES, PERIOD);
	struct perf_event_attr attr = sampling_registers(RAW_INSTRUCTIONS, PERIOD, 1);
	struct sample_limits limits;
	struct sample sample;
	struct ring ring;
	int pass;

	if (!most_precise())
		SKIP(return, NO_PRECISE);
	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(prepare_precise(&limits));
	if (is_adaptive())
		attr.sample_regs_intr |= XMM;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1, -1));
	ASSERT_TRUE(enable(&ring));
	/* Before the suspend, after it, and after the event is enabled again. */
	for (pass = 0; pass < 3; pass++) {
		unsigned int samples = 0, right = 0;

		if (pass == 1) {
			ASSERT_TRUE(sleep_in_ram());
			/* Samples during the suspend */
			count_samples(&ring);
		} else if (pass == 2) {
			ASSERT_TRUE(disable(&ring));
			ASSERT_TRUE(enable(&ring));
		}
		walk(n, buffer);
		/* Records that are still buffered. */
		ASSERT_TRUE(disable(&ring));
		while (next_sample(&ring, &sample)) {
			int step = sampled_step(&sample, 1);

			samples++;
			right += step >= 0 && are_after(sample.registers, step, n, buffer);
		}
		ASSERT_TRUE(enable(&ring));
		TH_LOG("pass %d: %u samples, %u right", pass, samples, right);
		/*
		 * The built-in driver does not write PEBS_DATA_CFG after the
		 * resume, and discards the records because they lack the
		 * registers.
		 */
		if (on_rpmu() || !pass || !is_adaptive())
			EXPECT_LE(SAMPLES - 2, right);
		EXPECT_GE(SAMPLES + 5, samples);
		EXPECT_EQ(0, ring.throttled + ring.lost_records + ring.lost_samples);
	}
	close_ring(&ring);
	EXPECT_TRUE(put_back_sample_limits(&limits));
}

#define MAX_METRICS	8

/*
 * Slots, and the metrics that share PERF_METRICS with it. They count a CPU,
 * because a task's events are scheduled anew after the resume.
 */
TEST(topdown_counts_on)
{
	const bool has_metrics = cpu_model() == MODEL_GOLDEN_COVE ||
				 cpu_model() == MODEL_REDWOOD_COVE;
	unsigned int nr = cpu_model() == MODEL_ICE_LAKE ? 4 :
			  has_metrics ? 8 : 0, i;
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, 0x0400);
	struct group_count before, after;
	__u64 slots, new, sum = 0;
	int fd[1 + MAX_METRICS];

	if (!nr || fixed_counters() < 4)
		SKIP(return, "this CPU has no PERF_METRICS");
	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(run_on(0));
	/* Keep other programs off this CPU. */
	ASSERT_TRUE(take_cpu(true));
	attr.read_format = READ_GROUP;
	for (i = 0; i <= nr; i++) {
		if (i)
			attr.config = 0x8000 + ((i - 1) << 8);
		attr.disabled = i == 0;
		attr.pinned = i == 0;
		fd[i] = perf_open(&attr, -1, 0, i ? fd[0] : -1, 0);
		ASSERT_LE(0, fd[i]);
	}
	ASSERT_EQ(0, ioctl(fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	branch_loop(10 * LOOPS);
	ASSERT_LT(0, read(fd[0], &before, sizeof(before)));
	ASSERT_TRUE(sleep_in_ram());
	branch_loop(10 * LOOPS);
	ASSERT_LT(0, read(fd[0], &after, sizeof(after)));

	EXPECT_TRUE(take_cpu(false));
	slots = before.event[0].value;
	EXPECT_LT(0, slots);
	/*
	 * The built-in driver counts the registers' content after the resume as
	 * events.
	 */
	if (on_rpmu()) {
		EXPECT_EQ(after.enabled, after.running);
		for (i = 0; i <= nr; i++) {
			/*
			 * The counts of the previous loop, plus some for
			 * suspending tasks.
			 */
			new = after.event[i].value - before.event[i].value;
			EXPECT_LE(before.event[i].value, new + slots / 100);
			EXPECT_GE(before.event[i].value + slots / 20, new);
			/* The four metrics of the first level add up to the slots. */
			if (i > 0 && i <= 4)
				sum += after.event[i].value;
		}
		EXPECT_LE(sum, after.event[0].value + nr);
		EXPECT_GE(sum + slots / 50, after.event[0].value);
	}
	for (i = 0; i <= nr; i++)
		close(fd[nr - i]);
}

TEST(counts_after_sleep)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int cpu, cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!can_sleep())
		SKIP(return, "the machine cannot suspend to RAM and wake up by itself");
	ASSERT_TRUE(sleep_in_ram());
	ASSERT_EQ(cpus, sysconf(_SC_NPROCESSORS_ONLN));
	for (cpu = 0; cpu < cpus; cpu++) {
		int fd = perf_open_self(&attr, -1);

		ASSERT_LE(0, fd);
		ASSERT_TRUE(run_on(cpu));
		counted_loop(fd, 0, LOOPS);
		EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), read_value(fd));
		close(fd);
	}
}

TEST_HARNESS_MAIN
