// SPDX-License-Identifier: GPL-2.0
/*
 * The checks of AMD's PMUs, from AMD's manuals: APM vol. 2, 13.2, and the BKDG
 * or PPR of each family. Independent of the emulated PMU's tables.
 */
#include <linux/array_size.h>
#include <linux/cpumask.h>
#include <linux/smp.h>
#include <asm/apic.h>
#include <asm/cpuid/api.h>
#include <asm/nmi.h>
#include <asm/processor.h>

#include "bare.h"

#define LEGACY_CTL		0xc0010000
#define LEGACY_CTR		0xc0010004
#define PERF_CTL		0xc0010200
#define PERF_CTR		0xc0010201
#define GLOBAL_STATUS		0xc0000300
#define GLOBAL_CTL		0xc0000301
#define GLOBAL_STATUS_CLR	0xc0000302
#define GLOBAL_STATUS_SET	0xc0000303
/* Bits 41:40, 35:32, 31:22, 20 and 18:0 */
#define CTL_BITS		0x30fffd7ffffULL
#define GUEST_ONLY		BIT_ULL(40)
#define HOST_ONLY		BIT_ULL(41)
#define MASKED			(APIC_DM_NMI | APIC_LVT_MASKED)

#define EVENT_INSTRUCTIONS	0xc0
#define EVENT_BRANCHES		0xc2
#define EVENT_TAKEN		0xc4
#define EVENT_FAR		0xc6
#define EVENT_NEAR_RETURNS	0xc8
#define EVENT_CYCLES		0x76
#define EVENT_DISPATCH		0x29
/* Large increments: retired SSE and AVX FLOPs, and the event that merges the odd counter */
#define EVENT_FLOPS		0xff03
#define EVENT_MERGE		0xf000000ffULL
/* Of the northbridge: DRAM accesses, all units */
#define EVENT_DRAM		0x3fe0

/* An AMD CPU. */
static const struct amd {
	const char *name;
	u8 family, model, counters;
	/* CPUID's PerfCtrExtCore and PerfMonV2 */
	bool extended, v2;
	bool merge, northbridge;
} amds[] = {
	{ "K10", 0x10, 0x02, 4, .northbridge = true },
	{ "Piledriver", 0x15, 0x02, 6, .extended = true },
	{ "Jaguar", 0x16, 0x00, 4, },
	{ "Zen 1", 0x17, 0x01, 6, .extended = true, .merge = true },
	{ "Zen 2", 0x17, 0x31, 6, .extended = true, .merge = true },
	{ "Zen 3", 0x19, 0x01, 6, .extended = true, .merge = true },
	{ "Zen 4", 0x19, 0x11, 6, .extended = true, .v2 = true, .merge = true },
	{ "Zen 5", 0x1a, 0x02, 6, .extended = true, .v2 = true, .merge = true },
	{ "Zen 6", 0x1a, 0x50, 6, .extended = true, .v2 = true, .merge = true },
};

static const struct amd *amd;

static u32 ctl(unsigned int c)
{
	return amd->extended ? PERF_CTL + 2 * c : LEGACY_CTL + c;
}

static u32 ctr(unsigned int c)
{
	return amd->extended ? PERF_CTR + 2 * c : LEGACY_CTR + c;
}

const char *amd_find(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(amds); i++) {
		if (amds[i].family == boot_cpu_data.x86 &&
		    amds[i].model == boot_cpu_data.x86_model) {
			amd = &amds[i];
			bare.generals = amd->counters;
			bare.counters = GENMASK(bare.generals - 1, 0);
			if (amd->v2) {
				bare.lbr_format = LBR_AMD;
				bare.lbr_depth = 16;
			}
			return amd->name;
		}
	}
	return NULL;
}

void amd_stop(void)
{
	unsigned int c;

	for_each_general(c) {
		wr(ctl(c), 0);
		wr(ctr(c), 0);
	}
	if (amd->v2) {
		wr(GLOBAL_CTL, bare.counters);
		wr(GLOBAL_STATUS_CLR, rd(GLOBAL_STATUS));
		stop_lbr();
	}
	lvtpc(MASKED);
}

/* Programs a counter, which does not count yet. */
static u64 program(unsigned int c, u64 event, u32 flags)
{
	u64 select = event;

	if (flags & LEVEL_OS)
		select |= ARCH_PERFMON_EVENTSEL_OS;
	if (flags & LEVEL_USR)
		select |= ARCH_PERFMON_EVENTSEL_USR;
	if (flags & WITH_PMI)
		select |= ARCH_PERFMON_EVENTSEL_INT;
	wr(ctl(c), select);
	return select;
}

