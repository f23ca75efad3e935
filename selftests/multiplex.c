// SPDX-License-Identifier: GPL-2.0
/*
 * Tests more events than counters: the perf core rotates them, the driver places
 * the events that fit, and their shares of the time match the number of counters.
 *
 * A share is measured in two ways, over MIN_INTERVALS rotation intervals of the
 * task's own time and with a tolerance of TOLERANCE percentage points:
 *
 *	work	the event's count relative to the known number of events
 *	time	time_running relative to time_enabled, as perf stat prints it
 *
 * A busy host stops an emulated CPU for a while, but not the guest's clock: the
 * running time of the events that are on counters grows without any work. The
 * tolerance for work therefore stays the same. The lost time is spread over all
 * events, and only its uneven part changes the shares of time: their tolerance
 * grows by TAKEN_PART of the lost time. If a share is wrong and the host was
 * busy, the measurement continues, up to MAX_ROUNDS times as long; a systematic
 * error does not go away.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define MUX_MS		4
#define MIN_INTERVALS	130
#define MIN_TIME_NS	((__u64)MIN_INTERVALS * MUX_MS * 1000000)
#define MAX_ROUNDS	8
#define TOLERANCE	3.0	/* percentage points */
#define TAKEN_PART	0.2
#define PASSES		50000UL	/* between two readings of the clock */
#define SWITCHED	5.0	/* percentage points, for tasks that are switched often */

/* CONDITIONAL; from Ice Lake on it is 0x11c4, and 0x01c4 is COND_TAKEN. */
#define CONDITIONAL	0x01c4

/* BR_INST_RETIRED: six umasks that every general-purpose counter can count. */
static const struct {
	__u64 config;
	unsigned int per_pass;
} branch_event[] = {
	{ 0x00c4, 4 },	/* ALL_BRANCHES */
	{ CONDITIONAL, 2 },
	{ 0x02c4, 1 },	/* NEAR_CALL */
	{ 0x08c4, 1 },	/* NEAR_RETURN */
	{ 0x10c4, 1 },	/* NOT_TAKEN */
	{ 0x20c4, 3 },	/* NEAR_TAKEN */
};

/* AMD's: all branches, returns, and taken branches. */
static const struct {
	__u64 config;
	unsigned int per_pass;
} amd_branch_event[] = {
	{ 0x00c2, 4 },
	{ 0x00c2, 4 },
	{ 0x00c8, 1 },
	{ 0x00c8, 1 },
	{ 0x00c4, 3 },
	{ 0x00c4, 3 },
};

static unsigned int branch_per_pass(int i)
{
	/* Nehalem and Westmere have events for three kinds of branches only. */
	if (i > 2 && (cpu_model() == MODEL_NEHALEM || cpu_model() == MODEL_WESTMERE))
		return 0;
	return is_amd() ? amd_branch_event[i].per_pass : branch_event[i].per_pass;
}

static __u64 branch_config(int i)
{
	const bool moved = cpu_model() >= MODEL_ICE_LAKE;

	if (is_amd())
		return amd_branch_event[i].config;
	if (moved && branch_event[i].config == CONDITIONAL)
		return 0x11c4;
	return branch_event[i].config;
}

/* Two events that Haswell counts on counter 2 only. */
#define L1D_PEND_MISS_PENDING	0x0148
#define STALLS_L1D_PENDING	0x0c000ca3	/* Skylake: STALLS_L1D_MISS */

/* Why virtual machines with few counters skip a test. */
#define FEW_COUNTERS	"the test needs four general-purpose counters"

FIXTURE(multiplex)
{
	char interval[32];
};

FIXTURE_SETUP(multiplex)
{
	char ours[32];

	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval,
			      sizeof(self->interval)));
	snprintf(ours, sizeof(ours), "%d", MUX_MS);
	ASSERT_TRUE(write_line(MUX_INTERVAL, ours));
}

FIXTURE_TEARDOWN(multiplex)
{
	EXPECT_TRUE(write_line(MUX_INTERVAL, self->interval));
}

/* An event with its expected share and its measured count. */
struct sharer {
	int fd;
	double share;		/* percent */
	double per_pass;	/* events per pass of branch_loop(); 0: unknown */
	struct one_count count;
};

/* A run of the loop. */
struct run {
	__u64 passes;
	__u64 fastest;		/* ns: shortest time for PASSES */
	__u64 enabled;		/* ns */
};

/* Returns the percentage of the time in which the loop did not run. */
static double percent_taken(const struct run *run)
{
	double ran = (double)run->fastest * run->passes / PASSES;

	return ran < run->enabled ? 100.0 * (1.0 - ran / run->enabled) : 0.0;
}

static double percent_work(const struct sharer *event, const struct run *run)
{
	return 100.0 * event->count.value / (event->per_pass * run->passes);
}

static bool near(double value, double expected, double tolerance)
{
	return value >= expected - tolerance && value <= expected + tolerance;
}

static bool right(const struct sharer *event, const struct run *run)
{
	return near(percent_running(&event->count), event->share,
		    TOLERANCE + TAKEN_PART * percent_taken(run)) &&
	       (!event->per_pass ||
		near(percent_work(event, run), event->share, TOLERANCE));
}

