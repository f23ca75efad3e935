// SPDX-License-Identifier: GPL-2.0

//! The known differences of the tables of Intel's models.

use rpmu_logic::logic::regs::event_select::EventSelect;

use super::Exception;

/// The exceptions of each model, by its name in sysfs, or in messages for a hybrid's cores.
pub const EXCEPTIONS: &[(&str, &[Exception])] = &[
    ("nehalem", NEHALEM),
    ("westmere", WESTMERE),
    ("sandybridge", SANDY_BRIDGE),
    ("ivybridge", IVY_BRIDGE),
    ("haswell", HASWELL),
    ("broadwell", BROADWELL),
    ("skylake", SKYLAKE),
    ("icelake", ICE_LAKE),
    ("sapphire_rapids", GOLDEN_COVE),
    ("granite_rapids", GOLDEN_COVE),
    ("Alder Lake (big cores)", GOLDEN_COVE),
    ("silvermont", SILVERMONT),
    ("goldmont_plus", GOLDMONT),
    ("Tremont", TREMONT),
    ("gracemont", GRACEMONT),
    ("Alder Lake (small cores)", GRACEMONT),
    ("crestmont", GRACEMONT),
];

#[rustfmt::skip]
const NEHALEM: &[Exception] = &[
    Exception::from_list(0x01b7, 0xffff, "OFFCORE_RESPONSE: counter 2 alone in the lists of Nehalem EP, EX and Westmere EX, any in those of Westmere DP and SP; SDM vol. 3, 18.8.1.3 (later 20.3.1.1.3): any of the four IA32_PERFEVTSELx"),
    Exception::from_mainline(0x4c, 0xff, "LOAD_HIT_PRE: counters 0 and 1 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x52, 0xff, "L1D_CACHE_PREFETCH_LOCK_FB_HIT: counters 0 and 1 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x53, 0xff, "L1D_CACHE_LOCK_FB_HIT: counters 0 and 1 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x100b, 0xffff, "MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD: counter 3 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x100b, 0xffff, "MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD: counter 3 in Intel's lists, any of four in the built-in driver's table").precise(),
    Exception::from_mainline(0x010b, 0xffff, "MEM_INST_RETIRED.LOADS: precise in Intel's lists").precise(),
    Exception::from_mainline(0x020b, 0xffff, "MEM_INST_RETIRED.STORES: precise in Intel's lists").precise(),
    Exception::from_mainline(0x1080_01c0, 0xff80_ffff, "INST_RETIRED.TOTAL_CYCLES: precise in Intel's lists").precise(),
];

#[rustfmt::skip]
const WESTMERE: &[Exception] = &[
    Exception::from_list(0x01b7, 0xffff, "OFFCORE_RESPONSE: counter 2 alone in the lists of Nehalem EP, EX and Westmere EX, any in those of Westmere DP and SP; SDM vol. 3, 18.8.1.3 (later 20.3.1.1.3): any of the four IA32_PERFEVTSELx"),
    Exception::from_mainline(0x4c, 0xff, "LOAD_HIT_PRE: counters 0 and 1 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x4e, 0xff, "L1D_PREFETCH: counters 0 and 1 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x52, 0xff, "L1D_CACHE_PREFETCH_LOCK_FB_HIT: counters 0 and 1 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x100b, 0xffff, "MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD: counter 3 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x100b, 0xffff, "MEM_INST_RETIRED.LATENCY_ABOVE_THRESHOLD: counter 3 in Intel's lists, any of four in the built-in driver's table").precise(),
    Exception::from_mainline(0x010b, 0xffff, "MEM_INST_RETIRED.LOADS: precise in Intel's lists").precise(),
    Exception::from_mainline(0x020b, 0xffff, "MEM_INST_RETIRED.STORES: precise in Intel's lists").precise(),
    Exception::from_mainline(0x1080_01c0, 0xff80_ffff, "INST_RETIRED.TOTAL_CYCLES: precise in Intel's lists").precise(),
];

