// SPDX-License-Identifier: GPL-2.0
/* Shared by the tests: see perf_util.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/mman.h>

#include "perf_util.h"

void *page_that_never_comes(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (fd < 0 || page == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return NULL;
	range.range.start = (unsigned long)page;
	range.range.len = 4096;
	return ioctl(fd, UFFDIO_REGISTER, &range) ? NULL : page;
}

struct perf_event_attr counting(__u32 type, __u64 config)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = type,
		.config = config,
		.disabled = 1,
		.read_format = READ_ONE,
	};

	return attr;
}

struct perf_event_attr counting_user(__u32 type, __u64 config)
{
	struct perf_event_attr attr = counting(type, config);

	attr.exclude_kernel = 1;
	attr.exclude_hv = 1;
	return attr;
}

int perf_open(const struct perf_event_attr *attr, pid_t pid, int cpu, int group_fd,
	      unsigned long flags)
{
	return syscall(SYS_perf_event_open, attr, pid, cpu, group_fd, flags);
}

int perf_open_self(const struct perf_event_attr *attr, int group_fd)
{
	return perf_open(attr, 0, -1, group_fd, 0);
}

bool read_one(int fd, struct one_count *count)
{
	return read(fd, count, sizeof(*count)) == sizeof(*count);
}

__u64 read_value(int fd)
{
	struct one_count count;

	return read_one(fd, &count) ? count.value : NO_COUNT;
}

double percent_running(const struct one_count *count)
{
	return count->enabled ? 100.0 * count->running / count->enabled : 0.0;
}

__u64 event_id(int fd)
{
	__u64 id = 0;

	ioctl(fd, PERF_EVENT_IOC_ID, &id);
	return id;
}

struct perf_event_mmap_page *map_buffer(int fd, unsigned long pages)
{
	return mmap(NULL, (1 + pages) * sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
		    MAP_SHARED, fd, 0);
}

const void *take_sample(struct perf_event_mmap_page *page)
{
	__u64 head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	const struct perf_event_header *header;

	while (page->data_tail < head) {
		header = (void *)((char *)page + page->data_offset + page->data_tail);
		page->data_tail += header->size;
		if (header->type == PERF_RECORD_SAMPLE)
			return header;
	}
	return NULL;
}

#define CALL_PAGES	256UL

struct call_sample {
	struct perf_event_header header;
	__u64 nr;
	struct perf_branch_entry entries[];
};

int open_indirect_calls(unsigned long period, struct perf_event_mmap_page **page)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	int fd;

	attr.sample_period = period;
	attr.sample_type = PERF_SAMPLE_BRANCH_STACK;
	attr.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_IND_CALL;
	fd = perf_open_self(&attr, -1);
	if (fd < 0)
		return -1;
	*page = map_buffer(fd, CALL_PAGES);
	if (*page != MAP_FAILED)
		return fd;
	close(fd);
	return -1;
}

void close_indirect_calls(int fd, struct perf_event_mmap_page *page)
{
	munmap(page, (1 + CALL_PAGES) * sysconf(_SC_PAGESIZE));
	close(fd);
}

unsigned int full_of_calls(struct perf_event_mmap_page *page, __u64 from)
{
	const struct call_sample *sample;
	unsigned int full = 0;
	__u64 i;

	while ((sample = take_sample(page))) {
		for (i = 0; i < sample->nr && sample->entries[i].from == from; i++)
			;
		full += i == sample->nr && i == branch_records();
	}
	return full;
}

bool counts_exactly(unsigned long n, __u64 *count)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open_self(&attr, -1);

	*count = NO_COUNT;
	if (fd < 0)
		return false;
	counted_loop(fd, 0, n);
	*count = read_value(fd);
	close(fd);
	return *count == LOOP_INSTRUCTIONS(n);
}

bool run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		return false;
	usleep(20000);
	return true;
}

bool take_cpu(bool alone)
{
	const struct sched_param param = { .sched_priority = alone };

	return sched_setscheduler(0, alone ? SCHED_FIFO : SCHED_OTHER, &param) == 0;
}

bool set_cpu_online(int cpu, bool on)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
	return write_line(path, on ? "1" : "0");
}

pid_t fork_helper(void)
{
	pid_t test = getpid(), helper = fork();

	if (helper == 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) || getppid() != test))
		_exit(1);
	return helper;
}

unsigned long pmis(void)
{
	FILE *file = fopen("/proc/interrupts", "r");
	unsigned long sum = 0, n;
	char line[1024], *at, *end;

	while (file && fgets(line, sizeof(line), file)) {
		at = strstr(line, "PMI:");
		if (!at)
			continue;
		for (at += 4; n = strtoul(at, &end, 10), end != at; at = end)
			sum += n;
	}
	if (file)
		fclose(file);
	return sum;
}

bool is_amd(void)
{
	unsigned int eax, vendor[3];

	__cpuid(0, eax, vendor[0], vendor[2], vendor[1]);
	return !memcmp(vendor, "AuthenticAMD", sizeof(vendor)) ||
	       !memcmp(vendor, "HygonGenuine", sizeof(vendor));
}

unsigned int cpu_family(void)
{
	unsigned int eax, ebx, ecx, edx, family;

	__cpuid(1, eax, ebx, ecx, edx);
	family = (eax >> 8) & 0xf;
	return family == 0xf ? family + ((eax >> 20) & 0xff) : family;
}

unsigned int cpu_number(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (is_amd() || !__get_cpuid(1, &eax, &ebx, &ecx, &edx) || ((eax >> 8) & 0xf) != 6)
		return 0;
	return ((eax >> 12) & 0xf0) | ((eax >> 4) & 0xf);
}

bool threads_corrupt(void)
{
	switch (cpu_model()) {
	case MODEL_SANDY_BRIDGE:
	case MODEL_IVY_BRIDGE:
	case MODEL_HASWELL:
		return true;
	default:
		return false;
	}
}

enum cpu_model cpu_model(void)
{
	switch (cpu_number()) {
	case 0x1a: case 0x1e: case 0x2e:
		return MODEL_NEHALEM;
	case 0x25: case 0x2c: case 0x2f:
		return MODEL_WESTMERE;
	case 0x2a: case 0x2d:
		return MODEL_SANDY_BRIDGE;
	case 0x3a: case 0x3e:
		return MODEL_IVY_BRIDGE;
	case 0x3c: case 0x3f: case 0x45: case 0x46:
		return MODEL_HASWELL;
	case 0x3d: case 0x47: case 0x4f: case 0x56:
		return MODEL_BROADWELL;
	case 0x4e: case 0x55: case 0x5e: case 0x8e: case 0x9e: case 0xa5: case 0xa6:
		return MODEL_SKYLAKE;
	case 0x6a: case 0x6c: case 0x7d: case 0x7e: case 0x8c: case 0x8d: case 0xa7:
		return MODEL_ICE_LAKE;
	case 0x37: case 0x4a: case 0x4c: case 0x4d: case 0x5a: case 0x75:
		return MODEL_SILVERMONT;
	case 0x5c: case 0x5f:
		return MODEL_GOLDMONT;
	case 0x7a:
		return MODEL_GOLDMONT_PLUS;
	case 0x86: case 0x96: case 0x9c:
		return MODEL_TREMONT;
	case 0x8f: case 0xcf:
		return MODEL_GOLDEN_COVE;
	case 0xad: case 0xae:
		return MODEL_REDWOOD_COVE;
	case 0xbe:
		return MODEL_GRACEMONT;
	case 0xaf: case 0xb6:
		return MODEL_CRESTMONT;
	default:
		return MODEL_OTHER;
	}
}

bool is_small_core(void)
{
	switch (cpu_model()) {
	case MODEL_SILVERMONT:
	case MODEL_GOLDMONT:
	case MODEL_GOLDMONT_PLUS:
	case MODEL_TREMONT:
	case MODEL_GRACEMONT:
	case MODEL_CRESTMONT:
		return true;
	default:
		return false;
	}
}

bool is_haswell_or_skylake(void)
{
	return cpu_model() == MODEL_HASWELL || cpu_model() == MODEL_SKYLAKE;
}

/* Returns the number of counters of AMD's PerfMonV2; 0 without it. */
static unsigned int amd_v2_counters(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (!__get_cpuid(0x80000022, &eax, &ebx, &ecx, &edx) || !(eax & 1))
		return 0;
	return ebx & 0xf;
}

