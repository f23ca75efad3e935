// SPDX-License-Identifier: GPL-2.0

//! The reasons why events are refused or fail to get a counter.
//!
//! Each reason is more specific than its errno, which its doc names. The errnos are the built-in
//! driver's unless the doc says otherwise.

mod errno;
mod shortage;

use core::fmt;

use super::{
    breaker::Cause,
    model::{
        cache_event::NoCacheEvent,
        extra_registers::NoExtraRegister, //
    },
};

pub use errno::Errno;
pub use shortage::Shortage;

/// The reason why an event or a group is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Another PMU's attr.type. ENOENT: the perf core tries the next PMU.
    OtherType,
    /// A cache event id with a part that is out of range. EINVAL.
    NoSuchCacheId,
    /// A cache event that makes no sense on this CPU. EINVAL.
    CacheEventImpossible,
    /// A cache event that this CPU does not have. ENOENT.
    CacheEventAbsent,
    /// A generic hardware id from `PERF_COUNT_HW_MAX` on. EINVAL.
    NoSuchHardwareId,
    /// A generic hardware event that this CPU does not have. ENOENT.
    HardwareEventAbsent,
    /// More precision (attr.precise_ip) than the PMU supports. EOPNOTSUPP.
    Precise,
    /// attr.precise_ip on an event that does not sample. EINVAL.
    PreciseCounting,
    /// A branch stack that lacks the branches needed to find the address of a precise sample, on a
    /// processor that does not record this address. EOPNOTSUPP.
    PreciseBranches,
    /// attr.precise_ip on the event by which KVM gets the branch records. EINVAL.
    PreciseGuestBranches,
    /// attr.precise_ip on an event that cannot be precise. EINVAL.
    NeverPrecise,
    /// A sample period shorter than the model allows; also a change of the period to 1 if the event
    /// counts all branches, which would need BTS. EINVAL.
    PeriodTooShort,
    /// Undefined bits of attr.config4. The built-in driver ignores them. EINVAL.
    FieldAbsent,
    /// `rand_seed` without `rand_mask`; both are fields of attr.config3. EINVAL. This and the next
    /// four refusals are this driver's own: the built-in driver ignores attr.config3.
    RandomSeedAlone,
    /// `rand_mask` on an event that does not sample. EINVAL.
    RandomCounting,
    /// `rand_mask` on an event with a sample frequency. EINVAL.
    RandomFrequency,
    /// `rand_mask` on a precise event. EINVAL.
    RandomPrecise,
    /// A `rand_mask` that is not smaller than the sample period. EINVAL.
    RandomMaskTooWide,
    /// `switch` (attr.config4) on an event that does not lead its group. EINVAL. This and the next
    /// three refusals are this driver's own: the built-in driver ignores attr.config4.
    SwitchOfMember,
    /// `switch` on an event that does not sample. EINVAL.
    SwitchCounting,
    /// `switch` on a pinned group, which does not rotate. EINVAL.
    SwitchPinned,
    /// `switch` on a kernel on which it was not tried. EOPNOTSUPP.
    SwitchUntried,
    /// Extended registers (XMM) in a sample that cannot have them: only precise samples of some
    /// CPUs can, for attr.sample_regs_intr. EINVAL.
    ExtendedRegisters,
    /// A branch stack with branch counters. EINVAL.
    BranchCounters,
    /// A branch stack, because the machine has no branch records, or the driver does not use them.
    /// EOPNOTSUPP.
    BranchStack,
    /// A kind of branches that the processor cannot filter. EOPNOTSUPP.
    BranchFilterAbsent,
    /// A call stack from branch records on a processor that cannot keep them as one. EOPNOTSUPP.
    CallStackAbsent,
    /// A call stack with other kinds of branches. EINVAL.
    CallStackFilter,
    /// A branch stack while Intel PT or BTS, which exclude branch records, is in use. EBUSY.
    BranchStackExcluded,
    /// attr.aux_output without a precise event, on Intel's PMUs. EINVAL. For precise events, the
    /// perf core refuses it with EOPNOTSUPP: this driver sends no PEBS records to Intel PT. On some
    /// small cores, the built-in driver does.
    AuxOutput,
    /// A topdown event with a filter or a value. EINVAL.
    TopdownFilter,
    /// A sampling topdown metric. EINVAL.
    MetricSampling,
    /// A topdown metric in a group that slots do not lead. EINVAL.
    MetricWithoutSlots,
    /// A topdown metric in a group whose leader samples the slots. EINVAL.
    MetricOfSampledSlots,
    /// A load latency event whose samples have a data source, without its auxiliary event before it
    /// in the group. ENODATA.
    LoadLatencyAlone,
    /// Any-thread counting before version 3 of architectural performance monitoring. EINVAL.
    AnyThreadAbsent,
    /// Any-thread counting by a user who may not observe other tasks. EACCES.
    AnyThreadNotPermitted,
    /// A TSX filter (in_tx, in_tx_cp) with any-thread counting or precise_ip. EOPNOTSUPP.
    TransactionFilter,
    /// A short sample period with in_tx_cp: each overflow would abort the TSX transaction, which
    /// would revert the overflow, again and again. EOPNOTSUPP.
    CheckpointedPeriod,
    /// A value with bits that the event's extra register does not have: a raw event's attr.config1,
    /// or the value for a cache event in the model's table. EINVAL.
    ExtraRegisterValue,
    /// An event whose extra register this machine does not have. ENXIO.
    ExtraRegisterAbsent,
    /// A sample of every branch, because BTS is not supported. EOPNOTSUPP.
    EveryBranch,
    /// A sampling event, because the driver cannot find the functions that pass overflows to the
    /// perf core, or the CPU has no local APIC. EOPNOTSUPP; the built-in driver can sample in the
    /// first case.
    Sampling,
    /// Any event, once the [breaker](super::breaker) has tripped. ENODEV; this driver's own.
    Tripped(Cause),
    /// No counter of this machine can count the event. EINVAL.
    NoCounter,
    /// The CPU has the maximum number of events, most of which share counters. EINVAL, from adding
    /// events to a busy PMU.
    TooManyEvents,
    /// The events do not fit on the counters together. EINVAL, from the validation of a group and
    /// from adding events to a busy PMU.
    DoesNotFit(Shortage),
    /// The events fit only without the current [`Limits`](crate::logic::sched::limits::Limits).
    /// Errno as for [`DoesNotFit`](Self::DoesNotFit).
    Limited(Shortage),
    /// The events need more values at the same time than there are extra registers for them. Errno
    /// as for [`DoesNotFit`](Self::DoesNotFit).
    ExtraRegisterTaken,
    /// The events fit only without the values that the core's other thread has in the extra
    /// registers now. Errno as for [`DoesNotFit`](Self::DoesNotFit).
    ExtraRegisterLimited,
}

