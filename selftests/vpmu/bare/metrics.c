// SPDX-License-Identifier: GPL-2.0
/*
 * MSR_PERF_METRICS: the shares of the slots that it reports, and how software
 * must use it together with fixed counter 3 (SDM vol. 3, "Performance
 * Metrics"). The shares are those in README.md of the emulated PMU.
 */
#include <linux/array_size.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/math64.h>
#include <linux/smp.h>
#include <linux/umh.h>

#include "bare.h"

#define STATUS		MSR_CORE_PERF_GLOBAL_STATUS
#define CTRL		MSR_CORE_PERF_GLOBAL_CTRL
#define RESET		MSR_CORE_PERF_GLOBAL_OVF_CTRL

/* Fixed counter 3 counts the slots. */
#define SLOTS		(FIXED + 3)
#define BOTH		(BIT_ULL(SLOTS) | METRICS_BIT)
#define WHOLE		255
#define MAX_SHARES	8
/* of exact_loop, see selftests/Makefile */
#define EXACT_LOOP_INSTRUCTIONS	10000000

/* Sixteenths of an instruction's slots, and what a load, a branch and CPL 0 add. */
struct rate {
	const char *name;
	s8 each, load, branch, kernel;
};

static const struct rate rates[MAX_SHARES] = {
	{ "retiring",		9, -4, -2, -2 },
	{ "bad speculation",	1,  0,  2,  0 },
	{ "frontend bound",	3,  0,  0,  2 },
	{ "backend bound",	3,  4,  0,  0 },
	{ "heavy operations",	1,  0,  0,  0 },
	{ "branch mispredicts",	0,  0,  2,  0 },
	{ "fetch latency",	2,  0,  0,  2 },
	{ "memory bound",	1,  4,  0,  0 },
};

/* Both registers, counter 3 first. */
static void restore(u64 slots, u64 metrics)
{
	wr(counter_msr(SLOTS), slots);
	wr(MSR_PERF_METRICS, metrics);
}

static u64 all_shares(void)
{
	return GENMASK_ULL(8 * bare.model->metrics - 1, 0);
}

static unsigned int share(u64 metrics, unsigned int i)
{
	return (metrics >> (8 * i)) & 0xff;
}

/* Returns a share of run_with() in sixteenths; the whole is 16 * RUN_INSTRUCTIONS. */
static u64 of_run(unsigned int i)
{
	const struct rate *r = &rates[i];

	return (s64)(r->each + r->kernel) * RUN_INSTRUCTIONS + r->load * RUN_LOADS +
	       r->branch * RUN_BRANCHES;
}

/* Compares the shares with @weight[i] / @whole, to within one step of 255. */
static void check_shares(u64 metrics, const u64 *weight, u64 whole, const char *what)
{
	unsigned int i, sum = 0;

	for (i = 0; i < MAX_SHARES; i++) {
		u64 wanted = i < bare.model->metrics ? weight[i] * WHOLE : 0;
		u64 got = share(metrics, i) * whole;

		expect(got < wanted + whole && wanted < got + whole, "%s: %s %u, not %llu",
		       what, rates[i].name, share(metrics, i), div64_u64(wanted, whole));
		if (i < 4)
			sum += share(metrics, i);
	}
	same(sum, WHOLE, "%s: the sum of the first four", what);
}

static void check_run(const char *what)
{
	u64 weight[MAX_SHARES];
	unsigned int i;

	for (i = 0; i < MAX_SHARES; i++)
		weight[i] = of_run(i);
	check_shares(rd(MSR_PERF_METRICS), weight, 16 * RUN_INSTRUCTIONS, what);
}

/*
 * Each share has eight bits and, while fixed counter 3 is not 0, reads back as it
 * was written. The bits above the last share are reserved.
 */
static void metrics_bits(void)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		u64 mask = BIT_ULL(bit);

		wr(counter_msr(SLOTS), 1000000);
		if (mask & all_shares()) {
			wr(MSR_PERF_METRICS, mask);
			same(rd(MSR_PERF_METRICS), mask, "bit %u", bit);
		} else {
			expect(wr_faults(MSR_PERF_METRICS, mask), "PERF_METRICS takes bit %u",
			       bit);
		}
	}
	wr(MSR_PERF_METRICS, all_shares());
	same(rd(MSR_PERF_METRICS), all_shares(), "all bits");
}

