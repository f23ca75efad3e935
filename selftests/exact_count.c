// SPDX-License-Identifier: GPL-2.0
/*
 * Tests exact counts of loops with a known number of instructions and branches,
 * by privilege level, with events of a task and of a CPU.
 */
#define _GNU_SOURCE
#include <time.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define RUNS	3
#define LOOPS	100000UL

FIXTURE(exact)
{
	pid_t pid;
	int cpu;
};

FIXTURE_VARIANT(exact)
{
	bool per_cpu;
};

FIXTURE_VARIANT_ADD(exact, task)
{
	.per_cpu = false,
};

FIXTURE_VARIANT_ADD(exact, cpu)
{
	.per_cpu = true,
};

FIXTURE_SETUP(exact)
{
	int last = sysconf(_SC_NPROCESSORS_ONLN) - 1;

	ASSERT_TRUE(run_on(last));
	ASSERT_TRUE(take_cpu(variant->per_cpu));
	self->pid = variant->per_cpu ? -1 : 0;
	self->cpu = variant->per_cpu ? last : -1;
}

FIXTURE_TEARDOWN(exact)
{
}

/* Counts RUNS loops of n iterations each; every count must be as expected. */
static void expect_loop(struct __test_metadata *_metadata, int fd,
			unsigned long n, __u64 expected)
{
	int run;

	for (run = 0; run < RUNS; run++) {
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
		counted_loop(fd, 0, n);
		EXPECT_EQ(expected, read_value(fd));
	}
}

TEST_F(exact, instructions_user)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open(&attr, self->pid, self->cpu, -1, 0);

	ASSERT_LE(0, fd);
	expect_loop(_metadata, fd, LOOPS, LOOP_INSTRUCTIONS(LOOPS));
}

TEST_F(exact, raw_instructions_user)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	int fd = perf_open(&attr, self->pid, self->cpu, -1, 0);

	ASSERT_LE(0, fd);
	expect_loop(_metadata, fd, LOOPS, LOOP_INSTRUCTIONS(LOOPS));
}

/*
 * Bits 16 (USR), 17 (OS), 20 (INT) and 22 (EN) of a raw config are ignored: the
 * exclude_* flags decide (X86_RAW_EVENT_MASK).
 */
TEST_F(exact, raw_privilege_bits_are_ignored)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS |
			      1 << 16 | 1 << 17 | 1 << 20 | 1 << 22);
	int fd = perf_open(&attr, self->pid, self->cpu, -1, 0);

	ASSERT_LE(0, fd);
	expect_loop(_metadata, fd, LOOPS, LOOP_INSTRUCTIONS(LOOPS));
}

/* Use two lengths, because SYSCALL may count as a branch. */
static void expect_branches(struct __test_metadata *_metadata, int fd)
{
	__u64 base, more;
	int run;

	for (run = 0; run < RUNS; run++) {
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
		counted_loop(fd, 0, 1);
		base = read_value(fd);
		EXPECT_LE(1, base);
		EXPECT_GE(2, base);
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
		counted_loop(fd, 0, 1 + LOOPS);
		more = read_value(fd);
		EXPECT_EQ(LOOP_BRANCHES(LOOPS), more - base);
	}
}

TEST_F(exact, branches_user)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE,
			      PERF_COUNT_HW_BRANCH_INSTRUCTIONS);
	int fd = perf_open(&attr, self->pid, self->cpu, -1, 0);

	ASSERT_LE(0, fd);
	expect_branches(_metadata, fd);
}

TEST_F(exact, raw_branches_user)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd = perf_open(&attr, self->pid, self->cpu, -1, 0);

	ASSERT_LE(0, fd);
	expect_branches(_metadata, fd);
}

/* The kernel's instructions are not counted, however many there are. */
TEST_F(exact, kernel_excluded)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open(&attr, self->pid, self->cpu, -1, 0);
	int run;

	ASSERT_LE(0, fd);
	for (run = 0; run < RUNS; run++) {
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
		counted_syscalls(fd, 0, 1000, SYS_getppid, NULL);
		EXPECT_EQ(SYSCALLS_INSTRUCTIONS(1000), read_value(fd));
	}
}

#define YIELD_INSTRUCTIONS	3

/* Yields the CPU whenever it runs, after a known number of instructions. */
static void yield_for_ever(void)
{
	asm volatile("1:\n\t"
		     "mov %[yield], %%eax\n\t"
		     "syscall\n\t"
		     "jmp 1b"
		     :
		     : [yield] "i" (SYS_sched_yield)
		     : "rax", "rcx", "r11", "memory");
}

#define SWITCHES	20

/*
 * Switches the event off the CPU and back on twenty times, and checks that no
 * count is lost or added. The task sleeps in between. An event of the CPU also
 * counts the task that runs meanwhile, which therefore executes a known number
 * of instructions.
 */
TEST_F(exact, context_switches)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	const struct timespec pause = { .tv_nsec = 1000000 };
	int fd = perf_open(&attr, self->pid, self->cpu, -1, 0);
	__u64 others = 0;
	pid_t other;

	ASSERT_LE(0, fd);
	if (variant->per_cpu) {
		other = fork_helper();
		ASSERT_LE(0, other);
		if (other == 0)
			yield_for_ever();
		/* The other task is ready once it has yielded the CPU. */
		sched_yield();
		sched_yield();
		counted_syscalls(fd, 0, SWITCHES, SYS_sched_yield, NULL);
		others = SWITCHES * YIELD_INSTRUCTIONS;
		EXPECT_EQ(0, kill(other, SIGKILL));
	} else {
		counted_syscalls(fd, 0, SWITCHES, SYS_nanosleep, &pause);
	}
	EXPECT_EQ(SYSCALLS_INSTRUCTIONS(SWITCHES) + others, read_value(fd));
}

