// SPDX-License-Identifier: GPL-2.0
/*
 * Who may open what: each level of kernel.perf_event_paranoid, for root, for
 * who has CAP_PERFMON or CAP_SYS_ADMIN alone, and for who has nothing. What is
 * expected is the kernel's rule, so both drivers have to give the same errno.
 * And which files of the driver's are root's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
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
	int capability;		/* the only one, unless root */
} users[] = {
	{ "root", 0, -1 },
	{ "CAP_PERFMON", NOBODY, PERFMON },
	{ "CAP_SYS_ADMIN", NOBODY, CAP_SYS_ADMIN },
	{ "nobody", NOBODY, -1 },
};

/* What it takes besides being allowed to open an event at all. */
enum takes {
	NOTHING,
	KERNEL,		/* a level below 2, or CAP_PERFMON */
	CPU,		/* a level below 1, or CAP_PERFMON */
	OTHER_TASK,	/* CAP_PERFMON, if it is another user's */
	BRANCHES,	/* hardware that the emulated PMU lacks, for anybody */
	KERNEL_BRANCHES,
};

static const struct request {
	const char *name;
	enum takes takes;
	__u64 config;
	__u64 period;
	__u64 sample_type;
	__u64 branches;
	bool kernel;
	bool cpu;
	bool parent;
	bool kernel_callchain;
} requests[] = {
	{ .name = "own, user", .takes = NOTHING },
	{ .name = "own, kernel", .takes = KERNEL, .kernel = true },
	{ .name = "own, sampled", .takes = NOTHING, .period = 100003,
	  .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_CALLCHAIN },
	{ .name = "own, callchain of the kernel", .takes = KERNEL, .period = 100003,
	  .sample_type = PERF_SAMPLE_CALLCHAIN, .kernel_callchain = true },
	{ .name = "own, physical addresses", .takes = KERNEL, .period = 100003,
	  .sample_type = PERF_SAMPLE_PHYS_ADDR },
	{ .name = "own, registers", .takes = NOTHING, .period = 100003,
	  .sample_type = PERF_SAMPLE_REGS_INTR },
	{ .name = "CPU", .takes = CPU, .cpu = true },
	{ .name = "CPU, kernel, sampled", .takes = CPU, .cpu = true, .kernel = true,
	  .period = 100003 },
	{ .name = "another user's task", .takes = OTHER_TASK, .parent = true },
	{ .name = "any thread", .takes = CPU, .config = ANY_THREAD },
	{ .name = "branches", .takes = BRANCHES, .period = 100003,
	  .sample_type = PERF_SAMPLE_BRANCH_STACK, .branches = PERF_SAMPLE_BRANCH_ANY },
	{ .name = "branches of the kernel", .takes = KERNEL_BRANCHES, .period = 100003,
	  .sample_type = PERF_SAMPLE_BRANCH_STACK,
	  .branches = PERF_SAMPLE_BRANCH_ANY | PERF_SAMPLE_BRANCH_KERNEL },
};

/* Only on the emulated PMU it is known that there are no branch records. */
static bool is_known(const struct request *request)
{
	return request->takes < BRANCHES || is_tcg();
}

static int expected(int level, unsigned int user, const struct request *request)
{
	bool admin = users[user].uid == 0 || users[user].capability == CAP_SYS_ADMIN;
	bool perfmon = admin || users[user].capability == PERFMON;
	bool kernel = perfmon || level < 2;
	bool cpu = perfmon || level < 1;

	int refusal = 0;

	switch (request->takes) {
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
		refusal = EOPNOTSUPP;
		break;
	case KERNEL_BRANCHES:
		refusal = kernel ? EOPNOTSUPP : EACCES;
		break;
	}
	/* What Debian has added; not even CAP_PERFMON helps. */
	if (level > 2 && !admin)
		refusal = EACCES;
	return refusal;
}

/* Becomes that user for good, with no more than its capability. */
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

/* The errno, or 0. */
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

/* Can somebody without privileges open the file? Its errno, or 0. */
static int opened_by_nobody(const char *path, int flags)
{
	int status, fd;
	pid_t pid = fork_helper();

	if (pid == 0) {
		if (!become(ARRAY_SIZE(users) - 1))
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

/* Even where everybody may look into debugfs. */
TEST(debugfs_is_roots)
{
	static const char * const files[] = {
		"/sys/kernel/debug/rpmu/refusals",
		"/sys/kernel/debug/rpmu/cpu0/schedule",
	};
	struct stat debugfs, file;
	unsigned int i;

	if (!on_rpmu())
		SKIP(return, "the built-in driver has nothing there");
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
