// SPDX-License-Identifier: GPL-2.0
/*
 * More events than counters: perf core rotates, the driver places what fits,
 * and the shares of the running time are what the number of counters says.
 *
 * A share is measured over MIN_INTERVALS rotation intervals of the task's own
 * time, with a tolerance of TOLERANCE percentage points.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

#define MUX_INTERVAL	CPU_PMU "/perf_event_mux_interval_ms"
#define MUX_MS		4
#define MIN_INTERVALS	500
#define MIN_TIME_NS	((__u64)MIN_INTERVALS * MUX_MS * 1000000)
#define TOLERANCE	3.0
#define MAX_EVENTS	8

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
	struct one_count count[MAX_EVENTS];
	__u64 passes;
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

/*
 * Run passes until the events have been enabled for long enough, then read
 * them all. The events are enabled one after the other, which is a few
 * microseconds of a second.
 */
static void measure(struct __test_metadata *_metadata,
		    struct _test_data_multiplex *self, const int *fd, int nr)
{
	const unsigned long chunk = 50000;
	struct one_count now;
	int i;

	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	self->passes = 0;
	do {
		branch_loop(chunk);
		self->passes += chunk;
		ASSERT_TRUE(read_one(fd[nr - 1], &now));
	} while (now.enabled < MIN_TIME_NS);
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0));
	for (i = 0; i < nr; i++)
		ASSERT_TRUE(read_one(fd[i], &self->count[i]));
}

static void expect_share(struct __test_metadata *_metadata,
			 const struct one_count *count, int index,
			 double expected)
{
	double share = percent_running(count);

	TH_LOG("event %d: %.1f %% of %llu ms, expected %.1f", index, share,
	       count->enabled / 1000000, expected);
	EXPECT_LE(expected - TOLERANCE, share);
	EXPECT_GE(expected + TOLERANCE, share);
}

/*
 * Six events: 66.7 % each on four counters, 100 % where there are six or
 * more. The count, scaled by the share, is the true one to 5 %.
 */
TEST_F(multiplex, six_events)
{
	const int nr = ARRAY_SIZE(branch_event);
	double share = 100.0 * gp_counters() / nr;
	struct perf_event_attr attr;
	int fd[ARRAY_SIZE(branch_event)];
	int i;

	ASSERT_LT(0, gp_counters());
	if (share > 100.0)
		share = 100.0;
	for (i = 0; i < nr; i++) {
		attr = counting_user(PERF_TYPE_RAW, branch_event[i].config);
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	measure(_metadata, self, fd, nr);

	for (i = 0; i < nr; i++) {
		const struct one_count *count = &self->count[i];
		double scaled = (double)count->value * count->enabled /
				count->running;
		double truth = (double)self->passes * branch_event[i].per_pass;

		expect_share(_metadata, count, i, share);
		TH_LOG("event %d: scaled count %.0f of %.0f", i, scaled, truth);
		EXPECT_LE(0.95 * truth, scaled);
		EXPECT_GE(1.05 * truth, scaled);
	}
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

static void open_pair(struct __test_metadata *_metadata, int *fd, bool pinned)
{
	const __u64 config[] = { L1D_PEND_MISS_PENDING, STALLS_L1D_PENDING };
	struct perf_event_attr attr;
	int i;

	for (i = 0; i < 2; i++) {
		attr = counting_user(PERF_TYPE_RAW, config[i]);
		attr.pinned = pinned && i == 1;
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
}

/* Two events for one counter on Haswell; Skylake counts them anywhere. */
TEST_F(multiplex, both_on_counter_2)
{
	double share = cpu_model() == MODEL_HASWELL ? 50.0 : 100.0;
	int fd[2];

	if (cpu_model() == MODEL_OTHER)
		SKIP(return, "which counters the events need is not known here");
	open_pair(_metadata, fd, false);
	measure(_metadata, self, fd, 2);
	expect_share(_metadata, &self->count[0], 0, share);
	expect_share(_metadata, &self->count[1], 1, share);
}

/* Pinned keeps the counter; on Haswell the other never gets it. */
TEST_F(multiplex, pinned_on_counter_2)
{
	bool haswell = cpu_model() == MODEL_HASWELL;
	struct one_count flexible, pinned;
	int i, fd[2];

	if (cpu_model() == MODEL_OTHER)
		SKIP(return, "which counters the events need is not known here");
	open_pair(_metadata, fd, true);
	for (i = 1; i >= 0; i--)
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	branch_loop(1000000);
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_TRUE(read_one(fd[0], &flexible));
	ASSERT_TRUE(read_one(fd[1], &pinned));
	expect_share(_metadata, &flexible, 0, haswell ? 0.0 : 100.0);
	EXPECT_EQ(pinned.enabled, pinned.running);
	EXPECT_LT(2 * MUX_MS * 1000000, pinned.enabled);
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
