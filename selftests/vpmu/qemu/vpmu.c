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
#include "qemu/main-loop.h"
#include "qemu/notify.h"
#include "system/system.h"
#include "cpu.h"
#include "exec/helper-proto.h"
#include "hw/i386/apic.h"

static const struct vpmu_ops *ops;

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
    env->vpmu.pmu = ops->create(&config, &error);
    if (!env->vpmu.pmu) {
        error_setg(errp, "vpmu: family %u model %u: %s", config.family,
                   config.model, error);
        return false;
    }
    return true;
}

static bool vpmu_user(CPUX86State *env)
{
    return env->hflags & HF_CPL_MASK;
}

static void vpmu_grant(CPUX86State *env, bool user)
{
    env->vpmu.granted = env->vpmu.budget = ops->budget(env->vpmu.pmu, user);
}

/* Tell the model what was retired since the last time, all at one privilege. */
static void vpmu_settle(CPUX86State *env)
{
    VPMUState *v = &env->vpmu;

    v->retired[VPMU_INSTRUCTIONS] = v->granted - v->budget;
    ops->retire(v->pmu, vpmu_user(env), v->retired);
    v->granted = v->budget;
    memset(v->retired, 0, sizeof(v->retired));
}

void vpmu_reset(CPUX86State *env)
{
    if (env->vpmu.pmu) {
        ops->reset(env->vpmu.pmu);
        memset(env->vpmu.retired, 0, sizeof(env->vpmu.retired));
        vpmu_grant(env, vpmu_user(env));
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
    if (vpmu_user(env) != (cpl != 0)) {
        vpmu_settle(env);
        vpmu_grant(env, cpl != 0);
    }
}

/* The last instructions of a TB, and the branch that ends it, did not run. */
void vpmu_undo(CPUX86State *env, int insns, int branch)
{
    if (env->vpmu.pmu) {
        env->vpmu.budget += insns;
        if (branch) {
            env->vpmu.retired[branch]--;
        }
    }
}

/* At the start of a TB: the budget is used up. The one place PMIs come from. */
void helper_vpmu_expired(CPUX86State *env)
{
    DeviceState *apic = env_archcpu(env)->apic_state;

    vpmu_settle(env);
    if (apic) {
        bql_lock();
        if (ops->pmi(env->vpmu.pmu, apic_pmi_masked(apic))) {
            apic_deliver_pmi(apic);
        }
        bql_unlock();
    }
    vpmu_grant(env, vpmu_user(env));
}

void vpmu_lvtpc_write(CPUX86State *env)
{
    if (env->vpmu.pmu) {
        ops->lvtpc_write(env->vpmu.pmu);
    }
}

enum vpmu_access vpmu_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *value)
{
    if (!env->vpmu.pmu) {
        return VPMU_NOT_MINE;
    }
    vpmu_settle(env);
    return ops->rdmsr(env->vpmu.pmu, msr, value);
}

enum vpmu_access vpmu_wrmsr(CPUX86State *env, uint32_t msr, uint64_t value)
{
    enum vpmu_access access;

    if (!env->vpmu.pmu) {
        return VPMU_NOT_MINE;
    }
    vpmu_settle(env);
    access = ops->wrmsr(env->vpmu.pmu, msr, value);
    vpmu_grant(env, vpmu_user(env));
    return access;
}

enum vpmu_access vpmu_rdpmc(CPUX86State *env, uint32_t ecx, uint64_t *value)
{
    if (!env->vpmu.pmu) {
        return VPMU_NOT_MINE;
    }
    vpmu_settle(env);
    return ops->rdpmc(env->vpmu.pmu, ecx, value);
}
