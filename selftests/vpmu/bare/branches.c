// SPDX-License-Identifier: GPL-2.0
/*
 * Last branch records (SDM vol. 3, chapters 17 and 19; APM vol. 2, 13.1.1.9):
 * checks the records of a program with known branches, one by one, in the
 * format of each model and with each filter.
 */
#include <linux/array_size.h>
#include <linux/cpumask.h>
#include <linux/minmax.h>
#include <linux/smp.h>
#include <linux/string.h>
#include <linux/umh.h>
#include <asm/cpuid/api.h>
#include <asm/desc.h>
#include <asm/traps.h>

#include "bare.h"
#include "branches.h"

#define DEBUGCTL	MSR_IA32_DEBUGCTLMSR
#define STATUS		MSR_CORE_PERF_GLOBAL_STATUS
#define RESET		MSR_CORE_PERF_GLOBAL_OVF_CTRL

#define AMD_FROM	MSR_AMD_SAMP_BR_FROM
#define AMD_TO		(MSR_AMD_SAMP_BR_FROM + 1)
#define AMD_PERF_CTL	0xc0010200
#define AMD_PERF_CTR	0xc0010201
/* In TO */
#define AMD_VALID	BIT_ULL(63)
#define AMD_SPEC	BIT_ULL(62)

#define MAX_DEPTH	32
/* MSR_LBR_SELECT, whose bits suppress */
#define CPL_EQ_0	BIT_ULL(0)
#define CPL_NEQ_0	BIT_ULL(1)
#define SUPPRESS_ALL	GENMASK_ULL(8, 2)
#define EN_CALLSTACK	BIT_ULL(9)
/* IA32_LBR_CTL, whose bits allow */
#define CTL_OS		BIT_ULL(1)
#define CTL_USR		BIT_ULL(2)
#define CTL_CALL_STACK	BIT_ULL(3)
#define CTL_KINDS	GENMASK_ULL(22, 16)
#define CTL_BITS	(CTL_KINDS | GENMASK_ULL(3, 0))

/* The bits of a class in MSR_LBR_SELECT and IA32_LBR_CTL, and its BR_TYPE. */
static const struct {
	const char *name;
	u8 suppress, allow, type;
} classes[BRANCH_CLASSES] = {
	[BRANCH_JCC] =		{ "conditional",	2, 16, 0 },
	[BRANCH_REL_CALL] =	{ "relative call",	3, 19, 4 },
	[BRANCH_IND_CALL] =	{ "indirect call",	4, 20, 3 },
	[BRANCH_RET] =		{ "return",		5, 21, 5 },
	[BRANCH_IND_JMP] =	{ "indirect jump",	6, 18, 1 },
	[BRANCH_REL_JMP] =	{ "relative jump",	7, 17, 2 },
	[BRANCH_FAR] =		{ "far branch",		8, 22, 8 },
};

/* The recorded branches: classes, levels, and whether calls are a stack. */
struct filter {
	u32 classes;
	bool kernel, user, call_stack;
};

#define ALL_CLASSES	GENMASK(BRANCH_CLASSES - 1, 0)

struct record {
	u64 from, to, info;
};

static bool architectural(void)
{
	return bare.lbr_format == 0x3f;
}

/* Bits 63:48 of TO are the cycles. */
static bool has_cycles_in_to(void)
{
	return bare.lbr_format == 6;
}

static bool has_info(void)
{
	return bare.lbr_format >= 5 && !has_cycles_in_to() && !bare.amd;
}

/* Bit 63 of FROM is a flag. */
static bool has_flag(void)
{
	return bare.lbr_format == 3 || bare.lbr_format == 4 || has_cycles_in_to();
}

/* Returns TO without the cycles. */
static u64 to_address(const struct record *r)
{
	return has_cycles_in_to() ? (s64)(r->to << 16) >> 16 : r->to;
}

static u32 first_from(void)
{
	if (architectural())
		return MSR_ARCH_LBR_FROM_0;
	return bare.model->lbr_low ? MSR_LBR_CORE_FROM : MSR_LBR_NHM_FROM;
}

static u32 first_to(void)
{
	if (architectural())
		return MSR_ARCH_LBR_TO_0;
	return bare.model->lbr_low ? MSR_LBR_CORE_TO : MSR_LBR_NHM_TO;
}

