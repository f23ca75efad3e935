// SPDX-License-Identifier: GPL-2.0
/*
 * Tests CPUs that go offline and online while events count on them. Events of
 * tasks follow their tasks. Events of the CPU keep their counts and do not count
 * any more; events that are opened afterwards start at 0. The events of the
 * CPU's stopper thread are still on the PMU when the CPU goes offline. Events of
 * tasks and of CPUs are also tested with every CPU busy and sampling. Rotation
 * continues on the CPU.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "branch_programs.h"
#include "perf_util.h"

#define CYCLES		3
#define LOOPS		100000UL
/* Long enough for a CPU to go offline and online in the meantime. */
#define LONG_LOOPS	150000000UL

FIXTURE(hotplug)
{
	int cpu;
	char interval[16];
};

FIXTURE_SETUP(hotplug)
{
	self->cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	if (self->cpu < 1)
		SKIP(return, "one CPU only");
	ASSERT_TRUE(set_cpu_online(self->cpu, true));
	ASSERT_TRUE(run_on(0));
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
}

FIXTURE_TEARDOWN(hotplug)
{
	if (self->cpu < 1)
		return;
	EXPECT_TRUE(set_cpu_online(self->cpu, true));
	EXPECT_TRUE(write_line(MUX_INTERVAL, self->interval));
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
	ASSERT_TRUE(take_cpu(true));
	counted_loop(fd, 0, LOOPS);
	ASSERT_TRUE(take_cpu(false));
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

		ASSERT_TRUE(set_cpu_online(self->cpu, false));
		ASSERT_TRUE(read_one(fd, &before));
		EXPECT_LE(LOOP_INSTRUCTIONS(LOOPS), before.value);
		EXPECT_EQ(-1, perf_open(&attr, -1, self->cpu, -1, 0));
		EXPECT_EQ(ENODEV, errno);

		ASSERT_TRUE(set_cpu_online(self->cpu, true));
		expect_exact_on(_metadata, self->cpu);
		ASSERT_TRUE(read_one(fd, &after));
		EXPECT_EQ(before.value, after.value);
		EXPECT_EQ(before.running, after.running);
		close(fd);
	}
}

/* A group of a CPU counts while that CPU goes offline. */
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
	ASSERT_TRUE(set_cpu_online(self->cpu, false));
	ASSERT_TRUE(set_cpu_online(self->cpu, true));
	EXPECT_NE(NO_COUNT, read_value(leader));
	EXPECT_NE(NO_COUNT, read_value(sibling));
	close(sibling);
	close(leader);
	expect_exact_on(_metadata, self->cpu);
}

/*
 * A task counts its own instructions while its CPU goes offline and comes back:
 * no count is lost or added twice.
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
			/*
			 * The task is allowed on every CPU; otherwise the
			 * kernel would have to break its affinity.
			 */
			memset(&set, 0xff, sizeof(set));
			if (sched_setaffinity(0, sizeof(set), &set))
				_exit(3);
			counted_loop(fd, 0, LONG_LOOPS);
			count = read_value(fd);
			_exit(write(done[1], &count, sizeof(count)) !=
			      sizeof(count));
		}
		usleep(50000);
		ASSERT_TRUE(set_cpu_online(self->cpu, false));
		ASSERT_TRUE(set_cpu_online(self->cpu, true));
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

/* Two events for each general-purpose counter. */
#define MAX_EVENTS	32
/*
 * The rotation interval while the CPU goes offline, and while shares are
 * measured.
 */
#define SLOW_MS		"250"
#define FAST_MS		"4"
#define SLOW_US		250000
#define SHARES_US	200000
/* More branches than the CPU can execute in that time. */
#define MANY_BRANCHES	1000000000000ULL

static int open_rotating(int cpu, int *fd)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	int nr = 2 * gp_counters(), i;

	attr.disabled = 0;
	for (i = 0; i < nr && i < MAX_EVENTS; i++)
		fd[i] = perf_open(&attr, -1, cpu, -1, 0);
	return i;
}

/*
 * The CPU goes offline and online in the middle of an interval. New events on
 * it rotate like events on a CPU that was never offline. The perf core's
 * rotation timer moves to another CPU, where it rotates the events without the
 * right locks. With the built-in driver, events then lose their counters for
 * good, counts are nonsense, and the kernel warns.
 */
