/* SPDX-License-Identifier: GPL-2.0 */
/*
 * void walk(unsigned long passes, unsigned long *buffer): the program of the
 * tests of precise samples; precise_programs.h describes it.
 *
 * void nest(unsigned long passes): a loop in a function that another function
 * calls.
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

	.balign	64
	.globl	nest
	.type	nest, @function
nest:
	push	%rbp
	mov	%rsp, %rbp
	call	outer
8:	pop	%rbp
	ret
outer:
	push	%rbp
	mov	%rsp, %rbp
	call	inner
9:	pop	%rbp
	ret
inner:
	push	%rbp
	mov	%rsp, %rbp
10:	dec	%rdi
11:	jnz	10b
	pop	%rbp
	ret
	.size	nest, . - nest

	.section .rodata
	.balign	8
	.globl	walk_ips
walk_ips:
	.quad	2b, 3b, 4b, 5b, 6b, 7b
	.globl	nest_ips
nest_ips:
	.quad	10b, 11b, 9b, 8b

	.section .note.GNU-stack, "", @progbits
