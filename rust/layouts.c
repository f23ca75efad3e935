// SPDX-License-Identifier: GPL-2.0
/*
 * The members of the kernel's structures that rpmu relies on, with the offsets
 * and sizes that the C compiler sees. Kbuild compiles this file to assembly, as
 * it does arch/x86/kernel/asm-offsets.c, and converts it to Rust, which
 * rust/bindings/layouts.rs includes and compares with bindgen's layouts. When
 * the module is loaded, driver/layouts.rs compares them with the running
 * kernel's BTF.
 *
 * The structures of the built-in driver are in a header that is not for
 * modules, and that a kernel build directory may lack. So rpmu takes the
 * offsets of their members from BTF, and compares only the sizes.
 */

#include <linux/cgroup.h>
#include <linux/device.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/irq_work.h>
#include <linux/kernfs.h>
#include <linux/kprobes.h>
#include <linux/mm_types.h>
#include <linux/module.h>
#include <linux/perf_event.h>
#include <linux/rethook.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/stddef.h>
#include <linux/syscore_ops.h>
#include <linux/sysfs.h>
#include <linux/workqueue.h>
#include <asm/apic.h>
#include <asm/hardirq.h>
#include <asm/intel_ds.h>
#include <asm/nmi.h>
#include <asm/processor.h>
#ifdef RPMU_KNOWS_BUILTIN
#include <../events/perf_event.h>
#endif

#define EMIT(text, ...) \
	asm volatile("\n.ascii \"->" text "\"" : : __VA_ARGS__)

