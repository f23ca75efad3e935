// SPDX-License-Identifier: GPL-2.0
/*
 * Has something that a driver of the core PMU needs, for as long as it is
 * loaded: the last thing of a kind, so that the driver has got the others.
 */

#include <linux/cpuhotplug.h>
#include <linux/module.h>
#include <asm/nmi.h>
#include <asm/perf_event.h>

#define LAST_COUNTER	3

static char *what;
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "counter, select or state");

static int take_counter(void)
{
	return reserve_perfctr_nmi(MSR_ARCH_PERFMON_PERFCTR0 + LAST_COUNTER) ? 0 : -EBUSY;
}

static void release_counter(void)
{
	release_perfctr_nmi(MSR_ARCH_PERFMON_PERFCTR0 + LAST_COUNTER);
}

static int take_select(void)
{
	return reserve_evntsel_nmi(MSR_ARCH_PERFMON_EVENTSEL0 + LAST_COUNTER) ? 0 : -EBUSY;
}

static void release_select(void)
{
	release_evntsel_nmi(MSR_ARCH_PERFMON_EVENTSEL0 + LAST_COUNTER);
}

static int come_or_go(unsigned int cpu)
{
	return 0;
}

static int take_state(void)
{
	return cpuhp_setup_state_nocalls(CPUHP_AP_PERF_ARM_STARTING, "rpmu:taken", come_or_go,
					 come_or_go);
}

static void release_state(void)
{
	cpuhp_remove_state_nocalls(CPUHP_AP_PERF_ARM_STARTING);
}

static const struct thing {
	const char *name;
	int (*take)(void);
	void (*release)(void);
} things[] = {
	{ "counter", take_counter, release_counter },
	{ "select", take_select, release_select },
	{ "state", take_state, release_state },
};

static const struct thing *taken;

static void taken_exit(void)
{
	taken->release();
}

static int __init taken_init(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(things); i++) {
		if (what && !strcmp(what, things[i].name)) {
			taken = &things[i];
			return taken->take();
		}
	}
	return -EINVAL;
}

module_init(taken_init);
module_exit(taken_exit);
MODULE_DESCRIPTION("Has something that a driver of the core PMU needs");
MODULE_LICENSE("GPL");
