/* SPDX-License-Identifier: GPL-2.0 */
#ifndef VPMU_BRANCHES_H
#define VPMU_BRANCHES_H

/* Classes of branches: indices in branches.c. */
#define BRANCH_JCC		0
#define BRANCH_REL_CALL		1
#define BRANCH_IND_CALL		2
#define BRANCH_RET		3
#define BRANCH_IND_JMP		4
#define BRANCH_REL_JMP		5
#define BRANCH_FAR		6
#define BRANCH_CLASSES		7
/* A relative call of the next instruction */
#define BRANCH_NEXT_CALL	7
/*
 * The conditional branch of the loop, which is taken once less than it runs:
 * the first time that it is taken, and all later times
 */
#define BRANCH_FIRST_LOOP	8
#define BRANCH_MORE_LOOPS	9

#define BRANCHES		17

#ifndef __ASSEMBLER__
/* As described in branch_program.S. */
struct branch {
	u32 from, to, class, insns;
};

extern const struct branch branch_list[BRANCHES];
void run_branches(const struct run *run);
#endif

#endif
