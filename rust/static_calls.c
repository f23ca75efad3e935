// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel functions that are not exported. rust/kern/symbols.rs finds their
 * addresses.
 *
 * Static calls become direct jumps, which need no retpoline, and no ENDBR at
 * the target (the kernel removes the ENDBR of functions that are never called
 * by pointer). Calls that are not bound do nothing, and return 0.
 */

#include <linux/kallsyms.h>
#include <linux/perf_event.h>
#include <linux/sched/clock.h>
#include <linux/static_call.h>
#include <asm/insn.h>
#include <asm/tsc.h>

DEFINE_STATIC_CALL_NULL(rpmu_perf_pmu_resched, perf_pmu_resched);
DEFINE_STATIC_CALL_RET0(rpmu_perf_event_overflow, perf_event_overflow);
DEFINE_STATIC_CALL_NULL(rpmu_perf_sample_event_took, perf_sample_event_took);

void rpmu_helper_bind_perf_pmu_resched(void *address)
{
	static_call_update(rpmu_perf_pmu_resched, address);
}

void rpmu_helper_perf_pmu_resched(struct pmu *pmu)
{
	static_call_cond(rpmu_perf_pmu_resched)(pmu);
}

DEFINE_STATIC_CALL_RET0(rpmu_kallsyms_lookup_name, kallsyms_lookup_name);

void rpmu_helper_bind_kallsyms_lookup_name(void *address)
{
	static_call_update(rpmu_kallsyms_lookup_name, address);
}

unsigned long rpmu_helper_kallsyms_lookup_name(const char *name)
{
	return static_call(rpmu_kallsyms_lookup_name)(name);
}

void rpmu_helper_bind_perf_event_overflow(void *address)
{
	static_call_update(rpmu_perf_event_overflow, address);
}

int rpmu_helper_perf_event_overflow(struct perf_event *event,
				    struct perf_sample_data *data,
				    struct pt_regs *regs)
{
	return static_call(rpmu_perf_event_overflow)(event, data, regs);
}

void rpmu_helper_bind_perf_sample_event_took(void *address)
{
	static_call_update(rpmu_perf_sample_event_took, address);
}

void rpmu_helper_perf_sample_event_took(u64 ns)
{
	static_call_cond(rpmu_perf_sample_event_took)(ns);
}

/* The built-in driver's reservation of the counters' registers and the DS area. */
DEFINE_STATIC_CALL_RET0(rpmu_x86_reserve_hardware, int (void));
DEFINE_STATIC_CALL_NULL(rpmu_x86_release_hardware, void (void));

void rpmu_helper_bind_x86_reserve_hardware(void *reserve, void *release)
{
	static_call_update(rpmu_x86_reserve_hardware, reserve);
	static_call_update(rpmu_x86_release_hardware, release);
}

int rpmu_helper_x86_reserve_hardware(void)
{
	return static_call(rpmu_x86_reserve_hardware)();
}

void rpmu_helper_x86_release_hardware(void)
{
	static_call_cond(rpmu_x86_release_hardware)();
}

/* Detection of interrupted guests. */
DEFINE_STATIC_CALL_RET0(rpmu_perf_arch_guest_misc_flags, unsigned long (struct pt_regs *));

void rpmu_helper_bind_perf_arch_guest_misc_flags(void *address)
{
	static_call_update(rpmu_perf_arch_guest_misc_flags, address);
}

bool rpmu_helper_guest_is_interrupted(struct pt_regs *regs)
{
	return static_call(rpmu_perf_arch_guest_misc_flags)(regs) & PERF_RECORD_MISC_CPUMODE_MASK;
}

/* The parts of the PMI that belong to the drivers of Intel PT and BTS. */
DEFINE_STATIC_CALL_NULL(rpmu_intel_pt_interrupt, void (void));
DEFINE_STATIC_CALL_RET0(rpmu_guest_handle_intel_pt_intr, unsigned int (void));
DEFINE_STATIC_CALL_NULL(rpmu_intel_bts_disable_local, void (void));
DEFINE_STATIC_CALL_NULL(rpmu_intel_bts_enable_local, void (void));
DEFINE_STATIC_CALL_RET0(rpmu_intel_bts_interrupt, int (void));