/* Runs run_between() with this counter, starting from this value; returns the count. */
static u64 run_counter(unsigned int c, u64 event, u32 flags, s64 from)
{
	u64 select = program(c, event, flags);
	struct run run = {
		.on_msr = ctl(c),
		.on = select | ARCH_PERFMON_EVENTSEL_ENABLE,
		.off_msr = ctl(c),
		.off = select,
		.loops = LOOPS,
	};

	wr(ctr(c), from);
	run_between(&run);
	return rd(ctr(c));
}

static void there(u32 msr, bool there)
{
	expect(rd_faults(msr) != there, "reading MSR %#x %s", msr, there ? "faults" : "works");
	expect(wr_faults(msr, 0) != there, "writing MSR %#x %s", msr, there ? "faults" : "works");
}

static void amd_registers(void)
{
	unsigned int c;
	u64 value;

	for (c = 0; c < 6; c++) {
		there(PERF_CTL + 2 * c, amd->extended);
		there(PERF_CTR + 2 * c, amd->extended);
	}
	for (c = 0; c < 4; c++) {
		there(LEGACY_CTL + c, true);
		there(LEGACY_CTR + c, true);
		wr(LEGACY_CTL + c, 0x1230 + c);
		wr(LEGACY_CTR + c, 0x4560 + c);
		same(rd(ctl(c)), 0x1230 + c, "PERF_CTL%u", c);
		same(rd(ctr(c)), 0x4560 + c, "PERF_CTR%u", c);
	}
	for (c = 0; c < 16; c++)
		same(rdpmc_safe(c, &value), c < amd->counters ? 0 : -EFAULT, "RDPMC %u", c);
	same(rdpmc_safe(BIT(30), &value), -EFAULT, "RDPMC of a fixed counter");
	there(GLOBAL_CTL, amd->v2);
	there(GLOBAL_STATUS_CLR, amd->v2);
	there(GLOBAL_STATUS_SET, amd->v2);
	same(rd_faults(GLOBAL_STATUS), !amd->v2, "fault of PerfCntrGlobalStatus");
	expect(wr_faults(GLOBAL_STATUS, 0), "PerfCntrGlobalStatus can be written");
	there(MSR_AMD64_LBR_SELECT, amd->v2);
	there(MSR_AMD_DBG_EXTN_CFG, amd->v2);
	there(MSR_AMD_SAMP_BR_FROM, amd->v2);
	there(MSR_CORE_PERF_GLOBAL_CTRL, false);
	there(MSR_ARCH_PERFMON_EVENTSEL0, false);
	/* Intel's branch record MSRs, as on the Core 2 processor */
	for (c = 0; c < 8; c++) {
		there(MSR_LBR_CORE_FROM + c, false);
		there(MSR_LBR_CORE_TO + c, false);
	}
}

static void amd_cpuid(void)
{
	u32 eax, ebx, ecx, edx;

	same(!!(cpuid_ecx(0x80000001) & BIT(23)), amd->extended, "PerfCtrExtCore");
	if (!amd->v2)
		return;
	cpuid(0x80000022, &eax, &ebx, &ecx, &edx);
	same(eax & 1, 1, "PerfMonV2");
	same(ebx & 0xf, amd->counters, "NumPerfCtrCore");
}

static void amd_reserved_bits(void)
{
	unsigned int c;

	for_each_general(c) {
		wr(ctr(c), ~0ULL);
		same(rd(ctr(c)), WIDTH_MASK, "PERF_CTR%u", c);
		wr(ctl(c), ~(u64)ARCH_PERFMON_EVENTSEL_ENABLE);
		same(rd(ctl(c)), CTL_BITS & ~(u64)ARCH_PERFMON_EVENTSEL_ENABLE, "PERF_CTL%u", c);
	}
	if (amd->v2) {
		wr(GLOBAL_CTL, ~0ULL);
		same(rd(GLOBAL_CTL), bare.counters, "PerfCntrGlobalCtl");
	}
}

