// SPDX-License-Identifier: GPL-2.0
/* The registers: which ones exist, their values after RESET, their writable bits. */
#include <linux/array_size.h>
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/cpuid/api.h>

#include "bare.h"

#define SELECT		MSR_ARCH_PERFMON_EVENTSEL0
#define FIXED_CTRL	MSR_CORE_PERF_FIXED_CTR_CTRL
#define STATUS		MSR_CORE_PERF_GLOBAL_STATUS
#define CTRL		MSR_CORE_PERF_GLOBAL_CTRL
#define RESET		MSR_CORE_PERF_GLOBAL_OVF_CTRL
#define SET		MSR_CORE_PERF_GLOBAL_STATUS_SET

/* SDM vol. 3, table 10-1: after power-up, before the first write. */
static void reset_values(void)
{
	const struct model *m = bare.model;
	unsigned int c;

	for_each_counter(c) {
		/* Transactions have corrupted counter 3. */
		if (bare.tfa && c == 3)
			continue;
		if (c < FIXED)
			same(rd(SELECT + c), 0, "select %u", c);
		same(count(c), 0, "counter %u", c);
	}
	if (bare.tfa)
		same(rd(MSR_TSX_FORCE_ABORT), 0, "TSX_FORCE_ABORT");
	same(rd(FIXED_CTRL), 0, "FIXED_CTR_CTRL");
	same(rd(STATUS), 0, "GLOBAL_STATUS");
	same(rd(CTRL), GENMASK_ULL(bare.generals - 1, 0), "GLOBAL_CTRL");
	same(rd(MSR_IA32_DEBUGCTLMSR) &
	     (DEBUGCTLMSR_LBR | DEBUGCTLMSR_FREEZE_LBRS_ON_PMI |
	      DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI), 0, "DEBUGCTL");
	for (c = 0; c < m->offcore_rsp; c++)
		same(rd(MSR_OFFCORE_RSP_0 + c), 0, "OFFCORE_RSP_%u", c);
	if (!bare.model->no_load_latency)
		same(rd(MSR_PEBS_LD_LAT_THRESHOLD), 0, "LD_LAT");
	if (m->frontend)
		same(rd(MSR_PEBS_FRONTEND), 0, "FRONTEND");
	if (m->metrics)
		same(rd(MSR_PERF_METRICS), 0, "PERF_METRICS");
	if (m->version >= 4)
		same(rd(MSR_CORE_PERF_GLOBAL_INUSE) & ~(bare.tfa ? BIT_ULL(3) : 0), 0,
		     "GLOBAL_INUSE");
}

/* SDM vol. 2, CPUID leaf 0AH */
static void cpuid_0ah(void)
{
	const struct model *m = bare.model;
	u32 eax, ebx, ecx, edx;

	cpuid(0xa, &eax, &ebx, &ecx, &edx);
	same(eax, m->version | bare.generals << 8 | WIDTH << 16 | m->events << 24, "EAX");
	same(ebx, m->missing, "EBX");
	/* From version 5 on, a mask of the fixed counters. */
	same(ecx, m->version >= 5 ? GENMASK(m->fixed - 1, 0) : 0, "ECX");
	same(edx, m->fixed | WIDTH << 5 | (m->any_thread ? 0 : BIT(15)), "EDX");
	expect(cpuid_ecx(1) & BIT(15), "CPUID.01H:ECX has no PDCM");
}

/* Writes each bit separately: bits in @bits are stored, those in neither mask fault. */
static void check_bits(u32 msr, u64 bits, u64 unknown)
{
	unsigned int bit;

	for (bit = 0; bit < 64; bit++) {
		if (unknown & BIT_ULL(bit))
			continue;
		if (!(bits & BIT_ULL(bit))) {
			expect(wr_faults(msr, BIT_ULL(bit)), "MSR %#x takes bit %u", msr, bit);
			continue;
		}
		wr(msr, BIT_ULL(bit));
		same(rd(msr), BIT_ULL(bit), "MSR %#x, bit %u", msr, bit);
	}
	/* A write that faults changes nothing. */
	if (bits != ~0ULL) {
		wr(msr, bits);
		expect(wr_faults(msr, ~0ULL), "MSR %#x takes all bits", msr);
		same(rd(msr), bits, "MSR %#x after a fault", msr);
	}
	wr(msr, 0);
	same(rd(msr), 0, "MSR %#x cleared", msr);
}

/*
 * PC is reserved from Sandy Bridge on, AnyThread if CPUID says so. A CPU with
 * TFA has TSX, and therefore IN_TX and, on counter 2, IN_TXCP (SDM vol. 3B,
 * "Performance Monitoring and Intel TSX").
 */
