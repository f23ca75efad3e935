// SPDX-License-Identifier: GPL-2.0
/*
 * Tests equal events, which rpmu counts on one counter: events of the CPU, of a
 * task and of a control group with the same event select. The built-in driver
 * has a counter for each; both drivers must give the same counts.
 *
 * Most tests of the fixture "shared" compare a rider with its witness: an event
 * that counts the same, but on another counter, because it leaves out guests
 * (exclude_guest), of which there are none. Both count user mode only, and one
 * system call (prctl) starts or stops both, so their counts are identical,
 * whatever happens to other events in between.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

SHARED_COUNTERS()

#define LOOPS		50000UL
#define PERIOD		1009
#define PAGES		256UL

static int last_cpu(void)
{
	return sysconf(_SC_NPROCESSORS_ONLN) - 1;
}

/* 2 * n instructions, of which n are branches. */
static inline void loop(unsigned long n)
{
	asm volatile("1:\n\tdec %[n]\n\tjnz 1b" : [n] "+r" (n) : : "cc");
}

/* Starts or stops all events that this task has opened. */
static void start_all(void)
{
	prctl(PR_TASK_PERF_EVENTS_ENABLE);
}

static void stop_all(void)
{
	prctl(PR_TASK_PERF_EVENTS_DISABLE);
}

/*
 * Starts all events, executes n passes of a loop and stops the events, in one
 * asm statement like counted_loop(). 2 * n + 3 user-level instructions are
 * counted: the loop, and the three of the second prctl.
 */
#define OWNED_INSTRUCTIONS(n)	(2 * (__u64)(n) + 3)

static inline void owned_loop(unsigned long n)
{
	asm volatile("mov %[prctl], %%eax\n\t"
		     "mov %[enable], %%edi\n\t"
		     "syscall\n"
		     "1:\n\t"
		     "decq %[n]\n\t"
		     "jnz 1b\n\t"
		     "mov %[prctl], %%eax\n\t"
		     "mov %[disable], %%edi\n\t"
		     "syscall"
		     : [n] "+m" (n)
		     : [prctl] "i" (SYS_prctl),
		       [enable] "i" (PR_TASK_PERF_EVENTS_ENABLE),
		       [disable] "i" (PR_TASK_PERF_EVENTS_DISABLE)
		     : "rax", "rcx", "rdi", "r11", "cc", "memory");
}

/* Opens an event of this task, or of the last CPU. */
static int open_in(const struct perf_event_attr *attr, bool of_cpu)
{
	return of_cpu ? perf_open(attr, -1, last_cpu(), -1, 0) : perf_open_self(attr, -1);
}

static struct perf_event_attr sampling(__u64 config, __u64 period)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP;
	return attr;
}

static struct perf_event_attr leaving_out_guests(__u64 config)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, config);

	attr.exclude_guest = 1;
	return attr;
}

/* The records in a buffer that does not wrap. */
struct seen {
	unsigned int samples, throttled, lost;
};

static struct seen look(struct perf_event_mmap_page *page)
{
	__u64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const struct perf_event_header *header;
	struct seen seen = {};

	for (; page->data_tail < head; page->data_tail += header->size) {
		header = (void *)((char *)page + page->data_offset + page->data_tail);
		seen.samples += header->type == PERF_RECORD_SAMPLE;
		seen.throttled += header->type == PERF_RECORD_THROTTLE;
		seen.lost += header->type == PERF_RECORD_LOST;
	}
	return seen;
}

/* Returns whether there is a sample for each period, except for one at the end. */
static bool sampled(__u64 count, __u64 period, unsigned int samples)
{
	return count / period - samples + 1 <= 2;
}

/*
 * An owner and a rider with the same event select, each of the CPU or of this
 * task, and the rider's witness. The owner is opened and enabled first. With
 * "fixed", all count instructions, for which most CPUs have a fixed counter.
 */
FIXTURE(shared)
{
	struct sample_limits limits;
	struct perf_event_mmap_page *page;
	__u64 config;
	int witness, owner, rider;
};

FIXTURE_VARIANT(shared)
{
	bool fixed, owner_of_cpu, rider_of_cpu;
};

FIXTURE_VARIANT_ADD(shared, task_on_task)
{
	.owner_of_cpu = false,
	.rider_of_cpu = false,
};

FIXTURE_VARIANT_ADD(shared, task_on_cpu)
{
	.owner_of_cpu = true,
	.rider_of_cpu = false,
};

FIXTURE_VARIANT_ADD(shared, cpu_on_task)
{
	.owner_of_cpu = false,
	.rider_of_cpu = true,
};

FIXTURE_VARIANT_ADD(shared, cpu_on_cpu)
{
	.owner_of_cpu = true,
	.rider_of_cpu = true,
};

FIXTURE_VARIANT_ADD(shared, fixed_task_on_cpu)
{
	.fixed = true,
	.owner_of_cpu = true,
	.rider_of_cpu = false,
};

FIXTURE_VARIANT_ADD(shared, fixed_cpu_on_task)
{
	.fixed = true,
	.owner_of_cpu = false,
	.rider_of_cpu = true,
};

FIXTURE_SETUP(shared)
{
	self->config = variant->fixed ? RAW_INSTRUCTIONS : RAW_BRANCHES;
	self->page = MAP_FAILED;
	ASSERT_TRUE(lift_sample_limits(&self->limits));
	ASSERT_TRUE(run_on(last_cpu()));
	/* An event of the CPU counts every program there. */
	ASSERT_TRUE(take_cpu(true));
}

FIXTURE_TEARDOWN(shared)
{
	EXPECT_TRUE(take_cpu(false));
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

/*
 * Opens the owner with these attributes, then the rider and its witness. All are
 * disabled, and inherited if the owner is.
 */
static void open_three(struct __test_metadata *_metadata, struct _test_data_shared *self,
		       const struct _fixture_variant_shared *variant,
		       const struct perf_event_attr *owner)
{
	struct perf_event_attr rider = counting_user(PERF_TYPE_RAW, self->config);
	struct perf_event_attr witness = leaving_out_guests(self->config);

	rider.inherit = owner->inherit;
	witness.inherit = owner->inherit;
	self->owner = open_in(owner, variant->owner_of_cpu);
	ASSERT_LE(0, self->owner);
	/* An inherited event of a task can have no buffer. */
	if (owner->sample_type && !owner->inherit) {
		self->page = map_buffer(self->owner, PAGES);
		ASSERT_NE(MAP_FAILED, self->page);
	}
	self->rider = open_in(&rider, variant->rider_of_cpu);
	ASSERT_LE(0, self->rider);
	self->witness = open_in(&witness, variant->rider_of_cpu);
	ASSERT_LE(0, self->witness);
}

/* Closes the owner, whose mapping would keep it open. */
static void close_owner(struct __test_metadata *_metadata, struct _test_data_shared *self)
{
	if (self->page != MAP_FAILED)
		EXPECT_EQ(0, munmap(self->page, (PAGES + 1) * sysconf(_SC_PAGESIZE)));
	self->page = MAP_FAILED;
	EXPECT_EQ(0, close(self->owner));
}

#define OPEN_COUNTING()	do {							\
	const struct perf_event_attr owner =					\
		counting_user(PERF_TYPE_RAW, self->config);			\
										\
	open_three(_metadata, self, variant, &owner);			\
} while (0)

#define OPEN_SAMPLING(period)	do {						\
	const struct perf_event_attr owner = sampling(self->config, period);	\
										\
	open_three(_metadata, self, variant, &owner);			\
} while (0)

/* Nothing may be lost or counted twice. */
#define EXPECT_WITNESSED()	do {						\
	const __u64 count = read_value(self->witness);				\
										\
	EXPECT_LE(LOOPS, count);						\
	EXPECT_EQ(count, read_value(self->rider));				\
} while (0)

/* Checks an event's @count after @loops calls of counted_loop() with @n passes. */
static void expect_loops(struct __test_metadata *_metadata,
			 const struct _fixture_variant_shared *variant, __u64 count,
			 unsigned int loops, unsigned long n)
{
	if (variant->fixed) {
		EXPECT_EQ(loops * LOOP_INSTRUCTIONS(n), count);
	} else {
		/* SYSCALL may be a branch. */
		EXPECT_GE(loops, count - loops * LOOP_BRANCHES(n));
	}
}

