// SPDX-License-Identifier: GPL-2.0
/* Overflow, its status, and the PMI. */
#include <linux/array_size.h>
#include <linux/io.h>
#include <linux/smp.h>
#include <asm/apic.h>

#include "bare.h"

#define STATUS	MSR_CORE_PERF_GLOBAL_STATUS
#define CTRL	MSR_CORE_PERF_GLOBAL_CTRL
#define RESET	MSR_CORE_PERF_GLOBAL_OVF_CTRL
#define MASKED	(APIC_DM_NMI | APIC_LVT_MASKED)

/* Presets counter @c to overflow after this many instructions. */
static void overflow_at(unsigned int c, u64 instructions)
{
	preset(c, -(s64)expected(c, instructions));
}

/* Overflow at the last instruction, not one earlier. */
static void overflow_status(void)
{
	unsigned int c;

	for_each_counter(c) {
		start_counter(c, LEVEL_OS);
		preset(c, -(s64)expected(c, RUN_INSTRUCTIONS) - 1);
		run_with(BIT_ULL(c));
		same(count(c), WIDTH_MASK, "counter %u, one missing", c);
		same(rd(STATUS), 0, "status, counter %u one missing", c);
		overflow_at(c, RUN_INSTRUCTIONS);
		run_with(BIT_ULL(c));
		same(count(c), 0, "counter %u, overflow", c);
		same(rd(STATUS), BIT_ULL(c), "status, counter %u overflow", c);
		/* The status is sticky and read-only. */
		wr(counter_msr(c), 0);
		same(rd(STATUS), BIT_ULL(c), "status, counter %u written", c);
		wr(RESET, BIT_ULL(c));
		same(rd(STATUS), 0, "status, counter %u cleared", c);
	}
	same(pmi.count, 0, "PMIs");
}

static void overflow_clear(void)
{
	unsigned int c;
	u64 left = bare.counters;

	start_all(LEVEL_OS);
	for_each_counter(c)
		overflow_at(c, RUN_INSTRUCTIONS / 2);
	run_with(bare.counters);
	same(rd(STATUS), left, "status, all overflow");
	wr(RESET, 0);
	same(rd(STATUS), left, "status, nothing cleared");
	for_each_counter(c) {
		wr(RESET, BIT_ULL(c));
		left &= ~BIT_ULL(c);
		same(rd(STATUS), left, "status, counter %u cleared", c);
	}
}

static void pmi_only_with_int(void)
{
	unsigned int c;

	for_each_counter(c) {
		clear_pmu();
		start_counter(c, LEVEL_OS);
		overflow_at(c, RUN_INSTRUCTIONS / 2);
		run_with(BIT_ULL(c));
		same(rd(STATUS), BIT_ULL(c), "status, counter %u without INT", c);
		same(pmi.count, 0, "PMIs, counter %u without INT", c);
		same(rd(ACCT_PMIS), 0, "PMIs accounted, counter %u without INT", c);
		same(read_lvtpc(), APIC_DM_NMI, "LVTPC, counter %u without INT", c);
		wr(RESET, BIT_ULL(c));

		start_counter(c, LEVEL_OS | WITH_PMI);
		overflow_at(c, RUN_INSTRUCTIONS / 2);
		run_with(BIT_ULL(c));
		same(pmi.count, 1, "PMIs, counter %u", c);
		same(rd(ACCT_PMIS), 1, "PMIs accounted, counter %u", c);
		same(pmi.status, BIT_ULL(c), "status in the handler, counter %u", c);
		same(rd(STATUS), BIT_ULL(c), "status, counter %u", c);
		/* The counter continued, also in the handler. */
		expect(count(c) > expected(c, RUN_INSTRUCTIONS / 2 + 100), "counter %u: %llu",
		       c, count(c));
	}
}

/* SDM vol. 3, 11.5.1 */
static void lvtpc_masks_itself(void)
{
	start_counter(0, LEVEL_OS | WITH_PMI);
	overflow_at(0, RUN_INSTRUCTIONS / 2);
	run_with(1);
	same(pmi.count, 1, "PMIs");
	same(pmi.lvtpc, MASKED, "LVTPC in the handler");
	same(read_lvtpc(), MASKED, "LVTPC");
	/* The next overflow finds LVTPC masked. */
	wr(RESET, 1);
	overflow_at(0, RUN_INSTRUCTIONS / 2);
	run_with(1);
	same(rd(STATUS), 1, "status");
	same(pmi.count, 1, "PMIs, LVTPC masked");
}