/* The slots are exact, the shares as declared. RDPMC reads the same. */
static void metrics_shares(void)
{
	u64 value;
	int i;

	start_counter(SLOTS, LEVEL_OS);
	for (i = 1; i <= 10; i++) {
		run_with(BOTH);
		same(count(SLOTS), expected(SLOTS, RUN_INSTRUCTIONS) * i, "slots");
		check_run("run");
		if (expect(!rdpmc_safe(RDPMC_METRICS, &value), "RDPMC faults"))
			same(value, rd(MSR_PERF_METRICS), "RDPMC");
	}
	/* Start from zero again. */
	restore(0, 0);
	same(rd(MSR_PERF_METRICS), 0, "cleared");
	run_with(BOTH);
	check_run("cleared");
}

/* The shares count with bit 48 while fixed counter 3 counts, at its levels. */
static void metrics_enable(void)
{
	static const struct {
		u64 ctrl;
		u32 levels;
		bool slots, metrics;
	} cases[] = {
		{ BOTH, LEVEL_OS, true, true },
		{ BOTH, LEVEL_ANY, true, true },
		{ BOTH, LEVEL_USR },
		{ BOTH, 0 },
		{ BOTH, WITH_PMI },
		{ BIT_ULL(SLOTS), LEVEL_OS, true },
		{ METRICS_BIT, LEVEL_OS },
		{ 0, LEVEL_OS },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		start_counter(SLOTS, cases[i].levels);
		restore(1000, 0);
		run_with(cases[i].ctrl);
		same(count(SLOTS) != 1000, cases[i].slots, "slots, case %u", i);
		same(rd(MSR_PERF_METRICS) != 0, cases[i].metrics, "shares, case %u", i);
	}
	/* CTR_FRZ */
	start_counter(SLOTS, LEVEL_OS);
	restore(1000, 0);
	wr(MSR_CORE_PERF_GLOBAL_STATUS_SET, GLOBAL_STATUS_COUNTERS_FROZEN);
	run_with(BOTH);
	same(rd(MSR_PERF_METRICS), 0, "frozen");
	wr(RESET, GLOBAL_STATUS_COUNTERS_FROZEN);
}

static atomic64_t user_slots;
static u64 user_metrics;

static void start_user(void *unused)
{
	clear_pmu();
	start_counter(SLOTS, LEVEL_USR);
	wr(CTRL, BOTH);
}

static void stop_user(void *unused)
{
	wr(CTRL, 0);
	if (count(SLOTS))
		user_metrics = rd(MSR_PERF_METRICS);
	atomic64_add(count(SLOTS), &user_slots);
}

/*
 * User code has other shares than the kernel's code, which does not count.
 * exact_loop has no loads; every other instruction of it is a branch.
 */
static void metrics_levels(void)
{
	static const u64 weight[MAX_SHARES] = { 16, 4, 6, 6, 2, 2, 4, 2 };
	char path[] = "/opt/rpmu/exact_loop";
	char *argv[2] = { path };
	char *envp[1] = { };
	unsigned int cpu;

	atomic64_set(&user_slots, 0);
	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, start_user, NULL, 1);
	same(call_usermodehelper(path, argv, envp, UMH_WAIT_PROC), 0, "status of %s", path);
	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, stop_user, NULL, 1);
	same(atomic64_read(&user_slots), expected(SLOTS, EXACT_LOOP_INSTRUCTIONS), "slots");
	check_shares(user_metrics, weight, 32, "user");
}

/*
 * Values that were saved and are restored, counter 3 first, continue: they are
 * weighted by their slots.
 */
static void metrics_restore(void)
{
	u64 saved, metrics, slots = expected(SLOTS, RUN_INSTRUCTIONS);
	u64 weight[MAX_SHARES];
	unsigned int i;

	start_counter(SLOTS, LEVEL_OS);
	run_with(BOTH);
	metrics = rd(MSR_PERF_METRICS);
	saved = count(SLOTS);
	/* another task */
	restore(0, 0);
	run_with(BOTH);
	restore(123, 0xff);
	run_with(BOTH);
	restore(saved, metrics);
	same(count(SLOTS), saved, "slots, restored");
	same(rd(MSR_PERF_METRICS), metrics, "shares, restored");
	run_with(BOTH);
	same(count(SLOTS), saved + slots, "slots, continued");
	check_run("continued");
	/* The same number of slots with other shares: the result is the mean. */
	restore(slots, 0xff00);
	run_with(BOTH);
	for (i = 0; i < MAX_SHARES; i++)
		weight[i] = of_run(i) + (i == 1 ? 16 * RUN_INSTRUCTIONS : 0);
	check_shares(rd(MSR_PERF_METRICS), weight, 32 * RUN_INSTRUCTIONS, "mean");
	/* If shares are restored before counter 3, they are shares of other slots. */
	restore(0, 0);
	wr(MSR_PERF_METRICS, metrics);
	wr(counter_msr(SLOTS), saved);
	expect(rd(MSR_PERF_METRICS) != metrics, "the order makes no difference");
}