TEST_F(shared, nothing_happens)
{
	OPEN_COUNTING();
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->owner), read_value(self->rider));
	if (variant->fixed)
		EXPECT_EQ(OWNED_INSTRUCTIONS(LOOPS), read_value(self->rider));
	/* After its reset, the owner counts from 0. The rider's count is not affected. */
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_RESET, 0));
	owned_loop(3 * LOOPS);
	EXPECT_WITNESSED();
	EXPECT_GE(1, read_value(self->owner) -
		     (variant->fixed ? OWNED_INSTRUCTIONS(3 * LOOPS) : 3 * LOOPS));
}

TEST_F(shared, owner_closed)
{
	OPEN_COUNTING();
	start_all();
	loop(LOOPS);
	close(self->owner);
	loop(LOOPS);
	stop_all();
	EXPECT_WITNESSED();
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
}

TEST_F(shared, rider_closed)
{
	OPEN_COUNTING();
	start_all();
	loop(LOOPS);
	close(self->rider);
	loop(LOOPS);
	stop_all();
	EXPECT_LE(2 * LOOPS, read_value(self->owner));
	EXPECT_EQ(read_value(self->witness), read_value(self->owner));
}

/* The owner counts all of its own windows exactly, too. */
TEST_F(shared, owner_switched_off_and_on)
{
	const unsigned int windows = 20;
	unsigned int i;

	OPEN_COUNTING();
	start_all();
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_RESET, 0));
	for (i = 0; i < windows; i++) {
		counted_loop(self->owner, 0, LOOPS);
		loop(LOOPS / 10);
	}
	stop_all();
	EXPECT_WITNESSED();
	expect_loops(_metadata, variant, read_value(self->owner), windows, LOOPS);
}

TEST_F(shared, rider_switched_off_and_on)
{
	const unsigned int windows = 20;
	__u64 before, count;
	unsigned int i;

	OPEN_SAMPLING(PERIOD);
	start_all();
	ASSERT_EQ(0, ioctl(self->rider, PERF_EVENT_IOC_DISABLE, 0));
	before = read_value(self->rider);
	for (i = 0; i < windows; i++) {
		counted_loop(self->rider, 0, LOOPS);
		loop(LOOPS / 10);
	}
	count = read_value(self->rider) - before;
	stop_all();
	expect_loops(_metadata, variant, count, windows, LOOPS);
}

/* An event that is enabled after the owner has counted for a while. */
TEST_F(shared, rider_starts_late)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, self->config);
	int group, sibling, round;
	__u64 count = 0;

	OPEN_SAMPLING(PERIOD);
	group = open_in(&attr, variant->rider_of_cpu);
	ASSERT_LE(0, group);
	attr.disabled = 0;
	sibling = perf_open(&attr, variant->rider_of_cpu ? -1 : 0,
			    variant->rider_of_cpu ? last_cpu() : -1, group, 0);
	ASSERT_LE(0, sibling);
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_ENABLE, 0));
	for (round = 1; round <= 5; round++) {
		loop(LOOPS);
		counted_loop(group, 0, LOOPS);
		count = read_value(group);
		expect_loops(_metadata, variant, count, round, LOOPS);
		EXPECT_EQ(count, read_value(sibling));
	}
}

TEST_F(shared, samples)
{
	struct seen seen;

	OPEN_SAMPLING(PERIOD);
	owned_loop(10 * LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->owner), read_value(self->rider));
	seen = look(self->page);
	EXPECT_TRUE(sampled(read_value(self->owner), PERIOD, seen.samples));
	EXPECT_EQ(0, seen.lost + seen.throttled);
}

/* A counting event has no samples, on whichever counter it counts. */
TEST_F(shared, rider_has_no_samples)
{
	struct perf_event_mmap_page *page;

	OPEN_SAMPLING(PERIOD);
	page = map_buffer(self->rider, 1);
	ASSERT_NE(MAP_FAILED, page);
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(0, page->data_head);
	close_owner(_metadata, self);
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(0, page->data_head);
}

/* Two events that sample with different periods each have all their samples. */
TEST_F(shared, two_that_sample)
{
	struct perf_event_attr attr = sampling(self->config, 5003);
	struct perf_event_mmap_page *page;
	struct seen seen;
	int second;

	OPEN_SAMPLING(PERIOD);
	second = open_in(&attr, variant->rider_of_cpu);
	ASSERT_LE(0, second);
	page = map_buffer(second, PAGES);
	ASSERT_NE(MAP_FAILED, page);
	owned_loop(10 * LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->owner), read_value(self->rider));
	EXPECT_EQ(read_value(self->owner), read_value(second));
	seen = look(self->page);
	EXPECT_TRUE(sampled(read_value(self->owner), PERIOD, seen.samples));
	seen = look(page);
	EXPECT_TRUE(sampled(read_value(second), 5003, seen.samples));
}

/* Returns the event's id, as in rpmu's schedule. */
static __u64 id_of(int fd)
{
	__u64 id = 0;

	ioctl(fd, PERF_EVENT_IOC_ID, &id);
	return id;
}

/* Returns the event's line in rpmu's schedule of the last CPU; "" if it is not listed. */
static const char *scheduled(int fd)
{
	static char line[1024];
	char path[64], number[48];
	bool listed = false;
	FILE *file;

	snprintf(path, sizeof(path), "/sys/kernel/debug/rpmu/cpu%d/schedule", last_cpu());
	snprintf(number, sizeof(number), " id=%llu ", id_of(fd));
	file = fopen(path, "r");
	while (file && !listed && fgets(line, sizeof(line), file))
		listed = strstr(line, number);
	if (file)
		fclose(file);
	return listed ? line : "";
}

/* Returns whether the event rides on the counter of @head. */
static bool is_rider_of(int fd, int head)
{
	char expected[48];

	snprintf(expected, sizeof(expected), " rides_on=%llu ", id_of(head));
	return strstr(scheduled(fd), expected);
}

/*
 * Each of two sampled events has a counter. When one is closed, the events that
 * have ridden on its counter move to the other's, and nothing is lost.
 */
TEST_F(shared, one_of_two_that_sample_closed)
{
	struct perf_event_attr attr = sampling(self->config, 5003);
	struct perf_event_mmap_page *page;
	int second, other = -1;

	OPEN_SAMPLING(PERIOD);
	second = open_in(&attr, variant->owner_of_cpu);
	ASSERT_LE(0, second);
	page = map_buffer(second, PAGES);
	ASSERT_NE(MAP_FAILED, page);
	attr = counting_user(PERF_TYPE_RAW, self->config);
	/* The built-in driver has no counter for it on some CPU models. */
	if (shares_counters()) {
		other = open_in(&attr, variant->owner_of_cpu);
		ASSERT_LE(0, other);
	}
	start_all();
	loop(LOOPS + 123);
	close_owner(_metadata, self);
	if (shares_counters()) {
		EXPECT_TRUE(is_rider_of(self->rider, second)) TH_LOG("%s", scheduled(self->rider));
		EXPECT_TRUE(is_rider_of(other, second)) TH_LOG("%s", scheduled(other));
	}
	loop(LOOPS);
	stop_all();
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->rider), read_value(second));
	if (shares_counters())
		EXPECT_EQ(read_value(self->rider), read_value(other));
	EXPECT_TRUE(sampled(read_value(second), 5003, look(page).samples));
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->rider), read_value(second));
}

/*
 * An event with branch stacks has a counter of its own when it arrives, and the
 * events that have counted the same before move to it.
 */
TEST_F(shared, branch_stacks_arrive)
{
	struct perf_event_attr attr = sampling(self->config, 5003);
	struct perf_event_mmap_page *page;
	int branches;

	if (!branch_records())
		SKIP(return, "this CPU records no branches");
	OPEN_COUNTING();
	attr.sample_type |= PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
	branches = open_in(&attr, variant->rider_of_cpu);
	if (branches < 0 && errno == EOPNOTSUPP)
		SKIP(return, "no branch stacks here");
	ASSERT_LE(0, branches);
	page = map_buffer(branches, PAGES);
	ASSERT_NE(MAP_FAILED, page);
	start_all();
	loop(LOOPS);
	ASSERT_EQ(0, ioctl(branches, PERF_EVENT_IOC_DISABLE, 0));
	loop(LOOPS + 123);
	ASSERT_EQ(0, ioctl(branches, PERF_EVENT_IOC_ENABLE, 0));
	if (shares_counters()) {
		EXPECT_TRUE(is_rider_of(self->owner, branches))
			TH_LOG("%s", scheduled(self->owner));
		EXPECT_TRUE(is_rider_of(self->rider, branches))
			TH_LOG("%s", scheduled(self->rider));
	}
	loop(LOOPS);
	stop_all();
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->owner), read_value(self->rider));
	EXPECT_LT(1, look(page).samples);
	munmap(page, (1 + PAGES) * sysconf(_SC_PAGESIZE));
	close(branches);
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->owner), read_value(self->rider));
}

