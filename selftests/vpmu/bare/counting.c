// SPDX-License-Identifier: GPL-2.0
/* Counting: the events, counters and privilege levels, and the counts. */
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <linux/umh.h>
#include <asm/tsc.h>

#include "bare.h"

#define SELECT		MSR_ARCH_PERFMON_EVENTSEL0
#define FIXED_CTRL	MSR_CORE_PERF_FIXED_CTR_CTRL
#define CTRL		MSR_CORE_PERF_GLOBAL_CTRL

/* Each counter alone, enabled and disabled by IA32_PERF_GLOBAL_CTRL. */
static void exact_by_global_ctrl(void)
{
	unsigned int c;

	for_each_counter(c) {
		start_counter(c, LEVEL_OS);
		run_with(BIT_ULL(c));
		same(count(c), expected(c, RUN_INSTRUCTIONS), "counter %u", c);
	}
}

/* Each counter enabled and disabled by its own control register. */
static void exact_by_its_own_enable(void)
{
	unsigned int c;

	wr(CTRL, bare.counters);
	for_each_counter(c) {
		struct run run = { .loops = LOOPS };

		if (c >= FIXED) {
			run.on_msr = FIXED_CTRL;
			run.on = (u64)LEVEL_OS << (4 * (c - FIXED));
		} else {
			run.on_msr = SELECT + c;
			run.on = INST_RETIRED | ARCH_PERFMON_EVENTSEL_OS |
				 ARCH_PERFMON_EVENTSEL_ENABLE;
		}
		run.off_msr = run.on_msr;
		run_between(&run);
		same(count(c), expected(c, RUN_INSTRUCTIONS), "counter %u", c);
	}
}

/* Instructions and branches alternate on the general counters. */
static void all_counters_at_once(void)
{
	unsigned int c;

	start_all(LEVEL_OS);
	for (c = 1; c < bare.generals; c += 2)
		select_event(c, BR_INST_RETIRED, LEVEL_OS);
	run_with(bare.counters);
	for_each_counter(c) {
		bool branches = c < FIXED && c % 2;

		same(count(c), branches ? RUN_BRANCHES : expected(c, RUN_INSTRUCTIONS),
		     "counter %u", c);
	}
}

static void branches_by_class(void)
{
	const struct branch_class *class;
	unsigned int c;

	for (class = bare.model->branches; class->name; class++) {
		clear_pmu();
		for_each_general(c)
			select_event(c, class->select, LEVEL_OS);
		run_with(bare.counters);
		for_each_general(c)
			same(count(c), class->each * LOOPS + class->offset, "%s, counter %u",
			     class->name, c);
	}
}

/* A counter counts only if it is enabled in both registers. */
static void enable_bits(void)
{
	unsigned int c, on;

	/* Each bit of GLOBAL_CTRL enables its counter and no other. */
	for_each_counter(on) {
		clear_pmu();
		start_all(LEVEL_OS);
		run_with(BIT_ULL(on));
		for_each_counter(c)
			same(count(c), c == on ? expected(c, RUN_INSTRUCTIONS) : 0,
			     "counter %u, %u enabled", c, on);
	}
	/* Without EN, or without a privilege level */
	clear_pmu();
	for_each_counter(c)
		start_counter(c, c % 2 ? LEVEL_OS : 0);
	for_each_general(c)
		wr(SELECT + c, rd(SELECT + c) & ~(c % 2 ? ARCH_PERFMON_EVENTSEL_ENABLE : 0));
	for (c = FIXED + 1; c < FIXED + bare.model->fixed; c += 2)
		start_counter(c, 0);
	run_with(bare.counters);
	for_each_counter(c)
		same(count(c), 0, "counter %u, not enabled", c);
}

/* The module runs at CPL 0. */
static void levels(void)
{
	unsigned int c;

	start_all(LEVEL_USR);
	run_with(bare.counters);
	for_each_counter(c)
		same(count(c), 0, "counter %u at user level", c);
	start_all(LEVEL_ANY);
	run_with(bare.counters);
	for_each_counter(c)
		same(count(c), expected(c, RUN_INSTRUCTIONS), "counter %u at any level", c);
}

/* A counter that Intel's list does not name for an event does not count it. */
static void placed_events(void)
{
	const struct placed_event *event;
	unsigned int c;

	for (event = bare.model->placed; event->select; event++) {
		clear_pmu();
		for_each_general(c)
			select_event(c, event->select, LEVEL_OS);
		run_with(bare.counters);
		for_each_general(c) {
			bool there = event->counters[bare.threads > 1] & BIT(c);

			if (there && !event->exact)
				expect(count(c), "event %#x, counter %u: 0", event->select, c);
			else
				same(count(c), there ? RUN_INSTRUCTIONS : 0,
				     "event %#x, counter %u", event->select, c);
		}
	}
}

