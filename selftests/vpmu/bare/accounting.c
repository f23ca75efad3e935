// SPDX-License-Identifier: GPL-2.0
/* The accounting of the emulated PMU (README.md). */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/printk.h>
#include <linux/smp.h>

#include "bare.h"

#define STATUS	MSR_CORE_PERF_GLOBAL_STATUS
#define CTRL	MSR_CORE_PERF_GLOBAL_CTRL

/* Checks the accounting of a register or, with ACCT_RDPMC, of a counter. */
static void accounted(u64 what, u64 reads, u64 writes, u64 faults)
{
	wr(ACCT_SELECT, what);
	same(rd(ACCT_READS), reads, "reads of %#llx", what);
	same(rd(ACCT_WRITES), writes, "writes of %#llx", what);
	same(rd(ACCT_FAULTS), faults, "faults of %#llx", what);
}

static void accounted_msrs(void)
{
	unsigned int c;

	rd(STATUS);
	rd(STATUS);
	wr_faults(STATUS, 0);
	wr(CTRL, 0);
	accounted(STATUS, 2, 1, 1);
	accounted(CTRL, 0, 1, 0);
	for_each_counter(c) {
		count(c);
		accounted(counter_msr(c), 1, 0, 0);
	}
	/* Reads of the accounting are not accounted. */
	accounted(STATUS, 2, 1, 1);
	wr(ACCT_SELECT, ACCT_CLEAR);
	accounted(STATUS, 0, 0, 0);
	expect(wr_faults(ACCT_READS, 0), "a count can be written");
}

static void accounted_rdpmc(void)
{
	unsigned int c;
	u64 value;

	for_each_counter(c) {
		rdpmc_safe(counter_ecx(c), &value);
		accounted(ACCT_RDPMC | counter_ecx(c), 1, 0, 0);
		accounted(counter_msr(c), 0, 0, 0);
	}
	rdpmc_safe(RDPMC_METRICS, &value);
	accounted(ACCT_RDPMC | RDPMC_METRICS, 1, 0, bare.model->metrics ? 0 : 1);
	rdpmc_safe(BIT(31), &value);
	accounted(ACCT_RDPMC | BIT(31), 1, 0, 1);
}

/* Instructions at CPL 0: those between two reads, and a few more. */
static void accounted_instructions(void)
{
	u64 kernel, user;

	user = rd(ACCT_USER);
	kernel = rd(ACCT_KERNEL);
	run_with(0);
	kernel = rd(ACCT_KERNEL) - kernel;
	expect(kernel > RUN_INSTRUCTIONS && kernel < RUN_INSTRUCTIONS + 500,
	       "%llu instructions instead of %u", kernel, RUN_INSTRUCTIONS);
	same(rd(ACCT_USER) - user, 0, "instructions at user level");
}

/*
 * Sets marks around one operation and one run. selftests/vpmu/bare.sh checks
 * them in the report that QEMU writes when it exits.
 */
static void marks(void)
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
	rd(STATUS);
	rd(STATUS);
	wr(CTRL, 0);
	wr_faults(STATUS, 0);
	rdpmc_safe(0, &value);
	wr(ACCT_MARK, 0xb1);
	run_between(&run);
	expect(rd_faults(ACCT_MARK), "the mark can be read");
}

const struct check accounting_checks[] = {
	{ "accounted_msrs", accounted_msrs },
	{ "accounted_rdpmc", accounted_rdpmc },
	{ "accounted_instructions", accounted_instructions },
	{ "marks", marks },
	{ }
};

/*
 * While nothing counts, QEMU translates code without counting, and reports to
 * the model only at accesses to MSRs, twice each: here at two WRMSRs and at the
 * second read. Otherwise it would report every 2^18 instructions.
 */
#define IDLE_LOOPS	1000000
/* A boot accesses fewer MSRs than this. */
#define IDLE_MOST	10000

static void idle(void)
{
	/* Not a register of the PMU. */
	struct run run = {
		.on_msr = MSR_TSC_AUX,
		.off_msr = MSR_TSC_AUX,
		.loops = IDLE_LOOPS,
	};
	u64 before, after;

	rdmsrq(MSR_TSC_AUX, run.on);
	run.off = run.on;
	before = rd(ACCT_TOLD);
	run_between(&run);
	after = rd(ACCT_TOLD);
	pr_info("# cpu %d: %llu reports since the boot\n", raw_smp_processor_id(), before);
	expect(before < IDLE_MOST, "%llu reports since the boot", before);
	expect(after - before <= 2 * 3, "%llu reports in %u instructions", after - before,
	       7 * IDLE_LOOPS);
}

const struct check idle_checks[] = {
	{ "idle", idle, CHECK_AS_IS },
	{ }
};
