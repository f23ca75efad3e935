/* SPDX-License-Identifier: GPL-2.0 */
/*
 * void run_between(const struct run *run)
 *
 * All instructions between the two WRMSRs are known. The comments say how many
 * retire, and how many of them are branches. The WRMSR that starts counting is
 * not counted, the one that stops it is.
 */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>

SYM_FUNC_START(run_between)
	ANNOTATE_NOENDBR
	push	%rbx
	mov	%rdi, %rbx
	mov	24(%rbx), %r8		/* loops */
	mov	0(%rbx), %ecx		/* on_msr */
	mov	8(%rbx), %eax		/* on */
	mov	12(%rbx), %edx
	wrmsr
1:	call	one_return		/* loops * (1 + 1 for the return), both branches */
	jmp	2f			/* loops * 1, a branch */
	nop
2:	test	%r8, %r8		/* loops * 1 */
	jz	3f			/* loops * 1, never taken */
	dec	%r8			/* loops * 1 */
	jnz	1b			/* loops * 1, taken but for the last */
3:	mov	4(%rbx), %ecx		/* 1, off_msr */
	mov	16(%rbx), %eax		/* 1, off */
	mov	20(%rbx), %edx		/* 1 */
	wrmsr				/* 1 */
	pop	%rbx
	RET
SYM_FUNC_END(run_between)

SYM_FUNC_START_LOCAL(one_return)
	/* One instruction, unlike a return thunk. */
	ANNOTATE_UNRET_SAFE
	ret
	int3
SYM_FUNC_END(one_return)
