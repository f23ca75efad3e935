// SPDX-License-Identifier: GPL-2.0
/*
 * Tests the skid of a PMI: on the emulated PMU, at most the rest of the basic
 * block. On hardware, the skid may be longer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define PERIOD		10007
#define SAMPLES		200
#define PAGES		16

/* Instructions of the loop, which is one basic block. */
#define BLOCK		20

static void block_loop(unsigned long n)
{
	asm volatile(".p2align 6\n"
		     ".globl block_start, block_end\n"
		     "block_start:\n\t"
		     ".rept 18\n\t"
		     "nop\n\t"
		     ".endr\n\t"
		     "dec %[n]\n\t"
		     "jnz block_start\n"
		     "block_end:"
		     : [n] "+r" (n) : : "cc");
}

extern const char block_start[], block_end[];

struct sample {
	struct perf_event_header header;
	__u64 ip;
	__u64 value;
};

FIXTURE(skid)
{
	struct perf_event_mmap_page *page;
	struct sample_limits limits;
	int fd;
};

FIXTURE_VARIANT(skid)
{
	__u64 config;
};

/* Instructions on a fixed counter. */
FIXTURE_VARIANT_ADD(skid, fixed)
{
	.config = RAW_INSTRUCTIONS,
};

/* The same with a CMASK, which only general-purpose counters have. */
FIXTURE_VARIANT_ADD(skid, general)
{
	.config = RAW_INSTRUCTIONS | 1 << 24,	/* CMASK 1: at most one per cycle */
};

FIXTURE_SETUP(skid)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, variant->config);

	if (!is_tcg())
		SKIP(return, "not the emulated PMU");
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_READ;
	attr.read_format = 0;
	self->fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, self->fd);
	self->page = map_buffer(self->fd, PAGES);
	ASSERT_NE(MAP_FAILED, self->page);
	ASSERT_TRUE(lift_sample_limits(&self->limits));
}

FIXTURE_TEARDOWN(skid)
{
	close(self->fd);
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

TEST_F(skid, at_most_the_rest_of_the_block)
{
	const struct sample *sample;
	unsigned int seen = 0, in_loop = 0;
	__u64 worst = 0;

	ioctl(self->fd, PERF_EVENT_IOC_ENABLE, 0);
	block_loop((unsigned long)SAMPLES * PERIOD / BLOCK);
	ioctl(self->fd, PERF_EVENT_IOC_DISABLE, 0);

	while ((sample = take_sample(self->page))) {
		seen++;
		if (sample->ip < (unsigned long)block_start ||
		    sample->ip >= (unsigned long)block_end)
			continue;
		in_loop++;
		/* Each overflow is at a multiple of the period. */
		if (sample->value % PERIOD > worst)
			worst = sample->value % PERIOD;
	}
	TH_LOG("%u samples, %u in the loop, the worst %llu late", seen, in_loop, worst);
	EXPECT_LE(SAMPLES / 2, in_loop);
	EXPECT_GT(BLOCK, worst);
}

#define SYSCALLS	2000
#define PERIODS		32
#define SYSCALL_PERIOD	1500
#define SYSCALL_PAGES	8

/* The kernel returns to late_end. */
static void syscall_loop(unsigned long n)
{
	asm volatile(".globl late_end\n"
		     "1:\tmov %[number], %%eax\n\t"
		     "syscall\n"
		     "late_end:\n\t"
		     "dec %[n]\n\t"
		     "jnz 1b"
		     : [n] "+r" (n)
		     : [number] "i" (SYS_getppid)
		     : "rax", "rcx", "r11", "cc", "memory");
}

extern const char late_end[];

struct late {
	unsigned int samples, at_end, elsewhere;
};

/*
 * Samples the kernel's instructions. Adds the number of samples to @late, by their
 * address in the program.
 */
static bool sample_kernel(unsigned int period, struct late *late)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	const size_t size = (1 + SYSCALL_PAGES) * 4096;
	const struct sample *sample;
	struct perf_event_mmap_page *page;
	int fd;

	attr.exclude_kernel = 0;
	attr.exclude_user = 1;
	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_READ;
	attr.read_format = 0;
	fd = perf_open_self(&attr, -1);
	if (fd < 0)
		return false;
	page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED)
		return false;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	syscall_loop(SYSCALLS);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	while ((sample = take_sample(page))) {
		late->samples++;
		if (sample->ip == (unsigned long)late_end)
			late->at_end++;
		else if ((long)sample->ip > 0)
			late->elsewhere++;
	}
	munmap(page, size);
	close(fd);
	return true;
}

/*
 * If the overflow is in the last block of the kernel, the PMI is at the return
 * address in the program, not an instruction later. A single period might stay
 * in step with the loop and never hit that block.
 */
TEST(late_by_a_change_of_privilege)
{
	/*
	 * If the PMI itself takes longer than the period, every overflow is in
	 * the PMI.
	 */
	unsigned int period = checks_itself() ? 20 * SYSCALL_PERIOD : SYSCALL_PERIOD;
	struct sample_limits limits;
	struct late late = { };

	if (!is_tcg())
		SKIP(return, "not the emulated PMU");
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_TRUE(lift_sample_limits(&limits));
	for (unsigned int i = 0; i < PERIODS; i++)
		EXPECT_TRUE(sample_kernel(period + i, &late));
	EXPECT_TRUE(put_back_sample_limits(&limits));
	TH_LOG("%u samples, %u where the kernel is left, %u elsewhere in the program",
	       late.samples, late.at_end, late.elsewhere);
	EXPECT_LT(0, late.at_end);
	/* A tick may return from the kernel to any instruction. */
	EXPECT_GE(4, late.elsewhere);
}

TEST_HARNESS_MAIN
