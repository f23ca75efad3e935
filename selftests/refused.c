// SPDX-License-Identifier: GPL-2.0
/*
 * Tests refusals other than those of a bad attr (see bad_attr.c): impossible
 * members of a group, ioctls that counting events do not support, and missing
 * privileges. The errnos are those of the built-in driver of Linux 7.3.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

/* If a structure is longer than the kernel's, the rest must be zero. */
TEST(longer_attr)
{
	struct {
		struct perf_event_attr attr;
		__u64 beyond;
	} longer = {
		.attr = counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
	};

	longer.attr.size = sizeof(longer);
	EXPECT_LE(0, perf_open_self(&longer.attr, -1));
	longer.attr.size = sizeof(longer);
	longer.beyond = 1;
	EXPECT_EQ(-1, perf_open_self(&longer.attr, -1));
	EXPECT_EQ(E2BIG, errno);
	EXPECT_EQ(sizeof(longer.attr), longer.attr.size);
}

/* Precise events must sample, and cannot be more precise than the CPU. */
TEST(precise_counting)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	char line[16];
	int precise;

	ASSERT_TRUE(read_line(CPU_PMU "/caps/max_precise", line, sizeof(line)));
	for (precise = 1; precise <= 3; precise++) {
		attr.precise_ip = precise;
		EXPECT_EQ(-1, perf_open_self(&attr, -1));
		EXPECT_EQ(precise > atoi(line) ? EOPNOTSUPP : EINVAL, errno);
	}
}

/* Siblings that are invalid for their leader. */
FIXTURE(bad_sibling)
{
	struct perf_event_attr attr;
	int leader;
};

FIXTURE_SETUP(bad_sibling)
{
	self->attr = counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	self->leader = perf_open_self(&self->attr, -1);
	ASSERT_LE(0, self->leader);
	self->attr.disabled = 0;
}

FIXTURE_TEARDOWN(bad_sibling)
{
}

TEST_F(bad_sibling, control)
{
	EXPECT_LE(0, perf_open_self(&self->attr, self->leader));
}

TEST_F(bad_sibling, pinned)
{
	self->attr.pinned = 1;
	EXPECT_EQ(-1, perf_open_self(&self->attr, self->leader));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(bad_sibling, exclusive)
{
	self->attr.exclusive = 1;
	EXPECT_EQ(-1, perf_open_self(&self->attr, self->leader));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(bad_sibling, inherits_and_leader_does_not)
{
	self->attr.inherit = 1;
	EXPECT_EQ(-1, perf_open_self(&self->attr, self->leader));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(bad_sibling, on_another_cpu)
{
	EXPECT_EQ(-1, perf_open(&self->attr, 0, 0, self->leader, 0));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, perf_open(&self->attr, -1, 0, self->leader, 0));
	EXPECT_EQ(EINVAL, errno);
}

TEST_F(bad_sibling, of_a_sibling)
{
	int sibling = perf_open_self(&self->attr, self->leader);

	ASSERT_LE(0, sibling);
	EXPECT_EQ(-1, perf_open_self(&self->attr, sibling));
	EXPECT_EQ(EINVAL, errno);
}

/* A group must fit the counters: a group with one event too many is refused. */
TEST_F(bad_sibling, one_too_many)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	unsigned int i;
	int leader = perf_open_self(&attr, -1);

	ASSERT_LE(0, leader);
	attr.disabled = 0;
	for (i = 1; i < gp_counters(); i++) {
		attr.exclude_kernel = may_count_user_alone(i);
		ASSERT_LE(0, perf_open_self(&attr, leader));
	}
	EXPECT_EQ(-1, perf_open_self(&attr, leader));
	EXPECT_EQ(EINVAL, errno);
	/* The group still counts as before. */
	counted_loop(leader, PERF_IOC_FLAG_GROUP, 1000);
	EXPECT_GE(1, read_value(leader) - 1000);
}

/* Opens a group; returns whether it is accepted. */
static bool accepts_group(const __u64 *config, unsigned int nr)
{
	struct perf_event_attr attr;
	int fd[16], status = 0;
	unsigned int i, opened;

	for (opened = 0; opened < nr; opened++) {
		attr = counting_user(PERF_TYPE_RAW, config[opened]);
		attr.disabled = opened == 0;
		fd[opened] = perf_open_self(&attr, opened ? fd[0] : -1);
		if (fd[opened] < 0) {
			status = errno;
			break;
		}
	}
	for (i = 0; i < opened; i++)
		close(fd[i]);
	return !status;
}

/* AMD's events with large increments need two counters each, of six. */
TEST(pairs_of_counters)
{
	const __u64 flops = 0x0003, other = 0x00c0;
	const struct {
		__u64 config[6];
		unsigned int nr;
		bool fits;
	} group[] = {
		{ { flops, flops, flops }, 3, true },
		{ { flops, flops, flops, flops }, 4, false },
		{ { flops, flops, other, other }, 4, true },
		{ { other, flops, other, flops, other }, 5, false },
		{ { other, other, other, other, flops }, 5, true },
		{ { other, other, other, other, other, flops }, 6, false },
	};
	unsigned int i;

	if (!is_amd() || cpu_family() < 0x17 || gp_counters() != 6)
		SKIP(return, "no such events, or another number of counters");
	for (i = 0; i < ARRAY_SIZE(group); i++) {
		EXPECT_EQ(group[i].fits, accepts_group(group[i].config, group[i].nr)) {
			TH_LOG("group %u", i);
		}
	}
}

/*
 * Family 15h: this group fits on six counters in exactly one way. The built-in
 * driver does not find it, because it counts the counters of discarded choices.
 */
TEST(overlapping_counters)
{
	const __u64 config[] = { 0x02e, 0x076, 0x080, 0x07d, 0x1000000c0, 0x000 };
	bool fits;

	if (!is_amd() || cpu_family() != 0x15)
		SKIP(return, "the counters of this CPU's events do not overlap");
	fits = accepts_group(config, ARRAY_SIZE(config));
	TH_LOG("the group %s", fits ? "is accepted" : "is refused");
	EXPECT_TRUE(fits || !on_rpmu());
}

/* Two events that only counter 2 can count on Haswell cannot be in one group there. */
TEST_F(bad_sibling, same_counter)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, 0x0148);
	int leader = perf_open_self(&attr, -1);
	int sibling;

	if (!is_haswell_or_skylake())
		SKIP(return, "the counters of this CPU's events are not known to the test");
	ASSERT_LE(0, leader);
	attr = counting(PERF_TYPE_RAW, 0x0c000ca3);
	attr.disabled = 0;
	sibling = perf_open_self(&attr, leader);
	if (cpu_model() == MODEL_HASWELL) {
		EXPECT_EQ(-1, sibling);
		EXPECT_EQ(EINVAL, errno);
	} else {
		EXPECT_LE(0, sibling);
	}
}

