// SPDX-License-Identifier: GPL-2.0
/*
 * Events that corrupt the counter of the same number on the core's other
 * thread: 0xd0 to 0xd3 on Sandy Bridge to Haswell (errata BJ122, BV98, HSD29).
 * The driver gives such an event a counter that the sibling does not use, and
 * never more than half of the counters to a thread while one of the two has
 * such events.
 *
 * Most events here are a CPU's own, so that nothing but the driver decides when
 * they are on a counter. Rotation is put off until after the tests, but for
 * those that are about it.
 *
 * What the built-in driver leaves to be desired is tested on rpmu alone: it
 * accepts groups that never count, and lets an event wait for the next turn
 * when the sibling has freed its counter.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define ALL_LOADS	0x81d0	/* MEM_UOPS_RETIRED.ALL_LOADS: exclusive */
#define ALL_STORES	0x82d0	/* MEM_UOPS_RETIRED.ALL_STORES: exclusive */
#define L1_HIT		0x01d1	/* MEM_LOAD_UOPS_RETIRED.*: exclusive */
#define L1_MISS		0x08d1
#define L2_HIT		0x02d1
#define PENDING		0x0148	/* L1D_PEND_MISS.PENDING: counter 2 alone */

/* Long enough for an interrupt to another CPU and what it does. */
#define AT_ONCE_US	50000
/* Long enough for shares of the time to show, by rotation every 4 ms. */
#define SHARES_US	400000
/* How often to look for what takes time on a busy host. */
#define LOOKS		20
#define RANDOM_STEPS	1000
#define ROUNDS		20

static bool has_erratum(void)
{
	switch (cpu_number()) {
	case 0x2a: /* Sandy Bridge */
	case 0x2d:
	case 0x3a: /* Ivy Bridge */
	case 0x3e:
		return true;
	default:
		return cpu_model() == MODEL_HASWELL;
	}
}

/* CYCLE_ACTIVITY.STALLS_L1D_PENDING: counter 2 alone, too. */
static __u64 stalls_config(void)
{
	return cpu_model() == MODEL_SANDY_BRIDGE ? 0x060006a3 : 0x0c000ca3;
}

/* The two threads of a core. */
FIXTURE(ht_exclusion)
{
	int a, b;
	char interval[32];
};

FIXTURE_SETUP(ht_exclusion)
{
	char line[32], *end;

	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
	if (!has_erratum())
		SKIP(return, "these CPUs do not have the erratum");
	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	self->a = strtol(line, &end, 10);
	if (!*end)
		SKIP(return, "one thread a core");
	self->b = atoi(end + 1);
	/* The test itself elsewhere, if there is another core. */
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) > 2 ? 2 : 0));
	ASSERT_TRUE(forbid_rotation());
}

/* The same, with rotation: by default that is every 4 ms. */
FIXTURE(ht_rotation)
{
	int a, b;
};

FIXTURE_SETUP(ht_rotation)
{
	char line[32], *end;

	if (!has_erratum())
		SKIP(return, "these CPUs do not have the erratum");
	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	self->a = strtol(line, &end, 10);
	if (!*end)
		SKIP(return, "one thread a core");
	self->b = atoi(end + 1);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) > 2 ? 2 : 0));
}

FIXTURE_TEARDOWN(ht_rotation)
{
}

FIXTURE_TEARDOWN(ht_exclusion)
{
	EXPECT_TRUE(set_cpu_online(self->b, true));
	EXPECT_TRUE(allow_rotation(self->interval));
}

static int open_on(int cpu, __u64 config, int leader)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	return perf_open(&attr, -1, cpu, leader, 0);
}

static int open_flexible(int cpu, __u64 config)
{
	return open_on(cpu, config, -1);
}

/* Whether the event is on a counter now. */
static bool runs(int fd)
{
	struct one_count before, after;

	if (!read_one(fd, &before))
		return false;
	usleep(1000);
	return read_one(fd, &after) && after.running > before.running;
}

static bool waits(int fd)
{
	struct one_count before, after;

	return read_one(fd, &before) && usleep(1000) == 0 && read_one(fd, &after) &&
	       after.enabled > before.enabled && after.running == before.running;
}