static u64 selection(const struct filter *f)
{
	u64 bits = 0;
	int i;

	if (architectural()) {
		for (i = 0; i < BRANCH_CLASSES; i++)
			bits |= f->classes & BIT(i) ? BIT_ULL(classes[i].allow) : 0;
		return bits | (f->kernel ? CTL_OS : 0) | (f->user ? CTL_USR : 0) |
		       (f->call_stack ? CTL_CALL_STACK : 0);
	}
	for (i = 0; i < BRANCH_CLASSES; i++)
		bits |= f->classes & BIT(i) ? 0 : BIT_ULL(classes[i].suppress);
	return bits | (f->kernel ? 0 : CPL_EQ_0) | (f->user ? 0 : CPL_NEQ_0) |
	       (f->call_stack ? EN_CALLSTACK : 0);
}

/* Writes the filter and clears the records. Returns the WRMSRs that start and stop recording. */
static struct run prepare(const struct filter *f)
{
	struct run run = { .loops = 2 };
	int i;

	if (architectural()) {
		wr(MSR_ARCH_LBR_DEPTH, bare.lbr_depth);
		run.on_msr = MSR_ARCH_LBR_CTL;
		run.on = ARCH_LBR_CTL_LBREN | selection(f);
		run.off_msr = MSR_ARCH_LBR_CTL;
		return run;
	}
	if (bare.amd) {
		wr(MSR_AMD64_LBR_SELECT, selection(f));
		for (i = 0; i < 2 * bare.lbr_depth; i++)
			wr(AMD_FROM + i, 0);
		run.on_msr = MSR_AMD_DBG_EXTN_CFG;
		run.on = DBG_EXTN_CFG_LBRV2EN;
		run.off_msr = MSR_AMD_DBG_EXTN_CFG;
		return run;
	}
	wr(MSR_LBR_SELECT, selection(f));
	for (i = 0; i < bare.lbr_depth; i++) {
		wr(first_from() + i, 0);
		wr(first_to() + i, 0);
		if (has_info())
			wr(MSR_LBR_INFO_0 + i, 0);
	}
	run.on_msr = DEBUGCTL;
	run.on = DEBUGCTLMSR_LBR;
	run.off_msr = DEBUGCTL;
	return run;
}

static void start(const struct run *run)
{
	wr(run->on_msr, run->on);
}

static void stop(const struct run *run)
{
	wr(run->off_msr, run->off);
}

/* Returns the record with this age; 0 is the newest. */
static struct record record(unsigned int age)
{
	unsigned int depth = bare.lbr_depth, i = age;
	struct record r = { };

	if (architectural()) {
		r.from = rd(first_from() + i);
		r.to = rd(first_to() + i);
		r.info = rd(MSR_ARCH_LBR_INFO_0 + i);
		return r;
	}
	if (bare.amd) {
		r.from = rd(AMD_FROM + 2 * i);
		r.to = rd(AMD_TO + 2 * i);
		return r;
	}
	i = (rd(MSR_LBR_TOS) + depth - age) % depth;
	r.from = rd(first_from() + i);
	r.to = rd(first_to() + i);
	if (has_info())
		r.info = rd(MSR_LBR_INFO_0 + i);
	return r;
}

/* Returns true if branches of this class are predicted, and so can be mispredicted. */
static bool predicted(u32 class)
{
	return class != BRANCH_REL_JMP && class != BRANCH_REL_CALL && class != BRANCH_FAR;
}

/*
 * Returns true if the branch is mispredicted: by README.md of the emulated PMU,
 * bits 8:4 of the sum are ones.
 */
static bool mispredicted(u32 class, u64 from, u64 to)
{
	return predicted(class) && ((from + to) & 0x1f0) == 0x1f0;
}

/* Returns the expected record of a branch, @insns instructions after the last recorded one. */
static struct record encode(u32 class, u64 from, u64 to, u64 insns)
{
	u64 flag = mispredicted(class, from, to) ? BIT_ULL(63) : 0;
	u64 cycles = min(insns * 3 / 2, 0xffff);
	struct record r = { .from = from, .to = to };

