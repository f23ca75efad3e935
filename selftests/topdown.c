// SPDX-License-Identifier: GPL-2.0
/*
 * Tests topdown metrics, which are shares of the slots. A group led by slots reads
 * them from PERF_METRICS. On the emulated PMU, the slots of an instruction and their
 * shares are declared (selftests/vpmu/README.md), so both are known for a known
 * loop: slots exactly, shares to 1/255, the register's resolution.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define SLOTS		0x0400
#define RETIRING	0x8000
#define MAX_METRICS	8
#define MAX_EVENTS	(1 + MAX_METRICS)
#define LEVEL_1		4
/* RDPMC's number of PERF_METRICS. */
#define METRICS		0x20000000U

#define PASSES		200000UL
#define TURNS		1000

/* The metrics of a pass of plain_loop() and of load_loop(), in 1/PASS of its slots. */
static const unsigned int plain_pass[MAX_METRICS] = { 16, 4, 6, 6, 2, 2, 4, 2 };
static const unsigned int load_pass[MAX_METRICS] = { 12, 4, 6, 10, 2, 2, 4, 6 };
#define PASS		32

/* Returns the number of metrics of this CPU, 0 if it has none. */
static int nr_metrics(void)
{
	switch (cpu_model()) {
	case MODEL_ICE_LAKE:
		return 4;
	case MODEL_GOLDEN_COVE:
	case MODEL_REDWOOD_COVE:
		return 8;
	default:
		return 0;
	}
}

/* Returns twice the slots of this many instructions. */
static __u64 twice_slots(__u64 instructions)
{
	return instructions * (cpu_model() == MODEL_ICE_LAKE ? 15 : 18);
}

static void plain_loop(unsigned long n)
{
	asm volatile("1:\n\t"
		     "dec %[n]\n\t"
		     "jnz 1b"
		     : [n] "+r" (n) : : "cc");
}

static void load_loop(unsigned long n)
{
	asm volatile("1:\n\t"
		     "decq %[n]\n\t"
		     "jnz 1b"
		     : [n] "+m" (n) : : "cc");
}

/* A group of slots and all metrics. */
struct group {
	int fd[MAX_EVENTS];
	int nr;
};

/* Changes the attributes of an event before it is opened. */
typedef void (*change)(struct perf_event_attr *attr, int nr);

static bool open_group_of(pid_t pid, struct group *group, change change)
{
	struct perf_event_attr attr;

	for (group->nr = 0; group->nr <= nr_metrics(); group->nr++) {
		attr = counting_user(PERF_TYPE_RAW, SLOTS);
		if (group->nr)
			attr.config = RETIRING + ((group->nr - 1) << 8);
		attr.disabled = group->nr == 0;
		attr.read_format = READ_GROUP;
		if (change)
			change(&attr, group->nr);
		group->fd[group->nr] = perf_open(&attr, pid, -1,
						 group->nr ? group->fd[0] : -1, 0);
		if (group->fd[group->nr] < 0)
			return false;
	}
	return true;
}

static bool open_group(struct group *group, change change)
{
	return open_group_of(0, group, change);
}

static void close_group(struct group *group)
{
	while (group->nr--)
		close(group->fd[group->nr]);
}

static bool enable(struct group *group)
{
	return !ioctl(group->fd[0], PERF_EVENT_IOC_ENABLE, PERF_IOC_FLAG_GROUP);
}

static bool disable(struct group *group)
{
	return !ioctl(group->fd[0], PERF_EVENT_IOC_DISABLE, PERF_IOC_FLAG_GROUP);
}

static bool read_group(struct group *group, struct group_count *count)
{
	return read(group->fd[0], count, sizeof(*count)) > 0 &&
	       count->nr == (__u64)group->nr;
}

/*
 * Expects shares of the slots to within 1/255 and @slack slots on the emulated
 * PMU; elsewhere, only that the first level adds up to the slots. A sum of many
 * short intervals has a rounding error for each.
 */