/* Enables the events, runs the loop and checks all shares. */
static void expect_shares(struct __test_metadata *_metadata,
			  struct sharer *event, int nr)
{
	struct run run = { .fastest = ~0ULL };
	bool all_right;
	__u64 start;
	int i, round;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, ioctl(event[i].fd, PERF_EVENT_IOC_ENABLE, 0));
	for (round = 1; round <= MAX_ROUNDS; round++) {
		do {
			start = now_ns();
			branch_loop(PASSES);
			start = now_ns() - start;
			if (start < run.fastest)
				run.fastest = start;
			run.passes += PASSES;
			ASSERT_TRUE(read_one(event[0].fd, &event[0].count));
			run.enabled = event[0].count.enabled;
		} while (run.enabled < round * MIN_TIME_NS);

		all_right = true;
		for (i = 0; i < nr; i++) {
			ASSERT_TRUE(read_one(event[i].fd, &event[i].count));
			all_right = all_right && right(&event[i], &run);
		}
		/* Measure longer only if the host is busy. */
		if (all_right || percent_taken(&run) < 5.0)
			break;
	}
	TH_LOG("%llu ms, of which the host took %.1f %%", run.enabled / 1000000,
	       percent_taken(&run));
	for (i = 0; i < nr; i++) {
		TH_LOG("event %d: expected %.1f %%, time %.1f, work %.1f", i,
		       event[i].share, percent_running(&event[i].count),
		       event[i].per_pass ? percent_work(&event[i], &run) : 0.0);
		EXPECT_TRUE(right(&event[i], &run));
	}
}

/*
 * Six events: 66.7 % each on four counters, 100 % where there are six or
 * more.
 */
TEST_F(multiplex, six_events)
{
	const int nr = ARRAY_SIZE(branch_event);
	struct sharer event[ARRAY_SIZE(branch_event)] = {};
	double share = 100.0 * gp_counters() / nr;
	struct perf_event_attr attr;
	int i;

	ASSERT_LT(0, gp_counters());
	for (i = 0; i < nr; i++) {
		attr = counting_anywhere(PERF_TYPE_RAW, branch_config(i));
		event[i].fd = perf_open_self(&attr, -1);
		event[i].share = share > 100.0 ? 100.0 : share;
		event[i].per_pass = branch_per_pass(i);
		ASSERT_LE(0, event[i].fd);
	}
	expect_shares(_metadata, event, nr);
}

/* As many events as counters: each counts all the time. */
TEST_F(multiplex, as_many_as_counters)
{
	unsigned int i, gp = gp_counters();
	struct perf_event_attr attr;
	struct one_count count;
	int fd[32];

	ASSERT_LT(0, gp);
	ASSERT_GE(32, gp);
	for (i = 0; i < gp; i++) {
		attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	}
	branch_loop(300000);
	for (i = 0; i < gp; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		EXPECT_EQ(count.enabled, count.running);
		EXPECT_LE(4 * 300000, count.value);
	}
}

static void open_pair(struct __test_metadata *_metadata, struct sharer *event,
		      bool pinned)
{
	const __u64 config[] = { L1D_PEND_MISS_PENDING, STALLS_L1D_PENDING };
	struct perf_event_attr attr;
	int i;

	for (i = 0; i < 2; i++) {
		attr = counting_anywhere(PERF_TYPE_RAW, config[i]);
		attr.pinned = pinned && i == 0;
		event[i].fd = perf_open_self(&attr, -1);
		ASSERT_LE(0, event[i].fd);
	}
}

/* Measures the event's count per pass while it is alone; ignores very low counts. */
static void calibrate(struct __test_metadata *_metadata, struct sharer *event)
{
	const unsigned long passes = 20 * PASSES;

	ASSERT_EQ(0, ioctl(event->fd, PERF_EVENT_IOC_ENABLE, 0));
	branch_loop(passes);
	ASSERT_EQ(0, ioctl(event->fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_TRUE(read_one(event->fd, &event->count));
	ASSERT_EQ(event->count.enabled, event->count.running);
	if (event->count.value > passes / 100)
		event->per_pass = (double)event->count.value / passes;
}

/*
 * Checks the shares of two events for counter 2. Reopens them after the
 * calibration, so that their counts and times start at 0.
 */
static void share_counter_2(struct __test_metadata *_metadata, bool pinned,
			    double first, double second)
{
	struct sharer event[2] = { { .share = first }, { .share = second } };
	int i;

	open_pair(_metadata, event, false);
	for (i = 0; i < 2; i++)
		calibrate(_metadata, &event[i]);
	for (i = 0; i < 2; i++)
		close(event[i].fd);
	open_pair(_metadata, event, pinned);
	expect_shares(_metadata, event, 2);
}

/* Two events for one counter on Haswell; Skylake counts them anywhere. */
TEST_F(multiplex, both_on_counter_2)
{
	double share = cpu_model() == MODEL_HASWELL ? 50.0 : 100.0;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (!is_haswell_or_skylake())
		SKIP(return, "the counters of this CPU's events are not known to the test");
	share_counter_2(_metadata, false, share, share);
}

/* The pinned event keeps the counter; on Haswell the other event never counts. */
TEST_F(multiplex, pinned_on_counter_2)
{
	double left = cpu_model() == MODEL_HASWELL ? 0.0 : 100.0;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (!is_haswell_or_skylake())
		SKIP(return, "the counters of this CPU's events are not known to the test");
	share_counter_2(_metadata, true, 100.0, left);
}

/* Returns whether the driver determines the rotation, not the perf core's order. */
static bool driver_takes_turns(void)
{
	char policy[16];

	return read_line("/sys/module/rpmu/parameters/policy", policy,
			 sizeof(policy)) && !strcmp(policy, "rpmu");
}

/* Opens an event that every general-purpose counter can count. */
static void open_branches(struct __test_metadata *_metadata,
			  struct sharer *event, int group_fd, double share)
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);

	event->fd = perf_open_self(&attr, group_fd);
	event->share = share;
	event->per_pass = 4;
	ASSERT_LE(0, event->fd);
}

