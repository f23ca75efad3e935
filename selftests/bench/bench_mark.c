// SPDX-License-Identifier: GPL-2.0
/*
 * Writes marks into the emulated PMU's report at the start and the return of
 * kernel functions. A mark's line in the report has the register accesses and
 * instructions since the CPU's previous mark (selftests/vpmu/README.md). Only
 * calls by tasks with the name in the parameter task are marked.
 *
 * The parameter symbol names the functions, separated by commas; their marks
 * are numbered in this order. The functions must not call one another. With
 * symbol=bench_mark_nothing, the module calls and marks an empty function, to
 * measure the cost of the probe.
 */

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <asm/msr.h>

#define MSR_VPMU_MARK	0x4000ff09
#define SELF_CALLS	16
#define SYMBOLS		4

static char *symbol = "bench_mark_nothing";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "The functions to mark, separated by commas");

static uint mark;
module_param(mark, uint, 0444);
MODULE_PARM_DESC(mark, "The number N of the first mark. Function i, from 0 on, has mark N+2i at its start and N+2i+1 at its return");

static char *task = "bench-task";
module_param(task, charp, 0444);
MODULE_PARM_DESC(task, "The name of the tasks whose calls are marked");

static struct bench_probe {
	struct kretprobe kretprobe;
	uint mark;
} probe[SYMBOLS];
static uint nr_probes;

static uint mark_of(struct kretprobe_instance *instance)
{
	return container_of(get_kretprobe(instance), struct bench_probe, kretprobe)->mark;
}
NOKPROBE_SYMBOL(mark_of);

static int begin(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (strncmp(current->comm, task, TASK_COMM_LEN))
		return 1;
	wrmsrq_safe(MSR_VPMU_MARK, mark_of(instance));
	return 0;
}
NOKPROBE_SYMBOL(begin);

static int end(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	wrmsrq_safe(MSR_VPMU_MARK, mark_of(instance) + 1);
	return 0;
}
NOKPROBE_SYMBOL(end);

/* Not static, so that the compiler keeps its symbol. */
noinline void bench_mark_nothing(void);
noinline void bench_mark_nothing(void)
{
	barrier();
}

static void remove_probes(void)
{
	while (nr_probes) {
		struct kretprobe *kretprobe = &probe[--nr_probes].kretprobe;

		unregister_kretprobe(kretprobe);
		if (kretprobe->nmissed)
			pr_warn("%s: %d calls were missed\n", kretprobe->kp.symbol_name,
				kretprobe->nmissed);
	}
}

static int __init bench_mark_init(void)
{
	char *name;
	int ret, i;

	while ((name = strsep(&symbol, ",")) && nr_probes < SYMBOLS) {
		struct bench_probe *this = &probe[nr_probes];

		this->mark = mark + 2 * nr_probes;
		this->kretprobe.kp.symbol_name = name;
		this->kretprobe.entry_handler = begin;
		this->kretprobe.handler = end;
		this->kretprobe.maxactive = 16;
		ret = register_kretprobe(&this->kretprobe);
		if (ret) {
			pr_err("%s cannot be probed: %d\n", name, ret);
			remove_probes();
			return ret;
		}
		nr_probes++;
	}
	if (!strcmp(probe[0].kretprobe.kp.symbol_name, "bench_mark_nothing")) {
		task = current->comm;
		for (i = 0; i < SELF_CALLS; i++)
			bench_mark_nothing();
	}
	return 0;
}

static void __exit bench_mark_exit(void)
{
	remove_probes();
}

module_init(bench_mark_init);
module_exit(bench_mark_exit);
MODULE_DESCRIPTION("Marks calls of kernel functions in the emulated PMU's report");
MODULE_LICENSE("GPL");