static void expect_shares(struct __test_metadata *_metadata, const struct group_count *count,
			  const unsigned int *pass, __u64 slack)
{
	__u64 slots = count->event[0].value;
	__u64 sum = 0;
	unsigned int i;

	for (i = 1; i < count->nr; i++) {
		__u64 value = count->event[i].value;
		__u64 expected = slots * pass[i - 1] / PASS;

		if (i <= LEVEL_1)
			sum += value;
		if (!is_tcg())
			continue;
		EXPECT_LE(value, expected + slots / 255 + slack) {
			TH_LOG("metric %u of %llu slots", i - 1, slots);
		}
		EXPECT_GE(value + slots / 255 + slack, expected) {
			TH_LOG("metric %u of %llu slots", i - 1, slots);
		}
	}
	EXPECT_LE(sum, slots + slack);
	EXPECT_GE(sum + slots / 100 + slack, slots);
}

static void expect_slots(struct __test_metadata *_metadata, const struct group_count *count,
			 __u64 instructions)
{
	if (is_tcg())
		EXPECT_EQ(twice_slots(instructions) / 2, count->event[0].value);
}

FIXTURE(topdown)
{
	struct group group;
	struct group_count count;
};

FIXTURE_SETUP(topdown)
{
	if (!nr_metrics() || fixed_counters() < 4)
		SKIP(return, "this CPU has no PERF_METRICS");
	memset(self, 0, sizeof(*self));
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
}

FIXTURE_TEARDOWN(topdown)
{
	close_group(&self->group);
}

TEST_F(topdown, shares)
{
	ASSERT_TRUE(open_group(&self->group, NULL));
	counted_loop(self->group.fd[0], PERF_IOC_FLAG_GROUP, PASSES);
	ASSERT_TRUE(read_group(&self->group, &self->count));
	EXPECT_EQ(self->count.enabled, self->count.running);
	expect_slots(_metadata, &self->count, LOOP_INSTRUCTIONS(PASSES));
	expect_shares(_metadata, &self->count, load_pass, self->group.nr);
}

/* Slots without metrics count like any other event. */
TEST_F(topdown, slots_alone)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, SLOTS);
	struct one_count one;
	int fd;

	attr.read_format = READ_ONE;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	counted_loop(fd, 0, PASSES);
	ASSERT_TRUE(read_one(fd, &one));
	if (is_tcg())
		EXPECT_EQ(twice_slots(LOOP_INSTRUCTIONS(PASSES)) / 2, one.value);
	close(fd);
}

/* From one read to the next, the counts grow by the shares of that time, not of the whole time. */
TEST_F(topdown, changing_shares)
{
	struct group_count first, second;
	unsigned int i;

	ASSERT_TRUE(open_group(&self->group, NULL));
	ASSERT_TRUE(enable(&self->group));
	load_loop(40 * PASSES);
	ASSERT_TRUE(read_group(&self->group, &first));
	plain_loop(PASSES / 4);
	ASSERT_TRUE(read_group(&self->group, &second));
	ASSERT_TRUE(disable(&self->group));
	expect_shares(_metadata, &first, load_pass, 2000);
	for (i = 0; i < second.nr; i++) {
		EXPECT_LE(first.event[i].value, second.event[i].value);
		second.event[i].value -= first.event[i].value;
	}
	expect_shares(_metadata, &second, plain_pass, 4000);
}

/* Reads of the group and of each event, which set the registers to 0, lose nothing. */
TEST_F(topdown, many_reads)
{
	struct group_count alone, last = {};
	struct group_count one;
	int round, i;

	for (round = 0; round < 2; round++) {
		ASSERT_TRUE(open_group(&self->group, NULL));
		ASSERT_TRUE(enable(&self->group));
		for (i = 0; i < 200; i++) {
			load_loop(1000);
			if (round == 0) {
				getppid();
				continue;
			}
			/* Members read only themselves. */
			ASSERT_LT(0, read(self->group.fd[i % self->group.nr], &one, sizeof(one)));
			if (i % self->group.nr)
				continue;
			EXPECT_LE(last.event[0].value, one.event[0].value);
			EXPECT_LE(last.event[1].value, one.event[1].value);
			last = one;
		}
		ASSERT_TRUE(disable(&self->group));
		ASSERT_TRUE(read_group(&self->group, &self->count));
		/* Each read costs at most one slot per metric. */
		expect_shares(_metadata, &self->count, load_pass, 8000);
		if (round == 0) {
			alone = self->count;
			close_group(&self->group);
		}
	}
	/* Nearly all slots are those of the loops. */
	if (is_tcg()) {
		EXPECT_LE(twice_slots(200 * 2000) / 2, alone.event[0].value);
		EXPECT_LE(twice_slots(200 * 2000) / 2, self->count.event[0].value);
		EXPECT_GE(twice_slots(200 * 2200) / 2, self->count.event[0].value);
	}
}

