// SPDX-License-Identifier: GPL-2.0
/*
 * Tests corrupting events: 0xd0 to 0xd3 on Sandy Bridge to Haswell corrupt the
 * counter of the same number on the core's other thread (errata BJ122, BV98,
 * HSD29). The driver gives such an event a counter that the sibling does not
 * use, and limits each thread to half of the counters while either thread has
 * such events.
 *
 * Most events here are per-CPU events, so that only the driver decides when
 * they are on a counter. Rotation is off except in the tests of rotation.
 *
 * Where the built-in driver falls short, only rpmu's results are checked. The
 * built-in driver accepts groups that never count, for example, and an event whose
 * counter the sibling has freed waits for the next rotation.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"
#include "vm_entry/vm_entry.h"

OWN_COUNTERS()

#define ALL_LOADS	0x81d0	/* MEM_UOPS_RETIRED.ALL_LOADS: corrupting */
#define ALL_STORES	0x82d0	/* MEM_UOPS_RETIRED.ALL_STORES: corrupting */
#define L1_HIT		0x01d1	/* MEM_LOAD_UOPS_RETIRED.*: corrupting */
#define L1_MISS		0x08d1
#define L2_HIT		0x02d1
#define PENDING		0x0148	/* L1D_PEND_MISS.PENDING: counter 2 only */

/* Long enough for an interrupt to another CPU and its handler. */
#define AT_ONCE_US	50000
/* Long enough to measure shares of time, with rotation every 4 ms. */
#define SHARES_US	400000
/* How often to poll for a change that takes time on a busy host. */
#define LOOKS		20
#define RANDOM_STEPS	1000
#define ROUNDS		20

/* Returns the config of CYCLE_ACTIVITY.STALLS_L1D_PENDING, also for counter 2 only. */
static __u64 stalls_config(void)
{
	return cpu_model() == MODEL_SANDY_BRIDGE ? 0x060006a3 : 0x0c000ca3;
}

#define MODULE		"./vm_entry.ko"

/* The two threads of a core, and the device of vm_entry.ko, or -1. */
FIXTURE(ht_exclusion)
{
	int a, b;
	int vm;
	char interval[32];
};

FIXTURE_SETUP(ht_exclusion)
{
	char line[32], *end;

	self->vm = -1;
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
	if (!threads_corrupt())
		SKIP(return, "these CPUs do not have the erratum");
	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	self->a = strtol(line, &end, 10);
	if (!*end)
		SKIP(return, "one thread per core");
	self->b = atoi(end + 1);
	/* Run the test itself on another core, if there is one. */
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) > 2 ? 2 : 0));
	ASSERT_TRUE(forbid_rotation());
}

/* The two threads of a core, with rotation, by default every 4 ms. */
FIXTURE(ht_rotation)
{
	int a, b;
};

FIXTURE_SETUP(ht_rotation)
{
	char line[32], *end;

	if (!threads_corrupt())
		SKIP(return, "these CPUs do not have the erratum");
	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	self->a = strtol(line, &end, 10);
	if (!*end)
		SKIP(return, "one thread per core");
	self->b = atoi(end + 1);
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) > 2 ? 2 : 0));
}

FIXTURE_TEARDOWN(ht_rotation)
{
}

FIXTURE_TEARDOWN(ht_exclusion)
{
	if (self->vm >= 0) {
		close(self->vm);
		EXPECT_TRUE(unload_module("vm_entry"));
	}
	EXPECT_TRUE(set_cpu_online(self->b, true));
	EXPECT_TRUE(allow_rotation(self->interval));
}

static int open_on(int cpu, __u64 config, int leader)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	return perf_open(&attr, -1, cpu, leader, 0);
}

static int open_flexible(int cpu, __u64 config)
{
	return open_on(cpu, config, -1);
}

/* Returns whether the event is on a counter now. */
static bool runs(int fd)
{
	struct one_count before, after;

	if (!read_one(fd, &before))
		return false;
	usleep(1000);
	return read_one(fd, &after) && after.running > before.running;
}

/* Returns whether the event is enabled without a counter now. */
static bool waits(int fd)
{
	struct one_count before, after;

	return read_one(fd, &before) && usleep(1000) == 0 && read_one(fd, &after) &&
	       after.enabled > before.enabled && after.running == before.running;
}

static int open_pinned(int cpu, __u64 config)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, config);

	attr.disabled = 0;
	attr.pinned = 1;
	return perf_open(&attr, -1, cpu, -1, 0);
}

/*
 * Opens a corrupting event that gets counter 2 of @b: events on @a have counters
 * 0 and 1 until it is placed. Returns -1 on failure.
 */
static int corrupting_on_counter_2(int a, int b, int (*open_corrupting)(int cpu, __u64 config))
{
	int first = open_on(a, RAW_BRANCHES, -1);
	int second = open_on(a, RAW_BRANCHES, -1);
	int corrupting = open_corrupting(b, ALL_LOADS);

	if (!runs(first) || !runs(second) || !runs(corrupting))
		return -1;
	close(first);
	close(second);
	return corrupting;
}

