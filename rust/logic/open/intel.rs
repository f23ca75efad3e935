// SPDX-License-Identifier: GPL-2.0

//! The checks of attributes for Intel's PMUs.
//!
//! The checks, their order and their errnos are mainline's. This driver does not use BTS, and
//! refuses requests for it as mainline does on hardware without BTS. Mainline:
//! `x86_pmu_event_init()` to `hsw_hw_config()`, in `arch/x86/events/core.c` and
//! `arch/x86/events/intel/core.c`.
//!
//! Context: as for [`configure`](super::configure).

use super::{
    attr::{
        sample_type,
        Attributes,
        EventType,
        EXTENDED_REGISTERS, //
    },
    event::{
        period,
        Event, //
    },
    extensions::Extensions,
    precise,
    topdown, //
};
use crate::logic::{
    model::{
        demand::Requirement,
        EventConstraint,
        HardwareId,
        Quirk, //
    },
    pmu::PmuInfo,
    refusal::Refusal,
    regs::{
        event_select::EventSelect,
        extra_register::ExtraRegister,
        global::CountsIn,
        period::PeriodLimits, //
    },
    sample::lbr, //
};

/// MEM_TRANS_RETIRED.LOAD_LATENCY_*.
const LOAD_LATENCY: u64 = 0x01cd;
/// KVM's event for the branch records of a guest: `INTEL_FIXED_VLBR_EVENT`,
/// `arch/x86/include/asm/perf_event.h`.
const GUEST_BRANCHES: u64 = 0x1b00;
/// `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_COUNTERS: u64 = lbr::filter::sample_type::COUNTERS;
/// The shortest sample period with in_tx_cp.
const CHECKPOINTED_PERIOD: u64 = 0x7fff_ffff;

/// Translates `attr`, whose type must not be another PMU's, to an event of `pmu` with these
/// `extensions`. See [`configure`](super::configure).
///
/// # Errors
///
/// The first check that fails, in mainline's order.
pub(super) fn configure(
    pmu: &PmuInfo,
    attr: &Attributes,
    extensions: Extensions,
    has_register: impl Fn(ExtraRegister) -> bool,
    allow_any_thread: impl FnOnce() -> bool,
) -> Result<Event, Refusal> {
    precise::check(pmu, attr)?;
    let mut select = EventSelect::default()
        .with(EventSelect::INT, true)
        .counting_user(!attr.exclude_user)
        .counting_kernel(!attr.exclude_kernel);
    if attr.event_type == EventType::Raw {
        select = select.with(attr.config & EventSelect::RAW, true);
    }
    // At this point, as in mainline, only a raw event has its code in `select`.
    let limits = period_limits(pmu, attr, select)?;
    check_registers(pmu, attr)?;
    let (select, requirement) = code(pmu, attr, select, has_register)?;
    check_every_branch(pmu, attr, select)?;
    let mut branches = branch_stack(pmu, attr)?;
    // The perf core refuses precise events, too: the PMU lacks PERF_PMU_CAP_AUX_OUTPUT.
    if attr.aux_output && attr.precise_ip == 0 {
        return Err(Refusal::AuxOutput);
    }

    if attr.event_type == EventType::Raw {
        topdown::check(pmu, attr)?;
        load_latency(pmu, attr)?;
    }
    let select = any_thread(pmu, attr, select, allow_any_thread)?;
    let select = tsx_filters(pmu, attr, select)?;
    // With other bits set, this is an ordinary event.
    if select.bits() & EventConstraint::FIXED_MASK == GUEST_BRANCHES {
        branches = branches.map(lbr::Request::of_guest);
    }
    let (select, precise) = precise::apply(pmu, attr, select);

    Ok(Event {
        select,
        requirement,
        branches,
        precise,
        period: period(attr, limits, select),
        random: extensions.random,
        switches: extensions.switches,
        counts_in: CountsIn {
            host: !attr.exclude_host,
            guest: !attr.exclude_guest,
        },
    })
}

/// Returns the limits of the event's periods. Refuses periods that are too short for `select`.
fn period_limits(
    pmu: &PmuInfo,
    attr: &Attributes,
    select: EventSelect,
) -> Result<PeriodLimits, Refusal> {
    let limits = pmu.period_limits().for_precision(attr.precise_ip);
    if attr.is_sampling() && !attr.freq && limits.is_too_short(select, attr.sample_period) {
        return Err(Refusal::PeriodTooShort);
    }
    Ok(limits)
}

/// Refuses registers that samples cannot have.
fn check_registers(pmu: &PmuInfo, attr: &Attributes) -> Result<(), Refusal> {
    let has_extended = attr.precise_ip > 0 && pmu.has_extended_registers();
    let regs_intr = if has_extended {
        0
    } else {
        attr.sample_regs_intr
    };
    if (attr.sample_regs_user | regs_intr) & EXTENDED_REGISTERS != 0 {
        return Err(Refusal::ExtendedRegisters);
    }
    Ok(())
}