static void select_bits(void)
{
	u64 bits = GENMASK_ULL(31, 0);
	unsigned int c;

	if (!bare.model->pin_control)
		bits &= ~ARCH_PERFMON_EVENTSEL_PIN_CONTROL;
	if (!bare.model->any_thread)
		bits &= ~ARCH_PERFMON_EVENTSEL_ANY;
	if (bare.tfa)
		bits |= BIT_ULL(32);
	/* Adaptive_Record */
	if (bare.pebs && bare.model->pebs_format == 4)
		bits |= BIT_ULL(34);
	for_each_general(c)
		check_bits(SELECT + c, bits | (bare.tfa && c == 2 ? BIT_ULL(33) : 0), 0);
}

static void fixed_ctrl_bits(void)
{
	u64 bits = 0;
	int i;

	for (i = 0; i < bare.model->fixed; i++)
		bits |= (bare.model->any_thread ? 0xfULL : 0xbULL) << (4 * i);
	for (i = 0; bare.pebs && bare.model->pebs_format == 4 && i < bare.model->fixed; i++)
		bits |= BIT_ULL(32) << (4 * i);
	check_bits(FIXED_CTRL, bits, 0);
}

static void global_ctrl_bits(void)
{
	check_bits(CTRL, ctrl_bits(), 0);
}

/* No bit can be written directly; from version 4 on, _SET and _RESET change them. */
static void status_bits(void)
{
	u64 bits = ctrl_bits() | GLOBAL_STATUS_UNC_OVF | GLOBAL_STATUS_BUFFER_OVF;
	bool v4 = bare.model->version >= 4;
	unsigned int bit;

	if (v4)
		bits |= GLOBAL_STATUS_COUNTERS_FROZEN | GLOBAL_STATUS_LBRS_FROZEN |
			GLOBAL_STATUS_ASIF | GLOBAL_STATUS_TRACE_TOPAPMI;
	for (bit = 0; bit < 64; bit++) {
		u64 mask = BIT_ULL(bit);

		expect(wr_faults(STATUS, mask), "GLOBAL_STATUS takes bit %u", bit);
		if (v4 && (bits & mask)) {
			wr(SET, mask);
			same(rd(STATUS), mask, "bit %u set", bit);
			wr(RESET, bits & ~mask);
			same(rd(STATUS), mask, "bit %u, the others reset", bit);
			wr(RESET, mask);
			same(rd(STATUS), 0, "bit %u reset", bit);
		} else if (v4) {
			expect(wr_faults(SET, mask), "STATUS_SET takes bit %u", bit);
		}
		/* CondChgd can only be cleared. */
		if (mask == GLOBAL_STATUS_COND_CHG || bits & mask)
			wr(RESET, mask);
		else
			expect(wr_faults(RESET, mask), "STATUS_RESET takes bit %u", bit);
	}
	same(rd(STATUS), 0, "GLOBAL_STATUS at the end");
}

/* SDM vol. 3, 20.2.6: the counters in use; read-only, version 4. */
static void in_use(void)
{
	unsigned int c;

	if (bare.model->version < 4)
		return;
	for_each_counter(c) {
		start_counter(c, LEVEL_OS);
		same(rd(MSR_CORE_PERF_GLOBAL_INUSE), BIT_ULL(c), "counter %u", c);
		start_counter(c, LEVEL_OS | WITH_PMI);
		same(rd(MSR_CORE_PERF_GLOBAL_INUSE), BIT_ULL(c) | BIT_ULL(63),
		     "counter %u with its PMI", c);
		if (c >= FIXED)
			start_counter(c, 0);
		else
			wr(SELECT + c, 0);
	}
	expect(wr_faults(MSR_CORE_PERF_GLOBAL_INUSE, 0), "GLOBAL_INUSE can be written");
}

/* IA32_PMCx sign-extends bit 31 and ignores the bits above it. */
static void legacy_writes(void)
{
	static const u64 values[] = {
		0, 1, 0x7fffffff, 0x80000000, 0xffffffff, 0x123456789a, 0x12389abcdef,
		BIT_ULL(47), BIT_ULL(48), ~0ULL,
	};
	unsigned int c, i;

	for_each_general(c) {
		for (i = 0; i < ARRAY_SIZE(values); i++) {
			wr(MSR_ARCH_PERFMON_PERFCTR0 + c, values[i]);
			same(count(c), (s64)(s32)values[i] & WIDTH_MASK,
			     "counter %u, %#llx written", c, values[i]);
		}
	}
}

