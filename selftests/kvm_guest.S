/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The code of kvm.c's guest, in real mode, with ESI passes. HLT exits from the
 * guest before it retires.
 */

	.section .rodata
	.code16

	.globl	guest_loop
guest_loop:
1:	decl	%esi
	jnz	1b
	hlt

/*
 * The same with the guest's own counter. K7_PERFCTR0 starts with EDX:EAX, and
 * its value is there at the end. K7_EVNTSEL0 has EN, INT, OS, USR and retired
 * instructions.
 */
	.globl	guest_counted
guest_counted:
	movl	$0xc0010004, %ecx
	wrmsr
	xorl	%edx, %edx
	movl	$0x005300c0, %eax
	movl	$0xc0010000, %ecx
	wrmsr
1:	decl	%esi
	jnz	1b
	xorl	%eax, %eax
	wrmsr
	movl	$0xc0010004, %ecx
	rdmsr
	hlt

	.globl	guest_end
guest_end:

	.section .note.GNU-stack, "", @progbits