TEST_F(shared, period_changed)
{
	static const __u64 periods[] = { 50021, 307, 1ULL << 40, 100003, 1009 };
	unsigned int i;

	OPEN_SAMPLING(PERIOD);
	start_all();
	for (i = 0; i < 2 * ARRAY_SIZE(periods); i++) {
		__u64 period = periods[i % ARRAY_SIZE(periods)];

		ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_PERIOD, &period));
		loop(LOOPS);
	}
	stop_all();
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->owner), read_value(self->rider));
	EXPECT_LT(100, look(self->page).samples);
}

/* After some samples, the owner is disabled in the PMI. */
TEST_F(shared, refresh)
{
	const __u64 period = 10007;
	int round;
	__u64 count;

	OPEN_SAMPLING(period);
	start_all();
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_RESET, 0));
	look(self->page);
	for (round = 1; round <= 4; round++) {
		ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_REFRESH, 2));
		loop(LOOPS);
		count = read_value(self->owner);
		EXPECT_EQ(2, look(self->page).samples);
		loop(LOOPS);
		EXPECT_EQ(count, read_value(self->owner));
	}
	stop_all();
	EXPECT_WITNESSED();
	EXPECT_LT(8 * LOOPS, read_value(self->rider));
}

/* The perf core stops and restarts the owner, not the others on its counter. */
TEST_F(shared, throttled)
{
	struct seen seen;

	ASSERT_TRUE(write_line(CPU_PERCENT, "25"));
	ASSERT_TRUE(write_line(SAMPLE_RATE, "2500"));	/* 10 a tick at 250 Hz */
	OPEN_SAMPLING(PERIOD);
	owned_loop(400 * LOOPS);
	EXPECT_WITNESSED();
	seen = look(self->page);
	TH_LOG("throttled %u times, %u samples", seen.throttled, seen.samples);
	EXPECT_LT(0, seen.throttled);
	EXPECT_GT(read_value(self->rider), read_value(self->owner));
	/* Close the owner while it is throttled. */
	start_all();
	loop(20 * LOOPS);
	close_owner(_metadata, self);
	loop(LOOPS);
	stop_all();
	EXPECT_WITNESSED();
}

/* The tick changes the period. */
TEST_F(shared, frequency)
{
	struct perf_event_attr owner = sampling(self->config, 0);

	owner.freq = 1;
	owner.sample_freq = 2000;
	open_three(_metadata, self, variant, &owner);
	owned_loop(400 * LOOPS);
	EXPECT_WITNESSED();
	EXPECT_EQ(read_value(self->owner), read_value(self->rider));
	EXPECT_LT(10, look(self->page).samples);
}

TEST_F(shared, sampling_owner_closed)
{
	OPEN_SAMPLING(PERIOD);
	start_all();
	loop(LOOPS + 123);
	close_owner(_metadata, self);
	loop(LOOPS);
	stop_all();
	EXPECT_WITNESSED();
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
}

/* An event that samples arrives while others count, and leaves again, many times. */
TEST_F(shared, one_that_samples_arrives)
{
	struct perf_event_attr attr = sampling(self->config, 997);
	struct perf_event_mmap_page *page;
	unsigned int round;
	__u64 count;
	int fd;

	OPEN_COUNTING();
	start_all();
	for (round = 0; round < 10; round++) {
		loop(LOOPS / 7);
		fd = open_in(&attr, variant->owner_of_cpu);
		ASSERT_LE(0, fd);
		page = map_buffer(fd, 8);
		ASSERT_NE(MAP_FAILED, page);
		counted_loop(fd, 0, LOOPS);
		count = read_value(fd);
		EXPECT_TRUE(sampled(count, 997, look(page).samples));
		expect_loops(_metadata, variant, count, 1, LOOPS);
		munmap(page, 9 * sysconf(_SC_PAGESIZE));
		close(fd);
	}
	stop_all();
	EXPECT_WITNESSED();
}

TEST_F(shared, reset)
{
	__u64 before;

	OPEN_SAMPLING(PERIOD);
	start_all();
	loop(LOOPS);
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_RESET, 0));
	loop(LOOPS);
	stop_all();
	EXPECT_WITNESSED();
	EXPECT_LT(read_value(self->owner), read_value(self->rider));
	before = read_value(self->witness);
	ASSERT_EQ(0, ioctl(self->rider, PERF_EVENT_IOC_RESET, 0));
	EXPECT_EQ(0, read_value(self->rider));
	owned_loop(LOOPS);
	EXPECT_EQ(read_value(self->witness) - before, read_value(self->rider));
}

/* The counts of children are added to those of their parents. */
TEST_F(shared, children)
{
	struct perf_event_attr owner = sampling(self->config, PERIOD);
	int i, status;
	pid_t pid;

	owner.inherit = 1;
	open_three(_metadata, self, variant, &owner);
	start_all();
	for (i = 0; i < 5; i++) {
		loop(LOOPS);
		pid = fork_helper();
		ASSERT_LE(0, pid);
		if (!pid) {
			loop(LOOPS);
			_exit(0);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
	}
	stop_all();
	EXPECT_WITNESSED();
	EXPECT_LE(10 * LOOPS, read_value(self->rider));
}

TEST_F(shared, migration)
{
	const struct perf_event_attr attr = sampling(self->config, PERIOD);
	int move, other;

	if (!last_cpu())
		SKIP(return, "one CPU only");
	OPEN_SAMPLING(PERIOD);
	other = perf_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, other);
	start_all();
	for (move = 0; move < 20; move++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(move % 2 ? last_cpu() : 0, &set);
		ASSERT_EQ(0, sched_setaffinity(0, sizeof(set), &set));
		loop(LOOPS / 10);
	}
	stop_all();
	EXPECT_WITNESSED();
	/* The rider continues without the events that sample. */
	close(other);
	close_owner(_metadata, self);
	owned_loop(LOOPS);
	EXPECT_WITNESSED();
}

/* Tasks with equal events switch; in most variants, the CPU has an equal event, too. */
TEST_F(shared, switches)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, self->config);
	int i, status, to[2], fro[2];
	char byte = 0;
	pid_t pid;

	OPEN_SAMPLING(PERIOD);
	ASSERT_EQ(0, pipe(to));
	ASSERT_EQ(0, pipe(fro));
	pid = fork_helper();
	ASSERT_LE(0, pid);
	if (!pid) {
		attr.disabled = 0;
		if (perf_open_self(&attr, -1) < 0)
			_exit(1);
		while (read(to[0], &byte, 1) == 1 && byte != 'e') {
			loop(LOOPS / 10);
			if (write(fro[1], &byte, 1) != 1)
				_exit(2);
		}
		_exit(0);
	}
	start_all();
	for (i = 0; i < 100; i++) {
		loop(LOOPS / 10);
		ASSERT_EQ(1, write(to[1], &byte, 1));
		ASSERT_EQ(1, read(fro[0], &byte, 1));
	}
	stop_all();
	byte = 'e';
	ASSERT_EQ(1, write(to[1], &byte, 1));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	EXPECT_WITNESSED();
}

TEST_F(shared, enable_on_exec)
{
	struct perf_event_attr rider = counting_user(PERF_TYPE_RAW, self->config);
	struct perf_event_attr witness = leaving_out_guests(self->config);
	const struct perf_event_attr owner = sampling(self->config, 100003);
	int fd[2], status, go[2];
	char byte;
	pid_t pid;

	if (variant->rider_of_cpu)
		SKIP(return, "for tasks only");
	rider.enable_on_exec = 1;
	witness.enable_on_exec = 1;
	self->owner = open_in(&owner, variant->owner_of_cpu);
	ASSERT_LE(0, self->owner);
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, pipe(go));
	pid = fork_helper();
	ASSERT_LE(0, pid);
	if (!pid) {
		close(go[1]);
		if (read(go[0], &byte, 1) == 0)
			execl("./exact_loop", "exact_loop", NULL);
		_exit(127);
	}
	fd[0] = perf_open(&witness, pid, -1, -1, 0);
	fd[1] = perf_open(&rider, pid, -1, -1, 0);
	ASSERT_LE(0, fd[0]);
	ASSERT_LE(0, fd[1]);
	close(go[0]);
	close(go[1]);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	EXPECT_LT(0, read_value(fd[0]));
	EXPECT_EQ(read_value(fd[0]), read_value(fd[1]));
	if (variant->fixed)
		EXPECT_EQ(EXACT_LOOP_INSTRUCTIONS, read_value(fd[1]));
}