#define PREFETCHES	5

static noinline void prefetch_hints(void)
{
	asm volatile("prefetchnta (%0)\n\t"
		     "prefetcht0 (%0)\n\t"
		     "prefetcht1 (%0)\n\t"
		     "prefetcht2 (%0)\n\t"
		     "prefetchw (%0)"
		     : : "r" (&bare));
}

/*
 * As many instructions that are not prefetches: NOPs, 0F 18 /0 of a register,
 * and 0F 18 /7.
 */
static noinline void other_hints(void)
{
	asm volatile("nopl (%0)\n\t"
		     "nopl (%0)\n\t"
		     "nopl (%0)\n\t"
		     ".byte 0x0f, 0x18, 0xc0\n\t"
		     ".byte 0x0f, 0x18, 0x38"
		     : : "a" (&bare));
}

static u64 loads_of(void (*hints)(void))
{
	wr(counter_msr(0), 0);
	wr(CTRL, 1);
	hints();
	wr(CTRL, 0);
	return count(0);
}

/* By Intel's lists, retired loads include software prefetches from Haswell on. */
static void prefetches(void)
{
	u64 with, without;

	select_event(0, bare.model->loads ?: bare.model->full_width ? 0x81d0 : 0x010b, LEVEL_OS);
	without = loads_of(other_hints);
	with = loads_of(prefetch_hints);
	expect(without, "no loads");
	same(with - without, bare.model->prefetches_load ? PREFETCHES : 0, "prefetches");
}

static void unknown_events(void)
{
	unsigned int c;

	for_each_general(c)
		select_event(c, c % 2 ? 0xffff : 0x00fe, LEVEL_OS);
	run_with(bare.counters);
	for_each_general(c)
		same(count(c), 0, "counter %u", c);
}

/* Cycles with fewer than 16 instructions are all cycles. */
static void inverted_cmask(void)
{
	u64 flags = ARCH_PERFMON_EVENTSEL_INV | 16ULL << 24;
	unsigned int c;

	for_each_general(c)
		select_event(c, INST_RETIRED | flags, LEVEL_OS);
	run_with(bare.counters);
	for_each_general(c)
		same(count(c), expected(FIXED + 1, RUN_INSTRUCTIONS), "counter %u", c);
}

static void write_while_running(void)
{
	unsigned int c;

	start_all(LEVEL_OS);
	for_each_counter(c) {
		struct run run = {
			.on_msr = counter_msr(c),
			.on = 123456,
			.off_msr = CTRL,
			.loops = LOOPS,
		};

		wr(CTRL, bare.counters);
		run_between(&run);
		same(count(c), 123456 + expected(c, RUN_INSTRUCTIONS), "counter %u", c);
	}
}

/* A counter keeps its value when its event changes while it counts. */
static void another_event_while_running(void)
{
	unsigned int c;

	for_each_general(c) {
		struct run run = {
			.on_msr = SELECT + c,
			.on = BR_INST_RETIRED | ARCH_PERFMON_EVENTSEL_OS |
			      ARCH_PERFMON_EVENTSEL_ENABLE,
			.off_msr = CTRL,
			.loops = LOOPS,
		};
		u64 before;

		select_event(c, INST_RETIRED, LEVEL_USR);
		preset(c, 1000);
		wr(CTRL, bare.counters);
		before = count(c);
		run_between(&run);
		same(count(c) - before, RUN_BRANCHES, "counter %u", c);
	}
}

static void reads_while_running(void)
{
	u64 last, now, fast;
	unsigned int c;

	start_all(LEVEL_OS);
	wr(CTRL, bare.counters);
	for_each_counter(c) {
		last = count(c);
		fast = 0;
		rdpmc_safe(counter_ecx(c), &fast);
		now = count(c);
		expect(last < fast && fast < now, "counter %u: %llu, %llu, %llu",
		       c, last, fast, now);
	}
}

/*
 * This CPU halts for 40 ms, except for interrupts. Reference cycles, which
 * equal the TSC while a CPU runs, stay far behind the TSC.
 */