	switch (bare.lbr_format) {
	case 3:
		r.from = (from & ~BIT_ULL(63)) | flag;
		break;
	case 4:
		/* Bits 62:61 are IN_TX and TSX_ABORT. */
		r.from = (from & GENMASK_ULL(60, 0)) | flag;
		break;
	case 5:
	case 7:
		r.info = flag | cycles;
		break;
	case 6:
		r.from = (from & ~BIT_ULL(63)) | flag;
		r.to = (to & GENMASK_ULL(47, 0)) | cycles << 48;
		break;
	case LBR_AMD:
		r.from = (from & ~BIT_ULL(63)) | flag;
		r.to = (to & GENMASK_ULL(60, 0)) | AMD_VALID | (predicted(class) ? AMD_SPEC : 0);
		break;
	case 0x3f:
		r.info = flag | LBR_INFO_CYC_CNT_VALID | cycles |
			 (u64)classes[class].type << LBR_INFO_BR_TYPE_OFFSET;
		break;
	}
	return r;
}

static void same_record(unsigned int age, const struct record *r, const char *what)
{
	struct record got = record(age);

	same(got.from, r->from, "%s: from, record %u", what, age);
	same(got.to, r->to, "%s: to, record %u", what, age);
	same(got.info, r->info, "%s: info, record %u", what, age);
}

/*
 * The records of run_branches(), the oldest first; only the last ones if they
 * do not fit.
 */
static struct record wanted[MAX_DEPTH];
static unsigned int recorded, insns;

static void want(const struct filter *f, u32 class, const struct branch *b, bool next)
{
	u64 base = (u64)run_branches;

	insns += b->insns;
	if (!f->kernel || !(f->classes & BIT(class)))
		return;
	if (f->call_stack && class == BRANCH_RET) {
		if (recorded)
			recorded--;
		return;
	}
	if (f->call_stack && next)
		return;
	if (recorded == bare.lbr_depth) {
		memmove(wanted, wanted + 1, sizeof(wanted) - sizeof(wanted[0]));
		recorded--;
	}
	wanted[recorded++] = encode(class, base + b->from, base + b->to, insns);
	insns = 0;
}

static void want_all(const struct filter *f, u64 loops)
{
	const struct branch *b;
	u64 i;

	recorded = 0;
	insns = 0;
	for (b = branch_list; b < branch_list + BRANCHES; b++) {
		switch (b->class) {
		case BRANCH_NEXT_CALL:
			want(f, BRANCH_REL_CALL, b, true);
			break;
		case BRANCH_FIRST_LOOP:
			want(f, BRANCH_JCC, b, false);
			break;
		case BRANCH_MORE_LOOPS:
			for (i = 2; i < loops; i++)
				want(f, BRANCH_JCC, b, false);
			break;
		default:
			want(f, b->class, b, false);
			break;
		}
	}
}

/* Runs the program: it must record exactly the branches in the list. */
static void check_run(const struct filter *f, u64 loops, const char *what)
{
	static const struct record none;
	struct run run = prepare(f);
	unsigned int age;

	run.loops = loops;
	run_branches(&run);
	want_all(f, loops);
	for (age = 0; age < bare.lbr_depth; age++)
		same_record(age, age < recorded ? &wanted[recorded - 1 - age] : &none, what);
}

static const struct filter everything = { ALL_CLASSES, true, true };

static void lbr_all(void)
{
	check_run(&everything, 2, "all");
	check_run(&everything, 3, "again");
	/* The loop fills the records. */
	check_run(&everything, 100, "more than there is room for");
}

static void lbr_classes(void)
{
	struct filter f = everything;
	int i;

	for (i = 0; i < BRANCH_CLASSES; i++) {
		f.classes = BIT(i);
		check_run(&f, 4, classes[i].name);
		f.classes = ALL_CLASSES & ~BIT(i);
		check_run(&f, 4, classes[i].name);
	}
	f.classes = 0;
	check_run(&f, 4, "none");
}

static u64 user_from[NR_CPUS], user_to[NR_CPUS], user_other[NR_CPUS];

static const struct filter user_loops = { BIT(BRANCH_JCC), false, true };

static void start_user(void *unused)
{
	struct run run;

	clear_pmu();
	run = prepare(&user_loops);
	start(&run);
}

