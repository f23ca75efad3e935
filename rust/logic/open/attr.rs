// SPDX-License-Identifier: GPL-2.0

//! From a `perf_event_attr` to what the hardware is to do, or to the reason why not.
//!
//! The checks, their order and the errno that goes with each are mainline's. What the hardware has
//! and this driver does not use (PEBS, LBR, BTS) is refused as mainline does where the hardware has
//! not got it. Mainline: `x86_pmu_event_init()` to
//! `hsw_hw_config()`, in `arch/x86/events/core.c:2535`, `680`, `595` and
//! `arch/x86/events/intel/core.c:4945`, `5458`.
//!
//! Process context: `perf_event_open`. Inherited events pass it again, with their parent's attr.

use super::refusal::Refusal;
use crate::logic::{
    model::{HardwareId, Quirk},
    pmu::Pmu,
    regs::{event_select::EventSelect, period::PeriodLimits},
    sched::extra_register::{ExtraRegister, Requirement},
};

/// attr.type, as far as this PMU is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// `PERF_TYPE_HARDWARE`.
    Hardware,
    /// `PERF_TYPE_HW_CACHE`.
    HwCache,
    /// The PMU's own type, `PERF_TYPE_RAW`.
    Raw,
    /// Anything else.
    Other,
}

impl EventType {
    /// Decodes attr.type for a PMU that is registered under `pmu_type`.
    pub const fn decode(attr_type: u32, pmu_type: u32) -> Self {
        match attr_type {
            _ if attr_type == pmu_type => Self::Raw,
            0 => Self::Hardware,
            3 => Self::HwCache,
            _ => Self::Other,
        }
    }
}

/// The fields of a `perf_event_attr` that decide about an event.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// attr.type.
    pub event_type: EventType,
    /// attr.config; perf core has taken an extended type out of it.
    pub config: u64,
    /// attr.config1: the extra register's value, for a raw event that needs one.
    pub config1: u64,
    /// attr.config2: nothing, for any event.
    pub config2: u64,
    /// Whether the group that the event joins has [`LOAD_LATENCY_AUXILIARY`] already.
    pub has_auxiliary: bool,
    /// attr.sample_period or attr.sample_freq: not 0 for a sampling event.
    pub sample_period: u64,
    /// attr.freq: `sample_period` is a frequency.
    pub freq: bool,
    /// attr.precise_ip.
    pub precise_ip: u8,
    /// attr.exclude_user.
    pub exclude_user: bool,
    /// attr.exclude_kernel.
    pub exclude_kernel: bool,
    /// attr.exclude_host.
    pub exclude_host: bool,
    /// attr.aux_output.
    pub aux_output: bool,
    /// attr.sample_type.
    pub sample_type: u64,
    /// attr.branch_sample_type; perf core has set it to 0 unless a branch stack is asked for.
    pub branch_sample_type: u64,
    /// attr.sample_regs_user.
    pub sample_regs_user: u64,
    /// attr.sample_regs_intr.
    pub sample_regs_intr: u64,
}

impl Attributes {
    /// A counting event with nothing special about it.
    pub const fn counting(event_type: EventType, config: u64) -> Self {
        Self {
            event_type,
            config,
            config1: 0,
            config2: 0,
            has_auxiliary: false,
            sample_period: 0,
            freq: false,
            precise_ip: 0,
            exclude_user: false,
            exclude_kernel: false,
            exclude_host: false,
            aux_output: false,
            sample_type: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_regs_intr: 0,
        }
    }
}

/// An event that can be had, as far as the event alone is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event select, without the enable bit: `hw.config`.
    pub select: EventSelect,
    /// What the event needs besides a counter.
    pub requirement: Option<Requirement>,
    /// Sample period, for `hw.sample_period`, `hw.last_period` and `hw.period_left`.
    pub period: u64,
    /// Whether the event counts outside of virtual machines.
    pub in_host: bool,
}

/// Registers from XMM0 on (`PERF_REG_EXTENDED_MASK`, `arch/x86/include/uapi/asm/perf_regs.h:56`).
const EXTENDED_REGISTERS: u64 = !((1 << 32) - 1);
/// `PERF_SAMPLE_READ`.
const SAMPLE_READ: u64 = 1 << 4;
/// `PERF_SAMPLE_DATA_SRC`.
const SAMPLE_DATA_SRC: u64 = 1 << 15;
/// TOPDOWN.SLOTS, by its pseudo code.
const SLOTS: u64 = 0x0400;
/// The first and the last pseudo code of the events that are read from PERF_METRICS, every 0x100
/// one. Mainline: `INTEL_TD_METRIC_RETIRING` and `INTEL_TD_METRIC_MAX`,
/// `arch/x86/include/asm/perf_event.h:408`.
const FIRST_METRIC: u64 = 0x8000;
const LAST_METRIC: u64 = 0x8700;
/// attr.config1 of the slots: clear PERF_METRICS when it is read.
const METRICS_CLEAR: u64 = 1;
/// MEM_TRANS_RETIRED.LOAD_LATENCY_*.
const LOAD_LATENCY: u64 = 0x01cd;
/// What [`Quirk::LoadLatencyNeedsAuxiliary`] is about.
pub const LOAD_LATENCY_AUXILIARY: u64 = 0x8203;
/// `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_COUNTERS: u64 = 1 << 19;
/// Shortest sample period that in_tx_cp allows.
const CHECKPOINTED_PERIOD: u64 = 0x7fff_ffff;

