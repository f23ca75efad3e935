// SPDX-License-Identifier: GPL-2.0
/*
 * The data that a PMU keeps of a task: objects of a cache, which the perf core
 * allocates for it.
 */

#include <linux/perf_event.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>

struct kmem_cache *rpmu_helper_kmem_cache_create(const char *name, size_t size,
						 size_t align)
{
	return kmem_cache_create(name, size, align, 0, NULL);
}

/* Destroys a cache from which objects may be waiting to be freed. */
void rpmu_helper_kmem_cache_destroy(struct kmem_cache *cache)
{
	rcu_barrier();
	kmem_cache_destroy(cache);
}

/*
 * Returns the data of a task in an RCU read-side critical section, or NULL if there
 * is none from this cache: the perf core keeps one PMU's for each task.
 */
void *rpmu_helper_task_data(struct task_struct *task, struct kmem_cache *cache)
{
	struct perf_ctx_data *data = rcu_dereference(task->perf_ctx_data);

	return data && data->ctx_cache == cache ? data->data : NULL;
}
