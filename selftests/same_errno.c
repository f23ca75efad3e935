// SPDX-License-Identifier: GPL-2.0
/*
 * Tests that both drivers refuse the same attributes with the same errno: a
 * long list, most of them wrong in one or two ways. The run on the built-in
 * driver, which is first, saves its results, and rpmu must return the same. The
 * PMU is unaffected afterwards.
 */
#define _GNU_SOURCE
#include "kselftest_harness.h"
#include "perf_util.h"

#define KEPT		"/tmp/built-in-errno-"
#define MAX_ANSWERS	20000
#define LOOPS		20000UL

/*
 * A pseudo event with which KVM reserves the branch records for a guest. The
 * built-in driver has one virtual counter for it, so a second one does not fit.
 * For rpmu, it is this pseudo event only if it has a branch stack, otherwise an
 * event of the CPU.
 */
#define GUEST_LBR	0x1b00

/* Slots and a metric, whose group must have slots as its leader. */
#define SLOTS		0x0400
#define METRIC		0x8000

#define ANY		0x000200000ULL
#define IN_TX		0x100000000ULL
#define IN_TX_CP	0x200000000ULL
#define XMM		0x10000000000ULL

/* The attrs to which faults are added; the drivers refuse some as they are. */
static const struct {
	__u32 type;
	__u64 config;
	bool pairs;		/* add faults in pairs, too */
} base[] = {
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, true },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, false },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, false },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, false },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, false },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, true },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND, false },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, false },
	{ PERF_TYPE_HARDWARE, PERF_COUNT_HW_MAX, false },
	{ PERF_TYPE_HARDWARE, 0xffffffff, false },
	{ PERF_TYPE_HW_CACHE, 0x00000, false },
	{ PERF_TYPE_HW_CACHE, 0x10002, true },	/* with an offcore response */
	{ PERF_TYPE_HW_CACHE, 0x10106, false },
	{ PERF_TYPE_HW_CACHE, 0x00200, true },	/* an event that counts nothing */
	{ PERF_TYPE_HW_CACHE, 0x00101, false },	/* an invalid combination */
	{ PERF_TYPE_HW_CACHE, 0x00007, false },
	{ PERF_TYPE_HW_CACHE, 0x00300, false },
	{ PERF_TYPE_HW_CACHE, 0x20000, false },
	{ PERF_TYPE_HW_CACHE, 0xffffffff, false },
	{ PERF_TYPE_RAW, 0x0000, false },
	{ PERF_TYPE_RAW, 0x00c0, true },
	{ PERF_TYPE_RAW, 0x01c0, false },	/* whose period is limited */
	{ PERF_TYPE_RAW, 0x003c, false },
	{ PERF_TYPE_RAW, 0x0300, false },	/* fixed counter 2 */
	{ PERF_TYPE_RAW, SLOTS, false },	/* where there are any */
	{ PERF_TYPE_RAW, METRIC, false },
	{ PERF_TYPE_RAW, 0x00c4, false },
	{ PERF_TYPE_RAW, 0x0148, false },
	{ PERF_TYPE_RAW, 0x08a3, false },
	{ PERF_TYPE_RAW, 0x82d0, false },
	{ PERF_TYPE_RAW, 0x01b7, true },	/* offcore response */
	{ PERF_TYPE_RAW, 0x01bb, false },
	{ PERF_TYPE_RAW, 0x02b7, false },
	{ PERF_TYPE_RAW, 0x012a, false },
	{ PERF_TYPE_RAW, 0x012b, false },
	{ PERF_TYPE_RAW, 0x01cd, true },	/* load latency */
	{ PERF_TYPE_RAW, 0x02cd, false },
	{ PERF_TYPE_RAW, 0x100b, false },
	{ PERF_TYPE_RAW, 0x05d0, false },
	{ PERF_TYPE_RAW, 0x06d0, false },
	{ PERF_TYPE_RAW, 0x01c6, true },	/* front end */
	{ PERF_TYPE_RAW, 0x02c6, false },
	{ PERF_TYPE_RAW, 0x03c6, false },
	{ PERF_TYPE_RAW, 0x40ad, false },
	{ PERF_TYPE_RAW, 0x04c2, false },
	{ PERF_TYPE_RAW, GUEST_LBR, false },
	{ PERF_TYPE_RAW, 0x0003, false },	/* AMD: a pair, or three of family 15h's */
	{ PERF_TYPE_RAW, 0x002e, false },	/* family 15h: two */
	{ PERF_TYPE_RAW, 0x0331, false },	/* family 15h: none */
	{ PERF_TYPE_RAW, 0x00e9, false },	/* the northbridge's */
	{ PERF_TYPE_RAW, 0x1000007c0, false },	/* a code of twelve bits */
	{ PERF_TYPE_RAW, 0xffff, false },
	{ PERF_TYPE_RAW, ~0ULL, false },
	{ 4711, 0, false },
};

