// SPDX-License-Identifier: GPL-2.0
/*
 * Helpers of rust/perf_core/disable_watch.rs: probes, task work, work items and
 * module references (these also of rust/perf/callbacks.rs). They wrap inline
 * functions, and functions that some configurations lack.
 */

#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/task_work.h>
#include <linux/workqueue.h>

int rpmu_helper_register_kretprobe(struct kretprobe *probe)
{
	return register_kretprobe(probe);
}

void rpmu_helper_unregister_kretprobe(struct kretprobe *probe)
{
	unregister_kretprobe(probe);
}

int rpmu_helper_enable_kretprobe(struct kretprobe *probe)
{
	return enable_kretprobe(probe);
}

int rpmu_helper_disable_kretprobe(struct kretprobe *probe)
{
	return disable_kretprobe(probe);
}

int rpmu_helper_enable_kprobe(struct kprobe *probe)
{
	return enable_kprobe(probe);
}

int rpmu_helper_disable_kprobe(struct kprobe *probe)
{
	return disable_kprobe(probe);
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

/* Returns one of a function's first six arguments, at the function's entry. */
unsigned long rpmu_helper_argument(struct pt_regs *regs, unsigned int n)
{
	return regs_get_kernel_argument(regs, n);
}

void *rpmu_helper_private_data(struct file *file)
{
	return file->private_data;
}

void rpmu_helper_init_task_work(struct callback_head *work,
				task_work_func_t func)
{
	init_task_work(work, func);
}

/* Adds work to the current task. Process context. */
int rpmu_helper_task_work_add(struct callback_head *work)
{
	return task_work_add(current, work, TWA_RESUME);
}

void rpmu_helper_init_work(struct work_struct *work, work_func_t func)
{
	INIT_WORK(work, func);
}

void rpmu_helper_schedule_work(struct work_struct *work)
{
	schedule_work(work);
}

void rpmu_helper_module_get(struct module *module)
{
	__module_get(module);
}

void rpmu_helper_module_put(struct module *module)
{
	module_put(module);
}

void rpmu_helper_synchronize_rcu_tasks(void)
{
	synchronize_rcu_tasks();
}
