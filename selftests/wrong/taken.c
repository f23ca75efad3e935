// SPDX-License-Identifier: GPL-2.0
/*
 * While it is loaded, holds something that a driver of the core PMU needs. If
 * there are several of a kind, it holds the last one, so that the driver has
 * already taken the others.
 */

#include <linux/cpuhotplug.h>
#include <linux/err.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <asm/cpufeature.h>
#include <asm/nmi.h>
#include <asm/perf_event.h>

#define LAST_COUNTER	3

static char *what;
module_param(what, charp, 0);
MODULE_PARM_DESC(what, "counter, select, state, event, guest or pmu");

static bool is_amd(void)
{
	return boot_cpu_data.x86_vendor == X86_VENDOR_AMD;
}

static u32 counter_msr(void)
{
	if (!is_amd())
		return MSR_ARCH_PERFMON_PERFCTR0 + LAST_COUNTER;
	if (boot_cpu_has(X86_FEATURE_PERFCTR_CORE))
		return MSR_F15H_PERF_CTR + 2 * LAST_COUNTER;
	return MSR_K7_PERFCTR0 + LAST_COUNTER;
}

static u32 select_msr(void)
{
	if (!is_amd())
		return MSR_ARCH_PERFMON_EVENTSEL0 + LAST_COUNTER;
	if (boot_cpu_has(X86_FEATURE_PERFCTR_CORE))
		return MSR_F15H_PERF_CTL + 2 * LAST_COUNTER;
	return MSR_K7_EVNTSEL0 + LAST_COUNTER;
}

static int take_counter(void)
{
	return reserve_perfctr_nmi(counter_msr()) ? 0 : -EBUSY;
}

static void release_counter(void)
{
	release_perfctr_nmi(counter_msr());
}

static int take_select(void)
{
	return reserve_evntsel_nmi(select_msr()) ? 0 : -EBUSY;
}

static void release_select(void)
{
	release_evntsel_nmi(select_msr());
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

static struct perf_event *event;

static void taken_overflow(struct perf_event *sampled, struct perf_sample_data *data,
			   struct pt_regs *regs)
{
}

/* Opens an event of the kernel, or an event of a guest as KVM does. */
static int open_event(bool guest)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_RAW,
		.size = sizeof(attr),
		.config = 0xc0,
		.exclude_host = guest,
		.pinned = guest,
	};

	event = perf_event_create_kernel_counter(&attr, 0, NULL, taken_overflow, NULL);
	return PTR_ERR_OR_ZERO(event);
}

static int take_event(void)
{
	return open_event(false);
}

static int take_guest(void)
{
	return open_event(true);
}

static void release_event(void)
{
	perf_event_release_kernel(event);
}

static int taken_event_init(struct perf_event *opened)
{
	return opened->attr.type == PERF_TYPE_RAW ? 0 : -ENOENT;
}

static int taken_add(struct perf_event *added, int flags)
{
	return 0;
}

static void taken_stop(struct perf_event *stopped, int flags)
{
}

static void taken_read(struct perf_event *read)
{
}

static struct pmu pmu = {
	.module = THIS_MODULE,
	.task_ctx_nr = perf_invalid_context,
	.event_init = taken_event_init,
	.add = taken_add,
	.del = taken_stop,
	.start = taken_stop,
	.stop = taken_stop,
	.read = taken_read,
};

static int take_pmu(void)
{
	return perf_pmu_register(&pmu, "cpu", PERF_TYPE_RAW);
}

static void release_pmu(void)
{
	perf_pmu_unregister(&pmu);
}

static const struct thing {
	const char *name;
	int (*take)(void);
	void (*release)(void);
} things[] = {
	{ "counter", take_counter, release_counter },
	{ "select", take_select, release_select },
	{ "state", take_state, release_state },
	{ "event", take_event, release_event },
	{ "guest", take_guest, release_event },
	{ "pmu", take_pmu, release_pmu },
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
MODULE_DESCRIPTION("Holds something that a driver of the core PMU needs");
MODULE_LICENSE("GPL");