/*
 * Faults, and values that may be faults in combination: they are added to an
 * attr bit by bit.
 */
static const struct perf_event_attr fault[] = {
	{ .config1 = 1 },
	{ .config1 = 1 << 12 },
	{ .config1 = 1 << 16 },
	{ .config1 = 1ULL << 63 },
	{ .config1 = ~0ULL },
	{ .config2 = ~0ULL },
	/* rpmu has its own fields in config3 and config4. */
	{ .precise_ip = 1 },
	{ .precise_ip = 2 },
	{ .precise_ip = 3 },
	{ .sample_period = 1 },
	{ .sample_period = 31 },
	{ .sample_period = 32 },
	{ .sample_period = 127 },
	{ .sample_period = 128 },
	{ .sample_period = 1 << 20 },
	{ .sample_period = 0x7fffffff },
	{ .sample_period = 1ULL << 62 },
	{ .freq = 1, .sample_freq = 1000 },
	{ .config = 1 << 18 },				/* edge */
	{ .config = 1 << 19 },				/* pin control */
	{ .config = ANY },
	{ .config = 1 << 23 | 1 << 24 },		/* inv, cmask */
	{ .config = IN_TX },
	{ .config = IN_TX_CP },
	{ .exclude_user = 1 },
	{ .exclude_kernel = 1, .exclude_hv = 1 },
	{ .exclude_host = 1 },
	{ .exclude_guest = 1 },
	{ .exclude_idle = 1 },
	{ .pinned = 1 },
	{ .exclusive = 1 },
	{ .inherit = 1 },
	{ .aux_output = 1 },
	{ .sample_type = PERF_SAMPLE_READ },
	{ .sample_type = PERF_SAMPLE_DATA_SRC },
	{ .sample_type = PERF_SAMPLE_REGS_USER, .sample_regs_user = XMM },
	{ .sample_type = PERF_SAMPLE_REGS_INTR, .sample_regs_intr = XMM },
	{ .sample_type = PERF_SAMPLE_BRANCH_STACK,
	  .branch_sample_type = PERF_SAMPLE_BRANCH_ANY },
	{ .sample_type = PERF_SAMPLE_BRANCH_STACK,
	  .branch_sample_type = PERF_SAMPLE_BRANCH_USER |
				PERF_SAMPLE_BRANCH_CALL_STACK },
	{ .sample_type = PERF_SAMPLE_BRANCH_STACK,
	  .branch_sample_type = PERF_SAMPLE_BRANCH_COUNTERS },
};

static void add(struct perf_event_attr *attr, const struct perf_event_attr *more)
{
	const unsigned char *from = (const unsigned char *)more;
	unsigned char *to = (unsigned char *)attr;
	unsigned int i;

	for (i = 0; i < sizeof(*attr); i++)
		to[i] |= from[i];
}

struct answers {
	unsigned int nr;
	unsigned char error[MAX_ANSWERS];
};

/* The results of this run, and those of the built-in driver. */
static struct answers now, built_in;

