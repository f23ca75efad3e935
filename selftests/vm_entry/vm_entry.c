// SPDX-License-Identifier: GPL-2.0
/*
 * Imitates the users of the built-in driver's code beside a driver that has
 * taken the PMU over: KVM, which asks for the values of GLOBAL_CTRL at each VM
 * entry and counts its guests' events, and BPF's bpf_get_branch_snapshot(),
 * which disables the PMU for a moment. There is no guest: the guest's
 * instructions are a loop with interrupts off, between two writes of
 * GLOBAL_CTRL that stand for the VM entry and the VM exit. /dev/vm_entry has a
 * request for each; vm_entry.h describes them.
 */

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/kprobes.h>
#include <linux/kvm_host.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/uaccess.h>
#include <asm/apic.h>
#include <asm/cpuid/api.h>
#include <asm/intel_ds.h>
#include <asm/msr.h>
#include <asm/perf_event.h>
#include <asm/msr-trace.h>

#include "vm_entry.h"

#define MAX_OPEN	8
#define ENTRIES		32
#define NMI_WAIT	1000000	/* passes of a loop */

static bool mediated;
module_param(mediated, bool, 0);
MODULE_PARM_DESC(mediated, "Imitate a guest with a mediated PMU while the module is loaded");

static unsigned long find_nothing(const char *name)
{
	return 0;
}

static struct perf_guest_switch_msr *get_no_msrs(int *nr, void *data)
{
	*nr = 0;
	return NULL;
}

static int create_nothing(void)
{
	return -ENOENT;
}

static void release_nothing(void)
{
}

/* Functions that modules cannot link to; as static calls, these need no ENDBR. */
DEFINE_STATIC_CALL(vm_entry_lookup, find_nothing);
DEFINE_STATIC_CALL(vm_entry_guest_get_msrs, get_no_msrs);
DEFINE_STATIC_CALL(vm_entry_create_mediated, create_nothing);
DEFINE_STATIC_CALL(vm_entry_release_mediated, release_nothing);
DEFINE_STATIC_CALL_RET0(vm_entry_snapshot, perf_snapshot_branch_stack_t);

struct opened {
	struct perf_event *event;
	u32 flags;
	u32 overflows;
	u64 control;
};

static DEFINE_MUTEX(lock);
static struct opened opened[MAX_OPEN];
static int snapshots_cpu = -1;	/* where each write of an MSR calls the snapshot */
static atomic_t snapshots;
static DEFINE_PER_CPU(bool, in_snapshot);
static DEFINE_PER_CPU(bool, in_delivery);	/* of a delayed PMI */
static struct kvm_pmu *kvm_pmu;	/* all 0 except for PEBS */
static struct debug_store *guest_ds;
static void *guest_records;
static int guest_cpu = -1;		/* where the guest runs */

static DEFINE_PER_CPU(struct perf_branch_entry[ENTRIES], entries);

/*
 * Returns the number of entries, or -EBUSY at a register write within a
 * snapshot and in an NMI that interrupts a snapshot. The built-in driver reads
 * all snapshots of a CPU into the same memory, and if their number changes
 * under intel_pmu_lbr_filter(), it moves memory beyond their end. BPF's
 * bpf_prog_active likewise prevents programs of perf events from interrupting
 * those of tracepoints and kprobes.
 */
static int take_snapshot(void)
{
	int nr;

	guard(preempt)();
	if (this_cpu_read(in_snapshot))
		return -EBUSY;
	this_cpu_write(in_snapshot, true);
	nr = static_call(vm_entry_snapshot)(this_cpu_ptr(entries), ENTRIES);
	this_cpu_write(in_snapshot, false);
	return nr;
}

static void get_branches(struct vm_entry_branches *branches)
{
	int nr;

	BUILD_BUG_ON(sizeof(branches->entries[0]) != sizeof(struct perf_branch_entry));
	guard(preempt)();
	nr = take_snapshot();
	branches->nr = clamp(nr, 0, min(ENTRIES, VM_ENTRY_BRANCHES_MAX));
	memcpy(branches->entries, this_cpu_ptr(entries),
	       branches->nr * sizeof(branches->entries[0]));
}

