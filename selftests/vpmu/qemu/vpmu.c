/*
 *  Emulated PMU: the connection between TCG's accounting and the hardware model
 *
 *  The model is a shared object that QEMU loads at startup; vpmu.h is the
 *  interface. Only the model knows events and counters.
 *
 *  SPDX-License-Identifier: GPL-2.0-or-later
 */

#include "qemu/osdep.h"
#include <dlfcn.h>
#include "qapi/error.h"
#include "migration/blocker.h"
#include "qemu/main-loop.h"
#include "qemu/notify.h"
#include "system/system.h"
#include "cpu.h"
#include "exec/cpu-common.h"
#include "exec/helper-proto.h"
#include "exec/translation-block.h"
#include "hw/i386/apic.h"

static const struct vpmu_ops *ops;
static Error *vpmu_blocker;

static void vpmu_exit(Notifier *n, void *unused)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (cpu_env(cs)->vpmu.pmu) {
            ops->report(cpu_env(cs)->vpmu.pmu);
        }
    }
}

static bool vpmu_load(const char *path, Error **errp)
{
    static Notifier exit_notifier = { .notify = vpmu_exit };
    const struct vpmu_ops *loaded;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);

    if (!lib) {
        error_setg(errp, "vpmu: %s", dlerror());
        return false;
    }
    loaded = dlsym(lib, "vpmu_ops");
    if (!loaded) {
        error_setg(errp, "vpmu: %s is not a hardware model of a PMU", path);
        return false;
    }
    if (loaded->abi != VPMU_ABI) {
        error_setg(errp, "vpmu: %s has ABI %u, this QEMU needs %u", path,
                   loaded->abi, VPMU_ABI);
        return false;
    }
    ops = loaded;
    qemu_add_exit_notifier(&exit_notifier);
    return true;
}

bool vpmu_realize(X86CPU *cpu, Error **errp)
{
    CPUX86State *env = &cpu->env;
    uint32_t version = env->cpuid_version;
    struct vpmu_config config = {
        .family = extract32(version, 8, 4) + extract32(version, 20, 8),
        .model = extract32(version, 4, 4) | extract32(version, 16, 4) << 4,
        .stepping = extract32(version, 0, 4),
        .apic_id = cpu->apic_id,
        .threads_per_core = env->topo_info.threads_per_core,
        .defects = cpu->vpmu_defects,
        .pebs = cpu->vpmu_pebs,
        .profile = cpu->vpmu_profile,
    };
    const char *error;

    if (!cpu->enable_pmu) {
        return true;
    }
    if (!cpu->vpmu_path) {
        error_setg(errp, "pmu=on without KVM needs a hardware model of the "
                   "PMU: add vpmu=PATH to -cpu");
        return false;
    }
    if (!ops && !vpmu_load(cpu->vpmu_path, errp)) {
        return false;
    }
    if (!vpmu_blocker) {
        error_setg(&vpmu_blocker, "The state of the emulated PMU (pmu=on) "
                   "can neither be saved nor migrated");
        if (migrate_add_blocker(&vpmu_blocker, errp) < 0) {
            return false;
        }
    }
    env->vpmu.pmu = ops->create(&config, &error);
    if (!env->vpmu.pmu) {
        error_setg(errp, "vpmu: family %u model %u: %s", config.family,
                   config.model, error);
        return false;
    }
    env->vpmu.interrupts = ops->counts_interrupts(env->vpmu.pmu);
    return true;
}

static bool vpmu_user(CPUX86State *env)
{
    return env->hflags & HF_CPL_MASK;
}

/* The largest grant: VPMUState.word has room for it and the counts of a TB. */
#define VPMU_MAX_GRANT (1 << 18)

/* Grants limit[user] instructions, none of which has retired yet. */
static void vpmu_grant(VPMUState *v, bool user)
{
    v->granted = v->limit[user];
    v->word = vpmu_word(v->counting, v->granted, 0, 0);
}

/* Adds the TBs' counts since vpmu_grant() to VPMUState.retired. */
static void vpmu_collect(VPMUState *v)
{
    int64_t retired, left = v->word;

    if (v->counting >= VPMU_COUNTING_ALL) {
        int64_t stores = sextract64(left, 0, 20);
        int64_t loads = sextract64(left - stores, 20, 20);

        v->retired[VPMU_LOADS] += loads;
        v->retired[VPMU_STORES] += stores;
        left = (left - vpmu_word(v->counting, 0, -loads, -stores)) >> 40;
    }
    retired = v->granted - left;
    v->retired[VPMU_INSTRUCTIONS] += retired;
    v->since_branch += retired;
    /* A counter may count at both privilege levels, so lower both limits. */
    v->limit[0] -= retired;
    v->limit[1] -= retired;
}

