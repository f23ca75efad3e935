// SPDX-License-Identifier: GPL-2.0
/*
 * Injects errors into the emulated PMU of every CPU while this module is
 * loaded; selftests/vpmu/README.md lists the errors.
 */

#include <linux/module.h>
#include <linux/smp.h>
#include <asm/msr.h>

#define MSR_VPMU_ORDERED	0x4000ff0a

static ulong what;
module_param(what, ulong, 0);
MODULE_PARM_DESC(what, "The errors to inject, as bits");

static void order(void *refused)
{
	if (wrmsrq_safe(MSR_VPMU_ORDERED, what))
		WRITE_ONCE(*(bool *)refused, true);
}

static bool order_all(void)
{
	bool refused = false;

	on_each_cpu(order, &refused, 1);
	return !refused;
}

static void wrong_exit(void)
{
	what = 0;
	order_all();
}

static int __init wrong_init(void)
{
	if (order_all())
		return 0;
	what = 0;
	order_all();
	return -ENODEV;
}

module_init(wrong_init);
module_exit(wrong_exit);
MODULE_DESCRIPTION("Injects errors into the emulated PMU");
MODULE_LICENSE("GPL");