/* ioctl() on an event that does not sample. */
TEST(ioctls)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	__u64 period = 100000;
	int fd = perf_open_self(&attr, -1);

	ASSERT_LE(0, fd);
	EXPECT_EQ(-1, ioctl(fd, PERF_EVENT_IOC_REFRESH, 1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_EQ(-1, ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, 2));
	EXPECT_EQ(EBADF, errno);
	EXPECT_EQ(-1, ioctl(fd, PERF_EVENT_IOC_MODIFY_ATTRIBUTES, &attr));
	EXPECT_EQ(EOPNOTSUPP, errno);
	EXPECT_EQ(-1, ioctl(fd, _IO('$', 99)));
	EXPECT_EQ(ENOTTY, errno);
}

/* Refusals for unprivileged users (perf_event_paranoid 1). */
TEST(unprivileged)
{
	const char *paranoid = "/proc/sys/kernel/perf_event_paranoid";
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int control, any, cpu;
	char before[16];
	gid_t none = 65534;

	ASSERT_TRUE(read_line(paranoid, before, sizeof(before)));
	ASSERT_TRUE(write_line(paranoid, "1"));

	/* Change only the effective user, so that the sysctl can be restored. */
	ASSERT_EQ(0, setresgid(-1, none, -1));
	ASSERT_EQ(0, setresuid(-1, 65534, -1));
	control = perf_open_self(&attr, -1);
	attr.config |= 1 << 21;
	any = perf_open_self(&attr, -1) < 0 ? errno : 0;
	attr.config = RAW_BRANCHES;
	cpu = perf_open(&attr, -1, 0, -1, 0) < 0 ? errno : 0;
	ASSERT_EQ(0, setresuid(-1, 0, -1));
	ASSERT_TRUE(write_line(paranoid, before));

	EXPECT_LE(0, control);
	/* AMD's CPUs do not have the bit; the driver drops it. */
	EXPECT_EQ(is_amd() ? 0 : EACCES, any);
	EXPECT_EQ(EACCES, cpu);
}

TEST_HARNESS_MAIN
