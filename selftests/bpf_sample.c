// SPDX-License-Identifier: GPL-2.0
/*
 * Tests samples that a BPF program handles in the kernel: the program sees each
 * sample, makes a histogram of the addresses, and decides which samples go to
 * the buffer.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>
#include <stddef.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define PAGE		4096UL
#define PAGES		64UL
#define SAMPLES		1000
#define PERIOD		5000
/*
 * Parts of the loop: blocks of four instructions in five bytes; of the last block,
 * which has seven, only these count. The last part is everything else.
 */
#define BLOCKS		8
#define BLOCK_BYTES	5
#define LENGTH		(BLOCKS * 4)
#define ELSEWHERE	BLOCKS

#define INSN(c, d, s, o, i) \
	((struct bpf_insn) { .code = (c), .dst_reg = (d), .src_reg = (s), \
			     .off = (o), .imm = (i) })

/* Offsets in struct bpf_perf_event_data, which begins with struct pt_regs. */
#define CTX_IP		(16 * 8)
#define CTX_PERIOD	(21 * 8)

/* Ends each block with a jump, as the emulated PMU interrupts between blocks. */
static void __attribute__((__noipa__)) block_loop(unsigned long n)
{
	asm volatile(".p2align 6\n"
		     ".globl block_start\n"
		     "block_start:\n\t"
		     ".rept 7\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "jmp .+2\n\t"
		     ".endr\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "dec %[n]\n\t"
		     "jnz block_start"
		     : [n] "+r" (n) : : "cc");
}

extern const char block_start[];

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

/* The program's statistics of a part of the loop. */
struct bin {
	__u64 samples;
	__u64 periods;
};

static int new_histogram(void)
{
	union bpf_attr attr = {
		.map_type = BPF_MAP_TYPE_ARRAY,
		.key_size = sizeof(__u32),
		.value_size = sizeof(struct bin),
		.max_entries = BLOCKS + 1,
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

static void read_histogram(struct __test_metadata *_metadata, int map, struct bin bin[BLOCKS + 1])
{
	__u32 key;

	for (key = 0; key <= BLOCKS; key++) {
		union bpf_attr look = {
			.map_fd = map,
			.key = (unsigned long)&key,
			.value = (unsigned long)&bin[key],
		};

		ASSERT_EQ(0, bpf(BPF_MAP_LOOKUP_ELEM, &look));
	}
}

#define KEEP_NONE	-1
#define KEEP_ALL	-2

/*
 * Adds each sample to its part of the histogram, and drops the sample unless
 * its block is @keep.
 */
static int new_program(int histogram, int keep)
{
	const __s32 start = (unsigned long)block_start;
	const struct bpf_insn program[] = {
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_6, BPF_REG_1, 0, 0),
		/* r7 = the part of the loop */
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_7, BPF_REG_6, CTX_IP, 0),
		INSN(BPF_ALU64 | BPF_SUB | BPF_K, BPF_REG_7, 0, 0, start),
		INSN(BPF_ALU64 | BPF_DIV | BPF_K, BPF_REG_7, 0, 0, BLOCK_BYTES),
		INSN(BPF_JMP | BPF_JLT | BPF_K, BPF_REG_7, 0, 1, BLOCKS),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_7, 0, 0, ELSEWHERE),
		INSN(BPF_STX | BPF_MEM | BPF_W, BPF_REG_10, BPF_REG_7, -4, 0),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, histogram),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0),
		INSN(BPF_ALU64 | BPF_ADD | BPF_K, BPF_REG_2, 0, 0, -4),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_map_lookup_elem),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_0, 0, 4, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1,
		     offsetof(struct bin, samples), BPF_ADD),
		INSN(BPF_LDX | BPF_MEM | BPF_DW, BPF_REG_1, BPF_REG_6, CTX_PERIOD, 0),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_0, BPF_REG_1,
		     offsetof(struct bin, periods), BPF_ADD),
		/* 0 drops the sample */
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 1),
		INSN(BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_7, 0, 1, keep),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, keep == KEEP_ALL),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static char log[4096];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_PERF_EVENT,
		.insns = (unsigned long)program,
		.insn_cnt = ARRAY_SIZE(program),
		.license = (unsigned long)"GPL",
		.log_buf = (unsigned long)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd = bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		ksft_print_msg("%s", log);
	return fd;
}

struct sample {
	struct perf_event_header header;
	__u64 ip;
};

/* The samples in the buffer. */
struct seen {
	unsigned int samples, in_block[BLOCKS];
	__u64 ns;
};

FIXTURE(bpf_sample)
{
	struct sample_limits limits;
	int histogram;
};

FIXTURE_SETUP(bpf_sample)
{
	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
		SKIP(return, "this kernel has no BPF");
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_TRUE(lift_sample_limits(&self->limits));
	self->histogram = new_histogram();
	ASSERT_LE(0, self->histogram);
}