static void amd_exact(void)
{
	static const struct {
		u64 event, count;
	} events[] = {
		{ EVENT_INSTRUCTIONS, RUN_INSTRUCTIONS },
		{ EVENT_BRANCHES, RUN_BRANCHES },
		/*
		 * One conditional branch is never taken; the other one is taken
		 * in each round except the last.
		 */
		{ EVENT_TAKEN, RUN_BRANCHES - LOOPS - 1 },
		{ EVENT_NEAR_RETURNS, LOOPS },
		{ EVENT_FAR, 0 },
	};
	unsigned int c, i;

	for_each_general(c) {
		for (i = 0; i < ARRAY_SIZE(events); i++) {
			same(run_counter(c, events[i].event, LEVEL_OS, 0), events[i].count,
			     "counter %u, event %#llx", c, events[i].event);
			same(run_counter(c, events[i].event, LEVEL_USR, 0), 0,
			     "counter %u, event %#llx at user level", c, events[i].event);
		}
	}
	same(run_counter(0, EVENT_CYCLES, LEVEL_OS, 0), RUN_INSTRUCTIONS * 3 / 2, "cycles");
}

/* An exception counts as one far transfer, and so does IRET; both count as instructions. */
static void amd_exceptions(void)
{
	u64 far, instructions;

	wr(ctl(0), program(0, EVENT_FAR, LEVEL_OS) | ARCH_PERFMON_EVENTSEL_ENABLE);
	rd_faults(MSR_CORE_PERF_GLOBAL_CTRL);
	wr(ctl(0), 0);
	far = rd(ctr(0));
	same(far, 2, "far control transfers of a fault");
	wr(ctr(0), 0);
	wr(ctl(0), program(0, EVENT_INSTRUCTIONS, LEVEL_OS) | ARCH_PERFMON_EVENTSEL_ENABLE);
	rd_faults(MSR_CORE_PERF_GLOBAL_CTRL);
	instructions = rd(ctr(0));
	expect(instructions > 20, "%llu instructions of a fault", instructions);
}

static void amd_global(void)
{
	struct run run = {
		.on_msr = GLOBAL_CTL,
		.on = bare.counters,
		.off_msr = GLOBAL_CTL,
		.loops = LOOPS,
	};
	unsigned int c;

	if (!amd->v2)
		return;
	wr(GLOBAL_CTL, 0);
	for_each_general(c)
		wr(ctl(c), program(c, EVENT_INSTRUCTIONS, LEVEL_OS) | ARCH_PERFMON_EVENTSEL_ENABLE);
	wr(ctr(1), -1LL);
	run_between(&run);
	for_each_general(c)
		same(rd(ctr(c)), RUN_INSTRUCTIONS - (c == 1), "counter %u", c);
	same(rd(GLOBAL_STATUS), 2, "PerfCntrGlobalStatus");
	wr(GLOBAL_STATUS_SET, 1);
	same(rd(GLOBAL_STATUS), 3, "PerfCntrGlobalStatus, a bit set");
	wr(GLOBAL_STATUS_CLR, 2);
	same(rd(GLOBAL_STATUS), 1, "PerfCntrGlobalStatus, a bit cleared");
	/* A counter with only one of its two enable bits set. */
	wr(ctr(0), 0);
	run.on = 2;
	run_between(&run);
	same(rd(ctr(0)), 0, "counter 0, disabled");
}

static unsigned int pmis;

static int amd_nmi(unsigned int type, struct pt_regs *regs)
{
	u64 delivered;

	if (!amd || rdmsrq_safe(ACCT_PMIS, &delivered) || !delivered)
		return NMI_DONE;
	pmis++;
	return NMI_HANDLED;
}

int amd_init(void)
{
	return register_nmi_handler(NMI_LOCAL, amd_nmi, 0, "vpmu_bare_amd");
}

void amd_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "vpmu_bare_amd");
}

/* The delivery of a PMI does not mask LVTPC: each overflow raises a PMI. */
static void amd_pmi(void)
{
	unsigned int c;

	for_each_general(c) {
		pmis = 0;
		run_counter(c, EVENT_INSTRUCTIONS, LEVEL_OS, -RUN_INSTRUCTIONS / 2);
		same(pmis, 0, "PMIs, counter %u without INT", c);
		run_counter(c, EVENT_INSTRUCTIONS, LEVEL_OS | WITH_PMI, -RUN_INSTRUCTIONS - 1);
		same(pmis, 0, "PMIs, counter %u, one short of overflow", c);
		same(rd(ctr(c)), WIDTH_MASK, "counter %u, one short of overflow", c);
		run_counter(c, EVENT_INSTRUCTIONS, LEVEL_OS | WITH_PMI, -RUN_INSTRUCTIONS / 2);
		same(pmis, 1, "PMIs, counter %u", c);
		same(read_lvtpc(), APIC_DM_NMI, "LVTPC, counter %u", c);
		run_counter(c, EVENT_INSTRUCTIONS, LEVEL_OS | WITH_PMI, -RUN_INSTRUCTIONS / 2);
		same(pmis, 2, "PMIs, counter %u again", c);
		wr(ctl(c), 0);
	}
}

