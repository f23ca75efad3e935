// SPDX-License-Identifier: GPL-2.0

//! Translation of a `perf_event_attr` to an event select and a period, or to a refusal.
//!
//! The checks, their order and their errnos are mainline's. Requests for BTS, which this driver does not use, are
//! refused as mainline refuses them on hardware without it. Mainline:
//! `x86_pmu_event_init()` to `hsw_hw_config()`, in `arch/x86/events/core.c:2535`, `680`, `595` and
//! `arch/x86/events/intel/core.c:4945`, `5458`. [`amd`](super::amd) has the checks of AMD's PMUs.
//!
//! Context: process, in `perf_event_open()`. Events inherited from this PMU's are not checked again.

use super::{
    amd,
    extensions::{Extensions, SWITCH},
    precise::{self, Precise},
    topdown::{self, Leader},
};
use crate::logic::{
    model::{constraint::Constraint, demand::Requirement, EventConstraint, HardwareId, Quirk},
    pmu::Pmu,
    refusal::Refusal,
    regs::{
        counter::CounterId, event_select::EventSelect, extra_register::ExtraRegister,
        global::CountsIn, period::PeriodLimits,
    },
    sample::{lbr, random_period::RandomPeriods},
};

/// The values of attr.type that this PMU distinguishes.
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

/// The fields of a `perf_event_attr` that this PMU checks.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// attr.type.
    pub event_type: EventType,
    /// attr.config, from which the perf core has removed an extended type.
    pub config: u64,
    /// attr.config1: the extra register's value, for a raw event that needs one.
    pub config1: u64,
    /// attr.config2, which no event uses.
    pub config2: u64,
    /// attr.config3: the random part of sample periods.
    pub config3: u64,
    /// attr.config4: the end of turns.
    pub config4: u64,
    /// attr.pinned.
    pub pinned: bool,
    /// Set if another event leads the event's group.
    pub is_member: bool,
    /// Set if the event's group already contains [`LOAD_LATENCY_AUXILIARY`].
    pub has_auxiliary: bool,
    /// The leader of the event's group, as far as topdown metrics are concerned.
    pub leader: Leader,
    /// attr.sample_period or attr.sample_freq; 0 for a counting event.
    pub sample_period: u64,
    /// attr.freq: `sample_period` is a frequency.
    pub freq: bool,
    /// attr.precise_ip.
    pub precise_ip: u8,
    /// attr.wakeup_events.
    pub wakeup_events: u32,
    /// attr.watermark: `wakeup_events` is a number of bytes.
    pub watermark: bool,
    /// attr.use_clockid.
    pub use_clockid: bool,
    /// Set if samples pause or resume an AUX trace: attr.aux_action.
    pub has_aux_action: bool,
    /// attr.exclude_user.
    pub exclude_user: bool,
    /// attr.exclude_kernel.
    pub exclude_kernel: bool,
    /// attr.exclude_host.
    pub exclude_host: bool,
    /// attr.exclude_guest.
    pub exclude_guest: bool,
    /// attr.aux_output.
    pub aux_output: bool,
    /// attr.sample_type.
    pub sample_type: u64,
    /// attr.branch_sample_type, which the perf core sets to 0 unless a branch stack is requested.
    pub branch_sample_type: u64,
    /// attr.sample_regs_user.
    pub sample_regs_user: u64,
    /// attr.sample_regs_intr.
    pub sample_regs_intr: u64,
}

impl Attributes {
    /// Returns the attributes of a counting event without filters or modifiers.
    pub const fn counting(event_type: EventType, config: u64) -> Self {
        Self {
            event_type,
            config,
            config1: 0,
            config2: 0,
            config3: 0,
            config4: 0,
            pinned: false,
            is_member: false,
            has_auxiliary: false,
            leader: Leader::Other,
            sample_period: 0,
            freq: false,
            precise_ip: 0,
            wakeup_events: 0,
            watermark: false,
            use_clockid: false,
            has_aux_action: false,
            exclude_user: false,
            exclude_kernel: false,
            exclude_host: false,
            exclude_guest: false,
            aux_output: false,
            sample_type: 0,
            branch_sample_type: 0,
            sample_regs_user: 0,
            sample_regs_intr: 0,
        }
    }

    /// Returns whether the event asks for what this driver alone has.
    pub fn has_extensions(&self) -> bool {
        self.config3 != 0 || self.config4 != 0
    }

    /// Returns whether each overflow is to end the turn of the groups on the CPU.
    pub(super) fn ends_turns(&self) -> bool {
        self.config4 & SWITCH != 0
    }

