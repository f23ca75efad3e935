/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the checks of the emulated PMU. They program it like hardware
 * validation: through its registers, without a PMU driver.
 */
#ifndef VPMU_BARE_H
#define VPMU_BARE_H

#include <linux/bits.h>
#include <linux/types.h>
#include <asm/msr.h>
#include <asm/perf_event.h>

/* Width of all counters. */
#define WIDTH			((bare.model && bare.model->width) ? bare.model->width : 48)
#define WIDTH_MASK		GENMASK_ULL(WIDTH - 1, 0)
/* A counter is named by its bit in IA32_PERF_GLOBAL_CTRL. */
#define FIXED			32
#define MAX_GENERAL		8
#define MAX_FIXED		4

#define MSR_CORE_PERF_GLOBAL_INUSE	0x392
#define MISC_ENABLE_READ_ONLY		(BIT_ULL(7) | BIT_ULL(11) | BIT_ULL(12))
#define PERF_CAP_SMM_FREEZE		BIT_ULL(12)
#define PERF_CAP_FULL_WIDTH		BIT_ULL(13)
#define PERF_CAP_METRICS		BIT_ULL(15)
/* MSR_PERF_METRICS in IA32_PERF_GLOBAL_*, and as ECX of RDPMC */
#define METRICS_BIT			BIT_ULL(48)
#define RDPMC_METRICS			BIT(29)

#define INST_RETIRED		0x00c0
#define BR_INST_RETIRED		0x00c4

/* The levels and the PMI flag, as in a field of IA32_FIXED_CTR_CTRL. */
#define LEVEL_OS		BIT(0)
#define LEVEL_USR		BIT(1)
#define LEVEL_ANY		(LEVEL_OS | LEVEL_USR)
#define WITH_PMI		BIT(3)

/* A class of branches: its name, its event select, and its number in run.S. */
struct branch_class {
	const char *name;
	u16 select;
	/* in run.S: per round, and a correction of the total */
	s8 each, offset;
	/* in exact_mix.S */
	u32 exact_mix;
};

/* An event that only some counters count. */
struct placed_event {
	u16 select;
	/* masks, with one and with two threads per core */
	u8 counters[2];
	/* counts instructions; otherwise any non-zero number */
	bool exact;
};

/* A CPU model, from Intel's manuals; see models.c. */
struct model {
	const char *name;
	u32 vfm;
	u8 version;
	/* general counters with one and with two threads per core */
	u8 generals[2];
	u8 fixed;
	/* of the counters; 0: 48 bits */
	u8 width;
	/* architectural events: number in CPUID, mask of the missing ones */
	u8 events;
	u8 missing;
	bool any_thread;
	bool pin_control;
	bool full_width;
	/* MSR_OFFCORE_RSP_x: number, shared by the core, event of the first */
	u8 offcore_rsp;
	bool offcore_per_core;
	u16 offcore_event;
	/* their bits, on small cores */
	u64 offcore_bits[2];
	bool frontend;
	u8 slots_per_cycle;
	/* shares in MSR_PERF_METRICS; 0: the register does not exist */
	u8 metrics;
	/* LBR_FMT of IA32_PERF_CAPABILITIES, and the number of branch records */
	u8 lbr_format;
	u8 lbr_depth;
	/* the records are where Core 2 has them */
	bool lbr_low;
	/* PEBS_REC_FMT of IA32_PERF_CAPABILITIES, and if there is PS_EN */
	u8 pebs_format;
	bool pebs_store;
	/* all counters sample any event, beside those of format 4 */
	bool pebs_extended;
	/* counter 0 alone samples; and any event */
	bool pebs_first;
	bool pebs_any_event;
	/* records have no addresses, and loads and stores are not precise */
	bool pebs_no_addresses;
	/*
	 * the event of load latency, used on counter 0; 0 if it is Nehalem's or
	 * 0x01cd, used on counter 3
	 */
	u16 pebs_latency_event;
	/* neither such an event nor MSR_PEBS_LD_LAT exists */
	bool no_load_latency;
	/* bits 47:32 of the latency of a load of 16 cycles */
	u8 pebs_cache_latency;
	/* PEBS_TIMING_INFO of IA32_PERF_CAPABILITIES */
	bool pebs_timing;
	/* the event of all loads; 0 if it is Nehalem's or 0x81d0 */
	u16 loads;
	/* retired loads include software prefetches */
	bool prefetches_load;
	/* errata BJ122, BV98, HSD29 */
	bool ht_leak;
	const struct branch_class *branches;
	const struct placed_event *placed;
};

/* The CPU and PMU of this guest. */
struct bare {
	const struct model *model;
	int threads;
	int generals;
	/* all counters, as bits of IA32_PERF_GLOBAL_CTRL */
	unsigned long counters;
	/* the PMU's defects */
	bool ht_leak, tfa;
	/* the model's, or LBR_AMD; 0 records if the CPU records no branches */
	u8 lbr_format, lbr_depth;
	/* PEBS is switched on */
	bool pebs;
	/* an AMD CPU: @model is NULL, and amd.c has its checks */
	bool amd;
};

/* LbrExtV2, beside the values of LBR_FMT */
#define LBR_AMD	0x40