static void written(void *data, u32 msr, u64 value, int failed)
{
	if (READ_ONCE(snapshots_cpu) != raw_smp_processor_id() || this_cpu_read(in_delivery))
		return;
	if (take_snapshot() >= 0)
		atomic_inc(&snapshots);
}

/*
 * Gets the host's and the guest's value of GLOBAL_CTRL from perf_guest_get_msrs(),
 * like vmx_vcpu_run(). Returns whether there are any.
 */
static bool guest_control(u64 *host, u64 *guest)
{
	struct perf_guest_switch_msr *msrs;
	int i, nr;

	msrs = static_call(vm_entry_guest_get_msrs)(&nr, kvm_pmu);
	for (i = 0; msrs && i < nr; i++) {
		if (msrs[i].msr == MSR_CORE_PERF_GLOBAL_CTRL) {
			*host = msrs[i].host;
			*guest = msrs[i].guest;
			return true;
		}
	}
	return false;
}

/* Switches the other MSRs of perf_guest_get_msrs(), at the VM entry or at the VM exit. */
static void switch_others(bool entry)
{
	struct perf_guest_switch_msr *msrs;
	int i, nr;

	msrs = static_call(vm_entry_guest_get_msrs)(&nr, kvm_pmu);
	for (i = 0; msrs && i < nr; i++) {
		if (msrs[i].msr != MSR_CORE_PERF_GLOBAL_CTRL && msrs[i].host != msrs[i].guest)
			wrmsrq(msrs[i].msr, entry ? msrs[i].guest : msrs[i].host);
	}
}

#define RECORD_SIZE	32	/* with PEBS_DATA_CFG 0 */

/* The guest writes its PEBS registers. */
static long set_pebs(const struct vm_entry_run *run)
{
	unsigned int i;

	if (run->threshold >= PAGE_SIZE / RECORD_SIZE)
		return -EINVAL;
	kvm_pmu->pebs_enable = run->pebs;
	kvm_pmu->ds_area = (unsigned long)guest_ds;
	guest_ds->pebs_buffer_base = (unsigned long)guest_records;
	guest_ds->pebs_index = guest_ds->pebs_buffer_base;
	guest_ds->pebs_absolute_maximum = guest_ds->pebs_buffer_base + PAGE_SIZE;
	guest_ds->pebs_interrupt_threshold =
		guest_ds->pebs_buffer_base + run->threshold * RECORD_SIZE;
	for (i = 0; i < ARRAY_SIZE(guest_ds->pebs_event_reset); i++)
		guest_ds->pebs_event_reset[i] = run->reset;
	return 0;
}

#ifdef CONFIG_GUEST_PERF_EVENTS
static unsigned int guest_state(void)
{
	return raw_smp_processor_id() == READ_ONCE(guest_cpu) ? PERF_GUEST_ACTIVE : 0;
}

static unsigned long guest_ip(void)
{
	return 0;
}

static struct perf_guest_info_callbacks guest_callbacks = {
	.state = guest_state,
	.get_ip = guest_ip,
};

static void register_guest(void)
{
	perf_register_guest_info_callbacks(&guest_callbacks);
}

static void unregister_guest(void)
{
	perf_unregister_guest_info_callbacks(&guest_callbacks);
}
#else
static void register_guest(void) {}
static void unregister_guest(void) {}
#endif

/* Returns the counters that would count if GLOBAL_CTRL had all bits set. */
static u64 selected(void)
{
	u32 eax = cpuid_eax(0xa), edx = cpuid_edx(0xa);
	u32 nr = (eax >> 8) & 0xff, fixed = edx & 0x1f, i;
	u64 value, set = 0;

	for (i = 0; i < nr; i++) {
		rdmsrq(MSR_ARCH_PERFMON_EVENTSEL0 + i, value);
		if (value & ARCH_PERFMON_EVENTSEL_ENABLE)
			set |= BIT_ULL(i);
	}
	rdmsrq(MSR_ARCH_PERFMON_FIXED_CTR_CTRL, value);
	for (i = 0; i < fixed; i++) {
		if (value >> (4 * i) & 3)
			set |= BIT_ULL(INTEL_PMC_IDX_FIXED + i);
	}
	return set;
}

