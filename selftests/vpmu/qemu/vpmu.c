/*
 *  Emulated PMU: from TCG's accounting to the hardware model, and back
 *
 *  The model is a shared object that is opened at start-up; vpmu.h is the
 *  boundary. Here is no knowledge of what counts what.
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
        error_setg(errp, "vpmu: %s has ABI %u, this QEMU wants %u", path,
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

/* Small enough for the counts of VPMUState.word, whatever a TB adds. */
#define VPMU_MAX_GRANT (1 << 18)

/* From now on up to limit[user] instructions; nothing of them retired yet. */
static void vpmu_grant(VPMUState *v, bool user)
{
    v->granted = v->limit[user];
    v->word = vpmu_word(v->counting, v->granted, 0, 0);
}

/* Takes apart what the TBs have counted since vpmu_grant(). */
static void vpmu_collect(VPMUState *v)
{
    int64_t retired, left = v->word;

    if (v->counting == VPMU_COUNTING_ALL) {
        int64_t stores = sextract64(left, 0, 20);
        int64_t loads = sextract64(left - stores, 20, 20);

        v->retired[VPMU_LOADS] += loads;
        v->retired[VPMU_STORES] += stores;
        left = (left - vpmu_word(v->counting, 0, -loads, -stores)) >> 40;
    }
    retired = v->granted - left;
    v->retired[VPMU_INSTRUCTIONS] += retired;
    v->since_branch += retired;
    /* A counter may count both privileges, so both have less left. */
    v->limit[0] -= retired;
    v->limit[1] -= retired;
}

/* Tell the model what was retired since the last time. */
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
 * After a change of the model's state: what may retire until it is asked? TBs
 * count what matters and nothing else (HF_VPMU_MASK), so that an idle PMU costs
 * nothing. The current TB ends with the change.
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

/* Delivers the PMI that is due, if one is; between TBs, with the BQL. */
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

static void vpmu_ask_work(CPUState *cs, run_on_cpu_data unused)
{
    vpmu_settle(cpu_env(cs));
    vpmu_deliver(cpu_env(cs));
    vpmu_ask(cpu_env(cs));
}

/* The other thread of the core, if there is one. */
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

/* The other thread of the core may have to count for this one, or no more. */
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
 * The other thread counts what this one retires. While it runs, it asks for it
 * by itself; while it is halted, an overflow would wait until it runs. So it
 * would where vCPUs take turns, until it is the other's turn.
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

/* A new privilege level: called before hflags holds it. */
void vpmu_cpl_change(CPUX86State *env, int cpl)
{
    VPMUState *v = &env->vpmu;
    bool user = cpl != 0;

    if (vpmu_user(env) != user) {
        vpmu_collect(v);
        if (v->limit[!user] < 0) {
            /* There may be an overflow. Whoever goes on must not delay it. */
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
 * The last instructions of a TB, and the branch that ends it, did not run. What
 * is left of the budget stays too small for now, which does no harm.
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

/* Something that is no instruction counts against the budget like one. */
static void vpmu_take(VPMUState *v, enum vpmu_retired kind)
{
    v->retired[kind]++;
    v->word -= vpmu_word(v->counting, 1, 0, 0);
    v->granted--;
    v->limit[0]--;
    v->limit[1]--;
}

/* The MMU walks page tables. */
void vpmu_walk(CPUX86State *env, int access_type)
{
    if (env->vpmu.counting) {
        vpmu_take(&env->vpmu, VPMU_WALK_LOAD + access_type);
    }
}

/*
 * An interrupt or an exception was delivered, at the privilege of its handler.
 * INTn and the like are instructions instead.
 */
void vpmu_interrupt(CPUX86State *env)
{
    if (env->vpmu.counting && env->vpmu.interrupts) {
        vpmu_take(&env->vpmu, VPMU_INTERRUPTS);
    }
}

/* A branch is taken; its target's privilege is the current one. */
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

/* At the end of a TB: @how is an enum vpmu_retired with VPMU_RECORD_*. */
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
 * SMM is entered or left: called before the CPU's state changes. Its privilege
 * may, so nothing is left that would have to be told by the old one.
 */
void vpmu_smm(CPUX86State *env, bool inside)
{
    if (env->vpmu.pmu) {
        vpmu_settle(env);
        ops->smm(env->vpmu.pmu, inside);
        vpmu_ask(env);
        vpmu_tell_sibling(env);
    }
}

/*
 * SVM is switched on or off, or a guest entered or left: called before the
 * CPU's state changes.
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
 * At the start of a TB: the budget is used up. PMIs come from here, and where
 * the other thread brings them about, from vpmu_ask_work(). The TB is left and
 * begun again; it has taken so many instructions off icount.
 */
void helper_vpmu_expired(CPUX86State *env, uint32_t icount)
{
    CPUState *cs = env_cpu(env);

    vpmu_settle(env);
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