static int open_pinned(int cpu, __u64 config)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	attr.pinned = 1;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/* An exclusive event on counter 2 of b: 0 and 1 were not to be had for it. */
static int exclusive_on_counter_2(int a, int b, int (*open_exclusive)(int cpu, __u64 config))
{
	int first = open_on(a, RAW_BRANCHES, -1);
	int second = open_on(a, RAW_BRANCHES, -1);
	int exclusive = open_exclusive(b, ALL_LOADS);

	if (!runs(first) || !runs(second) || !runs(exclusive))
		return -1;
	close(first);
	close(second);
	return exclusive;
}

/* {l1_hit,l1_miss,l2_hit,l1d_pend_miss.pending}: three counters are too many. */
TEST_F(ht_exclusion, group_that_never_counts)
{
	const __u64 config[] = { L1_HIT, L1_MISS, L2_HIT, PENDING };
	struct perf_event_attr attr;
	int fd[4], cpu, i, leader;

	for (cpu = -1; cpu <= self->b; cpu += self->b + 1) {
		leader = -1;
		for (i = 0; i < 4; i++) {
			attr = counting_user(PERF_TYPE_RAW, config[i]);
			attr.disabled = 0;
			fd[i] = perf_open(&attr, cpu < 0 ? 0 : -1, cpu, leader, 0);
			if (leader < 0)
				leader = fd[0];
			if (on_rpmu() && i >= 2) {
				EXPECT_EQ(-1, fd[i]);
				EXPECT_EQ(EINVAL, errno);
			} else {
				EXPECT_LE(0, fd[i]);
			}
		}
		for (i = 0; i < 4; i++)
			close(fd[i]);
	}
}

/* Counters 0 to 3 for four events that are not exclusive: no limit on them. */
TEST_F(ht_exclusion, all_counters_without_exclusive_events)
{
	int fd[8], i;

	for (i = 0; i < 8; i++)
		fd[i] = open_on(i < 4 ? self->a : self->b, RAW_BRANCHES, -1);
	for (i = 0; i < 8; i++)
		EXPECT_TRUE(runs(fd[i]));
}

TEST_F(ht_exclusion, half_of_the_counters_each)
{
	int fd[4], third;
	int i;

	for (i = 0; i < 4; i++)
		fd[i] = open_on(i < 2 ? self->a : self->b, ALL_STORES, -1);
	third = open_on(self->b, RAW_BRANCHES, -1);
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(runs(fd[i]));
	EXPECT_TRUE(waits(third));
}

TEST_F(ht_exclusion, waits_for_the_sibling)
{
	int exclusive = exclusive_on_counter_2(self->a, self->b, open_flexible);
	int pending, stalls;

	ASSERT_LE(0, exclusive);
	pending = open_on(self->a, PENDING, -1);
	stalls = open_on(self->a, stalls_config(), -1);
	ASSERT_LE(0, pending);
	ASSERT_LE(0, stalls);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(pending));
	EXPECT_TRUE(waits(stalls));
	EXPECT_TRUE(runs(exclusive));
	close(exclusive);
	if (!on_rpmu())
		return;
	/* There is one counter for the two. */
	usleep(AT_ONCE_US);
	EXPECT_NE(runs(pending), runs(stalls));
}

/* The other way round: the sibling counts something else there. */
TEST_F(ht_exclusion, exclusive_event_waits)
{
	int fd[4], exclusive, i;

	for (i = 0; i < 4; i++)
		fd[i] = open_on(self->a, RAW_BRANCHES, -1);
	exclusive = open_on(self->b, ALL_LOADS, -1);
	ASSERT_LE(0, exclusive);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(exclusive));
	close(fd[3]);
	if (!on_rpmu())
		return;
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(exclusive));
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(runs(fd[i]));
}

/* Whether a pinned event is in the error state: nothing can be read of it. */
static bool in_error(int fd)
{
	struct one_count count;

	return read(fd, &count, sizeof(count)) == 0;
}

/*
 * The perf core leaves a pinned event that did not fit in the error state. If
 * it was the sibling that was in its way, it gets its counter when that is free.
 */
