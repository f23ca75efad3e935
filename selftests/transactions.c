// SPDX-License-Identifier: GPL-2.0
/*
 * Tests counter 3 on CPUs where TSX also uses it (TSX_FORCE_ABORT): events may
 * use it while transactions are forced to abort, which allow_tsx_force_abort in
 * sysfs permits. An emulated PMU with this defect corrupts the counter all the
 * time unless transactions abort.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define ALLOW		CPU_PMU "/allow_tsx_force_abort"

#define COUNTERS	4
#define AT_ONCE_US	50000
#define PASSES		2000000UL
#define BRANCHES	4	/* in a pass of branch_loop() */

static bool has_tfa(void)
{
	unsigned int eax, ebx, ecx, edx;

	return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) &&
	       (edx & (1 << 13)) && !(edx & (1 << 11));
}

FIXTURE(transactions)
{
	char interval[32];
};

FIXTURE_SETUP(transactions)
{
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
	if (!has_tfa() || gp_counters() != COUNTERS)
		SKIP(return, "counter 3 has no other use, or is not the last");
	ASSERT_TRUE(run_on(0));
	ASSERT_TRUE(forbid_rotation());
}

FIXTURE_TEARDOWN(transactions)
{
	EXPECT_TRUE(allow_rotation(self->interval));
	if (has_tfa())
		EXPECT_TRUE(write_line(ALLOW, "1"));
}

static int open_cpu_event(int cpu)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);

	attr.disabled = 0;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/* Returns how many of the events are on a counter now. */
static int running(const int *fd)
{
	struct one_count before[COUNTERS], after;
	int i, n = 0;

	for (i = 0; i < COUNTERS; i++)
		if (!read_one(fd[i], &before[i]))
			return -1;
	usleep(1000);
	for (i = 0; i < COUNTERS; i++)
		n += read_one(fd[i], &after) && after.running > before[i].running;
	return n;
}

TEST(only_where_it_is_needed)
{
	EXPECT_EQ(has_tfa(), access(ALLOW, F_OK) == 0);
}

TEST_F(transactions, values)
{
	char now[8];

	ASSERT_TRUE(read_line(ALLOW, now, sizeof(now)));
	EXPECT_STREQ("1", now);
	EXPECT_FALSE(write_line(ALLOW, "perhaps"));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_TRUE(write_line(ALLOW, "off"));
	ASSERT_TRUE(read_line(ALLOW, now, sizeof(now)));
	EXPECT_STREQ("0", now);
	EXPECT_TRUE(write_line(ALLOW, "y"));
	ASSERT_TRUE(read_line(ALLOW, now, sizeof(now)));
	EXPECT_STREQ("1", now);
}

/*
 * 0 takes away the fourth event's counter at once. 1 gives it back, on rpmu at once,
 * on the built-in driver at the next rotation.
 */
TEST_F(transactions, at_once)
{
	int cpu, i, round, last = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	int fd[2][COUNTERS];

	for (cpu = 0; cpu < 2; cpu++)
		for (i = 0; i < COUNTERS; i++) {
			fd[cpu][i] = open_cpu_event(cpu ? last : 0);
			ASSERT_LE(0, fd[cpu][i]);
		}
	for (round = 0; round < 3; round++) {
		for (cpu = 0; cpu < 2; cpu++)
			EXPECT_EQ(COUNTERS, running(fd[cpu]));
		ASSERT_TRUE(write_line(ALLOW, "0"));
		for (cpu = 0; cpu < 2; cpu++)
			EXPECT_EQ(COUNTERS - 1, running(fd[cpu]));
		ASSERT_TRUE(write_line(ALLOW, "1"));
		if (!on_rpmu())
			break;
	}
}

/*
 * A pinned event that has lost its counter to TSX also gets it back. Meanwhile
 * it is in the error state, and cannot be read.
 */
TEST_F(transactions, pinned)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd[COUNTERS], i, round, in_error;
	struct one_count count;

	attr.disabled = 0;
	attr.pinned = 1;
	for (i = 0; i < COUNTERS; i++) {
		fd[i] = perf_open(&attr, -1, 0, -1, 0);
		ASSERT_LE(0, fd[i]);
	}
	for (round = 0; round < 3; round++) {
		EXPECT_EQ(COUNTERS, running(fd));
		ASSERT_TRUE(write_line(ALLOW, "0"));
		usleep(AT_ONCE_US);
		for (i = 0, in_error = 0; i < COUNTERS; i++)
			in_error += !read_one(fd[i], &count);
		EXPECT_EQ(1, in_error);
		ASSERT_TRUE(write_line(ALLOW, "1"));
		usleep(AT_ONCE_US);
		if (!on_rpmu())
			break;
	}
}

/* A group that needs the counter is refused while it is not available. */
TEST_F(transactions, group)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd[COUNTERS], i;

	attr.disabled = 0;
	ASSERT_TRUE(write_line(ALLOW, "0"));
	for (i = 0; i < COUNTERS; i++)
		fd[i] = perf_open_self(&attr, i ? fd[0] : -1);
	EXPECT_LE(0, fd[COUNTERS - 2]);
	EXPECT_EQ(-1, fd[COUNTERS - 1]);
	ASSERT_TRUE(write_line(ALLOW, "1"));
	EXPECT_LE(0, perf_open_self(&attr, fd[0]));
}

/*
 * While the permission changes all the time, events that never wait count every
 * branch, and no event counts more than all branches.
 */
TEST_F(transactions, counts_are_right)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd[COUNTERS], i, always = 0, cpus = sysconf(_SC_NPROCESSORS_ONLN);
	const __u64 all = BRANCHES * PASSES;
	struct one_count count;
	pid_t switcher = fork_helper();

	if (!switcher) {
		run_on(cpus - 1);
		for (i = 0;; i++) {
			write_line(ALLOW, i % 2 ? "1" : "0");
			usleep(3000);
		}
	}
	/* Wait until it has left this CPU and changed the permission. */
	usleep(20000);
	attr.disabled = 0;
	for (i = 0; i < COUNTERS; i++) {
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	branch_loop(PASSES);
	for (i = 0; i < COUNTERS; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		TH_LOG("%.1f %%, %llu of %llu", percent_running(&count), count.value, all);
		/* Opening and reading the events takes some branches, too. */
		EXPECT_GE(all + 100000, count.value);
		if (count.running < count.enabled)
			continue;
		always++;
		EXPECT_LE(all, count.value);
	}
	EXPECT_EQ(COUNTERS - 1, always);
	kill(switcher, SIGKILL);
	waitpid(switcher, NULL, 0);
}

TEST_HARNESS_MAIN