TEST_F(hotplug, rotation)
{
	struct one_count before[MAX_EVENTS], after[MAX_EVENTS];
	int cycle, nr, i, fd[MAX_EVENTS];
	double share;

	if (!on_rpmu())
		SKIP(return, "the perf core rotates events from another CPU");
	ASSERT_TRUE(own_counters());
	for (cycle = 0; cycle < 2; cycle++) {
		ASSERT_TRUE(write_line(MUX_INTERVAL, SLOW_MS));
		nr = open_rotating(self->cpu, fd);
		ASSERT_TRUE(set_cpu_online(self->cpu, false));
		ASSERT_TRUE(set_cpu_online(self->cpu, true));
		for (i = 0; i < nr; i++)
			close(fd[i]);
		nr = open_rotating(self->cpu, fd);
		usleep(2 * SLOW_US);
		ASSERT_TRUE(write_line(MUX_INTERVAL, FAST_MS));
		usleep(SLOW_US);
		for (i = 0; i < nr; i++)
			ASSERT_TRUE(read_one(fd[i], &before[i]));
		usleep(SHARES_US);
		for (i = 0; i < nr; i++) {
			ASSERT_TRUE(read_one(fd[i], &after[i]));
			close(fd[i]);
			share = 100.0 * (after[i].running - before[i].running) /
				(after[i].enabled - before[i].enabled);
			EXPECT_LE(25, share);
			EXPECT_GE(75, share) {
				TH_LOG("event %d, cycle %d: %.1f %%", i, cycle, share);
			}
			EXPECT_GT(MANY_BRANCHES, after[i].value);
		}
	}
	expect_exact_on(_metadata, self->cpu);
}

/* Branches between two samples, and the number of samples. */
#define BRANCH_PERIOD	100003UL
#define BRANCH_SAMPLES	20U

/*
 * After the CPU is back, samples on it have branch stacks, according to their
 * event's filter.
 */
TEST_F(hotplug, branch_stacks)
{
	struct perf_event_mmap_page *page;
	struct sample_limits limits;
	int fd, cycle;

	if (!branch_records() || cpu_model() == MODEL_NEHALEM || cpu_model() == MODEL_WESTMERE)
		SKIP(return, "this CPU cannot record indirect calls only");
	ASSERT_TRUE(lift_sample_limits(&limits));
	fd = open_indirect_calls(BRANCH_PERIOD, &page);
	ASSERT_LE(0, fd);
	for (cycle = 0; cycle < CYCLES; cycle++) {
		ASSERT_TRUE(run_on(self->cpu));
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
		mix_a(BRANCH_SAMPLES * BRANCH_PERIOD / IN_MIX);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
		EXPECT_LE(BRANCH_SAMPLES * 3 / 4, full_of_calls(page, mix_a_branches[2].from));
		ASSERT_TRUE(run_on(0));
		ASSERT_TRUE(set_cpu_online(self->cpu, false));
		ASSERT_TRUE(set_cpu_online(self->cpu, true));
	}
	close_indirect_calls(fd, page);
	EXPECT_TRUE(put_back_sample_limits(&limits));
}

#define NESTED		5
#define DEEPLY_NESTED	40	/* more than any CPU records */
#define NEST_PAGES	16UL

/* The pipes of a nested task. */
static int nested_ready, nested_go;

/*
 * Reports that the task has reached this depth of calls, sleeps, and then
 * executes branches on request.
 */
static void sleep_and_spin(void)
{
	char byte = 0;

	if (write(nested_ready, &byte, 1) != 1 || read(nested_go, &byte, 1) != 1)
		_exit(1);
	spin(BRANCH_SAMPLES * BRANCH_PERIOD);
	if (write(nested_ready, &byte, 1) != 1)
		_exit(2);
}

struct nested {
	int ready[2], go[2], fd;
	struct perf_event_mmap_page *page;
	pid_t pid;
};

static bool await(const struct nested *task)
{
	char byte;

	return read(task->ready[0], &byte, 1) == 1;
}

static bool resume(const struct nested *task)
{
	return write(task->go[1], "", 1) == 1;
}

/*
 * Starts a task whose calls are sampled, and which sleeps at this depth of
 * calls.
 */