void rpmu_helper_bind_intel_pt(void *interrupt, void *guest)
{
	static_call_update(rpmu_intel_pt_interrupt, interrupt);
	if (guest)
		static_call_update(rpmu_guest_handle_intel_pt_intr, guest);
}

void rpmu_helper_intel_pt_interrupt(void)
{
	static_call_cond(rpmu_intel_pt_interrupt)();
}

unsigned int rpmu_helper_guest_handle_intel_pt_intr(void)
{
	return static_call(rpmu_guest_handle_intel_pt_intr)();
}

void rpmu_helper_bind_intel_bts(void *disable, void *interrupt, void *enable)
{
	static_call_update(rpmu_intel_bts_disable_local, disable);
	static_call_update(rpmu_intel_bts_interrupt, interrupt);
	static_call_update(rpmu_intel_bts_enable_local, enable);
}

void rpmu_helper_intel_bts_disable_local(void)
{
	static_call_cond(rpmu_intel_bts_disable_local)();
}

int rpmu_helper_intel_bts_interrupt(void)
{
	return static_call(rpmu_intel_bts_interrupt)();
}

void rpmu_helper_intel_bts_enable_local(void)
{
	static_call_cond(rpmu_intel_bts_enable_local)();
}

/* Requests for calls of sched_task when a task is switched in or out. */
DEFINE_STATIC_CALL_NULL(rpmu_perf_sched_cb_inc, perf_sched_cb_inc);
DEFINE_STATIC_CALL_NULL(rpmu_perf_sched_cb_dec, perf_sched_cb_dec);

void rpmu_helper_bind_perf_sched_cb(void *inc, void *dec)
{
	static_call_update(rpmu_perf_sched_cb_inc, inc);
	static_call_update(rpmu_perf_sched_cb_dec, dec);
}

void rpmu_helper_perf_sched_cb_inc(struct pmu *pmu)
{
	static_call_cond(rpmu_perf_sched_cb_inc)(pmu);
}

void rpmu_helper_perf_sched_cb_dec(struct pmu *pmu)
{
	static_call_cond(rpmu_perf_sched_cb_dec)(pmu);
}

/* Branch records: excluding Intel PT and BTS, and classifying branches. */
DEFINE_STATIC_CALL_RET0(rpmu_x86_add_exclusive, int (unsigned int));
DEFINE_STATIC_CALL_NULL(rpmu_x86_del_exclusive, void (unsigned int));
DEFINE_STATIC_CALL_RET0(rpmu_branch_type, int (unsigned long, unsigned long, int));
DEFINE_STATIC_CALL_RET0(rpmu_branch_type_fused, int (unsigned long, unsigned long, int, int *));

void rpmu_helper_bind_lbr(void *add_exclusive, void *del_exclusive, void *branch_type,
			  void *branch_type_fused)
{
	static_call_update(rpmu_x86_add_exclusive, add_exclusive);
	static_call_update(rpmu_x86_del_exclusive, del_exclusive);
	static_call_update(rpmu_branch_type, branch_type);
	static_call_update(rpmu_branch_type_fused, branch_type_fused);
}

int rpmu_helper_x86_add_exclusive(unsigned int what)
{
	return static_call(rpmu_x86_add_exclusive)(what);
}

void rpmu_helper_x86_del_exclusive(unsigned int what)
{
	static_call_cond(rpmu_x86_del_exclusive)(what);
}

int rpmu_helper_branch_type(unsigned long from, unsigned long to, int abort)
{
	return static_call(rpmu_branch_type)(from, to, abort);
}

int rpmu_helper_branch_type_fused(unsigned long from, unsigned long to, int abort, int *offset)
{
	return static_call(rpmu_branch_type_fused)(from, to, abort, offset);
}

/* Samples from PEBS records, which are not always overflows. */
DEFINE_STATIC_CALL_RET0(rpmu_perf_event_output, perf_event_output);
DEFINE_STATIC_CALL_RET0(rpmu_perf_callchain, perf_callchain);
DEFINE_STATIC_CALL_NULL(rpmu_perf_log_lost_samples, void (struct perf_event *, u64));
DEFINE_STATIC_CALL_RET0(rpmu_perf_event_account_interrupt, perf_event_account_interrupt);

