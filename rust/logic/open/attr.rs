// SPDX-License-Identifier: GPL-2.0

//! The fields of a `perf_event_attr` and the facts about the event's group that decide whether and
//! how the event can be counted.

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
    /// Decodes attr.type for a PMU whose type is `pmu_type`.
    pub const fn decode(attr_type: u32, pmu_type: u32) -> Self {
        match attr_type {
            _ if attr_type == pmu_type => Self::Raw,
            0 => Self::Hardware,
            3 => Self::HwCache,
            _ => Self::Other,
        }
    }
}

/// The fields of a `perf_event_attr` that this PMU checks, and facts about the event's group.
#[derive(Clone, Copy, Debug)]
pub struct Attributes {
    /// attr.type.
    pub event_type: EventType,
    /// attr.config, from which the perf core has removed an extended type.
    pub config: u64,
    /// attr.config1: the value of the extra register, for a raw event that needs one.
    pub config1: u64,
    /// attr.config2, which no event uses. Topdown events are refused if it is not 0.
    pub config2: u64,
    /// attr.config3: the random part of sample periods.
    pub config3: u64,
    /// attr.config4: whether each overflow ends the turn of the groups on the CPU.
    pub config4: u64,
    /// attr.pinned.
    pub pinned: bool,
    /// Set if another event leads the event's group.
    pub is_member: bool,
    /// Set if the event's group already contains [`LOAD_LATENCY_AUXILIARY`].
    pub has_auxiliary: bool,
    /// The kind of the event's group leader, for the rules of topdown metrics.
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

    /// Returns whether the event is sampling, not only counting.
    pub const fn is_sampling(&self) -> bool {
        self.sample_period != 0
    }

    /// Returns whether the event uses extensions of this driver.
    pub fn has_extensions(&self) -> bool {
        self.config3 != 0 || self.config4 != 0
    }

    /// Returns whether each overflow ends the turn of the groups on the CPU.
    pub(super) fn ends_turns(&self) -> bool {
        self.config4 & SWITCH != 0
    }

    /// Returns whether the event has a type of this PMU and requests precise samples.
    pub fn is_precise(&self) -> bool {
        self.event_type != EventType::Other && self.precise_ip > 0
    }
}

/// The leader of an event's group, as far as topdown metrics are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leader {
    /// An event that counts slots.
    Slots,
    /// An event that samples slots.
    SampledSlots,
    /// Another event, or the event itself.
    Other,
}

/// The format attribute `switch`, bit 0 of attr.config4.
pub(super) const SWITCH: u64 = 1 << 0;

/// Registers from XMM0 on (`PERF_REG_EXTENDED_MASK`, `arch/x86/include/uapi/asm/perf_regs.h`).
pub(super) const EXTENDED_REGISTERS: u64 = !((1 << 32) - 1);

/// The auxiliary event of
/// [`Quirk::LoadLatencyNeedsAuxiliary`](crate::logic::model::Quirk::LoadLatencyNeedsAuxiliary).
pub const LOAD_LATENCY_AUXILIARY: u64 = 0x8203;

/// Bits of `attr.sample_type`: `enum perf_event_sample_format`, `include/uapi/linux/perf_event.h`.
pub mod sample_type {
    /// `PERF_SAMPLE_IP`.
    pub const IP: u64 = 1 << 0;
    /// `PERF_SAMPLE_TID`.
    pub const TID: u64 = 1 << 1;
    /// `PERF_SAMPLE_TIME`.
    pub const TIME: u64 = 1 << 2;
    /// `PERF_SAMPLE_ADDR`.
    pub const ADDR: u64 = 1 << 3;
    /// `PERF_SAMPLE_READ`.
    pub const READ: u64 = 1 << 4;
    /// `PERF_SAMPLE_CALLCHAIN`.
    pub const CALLCHAIN: u64 = 1 << 5;
    /// `PERF_SAMPLE_ID`.
    pub const ID: u64 = 1 << 6;
    /// `PERF_SAMPLE_CPU`.
    pub const CPU: u64 = 1 << 7;
    /// `PERF_SAMPLE_PERIOD`.
    pub const PERIOD: u64 = 1 << 8;
    /// `PERF_SAMPLE_STREAM_ID`.
    pub const STREAM_ID: u64 = 1 << 9;
    /// `PERF_SAMPLE_BRANCH_STACK`.
    pub const BRANCH_STACK: u64 = 1 << 11;
    /// `PERF_SAMPLE_REGS_USER`.
    pub const REGS_USER: u64 = 1 << 12;
    /// `PERF_SAMPLE_WEIGHT` and `PERF_SAMPLE_WEIGHT_STRUCT`.
    pub const WEIGHT: u64 = (1 << 14) | (1 << 24);
    /// `PERF_SAMPLE_DATA_SRC`.
    pub const DATA_SRC: u64 = 1 << 15;
    /// `PERF_SAMPLE_IDENTIFIER`.
    pub const IDENTIFIER: u64 = 1 << 16;
    /// `PERF_SAMPLE_TRANSACTION`.
    pub const TRANSACTION: u64 = 1 << 17;
    /// `PERF_SAMPLE_REGS_INTR`.
    pub const REGS_INTR: u64 = 1 << 18;
    /// `PERF_SAMPLE_PHYS_ADDR`.
    pub const PHYS_ADDR: u64 = 1 << 19;
    /// `PERF_SAMPLE_DATA_PAGE_SIZE`.
    pub const DATA_PAGE_SIZE: u64 = 1 << 22;
    /// `PERF_SAMPLE_CODE_PAGE_SIZE`.
    pub const CODE_PAGE_SIZE: u64 = 1 << 23;
    /// The parts of a sample that describe a memory access.
    pub const MEMORY: u64 = ADDR | DATA_SRC | PHYS_ADDR | WEIGHT | TRANSACTION | DATA_PAGE_SIZE;
}
