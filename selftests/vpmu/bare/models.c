// SPDX-License-Identifier: GPL-2.0
/*
 * The CPU models, from Intel's manuals: SDM vol. 3, chapter 20 (by
 * microarchitecture) and vol. 4 (MSRs), and events and their counters from
 * Intel's event lists. Independent of the emulated PMU's tables.
 */
#include <linux/array_size.h>
#include <linux/kernel.h>
#include <asm/cpu_device_id.h>

#include "bare.h"

/*
 * A round of run.S has two conditional branches. The first is never taken, the
 * second in all rounds except the last.
 */
static const struct branch_class nehalem_branches[] = {
	{ "all, precise",	0x04c4, 5, 0, 30511711 },
	{ "conditional",	0x01c4, 2, 0, 30306100 },
	{ "near call",		0x02c4, 1, 0, 2003 },
	{ }
};

static const struct branch_class sandy_bridge_branches[] = {
	{ "all",		0x00c4, 5, 0, 30511711 },
	{ "conditional",	0x01c4, 2, 0, 30306100 },
	{ "near call",		0x02c4, 1, 0, 2003 },
	{ "near return",	0x08c4, 1, 0, 2303 },
	{ "not taken",		0x10c4, 1, 1, 200008 },
	{ "near taken",		0x20c4, 4, -1, 30310398 },
	{ "far",		0x40c4, 0, 0, 1305 },
	{ }
};

static const struct branch_class ice_lake_branches[] = {
	{ "all",		0x00c4, 5, 0, 30511711 },
	{ "conditional",	0x11c4, 2, 0, 30306100 },
	{ "conditional taken",	0x01c4, 1, -1, 30306100 - 200008 },
	{ "near call",		0x02c4, 1, 0, 2003 },
	{ "near return",	0x08c4, 1, 0, 2303 },
	{ "not taken",		0x10c4, 1, 1, 200008 },
	{ "near taken",		0x20c4, 4, -1, 30310398 },
	{ "far",		0x40c4, 0, 0, 1305 },
	{ }
};

static const struct branch_class goldmont_branches[] = {
	{ "all",		0x00c4, 5, 0, 30511711 },
	{ "conditional",	0x7ec4, 2, 0, 30306100 },
	{ "conditional taken",	0xfec4, 1, -1, 30306100 - 200008 },
	{ "near call",		0xf9c4, 1, 0, 2003 },
	{ "near return",	0xf7c4, 1, 0, 2303 },
	{ "taken",		0x80c4, 4, -1, 30310398 + 1305 },
	{ "far",		0xbfc4, 0, 0, 1305 },
	{ }
};

static const struct branch_class tremont_branches[] = {
	{ "all",		0x00c4, 5, 0, 30511711 },
	{ "conditional",	0x7ec4, 2, 0, 30306100 },
	{ "conditional taken",	0xfec4, 1, -1, 30306100 - 200008 },
	{ "near call",		0xf9c4, 1, 0, 2003 },
	{ "near return",	0xf7c4, 1, 0, 2303 },
	{ "far",		0xbfc4, 0, 0, 1305 },
	{ }
};

static const struct branch_class gracemont_branches[] = {
	{ "all",		0x00c4, 5, 0, 30511711 },
	{ "conditional",	0x7ec4, 2, 0, 30306100 },
	{ "conditional taken",	0xfec4, 1, -1, 30306100 - 200008 },
	{ "near call",		0xf9c4, 1, 0, 2003 },
	{ "near return",	0xf7c4, 1, 0, 2303 },
	{ "near taken",		0xc0c4, 4, -1, 30310398 },
	{ "far",		0xbfc4, 0, 0, 1305 },
	{ }
};

static const struct placed_event nehalem_placed[] = {
	{ 0x0151, { 0x03, 0x03 } },		/* L1D.REPL */
	{ }
};

static const struct placed_event sandy_bridge_placed[] = {
	{ 0x0148, { 0x04, 0x04 } },		/* L1D_PEND_MISS.PENDING */
	{ 0x01c0, { 0x02, 0x02 }, true },	/* INST_RETIRED.PREC_DIST */
	/* MEM_UOPS_RETIRED.ALL_LOADS: on 0-3 alone, also with one thread */
	{ 0x81d0, { 0x0f, 0x0f } },
	{ }
};

static const struct placed_event skylake_placed[] = {
	{ 0x01c0, { 0x02, 0x02 }, true },	/* INST_RETIRED.PREC_DIST */
	{ 0x81d0, { 0x0f, 0x0f } },		/* MEM_INST_RETIRED.ALL_LOADS */
	{ }
};

