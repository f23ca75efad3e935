// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the ways to start and stop an event: at open, by ioctl, by prctl, at
 * exec, inherited, pinned, throttled. Also tests read() of an event that cannot
 * count, and rpmu's probes for pinned events.
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

OWN_COUNTERS()

#define LOOPS	100000UL

static const struct {
	__u64 id;
	bool moves;		/* the count of a busy loop must not be 0 */
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
	/* The loop ends by disabling the event. */
	EXPECT_EQ(second, read_value(fd));
}

/* prctl() enables and disables all events that the task owns. */
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
 * exact_loop executes EXACT_LOOP_INSTRUCTIONS from its first instruction to its
 * exit; instructions before the exec are not counted.
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

/* Runs the loop in a child. Forks by system call, so that no atfork handlers run. */
static void inherited_loop(struct __test_metadata *_metadata, int other,
			   unsigned long n)
{
	pid_t pid = syscall(SYS_fork);
	int status;

	ASSERT_LE(0, pid);
	if (pid == 0) {
		/*
		 * Enables and disables an event other than the inherited one.
		 */
		counted_loop(other, 0, n);
		syscall(SYS_exit_group, 0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
}

/*
 * A child inherits events (event->parent is set in the driver's event_init), and
 * their counts are added to the parent's when the child ends.
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
	/* Warm up, so that both runs execute the same kernel code. */
	inherited_loop(_metadata, other, 1);
	start = read_value(fd);
	inherited_loop(_metadata, other, 1);
	little = read_value(fd);
	inherited_loop(_metadata, other, 1 + LOOPS);
	much = read_value(fd);
	EXPECT_EQ(2 * LOOPS, (much - little) - (little - start));
}

/* An event of a control group counts only the group's tasks on a CPU. */
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
	/* The child runs on this CPU. */
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
 * Opens and closes events while rpmu lists them in debugfs. An event of a control
 * group that does not run keeps the CPU's context inactive; so other events wait
 * in the context, and close() removes one without an IPI to its CPU. No event of
 * a task may run there, as it would activate the context.
 */
TEST_F_TIMEOUT(listed, while_opened_and_closed, 120)
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
 * A pinned event that gets no counter is put into the error state: read()
 * returns 0 until the event is enabled again and gets a counter.
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
		/* The last event must fit when the first one is closed. */
		attr.exclude_kernel = i == gp || may_count_user_alone(i);
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	}
	for (i = 0; i < gp; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		EXPECT_LT(0, count.value);
		/*
		 * read() takes the enabled time first; the task may leave the
		 * CPU before it takes the running time.
		 */
		EXPECT_LE(count.enabled, count.running);
	}
	EXPECT_EQ(0, read(fd[gp], &count, sizeof(count)));

	close(fd[0]);
	EXPECT_EQ(0, read(fd[gp], &count, sizeof(count)));
	counted_loop(fd[gp], 0, LOOPS);
	ASSERT_TRUE(read_one(fd[gp], &count));
	EXPECT_GE(1, count.value - LOOP_BRANCHES(LOOPS));
}

/*
 * A pinned group is put into the error state if one of its events gets no
 * counter.
 */
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
		/* Leave free counters that the group's two events can use. */
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

	/* A free counter is not enough: the group must be enabled again. */
	close(fd[0]);
	branch_loop(LOOPS);
	EXPECT_EQ(0, read(leader, &count, sizeof(count)));
	counted_loop(leader, 0, LOOPS);
	ASSERT_LT(0, read(leader, &count, sizeof(count)));
	ASSERT_EQ(2, count.nr);
	EXPECT_GE(1, count.event[0].value - LOOP_BRANCHES(LOOPS));
	EXPECT_EQ(count.event[0].value, count.event[1].value);
}

/* A pinned event displaces flexible ones that were opened before it. */
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

/* An exclusive group (attr.exclusive) has the PMU to itself; others wait. */
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

/* Events of all CPUs at once: each counts on its own CPU only. */
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

/* The perf core enables and reads an event of another CPU by IPI. */
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
	/* read() sends an IPI to the other CPU, whose kernel executes instructions. */
	ASSERT_TRUE(read_one(fd, &count));
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_LT(0, count.value);
	/*
	 * The times are those of an event of a CPU: no task switch can stop it
	 * after read() has taken the one and before it takes the other.
	 */
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_LE(20000000, count.enabled);
}

#define SAMPLE_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"

/* INST_RETIRED.PREC_DIST: PMC1 only on Haswell and Skylake. */
#define RAW_ONLY_PMC1	0x01c0

