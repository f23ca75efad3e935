// SPDX-License-Identifier: GPL-2.0
/*
 * Imitates Intel PT and BTS, which the emulated machine lacks: the kernel
 * reports their features, the built-in driver has open events of both, and PT
 * raises its interrupt. Counts the calls of the functions that handle PT's and
 * BTS's events. The module must be loaded before rpmu, which checks the features.
 * Unloading restores everything that it has changed.
 */

#include <linux/cpu.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/smp.h>
#include <linux/static_call.h>
#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/hardirq.h>
#include <asm/msr.h>
#include <asm/perf_event.h>
#include <asm/processor.h>

/* enum x86_lbr_exclusive_ids of arch/x86/events/perf_event.h */
#define EXCLUSIVE_BTS	1
#define EXCLUSIVE_PT	2

static const unsigned int features[] = {
	X86_FEATURE_INTEL_PT, X86_FEATURE_BTS, X86_FEATURE_DTES64,
};

static bool had[ARRAY_SIZE(features)];

DEFINE_STATIC_CALL_RET0(tracers_lookup, unsigned long (const char *));
DEFINE_STATIC_CALL_RET0(tracers_add, int (unsigned int));
DEFINE_STATIC_CALL_NULL(tracers_del, void (unsigned int));
DEFINE_STATIC_CALL_RET0(tracers_reserve, int (void));
DEFINE_STATIC_CALL_NULL(tracers_release, void (void));

/* The calls, and those in another order than the built-in driver's. */
static atomic_t pt_calls, bts_calls, disordered, ticks, lost_bits;

static DEFINE_PER_CPU(int, bts_paused);

static int at_pt(struct kprobe *probe, struct pt_regs *regs)
{
	u64 status;

	atomic_inc(&pt_calls);
	/* The bit is acknowledged first, because the next region may be full at once. */
	rdmsrq(MSR_CORE_PERF_GLOBAL_STATUS, status);
	if (status & GLOBAL_STATUS_TRACE_TOPAPMI)
		atomic_inc(&disordered);
	return 0;
}

static int at_bts_disable(struct kprobe *probe, struct pt_regs *regs)
{
	if (this_cpu_xchg(bts_paused, 1) != 0)
		atomic_inc(&disordered);
	return 0;
}

static int at_bts_interrupt(struct kprobe *probe, struct pt_regs *regs)
{
	atomic_inc(&bts_calls);
	if (this_cpu_read(bts_paused) != 1)
		atomic_inc(&disordered);
	return 0;
}

static int at_bts_enable(struct kprobe *probe, struct pt_regs *regs)
{
	if (this_cpu_xchg(bts_paused, 0) != 1)
		atomic_inc(&disordered);
	return 0;
}

static int at_tick(struct kprobe *probe, struct pt_regs *regs)
{
	atomic_inc(&ticks);
	return 0;
}

static struct kprobe probes[] = {
	{ .symbol_name = "intel_pt_interrupt", .pre_handler = at_pt },
	{ .symbol_name = "intel_bts_disable_local", .pre_handler = at_bts_disable },
	{ .symbol_name = "intel_bts_interrupt", .pre_handler = at_bts_interrupt },
	{ .symbol_name = "intel_bts_enable_local", .pre_handler = at_bts_enable },
	{ .symbol_name = "watchdog_overflow_callback", .pre_handler = at_tick },
};

/* The numbers of open events of PT and BTS. */
static int open_pt, open_bts;

static int set_pt(const char *value, const struct kernel_param *param)
{
	int n, error = kstrtoint(value, 0, &n);

	if (!error && n < 0)
		error = -EINVAL;
	if (error)
		return error;
	/* Do not close an event later that could not be opened. */
	for (; open_pt < n && !error; open_pt += !error)
		error = static_call(tracers_add)(EXCLUSIVE_PT);
	for (; open_pt > n; open_pt--)
		static_call(tracers_del)(EXCLUSIVE_PT);
	return error;
}

