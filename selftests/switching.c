// SPDX-License-Identifier: GPL-2.0
/*
 * Tests two tasks that alternate thousands of times on one CPU, each with a group on
 * all fixed and general-purpose counters: each event counts the same as without the
 * other task.
 */
#define _GNU_SOURCE
#include <stddef.h>

#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define YIELDS	5000
#define EVENTS	7

struct counts {
	__u64 nr, enabled, running, value[EVENTS];
};

/* Fixed counters first, then as many general ones as a thread always has. */
static const __u64 events[EVENTS] = {
	RAW_INSTRUCTIONS, 0x003c, 0x0300,
	INTEL_RAW_BRANCHES, INTEL_RAW_BRANCHES, INTEL_RAW_BRANCHES, INTEL_RAW_BRANCHES,
};

/* Without fixed counters, no counter is left for the last event. */
static int nr_events(void)
{
	return fixed_counters() ? EVENTS : EVENTS - 1;
}

/* Counts the yields of a task; the first event also samples if it has a period. */
static bool count_yields(struct counts *counts, __u64 period)
{
	struct perf_event_attr attr;
	const ssize_t size = offsetof(struct counts, value[nr_events()]);
	int i, fd[EVENTS];

	for (i = 0; i < nr_events(); i++) {
		attr = counting_user(PERF_TYPE_RAW, events[i]);
		attr.disabled = i == 0;
		attr.read_format = PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED |
				   PERF_FORMAT_TOTAL_TIME_RUNNING;
		attr.sample_period = i == 0 ? period : 0;
		fd[i] = perf_open_self(&attr, i ? fd[0] : -1);
		if (fd[i] < 0)
			return false;
	}
	counted_syscalls(fd[0], PERF_IOC_FLAG_GROUP, YIELDS, SYS_sched_yield, NULL);
	if (read(fd[0], counts, sizeof(*counts)) != size)
		return false;
	for (i = nr_events(); i--;)
		close(fd[i]);
	return true;
}

FIXTURE(switching)
{
	struct sample_limits limits;
};

FIXTURE_VARIANT(switching)
{
	__u64 period;
};

FIXTURE_VARIANT_ADD(switching, counting)
{
	.period = 0,
};

/* An overflow every 85 yields, of six instructions each. */
FIXTURE_VARIANT_ADD(switching, sampling)
{
	.period = 509,
};

FIXTURE_SETUP(switching)
{
	if (gp_counters() < 4)
		SKIP(return, "too few counters");
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	/* A throttled event does not count. */
	ASSERT_TRUE(lift_sample_limits(&self->limits));
}

FIXTURE_TEARDOWN(switching)
{
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

TEST_F(switching, counts_stay_exact)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct counts alone, counts;
	int i, switches, status;
	pid_t pid;

	attr.disabled = 0;
	ASSERT_TRUE(count_yields(&alone, variant->period));
	EXPECT_EQ(SYSCALLS_INSTRUCTIONS(YIELDS), alone.value[0]);

	pid = fork_helper();
	ASSERT_LE(0, pid);
	switches = perf_open_self(&attr, -1);
	ASSERT_TRUE(count_yields(&counts, variant->period));
	if (pid == 0) {
		for (i = 0; i < nr_events(); i++)
			if (i != 1 && i != 2 && counts.value[i] != alone.value[i])
				_exit(1 + i);
		_exit(0);
	}
	EXPECT_EQ(nr_events(), counts.nr);
	EXPECT_EQ(counts.enabled, counts.running);
	for (i = 0; i < nr_events(); i++) {
		/* A few cycles at the start and the end. */
		if (i == 1 || i == 2)
			continue;
		EXPECT_EQ(alone.value[i], counts.value[i]) {
			TH_LOG("event %d", i);
		}
	}
	TH_LOG("%llu switches", read_value(switches));
	EXPECT_LT(1000, read_value(switches));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
}

TEST_HARNESS_MAIN
