/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared by the tests: opening and reading events, loops of a known number of
 * instructions, and queries for the CPU and the driver under test.
 *
 * The tests detect the hardware's features with CPUID, not through the driver,
 * so that a driver which reports wrong features cannot pass. There are few
 * exceptions, such as the highest precise_ip (caps/max_precise).
 *
 * The loops are inline, because tests also count or sample the code around
 * them.
 */
#ifndef RPMU_SELFTESTS_PERF_UTIL_H
#define RPMU_SELFTESTS_PERF_UTIL_H

#include <cpuid.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include <linux/perf_event.h>

#define CPU_PMU		"/sys/bus/event_source/devices/cpu"

/*
 * INST_RETIRED.ANY_P and BR_INST_RETIRED.ALL_BRANCHES: architectural events. AMD's
 * retired instructions have the same code, retired branch instructions another one.
 */
#define RAW_INSTRUCTIONS	0x00c0
#define RAW_BRANCHES		(is_amd() ? 0x00c2 : INTEL_RAW_BRANCHES)
#define INTEL_RAW_BRANCHES	0x00c4

/* The read_format that perf stat uses for a single event. */
#define READ_ONE	(PERF_FORMAT_TOTAL_TIME_ENABLED | \
			 PERF_FORMAT_TOTAL_TIME_RUNNING | PERF_FORMAT_ID)
#define READ_GROUP	(READ_ONE | PERF_FORMAT_GROUP)

struct one_count {
	__u64 value;
	__u64 enabled;	/* ns */
	__u64 running;	/* ns */
	__u64 id;
};

#define MAX_GROUP	16

struct group_count {
	__u64 nr;
	__u64 enabled;	/* ns */
	__u64 running;	/* ns */
	struct {
		__u64 value;
		__u64 id;
	} event[MAX_GROUP];
};

/* Returns the attributes of a counting event that starts disabled. */
struct perf_event_attr counting(__u32 type, __u64 config);

/* Returns the same attributes for user mode only. */
struct perf_event_attr counting_user(__u32 type, __u64 config);

/* Opens an event. Returns its descriptor, or -1 with errno set. */
int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
	      unsigned long flags);

/* Opens an event of the calling task, on any CPU. */
int perf_open_self(const struct perf_event_attr *attr, int group_fd);

/* Reads an event that was opened with READ_ONE. */
bool read_one(int fd, struct one_count *count);

/*
 * Returned by read_value() if the event cannot be read; no test expects this
 * count.
 */
#define NO_COUNT	(~0ULL)

/* Returns the count of an event that was opened with READ_ONE. */
__u64 read_value(int fd);

/* Returns the percentage of the enabled time that the event was on a counter. */
double percent_running(const struct one_count *count);

/* Returns the event's id (PERF_EVENT_IOC_ID), 0 if it has none. */
__u64 event_id(int fd);

/* Maps the event's user page and a buffer of @pages pages. Returns MAP_FAILED on error. */
struct perf_event_mmap_page *map_buffer(int fd, unsigned long pages);

/*
 * Removes the next sample, and other records before it, from a buffer that does not
 * wrap. Returns its header, or NULL if there is none.
 */
const void *take_sample(struct perf_event_mmap_page *page);

/*
 * Opens a disabled event of this task that samples user mode every @period
 * branches, with the indirect calls before the sample, and maps it. Returns it, or
 * -1 on error.
 */
int open_indirect_calls(unsigned long period, struct perf_event_mmap_page **page);

/* Unmaps and closes the event. */
void close_indirect_calls(int fd, struct perf_event_mmap_page *page);

/*
 * Returns the number of samples in @page with as many branches as the CPU
 * records, all of which are the indirect call at @from. Removes all samples from
 * the buffer.
 */
unsigned int full_of_calls(struct perf_event_mmap_page *page, __u64 from);

/*
 * Enables the event (or with PERF_IOC_FLAG_GROUP its group), decrements a
 * word of memory n times and disables the event: all in one asm statement, so
 * that no instruction of the compiler's is counted. The user-level
 * instructions
 *
 *	2 * n			dec, which loads and stores, and jnz
 *	4			set-up of the disabling ioctl
 *	1			its SYSCALL
 *
 * are those between the return of the first ioctl and the entry into the
 * second. The kernel clobbers RAX, RCX and R11 only.
 */
#define LOOP_INSTRUCTIONS(n)	(2 * (__u64)(n) + 5)
#define LOOP_BRANCHES(n)	((__u64)(n))