static void open_on_counter_2(struct __test_metadata *_metadata,
			      struct sharer *event, bool pinned, double share)
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, L1D_PEND_MISS_PENDING);

	attr.pinned = pinned;
	event->fd = perf_open_self(&attr, -1);
	event->share = share;
	ASSERT_LE(0, event->fd);
}

/*
 * A pinned event has counter 2. With the driver's rotation, an event that waits
 * for counter 2 does not delay the events behind it.
 */
TEST_F(multiplex, behind_one_that_never_counts)
{
	struct sharer event[3] = {};
	double behind = driver_takes_turns() ? 100.0 : 50.0;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events of this CPU need the same counter");
	open_on_counter_2(_metadata, &event[0], true, 100.0);
	open_on_counter_2(_metadata, &event[1], false, 0.0);
	open_branches(_metadata, &event[2], -1, behind);
	expect_shares(_metadata, event, 3);
}

/*
 * An event behind one that waits for counter 2 counts at once, not only from the
 * end of the first interval on.
 */
TEST_F(multiplex, behind_one_just_enabled)
{
	struct sharer event[3] = {};
	struct one_count count;
	int i;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events of this CPU need the same counter");
	if (!driver_takes_turns())
		SKIP(return, "perf core keeps it waiting");
	ASSERT_TRUE(write_line(MUX_INTERVAL, "500"));
	open_on_counter_2(_metadata, &event[0], true, 100.0);
	open_on_counter_2(_metadata, &event[1], false, 0.0);
	open_branches(_metadata, &event[2], -1, 100.0);
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, ioctl(event[i].fd, PERF_EVENT_IOC_ENABLE, 0));
	branch_loop(PASSES);
	ASSERT_TRUE(read_one(event[2].fd, &count));
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_LE(4 * PASSES, count.value);
	/*
	 * Wait until the timer of 500 ms has expired. While an event waits, it
	 * would be restarted, and delay the rotations of the next test.
	 */
	for (i = 0; i < 3; i++)
		close(event[i].fd);
	usleep(500000);
}

/* Three events share counter 2, and four share the other counters. */
TEST_F(multiplex, no_event_starves)
{
	double others = 100.0 * (gp_counters() - 1) / 4;
	struct sharer event[7] = {};
	int i;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no three events that need the same counter");
	if (!driver_takes_turns())
		SKIP(return, "perf core's order determines the shares");
	for (i = 0; i < 3; i++)
		open_on_counter_2(_metadata, &event[i], false, 100.0 / 3);
	for (; i < 7; i++)
		open_branches(_metadata, &event[i], -1,
			      others > 100.0 ? 100.0 : others);
	expect_shares(_metadata, event, 7);
}

/* Pinned events on all counters count all the time, and other events never count. */
TEST_F(multiplex, pinned_goes_first)
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, nr = gp_counters() + 2;
	struct sharer event[10] = {};

	ASSERT_GE(10, nr);
	for (i = 0; i < 2; i++)
		open_branches(_metadata, &event[i], -1, 0.0);
	attr.pinned = 1;
	for (; i < nr; i++) {
		event[i].fd = perf_open_self(&attr, -1);
		event[i].share = 100.0;
		event[i].per_pass = 4;
		ASSERT_LE(0, event[i].fd);
	}
	expect_shares(_metadata, event, nr);
	for (i = 2; i < nr; i++)
		EXPECT_EQ(event[i].count.enabled, event[i].count.running);
}

/*
 * An exclusive event (attr.exclusive) has the PMU to itself when it counts. In
 * the perf core's order, it counts first, then both other events, then the last
 * one alone.
 */
TEST_F(multiplex, exclusive_is_alone)
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	struct sharer event[3] = {};
	int i;

	attr.exclusive = 1;
	event[0].fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, event[0].fd);
	event[0].per_pass = 4;
	for (i = 1; i < 3; i++)
		open_branches(_metadata, &event[i], -1, 0);
	for (i = 0; i < 3; i++)
		event[i].share = 50.0;
	if (!driver_takes_turns()) {
		event[0].share = 100.0 / 3;
		event[1].share = 100.0 / 3;
		event[2].share = 200.0 / 3;
	}
	expect_shares(_metadata, event, 3);
	/* Allow a millisecond between the two readings. */
	for (i = 1; i < 3; i++)
		EXPECT_LE(event[0].count.running + event[i].count.running,
			  event[0].count.enabled + 1000000);
}

/* An exclusive event of the CPU stops a task's rotating events. */
TEST_F(multiplex, exclusive_on_the_cpu)
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, exclusive, nr = gp_counters() + 1;
	struct sharer event[9] = {};
	struct one_count count;

	ASSERT_GE(9, nr);
	for (i = 0; i < nr; i++)
		open_branches(_metadata, &event[i], -1, 100.0 * (nr - 1) / nr);
	expect_shares(_metadata, event, nr);

	attr.exclusive = 1;
	attr.disabled = 0;
	exclusive = perf_open(&attr, -1, sched_getcpu(), -1, 0);
	ASSERT_LE(0, exclusive);
	for (i = 0; i < nr; i++)
		ASSERT_TRUE(read_one(event[i].fd, &event[i].count));
	branch_loop(20 * PASSES);
	for (i = 0; i < nr; i++) {
		ASSERT_TRUE(read_one(event[i].fd, &count));
		EXPECT_LT(event[i].count.enabled, count.enabled);
		EXPECT_EQ(event[i].count.running, count.running);
	}
	ASSERT_TRUE(read_one(exclusive, &count));
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_LE(4 * 20 * PASSES, count.value);
	close(exclusive);
}