/* A PMI that finds LVTPC masked is lost; the status bit stays (11.5.1). */
static void masked_pmi(void)
{
	lvtpc(MASKED);
	start_counter(0, LEVEL_OS | WITH_PMI);
	overflow_at(0, RUN_INSTRUCTIONS / 2);
	run_with(1);
	same(pmi.count, 0, "PMIs, LVTPC masked");
	same(rd(STATUS), 1, "status");
	same(rd(ACCT_LOST), 1, "lost");
	lvtpc(APIC_DM_NMI);
	same(read_lvtpc(), APIC_DM_NMI, "LVTPC");
	same(pmi.count, 0, "PMIs, LVTPC unmasked");
	same(rd(ACCT_PMIS), 0, "PMIs accounted");
	wr(RESET, 1);
	/* The next one is delivered. */
	overflow_at(0, RUN_INSTRUCTIONS / 2);
	run_with(1);
	same(pmi.count, 1, "PMIs, LVTPC unmasked");
}

/*
 * While software has the APIC disabled, its LVT is masked, and stays masked
 * when the APIC is enabled (SDM vol. 3, 11.4.7.2).
 */
static void apic_off(void)
{
	static const u32 lvts[] = { APIC_LVTT, APIC_LVTTHMR, APIC_LVT0, APIC_LVT1, APIC_LVTERR };
	u32 spiv = apic->read(APIC_SPIV);
	u32 saved[ARRAY_SIZE(lvts)];
	int i;

	for (i = 0; i < ARRAY_SIZE(lvts); i++)
		saved[i] = apic->read(lvts[i]);
	apic->write(APIC_SPIV, spiv & ~APIC_SPIV_APIC_ENABLED);
	same(read_lvtpc(), MASKED, "LVTPC, APIC off");
	lvtpc(APIC_DM_NMI);
	same(read_lvtpc(), MASKED, "LVTPC written, APIC off");
	start_counter(0, LEVEL_OS | WITH_PMI);
	overflow_at(0, RUN_INSTRUCTIONS / 2);
	run_with(1);
	apic->write(APIC_SPIV, spiv);
	for (i = 0; i < ARRAY_SIZE(lvts); i++)
		apic->write(lvts[i], saved[i]);
	same(rd(STATUS), 1, "status");
	same(pmi.count, 0, "PMIs, APIC off");
	same(rd(ACCT_LOST), 1, "lost");
	same(read_lvtpc(), MASKED, "LVTPC, APIC on");
	lvtpc(APIC_DM_NMI);
	wr(RESET, 1);
	overflow_at(0, RUN_INSTRUCTIONS / 2);
	run_with(1);
	same(pmi.count, 1, "PMIs, APIC on");
}

/* One PMI for all counters that overflow at the same time. */
static void one_pmi_for_all(void)
{
	unsigned int c;

	start_all(LEVEL_OS | WITH_PMI);
	for_each_counter(c)
		overflow_at(c, RUN_INSTRUCTIONS / 2);
	run_with(bare.counters);
	same(pmi.count, 1, "PMIs");
	same(pmi.status, bare.counters, "status");
}

/* A handler that restarts its counter gets a PMI for each overflow. */
static void pmi_again(void)
{
	unsigned int c;

	for_each_counter(c) {
		clear_pmu();
		start_counter(c, LEVEL_OS | WITH_PMI);
		pmi.counter = c;
		pmi.period = expected(c, RUN_INSTRUCTIONS / 20);
		pmi.again = 10;
		preset(c, -pmi.period);
		run_with(BIT_ULL(c));
		same(pmi.count, 11, "PMIs, counter %u", c);
		same(rd(ACCT_PMIS), 11, "PMIs accounted, counter %u", c);
		same(rd(ACCT_LOST), 0, "lost, counter %u", c);
	}
}

/*
 * SDM vol. 3, 18.4.7: with FREEZE_PERFMON_ON_PMI, no counter counts after a
 * PMI: GLOBAL_CTRL is 0 or, from version 4 on, CTR_FRZ is set. The count until
 * then is the skid.
 */
static void freeze_on_pmi(void)
{
	bool v4 = bare.model->version >= 4;
	unsigned int c;

	for_each_counter(c) {
		clear_pmu();
		wr(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI);
		start_counter(c, LEVEL_OS | WITH_PMI);
		overflow_at(c, RUN_INSTRUCTIONS / 2);
		pmi.counter = c;
		run_with(bare.counters);
		same(pmi.count, 1, "PMIs, counter %u", c);
		same(pmi.status, BIT_ULL(c) | (v4 ? GLOBAL_STATUS_COUNTERS_FROZEN : 0),
		     "status, counter %u", c);
		same(pmi.ctrl, v4 ? bare.counters : 0, "GLOBAL_CTRL, counter %u", c);
		same(count(c), pmi.value, "counter %u after the PMI", c);
		expect(pmi.value <= expected(c, RUN_BLOCK), "counter %u skids by %llu",
		       c, pmi.value);
		/* Until CTR_FRZ is cleared */
		if (v4) {
			run_with(bare.counters);
			same(count(c), pmi.value, "counter %u, frozen", c);
		}
		wr(RESET, pmi.status);
		same(rd(STATUS), 0, "status, counter %u thawed", c);
		wr(counter_msr(c), 0);
		run_with(bare.counters);
		same(count(c), expected(c, RUN_INSTRUCTIONS), "counter %u, thawed", c);
	}
}

