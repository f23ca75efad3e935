// SPDX-License-Identifier: GPL-2.0
/*
 * Tests branch stacks (LBR): the branches in a sample, and their order. The
 * programs are in assembly, so that each of their branches is known. A sample
 * is right if its branches are a contiguous part of the program's, up to the
 * last one before the sample. A sample may have fewer branches than the CPU
 * records, because the records are reset when the task is scheduled on a CPU.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "kselftest.h"
#include "kselftest_harness.h"
#include "branch_programs.h"
#include "perf_util.h"

#define ALONE		__attribute__((__noipa__))
#define PAGE		4096UL
#define PAGES		256UL
#define PERIOD		10007	/* branches between two samples */
#define SAMPLES		100
#define MAX_BRANCHES	32

#define USER		PERF_SAMPLE_BRANCH_USER

enum kind {
	CALL, RET, IND_CALL, JMP, IND_JMP, JCC,
};

/* The types of the branches in a pass of mix_a() or mix_b(). */
static const enum kind kinds[IN_MIX] = { CALL, RET, IND_CALL, RET, JMP, IND_JMP, JCC, JCC };

struct mix {
	void (*run)(unsigned long passes);
	const struct branch *branches;
};

static const struct mix a = { mix_a, mix_a_branches }, b = { mix_b, mix_b_branches };

struct stack {
	__u64 nr;
	struct perf_branch_entry entries[];
};

struct sample {
	struct perf_event_header header;
	__u64 ip;
	__u32 pid, tid;
	__u64 period;
	struct stack stack;
};

/*
 * Nehalem, Westmere and Silvermont cannot exclude jumps when they record calls,
 * and cannot select direct calls.
 */
static bool is_nehalem(void)
{
	return cpu_model() == MODEL_NEHALEM || cpu_model() == MODEL_WESTMERE ||
	       cpu_model() == MODEL_SILVERMONT;
}

static struct perf_event_attr sampling_branches(__u64 branches)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);

	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_PERIOD |
			   PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = branches;
	attr.read_format = 0;
	return attr;
}

struct ring {
	int fd;
	struct perf_event_mmap_page *page;
};

static bool open_ring(struct ring *ring, const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	ring->fd = perf_open(attr, pid, cpu, -1, 0);
	if (ring->fd < 0)
		return false;
	ring->page = map_buffer(ring->fd, PAGES);
	return ring->page != MAP_FAILED;
}

static void close_ring(struct ring *ring)
{
	munmap(ring->page, (PAGES + 1) * PAGE);
	close(ring->fd);
}

static bool enable(const struct ring *ring)
{
	return !ioctl(ring->fd, PERF_EVENT_IOC_ENABLE, 0);
}

static bool disable(const struct ring *ring)
{
	return !ioctl(ring->fd, PERF_EVENT_IOC_DISABLE, 0);
}

/* Returns whether a filter accepts branches of a type. */
static bool passes(__u64 filter, enum kind kind)
{
	static const __u64 asked[] = {
		[CALL] = PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_CALL,
		[RET] = PERF_SAMPLE_BRANCH_ANY_RETURN,
		[IND_CALL] = PERF_SAMPLE_BRANCH_ANY_CALL | PERF_SAMPLE_BRANCH_IND_CALL,
		[JMP] = 0,
		[IND_JMP] = PERF_SAMPLE_BRANCH_IND_JUMP,
		[JCC] = PERF_SAMPLE_BRANCH_COND,
	};

	return filter & (asked[kind] | PERF_SAMPLE_BRANCH_ANY);
}

/* Returns the branches of @mix that the filter accepts. */
static unsigned int passing(const struct mix *mix, __u64 filter, struct branch *kept)
{
	unsigned int n = 0;

	for (int i = 0; i < IN_MIX; i++) {
		if (passes(filter, kinds[i]))
			kept[n++] = mix->branches[i];
	}
	return n;
}

static bool same(const struct perf_branch_entry *entry, const struct branch *branch)
{
	return entry->from == branch->from && entry->to == branch->to;
}