/* Reports all counts since the last report to the model. */
static void vpmu_settle(CPUX86State *env)
{
    VPMUState *v = &env->vpmu;
    bool user = vpmu_user(env);

    vpmu_collect(v);
    ops->retire(v->pmu, user, v->retired);
    ops->retire(v->pmu, !user, v->other);
    memset(v->retired, 0, sizeof(v->retired));
    memset(v->other, 0, sizeof(v->other));
    vpmu_grant(v, user);
}

/*
 * Gets the level of counting and the budgets after a change of the model's
 * state. TBs count no more than this level (HF_VPMU_MASK), so that an idle PMU
 * costs nothing. An instruction that calls this ends its TB, so the next
 * instruction runs at the new level.
 */
static void vpmu_ask(CPUX86State *env)
{
    VPMUState *v = &env->vpmu;
    bool recording = ops->records_branches(v->pmu);

    v->counting = ops->counting(v->pmu);
    if (recording && !v->recording) {
        v->since_branch = 0;
    }
    v->recording = recording;
    for (int user = 0; user < 2; user++) {
        v->limit[user] = MIN(ops->budget(v->pmu, user), VPMU_MAX_GRANT);
    }
    vpmu_grant(v, vpmu_user(env));
}

/* Delivers a PMI if one is due. Called between TBs, with the BQL held. */
static void vpmu_deliver(CPUX86State *env)
{
    DeviceState *apic = env_archcpu(env)->apic_state;

    if (apic && ops->budget(env->vpmu.pmu, vpmu_user(env)) < 0) {
        switch (ops->pmi(env->vpmu.pmu, apic_pmi_masked(apic))) {
        case VPMU_PMI_NONE:
            break;
        case VPMU_PMI_DELIVER:
            apic_deliver_pmi(apic, false);
            break;
        case VPMU_PMI_DELIVER_AND_MASK:
            apic_deliver_pmi(apic, true);
            break;
        }
    }
}

static bool vpmu_read(void *cpu, uint64_t address, void *buffer, uint32_t size)
{
    return cpu_memory_rw_debug(cpu, address, buffer, size, false) == 0;
}

static bool vpmu_write(void *cpu, uint64_t address, const void *buffer,
                       uint32_t size)
{
    return cpu_memory_rw_debug(cpu, address, (void *)buffer, size, true) == 0;
}

/*
 * Writes the record that is due, if there is one. Called between two TBs. The
 * second one has subtracted its @icount instructions from icount already.
 */
static void vpmu_sample(CPUX86State *env, uint32_t icount)
{
    VPMUState *v = &env->vpmu;
    CPUState *cs = env_cpu(env);
    bool can_do_io = cs->neg.can_do_io;
    struct vpmu_sample sample;

    if (!ops->sample_due(v->pmu)) {
        return;
    }
    sample = (struct vpmu_sample) {
        .ip = v->ip,
        .next_ip = env->eip,
        .flags = cpu_compute_eflags(env),
        .load = v->load,
        .store = v->store,
        .cpu = cs,
        .read = vpmu_read,
        .write = vpmu_write,
    };
    for (int i = 0; i < CPU_NB_REGS; i++) {
        sample.regs[i] = env->regs[i];
        sample.xmm[i][0] = env->xmm_regs[i].ZMM_Q(0);
        sample.xmm[i][1] = env->xmm_regs[i].ZMM_Q(1);
    }
    /* The next TB has not run: give its instructions back to read the clock. */
    cs->neg.icount_decr.u16.low += icount;
    cs->neg.can_do_io = true;
    sample.tsc = cpu_get_tsc(env) + env->tsc_offset;
    cs->neg.can_do_io = can_do_io;
    cs->neg.icount_decr.u16.low -= icount;
    ops->sample(v->pmu, &sample);
}

static void vpmu_ask_work(CPUState *cs, run_on_cpu_data unused)
{
    vpmu_settle(cpu_env(cs));
    vpmu_deliver(cpu_env(cs));
    vpmu_ask(cpu_env(cs));
}

/*
 * Records the instruction before an interrupt, if its record is due. Called
 * before the interrupt is delivered.
 */