/* Opens an enabled event of a CPU. */
static int open_on(int cpu, __u64 config, bool pinned)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	attr.pinned = pinned;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/*
 * An exclusive event must also be alone if an exclusive group with a software
 * leader was tried after it and refused. The counter of the first event is
 * taken, so that the groups behind it are tried too.
 */
TEST_F(multiplex, exclusive_led_by_software)
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct one_count alone, other;
	int i, taken, fds[5];

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (!is_haswell_or_skylake())
		SKIP(return, "no event for one counter is known");
	ASSERT_TRUE(forbid_rotation());
	taken = open_on(sched_getcpu(), L1D_PEND_MISS_PENDING, true);
	ASSERT_LE(0, taken);
	attr.config = L1D_PEND_MISS_PENDING;
	fds[0] = perf_open_self(&attr, -1);
	attr.config = RAW_BRANCHES;
	attr.exclusive = 1;
	fds[1] = perf_open_self(&attr, -1);
	clock.exclusive = 1;
	fds[2] = perf_open_self(&clock, -1);
	attr.exclusive = 0;
	fds[3] = perf_open_self(&attr, fds[2]);
	fds[4] = perf_open_self(&attr, -1);
	for (i = 0; i < 5; i++) {
		ASSERT_LE(0, fds[i]);
		ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0));
	}
	branch_loop(20 * PASSES);
	ASSERT_TRUE(read_one(fds[1], &alone));
	ASSERT_TRUE(read_one(fds[4], &other));
	EXPECT_LT(0, other.enabled);
	/* Allow a millisecond between the two readings. */
	EXPECT_LE(alone.running + other.running, alone.enabled + 1000000);
	EXPECT_TRUE(allow_rotation(self->interval));
}

/*
 * Groups with a software leader rotate like others. An event may join such a
 * group while the group rotates, and the group continues to count.
 */
TEST_F(multiplex, led_by_software)
{
	struct perf_event_attr attr = counting(PERF_TYPE_SOFTWARE,
					       PERF_COUNT_SW_TASK_CLOCK);
	struct one_count before, after;
	int i, j, nr = gp_counters() / 2 + 1;
	struct sharer event[10] = {};
	int lead[5];

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	ASSERT_GE(5, nr);
	for (i = 0; i < nr; i++) {
		lead[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, lead[i]);
		for (j = 2 * i; j < 2 * i + 2; j++) {
			open_branches(_metadata, &event[j], lead[i],
				      100.0 * (nr - 1) / nr);
			ASSERT_EQ(0, ioctl(event[j].fd, PERF_EVENT_IOC_ENABLE,
					   0));
		}
	}
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, ioctl(lead[i], PERF_EVENT_IOC_ENABLE, 0));
	expect_shares(_metadata, event, 2 * nr);

	attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	attr.disabled = 0;
	for (i = 0; i < nr - 1; i++) {
		ASSERT_TRUE(read_one(lead[i], &before));
		j = perf_open_self(&attr, lead[i]);
		ASSERT_LE(0, j);
		branch_loop(40 * PASSES);
		ASSERT_TRUE(read_one(lead[i], &after));
		EXPECT_LT(before.running, after.running);
		EXPECT_LT(0, read_value(j));
	}
}

/* Opens two enabled events more than there are counters, so that they rotate. */
static int open_rotating(struct __test_metadata *_metadata, int fds[10])
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, nr = gp_counters() + 2;

	ASSERT_GE(10, nr);
	attr.disabled = 0;
	for (i = 0; i < nr; i++) {
		fds[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fds[i]);
	}
	return nr;
}

/*
 * Opens groups of three, one more than fit. The groups that fit leave a counter or
 * two for others, unless the number of counters is a multiple of three.
 */
static int open_threes(struct __test_metadata *_metadata, int fds[12])
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, nr = 3 * (gp_counters() / 3 + 1);

	ASSERT_GE(12, nr);
	attr.disabled = 0;
	for (i = 0; i < nr; i++) {
		fds[i] = perf_open_self(&attr, i % 3 ? fds[i - i % 3] : -1);
		ASSERT_LE(0, fds[i]);
	}
	return nr;
}

/*
 * A software leader of a group with an event of the PMU stays enabled when
 * another event joins. It must not be moved to the PMU's context a second time.
 */
TEST_F(multiplex, leader_is_joined_at_once)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, j, lead, sibling[2], fds[12], nr;
	struct one_count before, after;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	for (i = 0; i < 20; i++) {
		nr = open_threes(_metadata, fds);
		/* Opened disabled, because a move would disable it again. */
		lead = perf_open_self(&clock, -1);
		ASSERT_LE(0, lead);
		for (j = 0; j < 2; j++) {
			/* Every other round, all siblings are disabled. */
			attr.disabled = i % 2;
			sibling[j] = perf_open_self(&attr, lead);
			ASSERT_LE(0, sibling[j]);
			if (j)
				continue;
			ASSERT_EQ(0, ioctl(lead, PERF_EVENT_IOC_ENABLE, 0));
			/* In two rounds of four, the events rotate before the next one joins. */
			ASSERT_TRUE(read_one(lead, &before));
			while (i & 2 && before.enabled < 40000000) {
				branch_loop(PASSES);
				ASSERT_TRUE(read_one(lead, &before));
			}
		}
		ASSERT_TRUE(read_one(lead, &before));
		branch_loop(PASSES);
		ASSERT_TRUE(read_one(lead, &after));
		/* The time of a disabled event does not advance. */
		EXPECT_LT(before.enabled, after.enabled) TH_LOG("%d", i);
		for (j = 0; j < 2; j++)
			close(sibling[j]);
		close(lead);
		while (nr--)
			close(fds[nr]);
	}
}