/*
 * Lets another task start, and waits until the other task lets this one
 * continue. Each task needs two bytes: one to start, one to continue.
 */
static bool let_begin(int in, int out)
{
	char byte;

	return write(out, "12", 2) == 2 && read(in, &byte, 1) == 1;
}

/*
 * Alternates with another task on the CPU, and counts this task's loop. The
 * other task starts after this one has counted: see nothing_of_others. There is
 * only one copy of the code, so that the same instructions count each time.
 */
static __attribute__((noipa)) bool count_turns(struct group *group, struct group_count *count,
					      void (*loop)(unsigned long), int in, int out)
{
	int i;

	if (!open_group(group, NULL) || !enable(group))
		return false;
	loop(1000);
	if (!let_begin(in, out))
		return false;
	for (i = 0; i < TURNS; i++) {
		loop(1000);
		syscall(SYS_sched_yield);
	}
	return disable(group) && read_group(group, count);
}

TEST_F(topdown, two_tasks)
{
	struct perf_event_attr attr = counting(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES);
	struct group_count alone, *others;
	int own[2], other[2], switches, status;
	pid_t pid;
	char byte;

	others = mmap(NULL, sizeof(*others), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	ASSERT_NE(MAP_FAILED, others);

	ASSERT_EQ(0, pipe(own));
	ASSERT_EQ(0, pipe(other));
	ASSERT_TRUE(count_turns(&self->group, &alone, plain_loop, own[0], own[1]));
	/* The byte was for this task itself. */
	ASSERT_EQ(1, read(own[0], &byte, 1));
	close_group(&self->group);
	pid = fork_helper();
	ASSERT_LE(0, pid);
	if (pid == 0)
		_exit(read(other[0], &byte, 1) != 1 ||
		      !count_turns(&self->group, others, load_loop, other[0], own[1]));
	attr.disabled = 0;
	switches = perf_open_self(&attr, -1);
	ASSERT_LE(0, switches);
	ASSERT_TRUE(count_turns(&self->group, &self->count, plain_loop, own[0], other[1]));
	EXPECT_LE(TURNS / 2, read_value(switches));
	close(switches);
	/* Each turn has a rounding error, too. */
	expect_shares(_metadata, &self->count, plain_pass, 20 * TURNS);
	EXPECT_EQ(self->count.enabled, self->count.running);
	/* Ice Lake has half slots; the counter counts whole ones. */
	EXPECT_GE(alone.event[0].value, self->count.event[0].value);
	EXPECT_LE(alone.event[0].value, self->count.event[0].value + TURNS);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_EQ(0, status);
	expect_shares(_metadata, others, load_pass, 20 * TURNS);
}

/*
 * Waits until the other task has filled the pipe. Returns false if the pipe
 * cannot be queried.
 */
static bool wait_until_full(const int pipe[2])
{
	const int size = fcntl(pipe[1], F_GETPIPE_SZ);
	int waiting;

	do {
		usleep(1000);
		if (size < 0 || ioctl(pipe[0], FIONREAD, &waiting))
			return false;
	} while (waiting < size);
	return true;
}

/*
 * A task that is switched out before it has counted does not get the slots of
 * the next task. Here, that task never leaves a write() to a pipe, and slots in the
 * kernel do not count.
 * The built-in driver clears the registers only at an event's first start, and
 * restores them at later ones unless it has saved 0 slots
 * (icl_set_topdown_event_period()).
 */
TEST_F(topdown, nothing_of_others)
{
	static char bytes[1 << 20];
	struct group other = {};
	int data[2], i;
	pid_t pid;

	if (!on_rpmu())
		SKIP(return, "the built-in driver leaves the other task's slots in the registers");
	ASSERT_EQ(0, pipe(data));
	pid = fork_helper();
	ASSERT_LE(0, pid);
	if (pid == 0)
		_exit(write(data[1], bytes, sizeof(bytes)) < 0);
	ASSERT_TRUE(wait_until_full(data));
	ASSERT_TRUE(open_group_of(pid, &other, NULL));
	ASSERT_TRUE(open_group(&self->group, NULL));
	ASSERT_TRUE(enable(&other) && enable(&self->group));
	for (i = 0; i < 8; i++) {
		ASSERT_LT(0, read(data[0], bytes, fcntl(data[1], F_GETPIPE_SZ)));
		load_loop(1000);
		ASSERT_TRUE(wait_until_full(data));
	}
	ASSERT_TRUE(disable(&other) && disable(&self->group));
	ASSERT_TRUE(read_group(&other, &self->count));
	EXPECT_LT(0, self->count.running);
	for (i = 0; i < other.nr; i++)
		EXPECT_EQ(0, self->count.event[i].value);
	close_group(&other);
	ASSERT_EQ(0, kill(pid, SIGKILL));
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
}

/* Two groups rotate, because there is one register. */
TEST_F(topdown, two_groups)
{
	struct group other = {};
	struct group_count count;
	__u64 end;

	ASSERT_TRUE(open_group(&self->group, NULL));
	ASSERT_TRUE(open_group(&other, NULL));
	ASSERT_TRUE(enable(&self->group) && enable(&other));
	end = now_ns() + 300000000;
	while (now_ns() < end)
		load_loop(100000);
	ASSERT_TRUE(disable(&self->group) && disable(&other));
	ASSERT_TRUE(read_group(&self->group, &self->count) && read_group(&other, &count));
	expect_shares(_metadata, &self->count, load_pass, 200000);
	expect_shares(_metadata, &count, load_pass, 200000);
	EXPECT_LE(self->count.enabled, 4 * self->count.running);
	EXPECT_LE(count.enabled, 4 * count.running);
	/* The two groups never count at the same time. */
	EXPECT_LE(self->count.running + count.running, self->count.enabled + 20000000);
	close_group(&other);
}

static void pin(struct perf_event_attr *attr, int nr)
{
	attr->pinned = nr == 0;
}

TEST_F(topdown, a_pinned_group_comes_first)
{
	struct group other = {};
	struct group_count count;

	ASSERT_TRUE(open_group(&other, NULL));
	ASSERT_TRUE(open_group(&self->group, pin));
	ASSERT_TRUE(enable(&other) && enable(&self->group));
	load_loop(PASSES);
	ASSERT_TRUE(disable(&self->group));
	load_loop(PASSES);
	ASSERT_TRUE(disable(&other));
	ASSERT_TRUE(read_group(&self->group, &self->count) && read_group(&other, &count));
	EXPECT_EQ(self->count.enabled, self->count.running);
	EXPECT_GT(count.enabled, count.running);
	expect_shares(_metadata, &self->count, load_pass, 2000);
	expect_shares(_metadata, &count, load_pass, 4000);
	close_group(&other);
}

static void inherit(struct perf_event_attr *attr, int nr)
{
	(void)nr;
	attr->inherit = 1;
	attr->read_format = READ_ONE;
}

TEST_F(topdown, children_count)
{
	struct one_count one;
	int status, i;
	pid_t pid;

	ASSERT_TRUE(open_group(&self->group, inherit));
	ASSERT_TRUE(enable(&self->group));
	pid = fork_helper();
	ASSERT_LE(0, pid);
	if (pid == 0) {
		load_loop(50 * PASSES);
		_exit(0);
	}
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	ASSERT_TRUE(disable(&self->group));
	self->count.nr = self->group.nr;
	for (i = 0; i < self->group.nr; i++) {
		ASSERT_TRUE(read_one(self->group.fd[i], &one));
		self->count.event[i].value = one.value;
	}
	if (is_tcg())
		EXPECT_LE(twice_slots(100 * PASSES) / 2, self->count.event[0].value);
	expect_shares(_metadata, &self->count, load_pass, self->count.event[0].value / 100);
}

static struct perf_event_mmap_page *map_page(int fd)
{
	return mmap(NULL, getpagesize(), PROT_READ, MAP_SHARED, fd, 0);
}

/* The pages have the indexes for RDPMC, and the slots continue from the page's offset. */
TEST_F(topdown, rdpmc)
{
	struct perf_event_mmap_page *page[2];
	__u64 slots, shares, sum = 0;
	int round, i;

	ASSERT_TRUE(open_group(&self->group, NULL));
	for (i = 0; i < 2; i++) {
		page[i] = map_page(self->group.fd[i]);
		ASSERT_NE(MAP_FAILED, page[i]);
	}
	if (!page[0]->cap_user_rdpmc)
		SKIP(return, "user space may not read counters");
	ASSERT_TRUE(enable(&self->group));
	for (round = 0; round < 2; round++) {
		load_loop(PASSES);
		ASSERT_EQ(FIXED + 3 + 1, page[0]->index);
		ASSERT_EQ(METRICS + 1, page[1]->index);
		slots = rdpmc(page[0]->index - 1);
		shares = rdpmc(page[1]->index - 1);
		slots += page[0]->offset;
		for (sum = 0, i = 0; i < LEVEL_1; i++)
			sum += shares >> 8 * i & 0xff;
		EXPECT_LE(254, sum);
		EXPECT_GE(256, sum);
		if (is_tcg())
			EXPECT_GE(1, labs((long)(shares & 0xff) -
					  (long)load_pass[0] * 255 / PASS));
		ASSERT_TRUE(read_group(&self->group, &self->count));
		EXPECT_LE(slots, self->count.event[0].value);
		if (is_tcg())
			EXPECT_GE(slots + 20000, self->count.event[0].value);
		/*
		 * The built-in driver does not update the page when it sets the
		 * register to 0.
		 */
		if (!on_rpmu())
			break;
	}
	ASSERT_TRUE(disable(&self->group));
	EXPECT_EQ(0, page[0]->index);
	EXPECT_EQ(0, page[1]->index);
	for (i = 0; i < 2; i++)
		munmap(page[i], getpagesize());
}

/* A member samples, and each sample reads the group, in an NMI. */
TEST_F(topdown, read_by_samples)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	const struct group_count *count;
	struct group_count last = {};
	const struct perf_event_header *header;
	struct perf_event_mmap_page *page;
	unsigned int samples = 0, i;
	int fd;

	ASSERT_TRUE(open_group(&self->group, NULL));
	attr.disabled = 0;
	attr.sample_period = 10007;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = READ_GROUP;
	attr.wakeup_events = 1;
	fd = perf_open_self(&attr, self->group.fd[0]);
	ASSERT_LE(0, fd);
	page = map_buffer(fd, 16);
	ASSERT_NE(MAP_FAILED, page);
	counted_loop(self->group.fd[0], PERF_IOC_FLAG_GROUP, PASSES);
	ASSERT_LT(0, read(self->group.fd[0], &self->count, sizeof(self->count)));
	while ((header = take_sample(page))) {
		count = (const void *)(header + 1);
		samples++;
		for (i = 0; i < count->nr; i++)
			EXPECT_LE(last.event[i].value, count->event[i].value);
		memcpy(&last, count, header->size - sizeof(*header));
	}
	EXPECT_EQ(LOOP_INSTRUCTIONS(PASSES) / 10007, samples);
	/* The last sample was less than a period ago. */
	for (i = 0; i < last.nr; i++)
		EXPECT_LE(self->count.event[i].value / 100 * 97, last.event[i].value);
	expect_slots(_metadata, &self->count, LOOP_INSTRUCTIONS(PASSES));
	self->count.nr--;
	expect_shares(_metadata, &self->count, load_pass, 1000);
	munmap(page, 17 * getpagesize());
	close(fd);
}

