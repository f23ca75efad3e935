// SPDX-License-Identifier: GPL-2.0
/*
 * Precise sampling (SDM vol. 3, 17.4.9, 20.3.1.1.1, 20.3.6.2, 20.3.8.1, 20.9):
 * checks the records of a program whose every instruction is known, field by
 * field, in the format of each model.
 */
#include <linux/array_size.h>
#include <linux/string.h>
#include <asm/cpuid/api.h>
#include <asm/fpu/api.h>

#include "bare.h"

#define ENABLE		MSR_IA32_PEBS_ENABLE
#define STATUS		MSR_CORE_PERF_GLOBAL_STATUS
#define MISC_PEBS	BIT_ULL(12)
#define CAP_PEBS	(BIT_ULL(6) | BIT_ULL(7) | GENMASK_ULL(11, 8) | BIT_ULL(14) | BIT_ULL(17))
#define ADAPTIVE	BIT_ULL(34)
#define FIXED_ADAPTIVE(i)	(BIT_ULL(32) << (4 * (i)))
#define OVF_DS_BUFFER	BIT_ULL(62)
/* MSR_PEBS_DATA_CFG */
#define CFG_MEMORY	BIT_ULL(0)
#define CFG_GPR		BIT_ULL(1)
#define CFG_XMM		BIT_ULL(2)
#define CFG_LBR		BIT_ULL(3)
#define CFG_LBR_NR(nr)	((u64)((nr) - 1) << 24)

/* run_pebs() */
#define INSNS		PEBS_INSNS
#define POS_LOAD	0
#define POS_STORE	2
#define POS_DEC		3
#define POS_JNZ		4

static u64 loads[LOOPS + 1], stores[LOOPS + 1];
/* In the module's memory, which is mapped page by page. */
static u64 buffer[8192];

/* The DS area, with 64-bit fields. */
static struct {
	u64 bts[4];
	u64 base, index, maximum, threshold;
	u64 reset[12];
} area;

static bool adaptive(void)
{
	return bare.model->pebs_format == 4;
}

/* All counters sample any event. */
static bool extended(void)
{
	return adaptive() || bare.model->pebs_extended;
}

/* In words; for the adaptive format, the basic group. */
static unsigned int record_size(void)
{
	static const u8 sizes[] = { 0, 0xb0, 0xc0, 0xc8, 0x20 };

	return sizes[bare.model->pebs_format] / 8;
}

/* An event of the loop: its select, its counter, and the instruction. */
struct event {
	u32 select;
	unsigned int counter;
	/* position of the instruction with the event; negative: every instruction */
	int pos;
	/* more bits of IA32_PEBS_ENABLE */
	u64 enable;
};

static u64 ip(unsigned int pos)
{
	return (u64)run_pebs + pebs_ips[pos];
}

/* The common fields of all records. */
struct wanted {
	u64 ip, next, rax, r8, r9, address;
};

/* Returns the expected fields of a record of the nth event, from 1 on. */
static struct wanted want(const struct event *e, u64 n)
{
	u64 insn = e->pos < 0 ? n - 1 : (n - 1) * INSNS + e->pos;
	u64 round = insn / INSNS, i;
	unsigned int pos = insn % INSNS;
	struct wanted w = {
		.ip = ip(pos),
		.next = ip(pos + 1),
		.rax = loads[LOOPS - round],
		.r8 = LOOPS - round - (pos >= POS_DEC),
	};

	for (i = 0; i < round + (pos > POS_LOAD); i++)
		w.r9 += loads[LOOPS - i];
	if (e->pos == POS_LOAD)
		w.address = (u64)&loads[LOOPS - round];
	if (e->pos == POS_STORE)
		w.address = (u64)&stores[LOOPS - round];
	return w;
}

static void prepare(unsigned int threshold)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(loads); i++)
		loads[i] = 3 * i + 1;
	memset(&area, 0, sizeof(area));
	memset(buffer, 0, sizeof(buffer));
	area.base = (u64)buffer;
	area.index = area.base;
	area.maximum = (u64)(buffer + ARRAY_SIZE(buffer));
	area.threshold = threshold ? (u64)(buffer + threshold) : area.maximum + 1;
	wr(MSR_IA32_DS_AREA, (u64)&area);
}