#[rustfmt::skip]
const SANDY_BRIDGE: &[Exception] = &[
    Exception::from_mainline(0x0248, 0xffff, "L1D_PEND_MISS.FB_FULL: any counter in Intel's lists; the built-in driver's line is for all unit masks of the event"),
    Exception::from_mainline(0x0148, 0xffff, "L1D_PEND_MISS.PENDING: counter 2 in Intel's lists, and in the built-in driver's table for counting; any of four in its table for precise sampling").precise(),
    Exception::with_one_thread(0x0180_010e, 0xff80_ffff), // UOPS_ISSUED.STALL_CYCLES
    Exception::with_one_thread(0x023c, 0xffff), // CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE
    Exception::with_one_thread(0x0279, 0xffff), // IDQ.EMPTY
    Exception::with_one_thread(0x9c, 0xff), // IDQ_UOPS_NOT_DELIVERED.*
    Exception::with_one_thread(0x01b7, 0xffff), // OFFCORE_RESPONSE_0
    Exception::with_one_thread(0x01bb, 0xffff), // OFFCORE_RESPONSE_1
    Exception::with_one_thread(0x0180_01c2, 0xff80_ffff), // UOPS_RETIRED.STALL_CYCLES
    Exception::with_one_thread(0x0a80_01c2, 0xff80_ffff), // UOPS_RETIRED.TOTAL_CYCLES
    Exception::with_one_thread(0x04c4, 0xffff), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0x04c5, 0xffff), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0x1eca, 0xffff), // FP_ASSIST.ANY
    Exception::with_one_thread(0xd4, 0xff), // MEM_LOAD_UOPS_MISC_RETIRED.*
];

#[rustfmt::skip]
const IVY_BRIDGE: &[Exception] = &[
    Exception::from_mainline(0xcd, 0xff, "MEM_TRANS_RETIRED: counter 3 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x0148, 0xffff, "L1D_PEND_MISS.PENDING: counter 2 in Intel's lists, and in the built-in driver's table for counting; any of four in its table for precise sampling").precise(),
    Exception::with_one_thread(0x0180_010e, 0xff80_ffff), // UOPS_ISSUED.STALL_CYCLES
    Exception::with_one_thread(0x023c, 0xffff), // CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE
    Exception::with_one_thread(0x0180_01b1, 0xff80_ffff), // UOPS_EXECUTED.STALL_CYCLES
    Exception::with_one_thread(0x01b7, 0xffff), // OFFCORE_RESPONSE_0
    Exception::with_one_thread(0x01bb, 0xffff), // OFFCORE_RESPONSE_1
    Exception::with_one_thread(0x0180_01c2, 0xff80_ffff), // UOPS_RETIRED.STALL_CYCLES
    Exception::with_one_thread(0x0a80_01c2, 0xff80_ffff), // UOPS_RETIRED.TOTAL_CYCLES
    Exception::with_one_thread(0x04c4, 0xffff), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0x04c5, 0xffff), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0x1eca, 0xffff), // FP_ASSIST.ANY
];

#[rustfmt::skip]
const HASWELL: &[Exception] = &[
    Exception::from_mainline(0x01cd, 0xffff, "MEM_TRANS_RETIRED.LOAD_LATENCY: counter 3 in Intel's lists, any of four in the built-in driver's table").precise(),
    Exception::from_mainline(0x0148, 0xffff, "L1D_PEND_MISS.PENDING: counter 2 in Intel's lists, and in the built-in driver's table for counting; any of four in its table for precise sampling").precise(),
    Exception::from_mainline(0xd0, 0xff, "MEM_UOPS_RETIRED, with unit masks that Intel's lists do not have: corrupting, as for counting; the built-in driver's table for precise sampling marks only the unit masks in the lists").precise(),
    Exception::with_one_thread(0x0180_010e, 0xff80_ffff), // UOPS_ISSUED.STALL_CYCLES
    Exception::with_one_thread(0x023c, 0xffff), // CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE
    Exception::with_one_thread(0x0279, 0xffff), // IDQ.EMPTY
    Exception::with_one_thread(0x9c, 0xff), // IDQ_UOPS_NOT_DELIVERED.*
    Exception::with_one_thread(0x02a3, 0xffff), // CYCLE_ACTIVITY.CYCLES_LDM_PENDING
    Exception::with_one_thread(0x05a3, 0xffff), // CYCLE_ACTIVITY.STALLS_L2_PENDING
    Exception::with_one_thread(0x06a3, 0xffff), // CYCLE_ACTIVITY.STALLS_LDM_PENDING
    Exception::with_one_thread(0x01b1, 0xffff), // UOPS_EXECUTED.*
    Exception::with_one_thread(0x01b7, 0xffff), // OFFCORE_RESPONSE_0
    Exception::with_one_thread(0x01bb, 0xffff), // OFFCORE_RESPONSE_1
    Exception::with_one_thread(0xbc, 0xff), // PAGE_WALKER_LOADS.*
    Exception::with_one_thread(0x0180_01c2, 0xff80_ffff), // UOPS_RETIRED.STALL_CYCLES
    Exception::with_one_thread(0x1080_01c2, 0xff80_ffff), // UOPS_RETIRED.TOTAL_CYCLES
    Exception::with_one_thread(0x04c4, 0xffff), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0x04c5, 0xffff), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0xc9, 0xff), // RTM_RETIRED.*
    Exception::with_one_thread(0x1eca, 0xffff), // FP_ASSIST.ANY
];