/*
 * Counts kernel mode only: a long user loop adds almost nothing, and a thousand
 * system calls add at least a few instructions each. Interrupts and soft
 * interrupts also count, usually few instructions, but with KASAN sometimes
 * half as many as the loop. The loop is therefore repeated.
 */
TEST_F(exact, kernel_only)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	__u64 loop = NO_COUNT, calls;
	int fd, run;

	attr.exclude_user = 1;
	fd = perf_open(&attr, self->pid, self->cpu, -1, 0);
	ASSERT_LE(0, fd);

	for (run = 0; run < 10 && loop >= LOOP_INSTRUCTIONS(10 * LOOPS) / 2; run++) {
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
		counted_loop(fd, 0, 10 * LOOPS);
		loop = read_value(fd);
		EXPECT_LT(0, loop);
	}
	EXPECT_GT(LOOP_INSTRUCTIONS(10 * LOOPS) / 2, loop);

	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	counted_syscalls(fd, 0, 1000, SYS_getppid, NULL);
	calls = read_value(fd);
	EXPECT_LT(1000 * 10, calls);
	EXPECT_GT(1000 * 100000, calls);
}

/*
 * User, kernel and both, as three events in one group: the same write to
 * IA32_PERF_GLOBAL_CTRL starts and stops all three, so that the sum is exact.
 * On CPUs where counters start one after the other, the instructions in between
 * are missing.
 */
TEST_F(exact, user_and_kernel_make_both)
{
	struct perf_event_attr attr =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct group_count count;
	int both, user, kernel;
	long long difference;

	attr.read_format = READ_GROUP;
	both = perf_open(&attr, self->pid, self->cpu, -1, 0);
	ASSERT_LE(0, both);
	attr.disabled = 0;
	attr.exclude_kernel = 1;
	user = perf_open(&attr, self->pid, self->cpu, both, 0);
	ASSERT_LE(0, user);
	attr.exclude_kernel = 0;
	attr.exclude_user = 1;
	kernel = perf_open(&attr, self->pid, self->cpu, both, 0);
	ASSERT_LE(0, kernel);

	counted_syscalls(both, PERF_IOC_FLAG_GROUP, 1000, SYS_getppid, NULL);

	ASSERT_EQ(3 * 8 + 3 * 16, read(both, &count, sizeof(count)));
	ASSERT_EQ(3, count.nr);
	ASSERT_LT(0, count.running);
	EXPECT_EQ(SYSCALLS_INSTRUCTIONS(1000), count.event[1].value);
	EXPECT_LT(1000 * 10, count.event[2].value);
	difference = count.event[0].value - count.event[1].value - count.event[2].value;
	EXPECT_GE(counters_start_together() ? 0 : 1000, llabs(difference)) {
		TH_LOG("%lld", difference);
	}
}

/* Excluding both user and kernel mode is a valid request, with a count of 0. */
TEST_F(exact, no_mode)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct one_count count;
	int fd;

	attr.exclude_user = 1;
	fd = perf_open(&attr, self->pid, self->cpu, -1, 0);
	ASSERT_LE(0, fd);
	counted_loop(fd, 0, LOOPS);
	ASSERT_TRUE(read_one(fd, &count));
	EXPECT_EQ(0, count.value);
	EXPECT_LT(0, count.running);
}

/*
 * All general-purpose counters and up to three fixed ones count exactly at the
 * same time. AMD's CPUs have no fixed counters, virtual machines may have fewer.
 */
TEST_F(exact, every_counter)
{
	const __u64 config[] = {
		PERF_COUNT_HW_INSTRUCTIONS,
		PERF_COUNT_HW_CPU_CYCLES,
		PERF_COUNT_HW_REF_CPU_CYCLES,
	};
	struct perf_event_attr attr;
	struct one_count count;
	int fd[3 + 32];
	unsigned int i, gp = gp_counters(), fixed = fixed_counters();

	if (fixed > 3)
		fixed = 3;
	ASSERT_LT(0, gp);
	ASSERT_GE(32, gp);
	ASSERT_TRUE(own_counters());
	for (i = 0; i < fixed + gp; i++) {
		if (i < fixed)
			attr = counting_user(PERF_TYPE_HARDWARE, config[i]);
		else
			attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
		attr.exclude_kernel = i < fixed || may_count_user_alone(i - fixed);
		attr.disabled = i == 0;
		fd[i] = perf_open(&attr, self->pid, self->cpu,
				  i ? fd[0] : -1, 0);
		ASSERT_LE(0, fd[i]) {
			TH_LOG("event %u of %u: %s", i, fixed + gp, strerror(errno));
		}
	}

	counted_loop(fd[0], PERF_IOC_FLAG_GROUP, LOOPS);

	for (i = 0; i < fixed + gp; i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		EXPECT_EQ(count.enabled, count.running);
		EXPECT_LT(0, count.value);
		EXPECT_TRUE(!fixed || i != 0 || count.value == LOOP_INSTRUCTIONS(LOOPS));
		if (i < fixed)
			continue;
		/* SYSCALL may count as a branch. */
		EXPECT_LE(LOOP_BRANCHES(LOOPS), count.value);
		if (may_count_user_alone(i - fixed))
			EXPECT_GE(LOOP_BRANCHES(LOOPS) + 1, count.value);
	}
}

TEST_HARNESS_MAIN