static void start_event(const struct event *e, u64 period)
{
	unsigned int c = e->counter;

	if (c >= FIXED) {
		wr(MSR_CORE_PERF_FIXED_CTR_CTRL, (u64)LEVEL_OS << (4 * (c - FIXED)));
		area.reset[8 + c - FIXED] = -period & WIDTH_MASK;
	} else {
		select_event(c, e->select, LEVEL_OS);
		area.reset[c] = -period & WIDTH_MASK;
	}
	preset(c, -(s64)period);
	wr(ENABLE, BIT_ULL(c) | e->enable);
}

static void run_loop(unsigned int c)
{
	struct run run = {
		.on_msr = MSR_CORE_PERF_GLOBAL_CTRL,
		.on = BIT_ULL(c),
		.off_msr = MSR_CORE_PERF_GLOBAL_CTRL,
		.loops = LOOPS,
	};

	run_pebs(&run, loads, stores);
}

/*
 * Checks RFLAGS, IP and general-purpose registers, in the old order or in the
 * order of the adaptive group.
 */
static void check_regs(const u64 *r, const struct wanted *w, bool old, u64 nr)
{
	u64 buf = (u64)stores;

	same(r[1], w->next, "IP, record %llu", nr);
	same(r[2], w->rax, "RAX, record %llu", nr);
	same(r[old ? 4 : 3], MSR_CORE_PERF_GLOBAL_CTRL, "RCX, record %llu", nr);
	same(r[10], w->r8, "R8, record %llu", nr);
	same(r[11], w->r9, "R9, record %llu", nr);
	same(r[12], (u64)loads, "R10, record %llu", nr);
	same(r[13], buf, "R11, record %llu", nr);
	/* Reserved and always set; interrupts are off. */
	same(r[0] & (BIT(1) | BIT(9)), BIT(1), "RFLAGS, record %llu", nr);
}

/* The latency of retirement in the first word of an adaptive record. */
static u64 retirement(const struct event *e, const struct wanted *w)
{
	if (!bare.model->pebs_timing || e->counter == FIXED)
		return 0;
	return (1 + (w->ip & GENMASK_ULL(3, 0))) << 32;
}

static void check_record(const u64 *r, const struct event *e, const struct wanted *w,
			 const u64 access[3], u64 nr)
{
	if (adaptive()) {
		same(r[0], 0x20ULL << 48 | retirement(e, w), "format and size, record %llu", nr);
		same(r[1], w->ip, "IP, record %llu", nr);
		same(r[2], BIT_ULL(e->counter), "counters, record %llu", nr);
		return;
	}
	check_regs(r, w, true, nr);
	same(r[18], BIT_ULL(e->counter), "status, record %llu", nr);
	same(r[19], access[0], "address, record %llu", nr);
	same(r[20], access[1], "source, record %llu", nr);
	same(r[21], access[2], "latency, record %llu", nr);
	if (bare.model->pebs_format >= 2) {
		same(r[22], w->ip, "EventingIP, record %llu", nr);
		same(r[23], 0, "TSX, record %llu", nr);
	}
}

/* Checks every record of an event. The event after the overflow is the sampled one. */
static void check_event(const struct event *e, u64 period, u64 source)
{
	u64 per_loop = e->pos < 0 ? INSNS : 1;
	u64 records = per_loop * LOOPS / (period + 1), nr;
	u64 tsc = 0;

	prepare(0);
	start_event(e, period);
	run_loop(e->counter);
	same(area.index, (u64)(buffer + records * record_size()), "index, event %#x", e->select);
	for (nr = 0; nr < records; nr++) {
		const u64 *r = buffer + nr * record_size();
		struct wanted w = want(e, (nr + 1) * (period + 1));
		bool has_address = source || (e->pos == POS_LOAD && bare.model->pebs_format >= 2);
		u64 access[] = { has_address ? w.address : 0, source, 0 };

		check_record(r, e, &w, access, nr);
		if (bare.model->pebs_format >= 3) {
			u64 now = r[adaptive() ? 3 : 24];

			expect(now > tsc, "TSC of record %llu: %llu after %llu", nr, now, tsc);
			tsc = now;
		}
	}
	same(rd(STATUS), 0, "status, event %#x", e->select);
	wr(ENABLE, 0);
}

