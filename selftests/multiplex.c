// SPDX-License-Identifier: GPL-2.0
/*
 * More events than counters: perf core rotates, the driver places what fits,
 * and the shares of the running time are what the number of counters says.
 *
 * A share is measured over MIN_INTERVALS rotation intervals of the task's own
 * time, with a tolerance of TOLERANCE percentage points. Where the time of the
 * guest is that of a busy host, its pauses fall on whoever is on the counters
 * just then; so the time is made longer, up to MAX_ROUNDS times, until all
 * shares are right together. A share that is wrong by design never gets there.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

#define MUX_INTERVAL	CPU_PMU "/perf_event_mux_interval_ms"
#define MUX_MS		4
#define MIN_INTERVALS	260
#define MIN_TIME_NS	((__u64)MIN_INTERVALS * MUX_MS * 1000000)
#define MAX_ROUNDS	8
#define TOLERANCE	3.0	/* percentage points */
#define COUNT_TOLERANCE	0.05

/* BR_INST_RETIRED: six umasks that any general-purpose counter may count. */
static const struct {
	__u64 config;
	unsigned int per_pass;
} branch_event[] = {
	{ 0x00c4, 4 },	/* ALL_BRANCHES */
	{ 0x01c4, 2 },	/* CONDITIONAL */
	{ 0x02c4, 1 },	/* NEAR_CALL */
	{ 0x08c4, 1 },	/* NEAR_RETURN */
	{ 0x10c4, 1 },	/* NOT_TAKEN */
	{ 0x20c4, 3 },	/* NEAR_TAKEN */
};

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
	unsigned int per_pass;	/* events a pass of branch_loop(); 0: not known */
	struct one_count count;
};

static double scaled_count(const struct one_count *count)
{
	return (double)count->value * count->enabled / count->running;
}

/* Is this what was to be seen after so many passes? */
static bool right(const struct sharer *event, __u64 passes)
{
	double off = percent_running(&event->count) - event->share;
	double truth = (double)passes * event->per_pass;

	if (off < -TOLERANCE || off > TOLERANCE)
		return false;
	if (!event->per_pass)
		return true;
	off = scaled_count(&event->count) / truth - 1.0;
	return off >= -COUNT_TOLERANCE && off <= COUNT_TOLERANCE;
}

/*
 * Run until everything is right, or for as long as that may take. The events
 * are enabled one after the other, which is a few microseconds of a second.
 */
static void expect_shares(struct __test_metadata *_metadata,
			  struct sharer *event, int nr)
{
	const unsigned long chunk = 50000;
	__u64 passes = 0;
	bool all_right;
	int i, round;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, ioctl(event[i].fd, PERF_EVENT_IOC_ENABLE, 0));
	for (round = 1; round <= MAX_ROUNDS; round++) {
		do {
			branch_loop(chunk);
			passes += chunk;
			ASSERT_TRUE(read_one(event[0].fd, &event[0].count));
		} while (event[0].count.enabled < round * MIN_TIME_NS);

		all_right = true;
		for (i = 0; i < nr; i++) {
			ASSERT_TRUE(read_one(event[i].fd, &event[i].count));
			all_right = all_right && right(&event[i], passes);
		}
		if (all_right)
			break;
	}
	for (i = 0; i < nr; i++) {
		TH_LOG("event %d: %.1f %% of %llu ms, expected %.1f", i,
		       percent_running(&event[i].count),
		       event[i].count.enabled / 1000000, event[i].share);
		if (event[i].per_pass)
			TH_LOG("event %d: %.0f when scaled, expected %llu", i,
			       scaled_count(&event[i].count),
			       passes * event[i].per_pass);
		EXPECT_TRUE(right(&event[i], passes));
	}
}

/*
 * Six events: 66.7 % each on four counters, 100 % where there are six or
 * more. The count, scaled by the share, is the true one.
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
		attr = counting_user(PERF_TYPE_RAW, branch_event[i].config);
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
		attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
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
		attr = counting_user(PERF_TYPE_RAW, config[i]);
		attr.pinned = pinned && i == 0;
		event[i].fd = perf_open_self(&attr, -1);
		ASSERT_LE(0, event[i].fd);
	}
}

/* Two events for one counter on Haswell; Skylake counts them anywhere. */
TEST_F(multiplex, both_on_counter_2)
{
	double share = cpu_model() == MODEL_HASWELL ? 50.0 : 100.0;
	struct sharer event[2] = { { .share = share }, { .share = share } };

	if (cpu_model() == MODEL_OTHER)
		SKIP(return, "which counters the events need is not known here");
	open_pair(_metadata, event, false);
	expect_shares(_metadata, event, 2);
}

/* Pinned keeps the counter; on Haswell the other never gets it. */
TEST_F(multiplex, pinned_on_counter_2)
{
	double left = cpu_model() == MODEL_HASWELL ? 0.0 : 100.0;
	struct sharer event[2] = { { .share = 100.0 }, { .share = left } };

	if (cpu_model() == MODEL_OTHER)
		SKIP(return, "which counters the events need is not known here");
	open_pair(_metadata, event, true);
	expect_shares(_metadata, event, 2);
	EXPECT_EQ(event[0].count.enabled, event[0].count.running);
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