/* The request freezes, even if the APIC does not deliver the PMI. */
static void freeze_without_pmi(void)
{
	bool v4 = bare.model->version >= 4;
	unsigned int c;

	for_each_counter(c) {
		clear_pmu();
		lvtpc(MASKED);
		wr(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_FREEZE_PERFMON_ON_PMI);
		start_counter(c, LEVEL_OS | WITH_PMI);
		overflow_at(c, RUN_INSTRUCTIONS / 2);
		run_with(bare.counters);
		same(pmi.count, 0, "PMIs, counter %u", c);
		same(rd(STATUS), BIT_ULL(c) | (v4 ? GLOBAL_STATUS_COUNTERS_FROZEN : 0),
		     "status, counter %u", c);
		expect(count(c) <= expected(c, RUN_BLOCK), "counter %u goes on: %llu",
		       c, count(c));
	}
}

static void no_freeze_by_default(void)
{
	start_counter(0, LEVEL_OS | WITH_PMI);
	overflow_at(0, RUN_INSTRUCTIONS / 2);
	run_with(bare.counters);
	same(pmi.count, 1, "PMIs");
	same(pmi.status, 1, "status");
	same(pmi.ctrl, bare.counters, "GLOBAL_CTRL");
	expect(pmi.value > RUN_BLOCK, "the handler is not counted: %llu", pmi.value);
}

#define APM_COMMAND	0xb2
/* The same without an SMI */
#define APM_STATUS	0xb3
#define SMIS		10

static void write_apm(u16 port)
{
	unsigned int c, i;

	for_each_counter(c)
		wr(counter_msr(c), 0);
	wr(CTRL, bare.counters);
	for (i = 0; i < SMIS; i++)
		outb(0x55, port);
	wr(CTRL, 0);
}

/*
 * SMIs go to the first CPU, whose firmware ignores the unknown command. Its
 * instructions count, except with FREEZE_WHILE_SMM.
 */
static void freeze_while_smm(void)
{
	u64 without[FIXED + MAX_FIXED];
	unsigned int c;

	if (raw_smp_processor_id())
		return;
	start_all(LEVEL_OS);
	write_apm(APM_STATUS);
	for_each_counter(c)
		without[c] = count(c);
	write_apm(APM_COMMAND);
	for_each_counter(c)
		expect(count(c) > without[c] + expected(c, 10 * SMIS),
		       "counter %u, SMIs counted: %llu, %llu without", c, count(c), without[c]);
	wr(MSR_IA32_DEBUGCTLMSR, DEBUGCTLMSR_FREEZE_IN_SMM);
	write_apm(APM_COMMAND);
	for_each_counter(c)
		same(count(c), without[c], "counter %u, frozen", c);
	same(rd(MSR_IA32_DEBUGCTLMSR), DEBUGCTLMSR_FREEZE_IN_SMM, "DEBUGCTL");
	/* RSM enables the counters that were enabled before the SMI, and no others. */
	wr(CTRL, BIT_ULL(FIXED));
	outb(0x55, APM_COMMAND);
	same(rd(CTRL), BIT_ULL(FIXED), "GLOBAL_CTRL");
	wr(CTRL, 0);
}

/* Version 4: software can freeze the counters like the hardware. */
static void set_by_software(void)
{
	if (bare.model->version < 4)
		return;
	start_all(LEVEL_OS);
	wr(MSR_CORE_PERF_GLOBAL_STATUS_SET, GLOBAL_STATUS_COUNTERS_FROZEN);
	run_with(bare.counters);
	same(count(FIXED), 0, "fixed counter 0, frozen");
	same(count(0), 0, "counter 0, frozen");
	wr(RESET, GLOBAL_STATUS_COUNTERS_FROZEN);
	run_with(bare.counters);
	same(count(FIXED), RUN_INSTRUCTIONS, "fixed counter 0");
	same(count(0), RUN_INSTRUCTIONS, "counter 0");
	same(pmi.count, 0, "PMIs");
}

const struct check pmi_checks[] = {
	{ "overflow_status", overflow_status },
	{ "overflow_clear", overflow_clear },
	{ "pmi_only_with_int", pmi_only_with_int },
	{ "lvtpc_masks_itself", lvtpc_masks_itself },
	{ "masked_pmi", masked_pmi },
	{ "apic_off", apic_off },
	{ "one_pmi_for_all", one_pmi_for_all },
	{ "pmi_again", pmi_again },
	{ "freeze_on_pmi", freeze_on_pmi },
	{ "freeze_without_pmi", freeze_without_pmi },
	{ "no_freeze_by_default", no_freeze_by_default },
	{ "freeze_while_smm", freeze_while_smm },
	{ "set_by_software", set_by_software },
	{ }
};