/* Returns whether a counter or a state differs from the previous one. */
static bool copy_counters(struct vm_entry_state *state, struct perf_event **events)
{
	bool changed = false;
	u32 i;

	for (i = 0; i < state->nr; i++) {
		u32 stopped = READ_ONCE(events[i]->hw.state) & PERF_HES_STOPPED;
		int idx = READ_ONCE(events[i]->hw.idx);

		changed |= state->idx[i] != idx || state->stopped[i] != stopped;
		state->idx[i] = idx;
		state->stopped[i] = stopped;
	}
	return changed;
}

static long get_state(struct vm_entry_state *state)
{
	struct perf_event *events[VM_ENTRY_EVENTS];
	struct file *files[VM_ENTRY_EVENTS] = {};
	unsigned long flags;
	long ret = 0;
	u32 i;

	if (state->nr > VM_ENTRY_EVENTS)
		return -EINVAL;
	for (i = 0; i < state->nr; i++) {
		if (state->fd[i] < 0) {
			events[i] = opened[(-1 - state->fd[i]) % MAX_OPEN].event;
		} else {
			files[i] = fget(state->fd[i]);
			events[i] = files[i] ? files[i]->private_data : NULL;
		}
		if (!events[i])
			ret = -EBADF;
	}
	local_irq_save(flags);
	while (!ret) {
		copy_counters(state, events);
		if (!guest_control(&state->host, &state->guest))
			ret = -EOPNOTSUPP;
		rdmsrq(MSR_CORE_PERF_GLOBAL_CTRL, state->control);
		state->selected = selected();
		/* A PMI in between may have stopped an event. */
		if (!copy_counters(state, events))
			break;
	}
	local_irq_restore(flags);
	for (i = 0; i < state->nr; i++) {
		if (files[i])
			fput(files[i]);
	}
	return ret;
}

/*
 * Executes 2 * loops + 3 instructions from one value of GLOBAL_CTRL to the next, the
 * last of which writes it.
 */
static noinline void run_guest(u64 host, u64 guest, unsigned long loops)
{
	u32 low = guest, high = guest >> 32;

	asm volatile("wrmsr\n"
		     "1:\tdec %[loops]\n\t"
		     "jnz 1b\n\t"
		     "mov %[host_low], %%eax\n\t"
		     "mov %[host_high], %%edx\n\t"
		     "wrmsr"
		     : "+a" (low), "+d" (high), [loops] "+r" (loops)
		     : "c" (MSR_CORE_PERF_GLOBAL_CTRL), [host_low] "r" ((u32)host),
		       [host_high] "r" ((u32)(host >> 32))
		     : "cc", "memory");
}

static unsigned int nmis(void)
{
	return this_cpu_read(irq_stat.counts[IRQ_COUNT_NMI]);
}

/* Sends this CPU an NMI, and waits until it has been handled. */
static long send_nmi(void)
{
	unsigned int before = nmis();
	int i;

	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
	for (i = 0; i < NMI_WAIT; i++) {
		if (nmis() != before)
			return 0;
		cpu_relax();
	}
	return -ETIMEDOUT;
}

/*
 * Lets LVTPC raise NMIs again, and raises the delayed one: in a guest, an NMI
 * causes a VM exit, and is handled after it. The counters stop until the NMI
 * has been sent, because an earlier overflow would raise an NMI that handles
 * both, and this NMI would then be unknown. The handler, even of a late NMI,
 * starts the counters again.
 */
