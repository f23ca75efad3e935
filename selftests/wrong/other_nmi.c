// SPDX-License-Identifier: GPL-2.0
/*
 * Raises an NMI on this CPU as a device would that no handler knows, and expects
 * it to reach the handlers of unknown NMIs. Loading fails with EALREADY if a
 * handler of local NMIs, such as the PMU driver's, has claimed it. The module
 * does not stay loaded: otherwise, loading fails with ECANCELED.
 */

#include <linux/irqflags.h>
#include <linux/module.h>
#include <asm/nmi.h>

static bool seen;

static int on_unknown(unsigned int type, struct pt_regs *regs)
{
	seen = true;
	return NMI_HANDLED;
}

static int __init other_nmi_init(void)
{
	unsigned long flags;
	int ret = register_nmi_handler(NMI_UNKNOWN, on_unknown, NMI_FLAG_FIRST, "other_nmi");

	if (ret)
		return ret;
	/* The same CPU must see both the NMI and the flag. */
	local_irq_save(flags);
	/* As KVM did for NMIs that had ended a guest. */
	asm volatile("int $2");
	local_irq_restore(flags);
	unregister_nmi_handler(NMI_UNKNOWN, "other_nmi");
	return seen ? -ECANCELED : -EALREADY;
}

module_init(other_nmi_init);
MODULE_DESCRIPTION("Raises an NMI of another device");
MODULE_LICENSE("GPL");