static void amd_masked_pmi(void)
{
	pmis = 0;
	lvtpc(MASKED);
	run_counter(0, EVENT_INSTRUCTIONS, LEVEL_OS | WITH_PMI, -RUN_INSTRUCTIONS / 2);
	lvtpc(APIC_DM_NMI);
	same(pmis, 0, "PMIs, LVTPC masked");
	same(rd(ACCT_LOST), 1, "lost PMIs");
	run_counter(0, EVENT_INSTRUCTIONS, LEVEL_OS | WITH_PMI, -RUN_INSTRUCTIONS / 2);
	same(pmis, 1, "PMIs, LVTPC unmasked");
}

/*
 * Without EFER.SVME, a counter with HostOnly or GuestOnly counts nothing. With
 * it, GuestOnly alone counts nothing in the host; both bits together count.
 */
static void amd_host_and_guest(void)
{
	static const u64 bits[] = { 0, HOST_ONLY, GUEST_ONLY, HOST_ONLY | GUEST_ONLY };
	static const bool counts[2][4] = { { true }, { true, true, false, true } };
	u64 efer = rd(MSR_EFER);
	unsigned int svm, i;

	if (!(cpuid_ecx(0x80000001) & BIT(2)))
		return;
	for (svm = 0; svm < 2; svm++) {
		wr(MSR_EFER, svm ? efer | EFER_SVME : efer & ~EFER_SVME);
		for (i = 0; i < ARRAY_SIZE(bits); i++)
			same(run_counter(0, EVENT_INSTRUCTIONS | bits[i], LEVEL_OS, 0),
			     counts[svm][i] ? RUN_INSTRUCTIONS : 0, "SVM %u, bits %#llx", svm,
			     bits[i]);
	}
	wr(MSR_EFER, efer);
}

/*
 * Operations dispatched to the load-store unit, by unit mask: loads, stores,
 * and operations that load from and store to the same address, which count as
 * one.
 */
static void amd_dispatch(void)
{
	static const u8 counts[] = { 0, 4, 4, 8, 5, 9, 9, 13 };
	static u64 data[2];
	u8 units;

	/* Family 15h and Zen */
	if (!amd->extended)
		return;
	for (units = 0; units < ARRAY_SIZE(counts); units++) {
		u64 select = program(0, EVENT_DISPATCH | units << 8, LEVEL_OS);
		u32 low = select | ARCH_PERFMON_EVENTSEL_ENABLE, value = 0;
		u64 *from = &data[0], *to = &data[1];

		wr(ctr(0), 0);
		asm volatile("wrmsr\n"
			     /* both, of one operand */
			     "incl (%%rsi)\n"
			     "lock addl $1, (%%rsi)\n"
			     "xchgl %[value], (%%rsi)\n"
			     "lock cmpxchgl %[value], (%%rsi)\n"
			     "shldl $1, %[value], (%%rsi)\n"
			     /* a load, a store */
			     "movl (%%rsi), %[value]\n"
			     "movl %[value], (%%rdi)\n"
			     /* one of each */
			     "pushq (%%rsi)\n"
			     "popq (%%rdi)\n"
			     "movsb\n"
			     "movl %[off], %%eax\n"
			     "wrmsr\n"
			     : "+S" (from), "+D" (to), "+a" (low), [value] "+r" (value)
			     : "c" (ctl(0)), "d" (0), [off] "r" ((u32)select)
			     : "cc", "memory");
		same(rd(ctr(0)), counts[units], "units %#x", units);
	}
}

/*
 * A large-increment event loses increments unless the odd counter takes its
 * carry. The event's rate is declared: two runs may differ by a few.
 */