#[rustfmt::skip]
const BROADWELL: &[Exception] = &[
    Exception::from_mainline(EventSelect::USR, EventSelect::USR | EventSelect::OS, "events of user mode alone: counters 4 to 7 read 0 on real machines; the built-in driver uses them"),
    Exception::from_mainline(0x01c0, 0xffff, "INST_RETIRED.PREC_DIST: counter 1 in Intel's lists; the built-in driver has no line for it"),
    Exception::from_mainline(0x01cd, 0xffff, "MEM_TRANS_RETIRED.LOAD_LATENCY: counter 3 in Intel's lists, any of four in the built-in driver's table"),
    Exception::from_mainline(0x01cd, 0xffff, "MEM_TRANS_RETIRED.LOAD_LATENCY: counter 3 in Intel's lists, any of four in the built-in driver's table").precise(),
    Exception::from_mainline(0x0148, 0xffff, "L1D_PEND_MISS.PENDING: counter 2 in Intel's lists, and in the built-in driver's table for counting; any of four in its table for precise sampling").precise(),
    Exception::with_one_thread(0x0180_010e, 0xff80_ffff), // UOPS_ISSUED.STALL_CYCLES
    Exception::with_one_thread(0x023c, 0xffff), // CPU_CLK_UNHALTED.ONE_THREAD_ACTIVE
    Exception::with_one_thread(0x0279, 0xffff), // IDQ.EMPTY
    Exception::with_one_thread(0x9c, 0xff), // IDQ_UOPS_NOT_DELIVERED.*
    Exception::with_one_thread(0x03a0, 0xffff), // UOP_DISPATCHES_CANCELLED.SIMD_PRF
    Exception::with_one_thread(0x02a3, 0xffff), // CYCLE_ACTIVITY.CYCLES_MEM_ANY
    Exception::with_one_thread(0x04a3, 0xffff), // CYCLE_ACTIVITY.STALLS_TOTAL
    Exception::with_one_thread(0x05a3, 0xffff), // CYCLE_ACTIVITY.STALLS_L2_MISS
    Exception::with_one_thread(0x06a3, 0xffff), // CYCLE_ACTIVITY.STALLS_MEM_ANY
    Exception::with_one_thread(0x01b1, 0xffff), // UOPS_EXECUTED.*
    Exception::with_one_thread(0x01b7, 0xffff), // OFFCORE_RESPONSE_0
    Exception::with_one_thread(0x01bb, 0xffff), // OFFCORE_RESPONSE_1
    Exception::with_one_thread(0xbc, 0xff), // PAGE_WALKER_LOADS.*
    Exception::with_one_thread(0x0180_01c2, 0xff80_ffff), // UOPS_RETIRED.STALL_CYCLES
    Exception::with_one_thread(0x1080_01c2, 0xff80_ffff), // UOPS_RETIRED.TOTAL_CYCLES
    Exception::with_one_thread(0x04c4, 0xffff), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0x04c5, 0xffff), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0xc7, 0xff), // FP_ARITH_INST_RETIRED.*
    Exception::with_one_thread(0xc9, 0xff), // RTM_RETIRED.*
    Exception::with_one_thread(0x1eca, 0xffff), // FP_ASSIST.ANY
    Exception::with_one_thread(0xd3, 0xff), // MEM_LOAD_UOPS_L3_MISS_RETIRED.*
];