/*
 * {l1_hit,l1_miss,l2_hit,l1d_pend_miss.pending} can never count: a thread with
 * corrupting events may use two counters only.
 */
TEST_F(ht_exclusion, group_that_never_counts)
{
	const __u64 config[] = { L1_HIT, L1_MISS, L2_HIT, PENDING };
	struct perf_event_attr attr;
	int fd[4], cpu, i, leader;

	for (cpu = -1; cpu <= self->b; cpu += self->b + 1) {
		leader = -1;
		for (i = 0; i < 4; i++) {
			attr = counting_user(PERF_TYPE_RAW, config[i]);
			attr.disabled = 0;
			fd[i] = perf_open(&attr, cpu < 0 ? 0 : -1, cpu, leader, 0);
			if (leader < 0)
				leader = fd[0];
			if (on_rpmu() && i >= 2) {
				EXPECT_EQ(-1, fd[i]);
				EXPECT_EQ(EINVAL, errno);
			} else {
				EXPECT_LE(0, fd[i]);
			}
		}
		for (i = 0; i < 4; i++)
			close(fd[i]);
	}
}

/* Without corrupting events, both threads may use all four counters. */
TEST_F(ht_exclusion, all_counters_without_corrupting_events)
{
	int fd[8], i;

	for (i = 0; i < 8; i++)
		fd[i] = open_on(i < 4 ? self->a : self->b, RAW_BRANCHES, -1);
	for (i = 0; i < 8; i++)
		EXPECT_TRUE(runs(fd[i]));
}

TEST_F(ht_exclusion, half_of_the_counters_each)
{
	int fd[4], third;
	int i;

	for (i = 0; i < 4; i++)
		fd[i] = open_on(i < 2 ? self->a : self->b, ALL_STORES, -1);
	third = open_on(self->b, RAW_BRANCHES, -1);
	for (i = 0; i < 4; i++)
		EXPECT_TRUE(runs(fd[i]));
	EXPECT_TRUE(waits(third));
}

TEST_F(ht_exclusion, waits_for_the_sibling)
{
	int corrupting = corrupting_on_counter_2(self->a, self->b, open_flexible);
	int pending, stalls;

	ASSERT_LE(0, corrupting);
	pending = open_on(self->a, PENDING, -1);
	stalls = open_on(self->a, stalls_config(), -1);
	ASSERT_LE(0, pending);
	ASSERT_LE(0, stalls);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(pending));
	EXPECT_TRUE(waits(stalls));
	EXPECT_TRUE(runs(corrupting));
	close(corrupting);
	if (!on_rpmu())
		return;
	/* Both need counter 2. */
	usleep(AT_ONCE_US);
	EXPECT_NE(runs(pending), runs(stalls));
}

/* A corrupting event waits while the sibling uses all counters. */
TEST_F(ht_exclusion, corrupting_event_waits)
{
	int fd[4], corrupting, i;

	for (i = 0; i < 4; i++)
		fd[i] = open_on(self->a, RAW_BRANCHES, -1);
	corrupting = open_on(self->b, ALL_LOADS, -1);
	ASSERT_LE(0, corrupting);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(corrupting));
	close(fd[3]);
	if (!on_rpmu())
		return;
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(corrupting));
	for (i = 0; i < 3; i++)
		EXPECT_TRUE(runs(fd[i]));
}

/* Returns whether a pinned event is in the error state, where read() returns 0. */
static bool in_error(int fd)
{
	struct one_count count;

	return read(fd, &count, sizeof(count)) == 0;
}

/*
 * The perf core puts a pinned event that does not fit into the error state. If
 * the sibling holds its counter, rpmu schedules the event when the counter
 * becomes free.
 */
TEST_F(ht_exclusion, pinned_event_waits)
{
	int corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
	int pending, closed, i;
	struct one_count count;

	ASSERT_LE(0, corrupting);
	pending = open_pinned(self->a, PENDING);
	closed = open_pinned(self->a, PENDING);
	EXPECT_TRUE(in_error(pending));
	EXPECT_TRUE(in_error(closed));
	close(closed);
	close(corrupting);
	usleep(AT_ONCE_US);
	if (!on_rpmu()) {
		EXPECT_TRUE(in_error(pending));
		return;
	}
	EXPECT_TRUE(runs(pending));
	/* The times show the gap. */
	ASSERT_TRUE(read_one(pending, &count));
	EXPECT_LT(count.running, count.enabled);
	for (i = 0; i < 3; i++) {
		close(pending);
		corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, corrupting);
		pending = open_pinned(self->a, PENDING);
		EXPECT_TRUE(in_error(pending));
		close(corrupting);
		usleep(AT_ONCE_US / 10);
		EXPECT_TRUE(runs(pending));
	}
}

/*
 * On rpmu, a flexible event on the sibling yields its counter at once to a pinned
 * event.
 */
