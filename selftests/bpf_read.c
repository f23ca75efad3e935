// SPDX-License-Identifier: GPL-2.0
/*
 * Tests perf_event_read_local(), with which a BPF program reads an event. The
 * program must get the same count as read(): while the event counts, while it
 * is disabled, after a reset, and when the program runs right after the PMU has
 * been enabled.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stddef.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define LOOPS	100000UL
#define ROUNDS	50

/* Missing in some versions of <linux/bpf.h>. */
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

/* The count that a program has read, and the number of its runs. */
struct seen {
	struct bpf_perf_event_value value;
	__u64 runs;
};

/*
 * Loads a program that reads the event in its CPU's entry of @events into the
 * only entry of @values. @function is the BTF id of the kernel function to whose
 * end the program can be attached; with 0, the test runs the program.
 */
static int new_program(int events, int values, __u32 function)
{
	const struct bpf_insn program[] = {
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_6, BPF_PSEUDO_MAP_VALUE, 0, values),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_1, 0, 0, 1),
		INSN(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_6, BPF_REG_1,
		     offsetof(struct seen, runs), BPF_ADD),
		INSN(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_FD, 0, events),
		INSN(0, 0, 0, 0, 0),
		INSN(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, -1),
		INSN(BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_3, BPF_REG_6, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0,
		     sizeof(struct bpf_perf_event_value)),
		INSN(BPF_JMP | BPF_CALL, 0, 0, 0, READ_VALUE),
		/* The result of an attached program must be 0. */
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
		INSN(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0),
		INSN(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
	};
	struct bpf_insn copy[ARRAY_SIZE(program)];
	static char log[4096];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_RAW_TRACEPOINT,
		.insns = (unsigned long)copy,
		.insn_cnt = ARRAY_SIZE(program) - 2,
		.license = (unsigned long)"GPL",
		.log_buf = (unsigned long)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd;

	memcpy(copy, program, sizeof(copy));
	if (function) {
		copy[10] = program[11];
		copy[11] = program[12];
		attr.insn_cnt = ARRAY_SIZE(program) - 1;
		attr.prog_type = BPF_PROG_TYPE_TRACING;
		attr.expected_attach_type = BPF_TRACE_FEXIT;
		attr.attach_btf_id = function;
	}
	fd = bpf(BPF_PROG_LOAD, &attr);
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

/* Returns the count and the number of runs that the program has stored. */
static struct seen seen_by(const struct reader *reader)
{
	struct seen seen = { .value.counter = NO_COUNT };
	__u32 key = 0;
	union bpf_attr look = {
		.map_fd = reader->values,
		.key = (unsigned long)&key,
		.value = (unsigned long)&seen,
	};

	bpf(BPF_MAP_LOOKUP_ELEM, &look);
	return seen;
}

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
				 sizeof(struct seen), 1);
	ASSERT_LE(0, reader->values);
	reader->program = new_program(reader->events, reader->values, 0);
	ASSERT_LE(0, reader->program);
}

FIXTURE_TEARDOWN(bpf_read)
{
}

/* Returns the count that the program has read, or NO_COUNT. */
static __u64 read_by_bpf(const struct reader *reader)
{
	union bpf_attr run = { .test = { .prog_fd = reader->program } };

	if (bpf(BPF_PROG_TEST_RUN, &run) || run.test.retval)
		return NO_COUNT;
	return seen_by(reader).value.counter;
}