static long deliver_pmi(u32 lvtpc)
{
	u64 control, status, precise = 0;
	unsigned int before;
	long ret = 0;

	/* A snapshot at a write of an MSR would start the counters. */
	this_cpu_write(in_delivery, true);
	rdmsrq(MSR_CORE_PERF_GLOBAL_CTRL, control);
	do {
		before = nmis();
		wrmsrq(MSR_CORE_PERF_GLOBAL_CTRL, 0);
		apic->write(APIC_LVTPC, lvtpc);
	} while (nmis() != before);
	rdmsrq(MSR_CORE_PERF_GLOBAL_STATUS, status);
	/* The counters of precise events do not raise NMIs. */
	rdmsrq_safe(MSR_IA32_PEBS_ENABLE, &precise);
	status &= ~precise;
	if (status) {
		WRITE_ONCE(guest_cpu, smp_processor_id());
		ret = send_nmi();
		WRITE_ONCE(guest_cpu, -1);
	}
	this_cpu_write(in_delivery, false);
	if (!status || ret)
		wrmsrq(MSR_CORE_PERF_GLOBAL_CTRL, control);
	return ret;
}

static long enter_guest(struct vm_entry_run *run)
{
	unsigned long flags;
	u32 lvtpc = 0;
	u64 host, guest;
	long ret;

	if (!run->loops)
		return -EINVAL;
	ret = set_pebs(run);
	if (ret)
		return ret;
	local_irq_save(flags);
	if (!guest_control(&host, &guest)) {
		local_irq_restore(flags);
		return -EOPNOTSUPP;
	}
	if (run->defer) {
		lvtpc = apic->read(APIC_LVTPC);
		apic->write(APIC_LVTPC, lvtpc | APIC_LVT_MASKED);
	}
	run->known = IS_ENABLED(CONFIG_GUEST_PERF_EVENTS);
	run->switched = host != guest;
	switch_others(true);
	/* Like KVM, which does not write the register if both values are the same. */
	if (run->switched)
		run_guest(host, guest, run->loops);
	switch_others(false);
	run->records = (guest_ds->pebs_index - guest_ds->pebs_buffer_base) / RECORD_SIZE;
	ret = run->defer ? deliver_pmi(lvtpc) : 0;
	local_irq_restore(flags);
	return ret;
}

static void overflowed(struct perf_event *event, struct perf_sample_data *data,
		       struct pt_regs *regs)
{
	struct opened *open = event->overflow_handler_context;

	open->overflows++;
	if (open->flags & VM_ENTRY_SNAPSHOT_IN_PMI) {
		take_snapshot();
		rdmsrq(MSR_CORE_PERF_GLOBAL_CTRL, open->control);
	}
}

/* Like pmc_reprogram_counter() and intel_pmu_create_guest_lbr_event(). */
static long open_event(const struct vm_entry_open *open)
{
	struct perf_event_attr attr = {
		.type = open->type,
		.size = sizeof(attr),
		.config = open->config,
		.sample_period = open->period,
		.pinned = true,
		.precise_ip = !!(open->flags & VM_ENTRY_PRECISE),
		.exclude_idle = !open->branch_sample_type,
		.exclude_host = !(open->flags & VM_ENTRY_IN_HOST),
		.branch_sample_type = open->branch_sample_type,
		.sample_type = open->branch_sample_type ? PERF_SAMPLE_BRANCH_STACK : 0,
	};
	struct perf_event *event;
	int i;

	for (i = 0; i < MAX_OPEN; i++) {
		if (opened[i].event)
			continue;
		opened[i] = (struct opened){ .flags = open->flags };
		event = perf_event_create_kernel_counter(&attr, -1, current, overflowed,
							 &opened[i]);
		if (IS_ERR(event))
			return PTR_ERR(event);
		opened[i].event = event;
		return i;
	}
	return -ENOSPC;
}

static void close_events(void)
{
	int i;

	for (i = 0; i < MAX_OPEN; i++) {
		if (opened[i].event)
			perf_event_release_kernel(opened[i].event);
		opened[i].event = NULL;
	}
}

