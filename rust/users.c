// SPDX-License-Identifier: GPL-2.0
/*
 * The names of a PMU's users, for messages.
 */

#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>

/* As in kernel/events/core.c: the owner of the kernel's own events. */
#define TASK_TOMBSTONE ((struct task_struct *)-1L)

/*
 * Returns the pid of the task that opened the event, and writes its name;
 * returns 0 if the task has ended, and -1 if the event is the kernel's own. The
 * owner may change meanwhile: a new event has no owner yet when it appears on
 * the PMU's list, and counts as one whose task has ended.
 */
int rpmu_helper_event_task(struct perf_event *event, char *name, size_t size)
{
	struct task_struct *task;
	int pid = 0;

	rcu_read_lock();
	task = READ_ONCE(event->owner);
	if (task == TASK_TOMBSTONE) {
		pid = -1;
	} else if (task) {
		pid = task_pid_nr(task);
		strscpy(name, task->comm, size);
	}
	rcu_read_unlock();
	return pid;
}

/* Writes the function that one of the kernel's own events calls at an overflow, and its module. */
void rpmu_helper_event_handler(struct perf_event *event, char *name, size_t size)
{
	snprintf(name, size, "%ps", event->overflow_handler);
}

void rpmu_helper_module_name(struct module *module, char *name, size_t size)
{
	strscpy(name, module_name(module), size);
}

/* Returns the number of references to a module, or 0 if the kernel cannot unload modules. */
int rpmu_helper_module_refcount(struct module *module)
{
#ifdef CONFIG_MODULE_UNLOAD
	return module_refcount(module);
#else
	return 0;
#endif
}