/// Turns `attr` into an event for `pmu`.
///
/// `has_register` says which extra registers this machine has. `allow_any_thread` is asked, once,
/// if the event wants to count for any thread of the core: `perf_allow_cpu()`.
///
/// # Errors
///
/// The first thing that is wrong, in mainline's order.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::open::attr::{configure, Attributes, EventType};
/// use logic::open::refusal::Refusal;
/// # use logic::capabilities::{Cpuid, Leaf};
/// # use logic::pmu::Pmu;
/// # let cpuid = Cpuid {
/// #     leaf_0: Leaf { eax: 0x16, ebx: 0x756e6547, ecx: 0x6c65746e, edx: 0x49656e69 },
/// #     leaf_1: Leaf { eax: 0x506e3, ..Leaf::default() },
/// #     leaf_a: Leaf { eax: 0x0730_0404, edx: 0x603, ..Leaf::default() },
/// #     ..Cpuid::default()
/// # };
/// # let pmu = Pmu::probe(&cpuid, None).unwrap();
/// let mut instructions = Attributes::counting(EventType::Hardware, 1);
/// instructions.exclude_kernel = true;
/// let event = configure(&pmu, &instructions, |_| true, || false).unwrap();
/// assert_eq!(event.select.bits(), 0x11_00c0);
///
/// let stalls = Attributes::counting(EventType::Hardware, 7);
/// let refused = configure(&pmu, &stalls, |_| true, || false);
/// assert_eq!(refused, Err(Refusal::HardwareEventAbsent));
/// ```
pub fn configure(
    pmu: &Pmu,
    attr: &Attributes,
    has_register: impl Fn(ExtraRegister) -> bool,
    allow_any_thread: impl FnOnce() -> bool,
) -> Result<Event, Refusal> {
    let sampling = attr.sample_period != 0;
    if attr.event_type == EventType::Other {
        return Err(Refusal::OtherType);
    }
    // There is no PEBS, so no precision at all.
    if attr.precise_ip > 0 {
        return Err(Refusal::Precise);
    }

    let mut select = EventSelect::default()
        .with(EventSelect::INT, true)
        .counting_user(!attr.exclude_user)
        .counting_kernel(!attr.exclude_kernel);
    if attr.event_type == EventType::Raw {
        select = select.with(attr.config & EventSelect::RAW, true);
    }

    // With the event code, if it is a raw event, and without it otherwise.
    let limits = pmu.period_limits();
    if sampling && !attr.freq && limits.is_too_short(select, attr.sample_period) {
        return Err(Refusal::PeriodTooShort);
    }
    if (attr.sample_regs_user | attr.sample_regs_intr) & EXTENDED_REGISTERS != 0 {
        return Err(Refusal::ExtendedRegisters);
    }

    let extra_registers = pmu.model.extra_register_events;
    let mut requirement = None;
    match attr.event_type {
        EventType::Hardware => {
            let id = HardwareId::from_config(attr.config).ok_or(Refusal::NoSuchHardwareId)?;
            let event = pmu.hardware_event(id).ok_or(Refusal::HardwareEventAbsent)?;
            select = select.with(event.bits(), true);
        }
        EventType::HwCache => {
            // attr.config1 does not matter: the model's table has the value.
            let (event, config1) = pmu.cache_event(attr.config)?;
            select = select.with(event.bits(), true);
            requirement = extra_registers.requirement(event, config1, has_register)?;
        }
        EventType::Raw => {
            requirement = extra_registers.requirement(select, attr.config1, has_register)?;
        }
        EventType::Other => {}
    }

    // BTS, the only way to have every branch, is for events that count in the host.
    let branches = pmu.hardware_event(HardwareId::BranchInstructions);
    if attr.sample_period == 1
        && !attr.freq
        && !attr.exclude_host
        && select.code() == branches.map_or(0, EventSelect::code)
    {
        return Err(Refusal::EveryBranch);
    }
    if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
        return Err(Refusal::BranchCounters);
    }
    // A counting member of a group that is read with the leader's samples needs no stack.
    if attr.branch_sample_type != 0 && (sampling || attr.sample_type & SAMPLE_READ == 0) {
        return Err(Refusal::BranchStack);
    }
    if attr.aux_output {
        return Err(Refusal::AuxOutput);
    }

    if attr.event_type == EventType::Raw {
        topdown_filters(pmu, attr)?;
        load_latency(pmu, attr)?;
    }
    if attr.event_type == EventType::Raw && attr.config & EventSelect::ANY != 0 {
        if pmu.capabilities.version < 3 {
            return Err(Refusal::AnyThreadAbsent);
        }
        if !allow_any_thread() {
            return Err(Refusal::AnyThreadNotPermitted);
        }
        // Where the bit is deprecated (CPUID.0AH:EDX[15]) it is reserved: the event counts this
        // thread, instead of a write that faults. Mainline writes it: `intel_pmu_hw_config()`,
        // `arch/x86/events/intel/core.c:5276`.
        select = select.with(EventSelect::ANY, pmu.capabilities.any_thread);
    }
    select = transaction_filters(pmu, attr, select)?;

    let period = match (sampling, attr.freq) {
        (false, _) => limits.max_period,
        (true, false) => attr.sample_period,
        (true, true) => first_period(attr, limits, select),
    };
    Ok(Event {
        select,
        requirement,
        period,
        in_host: !attr.exclude_host,
    })
}