bool amd_lbr(void)
{
	unsigned int eax, ebx, ecx, edx;

	return is_amd() && __get_cpuid(0x80000022, &eax, &ebx, &ecx, &edx) && (eax & 1 << 1);
}

/*
 * Returns whether a hypervisor hides the branch records: the kernel finds none, and
 * CPUID reports a version or no IA32_PERF_CAPABILITIES (PDCM) as only hypervisors do.
 */
static bool hidden_branch_records(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (is_amd() || !access(CPU_PMU "/caps/branches", F_OK))
		return false;
	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & 1 << 15))
		return true;
	return !__get_cpuid(0xa, &eax, &ebx, &ecx, &edx) || (eax & 0xff) < 3;
}

unsigned int branch_records(void)
{
	static int hidden = -1;

	if (hidden < 0)
		hidden = hidden_branch_records();
	if (hidden)
		return 0;
	if (cpu_model() == MODEL_SILVERMONT)
		return 8;
	if (cpu_model() >= MODEL_SKYLAKE)
		return 32;
	return cpu_model() != MODEL_OTHER || amd_lbr() ? 16 : 0;
}

bool has_call_stacks(void)
{
	return cpu_model() >= MODEL_HASWELL && cpu_model() != MODEL_SILVERMONT;
}

static unsigned int amd_counters(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (!__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx) || !(ecx & 1 << 23))
		return 4;
	return amd_v2_counters() ?: 6;
}