static long event_request(unsigned int request, struct vm_entry_event *it)
{
	struct opened *open = &opened[it->nr % MAX_OPEN];
	long ret = 0;

	if (!open->event)
		return -EBADF;
	switch (request) {
	case VM_ENTRY_PAUSE:
		it->value = perf_event_pause(open->event, true);
		break;
	case VM_ENTRY_PERIOD:
		ret = perf_event_period(open->event, it->value);
		break;
	case VM_ENTRY_ENABLE:
		perf_event_enable(open->event);
		break;
	}
	it->overflows = open->overflows;
	it->control = open->control;
	return ret;
}

static void access_record(bool write, u32 msr, u64 *value)
{
	if (write)
		wrmsrq_safe(msr, *value);
	else
		rdmsrq_safe(msr, value);
}

/* Like intel_pmu_handle_lbr_msrs_access() and vmx_passthrough_lbr_msrs(). */
static long access_records(struct vm_entry_records *it)
{
	struct perf_event *event = opened[it->nr % MAX_OPEN].event;
	u64 debugctl;
	u32 i;

	if (!event)
		return -EBADF;
	if (it->depth > VM_ENTRY_BRANCHES_MAX)
		return -EINVAL;
	guard(irqsave)();
	it->lent = event->state == PERF_EVENT_STATE_ACTIVE;
	rdmsrq(MSR_IA32_DEBUGCTLMSR, debugctl);
	it->recording = debugctl & DEBUGCTLMSR_LBR;
	if (!it->lent)
		return 0;
	access_record(it->write, MSR_LBR_SELECT, &it->select);
	access_record(it->write, MSR_LBR_TOS, &it->tos);
	for (i = 0; i < it->depth; i++) {
		access_record(it->write, MSR_LBR_NHM_FROM + i, &it->from[i]);
		access_record(it->write, MSR_LBR_NHM_TO + i, &it->to[i]);
	}
	return 0;
}

static noinline void spin(unsigned long loops)
{
	asm volatile("1:\tdec %[loops]\n\tjnz 1b" : [loops] "+r" (loops) : : "cc");
}

static long request(unsigned int request, unsigned long arg)
{
	void __user *user = (void __user *)arg;
	union {
		struct vm_entry_state state;
		struct vm_entry_run run;
		struct vm_entry_open open;
		struct vm_entry_event event;
		struct vm_entry_branches branches;
		struct vm_entry_records records;
	} *it;
	long ret;

	switch (request) {
	case VM_ENTRY_SNAPSHOT:
		/* spin(0) would not end, and a task in the kernel cannot be killed. */
		if (!arg)
			return -EINVAL;
		take_snapshot();
		spin(arg);
		return 0;
	case VM_ENTRY_SNAPSHOTS:
		WRITE_ONCE(snapshots_cpu, arg ? raw_smp_processor_id() : -1);
		return atomic_xchg(&snapshots, 0);
	case VM_ENTRY_CLOSE:
		close_events();
		return 0;
	case VM_ENTRY_MEDIATED:
		return static_call(vm_entry_create_mediated)();
	case VM_ENTRY_UNMEDIATED:
		static_call(vm_entry_release_mediated)();
		return 0;
	}

	if (_IOC_SIZE(request) > sizeof(*it))
		return -ENOTTY;
	it = kzalloc_obj(*it);
	if (!it)
		return -ENOMEM;
	if (copy_from_user(it, user, _IOC_SIZE(request))) {
		ret = -EFAULT;
		goto out;
	}
	switch (request) {
	case VM_ENTRY_STATE:
		ret = get_state(&it->state);
		break;
	case VM_ENTRY_RUN:
		ret = enter_guest(&it->run);
		break;
	case VM_ENTRY_OPEN:
		ret = open_event(&it->open);
		break;
	case VM_ENTRY_BRANCHES:
		get_branches(&it->branches);
		ret = 0;
		break;
	case VM_ENTRY_RECORDS:
		ret = access_records(&it->records);
		break;
	case VM_ENTRY_PAUSE:
	case VM_ENTRY_PERIOD:
	case VM_ENTRY_ENABLE:
		ret = event_request(request, &it->event);
		break;
	default:
		ret = -ENOTTY;
	}
	if (ret >= 0 && (_IOC_DIR(request) & _IOC_READ) &&
	    copy_to_user(user, it, _IOC_SIZE(request)))
		ret = -EFAULT;
out:
	kfree(it);
	return ret;
}