void rpmu_helper_bind_pebs_samples(void *output, void *callchain, void *lost, void *account)
{
	static_call_update(rpmu_perf_event_output, output);
	static_call_update(rpmu_perf_callchain, callchain);
	static_call_update(rpmu_perf_log_lost_samples, lost);
	static_call_update(rpmu_perf_event_account_interrupt, account);
}

int rpmu_helper_perf_event_output(struct perf_event *event, struct perf_sample_data *data,
				  struct pt_regs *regs)
{
	return static_call(rpmu_perf_event_output)(event, data, regs);
}

/* Null until it is bound. */
struct perf_callchain_entry *rpmu_helper_perf_callchain(struct perf_event *event,
							struct pt_regs *regs)
{
	return static_call(rpmu_perf_callchain)(event, regs);
}

void rpmu_helper_perf_log_lost_samples(struct perf_event *event, u64 lost)
{
	static_call_cond(rpmu_perf_log_lost_samples)(event, lost);
}

int rpmu_helper_perf_event_account_interrupt(struct perf_event *event)
{
	return static_call(rpmu_perf_event_account_interrupt)(event);
}

/* The built-in driver's maximum precise_ip, the TSC clock, and instruction lengths. */
DEFINE_STATIC_CALL_RET0(rpmu_x86_pmu_max_precise, int (struct pmu *));
DEFINE_STATIC_CALL_RET0(rpmu_using_native_sched_clock, bool (void));
DEFINE_STATIC_CALL_RET0(rpmu_sched_clock_stable, int (void));
DEFINE_STATIC_CALL_RET0(rpmu_native_sched_clock_from_tsc, u64 (u64));
DEFINE_STATIC_CALL_NULL(rpmu_insn_init, insn_init);
DEFINE_STATIC_CALL_RET0(rpmu_insn_get_length, insn_get_length);

void rpmu_helper_bind_max_precise(void *max_precise)
{
	static_call_update(rpmu_x86_pmu_max_precise, max_precise);
}

int rpmu_helper_max_precise(void)
{
	return static_call(rpmu_x86_pmu_max_precise)(NULL);
}

void rpmu_helper_bind_tsc_clock(void *native, void *stable, void *from_tsc)
{
	static_call_update(rpmu_using_native_sched_clock, native);
	static_call_update(rpmu_sched_clock_stable, stable);
	static_call_update(rpmu_native_sched_clock_from_tsc, from_tsc);
}

bool rpmu_helper_is_tsc_clock(void)
{
	return static_call(rpmu_using_native_sched_clock)() &&
	       static_call(rpmu_sched_clock_stable)();
}

u64 rpmu_helper_native_sched_clock_from_tsc(u64 tsc)
{
	return static_call(rpmu_native_sched_clock_from_tsc)(tsc);
}

void rpmu_helper_bind_insn(void *init, void *get_length)
{
	static_call_update(rpmu_insn_init, init);
	static_call_update(rpmu_insn_get_length, get_length);
}

/* Returns the length of the first instruction in code; 0 if it cannot be decoded. */
unsigned int rpmu_helper_insn_length(const void *code, int size, bool is_64bit)
{
	struct insn insn;

	insn.length = 0;
	static_call_cond(rpmu_insn_init)(&insn, code, size, is_64bit);
	return static_call(rpmu_insn_get_length)(&insn) ? 0 : insn.length;
}

/* Precise events of AMD's, which the IBS PMU counts. */
DEFINE_STATIC_CALL_RET0(rpmu_forward_event_to_ibs, int (struct perf_event *));

void rpmu_helper_bind_forward_event_to_ibs(void *address)
{
	static_call_update(rpmu_forward_event_to_ibs, address);
}

int rpmu_helper_forward_event_to_ibs(struct perf_event *event)
{
	return static_call(rpmu_forward_event_to_ibs)(event);
}

/* The kernel's own static calls, by the addresses of key and trampoline. */
void *rpmu_helper_static_call_target(const struct static_call_key *key)
{
	return READ_ONCE(key->func);
}

void rpmu_helper_static_call_redirect(struct static_call_key *key, void *tramp,
				      void *target)
{
	__static_call_update(key, tramp, target);
}