/*
 * The count that a program reads through the rider's page, or by read() if the
 * page has no index, is between those of read() before and after it. The page has
 * no index while the owner shares the counter; later, the owner is closed.
 */
TEST_F(shared, user_read)
{
	struct perf_event_mmap_page *page;
	__u64 before, got, after;
	__u32 index;
	int round;

	if (variant->rider_of_cpu && !on_rpmu())
		SKIP(return, "the built-in driver gives every reader an index");
	OPEN_SAMPLING(PERIOD);
	ASSERT_EQ(0, ioctl(self->owner, PERF_EVENT_IOC_ENABLE, 0));
	loop(LOOPS);
	page = mmap(NULL, sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, self->rider, 0);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, ioctl(self->rider, PERF_EVENT_IOC_ENABLE, 0));
	for (round = 0; round < 60; round++) {
		before = read_value(self->rider);
		got = read_page(page, &index);
		/* A shared counter may count more than the rider does. */
		EXPECT_FALSE(shares_counters() && round <= 30 && index);
		if (!page->cap_user_rdpmc || !index)
			got = read_value(self->rider);
		after = read_value(self->rider);
		EXPECT_LE(before, got);
		EXPECT_LE(got, after);
		loop(LOOPS / 20);
		if (round == 30)
			close_owner(_metadata, self);
		if (round % 10 == 9)
			usleep(2000);
	}
	ASSERT_EQ(0, ioctl(self->rider, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(read_value(self->rider), read_page(page, &index));
}

/* The tests that open their events themselves. */
FIXTURE(equal)
{
	char interval[32];
};

FIXTURE_SETUP(equal)
{
	ASSERT_TRUE(run_on(last_cpu()));
	ASSERT_TRUE(read_line(MUX_INTERVAL, self->interval, sizeof(self->interval)));
}

FIXTURE_TEARDOWN(equal)
{
	take_cpu(false);
	EXPECT_TRUE(write_line(MUX_INTERVAL, self->interval));
}

/* Few enough that each member and another event can have a counter. */
#define MEMBERS		3

/* Opens a group of equal events of this task, or of a CPU. */
static bool open_group(int *fd, struct perf_event_attr attr, int cpu)
{
	int i;

	attr.read_format = READ_GROUP;
	for (i = 0; i < MEMBERS; i++) {
		attr.disabled = !i;
		fd[i] = perf_open(&attr, cpu < 0 ? 0 : -1, cpu, i ? fd[0] : -1, 0);
		if (fd[i] < 0)
			return false;
	}
	return true;
}

static void expect_members_equal(struct __test_metadata *_metadata, int leader, __u64 *value)
{
	struct group_count count;
	int i;

	ASSERT_LT(0, read(leader, &count, sizeof(count)));
	ASSERT_EQ(MEMBERS, count.nr);
	for (i = 1; i < MEMBERS; i++)
		EXPECT_EQ(count.event[0].value, count.event[i].value);
	*value = count.event[0].value;
}

TEST_F(equal, group)
{
	int fd[MEMBERS], i;
	__u64 value;

	ASSERT_TRUE(open_group(fd, counting_user(PERF_TYPE_RAW, RAW_BRANCHES), -1));
	counted_loop(fd[0], 0, LOOPS);
	expect_members_equal(_metadata, fd[0], &value);
	EXPECT_GE(1, value - LOOPS);
	for (i = 0; i < MEMBERS; i++)
		EXPECT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0));
	owned_loop(LOOPS);
	expect_members_equal(_metadata, fd[0], &value);
}

/*
 * Counts the kernel's branches, too. This needs counters that start at the same
 * time, or one counter for all members.
 */
TEST_F(equal, group_with_the_kernel)
{
	int fd[MEMBERS];
	__u64 value;

	if (!counters_start_together() && !shares_counters())
		SKIP(return, "the counters start one after another");
	ASSERT_TRUE(open_group(fd, counting(PERF_TYPE_RAW, RAW_BRANCHES), -1));
	counted_syscalls(fd[0], 0, 1000, SYS_sched_yield, NULL);
	expect_members_equal(_metadata, fd[0], &value);
	EXPECT_LT(2000, value);
}

/* In user mode: while the group is read, nothing is counted. */
TEST_F(equal, group_read_while_it_counts)
{
	int fd[MEMBERS], round;
	__u64 value, last = 0;

	ASSERT_TRUE(open_group(fd, counting_user(PERF_TYPE_RAW, RAW_BRANCHES), -1));
	ASSERT_EQ(0, ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0));
	for (round = 0; round < 50; round++) {
		loop(LOOPS / 10);
		expect_members_equal(_metadata, fd[0], &value);
		EXPECT_LE(last + LOOPS / 10, value);
		last = value;
	}
}

/* Starts a task that runs on a CPU until it is killed. */
static pid_t start_busy(int cpu)
{
	pid_t pid = fork_helper();

	if (pid == 0) {
		if (!run_on(cpu))
			_exit(1);
		for (;;)
			loop(LOOPS);
	}
	return pid;
}

/* The perf core reads the group by IPI, while an equal event samples. */
TEST_F(equal, group_of_another_cpu)
{
	const struct perf_event_attr owner = sampling(RAW_BRANCHES, 100003);
	int fd[MEMBERS], sampler, cpu = last_cpu(), round;
	__u64 value, last = 0;
	pid_t pid;

	if (!cpu)
		SKIP(return, "one CPU only");
	pid = start_busy(cpu);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(run_on(0));
	ASSERT_TRUE(open_group(fd, counting_user(PERF_TYPE_RAW, RAW_BRANCHES), cpu));
	sampler = perf_open(&owner, -1, cpu, -1, 0);
	ASSERT_LE(0, sampler);
	ASSERT_EQ(0, ioctl(sampler, PERF_EVENT_IOC_ENABLE, 0));
	ASSERT_EQ(0, ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0));
	for (round = 0; round < 20; round++) {
		usleep(1000);
		expect_members_equal(_metadata, fd[0], &value);
		EXPECT_LT(last, value);
		last = value;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Mounts a hierarchy of control groups on a new directory, or fails with errno. */
static bool mount_hierarchy(char *top)
{
	int error;

	if (!mkdtemp(top))
		return false;
	if (!mount("none", top, "cgroup", 0, "perf_event"))
		return true;
	error = errno;
	rmdir(top);
	errno = error;
	return false;
}

/* Events of the CPU, of the task and of the task's control group. */
TEST_F(equal, every_context)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	char top[] = "/tmp/cgroup-XXXXXX", group[64], tasks[80];
	int i, dir, fd[4], cpu = last_cpu();

	if (!mount_hierarchy(top))
		SKIP(return, "no hierarchy of control groups: %s", strerror(errno));
	snprintf(group, sizeof(group), "%s/group", top);
	ASSERT_EQ(0, mkdir(group, 0700));
	dir = open(group, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, dir);
	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", group);
	ASSERT_TRUE(write_line(tasks, "0"));
	ASSERT_TRUE(take_cpu(true));
	fd[0] = perf_open(&attr, -1, cpu, -1, 0);
	fd[1] = perf_open(&attr, dir, cpu, -1, PERF_FLAG_PID_CGROUP);
	fd[2] = perf_open_self(&attr, -1);
	fd[3] = perf_open(&attr, 0, cpu, -1, 0);
	for (i = 0; i < 4; i++)
		ASSERT_LE(0, fd[i]);
	owned_loop(LOOPS);
	for (i = 0; i < 4; i++)
		EXPECT_EQ(OWNED_INSTRUCTIONS(LOOPS), read_value(fd[i])) TH_LOG("%d", i);
	close(fd[0]);
	owned_loop(LOOPS);
	for (i = 1; i < 4; i++)
		EXPECT_EQ(2 * OWNED_INSTRUCTIONS(LOOPS), read_value(fd[i])) TH_LOG("%d", i);
	for (i = 1; i < 4; i++)
		close(fd[i]);
	close(dir);
	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", top);
	EXPECT_TRUE(write_line(tasks, "0"));
	EXPECT_EQ(0, rmdir(group));
	EXPECT_EQ(0, umount(top));
	EXPECT_EQ(0, rmdir(top));
}