/* Returns whether a file of rpmu's in debugfs contains this text. */
static bool debugfs_shows(const char *name, const char *text)
{
	static char all[1 << 16];
	char path[128];

	snprintf(path, sizeof(path), "/sys/kernel/debug/rpmu/%s", name);
	return read_file(path, all, sizeof(all)) && strstr(all, text);
}

/* rpmu reports why a metric is refused, and why a group waits. */
TEST_F(topdown, explained)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RETIRING);
	struct group other = {};
	char file[32];

	if (!on_rpmu())
		SKIP(return, "only rpmu reports the reasons");
	EXPECT_EQ(-1, perf_open_self(&attr, -1));
	EXPECT_EQ(EINVAL, errno);
	EXPECT_TRUE(debugfs_shows("refusals", "metrics need slots as the leader of their group"));
	ASSERT_TRUE(open_group(&self->group, pin));
	ASSERT_TRUE(open_group(&other, NULL));
	ASSERT_TRUE(enable(&self->group) && enable(&other));
	snprintf(file, sizeof(file), "cpu%d/schedule", sched_getcpu());
	EXPECT_TRUE(debugfs_shows(file, "METRIC0"));
	EXPECT_TRUE(debugfs_shows(file, "slots count for one group at a time"));
	close_group(&other);
}