impl Refusal {
    /// Returns the corresponding refusal for events that would fit without the current limits.
    #[must_use]
    pub fn for_the_moment(self) -> Self {
        match self {
            Self::DoesNotFit(shortage) => Self::Limited(shortage),
            Self::ExtraRegisterTaken => Self::ExtraRegisterLimited,
            other => other,
        }
    }

    /// Returns whether the refusal is due to the current limits.
    pub const fn is_for_the_moment(&self) -> bool {
        matches!(self, Self::Limited(_) | Self::ExtraRegisterLimited)
    }
}

impl From<Shortage> for Refusal {
    fn from(shortage: Shortage) -> Self {
        Self::DoesNotFit(shortage)
    }
}

impl From<NoCacheEvent> for Refusal {
    fn from(reason: NoCacheEvent) -> Self {
        match reason {
            NoCacheEvent::NoSuchId => Self::NoSuchCacheId,
            NoCacheEvent::Impossible => Self::CacheEventImpossible,
            NoCacheEvent::Absent => Self::CacheEventAbsent,
            NoCacheEvent::ExtraRegister => Self::ExtraRegisterValue,
        }
    }
}

impl From<NoExtraRegister> for Refusal {
    fn from(reason: NoExtraRegister) -> Self {
        match reason {
            NoExtraRegister::Value => Self::ExtraRegisterValue,
            NoExtraRegister::Absent => Self::ExtraRegisterAbsent,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherType => "another PMU's event type",
            Self::NoSuchCacheId => "no such generic cache event",
            Self::CacheEventImpossible => "the generic cache event makes no sense on this CPU",
            Self::CacheEventAbsent => "this CPU does not have the generic cache event",
            Self::NoSuchHardwareId => "no such generic hardware event",
            Self::HardwareEventAbsent => "this CPU does not have the generic hardware event",
            Self::Precise => "this CPU has less precision than precise_ip (caps/max_precise)",
            Self::PreciseCounting => "precise_ip needs a sample period",
            Self::PreciseBranches => {
                "precise_ip of 2 needs a branch stack with all branches of the levels that are sampled"
            }
            Self::PreciseGuestBranches => "precise_ip does not go with the event of guests' branch records",
            Self::NeverPrecise => "no counter of this CPU can sample the event precisely",
            Self::PeriodTooShort => "the sample period is too short for this CPU",
            Self::FieldAbsent => "config4 has bits that mean nothing to this driver",
            Self::RandomSeedAlone => "rand_seed needs rand_mask",
            Self::RandomCounting => "rand_mask needs a sample period",
            Self::RandomFrequency => "rand_mask needs a fixed sample period, not a frequency",
            Self::RandomPrecise => "rand_mask does not go with precise_ip",
            Self::RandomMaskTooWide => "rand_mask must be smaller than the sample period",
            Self::SwitchOfMember => "switch is for the leader of a group",
            Self::SwitchCounting => "switch needs a sample period",
            Self::SwitchPinned => "switch is for groups that rotate, not for pinned ones",
            Self::SwitchUntried => "switch was not tried on this version of the kernel",
            Self::ExtendedRegisters => "extended registers cannot be sampled",
            Self::BranchCounters => "this CPU has no branch counters",
            Self::BranchStack => "branch stacks are not supported",
            Self::BranchFilterAbsent => "this CPU has no filter for these branches",
            Self::CallStackAbsent => "this CPU cannot record call stacks",
            Self::CallStackFilter => "a call stack takes no other kinds of branches",
            Self::BranchStackExcluded => "Intel PT or BTS is in use, which exclude branch stacks",
            Self::AuxOutput => "aux_output needs a precise event",
            Self::TopdownFilter => "topdown events take no filters",
            Self::MetricSampling => "topdown metrics cannot be sampled",
            Self::MetricWithoutSlots => "topdown metrics need slots as the leader of their group",
            Self::MetricOfSampledSlots => {
                "topdown metrics need a leader that counts slots and does not sample them"
            }
            Self::LoadLatencyAlone => "load latencies need event 0x8203 before them in their group",
            Self::AnyThreadAbsent => "this CPU cannot count for any thread",
            Self::AnyThreadNotPermitted => "counting for any thread needs CAP_PERFMON",
            Self::TransactionFilter => "in_tx and in_tx_cp go neither with any-thread counting nor with precise_ip",
            Self::CheckpointedPeriod => "in_tx_cp needs a sample period of 0x7fffffff or more",
            Self::ExtraRegisterValue => "config1 has bits that the event's register does not have",
            Self::ExtraRegisterAbsent => "this machine does not have the event's extra register",
            Self::EveryBranch => "a sample of every branch needs BTS",
            Self::Sampling => "the driver cannot pass overflows to the perf core",
            Self::NoCounter => "no counter of this CPU can count the event",
            Self::TooManyEvents => "there are 128 events on this CPU, the maximum",
            Self::ExtraRegisterTaken => "the events need more values than there are extra registers",
            Self::ExtraRegisterLimited => "the core's other thread has the extra register",
            Self::DoesNotFit(shortage) | Self::Limited(shortage) => return shortage.fmt(f),
            Self::Tripped(cause) => return write!(f, "rpmu has given the PMU up: {cause}"),
        })
    }
}
