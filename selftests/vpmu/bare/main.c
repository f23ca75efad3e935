// SPDX-License-Identifier: GPL-2.0
/*
 * Checks the emulated PMU through its registers, in a guest without a PMU
 * driver (initcall_blacklist=init_hw_perf_events,bts_init nmi_watchdog=0).
 * With idle=1, a PMU driver may be loaded if it has no events, and the only
 * check is that an idle PMU costs nothing.
 * The checks run while the module loads. The kernel's log has the results, as
 * TAP lines that begin with "vpmu_bare: ".
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpumask.h>
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <asm/cpufeature.h>

#include "bare.h"

static bool idle;
module_param(idle, bool, 0);
MODULE_PARM_DESC(idle, "Check only that an idle PMU costs nothing, without touching its registers");

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
	/* Not clear_pmu(), which would clear the marks that the report needs. */
	if (!idle)
		stop_pmu();
	local_irq_restore(flags);
}

static int run_checks(const struct check *check, int nr)
{
	unsigned int cpu;

	for (; check->name; check++) {
		failures = 0;
		for_each_online_cpu(cpu) {
			set_cpus_allowed_ptr(current, cpumask_of(cpu));
			run_here(check);
			if (check->flags & CHECK_ONCE)
				break;
		}
		if (failures > MAX_REPORTED)
			pr_info("# %u failures\n", failures);
		pr_info("%sok %d %s\n", failures ? "not " : "", ++nr, check->name);
	}
	return nr;
}

static char *defects = "";
module_param(defects, charp, 0);
MODULE_PARM_DESC(defects, "The PMU's defects: none, ht-leak or tfa (default: the CPU model's)");

static bool pebs;
module_param(pebs, bool, 0);
MODULE_PARM_DESC(pebs, "The PMU has PEBS");

static int amd_run(void)
{
	const char *name = amd_find();
	int nr;

	if (!name) {
		pr_info("1..0 # SKIP unknown CPU model\n");
		return 0;
	}
	bare.amd = true;
	pr_info("# %s\n", name);
	if (amd_init()) {
		pr_info("Bail out! cannot register an NMI handler\n");
		return 0;
	}
	nr = bare.lbr_depth ? run_checks(amd_branch_checks, 0) : 0;
	/* The last check of amd_checks sets the marks of the report. */
	nr = run_checks(amd_checks, nr);
	amd_exit();
	pr_info("1..%d\n", nr);
	set_cpus_allowed_ptr(current, cpu_online_mask);
	return 0;
}

static int __init bare_init(void)
{
	int nr = 0;

	if (boot_cpu_data.x86_vendor == X86_VENDOR_AMD)
		return amd_run();
	bare.model = find_model(boot_cpu_data.x86_vfm);
	if (!bare.model) {
		pr_info("1..0 # SKIP unknown CPU model\n");
		return 0;
	}
	bare.threads = cpumask_weight(topology_sibling_cpumask(0));
	bare.generals = bare.model->generals[bare.threads > 1];
	bare.counters = GENMASK(bare.generals - 1, 0) |
			GENMASK(FIXED + bare.model->fixed - 1, FIXED);
	bare.lbr_format = bare.model->lbr_format;
	bare.lbr_depth = bare.model->lbr_depth;
	bare.ht_leak = bare.model->ht_leak && bare.threads > 1 && strcmp(defects, "none");
	bare.tfa = !strcmp(defects, "tfa");
	bare.pebs = pebs;
	pr_info("# %s, %d thread(s) per core\n", bare.model->name, bare.threads);
	if (idle) {
		nr = run_checks(idle_checks, nr);
		goto out;
	}
	if (pmi_init()) {
		pr_info("Bail out! cannot register an NMI handler\n");
		return 0;
	}
	nr = run_checks(register_checks, nr);
	nr = run_checks(branch_checks, nr);
	if (bare.pebs)
		nr = run_checks(pebs_checks, nr);
	nr = run_checks(counting_checks, nr);
	nr = run_checks(pmi_checks, nr);
	if (bare.model->metrics)
		nr = run_checks(metrics_checks, nr);
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