static bool is_in(const struct mix *mix, __u64 address)
{
	return address >= (unsigned long)mix->run && address < (unsigned long)mix->run + MIX_SPACE;
}

/*
 * Checks that the branches of a sample, from the latest one on, are a
 * contiguous part of any number of repeated passes. After them, older branches
 * from before the first pass may follow.
 */
static bool follows(const struct stack *stack, const struct mix *mix, const struct branch *pass,
		    unsigned int length)
{
	unsigned int at = 0;

	if (!stack->nr)
		return true;
	while (at < length && !same(&stack->entries[0], &pass[at]))
		at++;
	if (at == length)
		return !is_in(mix, stack->entries[0].from);
	for (__u64 i = 0; i < stack->nr; i++) {
		if (!same(&stack->entries[i], &pass[at])) {
			ksft_print_msg("branch %llu of %llu: %llx -> %llx\n", i, stack->nr,
				       stack->entries[i].from, stack->entries[i].to);
			return !is_in(mix, stack->entries[i].from);
		}
		at = (at + length - 1) % length;
	}
	return true;
}

/* The branches in the samples of an event. */
struct seen {
	unsigned int samples;	/* in the program */
	unsigned int full;	/* with as many branches as the CPU records */
	unsigned int empty;
	unsigned int wrong;
};

static struct seen look(struct ring *ring, const struct mix *mix, __u64 filter)
{
	struct branch pass[IN_MIX];
	unsigned int length = passing(mix, filter, pass);
	const struct sample *sample;
	struct seen seen = {};

	while ((sample = take_sample(ring->page))) {
		if (!is_in(mix, sample->ip))
			continue;
		seen.samples++;
		seen.full += sample->stack.nr == branch_records();
		seen.empty += !sample->stack.nr;
		seen.wrong += !follows(&sample->stack, mix, pass, length);
	}
	return seen;
}

#define PASSES(samples)		((samples) * (unsigned long)PERIOD / IN_MIX)

FIXTURE(branches)
{
	struct sample_limits limits;
};

FIXTURE_SETUP(branches)
{
	if (!branch_records())
		SKIP(return, "no branch records are known on this CPU");
	ASSERT_TRUE(lift_sample_limits(&self->limits));
	ASSERT_TRUE(run_on(0));
}

FIXTURE_TEARDOWN(branches)
{
	if (branch_records())
		put_back_sample_limits(&self->limits);
}

static void check_filter(struct __test_metadata *_metadata, __u64 filter)
{
	struct perf_event_attr attr = sampling_branches(filter | USER);
	unsigned int expected;
	struct ring ring;
	struct seen seen;

	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1));
	ASSERT_TRUE(enable(&ring));
	a.run(PASSES(SAMPLES));
	ASSERT_TRUE(disable(&ring));
	seen = look(&ring, &a, filter);
	EXPECT_LE(SAMPLES - 2, seen.samples);
	EXPECT_EQ(0, seen.wrong);
	/*
	 * Three quarters of the samples must be full: in the others, an
	 * interrupt's return to the program may take up a record. On Nehalem and
	 * Westmere, jumps do, too, and samples need only have branches; those of
	 * direct calls have none.
	 */
	expected = seen.full;
	if (is_nehalem())
		expected = seen.samples - seen.empty;
	if (is_nehalem() && filter == PERF_SAMPLE_BRANCH_CALL)
		expected = seen.empty;
	EXPECT_LE(SAMPLES * 3 / 4, expected);
	close_ring(&ring);
}

TEST_F(branches, any)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_ANY);
}

TEST_F(branches, any_call)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_ANY_CALL);
}

TEST_F(branches, any_return)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_ANY_RETURN);
}

TEST_F(branches, indirect_calls)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_IND_CALL);
}

TEST_F(branches, direct_calls)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_CALL);
}

TEST_F(branches, conditional)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_COND);
}

TEST_F(branches, indirect_jumps)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_IND_JUMP);
}

TEST_F(branches, two_kinds)
{
	check_filter(_metadata, PERF_SAMPLE_BRANCH_COND | PERF_SAMPLE_BRANCH_ANY_CALL);
}