bool counters_start_together(void)
{
	return !is_amd() || amd_v2_counters();
}

unsigned int counter_width(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (is_amd())
		return 48;
	__cpuid_count(0xa, 0, eax, ebx, ecx, edx);
	return (eax >> 16) & 0xff;
}

unsigned int gp_counters(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (is_amd())
		return amd_counters();
	if (!__get_cpuid_count(0xa, 0, &eax, &ebx, &ecx, &edx))
		return 0;
	eax = (eax >> 8) & 0xff;
	return eax > 8 && on_rpmu() ? 8 : eax;
}

bool may_count_user_alone(unsigned int i)
{
	return i < 4 || cpu_model() != MODEL_BROADWELL;
}

struct perf_event_attr counting_anywhere(__u32 type, __u64 config)
{
	struct perf_event_attr attr = counting_user(type, config);

	attr.exclude_kernel = may_count_user_alone(gp_counters() - 1);
	return attr;
}

static const struct user_event {
	__u64 config;
	unsigned int per_pass;
} intel_events[USER_EVENTS] = {
	{ 0x00c4, 4 }, { 0x01c4, 2 }, { 0x02c4, 1 }, { 0x08c4, 1 }, { 0x10c4, 1 }, { 0x20c4, 3 },
}, amd_events[USER_EVENTS] = {
	{ 0x00c2, 4 }, { 0x00c4, 3 }, { 0x00c8, 1 }, { 0x00c0, 6 }, { 0x00c3, 0 }, { 0x0076, 0 },
}, tremont_events[USER_EVENTS] = {
	/* Taken conditional branches instead of those not taken; direct calls. */
	{ 0x00c4, 4 }, { 0x7ec4, 2 }, { 0xf9c4, 1 }, { 0xf7c4, 1 }, { 0xfec4, 1 }, { 0xfdc4, 1 },
}, gracemont_events[USER_EVENTS] = {
	{ 0x00c4, 4 }, { 0x7ec4, 2 }, { 0xf9c4, 1 }, { 0xf7c4, 1 }, { 0xfec4, 1 }, { 0xc0c4, 3 },
};

