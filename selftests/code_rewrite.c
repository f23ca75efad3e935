// SPDX-License-Identifier: GPL-2.0
/*
 * Tests code that one CPU rewrites while other CPUs execute it: a CPU that has
 * seen a store after the rewrite must execute the new code (SDM vol. 3,
 * 10.1.3). The kernel relies on this for static keys. An emulator that keeps a
 * translation of the old bytes breaks it; the symptom is an "Oops: int3" in
 * code that was rewritten long before. This tests the machine, not a driver.
 */
#define _GNU_SOURCE
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define REWRITES	250
#define MAX_CPUS	8
#define PAGE		4096

/* A test takes some seconds, and longer on a busy host. */
#define LIMIT_S		600

/* MOV EAX, imm32 with the immediate aligned, and RET; OTHER_FUNCTION is a RET. */
static const __u8 function[] = { 0xb8, 0, 0, 0, 0, 0xc3 };

#define FUNCTION	3
#define IMMEDIATE	(FUNCTION + 1)
#define OTHER_FUNCTION	2048

typedef __u32 function_t(void);

struct progress {
	__u32 written;
	struct {
		__u32 seen;
		__u32 stale;
	} cpu[MAX_CPUS];
};

/* Calls the function until killed, and counts the calls that return an old value. */
static void execute(function_t *code, struct progress *progress, int cpu)
{
	unsigned int eax, ebx, ecx, edx;

	if (!run_on(cpu))
		_exit(1);
	for (;;) {
		__u32 written = __atomic_load_n(&progress->written, __ATOMIC_ACQUIRE);

		/*
		 * Serialize before executing the new code, as the SDM requires.
		 */
		__cpuid(0, eax, ebx, ecx, edx);
		if (code() < written)
			progress->cpu[cpu].stale++;
		__atomic_store_n(&progress->cpu[cpu].seen, written, __ATOMIC_RELEASE);
	}
}

FIXTURE(code_rewrite)
{
	struct progress *progress;
	__u8 *writable;
	__u8 *executable;
	pid_t helper[MAX_CPUS];
	int cpus;
};

FIXTURE_VARIANT(code_rewrite)
{
	bool shared_page;
};

/* The emulator write-protects a page while it holds translations of its code. */
FIXTURE_VARIANT_ADD(code_rewrite, alone_in_its_page)
{
	.shared_page = false,
};

FIXTURE_VARIANT_ADD(code_rewrite, beside_other_code)
{
	.shared_page = true,
};

FIXTURE_SETUP(code_rewrite)
{
	int memory;

	self->cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (self->cpus < 2)
		SKIP(return, "one CPU only");
	if (self->cpus > MAX_CPUS)
		self->cpus = MAX_CPUS;

	memory = memfd_create("code", 0);
	ASSERT_LE(0, memory);
	ASSERT_EQ(0, ftruncate(memory, PAGE));
	self->writable = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	ASSERT_NE(MAP_FAILED, self->writable);
	self->executable = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, memory, 0);
	ASSERT_NE(MAP_FAILED, self->executable);
	close(memory);
	self->progress = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->progress);

	memcpy(self->writable + FUNCTION, function, sizeof(function));
	self->writable[OTHER_FUNCTION] = 0xc3;
	for (int cpu = 1; cpu < self->cpus; cpu++) {
		self->helper[cpu] = fork_helper();
		ASSERT_LE(0, self->helper[cpu]);
		if (self->helper[cpu] == 0)
			execute((function_t *)(self->executable + FUNCTION),
				self->progress, cpu);
	}
	ASSERT_TRUE(run_on(0));
}

FIXTURE_TEARDOWN(code_rewrite)
{
	for (int cpu = 1; cpu < self->cpus; cpu++)
		if (self->helper[cpu] > 0)
			kill(self->helper[cpu], SIGKILL);
}

TEST_F_TIMEOUT(code_rewrite, others_execute_the_new_code, LIMIT_S)
{
	function_t *other = (function_t *)(self->executable + OTHER_FUNCTION);
	__u32 *immediate = (__u32 *)(self->writable + IMMEDIATE);
	struct progress *progress = self->progress;

	for (__u32 n = 1; n <= REWRITES; n++) {
		if (variant->shared_page)
			other();
		__atomic_store_n(immediate, n, __ATOMIC_RELAXED);
		__atomic_store_n(&progress->written, n, __ATOMIC_RELEASE);
		for (int cpu = 1; cpu < self->cpus; cpu++)
			while (__atomic_load_n(&progress->cpu[cpu].seen, __ATOMIC_ACQUIRE) != n)
				__builtin_ia32_pause();
	}
	for (int cpu = 1; cpu < self->cpus; cpu++)
		EXPECT_EQ(0, progress->cpu[cpu].stale);
}

TEST_HARNESS_MAIN