static void amd_merged(void)
{
	u64 alone, merged, wrapped;

	if (!amd->merge)
		return;
	alone = run_counter(2, EVENT_FLOPS, LEVEL_OS, 0);
	wr(ctl(3), EVENT_MERGE | ARCH_PERFMON_EVENTSEL_ENABLE);
	merged = run_counter(2, EVENT_FLOPS, LEVEL_OS, 0);
	expect(alone && merged > alone, "%llu merged, %llu alone", merged, alone);
	same(rd(ctr(3)), 0, "the odd counter");
	wrapped = run_counter(2, EVENT_FLOPS, LEVEL_OS, -1);
	expect(wrapped + 10 > merged && wrapped < merged + 10,
	       "%llu after an overflow, %llu without", wrapped, merged);
	same(rd(ctr(3)), 1, "the odd counter, overflow");
	wr(ctr(3), 0xffff);
	pmis = 0;
	run_counter(2, EVENT_FLOPS, LEVEL_OS | WITH_PMI, -1);
	same(pmis, 1, "PMIs of both");
}

/* Family 15h: the events that only some counters count. */
static void amd_placed(void)
{
	static const struct {
		u16 event;
		u8 counters;
	} events[] = {
		{ EVENT_CYCLES, 0x07 }, { 0x01, 0x38 }, { EVENT_FLOPS, 0x08 }, { 0x2e, 0x09 },
		{ 0xff65, 0x07 }, { 0xd0, 0x07 }, { 0xdc, 0x3f },
	};
	unsigned int c, i;

	if (amd->family != 0x15)
		return;
	for (i = 0; i < ARRAY_SIZE(events); i++) {
		for_each_general(c)
			same(!!run_counter(c, events[i].event, LEVEL_OS, 0),
			     !!(events[i].counters & BIT(c)), "event %#x on counter %u",
			     events[i].event, c);
	}
}

static void take_northbridge(void *unused)
{
	wr(ctl(1), EVENT_DRAM | ARCH_PERFMON_EVENTSEL_OS | ARCH_PERFMON_EVENTSEL_ENABLE);
}

static void leave_northbridge(void *unused)
{
	wr(ctl(1), 0);
}

static u64 northbridge_work(void)
{
	unsigned int i;

	wr(ctr(1), 0);
	for (i = 0; i < 10; i++)
		run_between(&(struct run){ ACCT_MARK, ACCT_MARK, 0xa0, 0xa1, LOOPS });
	return rd(ctr(1));
}

/*
 * Family 10h: an event of the northbridge stops the northbridge's event on
 * another core's counter of the same number.
 */
static void amd_northbridge(void)
{
	int other = cpumask_next(raw_smp_processor_id(), cpu_online_mask);

	if (!amd->northbridge || other >= nr_cpu_ids)
		return;
	take_northbridge(NULL);
	expect(northbridge_work(), "nothing counted");
	smp_call_function_single(other, take_northbridge, NULL, true);
	same(northbridge_work(), 0, "counted, replaced");
	smp_call_function_single(other, leave_northbridge, NULL, true);
	take_northbridge(NULL);
	expect(northbridge_work(), "nothing counted again");
	leave_northbridge(NULL);
}

/* Like marks() in accounting.c. */
static void amd_marks(void)
{
	struct run run = {
		.on_msr = ACCT_MARK,
		.on = 0xb2,
		.off_msr = ACCT_MARK,
		.off = 0xb3,
		.loops = LOOPS,
	};
	u64 value;

	wr(ACCT_MARK, 0xb0);
	rd(ctl(0));
	rd(ctr(0));
	wr(ctl(0), 0);
	wr_faults(GLOBAL_STATUS, 0);
	rdpmc_safe(0, &value);
	wr(ACCT_MARK, 0xb1);
	run_between(&run);
}

const struct check amd_checks[] = {
	{ "amd_registers", amd_registers },
	{ "amd_cpuid", amd_cpuid },
	{ "amd_reserved_bits", amd_reserved_bits },
	{ "amd_exact", amd_exact },
	{ "amd_exceptions", amd_exceptions },
	{ "amd_global", amd_global },
	{ "amd_pmi", amd_pmi },
	{ "amd_masked_pmi", amd_masked_pmi },
	{ "amd_host_and_guest", amd_host_and_guest },
	{ "amd_dispatch", amd_dispatch },
	{ "amd_merged", amd_merged },
	{ "amd_placed", amd_placed },
	{ "amd_northbridge", amd_northbridge, CHECK_ONCE },
	{ "amd_marks", amd_marks },
	{ }
};