/// The events of the topdown method take no filters and no values, where there is PERF_METRICS.
///
/// Only [`METRICS_CLEAR`] is allowed, for the slots.
fn topdown_filters(pmu: &Pmu, attr: &Attributes) -> Result<(), Refusal> {
    const FILTERS: u64 = EventSelect::EDGE
        | EventSelect::INV
        | EventSelect::CMASK
        | EventSelect::ANY
        | EventSelect::PIN_CONTROL
        | EventSelect::IN_TX
        | EventSelect::IN_TX_CHECKPOINTED;

    let code = attr.config & EventSelect::CODE;
    // The unit mask alone does not make a metric: `is_metric_event()`,
    // `arch/x86/events/perf_event.h:99`.
    let is_metric = code & EventSelect::EVENT == 0 && (FIRST_METRIC..=LAST_METRIC).contains(&code);
    let values = match code {
        SLOTS => attr.config1 & !METRICS_CLEAR | attr.config2,
        _ if is_metric => attr.config1 | attr.config2,
        _ => return Ok(()),
    };
    if pmu.capabilities.perf_metrics && (values != 0 || attr.config & FILTERS != 0) {
        return Err(Refusal::TopdownFilter);
    }
    Ok(())
}

/// Where load latencies need an event beside them to be right, it has to be in the group before them.
fn load_latency(pmu: &Pmu, attr: &Attributes) -> Result<(), Refusal> {
    let alone = pmu.model.has(Quirk::LoadLatencyNeedsAuxiliary)
        && attr.config & EventSelect::CODE == LOAD_LATENCY
        && attr.sample_type & SAMPLE_DATA_SRC != 0
        && !attr.has_auxiliary;
    if alone {
        Err(Refusal::LoadLatencyAlone)
    } else {
        Ok(())
    }
}

/// The period that an event begins with that is to be sampled at a frequency. perf core adjusts it.
///
/// A guess at how often the event comes about, for a CPU at 1 GHz that is idle half of the time.
/// Mainline: `intel_pmu_freq_start_period()`, `arch/x86/events/intel/core.c:4806`.
fn first_period(attr: &Attributes, limits: PeriodLimits, select: EventSelect) -> u64 {
    const OFTEN: u64 = 500_000_000;
    const BRANCHES: u64 = OFTEN / 4;
    const CACHES: u64 = OFTEN / 20;
    /// For what nobody knows anything of: the shortest period that is recommended for any event,
    /// at the frequency that perf samples with if it is not told otherwise.
    const UNKNOWN: u64 = 64 * 4000;

    let a_second = match attr.event_type {
        EventType::Hardware => match HardwareId::from_config(attr.config) {
            Some(HardwareId::BranchInstructions | HardwareId::BranchMisses) => BRANCHES,
            Some(HardwareId::CacheReferences | HardwareId::CacheMisses) => CACHES,
            _ => OFTEN,
        },
        EventType::HwCache => CACHES,
        EventType::Raw | EventType::Other => UNKNOWN,
    };
    let period = a_second.div_ceil(attr.sample_period.max(1)) - 1;
    // Mainline lets a frequency above that begin with a period of 0.
    let period = period.min(limits.max_period).max(1);
    // CAST: both ways, no more than `OFTEN`.
    limits.rule.apply(select, period as i64) as u64
}

/// Adds in_tx and in_tx_cp, where transactions exist; elsewhere the bits are dropped.
///
/// Only a raw event can have them: the config of a generic one is an id.
fn transaction_filters(
    pmu: &Pmu,
    attr: &Attributes,
    select: EventSelect,
) -> Result<EventSelect, Refusal> {
    const FILTERS: u64 = EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;

    if pmu.model.checkpointed.is_empty() || !pmu.capabilities.tsx {
        return Ok(select);
    }
    let select = select.with(attr.config & FILTERS, true);
    if select.has(FILTERS) && select.has(EventSelect::ANY) {
        return Err(Refusal::TransactionFilter);
    }
    if select.has(EventSelect::IN_TX_CHECKPOINTED)
        && (1..CHECKPOINTED_PERIOD).contains(&attr.sample_period)
    {
        return Err(Refusal::CheckpointedPeriod);
    }
    Ok(select)
}

#[cfg(test)]
mod tests;
