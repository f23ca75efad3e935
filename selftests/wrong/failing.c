// SPDX-License-Identifier: GPL-2.0
/*
 * While it is loaded, lets the perf core fail for the PMUs of one name:
 *
 *	what=register	a module's PMU cannot be registered (ENOMEM)
 *	what=unregister	a built-in driver's PMU cannot be unregistered, as if
 *			an event had just been opened on it (EBUSY)
 *	what=type	a PMU is registered with another event type than the
 *			one wanted, as if another PMU had taken that
 */

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/string.h>

/* A type that no PMU has: the kernel assigns them from 6 on. */
#define OTHER_TYPE	1000

static char *what = "";
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "register, unregister or type");

static char *name = "";
module_param(name, charp, 0);
MODULE_PARM_DESC(name, "The name of the PMUs");

static noinline notrace int no_memory(void)
{
	return -ENOMEM;
}

static noinline notrace int busy(void)
{
	return -EBUSY;
}

/* Returns the value for which the probed function does not run, but `instead` does. */
static int call_instead(struct pt_regs *regs, int (*instead)(void))
{
	instruction_pointer_set(regs, (unsigned long)instead);
	return 1;
}

static bool is_name(const char *its_name)
{
	return its_name && !strcmp(its_name, name);
}

/* perf_pmu_register(pmu, name, type) */
static int on_register(struct kprobe *probe, struct pt_regs *regs)
{
	const struct pmu *pmu = (void *)regs->di;

	if (pmu->module && is_name((void *)regs->si))
		return call_instead(regs, no_memory);
	return 0;
}

static int on_type(struct kprobe *probe, struct pt_regs *regs)
{
	if (is_name((void *)regs->si))
		regs->dx = OTHER_TYPE;
	return 0;
}

/* perf_pmu_unregister(pmu) */
static int on_unregister(struct kprobe *probe, struct pt_regs *regs)
{
	const struct pmu *pmu = (void *)regs->di;

	if (!pmu->module && is_name(pmu->name))
		return call_instead(regs, busy);
	return 0;
}

/* Only a probe with such a handler may change the instruction pointer. */
static void after(struct kprobe *probe, struct pt_regs *regs, unsigned long flags)
{
}

static struct kprobe probe = {
	.post_handler = after,
};

static const struct failure {
	const char *what;
	const char *function;
	kprobe_pre_handler_t handler;
} failures[] = {
	{ "register", "perf_pmu_register", on_register },
	{ "unregister", "perf_pmu_unregister", on_unregister },
	{ "type", "perf_pmu_register", on_type },
};

static void failing_exit(void)
{
	unregister_kprobe(&probe);
}

static int __init failing_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(failures); i++) {
		if (strcmp(what, failures[i].what))
			continue;
		probe.symbol_name = failures[i].function;
		probe.pre_handler = failures[i].handler;
		return register_kprobe(&probe);
	}
	return -EINVAL;
}

module_init(failing_init);
module_exit(failing_exit);
MODULE_DESCRIPTION("Lets the perf core fail for PMUs");
MODULE_LICENSE("GPL");
