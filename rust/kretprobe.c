// SPDX-License-Identifier: GPL-2.0
/*
 * What rust/perf/internals/disable_watch.rs needs of kretprobes: inline functions, and
 * some that are not there in every configuration.
 */

#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>

int rpmu_helper_register_kretprobe(struct kretprobe *probe)
{
	return register_kretprobe(probe);
}

void rpmu_helper_unregister_kretprobe(struct kretprobe *probe)
{
	unregister_kretprobe(probe);
}

struct kretprobe *rpmu_helper_get_kretprobe(struct kretprobe_instance *instance)
{
#ifdef CONFIG_KRETPROBES
	return get_kretprobe(instance);
#else
	return NULL;
#endif
}

void *rpmu_helper_kretprobe_data(struct kretprobe_instance *instance)
{
	return instance->data;
}

/* At the entry of a function: one of its first six arguments. */
unsigned long rpmu_helper_argument(struct pt_regs *regs, unsigned int n)
{
	return regs_get_kernel_argument(regs, n);
}

void *rpmu_helper_private_data(struct file *file)
{
	return file->private_data;
}