static void registers(void)
{
	const struct model *m = bare.model;
	u64 four = GENMASK_ULL(3, 0), bits = four | four << 32;
	unsigned int sign = address_sign(), bit;

	if (extended())
		bits = bare.counters;
	else if (m->pebs_first)
		bits = 1;
	else if (m->pebs_store)
		bits |= BIT_ULL(63);
	expect(cpuid_edx(1) & BIT(21), "CPUID.01H:EDX has no DS");
	expect(cpuid_ecx(1) & BIT(2), "CPUID.01H:ECX has no DTES64");
	same(rd(MSR_IA32_MISC_ENABLE) & MISC_PEBS, 0, "PEBS unavailable");
	same(rd(MSR_IA32_PERF_CAPABILITIES) & CAP_PEBS,
	     BIT(6) | BIT(7) | m->pebs_format << 8 | (adaptive() ? BIT(14) : 0) |
	     (m->pebs_timing ? BIT(17) : 0), "capabilities");
	for (bit = 0; bit < 64; bit++) {
		u64 mask = BIT_ULL(bit);
		bool cfg = adaptive() && mask & (GENMASK_ULL(31, 24) | four);

		same(!wr_faults(ENABLE, mask), !!(bits & mask), "PEBS_ENABLE, bit %u", bit);
		same(!wr_faults(MSR_PEBS_DATA_CFG, mask), cfg, "PEBS_DATA_CFG, bit %u", bit);
		same(!wr_faults(MSR_IA32_DS_AREA, mask), bit < sign, "DS_AREA, bit %u", bit);
	}
	wr(ENABLE, 0);
	if (adaptive())
		wr(MSR_PEBS_DATA_CFG, 0);
	wr(MSR_IA32_DS_AREA, 0);
}

static void instructions(void)
{
	static const u64 periods[] = { 15, 98, 511, 512, 513, 1022 };
	struct event e = { .select = INST_RETIRED, .pos = -1 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(periods); i++) {
		e.counter = bare.model->pebs_first ? 0 : i % 4;
		check_event(&e, periods[i], 0);
	}
	if (extended()) {
		e.counter = FIXED;
		check_event(&e, 98, 0);
	}
}

/* All loads and all stores: from the second format on, with their addresses. */
static void memory(void)
{
	bool nehalem = !bare.model->full_width;
	struct event load = { .select = nehalem ? 0x010b : 0x81d0, .pos = POS_LOAD };
	struct event store = { .select = nehalem ? 0x020b : 0x82d0, .pos = POS_STORE };

	if (bare.model->pebs_no_addresses)
		return;
	check_event(&load, 8, 0);
	check_event(&store, 8, bare.model->pebs_format >= 2);
}

/*
 * Runs an instruction after a load from @from and a store to @to, one of which
 * makes the counter overflow.
 */
#define DEFINE_ACCESS(name, insn)						\
static void name(const u64 *from, u64 *to)					\
{										\
	u32 msr = MSR_CORE_PERF_GLOBAL_CTRL, low = 1, high = 0;			\
										\
	asm volatile("wrmsr\n"							\
		     "mov (%%rsi), %%r8\n"					\
		     "mov %%r8, (%%rdi)\n"					\
		     insn "\n"							\
		     "mov %[ctrl], %%ecx\n"					\
		     "xor %%eax, %%eax\n"					\
		     "xor %%edx, %%edx\n"					\
		     "wrmsr\n"							\
		     : "+S" (from), "+D" (to), "+c" (msr), "+a" (low), "+d" (high)	\
		     : [ctrl] "i" (MSR_CORE_PERF_GLOBAL_CTRL)			\
		     : "r8", "cc", "memory");					\
}

