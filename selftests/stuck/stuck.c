// SPDX-License-Identifier: GPL-2.0
/*
 * Hangs the CPU that loads it: it counts with interrupts off, so that only an
 * NMI can interrupt it. Then loading fails, so that the module does not stay
 * loaded.
 */

#include <linux/irqflags.h>
#include <linux/module.h>

static unsigned long rounds = 1000000000;
module_param(rounds, ulong, 0);
MODULE_PARM_DESC(rounds, "Duration, in rounds of a loop of about three instructions");

static int __init stuck_init(void)
{
	unsigned long flags, n;

	local_irq_save(flags);
	for (n = 0; n < rounds; n++)
		barrier();
	local_irq_restore(flags);
	return -EAGAIN;
}
module_init(stuck_init);

MODULE_DESCRIPTION("Makes a CPU hang");
MODULE_LICENSE("GPL");
