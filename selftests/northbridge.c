// SPDX-License-Identifier: GPL-2.0
/*
 * Tests AMD's northbridge up to family 14h: counter n of all cores of a node is
 * one shared counter for its events, so two CPUs cannot have such events on the
 * same counter. Pinned events show at once which event got a counter.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

OWN_COUNTERS()

#define COUNTERS	4
/* CPU/IO requests to memory or I/O: an event of the northbridge. */
#define NORTHBRIDGE	0x1fe9

static int open_pinned(__u64 config, int cpu)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	attr.pinned = 1;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/*
 * Returns whether the event has a counter: read() of a pinned event without a
 * counter fails.
 */
static bool has_counter(int fd)
{
	struct one_count count;

	return read(fd, &count, sizeof(count)) == sizeof(count);
}

FIXTURE(northbridge)
{
	int fd[COUNTERS + 1];	/* three events on CPU 0, two on CPU 1 */
};

FIXTURE_SETUP(northbridge)
{
	int i;

	if (!is_amd() || cpu_family() > 0x14 || gp_counters() != COUNTERS ||
	    sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "the CPUs share no counters of a northbridge");
	for (i = 0; i <= COUNTERS; i++) {
		self->fd[i] = open_pinned(NORTHBRIDGE, i >= 3);
		ASSERT_LE(0, self->fd[i]);
	}
}

FIXTURE_TEARDOWN(northbridge)
{
	int i;

	for (i = 0; i <= COUNTERS; i++)
		close(self->fd[i]);
}

/*
 * Five events compete for four counters; the last one gets the counter of a
 * closed event.
 */
TEST_F(northbridge, node_has_four_counters)
{
	int i;

	for (i = 0; i < COUNTERS; i++) {
		EXPECT_TRUE(has_counter(self->fd[i])) {
			TH_LOG("event %d", i);
		}
	}
	EXPECT_FALSE(has_counter(self->fd[COUNTERS]));

	close(self->fd[0]);
	EXPECT_EQ(0, ioctl(self->fd[COUNTERS], PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(0, ioctl(self->fd[COUNTERS], PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(has_counter(self->fd[COUNTERS]));
}

/*
 * Other events can use all counters of their CPU that its own northbridge
 * events do not use.
 */
TEST_F(northbridge, other_events_are_not_concerned)
{
	int other[COUNTERS], i;

	for (i = 0; i < COUNTERS; i++) {
		other[i] = open_pinned(RAW_INSTRUCTIONS, 1);
		ASSERT_LE(0, other[i]);
	}
	for (i = 0; i < COUNTERS; i++) {
		EXPECT_EQ(i < COUNTERS - 1, has_counter(other[i])) {
			TH_LOG("event %d", i);
		}
		close(other[i]);
	}
}

TEST_HARNESS_MAIN