/*
 * On either driver, a group with a software leader does not pass a refused
 * group: perf_event_open() on another CPU could then mistake it for a group of
 * software events, and would disable its leader. On rpmu, an event behind both
 * groups counts if a counter is free.
 */
TEST_F(multiplex, led_by_software_does_not_pass)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, nr, lead, fds[12], last[2];
	struct one_count count[2];

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	ASSERT_TRUE(forbid_rotation());
	nr = open_threes(_metadata, fds);
	clock.disabled = 0;
	lead = perf_open_self(&clock, -1);
	ASSERT_LE(0, lead);
	attr.disabled = 0;
	last[0] = perf_open_self(&attr, lead);
	last[1] = perf_open_self(&attr, -1);
	branch_loop(20 * PASSES);
	for (i = 0; i < 2; i++) {
		ASSERT_LE(0, last[i]);
		ASSERT_TRUE(read_one(last[i], &count[i]));
		EXPECT_LT(0, count[i].enabled);
	}
	EXPECT_EQ(0, count[0].running);
	/* With six counters, the groups of three leave no counter free. */
	EXPECT_EQ(on_rpmu() && gp_counters() % 3, count[1].running > 0);
	close(lead);
	for (i = 0; i < 2; i++)
		close(last[i]);
	while (nr--)
		close(fds[nr]);
	EXPECT_TRUE(allow_rotation(self->interval));
}

/*
 * A group that does not fit beside a pinned event does not block a group with a
 * software leader for good. The latter group gets at least the share that the
 * perf core's order gives it, 33 %, although on rpmu an event passes both groups.
 */
TEST_F(multiplex, group_without_room_delays_no_other)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, lead, sibling, single, nr = gp_counters(), fds[16];
	int pinned;
	struct one_count count;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	pinned = open_on(sched_getcpu(), RAW_BRANCHES, true);
	ASSERT_LE(0, pinned);
	ASSERT_GE(16, nr);
	/* While the group has fewer events, it fits. */
	for (i = 0; i < nr; i++) {
		attr.disabled = !i;
		fds[i] = perf_open_self(&attr, i ? fds[0] : -1);
		ASSERT_LE(0, fds[i]);
	}
	ASSERT_EQ(0, ioctl(fds[0], PERF_EVENT_IOC_ENABLE, 0));
	clock.disabled = 0;
	lead = perf_open_self(&clock, -1);
	ASSERT_LE(0, lead);
	sibling = perf_open_self(&attr, lead);
	ASSERT_LE(0, sibling);
	single = perf_open_self(&attr, -1);
	ASSERT_LE(0, single);
	do {
		branch_loop(PASSES);
		ASSERT_TRUE(read_one(single, &count));
	} while (count.enabled < 1000000000);
	EXPECT_LT(0.5, (double)count.running / count.enabled);
	ASSERT_TRUE(read_one(sibling, &count));
	TH_LOG("%.1f %%", percent_running(&count));
	EXPECT_LT(0.25, (double)count.running / count.enabled);
	ASSERT_TRUE(read_one(fds[0], &count));
	EXPECT_EQ(0, count.running);
	close(single);
	close(sibling);
	close(lead);
	while (nr--)
		close(fds[nr]);
	close(pinned);
}

/*
 * Checks the share of an event, exclusive or led by a software event, behind a
 * group that never fits because a pinned event has one of its counters. In the
 * perf core's order, the group is tried in every other interval, in which
 * nothing counts.
 */
static void behind_one_that_never_fits(struct __test_metadata *_metadata, bool exclusive)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int pinned = open_on(sched_getcpu(), RAW_BRANCHES, true);
	int i, lead = -1, nr = gp_counters();
	struct sharer event[17] = {};

	ASSERT_LE(0, pinned);
	ASSERT_GE(16, nr);
	for (i = 1; i <= nr; i++) {
		event[i].fd = perf_open_self(&attr, i > 1 ? event[1].fd : -1);
		ASSERT_LE(0, event[i].fd);
	}
	if (!exclusive) {
		clock.disabled = 0;
		lead = perf_open_self(&clock, -1);
		ASSERT_LE(0, lead);
	}
	attr.exclusive = exclusive;
	event[0].fd = perf_open_self(&attr, lead);
	ASSERT_LE(0, event[0].fd);
	event[0].share = driver_takes_turns() ? 100.0 : 50.0;
	event[0].per_pass = 4;
	expect_shares(_metadata, event, nr + 1);
	for (i = 0; i <= nr; i++)
		close(event[i].fd);
	close(lead);
	close(pinned);
}

TEST_F(multiplex, exclusive_behind_one_that_never_fits)
{
	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	behind_one_that_never_fits(_metadata, true);
}

TEST_F(multiplex, led_by_software_behind_one_that_never_fits)
{
	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	behind_one_that_never_fits(_metadata, false);
}

/*
 * A software leader whose siblings are all disabled gets at least the share
 * that the perf core's order gives it.
 */
