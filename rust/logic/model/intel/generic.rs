// SPDX-License-Identifier: GPL-2.0

//! Intel cores without a table: architectural performance monitoring as described by CPUID.
//!
//! Mainline: `intel_gen_event_constraints`, `intel_v5_gen_event_constraints`, `intel_pmu_init()`,
//! `arch/x86/events/intel/core.c`.

use crate::logic::{
    model::{
        cache_event::CacheEvents,
        checked,
        data_source::DataSources,
        extra_registers::ExtraRegisters,
        pebs_events::{
            PebsEvents,
            PreciseDistribution, //
        },
        Acknowledge,
        Cpus,
        CyclesAlias,
        EventConstraint,
        HardwareEvents,
        Model,
        Scope, //
    },
    regs::{
        counter::{
            CounterMask,
            MAX_FIXED,
            MAX_GP, //
        },
        period::PeriodRule, //
    },
};

/// The maximum number of general-purpose counters.
const GP: CounterMask = CounterMask::first_gp(MAX_GP);

#[rustfmt::skip]
const EVENT_CONSTRAINTS: &[EventConstraint] = checked(GP.union(CounterMask::first_fixed(3)), &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.CORE
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF
]);

#[rustfmt::skip]
const V5_EVENT_CONSTRAINTS: &[EventConstraint] = checked(GP.union(CounterMask::first_fixed(MAX_FIXED)), &[
    EventConstraint::fixed(0x00c0, 0), // INST_RETIRED.ANY
    EventConstraint::fixed(0x003c, 1), // CPU_CLK_UNHALTED.CORE
    EventConstraint::fixed(0x0300, 2), // CPU_CLK_UNHALTED.REF
    EventConstraint::fixed(0x0400, 3), // pseudo code: TOPDOWN.SLOTS
    EventConstraint::fixed(0x0500, 4), // pseudo code: fixed counter 4
    EventConstraint::fixed(0x0600, 5), // pseudo code: fixed counter 5
    EventConstraint::fixed(0x0700, 6), // pseudo code: fixed counter 6
    EventConstraint::fixed(0x0800, 7), // pseudo code: fixed counter 7
    EventConstraint::fixed(0x0900, 8), // pseudo code: fixed counter 8
    EventConstraint::fixed(0x0a00, 9), // pseudo code: fixed counter 9
    EventConstraint::fixed(0x0b00, 10), // pseudo code: fixed counter 10
    EventConstraint::fixed(0x0c00, 11), // pseudo code: fixed counter 11
    EventConstraint::fixed(0x0d00, 12), // pseudo code: fixed counter 12
    EventConstraint::fixed(0x0e00, 13), // pseudo code: fixed counter 13
    EventConstraint::fixed(0x0f00, 14), // pseudo code: fixed counter 14
    EventConstraint::fixed(0x1000, 15), // pseudo code: fixed counter 15
]);

/// Architectural performance monitoring, versions 2 to 4. (Version 1 has no GLOBAL_CTRL, and is not
/// supported.)
pub const GENERIC: Model = Model {
    pmu_name: "generic_arch_v2+",
    name: "Architectural",
    quirks: &[],
    cpus: &Cpus::intel([]),
    event_constraints: EVENT_CONSTRAINTS,
    pebs_events: PebsEvents::NONE,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::None,
    data_sources: DataSources::NONE,
    hardware_events: HardwareEvents::ARCHITECTURAL,
    cache_events: CacheEvents::NONE,
    extra_register_events: ExtraRegisters::NONE,
    offcore_scope: Scope::Thread,
    ht_erratum: None,
    need_kernel_mode: CounterMask::EMPTY,
    clearing_events: &[],
    acknowledge: Acknowledge::Early,
    lbr_filter: None,
    topdown_files: &[],
    tsx_files: &[],
    memory_files: &[],
    checkpointed: CounterMask::EMPTY,
    period_rule: PeriodRule::NONE,
};

/// Architectural performance monitoring from version 5 on, with up to 16 fixed counters.
pub const GENERIC_V5: Model = Model {
    pmu_name: "generic_arch_v5+",
    event_constraints: V5_EVENT_CONSTRAINTS,
    ..GENERIC
};
