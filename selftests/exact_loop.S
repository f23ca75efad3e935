/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A whole program of EXACT_LOOP_INSTRUCTIONS (ten million) instructions, for
 * perf stat to count: no libc, nothing before _start, nothing after exit.
 *
 *	1			mov
 *	2 * LOOPS		dec, jnz
 *	3			mov, xor, syscall
 */
#include <asm/unistd_64.h>

#define LOOPS	((EXACT_LOOP_INSTRUCTIONS - 4) / 2)

	.globl	_start
	.type	_start, @function
_start:
	mov	$LOOPS, %ecx
1:
	dec	%ecx
	jnz	1b
	mov	$__NR_exit, %eax
	xor	%edi, %edi
	syscall
	.size	_start, . - _start

	.section .note.GNU-stack, "", @progbits