TEST_F(ht_exclusion, pinned_event_goes_first)
{
	int corrupting = corrupting_on_counter_2(self->a, self->b, open_flexible);
	int pending;

	ASSERT_LE(0, corrupting);
	pending = open_pinned(self->a, PENDING);
	usleep(AT_ONCE_US);
	if (!on_rpmu()) {
		EXPECT_TRUE(in_error(pending));
		return;
	}
	EXPECT_TRUE(runs(pending));
	/* The corrupting event has moved to another counter. */
	EXPECT_TRUE(runs(corrupting));
}

#define WAYS_TO_DISABLE	3

/*
 * Disables the event in the given way; prctl() also disables the task's other
 * events.
 */
static int disable(int fd, int way)
{
	switch (way) {
	case 0:
		return ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	case 1:
		return ioctl(fd, PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
	default:
		return prctl(PR_TASK_PERF_EVENTS_DISABLE);
	}
}

/*
 * A pinned event that is disabled while it waits stays disabled when its counter
 * becomes free. If it is enabled while the counter is in use again, it waits again.
 */
TEST_F(ht_exclusion, disabled_pinned_event_stays_disabled)
{
	int corrupting, pending, way;

	for (way = 0; way < WAYS_TO_DISABLE; way++) {
		corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, corrupting);
		pending = open_pinned(self->a, PENDING);
		EXPECT_TRUE(in_error(pending));
		ASSERT_EQ(0, disable(pending, way));
		close(corrupting);
		usleep(AT_ONCE_US);
		EXPECT_FALSE(runs(pending)) TH_LOG("way %d", way);
		ASSERT_EQ(0, ioctl(pending, PERF_EVENT_IOC_ENABLE, 0));
		EXPECT_TRUE(runs(pending)) TH_LOG("way %d", way);
		close(pending);

		corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, corrupting);
		pending = open_pinned(self->a, PENDING);
		ASSERT_EQ(0, disable(pending, way));
		close(corrupting);
		corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, corrupting);
		ASSERT_EQ(0, way < 2 ? ioctl(pending, PERF_EVENT_IOC_ENABLE, 0) :
			  prctl(PR_TASK_PERF_EVENTS_ENABLE));
		EXPECT_TRUE(in_error(pending)) TH_LOG("way %d", way);
		close(corrupting);
		usleep(AT_ONCE_US);
		EXPECT_EQ(on_rpmu(), runs(pending)) TH_LOG("way %d", way);
		close(pending);
	}
}

#define STUCK	300

struct stuck {
	void *page;
	int event;
};

static int set_period(void *arg)
{
	const struct stuck *stuck = arg;

	return ioctl(stuck->event, PERF_EVENT_IOC_PERIOD, stuck->page);
}

static int disable_event(void *arg)
{
	const struct stuck *stuck = arg;

	return ioctl(stuck->event, PERF_EVENT_IOC_DISABLE, 0);
}

/*
 * Hundreds of tasks are stuck in calls that disable an event, behind a task
 * that waits for a page while it holds the context's mutex. Another task's
 * pinned event that is disabled while it waits must stay disabled nevertheless.
 */
TEST_F(ht_exclusion, disabled_among_stuck_calls)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK);
	int corrupting, pending, child[STUCK + 1], idle, i;
	struct stuck stuck = { .page = page_that_never_comes() };
	char *stacks = calloc(STUCK + 1, 4096);

	if (!stuck.page)
		SKIP(return, "the kernel has no userfaultfd()");
	ASSERT_NE(NULL, stacks);
	attr.sample_period = 1000000;
	/*
	 * Use an event of another task: fork() takes the mutex of this task's
	 * context, too.
	 */
	idle = fork();
	if (!idle)
		for (;;)
			pause();
	stuck.event = perf_open(&attr, idle, -1, -1, 0);
	ASSERT_LE(0, stuck.event);
	corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
	ASSERT_LE(0, corrupting);
	pending = open_pinned(self->a, PENDING);
	EXPECT_TRUE(in_error(pending));
	for (i = 0; i <= STUCK; i++) {
		child[i] = clone(i ? disable_event : set_period, stacks + 4096 * (i + 1),
				 CLONE_VM | CLONE_FILES | SIGCHLD, &stuck);
		ASSERT_LT(0, child[i]);
		if (!i)
			usleep(AT_ONCE_US);
	}
	usleep(AT_ONCE_US);
	EXPECT_EQ(0, waitpid(-1, NULL, WNOHANG));
	EXPECT_EQ(0, ioctl(pending, PERF_EVENT_IOC_DISABLE, 0));
	close(corrupting);
	usleep(AT_ONCE_US);
	EXPECT_FALSE(runs(pending));
	close(pending);
	for (i = 0; i <= STUCK; i++)
		EXPECT_EQ(0, kill(child[i], SIGKILL));
	for (i = 0; i <= STUCK; i++)
		EXPECT_EQ(child[i], waitpid(child[i], NULL, 0));
	kill(idle, SIGKILL);
	waitpid(idle, NULL, 0);
	close(stuck.event);
	free(stacks);
}

