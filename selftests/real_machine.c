// SPDX-License-Identifier: GPL-2.0
/*
 * Tests of a real machine, for rpmu-check: what holds although other programs
 * run and interrupts come at any time, and measurements of the driver that has
 * the PMU, as lines "figure NAME VALUE UNIT".
 *
 * Many processors count the return from an interrupt or a page fault as an
 * instruction or a branch of the interrupted program (V. Weaver et al.,
 * "Non-determinism and overcount on modern hardware performance counter
 * implementations", ISPASS 2013). A count of user mode may thus be a little too
 * high, and is never too low.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>

#include <linux/magic.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define FIGURE(name, value, unit)	TH_LOG("figure %s %.3f %s", name, (double)(value), unit)

OWN_COUNTERS()

#define RUNS	400
#define LOOPS	10000UL
/* Of the counts, in percent. */
#define EXACT	80
/* A run of this length takes some 20 us: few interrupts and no page fault. */
#define MAX_EXCESS	8

/* How counts of the same program differ from the expected one. */
struct deviations {
	unsigned int exact;	/* number of counts */
	unsigned int low;
	__u64 excess;		/* the largest */
};

/*
 * Counts loops RUNS times. A loop's count is the difference of two counts, of
 * loops of different length: SYSCALL may count as a branch.
 */
static struct deviations deviations(int fd, __u64 expected)
{
	struct deviations found = {};
	__u64 base, count;
	int run;

	for (run = 0; run < RUNS; run++) {
		ioctl(fd, PERF_EVENT_IOC_RESET, 0);
		counted_loop(fd, 0, 1);
		base = read_value(fd);
		counted_loop(fd, 0, 1 + LOOPS);
		count = read_value(fd) - 2 * base;
		if (count == expected)
			found.exact++;
		else if ((__s64)(count - expected) < 0)
			found.low++;
		else if (count - expected > found.excess)
			found.excess = count - expected;
	}
	return found;
}

/* The first of two counts may be too high as well, and make the difference too low. */
static void expect_exact(struct __test_metadata *_metadata, struct deviations found)
{
	EXPECT_LE(RUNS * EXACT / 100, found.exact);
	EXPECT_GE(RUNS * (100 - EXACT) / 200, found.low);
	EXPECT_GE(MAX_EXCESS, found.excess);
	if (is_tcg())
		EXPECT_EQ(RUNS, found.exact);
}

TEST(instructions)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open_self(&attr, -1);
	struct deviations found;

	ASSERT_LE(0, fd);
	found = deviations(fd, 2 * LOOPS);
	FIGURE("exact_counts_of_instructions", 100.0 * found.exact / RUNS, "%");
	FIGURE("largest_excess_of_instructions", found.excess, "");
	expect_exact(_metadata, found);
}

TEST(branches)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd = perf_open_self(&attr, -1);
	struct deviations found;

	ASSERT_LE(0, fd);
	found = deviations(fd, LOOPS);
	FIGURE("exact_counts_of_branches", 100.0 * found.exact / RUNS, "%");
	FIGURE("largest_excess_of_branches", found.excess, "");
	expect_exact(_metadata, found);
}

/* Each CPU counts instructions: the one that is exact most often of ten counts. */
TEST(every_cpu)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int cpus = sysconf(_SC_NPROCESSORS_CONF), cpu, run, fd, tried = 0;
	bool exact;

	for (cpu = 0; cpu < cpus; cpu++) {
		/* The CPU may be offline, or not in the set of this task. */
		if (!run_on(cpu))
			continue;
		fd = perf_open(&attr, 0, cpu, -1, 0);
		ASSERT_LE(0, fd) {
			TH_LOG("CPU %d: %m", cpu);
		}
		exact = false;
		for (run = 0; run < 10 && !exact; run++) {
			ioctl(fd, PERF_EVENT_IOC_RESET, 0);
			counted_loop(fd, 0, LOOPS);
			exact = read_value(fd) == LOOP_INSTRUCTIONS(LOOPS);
		}
		EXPECT_TRUE(exact) {
			TH_LOG("CPU %d: %llu instead of %llu instructions", cpu, read_value(fd),
			       LOOP_INSTRUCTIONS(LOOPS));
		}
		tried++;
		close(fd);
	}
	EXPECT_LT(0, tried);
}

