// SPDX-License-Identifier: GPL-2.0
/*
 * Tests attributes that perf_event_open() refuses, and the errno of each. Both
 * drivers must return the errno of the built-in driver of Linux 7.3. The table
 * includes refusals of the perf core, which would change if a driver were
 * registered with another type or other capabilities.
 */
#define _GNU_SOURCE
#include "kselftest.h"
#include "perf_util.h"

#define HW(id)		.type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_##id
#define RAW(value)	.type = PERF_TYPE_RAW, .config = (value)
#define CACHE(value)	.type = PERF_TYPE_HW_CACHE, .config = (value)

/* Requirements of a row. The row is skipped if they are not met. */
enum needs { NOTHING, LATENCY, FRONT_END, OFFCORE, NO_LBR, NO_TSX, NO_SUCH_EVENT, INTEL, NOT_15H };

/* Opened for this task on any CPU, so the error can only be in attr. */
static const struct {
	const char *name;
	int expected;			/* errno, 0 for success */
	struct perf_event_attr attr;	/* size 0: the correct one is filled in */
	enum needs needs;
} bad_attr[] = {
	/* Two valid attrs, for comparison with the rows below. */
	{ "control", 0, .attr = { HW(INSTRUCTIONS) } },
	{ "control_raw", 0, .attr = { RAW(RAW_INSTRUCTIONS) } },

	/* Perf core: perf_copy_attr() and the start of perf_event_open(). */
	{ "size_too_small", E2BIG, .attr = { HW(INSTRUCTIONS), .size = 8 } },
	{ "size_beyond_page", E2BIG,
	  .attr = { HW(INSTRUCTIONS), .size = 4097 } },
	{ "reserved_2", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .__reserved_2 = 1 } },
	{ "sample_type", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_type = 1ULL << 40 } },
	{ "read_format", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .read_format = 1ULL << 40 } },
	{ "weight_twice", EINVAL,
	  .attr = { HW(INSTRUCTIONS),
		    .sample_type = PERF_SAMPLE_WEIGHT | PERF_SAMPLE_WEIGHT_STRUCT } },
	{ "inherit_thread_alone", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .inherit_thread = 1 } },
	{ "enable_and_remove_on_exec", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .enable_on_exec = 1, .remove_on_exec = 1 } },
	{ "sigtrap_alone", EINVAL, .attr = { HW(INSTRUCTIONS), .sigtrap = 1 } },
	{ "period_bit_63", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_period = 1ULL << 63 } },
	{ "freq_too_high", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .freq = 1, .sample_freq = ~0ULL } },
	{ "regs_user_without_mask", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_type = PERF_SAMPLE_REGS_USER } },
	{ "stack_user_unaligned", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_type = PERF_SAMPLE_STACK_USER,
		    .sample_stack_user = 4 } },
	{ "branch_type_none", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_type = PERF_SAMPLE_BRANCH_STACK } },
	{ "clockid", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .use_clockid = 1, .clockid = 99 } },

	/* Types, some of which reach the driver. */
	{ "type_unknown", ENOENT, .attr = { .type = 4711 } },
	{ "hw_extended_right", 0,
	  .attr = { .type = PERF_TYPE_HARDWARE,
		    .config = (__u64)PERF_TYPE_RAW << 32 | PERF_COUNT_HW_INSTRUCTIONS } },
	{ "hw_extended_software", ENOENT,
	  .attr = { .type = PERF_TYPE_HARDWARE,
		    .config = (__u64)PERF_TYPE_SOFTWARE << 32 | PERF_COUNT_HW_INSTRUCTIONS } },

	/* The ten generic events: x86_setup_perfctr(). */
	{ "hw_eleventh", EINVAL,
	  .attr = { .type = PERF_TYPE_HARDWARE, .config = PERF_COUNT_HW_MAX } },
	{ "hw_far_out", EINVAL,
	  .attr = { .type = PERF_TYPE_HARDWARE, .config = 0xffffffff } },
	/* Haswell and later have no event for these two. */
	{ "hw_stalled_frontend", ENOENT,
	  .attr = { HW(STALLED_CYCLES_FRONTEND) }, .needs = NO_SUCH_EVENT },
	{ "hw_stalled_backend", ENOENT,
	  .attr = { HW(STALLED_CYCLES_BACKEND) }, .needs = NO_SUCH_EVENT },

	/* Raw: bits outside X86_RAW_EVENT_MASK are dropped, not refused. */
	{ "raw_control_bits", 0, .attr = { RAW(RAW_INSTRUCTIONS | 0x7b0000) } },
	{ "raw_high_bits", 0,
	  .attr = { RAW(RAW_INSTRUCTIONS | 0xffffffc000000000) } },
	{ "raw_edge_inv_cmask", 0,
	  .attr = { RAW(RAW_INSTRUCTIONS | 1 << 18 | 1 << 23 | 0x10 << 24) } },
	{ "raw_config1_unused", 0,
	  .attr = { RAW(RAW_INSTRUCTIONS), .config1 = ~0ULL } },
	{ "raw_config2_unused", 0,
	  .attr = { RAW(RAW_INSTRUCTIONS), .config2 = ~0ULL } },
	{ "raw_in_tx", 0,
	  .attr = { RAW(INTEL_RAW_BRANCHES | 3ULL << 32) }, .needs = NO_TSX },
	/* Privileged: intel_pmu_hw_config() asks perf_allow_cpu(). */
	{ "raw_any_thread", 0, .attr = { RAW(INTEL_RAW_BRANCHES | 1 << 21) } },

	/* Offcore response: a value outside the register's valid bits. */
	{ "offcore_0_reserved", EINVAL,
	  .attr = { RAW(0x01b7), .config1 = 1ULL << 63 }, .needs = OFFCORE },
	{ "offcore_1_reserved", EINVAL,
	  .attr = { RAW(0x01bb), .config1 = 1ULL << 63 }, .needs = OFFCORE },

	{ "offcore_0_zero", 0, .attr = { RAW(0x01b7) }, .needs = NOT_15H },
	/* The unit mask selects another event, which ignores config1. */
	{ "offcore_umask", 0, .attr = { RAW(0x04b7), .config1 = ~0ULL }, .needs = NOT_15H },
	{ "latency", 0,
	  .attr = { RAW(0x01cd), .config1 = 0xffff }, .needs = LATENCY },
	{ "latency_reserved", EINVAL,
	  .attr = { RAW(0x01cd), .config1 = 1 << 16 }, .needs = LATENCY },
	{ "front_end", 0,
	  .attr = { RAW(0x01c6), .config1 = 0x7fff17 }, .needs = FRONT_END },
	{ "front_end_reserved", EINVAL,
	  .attr = { RAW(0x01c6), .config1 = 0x8 }, .needs = FRONT_END },
	/* The value is checked before the branch stack. */
	{ "offcore_reserved_branch_stack", EINVAL,
	  .attr = { RAW(0x01b7), .config1 = 1ULL << 63,
		    .sample_type = PERF_SAMPLE_BRANCH_STACK,
		    .branch_sample_type = PERF_SAMPLE_BRANCH_ANY }, .needs = OFFCORE },

	/* Cache events: set_ext_hw_attr(). */
	{ "cache_control", 0,
	  .attr = { CACHE(0x00005) } },
	{ "cache_type", EINVAL,
	  .attr = { CACHE(0x0007f) } },
	{ "cache_op", EINVAL,
	  .attr = { CACHE(0x00300) } },
	{ "cache_result", EINVAL,
	  .attr = { CACHE(0x20000) } },
	/* L1-icache-stores: no such operation. */
	{ "cache_nonsense", EINVAL,
	  .attr = { CACHE(0x00101) } },
	/* L1-dcache-prefetches: no event counts these. */
	{ "cache_no_event", ENOENT,
	  .attr = { CACHE(0x00200) }, .needs = INTEL },

	/* Registers, AUX data and branches that the event cannot have. */
	{ "xmm_user", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_regs_user = 1ULL << 40 } },
	{ "xmm_intr", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_regs_intr = 1ULL << 40 } },
	{ "aux_output_not_precise", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .aux_output = 1 }, .needs = INTEL },
	{ "aux_output_precise", EOPNOTSUPP,
	  .attr = { HW(INSTRUCTIONS), .aux_output = 1, .precise_ip = 1,
		    .sample_period = 100003 }, .needs = INTEL },
	{ "branch_stack", EOPNOTSUPP,
	  .attr = { HW(INSTRUCTIONS), .sample_type = PERF_SAMPLE_BRANCH_STACK,
		    .branch_sample_type = PERF_SAMPLE_BRANCH_ANY },
	  .needs = NO_LBR },
	{ "branch_counters", EINVAL,
	  .attr = { HW(INSTRUCTIONS), .sample_type = PERF_SAMPLE_BRANCH_STACK,
		    .branch_sample_type = PERF_SAMPLE_BRANCH_ANY |
					  PERF_SAMPLE_BRANCH_COUNTERS },
	  .needs = INTEL },
};