static inline void counted_loop(int fd, unsigned long ioc_flags, unsigned long n)
{
	register unsigned long r12 asm("r12") = fd;
	register unsigned long r13 asm("r13") = ioc_flags;
	unsigned long count = n;

	asm volatile("mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[enable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall\n"
		     "1:\n\t"
		     "decq %[count]\n\t"
		     "jnz 1b\n\t"
		     "mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[disable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall"
		     : [count] "+m" (count)
		     : [ioctl] "i" (SYS_ioctl),
		       [enable] "i" (PERF_EVENT_IOC_ENABLE),
		       [disable] "i" (PERF_EVENT_IOC_DISABLE),
		       "r" (r12), "r" (r13)
		     : "rax", "rcx", "rdx", "rsi", "rdi", "r11", "cc", "memory");
}

/*
 * Counts the user-level instructions of a counted_loop() of n passes. Returns
 * whether the count is exact. Sets *count to the count, or to NO_COUNT, with
 * errno set, if the event cannot be opened.
 */
bool counts_exactly(unsigned long n, __u64 *count);

/*
 * Enables and disables events like counted_loop(), around n system calls
 * nr(arg, 0): 6 * n user-level instructions, and the 5 at the end of
 * counted_loop().
 */
#define SYSCALLS_INSTRUCTIONS(n)	(6 * (__u64)(n) + 5)

static inline void counted_syscalls(int fd, unsigned long ioc_flags,
				    unsigned long n, unsigned long nr,
				    const void *arg)
{
	register unsigned long count asm("rbx") = n;
	register unsigned long r12 asm("r12") = fd;
	register unsigned long r13 asm("r13") = ioc_flags;
	register unsigned long r14 asm("r14") = nr;
	register const void *r15 asm("r15") = arg;

	asm volatile("mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[enable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall\n"
		     "1:\n\t"
		     "mov %%r14, %%rax\n\t"
		     "mov %%r15, %%rdi\n\t"
		     "xor %%esi, %%esi\n\t"
		     "syscall\n\t"
		     "dec %%rbx\n\t"
		     "jnz 1b\n\t"
		     "mov %[ioctl], %%eax\n\t"
		     "mov %%r12, %%rdi\n\t"
		     "mov %[disable], %%esi\n\t"
		     "mov %%r13, %%rdx\n\t"
		     "syscall"
		     : "+r" (count)
		     : [ioctl] "i" (SYS_ioctl),
		       [enable] "i" (PERF_EVENT_IOC_ENABLE),
		       [disable] "i" (PERF_EVENT_IOC_DISABLE),
		       "r" (r12), "r" (r13), "r" (r14), "r" (r15)
		     : "rax", "rcx", "rdx", "rsi", "rdi", "r11", "cc", "memory");
}

/*
 * Executes four branches in each pass: a call, a return, a conditional branch
 * that is not taken and one that is. The last pass does not take the latter, and
 * executes a jump after it.
 */
static inline void branch_loop(unsigned long n)
{
	asm volatile("1:\n\t"
		     "call 2f\n\t"
		     "test %[n], %[n]\n\t"
		     "jz 3f\n\t"
		     "dec %[n]\n\t"
		     "jnz 1b\n\t"
		     "jmp 3f\n"
		     "2:\n\t"
		     "ret\n"
		     "3:"
		     : [n] "+r" (n)
		     :
		     : "cc", "memory");
}

/*
 * Executes two loads, three stores, one instruction that does both, and a
 * branch in each pass.
 */
static inline void memory_loop(unsigned long n)
{
	static unsigned long words[4];

	asm volatile("1:\n\t"
		     "mov (%[w]), %%rax\n\t"
		     "mov 8(%[w]), %%rdx\n\t"
		     "mov %%rax, 16(%[w])\n\t"
		     "mov %%rax, 24(%[w])\n\t"
		     "movl $1, (%[w])\n\t"
		     "addq $1, 8(%[w])\n\t"
		     "dec %[n]\n\t"
		     "jnz 1b"
		     : [n] "+r" (n)
		     : [w] "r" (words)
		     : "rax", "rdx", "cc", "memory");
}

#define LOOP_LOADS	3
#define LOOP_STORES	4

/* Moves the task to a CPU and lets other tasks there go to sleep. */
bool run_on(int cpu);

/*
 * Returns a page that never arrives: a system call that reads it is stuck until
 * the task is killed. Returns NULL if the kernel has no userfaultfd().
 */