/*
 * A software leader that samples far more often than the rate limit: after one
 * sample the perf core throttles the whole group until the next timer tick. It
 * stops the events in an hrtimer's interrupt, while the PMU is running.
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

/* Opens the group; returns the leader, or -1. */
static int throttled_group(pid_t pid, int cpu, int sibling[SIBLINGS])
{
	struct perf_event_attr clock =
		counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	/*
	 * Do not use instructions: the built-in driver does not stop fixed
	 * counters.
	 */
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

/* All siblings stop at the same time, and another event continues to count. */
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
	/* The count is 0 if the first sample came before the loop, on a slow host. */
	first = read_value(sibling[0]);
	EXPECT_GT(loops / 2, first);
	EXPECT_EQ(first, read_value(sibling[1]));
	EXPECT_EQ(first, read_value(sibling[2]));
	EXPECT_GE(1, read_value(other) - LOOP_BRANCHES(loops));
}

/*
 * A group of a CPU stays scheduled at a task switch, and the next task's event
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
		/* The siblings were stopped most of the time: a large count is wrong. */
		for (i = 0; i < SIBLINGS; i++)
			EXPECT_GT(1000 * LOOPS, read_value(sibling[i]));
		for (i = 0; i < SIBLINGS; i++)
			close(sibling[i]);
		close(leader);
		EXPECT_LT(0, read_value(other));
		close(other);
	}
}

/* The functions that rpmu probes for pinned events only. */
static const char *const watched[] = {
	"perf_ioctl", "perf_compat_ioctl", "perf_event_task_disable",
};

enum { NOT_WATCHED, SOME_ENABLED, ALL_ENABLED, ALL_DISABLED };

/* Returns the state of rpmu's probes of these functions. */
static int watch_state(void)
{
	unsigned int i, enabled = 0, disabled = 0;
	FILE *file = fopen("/sys/kernel/debug/kprobes/list", "r");
	char line[256], probe[64];

	while (file && fgets(line, sizeof(line), file)) {
		for (i = 0; i < ARRAY_SIZE(watched); i++) {
			snprintf(probe, sizeof(probe), "  r  %s+0x", watched[i]);
			if (!strstr(line, probe))
				continue;
			if (strstr(line, "[DISABLED]"))
				disabled++;
			else
				enabled++;
		}
	}
	if (file)
		fclose(file);
	if (enabled && disabled)
		return SOME_ENABLED;
	if (enabled)
		return ALL_ENABLED;
	return disabled ? ALL_DISABLED : NOT_WATCHED;
}

/* Calls a probed function until the probes are disabled, for at most 5 s. */
static bool becomes_unwatched(int fd, bool prctls)
{
	__u64 end = now_ns() + 5000000000ULL, id;

	do {
		if (prctls)
			prctl(PR_TASK_PERF_EVENTS_DISABLE);
		else
			ioctl(fd, PERF_EVENT_IOC_ID, &id);
		if (watch_state() == ALL_DISABLED)
			return true;
		usleep(10000);
	} while (now_ns() < end);
	return false;
}

/*
 * While pinned events are open, rpmu probes the functions by which users
 * disable events. The probes are enabled at once and stay enabled for at least
 * one second. After that, the next call of such a function disables them if no
 * pinned event is open. While they are disabled, these calls cost the same as
 * without rpmu.
 */
TEST(probes_for_pinned_only)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int flexible, pinned, i;
	__u64 opened, id;

	if (!on_rpmu())
		SKIP(return, "the built-in driver has no probes");
	if (watch_state() == NOT_WATCHED)
		SKIP(return, "rpmu has no probes of these functions here");
	flexible = perf_open_self(&attr, -1);
	ASSERT_LE(0, flexible);
	/* Earlier tests may have left pinned events behind. */
	ASSERT_TRUE(becomes_unwatched(flexible, false));

	attr.pinned = 1;
	for (i = 0; i < 2; i++) {
		pinned = perf_open_self(&attr, -1);
		ASSERT_LE(0, pinned);
		opened = now_ns();
		EXPECT_EQ(ALL_ENABLED, watch_state());
		close(pinned);
		/*
		 * Many short-lived events do not disable and enable the probes
		 * each time.
		 */
		EXPECT_EQ(0, ioctl(flexible, PERF_EVENT_IOC_ID, &id));
		if (now_ns() - opened < 800000000)
			EXPECT_EQ(ALL_ENABLED, watch_state());
		EXPECT_TRUE(becomes_unwatched(flexible, i));

		pinned = perf_open_self(&attr, -1);
		ASSERT_LE(0, pinned);
		usleep(1500000);
		EXPECT_EQ(0, ioctl(flexible, PERF_EVENT_IOC_ID, &id));
		EXPECT_EQ(ALL_ENABLED, watch_state());
		close(pinned);
		EXPECT_TRUE(becomes_unwatched(flexible, !i));
	}
}

TEST_HARNESS_MAIN
