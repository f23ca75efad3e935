// SPDX-License-Identifier: GPL-2.0
/*
 * Checks the emulated PMU with registers alone, in a guest in which no PMU
 * driver runs (initcall_blacklist=init_hw_perf_events,bts_init nmi_watchdog=0).
 * With idle=1 there may be a driver that does nothing, and it is checked that
 * this costs nothing.
 * All is done when the module has loaded; the results are in the kernel's log,
 * as TAP behind "vpmu_bare: ".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <asm/apic.h>
#include <asm/cpufeature.h>

#include "bare.h"

struct bare bare;

static bool idle;
module_param(idle, bool, 0);
MODULE_PARM_DESC(idle, "Only what an idle PMU costs, and leave its registers alone");

/* Of the check that runs: what has gone wrong, and how much of it is said. */
static unsigned int wrong;
#define SAID_MOST	8

bool expect(bool ok, const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	va_list args;

	if (ok || ++wrong > SAID_MOST)
		return ok;
	va_start(args, fmt);
	text.va = &args;
	pr_info("# cpu %d: %pV\n", raw_smp_processor_id(), &text);
	va_end(args);
	return false;
}

bool same(u64 got, u64 wanted, const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	va_list args;

	va_start(args, fmt);
	text.va = &args;
	expect(got == wanted, "%pV: %#llx, not %#llx", &text, got, wanted);
	va_end(args);
	return got == wanted;
}

u64 rd(u32 msr)
{
	u64 value = 0;

	expect(!rdmsrq_safe(msr, &value), "reading MSR %#x faults", msr);
	return value;
}

void wr(u32 msr, u64 value)
{
	expect(!wrmsrq_safe(msr, value), "writing %#llx to MSR %#x faults", value, msr);
}

bool rd_faults(u32 msr)
{
	u64 value;

	return rdmsrq_safe(msr, &value);
}

bool wr_faults(u32 msr, u64 value)
{
	return wrmsrq_safe(msr, value);
}

int rdpmc_safe(u32 ecx, u64 *value)
{
	int err = -EFAULT;
	u32 low, high;

	/* A fault goes on behind the XOR. */
	asm volatile("1: rdpmc\n"
		     "xor %[err], %[err]\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : "=a" (low), "=d" (high), [err] "+r" (err)
		     : "c" (ecx));
	if (!err)
		*value = (u64)high << 32 | low;
	return err;
}

u32 counter_msr(unsigned int c)
{
	if (c >= FIXED)
		return MSR_CORE_PERF_FIXED_CTR0 + c - FIXED;
	return MSR_ARCH_PERFMON_PERFCTR0 + c;
}

u32 counter_ecx(unsigned int c)
{
	return c >= FIXED ? BIT(30) | (c - FIXED) : c;
}

u64 count(unsigned int c)
{
	return rd(counter_msr(c));
}

void preset(unsigned int c, s64 value)
{
	if (c >= FIXED)
		wr(MSR_CORE_PERF_FIXED_CTR0 + c - FIXED, value & WIDTH_MASK);
	else if (bare.model->full_width)
		wr(MSR_IA32_PMC0 + c, value & WIDTH_MASK);
	else
		wr(MSR_ARCH_PERFMON_PERFCTR0 + c, (u32)value);
}

void select_event(unsigned int c, u32 event, u32 flags)
{
	u64 select = event | ARCH_PERFMON_EVENTSEL_ENABLE;

	if (flags & LEVEL_OS)
		select |= ARCH_PERFMON_EVENTSEL_OS;
	if (flags & LEVEL_USR)
		select |= ARCH_PERFMON_EVENTSEL_USR;
	if (flags & WITH_PMI)
		select |= ARCH_PERFMON_EVENTSEL_INT;
	wr(MSR_ARCH_PERFMON_EVENTSEL0 + c, select);
}

void start_counter(unsigned int c, u32 flags)
{
	unsigned int shift = 4 * (c - FIXED);
	u64 fixed;

	if (c < FIXED) {
		select_event(c, INST_RETIRED, flags);
		return;
	}
	fixed = rd(MSR_CORE_PERF_FIXED_CTR_CTRL);
	fixed &= ~(0xfULL << shift);
	wr(MSR_CORE_PERF_FIXED_CTR_CTRL, fixed | (u64)flags << shift);
}

void start_all(u32 flags)
{
	unsigned int c;

	for_each_counter(c)
		start_counter(c, flags);
}

/* The rates are the emulated PMU's, as its README.md declares them. */
u64 expected(unsigned int c, u64 instructions)
{
	switch (c) {
	case FIXED + 1:		/* CPU_CLK_UNHALTED.THREAD */
		return instructions * 3 / 2;
	case FIXED + 2:		/* CPU_CLK_UNHALTED.REF_TSC */
		return instructions * 5 / 4;
	case FIXED + 3:		/* TOPDOWN.SLOTS */
		return bare.model->slots_per_cycle * instructions * 3 / 2;
	default:
		return instructions;
	}
}

