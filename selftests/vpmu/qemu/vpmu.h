/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The boundary between QEMU and the emulated PMU's hardware model.
 *
 * The model is a shared object that exports one symbol, vpmu_ops. QEMU opens
 * it at start-up, makes one struct vpmu per virtual CPU, tells it what that
 * CPU retired and passes on the CPU's accesses to PMU registers. Everything
 * the PMU knows is on the model's side, so QEMU need not be built again when
 * the model changes.
 *
 * All functions that take a struct vpmu are called by the thread that runs
 * the virtual CPU, or while that CPU is stopped; report() alone may be called
 * by any thread at any time.
 */
#ifndef VPMU_H
#define VPMU_H

#include <stdbool.h>
#include <stdint.h>

/* Changes whenever anything below does. */
#define VPMU_ABI 8

/* What a virtual CPU retires and does: indices of an array of counts. */
enum vpmu_retired {
    VPMU_INSTRUCTIONS,
    VPMU_LOADS,               /* instructions that read memory */
    VPMU_STORES,              /* instructions that write it; both for both */
    VPMU_PREFETCHES,          /* PREFETCHh and PREFETCHW, which are no loads */
    VPMU_BR_TAKEN,            /* Jcc, LOOPcc, JCXZ that were taken */
    VPMU_BR_NOT_TAKEN,        /* and those that were not */
    VPMU_BR_JUMP,             /* near unconditional, direct */
    VPMU_BR_JUMP_INDIRECT,    /* near unconditional, through a register or memory */
    VPMU_BR_CALL,             /* near call, direct */
    VPMU_BR_CALL_INDIRECT,    /* near call, through a register or memory */
    VPMU_BR_RETURN,           /* near return */
    VPMU_BR_FAR,              /* far JMP, CALL, RET; IRET, INTn, SYSCALL, SYSRET, ... */
    VPMU_WALK_LOAD,           /* page walks for a load, with a fault or without */
    VPMU_WALK_STORE,          /* the same for a store */
    VPMU_WALK_FETCH,          /* the same for an instruction */
    VPMU_INTERRUPTS,          /* interrupts and exceptions delivered, INTn not */
    VPMU_RETIRED_COUNTS
};

/* How much of what a virtual CPU retires matters. */
enum vpmu_counting {
    VPMU_COUNTING_NOTHING,
    VPMU_COUNTING_INSTRUCTIONS, /* and page walks and interrupts */
    VPMU_COUNTING_ALL
};

/* What comes of an access to a register. */
enum vpmu_access {
    VPMU_DONE,                /* the register is the model's; access done */
    VPMU_FAULT,               /* the access raises #GP(0) */
    VPMU_NOT_MINE             /* not a register of the PMU; QEMU goes on */
};

/* What becomes of a PMI. */
enum vpmu_pmi {
    VPMU_PMI_NONE,
    VPMU_PMI_DELIVER,
    VPMU_PMI_DELIVER_AND_MASK /* and set the mask flag of LVTPC */
};

/* A taken branch, an interrupt or an exception that was delivered. */
struct vpmu_branch {
    uint32_t kind;            /* VPMU_BR_TAKEN to VPMU_BR_FAR, VPMU_INTERRUPTS */
    bool from_user;           /* the CPL was not 0 before */
    bool to_user;             /* nor is it afterwards */
    bool next;                /* a direct near call of the next instruction */
    /*
     * EIP of the branch instruction and of its target; for interrupts and
     * exceptions, EIP as it is saved, and of the handler.
     */
    uint64_t from;
    uint64_t to;
    /*
     * Retired since the last call, itself included; for the first one, since
     * records_branches() became true.
     */
    uint64_t instructions;
};

struct vpmu;

/* Which CPU it is, in CPUID's terms. */
struct vpmu_config {
    uint32_t family;
    uint32_t model;
    uint32_t stepping;
    uint32_t apic_id;
    uint32_t threads_per_core;
    /* Which of the hardware's defects it has; NULL: those usual for it. */
    const char *defects;
};

struct vpmu_ops {
    uint32_t abi;             /* VPMU_ABI */

    /*
     * Makes a CPU's PMU in its reset state. NULL where that cannot be: then
     * *error is a static string that says why.
     */
    struct vpmu *(*create)(const struct vpmu_config *config,
                           const char **error);

    /*
     * RESET, not INIT, which leaves the PMU alone. The accounting of accesses
     * lives on.
     */
    void (*reset)(struct vpmu *pmu);

    /* Changes what a leaf of CPUID says (EAX, EBX, ECX, EDX), if need be. */
    void (*cpuid)(const struct vpmu *pmu, uint32_t leaf, uint32_t subleaf,
                  uint32_t regs[4]);

    /*
     * The CPU retired this much, at CPL 0 or, if @user, at CPL 1-3. A count
     * is negative where instructions that were reported did not retire after
     * all (they faulted).
     */
    void (*retire)(struct vpmu *pmu, bool user,
                   const int64_t counts[VPMU_RETIRED_COUNTS]);

    /*
     * What depends on what is retired, an enum vpmu_counting? If nothing does,
     * the CPU need not call retire() until the PMU has been accessed.
     */
    uint32_t (*counting)(const struct vpmu *pmu);

    /*
     * Must the CPU call branch()? The answer to counting() is not "nothing"
     * then.
     */
    bool (*records_branches)(const struct vpmu *pmu);

    /* The CPU took a branch. */
    void (*branch)(struct vpmu *pmu, const struct vpmu_branch *branch);

    /*
     * After an access: has the answer to counting() changed for the other
     * thread of the core? True once for each time.
     */
    bool (*sibling_must_ask)(struct vpmu *pmu);

    /*
     * Do counters of the core's other thread count what this one retires? Then
     * that one must be told even while it is halted.
     */
    bool (*sibling_counts)(const struct vpmu *pmu);

    /*
     * An SMI is delivered, and all that was retired before is told; or if not
     * @inside, RSM ends the handler.
     */
    void (*smm)(struct vpmu *pmu, bool inside);

    /* Does it count interrupts? Otherwise VPMU_INTERRUPTS stays 0. */
    bool (*counts_interrupts)(const struct vpmu *pmu);

    /*
     * EFER.SVME is about to change, or the CPU to enter or leave an SVM guest;
     * all that was retired before is told.
     */
    void (*svm)(struct vpmu *pmu, bool enabled, bool guest);

    /*
     * How many instructions the CPU may retire at this privilege before it
     * must call retire(); a page walk takes one as well, and so does an
     * interrupt that counts. It may call earlier.
     * Negative: at once, and then pmi(), after which it is not negative.
     */
    int64_t (*budget)(const struct vpmu *pmu, bool user);

    /*
     * Must a PMI be delivered through LVTPC? An enum vpmu_pmi, which the model
     * takes for carried out. If @masked (the LVTPC mask is set) the answer is
     * VPMU_PMI_NONE and a PMI that is due is lost.
     */
    uint32_t (*pmi)(struct vpmu *pmu, bool masked);

    /* The guest wrote LVTPC: to be accounted. */
    void (*lvtpc_write)(struct vpmu *pmu);

    /* An enum vpmu_access each. *value is written only on VPMU_DONE. */
    uint32_t (*rdmsr)(struct vpmu *pmu, uint32_t msr, uint64_t *value);
    uint32_t (*wrmsr)(struct vpmu *pmu, uint32_t msr, uint64_t value);
    uint32_t (*rdpmc)(struct vpmu *pmu, uint32_t ecx, uint64_t *value);

    /* QEMU exits: write the accounting to where $VPMU_REPORT says. */
    void (*report)(const struct vpmu *pmu);
};

#endif