static void compare(struct __test_metadata *_metadata,
		    const struct perf_event_attr *attr, int error)
{
	unsigned int nr = now.nr++;

	ASSERT_GT(MAX_ANSWERS, nr);
	now.error[nr] = error;
	if (!built_in.nr)
		return;
	ASSERT_GT(built_in.nr, nr);
	/*
	 * A call stack for a counting event, which never samples: before
	 * Haswell, the built-in driver has no memory to save one.
	 */
	if (built_in.error[nr] == ENOMEM && !error &&
	    attr->branch_sample_type & PERF_SAMPLE_BRANCH_CALL_STACK)
		return;
	/*
	 * If a metric has a bit of attr.config that no event has, the built-in
	 * driver treats it as another event, which counts all slots.
	 */
	if (!built_in.error[nr] && error == EINVAL &&
	    attr->type == PERF_TYPE_RAW && attr->config > METRIC &&
	    (attr->config & 0xffff) == METRIC)
		return;
	EXPECT_EQ(built_in.error[nr], error) {
		TH_LOG("%u: \"%s\" instead of \"%s\"", nr, strerror(error),
		       strerror(built_in.error[nr]));
		TH_LOG("type %u config %#llx config1 %#llx", attr->type,
		       attr->config, attr->config1);
		TH_LOG("period %llu precise %u sample_type %#llx",
		       attr->sample_period, attr->precise_ip, attr->sample_type);
	}
}

static void try(struct __test_metadata *_metadata, struct perf_event_attr attr,
		int group_fd)
{
	int fd = perf_open_self(&attr, group_fd);

	compare(_metadata, &attr, fd < 0 ? errno : 0);
	if (fd >= 0)
		close(fd);
}

static struct perf_event_attr right(unsigned int b)
{
	return counting(base[b].type, base[b].config);
}

/*
 * Returns whether Intel's lists restrict two events to the same counter, and the
 * built-in driver's tables do not. That driver accepts groups of both, in which
 * one of them counts nothing.
 */
static bool share_a_counter(unsigned int a, unsigned int b)
{
	static const struct {
		enum cpu_model model;
		__u64 config;
		__u64 mask;
	} missing[] = {
		{ MODEL_NEHALEM, 0x100b, ~0ULL },
		{ MODEL_WESTMERE, 0x100b, ~0ULL },
		{ MODEL_IVY_BRIDGE, 0x00cd, ~0xff00ULL },
		{ MODEL_BROADWELL, 0x01c0, ~0ULL },
		{ MODEL_BROADWELL, 0x01cd, ~0ULL },
	};
	unsigned int i;

	if (base[a].type != PERF_TYPE_RAW || base[b].type != PERF_TYPE_RAW)
		return false;
	/*
	 * Without PERF_METRICS, as in Xen's guests, a metric counts all slots on
	 * the fixed counter of the slots.
	 */
	if (fixed_counters() > 3 && access(CPU_PMU "/events/topdown-retiring", F_OK) &&
	    base[a].config + base[b].config == SLOTS + METRIC &&
	    (base[a].config == SLOTS || base[b].config == SLOTS))
		return true;
	for (i = 0; i < ARRAY_SIZE(missing); i++)
		if (missing[i].model == cpu_model() &&
		    (base[a].config & missing[i].mask) == missing[i].config &&
		    (base[b].config & missing[i].mask) == missing[i].config)
			return true;
	return false;
}

static void faults(struct __test_metadata *_metadata, unsigned int b, bool pairs)
{
	struct perf_event_attr attr = right(b);
	unsigned int i, j;

	try(_metadata, attr, -1);
	for (i = 0; i < ARRAY_SIZE(fault); i++) {
		attr = right(b);
		add(&attr, &fault[i]);
		try(_metadata, attr, -1);
		for (j = 0; pairs && j < i; j++) {
			attr = right(b);
			add(&attr, &fault[i]);
			add(&attr, &fault[j]);
			try(_metadata, attr, -1);
		}
	}
}