TEST_F(branches, types_are_saved)
{
	static const unsigned int types[] = {
		[CALL] = PERF_BR_CALL, [RET] = PERF_BR_RET, [IND_CALL] = PERF_BR_IND_CALL,
		[JMP] = PERF_BR_UNCOND, [IND_JMP] = PERF_BR_IND, [JCC] = PERF_BR_COND,
	};
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_ANY | USER |
							PERF_SAMPLE_BRANCH_TYPE_SAVE);
	const struct sample *sample;
	unsigned int typed = 0;
	struct ring ring;

	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1));
	ASSERT_TRUE(enable(&ring));
	a.run(PASSES(SAMPLES));
	ASSERT_TRUE(disable(&ring));
	while ((sample = take_sample(ring.page))) {
		for (__u64 i = 0; i < sample->stack.nr; i++) {
			for (int at = 0; at < IN_MIX; at++) {
				if (!same(&sample->stack.entries[i], &a.branches[at]))
					continue;
				EXPECT_EQ(types[kinds[at]],
					  (unsigned int)sample->stack.entries[i].type);
				typed++;
			}
		}
	}
	EXPECT_LE(SAMPLES * 8, typed);
	close_ring(&ring);
}

/* A sample has at most attr.sample_max_stack branches. */
TEST_F(branches, max_stack)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_ANY | USER);
	const struct sample *sample;
	unsigned int samples = 0;
	struct ring ring;

	attr.sample_max_stack = 5;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1));
	ASSERT_TRUE(enable(&ring));
	a.run(PASSES(SAMPLES));
	ASSERT_TRUE(disable(&ring));
	while ((sample = take_sample(ring.page))) {
		ASSERT_GE(5, sample->stack.nr);
		samples += sample->stack.nr == 5;
	}
	EXPECT_LE(SAMPLES * 3 / 4, samples);
	close_ring(&ring);
}

TEST_F(branches, kernel_alone)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_ANY |
							PERF_SAMPLE_BRANCH_KERNEL);
	unsigned int branches = 0, samples = 0, near = 0;
	const struct sample *sample;
	struct ring ring;

	attr.exclude_user = 1;
	attr.exclude_kernel = 0;
	attr.sample_period = 1009;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1));
	ASSERT_TRUE(enable(&ring));
	for (int i = 0; i < 1000; i++)
		getppid();
	ASSERT_TRUE(disable(&ring));
	while ((sample = take_sample(ring.page))) {
		/*
		 * The latest branch leads to the sample's address, not to the
		 * overflow's handler.
		 */
		samples++;
		near += sample->stack.nr && sample->ip - sample->stack.entries[0].to < PAGE;
		for (__u64 i = 0; i < sample->stack.nr; i++) {
			/*
			 * The source of a system call's branch is in user mode.
			 */
			ASSERT_GT(0, (__s64)sample->stack.entries[i].to);
			branches += (__s64)sample->stack.entries[i].from < 0;
		}
	}
	EXPECT_LE(100, branches);
	EXPECT_LT(samples / 2, near);
	close_ring(&ring);
}

/*
 * Checks that samples contain the calls that have not returned, as many as the
 * CPU can record.
 */
static void check_depth(struct __test_metadata *_metadata, unsigned int depth)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_CALL_STACK | USER |
							PERF_SAMPLE_BRANCH_NO_FLAGS |
							PERF_SAMPLE_BRANCH_NO_CYCLES);
	unsigned int expected = depth < branch_records() ? depth : branch_records();
	unsigned int samples = 0, right = 0;
	const struct sample *sample;
	struct ring ring;

	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1));
	ASSERT_TRUE(enable(&ring));
	deep(depth, SAMPLES * PERIOD);
	ASSERT_TRUE(disable(&ring));
	while ((sample = take_sample(ring.page))) {
		__u64 i = 0;

		if (sample->ip < (unsigned long)deep || sample->ip > (unsigned long)deep_end)
			continue;
		while (i < sample->stack.nr &&
		       sample->stack.entries[i].from == (unsigned long)deep_from &&
		       sample->stack.entries[i].to == (unsigned long)deep)
			i++;
		samples++;
		right += i == expected;
		if (i != expected)
			TH_LOG("%llu calls of %u, %llu in all", i, expected, sample->stack.nr);
	}
	EXPECT_LE(SAMPLES - 2, samples);
	EXPECT_EQ(samples, right);
	close_ring(&ring);
}