static bool start_nested(struct nested *task, int cpu,
			 void (*nest)(unsigned long, void (*)(void)), unsigned long depth)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	char byte = 0;

	if (pipe(task->ready) || pipe(task->go))
		return false;
	nested_ready = task->ready[1];
	nested_go = task->go[0];
	task->pid = fork_helper();
	if (task->pid == 0) {
		if (!run_on(cpu) || write(nested_ready, &byte, 1) != 1 ||
		    read(nested_go, &byte, 1) != 1)
			_exit(3);
		nest(depth, sleep_and_spin);
		for (;;)
			pause();
	}
	attr.disabled = 0;
	attr.sample_period = BRANCH_PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_USER |
				  PERF_SAMPLE_BRANCH_NO_FLAGS | PERF_SAMPLE_BRANCH_NO_CYCLES;
	if (task->pid < 0 || !await(task))
		return false;
	task->fd = perf_open(&attr, task->pid, -1, -1, 0);
	task->page = map_buffer(task->fd, NEST_PAGES);
	if (task->fd < 0 || task->page == MAP_FAILED || !resume(task) || !await(task))
		return false;
	/* Wait until it sleeps. */
	usleep(20000);
	return true;
}

static void end_nested(struct nested *task)
{
	kill(task->pid, SIGKILL);
	waitpid(task->pid, NULL, 0);
	munmap(task->page, (1 + NEST_PAGES) * sysconf(_SC_PAGESIZE));
	close(task->fd);
}

static bool is_within(__u64 address, void (*nest)(unsigned long, void (*)(void)), const char *end)
{
	return address >= (unsigned long)nest && address < (unsigned long)end;
}

/*
 * A task that sleeps while its CPU is offline keeps its calls. They are not
 * mixed with the calls of another task that has slept on the CPU since.
 */
TEST_F(hotplug, calls_of_a_sleeping_task)
{
	const struct {
		struct perf_event_header header;
		__u64 ip, nr;
		struct perf_branch_entry entries[];
	} *sample;
	unsigned int samples = 0, own = 0, others = 0;
	struct sample_limits limits;
	struct nested a, b;

	if (!has_call_stacks())
		SKIP(return, "this CPU does not record call stacks");
	ASSERT_TRUE(lift_sample_limits(&limits));
	ASSERT_TRUE(start_nested(&a, self->cpu, nest_a, NESTED));
	ASSERT_TRUE(set_cpu_online(self->cpu, false));
	ASSERT_TRUE(set_cpu_online(self->cpu, true));
	ASSERT_TRUE(start_nested(&b, self->cpu, nest_b, DEEPLY_NESTED));
	ASSERT_TRUE(resume(&a));
	ASSERT_TRUE(await(&a));
	while ((sample = take_sample(a.page))) {
		if (sample->ip - (unsigned long)spin >= 16)
			continue;
		samples++;
		for (__u64 i = 0; i < sample->nr; i++) {
			own += is_within(sample->entries[i].from, nest_a, nest_a_end);
			others += is_within(sample->entries[i].from, nest_b, nest_b_end);
		}
	}
	TH_LOG("%u samples, %u own calls, %u of another task", samples, own, others);
	EXPECT_LE(BRANCH_SAMPLES * 3 / 4, samples);
	/* nest_a() calls itself NESTED times, and then sleep_and_spin(). */
	EXPECT_EQ((NESTED + 1) * samples, own);
	EXPECT_EQ(0, others);
	end_nested(&a);
	end_nested(&b);
	EXPECT_TRUE(put_back_sample_limits(&limits));
}

/* Returns the thread that takes @cpu offline, or 0. */
static pid_t stopper_of(int cpu)
{
	char wanted[32], path[300], name[32];
	struct dirent *entry;
	pid_t found = 0;
	DIR *proc;

	snprintf(wanted, sizeof(wanted), "migration/%d", cpu);
	proc = opendir("/proc");
	while (proc && !found && (entry = readdir(proc))) {
		snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
		if (read_line(path, name, sizeof(name)) && !strcmp(name, wanted))
			found = atoi(entry->d_name);
	}
	if (proc)
		closedir(proc);
	return found;
}

/* More instructions than the stopper executes in a few milliseconds. */
#define STOPPER_SHARE	1000000000ULL

/*
 * Events of a CPU's stopper thread count while it takes the CPU offline. The
 * thread executes nothing in user mode. A fixed counter and a general-purpose
 * one run at the same times and must count the same number in the kernel. All
 * events continue when the CPU is back.
 */