TEST_F(ht_exclusion, pinned_event_waits)
{
	int exclusive = exclusive_on_counter_2(self->a, self->b, open_pinned);
	int pending, closed, i;
	struct one_count count;

	ASSERT_LE(0, exclusive);
	pending = open_pinned(self->a, PENDING);
	closed = open_pinned(self->a, PENDING);
	EXPECT_TRUE(in_error(pending));
	EXPECT_TRUE(in_error(closed));
	close(closed);
	close(exclusive);
	usleep(AT_ONCE_US);
	if (!on_rpmu()) {
		EXPECT_TRUE(in_error(pending));
		return;
	}
	EXPECT_TRUE(runs(pending));
	/* What was missed shows. */
	ASSERT_TRUE(read_one(pending, &count));
	EXPECT_LT(count.running, count.enabled);
	for (i = 0; i < 3; i++) {
		close(pending);
		exclusive = exclusive_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, exclusive);
		pending = open_pinned(self->a, PENDING);
		EXPECT_TRUE(in_error(pending));
		close(exclusive);
		usleep(AT_ONCE_US / 10);
		EXPECT_TRUE(runs(pending));
	}
}

/* What takes turns on the sibling makes way for it, at once. */
TEST_F(ht_exclusion, pinned_event_goes_first)
{
	int exclusive = exclusive_on_counter_2(self->a, self->b, open_flexible);
	int pending;

	ASSERT_LE(0, exclusive);
	pending = open_pinned(self->a, PENDING);
	usleep(AT_ONCE_US);
	if (!on_rpmu()) {
		EXPECT_TRUE(in_error(pending));
		return;
	}
	EXPECT_TRUE(runs(pending));
	/* It has another counter. */
	EXPECT_TRUE(runs(exclusive));
}

/* Disables the event in one of the ways that there are; prctl() disables others too. */
#define WAYS_TO_DISABLE	3

static int disable(int fd, int way)
{
	switch (way) {
	case 0:
		return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	case 1:
		return ioctl(fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	default:
		return prctl(PR_TASK_PERF_EVENTS_DISABLE);
	}
}

/*
 * One that is disabled while it waits stays disabled when its counter is free.
 * One that is enabled again waits again.
 */
TEST_F(ht_exclusion, disabled_pinned_event_stays_disabled)
{
	int exclusive, pending, way;

	for (way = 0; way < WAYS_TO_DISABLE; way++) {
		exclusive = exclusive_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, exclusive);
		pending = open_pinned(self->a, PENDING);
		EXPECT_TRUE(in_error(pending));
		ASSERT_EQ(0, disable(pending, way));
		close(exclusive);
		usleep(AT_ONCE_US);
		EXPECT_FALSE(runs(pending)) TH_LOG("way %d", way);
		ASSERT_EQ(0, ioctl(pending, PERF_EVENT_IOC_ENABLE, 0));
		EXPECT_TRUE(runs(pending)) TH_LOG("way %d", way);
		close(pending);

		exclusive = exclusive_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, exclusive);
		pending = open_pinned(self->a, PENDING);
		ASSERT_EQ(0, disable(pending, way));
		close(exclusive);
		exclusive = exclusive_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, exclusive);
		ASSERT_EQ(0, way < 2 ? ioctl(pending, PERF_EVENT_IOC_ENABLE, 0) :
			  prctl(PR_TASK_PERF_EVENTS_ENABLE));
		EXPECT_TRUE(in_error(pending)) TH_LOG("way %d", way);
		close(exclusive);
		usleep(AT_ONCE_US);
		EXPECT_EQ(on_rpmu(), runs(pending)) TH_LOG("way %d", way);
		close(pending);
	}
}