DEFINE_ACCESS(load_16, "movups 16(%%rsi), %%xmm0")
DEFINE_ACCESS(store_16, "movups %%xmm0, 16(%%rdi)")
DEFINE_ACCESS(load_32, "vmovups 16(%%rsi), %%ymm0")
DEFINE_ACCESS(store_32, "vmovups %%ymm0, 16(%%rdi)")
DEFINE_ACCESS(load_masked, "vmaskmovps 16(%%rsi), %%ymm1, %%ymm0")
DEFINE_ACCESS(store_masked, "vmaskmovps %%ymm0, %%ymm1, 16(%%rdi)")
DEFINE_ACCESS(store_bytes, "maskmovdqu %%xmm1, %%xmm0")
DEFINE_ACCESS(add_locked, "lock incl 24(%%rdi)")
DEFINE_ACCESS(move_string, "mov $5, %%ecx\nrep movsq")
DEFINE_ACCESS(move_once, "mov $1, %%ecx\nrep movsq")
DEFINE_ACCESS(store_string, "mov $5, %%ecx\nrep stosb")
DEFINE_ACCESS(scan_string, "mov $5, %%ecx\nrep lodsl")
DEFINE_ACCESS(prefetch_line, "prefetcht0 40(%%rsi)")

/* The address is the operand's; for a string instruction, its last element's. */
static void addresses(void)
{
	static const struct {
		const char *name;
		void (*run)(const u64 *from, u64 *to);
		bool store, avx, prefetch;
		u32 offset;
	} cases[] = {
		{ "16 bytes loaded", load_16, .offset = 16 },
		{ "16 bytes stored", store_16, .store = true, .offset = 16 },
		{ "32 bytes loaded", load_32, .avx = true, .offset = 16 },
		{ "32 bytes stored", store_32, .avx = true, .store = true, .offset = 16 },
		{ "masked load", load_masked, .avx = true, .offset = 16 },
		{ "masked store", store_masked, .avx = true, .store = true, .offset = 16 },
		{ "MASKMOVDQU", store_bytes, .store = true },
		{ "INC, locked", add_locked, .store = true, .offset = 24 },
		{ "REP MOVS, load", move_string, .offset = 32 },
		{ "REP MOVS, store", move_string, .store = true, .offset = 32 },
		{ "REP MOVS of one, load", move_once },
		{ "REP MOVS of one, store", move_once, .store = true },
		{ "REP STOS", store_string, .store = true, .offset = 4 },
		{ "REP LODS", scan_string, .offset = 16 },
		{ "PREFETCHT0", prefetch_line, .prefetch = true, .offset = 40 },
	};
	unsigned int offset = adaptive() ? 4 : 19, i;

	if (bare.model->pebs_format < 2 || bare.model->pebs_no_addresses)
		return;
	kernel_fpu_begin();
	if (boot_cpu_has(X86_FEATURE_AVX))
		asm volatile("vcmptrueps %ymm1, %ymm1, %ymm1");
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct event e = { .select = 0x81d0 };
		u64 base = (u64)loads;

		if ((cases[i].avx && !boot_cpu_has(X86_FEATURE_AVX)) ||
		    (cases[i].prefetch && !bare.model->prefetches_load))
			continue;
		if (cases[i].store) {
			e.select = 0x82d0;
			base = (u64)stores;
		}
		prepare(0);
		start_event(&e, 1);
		if (adaptive()) {
			wr(MSR_PEBS_DATA_CFG, CFG_MEMORY);
			wr(MSR_ARCH_PERFMON_EVENTSEL0, rd(MSR_ARCH_PERFMON_EVENTSEL0) | ADAPTIVE);
			preset(0, -1);
		}
		cases[i].run(loads, stores);
		if (expect(area.index > area.base, "%s: no record", cases[i].name))
			same(buffer[offset], base + cases[i].offset, "%s", cases[i].name);
	}
	kernel_fpu_end();
	if (adaptive())
		wr(MSR_PEBS_DATA_CFG, 0);
}

/*
 * Load latency: some loads, by the rates of README.md. The program executes no
 * other loads.
 */
