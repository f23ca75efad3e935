/* SPDX-License-Identifier: GPL-2.0 */
/* Programs with known branches: see branch_programs.S. */
#ifndef RPMU_SELFTESTS_BRANCH_PROGRAMS_H
#define RPMU_SELFTESTS_BRANCH_PROGRAMS_H

#include <linux/types.h>

/* Branches in a pass of mix_a() or mix_b(). */
#define IN_MIX		8
/* The maximum size of either function, in bytes. */
#define MIX_SPACE	256

/* The address of a branch, and the address of its target. */
struct branch {
	__u64 from, to;
};

/*
 * The branches of mix_a() and mix_b(), which are two copies of one program, in
 * the order of execution.
 */
extern const struct branch mix_a_branches[IN_MIX], mix_b_branches[IN_MIX];

void mix_a(unsigned long passes);
void mix_b(unsigned long passes);

/* Calls itself @depth times from deep_from, and spins up to deep_end. */
void deep(unsigned long depth, unsigned long spins);
extern const char deep_from[], deep_end[];

/* Two copies of a program that calls itself @depth times, and then @function. */
void nest_a(unsigned long depth, void (*function)(void));
void nest_b(unsigned long depth, void (*function)(void));
extern const char nest_a_end[], nest_b_end[];

/* Spins; its branch is at spin_from. */
void spin(unsigned long passes);
extern const char spin_from[];

#endif
