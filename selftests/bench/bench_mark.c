// SPDX-License-Identifier: GPL-2.0
/*
 * Marks in the emulated PMU's report where a function of the kernel begins and
 * where it returns: what comes about between two marks of a CPU is in the
 * report's line of the second (selftests/vpmu/README.md). Only calls by tasks
 * of a certain name are marked.
 *
 * With symbol=bench_mark_nothing it marks calls of an empty function, which it
 * makes itself: what the probe costs.
 */

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <asm/msr.h>

#define MSR_VPMU_MARK	0x4000ff09
#define SELF_CALLS	16

static char *symbol = "bench_mark_nothing";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "The function");

static uint mark;
module_param(mark, uint, 0444);
MODULE_PARM_DESC(mark, "What to mark its beginning with; its end is marked with one more");

static char *task = "bench-task";
module_param(task, charp, 0444);
MODULE_PARM_DESC(task, "The name of the tasks that count");

static int begin(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	if (strncmp(current->comm, task, TASK_COMM_LEN))
		return 1;
	wrmsrq_safe(MSR_VPMU_MARK, mark);
	return 0;
}
NOKPROBE_SYMBOL(begin);

static int end(struct kretprobe_instance *instance, struct pt_regs *regs)
{
	wrmsrq_safe(MSR_VPMU_MARK, mark + 1);
	return 0;
}
NOKPROBE_SYMBOL(end);

static struct kretprobe probe = {
	.entry_handler = begin,
	.handler = end,
	.maxactive = 16,
};

/* Not static, so that it has a symbol and is not inlined. */
noinline void bench_mark_nothing(void);
noinline void bench_mark_nothing(void)
{
	barrier();
}

static int __init bench_mark_init(void)
{
	int ret, i;

	probe.kp.symbol_name = symbol;
	ret = register_kretprobe(&probe);
	if (ret) {
		pr_err("%s cannot be probed: %d\n", symbol, ret);
		return ret;
	}
	if (!strcmp(symbol, "bench_mark_nothing")) {
		task = current->comm;
		for (i = 0; i < SELF_CALLS; i++)
			bench_mark_nothing();
	}
	return 0;
}

static void __exit bench_mark_exit(void)
{
	unregister_kretprobe(&probe);
	if (probe.nmissed)
		pr_warn("%s: %d calls were missed\n", symbol, probe.nmissed);
}

module_init(bench_mark_init);
module_exit(bench_mark_exit);
MODULE_DESCRIPTION("Brackets a function of the kernel for the emulated PMU");
MODULE_LICENSE("GPL");