static const struct user_event *user_event(unsigned int i)
{
	i %= USER_EVENTS;
	if (is_amd())
		return &amd_events[i];
	if (cpu_model() >= MODEL_GRACEMONT)
		return &gracemont_events[i];
	return is_small_core() ? &tremont_events[i] : &intel_events[i];
}

struct perf_event_attr different_event(unsigned int i)
{
	__u64 config = user_event(i)->config;
	struct perf_event_attr attr;

	if (cpu_model() >= MODEL_ICE_LAKE && config == 0x01c4)
		config = 0x11c4;
	attr = counting_anywhere(PERF_TYPE_RAW, config);
	if (i >= USER_EVENTS)
		attr.exclude_kernel = !attr.exclude_kernel;
	return attr;
}

unsigned int different_per_pass(unsigned int i)
{
	/* Nehalem and Westmere have events for three kinds of branches only. */
	if (i % USER_EVENTS > 2 && (cpu_model() == MODEL_NEHALEM || cpu_model() == MODEL_WESTMERE))
		return 0;
	return user_event(i)->per_pass;
}

unsigned int fixed_counters(void)
{
	unsigned int eax, ebx, ecx, edx;

	if (is_amd())
		return 0;
	__cpuid_count(0xa, 0, eax, ebx, ecx, edx);
	return edx & 0x1f;
}

bool event_absent(unsigned int bit)
{
	unsigned int eax, ebx = 0, ecx, edx;

	__get_cpuid_count(0xa, 0, &eax, &ebx, &ecx, &edx);
	return ebx & 1 << bit;
}

/*
 * From AMD's manuals: Zen 2 lost a stall event, Zen 4 has an event of reference
 * cycles.
 */
static bool amd_has_generic_event(__u64 id)
{
	unsigned int eax, ebx, ecx, edx, family = cpu_family(), model;

	__cpuid(1, eax, ebx, ecx, edx);
	model = ((eax >> 12) & 0xf0) | ((eax >> 4) & 0xf);
	switch (id) {
	case PERF_COUNT_HW_BUS_CYCLES:
		return false;
	case PERF_COUNT_HW_STALLED_CYCLES_BACKEND:
		return family < 0x17 || family == 0x18 ||
		       (family == 0x17 && (model < 0x30 || (model & 0xf0) == 0x50));
	case PERF_COUNT_HW_REF_CPU_CYCLES:
		return family >= 0x1a ||
		       (family == 0x19 && ((model & 0xf0) == 0x10 || model >= 0x60));
	default:
		return id < PERF_COUNT_HW_MAX;
	}
}

bool has_generic_event(__u64 id)
{
	const enum cpu_model model = cpu_model();
	/* Ivy Bridge in part */
	const bool counts_stalls = model == MODEL_NEHALEM || model == MODEL_WESTMERE ||
				   model == MODEL_SANDY_BRIDGE;

	if (is_amd())
		return amd_has_generic_event(id);
	switch (id) {
	case PERF_COUNT_HW_CPU_CYCLES:
		return !event_absent(0);
	case PERF_COUNT_HW_INSTRUCTIONS:
		return !event_absent(1);
	case PERF_COUNT_HW_BUS_CYCLES:
		return !event_absent(2);
	case PERF_COUNT_HW_CACHE_REFERENCES:
		return !event_absent(3);
	case PERF_COUNT_HW_CACHE_MISSES:
		return !event_absent(4);
	case PERF_COUNT_HW_BRANCH_INSTRUCTIONS:
		return !event_absent(5);
	case PERF_COUNT_HW_BRANCH_MISSES:
		/* On Nehalem, another event is used instead. */
		return !event_absent(6) || model == MODEL_NEHALEM;
	case PERF_COUNT_HW_STALLED_CYCLES_FRONTEND:
		return counts_stalls || model == MODEL_IVY_BRIDGE;
	case PERF_COUNT_HW_STALLED_CYCLES_BACKEND:
		return counts_stalls;
	case PERF_COUNT_HW_REF_CPU_CYCLES:
		return true;
	default:
		return false;
	}
}