static void stop_user(void *unused)
{
	unsigned int cpu = raw_smp_processor_id(), age;
	struct record r;

	stop_lbr();
	r = record(0);
	user_from[cpu] = r.from & GENMASK_ULL(60, 0);
	user_to[cpu] = to_address(&r) & GENMASK_ULL(60, 0);
	for (age = 1; age < bare.lbr_depth; age++) {
		struct record other = record(age);

		user_other[cpu] |= (other.from ^ r.from) | (to_address(&other) ^ to_address(&r));
	}
}

/*
 * The target's level decides. exact_loop has one branch: DEC, of two bytes, and
 * JNZ back to it.
 */
static void lbr_levels(void)
{
	struct filter f = everything;
	char path[] = "/opt/rpmu/exact_loop";
	char *argv[2] = { path };
	char *envp[1] = { };
	unsigned int cpu, loops = 0;

	f.user = false;
	check_run(&f, 2, "kernel");
	f.kernel = false;
	check_run(&f, 2, "neither");
	f.user = true;
	check_run(&f, 2, "user");

	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, start_user, NULL, 1);
	same(call_usermodehelper(path, argv, envp, UMH_WAIT_PROC), 0, "status of %s", path);
	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, stop_user, NULL, 1);
	for_each_online_cpu(cpu) {
		expect(user_from[cpu] < TASK_SIZE_MAX, "the kernel's branch: %#llx",
		       user_from[cpu]);
		if (user_from[cpu] && user_to[cpu] + 2 == user_from[cpu] && !user_other[cpu])
			loops++;
	}
	same(loops, 1, "CPUs with nothing but the loop of exact_loop");
}

/* From Haswell on, a return removes the record of its call. */
static void lbr_call_stack(void)
{
	struct filter f = {
		.classes = BIT(BRANCH_REL_CALL) | BIT(BRANCH_IND_CALL) | BIT(BRANCH_RET),
		.kernel = true,
		.call_stack = true,
	};

	if (bare.lbr_format < 4) {
		expect(wr_faults(MSR_LBR_SELECT, EN_CALLSTACK), "LBR_SELECT takes EN_CALLSTACK");
		return;
	}
	check_run(&f, 2, "call stack");
	same(recorded, 2, "calls at the end");
}

/* An instruction that faults: #GP to its handler, and IRET to the next instruction. */
static void lbr_exception(void)
{
	struct filter f = { BIT(BRANCH_FAR), true, true };
	struct run run = prepare(&f);
	/* An MSR that this CPU lacks */
	u32 msr = bare.amd ? MSR_CORE_PERF_GLOBAL_CTRL : MSR_IA32_LASTINTFROMIP;
	u64 from = 0, to = 0, handler;
	struct desc_ptr idt;
	const gate_desc *gate;
	struct record r, got;

	store_idt(&idt);
	gate = (const gate_desc *)idt.address + X86_TRAP_GP;
	handler = gate_offset(gate);
	start(&run);
	asm volatile("lea 1f(%%rip), %[from]\n"
		     "lea 2f(%%rip), %[to]\n"
		     "mov %[msr], %%ecx\n"
		     "1: rdmsr\n"
		     "2:\n"
		     _ASM_EXTABLE(1b, 2b)
		     : [from] "=&r" (from), [to] "=&r" (to)
		     : [msr] "r" (msr)
		     : "eax", "ecx", "edx", "memory");
	stop(&run);
	r = encode(BRANCH_FAR, from, handler, 0);
	got = record(1);
	same(got.from, r.from, "from of #GP");
	same(to_address(&got), to_address(&r), "to of #GP");
	same(got.info & ~0xffffULL, r.info & ~0xffffULL, "flags of #GP");
	r = encode(BRANCH_FAR, 0, to, 0);
	got = record(0);
	same(to_address(&got), to_address(&r), "to of IRET");
	same(record(2).from, 0, "a third far branch");
}

/* Counts the records outside of run_between(), whose loop is less than 100 bytes. */
static unsigned int records_outside(void)
{
	unsigned int age, outside = 0;

	for (age = 0; age < bare.lbr_depth; age++) {
		struct record r = record(age);
		u64 to = to_address(&r);

		if (bare.amd)
			to = (s64)(to << 3) >> 3;
		if (to - (u64)run_between >= 100)
			outside++;
	}
	return outside;
}

