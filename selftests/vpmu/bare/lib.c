// SPDX-License-Identifier: GPL-2.0
/* Shared by the checks: verdicts, registers, counters, the handler of PMIs. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <asm/apic.h>
#include <asm/nmi.h>

#include "bare.h"

struct bare bare;

/* Failed expectations of the running check; MAX_REPORTED are printed. */
unsigned int failures;

bool expect(bool ok, const char *fmt, ...)
{
	struct va_format text = { .fmt = fmt };
	va_list args;

	if (ok || ++failures > MAX_REPORTED)
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
	expect(got == wanted, "%pV: %#llx instead of %#llx", &text, got, wanted);
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

	/* After a fault, execution continues behind the XOR. */
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

u64 ctrl_bits(void)
{
	return bare.counters | (bare.model->metrics ? METRICS_BIT : 0);
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

/* By the rates in README.md of the emulated PMU. */
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

struct pmi pmi;

void lvtpc(u32 value)
{
	apic->write(APIC_LVTPC, value);
}

u32 read_lvtpc(void)
{
	return apic->read(APIC_LVTPC);
}

static int handle_nmi(unsigned int type, struct pt_regs *regs)
{
	u64 status, value;

	if (rdmsrq_safe(MSR_CORE_PERF_GLOBAL_STATUS, &status) || !status)
		return NMI_DONE;
	if (pmi.count++ == 0) {
		pmi.status = status;
		rdmsrq_safe(MSR_CORE_PERF_GLOBAL_CTRL, &pmi.ctrl);
		rdmsrq_safe(counter_msr(pmi.counter), &value);
		pmi.value = value;
		pmi.lvtpc = read_lvtpc();
	}
	if (pmi.again) {
		pmi.again--;
		preset(pmi.counter, -pmi.period);
		wrmsrq_safe(MSR_CORE_PERF_GLOBAL_OVF_CTRL, status);
		lvtpc(APIC_DM_NMI);
	}
	return NMI_HANDLED;
}

int pmi_init(void)
{
	return register_nmi_handler(NMI_LOCAL, handle_nmi, 0, "vpmu_bare");
}

void pmi_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "vpmu_bare");
}

/* Stops and clears all counters, stops LBR and PEBS, clears the status and masks the PMI. */
void stop_pmu(void)
{
	unsigned int c;

	if (bare.amd) {
		amd_stop();
		return;
	}
	if (bare.tfa)
		wr(MSR_TSX_FORCE_ABORT, MSR_TFA_RTM_FORCE_ABORT);
	wr(MSR_CORE_PERF_GLOBAL_CTRL, 0);
	wr(MSR_CORE_PERF_FIXED_CTR_CTRL, 0);
	for_each_general(c)
		wr(MSR_ARCH_PERFMON_EVENTSEL0 + c, 0);
	for_each_counter(c)
		wr(counter_msr(c), 0);
	if (bare.model->metrics)
		wr(MSR_PERF_METRICS, 0);
	for (c = 0; c < bare.model->offcore_rsp; c++)
		wr(MSR_OFFCORE_RSP_0 + c, 0);
	stop_lbr();
	if (bare.pebs)
		wr(MSR_IA32_PEBS_ENABLE, 0);
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
