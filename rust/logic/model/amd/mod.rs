// SPDX-License-Identifier: GPL-2.0

//! The models of AMD's and Hygon's processors: data only.

pub(super) mod family_15h;
pub(super) mod k8;
pub(super) mod zen;

#[cfg(test)]
mod tests;

use crate::logic::{
    model::{
        cache_event::CacheEvents,
        data_source::DataSources,
        extra_registers::ExtraRegisters,
        pebs_events::{
            PebsEvents,
            PreciseDistribution, //
        },
        Acknowledge,
        CyclesAlias,
        HardwareEvents,
        Model,
        Scope, //
    },
    regs::{
        counter::CounterMask,
        period::PeriodRule, //
    },
};

/// The values that all families share: none has Intel's features.
const COMMON: Model = Model {
    pmu_name: "AMD",
    name: "",
    quirks: &[],
    cpus: &[],
    event_constraints: &[],
    pebs_events: PebsEvents::NONE,
    precise_distribution: PreciseDistribution::AsOtherPrecise,
    cycles_alias: CyclesAlias::None,
    data_sources: DataSources::NONE,
    hardware_events: HardwareEvents::NONE,
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