/* IA32_A_PMCx and the fixed counters take exactly their bits. */
static void full_width_writes(void)
{
	unsigned int c;

	for_each_counter(c) {
		u32 msr = c >= FIXED ? counter_msr(c) : MSR_IA32_PMC0 + c;

		if (c >= FIXED || bare.model->full_width)
			check_bits(msr, WIDTH_MASK, 0);
		if (c < FIXED && bare.model->full_width) {
			wr(msr, 0x923456789abc & WIDTH_MASK);
			same(count(c), 0x923456789abc & WIDTH_MASK,
			     "counter %u through IA32_PMCx", c);
		}
	}
}

static void debugctl_bits(void)
{
	/* BTS and other features; branches.c has those of LBR */
	u64 others = GENMASK_ULL(15, 0) & ~DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI;
	u64 bits = DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI;

	if (rd(MSR_IA32_PERF_CAPABILITIES) & PERF_CAP_SMM_FREEZE) {
		bits |= DEBUGCTLMSR_FREEZE_IN_SMM;
		others &= ~DEBUGCTLMSR_FREEZE_IN_SMM;
	}
	check_bits(MSR_IA32_DEBUGCTLMSR, bits, others);
}

/*
 * Read-only: PMU available (bit 7), BTS unavailable (bit 11) and, without PEBS,
 * PEBS unavailable (bit 12).
 */
static void misc_enable(void)
{
	u64 value = rd(MSR_IA32_MISC_ENABLE);

	same(value & MISC_ENABLE_READ_ONLY,
	     MISC_ENABLE_READ_ONLY & ~(bare.pebs ? BIT_ULL(12) : 0), "MISC_ENABLE");
	wr(MSR_IA32_MISC_ENABLE, value ^ MISC_ENABLE_READ_ONLY);
	same(rd(MSR_IA32_MISC_ENABLE), value, "MISC_ENABLE after a write to read-only bits");
	wr(MSR_IA32_MISC_ENABLE, value);
	expect(wr_faults(MSR_IA32_MISC_ENABLE, value | BIT_ULL(63)), "MISC_ENABLE takes bit 63");
}

static void perf_capabilities(void)
{
	u64 value = rd(MSR_IA32_PERF_CAPABILITIES);

	same(!!(value & PERF_CAP_FULL_WIDTH), bare.model->full_width, "full-width writes");
	same(value & PERF_CAP_SMM_FREEZE, PERF_CAP_SMM_FREEZE, "freezing in SMM");
	same(!!(value & PERF_CAP_METRICS), !!bare.model->metrics, "PERF_METRICS");
	same(value & PERF_CAP_LBR_FMT, bare.model->lbr_format, "LBR format");
	/*
	 * No other feature is reported, except PEBS if it is switched on, whose
	 * fields pebs.c tests.
	 */
	same(value & ~(PERF_CAP_FULL_WIDTH | PERF_CAP_SMM_FREEZE | PERF_CAP_METRICS |
		       PERF_CAP_LBR_FMT | (bare.pebs ? PERF_CAP_PEBS_MASK : 0)), 0,
	     "missing features");
	expect(wr_faults(MSR_IA32_PERF_CAPABILITIES, value), "PERF_CAPABILITIES can be written");
}

/* Request and response bits of each generation of big cores; there may be others. */
static void extra_registers(void)
{
	u64 bits = bare.model->full_width ? BIT_ULL(0) | BIT_ULL(16) | BIT_ULL(37) :
					    0xf7ff;
	u64 reserved = bare.model->full_width ? GENMASK_ULL(63, 38) : GENMASK_ULL(63, 16);
	int i;

	for (i = 0; i < bare.model->offcore_rsp; i++) {
		u64 all = bare.model->offcore_bits[i];

		check_bits(MSR_OFFCORE_RSP_0 + i, all ?: bits, all ? 0 : ~(bits | reserved));
	}
	if (!bare.model->no_load_latency)
		check_bits(MSR_PEBS_LD_LAT_THRESHOLD, GENMASK_ULL(15, 0), 0);
	/* event, bubble length and bubble width */
	if (bare.model->frontend)
		check_bits(MSR_PEBS_FRONTEND, 0x7fff13, ~(0x7fff13 | GENMASK_ULL(63, 23)));
}

static void absent(u32 msr)
{
	expect(rd_faults(msr), "MSR %#x can be read", msr);
	expect(wr_faults(msr, 0), "MSR %#x can be written", msr);
}

