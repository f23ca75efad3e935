/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The interface between QEMU and the hardware model of the emulated PMU.
 *
 * The model is a shared object that exports one symbol, vpmu_ops. QEMU loads
 * it at startup, creates one struct vpmu per virtual CPU, reports the counts
 * of that CPU to it and passes on the CPU's accesses to PMU registers. The
 * model holds all state of the PMU, so QEMU need not be rebuilt when the model
 * changes.
 *
 * All functions that take a struct vpmu are called by the thread that runs
 * the virtual CPU, or while that CPU is stopped; report() alone may be called
 * by any thread at any time.
 */
#ifndef VPMU_H
#define VPMU_H

#include <stdbool.h>
#include <stdint.h>

/* To be increased with every change of the interface. */
#define VPMU_ABI 11

/*
 * Indices of the array of counts: retired instructions and other events. An
 * instruction that reads and writes memory is a load and a store.
 */
enum vpmu_retired {
    VPMU_INSTRUCTIONS,
    VPMU_LOADS,               /* instructions that read memory */
    VPMU_STORES,              /* instructions that write memory */
    VPMU_UPDATES,             /* instructions that read and write one operand */
    VPMU_PREFETCHES,          /* PREFETCHh and PREFETCHW; not in VPMU_LOADS */
    VPMU_BR_TAKEN,            /* taken Jcc, LOOPcc, JCXZ */
    VPMU_BR_NOT_TAKEN,        /* the same, not taken */
    VPMU_BR_JUMP,             /* near unconditional, direct */
    VPMU_BR_JUMP_INDIRECT,    /* near unconditional, through a register or memory */
    VPMU_BR_CALL,             /* near call, direct */
    VPMU_BR_CALL_INDIRECT,    /* near call, through a register or memory */
    VPMU_BR_RETURN,           /* near return */
    VPMU_BR_FAR,              /* far JMP, CALL, RET; IRET, INTn, SYSCALL, SYSRET, ... */
    VPMU_WALK_LOAD,           /* page walks for a load, even if they fault */
    VPMU_WALK_STORE,          /* the same for a store */
    VPMU_WALK_FETCH,          /* the same for an instruction fetch */
    VPMU_INTERRUPTS,          /* delivered interrupts and exceptions; not INTn */
    VPMU_RETIRED_COUNTS
};

/* Levels of counting: the counts that the model needs. */
enum vpmu_counting {
    VPMU_COUNTING_NOTHING,
    VPMU_COUNTING_INSTRUCTIONS, /* also page walks and interrupts */
    VPMU_COUNTING_ALL,
    VPMU_COUNTING_EACH        /* all, in TBs of one instruction, for sample() */
};

/* Results of an access to a register. */
enum vpmu_access {
    VPMU_DONE,                /* the model has done the access */
    VPMU_FAULT,               /* the access raises #GP(0) */
    VPMU_NOT_MINE             /* not a register of the PMU; left to QEMU */
};

/* Actions of QEMU for a PMI. */
enum vpmu_pmi {
    VPMU_PMI_NONE,
    VPMU_PMI_DELIVER,
    VPMU_PMI_DELIVER_AND_MASK /* and set the mask flag of LVTPC */
};

/* A taken branch, or a delivered interrupt or exception. */
struct vpmu_branch {
    uint32_t kind;            /* VPMU_BR_TAKEN to VPMU_BR_FAR, VPMU_INTERRUPTS */
    bool from_user;           /* CPL 1-3 before the branch */
    bool to_user;             /* CPL 1-3 after the branch */
    bool next;                /* a direct near call of the next instruction */
    /*
     * EIP of the branch instruction and of its target; for interrupts and
     * exceptions, the saved EIP and that of the handler.
     */
    uint64_t from;
    uint64_t to;
    /*
     * Instructions retired since the last call of branch(), including this
     * branch; for the first call, since records_branches() became true.
     */
    uint64_t instructions;
};

/*
 * The CPU's state at the end of an instruction, and functions for its memory.
 * @read and @write translate linear addresses by the CPU's current page tables,
 * and return false if a page is not present.
 */
struct vpmu_sample {
    uint64_t ip;              /* EIP of the instruction */
    uint64_t next_ip;         /* EIP as the instruction has left it */
    uint64_t flags;           /* RFLAGS */
    uint64_t regs[16];        /* RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8... */
    uint64_t xmm[16][2];
    uint64_t load;            /* linear address of its last load; 0: none */
    uint64_t store;           /* the same of its last store */
    uint64_t tsc;
    void *cpu;                /* the first argument of @read and @write */
    bool (*read)(void *cpu, uint64_t address, void *buffer, uint32_t size);
    bool (*write)(void *cpu, uint64_t address, const void *buffer,
                  uint32_t size);
};

