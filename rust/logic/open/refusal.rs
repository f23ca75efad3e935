// SPDX-License-Identifier: GPL-2.0

//! Why an event is refused.
//!
//! One reason each, so that the driver can say more than an errno can. The errno that goes with
//! each is named in its docs; it is the one the built-in driver gives, unless the docs say so.

use core::fmt;

use super::cache_event::NoCacheEvent;
use crate::logic::sched::{
    assign::Shortage, extra_register::NoExtraRegister, register_plan::Conflict,
};

/// Why an event, or a group, cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An attr.type that this PMU does not answer to. ENOENT: perf core asks the next PMU.
    OtherType,
    /// A cache event's id of which a part is out of range. EINVAL.
    NoSuchCacheId,
    /// A cache event that makes no sense on this CPU. EINVAL.
    CacheEventImpossible,
    /// A cache event that this CPU does not count. ENOENT.
    CacheEventAbsent,
    /// A generic hardware id from `PERF_COUNT_HW_MAX` on. EINVAL.
    NoSuchHardwareId,
    /// A generic hardware event that this CPU does not have. ENOENT.
    HardwareEventAbsent,
    /// More precision (`precise_ip`) than there is. EOPNOTSUPP.
    Precise,
    /// A sample period shorter than the model allows. EINVAL.
    PeriodTooShort,
    /// Extended registers (XMM) in a sample. EINVAL.
    ExtendedRegisters,
    /// Branch counters in a branch stack. EINVAL.
    BranchCounters,
    /// A branch stack, without LBRs. EOPNOTSUPP.
    BranchStack,
    /// `aux_output` of an event that is not precise. EINVAL.
    AuxOutput,
    /// A filter or a value with an event of the topdown method. EINVAL.
    TopdownFilter,
    /// Load latencies without the event that they need beside them, in front of them in their group.
    /// ENODATA.
    LoadLatencyAlone,
    /// Any-thread counting before version 3. EINVAL.
    AnyThreadAbsent,
    /// Any-thread counting by someone who may not see other tasks. EACCES.
    AnyThreadNotPermitted,
    /// The in_tx filters together with any-thread counting. EOPNOTSUPP.
    TransactionFilter,
    /// A short period with in_tx_cp: the overflow would abort the transaction and be taken back,
    /// for ever. EOPNOTSUPP.
    CheckpointedPeriod,
    /// A value (`attr.config1`) that the event's extra register does not take. EINVAL.
    ExtraRegisterValue,
    /// An event whose extra register this machine does not have. ENXIO.
    ExtraRegisterAbsent,
    /// A sample of every branch, without BTS. EOPNOTSUPP.
    EveryBranch,
    /// A sampling event, where overflows cannot be handed to perf core. EOPNOTSUPP; the built-in
    /// driver samples.
    Sampling,
    /// No counter of this machine can count the event. EINVAL.
    NoCounter,
    /// More events than the machine has counters. EINVAL.
    TooManyEvents,
    /// The events do not fit on the counters together. EINVAL when a group is validated, EAGAIN
    /// when it is added to a busy PMU (perf core makes no difference).
    DoesNotFit(Shortage),
    /// The events would fit, but for what others have at the moment
    /// ([`Limits`](crate::logic::sched::limits::Limits)). As for [`DoesNotFit`](Self::DoesNotFit).
    Limited(Shortage),
    /// The events want more values at once than there are extra registers for. As for
    /// [`DoesNotFit`](Self::DoesNotFit).
    ExtraRegisterTaken,
    /// The same, but for what others have at the moment in these registers.
    ExtraRegisterLimited,
}

impl Refusal {
    /// What a refusal is when there would be none without what others have at the moment.
    #[must_use]
    pub fn for_the_moment(self) -> Self {
        match self {
            Self::DoesNotFit(shortage) => Self::Limited(shortage),
            Self::ExtraRegisterTaken => Self::ExtraRegisterLimited,
            other => other,
        }
    }

    /// Whether it holds only as long as others have what they have.
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

impl From<Conflict> for Refusal {
    fn from(_: Conflict) -> Self {
        Self::ExtraRegisterTaken
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
            Self::Precise => "precise_ip is not supported",
            Self::PeriodTooShort => "the sample period is too short for this CPU",
            Self::ExtendedRegisters => "extended registers cannot be sampled",
            Self::BranchCounters => "this CPU has no branch counters",
            Self::BranchStack => "branch stacks are not supported",
            Self::AuxOutput => "aux_output needs a precise event",
            Self::TopdownFilter => "the topdown method's events take no filters",
            Self::LoadLatencyAlone => {
                "load latencies need event 0x8203 in front of them in their group"
            }
            Self::AnyThreadAbsent => "this CPU cannot count for any thread",
            Self::AnyThreadNotPermitted => "counting for any thread needs CAP_PERFMON",
            Self::TransactionFilter => "in_tx and in_tx_cp do not go with any-thread counting",
            Self::CheckpointedPeriod => "in_tx_cp needs a sample period of 0x7fffffff or more",
            Self::ExtraRegisterValue => "config1 has bits that the event's register does not have",
            Self::ExtraRegisterAbsent => "the event's extra register is not there",
            Self::EveryBranch => "a sample of every branch takes BTS",
            Self::Sampling => "overflows cannot be handed to perf core",
            Self::NoCounter => "no counter of this CPU can count the event",
            Self::TooManyEvents => "more events than counters",
            Self::ExtraRegisterTaken => "more values for extra registers than registers",
            Self::ExtraRegisterLimited => "the core's other thread has the extra register",
            Self::DoesNotFit(shortage) | Self::Limited(shortage) => return shortage.fmt(f),
        })
    }
}
