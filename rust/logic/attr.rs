// SPDX-License-Identifier: GPL-2.0

//! From a `perf_event_attr` to what the hardware is to do, or to the reason why not.
//!
//! The checks, their order and the errno that goes with each are mainline's, for what is
//! supported; what is not supported yet is refused at the end, so that a request that is wrong in
//! itself gets the built-in driver's answer. Mainline: `x86_pmu_event_init()` to
//! `hsw_hw_config()`, in `arch/x86/events/core.c:2535`, `680`, `595` and
//! `arch/x86/events/intel/core.c:4945`, `5458`.
//!
//! Process context: `perf_event_open`. Inherited events pass it again, with their parent's attr.

use super::event_select::EventSelect;
use super::model::HardwareId;
use super::pmu::Pmu;
use super::refusal::Refusal;

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
    /// Sample period, for `hw.sample_period`, `hw.last_period` and `hw.period_left`.
    pub period: u64,
    /// Whether the event counts outside of virtual machines.
    pub in_host: bool,
}

/// Registers from XMM0 on (`PERF_REG_EXTENDED_MASK`, `arch/x86/include/uapi/asm/perf_regs.h:56`).
const EXTENDED_REGISTERS: u64 = !((1 << 32) - 1);
/// `PERF_SAMPLE_READ`.
const SAMPLE_READ: u64 = 1 << 4;
/// `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_COUNTERS: u64 = 1 << 19;
/// Shortest sample period that in_tx_cp allows.
const CHECKPOINTED_PERIOD: u64 = 0x7fff_ffff;

/// Turns `attr` into an event for `pmu`.
///
/// `allow_any_thread` is asked, once, if the event wants to count for any thread of the core:
/// `perf_allow_cpu()`.
///
/// # Errors
///
/// The first thing that is wrong, in mainline's order.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::attr::{configure, Attributes, EventType};
/// use logic::refusal::Refusal;
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
/// let event = configure(&pmu, &instructions, || false).unwrap();
/// assert_eq!(event.select.bits(), 0x11_00c0);
///
/// let stalls = Attributes::counting(EventType::Hardware, 7);
/// let refused = configure(&pmu, &stalls, || false);
/// assert_eq!(refused, Err(Refusal::HardwareEventAbsent));
/// ```
pub fn configure(
    pmu: &Pmu,
    attr: &Attributes,
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

    match attr.event_type {
        EventType::Hardware => {
            let id = HardwareId::from_config(attr.config).ok_or(Refusal::NoSuchHardwareId)?;
            let event = pmu.hardware_event(id).ok_or(Refusal::HardwareEventAbsent)?;
            select = select.with(event.bits(), true);
        }
        EventType::HwCache => return Err(Refusal::CacheEvent),
        EventType::Raw | EventType::Other => {}
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

    if attr.event_type == EventType::Raw && attr.config & EventSelect::ANY != 0 {
        if pmu.capabilities.version < 3 {
            return Err(Refusal::AnyThreadAbsent);
        }
        if !allow_any_thread() {
            return Err(Refusal::AnyThreadNotPermitted);
        }
        select = select.with(EventSelect::ANY, true);
    }
    select = transaction_filters(pmu, attr, select)?;

    if attr.event_type == EventType::Raw && pmu.model.extra_register_events.contains(&select.code())
    {
        return Err(Refusal::ExtraRegister);
    }
    if sampling {
        return Err(Refusal::Sampling);
    }
    Ok(Event {
        select,
        period: limits.max_period,
        in_host: !attr.exclude_host,
    })
}

/// Adds in_tx and in_tx_cp, where transactions exist; elsewhere the bits are dropped.
///
/// Mainline takes the bits from attr.config whatever the type, so for a generic event too (perf
/// core leaves no such bits there, because the id would be out of range).
fn transaction_filters(
    pmu: &Pmu,
    attr: &Attributes,
    select: EventSelect,
) -> Result<EventSelect, Refusal> {
    const FILTERS: u64 = EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;

    if pmu.model.checkpointed.is_empty() || !pmu.capabilities.transactions {
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