    /// Returns whether the event is of a type of this PMU, and to be sampled precisely.
    pub fn is_precise(&self) -> bool {
        self.event_type != EventType::Other && self.precise_ip > 0
    }
}

/// An event that has passed the checks that concern it alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event select for `hw.config`, without the enable bit.
    pub select: EventSelect,
    /// The extra register value that the event needs.
    pub requirement: Option<Requirement>,
    /// The branches that its samples have, or are found with.
    pub branches: Option<lbr::Request>,
    /// How its samples are taken precisely.
    pub precise: Option<Precise>,
    /// The period for `hw.sample_period`, `hw.last_period` and `hw.period_left`.
    pub period: u64,
    /// The random part of its periods.
    pub random: RandomPeriods,
    /// Set if each overflow ends the turn of the groups on the CPU.
    pub switches: bool,
    /// Where the event counts.
    pub counts_in: CountsIn,
}

impl Event {
    /// Returns the counters that may count the event on `pmu`; none if no counter is precise for it.
    pub fn constraint(&self, pmu: &Pmu) -> Constraint {
        if self.branches.is_some_and(|request| request.is_of_guest()) {
            return Constraint::any_of(CounterId::GUEST_BRANCHES.mask());
        }
        match self.precise {
            Some(precise) => pmu.precise_constraint(self.select, precise.level),
            None => pmu.constraint(self.select),
        }
    }
}

/// Registers from XMM0 on (`PERF_REG_EXTENDED_MASK`, `arch/x86/include/uapi/asm/perf_regs.h:56`).
pub(super) const EXTENDED_REGISTERS: u64 = !((1 << 32) - 1);
/// `PERF_SAMPLE_READ`.
const SAMPLE_READ: u64 = 1 << 4;
/// `PERF_SAMPLE_DATA_SRC`.
const SAMPLE_DATA_SRC: u64 = 1 << 15;
/// MEM_TRANS_RETIRED.LOAD_LATENCY_*.
const LOAD_LATENCY: u64 = 0x01cd;
/// The auxiliary event of [`Quirk::LoadLatencyNeedsAuxiliary`].
pub const LOAD_LATENCY_AUXILIARY: u64 = 0x8203;
/// KVM's event for the branch records of a guest: `INTEL_FIXED_VLBR_EVENT`,
/// `arch/x86/include/asm/perf_event.h`.
const GUEST_BRANCHES: u64 = 0x1b00;
/// `PERF_SAMPLE_BRANCH_COUNTERS`.
const BRANCH_COUNTERS: u64 = lbr::filter::sample_type::COUNTERS;
/// The shortest sample period with in_tx_cp.
const CHECKPOINTED_PERIOD: u64 = 0x7fff_ffff;