FIXTURE_TEARDOWN(bpf_sample)
{
	close(self->histogram);
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

/* Samples the loop; attaches the program to the event, unless it is -1. */
static void sample_loop(struct __test_metadata *_metadata, __u64 config3, int program,
			struct seen *seen)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	struct perf_event_mmap_page *page;
	const struct sample *sample;
	unsigned long passes = (SAMPLES * PERIOD + PERIOD / 2) / LENGTH;
	__u64 start, block;
	int fd;

	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP;
	attr.config3 = config3;
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	page = map_buffer(fd, PAGES);
	ASSERT_NE(MAP_FAILED, page);
	if (program >= 0)
		ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_SET_BPF, program));
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	start = now_ns();
	block_loop(passes);
	seen->ns = now_ns() - start;
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);

	seen->samples = 0;
	memset(seen->in_block, 0, sizeof(seen->in_block));
	while ((sample = take_sample(page))) {
		seen->samples++;
		block = (sample->ip - (unsigned long)block_start) / BLOCK_BYTES;
		if (block < BLOCKS)
			seen->in_block[block]++;
	}
	munmap(page, (PAGES + 1) * PAGE);
	close(fd);
}

static struct bin total(const struct bin bin[BLOCKS + 1])
{
	struct bin total = {};
	unsigned int i;

	for (i = 0; i <= BLOCKS; i++) {
		total.samples += bin[i].samples;
		total.periods += bin[i].periods;
	}
	return total;
}

/* The program counts each sample and drops it. */
TEST_F(bpf_sample, all_dropped)
{
	int program = new_program(self->histogram, KEEP_NONE);
	struct bin bin[BLOCKS + 1], all;
	struct seen without, with;

	ASSERT_LE(0, program);
	sample_loop(_metadata, 0, -1, &without);
	EXPECT_EQ(SAMPLES, without.samples);
	sample_loop(_metadata, 0, program, &with);
	EXPECT_EQ(0, with.samples);
	read_histogram(_metadata, self->histogram, bin);
	all = total(bin);
	EXPECT_EQ(SAMPLES, all.samples);
	EXPECT_EQ((__u64)SAMPLES * PERIOD, all.periods);
	close(program);
}

/* The program and the buffer see the same samples. */
TEST_F(bpf_sample, all_kept)
{
	int program = new_program(self->histogram, KEEP_ALL);
	struct bin bin[BLOCKS + 1];
	struct seen seen;
	unsigned int i;

	ASSERT_LE(0, program);
	sample_loop(_metadata, 0, program, &seen);
	read_histogram(_metadata, self->histogram, bin);
	EXPECT_EQ(SAMPLES, seen.samples);
	for (i = 0; i < BLOCKS; i++)
		EXPECT_EQ(seen.in_block[i], bin[i].samples) TH_LOG("block %u", i);
	close(program);
}

/* Samples of one block are kept, all others are dropped. */
TEST_F(bpf_sample, some_kept)
{
	const unsigned int keep = 3;
	int program = new_program(self->histogram, keep);
	struct bin bin[BLOCKS + 1];
	struct seen seen;

	ASSERT_LE(0, program);
	sample_loop(_metadata, 0, program, &seen);
	read_histogram(_metadata, self->histogram, bin);
	EXPECT_EQ(SAMPLES, total(bin).samples);
	EXPECT_LT(0, seen.samples);
	EXPECT_GT(SAMPLES / 2, seen.samples);
	EXPECT_EQ(bin[keep].samples, seen.samples);
	EXPECT_EQ(seen.samples, seen.in_block[keep]);
	close(program);
}

/* With random periods, the program sees each sample's true period. */
TEST_F(bpf_sample, random_periods)
{
	const __u64 mask = 0x3ff;
	int program = new_program(self->histogram, KEEP_NONE);
	struct bin bin[BLOCKS + 1], all;
	struct seen seen;

	if (!on_rpmu())
		SKIP(return, "only rpmu has random periods");
	ASSERT_LE(0, program);
	sample_loop(_metadata, 1ULL << 32 | mask, program, &seen);
	read_histogram(_metadata, self->histogram, bin);
	all = total(bin);
	EXPECT_LT(SAMPLES * PERIOD / (PERIOD + mask), all.samples);
	EXPECT_GT(SAMPLES, all.samples);
	EXPECT_LT(((__u64)SAMPLES - 2) * PERIOD, all.periods);
	EXPECT_GE(((__u64)SAMPLES + 1) * PERIOD, all.periods);
	close(program);
}

/*
 * Reports the cost of a sample in nanoseconds: with --icount, the kernel's
 * instructions. Checks the order only: a dropped sample must cost less than a
 * sample that goes to both the program and the buffer.
 */
TEST_F(bpf_sample, cost)
{
	int drop = new_program(self->histogram, KEEP_NONE);
	int keep = new_program(self->histogram, KEEP_ALL);
	struct seen buffer, dropped, both;
	__u64 loop, start;

	ASSERT_LE(0, drop);
	ASSERT_LE(0, keep);
	/* Warm up: load all code and pages. */
	sample_loop(_metadata, 0, keep, &both);
	start = now_ns();
	block_loop((SAMPLES * PERIOD + PERIOD / 2) / LENGTH);
	loop = now_ns() - start;
	sample_loop(_metadata, 0, -1, &buffer);
	sample_loop(_metadata, 0, drop, &dropped);
	sample_loop(_metadata, 0, keep, &both);
	TH_LOG("ns per sample: buffer %lld, histogram %lld, both %lld",
	       (long long)(buffer.ns - loop) / SAMPLES, (long long)(dropped.ns - loop) / SAMPLES,
	       (long long)(both.ns - loop) / SAMPLES);
	EXPECT_LT(dropped.ns, both.ns);
	close(drop);
	close(keep);
}

TEST_HARNESS_MAIN