TEST_F(branches, call_stack)
{
	if (!has_call_stacks())
		SKIP(return, "the CPU does not record call stacks");
	check_depth(_metadata, 10);
}

TEST_F(branches, call_stack_deeper_than_the_records)
{
	if (!has_call_stacks())
		SKIP(return, "the CPU does not record call stacks");
	check_depth(_metadata, 40);
}

/* Starts a task that executes @mix on this CPU and yields again and again. */
static pid_t fork_other(const struct mix *mix)
{
	pid_t pid = fork_helper();

	if (!pid) {
		for (;;) {
			mix->run(100);
			sched_yield();
		}
	}
	return pid;
}

static void end_other(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Samples two tasks that alternate, with an event of the CPU. */
TEST_F(branches, each_task_has_its_own)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_ANY | USER);
	unsigned int own = 0, others = 0, strange = 0;
	const struct sample *sample;
	struct ring ring;
	pid_t other;

	ASSERT_TRUE(open_ring(&ring, &attr, -1, 0));
	other = fork_other(&b);
	ASSERT_LT(0, other);
	ASSERT_TRUE(enable(&ring));
	for (unsigned int i = 0; i < 2000; i++) {
		a.run(100);
		sched_yield();
	}
	ASSERT_TRUE(disable(&ring));
	end_other(other);
	while ((sample = take_sample(ring.page))) {
		bool is_other = sample->pid == (__u32)other;
		const struct mix *mine = is_other ? &b : &a, *not_mine = is_other ? &a : &b;

		if (!is_in(mine, sample->ip))
			continue;
		own += !is_other;
		others += is_other;
		for (__u64 i = 0; i < sample->stack.nr; i++)
			strange += is_in(not_mine, sample->stack.entries[i].from);
	}
	EXPECT_LT(10, own);
	EXPECT_LT(10, others);
	EXPECT_EQ(0, strange);
	close_ring(&ring);
}

/* Calls itself @depth times, and then @times times @pause, and spins after each. */
static ALONE void pausing(unsigned int depth, unsigned int times, void (*pause)(void),
			  unsigned long spins)
{
	if (depth) {
		pausing(depth - 1, times, pause, spins);
		asm volatile("" ::: "memory");
		return;
	}
	while (times--) {
		pause();
		deep(0, spins);
	}
}

static void yield(void)
{
	sched_yield();
}

/*
 * Samples the calls of two tasks that alternate, with one event each or with an
 * inherited event.
 */
static void check_switches(struct __test_metadata *_metadata, bool inherit)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_CALL_STACK | USER |
							PERF_SAMPLE_BRANCH_NO_FLAGS |
							PERF_SAMPLE_BRANCH_NO_CYCLES);
	unsigned int samples = 0, whole = 0;
	const struct sample *sample;
	struct ring ring;
	int others = -1;
	pid_t other;

	attr.inherit = inherit;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, 0));
	other = fork_other(&b);
	ASSERT_LT(0, other);
	if (!inherit) {
		attr.disabled = 0;
		others = perf_open(&attr, other, -1, -1, 0);
		ASSERT_LE(0, others);
	}
	ASSERT_TRUE(enable(&ring));
	pausing(5, 400, yield, PERIOD / 4);
	ASSERT_TRUE(disable(&ring));
	end_other(other);
	close(others);
	while ((sample = take_sample(ring.page))) {
		if (sample->pid == (__u32)other || sample->ip < (unsigned long)deep ||
		    sample->ip > (unsigned long)deep_end)
			continue;
		samples++;
		/* The calls of pausing() and of deep(). */
		whole += sample->stack.nr >= 6;
	}
	EXPECT_LT(50, samples);
	EXPECT_EQ(samples, whole);
	close_ring(&ring);
}

