// SPDX-License-Identifier: GPL-2.0
/*
 * One-call wrappers of macros and inline functions, which Rust cannot call. The
 * kernel documents these; the Rust callers give the reason why they may be
 * called. A context switch calls the notrace wrappers dozens of times. bindgen
 * reads this file, too (include/rpmu_bindings.h).
 */

#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/hardirq.h>
#include <linux/kprobes.h>
#include <linux/mm_types.h>
#include <linux/mutex.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/topology.h>
#include <asm/apic.h>
#include <asm/cpufeature.h>
#include <asm/cpuid/api.h>
#include <asm/msr.h>

u64 notrace __noendbr rpmu_helper_rdmsrq(u32 msr)
{
	u64 value;

	rdmsrq(msr, value);
	return value;
}

int rpmu_helper_rdmsrq_safe(u32 msr, u64 *value)
{
	return rdmsrq_safe(msr, value);
}

void notrace __noendbr rpmu_helper_wrmsrq(u32 msr, u64 value)
{
	wrmsrq(msr, value);
}

int rpmu_helper_wrmsrq_safe(u32 msr, u64 value)
{
	return wrmsrq_safe(msr, value);
}

u64 notrace __noendbr rpmu_helper_rdpmc(u32 counter)
{
	return rdpmc(counter);
}

void rpmu_helper_cpuid_count(u32 leaf, u32 subleaf, u32 *eax, u32 *ebx,
			     u32 *ecx, u32 *edx)
{
	cpuid_count(leaf, subleaf, eax, ebx, ecx, edx);
}

bool rpmu_helper_boot_cpu_has(u32 feature)
{
	return boot_cpu_has(feature);
}

/* apic_read() and apic_write() are static calls that modules cannot use. */
u32 rpmu_helper_apic_read(u32 reg)
{
	return apic->read(reg);
}

void rpmu_helper_apic_write(u32 reg, u32 value)
{
	apic->write(reg, value);
}

void rpmu_helper_inc_perf_irq_stat(void)
{
	inc_perf_irq_stat();
}

const struct cpumask *rpmu_helper_topology_sibling_cpumask(unsigned int cpu)
{
	return topology_sibling_cpumask(cpu);
}

u32 rpmu_helper_topology_amd_node_id(unsigned int cpu)
{
	return topology_amd_node_id(cpu);
}

void __percpu *rpmu_helper_alloc_percpu(size_t size, size_t align)
{
	return __alloc_percpu(size, align);
}

void *rpmu_helper_per_cpu_ptr(void __percpu *ptr, unsigned int cpu)
{
	return per_cpu_ptr(ptr, cpu);
}

int rpmu_helper_cpuhp_setup_state_multi(enum cpuhp_state state, const char *name,
					int (*startup)(unsigned int cpu,
						       struct hlist_node *node),
					int (*teardown)(unsigned int cpu,
							struct hlist_node *node))
{
	return cpuhp_setup_state_multi(state, name, startup, teardown);
}

void rpmu_helper_on_each_cpu(smp_call_func_t func, void *info)
{
	on_each_cpu(func, info, 1);
}

void rpmu_helper_on_each_cpu_mask(const struct cpumask *mask,
				  smp_call_func_t func, void *info)
{
	on_each_cpu_mask(mask, func, info, 1);
}

const struct cpumask *rpmu_helper_mm_cpumask(struct mm_struct *mm)
{
	return mm_cpumask(mm);
}

int *rpmu_helper_mm_perf_rdpmc_allowed(struct mm_struct *mm)
{
	return &mm->context.perf_rdpmc_allowed.counter;
}

void rpmu_helper_raw_spin_lock_init(raw_spinlock_t *lock)
{
	raw_spin_lock_init(lock);
}

void rpmu_helper_raw_spin_lock(raw_spinlock_t *lock)
{
	raw_spin_lock(lock);
}

void rpmu_helper_raw_spin_unlock(raw_spinlock_t *lock)
{
	raw_spin_unlock(lock);
}

int rpmu_helper_register_kprobe(struct kprobe *p)
{
	return register_kprobe(p);
}

void rpmu_helper_unregister_kprobe(struct kprobe *p)
{
	unregister_kprobe(p);
}

void rpmu_helper_mutex_lock(struct mutex *lock)
{
	mutex_lock(lock);
}

void rpmu_helper_mutex_unlock(struct mutex *lock)
{
	mutex_unlock(lock);
}

bool rpmu_helper_in_nmi(void)
{
	return in_nmi();
}

bool rpmu_helper_cpu_possible(unsigned int cpu)
{
	return cpu_possible(cpu);
}

void rpmu_helper_raw_spin_lock_irq(raw_spinlock_t *lock)
{
	raw_spin_lock_irq(lock);
}

void rpmu_helper_raw_spin_unlock_irq(raw_spinlock_t *lock)
{
	raw_spin_unlock_irq(lock);
}