/*
 * On family 15h, an event of the load-store unit with two bits of the unit mask
 * is refused. A built-in driver without CONFIG_PERF_EVENTS_AMD_BRS accepts it,
 * because it uses the constraints of family 19h for 15h.
 */
static bool lacks_constraints(void)
{
	struct perf_event_attr attr = counting(PERF_TYPE_RAW, 0x0331);
	int fd;

	if (!is_amd() || cpu_family() != 0x15)
		return false;
	fd = perf_open_self(&attr, -1);
	if (fd < 0)
		return false;
	close(fd);
	return true;
}

/*
 * Keeps an event open, which never counts: with the first event, the built-in
 * driver allocates the buffers of PEBS for all CPUs, and with the last one it
 * frees them, which takes longer than all the rest of these tests.
 */
static void __attribute__((constructor)) keep_buffers(void)
{
	const struct perf_event_attr attr =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);

	perf_open_self(&attr, -1);
}

/* Starts a list; returns the reason why the list cannot be used, or NULL. */
static const char *begin(const char *list)
{
	char path[64];
	FILE *file;

	now.nr = 0;
	built_in.nr = 0;
	if (!on_rpmu())
		return lacks_constraints() ?
			"the built-in driver has no constraints of family 15h here" : NULL;
	snprintf(path, sizeof(path), KEPT "%s", list);
	file = fopen(path, "r");
	if (file) {
		built_in.nr = fread(built_in.error, 1, MAX_ANSWERS, file);
		fclose(file);
	}
	return built_in.nr ? NULL : "the built-in driver has left no answers to compare with";
}

static void end(struct __test_metadata *_metadata, const char *list)
{
	unsigned int i, refused = 0;
	char path[64];
	FILE *file;

	for (i = 0; i < now.nr; i++)
		refused += now.error[i] != 0;
	TH_LOG("%u of %u are refused", refused, now.nr);
	if (on_rpmu()) {
		EXPECT_EQ(built_in.nr, now.nr);
		return;
	}
	snprintf(path, sizeof(path), KEPT "%s", list);
	file = fopen(path, "w");
	ASSERT_NE(NULL, file);
	EXPECT_EQ(now.nr, fwrite(now.error, 1, now.nr, file));
	EXPECT_EQ(0, fclose(file));
}

/*
 * As many events as there are general-purpose counters count correctly, in a group.
 * On rpmu, these equal events may share a counter.
 */
static void expect_untouched(struct __test_metadata *_metadata)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_BRANCHES);
	struct one_count count;
	unsigned int i;
	int fd[32];

	ASSERT_GE(32, gp_counters());
	for (i = 0; i < gp_counters(); i++) {
		attr.exclude_kernel = may_count_user_alone(i);
		attr.disabled = i == 0;
		fd[i] = perf_open_self(&attr, i ? fd[0] : -1);
		ASSERT_LE(0, fd[i]);
	}
	counted_loop(fd[0], PERF_IOC_FLAG_GROUP, LOOPS);
	for (i = 0; i < gp_counters(); i++) {
		ASSERT_TRUE(read_one(fd[i], &count));
		EXPECT_EQ(count.enabled, count.running);
		EXPECT_LE(LOOP_BRANCHES(LOOPS), count.value);
		if (may_count_user_alone(i))
			EXPECT_GE(LOOP_BRANCHES(LOOPS) + 1, count.value);
		close(fd[i]);
	}
}

TEST(one_fault_and_two)
{
	const char *why;
	unsigned int b;

	why = begin("faults");
	if (why)
		SKIP(return, "%s", why);
	for (b = 0; b < ARRAY_SIZE(base); b++)
		faults(_metadata, b, base[b].pairs);
	end(_metadata, "faults");
	expect_untouched(_metadata);
}