/*
 * SDM vol. 3, 18.4.7: with FREEZE_LBRS_ON_PMI, nothing is recorded after a PMI:
 * DEBUGCTL.LBR is clear or, from version 4 on, LBR_FRZ is set.
 */
static void lbr_freeze(void)
{
	bool v4 = bare.model->version >= 4;
	u64 debugctl, lbr = architectural() ? 0 : DEBUGCTLMSR_LBR;
	struct run run;
	int freeze;

	for (freeze = 0; freeze < 2; freeze++) {
		unsigned int outside;

		clear_pmu();
		run = prepare(&everything);
		debugctl = lbr | (freeze ? DEBUGCTLMSR_FREEZE_LBRS_ON_PMI : 0);
		wr(DEBUGCTL, debugctl);
		if (architectural())
			wr(MSR_ARCH_LBR_CTL, run.on);
		start_counter(0, LEVEL_OS | WITH_PMI);
		preset(0, -(s64)RUN_INSTRUCTIONS / 2);
		run_with(1);
		/* A frozen stack stays in the state at the PMI. */
		debugctl = rd(DEBUGCTL);
		if (!freeze)
			stop(&run);
		same(pmi.count, 1, "PMIs, freeze %d", freeze);
		same(pmi.status, 1 | (freeze && v4 ? GLOBAL_STATUS_LBRS_FROZEN : 0),
		     "status, freeze %d", freeze);
		same(debugctl & DEBUGCTLMSR_LBR, freeze && !v4 ? 0 : lbr, "LBR, freeze %d", freeze);
		outside = records_outside();
		expect(freeze ? !outside : outside, "%u branches outside of the loop, freeze %d",
		       outside, freeze);
		if (!freeze)
			continue;
		/* Until LBR_FRZ is cleared */
		run_between(&run);
		if (v4) {
			same(records_outside(), 0, "frozen records changed");
			wr(RESET, pmi.status);
			same(rd(STATUS), 0, "status, thawed");
		}
		check_run(&everything, 2, "thawed");
	}
}

/* The same with AMD's registers, whose status reports frozen records and frozen counters. */
static void amd_lbr_freeze(void)
{
	static const u64 debugctls[] = {
		0, DEBUGCTLMSR_FREEZE_LBRS_ON_PMI, DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI,
	};
	static const u64 frozen[] = {
		0, GLOBAL_STATUS_LBRS_FROZEN, GLOBAL_STATUS_COUNTERS_FROZEN,
	};
	struct run lbr, run = {
		.on_msr = AMD_PERF_CTL,
		.on = INST_RETIRED | ARCH_PERFMON_EVENTSEL_OS | ARCH_PERFMON_EVENTSEL_INT |
		      ARCH_PERFMON_EVENTSEL_ENABLE,
		.off_msr = AMD_PERF_CTL,
		.loops = LOOPS,
	};
	unsigned int i, outside;
	u64 status, count;

	for (i = 0; i < ARRAY_SIZE(debugctls); i++) {
		clear_pmu();
		lbr = prepare(&everything);
		wr(DEBUGCTL, debugctls[i]);
		wr(AMD_PERF_CTR, -RUN_INSTRUCTIONS / 2);
		start(&lbr);
		run_between(&run);
		status = rd(MSR_AMD64_PERF_CNTR_GLOBAL_STATUS);
		count = rd(AMD_PERF_CTR);
		stop(&lbr);
		same(status, 1 | frozen[i], "status, DEBUGCTL %#llx", debugctls[i]);
		outside = records_outside();
		expect((frozen[i] & GLOBAL_STATUS_LBRS_FROZEN) ? !outside : outside,
		       "%u branches outside of the loop, DEBUGCTL %#llx", outside, debugctls[i]);
		expect((frozen[i] & GLOBAL_STATUS_COUNTERS_FROZEN) ? count <= RUN_BLOCK :
			count > RUN_INSTRUCTIONS / 2, "%llu counted, DEBUGCTL %#llx", count,
		       debugctls[i]);
		wr(MSR_AMD64_PERF_CNTR_GLOBAL_STATUS_CLR, status);
		same(rd(MSR_AMD64_PERF_CNTR_GLOBAL_STATUS), 0, "status, cleared");
		check_run(&everything, 2, "thawed");
	}
}