/// Adds the event's code to `select`. Also returns the extra register that the event needs.
fn code(
    pmu: &PmuInfo,
    attr: &Attributes,
    select: EventSelect,
    has_register: impl Fn(ExtraRegister) -> bool,
) -> Result<(EventSelect, Option<Requirement>), Refusal> {
    let extra_registers = pmu.model.extra_register_events;
    match attr.event_type {
        EventType::Hardware => {
            let id = HardwareId::from_config(attr.config).ok_or(Refusal::NoSuchHardwareId)?;
            let event = pmu.hardware_event(id).ok_or(Refusal::HardwareEventAbsent)?;
            Ok((select.with(event.bits(), true), None))
        }
        EventType::HwCache => {
            // The value comes from the model's table, not from attr.config1.
            let (event, config1) = pmu.cache_event(attr.config)?;
            let requirement = extra_registers.requirement(event, config1, has_register)?;
            Ok((select.with(event.bits(), true), requirement))
        }
        EventType::Raw => {
            let requirement = extra_registers.requirement(select, attr.config1, has_register)?;
            Ok((select, requirement))
        }
        EventType::Other => Ok((select, None)),
    }
}

/// Refuses host events that sample every branch, which would need BTS.
fn check_every_branch(
    pmu: &PmuInfo,
    attr: &Attributes,
    select: EventSelect,
) -> Result<(), Refusal> {
    let branches = pmu.hardware_event(HardwareId::BranchInstructions);
    if attr.sample_period == 1
        && !attr.freq
        && !attr.exclude_host
        && select.code() == branches.map_or(0, EventSelect::code)
    {
        return Err(Refusal::EveryBranch);
    }
    Ok(())
}

/// Returns the branches that are recorded for the event.
fn branch_stack(pmu: &PmuInfo, attr: &Attributes) -> Result<Option<lbr::Request>, Refusal> {
    if attr.precise_ip > 0 && attr.config & EventSelect::CODE == GUEST_BRANCHES {
        return Err(Refusal::PreciseGuestBranches);
    }
    if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
        return Err(Refusal::BranchCounters);
    }
    let recorded = precise::branch_sample_type(pmu, attr);
    // A counting group member that is only read by the leader's samples needs no branch stack.
    let only_read = !attr.is_sampling() && attr.sample_type & sample_type::READ != 0;
    if recorded == 0 || only_read {
        return Ok(None);
    }
    let lbr = pmu.lbr.as_ref().ok_or(Refusal::BranchStack)?;
    lbr.request(recorded).map(Some)
}

/// Adds any-thread counting to `select`, for a raw event that requests it.
fn any_thread(
    pmu: &PmuInfo,
    attr: &Attributes,
    select: EventSelect,
    allow_any_thread: impl FnOnce() -> bool,
) -> Result<EventSelect, Refusal> {
    if attr.event_type != EventType::Raw || attr.config & EventSelect::ANY == 0 {
        return Ok(select);
    }
    if pmu.capabilities.version < 3 {
        return Err(Refusal::AnyThreadAbsent);
    }
    if !allow_any_thread() {
        return Err(Refusal::AnyThreadNotPermitted);
    }
    // If the bit is deprecated (CPUID.0AH:EDX[15]), it is reserved, and writing it faults: count
    // only this thread. Mainline writes it: `intel_pmu_hw_config()`,
    // `arch/x86/events/intel/core.c`.
    Ok(select.with(EventSelect::ANY, pmu.capabilities.any_thread))
}

/// Refuses load latency events whose samples have a data source, without the auxiliary event before
/// them in the group, on models that need it.
fn load_latency(pmu: &PmuInfo, attr: &Attributes) -> Result<(), Refusal> {
    let alone = pmu.model.has(Quirk::LoadLatencyNeedsAuxiliary)
        && attr.config & EventSelect::CODE == LOAD_LATENCY
        && attr.sample_type & sample_type::DATA_SRC != 0
        && !attr.has_auxiliary;
    if alone {
        Err(Refusal::LoadLatencyAlone)
    } else {
        Ok(())
    }
}

/// Adds in_tx and in_tx_cp on CPUs with TSX whose model has these filters; otherwise drops them.
///
/// Only raw events can have them, because the config of a generic event is an id. Mainline:
/// `hsw_hw_config()`, `arch/x86/events/intel/core.c`.
fn tsx_filters(
    pmu: &PmuInfo,
    attr: &Attributes,
    select: EventSelect,
) -> Result<EventSelect, Refusal> {
    const FILTERS: u64 = EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;

    if pmu.model.checkpointed.is_empty() || !pmu.capabilities.tsx {
        return Ok(select);
    }
    let select = select.with(attr.config & FILTERS, true);
    // The any-thread bit conflicts even if it is not written.
    if select.has(FILTERS) && (attr.config & EventSelect::ANY != 0 || attr.precise_ip > 0) {
        return Err(Refusal::TransactionFilter);
    }
    if select.has(EventSelect::IN_TX_CHECKPOINTED)
        && (1..CHECKPOINTED_PERIOD).contains(&attr.sample_period)
    {
        return Err(Refusal::CheckpointedPeriod);
    }
    Ok(select)
}