/* Tasks of two control groups alternate: each group's event counts only its own task. */
TEST_F(equal, control_groups_that_switch)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	char top[] = "/tmp/cgroup-XXXXXX", group[2][64], tasks[80];
	int i, dir, fd[2], task[2], of_cpu, cpu = last_cpu();
	pid_t pid[2];
	__u64 sum = 0;
	int status;

	if (!mount_hierarchy(top))
		SKIP(return, "no hierarchy of control groups: %s", strerror(errno));
	of_cpu = perf_open(&attr, -1, cpu, -1, 0);
	ASSERT_LE(0, of_cpu);
	for (i = 0; i < 2; i++) {
		snprintf(group[i], sizeof(group[i]), "%s/%d", top, i);
		ASSERT_EQ(0, mkdir(group[i], 0700));
		dir = open(group[i], O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, dir);
		fd[i] = perf_open(&attr, dir, cpu, -1, PERF_FLAG_PID_CGROUP);
		ASSERT_LE(0, fd[i]);
		close(dir);
		snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", group[i]);
		pid[i] = fork_helper();
		ASSERT_LE(0, pid[i]);
		if (!pid[i]) {
			if (!write_line(tasks, "0"))
				_exit(1);
			raise(SIGSTOP);
			for (i = 0; i < 500; i++) {
				loop(LOOPS / 100);
				sched_yield();
			}
			_exit(0);
		}
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, WUNTRACED));
		ASSERT_TRUE(WIFSTOPPED(status));
		task[i] = perf_open(&attr, pid[i], -1, -1, 0);
		ASSERT_LE(0, task[i]);
	}
	start_all();
	for (i = 0; i < 2; i++)
		kill(pid[i], SIGCONT);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(pid[i], waitpid(pid[i], &status, 0));
		EXPECT_EQ(0, status);
	}
	stop_all();
	for (i = 0; i < 2; i++) {
		EXPECT_LE(10 * LOOPS, read_value(task[i]));
		EXPECT_EQ(read_value(task[i]), read_value(fd[i]));
		sum += read_value(task[i]);
		close(task[i]);
		close(fd[i]);
		EXPECT_EQ(0, rmdir(group[i]));
	}
	EXPECT_LE(sum, read_value(of_cpu));
	EXPECT_EQ(0, umount(top));
	EXPECT_EQ(0, rmdir(top));
}

/*
 * While the owner is throttled, a control group's event gets its counter: from then
 * on, the owner's page does not refer to it.
 */
TEST_F(equal, page_of_throttled_owner)
{
	struct perf_event_attr attr = sampling(RAW_BRANCHES, PERIOD);
	char top[] = "/tmp/cgroup-XXXXXX", group[64], in[80], out[80];
	struct perf_event_mmap_page *page;
	struct sample_limits limits;
	unsigned int round, read = 0;
	__u32 index;
	int dir, owner, rider;

	if (!on_rpmu())
		SKIP(return, "the built-in driver does not update the page of a stopped event");
	if (!mount_hierarchy(top))
		SKIP(return, "no hierarchy of control groups: %s", strerror(errno));
	snprintf(group, sizeof(group), "%s/0", top);
	ASSERT_EQ(0, mkdir(group, 0700));
	snprintf(in, sizeof(in), "%s/cgroup.procs", group);
	snprintf(out, sizeof(out), "%s/cgroup.procs", top);
	ASSERT_TRUE(lift_sample_limits(&limits));
	ASSERT_TRUE(write_line(CPU_PERCENT, "25"));
	ASSERT_TRUE(write_line(SAMPLE_RATE, "2500"));	/* 10 a tick at 250 Hz */
	owner = perf_open_self(&attr, -1);
	ASSERT_LE(0, owner);
	page = map_buffer(owner, PAGES);
	ASSERT_NE(MAP_FAILED, page);
	attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	dir = open(group, O_RDONLY | O_CLOEXEC);
	rider = perf_open(&attr, dir, last_cpu(), -1, PERF_FLAG_PID_CGROUP);
	ASSERT_LE(0, rider);
	close(dir);
	start_all();
	for (round = 0; round < 100; round++) {
		__u64 before, got;

		loop(LOOPS);
		ASSERT_TRUE(write_line(round % 2 ? out : in, "0"));
		loop(LOOPS / 10);
		before = read_value(owner);
		got = read_page(page, &index);
		if (!page->cap_user_rdpmc || !index)
			continue;
		read++;
		EXPECT_LE(before, got);
		EXPECT_LE(got, read_value(owner));
	}
	stop_all();
	TH_LOG("%u reads by RDPMC", read);
	EXPECT_LT(0, look(page).throttled);
	EXPECT_LT(0, read_value(rider));
	EXPECT_TRUE(write_line(out, "0"));
	close(rider);
	EXPECT_TRUE(put_back_sample_limits(&limits));
	EXPECT_EQ(0, rmdir(group));
	EXPECT_EQ(0, umount(top));
	EXPECT_EQ(0, rmdir(top));
}

/* Opens different events that rotate: more than there are counters. */
static void open_rotating(struct __test_metadata *_metadata)
{
	struct perf_event_attr attr;
	unsigned int i;

	for (i = 0; i < DIFFERENT_EVENTS; i++) {
		attr = different_event(i);
		ASSERT_LE(0, perf_open_self(&attr, -1));
	}
}

/*
 * A pinned event counts all the time while an equal event, which is not pinned,
 * rotates with others.
 */
TEST_F(equal, pinned_beside_flexible)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_attr other = leaving_out_guests(RAW_BRANCHES);
	struct one_count count;
	int pinned, witness;

	ASSERT_TRUE(write_line(MUX_INTERVAL, "1"));
	open_rotating(_metadata);
	attr.pinned = 1;
	other.pinned = 1;
	pinned = perf_open_self(&attr, -1);
	witness = perf_open_self(&other, -1);
	ASSERT_LE(0, pinned);
	ASSERT_LE(0, witness);
	owned_loop(1000 * LOOPS);
	ASSERT_TRUE(read_one(pinned, &count));
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_EQ(read_value(witness), count.value);
	EXPECT_GE(1, count.value - 1000 * LOOPS);
}

/* An event that is exclusive (attr.exclusive) counts exactly, and alone. */
TEST_F(equal, exclusive)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct one_count count;
	int alone, other;

	attr.exclusive = 1;
	attr.pinned = 1;
	alone = perf_open_self(&attr, -1);
	attr.exclusive = 0;
	attr.pinned = 0;
	other = perf_open_self(&attr, -1);
	ASSERT_LE(0, alone);
	ASSERT_LE(0, other);
	owned_loop(LOOPS);
	EXPECT_GE(1, read_value(alone) - LOOPS);
	ASSERT_TRUE(read_one(other, &count));
	EXPECT_EQ(0, count.running);
	EXPECT_EQ(0, count.value);
	close(alone);
	owned_loop(LOOPS);
	EXPECT_GE(1, read_value(other) - LOOPS);
}

/* Returns the percentage of its enabled time in which the event has counted, or -1. */
static double share_of(int fd)
{
	struct one_count count;

	return read_one(fd, &count) && count.enabled ? percent_running(&count) : -1.0;
}

#define AGENTS		3
#define MOST_EVENTS	6

/* The events of several programs that all count the same on this CPU. */
struct agents {
	int fd[AGENTS][MOST_EVENTS];
	int nr;
};

static void open_agents(struct __test_metadata *_metadata, struct agents *agents, int nr)
{
	struct perf_event_attr attr;
	int agent, i;

	agents->nr = nr;
	for (agent = 0; agent < AGENTS; agent++) {
		for (i = 0; i < nr; i++) {
			attr = different_event(i);
			agents->fd[agent][i] = perf_open(&attr, -1, last_cpu(), -1, 0);
			ASSERT_LE(0, agents->fd[agent][i]);
		}
	}
}

/*
 * Three programs count the same six events. The scaled counts are right. With
 * shared counters, each event's share is as if there were one program.
 */
