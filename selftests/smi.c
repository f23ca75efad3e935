// SPDX-License-Identifier: GPL-2.0
/*
 * Tests freeze_on_smi, which keeps the firmware's instructions in SMM from being
 * counted, and samples beside SMIs. A write to the APM command port raises an SMI
 * on the first CPU; the firmware's handler ignores unknown commands.
 */
#define _GNU_SOURCE
#include <sys/io.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define FREEZE		CPU_PMU "/freeze_on_smi"
#define APM_COMMAND	0xb2
/* A write to this port raises no SMI. */
#define APM_STATUS	0xb3
#define NO_COMMAND	0x55

#define SMIS		10
#define ROUNDS		50
#define PERIOD		1009
#define PAGES		64UL
#define PAGE		4096UL
/* Fewer instructions than any SMI handler executes. */
#define HANDLER		10

FIXTURE(smi)
{
	char freeze[8];
};

FIXTURE_SETUP(smi)
{
	if (!is_tcg())
		SKIP(return, "only the emulated machine's SMI handler is known");
	if (access(FREEZE, F_OK))
		SKIP(return, "no freeze_on_smi");
	ASSERT_TRUE(read_line(FREEZE, self->freeze, sizeof(self->freeze)));
	ASSERT_TRUE(run_on(0));
	ASSERT_EQ(0, ioperm(APM_COMMAND, 2, 1));
}

FIXTURE_TEARDOWN(smi)
{
	if (self->freeze[0])
		EXPECT_TRUE(write_line(FREEZE, self->freeze));
}

/*
 * Returns the event's lowest count in ROUNDS times SMIS writes to the port,
 * because interrupts in between increase the count.
 */
static __u64 least_count(int fd, unsigned short port)
{
	__u64 least = NO_COUNT, count;
	int round, i;

	for (round = 0; round < ROUNDS; round++) {
		if (ioctl(fd, PERF_EVENT_IOC_RESET, 0) || ioctl(fd, PERF_EVENT_IOC_ENABLE, 0))
			return NO_COUNT;
		for (i = 0; i < SMIS; i++)
			outb(NO_COMMAND, port);
		if (ioctl(fd, PERF_EVENT_IOC_DISABLE, 0))
			return NO_COUNT;
		count = read_value(fd);
		if (count < least)
			least = count;
	}
	return least;
}

static void expect_handler(struct __test_metadata *_metadata, __u32 type, __u64 config, bool user,
			   bool counted)
{
	struct perf_event_attr attr = counting(type, config);
	__u64 with, without;
	int fd;

	attr.exclude_user = !user;
	attr.exclude_kernel = user;
	fd = perf_open(&attr, -1, 0, -1, 0);
	ASSERT_LE(0, fd);
	without = least_count(fd, APM_STATUS);
	with = least_count(fd, APM_COMMAND);
	ASSERT_NE(NO_COUNT, without);
	ASSERT_NE(NO_COUNT, with);
	if (counted) {
		EXPECT_LT(without + SMIS * HANDLER, with);
	} else {
		/* Allow less than one instruction for each SMI. */
		EXPECT_GT(without + SMIS, with);
	}
	TH_LOG("%llu with %u SMIs, %llu without", with, SMIS, without);
	close(fd);
}

/*
 * Checks a fixed and a general-purpose counter. SMM is privileged, so an event
 * that counts only user mode never counts the handler.
 */
static void expect_all(struct __test_metadata *_metadata, bool counted)
{
	expect_handler(_metadata, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false, counted);
	expect_handler(_metadata, PERF_TYPE_RAW, RAW_INSTRUCTIONS | 1 << 24, false, counted);
	expect_handler(_metadata, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, true, false);
}

TEST_F(smi, counted)
{
	ASSERT_TRUE(write_line(FREEZE, "0"));
	expect_all(_metadata, true);
}

TEST_F(smi, frozen)
{
	ASSERT_TRUE(write_line(FREEZE, "1"));
	expect_all(_metadata, false);
	ASSERT_TRUE(write_line(FREEZE, "0"));
	expect_all(_metadata, true);
}

/*
 * An event of user mode takes all samples, and counts nothing else, while SMIs
 * come in the middle.
 */
static void expect_samples(struct __test_metadata *_metadata)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct perf_event_mmap_page *page;
	__u64 samples = 0, count;
	int fd, i;

	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP;
	fd = perf_open(&attr, 0, -1, -1, 0);
	ASSERT_LE(0, fd);
	page = map_buffer(fd, PAGES);
	ASSERT_NE(MAP_FAILED, page);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (i = 0; i < 1000; i++) {
		outb(NO_COMMAND, APM_COMMAND);
		branch_loop(PERIOD / 10);
	}
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	count = read_value(fd);
	while (take_sample(page))
		samples++;
	EXPECT_LE(200, samples);
	EXPECT_EQ(count / PERIOD, samples);
	munmap(page, (PAGES + 1) * PAGE);
	close(fd);
}

TEST_F(smi, samples)
{
	struct sample_limits limits;

	ASSERT_TRUE(lift_sample_limits(&limits));
	ASSERT_TRUE(write_line(FREEZE, "0"));
	expect_samples(_metadata);
	ASSERT_TRUE(write_line(FREEZE, "1"));
	expect_samples(_metadata);
	EXPECT_TRUE(put_back_sample_limits(&limits));
}

TEST_HARNESS_MAIN