/* One that is tried again does so only where it does no harm to others. */
TEST_F(ht_exclusion, pinned_event_drives_nobody_out)
{
	int exclusive[2], waiting[2], pinned;

	exclusive[0] = exclusive_on_counter_2(self->a, self->b, open_pinned);
	ASSERT_LE(0, exclusive[0]);
	exclusive[1] = open_pinned(self->b, ALL_STORES);
	ASSERT_TRUE(runs(exclusive[1]));
	waiting[0] = open_pinned(self->a, PENDING);
	waiting[1] = open_pinned(self->a, PENDING);
	pinned = open_pinned(self->a, RAW_BRANCHES);
	EXPECT_TRUE(in_error(waiting[0]));
	EXPECT_TRUE(in_error(waiting[1]));
	ASSERT_TRUE(runs(pinned));

	/* Not the counter that is waited for. */
	close(exclusive[1]);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(in_error(waiting[0]));
	EXPECT_TRUE(runs(pinned));

	/* Enough for one of the two. */
	close(exclusive[0]);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(pinned));
	if (!on_rpmu())
		return;
	EXPECT_TRUE(runs(waiting[0]));
	EXPECT_TRUE(in_error(waiting[1]));
}

/* For how long it has run, in ns; nothing can be read of it in the error state. */
static __u64 running(int fd)
{
	struct one_count count;

	return read_one(fd, &count) ? count.running : 0;
}

/*
 * Starts a child that inherits the events and runs on the CPU all the time, and
 * waits until it is there. The child has no use for the exclusive event.
 */
static pid_t run_child_on(int cpu, int exclusive)
{
	int there[2];
	pid_t child;
	char byte;

	if (pipe(there))
		return -1;
	child = fork_helper();
	if (!child) {
		close(exclusive);
		if (!run_on(cpu) || write(there[1], "", 1) != 1)
			_exit(1);
		for (;;)
			branch_loop(100000);
	}
	close(there[1]);
	if (read(there[0], &byte, 1) != 1)
		child = -1;
	close(there[0]);
	return child;
}

/*
 * Whether the child's event comes to run, or to wait. The child runs all the
 * time and its parent hardly ever, unless the host stops the parent's CPU: so
 * this takes several looks.
 */
static bool comes_to(int fd, bool run)
{
	__u64 before;
	int look;

	for (look = 0; look < LOOKS; look++) {
		before = running(fd);
		usleep(AT_ONCE_US);
		if ((running(fd) - before > AT_ONCE_US * 1000 / 2) == run)
			return true;
	}
	return false;
}

/*
 * A child's event, which it has inherited, is looked at for itself. (Which of
 * the two is the child's can change: the perf core swaps the contexts.)
 */
TEST_F(ht_exclusion, inherited_pinned_event_waits)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, PENDING);
	int exclusive = exclusive_on_counter_2(self->a, self->b, open_pinned);
	pid_t child;
	int fd;

	ASSERT_LE(0, exclusive);
	attr.disabled = 0;
	attr.pinned = 1;
	attr.inherit = 1;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	child = run_child_on(self->a, exclusive);
	ASSERT_LT(0, child);
	EXPECT_TRUE(comes_to(fd, false));
	close(exclusive);
	if (on_rpmu())
		EXPECT_TRUE(comes_to(fd, true));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Disabling an event that was inherited disables the child's, which waits. */
TEST_F(ht_exclusion, disabled_inherited_pinned_event_stays_disabled)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, PENDING);
	int exclusive = exclusive_on_counter_2(self->a, self->b, open_pinned);
	__u64 before;
	pid_t child;
	int fd;

	ASSERT_LE(0, exclusive);
	attr.disabled = 0;
	attr.pinned = 1;
	attr.inherit = 1;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	child = run_child_on(self->a, exclusive);
	ASSERT_LT(0, child);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	before = running(fd);
	close(exclusive);
	usleep(AT_ONCE_US);
	EXPECT_EQ(before, running(fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(comes_to(fd, true));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* A thread that goes takes its claims with it, and brings none when it comes. */
TEST_F(ht_exclusion, sibling_goes_and_comes)
{
	int exclusive, pending, fd[4], i;

	if (!on_rpmu())
		SKIP(return, "the built-in driver waits for the next turn");
	exclusive = exclusive_on_counter_2(self->a, self->b, open_flexible);
	ASSERT_LE(0, exclusive);
	pending = open_on(self->a, PENDING, -1);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(pending));

	ASSERT_TRUE(set_cpu_online(self->b, false));
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(pending));
	/* Alone in the core, without limits. */
	for (i = 0; i < 3; i++)
		fd[i] = open_on(self->a, ALL_LOADS, -1);
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(runs(fd[i]));
		close(fd[i]);
	}
	close(pending);

	ASSERT_TRUE(set_cpu_online(self->b, true));
	close(exclusive);
	exclusive = exclusive_on_counter_2(self->a, self->b, open_flexible);
	ASSERT_LE(0, exclusive);
	pending = open_on(self->a, PENDING, -1);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(pending));
	close(exclusive);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(pending));
}

