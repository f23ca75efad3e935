// SPDX-License-Identifier: GPL-2.0
/*
 * The defects of the hardware, as described in README.md of the emulated PMU,
 * and their absence if they are off; and state that the threads of a core
 * share.
 */
#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/smp.h>
#include <asm/cpuid/api.h>

#include "bare.h"

#define SELECT		MSR_ARCH_PERFMON_EVENTSEL0
#define STATUS		MSR_CORE_PERF_GLOBAL_STATUS
#define CTRL		MSR_CORE_PERF_GLOBAL_CTRL

/* MEM_UOPS_RETIRED.ALL_LOADS, .ALL_STORES */
#define CORRUPTING	0x81d0
#define CORRUPTING_TOO	0x82d0

/*
 * The other one of the two CPUs, which is the sibling thread if the core has
 * two. It executes one request at a time for this CPU.
 */
static struct {
	/* enabled counters */
	u64 counters;
	/* counter with this event and level; the others count instructions at user level */
	unsigned int special;
	u32 event, flags;
	/* start value */
	s64 preset;
	/* results */
	u64 status, counts[MAX_GENERAL];
} other;

static void start_other(void *unused)
{
	unsigned int c;

	clear_pmu();
	for_each_general(c) {
		preset(c, other.preset);
		if (c == other.special)
			select_event(c, other.event, other.flags);
		else
			select_event(c, INST_RETIRED, LEVEL_USR);
	}
	wr(CTRL, other.counters);
}

/* Programs the special counter anew, and runs with all of other.counters. */
static void run_other(void *unused)
{
	wr(CTRL, 0);
	select_event(other.special, other.event, other.flags);
	run_with(other.counters);
}

static void read_other(void *unused)
{
	unsigned int c;

	wr(CTRL, 0);
	for_each_general(c)
		other.counts[c] = count(c);
	other.status = rd(STATUS);
}

static void on_other(smp_call_func_t what)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());

	smp_call_function_single(cpu, what, NULL, 1);
}

/* No special counter, all counters enabled. */
static void reset_other(void)
{
	other.counters = bare.counters;
	other.special = MAX_GENERAL;
	other.preset = 0;
}

/* Counts @event on counter @c of this CPU during a run. */
static u64 count_here(unsigned int c, u32 event)
{
	unsigned long flags;

	local_irq_save(flags);
	wr(SELECT + c, 0);
	wr(counter_msr(c), 0);
	select_event(c, event, LEVEL_OS);
	run_with(BIT_ULL(c));
	local_irq_restore(flags);
	return count(c);
}

/* Counts the event while the other CPU has no enabled counter, so that nothing leaks. */
static u64 undisturbed(unsigned int c, u32 event)
{
	reset_other();
	other.counters = 0;
	on_other(start_other);
	return count_here(c, event);
}

/* BJ122, BV98, HSD29: every fourth event leaks to the sibling's counter. */
static void leak_to_the_sibling(void)
{
	unsigned int c, i;
	u64 events, leak;

	for_each_general(c) {
		events = undisturbed(c, CORRUPTING);
		leak = bare.ht_leak ? events / 4 : 0;
		expect(leak || !bare.ht_leak, "counter %u: %llu events are too few", c, events);

		reset_other();
		on_other(start_other);
		same(count_here(c, CORRUPTING), events - leak, "counter %u", c);
		on_other(read_other);
		for_each_general(i)
			same(other.counts[i], i == c ? leak : 0, "the sibling's counter %u of %u",
			     i, c);
		same(other.status, 0, "the sibling's status");

		/* Other events do not leak. */
		on_other(start_other);
		same(count_here(c, INST_RETIRED), RUN_INSTRUCTIONS, "instructions, counter %u", c);
		on_other(read_other);
		same(other.counts[c], 0, "the sibling's counter %u, instructions", c);
	}
}

/* Leaked events can make the sibling's counter overflow. */
static void leak_overflows(void)
{
	u64 events = undisturbed(1, CORRUPTING);

	reset_other();
	other.preset = -(s64)(events / 4);
	on_other(start_other);
	count_here(1, CORRUPTING);
	on_other(read_other);
	same(other.status, bare.ht_leak ? BIT_ULL(1) : 0, "the sibling's status");
	same(other.counts[1], bare.ht_leak ? 0 : other.preset & WIDTH_MASK, "its counter 1");
}

