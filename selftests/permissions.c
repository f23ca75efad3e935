// SPDX-License-Identifier: GPL-2.0
/*
 * Tests permissions: each level of kernel.perf_event_paranoid for root, for
 * users with only CAP_PERFMON or CAP_SYS_ADMIN, and for unprivileged users. The
 * expectations are the kernel's rules, so both drivers must return the same
 * errno. Permitted events reveal nothing about the kernel, and only root may
 * write to the driver's files.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define PARANOID	"/proc/sys/kernel/perf_event_paranoid"
#define NOBODY		65534
#define ANY_THREAD	0x200000

/* Not in all versions of <linux/capability.h>. */
#define PERFMON		38

static const struct {
	const char *name;
	unsigned int uid;
	int capability;		/* the user's only capability, unless root */
} users[] = {
	{ "root", 0, -1 },
	{ "CAP_PERFMON", NOBODY, PERFMON },
	{ "CAP_SYS_ADMIN", NOBODY, CAP_SYS_ADMIN },
	{ "nobody", NOBODY, -1 },
};

/* Privileges and hardware that an event needs, besides permission to open any event. */
enum needs {
	NOTHING,
	KERNEL,		/* a level below 2, or CAP_PERFMON */
	CPU,		/* a level below 1, or CAP_PERFMON */
	OTHER_TASK,	/* CAP_PERFMON, if the task is another user's */
	BRANCHES,	/* branch records */
	KERNEL_BRANCHES,
};

static const struct request {
	const char *name;
	enum needs needs;
	__u64 config;
	__u64 period;
	__u64 sample_type;
	__u64 branches;
	bool kernel;
	bool cpu;
	bool parent;
	bool kernel_callchain;
} requests[] = {
	{ .name = "own, user", .needs = NOTHING },
	{ .name = "own, kernel", .needs = KERNEL, .kernel = true },
	{ .name = "own, sampled", .needs = NOTHING, .period = 100003,
	  .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN },
	{ .name = "own, callchain of the kernel", .needs = KERNEL, .period = 100003,
	  .sample_type = PERF_SAMPLE_CALLCHAIN, .kernel_callchain = true },
	{ .name = "own, physical addresses", .needs = KERNEL, .period = 100003,
	  .sample_type = PERF_SAMPLE_PHYS_ADDR },
	{ .name = "own, registers", .needs = NOTHING, .period = 100003,
	  .sample_type = PERF_SAMPLE_REGS_INTR },
	{ .name = "CPU", .needs = CPU, .cpu = true },
	{ .name = "CPU, kernel, sampled", .needs = CPU, .cpu = true, .kernel = true,
	  .period = 100003 },
	{ .name = "another user's task", .needs = OTHER_TASK, .parent = true },
	{ .name = "any thread", .needs = CPU, .config = ANY_THREAD },
	{ .name = "branches", .needs = BRANCHES, .period = 100003,
	  .sample_type = PERF_SAMPLE_BRANCH_STACK, .branches = PERF_SAMPLE_BRANCH_ANY },
	{ .name = "branches of the kernel", .needs = KERNEL_BRANCHES, .period = 100003,
	  .sample_type = PERF_SAMPLE_BRANCH_STACK,
	  .branches = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL },
};

/*
 * Returns whether the emulated PMU has branch records that the drivers support; rpmu
 * does not support Zen 3's BRS.
 */
static bool has_branches(void)
{
	return !is_amd() || amd_lbr();
}

/*
 * Returns whether the result of a request is known. Branch records are known on the
 * emulated PMU only, because hypervisors may hide them. On AMD's CPUs, bit 21 has
 * no meaning and needs no privilege.
 */
static bool is_known(const struct request *request)
{
	if (is_amd() && request->config == ANY_THREAD)
		return false;
	return request->needs < BRANCHES || is_tcg();
}

static int expected(int level, unsigned int user, const struct request *request)
{
	bool admin = users[user].uid == 0 || users[user].capability == CAP_SYS_ADMIN;
	bool perfmon = admin || users[user].capability == PERFMON;
	bool kernel = perfmon || level < 2;
	bool cpu = perfmon || level < 1;

	int refusal = 0;

	switch (request->needs) {
	case NOTHING:
		break;
	case KERNEL:
		refusal = kernel ? 0 : EACCES;
		break;
	case CPU:
		refusal = cpu ? 0 : EACCES;
		break;
	case OTHER_TASK:
		refusal = perfmon ? 0 : EACCES;
		break;
	case BRANCHES:
		refusal = has_branches() ? 0 : EOPNOTSUPP;
		break;
	case KERNEL_BRANCHES:
		if (!kernel)
			refusal = EACCES;
		else
			refusal = has_branches() ? 0 : EOPNOTSUPP;
		break;
	}
	/* Debian's additional level, at which even CAP_PERFMON is not enough. */
	if (level > 2 && !admin)
		refusal = EACCES;
	return refusal;
}

