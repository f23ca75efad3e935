// SPDX-License-Identifier: GPL-2.0
/*
 * Reads events while the driver writes registers: msr:write_msr fires after
 * each write, and as the leader of a group it samples the counts of the other
 * members. These counts must always be right: never lower than before, and not
 * off by the counter's previous value, which would show as a count of about
 * 2^48.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define WRITE_MSR	"/sys/kernel/tracing/events/msr/write_msr/id"
#define ROUNDS		200
#define LOOPS		1000UL
#define PAGES		32UL
#define PAGE		4096UL
/* No count in this test is as high. */
#define SANE		0x10000000000ULL
#define OFFCORE		0x01b7	/* OFFCORE_RESPONSE_0 */
#define MEMBERS		2

/* A group whose leader samples at each write of a register. */
struct group {
	struct perf_event_mmap_page *page;
	int fd[1 + MEMBERS];
	unsigned int nr;
	__u64 last[1 + MEMBERS];
	unsigned long samples;
	unsigned long wrong;	/* samples with a wrong count */
};

struct sample {
	struct perf_event_header header;
	__u64 nr;
	__u64 enabled;
	__u64 running;
	struct {
		__u64 value;
		__u64 id;
	} event[1 + MEMBERS];
};

/* Returns an offcore response event for the requests and the first type of response. */
static struct perf_event_attr offcore(__u64 requests)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, OFFCORE);
	const enum cpu_model model = cpu_model();
	bool old = model == MODEL_NEHALEM || model == MODEL_WESTMERE;

	attr.config1 = requests | 1ULL << (old ? 8 : 16);
	attr.disabled = 0;
	return attr;
}

static bool open_group(struct group *group, pid_t pid, int cpu,
		       const struct perf_event_attr *members, unsigned int nr)
{
	struct perf_event_attr attr;
	char id[32];
	unsigned int i;

	memset(group, 0, sizeof(*group));
	if (!read_line(WRITE_MSR, id, sizeof(id)))
		return false;
	attr = counting(PERF_TYPE_TRACEPOINT, atoi(id));
	attr.sample_period = 1;
	attr.sample_type = PERF_SAMPLE_READ;
	attr.read_format = READ_GROUP;
	group->fd[0] = perf_open(&attr, pid, cpu, -1, 0);
	if (group->fd[0] < 0)
		return false;
	for (i = 0; i < nr; i++) {
		group->fd[1 + i] = perf_open(&members[i], pid, cpu, group->fd[0], 0);
		if (group->fd[1 + i] < 0)
			return false;
	}
	group->nr = 1 + nr;
	group->page = map_buffer(group->fd[0], PAGES);
	return group->page != MAP_FAILED &&
	       ioctl(group->fd[0], PERF_EVENT_IOC_ENABLE, 0) == 0;
}

static void look_at(struct group *group, const struct sample *sample)
{
	bool right = sample->nr == group->nr;
	unsigned int i;
	__u64 value;

	for (i = 0; right && i < group->nr; i++) {
		value = sample->event[i].value;
		right = value >= group->last[i] && value < SANE;
		group->last[i] = value;
	}
	group->samples++;
	if (right)
		return;
	if (!group->wrong++)
		ksft_print_msg("sample %lu: %#llx %#llx %#llx\n", group->samples,
			       sample->event[0].value, sample->event[1].value,
			       group->nr > 2 ? sample->event[2].value : 0);
}

/* Checks all new samples in the buffer. */
static void drain(struct group *group)
{
	struct perf_event_mmap_page *page = group->page;
	__u64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	__u64 at = page->data_tail, size, start, first;
	const char *ring = (const char *)page + PAGE;
	struct perf_event_header header;
	struct sample sample;

	for (; at < head; at += header.size) {
		start = at % (PAGES * PAGE);
		/* Sizes are multiples of 8, so headers never wrap. */
		memcpy(&header, ring + start, sizeof(header));
		size = header.size < sizeof(sample) ? header.size : sizeof(sample);
		first = PAGES * PAGE - start;
		if (first > size)
			first = size;
		memset(&sample, 0, sizeof(sample));
		memcpy(&sample, ring + start, first);
		memcpy((char *)&sample + first, ring, size - first);
		if (header.type == PERF_RECORD_SAMPLE)
			look_at(group, &sample);
	}
	__atomic_store_n(&page->data_tail, at, __ATOMIC_RELEASE);
}

static void close_group(struct group *group)
{
	unsigned int i;

	ioctl(group->fd[0], PERF_EVENT_IOC_DISABLE, 0);
	drain(group);
	munmap(group->page, (1 + PAGES) * PAGE);
	for (i = group->nr; i--;)
		close(group->fd[i]);
}

FIXTURE(read_on_write)
{
	int cpu;
};

FIXTURE_SETUP(read_on_write)
{
	if (access(WRITE_MSR, R_OK))
		SKIP(return, "no tracepoint msr:write_msr");
	self->cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	ASSERT_TRUE(run_on(self->cpu));
}

FIXTURE_TEARDOWN(read_on_write)
{
}

enum { RIGHT, CANNOT_OPEN, WRONG, NO_SAMPLES, NO_PARTNER };