#define NO_SUCH_PID	4194303
#define NO_SUCH_CPU	65535

/* The attr is valid, its target is not. */
static const struct {
	const char *name;
	int expected;
	pid_t pid;
	int cpu;
	int group_fd;
	unsigned long flags;
} bad_target[] = {
	{ "open_flags", EINVAL, 0, -1, -1, 1UL << 20 },
	{ "no_task_no_cpu", EINVAL, -1, -1, -1, 0 },
	{ "cpu_beyond_all", EINVAL, -1, NO_SUCH_CPU, -1, 0 },
	{ "task_and_cpu_beyond_all", EINVAL, 0, NO_SUCH_CPU, -1, 0 },
	{ "cpu_below_any", EINVAL, 0, -2, -1, 0 },
	{ "no_such_task", ESRCH, NO_SUCH_PID, -1, -1, 0 },
	{ "group_fd_closed", EBADF, 0, -1, 999, 0 },
	{ "group_fd_not_perf", EBADF, 0, -1, STDERR_FILENO, 0 },
	{ "cgroup_any_cpu", EINVAL, STDERR_FILENO, -1, -1, PERF_FLAG_PID_CGROUP },
	{ "cgroup_not_one", EBADF, STDERR_FILENO, 0, -1, PERF_FLAG_PID_CGROUP },
};