extern struct bare bare;

/*
 * Returns the number of the highest bit of an address: addresses have 57 bits on
 * models with five-level paging, which are those with adaptive PEBS, or else 48.
 */
static inline unsigned int address_sign(void)
{
	return bare.model->pebs_format == 4 ? 56 : 47;
}

const struct model *find_model(u32 vfm);

#define for_each_counter(c)	for_each_set_bit(c, &bare.counters, 64)
#define for_each_general(c)	for_each_set_bit(c, &bare.counters, FIXED)

/*
 * One check. It runs on one CPU after the other, with a cleared PMU and
 * interrupts off, unless a flag says otherwise.
 */
struct check {
	const char *name;
	void (*run)(void);
	unsigned int flags;
#define CHECK_IRQS_ON	BIT(0)
#define CHECK_ONCE	BIT(1)	/* on one CPU; implies interrupts on */
#define CHECK_AS_IS	BIT(2)	/* do not clear the PMU */
};

extern const struct check register_checks[];
extern const struct check counting_checks[];
extern const struct check pmi_checks[];
extern const struct check metrics_checks[];
extern const struct check branch_checks[];
extern const struct check pebs_checks[];
extern const struct check defect_checks[];
extern const struct check accounting_checks[];
extern const struct check idle_checks[];
extern const struct check amd_checks[];
extern const struct check amd_branch_checks[];

/* Verdicts: a failed expectation fails the running check. */
extern unsigned int failures;
#define MAX_REPORTED	8
__printf(2, 3) bool expect(bool ok, const char *fmt, ...);
__printf(3, 4) bool same(u64 got, u64 wanted, const char *fmt, ...);

/* Register accesses; rd() and wr() fail the check on a fault. */
u64 rd(u32 msr);
void wr(u32 msr, u64 value);
bool rd_faults(u32 msr);
bool wr_faults(u32 msr, u64 value);
/* RDPMC; returns -EFAULT on a fault. */
int rdpmc_safe(u32 ecx, u64 *value);

/* All writable bits of IA32_PERF_GLOBAL_CTRL. */
u64 ctrl_bits(void);

/* Counters */
void stop_pmu(void);
void stop_lbr(void);
void clear_pmu(void);
u32 counter_msr(unsigned int c);
u32 counter_ecx(unsigned int c);
u64 count(unsigned int c);
/* Writes 48 bits of @value, or the low 32 bits if no more can be written. */
void preset(unsigned int c, s64 value);
void select_event(unsigned int c, u32 event, u32 flags);
/* Starts a fixed counter, or a general one with instructions. */
void start_counter(unsigned int c, u32 flags);
void start_all(u32 flags);
/* Returns the count of that many instructions after start_counter(). */
u64 expected(unsigned int c, u64 instructions);

/*
 * run.S: WRMSR, a loop, WRMSR. After the first WRMSR, up to and including the
 * second, it retires RUN_INSTRUCTIONS with RUN_BRANCHES branches.
 */
struct run {
	u32 on_msr, off_msr;
	u64 on, off;
	u64 loops;
};

void run_between(const struct run *run);

#define LOOPS			1000
#define RUN_INSTRUCTIONS	(7 * LOOPS + 4)
#define RUN_BRANCHES		(5 * LOOPS)
/* One for each return, and three of struct run, for the second WRMSR. */
#define RUN_LOADS		(LOOPS + 3)
/* Instructions of the longest block without a branch: the maximum skid. */
#define RUN_BLOCK		4

/* Runs run_between() with these counters enabled in IA32_PERF_GLOBAL_CTRL. */
void run_with(u64 counters);

/* pebs_program.S: the same with a loop of this many instructions. */
#define PEBS_INSNS		5
extern const u32 pebs_ips[PEBS_INSNS + 1];
void run_pebs(const struct run *run, const u64 *loads, u64 *stores);

/* The accounting MSRs, see README.md of the emulated PMU */
#define ACCT_SELECT		0x4000ff00
#define   ACCT_RDPMC		BIT_ULL(62)
#define   ACCT_CLEAR		BIT_ULL(63)
#define ACCT_READS		0x4000ff01
#define ACCT_WRITES		0x4000ff02
#define ACCT_FAULTS		0x4000ff03
#define ACCT_PMIS		0x4000ff04
#define ACCT_TOLD		0x4000ff05
#define ACCT_KERNEL		0x4000ff06
#define ACCT_USER		0x4000ff07
#define ACCT_LOST		0x4000ff08
#define ACCT_MARK		0x4000ff09

/* The PMIs of the running check. */
struct pmi {
	unsigned int count;
	/* as the first one found them */
	u64 status, ctrl, value;
	u32 lvtpc;
	/* the counter whose value this is */
	unsigned int counter;
	/* restart the counter with this period, this many times */
	s64 period;
	unsigned int again;
};

extern struct pmi pmi;
/* AMD's CPUs. amd_find() returns the CPU's name, or NULL if it is unknown. */
const char *amd_find(void);
void amd_stop(void);
int amd_init(void);
void amd_exit(void);

int pmi_init(void);
void pmi_exit(void);
void lvtpc(u32 value);
u32 read_lvtpc(void);

#endif
