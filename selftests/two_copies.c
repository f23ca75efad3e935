// SPDX-License-Identifier: GPL-2.0
/*
 * Tests that two programs which count the same six events of a CPU share the
 * counters, as two runs of "perf stat -a" do: with rpmu, neither has less time
 * than one alone. The driver's parameters are the default ones.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

#define COPIES		2
#define EVENTS		USER_EVENTS
/* Thirty rotations, where timers have the resolution of a tick. */
#define TIME_NS		120000000
#define PASSES		4000UL
/* Percentage points between the shares of two runs. */
#define TOLERANCE	3.0

FIXTURE(two_copies)
{
	int fd[COPIES][EVENTS];
	char interval[32];
	int cpu;
};

FIXTURE_SETUP(two_copies)
{
	self->cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	ASSERT_TRUE(run_on(self->cpu));
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
}

FIXTURE_TEARDOWN(two_copies)
{
	take_cpu(false);
	EXPECT_TRUE(write_line(MUX_INTERVAL, self->interval));
}

static void open_copies(struct __test_metadata *_metadata,
			struct _test_data_two_copies *self, int copies, int events)
{
	struct perf_event_attr attr;
	int copy, i;

	for (copy = 0; copy < copies; copy++) {
		for (i = 0; i < events; i++) {
			attr = different_event(i);
			self->fd[copy][i] = perf_open(&attr, -1, self->cpu, -1, 0);
			ASSERT_LE(0, self->fd[copy][i]);
		}
	}
}

static void close_copies(struct _test_data_two_copies *self, int copies, int events)
{
	int copy, i;

	for (copy = 0; copy < copies; copy++)
		for (i = 0; i < events; i++)
			close(self->fd[copy][i]);
}

/* Lets the copies count a loop for some time. Returns its passes. */
static unsigned long count_copies(struct __test_metadata *_metadata, int copies,
				  struct _test_data_two_copies *self,
				  struct one_count count[COPIES][EVENTS])
{
	unsigned long done = 0;
	int copy, i;
	__u64 end;

	open_copies(_metadata, self, copies, EVENTS);
	prctl(PR_TASK_PERF_EVENTS_ENABLE);
	end = now_ns() + TIME_NS;
	do {
		branch_loop(PASSES);
		done += PASSES;
	} while (now_ns() < end);
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
	for (copy = 0; copy < copies; copy++) {
		for (i = 0; i < EVENTS; i++) {
			EXPECT_TRUE(read_one(self->fd[copy][i], &count[copy][i]));
			EXPECT_LT(0, count[copy][i].running);
		}
	}
	close_copies(self, copies, EVENTS);
	return done;
}

/* The count over all the time, estimated from the time in which the event counted. */
static double scaled(const struct one_count *count)
{
	return (double)count->value * count->enabled / count->running;
}

/*
 * The scaled counts are right. On rpmu, each event of both copies has the share of
 * the time that the events of one copy alone have on average, and the copies'
 * counts are the same, unless they count the kernel, too.
 */
TEST_F(two_copies, time)
{
	const bool user_only = may_count_user_alone(gp_counters() - 1);
	struct one_count alone[COPIES][EVENTS], both[COPIES][EVENTS];
	unsigned long passes;
	double share, mean = 0.0;
	int copy, i;

	ASSERT_TRUE(write_line(MUX_INTERVAL, "1"));
	count_copies(_metadata, 1, self, alone);
	passes = count_copies(_metadata, COPIES, self, both);
	for (i = 0; i < EVENTS; i++)
		mean += percent_running(&alone[0][i]) / EVENTS;
	/* Nothing else needs a counter. */
	EXPECT_LE((gp_counters() < EVENTS ? 100.0 * gp_counters() / EVENTS : 100.0) - TOLERANCE,
		  mean);
	for (copy = 0; copy < COPIES; copy++) {
		for (i = 0; i < EVENTS; i++) {
			share = percent_running(&both[copy][i]);
			TH_LOG("copy %d, event %d: %.1f %%, alone %.1f %%; %.3f in each pass",
			       copy, i, share, percent_running(&alone[0][i]),
			       scaled(&both[copy][i]) / passes);
			if (on_rpmu()) {
				EXPECT_LE(mean - TOLERANCE, share);
				if (user_only)
					EXPECT_EQ(both[0][i].value, both[copy][i].value);
			}
			if (!different_per_pass(i))
				continue;
			EXPECT_LT(0.9 * different_per_pass(i) * passes, scaled(&both[copy][i]));
			EXPECT_GT(1.1 * different_per_pass(i) * passes, scaled(&both[copy][i]));
		}
	}
}

static void count_passes(unsigned long n)
{
	/* Hides the number from the compiler: the same code executes for each. */
	asm volatile("" : "+r" (n));
	prctl(PR_TASK_PERF_EVENTS_ENABLE);
	branch_loop(n);
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
}

/*
 * As many events as there are counters count all the time in both copies, and
 * exactly: a second run, equal but for three times as many passes, adds three times
 * the count of the first one.
 */
TEST_F(two_copies, counts)
{
	const int events = gp_counters() < EVENTS ? gp_counters() : EVENTS;
	const bool user_only = may_count_user_alone(gp_counters() - 1);
	struct one_count count[2][COPIES][EVENTS];
	int run, copy, i;

	if (!on_rpmu() && COPIES * events > (int)gp_counters())
		SKIP(return, "the built-in driver does not share counters: too few for two copies");
	open_copies(_metadata, self, COPIES, events);
	ASSERT_TRUE(take_cpu(true));
	for (run = 0; run < 2; run++) {
		count_passes(run ? 3 * PASSES : PASSES);
		for (copy = 0; copy < COPIES; copy++)
			for (i = 0; i < events; i++)
				ASSERT_TRUE(read_one(self->fd[copy][i], &count[run][copy][i]));
	}
	for (copy = 0; copy < COPIES; copy++) {
		for (i = 0; i < events; i++) {
			const struct one_count *first = &count[0][copy][i];
			const struct one_count *second = &count[1][copy][i];
			__u64 passes = 2 * PASSES * different_per_pass(i);

			EXPECT_EQ(second->enabled, second->running);
			if (!user_only)
				continue;
			EXPECT_EQ(count[0][0][i].value, first->value);
			EXPECT_EQ(count[1][0][i].value, second->value);
			if (!passes)
				continue;
			/* Both runs include the instructions outside of the passes. */
			EXPECT_EQ(passes, second->value - 2 * first->value)
				TH_LOG("copy %d, event %d", copy, i);
		}
	}
	close_copies(self, COPIES, events);
}

TEST_HARNESS_MAIN
