// SPDX-License-Identifier: GPL-2.0
/*
 * Tests group reads: PERF_FORMAT_GROUP with ids and times, for groups of
 * hardware events and for groups mixed with software events.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

#define LOOPS	100000UL

/* Stands for the dynamic type of the PMU "msr". */
#define TYPE_MSR	(~0U)
#define MSR_TSC		0

struct member {
	__u32 type;
	__u64 config;
};

FIXTURE(group)
{
	int fd[MAX_GROUP];
	__u64 id[MAX_GROUP];
	int instructions;	/* index of the event whose count is known */
};

FIXTURE_VARIANT(group)
{
	int nr;
	struct member member[MAX_GROUP];
};

FIXTURE_VARIANT_ADD(group, alone)
{
	.nr = 1,
	.member = {
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	},
};

FIXTURE_VARIANT_ADD(group, hardware)
{
	.nr = 4,
	.member = {
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ PERF_TYPE_RAW, INTEL_RAW_BRANCHES },
	},
};

FIXTURE_VARIANT_ADD(group, software_leader)
{
	.nr = 3,
	.member = {
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS },
	},
};

/* The last event joins a group that already has hardware events. */
FIXTURE_VARIANT_ADD(group, software_member)
{
	.nr = 4,
	.member = {
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS },
		{ PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES },
	},
};

/* A group with an event of the PMU "msr" uses two of the CPU's PMUs. */
FIXTURE_VARIANT_ADD(group, two_pmus)
{
	.nr = 3,
	.member = {
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
		{ TYPE_MSR, MSR_TSC },
		{ PERF_TYPE_RAW, INTEL_RAW_BRANCHES },
	},
};

/* The same with the other PMU as the leader. */
FIXTURE_VARIANT_ADD(group, other_pmu_leads)
{
	.nr = 2,
	.member = {
		{ TYPE_MSR, MSR_TSC },
		{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS },
	},
};

/* Returns the attributes of a member; with the type TYPE_MSR if there is no PMU "msr". */
static struct perf_event_attr attr_of(const struct member *member)
{
	char type[16];

	if (member->type != TYPE_MSR)
		return counting_user(member->type, member->config);
	if (!read_line("/sys/bus/event_source/devices/msr/type", type, sizeof(type)))
		return counting(TYPE_MSR, member->config);
	/* The PMU cannot exclude the kernel. */
	return counting(atoi(type), member->config);
}

FIXTURE_SETUP(group)
{
	struct perf_event_attr attr;
	unsigned int hardware = 0;
	int i;

	self->instructions = -1;
	for (i = 0; i < variant->nr; i++)
		hardware += variant->member[i].type != PERF_TYPE_SOFTWARE;
	if (hardware > gp_counters() + fixed_counters())
		SKIP(return, "the group needs more counters");
	for (i = 0; i < variant->nr; i++) {
		attr = attr_of(&variant->member[i]);
		if (attr.type == TYPE_MSR)
			SKIP(return, "this kernel has no PMU msr");
		attr.read_format = READ_GROUP;
		attr.disabled = i == 0;
		self->fd[i] = perf_open_self(&attr, i ? self->fd[0] : -1);
		ASSERT_LE(0, self->fd[i]) {
			TH_LOG("member %d: %s", i, strerror(errno));
		}
		ASSERT_EQ(0, ioctl(self->fd[i], PERF_EVENT_IOC_ID,
				   &self->id[i]));
		if (attr.type == PERF_TYPE_HARDWARE &&
		    attr.config == PERF_COUNT_HW_INSTRUCTIONS)
			self->instructions = i;
	}
	ASSERT_LE(0, self->instructions);
}

FIXTURE_TEARDOWN(group)
{
}

static int group_size(int nr)
{
	return 3 * 8 + nr * 16;
}

TEST_F(group, ids_and_values)
{
	struct group_count count = {};
	int i, j;

	counted_loop(self->fd[0], PERF_IOC_FLAG_GROUP, LOOPS);

	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &count, sizeof(count)));
	EXPECT_EQ(variant->nr, count.nr);
	for (i = 0; i < variant->nr; i++) {
		EXPECT_EQ(self->id[i], count.event[i].id);
		for (j = 0; j < i; j++)
			EXPECT_NE(self->id[j], count.event[i].id);
	}
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS),
		  count.event[self->instructions].value);
}

/* A group that fits runs whenever it is enabled. */
TEST_F(group, times)
{
	struct group_count first = {}, second = {};

	counted_loop(self->fd[0], PERF_IOC_FLAG_GROUP, LOOPS);
	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &first, sizeof(first)));
	EXPECT_LT(0, first.enabled);
	EXPECT_EQ(first.enabled, first.running);

	/* Disabled: times and counts do not change. */
	usleep(1000);
	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &second, sizeof(second)));
	EXPECT_EQ(0, memcmp(&first, &second, group_size(variant->nr)));

	counted_loop(self->fd[0], PERF_IOC_FLAG_GROUP, LOOPS);
	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &second, sizeof(second)));
	EXPECT_LT(first.enabled, second.enabled);
	EXPECT_EQ(second.enabled, second.running);
	EXPECT_EQ(2 * LOOP_INSTRUCTIONS(LOOPS),
		  second.event[self->instructions].value);
}

/*
 * Read while the group counts: counts only grow, and are consistent with the
 * times.
 */
TEST_F(group, read_while_counting)
{
	struct group_count first = {}, second = {};
	int i;

	ASSERT_EQ(0, ioctl(self->fd[0], PERF_EVENT_IOC_ENABLE,
			   PERF_IOC_FLAG_GROUP));
	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &first, sizeof(first)));
	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &second, sizeof(second)));
	EXPECT_LT(first.running, second.running);
	for (i = 0; i < variant->nr; i++)
		EXPECT_LE(first.event[i].value, second.event[i].value);
	EXPECT_LT(first.event[self->instructions].value,
		  second.event[self->instructions].value);
}

/* RESET of the group clears every count, but not the times. */
TEST_F(group, reset)
{
	struct group_count before = {}, after = {};
	int i;

	counted_loop(self->fd[0], PERF_IOC_FLAG_GROUP, LOOPS);
	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &before, sizeof(before)));
	ASSERT_EQ(0, ioctl(self->fd[0], PERF_EVENT_IOC_RESET,
			   PERF_IOC_FLAG_GROUP));
	ASSERT_EQ(group_size(variant->nr),
		  read(self->fd[0], &after, sizeof(after)));
	EXPECT_EQ(before.enabled, after.enabled);
	for (i = 0; i < variant->nr; i++)
		EXPECT_EQ(0, after.event[i].value);
	EXPECT_NE(0, before.event[self->instructions].value);
}

TEST_F(group, short_buffer)
{
	struct group_count count;

	ASSERT_EQ(-1, read(self->fd[0], &count, group_size(variant->nr) - 1));
	EXPECT_EQ(ENOSPC, errno);
}

TEST_HARNESS_MAIN