/*
 * Events come and go on both threads, more than fit. When all have gone, both
 * threads can have all they could have at first: nothing is left behind.
 */
TEST_F(ht_exclusion, nothing_is_left_behind)
{
	static const __u64 config[] = {
		ALL_LOADS, ALL_STORES, L1_HIT, L1_MISS, PENDING, RAW_BRANCHES,
		0x01c4, RAW_INSTRUCTIONS,
	};
	int fd[2][6], thread, i, step;

	memset(fd, -1, sizeof(fd));
	srand(1);
	for (step = 0; step < RANDOM_STEPS; step++) {
		thread = rand() % 2;
		i = rand() % 6;
		if (fd[thread][i] >= 0) {
			close(fd[thread][i]);
			fd[thread][i] = -1;
		} else {
			fd[thread][i] = open_on(thread ? self->b : self->a,
						config[rand() % ARRAY_SIZE(config)], -1);
			ASSERT_LE(0, fd[thread][i]);
		}
	}
	for (thread = 0; thread < 2; thread++)
		for (i = 0; i < 6; i++)
			if (fd[thread][i] >= 0)
				close(fd[thread][i]);

	for (i = 0; i < 4; i++) {
		fd[0][i] = open_on(self->a, RAW_BRANCHES, -1);
		fd[1][i] = open_on(self->b, RAW_BRANCHES, -1);
		EXPECT_TRUE(runs(fd[0][i]));
		EXPECT_TRUE(runs(fd[1][i]));
	}
	for (i = 0; i < 4; i++) {
		close(fd[0][i]);
		close(fd[1][i]);
	}
	for (i = 0; i < 2; i++) {
		fd[0][i] = open_on(self->a, ALL_LOADS, -1);
		fd[1][i] = open_on(self->b, ALL_LOADS, -1);
		EXPECT_TRUE(runs(fd[0][i]));
		EXPECT_TRUE(runs(fd[1][i]));
	}
}

/*
 * A task on one thread counts its branches to the last one while the other
 * thread counts loads that it has plenty of. ht_workaround.sh shows that this
 * fails without the work-around.
 */
TEST_F(ht_exclusion, counts_are_right)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int exclusive, fd[2], i, round;
	__u64 expected = 0;
	pid_t noise = fork_helper();

	if (!noise) {
		run_on(self->b);
		for (;;)
			branch_loop(100000);
	}
	exclusive = open_on(self->b, ALL_LOADS, -1);
	ASSERT_LE(0, exclusive);
	ASSERT_TRUE(run_on(self->a));
	for (i = 0; i < 2; i++) {
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (round = 0; round < ROUNDS; round++) {
		expected += LOOP_BRANCHES(100000);
		for (i = 0; i < 2; i++)
			counted_loop(fd[i], 0, 100000);
	}
	EXPECT_TRUE(runs(exclusive));
	for (i = 0; i < 2; i++) {
		/* Whether the last SYSCALL is a branch is for the CPU to say. */
		EXPECT_LE(expected, read_value(fd[i]));
		EXPECT_GE(expected + ROUNDS, read_value(fd[i]));
	}
	kill(noise, SIGKILL);
	waitpid(noise, NULL, 0);
}

/* What an event was on a counter from one reading to the next, in percent. */
static double share_since(int fd, const struct one_count *before)
{
	struct one_count now;

	if (!read_one(fd, &now))
		return -1;
	now.enabled -= before->enabled;
	now.running -= before->running;
	return percent_running(&now);
}

/*
 * A thread that rotates more events than it has counters lets the sibling have
 * an exclusive one, and has all of its own counted. At best each has 50 % beside
 * six others, 57 % beside five. On the built-in driver the exclusive one has
 * 100 %, and corrupts what the others count.
 */
