// SPDX-License-Identifier: GPL-2.0
/*
 * More events than counters: perf core rotates, the driver places what fits,
 * and the shares of the running time are what the number of counters says.
 *
 * There are two measures of a share, over MIN_INTERVALS rotation intervals of
 * the task's own time and with a tolerance of TOLERANCE percentage points:
 *
 *	work	what the event counted of what there was to count
 *	time	time_running of time_enabled, as perf stat prints it
 *
 * A busy host takes time away from an emulated CPU, and the guest's clock goes
 * on meanwhile: that time falls on whoever is on the counters just then. No
 * work is done in it, so work is held to the tolerance come what may. What is
 * taken falls on all events in turn, and only the differences spoil the shares
 * of time: these are given a TAKEN_PART of it in points. Until all is right
 * together it is measured on, up to MAX_ROUNDS times as long; a share that is
 * wrong by design never gets there.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define MUX_MS		4
#define MIN_INTERVALS	260
#define MIN_TIME_NS	((__u64)MIN_INTERVALS * MUX_MS * 1000000)
#define MAX_ROUNDS	8
#define TOLERANCE	3.0	/* percentage points */
#define TAKEN_PART	0.2
#define PASSES		50000UL	/* between two looks at the clock */

/* CONDITIONAL; from Ice Lake on it is 0x11c4, and this is what was taken. */
#define CONDITIONAL	0x01c4

/* BR_INST_RETIRED: six umasks that any general-purpose counter may count. */
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

static __u64 branch_config(int i)
{
	const bool moved = cpu_model() == MODEL_ICE_LAKE || cpu_model() == MODEL_GOLDEN_COVE;

	if (moved && branch_event[i].config == CONDITIONAL)
		return 0x11c4;
	return branch_event[i].config;
}

/* Two events of which Haswell counts each on counter 2 alone. */
#define L1D_PEND_MISS_PENDING	0x0148
#define STALLS_L1D_PENDING	0x0c000ca3	/* Skylake: STALLS_L1D_MISS */

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

/* An event that shares, and what is to be seen of it. */
struct sharer {
	int fd;
	double share;		/* percent */
	double per_pass;	/* events a pass of branch_loop(); 0: not known */
	struct one_count count;
};

/* A run of the loop. */
struct run {
	__u64 passes;
	__u64 fastest;		/* ns that PASSES took when nothing was taken */
	__u64 enabled;		/* ns */
};

/* Percentage of the time in which the loop did not run. */
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

/* All events' shares; they are enabled within microseconds of one another. */
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
		/* A second chance is for busy hosts alone. */
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
		event[i].per_pass = branch_event[i].per_pass;
		ASSERT_LE(0, event[i].fd);
	}
	expect_shares(_metadata, event, nr);
}

/* As many events as counters: nothing to share, whatever the number. */
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

/* What each counts in a pass when it is alone; next to nothing is no measure. */
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
 * Two events, opened anew after they have been measured alone, so that their
 * counts and times start at nought.
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

	if (!is_haswell_or_skylake())
		SKIP(return, "which counters the events need is not known here");
	share_counter_2(_metadata, false, share, share);
}

/* Pinned keeps the counter; on Haswell the other never gets it. */
TEST_F(multiplex, pinned_on_counter_2)
{
	double left = cpu_model() == MODEL_HASWELL ? 0.0 : 100.0;

	if (!is_haswell_or_skylake())
		SKIP(return, "which counters the events need is not known here");
	share_counter_2(_metadata, true, 100.0, left);
}

/* Whether the driver, and not perf core's order, decides whose turn it is. */
static bool driver_takes_turns(void)
{
	char policy[16];

	return read_line("/sys/module/rpmu/parameters/policy", policy,
			 sizeof(policy)) && !strcmp(policy, "rpmu");
}

/* An event that any general-purpose counter may count, and work to measure. */
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

/* A pinned event has counter 2; whoever waits for it keeps nobody waiting. */
TEST_F(multiplex, behind_one_that_waits_for_ever)
{
	struct sharer event[3] = {};
	double behind = driver_takes_turns() ? 100.0 : 50.0;

	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events that need the same counter");
	open_on_counter_2(_metadata, &event[0], true, 100.0);
	open_on_counter_2(_metadata, &event[1], false, 0.0);
	open_branches(_metadata, &event[2], -1, behind);
	expect_shares(_metadata, event, 3);
}

/* It does not even keep them until the end of the first interval. */
TEST_F(multiplex, behind_one_that_has_just_come)
{
	struct sharer event[3] = {};
	struct one_count count;
	int i;

	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events that need the same counter");
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
	/* Nobody may wait any more, or the timer starts anew for as long. */
	for (i = 0; i < 3; i++)
		close(event[i].fd);
	usleep(500000);
}

/* Three for counter 2 have it in turn, and four share the others. */
TEST_F(multiplex, nobody_starves)
{
	double others = 100.0 * (gp_counters() - 1) / 4;
	struct sharer event[7] = {};
	int i;

	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no three events that need the same counter");
	if (!driver_takes_turns())
		SKIP(return, "perf core's order decides who gets how much");
	for (i = 0; i < 3; i++)
		open_on_counter_2(_metadata, &event[i], false, 100.0 / 3);
	for (; i < 7; i++)
		open_branches(_metadata, &event[i], -1,
			      others > 100.0 ? 100.0 : others);
	expect_shares(_metadata, event, 7);
}

/* Pinned events on all counters are never away, and leave nothing to others. */
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
 * An exclusive event has the PMU to itself when it is its turn. In perf core's
 * order the exclusive one counts, then both others, then the last one alone.
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
	/* A millisecond for what passes from one reading to the next. */
	for (i = 1; i < 3; i++)
		EXPECT_LE(event[0].count.running + event[i].count.running,
			  event[0].count.enabled + 1000000);
}