#[rustfmt::skip]
const SKYLAKE: &[Exception] = &[
    Exception::from_mainline(0x0a80_01c0, 0xff80_ffff, "INST_RETIRED.TOTAL_CYCLES_PS: counters 0, 2 and 3 in Intel's lists; the built-in driver takes it for PREC_DIST"),
    Exception::from_mainline(0x0a80_01c0, 0xff80_ffff, "INST_RETIRED.TOTAL_CYCLES_PS: counters 0, 2 and 3 in Intel's lists; the built-in driver has no line for it").precise(),
    Exception::with_one_thread(0x14a3, 0xffff), // CYCLE_ACTIVITY.STALLS_MEM_ANY
    Exception::with_one_thread(0x01b7, 0xffff), // OFFCORE_RESPONSE_0
    Exception::with_one_thread(0x01bb, 0xffff), // OFFCORE_RESPONSE_1
    Exception::with_one_thread(0x04c4, 0xffff), // BR_INST_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0x04c5, 0xffff), // BR_MISP_RETIRED.ALL_BRANCHES_PEBS
    Exception::with_one_thread(0xd3, 0xff), // MEM_LOAD_L3_MISS_RETIRED.*
    Exception::with_one_thread(0xd4, 0xff), // MEM_LOAD_MISC_RETIRED.*
];

#[rustfmt::skip]
const ICE_LAKE: &[Exception] = &[
    Exception::from_list(0x01b7, 0xffff, "OCR: counter 0 in the servers' list, counters 0 to 3 in the client cores', which have the same PMU").precise(),
    Exception::from_list(0x01bb, 0xffff, "OCR: counter 0 in the servers' list, counters 0 to 3 in the client cores', which have the same PMU").precise(),
    Exception::from_mainline(0x01b7, 0xffff, "OCR: counter 0 in Intel's list for servers; the built-in driver has no line for it").precise(),
    Exception::from_mainline(0x01bb, 0xffff, "OCR: counter 0 in Intel's list for servers; the built-in driver has no line for it").precise(),
    Exception::from_mainline(0x40cc, 0xffff, "MISC_RETIRED.PAUSE_INST: counter 0 in Intel's lists; the built-in driver has no line for it").precise(),
];

#[rustfmt::skip]
const GOLDEN_COVE: &[Exception] = &[
    Exception::from_mainline(0x012a, 0xfffe, "OCR: counter 0 in Intel's lists; the built-in driver has no line for it").precise(),
];

#[rustfmt::skip]
const SILVERMONT: &[Exception] = &[
    Exception::from_list(0x80c4, 0xffff, "BR_INST_RETIRED.ALL_TAKEN_BRANCHES: counters 0 and 1 in Intel's list; PEBS is on counter 0 alone (SDM vol. 3, PEBS of this core), as the list has it for the other events").precise(),
];

#[rustfmt::skip]
const GOLDMONT: &[Exception] = &[
    Exception::from_list(0x00c0, 0xffff, "INST_RETIRED.PREC_DIST: counter 0, which precise_ip 3 requests; the same select is INST_RETIRED.ANY_P, for any counter").precise(),
];

#[rustfmt::skip]
const TREMONT: &[Exception] = &[
    Exception::from_mainline(0x01b7, 0xffff, "OCR: counter 0 in Intel's lists; the built-in driver has no line for it").precise(),
    Exception::from_mainline(0x02b7, 0xffff, "OCR: counter 0 in Intel's lists; the built-in driver has no line for it").precise(),
];

#[rustfmt::skip]
const GRACEMONT: &[Exception] = &[
    Exception::from_mainline(0x05d0, 0xffff, "MEM_UOPS_RETIRED.LOAD_LATENCY: counters 0 and 1 in Intel's list; the built-in driver has no line for it"),
    Exception::from_mainline(0x01b7, 0xffff, "OCR: counter 0 in Intel's list; the built-in driver has no line for it").precise(),
    Exception::from_mainline(0x02b7, 0xffff, "OCR: counter 0 in Intel's list; the built-in driver has no line for it").precise(),
];