static void beside_rotation(struct __test_metadata *_metadata, int a, int b, int others)
{
	struct one_count before[7];
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, ALL_LOADS);
	int fd[7], i;
	double share;

	for (i = 0; i < others; i++) {
		fd[i] = open_on(a, RAW_BRANCHES, -1);
		ASSERT_LE(0, fd[i]);
	}
	usleep(AT_ONCE_US);
	attr.disabled = 0;
	fd[others] = perf_open(&attr, -1, b, -1, 0);
	ASSERT_LE(0, fd[others]);
	usleep(AT_ONCE_US);
	for (i = 0; i <= others; i++)
		ASSERT_TRUE(read_one(fd[i], &before[i]));
	usleep(SHARES_US);
	for (i = 0; i <= others; i++) {
		share = share_since(fd[i], &before[i]);
		TH_LOG("%s beside %d: %.1f %%", i < others ? "any" : "exclusive", others, share);
		EXPECT_LE(30.0, share);
		close(fd[i]);
	}
}

TEST_F(ht_rotation, share_beside_rotation)
{
	beside_rotation(_metadata, self->a, self->b, 6);
	beside_rotation(_metadata, self->a, self->b, 5);
	beside_rotation(_metadata, self->b, self->a, 6);
}

/* As perf stat -a -A opens them: two exclusive events and four others on both threads. */
TEST_F(ht_rotation, share_on_both_threads)
{
	const __u64 config[] = { ALL_LOADS, ALL_STORES, 0x01c4, 0x02c4, 0x08c4, 0x20c4 };
	struct one_count before[12];
	int fd[12], i;
	double share;

	for (i = 0; i < 12; i++) {
		fd[i] = open_on(i % 2 ? self->b : self->a, config[i / 2], -1);
		ASSERT_LE(0, fd[i]);
	}
	usleep(AT_ONCE_US);
	for (i = 0; i < 12; i++)
		ASSERT_TRUE(read_one(fd[i], &before[i]));
	usleep(SHARES_US);
	for (i = 0; i < 12; i++) {
		share = share_since(fd[i], &before[i]);
		TH_LOG("%#llx on CPU %d: %.1f %%", config[i / 2], i % 2 ? self->b : self->a, share);
		EXPECT_LE(25.0, share);
	}
}

/* A pinned event keeps its counter whatever the sibling waits for. */
TEST_F(ht_rotation, pinned_event_makes_no_way)
{
	int pinned[2], exclusive[2], fd[4], i;
	struct one_count before[2];

	pinned[0] = open_pinned(self->a, RAW_BRANCHES);
	pinned[1] = open_pinned(self->a, PENDING);
	for (i = 0; i < 4; i++)
		fd[i] = open_on(self->a, RAW_BRANCHES, -1);
	for (i = 0; i < 2; i++) {
		exclusive[i] = open_on(self->b, ALL_LOADS, -1);
		ASSERT_TRUE(read_one(pinned[i], &before[i]));
	}
	usleep(SHARES_US);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(100.0, share_since(pinned[i], &before[i]));
		if (on_rpmu())
			EXPECT_LE(1, running(exclusive[i]));
	}
	if (!on_rpmu())
		return;
	for (i = 0; i < 4; i++)
		EXPECT_LE(1, running(fd[i]));
}

/* What changes hands all the time is counted to the last: scaled, it is what there was. */
TEST_F(ht_rotation, counts_beside_rotation)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	const unsigned long passes = 12000000;
	int fd[6], exclusive, i;
	struct one_count count;
	pid_t noise;
	double part, parts = 0, running = 0;

	if (!on_rpmu())
		SKIP(return, "the exclusive event corrupts the others' counts");
	noise = fork_helper();
	if (!noise) {
		run_on(self->b);
		for (;;)
			memory_loop(100000);
	}
	ASSERT_TRUE(run_on(self->a));
	exclusive = open_on(self->b, ALL_LOADS, -1);
	attr.disabled = 0;
	for (i = 0; i < 6; i++) {
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	branch_loop(passes);
	for (i = 0; i < 6; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		part = 100.0 * count.value / (4.0 * passes);
		TH_LOG("%.1f %% of the branches in %.1f %% of the time", part,
		       percent_running(&count));
		EXPECT_LE(30.0, percent_running(&count));
		/* Nor do they go by at the same rate all the time. */
		EXPECT_LE(0.85 * percent_running(&count), part);
		EXPECT_GE(1.15 * percent_running(&count), part);
		parts += part;
		running += percent_running(&count);
	}
	EXPECT_LE(0.95 * running, parts);
	EXPECT_GE(1.05 * running, parts);
	ASSERT_TRUE(read_one(exclusive, &count));
	EXPECT_LE(25.0, percent_running(&count));
	kill(noise, SIGKILL);
	waitpid(noise, NULL, 0);
}

