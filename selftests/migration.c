// SPDX-License-Identifier: GPL-2.0
/*
 * Tests a task that moves from CPU to CPU with an event of instructions, and one of
 * branches on each general-purpose counter. Each event counts each instruction or
 * branch of the task once, on any CPU. With inherit, the same holds for the task's
 * children, which start on one CPU and end on another.
 */
#define _GNU_SOURCE
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define MOVES		60
#define LOOPS		1000UL
#define RUNS		3
#define CHILDREN	2

FIXTURE(migration)
{
	int fd[MAX_GROUP];
	bool user_alone[MAX_GROUP];
	int nr;
};

FIXTURE_VARIANT(migration)
{
	bool inherit;
};

FIXTURE_VARIANT_ADD(migration, task)
{
	.inherit = false,
};

FIXTURE_VARIANT_ADD(migration, children)
{
	.inherit = true,
};

/*
 * The first event counts instructions, on a fixed counter if there is one; the
 * others count branches.
 */
FIXTURE_SETUP(migration)
{
	const int counters = gp_counters() + (fixed_counters() > 0);
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU only");
	attr.inherit = variant->inherit;
	for (self->nr = 0; self->nr < counters; self->nr++) {
		ASSERT_GT(MAX_GROUP, self->nr);
		attr.exclude_kernel = !self->nr || may_count_user_alone(self->nr - 1);
		self->user_alone[self->nr] = attr.exclude_kernel;
		self->fd[self->nr] = perf_open_self(&attr, -1);
		ASSERT_LE(0, self->fd[self->nr]);
		attr.config = RAW_BRANCHES;
	}
}

FIXTURE_TEARDOWN(migration)
{
}

static bool moves(void)
{
	int cpus = sysconf(_SC_NPROCESSORS_ONLN), move;

	for (move = 0; move < MOVES; move++) {
		unsigned long n = LOOPS;
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(move % cpus, &set);
		if (sched_setaffinity(0, sizeof(set), &set))
			return false;
		asm volatile("1:\n\tdec %[n]\n\tjnz 1b" : [n] "+r" (n) : : "cc");
	}
	return true;
}

/* Executes moves() in children or in this task. */
static bool moves_in(bool children)
{
	int child, status;

	if (!children)
		return moves();
	for (child = 0; child < CHILDREN; child++) {
		pid_t pid = fork();

		if (pid == 0)
			_exit(moves() ? 0 : 1);
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
			return false;
	}
	return true;
}

TEST_F(migration, counts_once)
{
	const __u64 loops = MOVES * LOOPS * (variant->inherit ? CHILDREN : 1);
	__u64 first[MAX_GROUP], last[MAX_GROUP] = {};
	int run, i;

	/* A task may execute more instructions in the first run. */
	ASSERT_TRUE(moves_in(variant->inherit));
	for (run = 0; run < RUNS; run++) {
		for (i = 0; i < self->nr; i++)
			ASSERT_EQ(0, ioctl(self->fd[i], PERF_EVENT_IOC_ENABLE, 0));
		ASSERT_TRUE(moves_in(variant->inherit));
		for (i = 0; i < self->nr; i++)
			ASSERT_EQ(0, ioctl(self->fd[i], PERF_EVENT_IOC_DISABLE, 0));
		for (i = 0; i < self->nr; i++) {
			struct one_count count;

			ASSERT_TRUE(read_one(self->fd[i], &count));
			EXPECT_EQ(count.enabled, count.running);
			count.value -= last[i];
			if (run == 0)
				first[i] = count.value;
			/* The kernel's part varies. */
			if (self->user_alone[i])
				EXPECT_EQ(first[i], count.value);
			EXPECT_LE(loops, count.value);
			last[i] += count.value;
		}
		EXPECT_LE(2 * loops, first[0]);
	}
}

TEST_HARNESS_MAIN