TEST_F(multiplex, leader_with_a_sibling_that_is_off)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE,
						PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int lead, sibling, fds[10], nr;
	struct one_count count;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	nr = open_rotating(_metadata, fds);
	lead = perf_open_self(&clock, -1);
	ASSERT_LE(0, lead);
	sibling = perf_open_self(&attr, lead);
	ASSERT_LE(0, sibling);
	ASSERT_EQ(0, ioctl(lead, PERF_EVENT_IOC_ENABLE, 0));
	do {
		branch_loop(PASSES);
		ASSERT_TRUE(read_one(lead, &count));
	} while (count.enabled < 1000000000);
	TH_LOG("%.1f %%", 100.0 * count.running / count.enabled);
	EXPECT_LT(0.6, (double)count.running / count.enabled);
	close(sibling);
	close(lead);
	while (nr--)
		close(fds[nr]);
}

#define CGROUPS		6
#define MOST_EVENTS	16
#define SWITCHED_NS	3000000000ULL

/*
 * Opens enabled events that every counter can count: @percent events for each
 * 100 counters.
 */
static int open_contending(struct __test_metadata *_metadata, int *fds, int percent,
			   pid_t pid, int cpu, unsigned long flags)
{
	int i, nr = gp_counters() * percent / 100;
	struct perf_event_attr attr;

	ASSERT_GE(MOST_EVENTS, nr);
	for (i = 0; i < nr; i++) {
		attr = counting_anywhere(PERF_TYPE_RAW,
					 branch_config(i % ARRAY_SIZE(branch_event)));
		attr.disabled = 0;
		fds[i] = perf_open(&attr, pid, cpu, -1, flags);
		ASSERT_LE(0, fds[i]);
	}
	return nr;
}

/*
 * Checks that each event has a share of about @fair percent, and closes the
 * events. The tolerance is lower with the driver's rotation than in the perf
 * core's order.
 */
static void expect_share_of_each(struct __test_metadata *_metadata, const int *fds, int nr,
				 double fair)
{
	double share, low = 100.0, high = 0.0;
	double tolerance = driver_takes_turns() ? SWITCHED : fair / 2;
	struct one_count count;
	int i;

	for (i = 0; i < nr; i++) {
		ASSERT_TRUE(read_one(fds[i], &count));
		ASSERT_LT(0, count.enabled);
		share = percent_running(&count);
		low = share < low ? share : low;
		high = share > high ? share : high;
		close(fds[i]);
	}
	TH_LOG("%.1f to %.1f %%, %.1f are fair", low, high, fair);
	EXPECT_LE(fair - tolerance, low);
	EXPECT_GE(fair + tolerance, high);
}

static void expect_fair_shares(struct __test_metadata *_metadata, const int *fds, int nr)
{
	expect_share_of_each(_metadata, fds, nr, 100.0 * gp_counters() / nr);
}

/* A corrupting event, and three others. */
#define MEM_UOPS_RETIRED	0x81d0
#define KINDS			4

/* Opens an enabled event of each kind for a control group on this CPU. */
static int open_kinds(struct __test_metadata *_metadata, int *fds, int dir)
{
	static const __u64 config[KINDS] = { MEM_UOPS_RETIRED, 0x1c4, 0x2c4, 0x4c4 };
	struct perf_event_attr attr;
	int i;

	for (i = 0; i < KINDS; i++) {
		attr = counting(PERF_TYPE_RAW, config[i]);
		attr.disabled = 0;
		fds[i] = perf_open(&attr, dir, sched_getcpu(), -1, PERF_FLAG_PID_CGROUP);
		ASSERT_LE(0, fds[i]);
	}
	return KINDS;
}

/* A new cgroup hierarchy, whose control groups have events on this CPU. */
struct hierarchy {
	char top[32];
	char group[CGROUPS][64];
	int fds[CGROUPS][MOST_EVENTS];
	int nr;
};

/*
 * Makes a hierarchy of control groups. Opens @percent events for each 100
 * counters in each of them; if @percent is 0, those of open_kinds().
 */
static void open_groups(struct __test_metadata *_metadata, struct hierarchy *it, int groups,
			int percent)
{
	int i, dir;

	snprintf(it->top, sizeof(it->top), "/tmp/cgroup-XXXXXX");
	ASSERT_NE(NULL, mkdtemp(it->top));
	ASSERT_EQ(0, mount("none", it->top, "cgroup", 0, "perf_event"));
	for (i = 0; i < groups; i++) {
		snprintf(it->group[i], sizeof(it->group[i]), "%s/%d", it->top, i);
		ASSERT_EQ(0, mkdir(it->group[i], 0700));
		dir = open(it->group[i], O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, dir);
		it->nr = percent ? open_contending(_metadata, it->fds[i], percent, dir,
						   sched_getcpu(), PERF_FLAG_PID_CGROUP) :
				   open_kinds(_metadata, it->fds[i], dir);
		close(dir);
	}
}

static void close_groups(struct __test_metadata *_metadata, struct hierarchy *it, int groups,
			 double fair)
{
	while (groups--) {
		expect_share_of_each(_metadata, it->fds[groups], it->nr, fair);
		EXPECT_EQ(0, rmdir(it->group[groups]));
	}
	EXPECT_EQ(0, umount(it->top));
	EXPECT_EQ(0, rmdir(it->top));
}

/* Moves the calling task to a control group. */
static void join(const struct hierarchy *it, int group)
{
	char tasks[96];

	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", it->group[group]);
	if (!write_line(tasks, "0"))
		_exit(1);
}

