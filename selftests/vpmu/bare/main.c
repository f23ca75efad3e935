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
#include <linux/irqflags.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/topology.h>
#include <asm/cpufeature.h>

#include "bare.h"

static bool idle;
module_param(idle, bool, 0);
MODULE_PARM_DESC(idle, "Only what an idle PMU costs, and leave its registers alone");

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