static const char *why_not_here(enum needs needs, __u64 config)
{
	unsigned int eax, ebx = 0, ecx, edx;

	switch (needs) {
	case NOTHING:
		return NULL;
	case LATENCY:
		return is_haswell_or_skylake() ? NULL :
			"this CPU's load latency event is not known to the test";
	case FRONT_END:
		return cpu_model() == MODEL_SKYLAKE ? NULL :
			"this CPU has no front-end filter";
	case NOT_15H:
		return is_amd() && cpu_family() == 0x15 ?
			"no core counter of this CPU has such an event" : NULL;
	case INTEL:
		return is_amd() ? "the errno is that of Intel's driver" : NULL;
	case OFFCORE:
		if (is_amd())
			return "this CPU has no offcore response events";
		if (cpu_model() >= MODEL_ICE_LAKE && is_small_core())
			return "bit 63 is not reserved on this CPU";
		if (is_small_core() && config != 0x01b7)
			return "this CPU's second offcore response event has another code";
		return cpu_model() >= MODEL_GOLDEN_COVE ?
			"this CPU's offcore response events have other codes" : NULL;
	case NO_LBR:
		return access(CPU_PMU "/caps/branches", F_OK) == 0 ?
			"this CPU has branch records" : NULL;
	case NO_TSX:
		__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
		return ebx & (1 << 11 | 1 << 4) ?
			"this CPU has transactions" : NULL;
	case NO_SUCH_EVENT:
		return has_generic_event(config) ?
			"this CPU has such an event" : NULL;
	}
	return "no such condition";
}

/* Returns the errno of opening the event, 0 on success. */
static int try(struct perf_event_attr attr, pid_t pid, int cpu, int group_fd,
	       unsigned long flags)
{
	int fd;

	if (!attr.size)
		attr.size = sizeof(attr);
	attr.disabled = 1;
	fd = perf_open(&attr, pid, cpu, group_fd, flags);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static void report(const char *name, int expected, int seen)
{
	if (seen != expected)
		ksft_print_msg("%s: expected \"%s\", got \"%s\"\n", name,
			       strerror(expected), strerror(seen));
	ksft_test_result(seen == expected, "%s\n", name);
}

int main(void)
{
	const struct perf_event_attr right =
		counting(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	const char *reason;
	unsigned int i;

	ksft_print_header();
	ksft_set_plan(ARRAY_SIZE(bad_attr) + ARRAY_SIZE(bad_target));
	for (i = 0; i < ARRAY_SIZE(bad_attr); i++) {
		reason = why_not_here(bad_attr[i].needs, bad_attr[i].attr.config);
		if (reason)
			ksft_test_result_code(KSFT_SKIP, bad_attr[i].name,
					      "%s", reason);
		else
			report(bad_attr[i].name, bad_attr[i].expected,
			       try(bad_attr[i].attr, 0, -1, -1, 0));
	}
	for (i = 0; i < ARRAY_SIZE(bad_target); i++)
		report(bad_target[i].name, bad_target[i].expected,
		       try(right, bad_target[i].pid, bad_target[i].cpu,
			   bad_target[i].group_fd, bad_target[i].flags));
	ksft_finished();
}