static void load_latency(void)
{
	bool nehalem = !bare.model->full_width;
	u16 own = bare.model->pebs_latency_event;
	struct event e = {
		.select = own ?: nehalem ? 0x100b : 0x01cd,
		.counter = own ? 0 : 3,
		.pos = POS_LOAD,
		.enable = adaptive() ? 0 : BIT_ULL(35),
	};
	unsigned int offset = adaptive() ? 4 : 19;
	struct wanted w;
	u64 round;

	if (bare.model->no_load_latency)
		return;
	wr(MSR_PEBS_LD_LAT_THRESHOLD, 15);
	prepare(0);
	start_event(&e, 1);
	if (adaptive()) {
		wr(MSR_PEBS_DATA_CFG, CFG_MEMORY);
		wr(MSR_ARCH_PERFMON_EVENTSEL0 + e.counter,
		   rd(MSR_ARCH_PERFMON_EVENTSEL0 + e.counter) | ADAPTIVE);
		preset(e.counter, -1);
	}
	run_loop(e.counter);
	if (!expect(area.index > area.base, "no record"))
		goto out;
	round = LOOPS - (buffer[offset] - (u64)loads) / 8;
	w = want(&e, round + 1);
	same(buffer[offset], w.address, "address");
	same(buffer[offset + 1], 3, "source");
	same(buffer[offset + 2], 16 | (u64)bare.model->pebs_cache_latency << 32, "latency");
	if (adaptive())
		same(buffer[1], w.ip, "IP");
	else
		check_regs(buffer, &w, true, 0);
out:
	wr(MSR_PEBS_LD_LAT_THRESHOLD, 0);
}

/* PS_EN on counter 3: the address of some stores, by the rates of README.md. */
static void precise_store(void)
{
	struct event e = {
		.select = 0x02cd, .counter = 3, .pos = POS_STORE, .enable = BIT_ULL(63),
	};
	struct wanted w;
	u64 round;

	if (!bare.model->pebs_store)
		return;
	prepare(0);
	start_event(&e, 1);
	run_loop(3);
	if (!expect(area.index > area.base, "no record"))
		return;
	round = LOOPS - (buffer[19] - (u64)stores) / 8;
	w = want(&e, round + 1);
	check_record(buffer, &e, &w, (u64[]){ w.address, 1, 0 }, 0);
}

/* The record that reaches the threshold raises the PMI, which freezes the counters. */
static void check_threshold(void)
{
	struct event e = { .select = INST_RETIRED, .pos = -1 };
	u64 frozen = bare.model->version >= 4 ? GLOBAL_STATUS_COUNTERS_FROZEN : 0;

	wr(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI);
	prepare(3 * record_size());
	start_event(&e, 998);
	run_loop(0);
	same(pmi.count, 1, "PMIs");
	same(pmi.status, OVF_DS_BUFFER | frozen, "status in the PMI");
	same(pmi.value, -998 & WIDTH_MASK, "reloaded counter in the PMI");
	same(area.index, (u64)(buffer + 3 * record_size()), "index");

	/* Two records do not reach the threshold. */
	clear_pmu();
	prepare(3 * record_size());
	start_event(&e, 2000);
	run_loop(0);
	same(pmi.count, 0, "PMIs below the threshold");
	same(rd(STATUS), 0, "status below the threshold");
	same(area.index, (u64)(buffer + 2 * record_size()), "index below the threshold");
	wr(MSR_IA32_DEBUGCTLMSR, 0);
}

/* Records that do not fit or whose page is missing are lost. */
static void lost(void)
{
	struct event e = { .select = INST_RETIRED, .pos = -1 };

	prepare(0);
	area.maximum = (u64)(buffer + 2 * record_size()) + 1;
	start_event(&e, 98);
	run_loop(0);
	same(area.index, (u64)(buffer + 2 * record_size()), "index of a full buffer");
	same(buffer[2 * record_size()], 0, "buffer beyond the maximum");

	prepare(0);
	area.base = 0x1000;
	area.index = 0x1000;
	start_event(&e, 98);
	run_loop(0);
	same(area.index, 0x1000, "index of a missing page");

	/* Without PEBS_ENABLE there is no record. */
	prepare(0);
	start_event(&e, 98);
	wr(ENABLE, 0);
	run_loop(0);
	same(area.index, area.base, "index without PEBS_ENABLE");
	same(rd(STATUS), 1, "status without PEBS_ENABLE");
}

/* Cycles are not a precise event, but extended PEBS and Goldmont's sample them. */
static void not_precise(void)
{
	struct event e = { .select = 0x003c, .pos = -1 };

	prepare(0);
	start_event(&e, 98);
	run_loop(0);
	same(area.index > area.base, extended() || bare.model->pebs_any_event,
	     "records of cycles");
}

static void start_lbr(void)
{
	if (bare.lbr_format == 0x3f) {
		wr(MSR_ARCH_LBR_DEPTH, bare.lbr_depth);
		wr(MSR_ARCH_LBR_CTL, ARCH_LBR_CTL_LBREN | GENMASK_ULL(22, 16) | BIT_ULL(1));
	} else {
		wr(MSR_LBR_SELECT, 0);
		wr(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_LBR);
	}
}