static const struct placed_event ice_lake_placed[] = {
	{ 0x0148, { 0x0f, 0x0f } },		/* L1D_PEND_MISS.PENDING */
	{ 0x81d0, { 0x0f, 0x0f } },		/* MEM_INST_RETIRED.ALL_LOADS */
	{ }
};

static const struct placed_event silvermont_placed[] = {
	{ 0x4004, { 0x03, 0x03 } },		/* MEM_UOPS_RETIRED.ALL_LOADS */
	{ 0x81d0, { } },			/* not listed */
	{ }
};

static const struct placed_event tremont_placed[] = {
	{ 0x81d0, { 0x0f, 0x0f } },		/* MEM_UOPS_RETIRED.ALL_LOADS */
	{ }
};

static const struct placed_event gracemont_placed[] = {
	{ 0x81d0, { 0x3f, 0x3f } },		/* MEM_UOPS_RETIRED.ALL_LOADS */
	{ }
};

static const struct placed_event crestmont_placed[] = {
	{ 0x81d0, { 0xff, 0xff } },		/* MEM_UOPS_RETIRED.ALL_LOADS */
	{ }
};

static const struct model models[] = {
	{
		.name = "Nehalem",
		.vfm = INTEL_NEHALEM_EP,
		.version = 3,
		.generals = { 4, 4 },
		.fixed = 3,
		.events = 7,
		/* reference cycles, mispredicted branches (AAJ80) */
		.missing = BIT(2) | BIT(6),
		.any_thread = true,
		.pin_control = true,
		.offcore_rsp = 1,
		.offcore_per_core = true,
		.offcore_event = 0x01b7,
		.lbr_format = 3,
		.lbr_depth = 16,
		.pebs_format = 1,
		.branches = nehalem_branches,
		.placed = nehalem_placed,
	}, {
		.name = "Westmere",
		.vfm = INTEL_WESTMERE_EP,
		.version = 3,
		.generals = { 4, 4 },
		.fixed = 3,
		.events = 7,
		.missing = BIT(2),
		.any_thread = true,
		.pin_control = true,
		.offcore_rsp = 2,
		.offcore_per_core = true,
		.offcore_event = 0x01b7,
		.lbr_format = 3,
		.lbr_depth = 16,
		.pebs_format = 1,
		.branches = nehalem_branches,
		.placed = nehalem_placed,
	}, {
		.name = "Sandy Bridge",
		.vfm = INTEL_SANDYBRIDGE,
		.version = 3,
		.generals = { 8, 4 },
		.fixed = 3,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.ht_leak = true,
		.lbr_format = 3,
		.lbr_depth = 16,
		.pebs_format = 1,
		.pebs_store = true,
		.branches = sandy_bridge_branches,
		.placed = sandy_bridge_placed,
	}, {
		.name = "Ivy Bridge",
		.vfm = INTEL_IVYBRIDGE,
		.version = 3,
		.generals = { 8, 4 },
		.fixed = 3,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.ht_leak = true,
		.lbr_format = 3,
		.lbr_depth = 16,
		.pebs_format = 1,
		.pebs_store = true,
		.branches = sandy_bridge_branches,
		.placed = sandy_bridge_placed,
	}, {
		.name = "Haswell",
		.vfm = INTEL_HASWELL,
		.version = 3,
		.generals = { 8, 4 },
		.fixed = 3,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.ht_leak = true,
		.prefetches_load = true,
		.lbr_format = 4,
		.lbr_depth = 16,
		.pebs_format = 2,
		.branches = sandy_bridge_branches,
		.placed = sandy_bridge_placed,
	}, {
		.name = "Broadwell",
		.vfm = INTEL_BROADWELL,
		.version = 3,
		.generals = { 8, 4 },
		.fixed = 3,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.prefetches_load = true,
		.lbr_format = 4,
		.lbr_depth = 16,
		.pebs_format = 2,
		.branches = sandy_bridge_branches,
		.placed = sandy_bridge_placed,
	}, {
		.name = "Skylake",
		.vfm = INTEL_SKYLAKE,
		.version = 4,
		.generals = { 8, 4 },
		.fixed = 3,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.frontend = true,
		.prefetches_load = true,
		.lbr_format = 5,
		.lbr_depth = 32,
		.pebs_format = 3,
		.branches = sandy_bridge_branches,
		.placed = skylake_placed,
	}, {
		.name = "Ice Lake",
		.vfm = INTEL_ICELAKE_X,
		.version = 5,
		.generals = { 8, 8 },
		.fixed = 4,
		.events = 8,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.frontend = true,
		.slots_per_cycle = 5,
		.metrics = 4,
		.prefetches_load = true,
		.lbr_format = 5,
		.lbr_depth = 32,
		.pebs_format = 4,
		.branches = ice_lake_branches,
		.placed = ice_lake_placed,
	}, {
		.name = "Golden Cove",
		.vfm = INTEL_SAPPHIRERAPIDS_X,
		.version = 5,
		.generals = { 8, 8 },
		.fixed = 4,
		.events = 8,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x012a,	/* OCR */
		.frontend = true,
		.slots_per_cycle = 6,
		.metrics = 8,
		.prefetches_load = true,
		.lbr_format = 0x3f,
		.lbr_depth = 32,
		.pebs_format = 4,
		.pebs_cache_latency = 8,
		.branches = ice_lake_branches,
		.placed = ice_lake_placed,
	}, {
		.name = "Redwood Cove",
		.vfm = INTEL_GRANITERAPIDS_X,
		.version = 5,
		.generals = { 8, 8 },
		.fixed = 4,
		.events = 8,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x012a,	/* OCR */
		.frontend = true,
		.slots_per_cycle = 6,
		.metrics = 8,
		.prefetches_load = true,
		.lbr_format = 0x3f,
		.lbr_depth = 32,
		.pebs_format = 4,
		.pebs_cache_latency = 8,
		.pebs_timing = true,
		.branches = ice_lake_branches,
		.placed = ice_lake_placed,
	}, {
		.name = "Silvermont",
		.vfm = INTEL_ATOM_SILVERMONT_D,
		.version = 3,
		.generals = { 2, 2 },
		.fixed = 3,
		.width = 40,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.offcore_bits = { 0x768005ffff, 0x368005ffff },
		.lbr_format = 1,
		.lbr_depth = 8,
		.lbr_low = true,
		.pebs_format = 2,
		.pebs_first = true,
		.pebs_no_addresses = true,
		.no_load_latency = true,
		.loads = 0x4004,
		.branches = goldmont_branches,
		.placed = silvermont_placed,
	}, {
		.name = "Goldmont",
		.vfm = INTEL_ATOM_GOLDMONT_D,
		.version = 4,
		.generals = { 4, 4 },
		.fixed = 3,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.offcore_bits = { 0x760005ffbf, 0x360005ffbf },
		.lbr_format = 6,
		.lbr_depth = 32,
		.pebs_format = 3,
		.pebs_first = true,
		.pebs_any_event = true,
		.no_load_latency = true,
		.branches = goldmont_branches,
		.placed = tremont_placed,
	}, {
		.name = "Goldmont Plus",
		.vfm = INTEL_ATOM_GOLDMONT_PLUS,
		.version = 4,
		.generals = { 4, 4 },
		.fixed = 3,
		.events = 7,
		.any_thread = true,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,
		.offcore_bits = { 0x760005ffbf, 0x360005ffbf },
		.lbr_format = 7,
		.lbr_depth = 32,
		.pebs_format = 3,
		.pebs_extended = true,
		.no_load_latency = true,
		.branches = goldmont_branches,
		.placed = tremont_placed,
	}, {
		.name = "Tremont",
		.vfm = INTEL_ATOM_TREMONT_D,
		.version = 5,
		.generals = { 4, 4 },
		.fixed = 3,
		.events = 7,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,	/* OCR */
		.offcore_bits = { 0x800ff0ffffff9fff, 0x000ff0ffffff9fff },
		.lbr_format = 7,
		.lbr_depth = 32,
		.pebs_format = 4,
		.no_load_latency = true,
		.branches = tremont_branches,
		.placed = tremont_placed,
	}, {
		.name = "Gracemont",
		.vfm = INTEL_ATOM_GRACEMONT,
		.version = 5,
		.generals = { 6, 6 },
		.fixed = 3,
		.events = 7,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,	/* OCR */
		.offcore_bits = { 0x8003f03fffffffff, 0x0003f03fffffffff },
		.lbr_format = 0x3f,
		.lbr_depth = 32,
		.pebs_format = 4,
		.pebs_latency_event = 0x05d0,
		.pebs_cache_latency = 8,
		.branches = gracemont_branches,
		.placed = gracemont_placed,
	}, {
		.name = "Crestmont",
		.vfm = INTEL_ATOM_CRESTMONT_X,
		.version = 5,
		.generals = { 8, 8 },
		.fixed = 3,
		.events = 7,
		.full_width = true,
		.offcore_rsp = 2,
		.offcore_event = 0x01b7,	/* OCR */
		.offcore_bits = { 0x800ff3ffffffffff, 0x000ff3ffffffffff },
		.lbr_format = 0x3f,
		.lbr_depth = 32,
		.pebs_format = 4,
		.pebs_latency_event = 0x05d0,
		.pebs_cache_latency = 8,
		.branches = gracemont_branches,
		.placed = crestmont_placed,
	},
};

const struct model *find_model(u32 vfm)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(models); i++) {
		if (models[i].vfm == vfm)
			return &models[i];
	}
	return NULL;
}
