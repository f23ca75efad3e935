// SPDX-License-Identifier: GPL-2.0
/*
 * The ways in which an event starts and stops to count, and what it says when
 * it cannot: enabled at once, by ioctl, by prctl, at exec, inherited, pinned,
 * throttled.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define LOOPS	100000UL

static const struct {
	__u64 id;
	bool moves;		/* a busy loop must make it count */
} generic[] = {
	{ PERF_COUNT_HW_CPU_CYCLES, true },
	{ PERF_COUNT_HW_INSTRUCTIONS, true },
	{ PERF_COUNT_HW_CACHE_REFERENCES, false },
	{ PERF_COUNT_HW_CACHE_MISSES, false },
	{ PERF_COUNT_HW_BRANCH_INSTRUCTIONS, true },
	{ PERF_COUNT_HW_BRANCH_MISSES, false },
	{ PERF_COUNT_HW_BUS_CYCLES, true },
	{ PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, false },
	{ PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false },
	{ PERF_COUNT_HW_REF_CPU_CYCLES, true },
};

/* All ten generic events: each counts, or is refused as unknown. */
TEST(generic_events)
{
	struct perf_event_attr attr;
	struct one_count count;
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(generic); i++) {
		attr = counting(PERF_TYPE_HARDWARE, generic[i].id);
		fd = perf_open_self(&attr, -1);
		EXPECT_EQ(has_generic_event(generic[i].id) ? 0 : ENOENT,
			  fd < 0 ? errno : 0) {
			TH_LOG("generic event %u", i);
		}
		if (fd < 0)
			continue;
		counted_loop(fd, 0, LOOPS);
		ASSERT_TRUE(read_one(fd, &count));
		EXPECT_LT(0, count.running);
		EXPECT_EQ(count.enabled, count.running);
		if (generic[i].moves)
			EXPECT_LT(0, count.value) {
				TH_LOG("generic event %u", i);
			}
		close(fd);
	}
}

TEST(disabled_does_not_count)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct one_count count;
	int fd = perf_open_self(&attr, -1);

	ASSERT_LE(0, fd);
	usleep(1000);
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_EQ(0, count.value);
	EXPECT_EQ(0, count.enabled);
	EXPECT_EQ(0, count.running);
}

TEST(opened_enabled)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	__u64 first, second;
	int fd;

	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	first = read_value(fd);
	EXPECT_LT(0, first);
	counted_loop(fd, 0, LOOPS);
	second = read_value(fd);
	EXPECT_LE(first + LOOP_INSTRUCTIONS(LOOPS), second);
	/* Disabled by the end of the loop: it stands still from there. */
	EXPECT_EQ(second, read_value(fd));
}

/* prctl() switches every event that the task owns. */
TEST(prctl_switches)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct perf_event_attr raw = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd[2] = { perf_open_self(&attr, -1), perf_open_self(&raw, -1) };
	__u64 stopped[2];
	int i;

	ASSERT_LE(0, fd[0]);
	ASSERT_LE(0, fd[1]);
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_ENABLE));
	usleep(1000);
	ASSERT_EQ(0, prctl(PR_TASK_PERF_EVENTS_DISABLE));
	for (i = 0; i < 2; i++) {
		stopped[i] = read_value(fd[i]);
		EXPECT_LT(0, stopped[i]);
		EXPECT_NE(NO_COUNT, stopped[i]);
	}
	usleep(1000);
	for (i = 0; i < 2; i++)
		EXPECT_EQ(stopped[i], read_value(fd[i]));
}

/*
 * exact_loop is EXACT_LOOP_INSTRUCTIONS long from its first instruction to
 * its exit; what the task did before the exec is not counted.
 */
