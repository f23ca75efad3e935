/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A static program whose instructions and branches in user mode are known, made of what is hard to
 * count exactly: page faults in the middle of blocks, of string instructions and of calls, signals
 * for instructions that never retire, system calls, timer interrupts. The counts that perf stat
 * must show, on any load of the machine:
 *
 *	instructions:u		60627573	(0xc0)
 *	branches:u		30511711	(0xc4)
 *	  conditional		30306100	(0x1c4)
 *	  not taken		  200008	(0x10c4)
 *	  near taken		30310398	(0x20c4)
 *	  near calls		    2003	(0x2c4)
 *	  near returns		    2303	(0x8c4)
 *	  far			    1305	(0x40c4)
 *	loads:u			    2605	(0x81d0)
 *	stores:u		    5306	(0x82d0)
 *
 * Each comment at the right gives the instructions retired since the previous one; that of a loop's
 * last line is the product for the whole loop. Loads are rep movsq, repe cmpsb, the returns and the
 * handler's addition; stores the two loops of stores and the two of calls, rep stosb (once: the
 * second has nothing to do), rep movsq, the single movb, the calls of catch and the handler's
 * addition.
 */
	.set	PAGE, 4096
	.set	MB, 1 << 20

	.globl	_start
_start:
	/* mmap(NULL, 64 MB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) */
	mov	$9, %eax
	xor	%edi, %edi
	mov	$64 * MB, %esi
	mov	$3, %edx
	mov	$0x22, %r10d
	mov	$-1, %r8
	xor	%r9d, %r9d
	syscall				/* 8 */
	mov	%rax, %r12		/* 1 */

	/* Stores that fault */
	mov	%r12, %rdi
	mov	$2000, %ecx		/* 2 */
1:	movb	$1, (%rdi)
	add	$PAGE, %rdi
	dec	%ecx
	jnz	1b			/* 2000 * 4 */

	/* String instructions that fault, end early, or have nothing to do */
	lea	20 * MB + 3(%r12), %rdi
	mov	$16 * MB, %ecx
	mov	$7, %eax
	rep stosb			/* 4 */
	lea	20 * MB(%r12), %rsi
	lea	40 * MB(%r12), %rdi
	mov	$128 << 10, %ecx
	rep movsq			/* 4 */
	lea	20 * MB + 3(%r12), %rsi
	lea	20 * MB + 5000(%r12), %rdi
	movb	$9, 3000(%rdi)
	mov	$100000, %ecx
	repe cmpsb			/* 5 */
	xor	%ecx, %ecx
	rep stosb			/* 2 */

	/* Stores across two pages, the second of which faults */
	lea	45 * MB - 4(%r12), %rdi
	mov	$1000, %ecx		/* 2 */
2:	mov	%rax, (%rdi)
	add	$PAGE, %rdi
	sub	$1, %ecx
	jnz	2b			/* 1000 * 4 */

	/* Calls that fault when they push, on a stack of fresh pages */
	lea	60 * MB(%r12), %rbx
	mov	%rsp, %rbp
	mov	%rbx, %rsp
	mov	$1000, %ecx		/* 4 */
3:	lea	-PAGE(%rsp), %rsp
	call	function
	dec	%ecx
	jnz	3b			/* 1000 * (4 + 1) */
	lea	function(%rip), %rdx
	mov	$1000, %ecx		/* 2 */
4:	lea	-PAGE(%rsp), %rsp
	call	*%rdx
	dec	%ecx
	jnz	4b			/* 1000 * (4 + 1) */
	mov	%rbp, %rsp		/* 1 */

	/* getpid() */
	mov	$1000, %ebx		/* 1 */
5:	mov	$39, %eax
	syscall
	dec	%ebx
	jnz	5b			/* 1000 * 4 */

	/* Each kind of near branch */
	mov	$100000, %ecx
	lea	7f(%rip), %rdx		/* 2 */
6:	jmp	8f
8:	jmp	*%rdx
	ud2
7:	test	%ecx, %ecx
	jz	9f
	jrcxz	9f
	loop	6b			/* 100000 * 6 */
9:
	/* Instructions that never retire; the signal handler steps over two bytes */
	mov	$4, %edi		/* SIGILL */
	call	catch
	mov	$8, %edi		/* SIGFPE */
	call	catch
	mov	$11, %edi		/* SIGSEGV */
	call	catch			/* 6 + 3 * 8 */
	mov	$100, %ebp		/* 1 */
10:	ud2				/* 0 + 4 in the handler */
	xor	%ebx, %ebx		/* 1 */
	div	%ebx			/* 0 + 4 */
	hlt				/* 0 + 4 */
	nop				/* 0: stepped over */
	dec	%ebp
	jnz	10b			/* 100 * (12 + 1 + 2) */

	/* Long enough for timer interrupts */
	mov	$30000000, %ecx		/* 1 */
11:	dec	%ecx
	jnz	11b			/* 30000000 * 2 */

	/* exit_group(0) */
	xor	%edi, %edi
	mov	$231, %eax
	syscall				/* 3 */

function:
	ret

	/* rt_sigaction(edi, &action, NULL, 8) */
catch:	lea	action(%rip), %rsi
	xor	%edx, %edx
	mov	$8, %r10d
	mov	$13, %eax
	syscall
	nop
	nop
	ret

	/* ucontext.uc_mcontext.rip */
handler:
	addq	$2, 168(%rdx)
	ret
restorer:
	mov	$15, %eax
	syscall

	.data
	/* SA_SIGINFO | SA_RESTORER | SA_NODEFER */
action:	.quad	handler, 0x44000004, restorer, 0

	.section .note.GNU-stack, "", @progbits
