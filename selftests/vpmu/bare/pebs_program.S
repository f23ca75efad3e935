/* SPDX-License-Identifier: GPL-2.0 */
/*
 * void run_pebs(const struct run *run, const u64 *loads, u64 *stores)
 *
 * Like run_between(), with a loop whose instructions can be told apart by their
 * addresses and by the registers after them: R8 is the number of remaining
 * rounds, R9 the sum of the loaded values. pebs_ips has the offsets of the
 * instructions, and of the first one again, which follows the last.
 */
#include <linux/linkage.h>
#include <asm/nospec-branch.h>

SYM_FUNC_START(run_pebs)
	ANNOTATE_NOENDBR
	push	%rbx
	mov	%rdi, %rbx
	mov	%rsi, %r10		/* loads */
	mov	%rdx, %r11		/* stores */
	mov	24(%rbx), %r8		/* loops */
	xor	%r9d, %r9d
	mov	0(%rbx), %ecx		/* on_msr */
	mov	8(%rbx), %eax		/* on */
	mov	12(%rbx), %edx
	wrmsr
.Lload:
	mov	(%r10,%r8,8), %rax
.Ladd:
	add	%rax, %r9
.Lstore:
	mov	%r9, (%r11,%r8,8)
.Ldec:
	dec	%r8
.Ljnz:
	jnz	.Lload
	mov	4(%rbx), %ecx		/* off_msr */
	mov	16(%rbx), %eax		/* off */
	mov	20(%rbx), %edx
	wrmsr
	pop	%rbx
	RET
SYM_FUNC_END(run_pebs)

	.section .rodata
	.balign	8
SYM_DATA_START(pebs_ips)
	.long	.Lload - run_pebs, .Ladd - run_pebs, .Lstore - run_pebs, .Ldec - run_pebs
	.long	.Ljnz - run_pebs, .Lload - run_pebs
SYM_DATA_END(pebs_ips)