void run_with(u64 counters)
{
	struct run run = {
		.on_msr = MSR_CORE_PERF_GLOBAL_CTRL,
		.on = counters,
		.off_msr = MSR_CORE_PERF_GLOBAL_CTRL,
		.loops = LOOPS,
	};

	run_between(&run);
}

/* Nothing counts, nothing has overflowed, no PMI comes. */
static void stop_pmu(void)
{
	unsigned int c;

	if (bare.tfa)
		wr(MSR_TSX_FORCE_ABORT, MSR_TFA_RTM_FORCE_ABORT);
	wr(MSR_CORE_PERF_GLOBAL_CTRL, 0);
	wr(MSR_CORE_PERF_FIXED_CTR_CTRL, 0);
	for_each_general(c)
		wr(MSR_ARCH_PERFMON_EVENTSEL0 + c, 0);
	for_each_counter(c)
		wr(counter_msr(c), 0);
	for (c = 0; c < bare.model->offcore_rsp; c++)
		wr(MSR_OFFCORE_RSP_0 + c, 0);
	wr(MSR_IA32_DEBUGCTLMSR, 0);
	wr(MSR_CORE_PERF_GLOBAL_OVF_CTRL, rd(MSR_CORE_PERF_GLOBAL_STATUS));
	lvtpc(APIC_DM_NMI | APIC_LVT_MASKED);
}

void clear_pmu(void)
{
	stop_pmu();
	memset(&pmi, 0, sizeof(pmi));
	lvtpc(APIC_DM_NMI);
	wr(ACCT_SELECT, ACCT_CLEAR);
}

static void run_here(const struct check *check)
{
	unsigned long flags;

	local_irq_save(flags);
	if (!(check->flags & CHECK_AS_IS))
		clear_pmu();
	if (check->flags & (CHECK_IRQS_ON | CHECK_ONCE)) {
		local_irq_restore(flags);
		check->run();
		local_irq_save(flags);
	} else {
		check->run();
	}
	/* The accounting stays: marks are for the report. */
	if (!idle)
		stop_pmu();
	local_irq_restore(flags);
}

static int run_checks(const struct check *check, int nr)
{
	unsigned int cpu;

	for (; check->name; check++) {
		wrong = 0;
		for_each_online_cpu(cpu) {
			set_cpus_allowed_ptr(current, cpumask_of(cpu));
			run_here(check);
			if (check->flags & CHECK_ONCE)
				break;
		}
		if (wrong > SAID_MOST)
			pr_info("# %u things went wrong\n", wrong);
		pr_info("%sok %d %s\n", wrong ? "not " : "", ++nr, check->name);
	}
	return nr;
}

static char *defects = "";
module_param(defects, charp, 0);
MODULE_PARM_DESC(defects, "Which of the hardware's the PMU has: none, or ht-leak and tfa; default: the usual");

static int __init bare_init(void)
{
	int nr = 0;

	bare.model = find_model(boot_cpu_data.x86_vfm);
	if (!bare.model) {
		pr_info("1..0 # SKIP no model of this CPU\n");
		return 0;
	}
	bare.threads = cpumask_weight(topology_sibling_cpumask(0));
	bare.generals = bare.model->generals[bare.threads > 1];
	bare.counters = GENMASK(bare.generals - 1, 0) |
			GENMASK(FIXED + bare.model->fixed - 1, FIXED);
	bare.ht_leak = bare.model->ht_leak && bare.threads > 1 && strcmp(defects, "none");
	bare.tfa = !strcmp(defects, "tfa");
	pr_info("# %s, %d thread(s) a core\n", bare.model->name, bare.threads);
	if (idle) {
		nr = run_checks(idle_checks, nr);
		goto out;
	}
	if (pmi_init()) {
		pr_info("Bail out! no NMI handler\n");
		return 0;
	}
	nr = run_checks(register_checks, nr);
	nr = run_checks(counting_checks, nr);
	nr = run_checks(pmi_checks, nr);
	nr = run_checks(defect_checks, nr);
	nr = run_checks(accounting_checks, nr);
	pmi_exit();
out:
	pr_info("1..%d\n", nr);
	set_cpus_allowed_ptr(current, cpu_online_mask);
	return 0;
}

static void __exit bare_exit(void)
{
}

module_init(bare_init);
module_exit(bare_exit);
MODULE_DESCRIPTION("Checks of the emulated PMU, without a PMU driver");
MODULE_LICENSE("GPL");