TEST_F(equal, agents)
{
	const double alone = gp_counters() >= MOST_EVENTS ? 100.0 :
						100.0 * gp_counters() / MOST_EVENTS;
	const unsigned long passes = 4000;
	struct agents agents;
	double share, scaled;
	__u64 end;
	unsigned long done = 0;
	struct one_count count;
	int agent, i;

	if (cpu_model() == MODEL_BROADWELL)
		SKIP(return, "some counters cannot count user mode only");
	ASSERT_TRUE(write_line(MUX_INTERVAL, "2"));
	open_agents(_metadata, &agents, MOST_EVENTS);
	start_all();
	end = now_ns() + 600000000;
	do {
		branch_loop(passes);
		done += passes;
	} while (now_ns() < end);
	stop_all();
	for (agent = 0; agent < AGENTS; agent++) {
		for (i = 0; i < MOST_EVENTS; i++) {
			share = share_of(agents.fd[agent][i]);
			ASSERT_TRUE(read_one(agents.fd[agent][i], &count));
			ASSERT_LT(0, count.running);
			scaled = (double)count.value * count.enabled / count.running;
			TH_LOG("agent %d, event %d: %.1f %%, %.2f each pass", agent, i, share,
			       scaled / done);
			if (shares_counters()) {
				EXPECT_LE(alone - 3.0, share);
				EXPECT_GE(alone + 3.0, share);
			}
			if (!different_per_pass(i))
				continue;
			EXPECT_LT(0.9 * different_per_pass(i) * done, scaled);
			EXPECT_GT(1.1 * different_per_pass(i) * done, scaled);
		}
	}
}

/* Every CPU model has a counter for each of four of these events. */
TEST_F(equal, four_events_of_agents)
{
	struct one_count count, first;
	struct agents agents;
	int agent, i;

	if (!shares_counters())
		SKIP(return, "equal events do not share counters");
	open_agents(_metadata, &agents, 4);
	ASSERT_TRUE(take_cpu(true));
	start_all();
	branch_loop(LOOPS);
	stop_all();
	for (i = 0; i < 4; i++) {
		for (agent = 0; agent < AGENTS; agent++) {
			ASSERT_TRUE(read_one(agents.fd[agent][i], &count));
			EXPECT_EQ(count.enabled, count.running);
			EXPECT_LE(LOOPS, count.value);
			if (!agent)
				first = count;
			EXPECT_EQ(first.value, count.value);
		}
	}
}

/*
 * Pinned events of different kinds have all counters. An event that is equal to
 * one of them needs no further counter, whether it is pinned or not, and was
 * opened before them or after them. An event that differs only in exclude_guest
 * needs one, and never counts.
 */
TEST_F(equal, no_counter_is_left)
{
	struct perf_event_attr attr = different_event(0);
	unsigned int i, nr = gp_counters();
	struct one_count count;
	int early, late, pinned, other, first = -1;

	if (!shares_counters())
		SKIP(return, "equal events do not share counters");
	ASSERT_GE(DIFFERENT_EVENTS, nr);
	early = perf_open_self(&attr, -1);
	ASSERT_LE(0, early);
	for (i = 0; i < nr; i++) {
		attr = different_event(i);
		attr.pinned = 1;
		pinned = perf_open(&attr, -1, last_cpu(), -1, 0);
		ASSERT_LE(0, pinned);
		if (!i)
			first = pinned;
	}
	/* @other waits for ever. @late is behind it in the list, and must not wait. */
	attr = different_event(0);
	attr.exclude_guest = 1;
	other = perf_open_self(&attr, -1);
	ASSERT_LE(0, other);
	attr.exclude_guest = 0;
	late = perf_open_self(&attr, -1);
	ASSERT_LE(0, late);
	attr.pinned = 1;
	pinned = perf_open_self(&attr, -1);
	ASSERT_LE(0, pinned);
	ASSERT_TRUE(take_cpu(true));
	owned_loop(LOOPS);
	ASSERT_TRUE(read_one(pinned, &count)) TH_LOG("in the error state");
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_GE(1, count.value - LOOPS);
	EXPECT_EQ(count.value, read_value(first));
	ASSERT_TRUE(read_one(early, &count));
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_GE(1, count.value - LOOPS);
	ASSERT_TRUE(read_one(late, &count));
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_GE(1, count.value - LOOPS);
	ASSERT_TRUE(read_one(other, &count));
	EXPECT_EQ(0, count.running);
	EXPECT_EQ(0, count.value);
	/* The equal events keep the counter when the pinned event of the CPU is closed. */
	close(first);
	owned_loop(LOOPS);
	ASSERT_TRUE(read_one(pinned, &count)) TH_LOG("in the error state");
	EXPECT_EQ(count.enabled, count.running);
	EXPECT_GE(2, count.value - 2 * LOOPS);
	EXPECT_EQ(count.value, read_value(early));
	EXPECT_EQ(count.value, read_value(late));
}

/*
 * Pinned events have all counters. A sampled event that is equal to a sampled one of
 * them waits, alone or in a group whose leader rides; the line of the event or the
 * leader says why it does not share the counter, and names riders with its holder.
 */
TEST_F(equal, would_share)
{
	struct perf_event_attr attr;
	unsigned int i, nr = gp_counters();
	int pinned, alone, rider, leader, member, first = -1;
	const char *line;
	char expected[96];

	if (!shares_counters())
		SKIP(return, "equal events do not share counters");
	for (i = 0; i < nr; i++) {
		attr = different_event(i);
		attr.pinned = 1;
		attr.sample_period = i ? 0 : 100003;
		pinned = perf_open(&attr, -1, last_cpu(), -1, 0);
		ASSERT_LE(0, pinned);
		if (!i)
			first = pinned;
	}
	attr = different_event(0);
	rider = perf_open_self(&attr, -1);
	ASSERT_LE(0, rider);
	attr.sample_period = 100003;
	alone = perf_open_self(&attr, -1);
	ASSERT_LE(0, alone);
	attr.sample_period = 0;
	leader = perf_open_self(&attr, -1);
	ASSERT_LE(0, leader);
	attr.sample_period = 100003;
	attr.disabled = 0;
	member = perf_open_self(&attr, leader);
	ASSERT_LE(0, member);
	start_all();
	loop(LOOPS);

	line = scheduled(alone);
	EXPECT_EQ(0, strncmp(line, "waits ", 6)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "; would share PMC")) TH_LOG("%s", line);
	snprintf(expected, sizeof(expected), " with id=%llu, but both are sampled", id_of(first));
	EXPECT_NE(NULL, strstr(line, expected)) TH_LOG("%s", line);
	snprintf(expected, sizeof(expected), ": id=%llu with riders id=%llu", id_of(first),
		 id_of(rider));
	EXPECT_NE(NULL, strstr(line, expected)) TH_LOG("%s", line);

	line = scheduled(leader);
	EXPECT_EQ(0, strncmp(line, "waits ", 6)) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, " members=2 ")) TH_LOG("%s", line);
	EXPECT_NE(NULL, strstr(line, "; would share PMC")) TH_LOG("%s", line);
	stop_all();
}

/*
 * An event has its counter since the event whose counter it was has left, as rpmu
 * lists it.
 */
TEST_F(equal, counter_of_another)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	const __u64 begin = now_ns();
	const char *age;
	int first, second;

	if (!shares_counters())
		SKIP(return, "equal events do not share counters");
	attr.disabled = 0;
	first = perf_open(&attr, -1, last_cpu(), -1, 0);
	second = perf_open(&attr, -1, last_cpu(), -1, 0);
	ASSERT_LE(0, first);
	ASSERT_LE(0, second);
	EXPECT_TRUE(is_rider_of(second, first)) TH_LOG("%s", scheduled(second));
	close(first);
	age = strstr(scheduled(second), " for_ms=");
	ASSERT_NE(NULL, age) TH_LOG("%s", scheduled(second));
	/* Allow for the length of a tick. */
	EXPECT_GE((now_ns() - begin) / 1000000 + 20, strtoull(age + 8, NULL, 10));
	close(second);
}