TEST(enable_on_exec)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd, status, run, go[2];
	pid_t pid;
	char byte;

	attr.enable_on_exec = 1;
	for (run = 0; run < 3; run++) {
		ASSERT_EQ(0, pipe(go));
		pid = fork();
		ASSERT_LE(0, pid);
		if (pid == 0) {
			close(go[1]);
			if (read(go[0], &byte, 1) == 0)
				execl("./exact_loop", "exact_loop", NULL);
			_exit(127);
		}
		fd = perf_open(&attr, pid, -1, -1, 0);
		ASSERT_LE(0, fd);
		close(go[0]);
		close(go[1]);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status);
		EXPECT_EQ(EXACT_LOOP_INSTRUCTIONS, read_value(fd));
		close(fd);
	}
}

/* A raw fork: no handlers of libc run between it and the loop. */
static void inherited_loop(struct __test_metadata *_metadata, int other,
			   unsigned long n)
{
	pid_t pid = syscall(SYS_fork);
	int status;

	ASSERT_LE(0, pid);
	if (pid == 0) {
		/* Around a descriptor that is not the inherited event's. */
		counted_loop(other, 0, n);
		syscall(SYS_exit_group, 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
}

/*
 * A child's events are the driver's once more (event_init with a parent), and
 * their counts come back into the parent's when it ends.
 */
TEST(inherited)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct perf_event_attr dummy =
		counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY);
	int other = perf_open_self(&dummy, -1);
	__u64 start, little, much;
	int fd;

	ASSERT_LE(0, other);
	attr.inherit = 1;
	attr.disabled = 0;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	/* Once before, so that both runs take the same way. */
	inherited_loop(_metadata, other, 1);
	start = read_value(fd);
	inherited_loop(_metadata, other, 1);
	little = read_value(fd);
	inherited_loop(_metadata, other, 1 + LOOPS);
	much = read_value(fd);
	EXPECT_EQ(2 * LOOPS, (much - little) - (little - start));
}

/* The tasks of a control group on a CPU, and no one else there. */
TEST(control_group)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	char top[] = "/tmp/cgroup-XXXXXX", group[64], tasks[80];
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	int dir, fd, status;
	pid_t pid;

	ASSERT_NE(NULL, mkdtemp(top));
	ASSERT_EQ(0, mount("none", top, "cgroup", 0, "perf_event"));
	snprintf(group, sizeof(group), "%s/group", top);
	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", group);
	ASSERT_EQ(0, mkdir(group, 0700));
	dir = open(group, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, dir);
	ASSERT_TRUE(run_on(cpu));
	fd = perf_open(&attr, dir, cpu, -1, PERF_FLAG_PID_CGROUP);
	ASSERT_LE(0, fd) {
		TH_LOG("perf_event_open: %m");
	}

	counted_loop(fd, 0, LOOPS);
	EXPECT_EQ(0, read_value(fd));
	pid = fork();
	ASSERT_LE(0, pid);
	if (pid == 0) {
		if (write_line(tasks, "0"))
			counted_syscalls(fd, 0, 1000, SYS_sched_yield, NULL);
		_exit(0);
	}
	/* It has to share the CPU. */
	while (waitpid(pid, &status, WNOHANG) == 0)
		sched_yield();
	EXPECT_EQ(SYSCALLS_INSTRUCTIONS(1000), read_value(fd));

	close(fd);
	close(dir);
	EXPECT_EQ(0, rmdir(group));
	EXPECT_EQ(0, umount(top));
	EXPECT_EQ(0, rmdir(top));
}

#define GOING_EVENTS	8
#define GOING_ROUNDS	1000
#define GOING_S		15

FIXTURE(listed)
{
	int cpu;
};

FIXTURE_SETUP(listed)
{
	self->cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	if (!on_rpmu() || self->cpu == 0)
		SKIP(return, "the built-in driver lists no events, or one CPU only");
}

FIXTURE_TEARDOWN(listed)
{
}

/*
 * Events come and go while rpmu lists them in debugfs. An event of a control
 * group that does not run keeps the CPU's context inactive; so other events wait
 * there, and closing one takes it out of the context without asking its CPU.
 * No event of a task may run there, which would start the context.
 */