/* All sets of groups of the adaptive format, in the order of their bits. */
static void check_groups(void)
{
	struct event e = { .select = 0x81d0, .pos = POS_LOAD };
	struct wanted w = { };
	u64 cfg;

	if (!adaptive())
		return;
	kernel_fpu_begin();
	for (cfg = 0; cfg < 16; cfg++) {
		u64 all = cfg & CFG_LBR ? cfg | CFG_LBR_NR(2) : cfg, low = 0x1234, high = 0x5678;
		const u64 *r = buffer;

		prepare(0);
		w = want(&e, 100);
		start_event(&e, 99);
		wr(MSR_ARCH_PERFMON_EVENTSEL0, rd(MSR_ARCH_PERFMON_EVENTSEL0) | ADAPTIVE);
		preset(0, -99);
		wr(MSR_PEBS_DATA_CFG, all);
		start_lbr();
		asm volatile("movq %0, %%xmm0\n"
			     "movq %1, %%xmm15\n"
			     "pslldq $8, %%xmm15\n" : : "r" (low), "r" (high));
		run_loop(0);
		stop_lbr();
		same(r[0] & GENMASK_ULL(47, 0), all | retirement(&e, &w), "groups %#llx", cfg);
		same(r[0] >> 48, 32 + 32 * !!(cfg & CFG_MEMORY) + 144 * !!(cfg & CFG_GPR) +
				 256 * !!(cfg & CFG_XMM) + 48 * !!(cfg & CFG_LBR),
		     "size with groups %#llx", cfg);
		same(r[1], w.ip, "IP with groups %#llx", cfg);
		same(r[2], 1, "counters with groups %#llx", cfg);
		r += 4;
		if (cfg & CFG_MEMORY) {
			same(r[0], w.address, "address with groups %#llx", cfg);
			r += 4;
		}
		if (cfg & CFG_GPR) {
			check_regs(r, &w, false, cfg);
			r += 18;
		}
		if (cfg & CFG_XMM) {
			same(r[0], low, "XMM0 with groups %#llx", cfg);
			same(r[30], 0, "XMM15, low, with groups %#llx", cfg);
			same(r[31], high, "XMM15, high, with groups %#llx", cfg);
			r += 32;
		}
		if (cfg & CFG_LBR) {
			same(r[0], ip(POS_JNZ), "FROM with groups %#llx", cfg);
			same(r[1], ip(POS_LOAD), "TO with groups %#llx", cfg);
			same(r[3], ip(POS_JNZ), "FROM of the older with groups %#llx", cfg);
		}
	}
	kernel_fpu_end();
	wr(MSR_PEBS_DATA_CFG, 0);
}

/* Without the counter's flag, a record is basic. */
static void fixed_groups(void)
{
	struct event e = { .counter = FIXED, .pos = -1 };
	u64 flag;

	if (!adaptive())
		return;
	for (flag = 0; flag < 2; flag++) {
		prepare(0);
		start_event(&e, 98);
		wr(MSR_PEBS_DATA_CFG, CFG_GPR);
		wr(MSR_CORE_PERF_FIXED_CTR_CTRL,
		   LEVEL_OS | (flag ? FIXED_ADAPTIVE(0) : 0) | FIXED_ADAPTIVE(1));
		preset(FIXED, -98);
		run_loop(FIXED);
		same(buffer[0], flag ? 0xb0ULL << 48 | CFG_GPR : 0x20ULL << 48, "flag %llu", flag);
	}
	wr(MSR_PEBS_DATA_CFG, 0);
}

const struct check pebs_checks[] = {
	{ "pebs_registers", registers },
	{ "pebs_instructions", instructions },
	{ "pebs_memory", memory },
	{ "pebs_addresses", addresses },
	{ "pebs_load_latency", load_latency },
	{ "pebs_precise_store", precise_store },
	{ "pebs_threshold", check_threshold },
	{ "pebs_lost", lost },
	{ "pebs_not_precise", not_precise },
	{ "pebs_groups", check_groups },
	{ "pebs_fixed_groups", fixed_groups },
	{ }
};