/* If both CPUs count such events, both lose and gain. */
static void leak_both_ways(void)
{
	u64 here, there, leak_here, leak_there;

	here = undisturbed(1, CORRUPTING);
	there = undisturbed(1, CORRUPTING_TOO);
	leak_here = bare.ht_leak ? here / 4 : 0;
	leak_there = bare.ht_leak ? there / 4 : 0;

	/* The counter of the CPU that does not run is enabled, at user level. */
	reset_other();
	other.special = 1;
	other.event = CORRUPTING_TOO;
	other.flags = LEVEL_USR;
	on_other(start_other);
	same(count_here(1, CORRUPTING), here - leak_here, "what is left here");
	select_event(1, CORRUPTING, LEVEL_USR);
	wr(CTRL, bare.counters);
	other.flags = LEVEL_OS;
	on_other(run_other);
	on_other(read_other);
	same(other.counts[1], leak_here + there - leak_there, "the other CPU's counter");
	same(count(1), here - leak_here + leak_there, "this CPU's counter");
}

static void run_offcore_response(void *unused)
{
	unsigned int c;

	for_each_general(c)
		select_event(c, bare.model->offcore_event, LEVEL_OS);
	run_with(bare.counters);
	for_each_general(c)
		other.counts[c] = count(c);
	other.status = rd(MSR_OFFCORE_RSP_0);
}

/* The threads of a core share MSR_OFFCORE_RSP_x on Nehalem and Westmere. */
static void offcore_response(void)
{
	bool shared = bare.model->offcore_per_core && bare.threads > 1;
	/* demand reads with any response; all requests with all responses */
	u64 value = bare.model->full_width ? 0x10001 : 0xf7ff;
	unsigned int c;
	u64 counted;

	reset_other();
	other.counters = 0;
	on_other(start_other);
	same(count_here(0, bare.model->offcore_event), 0, "no request");
	wr(MSR_OFFCORE_RSP_0, value);
	counted = count_here(0, bare.model->offcore_event);
	expect(counted, "no responses");
	on_other(run_offcore_response);
	same(other.status, shared ? value : 0, "the other CPU's register");
	/* Responses are spread evenly over a thread's loads, starting anywhere. */
	for_each_general(c)
		expect(shared ? other.counts[c] - counted + 1 <= 2 : !other.counts[c],
		       "the other CPU's counter %u: %#llx, here %#llx",
		       c, other.counts[c], counted);
}

/* TFA: while RTM_FORCE_ABORT is 0, transactions use counter 3. */
static void transactions(void)
{
	/* longer than the 2^20 instructions between transactions */
	struct run run = {
		.on_msr = CTRL,
		.off_msr = CTRL,
		.loops = (BIT(20) + BIT(10)) / 7,
	};
	bool corrupts;
	unsigned int c;
	int abort;

	same(!!(cpuid_edx(7) & BIT(13)), bare.tfa, "CPUID.7.EDX[13]");
	if (bare.tfa)
		same(rd(MSR_TSX_FORCE_ABORT), 1, "TSX_FORCE_ABORT after clear_pmu()");
	else
		expect(rd_faults(MSR_TSX_FORCE_ABORT), "TSX_FORCE_ABORT can be read");

	for (abort = 0; abort <= 1; abort++) {
		if (bare.tfa)
			wr(MSR_TSX_FORCE_ABORT, abort);
		corrupts = bare.tfa && !abort;
		for_each_general(c) {
			select_event(c, BR_INST_RETIRED, LEVEL_OS);
			wr(counter_msr(c), 1000 + c);
		}
		run_between(&run);
		for_each_general(c) {
			bool corrupted = c == 3 && corrupts;
			u64 select = BR_INST_RETIRED | ARCH_PERFMON_EVENTSEL_OS |
				     ARCH_PERFMON_EVENTSEL_ENABLE;

			same(rd(SELECT + c), corrupted ? 0x5a5a : select,
			     "select %u, abort %d", c, abort);
			same(count(c), corrupted ? 0x5a5a5a5a5a5a : 1000 + c,
			     "counter %u, abort %d", c, abort);
		}
	}
	if (bare.tfa)
		expect(wr_faults(MSR_TSX_FORCE_ABORT, BIT_ULL(63)), "TSX_FORCE_ABORT takes bit 63");
}