/* Like bts_event_init() and bts_event_destroy(). */
static int set_bts(const char *value, const struct kernel_param *param)
{
	int before = open_bts, error = param_set_int(value, param);

	if (error)
		return error;
	if (before == open_bts)
		return 0;
	if (before) {
		open_bts = 0;
		static_call(tracers_release)();
		static_call(tracers_del)(EXCLUSIVE_BTS);
		return 0;
	}
	open_bts = 0;
	if (static_call(tracers_add)(EXCLUSIVE_BTS))
		return -EBUSY;
	error = static_call(tracers_reserve)();
	if (error)
		static_call(tracers_del)(EXCLUSIVE_BTS);
	else
		open_bts = 1;
	return error;
}

static const struct kernel_param_ops pt_ops = { .set = set_pt, .get = param_get_int };
static const struct kernel_param_ops bts_ops = { .set = set_bts, .get = param_get_int };
module_param_cb(pt, &pt_ops, &open_pt, 0644);
MODULE_PARM_DESC(pt, "Number of open events of intel_pt");
module_param_cb(bts, &bts_ops, &open_bts, 0644);
MODULE_PARM_DESC(bts, "Number of open events of intel_bts, 0 or 1");

static unsigned int nmis(void)
{
	return this_cpu_read(irq_stat.counts[IRQ_COUNT_NMI]);
}

/*
 * PT on this CPU has filled a region: sets the bit, and sends an NMI as LVTPC
 * would deliver it. The counters stop in between, because an overflow would
 * raise an NMI that handles both, and this NMI would then be unknown. The
 * handler, even of a late NMI, starts the counters again.
 */
static void interrupt_here(void *unused)
{
	unsigned int before;

	do {
		before = nmis();
		native_wrmsrq(MSR_CORE_PERF_GLOBAL_CTRL, 0);
	} while (nmis() != before);
	native_wrmsrq(MSR_CORE_PERF_GLOBAL_STATUS_SET, GLOBAL_STATUS_TRACE_TOPAPMI);
	apic->send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
}

static int set_raise(const char *value, const struct kernel_param *param)
{
	int n, error = kstrtoint(value, 0, &n);

	for (; !error && n > 0; n--) {
		on_each_cpu(interrupt_here, NULL, 1);
		cond_resched();
	}
	return error;
}

static const struct kernel_param_ops raise_ops = { .set = set_raise };
module_param_cb(raise, &raise_ops, NULL, 0200);
MODULE_PARM_DESC(raise, "Raises this many interrupts of PT on each CPU");

/*
 * PT fills regions all the time, but LVTPC has not delivered their interrupts
 * yet: they are handled with the next one, which a counter raises.
 */
static DEFINE_PER_CPU(struct hrtimer, filling);
static unsigned int fill_us;

static enum hrtimer_restart fill(struct hrtimer *timer)
{
	wrmsrq(MSR_CORE_PERF_GLOBAL_STATUS_SET, GLOBAL_STATUS_TRACE_TOPAPMI);
	hrtimer_forward_now(timer, us_to_ktime(fill_us));
	return HRTIMER_RESTART;
}

static void start_filling(void *unused)
{
	hrtimer_start(this_cpu_ptr(&filling), us_to_ktime(fill_us), HRTIMER_MODE_REL_PINNED_HARD);
}

static void stop_filling(void)
{
	int cpu;

	if (!fill_us)
		return;
	for_each_possible_cpu(cpu)
		hrtimer_cancel(per_cpu_ptr(&filling, cpu));
	fill_us = 0;
}

static int set_fill(const char *value, const struct kernel_param *param)
{
	unsigned int us;
	int error = kstrtouint(value, 0, &us);

	if (error)
		return error;
	stop_filling();
	fill_us = us;
	if (us)
		on_each_cpu(start_filling, NULL, 1);
	return 0;
}