/*
 * One thread alone has ten events: three that would corrupt its sibling's
 * counts, one for counter 2 and six for any. The event that has least and all
 * of them together have no less than the built-in driver gives them, 20 % and
 * 320 %. (It gives 329 % in all, but to the events that corrupt 79 %. With these
 * a thread has no more than two counters, so of its 400 % no more than 321 % are
 * left: it sometimes has more counters than it may.)
 */
#define TEN_EVENTS_S		2
#define TEN_EVENTS_LEAST	20.0	/* percent */
#define TEN_EVENTS_TOTAL	320.0

FIXTURE(ht_ten_events)
{
	int cpu;
};

FIXTURE_VARIANT(ht_ten_events)
{
	bool of_the_cpu;
};

FIXTURE_VARIANT_ADD(ht_ten_events, cpu)
{
	.of_the_cpu = true,
};

FIXTURE_VARIANT_ADD(ht_ten_events, task)
{
	.of_the_cpu = false,
};

FIXTURE_SETUP(ht_ten_events)
{
	char line[32];

	if (!has_erratum() || cpu_model() != MODEL_HASWELL)
		SKIP(return, "these are events of Haswell");
	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	if (!strpbrk(line, ",-"))
		SKIP(return, "one thread a core");
	ASSERT_TRUE(run_on(self->cpu));
}

FIXTURE_TEARDOWN(ht_ten_events)
{
}

TEST_F(ht_ten_events, shares)
{
	const __u64 config[] = {
		0x00c4, 0x01c4, 0x02c4, 0x08c4, 0x20c4,	/* BR_INST_RETIRED.* */
		0xff24,					/* L2_RQSTS.REFERENCES */
		L1_HIT, L2_HIT, 0x04d1,			/* MEM_LOAD_UOPS_RETIRED.* */
		PENDING,
	};
	double share, least = 100.0, total = 0;
	struct one_count count;
	int fd[10], i;

	for (i = 0; i < 10; i++) {
		struct perf_event_attr attr = counting(PERF_TYPE_RAW, config[i]);

		attr.disabled = 0;
		fd[i] = variant->of_the_cpu ? perf_open(&attr, -1, self->cpu, -1, 0) :
					      perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	do {
		branch_loop(100000);
		ASSERT_TRUE(read_one(fd[0], &count));
	} while (count.enabled < TEN_EVENTS_S * 1000000000ULL);
	for (i = 0; i < 10; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		share = percent_running(&count);
		TH_LOG("%#llx: %.2f %%", config[i], share);
		if (share < least)
			least = share;
		total += share;
	}
	TH_LOG("at least %.2f %%, %.2f %% in all", least, total);
	if (on_rpmu()) {
		EXPECT_LE(TEN_EVENTS_LEAST, least);
		EXPECT_LE(TEN_EVENTS_TOTAL, total);
	}
	for (i = 0; i < 10; i++)
		close(fd[i]);
}

/* Without a sibling nothing limits a thread. */
TEST(one_thread_a_core)
{
	const __u64 config[] = { L1_HIT, L1_MISS, L2_HIT, PENDING };
	struct perf_event_attr attr;
	char line[32];
	int fd[4], i;

	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	if (!has_erratum() || strpbrk(line, ",-"))
		SKIP(return, "not these CPUs, or two threads a core");
	for (i = 0; i < 4; i++) {
		attr = counting(PERF_TYPE_RAW, config[i]);
		attr.disabled = 0;
		fd[i] = perf_open_self(&attr, i ? fd[0] : -1);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_TRUE(runs(fd[0]));
}

TEST_HARNESS_MAIN