void vpmu_boundary(CPUX86State *env)
{
    VPMUState *v = &env->vpmu;

    if (v->counting == VPMU_COUNTING_EACH && v->word < 0) {
        vpmu_settle(env);
        vpmu_sample(env, 0);
        vpmu_ask(env);
    }
}

/* Returns the other thread of the core, or NULL. */
static CPUState *vpmu_sibling(CPUX86State *env)
{
    CPUState *cs;

    CPU_FOREACH(cs) {
        if (X86_CPU(cs)->apic_id == (env_archcpu(env)->apic_id ^ 1)) {
            return cs;
        }
    }
    return NULL;
}

/* Updates the core's other thread if its level of counting has changed. */
static void vpmu_tell_sibling(CPUX86State *env)
{
    CPUState *sibling;

    if (ops->sibling_must_ask(env->vpmu.pmu)) {
        sibling = vpmu_sibling(env);
        if (sibling) {
            async_run_on_cpu(sibling, vpmu_ask_work, RUN_ON_CPU_NULL);
        }
    }
}

/*
 * Updates the core's other thread if it counts this thread's events, unless it
 * runs, and so updates itself. A thread that is halted, or waits for its turn
 * because all vCPUs share one host thread, would notice an overflow too late.
 */
static void vpmu_tell_idle_sibling(CPUX86State *env)
{
    CPUState *sibling;

    if (ops->sibling_counts(env->vpmu.pmu)) {
        sibling = vpmu_sibling(env);
        if (sibling && (qatomic_read(&sibling->halted) ||
                        !tcg_cflags_has(env_cpu(env), CF_PARALLEL))) {
            async_run_on_cpu(sibling, vpmu_ask_work, RUN_ON_CPU_NULL);
        }
    }
}

void vpmu_reset(CPUX86State *env)
{
    VPMUState *v = &env->vpmu;

    if (v->pmu) {
        ops->reset(v->pmu);
        memset(v->retired, 0, sizeof(v->retired));
        memset(v->other, 0, sizeof(v->other));
        vpmu_ask(env);
    }
}

void vpmu_cpuid(CPUX86State *env, uint32_t leaf, uint32_t subleaf,
                uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    uint32_t regs[4] = { *eax, *ebx, *ecx, *edx };

    if (env->vpmu.pmu) {
        ops->cpuid(env->vpmu.pmu, leaf, subleaf, regs);
        *eax = regs[0];
        *ebx = regs[1];
        *ecx = regs[2];
        *edx = regs[3];
    }
}

/*
 * Swaps the counts of the two privilege levels if @cpl is not of the current
 * one. Called before hflags changes.
 */
void vpmu_cpl_change(CPUX86State *env, int cpl)
{
    VPMUState *v = &env->vpmu;
    bool user = cpl != 0;

    if (vpmu_user(env) != user) {
        vpmu_collect(v);
        if (v->limit[!user] < 0) {
            /* There may be an overflow, which the new level must not delay. */
            v->limit[user] = -1;
        }
        for (int i = 0; i < VPMU_RETIRED_COUNTS; i++) {
            int64_t retired = v->retired[i];

            v->retired[i] = v->other[i];
            v->other[i] = retired;
        }
        vpmu_grant(v, user);
    }
}

/*
 * Takes back the counts of a TB's last instructions and of the branch that ends
 * it: they did not run. Does not give back their budget, so the next report may
 * come too early, which does no harm.
 */
void vpmu_undo(CPUX86State *env, int insns, int loads, int stores, int branch)
{
    VPMUState *v = &env->vpmu;

    v->granted -= insns;
    v->retired[VPMU_LOADS] -= loads;
    v->retired[VPMU_STORES] -= stores;
    if (branch) {
        v->retired[branch]--;
    }
}

/* Counts an event that takes one off the budget, as an instruction does. */
static void vpmu_take(VPMUState *v, enum vpmu_retired kind)
{
    v->retired[kind]++;
    v->word -= vpmu_word(v->counting, 1, 0, 0);
    v->granted--;
    v->limit[0]--;
    v->limit[1]--;
}

/* Counts a page walk; @access_type: MMUAccessType. */
void vpmu_walk(CPUX86State *env, int access_type)
{
    if (env->vpmu.counting) {
        vpmu_take(&env->vpmu, VPMU_WALK_LOAD + access_type);
    }
}

/*
 * Counts a delivered interrupt or exception, at the privilege level of its
 * handler. INTn, INT1, INT3 and INTO are counted as far branches instead.
 */