void *page_that_never_comes(void);

/*
 * Takes the CPU for this task only, or releases it. An event of a CPU counts
 * every program there; with SCHED_FIFO, no other program runs on the CPU unless
 * this one sleeps.
 */
bool take_cpu(bool alone);

/* Takes a CPU offline or online. Returns false with errno set if that fails. */
bool set_cpu_online(int cpu, bool on);

/* Forks a helper that ends with the test, even if the test is killed. */
pid_t fork_helper(void);

/* Returns the monotonic clock's time in ns. Inline, as tests count loops with it. */
static inline __u64 now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000000000ULL + ts.tv_nsec;
}

/* Returns the number of performance monitoring interrupts so far, on all CPUs. */
unsigned long pmis(void);

/* The CPU's microarchitecture, as far as the tests distinguish them. */
enum cpu_model {
	MODEL_OTHER,
	MODEL_NEHALEM,
	MODEL_WESTMERE,
	MODEL_SANDY_BRIDGE,
	MODEL_IVY_BRIDGE,
	MODEL_HASWELL,
	MODEL_BROADWELL,
	MODEL_SILVERMONT,	/* and Airmont */
	MODEL_SKYLAKE,		/* to Comet Lake */
	MODEL_GOLDMONT,		/* Apollo Lake, Denverton */
	MODEL_GOLDMONT_PLUS,	/* Gemini Lake */
	MODEL_ICE_LAKE,		/* to Rocket Lake */
	MODEL_TREMONT,		/* Snow Ridge, Elkhart Lake, Jasper Lake */
	MODEL_GOLDEN_COVE,	/* Sapphire Rapids, Emerald Rapids */
	MODEL_REDWOOD_COVE,	/* Granite Rapids */
	MODEL_GRACEMONT,	/* Alder Lake-N */
	MODEL_CRESTMONT,	/* Sierra Forest, Grand Ridge */
};

/* Returns whether the cores are Intel's small ones. */
bool is_small_core(void);

/* Returns whether the CPU is AMD's or Hygon's. */
bool is_amd(void);

/* Returns whether the CPU has AMD's branch records, LbrExtV2. */
bool amd_lbr(void);

/*
 * Returns the number of branches that the CPU records (LBR); 0 on CPUs unknown
 * to the tests.
 */
unsigned int branch_records(void);

/* Returns whether the branch records can be a call stack. */
bool has_call_stacks(void);

/* Returns the CPU's family as CPUID leaf 1 has it. */
unsigned int cpu_family(void);

/* Returns the model number within family 6 of an Intel CPU; 0 for others. */
unsigned int cpu_number(void);

enum cpu_model cpu_model(void);

/*
 * Returns whether events can corrupt the counts of the core's other thread, if there
 * is one: errata BJ122, BV98 and HSD29 of Sandy Bridge to Haswell.
 */
bool threads_corrupt(void);

/*
 * Returns whether the CPU is one of the two whose event codes some tests need.
 */
bool is_haswell_or_skylake(void);

/*
 * Returns the number of general-purpose counters, from CPUID.0AH:EAX[15:8], of
 * which rpmu uses eight at most; on AMD's CPUs, from CPUID leaf 0x80000022 and
 * the bit PerfCtrExtCore.
 */
unsigned int gp_counters(void);

/* Returns the counters' width: CPUID.0AH:EAX[23:16]; 48 on AMD's CPUs. */
unsigned int counter_width(void);

/*
 * Returns whether one register starts all counters: true on Intel's CPUs, and
 * on AMD's with PerfMonV2. On others, counters start one after the other, so
 * that the events of a group count different instructions of the kernel at
 * their start and end.
 */
bool counters_start_together(void);

/*
 * Returns whether the I-th of the events that use all general-purpose counters
 * may count user mode only. On Broadwell, counters 4 to 7 read 0 if they count
 * user mode only, so only four events may.
 */
bool may_count_user_alone(unsigned int i);

/*
 * Returns the attributes of an event that any counter can count: user mode
 * only, or user and kernel mode if some counters cannot count user mode only.
 */
struct perf_event_attr counting_anywhere(__u32 type, __u64 config);

/*
 * Returns the attributes of the I-th of DIFFERENT_EVENTS different events that
 * any general-purpose counter can count, and no fixed one. The first
 * USER_EVENTS count user mode only, the others also the kernel. If some counters
 * cannot count user mode only (counting_anywhere()), it is the other way round.
 */
