// SPDX-License-Identifier: GPL-2.0
/*
 * Tests a software PMU on rust/perf without the rest of rpmu
 * (tally/tally_pmu.rs), beside either driver of the CPU's PMU. It counts the
 * numbers that this program writes to a file. Also tests what happens to the
 * events when the module is unloaded.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define TALLY		"/sys/bus/event_source/devices/tally"
#define MODULE		"./tally.ko"

/* Adds @marks to the counter of this CPU. */
static bool add_marks(unsigned int marks)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", marks);
	return write_line(TALLY "/mark", text);
}

/* Returns the attributes of a disabled event that counts marks. */
static struct perf_event_attr marks_event(void)
{
	char type[16] = "";

	read_line(TALLY "/type", type, sizeof(type));
	return counting(strtoul(type, NULL, 10), 0);
}

FIXTURE(tally) {
	struct perf_event_attr attr;
};

FIXTURE_SETUP(tally)
{
	if (access(MODULE, F_OK))
		SKIP(return, "there is no %s", MODULE);
	ASSERT_TRUE(load_module(MODULE, "")) TH_LOG("%s: %s", MODULE, strerror(errno));
	self->attr = marks_event();
}

FIXTURE_TEARDOWN(tally)
{
	/* The last event may still be on its way out. */
	for (int tries = 0; tries < 100 && !unload_module("tally"); tries++) {
		if (errno == ENOENT)
			return;
		usleep(10000);
	}
	EXPECT_NE(0, access("/sys/module/tally", F_OK));
}

/* An event of this task counts the task's marks while it is enabled, and no others. */
TEST_F(tally, counts_a_task)
{
	int fd = perf_open_self(&self->attr, -1);
	pid_t child;

	ASSERT_LE(0, fd) TH_LOG("%s", strerror(errno));
	ASSERT_TRUE(add_marks(1000));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_TRUE(add_marks(5));
	child = fork();
	if (child == 0)
		_exit(!add_marks(1000));
	ASSERT_EQ(child, waitpid(child, NULL, 0));
	ASSERT_TRUE(add_marks(7));
	EXPECT_EQ(12, read_value(fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_TRUE(add_marks(1000));
	EXPECT_EQ(12, read_value(fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_TRUE(add_marks(1));
	EXPECT_EQ(13, read_value(fd));
	close(fd);
}

/* An event of a CPU counts its marks, no matter which task writes them. */
TEST_F(tally, counts_a_cpu)
{
	bool two = sysconf(_SC_NPROCESSORS_ONLN) > 1;
	int fd;

	self->attr.disabled = 0;
	fd = perf_open(&self->attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd) TH_LOG("%s", strerror(errno));
	ASSERT_TRUE(run_on(0));
	ASSERT_TRUE(add_marks(3));
	if (two) {
		ASSERT_TRUE(run_on(1));
		ASSERT_TRUE(add_marks(1000));
	}
	EXPECT_EQ(3, read_value(fd));
	close(fd);
}

/* A group with one of the kernel's software events. */
TEST_F(tally, counts_in_a_group)
{
	struct perf_event_attr clock = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK);
	struct group_count count;
	int leader, fd;

	clock.read_format = READ_GROUP;
	self->attr.read_format = READ_GROUP;
	self->attr.disabled = 0;
	leader = perf_open_self(&clock, -1);
	ASSERT_LE(0, leader);
	fd = perf_open_self(&self->attr, leader);
	ASSERT_LE(0, fd) TH_LOG("%s", strerror(errno));
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_TRUE(add_marks(9));
	ASSERT_LT(0, read(leader, &count, sizeof(count)));
	EXPECT_EQ(2, count.nr);
	EXPECT_EQ(9, count.event[1].value);
	close(fd);
	close(leader);
}

TEST_F(tally, refuses_invalid_events)
{
	self->attr.config = 1;
	EXPECT_EQ(-1, perf_open_self(&self->attr, -1));
	EXPECT_EQ(EINVAL, errno);
	self->attr.config = 0;
	self->attr.sample_period = 1;
	EXPECT_EQ(-1, perf_open_self(&self->attr, -1));
	EXPECT_EQ(EOPNOTSUPP, errno);
}

/* perf stat also counts the children of its command, which inherit perf's events. */
TEST_F(tally, perf_stat)
{
	static const char command[] =
		"perf stat -x, -e tally/marks/ sh -c 'echo 5 >" TALLY "/mark; "
		"(echo 3 >" TALLY "/mark); echo 7 >" TALLY "/mark' 2>&1";
	static const char expected[] = "15,,tally/marks/,";
	FILE *perf = popen(command, "r");
	char line[256] = "";

	ASSERT_NE(NULL, perf);
	EXPECT_NE(NULL, fgets(line, sizeof(line), perf));
	EXPECT_EQ(0, pclose(perf));
	line[strlen(expected)] = '\0';
	EXPECT_STREQ(expected, line);
}

/* An open event keeps the module. */
TEST_F(tally, rmmod_is_refused)
{
	int fd;

	self->attr.disabled = 0;
	fd = perf_open_self(&self->attr, -1);
	ASSERT_LE(0, fd) TH_LOG("%s", strerror(errno));
	EXPECT_FALSE(unload_module("tally"));
	EXPECT_EQ(EWOULDBLOCK, errno);
	ASSERT_TRUE(add_marks(5));
	EXPECT_EQ(5, read_value(fd));
	close(fd);
}

/*
 * If the module is forcibly unloaded, its users lose their events:
 * perf_pmu_unregister() (kernel/events/core.c) detaches them, because the PMU has
 * no event_unmapped. At that time, one event is on a CPU, one is off.
 */
TEST_F(tally, rmmod_by_force_revokes)
{
	int on, off;

	if (checks_itself())
		SKIP(return, "forced unloading would turn lockdep off");
	off = perf_open_self(&self->attr, -1);
	self->attr.disabled = 0;
	on = perf_open_self(&self->attr, -1);
	ASSERT_LE(0, on);
	ASSERT_LE(0, off);
	if (syscall(SYS_delete_module, "tally", O_NONBLOCK | O_TRUNC)) {
		close(on);
		close(off);
		SKIP(return, "this kernel does not support forced unloading");
	}
	EXPECT_NE(0, access(TALLY, F_OK));
	EXPECT_EQ(-1, ioctl(on, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(ENODEV, errno);
	EXPECT_EQ(-1, ioctl(off, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(ENODEV, errno);
	close(on);
	close(off);

	/* The module can be loaded again and works as before. */
	ASSERT_TRUE(load_module(MODULE, ""));
	self->attr = marks_event();
	self->attr.disabled = 0;
	on = perf_open_self(&self->attr, -1);
	ASSERT_LE(0, on) TH_LOG("%s", strerror(errno));
	ASSERT_TRUE(add_marks(5));
	EXPECT_EQ(5, read_value(on));
	close(on);
}

TEST_HARNESS_MAIN