/* A group that gets no counters is listed with all its members, also those that need none. */
TEST_F(equal, group_without_counters)
{
	const unsigned int nr = gp_counters();
	struct perf_event_attr attr;
	int pinned[DIFFERENT_EVENTS], leader, member, last;
	unsigned int i;

	if (!shares_counters())
		SKIP(return, "equal events do not share counters");
	ASSERT_TRUE(forbid_rotation());
	ASSERT_GE(DIFFERENT_EVENTS, nr);
	for (i = 0; i < nr; i++) {
		attr = different_event(i);
		attr.disabled = 0;
		attr.pinned = 1;
		pinned[i] = perf_open(&attr, -1, last_cpu(), -1, 0);
		ASSERT_LE(0, pinned[i]);
	}
	/* The leader is disabled until the group is complete. */
	attr = different_event(0);
	leader = perf_open(&attr, -1, last_cpu(), -1, 0);
	ASSERT_LE(0, leader);
	attr = different_event(1);
	attr.disabled = 0;
	member = perf_open(&attr, -1, last_cpu(), leader, 0);
	ASSERT_LE(0, member);
	attr.exclude_guest = 1;
	last = perf_open(&attr, -1, last_cpu(), leader, 0);
	ASSERT_LE(0, last);
	ASSERT_EQ(0, ioctl(leader, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(0, strncmp(scheduled(leader), "waits ", 6)) TH_LOG("%s", scheduled(leader));
	EXPECT_NE(NULL, strstr(scheduled(leader), " members=3 ")) TH_LOG("%s", scheduled(leader));
	close(last);
	close(member);
	close(leader);
	for (i = 0; i < nr; i++)
		close(pinned[i]);
	EXPECT_TRUE(allow_rotation(self->interval));
}

#define MOST_ON_A_CPU	128

/* A CPU has no more events than this; the schedule says so of the next one. */
TEST_F(equal, too_many)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, fd[MOST_ON_A_CPU + 1];

	if (!shares_counters())
		SKIP(return, "equal events do not share counters");
	ASSERT_TRUE(forbid_rotation());
	attr.disabled = 0;
	for (i = 0; i <= MOST_ON_A_CPU; i++) {
		fd[i] = perf_open(&attr, -1, last_cpu(), -1, 0);
		ASSERT_LE(0, fd[i]);
	}
	EXPECT_NE(NULL, strstr(scheduled(fd[MOST_ON_A_CPU]), "there are 128 events on this CPU"))
		TH_LOG("%s", scheduled(fd[MOST_ON_A_CPU]));
	for (i = 0; i <= MOST_ON_A_CPU; i++)
		close(fd[i]);
	EXPECT_TRUE(allow_rotation(self->interval));
}

/* Opens two more equal events than there are counters, and returns how many count all the time. */
static int count_unhindered(struct __test_metadata *_metadata, __u64 period)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int i, unhindered = 0, nr = gp_counters() + 2, fd[34];
	struct one_count count;

	EXPECT_GE(34, nr);
	attr.sample_period = period;
	for (i = 0; i < nr; i++) {
		fd[i] = perf_open_self(&attr, -1);
		EXPECT_LE(0, fd[i]);
	}
	owned_loop(LOOPS);
	for (i = 0; i < nr; i++) {
		EXPECT_TRUE(read_one(fd[i], &count));
		EXPECT_LT(0, count.enabled);
		if (count.enabled == count.running) {
			unhindered++;
			EXPECT_GE(1, count.value - LOOPS);
		}
		close(fd[i]);
	}
	return unhindered;
}

/* Sampled events have a counter each. */
TEST_F(equal, too_many_that_sample)
{
	ASSERT_TRUE(forbid_rotation());
	EXPECT_EQ(gp_counters(), count_unhindered(_metadata, 1 << 30));
	EXPECT_TRUE(allow_rotation(self->interval));
}

/* As long as there are events, the parameter cannot be changed. */
TEST_F(equal, parameter)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	char share[8];
	int fd, tries;

	if (!on_rpmu())
		SKIP(return, "the built-in driver has no parameters");
	ASSERT_TRUE(read_line(SHARE, share, sizeof(share)));
	EXPECT_STREQ("Y", share);
	EXPECT_EQ(gp_counters() + 2, count_unhindered(_metadata, 0));
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	EXPECT_FALSE(write_line(SHARE, "0"));
	EXPECT_EQ(EBUSY, errno);
	EXPECT_TRUE(shares_counters());
	close(fd);
	/* The last event may still be on its way out. */
	for (tries = 0; !write_line(SHARE, "0") && tries < 100; tries++)
		usleep(10000);
	EXPECT_FALSE(shares_counters());
	ASSERT_TRUE(forbid_rotation());
	EXPECT_EQ(gp_counters(), count_unhindered(_metadata, 0));
	EXPECT_TRUE(allow_rotation(self->interval));
	for (tries = 0; !write_line(SHARE, "1") && tries < 100; tries++)
		usleep(10000);
	EXPECT_TRUE(shares_counters());
}

/* One read gives the counts of all members: they include the same instructions of the kernel. */
TEST_F(equal, kernel_read_at_once)
{
	int fd[MEMBERS], round;
	__u64 value, last = 0;

	if (!shares_counters())
		SKIP(return, "each event has a counter, which is read after others");
	ASSERT_TRUE(open_group(fd, counting(PERF_TYPE_RAW, RAW_BRANCHES), -1));
	ASSERT_EQ(0, ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0));
	for (round = 0; round < 50; round++) {
		expect_members_equal(_metadata, fd[0], &value);
		EXPECT_LT(last, value);
		last = value;
	}
}