TEST_F_TIMEOUT(listed, while_they_go, 120)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	char top[] = "/tmp/cgroup-XXXXXX", group[64], schedule[64], waits[64];
	int dir, outside, fds[GOING_EVENTS], cpu = self->cpu, i, round, status;
	static char text[1 << 16];
	struct one_count count;
	time_t end;
	__u64 id;
	pid_t reader;

	snprintf(schedule, sizeof(schedule), "/sys/kernel/debug/rpmu/cpu%d/schedule", cpu);
	ASSERT_NE(NULL, mkdtemp(top));
	ASSERT_EQ(0, mount("none", top, "cgroup", 0, "perf_event"));
	snprintf(group, sizeof(group), "%s/group", top);
	ASSERT_EQ(0, mkdir(group, 0700));
	dir = open(group, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, dir);
	ASSERT_TRUE(run_on(0));
	attr.disabled = 0;
	outside = perf_open(&attr, dir, cpu, -1, PERF_FLAG_PID_CGROUP);
	ASSERT_LE(0, outside);
	attr.disabled = 1;

	reader = fork_helper();
	ASSERT_LE(0, reader);
	if (!reader) {
		run_on(cpu);
		while (read_file(schedule, text, sizeof(text)))
			;
		_exit(1);
	}
	end = time(NULL) + GOING_S;
	for (round = 0; round < GOING_ROUNDS && time(NULL) < end; round++) {
		ASSERT_EQ(0, waitpid(reader, &status, WNOHANG));
		for (i = 0; i < GOING_EVENTS; i++) {
			fds[i] = perf_open(&attr, -1, cpu, -1, 0);
			ASSERT_LE(0, fds[i]);
			ASSERT_EQ(0, ioctl(fds[i], PERF_EVENT_IOC_ENABLE, 0));
		}
		if (!round) {
			ASSERT_EQ(0, ioctl(fds[0], PERF_EVENT_IOC_ID, &id));
			snprintf(waits, sizeof(waits), "\nwaits type=4 config=%#x id=%llu ",
				 RAW_BRANCHES, id);
			ASSERT_TRUE(read_file(schedule, text, sizeof(text)));
			EXPECT_NE(NULL, strstr(text, waits)) TH_LOG("%s", text);
			ASSERT_TRUE(read_one(fds[0], &count));
			EXPECT_EQ(0, count.running);
		}
		for (i = GOING_EVENTS - 1; i >= 0; i--)
			close(fds[i]);
	}
	EXPECT_EQ(0, kill(reader, SIGKILL));
	waitpid(reader, &status, 0);

	close(outside);
	close(dir);
	EXPECT_EQ(0, rmdir(group));
	EXPECT_EQ(0, umount(top));
	EXPECT_EQ(0, rmdir(top));
}

/*
 * A pinned event that finds no counter goes to the error state: read() gives
 * nothing, until it is enabled again and finds one.
 */
TEST(pinned_without_counter)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	unsigned int i, gp = gp_counters();
	struct one_count count;
	int fd[33];

	ASSERT_LT(0, gp);
	ASSERT_GE(32, gp);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	attr.pinned = 1;
	for (i = 0; i <= gp; i++) {
		/* The last one, too, finds a counter when the first one has gone. */
		attr.exclude_kernel = i == gp || may_count_user_alone(i);
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	}
	for (i = 0; i < gp; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		EXPECT_LT(0, count.value);
		EXPECT_EQ(count.enabled, count.running);
	}
	EXPECT_EQ(0, read(fd[gp], &count, sizeof(count)));

	close(fd[0]);
	EXPECT_EQ(0, read(fd[gp], &count, sizeof(count)));
	counted_loop(fd[gp], 0, LOOPS);
	ASSERT_TRUE(read_one(fd[gp], &count));
	EXPECT_GE(1, count.value - LOOP_BRANCHES(LOOPS));
}