/* Samples of each CPU at the same time: each CPU has its interrupts. */
TEST(every_cpu_samples)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int cpus = sysconf(_SC_NPROCESSORS_CONF), cpu, fd;
	struct perf_event_mmap_page *page;
	unsigned int samples;

	attr.sample_period = 20000;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.wakeup_events = 1;
	for (cpu = 0; cpu < cpus; cpu++) {
		if (!run_on(cpu))
			continue;
		fd = perf_open(&attr, 0, cpu, -1, 0);
		ASSERT_LE(0, fd);
		page = map_buffer(fd, 8);
		ASSERT_NE(MAP_FAILED, page);
		counted_loop(fd, 0, 10 * LOOPS);
		for (samples = 0; take_sample(page); samples++)
			;
		/* 10 periods; the skid of the last may be after the end. */
		EXPECT_LE(9, samples) {
			TH_LOG("CPU %d", cpu);
		}
		EXPECT_GE(11, samples) {
			TH_LOG("CPU %d", cpu);
		}
		munmap(page, 9 * sysconf(_SC_PAGESIZE));
		close(fd);
	}
}

#define SHARING_NS	600000000ULL

/* Twice as many events as counters: each counts half of the time. */
TEST(shares)
{
	unsigned int i, nr = 2 * gp_counters();
	double share, smallest = 100, largest = 0;
	struct one_count count;
	struct perf_event_attr attr = counting_anywhere(PERF_TYPE_RAW, RAW_BRANCHES);
	__u64 start;
	int fd[64];

	ASSERT_LT(0, nr);
	ASSERT_GE(64, nr);
	for (i = 0; i < nr; i++) {
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (i = 0; i < nr; i++)
		ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
	for (start = now_ns(); now_ns() - start < SHARING_NS;)
		branch_loop(20000);
	for (i = 0; i < nr; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		share = percent_running(&count);
		if (share < smallest)
			smallest = share;
		if (share > largest)
			largest = share;
	}
	FIGURE("smallest_share_of_counters", smallest, "%");
	FIGURE("largest_share_of_counters", largest, "%");
	EXPECT_LT(25, smallest);
	EXPECT_GT(75, largest);
}

#define FREQUENCY	1000

/* A thousand samples a second, after half a second in which the period is found. */
TEST(frequency)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct perf_event_mmap_page *page;
	unsigned int half, samples = 0;
	__u64 start, ns = 0;
	int fd;

	attr.freq = 1;
	attr.sample_freq = FREQUENCY;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	page = map_buffer(fd, 64);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (half = 0; half < 2; half++) {
		start = now_ns();
		do {
			branch_loop(20000);
			ns = now_ns() - start;
		} while (ns < 500000000);
		for (samples = 0; take_sample(page); samples++)
			;
	}
	FIGURE("samples_a_second_of_1000", samples * 1e9 / ns, "");
	EXPECT_LT(FREQUENCY * 0.7 * ns / 1e9, samples);
	EXPECT_GT(FREQUENCY * 1.3 * ns / 1e9, samples);
}

#define CALLS	2000

static int by_value(const void *a, const void *b)
{
	const __u64 x = *(const __u64 *)a, y = *(const __u64 *)b;

	return (x > y) - (x < y);
}

/* What system calls on an event cost: the median, in ns. No test, as machines differ. */
TEST(cost)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	static __u64 reading[CALLS], switching[CALLS], opening[CALLS / 10];
	int fd = perf_open_self(&attr, -1), other, i;
	__u64 start;

	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (i = 0; i < CALLS; i++) {
		start = now_ns();
		read_value(fd);
		reading[i] = now_ns() - start;
		start = now_ns();
		ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
		ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
		switching[i] = now_ns() - start;
	}
	for (i = 0; i < CALLS / 10; i++) {
		start = now_ns();
		other = perf_open_self(&attr, -1);
		opening[i] = now_ns() - start;
		ASSERT_LE(0, other);
		close(other);
	}
	qsort(reading, CALLS, sizeof(*reading), by_value);
	qsort(switching, CALLS, sizeof(*switching), by_value);
	qsort(opening, CALLS / 10, sizeof(*opening), by_value);
	FIGURE("to_read_an_event", reading[CALLS / 2], "ns");
	FIGURE("to_disable_and_enable_an_event", switching[CALLS / 2], "ns");
	FIGURE("to_open_an_event", opening[CALLS / 20], "ns");
}