/* A metric that has lost its slots event never counts again. */
TEST_F(topdown, a_metric_does_not_survive_its_slots)
{
	__u64 value[4];

	ASSERT_TRUE(open_group(&self->group, NULL));
	ASSERT_TRUE(enable(&self->group));
	load_loop(PASSES);
	close(self->group.fd[0]);
	self->group.fd[0] = -1;
	/* read() of an event in the error state returns 0 bytes. */
	EXPECT_EQ(0, read(self->group.fd[1], value, sizeof(value)));
	EXPECT_EQ(0, ioctl(self->group.fd[1], PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(0, read(self->group.fd[1], value, sizeof(value)));
}

/*
 * Opens an event, in the group of @leader unless that is 0. Returns the errno; -1
 * if the leader cannot be opened.
 */
static int opened(__u64 leader, __u64 leader_period, __u64 config, __u64 period, __u64 config1)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, leader);
	int fd, group_fd = -1, error;

	if (leader) {
		attr.sample_period = leader_period;
		group_fd = perf_open_self(&attr, -1);
		if (group_fd < 0)
			return -1;
	}
	attr = counting_user(PERF_TYPE_RAW, config);
	attr.disabled = 0;
	attr.sample_period = period;
	attr.config1 = config1;
	fd = perf_open_self(&attr, group_fd);
	error = fd < 0 ? errno : 0;
	close(fd);
	close(group_fd);
	return error;
}