/* Inverts each bit of config, and sets each bit of config1. */
TEST(every_bit)
{
	unsigned int b, bit;
	struct perf_event_attr attr;
	const char *why;

	why = begin("bits");
	if (why)
		SKIP(return, "%s", why);
	for (b = 0; b < ARRAY_SIZE(base); b++) {
		for (bit = 0; bit < 64; bit++) {
			attr = right(b);
			attr.config ^= 1ULL << bit;
			try(_metadata, attr, -1);
			attr = right(b);
			attr.config1 = 1ULL << bit;
			try(_metadata, attr, -1);
		}
	}
	end(_metadata, "bits");
	expect_untouched(_metadata);
}

/* Groups of two events, while an event outside of them counts. */
TEST(groups_of_two)
{
	const struct perf_event_attr counts =
		counting_user(PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS);
	int fd = perf_open_self(&counts, -1);
	struct perf_event_attr attr;
	unsigned int a, b, value;
	const char *why;
	int leader;

	why = begin("groups");
	if (why)
		SKIP(return, "%s", why);
	ASSERT_LE(0, fd);
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_ENABLE, 0));
	for (a = 0; a < ARRAY_SIZE(base); a++) {
		attr = right(a);
		attr.config1 = 1;
		leader = perf_open_self(&attr, -1);
		compare(_metadata, &attr, leader < 0 ? errno : 0);
		if (leader < 0)
			continue;
		for (b = 0; b < ARRAY_SIZE(base); b++)
			for (value = 1; value <= 2; value++) {
				attr = right(b);
				if (attr.config == GUEST_LBR && a == b)
					continue;
				if (share_a_counter(a, b))
					continue;
				attr.disabled = 0;
				attr.config1 = value;
				try(_metadata, attr, leader);
			}
		close(leader);
	}
	end(_metadata, "groups");
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_DISABLE, 0));
	ASSERT_EQ(0, ioctl(fd, PERF_EVENT_IOC_RESET, 0));
	counted_loop(fd, 0, LOOPS);
	EXPECT_EQ(LOOP_INSTRUCTIONS(LOOPS), read_value(fd));
	close(fd);
	expect_untouched(_metadata);
}

/* Refusals for unprivileged users (perf_event_paranoid 1, 2). */
FIXTURE(unprivileged)
{
	char paranoid[16];
};

FIXTURE_VARIANT(unprivileged)
{
	const char *paranoid;
};

FIXTURE_VARIANT_ADD(unprivileged, paranoid_1)
{
	.paranoid = "1",
};

FIXTURE_VARIANT_ADD(unprivileged, paranoid_2)
{
	.paranoid = "2",
};

#define PARANOID "/proc/sys/kernel/perf_event_paranoid"

FIXTURE_SETUP(unprivileged)
{
	ASSERT_TRUE(read_line(PARANOID, self->paranoid, sizeof(self->paranoid)));
	ASSERT_TRUE(write_line(PARANOID, variant->paranoid));
}

FIXTURE_TEARDOWN(unprivileged)
{
	EXPECT_TRUE(write_line(PARANOID, self->paranoid));
}

TEST_F(unprivileged, one_fault)
{
	struct perf_event_attr attr;
	unsigned int b, i;
	gid_t none = 65534;
	const char *why;
	char list[32];

	snprintf(list, sizeof(list), "unprivileged-%s", variant->paranoid);
	why = begin(list);
	if (why)
		SKIP(return, "%s", why);
	/* Change only the effective user, so that the sysctl can be restored. */
	ASSERT_EQ(0, setresgid(-1, none, -1));
	ASSERT_EQ(0, setresuid(-1, 65534, -1));
	for (b = 0; b < ARRAY_SIZE(base); b++) {
		faults(_metadata, b, false);
		for (i = 0; i < ARRAY_SIZE(fault); i++) {
			attr = right(b);
			attr.exclude_kernel = 1;
			attr.exclude_hv = 1;
			add(&attr, &fault[i]);
			try(_metadata, attr, -1);
		}
	}
	ASSERT_EQ(0, setresuid(-1, 0, -1));
	ASSERT_EQ(0, setresgid(-1, 0, -1));
	end(_metadata, list);
	expect_untouched(_metadata);
}

TEST_HARNESS_MAIN