bool is_tcg(void)
{
	unsigned int eax, vendor[3];

	__cpuid(0x40000000, eax, vendor[0], vendor[1], vendor[2]);
	return !memcmp(vendor, "TCGTCGTCGTCG", sizeof(vendor));
}

bool on_rpmu(void)
{
	return access("/sys/module/rpmu", F_OK) == 0;
}

bool shares_counters(void)
{
	char share[8];

	return read_line(SHARE, share, sizeof(share)) && share[0] == 'Y';
}

bool own_counters(void)
{
	return !on_rpmu() || write_line(SHARE, "0");
}

bool share_counters(void)
{
	return !on_rpmu() || write_line(SHARE, "1");
}

static bool rpmu_before, shared_before;

static void __attribute__((constructor(101))) note_sharing(void)
{
	rpmu_before = on_rpmu();
	shared_before = shares_counters();
}

/* Tests end by _exit(), so this is the end of the program. */
static void __attribute__((destructor)) share_as_before(void)
{
	/* Programs that load rpmu leave its parameters as they are. */
	if (rpmu_before && on_rpmu() && shares_counters() != shared_before)
		write_line(SHARE, shared_before ? "1" : "0");
}

bool load_module(const char *path, const char *parameters)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err;
	bool loaded;

	if (fd < 0)
		return false;
	loaded = syscall(SYS_finit_module, fd, parameters, 0) == 0;
	err = errno;
	close(fd);
	errno = err;
	return loaded;
}

bool unload_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) == 0;
}

bool read_file(const char *path, char *text, size_t size)
{
	FILE *file = fopen(path, "r");
	size_t len;

	if (!file)
		return false;
	len = fread(text, 1, size - 1, file);
	fclose(file);
	text[len] = '\0';
	return true;
}

bool read_line(const char *path, char *buf, int size)
{
	FILE *file = fopen(path, "r");
	bool ok;

	if (!file)
		return false;
	ok = fgets(buf, size, file);
	fclose(file);
	if (ok)
		buf[strcspn(buf, "\n")] = '\0';
	return ok;
}

bool write_line(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");
	bool ok;

	if (!file)
		return false;
	ok = fputs(text, file) >= 0;
	return fclose(file) == 0 && ok;
}

bool checks_itself(void)
{
	static const char suffix[] = "-debug";
	struct utsname name;
	size_t length;

	if (uname(&name))
		return false;
	length = strlen(name.release);
	return length >= strlen(suffix) &&
	       !strcmp(name.release + length - strlen(suffix), suffix);
}

bool lift_sample_limits(struct sample_limits *before)
{
	if (!read_line(SAMPLE_RATE, before->rate, sizeof(before->rate)) ||
	    !read_line(CPU_PERCENT, before->percent, sizeof(before->percent)))
		return false;
	if (atoi(before->percent) == 0) {
		/* A killed test has left the limits unset: use the values at boot. */
		*before = (struct sample_limits){ .rate = "100000", .percent = "25" };
		if (!write_line(CPU_PERCENT, before->percent))
			return false;
	}
	/* In this order: with 0 percent the rate cannot be written. */
	return write_line(SAMPLE_RATE, "10000000") && write_line(CPU_PERCENT, "0");
}

bool put_back_sample_limits(const struct sample_limits *before)
{
	/* In this order: while the percentage is 0, the rate cannot be written. */
	return write_line(CPU_PERCENT, before->percent) &&
	       write_line(SAMPLE_RATE, before->rate);
}

bool forbid_rotation(void)
{
	char ms[16];

	snprintf(ms, sizeof(ms), "%d", NO_ROTATION_S * 1000);
	return write_line(MUX_INTERVAL, ms);
}

bool allow_rotation(const char *interval)
{
	char now[16];
	bool forbidden = read_line(MUX_INTERVAL, now, sizeof(now)) &&
			 atoi(now) == NO_ROTATION_S * 1000;
	bool ok = write_line(MUX_INTERVAL, interval);

	if (forbidden)
		sleep(NO_ROTATION_S);
	return ok;
}
