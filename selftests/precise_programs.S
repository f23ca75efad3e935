/* SPDX-License-Identifier: GPL-2.0 */
/*
 * void walk(unsigned long passes, unsigned long *buffer): the program whose precise
 * samples are judged. precise_programs.h says what it does.
 */
#include "precise_programs.h"

	.text
	.balign	64
	.globl	walk
	.type	walk, @function
walk:
	push	%rbx
	push	%rbp
	push	%r12
	push	%r13
	push	%r14
	push	%r15
	.irp	n, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15
	movabs	$(WALK_XMM * (2 * \n + 1)), %rax
	movq	%rax, %xmm\n
	movabs	$(WALK_XMM * (2 * \n + 2)), %rax
	pinsrq	$1, %rax, %xmm\n
	.endr
	movabs	$(WALK_REGISTER * 1), %rbx
	movabs	$(WALK_REGISTER * 3), %rdx
	movabs	$(WALK_REGISTER * 6), %rbp
	.irp	n, 8, 9, 10, 11, 12, 13, 14, 15
	movabs	$(WALK_REGISTER * (8 + \n)), %r\n
	.endr
	xor	%ecx, %ecx
1:
2:	mov	(%rsi, %rcx, 8), %rax
3:	mov	%rdx, WALK_STORES(%rsi, %rcx, 8)
4:	inc	%rcx
5:	and	$(WALK_WORDS - 1), %ecx
6:	dec	%rdi
7:	jnz	1b
	pop	%r15
	pop	%r14
	pop	%r13
	pop	%r12
	pop	%rbp
	pop	%rbx
	ret
	.size	walk, . - walk

	.section .rodata
	.balign	8
	.globl	walk_ips
walk_ips:
	.quad	2b, 3b, 4b, 5b, 6b, 7b

	.section .note.GNU-stack, "", @progbits