/* Returns whether event @nr of vm_entry.ko is on a counter of this CPU, or -1. */
static int guests_event_runs(int vm, int nr)
{
	struct vm_entry_state state = { .nr = 1, .fd = { -1 - nr } };

	return ioctl(vm, VM_ENTRY_STATE, &state) ? -1 : state.idx[0] >= 0;
}

/*
 * If KVM pauses a guest's event while it waits, the event stays off until KVM
 * enables it.
 */
TEST_F(ht_exclusion, paused_event_of_a_guest_stays_off)
{
	struct vm_entry_open open_guests = {
		.type = PERF_TYPE_RAW,
		.config = PENDING,
		.flags = VM_ENTRY_IN_HOST,
		.period = 1ULL << 40,
	};
	struct vm_entry_event event = {};
	int nr, corrupting, pause;

	if (access(MODULE, R_OK))
		SKIP(return, "needs " MODULE);
	ASSERT_TRUE(run_on(self->a));
	ASSERT_TRUE(load_module(MODULE, ""));
	self->vm = open("/dev/vm_entry", O_RDWR | O_CLOEXEC);
	ASSERT_LE(0, self->vm);
	for (pause = 0; pause < 2; pause++) {
		corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
		ASSERT_LE(0, corrupting);
		nr = ioctl(self->vm, VM_ENTRY_OPEN, &open_guests);
		ASSERT_LE(0, nr);
		EXPECT_EQ(0, guests_event_runs(self->vm, nr));
		event.nr = nr;
		if (pause)
			ASSERT_EQ(0, ioctl(self->vm, VM_ENTRY_PAUSE, &event));
		close(corrupting);
		usleep(AT_ONCE_US);
		EXPECT_EQ(on_rpmu() && !pause, guests_event_runs(self->vm, nr)) TH_LOG("%d", pause);
		ASSERT_EQ(0, ioctl(self->vm, VM_ENTRY_ENABLE, &event));
		EXPECT_EQ(1, guests_event_runs(self->vm, nr)) TH_LOG("%d", pause);
		ASSERT_EQ(0, ioctl(self->vm, VM_ENTRY_CLOSE, 0));
	}
}

/* A waiting pinned event does not displace other pinned events when it is retried. */
TEST_F(ht_exclusion, pinned_event_displaces_no_pinned_event)
{
	int corrupting[2], waiting[2], pinned;

	corrupting[0] = corrupting_on_counter_2(self->a, self->b, open_pinned);
	ASSERT_LE(0, corrupting[0]);
	corrupting[1] = open_pinned(self->b, ALL_STORES);
	ASSERT_TRUE(runs(corrupting[1]));
	waiting[0] = open_pinned(self->a, PENDING);
	waiting[1] = open_pinned(self->a, PENDING);
	pinned = open_pinned(self->a, RAW_BRANCHES);
	EXPECT_TRUE(in_error(waiting[0]));
	EXPECT_TRUE(in_error(waiting[1]));
	ASSERT_TRUE(runs(pinned));

	/* This frees a counter, but not counter 2. */
	close(corrupting[1]);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(in_error(waiting[0]));
	EXPECT_TRUE(runs(pinned));

	/* This frees counter 2 for one of the two. */
	close(corrupting[0]);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(pinned));
	if (!on_rpmu())
		return;
	EXPECT_TRUE(runs(waiting[0]));
	EXPECT_TRUE(in_error(waiting[1]));
}

/* Returns time_running in ns, or 0 in the error state. */
static __u64 running(int fd)
{
	struct one_count count;

	return read_one(fd, &count) ? count.running : 0;
}

/*
 * Starts a child that inherits the events and runs on the CPU all the time, and
 * waits until it has moved there. The child closes its copy of @corrupting, so
 * that the parent's close() releases the event.
 */
static pid_t run_child_on(int cpu, int corrupting)
{
	int there[2];
	pid_t child;
	char byte;

	if (pipe(there))
		return -1;
	child = fork_helper();
	if (!child) {
		close(corrupting);
		if (!run_on(cpu) || write(there[1], "", 1) != 1)
			_exit(1);
		for (;;)
			branch_loop(100000);
	}
	close(there[1]);
	if (read(there[0], &byte, 1) != 1)
		child = -1;
	close(there[0]);
	return child;
}

/*
 * Polls until the child's event runs (@run) or waits, and returns whether it does.
 * The event's running time includes the parent's. That is short, unless the host
 * stops the parent's CPU during a poll.
 */
static bool comes_to(int fd, bool run)
{
	__u64 before;
	int look;

	for (look = 0; look < LOOKS; look++) {
		before = running(fd);
		usleep(AT_ONCE_US);
		if ((running(fd) - before > AT_ONCE_US * 1000 / 2) == run)
			return true;
	}
	return false;
}

/*
 * An inherited event waits and runs independently of its parent event. (The
 * perf core swaps contexts, so either of the two may belong to the child.)
 */