/* A task's call stack is restored when the task runs again. */
TEST_F(branches, call_stack_outlives_switches)
{
	if (!has_call_stacks())
		SKIP(return, "the CPU does not record call stacks");
	check_switches(_metadata, false);
}

/*
 * The call stack is also restored if the perf core swaps the tasks' contexts.
 */
TEST_F(branches, call_stack_outlives_exchanges)
{
	if (!has_call_stacks())
		SKIP(return, "the CPU does not record call stacks");
	if (!on_rpmu())
		SKIP(return, "the built-in driver decides by the task that had the context first");
	check_switches(_metadata, true);
}

/* Bit 32: selftests/vpmu/README.md. */
#define LOSE_RECORDS	"what=0x100000000"

static int asks[2], answers[2];

/* Loses the branch records of all CPUs once for each byte in @asks. */
static void lose_records(void)
{
	char lost = 1;

	while (read(asks[0], &lost, 1) == 1) {
		lost = load_module("./wrong.ko", LOSE_RECORDS) && unload_module("wrong");
		if (write(answers[1], &lost, 1) != 1)
			break;
	}
	_exit(0);
}

static bool all_lost;

/* Sleeps, without branch records of its own, until the records are lost. */
static void sleep_deeply(void)
{
	char lost = 0;

	if (write(asks[1], &lost, 1) != 1 || read(answers[0], &lost, 1) != 1 || !lost)
		all_lost = false;
}

/*
 * A CPU that sleeps deeply loses its branch records. A task's call stack is
 * restored after that, although no other task has used the records.
 */
TEST_F(branches, call_stack_outlives_deep_sleep)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_CALL_STACK | USER |
							PERF_SAMPLE_BRANCH_NO_FLAGS |
							PERF_SAMPLE_BRANCH_NO_CYCLES);
	unsigned int samples = 0, whole = 0;
	const struct sample *sample;
	struct ring ring;
	pid_t helper;

	if (!has_call_stacks())
		SKIP(return, "the CPU does not record call stacks");
	if (!is_tcg())
		SKIP(return, "only the emulated PMU loses its records on demand");
	ASSERT_EQ(0, pipe(asks));
	ASSERT_EQ(0, pipe(answers));
	helper = fork_helper();
	ASSERT_LE(0, helper);
	if (!helper)
		lose_records();
	all_lost = true;
	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1));
	ASSERT_TRUE(enable(&ring));
	pausing(5, 20, sleep_deeply, PERIOD * 2);
	ASSERT_TRUE(disable(&ring));
	end_other(helper);
	EXPECT_TRUE(all_lost);
	while ((sample = take_sample(ring.page))) {
		if (sample->ip < (unsigned long)deep || sample->ip > (unsigned long)deep_end)
			continue;
		samples++;
		/* The calls of pausing() and of deep(). */
		whole += sample->stack.nr >= 6;
	}
	EXPECT_LE(20, samples);
	EXPECT_EQ(samples, whole);
	close_ring(&ring);
}

/* Events with different filters cannot be on a CPU at the same time. */
TEST_F(branches, filters_take_turns)
{
	static const __u64 filters[] = {
		PERF_SAMPLE_BRANCH_COND, PERF_SAMPLE_BRANCH_ANY_RETURN,
	};
	struct ring rings[2];
	struct seen seen;

	if (!on_rpmu())
		SKIP(return, "the built-in driver uses the filter of the last event");
	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr = sampling_branches(filters[i] | USER);

		ASSERT_TRUE(open_ring(&rings[i], &attr, 0, -1));
	}
	for (int i = 0; i < 2; i++)
		ASSERT_TRUE(enable(&rings[i]));
	a.run(PASSES(SAMPLES * 4));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(disable(&rings[i]));
		seen = look(&rings[i], &a, filters[i]);
		EXPECT_LT(SAMPLES / 4, seen.samples);
		EXPECT_EQ(0, seen.wrong);
		EXPECT_GE(seen.samples / 10, seen.empty);
		close_ring(&rings[i]);
	}
}

/*
 * Events with the same hardware filter share the records, even if their
 * software filters differ.
 */