TEST_F(hotplug, stopper)
{
	struct perf_event_attr user[] = {
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS),
		counting_user(PERF_TYPE_RAW, RAW_BRANCHES),
	};
	struct perf_event_attr attr = instructions_user();
	int fd[ARRAY_SIZE(user)], leader, sibling, cycle;
	pid_t stopper = stopper_of(self->cpu);
	struct group_count group;
	unsigned int i, step;
	__u64 last = 0;

	ASSERT_LT(0, stopper);
	for (i = 0; i < ARRAY_SIZE(user); i++) {
		user[i].disabled = 0;
		fd[i] = perf_open(&user[i], stopper, -1, -1, 0);
		ASSERT_LE(0, fd[i]);
	}
	attr.exclude_kernel = 0;
	attr.exclude_user = 1;
	attr.disabled = 0;
	attr.read_format = READ_GROUP;
	leader = perf_open(&attr, stopper, -1, -1, 0);
	ASSERT_LE(0, leader);
	sibling = perf_open(&attr, stopper, -1, leader, 0);
	ASSERT_LE(0, sibling);

	for (cycle = 0; cycle < CYCLES; cycle++) {
		for (step = 0; step < 2; step++) {
			ASSERT_TRUE(set_cpu_online(self->cpu, step == 1));
			/* The stopper moves the tasks that run there. */
			if (step == 1) {
				ASSERT_TRUE(run_on(self->cpu));
				ASSERT_TRUE(run_on(0));
			}
			for (i = 0; i < ARRAY_SIZE(user); i++) {
				EXPECT_EQ(0, read_value(fd[i])) {
					TH_LOG("event %u, cycle %d, %s", i, cycle,
					       step ? "on again" : "off");
				}
			}
			ASSERT_LT(0, read(leader, &group, sizeof(group)));
			/*
			 * The counters start and stop one after the other, each
			 * time.
			 */
			EXPECT_TRUE(group.event[0].value == group.event[1].value ||
				    !counters_start_together());
			EXPECT_LT(last, group.event[0].value);
			EXPECT_GT(last + STOPPER_SHARE, group.event[0].value);
			EXPECT_EQ(group.enabled, group.running);
			last = group.event[0].value;
		}
	}
	close(sibling);
	close(leader);
	for (i = 0; i < ARRAY_SIZE(user); i++)
		close(fd[i]);
	expect_exact_on(_metadata, self->cpu);
}

/* The loads: tasks that count and sample themselves until the test ends. */
#define CHUNK_LOOPS	1000000UL
#define LOAD_PERIOD	1000003UL
#define LOAD_PAGES	16UL
#define PAGE		4096UL
#define MAX_CPUS	64

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

static bool sample(struct ring *ring, __u64 config, pid_t pid, int cpu)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.sample_period = LOAD_PERIOD;
	attr.sample_type = PERF_SAMPLE_IP;
	ring->fd = perf_open(&attr, pid, cpu, -1, 0);
	if (ring->fd < 0)
		return false;
	ring->page = map_buffer(ring->fd, LOAD_PAGES);
	return ring->page != MAP_FAILED;
}

static void drop(struct ring *ring)
{
	munmap(ring->page, (1 + LOAD_PAGES) * PAGE);
	close(ring->fd);
}

/*
 * Returns the number of samples so far; -1 if there are other records, for
 * example of lost samples.
 */
static long samples(const struct ring *ring)
{
	__u64 at, head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	const struct perf_event_header *header;
	long n = 0;

	if (head > LOAD_PAGES * PAGE)
		return -1;
	for (at = 0; at < head; at += header->size, n++) {
		header = (void *)((char *)ring->page + PAGE + at);
		if (header->type != PERF_RECORD_SAMPLE)
			return -1;
	}
	return n;
}

enum {
	LOAD_RIGHT, LOAD_CANNOT_OPEN, LOAD_INSTRUCTIONS, LOAD_BRANCHES, LOAD_SAMPLES,
};

/* Samples instructions and counts branches in the same group. */
static int load(const bool *stop)
{
	struct perf_event_attr branches = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	__u64 chunks = 0, count, more;
	struct ring ring;
	int sibling;

	branches.disabled = 0;
	if (!sample(&ring, RAW_INSTRUCTIONS, 0, -1))
		return LOAD_CANNOT_OPEN;
	sibling = perf_open_self(&branches, ring.fd);
	if (sibling < 0)
		return LOAD_CANNOT_OPEN;
	for (; !__atomic_load_n(stop, __ATOMIC_RELAXED); chunks++)
		counted_loop(ring.fd, PERF_IOC_FLAG_GROUP, CHUNK_LOOPS);
	count = chunks * LOOP_INSTRUCTIONS(CHUNK_LOOPS);
	if (read_value(ring.fd) != count)
		return LOAD_INSTRUCTIONS;
	/* Some models may count the SYSCALL at the end of each as a branch. */
	more = read_value(sibling) - chunks * LOOP_BRANCHES(CHUNK_LOOPS);
	if (more != 0 && more != chunks)
		return LOAD_BRANCHES;
	/* If the task moves right after an overflow, one sample may be of the next period. */
	if (labs((long)(count / LOAD_PERIOD) - samples(&ring)) > 1)
		return LOAD_SAMPLES;
	return LOAD_RIGHT;
}

