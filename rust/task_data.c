// SPDX-License-Identifier: GPL-2.0
/*
 * A PMU's data of tasks: objects that the perf core allocates from the PMU's
 * slab cache.
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

/* Destroys a cache whose objects may still wait for RCU to free them. */
void rpmu_helper_kmem_cache_destroy(struct kmem_cache *cache)
{
	rcu_barrier();
	kmem_cache_destroy(cache);
}

/*
 * Returns the data that a task has from this cache, or NULL: the perf core
 * keeps the data of only one PMU for each task. To be called in an RCU read-side
 * critical section, in which the data stay valid.
 */
void *rpmu_helper_task_data(struct task_struct *task, struct kmem_cache *cache)
{
	struct perf_ctx_data *data = rcu_dereference(task->perf_ctx_data);

	return data && data->ctx_cache == cache ? data->data : NULL;
}