/// Translates `attr` to an event of `pmu`.
///
/// `has_register` returns whether this machine has an extra register. `allow_any_thread` is
/// `perf_allow_cpu()`; it is called, once, only if the event counts for any thread of the core.
///
/// # Errors
///
/// The first check that fails, in mainline's order behind those of this driver's own fields.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::open::attr::{configure, Attributes, EventType};
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
    let extensions = Extensions::of(attr)?;
    if pmu.capabilities.interface.is_amd() {
        return amd::configure(pmu, attr, extensions);
    }
    precise::check(pmu, attr, sampling)?;

    let mut select = EventSelect::default()
        .with(EventSelect::INT, true)
        .counting_user(!attr.exclude_user)
        .counting_kernel(!attr.exclude_kernel);
    if attr.event_type == EventType::Raw {
        select = select.with(attr.config & EventSelect::RAW, true);
    }

    // Only a raw event has its code in `select` here, as in mainline.
    let limits = pmu.period_limits().for_precision(attr.precise_ip);
    if sampling && !attr.freq && limits.is_too_short(select, attr.sample_period) {
        return Err(Refusal::PeriodTooShort);
    }
    let has_extended = attr.precise_ip > 0 && pmu.has_extended_registers();
    let regs_intr = if has_extended {
        0
    } else {
        attr.sample_regs_intr
    };
    if (attr.sample_regs_user | regs_intr) & EXTENDED_REGISTERS != 0 {
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
            // The value comes from the model's table, not from attr.config1.
            let (event, config1) = pmu.cache_event(attr.config)?;
            select = select.with(event.bits(), true);
            requirement = extra_registers.requirement(event, config1, has_register)?;
        }
        EventType::Raw => {
            requirement = extra_registers.requirement(select, attr.config1, has_register)?;
        }
        EventType::Other => {}
    }

    // Sampling every branch takes BTS, which is for events that count in the host.
    let branches = pmu.hardware_event(HardwareId::BranchInstructions);
    if attr.sample_period == 1
        && !attr.freq
        && !attr.exclude_host
        && select.code() == branches.map_or(0, EventSelect::code)
    {
        return Err(Refusal::EveryBranch);
    }
    if attr.precise_ip > 0 && attr.config & EventSelect::CODE == GUEST_BRANCHES {
        return Err(Refusal::PreciseGuestBranches);
    }
    if attr.branch_sample_type & BRANCH_COUNTERS != 0 {
        return Err(Refusal::BranchCounters);
    }
    // A counting group member that is only read with the leader's samples needs no branch stack.
    let branch_sample_type = precise::branch_sample_type(pmu, attr);
    let mut branches = None;
    if branch_sample_type != 0 && (sampling || attr.sample_type & SAMPLE_READ == 0) {
        let lbr = pmu.lbr.as_ref().ok_or(Refusal::BranchStack)?;
        branches = Some(lbr.request(branch_sample_type)?);
    }
    if attr.aux_output {
        return Err(Refusal::AuxOutput);
    }

    if attr.event_type == EventType::Raw {
        topdown::check(pmu, attr)?;
        load_latency(pmu, attr)?;
    }
    if attr.event_type == EventType::Raw && attr.config & EventSelect::ANY != 0 {
        if pmu.capabilities.version < 3 {
            return Err(Refusal::AnyThreadAbsent);
        }
        if !allow_any_thread() {
            return Err(Refusal::AnyThreadNotPermitted);
        }
        // A deprecated bit (CPUID.0AH:EDX[15]) is reserved, and writing it faults: count this thread only.
        // Mainline writes it: `intel_pmu_hw_config()`, `arch/x86/events/intel/core.c:5276`.
        select = select.with(EventSelect::ANY, pmu.capabilities.any_thread);
    }
    select = tsx_filters(pmu, attr, select)?;
    // With flags, the code is that of an ordinary event.
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

/// Refuses load latencies without the auxiliary event before them in the group, on models that need it.
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

/// Returns the period of an event: for a counting one, the longest.
pub(super) fn period(attr: &Attributes, limits: PeriodLimits, select: EventSelect) -> u64 {
    match (attr.sample_period != 0, attr.freq) {
        (false, _) => limits.max_period,
        (true, false) => attr.sample_period,
        (true, true) => first_period(attr, limits, select),
    }
}

/// Returns the first period of an event that is sampled at a frequency; the perf core adjusts it later.
///
/// Estimates the event's rate on a CPU at 1 GHz that is idle half of the time. Mainline:
/// `intel_pmu_freq_start_period()`, `arch/x86/events/intel/core.c:4806`.
fn first_period(attr: &Attributes, limits: PeriodLimits, select: EventSelect) -> u64 {
    const OFTEN: u64 = 500_000_000;
    const BRANCHES: u64 = OFTEN / 4;
    const CACHES: u64 = OFTEN / 20;
    /// For an event of unknown rate: the shortest period that is recommended for any event, at perf's
    /// default frequency.
    const UNKNOWN: u64 = 64 * 4000;

    let rate = match attr.event_type {
        EventType::Hardware => match HardwareId::from_config(attr.config) {
            Some(HardwareId::BranchInstructions | HardwareId::BranchMisses) => BRANCHES,
            Some(HardwareId::CacheReferences | HardwareId::CacheMisses) => CACHES,
            _ => OFTEN,
        },
        EventType::HwCache => CACHES,
        EventType::Raw | EventType::Other => UNKNOWN,
    };
    let period = rate.div_ceil(attr.sample_period.max(1)) - 1;
    // At a frequency above the rate, mainline begins with a period of 0.
    let period = period.min(limits.max_period).max(1);
    // CAST: at most `OFTEN` both ways.
    limits.rule.apply(select, period as i64) as u64
}

/// Adds in_tx and in_tx_cp on a CPU with TSX, and drops them on others.
///
/// Only raw events can have them, because the config of a generic event is an id. Mainline: `hsw_hw_config()`,
/// `arch/x86/events/intel/core.c`.
fn tsx_filters(pmu: &Pmu, attr: &Attributes, select: EventSelect) -> Result<EventSelect, Refusal> {
    const FILTERS: u64 = EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;

    if pmu.model.checkpointed.is_empty() || !pmu.capabilities.tsx {
        return Ok(select);
    }
    let select = select.with(attr.config & FILTERS, true);
    // The bit counts as asked for where it is not written, too.
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

#[cfg(test)]
mod tests;