/* Becomes this user permanently, with only its capability. */
static bool become(unsigned int user)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2] = {};
	int capability = users[user].capability;

	if (users[user].uid == 0)
		return true;
	if (capability >= 0) {
		caps[capability / 32].effective = 1U << capability % 32;
		caps[capability / 32].permitted = 1U << capability % 32;
	}
	return !prctl(PR_SET_KEEPCAPS, 1) &&
	       !setresgid(NOBODY, NOBODY, NOBODY) &&
	       !setresuid(users[user].uid, users[user].uid, users[user].uid) &&
	       !syscall(SYS_capset, &header, caps);
}

/* Returns the errno of opening the event, or 0. */
static int ask(const struct request *request)
{
	struct perf_event_attr attr =
		counting_user(PERF_TYPE_RAW, RAW_BRANCHES | request->config);
	int fd;

	attr.exclude_kernel = !request->kernel;
	attr.exclude_callchain_kernel = !request->kernel_callchain;
	attr.sample_period = request->period;
	attr.sample_type = request->sample_type;
	attr.branch_sample_type = request->branches;
	attr.sample_regs_intr = request->sample_type & PERF_SAMPLE_REGS_INTR ? 1 << 8 : 0;
	fd = perf_open(&attr, request->cpu ? -1 : request->parent ? getppid() : 0,
		       request->cpu ? 0 : -1, -1, 0);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

FIXTURE(paranoid)
{
	char before[16];
	int *answers;
};

FIXTURE_VARIANT(paranoid)
{
	int level;
};

FIXTURE_VARIANT_ADD(paranoid, minus_1) { .level = -1, };
FIXTURE_VARIANT_ADD(paranoid, 0) { .level = 0, };
FIXTURE_VARIANT_ADD(paranoid, 1) { .level = 1, };
FIXTURE_VARIANT_ADD(paranoid, 2) { .level = 2, };
FIXTURE_VARIANT_ADD(paranoid, 3) { .level = 3, };
FIXTURE_VARIANT_ADD(paranoid, 4) { .level = 4, };

FIXTURE_SETUP(paranoid)
{
	char level[16], debian[16];

	self->answers = mmap(NULL, sizeof(int) * ARRAY_SIZE(requests),
			     PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->answers);
	ASSERT_TRUE(read_line(PARANOID, self->before, sizeof(self->before)));
	snprintf(level, sizeof(level), "%d", variant->level);
	ASSERT_TRUE(write_line(PARANOID, level));
	ASSERT_TRUE(read_line(PARANOID, debian, sizeof(debian)));
	ASSERT_STREQ(level, debian);
}

FIXTURE_TEARDOWN(paranoid)
{
	EXPECT_TRUE(write_line(PARANOID, self->before));
}

TEST_F(paranoid, everybody)
{
	unsigned int user, i;
	int status;
	pid_t pid;

	for (user = 0; user < ARRAY_SIZE(users); user++) {
		pid = fork_helper();
		ASSERT_LE(0, pid);
		if (pid == 0) {
			if (!become(user))
				_exit(1);
			for (i = 0; i < ARRAY_SIZE(requests); i++)
				self->answers[i] = ask(&requests[i]);
			_exit(0);
		}
		ASSERT_EQ(pid, waitpid(pid, &status, 0));
		ASSERT_EQ(0, status);
		for (i = 0; i < ARRAY_SIZE(requests); i++) {
			if (!is_known(&requests[i]))
				continue;
			EXPECT_EQ(expected(variant->level, user, &requests[i]),
				  self->answers[i]) {
				TH_LOG("%s, for %s", requests[i].name, users[user].name);
			}
		}
	}
}

/* A kernel address, or a kernel entry in a callchain. */
static bool is_kernels(__u64 word)
{
	return word >> 47 && word != PERF_CONTEXT_USER;
}

#define BUFFER_PAGES	64
#define SYSCALLS	10000UL
#define SAMPLED_PERIOD	1009

/* The kernel's data in the samples of an event. */
struct seen {
	int error;
	__u64 count;
	int samples;
	int kernels_words;
	bool lost;
};

/* Samples many system calls. */
static struct seen sampled(bool kernel)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);
	struct perf_event_mmap_page *page;
	size_t size = BUFFER_PAGES * getpagesize();
	struct perf_event_header *header;
	struct seen seen = {};
	unsigned int i;
	char *data;
	__u64 at;
	int fd;

	attr.exclude_kernel = !kernel;
	attr.exclude_callchain_kernel = !kernel;
	/*
	 * The kernel's instructions for a sample also count, and must not cause
	 * the next sample.
	 */
	attr.sample_period = kernel ? 30 * SAMPLED_PERIOD : SAMPLED_PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME |
			   PERF_SAMPLE_ADDR | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_ID |
			   PERF_SAMPLE_CPU | PERF_SAMPLE_PERIOD | PERF_SAMPLE_REGS_USER |
			   PERF_SAMPLE_REGS_INTR;
	attr.sample_regs_user = 1 << 8 | 1 << 7;	/* IP, SP */
	attr.sample_regs_intr = attr.sample_regs_user;
	fd = perf_open_self(&attr, -1);
	if (fd < 0) {
		seen.error = errno;
		return seen;
	}
	page = mmap(NULL, size + getpagesize(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (page == MAP_FAILED) {
		seen.error = errno;
		close(fd);
		return seen;
	}
	/* With the kernel's instructions, fewer system calls give enough samples. */
	counted_syscalls(fd, 0, kernel ? SYSCALLS / 10 : SYSCALLS, SYS_getppid, NULL);
	seen.count = read_value(fd);
	data = (char *)page + page->data_offset;
	for (at = 0; at < page->data_head && at < size; at += header->size) {
		header = (struct perf_event_header *)(data + at);
		if (header->type != PERF_RECORD_SAMPLE) {
			seen.lost |= header->type == PERF_RECORD_LOST;
			continue;
		}
		seen.samples++;
		for (i = sizeof(*header); i < header->size; i += sizeof(__u64))
			seen.kernels_words += is_kernels(*(__u64 *)((char *)header + i));
	}
	munmap(page, size + getpagesize());
	close(fd);
	return seen;
}

/* Samples many system calls as this user, and stores the result in *@seen. */
static bool sampled_by(unsigned int user, bool kernel, struct seen *seen, struct seen *shared)
{
	int status;
	pid_t pid = fork_helper();

	if (pid == 0) {
		if (!become(user))
			_exit(1);
		*shared = sampled(kernel);
		_exit(0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || status)
		return false;
	*seen = *shared;
	return true;
}

#define ROOT	0
#define NO_ONE	(ARRAY_SIZE(users) - 1)

/*
 * An unprivileged user's event of user mode reveals nothing about the kernel at any
 * level, neither in its samples nor in its count. Root's samples do, on request.
 */
TEST_F(paranoid, kernel_is_not_seen)
{
	struct sample_limits before;
	struct seen seen, *shared;

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	ASSERT_TRUE(lift_sample_limits(&before));

	EXPECT_TRUE(sampled_by(ROOT, true, &seen, shared));
	EXPECT_EQ(0, seen.error);
	EXPECT_LT(0, seen.kernels_words);

	EXPECT_TRUE(sampled_by(NO_ONE, false, &seen, shared));
	EXPECT_EQ(variant->level > 2 ? EACCES : 0, seen.error);
	if (!seen.error) {
		EXPECT_EQ(SYSCALLS_INSTRUCTIONS(SYSCALLS), seen.count);
		EXPECT_FALSE(seen.lost);
		EXPECT_LT(SYSCALLS_INSTRUCTIONS(SYSCALLS) / SAMPLED_PERIOD / 2, seen.samples);
		EXPECT_EQ(0, seen.kernels_words);
	}
	/* From level 2 on, requesting kernel samples fails. */
	EXPECT_TRUE(sampled_by(NO_ONE, true, &seen, shared));
	EXPECT_EQ(variant->level > 1 ? EACCES : 0, seen.error);
	EXPECT_TRUE(put_back_sample_limits(&before));
}

/* Returns the errno of opening the file as an unprivileged user, or 0. */
static int opened_by_nobody(const char *path, int flags)
{
	int status, fd;
	pid_t pid = fork_helper();

	if (pid == 0) {
		if (!become(NO_ONE))
			_exit(255);
		fd = open(path, flags | O_CLOEXEC);
		_exit(fd < 0 ? errno : 0);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return -1;
	return WEXITSTATUS(status);
}

TEST(settings_are_roots)
{
	static const struct {
		const char *path;
		bool readable;
	} files[] = {
		{ CPU_PMU "/rdpmc", false },
		{ CPU_PMU "/freeze_on_smi", true },
		{ CPU_PMU "/allow_tsx_force_abort", true },
		{ MUX_INTERVAL, true },
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		if (access(files[i].path, F_OK))
			continue;
		EXPECT_EQ(EACCES, opened_by_nobody(files[i].path, O_WRONLY)) {
			TH_LOG("%s", files[i].path);
		}
		EXPECT_EQ(files[i].readable ? 0 : EACCES,
			  opened_by_nobody(files[i].path, O_RDONLY)) {
			TH_LOG("%s", files[i].path);
		}
	}
}

/*
 * The number of files, and of those that an unprivileged user can write or that
 * show a kernel address; the path of the last of these.
 */
static struct {
	int files, unwanted;
	char path[200];
} *walked;

static void unwanted(const char *path)
{
	walked->unwanted++;
	snprintf(walked->path, sizeof(walked->path), "%s", path);
}

/* Returns whether the text has a kernel address: 16 hexadecimal digits that start with ffff. */
static bool shows_the_kernel(const char *text)
{
	const char *found = strstr(text, "ffff");

	return found && strspn(found, "0123456789abcdef") == 16;
}

static int look(const char *path, const struct stat *stat, int type, struct FTW *ftw)
{
	char text[8192];
	ssize_t size;
	int fd;

	(void)stat;
	(void)ftw;
	if (type != FTW_F)
		return 0;
	walked->files++;
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd >= 0 || (errno != EACCES && errno != EPERM))
		unwanted(path);
	if (fd >= 0)
		close(fd);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	size = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[size > 0 ? size : 0] = '\0';
	if (shows_the_kernel(text))
		unwanted(path);
	return 0;
}

/* Changes a file's mode. Returns the old mode, 0 on failure. */
static mode_t changed_mode(const char *path, mode_t mode)
{
	struct stat before;

	return stat(path, &before) || chmod(path, mode) ? 0 : before.st_mode & 07777;
}

/*
 * An unprivileged user tries to access all files of the driver, with debugfs
 * and tracefs open to everybody. The user cannot write any of them, and the
 * readable ones contain no kernel address.
 */
TEST(no_file_is_nobodys)
{
	static const struct {
		const char *path;
		int files;	/* the minimum number of files that the user must see */
		bool rpmus;
	} trees[] = {
		{ CPU_PMU "/.", 20, false },
		{ "/sys/module/rpmu/", 10, true },
		{ "/sys/kernel/debug/rpmu/", 0, true },
		{ "/sys/kernel/tracing/events/rpmu/", 0, true },
	};
	mode_t debugfs, tracefs;
	unsigned int i;
	int status;
	pid_t pid;

	walked = mmap(NULL, sizeof(*walked), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, walked);
	ASSERT_TRUE(shows_the_kernel("at ffffffff81000000."));
	debugfs = changed_mode("/sys/kernel/debug", 0755);
	tracefs = changed_mode("/sys/kernel/tracing", 0755);
	EXPECT_NE(0, debugfs);
	EXPECT_NE(0, tracefs);
	for (i = 0; i < ARRAY_SIZE(trees); i++) {
		if (trees[i].rpmus && !on_rpmu())
			continue;
		memset(walked, 0, sizeof(*walked));
		pid = fork_helper();
		ASSERT_LE(0, pid);
		if (pid == 0)
			_exit(!become(NO_ONE) ||
			      (nftw(trees[i].path, look, 8, FTW_PHYS) && errno != EACCES));
		EXPECT_EQ(pid, waitpid(pid, &status, 0));
		EXPECT_EQ(0, status);
		EXPECT_LE(trees[i].files, walked->files) {
			TH_LOG("%s", trees[i].path);
		}
		EXPECT_EQ(0, walked->unwanted) {
			TH_LOG("%s", walked->path);
		}
	}
	EXPECT_EQ(0, chmod("/sys/kernel/debug", debugfs));
	EXPECT_EQ(0, chmod("/sys/kernel/tracing", tracefs));
}

/* Only root may read rpmu's files in debugfs, even if debugfs is open to everybody. */
TEST(debugfs_is_roots)
{
	static const char * const files[] = {
		"/sys/kernel/debug/rpmu/refusals",
		"/sys/kernel/debug/rpmu/users",
		"/sys/kernel/debug/rpmu/cpu0/schedule",
	};
	struct stat debugfs, file;
	unsigned int i;

	if (!on_rpmu())
		SKIP(return, "the built-in driver has no such file");
	ASSERT_EQ(0, stat("/sys/kernel/debug", &debugfs));
	ASSERT_EQ(0, chmod("/sys/kernel/debug", 0755));
	for (i = 0; i < ARRAY_SIZE(files); i++) {
		EXPECT_EQ(0, stat(files[i], &file));
		EXPECT_EQ(S_IFREG | 0400, file.st_mode);
		EXPECT_EQ(0, access(files[i], R_OK));
		EXPECT_EQ(EACCES, opened_by_nobody(files[i], O_RDONLY));
	}
	EXPECT_EQ(0, chmod("/sys/kernel/debug", debugfs.st_mode & 07777));
}

TEST_HARNESS_MAIN