/* Reserved bits are ignored, and the addresses are not checked. */
static void amd_lbr_registers(void)
{
	u32 eax, ebx, ecx, edx;
	int i;

	cpuid(0x80000022, &eax, &ebx, &ecx, &edx);
	same(eax & 7, 7, "PerfMonV2, LbrStack, LbrAndPmcFreeze");
	same((ebx >> 4) & 0x3f, bare.lbr_depth, "LbrStackSize");
	wr(MSR_AMD64_LBR_SELECT, ~0ULL);
	same(rd(MSR_AMD64_LBR_SELECT), 0x1ff, "LBR_SELECT");
	wr(MSR_AMD_DBG_EXTN_CFG, ~0ULL);
	same(rd(MSR_AMD_DBG_EXTN_CFG), DBG_EXTN_CFG_LBRV2EN, "DBG_EXTN_CFG");
	wr(MSR_AMD_DBG_EXTN_CFG, 0);
	for (i = 0; i < 2 * bare.lbr_depth; i++) {
		wr(AMD_FROM + i, ~0ULL - i);
		same(rd(AMD_FROM + i), ~0ULL - i, "MSR %#x", AMD_FROM + i);
	}
}

/* The registers, the values that they take, and accesses that must fault. */
static void lbr_registers(void)
{
	static const u64 addresses[] = {
		0, 1, 0x7fffffffffff, 0xffff800000000000, 0xffffffff81000000,
	};
	u32 from = first_from(), to = first_to();
	u32 info = architectural() ? MSR_ARCH_LBR_INFO_0 : MSR_LBR_INFO_0;
	int i, j, depth = bare.lbr_depth;
	struct run run = prepare(&everything);
	u64 sign = BIT_ULL(address_sign());
	u32 eax, ebx, ecx, edx;

	stop(&run);
	if (bare.model->lbr_low)
		expect(rd_faults(MSR_LBR_NHM_FROM) && rd_faults(MSR_LBR_NHM_TO), "later FROM, TO");
	for (i = 0; i < MAX_DEPTH; i++) {
		if (i >= depth) {
			/* Core 2's registers are followed by others of other purposes. */
			expect(bare.model->lbr_low || rd_faults(from + i), "FROM %d", i);
			expect(bare.model->lbr_low || rd_faults(to + i), "TO %d", i);
			continue;
		}
		for (j = 0; j < ARRAY_SIZE(addresses); j++) {
			wr(from + i, addresses[j]);
			wr(to + i, addresses[j]);
			same(rd(from + i), addresses[j], "FROM %d", i);
			same(rd(to + i), addresses[j], "TO %d", i);
		}
		expect(wr_faults(from + i, sign), "FROM %d: address", i);
		expect(wr_faults(to + i, sign) != has_cycles_in_to(), "TO %d: address", i);
		/* The flag in FROM */
		expect(wr_faults(from + i, BIT_ULL(63)) == !has_flag(), "FROM %d: flag", i);
		/* Without TSX, a part of the address */
		expect(wr_faults(from + i, BIT_ULL(61)), "FROM %d: bit 61", i);
		if (has_info())
			wr(info + i, BIT_ULL(63) | 0x1234);
		else
			expect(rd_faults(info + i), "INFO %d", i);
	}
	cpuid_count(7, 0, &eax, &ebx, &ecx, &edx);
	same(!!(edx & BIT(19)), architectural(), "CPUID.07H:EDX[19]");
	if (architectural()) {
		for (i = 0; i < 64; i++)
			same(wr_faults(MSR_ARCH_LBR_CTL, BIT_ULL(i)), !(CTL_BITS & BIT_ULL(i)),
			     "LBR_CTL, bit %d", i);
		for (i = 0; i <= 64; i++)
			same(wr_faults(MSR_ARCH_LBR_DEPTH, i), i != 8 && i != 16 && i != 32,
			     "LBR_DEPTH %d", i);
		wr(MSR_ARCH_LBR_DEPTH, 8);
		expect(!rd_faults(from + 7) && rd_faults(from + 8), "a record beyond the depth");
		wr(from, 1);
		wr(MSR_ARCH_LBR_DEPTH, depth);
		same(rd(from), 0, "a record after a write of the depth");
		expect(rd_faults(MSR_LBR_SELECT) && rd_faults(MSR_LBR_TOS), "legacy registers");
		cpuid_count(0x1c, 0, &eax, &ebx, &ecx, &edx);
		/* 8, 16, 32 records; lost in deep C-states; effective addresses */
		same(eax, BIT(30) | BIT(0) | BIT(1) | BIT(3), "CPUID.1CH:EAX");
		same(ebx, 7, "CPUID.1CH:EBX");
		same(ecx, 7, "CPUID.1CH:ECX");
		wr(DEBUGCTL, DEBUGCTLMSR_LBR);
		same(rd(DEBUGCTL), 0, "DEBUGCTL.LBR");
		return;
	}
	for (i = 0; i < 64; i++) {
		int bits = bare.lbr_format < 4 ? 9 : 10;

		same(wr_faults(MSR_LBR_SELECT, BIT_ULL(i)), i >= bits, "LBR_SELECT, bit %d", i);
	}
	for (i = 0; i < depth; i++) {
		wr(MSR_LBR_TOS, i);
		same(rd(MSR_LBR_TOS), i, "TOS");
	}
	expect(wr_faults(MSR_LBR_TOS, depth), "TOS takes %d", depth);
	expect(rd_faults(MSR_ARCH_LBR_CTL) && rd_faults(MSR_ARCH_LBR_DEPTH),
	       "architectural registers");
	wr(DEBUGCTL, DEBUGCTLMSR_LBR);
	same(rd(DEBUGCTL), DEBUGCTLMSR_LBR, "DEBUGCTL");
}