#define OTHER_LOOPS		(100 * LOOPS)
#define OTHER_INSTRUCTIONS	(7 * OTHER_LOOPS + 4)
/* Delay between the threads, README.md */
#define OTHER_LATE		4096

static u64 instructions_of_other;

static void start_instructions(void *unused)
{
	clear_pmu();
	start_counter(FIXED, LEVEL_OS);
	wr(CTRL, bare.counters);
}

static void loop_on_other(void *unused)
{
	struct run run = {
		.on_msr = CTRL,
		.on = bare.counters,
		.off_msr = CTRL,
		.off = bare.counters,
		.loops = OTHER_LOOPS,
	};

	run_between(&run);
}

static void read_instructions(void *unused)
{
	wr(CTRL, 0);
	instructions_of_other = count(FIXED);
}

/*
 * AnyThread counts instructions that either thread of the core retires. The
 * other thread contributes at least the loop, and at most its own count over a
 * longer time.
 */
static void any_thread(void)
{
	static const unsigned int counters[] = { 0, FIXED };
	u64 own, both;
	int i;

	if (!bare.model->any_thread)
		return;
	select_event(0, INST_RETIRED | ARCH_PERFMON_EVENTSEL_ANY, LEVEL_OS);
	select_event(1, INST_RETIRED, LEVEL_OS);
	wr(MSR_CORE_PERF_FIXED_CTR_CTRL, LEVEL_OS | BIT(2));
	on_other(start_instructions);
	wr(CTRL, bare.counters);
	on_other(loop_on_other);
	wr(CTRL, 0);
	on_other(read_instructions);
	own = count(1);
	for (i = 0; i < ARRAY_SIZE(counters); i++) {
		both = count(counters[i]);
		if (bare.threads == 1)
			same(both, own, "counter %u, one thread per core", counters[i]);
		else
			expect(both >= own + OTHER_INSTRUCTIONS - OTHER_LATE &&
			       both <= own + instructions_of_other + OTHER_LATE,
			       "counter %u: %llu, of this thread %llu, of the other %llu",
			       counters[i], both, own, instructions_of_other);
	}
}

#define ROUNDS	10

static bool halts;

/* PAUSE lets the other thread run until it has executed HLT. */
static void loop_when_other_halts(void *unused)
{
	int i;

	while (!READ_ONCE(halts))
		cpu_relax();
	for (i = 0; i < 10; i++)
		cpu_relax();
	loop_on_other(NULL);
}

/*
 * The same while this thread is halted: its counter must overflow when the
 * other thread makes it overflow, not when something else wakes this thread.
 */
static void any_thread_halted(void)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	int round;

	if (!bare.model->any_thread || bare.threads == 1)
		return;
	preempt_disable();
	for (round = 0; round < ROUNDS; round++) {
		clear_pmu();
		select_event(0, INST_RETIRED | ARCH_PERFMON_EVENTSEL_ANY, LEVEL_OS | WITH_PMI);
		preset(0, -OTHER_INSTRUCTIONS / 2);
		wr(CTRL, bare.counters);
		WRITE_ONCE(halts, false);
		smp_call_function_single(cpu, loop_when_other_halts, NULL, 0);
		while (!READ_ONCE(pmi.count)) {
			local_irq_disable();
			WRITE_ONCE(halts, true);
			asm volatile("sti; hlt" : : : "memory");
		}
		wr(CTRL, 0);
		/* The delay between the threads, and the entry of the handler */
		expect(pmi.value <= 2 * OTHER_LATE, "the PMI is %llu instructions late", pmi.value);
		/* Wait until the loop has ended. */
		on_other(read_instructions);
	}
	preempt_enable();
}

const struct check defect_checks[] = {
	{ "leak_to_the_sibling", leak_to_the_sibling, CHECK_IRQS_ON },
	{ "leak_overflows", leak_overflows, CHECK_IRQS_ON },
	{ "leak_both_ways", leak_both_ways, CHECK_IRQS_ON },
	{ "offcore_response", offcore_response, CHECK_IRQS_ON },
	{ "any_thread", any_thread, CHECK_IRQS_ON },
	{ "any_thread_halted", any_thread_halted, CHECK_IRQS_ON },
	{ "transactions", transactions },
	{ }
};