TEST_F(ht_exclusion, inherited_pinned_event_waits)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, PENDING);
	int corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
	pid_t child;
	int fd;

	ASSERT_LE(0, corrupting);
	attr.disabled = 0;
	attr.pinned = 1;
	attr.inherit = 1;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	child = run_child_on(self->a, corrupting);
	ASSERT_LT(0, child);
	EXPECT_TRUE(comes_to(fd, false));
	close(corrupting);
	if (on_rpmu())
		EXPECT_TRUE(comes_to(fd, true));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Disabling an event disables the inherited event of the child, even while it waits. */
TEST_F(ht_exclusion, disabled_inherited_pinned_event_stays_disabled)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, PENDING);
	int corrupting = corrupting_on_counter_2(self->a, self->b, open_pinned);
	__u64 before;
	pid_t child;
	int fd;

	ASSERT_LE(0, corrupting);
	attr.disabled = 0;
	attr.pinned = 1;
	attr.inherit = 1;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	child = run_child_on(self->a, corrupting);
	ASSERT_LT(0, child);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	before = running(fd);
	close(corrupting);
	usleep(AT_ONCE_US);
	EXPECT_EQ(before, running(fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_TRUE(comes_to(fd, true));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/*
 * A thread that goes offline releases its counters, and uses none when it is
 * back.
 */
TEST_F(ht_exclusion, sibling_goes_and_comes)
{
	int corrupting, pending, fd[4], i;

	if (!on_rpmu())
		SKIP(return, "the built-in driver waits for the next turn");
	corrupting = corrupting_on_counter_2(self->a, self->b, open_flexible);
	ASSERT_LE(0, corrupting);
	pending = open_on(self->a, PENDING, -1);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(pending));

	ASSERT_TRUE(set_cpu_online(self->b, false));
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(pending));
	/* A thread alone in its core has no limit. */
	for (i = 0; i < 3; i++)
		fd[i] = open_on(self->a, ALL_LOADS, -1);
	for (i = 0; i < 3; i++) {
		EXPECT_TRUE(runs(fd[i]));
		close(fd[i]);
	}
	close(pending);

	ASSERT_TRUE(set_cpu_online(self->b, true));
	close(corrupting);
	corrupting = corrupting_on_counter_2(self->a, self->b, open_flexible);
	ASSERT_LE(0, corrupting);
	pending = open_on(self->a, PENDING, -1);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(waits(pending));
	close(corrupting);
	usleep(AT_ONCE_US);
	EXPECT_TRUE(runs(pending));
}

/*
 * Opens and closes more events than fit on both threads, at random. When all
 * are closed, both threads can use as many counters as before.
 */
TEST_F(ht_exclusion, nothing_is_left_behind)
{
	static const __u64 config[] = {
		ALL_LOADS, ALL_STORES, L1_HIT, L1_MISS, PENDING, INTEL_RAW_BRANCHES,
		0x01c4, RAW_INSTRUCTIONS,
	};
	int fd[2][6], thread, i, step;

	memset(fd, -1, sizeof(fd));
	srand(1);
	for (step = 0; step < RANDOM_STEPS; step++) {
		thread = rand() % 2;
		i = rand() % 6;
		if (fd[thread][i] >= 0) {
			close(fd[thread][i]);
			fd[thread][i] = -1;
		} else {
			fd[thread][i] = open_on(thread ? self->b : self->a,
						config[rand() % ARRAY_SIZE(config)], -1);
			ASSERT_LE(0, fd[thread][i]);
		}
	}
	for (thread = 0; thread < 2; thread++)
		for (i = 0; i < 6; i++)
			if (fd[thread][i] >= 0)
				close(fd[thread][i]);

	for (i = 0; i < 4; i++) {
		fd[0][i] = open_on(self->a, RAW_BRANCHES, -1);
		fd[1][i] = open_on(self->b, RAW_BRANCHES, -1);
		EXPECT_TRUE(runs(fd[0][i]));
		EXPECT_TRUE(runs(fd[1][i]));
	}
	for (i = 0; i < 4; i++) {
		close(fd[0][i]);
		close(fd[1][i]);
	}
	for (i = 0; i < 2; i++) {
		fd[0][i] = open_on(self->a, ALL_LOADS, -1);
		fd[1][i] = open_on(self->b, ALL_LOADS, -1);
		EXPECT_TRUE(runs(fd[0][i]));
		EXPECT_TRUE(runs(fd[1][i]));
	}
}

/*
 * A task counts its branches exactly on one thread while the other thread counts
 * many loads. ht_workaround.sh shows that this fails without the work-around.
 */
TEST_F(ht_exclusion, counts_are_right)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int corrupting, fd[2], i, round;
	__u64 expected = 0;
	pid_t noise = fork_helper();

	if (!noise) {
		run_on(self->b);
		for (;;)
			branch_loop(100000);
	}
	corrupting = open_on(self->b, ALL_LOADS, -1);
	ASSERT_LE(0, corrupting);
	ASSERT_TRUE(run_on(self->a));
	for (i = 0; i < 2; i++) {
		fd[i] = perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	for (round = 0; round < ROUNDS; round++) {
		expected += LOOP_BRANCHES(100000);
		for (i = 0; i < 2; i++)
			counted_loop(fd[i], 0, 100000);
	}
	EXPECT_TRUE(runs(corrupting));
	for (i = 0; i < 2; i++) {
		/* The CPU may count the last SYSCALL as a branch. */
		EXPECT_LE(expected, read_value(fd[i]));
		EXPECT_GE(expected + ROUNDS, read_value(fd[i]));
	}
	kill(noise, SIGKILL);
	waitpid(noise, NULL, 0);
}