/* A structure whose size matters: rpmu creates objects of it. */
#define SIZE(structure)							\
	EMIT(#structure " \\\"\\\" [] 0 %c0;", "i" (sizeof(struct structure)))

/* A member. */
#define MEMBER(structure, member) MEMBER_AS(structure, member, member)

/* A member with its path in bindgen's structure; no path if Rust does not use it. */
#define MEMBER_AS(structure, member, path...)				\
	EMIT(#structure " \\\"" #member "\\\" [" #path "] %c0 %c1;",	\
	     "i" (offsetof(struct structure, member)),			\
	     "i" (sizeof_field(struct structure, member)))

/* A member of a structure without a tag, which only a typedef names. */
#define TYPE_MEMBER(type, member)					\
	EMIT(#type " \\\"" #member "\\\" [] %c0 %c1;",			\
	     "i" (offsetof(type, member)),				\
	     "i" (sizeof(((type *)0)->member)))

/* A flexible array member. */
#define TAIL(structure, member)						\
	EMIT(#structure " \\\"" #member "\\\" [] %c0 0;",		\
	     "i" (offsetof(struct structure, member)))

/* A member of a structure of the built-in driver, and its type in Rust. */
#ifdef RPMU_KNOWS_BUILTIN
#define PRIVATE(name, structure, member, type)				\
	EMIT(#name " \\\"" #member "\\\" [" #type "] Some((%c0, %c1));", \
	     "i" (offsetof(struct structure, member)),			\
	     "i" (sizeof_field(struct structure, member)))
#else
#define PRIVATE(name, structure, member, type)				\
	EMIT(#name " \\\"" #member "\\\" [" #type "] None;")
#endif

#define X86_PMU(member, type) PRIVATE(member, x86_pmu, member, type)
#define CPU_HW_EVENTS(member, type) PRIVATE(member, cpu_hw_events, member, type)

static void __used layouts(void)
{
	EMIT("public!(");
	/* Events, PMUs and samples. */
	MEMBER(perf_event, event_entry);
	MEMBER(perf_event, sibling_list);
	MEMBER(perf_event, active_list);
	MEMBER(perf_event, group_node);
	MEMBER(perf_event, group_index);
	MEMBER(perf_event, event_caps);
	MEMBER(perf_event, group_caps);
	MEMBER(perf_event, group_leader);
	MEMBER(perf_event, pmu);
	MEMBER(perf_event, pmu_private);
	MEMBER(perf_event, state);
	MEMBER(perf_event, attach_state);
	MEMBER(perf_event, count);
	MEMBER(perf_event, total_time_running);
	MEMBER(perf_event, tstamp);
	MEMBER(perf_event, attr);
	MEMBER_AS(perf_event, hw.event_base_rdpmc,
		  hw.__bindgen_anon_1.__bindgen_anon_1.event_base_rdpmc);
	MEMBER_AS(perf_event, hw.idx, hw.__bindgen_anon_1.__bindgen_anon_1.idx);
	MEMBER_AS(perf_event, hw.flags, hw.__bindgen_anon_1.__bindgen_anon_1.flags);
	MEMBER(perf_event, hw.target);
	MEMBER(perf_event, hw.state);
	MEMBER(perf_event, hw.prev_count);
	MEMBER(perf_event, hw.sample_period);
	MEMBER_AS(perf_event, hw.last_period,
		  hw.__bindgen_anon_2.__bindgen_anon_1.last_period);
	MEMBER_AS(perf_event, hw.period_left,
		  hw.__bindgen_anon_2.__bindgen_anon_1.period_left);
	MEMBER(perf_event, ctx);
	MEMBER(perf_event, pmu_ctx);
	MEMBER(perf_event, parent);
	MEMBER(perf_event, cpu);
	MEMBER(perf_event, owner);
	MEMBER(perf_event, oncpu);
	MEMBER(perf_event, rb);
	MEMBER_AS(perf_event, overflow_handler);
	MEMBER(perf_event, destroy);
	MEMBER(perf_event, id);
	MEMBER(perf_event, pmu_list);
	SIZE(pmu);
	MEMBER(pmu, module);
	MEMBER(pmu, dev);
	MEMBER(pmu, parent);
	MEMBER(pmu, attr_groups);
	MEMBER(pmu, name);
	MEMBER_AS(pmu, type, type_);
	MEMBER(pmu, capabilities);
	MEMBER(pmu, cpu_pmu_context);
	MEMBER(pmu, pmu_enable);
	MEMBER(pmu, pmu_disable);
	MEMBER(pmu, event_init);
	MEMBER(pmu, event_mapped);
	MEMBER(pmu, event_unmapped);
	MEMBER(pmu, add);
	MEMBER(pmu, del);
	MEMBER(pmu, start);
	MEMBER(pmu, stop);
	MEMBER(pmu, read);
	MEMBER(pmu, start_txn);
	MEMBER(pmu, commit_txn);
	MEMBER(pmu, cancel_txn);
	MEMBER(pmu, event_idx);
	MEMBER(pmu, check_period);
	MEMBER(pmu, sched_task);
	MEMBER(pmu, task_ctx_cache);
	MEMBER(pmu, events_lock);
	MEMBER(pmu, events);
	SIZE(perf_sample_data);
	MEMBER(perf_sample_data, sample_flags);
	MEMBER(perf_sample_data, period);
	MEMBER(perf_sample_data, dyn_size);
	MEMBER(perf_sample_data, br_stack);
	MEMBER(perf_sample_data, br_stack_cntr);
	MEMBER(perf_sample_data, time);
	MEMBER(perf_sample_data, callchain);
	MEMBER(perf_sample_data, weight.full);
	MEMBER(perf_sample_data, data_src.val);
	MEMBER(perf_sample_data, txn);
	MEMBER(perf_sample_data, addr);
	MEMBER_AS(perf_callchain_entry, nr);
	SIZE(x86_perf_regs);
	MEMBER(x86_perf_regs, regs);
	MEMBER(x86_perf_regs, xmm_regs);
	SIZE(perf_branch_entry);
	MEMBER_AS(perf_branch_stack, nr);
	MEMBER_AS(perf_branch_stack, hw_idx);
	MEMBER_AS(perf_ctx_data, ctx_cache);
	MEMBER_AS(perf_ctx_data, data);

	/* Contexts of events, and their groups. */
	MEMBER(perf_event_pmu_context, pmu);
	MEMBER(perf_event_pmu_context, ctx);
	MEMBER(perf_event_pmu_context, flexible_active);
	MEMBER(perf_event_pmu_context, rotate_necessary);
	MEMBER(perf_event_context, time);
	MEMBER(perf_event_context, timeguest);
	MEMBER(perf_event_context, lock);
	MEMBER(perf_event_context, flexible_groups.tree);
	MEMBER(perf_event_context, flexible_groups.index);
	MEMBER(perf_event_context, event_list);
	MEMBER(perf_event_context, rotate_disable);
	MEMBER(perf_event_context, task);
	MEMBER(perf_event_context, generation);
	MEMBER(perf_cpu_pmu_context, epc);
	MEMBER(perf_cpu_pmu_context, task_epc);
	MEMBER(perf_cpu_pmu_context, exclusive);
	MEMBER(perf_cpu_pmu_context, pmu_disable_count);
	MEMBER(perf_cpu_pmu_context, hrtimer_interval);
	MEMBER(perf_cpu_pmu_context, hrtimer_lock);
	MEMBER(perf_cpu_pmu_context, hrtimer);
	MEMBER(perf_cpu_pmu_context, hrtimer_active);
	MEMBER(hrtimer, is_queued);
	SIZE(perf_time_ctx);
	MEMBER(perf_time_ctx, time);
	MEMBER(perf_time_ctx, offset);
#ifdef CONFIG_CGROUP_PERF
	MEMBER(perf_event, cgrp);
	MEMBER(perf_cpu_context, ctx);
	MEMBER(perf_cpu_context, cgrp);
	MEMBER(perf_cgroup, css);
	MEMBER(perf_cgroup, info);
	MEMBER(perf_cgroup_info, time);
	MEMBER(perf_cgroup_info, timeguest);
	MEMBER(cgroup_subsys_state, cgroup);
	MEMBER(cgroup_subsys_state, parent);
	MEMBER(cgroup, kn);
	MEMBER(kernfs_node, id);
#endif

	/* Structures that rpmu registers with the kernel. */
	SIZE(kprobe);
	MEMBER(kprobe, addr);
	MEMBER(kprobe, symbol_name);
	MEMBER(kprobe, pre_handler);
	MEMBER(kprobe, flags);
	SIZE(kretprobe);
	MEMBER(kretprobe, kp);
	MEMBER(kretprobe, handler);
	MEMBER(kretprobe, entry_handler);
	MEMBER(kretprobe, maxactive);
	MEMBER(kretprobe, data_size);
	TAIL(kretprobe_instance, data);
#ifdef CONFIG_KRETPROBE_ON_RETHOOK
	MEMBER_AS(kretprobe_instance, node.rethook);
	MEMBER_AS(rethook, data);
#endif
	SIZE(irq_work);
	MEMBER(irq_work, func);
	SIZE(work_struct);
	MEMBER_AS(work_struct, data);
	MEMBER_AS(work_struct, entry);
	MEMBER_AS(work_struct, func);
	SIZE(callback_head);
	MEMBER(callback_head, func);
	SIZE(nmiaction);
	MEMBER(nmiaction, list);
	MEMBER(nmiaction, handler);
	MEMBER(nmiaction, flags);
	MEMBER(nmiaction, name);
	SIZE(syscore);
	MEMBER(syscore, ops);
	MEMBER(syscore, data);
	SIZE(syscore_ops);
	MEMBER(syscore_ops, suspend);
	MEMBER(syscore_ops, resume);
	MEMBER(syscore_ops, shutdown);
	SIZE(__call_single_data);
	MEMBER(__call_single_data, func);
	MEMBER(__call_single_data, info);
	SIZE(perf_pmu_events_attr);
	MEMBER(perf_pmu_events_attr, attr);
	MEMBER(perf_pmu_events_attr, event_str);
	SIZE(attribute_group);
	MEMBER(attribute_group, name);
	MEMBER_AS(attribute_group, attrs, __bindgen_anon_2.attrs);

	/* Other structures that rpmu reads or writes. */
	SIZE(pt_regs);
	MEMBER_AS(pt_regs, ip);
	MEMBER_AS(pt_regs, cs);
	MEMBER_AS(pt_regs, flags);
	MEMBER_AS(debug_store, pebs_buffer_base);
	MEMBER_AS(debug_store, pebs_index);
	MEMBER_AS(debug_store, pebs_absolute_maximum);
	MEMBER_AS(debug_store, pebs_interrupt_threshold);
	MEMBER_AS(debug_store, pebs_event_reset);
	MEMBER_AS(apic, read);
	MEMBER_AS(apic, write);
	MEMBER_AS(cpuinfo_x86, x86_capability);
	MEMBER_AS(cpuinfo_x86, topo.amd_node_id);
	MEMBER_AS(device, bus);
	MEMBER_AS(device, driver_data);
	MEMBER_AS(file, private_data);
	TYPE_MEMBER(irq_cpustat_t, counts);
	MEMBER_AS(mm_struct, context.perf_rdpmc_allowed);
	TAIL(mm_struct, flexible_array);
	MEMBER_AS(module, name);
	MEMBER_AS(static_call_key, func);
	MEMBER_AS(task_struct, pid);
	MEMBER_AS(task_struct, comm);
	MEMBER_AS(task_struct, flags);
	MEMBER_AS(task_struct, mm);
	MEMBER_AS(task_struct, perf_ctx_data);
	MEMBER_AS(task_struct, signal);
	EMIT(");");

	EMIT("private!(x86_pmu:");
	X86_PMU(handle_irq, u64);
	X86_PMU(perfctr, u32);
	X86_PMU(fixedctr, u32);
	X86_PMU(addr_offset, u64);
	X86_PMU(fixed_cntr_mask64, u64);
	X86_PMU(cntval_bits, i32);
	X86_PMU(attr_rdpmc, i32);
	X86_PMU(attr_freeze_on_smi, u64);
	EMIT(");");

	EMIT("private!(cpu_hw_events:");
	CPU_HW_EVENTS(dirty, u64);
	CPU_HW_EVENTS(intel_ctrl_guest_mask, u64);
	CPU_HW_EVENTS(intel_ctrl_host_mask, u64);
	CPU_HW_EVENTS(perf_ctr_virt_mask, u64);
	CPU_HW_EVENTS(lbr_users, i32);
	CPU_HW_EVENTS(lbr_sel, u64);
	CPU_HW_EVENTS(lbr_select, i32);
	CPU_HW_EVENTS(br_sel, u64);
	CPU_HW_EVENTS(ds, u64);
	CPU_HW_EVENTS(pebs_enabled, u64);
	CPU_HW_EVENTS(active_pebs_data_cfg, u64);
	EMIT(");");

	EMIT("private!(er_account:");
	PRIVATE(config, er_account, config, u64);
	EMIT(");");
}