static void halted(void)
{
	u64 start, tsc, least = (u64)tsc_khz * 40;

	start_counter(FIXED, LEVEL_ANY);
	start_counter(FIXED + 2, LEVEL_ANY);
	wr(CTRL, bare.counters);
	/* Allow interrupts, but no other task. */
	preempt_disable();
	start = rdtsc_ordered();
	do {
		local_irq_disable();
		/* Interrupts are taken after HLT at the earliest. */
		asm volatile("sti; hlt" : : : "memory");
		tsc = rdtsc_ordered() - start;
	} while (tsc < least);
	wr(CTRL, 0);
	preempt_enable();
	expect(count(FIXED), "no instruction in %llu cycles of the TSC", tsc);
	expect(count(FIXED) < tsc / 8, "%llu instructions", count(FIXED));
	expect(count(FIXED + 2) < tsc / 8, "%llu reference cycles in %llu", count(FIXED + 2), tsc);
}

/* For all CPUs, because the program may run on any of them. */
static u16 user_events[MAX_GENERAL];
static u64 user_counts[MAX_GENERAL];
static u8 user_levels[MAX_GENERAL];
static u64 user_fixed;
/* The events that are counted at a time. */
static unsigned int user_first, user_nr;

static void start_user_counters(void *unused)
{
	unsigned int c;

	clear_pmu();
	for (c = 0; c < user_nr; c++)
		select_event(c, user_events[user_first + c], user_levels[user_first + c]);
	start_counter(FIXED, LEVEL_USR);
	wr(CTRL, bare.counters);
}

static void stop_user_counters(void *unused)
{
	unsigned int c;

	wr(CTRL, 0);
	for (c = 0; c < user_nr; c++)
		user_counts[user_first + c] += count(c);
	user_fixed += count(FIXED);
}

/* The instructions of exact_mix at user level, from its head. */
#define EXACT_MIX_INSTRUCTIONS	60627573

/* Runs the program once for as many of the first @nr events as there are counters. */
static void run_user_program(unsigned int nr)
{
	char path[] = "/opt/rpmu/exact_mix";
	char *argv[2] = { path };
	char *envp[1] = { };
	unsigned int cpu;
	int status;

	memset(user_counts, 0, sizeof(user_counts));
	for (user_first = 0; user_first < nr; user_first += user_nr) {
		user_nr = min_t(unsigned int, nr - user_first, bare.generals);
		user_fixed = 0;
		for_each_online_cpu(cpu)
			smp_call_function_single(cpu, start_user_counters, NULL, 1);
		status = call_usermodehelper(path, argv, envp, UMH_WAIT_PROC);
		for_each_online_cpu(cpu)
			smp_call_function_single(cpu, stop_user_counters, NULL, 1);
		same(status, 0, "status of %s", path);
		same(user_fixed, EXACT_MIX_INSTRUCTIONS, "fixed counter 0 at user level");
	}
}

static void user_and_kernel(void)
{
	/* The first two in the same run, even with two counters */
	static const u8 levels[] = { LEVEL_OS, LEVEL_ANY, LEVEL_USR, LEVEL_USR };
	int i;

	for (i = 0; i < 4; i++) {
		user_events[i] = i == 3 ? BR_INST_RETIRED : INST_RETIRED;
		user_levels[i] = levels[i];
	}
	run_user_program(i);
	same(user_counts[2], EXACT_MIX_INSTRUCTIONS, "instructions at user level");
	same(user_counts[3], bare.model->branches[0].exact_mix, "branches at user level");
	expect(user_counts[0], "no instructions in the kernel");
	same(user_counts[1], user_counts[0] + EXACT_MIX_INSTRUCTIONS, "both");
}

static void user_branches(void)
{
	const struct branch_class *class = bare.model->branches;
	int i, j;

	while (class->name) {
		for (i = 0; i < 4 && class[i].name; i++) {
			user_events[i] = class[i].select;
			user_levels[i] = LEVEL_USR;
		}
		run_user_program(i);
		for (j = 0; j < i; j++)
			same(user_counts[j], class[j].exact_mix, "%s", class[j].name);
		class += i;
	}
}

const struct check counting_checks[] = {
	{ "exact_by_global_ctrl", exact_by_global_ctrl },
	{ "exact_by_its_own_enable", exact_by_its_own_enable },
	{ "all_counters_at_once", all_counters_at_once },
	{ "branches_by_class", branches_by_class },
	{ "enable_bits", enable_bits },
	{ "levels", levels },
	{ "placed_events", placed_events },
	{ "prefetches", prefetches },
	{ "unknown_events", unknown_events },
	{ "inverted_cmask", inverted_cmask },
	{ "write_while_running", write_while_running },
	{ "another_event_while_running", another_event_while_running },
	{ "reads_while_running", reads_while_running },
	{ "halted", halted, CHECK_IRQS_ON },
	{ "user_and_kernel", user_and_kernel, CHECK_ONCE },
	{ "user_branches", user_branches, CHECK_ONCE },
	{ }
};
