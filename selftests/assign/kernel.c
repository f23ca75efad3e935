// SPDX-License-Identifier: GPL-2.0
/*
 * The C functions that compare.rs calls: the kernel's perf_assign_events(), a
 * copy of the code around it in x86_schedule_events(), and the emulated PMU's
 * count of instructions. Only one caller at a time: there is one set of events.
 */

#include <linux/bitops.h>
#include <linux/irqflags.h>
#include <linux/minmax.h>
#include <asm/msr.h>
#include "perf_event.h"

/* Instructions retired at CPL 0, see selftests/vpmu/README.md. */
#define MSR_VPMU_KERNEL_INSTRUCTIONS	0x4000ff06

#define FLAG_OVERLAP	1
#define FLAG_PAIR	2

static struct event_constraint constraints[X86_PMC_IDX_MAX];
static struct event_constraint *events[X86_PMC_IDX_MAX];
static int previous[X86_PMC_IDX_MAX];
static int assign[X86_PMC_IDX_MAX];
static int nr, wmin, wmax, nr_pairs;

bool assign_test_instructions(u64 *instructions)
{
	return !rdmsrq_safe(MSR_VPMU_KERNEL_INSTRUCTIONS, instructions);
}

unsigned long assign_test_irq_save(void)
{
	unsigned long flags;

	local_irq_save(flags);
	return flags;
}

void assign_test_irq_restore(unsigned long flags)
{
	local_irq_restore(flags);
}

void assign_test_clear(void)
{
	nr = 0;
	nr_pairs = 0;
	wmin = X86_PMC_IDX_MAX;
	wmax = 0;
}

/* Adds an event. had: the event's previous counter, or -1. */
void assign_test_add(u64 mask, unsigned int flags, int had)
{
	struct event_constraint *c = &constraints[nr];

	*c = (struct event_constraint) {
		.idxmsk64 = mask,
		.weight = hweight64(mask),
		.overlap = !!(flags & FLAG_OVERLAP),
		.flags = flags & FLAG_PAIR ? PERF_X86_EVENT_PAIR : 0,
	};
	events[nr] = c;
	previous[nr] = had;
	nr++;
	nr_pairs += !!(flags & FLAG_PAIR);
	wmin = min(wmin, c->weight);
	wmax = max(wmax, c->weight);
}

/* Returns the number of events without a counter. */
int assign_test_assign(int gpmax)
{
	return perf_assign_events(events, nr, wmin, wmax, gpmax - nr_pairs, assign);
}

int assign_test_counter(int event)
{
	return assign[event];
}

/*
 * Returns the number of events without a counter. A copy of
 * x86_schedule_events() of arch/x86/events/core.c, without the parts that depend
 * on the model, on the threads of a core, or on a perf_event.
 */
int assign_test_schedule(int gpmax)
{
	struct event_constraint *c;
	u64 used_mask = 0;
	int i, min_weight = X86_PMC_IDX_MAX, max_weight = 0;

	for (i = 0; i < nr; i++) {
		c = events[i];
		min_weight = min(min_weight, c->weight);
		max_weight = max(max_weight, c->weight);
	}

	for (i = 0; i < nr; i++) {
		u64 mask;

		c = events[i];
		if (previous[i] == -1)
			break;
		if (!test_bit(previous[i], c->idxmsk))
			break;
		mask = BIT_ULL(previous[i]);
		if (c->flags & PERF_X86_EVENT_PAIR)
			mask |= mask << 1;
		if (used_mask & mask)
			break;
		used_mask |= mask;
		assign[i] = previous[i];
	}
	if (i == nr)
		return 0;

	return perf_assign_events(events, nr, min_weight, max_weight,
				  gpmax - nr_pairs, assign);
}