/*
 * A CPU's event of branches counts branches, and a task's event of instructions
 * counts, although another event of the CPU has left. For the task's event, the CPU's
 * stay on their counters.
 *
 * On the built-in driver, the last one counts instructions, on the fixed counter.
 * x86_pmu_del(), arch/x86/events/core.c, moves the pointers in event_constraint[] to
 * lower indices, but not what they point to in constraint_list[]. There
 * dyn_constraint(), intel/core.c, gives the new event the constraint of the last one,
 * which had that index. Without the other one that stays, the event of instructions
 * gets no counter, as none has the smallest weight any more.
 */
TEST_F(ht_exclusion, constraints_after_another_has_left)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int leaving, staying, last, arriving;
	__u64 before, count;

	if (!on_rpmu())
		SKIP(return, "the built-in driver confuses their constraints");
	attr.disabled = 0;
	ASSERT_TRUE(run_on(self->a));
	leaving = perf_open(&attr, -1, self->a, -1, 0);
	staying = perf_open(&attr, -1, self->a, -1, 0);
	last = perf_open(&attr, -1, self->a, -1, 0);
	ASSERT_LE(0, leaving);
	ASSERT_LE(0, staying);
	ASSERT_LE(0, last);
	close(leaving);
	attr.config = RAW_INSTRUCTIONS;
	arriving = perf_open_self(&attr, -1);
	ASSERT_LE(0, arriving);
	before = read_value(last);
	branch_loop(100000);
	count = read_value(last) - before;
	/* Each pass has four branches and two other instructions. */
	EXPECT_LE(400000, count);
	EXPECT_GE(401000, count);
	EXPECT_LE(600000, read_value(arriving));
	close(arriving);
	close(last);
	close(staying);
}

/* Returns the percentage of the time since @before that the event was on a counter. */
static double share_since(int fd, const struct one_count *before)
{
	struct one_count now;

	if (!read_one(fd, &now))
		return -1;
	now.enabled -= before->enabled;
	now.running -= before->running;
	return percent_running(&now);
}

/*
 * A thread that rotates more events than it has counters leaves time to the
 * sibling's corrupting event, and all of the thread's events count. At best,
 * each event has 50 % if the thread has six, and 57 % if it has five. On the
 * built-in driver, the corrupting event has 100 %, and corrupts the others'
 * counts.
 */
static void beside_rotation(struct __test_metadata *_metadata, int a, int b, int others)
{
	struct one_count before[7];
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, ALL_LOADS);
	int fd[7], i;
	double share;

	for (i = 0; i < others; i++) {
		fd[i] = open_on(a, RAW_BRANCHES, -1);
		ASSERT_LE(0, fd[i]);
	}
	usleep(AT_ONCE_US);
	attr.disabled = 0;
	fd[others] = perf_open(&attr, -1, b, -1, 0);
	ASSERT_LE(0, fd[others]);
	usleep(AT_ONCE_US);
	for (i = 0; i <= others; i++)
		ASSERT_TRUE(read_one(fd[i], &before[i]));
	usleep(SHARES_US);
	for (i = 0; i <= others; i++) {
		share = share_since(fd[i], &before[i]);
		TH_LOG("%s beside %d: %.1f %%", i < others ? "any" : "corrupting", others, share);
		EXPECT_LE(30.0, share);
		close(fd[i]);
	}
}

TEST_F(ht_rotation, share_beside_rotation)
{
	beside_rotation(_metadata, self->a, self->b, 6);
	beside_rotation(_metadata, self->a, self->b, 5);
	beside_rotation(_metadata, self->b, self->a, 6);
}

/*
 * Events as perf stat -a -A opens them: two corrupting events and four others
 * on each thread.
 */
TEST_F(ht_rotation, share_on_both_threads)
{
	const __u64 config[] = { ALL_LOADS, ALL_STORES, 0x01c4, 0x02c4, 0x08c4, 0x20c4 };
	struct one_count before[12];
	int fd[12], i;
	double share;

	for (i = 0; i < 12; i++) {
		fd[i] = open_on(i % 2 ? self->b : self->a, config[i / 2], -1);
		ASSERT_LE(0, fd[i]);
	}
	usleep(AT_ONCE_US);
	for (i = 0; i < 12; i++)
		ASSERT_TRUE(read_one(fd[i], &before[i]));
	usleep(SHARES_US);
	for (i = 0; i < 12; i++) {
		share = share_since(fd[i], &before[i]);
		TH_LOG("%#llx on CPU %d: %.1f %%", config[i / 2], i % 2 ? self->b : self->a, share);
		EXPECT_LE(25.0, share);
	}
}