/* So does a pinned group of which one member finds no counter; all of it waits. */
TEST(pinned_group_without_counter)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	unsigned int i, gp = gp_counters();
	int fd[32], leader, sibling;
	struct group_count count;

	ASSERT_LT(1, gp);
	ASSERT_GE(32, gp);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	attr.pinned = 1;
	for (i = 0; i < gp - 1; i++) {
		/* Leaves counters to the group's two. */
		attr.exclude_kernel = may_count_user_alone(i + 2);
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	}
	attr.exclude_kernel = 1;
	attr.read_format = READ_GROUP;
	leader = perf_open_self(&attr, -1);
	ASSERT_LE(0, leader);
	attr.pinned = 0;
	attr.disabled = 0;
	sibling = perf_open_self(&attr, leader);
	ASSERT_LE(0, sibling);
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	branch_loop(LOOPS);
	EXPECT_EQ(0, read(leader, &count, sizeof(count)));

	/* Nor when there is room: only when it is enabled again. */
	close(fd[0]);
	branch_loop(LOOPS);
	EXPECT_EQ(0, read(leader, &count, sizeof(count)));
	counted_loop(leader, 0, LOOPS);
	ASSERT_LT(0, read(leader, &count, sizeof(count)));
	ASSERT_EQ(2, count.nr);
	EXPECT_GE(1, count.event[0].value - LOOP_BRANCHES(LOOPS));
	EXPECT_EQ(count.event[0].value, count.event[1].value);
}

/* Pinned goes before flexible, also when it comes later. */
TEST(pinned_displaces_flexible)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	unsigned int i, gp = gp_counters();
	struct one_count count;
	int fd[33];

	ASSERT_LT(0, gp);
	ASSERT_GE(32, gp);
	for (i = 0; i <= gp; i++) {
		attr.pinned = i == gp;
		attr.exclude_kernel = i == gp || may_count_user_alone(i);
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
		if (i < gp)
			ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	}
	counted_loop(fd[gp], 0, LOOPS);
	ASSERT_TRUE(read_one(fd[gp], &count));
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_GE(1, count.value - LOOP_BRANCHES(LOOPS));
}

/* An exclusive group has the PMU to itself; others wait. */
TEST(exclusive)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct one_count count;
	int alone, other;

	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	attr.exclusive = 1;
	attr.pinned = 1;
	alone = perf_open_self(&attr, -1);
	ASSERT_LE(0, alone);
	ASSERT_EQ(0, ioctl(alone, PERF_EVENT_IOC_ENABLE, 0));

	attr.exclusive = 0;
	attr.pinned = 0;
	other = perf_open_self(&attr, -1);
	ASSERT_LE(0, other);
	counted_loop(other, 0, LOOPS);
	ASSERT_TRUE(read_one(other, &count));
	EXPECT_LT(0, count.enabled);
	EXPECT_EQ(0, count.running);
	EXPECT_EQ(0, count.value);

	close(alone);
	counted_loop(other, 0, LOOPS);
	EXPECT_GE(1, read_value(other) - LOOP_BRANCHES(LOOPS));
}

/* An event of each CPU, all at once; each sees what its own CPU does. */
TEST(every_cpu)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int cpu, nr = sysconf(_SC_NPROCESSORS_ONLN);
	int fd[64];

	ASSERT_LT(0, nr);
	ASSERT_GE(64, nr);
	for (cpu = 0; cpu < nr; cpu++) {
		fd[cpu] = perf_open(&attr, -1, cpu, -1, 0);
		ASSERT_LE(0, fd[cpu]);
	}
	for (cpu = 0; cpu < nr; cpu++) {
		ASSERT_TRUE(run_on(cpu));
		ASSERT_TRUE(take_cpu(true));
		counted_loop(fd[cpu], 0, LOOPS * (cpu + 1));
		ASSERT_TRUE(take_cpu(false));
	}
	for (cpu = 0; cpu < nr; cpu++)
		EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS * (cpu + 1)),
			  read_value(fd[cpu]));
}

/* On another CPU than the task is on: the driver is asked by an IPI. */
TEST(from_another_cpu)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct one_count count;
	int fd;

	if (sysconf(_SC_NPROCESSORS_ONLN) < 2)
		SKIP(return, "one CPU only");
	attr.exclude_user = 1;
	ASSERT_TRUE(run_on(0));
	fd = perf_open(&attr, -1, 1, -1, 0);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	usleep(20000);
	/* read() makes the other CPU work: its kernel counts instructions. */
	ASSERT_TRUE(read_one(fd, &count));
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_LT(0, count.value);
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_LE(20000000, count.enabled);
}