static long vm_entry_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	guard(mutex)(&lock);
	return request(cmd, arg);
}

static int vm_entry_release(struct inode *inode, struct file *file)
{
	guard(mutex)(&lock);
	WRITE_ONCE(snapshots_cpu, -1);
	close_events();
	return 0;
}

static const struct file_operations vm_entry_fops = {
	.owner = THIS_MODULE,
	.unlocked_ioctl = vm_entry_ioctl,
	.release = vm_entry_release,
};

static struct miscdevice vm_entry_device = {
	.minor = MISC_DYNAMIC_MINOR,
	.name = "vm_entry",
	.fops = &vm_entry_fops,
};

static unsigned long find(const char *name)
{
	unsigned long address = static_call(vm_entry_lookup)(name);

	if (!address)
		pr_notice("%s does not exist\n", name);
	return address;
}

/* Calls the built-in driver's function even if that driver has found no LBR. */
static unsigned long find_snapshot(void)
{
	struct static_call_key *key = (void *)find("__SCK__perf_snapshot_branch_stack");

	if (key && key->func != (void *)__static_call_return0)
		return (unsigned long)key->func;
	return find("intel_pmu_snapshot_branch_stack");
}

static int find_functions(void)
{
	struct kprobe probe = {
		.symbol_name = "kallsyms_lookup_name",
		.flags = KPROBE_FLAG_DISABLED,
	};
	unsigned long address;
	int ret;

	ret = register_kprobe(&probe);
	if (ret)
		return ret;
	address = (unsigned long)probe.addr;
	unregister_kprobe(&probe);
	static_call_update(vm_entry_lookup, (void *)address);

	address = find("perf_guest_get_msrs");
	if (!address)
		return -ENOENT;
	static_call_update(vm_entry_guest_get_msrs, (void *)address);
	address = find_snapshot();
	if (!address)
		return -ENOENT;
	static_call_update(vm_entry_snapshot, (void *)address);

	/* Only with CONFIG_PERF_GUEST_MEDIATED_PMU. */
	address = find("perf_create_mediated_pmu");
	if (address) {
		static_call_update(vm_entry_create_mediated, (void *)address);
		address = find("perf_release_mediated_pmu");
		static_call_update(vm_entry_release_mediated, (void *)address);
	}
	return 0;
}

static void free_memory(void)
{
	kfree(kvm_pmu);
	kfree(guest_ds);
	kfree(guest_records);
}

static int __init vm_entry_init(void)
{
	int ret = find_functions();

	if (ret)
		return ret;
	if (mediated)
		return static_call(vm_entry_create_mediated)();
	kvm_pmu = kzalloc_obj(*kvm_pmu);
	guest_ds = kzalloc_obj(*guest_ds);
	guest_records = kzalloc(PAGE_SIZE, GFP_KERNEL);
	ret = -ENOMEM;
	if (!kvm_pmu || !guest_ds || !guest_records)
		goto out_free;
	ret = register_trace_write_msr(written, NULL);
	if (ret)
		goto out_free;
	ret = misc_register(&vm_entry_device);
	if (!ret) {
		register_guest();
		return 0;
	}
	unregister_trace_write_msr(written, NULL);
	tracepoint_synchronize_unregister();
out_free:
	free_memory();
	return ret;
}

static void __exit vm_entry_exit(void)
{
	if (mediated) {
		static_call(vm_entry_release_mediated)();
		return;
	}
	unregister_guest();
	misc_deregister(&vm_entry_device);
	unregister_trace_write_msr(written, NULL);
	tracepoint_synchronize_unregister();
	free_memory();
}

module_init(vm_entry_init);
module_exit(vm_entry_exit);
MODULE_DESCRIPTION("Imitates KVM and BPF's branch snapshots");
MODULE_LICENSE("GPL");