#define DIFFERENT_EVENTS	12
#define USER_EVENTS		6

struct perf_event_attr different_event(unsigned int i);

/* Returns the count of different_event(i) for a pass of branch_loop(); 0: unknown. */
unsigned int different_per_pass(unsigned int i);

/*
 * Returns the number of contiguous fixed counters: CPUID.0AH:EDX[4:0]. AMD's CPUs
 * have none.
 */
unsigned int fixed_counters(void);

/* RDPMC's number of fixed counter 0. */
#define FIXED		0x40000000U

static inline __u64 rdpmc(__u32 counter)
{
	__u32 low, high;

	asm volatile("rdpmc" : "=a" (low), "=d" (high) : "c" (counter));
	return low | (__u64)high << 32;
}

/*
 * The read loop of include/uapi/linux/perf_event.h; sets *INDEX to the page's
 * index.
 */
static inline __u64 read_page(const struct perf_event_mmap_page *page, __u32 *index)
{
	__u32 seq;
	__u64 count;

	do {
		seq = page->lock;
		asm volatile("" ::: "memory");
		*index = page->index;
		count = page->offset;
		if (page->cap_user_rdpmc && *index) {
			int above = 64 - page->pmc_width;

			count += (__s64)(rdpmc(*index - 1) << above) >> above;
		}
		asm volatile("" ::: "memory");
	} while (page->lock != seq);
	return count;
}

/* Returns whether CPUID leaf 0xA marks the architectural event as absent. */
bool event_absent(unsigned int bit);

/*
 * Returns whether the CPU has an event for this generic event, PERF_COUNT_HW_*.
 */
bool has_generic_event(__u64 id);

/*
 * Returns whether the machine is emulated by QEMU. The emulated PMU's figures
 * for caches, cycles and the like are known, unlike hardware's.
 */
bool is_tcg(void);

/* Returns whether rpmu is the driver under test, rather than the built-in one. */
bool on_rpmu(void);

#define SHARE		"/sys/module/rpmu/parameters/share"

/* Returns whether the driver counts equal events on one counter. */
bool shares_counters(void);

/*
 * Gives each event a counter of its own until the program ends, also where rpmu
 * would count equal events on one: for tests that fill the counters with equal
 * events. Returns false if there are events already.
 */
bool own_counters(void);

/* Does so for all tests of a program. */
#define OWN_COUNTERS()							\
	static void __attribute__((constructor)) all_own_counters(void)	\
	{								\
		own_counters();						\
	}

/*
 * Lets equal events share a counter until the program ends, where rpmu can do so.
 * Returns false if there are events already.
 */
bool share_counters(void);

/* Does so for all tests of a program. */
#define SHARED_COUNTERS()						\
	static void __attribute__((constructor)) all_share_counters(void)	\
	{								\
		share_counters();					\
	}

/* Loads a kernel module. Returns false with errno set if that fails. */
bool load_module(const char *path, const char *parameters);

/* Unloads a kernel module that is not in use. Returns false with errno set if that fails. */
bool unload_module(const char *name);

/* Reads a whole file, up to size - 1 bytes, as a string; false if it cannot be read. */
bool read_file(const char *path, char *text, size_t size);

/* Reads the first line of a sysfs or procfs file; false if it cannot be read. */
bool read_line(const char *path, char *buf, int size);

/* Writes a sysfs or procfs file; false if it cannot be written. */
bool write_line(const char *path, const char *text);

/* Returns whether the kernel is the one with KASAN, lockdep and other checks, KERNEL=debug. */
bool checks_itself(void);

#define SAMPLE_RATE	"/proc/sys/kernel/perf_event_max_sample_rate"
#define CPU_PERCENT	"/proc/sys/kernel/perf_cpu_time_max_percent"

/* The limits on samples as they were before a test. */
struct sample_limits {
	char rate[32], percent[32];
};

/* Allows any rate of samples, and saves the previous limits in @before. */
bool lift_sample_limits(struct sample_limits *before);

bool put_back_sample_limits(const struct sample_limits *before);

#define MUX_INTERVAL	CPU_PMU "/perf_event_mux_interval_ms"
/* Long enough for a test to end before the next rotation. */
#define NO_ROTATION_S	10

/* Makes the rotation interval NO_ROTATION_S. */
bool forbid_rotation(void);

/*
 * Restores the rotation interval. Waits for the rotation timer, because an
 * armed timer keeps its expiry time and the next test needs rotation.
 */
bool allow_rotation(const char *interval);

#endif
