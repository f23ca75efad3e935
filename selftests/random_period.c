// SPDX-License-Identifier: GPL-2.0
/*
 * Tests random sample periods: rand_mask and rand_seed in attr.config3. The
 * built-in driver ignores this field.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>

#include "kselftest_harness.h"
#include "perf_util.h"

#define PAGE		4096UL
#define PAGES		64UL
#define SAMPLES		2000
/* Instructions of each pass, and the number of blocks that end with a jump. */
#define LENGTH		128
#define BLOCKS		32
/* The loop's length divides both the period and the number of values under the mask. */
#define PERIOD		(100 * LENGTH)
#define MASK		0xfffULL
#define SEED(n)		((__u64)(n) << 32)
/* With 31 degrees of freedom, chi-square is above this in 1 % of all cases. */
#define CHI_SQUARE_31	52.19
#define REFUSALS	"/sys/kernel/debug/rpmu/refusals"

/* Ends each block with a jump, as the emulated PMU interrupts between blocks. */
static void __attribute__((__noipa__)) even_loop(unsigned long n)
{
	asm volatile(".p2align 6\n"
		     ".globl even_start, even_end\n"
		     "even_start:\n\t"
		     ".rept 31\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "jmp .+2\n\t"
		     ".endr\n\t"
		     "nop\n\t"
		     "nop\n\t"
		     "dec %[n]\n\t"
		     "jnz even_start\n"
		     "even_end:"
		     : [n] "+r" (n) : : "cc");
}

extern const char even_start[], even_end[];

/* Three bytes of nops and two of a jump. */
#define BLOCK_BYTES	5

struct sample {
	struct perf_event_header header;
	__u64 ip;
	__u64 period;
	__u64 value;
};

struct seen {
	unsigned int samples;
	unsigned int in_block[BLOCKS];
	__u64 shortest, longest, sum;
	/* The largest distance between the count and the sum of periods. */
	__u64 apart;
	/* All periods, to compare two runs. */
	__u64 period[SAMPLES + 8];
};

FIXTURE(random_period)
{
	struct sample_limits limits;
	struct seen *seen;
};

FIXTURE_SETUP(random_period)
{
	ASSERT_TRUE(run_on(sysconf(_SC_NPROCESSORS_ONLN) - 1));
	ASSERT_TRUE(lift_sample_limits(&self->limits));
	self->seen = calloc(2, sizeof(struct seen));
	ASSERT_NE(NULL, self->seen);
}

FIXTURE_TEARDOWN(random_period)
{
	free(self->seen);
	EXPECT_TRUE(put_back_sample_limits(&self->limits));
}

static struct perf_event_attr sampling(__u64 config3)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

	attr.sample_period = PERIOD;
	attr.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_PERIOD | PERF_SAMPLE_READ;
	attr.read_format = 0;
	attr.config3 = config3;
	return attr;
}

/* Samples the loop. */
static void sample_loop(struct __test_metadata *_metadata, __u64 config3, struct seen *seen)
{
	struct perf_event_attr attr = sampling(config3);
	int fd = perf_open_self(&attr, -1);
	struct perf_event_mmap_page *page;
	const struct sample *sample;
	unsigned int block;

	ASSERT_LE(0, fd);
	page = map_buffer(fd, PAGES);
	ASSERT_NE(MAP_FAILED, page);
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	even_loop((SAMPLES + 1UL) * (PERIOD + (config3 & MASK) / 2) / LENGTH);
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);

	memset(seen, 0, sizeof(*seen));
	seen->shortest = ~0ULL;
	while ((sample = take_sample(page))) {
		if (seen->samples < ARRAY_SIZE(seen->period))
			seen->period[seen->samples] = sample->period;
		seen->samples++;
		seen->sum += sample->period;
		if (sample->period < seen->shortest)
			seen->shortest = sample->period;
		if (sample->period > seen->longest)
			seen->longest = sample->period;
		if (sample->value - seen->sum > seen->apart)
			seen->apart = sample->value - seen->sum;
		block = (sample->ip - (unsigned long)even_start) / BLOCK_BYTES;
		if (sample->ip >= (unsigned long)even_start &&
		    sample->ip < (unsigned long)even_end)
			seen->in_block[block < BLOCKS ? block : BLOCKS - 1]++;
	}
	munmap(page, (PAGES + 1) * PAGE);
	close(fd);
}

static unsigned int most(const struct seen *seen)
{
	unsigned int i, most = 0;

	for (i = 0; i < BLOCKS; i++)
		if (seen->in_block[i] > most)
			most = seen->in_block[i];
	return most;
}

static double chi_square(const struct seen *seen)
{
	double sum = 0, expected = (double)seen->samples / BLOCKS;
	unsigned int i;

	for (i = 0; i < BLOCKS; i++)
		sum += (seen->in_block[i] - expected) * (seen->in_block[i] - expected) / expected;
	return sum;
}

/*
 * If the loop's length divides a fixed period, all samples are of the same
 * instruction.
 */
TEST_F(random_period, fixed_period_in_lock_step)
{
	struct seen *seen = self->seen;

	if (!is_tcg())
		SKIP(return, "hardware interrupts at no fixed distance");
	sample_loop(_metadata, 0, seen);
	EXPECT_LE(SAMPLES - 8, seen->samples);
	/* Except for samples after the loop. */
	EXPECT_LE(seen->samples - 2, most(seen));
	EXPECT_EQ(PERIOD, seen->shortest);
	EXPECT_EQ(PERIOD, seen->longest);
}

