/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A program whose registers and memory accesses are known at each instruction:
 * see precise_programs.S.
 */
#ifndef RPMU_SELFTESTS_PRECISE_PROGRAMS_H
#define RPMU_SELFTESTS_PRECISE_PROGRAMS_H

/*
 * The value of RBX, RDX, RBP and R8 to R15 is this, times their number in enum
 * perf_event_x86_regs.
 */
#define WALK_REGISTER	0x0101010101010101
/* The two halves of XMMn are this, times 2n + 1 and 2n + 2. */
#define WALK_XMM	0x0020100804020101

/*
 * The number of words that are loaded, and the distance in bytes to the words
 * that are stored.
 */
#define WALK_WORDS	512
#define WALK_STORES	4096
#define WALK_BUFFER	8192

#ifndef __ASSEMBLER__

/*
 * The instructions of a pass: RCX, from 0 on, is the word's number, RDI the
 * remaining passes.
 */
enum walk_step {
	WALK_LOAD,	/* RAX = the word at RSI + 8 * RCX */
	WALK_STORE,	/* to RSI + WALK_STORES + 8 * RCX */
	WALK_INC,	/* RCX */
	WALK_AND,	/* RCX, so that it is below WALK_WORDS */
	WALK_DEC,	/* RDI */
	WALK_JNZ,
	WALK_STEPS
};

/* The addresses of the steps. */
extern const unsigned long walk_ips[WALK_STEPS];

void walk(unsigned long passes, unsigned long *buffer);

/*
 * A loop in a function that is called by another function, with frame pointers.
 */
enum nest_place {
	NEST_DEC,
	NEST_JNZ,
	NEST_INNER,	/* where the loop's function returns to */
	NEST_OUTER,	/* where the outer function returns to */
	NEST_PLACES
};

/* The addresses of the places. */
extern const unsigned long nest_ips[NEST_PLACES];

void nest(unsigned long passes);

#endif
#endif