static void end_helpers(struct __test_metadata *_metadata, const pid_t *pid, int nr)
{
	int i, status;

	for (i = 0; i < nr; i++) {
		EXPECT_EQ(0, kill(pid[i], SIGKILL));
		waitpid(pid[i], &status, 0);
		EXPECT_TRUE(WIFSIGNALED(status));
	}
}

/* Runs a busy task in each control group for a while. */
static void busy_groups(struct __test_metadata *_metadata, const struct hierarchy *it,
			int groups)
{
	pid_t pid[CGROUPS];
	int i;

	for (i = 0; i < groups; i++) {
		pid[i] = fork_helper();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			join(it, i);
			for (;;)
				branch_loop(PASSES);
		}
	}
	usleep(SWITCHED_NS / 1000);
	end_helpers(_metadata, pid, groups);
}

/*
 * Control groups share a CPU, in time slices of the scheduler that are shorter
 * than an interval. Their events get equal shares, whichever control group runs
 * when an interval ends.
 */
TEST_F(multiplex, control_groups)
{
	struct hierarchy groups;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	open_groups(_metadata, &groups, CGROUPS, 150);
	busy_groups(_metadata, &groups, CGROUPS);
	close_groups(_metadata, &groups, CGROUPS, 100.0 / 1.5);
}

/*
 * Corrupting events halve the counters of a thread. They wait for other
 * corrupting events, and are charged for the counters that are unused because
 * of them. The charge depends on the events of their own control group, not on
 * events of control groups that never count at the same time.
 */
TEST_F(multiplex, control_groups_with_corrupting_events)
{
	struct hierarchy groups;

	if (cpu_model() != MODEL_HASWELL || gp_counters() != KINDS)
		SKIP(return, "no erratum, or one thread per core");
	open_groups(_metadata, &groups, 2, 0);
	busy_groups(_metadata, &groups, 2);
	close_groups(_metadata, &groups, 2, 60.0);
}

/* The events of tasks that share a CPU get equal shares, too. */
TEST_F(multiplex, tasks_that_switch)
{
	int fds[CGROUPS][MOST_EVENTS], i, nr = 0;
	pid_t pid[CGROUPS];

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	for (i = 0; i < CGROUPS; i++) {
		pid[i] = fork_helper();
		ASSERT_LE(0, pid[i]);
		if (!pid[i])
			for (;;)
				branch_loop(PASSES);
		nr = open_contending(_metadata, fds[i], 150, pid[i], -1, 0);
	}
	usleep(SWITCHED_NS / 1000);
	end_helpers(_metadata, pid, CGROUPS);
	for (i = 0; i < CGROUPS; i++)
		expect_fair_shares(_metadata, fds[i], nr);
}

#define FAIR_S	60
#define TURNS	8

/* Two events share the only counter without a pinned event, on an idle CPU. */
TEST_F_TIMEOUT(multiplex, halves_of_a_minute, 2 * FAIR_S)
{
	int i, fd[2], cpu = sched_getcpu();
	struct one_count count;

	ASSERT_LT(1, gp_counters());
	for (i = 1; i < (int)gp_counters(); i++)
		ASSERT_LE(0, open_on(cpu, RAW_BRANCHES, true));
	for (i = 0; i < 2; i++) {
		fd[i] = open_on(cpu, RAW_BRANCHES, false);
		ASSERT_LE(0, fd[i]);
	}
	sleep(FAIR_S);
	for (i = 0; i < 2; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		TH_LOG("event %d: %.2f %%", i, percent_running(&count));
		EXPECT_LE(FAIR_S * 1000000000ULL, count.enabled);
		EXPECT_TRUE(near(percent_running(&count), 50.0, 0.5));
	}
}

/* Opens an event like the NMI watchdog's and maps its page. */
static int open_watchdog(int cpu, struct perf_event_mmap_page **page)
{
	struct perf_event_attr attr = counting(PERF_TYPE_HARDWARE,
					       PERF_COUNT_HW_CPU_CYCLES);
	int fd;

	attr.sample_period = 1ULL << 40;
	attr.disabled = 0;
	attr.pinned = 1;
	/* With rdpmc 2, the page of a CPU's event has the counter's index. */
	write_line(CPU_PMU "/rdpmc", "2");
	fd = perf_open(&attr, -1, cpu, -1, 0);
	*page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	write_line(CPU_PMU "/rdpmc", "1");
	return *page == MAP_FAILED ? -1 : fd;
}

/* Returns the event's counter as RDPMC takes it; the page's index is one higher. */
static int counter_of(const struct perf_event_mmap_page *page)
{
	return (int)page->index - 1;
}

#define FIXED_CYCLES	0x40000001

/* Enables two events and reads their counts after TURNS intervals. */
static void take_turns(struct __test_metadata *_metadata, struct sharer *event)
{
	__u64 end = now_ns() + TURNS * MUX_MS * 1000000ULL;
	int i;

	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, ioctl(event[i].fd, PERF_EVENT_IOC_ENABLE, 0));
	while (now_ns() < end)
		branch_loop(PASSES);
	for (i = 0; i < 2; i++)
		ASSERT_TRUE(read_one(event[i].fd, &event[i].count));
}

/*
 * The watchdog's event is on a fixed counter and does not take counters from
 * other events.
 */