FIXTURE(hotplug_load)
{
	struct sample_limits limits;
	pid_t task[2 * MAX_CPUS];
	int cpus, tasks;
	bool *stop;
};

FIXTURE_SETUP(hotplug_load)
{
	self->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (self->cpus < 2)
		SKIP(return, "one CPU only");
	ASSERT_GE(MAX_CPUS, self->cpus);
	ASSERT_TRUE(lift_sample_limits(&self->limits));
	self->stop = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->stop);
	/* Use two tasks for each CPU, so that they are also switched. */
	for (self->tasks = 0; self->tasks < 2 * self->cpus; self->tasks++) {
		self->task[self->tasks] = fork_helper();
		ASSERT_LE(0, self->task[self->tasks]);
		if (self->task[self->tasks] == 0)
			_exit(load(self->stop));
	}
}

FIXTURE_TEARDOWN(hotplug_load)
{
	int i;

	if (self->cpus < 2)
		return;
	for (i = 0; i < self->tasks; i++)
		kill(self->task[i], SIGKILL);
	for (i = 1; i < self->cpus; i++)
		set_cpu_online(i, true);
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

/*
 * Waits for a sample, for at most 2 s: a CPU that has just come online is idle until
 * a task moves there.
 */
static bool comes_to_sample(const struct ring *ring)
{
	unsigned int tries;

	for (tries = 0; tries < 100; tries++) {
		usleep(20000);
		if (samples(ring))
			return true;
	}
	return false;
}

/*
 * Each CPU except the first goes offline and online while its tasks sample and
 * while it has its own events, one of which samples. Together they occupy four
 * general-purpose counters and a fixed one exactly, without rotation. No task
 * loses a count or a sample, and a CPU that is back samples again.
 */
TEST_F(hotplug_load, counts_and_samples)
{
	struct perf_event_attr branches = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct one_count gone, back;
	/* If there are only four counters, use one less. */
	int nr_more = gp_counters() + fixed_counters() > 4 ? 2 : 1;
	int cpu, i, status, more[2];
	struct ring before, after;
	long seen;

	branches.disabled = 0;
	for (cpu = 1; cpu < self->cpus; cpu++) {
		ASSERT_TRUE(sample(&before, RAW_INSTRUCTIONS, -1, cpu));
		ASSERT_EQ(0, ioctl(before.fd, PERF_EVENT_IOC_ENABLE, 0));
		for (i = 0; i < nr_more; i++) {
			more[i] = perf_open(&branches, -1, cpu, -1, 0);
			ASSERT_LE(0, more[i]);
		}
		EXPECT_TRUE(comes_to_sample(&before));
		ASSERT_TRUE(set_cpu_online(cpu, false));
		ASSERT_TRUE(read_one(before.fd, &gone));
		seen = samples(&before);
		usleep(20000);
		ASSERT_TRUE(set_cpu_online(cpu, true));
		ASSERT_TRUE(sample(&after, RAW_INSTRUCTIONS, -1, cpu));
		ASSERT_EQ(0, ioctl(after.fd, PERF_EVENT_IOC_ENABLE, 0));
		EXPECT_TRUE(comes_to_sample(&after));
		ASSERT_EQ(0, ioctl(after.fd, PERF_EVENT_IOC_DISABLE, 0));
		EXPECT_GE(1, labs((long)(read_value(after.fd) / LOAD_PERIOD) - samples(&after)));
		ASSERT_TRUE(read_one(before.fd, &back));
		EXPECT_EQ(gone.value, back.value);
		EXPECT_EQ(seen, samples(&before));
		for (i = 0; i < nr_more; i++)
			close(more[i]);
		drop(&after);
		drop(&before);
	}
	for (i = 0; i < self->tasks; i++)
		ASSERT_EQ(0, waitpid(self->task[i], &status, WNOHANG)) {
			TH_LOG("task %d has ended: %#x", i, status);
		}
	__atomic_store_n(self->stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < self->tasks; i++) {
		ASSERT_EQ(self->task[i], waitpid(self->task[i], &status, 0));
		EXPECT_EQ(0, status) {
			TH_LOG("task %d: %d", i, WEXITSTATUS(status));
		}
	}
	self->tasks = 0;
}

TEST_HARNESS_MAIN
