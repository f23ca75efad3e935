/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Programs with known branches, for tests of branch stacks. They use only
 * registers that a call may change.
 */

/*
 * void NAME(unsigned long passes): takes eight branches in each pass: two
 * returns, two conditional branches, and one of each other type. NAME_branches
 * contains their addresses and targets.
 */
.macro mix name
	.text
	.balign	256
	.globl	\name
	.type	\name, @function
\name:
	lea	24f(%rip), %rdx
	lea	26f(%rip), %rsi
10:	call	23f
12:	call	*%rdx
14:	jmp	25f
	ud2
23:
11:	ret
24:	nop
13:	ret
25:
15:	jmp	*%rsi
	ud2
26:	cmp	%rdx, %rdx
16:	je	27f
	ud2
27:	dec	%rdi
17:	jnz	10b
	ret
	.size	\name, . - \name

	.section .rodata
	.balign	8
	.globl	\name\()_branches
\name\()_branches:
	.quad	10b, 23b
	.quad	11b, 12b
	.quad	12b, 24b
	.quad	13b, 14b
	.quad	14b, 25b
	.quad	15b, 26b
	.quad	16b, 27b
	.quad	17b, 10b
.endm

	mix	mix_a
	mix	mix_b

/* void deep(unsigned long depth, unsigned long spins): calls itself @depth times, and then spins. */
	.text
	.balign	256
	.globl	deep, deep_from, deep_end
	.type	deep, @function
deep:
	test	%rdi, %rdi
	jz	1f
	dec	%rdi
deep_from:
	call	deep
	ret
1:	dec	%rsi
	jnz	1b
deep_end:
	ret
	.size	deep, . - deep

/* void nest(unsigned long depth, void (*function)(void)): calls itself @depth times, and then @function. */
.macro	nest name
	.balign	64
	.globl	\name, \name\()_end
	.type	\name, @function
\name:
	sub	$8, %rsp
	test	%rdi, %rdi
	jz	1f
	dec	%rdi
	call	\name
	jmp	2f
1:	call	*%rsi
2:	add	$8, %rsp
	ret
\name\()_end:
	.size	\name, . - \name
.endm

	nest	nest_a
	nest	nest_b

/*
 * void spin(unsigned long passes): takes one branch in each pass except the
 * last.
 */
	.globl	spin, spin_from
	.type	spin, @function
spin:
	dec	%rdi
spin_from:
	jnz	spin
	ret
	.size	spin, . - spin

	.section .note.GNU-stack, "", @progbits