TEST_F(multiplex, watchdog_on_its_fixed_counter)
{
	struct perf_event_mmap_page *page;
	struct sharer event[2] = {};
	__u64 running;

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events of this CPU need the same counter");
	ASSERT_LE(0, open_watchdog(sched_getcpu(), &page));
	if (!page->cap_user_rdpmc)
		SKIP(return, "mapped events have no counter index here");
	EXPECT_EQ(FIXED_CYCLES, counter_of(page));
	open_pair(_metadata, event, false);
	take_turns(_metadata, event);
	EXPECT_EQ(FIXED_CYCLES, counter_of(page));
	EXPECT_LT(0, event[0].count.value);
	EXPECT_LT(0, event[1].count.value);
	/*
	 * One of the two events counts at any time, except while they are being
	 * enabled.
	 */
	running = event[0].count.running + event[1].count.running;
	EXPECT_TRUE(near(running, event[1].count.enabled, 1000000.0));
}

/*
 * The watchdog's event is on counter 2 because pinned events have its fixed
 * counter and all others: events that need counter 2 never count. When another
 * counter becomes free, the watchdog's event moves there.
 */
TEST_F(multiplex, watchdog_on_counter_2)
{
	int i, other = -1, cpu = sched_getcpu();
	struct perf_event_mmap_page *page;
	struct sharer event[2] = {};

	if (gp_counters() < 4)
		SKIP(return, FEW_COUNTERS);
	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events of this CPU need the same counter");
	ASSERT_LE(0, open_watchdog(cpu, &page));
	if (!page->cap_user_rdpmc)
		SKIP(return, "mapped events have no counter index here");
	ASSERT_EQ(FIXED_CYCLES, counter_of(page));
	ASSERT_LE(0, open_on(cpu, RAW_BRANCHES, true));
	ASSERT_LE(0, open_on(cpu, RAW_BRANCHES, true));
	ASSERT_LE(0, open_watchdog(cpu, &page));
	ASSERT_EQ(2, counter_of(page));
	for (i = 3; i < (int)gp_counters(); i++) {
		other = open_on(cpu, RAW_BRANCHES, true);
		ASSERT_LE(0, other);
	}
	open_pair(_metadata, event, false);
	take_turns(_metadata, event);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, event[i].count.running);
		EXPECT_EQ(0, event[i].count.value);
	}

	close(other);
	take_turns(_metadata, event);
	for (i = 0; i < 2; i++)
		EXPECT_LT(0, event[i].count.value);
	EXPECT_NE(2, counter_of(page));
}

#define LOOKS	10
#define LOOK_US	6000

/*
 * Reads the events LOOKS times. Returns the number of readings in which every
 * event has run since the previous one.
 */
static int looks_with_turns(struct __test_metadata *_metadata, const int *fd, int nr)
{
	struct one_count count[9], last[9];
	int i, look, turns, looks = 0;

	for (look = 0; look <= LOOKS; look++) {
		turns = 0;
		for (i = 0; i < nr; i++) {
			ASSERT_TRUE(read_one(fd[i], &count[i]));
			turns += look && count[i].running > last[i].running;
			last[i] = count[i];
		}
		looks += turns == nr;
		usleep(LOOK_US);
	}
	return looks;
}

/*
 * Events rotate at the new interval on each CPU. The change takes effect at the
 * end of the current interval.
 */
TEST_F(multiplex, interval_on_every_cpu)
{
	static const struct {
		const char *ms;
		bool often;
	} interval[] = { { "2", true }, { "100", false }, { "3", true } };
	int fd[16][9], cpu, i, looks, nr = gp_counters() + 1;
	int cpus = sysconf(_SC_NPROCESSORS_ONLN);
	pid_t load[16];

	ASSERT_GE(16, cpus);
	ASSERT_GE(9, nr);
	for (cpu = 0; cpu < cpus; cpu++) {
		load[cpu] = fork_helper();
		if (!load[cpu]) {
			run_on(cpu);
			for (;;)
				branch_loop(PASSES);
		}
		for (i = 0; i < nr; i++) {
			fd[cpu][i] = open_on(cpu, RAW_BRANCHES, false);
			ASSERT_LE(0, fd[cpu][i]);
		}
	}
	for (i = 0; i < (int)ARRAY_SIZE(interval); i++) {
		ASSERT_TRUE(write_line(MUX_INTERVAL, interval[i].ms));
		usleep(110000);
		for (cpu = 0; cpu < cpus; cpu++) {
			looks = looks_with_turns(_metadata, fd[cpu], nr);
			TH_LOG("%s ms, CPU %d: turns in %d of %d looks", interval[i].ms,
			       cpu, looks, LOOKS);
			EXPECT_EQ(interval[i].often, looks >= LOOKS - 2);
			EXPECT_EQ(!interval[i].often, looks <= 2);
		}
	}
	for (cpu = 0; cpu < cpus; cpu++) {
		kill(load[cpu], SIGKILL);
		waitpid(load[cpu], NULL, 0);
	}
}

/* Only a positive number of milliseconds is an interval. */
TEST_F(multiplex, interval_values)
{
	char now[32];

	EXPECT_TRUE(write_line(MUX_INTERVAL, "7"));
	EXPECT_TRUE(read_line(MUX_INTERVAL, now, sizeof(now)));
	EXPECT_STREQ("7", now);
	EXPECT_FALSE(write_line(MUX_INTERVAL, "0"));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_FALSE(write_line(MUX_INTERVAL, "-1"));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_FALSE(write_line(MUX_INTERVAL, "soon"));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_TRUE(read_line(MUX_INTERVAL, now, sizeof(now)));
	EXPECT_STREQ("7", now);
}

TEST_HARNESS_MAIN