TEST_F(branches, equal_filters_share)
{
	static const __u64 types[] = { 0, PERF_SAMPLE_BRANCH_TYPE_SAVE };
	struct ring rings[2];
	struct seen seen;

	for (int i = 0; i < 2; i++) {
		struct perf_event_attr attr =
			sampling_branches(PERF_SAMPLE_BRANCH_COND | USER | types[i]);

		attr.pinned = 1;
		ASSERT_TRUE(open_ring(&rings[i], &attr, 0, -1));
	}
	for (int i = 0; i < 2; i++)
		ASSERT_TRUE(enable(&rings[i]));
	a.run(PASSES(SAMPLES));
	for (int i = 0; i < 2; i++) {
		ASSERT_TRUE(disable(&rings[i]));
		seen = look(&rings[i], &a, PERF_SAMPLE_BRANCH_COND);
		EXPECT_LE(SAMPLES - 2, seen.samples);
		EXPECT_EQ(0, seen.wrong);
		close_ring(&rings[i]);
	}
}

/* A group that can never be on a CPU as a whole is refused. */
TEST_F(branches, group_with_two_filters)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_COND | USER);
	int leader;

	if (is_amd() && !on_rpmu())
		SKIP(return, "AMD's built-in driver uses the filter of the last event");
	leader = perf_open_self(&attr, -1);
	ASSERT_LE(0, leader);
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_ANY_CALL | USER;
	EXPECT_EQ(-1, perf_open_self(&attr, leader));
	EXPECT_EQ(EINVAL, errno);
	close(leader);
}

/* Counts are not affected by branch records. */
TEST_F(branches, counts_beside_branches)
{
	struct perf_event_attr attr = sampling_branches(PERF_SAMPLE_BRANCH_ANY | USER);
	struct perf_event_attr exact = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	struct ring ring;
	int counter;

	ASSERT_TRUE(open_ring(&ring, &attr, 0, -1));
	counter = perf_open_self(&exact, -1);
	ASSERT_LE(0, counter);
	ASSERT_TRUE(enable(&ring));
	counted_loop(counter, 0, 100000);
	ASSERT_TRUE(disable(&ring));
	EXPECT_EQ(LOOP_INSTRUCTIONS(100000), read_value(counter));
	close(counter);
	close_ring(&ring);
}

/* Opens events with valid and with invalid branch_sample_type. */
TEST_F(branches, refused)
{
	const struct {
		__u64 branches;
		int error;
	} cases[] = {
		{ PERF_SAMPLE_BRANCH_ANY | USER, 0 },
		{ PERF_SAMPLE_BRANCH_CALL_STACK | USER, has_call_stacks() ? 0 : EOPNOTSUPP },
		{ PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_ANY | USER,
		  has_call_stacks() ? EINVAL : EOPNOTSUPP },
		{ PERF_SAMPLE_BRANCH_CALL_STACK | PERF_SAMPLE_BRANCH_COND | USER,
		  has_call_stacks() ? EINVAL : EOPNOTSUPP },
		{ PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_COUNTERS | USER,
		  is_amd() ? 0 : EINVAL },
		{ PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_NO_TX | USER,
		  is_amd() ? EOPNOTSUPP : 0 },
		{ PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_NO_FLAGS | USER,
		  is_amd() ? EOPNOTSUPP : 0 },
		{ USER, EINVAL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct perf_event_attr attr = sampling_branches(cases[i].branches);
		int fd = perf_open_self(&attr, -1);

		if (cases[i].error) {
			EXPECT_EQ(-1, fd) {
				TH_LOG("branches %llx", cases[i].branches);
			}
			EXPECT_EQ(cases[i].error, errno) {
				TH_LOG("branches %llx", cases[i].branches);
			}
		} else {
			EXPECT_LE(0, fd) {
				TH_LOG("branches %llx", cases[i].branches);
			}
		}
		if (fd >= 0)
			close(fd);
	}
}

TEST_F(branches, depth_in_sysfs)
{
	char text[16];

	ASSERT_TRUE(read_line(CPU_PMU "/caps/branches", text, sizeof(text)));
	EXPECT_EQ((int)branch_records(), atoi(text));
}

TEST_HARNESS_MAIN