void vpmu_interrupt(CPUX86State *env)
{
    if (env->vpmu.counting && env->vpmu.interrupts) {
        vpmu_take(&env->vpmu, VPMU_INTERRUPTS);
    }
}

/* Reports a taken branch; the CPL is already that of its target. */
void vpmu_record(CPUX86State *env, struct vpmu_branch branch)
{
    VPMUState *v = &env->vpmu;

    vpmu_collect(v);
    branch.to_user = vpmu_user(env);
    branch.instructions = MAX(v->since_branch, 0);
    v->since_branch = 0;
    ops->branch(v->pmu, &branch);
    vpmu_grant(v, vpmu_user(env));
}

/* Called at the end of a TB; @how: enum vpmu_retired with VPMU_RECORD_*. */
void helper_vpmu_record(CPUX86State *env, uint32_t how, target_ulong from,
                        target_ulong to)
{
    vpmu_record(env, (struct vpmu_branch) {
        .kind = how & ~(VPMU_RECORD_USER | VPMU_RECORD_NEXT),
        .from_user = how & VPMU_RECORD_USER,
        .next = how & VPMU_RECORD_NEXT,
        .from = from,
        .to = to,
    });
}

/*
 * Reports that SMM is entered or left. Called before the CPU's state changes:
 * with it, the privilege level may change, so reports the earlier counts first.
 */
void vpmu_smm(CPUX86State *env, bool inside)
{
    if (env->vpmu.pmu) {
        if (inside) {
            vpmu_boundary(env);
        }
        vpmu_settle(env);
        ops->smm(env->vpmu.pmu, inside);
        vpmu_ask(env);
        vpmu_tell_sibling(env);
    }
}

/*
 * Reports that SVM is turned on or off, or a guest entered or left. Called
 * before the CPU's state changes.
 */
void vpmu_svm(CPUX86State *env, bool enabled, bool guest)
{
    if (env->vpmu.pmu && (enabled != !!(env->hflags & HF_SVME_MASK) ||
                          guest != !!(env->hflags & HF_GUEST_MASK))) {
        vpmu_settle(env);
        ops->svm(env->vpmu.pmu, enabled, guest);
        vpmu_ask(env);
    }
}

/*
 * Called at the start of a TB when the budget is used up. Delivers PMIs, except
 * those that the core's other thread causes: vpmu_ask_work() delivers them. The
 * TB will start again, so gives back the @icount instructions that the TB has
 * subtracted from icount.
 */
void helper_vpmu_expired(CPUX86State *env, uint32_t icount)
{
    CPUState *cs = env_cpu(env);

    vpmu_settle(env);
    vpmu_sample(env, icount);
    if (ops->budget(env->vpmu.pmu, vpmu_user(env)) < 0) {
        bql_lock();
        vpmu_deliver(env);
        bql_unlock();
    }
    vpmu_tell_idle_sibling(env);
    vpmu_ask(env);
    cs->neg.icount_decr.u16.low += icount;
    qatomic_set(&cs->neg.icount_decr.u16.high, -1);
}

void vpmu_lvtpc_write(CPUX86State *env)
{
    if (env->vpmu.pmu) {
        ops->lvtpc_write(env->vpmu.pmu);
    }
}

enum vpmu_access vpmu_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *value)
{
    enum vpmu_access access;

    if (!env->vpmu.pmu) {
        return VPMU_NOT_MINE;
    }
    vpmu_settle(env);
    access = ops->rdmsr(env->vpmu.pmu, msr, value);
    vpmu_ask(env);
    return access;
}

enum vpmu_access vpmu_wrmsr(CPUX86State *env, uint32_t msr, uint64_t value)
{
    enum vpmu_access access;

    if (!env->vpmu.pmu) {
        return VPMU_NOT_MINE;
    }
    vpmu_settle(env);
    access = ops->wrmsr(env->vpmu.pmu, msr, value);
    vpmu_ask(env);
    vpmu_tell_sibling(env);
    return access;
}

enum vpmu_access vpmu_rdpmc(CPUX86State *env, uint32_t ecx, uint64_t *value)
{
    enum vpmu_access access;

    if (!env->vpmu.pmu) {
        return VPMU_NOT_MINE;
    }
    vpmu_settle(env);
    access = ops->rdpmc(env->vpmu.pmu, ecx, value);
    vpmu_ask(env);
    return access;
}