/* Opens events on a CPU, and stores their descriptors in @fd. */
static void open_all(struct __test_metadata *_metadata, int cpu, const __u64 *config, int nr,
		     int *fd)
{
	int i;

	for (i = 0; i < nr; i++) {
		fd[i] = open_on(cpu, config[i], -1);
		ASSERT_LE(0, fd[i]);
	}
}

/* Expects at least these shares of the events, in percent. */
static void expect_at_least(struct __test_metadata *_metadata, const int *fd, int nr,
			    const double *least)
{
	struct one_count before[16];
	double share;
	int i;

	ASSERT_GE(16, nr);
	usleep(AT_ONCE_US);
	for (i = 0; i < nr; i++)
		ASSERT_TRUE(read_one(fd[i], &before[i]));
	usleep(SHARES_US);
	for (i = 0; i < nr; i++) {
		share = share_since(fd[i], &before[i]);
		TH_LOG("event %d: %.1f %%", i, share);
		EXPECT_LE(least[i], share);
	}
}

/*
 * An event on a fixed counter does not rotate, so corrupting events must not wait
 * for it. The built-in driver gives them more than half of the time on an idle
 * core, and much less beside a sibling that rotates.
 */
TEST_F(ht_rotation, share_beside_fixed_counters)
{
	const __u64 few[] = { RAW_INSTRUCTIONS, ALL_LOADS, 0x20c4, 0x02c2 };
	const __u64 many[] = {
		RAW_INSTRUCTIONS, 0x003c, 0x0300, ALL_LOADS, ALL_STORES,
		0x01c4, 0x02c4, 0x04c4, 0x08c4, 0x10c4, 0x20c4,
	};
	const double of_few[] = { 50, 50, 50, 45 };
	double of_many[] = { 99, 99, 99, 35, 35, 35, 35, 35, 35, 35, 35 };
	int i, fd[11];

	open_all(_metadata, self->a, few, 4, fd);
	expect_at_least(_metadata, fd, 4, of_few);
	for (i = 0; i < 4; i++)
		close(fd[i]);
	for (i = 0; i < 11 && !on_rpmu(); i++)
		of_many[i] = 0;
	open_all(_metadata, self->a, many, 5, fd);
	open_all(_metadata, self->b, many + 5, 6, fd + 5);
	expect_at_least(_metadata, fd, 11, of_many);
}

/* A pinned event keeps its counter even if the sibling waits for one. */
TEST_F(ht_rotation, pinned_event_keeps_its_counter)
{
	int pinned[2], corrupting[2], fd[4], i;
	struct one_count before[2];

	pinned[0] = open_pinned(self->a, RAW_BRANCHES);
	pinned[1] = open_pinned(self->a, PENDING);
	for (i = 0; i < 4; i++)
		fd[i] = open_on(self->a, RAW_BRANCHES, -1);
	for (i = 0; i < 2; i++) {
		corrupting[i] = open_on(self->b, ALL_LOADS, -1);
		ASSERT_TRUE(read_one(pinned[i], &before[i]));
	}
	usleep(SHARES_US);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(100.0, share_since(pinned[i], &before[i]));
		if (on_rpmu())
			EXPECT_LE(1, running(corrupting[i]));
	}
	if (!on_rpmu())
		return;
	for (i = 0; i < 4; i++)
		EXPECT_LE(1, running(fd[i]));
}

/* An event with its mmap page, and the page's values at the last check. */
struct looked {
	int fd;
	struct perf_event_mmap_page *page;
	__u32 lock, index;
	__u64 count;
	unsigned int whole;
};

static void look(struct looked *event)
{
	do {
		event->lock = event->page->lock;
		event->count = read_page(event->page, &event->index);
	} while (event->page->lock != event->lock);
}

/*
 * Events that the threads rotate lose no counts. Between two checks of its
 * page, an event that stayed on its counter counts every branch, one that
 * stayed off counts none, and one that was added or removed counts some.
 */
