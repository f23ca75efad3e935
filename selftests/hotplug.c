// SPDX-License-Identifier: GPL-2.0
/*
 * A CPU goes away and comes back while events count on it. What perf core
 * makes of that: a task's event follows its task; a CPU's event keeps what it
 * has and counts no more, and one that is opened afterwards counts anew.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

#define CYCLES		3
#define LOOPS		100000UL
/* Long enough for a CPU to go and come back meanwhile. */
#define LONG_LOOPS	150000000UL

FIXTURE(hotplug)
{
	int cpu;
	char online[80];
};

static bool set_online(const char *path, bool on)
{
	return write_line(path, on ? "1" : "0");
}

FIXTURE_SETUP(hotplug)
{
	self->cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	snprintf(self->online, sizeof(self->online),
		 "/sys/devices/system/cpu/cpu%d/online", self->cpu);
	if (self->cpu < 1)
		SKIP(return, "one CPU only");
	ASSERT_EQ(0, access(self->online, W_OK));
	ASSERT_TRUE(run_on(0));
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->cpu >= 1)
		EXPECT_TRUE(set_online(self->online, true));
}

static struct perf_event_attr instructions_user(void)
{
	return counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
}

static void expect_exact_on(struct __test_metadata *_metadata, int cpu)
{
	struct perf_event_attr attr = instructions_user();
	int fd = perf_open(&attr, -1, cpu, -1, 0);

	ASSERT_LE(0, fd);
	ASSERT_TRUE(run_on(cpu));
	counted_loop(fd, 0, LOOPS);
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), read_value(fd));
	close(fd);
	ASSERT_TRUE(run_on(0));
}

TEST_F(hotplug, cpu_event)
{
	struct perf_event_attr attr = instructions_user();
	struct one_count before, after;
	int cycle, fd;

	for (cycle = 0; cycle < CYCLES; cycle++) {
		fd = perf_open(&attr, -1, self->cpu, -1, 0);
		ASSERT_LE(0, fd);
		ASSERT_TRUE(run_on(self->cpu));
		counted_loop(fd, 0, LOOPS);
		ASSERT_TRUE(run_on(0));
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));

		ASSERT_TRUE(set_online(self->online, false));
		ASSERT_TRUE(read_one(fd, &before));
		EXPECT_LE(LOOP_INSTRUCTIONS(LOOPS), before.value);
		EXPECT_EQ(-1, perf_open(&attr, -1, self->cpu, -1, 0));
		EXPECT_EQ(ENODEV, errno);

		ASSERT_TRUE(set_online(self->online, true));
		expect_exact_on(_metadata, self->cpu);
		ASSERT_TRUE(read_one(fd, &after));
		EXPECT_EQ(before.value, after.value);
		EXPECT_EQ(before.running, after.running);
		close(fd);
	}
}

/* A group of a CPU's, counting while that CPU goes. */
TEST_F(hotplug, cpu_group)
{
	struct perf_event_attr attr = instructions_user();
	struct perf_event_attr branches = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int leader, sibling;

	attr.disabled = 0;
	branches.disabled = 0;
	leader = perf_open(&attr, -1, self->cpu, -1, 0);
	ASSERT_LE(0, leader);
	sibling = perf_open(&branches, -1, self->cpu, leader, 0);
	ASSERT_LE(0, sibling);
	ASSERT_TRUE(set_online(self->online, false));
	ASSERT_TRUE(set_online(self->online, true));
	EXPECT_NE(NO_COUNT, read_value(leader));
	EXPECT_NE(NO_COUNT, read_value(sibling));
	close(sibling);
	close(leader);
	expect_exact_on(_metadata, self->cpu);
}

/*
 * A task counts its own instructions while the CPU under it goes, and while
 * it comes back: not one is lost or counted twice.
 */
TEST_F(hotplug, task_event)
{
	struct perf_event_attr attr = instructions_user();
	int cycle, status, fd, done[2];
	cpu_set_t set;
	__u64 count;
	pid_t pid;

	for (cycle = 0; cycle < CYCLES; cycle++) {
		ASSERT_EQ(0, pipe(done));
		pid = fork();
		ASSERT_LE(0, pid);
		if (pid == 0) {
			fd = perf_open_self(&attr, -1);
			if (fd < 0 || !run_on(self->cpu))
				_exit(2);
			/* Allowed everywhere, or the kernel has to break it. */
			memset(&set, 0xff, sizeof(set));
			if (sched_setaffinity(0, sizeof(set), &set))
				_exit(3);
			counted_loop(fd, 0, LONG_LOOPS);
			count = read_value(fd);
			_exit(write(done[1], &count, sizeof(count)) !=
			      sizeof(count));
		}
		usleep(50000);
		ASSERT_TRUE(set_online(self->online, false));
		ASSERT_TRUE(set_online(self->online, true));
		ASSERT_EQ(0, waitpid(pid, &status, WNOHANG)) {
			TH_LOG("the loop was too short to see anything");
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status);
		ASSERT_EQ(sizeof(count), read(done[0], &count, sizeof(count)));
		EXPECT_EQ(LOOP_INSTRUCTIONS(LONG_LOOPS), count);
		close(done[0]);
		close(done[1]);
	}
}

TEST_HARNESS_MAIN