static void expect_same(struct __test_metadata *_metadata, int fd,
			const struct reader *reader)
{
	__u64 by_bpf, by_read, last;
	int round;

	ASSERT_EQ(0, set_entry(reader->events, reader->cpu, fd));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	last = 0;
	for (round = 0; round < ROUNDS; round++) {
		by_bpf = read_by_bpf(reader);
		by_read = read_value(fd);
		EXPECT_NE(NO_COUNT, by_bpf);
		EXPECT_LT(last, by_bpf);
		EXPECT_LT(by_bpf, by_read);
		EXPECT_GT(by_bpf + 10000, by_read);
		last = by_read;
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

/* Returns the size of what follows struct btf_type, which depends on the type's kind. */
static long bytes_after(const struct btf_type *type)
{
	long vlen = BTF_INFO_VLEN(type->info);

	switch (BTF_INFO_KIND(type->info)) {
	case BTF_KIND_INT:
	case BTF_KIND_VAR:
	case BTF_KIND_DECL_TAG:
		return 4;
	case BTF_KIND_ARRAY:
		return sizeof(struct btf_array);
	case BTF_KIND_STRUCT:
	case BTF_KIND_UNION:
		return vlen * sizeof(struct btf_member);
	case BTF_KIND_DATASEC:
	case BTF_KIND_ENUM64:
		return vlen * 12;
	case BTF_KIND_ENUM:
	case BTF_KIND_FUNC_PROTO:
		return vlen * 8;
	default:
		return 0;
	}
}

/* Returns the BTF id of a function of the kernel, 0 if there is none. */
static __u32 id_of_function(const char *name)
{
	int fd = open("/sys/kernel/btf/vmlinux", O_RDONLY);
	long size = 0, got;
	char *btf = NULL;
	const struct btf_header *header;
	const char *at, *end, *strings;
	__u32 id = 1;

	if (fd < 0)
		return 0;
	do {
		btf = realloc(btf, size + (1 << 20));
		if (!btf)
			return 0;
		got = read(fd, btf + size, 1 << 20);
		size += got > 0 ? got : 0;
	} while (got > 0);
	close(fd);
	header = (const void *)btf;
	at = btf + header->hdr_len + header->type_off;
	end = at + header->type_len;
	strings = btf + header->hdr_len + header->str_off;
	for (; at < end; id++) {
		const struct btf_type *type = (const void *)at;

		if (BTF_INFO_KIND(type->info) == BTF_KIND_FUNC &&
		    strcmp(strings + type->name_off, name) == 0)
			break;
		at += sizeof(*type) + bytes_after(type);
	}
	id = at < end ? id : 0;
	free(btf);
	return id;
}

/*
 * dynolog's bperf attaches a program to the end of x86_pmu_enable(). It runs
 * each time after the PMU has been enabled and reads the counts at that moment.
 */
TEST_F(bpf_read, after_enable)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	struct reader *reader = &self->reader;
	__u32 entry = reader->cpu;
	union bpf_attr open = {}, entry_of_map = {
		.map_fd = reader->events,
		.key = (unsigned long)&entry,
	};
	struct seen before, after;
	__u32 function;
	__u64 by_read, last = 0;
	int fd, other, link, round;

	if (!access("/sys/kernel/btf/vmlinux", F_OK))
		function = id_of_function("x86_pmu_enable");
	else
		SKIP(return, "this kernel has no BTF");
	ASSERT_NE(0, function);
	fd = perf_open(&attr, -1, reader->cpu, -1, 0);
	ASSERT_LE(0, fd);
	other = perf_open(&attr, -1, reader->cpu, -1, 0);
	ASSERT_LE(0, other);
	ASSERT_EQ(0, set_entry(reader->events, reader->cpu, fd));
	reader->program = new_program(reader->events, reader->values, function);
	ASSERT_LE(0, reader->program);
	open.raw_tracepoint.prog_fd = reader->program;
	link = bpf(BPF_RAW_TRACEPOINT_OPEN, &open);
	ASSERT_LE(0, link);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (round = 0; round < ROUNDS; round++) {
		before = seen_by(reader);
		ASSERT_EQ(0, ioctl(other, round % 2 ? PERF_EVENT_IOC_DISABLE :
						      PERF_EVENT_IOC_ENABLE, 0));
		after = seen_by(reader);
		by_read = read_value(fd);
		EXPECT_LT(before.runs, after.runs);
		EXPECT_LT(last, after.value.counter);
		EXPECT_LT(after.value.counter, by_read);
		last = by_read;
	}
	close(link);
	close(reader->program);
	/* A detached program does not run any more. */
	usleep(20000);
	before = seen_by(reader);
	ASSERT_EQ(0, ioctl(other, PERF_EVENT_IOC_ENABLE, 0));
	EXPECT_EQ(before.runs, seen_by(reader).runs);
	/*
	 * The program keeps the map for a while. Remove the event from it,
	 * because the event holds a reference to the driver.
	 */
	ASSERT_EQ(0, bpf(BPF_MAP_DELETE_ELEM, &entry_of_map));
	close(fd);
	close(other);
	usleep(200000);
}

TEST_HARNESS_MAIN