/* Random periods spread the samples over the loop evenly, in proportion to execution. */
TEST_F(random_period, random_periods_spread_evenly)
{
	struct seen *seen = self->seen;
	unsigned int seed;

	if (!on_rpmu())
		SKIP(return, "only rpmu has random periods");
	for (seed = 1; seed <= 3; seed++) {
		sample_loop(_metadata, SEED(seed) | MASK, seen);
		TH_LOG("%u samples, %u in the block with most, chi-square %.1f", seen->samples,
		       most(seen), chi_square(seen));
		EXPECT_LE(SAMPLES - 20, seen->samples);
		EXPECT_GT(CHI_SQUARE_31, chi_square(seen));
		EXPECT_LE(PERIOD, seen->shortest);
		EXPECT_GT(PERIOD + 64, seen->shortest);
		EXPECT_GE(PERIOD + MASK, seen->longest);
		EXPECT_LT(PERIOD + MASK - 64, seen->longest);
	}
}

/* A sample contains the period that has ended, so all periods add up to the count. */
TEST_F(random_period, periods_add_up)
{
	struct seen *seen = self->seen;

	if (!on_rpmu())
		SKIP(return, "only rpmu has random periods");
	sample_loop(_metadata, SEED(2) | MASK, seen);
	EXPECT_LE(SAMPLES - 20, seen->samples);
	/* A block on the emulated PMU; the skid on hardware. */
	EXPECT_GT(is_tcg() ? 8 : PERIOD, seen->apart);
}

/* The same seed gives the same periods; another seed, or none, gives others. */
TEST_F(random_period, seeds)
{
	const size_t half = SAMPLES / 2 * sizeof(__u64);
	struct seen *one = &self->seen[0], *other = &self->seen[1];

	if (!on_rpmu())
		SKIP(return, "only rpmu has random periods");
	sample_loop(_metadata, SEED(3) | MASK, one);
	sample_loop(_metadata, SEED(3) | MASK, other);
	EXPECT_EQ(0, memcmp(one->period, other->period, half));
	sample_loop(_metadata, SEED(4) | MASK, other);
	EXPECT_NE(0, memcmp(one->period, other->period, half));
	sample_loop(_metadata, MASK, one);
	sample_loop(_metadata, MASK, other);
	EXPECT_NE(0, memcmp(one->period, other->period, half));
}

/* Tries to open an event; returns the errno. */
static int refusal(const struct perf_event_attr *attr)
{
	int fd = perf_open_self(attr, -1);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

/* Returns whether the newest refusal has this reason. */
static bool explains(struct __test_metadata *_metadata, const char *reason)
{
	static char text[1 << 16];
	char *line;

	if (!read_file(REFUSALS, text, sizeof(text)))
		return false;
	line = strstr(text, "type=");
	if (line)
		*strchrnul(line, '\n') = '\0';
	if (line && strstr(line, reason))
		return true;
	TH_LOG("%s", line ?: "nothing");
	return false;
}

TEST_F(random_period, refusals)
{
	struct perf_event_attr attr = sampling(MASK), counts = attr, often = attr, precise = attr,
		wide = attr, seed = attr;
	const struct {
		struct perf_event_attr *attr;
		const char *reason;
	} bad[] = {
		{ &counts, ": rand_mask needs a sample period" },
		{ &often, ": rand_mask needs a fixed sample period, not a frequency" },
		{ &precise, ": rand_mask does not go with precise_ip" },
		{ &wide, ": rand_mask must be smaller than the sample period" },
		{ &seed, ": rand_seed needs rand_mask" },
	};
	unsigned int i;
	__u64 period;
	int fd;

	if (!on_rpmu())
		SKIP(return, "only rpmu has random periods");
	EXPECT_EQ(0, refusal(&attr));
	counts.sample_period = 0;
	often.freq = 1;
	often.sample_freq = 1000;
	precise.precise_ip = 1;
	wide.config3 = PERIOD;
	seed.config3 = SEED(1);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(EINVAL, refusal(bad[i].attr)) TH_LOG("case %u", i);
		EXPECT_TRUE(explains(_metadata, bad[i].reason)) TH_LOG("%s", bad[i].reason);
		EXPECT_TRUE(explains(_metadata, " config3=0x"));
	}
	wide.config3 = PERIOD - 1;
	EXPECT_EQ(0, refusal(&wide));

	/* The period cannot later become shorter than the mask either. */
	fd = perf_open_self(&attr, -1);
	ASSERT_LE(0, fd);
	period = MASK;
	EXPECT_EQ(-1, ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	EXPECT_EQ(EINVAL, errno);
	period = MASK + 1;
	EXPECT_EQ(0, ioctl(fd, PERF_EVENT_IOC_PERIOD, &period));
	close(fd);
}

/* The built-in driver accepts any value in these fields. */
TEST_F(random_period, ignored_by_the_built_in)
{
	struct perf_event_attr attr = counting_user(PERF_TYPE_RAW, RAW_INSTRUCTIONS);

	if (on_rpmu())
		SKIP(return, "the driver is rpmu");
	attr.config3 = ~0ULL;
	EXPECT_EQ(0, refusal(&attr));
}

TEST_HARNESS_MAIN