/* Clearing only one of the two registers shows in the result. */
static void metrics_together(void)
{
	unsigned int i, sum;
	u64 metrics;

	start_counter(SLOTS, LEVEL_OS);
	run_with(BOTH);
	wr(MSR_PERF_METRICS, 0);
	run_with(BOTH);
	metrics = rd(MSR_PERF_METRICS);
	for (i = 0, sum = 0; i < 4; i++)
		sum += share(metrics, i);
	expect(sum < WHOLE * 2 / 3, "slots not cleared: %#llx", metrics);
	wr(counter_msr(SLOTS), 0);
	run_with(BOTH);
	metrics = rd(MSR_PERF_METRICS);
	for (i = 0, sum = 0; i < 4; i++)
		sum += share(metrics, i);
	expect(sum > WHOLE * 3 / 2, "shares not cleared: %#llx", metrics);
}

/*
 * Overflow of a share's counter: bit 48 of the status and a PMI, normally after
 * that of fixed counter 3.
 */
static void metrics_overflow(void)
{
	u64 slots = expected(SLOTS, RUN_INSTRUCTIONS);

	/* All slots are backend bound. */
	start_counter(SLOTS, LEVEL_OS);
	restore(-(slots / 10) & WIDTH_MASK, 0xff000000);
	run_with(BOTH);
	same(rd(STATUS), BOTH, "status without a PMI");
	same(pmi.count, 0, "PMIs without its bit");
	wr(RESET, METRICS_BIT);
	same(rd(STATUS), BIT_ULL(SLOTS), "status, bit 48 cleared");
	wr(RESET, BIT_ULL(SLOTS));
	same(rd(STATUS), 0, "status, both cleared");

	/* Fixed counter 3 alone: most of the slots are not backend bound. */
	restore(-(slots * 9 / 10) & WIDTH_MASK, 0xff000000);
	run_with(BOTH);
	same(rd(STATUS), BIT_ULL(SLOTS), "status, slots alone");
	wr(RESET, BIT_ULL(SLOTS));

	/* A PMI for the shares, because only the slots were cleared. */
	start_counter(SLOTS, LEVEL_OS | WITH_PMI);
	restore(-(slots / 10) & WIDTH_MASK, 0xff000000);
	wr(counter_msr(SLOTS), 0);
	run_with(BOTH);
	same(pmi.count, 1, "PMIs");
	same(pmi.status, METRICS_BIT, "status in the handler");
	same(rd(STATUS), METRICS_BIT, "status");
	wr(RESET, METRICS_BIT);
	same(rd(STATUS), 0, "status, cleared");
}

/* The PMI of a share's counter freezes like any other. */
static void metrics_freeze(void)
{
	u64 slots = expected(SLOTS, RUN_INSTRUCTIONS);

	wr(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI);
	start_counter(SLOTS, LEVEL_OS | WITH_PMI);
	restore(-(slots / 10) & WIDTH_MASK, 0xff000000);
	wr(counter_msr(SLOTS), 0);
	pmi.counter = SLOTS;
	run_with(BOTH);
	same(pmi.count, 1, "PMIs");
	same(pmi.status, METRICS_BIT | GLOBAL_STATUS_COUNTERS_FROZEN, "status in the handler");
	same(pmi.ctrl, BOTH, "GLOBAL_CTRL");
	same(count(SLOTS), pmi.value, "slots after the PMI");
	expect(pmi.value < slots, "the PMI came late: %llu", pmi.value);
}

const struct check metrics_checks[] = {
	{ "metrics_bits", metrics_bits },
	{ "metrics_shares", metrics_shares },
	{ "metrics_enable", metrics_enable },
	{ "metrics_levels", metrics_levels, CHECK_ONCE },
	{ "metrics_restore", metrics_restore },
	{ "metrics_together", metrics_together },
	{ "metrics_overflow", metrics_overflow },
	{ "metrics_freeze", metrics_freeze },
	{ }
};