#define SAMPLE_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"

/* INST_RETIRED.PREC_DIST: on PMC1 only, on Haswell and Skylake. */
#define RAW_ONLY_PMC1	0x01c0

/*
 * A leader that samples, in software, far more often than it may: after one
 * sample the perf core stops the whole group until the next timer tick, and
 * that from an hrtimer's interrupt, while the PMU is running.
 */
FIXTURE(throttled)
{
	char rate[32];
};

FIXTURE_SETUP(throttled)
{
	ASSERT_TRUE(read_line(SAMPLE_RATE, self->rate, sizeof(self->rate)));
	ASSERT_TRUE(write_line(SAMPLE_RATE, "100"));
}

FIXTURE_TEARDOWN(throttled)
{
	write_line(SAMPLE_RATE, self->rate);
}

#define SIBLINGS	3

/* The leader, or -1; the siblings' descriptors follow it. */
static int throttled_group(pid_t pid, int cpu, int sibling[SIBLINGS])
{
	struct perf_event_attr clock =
		counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	/* Not instructions: the built-in driver lets fixed counters run on. */
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, leader;

	clock.sample_period = 20000;
	leader = perf_open(&clock, pid, cpu, -1, 0);
	attr.disabled = 0;
	for (i = 0; i < SIBLINGS; i++) {
		sibling[i] = perf_open(&attr, pid, cpu, leader, 0);
		if (sibling[i] < 0)
			return -1;
	}
	return leader;
}

/* They stop, all at once, and another event counts on. */
TEST_F(throttled, siblings_stop)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int sibling[SIBLINGS], leader = throttled_group(0, -1, sibling);
	int other = perf_open_self(&attr, -1);
	unsigned long loops = 200 * LOOPS;
	__u64 first;

	ASSERT_LE(0, leader);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP));
	counted_loop(other, 0, loops);
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP));
	/* Nothing where the host was slow: the first sample came before the loop. */
	first = read_value(sibling[0]);
	EXPECT_GT(loops / 2, first);
	EXPECT_EQ(first, read_value(sibling[1]));
	EXPECT_EQ(first, read_value(sibling[2]));
	EXPECT_GE(1, read_value(other) - LOOP_BRANCHES(loops));
}

/*
 * A group of a CPU stays there when another task comes, and that task's event
 * takes the counter of one of the siblings while they are stopped.
 */
TEST_F(throttled, siblings_move)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_ONLY_PMC1);
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	int i, round, leader, other, status, go[2];
	int sibling[SIBLINGS];
	char byte;
	pid_t pid;

	if (!is_haswell_or_skylake())
		SKIP(return, "no event for one counter is known");
	ASSERT_TRUE(run_on(cpu));
	attr.disabled = 0;
	for (round = 0; round < 10; round++) {
		ASSERT_EQ(0, pipe(go));
		pid = fork();
		ASSERT_LE(0, pid);
		if (pid == 0) {
			close(go[1]);
			_exit(read(go[0], &byte, 1));
		}
		usleep(1000);
		other = perf_open(&attr, pid, -1, -1, 0);
		ASSERT_LE(0, other);
		leader = throttled_group(-1, cpu, sibling);
		ASSERT_LE(0, leader);
		ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE,
				   PERF_IOC_FLAG_GROUP));
		branch_loop(LOOPS);
		close(go[0]);
		close(go[1]);
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status);
		/* Little has run: a thousand times as much is no count. */
		for (i = 0; i < SIBLINGS; i++)
			EXPECT_GT(1000 * LOOPS, read_value(sibling[i]));
		for (i = 0; i < SIBLINGS; i++)
			close(sibling[i]);
		close(leader);
		EXPECT_LT(0, read_value(other));
		close(other);
	}
}

TEST_HARNESS_MAIN