/* One of the CPU's own is alone there too, whoever has taken turns before. */
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

/* An event of a CPU's own, whoever runs there; enabled. */
static int open_on(int cpu, __u64 config, bool pinned)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	attr.pinned = pinned;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/*
 * It is alone too where an exclusive group that a software event leads was
 * tried and refused behind it. The first event finds its counter taken; so the
 * groups behind that are tried, too.
 */
TEST_F(multiplex, exclusive_led_by_software)
{
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct one_count alone, other;
	int i, taken, fds[5];

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
	/* A millisecond for what passes from one reading to the next. */
	EXPECT_LE(alone.running + other.running, alone.enabled + 1000000);
	EXPECT_TRUE(allow_rotation(self->interval));
}

/*
 * Groups that a software event leads take turns as others do. One may be
 * joined while it takes turns, and goes on.
 */
TEST_F(multiplex, led_by_software)
{
	struct perf_event_attr attr = counting(PERF_TYPE_SOFTWARE,
					       PERF_COUNT_SW_TASK_CLOCK);
	struct one_count before, after;
	int i, j, nr = gp_counters() / 2 + 1;
	struct sharer event[10] = {};
	int lead[5];

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

/* As many enabled events as there are counters, and two more: they take turns. */
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
 * A software event that leads a group with an event of the PMU is not switched
 * off by another one that joins: it is not moved to the PMU a second time.
 */
TEST_F(multiplex, leader_is_joined_at_once)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, j, lead, sibling[2], fds[10], nr;
	struct one_count before, after;

	for (i = 0; i < 20; i++) {
		nr = open_rotating(_metadata, fds);
		/* Opened disabled: a move would make it that again. */
		lead = perf_open_self(&clock, -1);
		ASSERT_LE(0, lead);
		for (j = 0; j < 2; j++) {
			/* With all of its siblings off every other time. */
			attr.disabled = i % 2;
			sibling[j] = perf_open_self(&attr, lead);
			ASSERT_LE(0, sibling[j]);
			if (!j)
				ASSERT_EQ(0, ioctl(lead, PERF_EVENT_IOC_ENABLE, 0));
		}
		ASSERT_TRUE(read_one(lead, &before));
		branch_loop(PASSES);
		ASSERT_TRUE(read_one(lead, &after));
		/* The time of an event that is off stands. */
		EXPECT_LT(before.enabled, after.enabled) TH_LOG("%d", i);
		for (j = 0; j < 2; j++)
			close(sibling[j]);
		close(lead);
		while (nr--)
			close(fds[nr]);
	}
}

/* One whose events of the PMU are all off runs at least as in perf core's order. */
TEST_F(multiplex, leader_with_a_sibling_that_is_off)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE,
						PERF_COUNT_SW_TASK_CLOCK);
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	int lead, sibling, fds[10], nr = open_rotating(_metadata, fds);
	struct one_count count;

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

#define FAIR_S	60
#define TURNS	8

/* Two events, and one counter that nobody has pinned, on a CPU that is idle. */
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

/* The NMI watchdog's event; returns the descriptor and maps its page. */
static int open_watchdog(int cpu, struct perf_event_mmap_page **page)
{
	struct perf_event_attr attr = counting(PERF_TYPE_HARDWARE,
					       PERF_COUNT_HW_CPU_CYCLES);
	int fd;

	attr.sample_period = 1ULL << 40;
	attr.disabled = 0;
	attr.pinned = 1;
	fd = perf_open(&attr, -1, cpu, -1, 0);
	*page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
	return *page == MAP_FAILED ? -1 : fd;
}

/* The counter that the event is on, as RDPMC takes it; the page says one more. */
static int counter_of(const struct perf_event_mmap_page *page)
{
	return (int)page->index - 1;
}

#define FIXED_CYCLES	0x40000001

/* What the two have counted when there have been TURNS more. */
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

/* It has a fixed counter, and takes nothing from others. */
TEST_F(multiplex, watchdog_on_its_fixed_counter)
{
	struct perf_event_mmap_page *page;
	struct sharer event[2] = {};
	__u64 running;

	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events that need the same counter");
	ASSERT_LE(0, open_watchdog(sched_getcpu(), &page));
	if (!page->cap_user_rdpmc)
		SKIP(return, "mapped events do not tell their counter here");
	EXPECT_EQ(FIXED_CYCLES, counter_of(page));
	open_pair(_metadata, event, false);
	take_turns(_metadata, event);
	EXPECT_EQ(FIXED_CYCLES, counter_of(page));
	EXPECT_LT(0, event[0].count.value);
	EXPECT_LT(0, event[1].count.value);
	/* One or the other, all the time but when they were enabled. */
	running = event[0].count.running + event[1].count.running;
	EXPECT_TRUE(near(running, event[1].count.enabled, 1000000.0));
}

/*
 * On counter 2, as its fixed one and all others are pinned: who needs that one
 * gets nothing. When another one is free, it makes way.
 */
TEST_F(multiplex, watchdog_on_counter_2)
{
	int i, other = -1, cpu = sched_getcpu();
	struct perf_event_mmap_page *page;
	struct sharer event[2] = {};

	if (cpu_model() != MODEL_HASWELL)
		SKIP(return, "no two events that need the same counter");
	ASSERT_LE(0, open_watchdog(cpu, &page));
	if (!page->cap_user_rdpmc)
		SKIP(return, "mapped events do not tell their counter here");
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
 * On how many of LOOKS looks each event of the CPU has had a turn since the
 * one before.
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
 * Each CPU takes its turns as often as the interval says, from when the turn
 * that had begun before is over.
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
