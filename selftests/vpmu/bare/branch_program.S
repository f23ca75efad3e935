/* SPDX-License-Identifier: GPL-2.0 */
/*
 * void run_branches(const struct run *run)
 *
 * WRMSR, a program with branches of each class, WRMSR: branch_list has the
 * branches taken from the first WRMSR to the second one, in order: from, to
 * (both from the start of the function), class, and the instructions since the
 * previous branch, including this one. The entry BRANCH_MORE_LOOPS stands for
 * every later time that the loop's branch is taken.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>

#include "branches.h"

SYM_FUNC_START(run_branches)
	ANNOTATE_NOENDBR
	push	%rbx
	push	%rbp
	mov	%rdi, %rbx
	mov	24(%rbx), %r8		/* loops */
	mov	0(%rbx), %ecx		/* on_msr */
	mov	8(%rbx), %eax		/* on */
	mov	12(%rbx), %edx
	wrmsr
.Ljmp:
	jmp	.Lconditional
	int3
.Lconditional:
	xor	%eax, %eax
	jnz	.Lnever
.Ljz:
	jz	.Lindirect
.Lnever:
	int3
.Lindirect:
	lea	.Lcalls(%rip), %rax
.Ljmp_indirect:
	ANNOTATE_RETPOLINE_SAFE
	jmp	*%rax
	int3
.Lcalls:
	call	.Louter
.Lback:
	call	.Lnext
.Lnext:
	pop	%rax
	mov	%r8d, %ecx
.Lloop:
	nop
.Lloop_back:
	loop	.Lloop
.Ljrcxz:
	jrcxz	.Lmemory
	int3
.Lmemory:
	lea	.Lleaf(%rip), %rax
	push	%rax
.Lcall_memory:
	ANNOTATE_RETPOLINE_SAFE
	call	*(%rsp)
.Lback_from_leaf:
	mov	%cs, %eax
	push	%rax
	lea	.Lfar(%rip), %rax
	push	%rax
.Llret:
	lretq
	int3
.Lfar:
	pop	%rax			/* the operand of the indirect call */
	mov	%rsp, %rcx
	mov	%ss, %eax
	push	%rax
	push	%rcx
	pushfq
	mov	%cs, %eax
	push	%rax
	lea	.Lcall_stopper(%rip), %rax
	push	%rax
.Liret:
	iretq
	int3
.Lcall_stopper:
	call	.Lstopper
	pop	%rbp
	pop	%rbx
	ANNOTATE_UNRET_SAFE
	ret
	int3

.Louter:
	lea	.Linner(%rip), %rax
.Lcall_inner:
	ANNOTATE_RETPOLINE_SAFE
	call	*%rax
.Lback_from_inner:
	nop
.Louter_ret:
	ANNOTATE_UNRET_SAFE
	ret
	int3
.Linner:
	ANNOTATE_UNRET_SAFE
	ret
	int3
.Lleaf:
	ANNOTATE_UNRET_SAFE
	ret
	int3

.Lstopper:
	nop
	/* Direct, so that the stack of calls is two calls deep at the end. */
.Lcall_stop:
	call	.Lstop
	ANNOTATE_UNRET_SAFE
	ret
	int3
.Lstop:
	mov	4(%rbx), %ecx		/* off_msr */
	mov	16(%rbx), %eax		/* off */
	mov	20(%rbx), %edx
	wrmsr
	ANNOTATE_UNRET_SAFE
	ret
	int3
SYM_FUNC_END(run_branches)
STACK_FRAME_NON_STANDARD run_branches

.macro branch from to class insns
	.long	\from - run_branches, \to - run_branches, \class, \insns
.endm

	.section .rodata
	.balign	8
SYM_DATA_START(branch_list)
	branch	.Ljmp		.Lconditional		BRANCH_REL_JMP		1
	branch	.Ljz		.Lindirect		BRANCH_JCC		3
	branch	.Ljmp_indirect	.Lcalls			BRANCH_IND_JMP		2
	branch	.Lcalls		.Louter			BRANCH_REL_CALL		1
	branch	.Lcall_inner	.Linner			BRANCH_IND_CALL		2
	branch	.Linner		.Lback_from_inner	BRANCH_RET		1
	branch	.Louter_ret	.Lback			BRANCH_RET		2
	branch	.Lback		.Lnext			BRANCH_NEXT_CALL	1
	branch	.Lloop_back	.Lloop			BRANCH_FIRST_LOOP	4
	branch	.Lloop_back	.Lloop			BRANCH_MORE_LOOPS	2
	branch	.Ljrcxz		.Lmemory		BRANCH_JCC		3
	branch	.Lcall_memory	.Lleaf			BRANCH_IND_CALL		3
	branch	.Lleaf		.Lback_from_leaf	BRANCH_RET		1
	branch	.Llret		.Lfar			BRANCH_FAR		5
	branch	.Liret		.Lcall_stopper		BRANCH_FAR		11
	branch	.Lcall_stopper	.Lstopper		BRANCH_REL_CALL		1
	branch	.Lcall_stop	.Lstop			BRANCH_REL_CALL		2
SYM_DATA_END(branch_list)
