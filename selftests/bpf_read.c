// SPDX-License-Identifier: GPL-2.0
/*
 * A BPF program reads an event (perf_event_read_local()). It gets the same
 * count as read(), while the event counts, while it is disabled and after a
 * reset.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/bpf.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define LOOPS	100000UL
#define ROUNDS	50

/* Not in all versions of <linux/bpf.h>. */
#define READ_VALUE	55	/* BPF_FUNC_perf_event_read_value */

#define INSN(c, d, s, o, i) \
	((struct bpf_insn) { .code = (c), .dst_reg = (d), .src_reg = (s), \
			     .off = (o), .imm = (i) })

static int bpf(int cmd, union bpf_attr *attr)
{
	return syscall(SYS_bpf, cmd, attr, sizeof(*attr));
}

static int new_map(__u32 type, __u32 value_size, __u32 entries)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = sizeof(__u32),
		.value_size = value_size,
		.max_entries = entries,
	};

	return bpf(BPF_MAP_CREATE, &attr);
}

static int set_entry(int map, __u32 key, __u32 value)
{
	union bpf_attr attr = {
		.map_fd = map,
		.key = (unsigned long)&key,
		.value = (unsigned long)&value,
	};

	return bpf(BPF_MAP_UPDATE_ELEM, &attr);
}

/* Reads entry "this CPU" of events into the only entry of values. */
static int new_program(int events, int values)
{
	const struct bpf_insn program[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, events),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, -1),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_3, BPF_PSEUDO_MAP_VALUE, 0, values),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0,
		     sizeof(struct bpf_perf_event_value)),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, READ_VALUE),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	static char log[4096];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
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

/* Shared by the tests. */
struct reader {
	int events;
	int values;
	int program;
	int cpu;
};

FIXTURE(bpf_read)
{
	struct reader reader;
};

FIXTURE_SETUP(bpf_read)
{
	struct reader *reader = &self->reader;

	if (access("/proc/sys/kernel/unprivileged_bpf_disabled", F_OK))
		SKIP(return, "this kernel has no BPF");
	reader->cpu = sysconf(_SC_NPROCESSORS_ONLN) - 1;
	ASSERT_TRUE(run_on(reader->cpu));
	reader->events = new_map(BPF_MAP_TYPE_PERF_EVENT_ARRAY, sizeof(__u32),
				 reader->cpu + 1);
	ASSERT_LE(0, reader->events);
	reader->values = new_map(BPF_MAP_TYPE_ARRAY,
				 sizeof(struct bpf_perf_event_value), 1);
	ASSERT_LE(0, reader->values);
	reader->program = new_program(reader->events, reader->values);
	ASSERT_LE(0, reader->program);
}

FIXTURE_TEARDOWN(bpf_read)
{
}

/* Returns the count that the program has read, or NO_COUNT. */
static __u64 read_by_bpf(const struct reader *reader)
{
	union bpf_attr run = { .test = { .prog_fd = reader->program } };
	struct bpf_perf_event_value value;
	__u32 key = 0;
	union bpf_attr look = {
		.map_fd = reader->values,
		.key = (unsigned long)&key,
		.value = (unsigned long)&value,
	};

	if (bpf(BPF_PROG_TEST_RUN, &run) || run.test.retval ||
	    bpf(BPF_MAP_LOOKUP_ELEM, &look))
		return NO_COUNT;
	return value.counter;
}

static void expect_same(struct __test_metadata *_metadata, int fd,
			const struct reader *reader)
{
	__u64 by_bpf, told, last;
	int round;

	ASSERT_EQ(0, set_entry(reader->events, reader->cpu, fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	last = 0;
	for (round = 0; round < ROUNDS; round++) {
		by_bpf = read_by_bpf(reader);
		told = read_value(fd);
		EXPECT_NE(NO_COUNT, by_bpf);
		EXPECT_LT(last, by_bpf);
		EXPECT_LT(by_bpf, told);
		EXPECT_GT(by_bpf + 10000, told);
		last = told;
	}
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	EXPECT_EQ(read_value(fd), read_by_bpf(reader));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	EXPECT_EQ(0, read_by_bpf(reader));
	counted_loop(fd, 0, LOOPS);
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), read_by_bpf(reader));
}

TEST_F(bpf_read, task)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open_self(&attr, -1);

	ASSERT_LE(0, fd);
	expect_same(_metadata, fd, &self->reader);
}

TEST_F(bpf_read, cpu)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open(&attr, -1, self->reader.cpu, -1, 0);

	ASSERT_LE(0, fd);
	ASSERT_TRUE(take_cpu(true));
	expect_same(_metadata, fd, &self->reader);
}

TEST_HARNESS_MAIN