/* Also if an overflow comes between the readings of two members. */
TEST_F(equal, kernel_read_at_once_beside_overflows)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, RAW_BRANCHES);
	struct sample_limits limits;
	int fd[MEMBERS], i, round;
	__u64 value, last = 0;

	if (!shares_counters())
		SKIP(return, "each event has a counter, which is read after others");
	ASSERT_TRUE(lift_sample_limits(&limits));
	attr.read_format = READ_GROUP;
	for (i = 0; i < MEMBERS; i++) {
		attr.disabled = !i;
		attr.sample_period = i ? 0 : 211;
		fd[i] = perf_open_self(&attr, i ? fd[0] : -1);
		ASSERT_LE(0, fd[i]);
	}
	ASSERT_EQ(0, ioctl(fd[0], PERF_EVENT_IOC_ENABLE, 0));
	for (round = 0; round < 300; round++) {
		expect_members_equal(_metadata, fd[0], &value);
		EXPECT_LT(last, value);
		last = value;
	}
	ASSERT_EQ(0, ioctl(fd[0], PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_TRUE(put_back_sample_limits(&limits));
}

#define TRACING		"/sys/kernel/tracing/instances/rpmu_shared"
#define SWITCHES	100
#define MANY_CGROUPS	1000

/* The event selects, the fixed counters' control register, and the counters. */
static const struct {
	unsigned int first, last;
} intel_registers[] = {
	{ 0xc1, 0xc8 }, { 0x186, 0x18d }, { 0x309, 0x30b }, { 0x38d, 0x38d }, { 0x4c1, 0x4c8 },
}, amd_registers[] = {
	{ 0xc0010000, 0xc0010007 }, { 0xc0010200, 0xc001020b },
};

/* Starts to record the writes of these registers. */
static bool trace_writes(void)
{
	unsigned int i, nr = is_amd() ? ARRAY_SIZE(amd_registers) : ARRAY_SIZE(intel_registers);
	char filter[512];
	int at = 0;

	for (i = 0; i < nr; i++)
		at += snprintf(filter + at, sizeof(filter) - at,
			       "%s(msr >= %#x && msr <= %#x)", i ? " || " : "",
			       is_amd() ? amd_registers[i].first : intel_registers[i].first,
			       is_amd() ? amd_registers[i].last : intel_registers[i].last);
	return write_line(TRACING "/events/msr/write_msr/filter", filter) &&
	       write_line(TRACING "/trace", "") &&
	       write_line(TRACING "/events/msr/write_msr/enable", "1");
}

/* Stops recording. Returns the number of writes since trace_writes(), and logs the first. */
static int traced_writes(struct __test_metadata *_metadata)
{
	static char text[1 << 18];
	char *at, *line = NULL;
	int writes = 0;

	EXPECT_TRUE(write_line(TRACING "/events/msr/write_msr/enable", "0"));
	EXPECT_TRUE(read_file(TRACING "/trace", text, sizeof(text)));
	for (at = text; (at = strstr(at, "write_msr:")); at++) {
		line = line ?: at;
		writes++;
	}
	TH_LOG("%d writes in %d switches%s%.*s", writes, 2 * SWITCHES, line ? ", first " : "",
	       line ? (int)strcspn(line, "\n") : 0, line ?: "");
	return writes;
}

FIXTURE(at_a_switch)
{
	int to[2], fro[2];
	pid_t pid;
	bool is_there;
};

FIXTURE_SETUP(at_a_switch)
{
	self->pid = -1;
	if (access("/sys/kernel/tracing/events/msr", F_OK))
		SKIP(return, "this kernel does not trace MSRs");
	ASSERT_EQ(0, mkdir(TRACING, 0700)) TH_LOG("%s: %m", TRACING);
	self->is_there = true;
	ASSERT_EQ(0, pipe(self->to));
	ASSERT_EQ(0, pipe(self->fro));
	ASSERT_TRUE(run_on(last_cpu()));
	/* Switch between this task and its child only. */
	ASSERT_TRUE(take_cpu(true));
}

FIXTURE_TEARDOWN(at_a_switch)
{
	if (self->pid > 0) {
		kill(self->pid, SIGKILL);
		waitpid(self->pid, NULL, 0);
	}
	take_cpu(false);
	if (self->is_there)
		EXPECT_EQ(0, rmdir(TRACING)) TH_LOG("%m");
}

/* Starts a child. Moves it to the control group with the file @tasks, unless that is NULL. */
static void start_partner(struct __test_metadata *_metadata,
			  struct _test_data_at_a_switch *self, const char *tasks)
{
	char byte = 0;

	self->pid = fork_helper();
	ASSERT_LE(0, self->pid);
	if (self->pid)
		return;
	if (tasks && !write_line(tasks, "0"))
		_exit(1);
	while (read(self->to[0], &byte, 1) == 1 && write(self->fro[1], &byte, 1) == 1)
		loop(1000);
	_exit(2);
}

static void switch_to_partner(struct __test_metadata *_metadata,
			      struct _test_data_at_a_switch *self, int times)
{
	char byte = 0;

	while (times--) {
		ASSERT_EQ(1, write(self->to[1], &byte, 1));
		ASSERT_EQ(1, read(self->fro[0], &byte, 1));
		loop(1000);
	}
}

/*
 * Checks that switches between equal events write no register if the events share
 * counters, and write some if they do not. Where each counter has its own bit to
 * start it, a switch stops the shared counters and starts them again, so any
 * number of writes is right.
 */
static void expect_no_writes(struct __test_metadata *_metadata, int writes)
{
	if (!shares_counters()) {
		EXPECT_LT(0, writes);
		return;
	}
	if (counters_start_together())
		EXPECT_EQ(0, writes);
}

/* A task's events that are equal to events of the CPU. */
TEST_F(at_a_switch, task)
{
	struct perf_event_attr attr;
	__u64 before[2];
	int i, fd[2];

	start_partner(_metadata, self, NULL);
	for (i = 0; i < 2; i++) {
		attr = i ? counting(PERF_TYPE_RAW, RAW_INSTRUCTIONS) : different_event(0);
		attr.disabled = 0;
		ASSERT_LE(0, perf_open(&attr, -1, last_cpu(), -1, 0));
		fd[i] = perf_open(&attr, self->pid, -1, -1, 0);
		ASSERT_LE(0, fd[i]);
	}
	switch_to_partner(_metadata, self, 3);
	for (i = 0; i < 2; i++)
		before[i] = read_value(fd[i]);
	ASSERT_TRUE(trace_writes());
	switch_to_partner(_metadata, self, SWITCHES);
	expect_no_writes(_metadata, traced_writes(_metadata));
	for (i = 0; i < 2; i++)
		EXPECT_LE(before[i] + SWITCHES * 1000, read_value(fd[i]));
}

/* One event in each of a thousand control groups, two of which alternate on the CPU. */
TEST_F(at_a_switch, control_groups)
{
	const struct rlimit files = { 4 * MANY_CGROUPS, 4 * MANY_CGROUPS };
	char top[] = "/tmp/cgroup-XXXXXX", path[64], tasks[96];
	struct perf_event_attr attr = different_event(0);
	static int fd[MANY_CGROUPS];
	__u64 before[2];
	int i, dir, writes;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	if (!mount_hierarchy(top))
		SKIP(return, "no hierarchy of control groups: %s", strerror(errno));
	attr.disabled = 0;
	for (i = 0; i < MANY_CGROUPS; i++) {
		snprintf(path, sizeof(path), "%s/%d", top, i);
		ASSERT_EQ(0, mkdir(path, 0700));
		dir = open(path, O_RDONLY | O_CLOEXEC);
		ASSERT_LE(0, dir);
		fd[i] = perf_open(&attr, dir, last_cpu(), -1, PERF_FLAG_PID_CGROUP);
		ASSERT_LE(0, fd[i]);
		close(dir);
	}
	snprintf(tasks, sizeof(tasks), "%s/1/cgroup.procs", top);
	start_partner(_metadata, self, tasks);
	snprintf(tasks, sizeof(tasks), "%s/0/cgroup.procs", top);
	ASSERT_TRUE(write_line(tasks, "0"));
	switch_to_partner(_metadata, self, 3);
	for (i = 0; i < 2; i++)
		before[i] = read_value(fd[i]);
	ASSERT_TRUE(trace_writes());
	switch_to_partner(_metadata, self, SWITCHES);
	writes = traced_writes(_metadata);
	/*
	 * With PerfMonV2, functions of the built-in driver that BPF and KVM call
	 * start all counters, also stopped ones. Each switch therefore writes the
	 * counter's value again.
	 */
	if (shares_counters() && is_amd() && counters_start_together() && writes <= 2 * SWITCHES)
		writes = 0;
	expect_no_writes(_metadata, writes);
	for (i = 0; i < 2; i++)
		EXPECT_LE(before[i] + SWITCHES * 1000, read_value(fd[i]));
	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", top);
	EXPECT_TRUE(write_line(tasks, "0"));
	kill(self->pid, SIGKILL);
	waitpid(self->pid, NULL, 0);
	self->pid = -1;
	for (i = 0; i < MANY_CGROUPS; i++) {
		close(fd[i]);
		snprintf(path, sizeof(path), "%s/%d", top, i);
		EXPECT_EQ(0, rmdir(path));
	}
	EXPECT_EQ(0, umount(top));
	EXPECT_EQ(0, rmdir(top));
}

/*
 * A control group's only event is pinned, and gets no counter as the CPU switches to
 * this control group: pinned events of the CPU have them all, or an exclusive event
 * of the task has the PMU. Without help, the perf core does not enable the PMU
 * afterwards, and no event counts on this CPU any more (perf_cgroup_switch(),
 * kernel/events/core.c).
 */
static void pinned_without_a_counter(struct __test_metadata *_metadata, bool exclusive)
{
	char top[] = "/tmp/cgroup-XXXXXX", path[64], tasks[96];
	int i, dir, fd[DIFFERENT_EVENTS], nr = exclusive ? 1 : gp_counters();
	struct perf_event_attr attr;
	__u64 count;

	if (!on_rpmu())
		SKIP(return, "with the built-in driver, the PMU stays disabled");
	ASSERT_GT(DIFFERENT_EVENTS, nr);
	if (!mount_hierarchy(top))
		SKIP(return, "no hierarchy of control groups: %s", strerror(errno));
	snprintf(path, sizeof(path), "%s/group", top);
	ASSERT_EQ(0, mkdir(path, 0700));
	dir = open(path, O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, dir);
	for (i = 0; i <= nr; i++) {
		attr = different_event(i);
		attr.disabled = 0;
		attr.exclusive = exclusive && i < nr;
		attr.pinned = !attr.exclusive;
		if (i == nr)
			fd[i] = perf_open(&attr, dir, last_cpu(), -1, PERF_FLAG_PID_CGROUP);
		else if (exclusive)
			fd[i] = perf_open_self(&attr, -1);
		else
			fd[i] = perf_open(&attr, -1, last_cpu(), -1, 0);
		ASSERT_LE(0, fd[i]);
	}
	close(dir);
	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", path);
	ASSERT_TRUE(write_line(tasks, "0"));
	for (i = 0; i <= nr; i++)
		close(fd[i]);
	EXPECT_TRUE(counts_exactly(LOOPS, &count)) TH_LOG("%llu instructions", count);
	snprintf(tasks, sizeof(tasks), "%s/cgroup.procs", top);
	EXPECT_TRUE(write_line(tasks, "0"));
	EXPECT_EQ(0, rmdir(path));
	EXPECT_EQ(0, umount(top));
	EXPECT_EQ(0, rmdir(top));
}

TEST_F(equal, pinned_beside_pinned)
{
	pinned_without_a_counter(_metadata, false);
}

TEST_F(equal, pinned_beside_exclusive)
{
	pinned_without_a_counter(_metadata, true);
}

TEST_HARNESS_MAIN