struct vpmu;

/* A virtual CPU, in CPUID's terms. */
struct vpmu_config {
    uint32_t family;
    uint32_t model;
    uint32_t stepping;
    uint32_t apic_id;
    uint32_t threads_per_core;
    /* Hardware defects of the PMU; NULL: those usual for the CPU model. */
    const char *defects;
    /* PEBS is available. */
    bool pebs;
    /* What a hypervisor leaves of the PMU for its guests; NULL: all of it. */
    const char *profile;
};

struct vpmu_ops {
    uint32_t abi;             /* VPMU_ABI */

    /*
     * Creates a CPU's PMU in its reset state. On failure, returns NULL and sets
     * *error to a static string with the reason.
     */
    struct vpmu *(*create)(const struct vpmu_config *config,
                           const char **error);

    /*
     * Handles RESET, but not INIT, which leaves the PMU alone. Keeps the
     * accounting of accesses.
     */
    void (*reset)(struct vpmu *pmu);

    /* Adapts a leaf of CPUID (EAX, EBX, ECX, EDX) to the PMU, if necessary. */
    void (*cpuid)(const struct vpmu *pmu, uint32_t leaf, uint32_t subleaf,
                  uint32_t regs[4]);

    /*
     * Adds counts at CPL 0 or, if @user, at CPL 1-3. A count is negative if
     * instructions that were reported before did not retire after all, because
     * they faulted.
     */
    void (*retire)(struct vpmu *pmu, bool user,
                   const int64_t counts[VPMU_RETIRED_COUNTS]);

    /*
     * Returns the level of counting, an enum vpmu_counting. If the model needs
     * no counts, retire() need not be called until the next access to the PMU.
     */
    uint32_t (*counting)(const struct vpmu *pmu);

    /*
     * Returns whether branch() must be called. If so, counting() does not
     * return VPMU_COUNTING_NOTHING.
     */
    bool (*records_branches)(const struct vpmu *pmu);

    /*
     * Returns whether sample() must be called. Called after retire(), when an
     * instruction has just retired; budget() is negative then.
     */
    bool (*sample_due)(const struct vpmu *pmu);

    /* Writes a record of the instruction that has just retired. */
    void (*sample)(struct vpmu *pmu, const struct vpmu_sample *sample);

    /* Handles a taken branch, an interrupt or an exception. */
    void (*branch)(struct vpmu *pmu, const struct vpmu_branch *branch);

    /*
     * Returns, after an access, whether the result of counting() has changed
     * for the other thread of the core. True once per change.
     */
    bool (*sibling_must_ask)(struct vpmu *pmu);

    /*
     * Returns whether counters of the core's other thread count this thread's
     * events. If so, the other thread must be updated even while it is halted.
     */
    bool (*sibling_counts)(const struct vpmu *pmu);

    /*
     * Handles the delivery of an SMI or, if not @inside, RSM. All earlier counts
     * have been reported.
     */
    void (*smm)(struct vpmu *pmu, bool inside);

    /* Returns whether the PMU counts interrupts. If not, their count stays 0. */
    bool (*counts_interrupts)(const struct vpmu *pmu);

    /*
     * Prepares for a change of EFER.SVME (to @enabled), or for entering (@guest)
     * or leaving an SVM guest. All earlier counts have been reported.
     */
    void (*svm)(struct vpmu *pmu, bool enabled, bool guest);

    /*
     * Returns how many instructions the CPU may retire at this privilege level
     * before retire() must be called; earlier calls are allowed. A page walk and
     * a counted interrupt take one each as well. If negative, retire(), then
     * sample() if it is due, and then pmi() must be called at once, after which
     * the budget is not negative.
     */
    int64_t (*budget)(const struct vpmu *pmu, bool user);

    /*
     * Returns how QEMU must deliver a PMI through LVTPC, an enum vpmu_pmi. The
     * model assumes that QEMU does so. If @masked (LVTPC's mask flag is
     * set), returns VPMU_PMI_NONE, and a PMI that is due is lost.
     */
    uint32_t (*pmi)(struct vpmu *pmu, bool masked);

    /* Accounts a write of LVTPC by the guest. */
    void (*lvtpc_write)(struct vpmu *pmu);

    /* Return an enum vpmu_access. Reads set *value only with VPMU_DONE. */
    uint32_t (*rdmsr)(struct vpmu *pmu, uint32_t msr, uint64_t *value);
    uint32_t (*wrmsr)(struct vpmu *pmu, uint32_t msr, uint64_t value);
    uint32_t (*rdpmc)(struct vpmu *pmu, uint32_t ecx, uint64_t *value);

    /* Writes the accounting to the file $VPMU_REPORT; called when QEMU exits. */
    void (*report)(const struct vpmu *pmu);
};

#endif