/* Nothing is recorded and all is zero before the first write. */
static void lbr_reset_values(void)
{
	int i;

	if (bare.amd) {
		same(rd(MSR_AMD64_LBR_SELECT), 0, "LBR_SELECT");
		same(rd(MSR_AMD_DBG_EXTN_CFG), 0, "DBG_EXTN_CFG");
		for (i = 0; i < 2 * bare.lbr_depth; i++)
			same(rd(AMD_FROM + i), 0, "MSR %#x", AMD_FROM + i);
		return;
	}
	if (architectural()) {
		same(rd(MSR_ARCH_LBR_CTL), 0, "LBR_CTL");
		same(rd(MSR_ARCH_LBR_DEPTH), 0, "LBR_DEPTH");
		return;
	}
	same(rd(MSR_LBR_SELECT), 0, "LBR_SELECT");
	same(rd(MSR_LBR_TOS), 0, "TOS");
	for (i = 0; i < bare.lbr_depth; i++)
		same(rd(first_from() + i) | rd(first_to() + i), 0, "record %d", i);
}

void stop_lbr(void)
{
	wr(DEBUGCTL, 0);
	if (bare.amd) {
		wr(MSR_AMD_DBG_EXTN_CFG, 0);
		wr(MSR_AMD64_LBR_SELECT, 0);
	} else if (architectural()) {
		wr(MSR_ARCH_LBR_CTL, 0);
	} else {
		wr(MSR_LBR_SELECT, 0);
	}
}

const struct check branch_checks[] = {
	{ "lbr_reset_values", lbr_reset_values, CHECK_AS_IS },
	{ "lbr_registers", lbr_registers },
	{ "lbr_all", lbr_all },
	{ "lbr_classes", lbr_classes },
	{ "lbr_levels", lbr_levels, CHECK_ONCE },
	{ "lbr_call_stack", lbr_call_stack },
	{ "lbr_exception", lbr_exception },
	{ "lbr_freeze", lbr_freeze },
	{ }
};

const struct check amd_branch_checks[] = {
	{ "lbr_reset_values", lbr_reset_values, CHECK_AS_IS },
	{ "lbr_registers", amd_lbr_registers },
	{ "lbr_all", lbr_all },
	{ "lbr_classes", lbr_classes },
	{ "lbr_levels", lbr_levels, CHECK_ONCE },
	{ "lbr_exception", lbr_exception },
	{ "lbr_freeze", amd_lbr_freeze },
	{ }
};