/* Counts this task while it alternates with another on the CPU, and checks the samples. */
static int alternate(const struct perf_event_attr *members, unsigned int nr,
		     unsigned long loops, int from, int to)
{
	struct group group;
	char byte = 0;
	int round;

	if (!open_group(&group, 0, -1, members, nr))
		return CANNOT_OPEN;
	for (round = 0; round < ROUNDS; round++) {
		if (write(to, &byte, 1) != 1 || read(from, &byte, 1) != 1)
			return NO_PARTNER;
		memory_loop(loops);
		drain(&group);
	}
	close_group(&group);
	if (group.wrong)
		ksft_print_msg("%lu of %lu samples are wrong\n", group.wrong, group.samples);
	return group.wrong ? WRONG : group.samples < 2 * ROUNDS ? NO_SAMPLES : RIGHT;
}

/* Alternates two tasks with different values for MSR_OFFCORE_RSP_0 and different event rates. */
static void two_tasks(struct __test_metadata *_metadata, unsigned int nr)
{
	const struct perf_event_attr members[2][MEMBERS] = {
		{ offcore(1), counting_user(PERF_TYPE_RAW, RAW_BRANCHES) },
		{ offcore(2), counting_user(PERF_TYPE_RAW, RAW_BRANCHES) },
	};
	int there[2], back[2], status, i;
	pid_t task[2];

	ASSERT_EQ(0, pipe(there));
	ASSERT_EQ(0, pipe(back));
	for (i = 0; i < 2; i++) {
		task[i] = fork_helper();
		ASSERT_LE(0, task[i]);
		if (task[i] == 0)
			_exit(alternate(members[i], nr, i ? LOOPS : 20 * LOOPS,
					i ? there[0] : back[0], i ? back[1] : there[1]));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(task[i], waitpid(task[i], &status, 0));
		EXPECT_EQ(RIGHT, status) {
			TH_LOG("task %d: %#x", i, status);
		}
	}
}

TEST_F(read_on_write, task_switch)
{
	two_tasks(_metadata, 1);
}

TEST_F(read_on_write, group_switch)
{
	if (!on_rpmu())
		SKIP(return, "the built-in driver reads an event before it has a counter");
	two_tasks(_metadata, 2);
}

/*
 * An event of the CPU stays on its counter while a task's events with different
 * event selects are scheduled on other counters.
 */
TEST_F(read_on_write, others_come_and_go)
{
	struct perf_event_attr member = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct perf_event_attr other[] = {
		counting_user(PERF_TYPE_RAW, 0x4f2e),
		counting_user(PERF_TYPE_RAW, 0x412e),
		offcore(1),
		offcore(2),
	};
	struct group group;
	int fd[ARRAY_SIZE(other)], round;
	unsigned int i;

	if (!on_rpmu() && cpu_model() == MODEL_NEHALEM)
		SKIP(return, "the built-in driver clears counters that are read");
	member.disabled = 0;
	ASSERT_TRUE(open_group(&group, -1, self->cpu, &member, 1));
	for (i = 0; i < ARRAY_SIZE(other); i++) {
		other[i].disabled = 1;
		fd[i] = perf_open_self(&other[i], -1);
		ASSERT_LE(0, fd[i]);
	}
	for (round = 0; round < ROUNDS; round++) {
		for (i = 0; i < ARRAY_SIZE(other); i++) {
			ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_ENABLE, 0));
			branch_loop(100);
			ASSERT_EQ(0, ioctl(fd[i], PERF_EVENT_IOC_DISABLE, 0));
		}
		drain(&group);
	}
	for (i = 0; i < ARRAY_SIZE(other); i++)
		close(fd[i]);
	close_group(&group);
	EXPECT_LE(ROUNDS * ARRAY_SIZE(other), group.samples);
	EXPECT_EQ(0, group.wrong);
}

/* An event is read in the PMI of its own overflow, which writes its counter. */
TEST_F(read_on_write, overflows)
{
	struct perf_event_attr member = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct sample_limits limits;
	struct group group;
	int round;

	ASSERT_TRUE(lift_sample_limits(&limits));
	member.disabled = 0;
	member.sample_period = LOOPS;
	ASSERT_TRUE(open_group(&group, 0, -1, &member, 1));
	for (round = 0; round < ROUNDS; round++) {
		branch_loop(2 * LOOPS);
		drain(&group);
	}
	close_group(&group);
	EXPECT_TRUE(put_back_sample_limits(&limits));
	EXPECT_LE((unsigned long)ROUNDS, group.samples);
	EXPECT_EQ(0, group.wrong);
	EXPECT_LE(ROUNDS * 8 * LOOPS, group.last[1]);
}

/* A new period stops the event and starts it again on the same counter. */
TEST_F(read_on_write, new_period)
{
	struct perf_event_attr member = offcore(1);
	__u64 period = 1ULL << 30;
	struct group group;
	int round;

	member.sample_period = period;
	ASSERT_TRUE(open_group(&group, 0, -1, &member, 1));
	for (round = 0; round < ROUNDS; round++) {
		memory_loop(LOOPS);
		period += 1000;
		ASSERT_EQ(0, ioctl(group.fd[1], PERF_EVENT_IOC_PERIOD, &period));
		drain(&group);
	}
	close_group(&group);
	EXPECT_LE((unsigned long)ROUNDS, group.samples);
	EXPECT_EQ(0, group.wrong);
}

TEST_HARNESS_MAIN