static const struct kernel_param_ops fill_ops = { .set = set_fill, .get = param_get_uint };
module_param_cb(fill, &fill_ops, &fill_us, 0644);
MODULE_PARM_DESC(fill, "The interval in us at which PT's status bit is set on each CPU, without an interrupt; 0: never");

static void status_here(void *unused)
{
	u64 status;

	rdmsrq(MSR_CORE_PERF_GLOBAL_STATUS, status);
	if (status & GLOBAL_STATUS_TRACE_TOPAPMI)
		atomic_inc(&lost_bits);
}

/* calls: PT's, BTS's, those in the wrong order, CPUs with PT's bit set, the watchdog's ticks. */
static int get_calls(char *buffer, const struct kernel_param *param)
{
	atomic_set(&lost_bits, 0);
	on_each_cpu(status_here, NULL, 1);
	return sysfs_emit(buffer, "%d %d %d %d %d\n", atomic_read(&pt_calls),
			  atomic_read(&bts_calls), atomic_read(&disordered),
			  atomic_read(&lost_bits), atomic_read(&ticks));
}

static const struct kernel_param_ops calls_ops = { .get = get_calls };
module_param_cb(calls, &calls_ops, NULL, 0444);
MODULE_PARM_DESC(calls, "Calls of intel_pt_interrupt() and intel_bts_interrupt(), calls in the wrong order, CPUs with PT's status bit, ticks of the watchdog");

static void *find(const char *name)
{
	return (void *)static_call(tracers_lookup)(name);
}

static int bind(void)
{
	struct kprobe probe = { .symbol_name = "kallsyms_lookup_name",
				.flags = KPROBE_FLAG_DISABLED };
	void *add, *del, *reserve, *release;
	int error = register_kprobe(&probe);

	if (error)
		return error;
	static_call_update(tracers_lookup, (void *)probe.addr);
	unregister_kprobe(&probe);
	add = find("x86_add_exclusive");
	del = find("x86_del_exclusive");
	reserve = find("x86_reserve_hardware");
	release = find("x86_release_hardware");
	if (!add || !del || !reserve || !release)
		return -ENOENT;
	static_call_update(tracers_add, add);
	static_call_update(tracers_del, del);
	static_call_update(tracers_reserve, reserve);
	static_call_update(tracers_release, release);
	return 0;
}

static void unprobe(unsigned int n)
{
	while (n-- > 0)
		unregister_kprobe(&probes[n]);
}

static int __init tracers_init(void)
{
	unsigned long *words = (unsigned long *)boot_cpu_data.x86_capability;
	unsigned int i;
	u64 status;
	int cpu, error;

	/* Version 4 has the register that sets status bits. */
	if (rdmsrq_safe(MSR_CORE_PERF_GLOBAL_STATUS_SET, &status))
		return -ENODEV;
	error = bind();
	if (error)
		return error;
	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		error = register_kprobe(&probes[i]);
		if (error) {
			unprobe(i);
			return error;
		}
	}
	for_each_possible_cpu(cpu)
		hrtimer_setup(per_cpu_ptr(&filling, cpu), fill, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_HARD);
	for (i = 0; i < ARRAY_SIZE(features); i++)
		had[i] = test_and_set_bit(features[i], words);
	return 0;
}

static void __exit tracers_exit(void)
{
	unsigned long *words = (unsigned long *)boot_cpu_data.x86_capability;
	unsigned int i;

	stop_filling();
	for (i = 0; i < ARRAY_SIZE(features); i++) {
		if (!had[i])
			clear_bit(features[i], words);
	}
	unprobe(ARRAY_SIZE(probes));
	while (open_pt-- > 0)
		static_call(tracers_del)(EXCLUSIVE_PT);
	if (open_bts) {
		static_call(tracers_release)();
		static_call(tracers_del)(EXCLUSIVE_BTS);
	}
}

module_init(tracers_init);
module_exit(tracers_exit);
MODULE_DESCRIPTION("Imitates Intel PT and BTS");
MODULE_LICENSE("GPL");