static void absent_msrs(void)
{
	const struct model *m = bare.model;
	int i;

	for (i = bare.generals; i < MAX_GENERAL; i++) {
		absent(MSR_ARCH_PERFMON_PERFCTR0 + i);
		absent(SELECT + i);
		absent(MSR_IA32_PMC0 + i);
	}
	for (i = 0; !m->full_width && i < bare.generals; i++)
		absent(MSR_IA32_PMC0 + i);
	for (i = m->fixed; i < MAX_FIXED; i++)
		absent(MSR_CORE_PERF_FIXED_CTR0 + i);
	for (i = m->offcore_rsp; i < 2; i++)
		absent(MSR_OFFCORE_RSP_0 + i);
	if (m->version < 4) {
		absent(SET);
		absent(MSR_CORE_PERF_GLOBAL_INUSE);
	}
	if (!m->frontend)
		absent(MSR_PEBS_FRONTEND);
	if (!m->metrics)
		absent(MSR_PERF_METRICS);
	/* Missing according to PERF_CAPABILITIES and MISC_ENABLE */
	if (!bare.pebs) {
		absent(MSR_IA32_PEBS_ENABLE);
		absent(MSR_IA32_DS_AREA);
	}
	if (!bare.pebs || m->pebs_format != 4)
		absent(MSR_PEBS_DATA_CFG);
	absent(MSR_IA32_LASTINTFROMIP);
	absent(MSR_IA32_PMC_V6_GP0_CTR);
	/* The branch records of Core 2 */
	for (i = 0; !m->lbr_low && i < 8; i++) {
		absent(MSR_LBR_CORE_FROM + i);
		absent(MSR_LBR_CORE_TO + i);
	}
}

static void rdpmc_indices(void)
{
	static const u32 no_counter[] = {
		BIT(31), BIT(30) | BIT(31), BIT(30) | BIT(29), BIT(29) | BIT(0), BIT(16), ~0,
	};
	unsigned int c, i;
	u64 value;

	for_each_counter(c) {
		preset(c, -(s64)(0x1234 + c));
		if (expect(!rdpmc_safe(counter_ecx(c), &value), "counter %u faults", c))
			same(value, -(0x1234ULL + c) & WIDTH_MASK, "counter %u", c);
	}
	for (c = bare.generals; c <= 2 * MAX_GENERAL; c++)
		expect(rdpmc_safe(c, &value), "general counter %u", c);
	for (c = bare.model->fixed; c <= 2 * MAX_FIXED; c++)
		expect(rdpmc_safe(BIT(30) | c, &value), "fixed counter %u", c);
	for (i = 0; i < ARRAY_SIZE(no_counter); i++)
		expect(rdpmc_safe(no_counter[i], &value), "ECX %#x", no_counter[i]);
	same(!rdpmc_safe(RDPMC_METRICS, &value), !!bare.model->metrics, "PERF_METRICS");
}

static u64 sum_of_registers(void)
{
	u64 sum = rd(FIXED_CTRL) + rd(CTRL) + rd(STATUS) + rd(MSR_IA32_DEBUGCTLMSR);
	unsigned int c;

	for_each_counter(c)
		sum += count(c);
	for_each_general(c)
		sum += rd(SELECT + c);
	return sum;
}

static void read_elsewhere(void *sum)
{
	*(u64 *)sum = sum_of_registers();
}

/*
 * Writes on this CPU do not change the registers of another CPU, even on the
 * same core.
 */
static void own_registers(void)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	unsigned int c;
	u64 before, after;

	smp_call_function_single(other, read_elsewhere, &before, 1);
	wr(CTRL, bare.counters);
	start_all(LEVEL_USR | WITH_PMI);
	for_each_counter(c)
		preset(c, -1000 - c);
	wr(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI);
	smp_call_function_single(other, read_elsewhere, &after, 1);
	same(after, before, "the sum of cpu %u's registers", other);
}

const struct check register_checks[] = {
	{ "reset_values", reset_values, CHECK_AS_IS },
	{ "cpuid", cpuid_0ah },
	{ "select_bits", select_bits },
	{ "fixed_ctrl_bits", fixed_ctrl_bits },
	{ "global_ctrl_bits", global_ctrl_bits },
	{ "status_bits", status_bits },
	{ "in_use", in_use },
	{ "legacy_writes", legacy_writes },
	{ "full_width_writes", full_width_writes },
	{ "debugctl_bits", debugctl_bits },
	{ "misc_enable", misc_enable },
	{ "perf_capabilities", perf_capabilities },
	{ "extra_registers", extra_registers },
	{ "absent_msrs", absent_msrs },
	{ "rdpmc", rdpmc_indices },
	{ "own_registers", own_registers, CHECK_IRQS_ON },
	{ }
};