#define CGROUP	"/sys/fs/cgroup"
#define TOP_SIZE	32

/*
 * Makes a control group whose events can be counted, in the hierarchy that the
 * machine has: version 2, version 1, or, if none is mounted, a new one.
 */
static bool make_group(char *top, char *group, size_t size)
{
	struct statfs fs;

	*top = '\0';
	if (statfs(CGROUP, &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC) {
		snprintf(group, size, CGROUP "/rpmu-check-%d", getpid());
	} else if (access(CGROUP "/perf_event/cgroup.procs", W_OK) == 0) {
		snprintf(group, size, CGROUP "/perf_event/rpmu-check-%d", getpid());
	} else {
		snprintf(top, TOP_SIZE, "/tmp/cgroup-XXXXXX");
		if (!mkdtemp(top) || mount("none", top, "cgroup", 0, "perf_event"))
			return false;
		snprintf(group, size, "%s/group", top);
	}
	return mkdir(group, 0700) == 0;
}

/* An event of a control group counts the group's tasks, and no others. */
TEST(control_group)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	char top[TOP_SIZE], group[96], tasks[112];
	int cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1, dir, fd, status;
	__u64 count;
	pid_t pid;

	if (!make_group(top, group, sizeof(group)))
		SKIP(return, "no control group can be made");
	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", group);
	dir = open(group, O_RDONLY | O_CLOEXEC);
	EXPECT_LE(0, dir);
	EXPECT_TRUE(run_on(cpu));
	fd = perf_open(&attr, dir, cpu, -1, PERF_FLAG_PID_CGROUP);
	EXPECT_LE(0, fd) {
		TH_LOG("%m");
	}
	counted_loop(fd, 0, 10 * LOOPS);
	EXPECT_EQ(0, read_value(fd));
	pid = fork();
	if (pid == 0) {
		if (write_line(tasks, "0"))
			counted_syscalls(fd, 0, 1000, SYS_sched_yield, NULL);
		_exit(0);
	}
	while (pid > 0 && waitpid(pid, &status, WNOHANG) == 0)
		sched_yield();
	count = read_value(fd);
	EXPECT_LE(SYSCALLS_INSTRUCTIONS(1000), count);
	EXPECT_GE(SYSCALLS_INSTRUCTIONS(1000) + MAX_EXCESS, count);
	close(fd);
	close(dir);
	EXPECT_EQ(0, rmdir(group));
	if (*top) {
		EXPECT_EQ(0, umount(top));
		EXPECT_EQ(0, rmdir(top));
	}
}

#define WATCHDOG	"/proc/sys/kernel/nmi_watchdog"

/* The watchdog starts on this driver, and stops. */
TEST(watchdog)
{
	char now[8] = "";
	__u64 count;

	if (!write_line(WATCHDOG, "1") || !read_line(WATCHDOG, now, sizeof(now)) || now[0] != '1')
		SKIP(return, "the kernel has no NMI watchdog here");
	usleep(500000);
	/* Other events count beside it. */
	EXPECT_TRUE(counts_exactly(LOOPS, &count) || counts_exactly(LOOPS, &count)) {
		TH_LOG("%llu instead of %llu instructions", count, LOOP_INSTRUCTIONS(LOOPS));
	}
	EXPECT_TRUE(write_line(WATCHDOG, "0"));
	EXPECT_TRUE(read_line(WATCHDOG, now, sizeof(now)));
	EXPECT_EQ('0', now[0]);
}

TEST_HARNESS_MAIN