TEST_F(ht_rotation, counts_beside_rotation)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	const unsigned long passes = 36000;
	/*
	 * More than the branches that look() takes for all pages, even if it
	 * has to repeat the reads because of an interrupt.
	 */
	const unsigned long looks = 1000;
	const unsigned int rounds = 1000;
	struct looked event[6] = {}, before;
	struct one_count count;
	unsigned int i, round;
	int corrupting;
	__u64 counted;
	pid_t noise;

	if (!on_rpmu())
		SKIP(return, "the corrupting event changes the others' counts");
	noise = fork_helper();
	if (!noise) {
		run_on(self->b);
		for (;;)
			memory_loop(100000);
	}
	ASSERT_TRUE(run_on(self->a));
	corrupting = open_on(self->b, ALL_LOADS, -1);
	attr.disabled = 0;
	for (i = 0; i < 6; i++) {
		event[i].fd = perf_open_self(&attr, -1);
		ASSERT_LE(0, event[i].fd);
		event[i].page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED,
				     event[i].fd, 0);
		ASSERT_NE(MAP_FAILED, event[i].page);
		look(&event[i]);
	}
	for (round = 0; round < rounds; round++) {
		branch_loop(passes);
		for (i = 0; i < 6; i++) {
			before = event[i];
			look(&event[i]);
			counted = event[i].count - before.count;
			/*
			 * The count of an event that has lost counts decreases.
			 */
			ASSERT_GE(4 * passes + looks, counted);
			if (event[i].lock != before.lock)
				continue;
			if (!before.index) {
				ASSERT_EQ(0, counted);
			} else {
				ASSERT_LE(4 * passes, counted);
				event[i].whole++;
			}
		}
	}
	for (i = 0; i < 6; i++) {
		ASSERT_TRUE(read_one(event[i].fd, &count));
		TH_LOG("on a counter for %.1f %% of the time, for all of %u rounds of %u",
		       percent_running(&count), event[i].whole, rounds);
		EXPECT_LE(30.0, percent_running(&count));
		EXPECT_LE(rounds / 10, event[i].whole);
	}
	ASSERT_TRUE(read_one(corrupting, &count));
	EXPECT_LE(25.0, percent_running(&count));
	kill(noise, SIGKILL);
	waitpid(noise, NULL, 0);
}

/*
 * Ten events on one thread of a core: three corrupting ones, one for counter 2
 * and six for any counter. On rpmu, the smallest share must be 20 % or more, as
 * on the built-in driver, and the sum of the shares 320 % or more. (The sum is
 * 329 % on the built-in driver, of which the corrupting events have 79 %. While a
 * corrupting event counts, the thread may use two counters, so that at most 321 %
 * of its 400 % are available: the built-in driver sometimes exceeds the limit.)
 */
#define TEN_EVENTS_S		2
#define TEN_EVENTS_LEAST	20.0	/* percent */
#define TEN_EVENTS_TOTAL	320.0

FIXTURE(ht_ten_events)
{
	int cpu;
};

FIXTURE_VARIANT(ht_ten_events)
{
	bool of_the_cpu;
};

FIXTURE_VARIANT_ADD(ht_ten_events, cpu)
{
	.of_the_cpu = true,
};

FIXTURE_VARIANT_ADD(ht_ten_events, task)
{
	.of_the_cpu = false,
};

FIXTURE_SETUP(ht_ten_events)
{
	char line[32];

	if (!threads_corrupt() || cpu_model() != MODEL_HASWELL)
		SKIP(return, "the events are Haswell's");
	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	if (!strpbrk(line, ",-"))
		SKIP(return, "one thread per core");
	ASSERT_TRUE(run_on(self->cpu));
}

FIXTURE_TEARDOWN(ht_ten_events)
{
}

TEST_F(ht_ten_events, shares)
{
	const __u64 config[] = {
		0x00c4, 0x01c4, 0x02c4, 0x08c4, 0x20c4,	/* BR_INST_RETIRED.* */
		0xff24,					/* L2_RQSTS.REFERENCES */
		L1_HIT, L2_HIT, 0x04d1,			/* MEM_LOAD_UOPS_RETIRED.* */
		PENDING,
	};
	double share, least = 100.0, total = 0;
	struct one_count count;
	int fd[10], i;

	for (i = 0; i < 10; i++) {
		struct perf_event_attr attr = counting(PERF_TYPE_RAW, config[i]);

		attr.disabled = 0;
		fd[i] = variant->of_the_cpu ? perf_open(&attr, -1, self->cpu, -1, 0) :
					      perf_open_self(&attr, -1);
		ASSERT_LE(0, fd[i]);
	}
	do {
		branch_loop(100000);
		ASSERT_TRUE(read_one(fd[0], &count));
	} while (count.enabled < TEN_EVENTS_S * 1000000000ULL);
	for (i = 0; i < 10; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		share = percent_running(&count);
		TH_LOG("%#llx: %.2f %%", config[i], share);
		if (share < least)
			least = share;
		total += share;
	}
	TH_LOG("at least %.2f %%, %.2f %% in all", least, total);
	if (on_rpmu()) {
		EXPECT_LE(TEN_EVENTS_LEAST, least);
		EXPECT_LE(TEN_EVENTS_TOTAL, total);
	}
	for (i = 0; i < 10; i++)
		close(fd[i]);
}

/* A thread without a sibling has no limit. */
TEST(one_thread_per_core)
{
	const __u64 config[] = { L1_HIT, L1_MISS, L2_HIT, PENDING };
	struct perf_event_attr attr;
	char line[32];
	int fd[4], i;

	ASSERT_TRUE(read_line("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list",
			      line, sizeof(line)));
	if (!threads_corrupt() || strpbrk(line, ",-"))
		SKIP(return, "these CPUs do not have the erratum, or two threads per core");
	for (i = 0; i < 4; i++) {
		attr = counting(PERF_TYPE_RAW, config[i]);
		attr.disabled = 0;
		fd[i] = perf_open_self(&attr, i ? fd[0] : -1);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_TRUE(runs(fd[0]));
}

TEST_HARNESS_MAIN