TEST_F(topdown, leaders_of_metrics)
{
	static const struct {
		__u64 leader, leader_period, config, period, config1;
		int error;
	} cases[] = {
		{ SLOTS, 0, RETIRING, 0, 0, 0 },
		{ 0, 0, RETIRING, 0, 0, EINVAL },
		{ 0x003c, 0, RETIRING, 0, 0, EINVAL },
		{ SLOTS, 0, RETIRING, 1000003, 0, EINVAL },
		{ SLOTS, 1000003, RETIRING, 0, 0, EINVAL },
		{ SLOTS, 0, RETIRING, 0, 1, EINVAL },
		{ SLOTS, 0, RETIRING | 1 << 18, 0, 0, EINVAL },
		{ 0, 0, SLOTS, 1000003, 0, 0 },
		/* Only one counter can count both. */
		{ SLOTS, 0, SLOTS, 0, 0, EINVAL },
		{ SLOTS, 0, 0x00c0, 1000003, 0, 0 },
		/* The same unit mask, another event. */
		{ 0, 0, 0x80c0, 0, 0, 0 },
	};
	unsigned int i;
	int fd;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		EXPECT_EQ(cases[i].error, opened(cases[i].leader, cases[i].leader_period,
						 cases[i].config, cases[i].period,
						 cases[i].config1)) {
			TH_LOG("case %u", i);
		}
	/* A metric that only a later CPU has needs no leader here. */
	EXPECT_EQ(nr_metrics() == 4 ? 0 : EINVAL, opened(0, 0, RETIRING + 0x400, 0, 0));
	/* Each metric at most once. */
	ASSERT_TRUE(open_group(&self->group, NULL));
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RETIRING);

	fd = perf_open_self(&attr, self->group.fd[0]);
	EXPECT_EQ(-1, fd);
	EXPECT_EQ(EINVAL, errno);
}

TEST_HARNESS_MAIN
