// SPDX-License-Identifier: GPL-2.0

//! Why an event is refused.
//!
//! One reason each, so that the driver can say more than an errno can. The errno that goes with
//! each is named in its docs; it is the one the built-in driver gives, unless the docs say so.

use core::fmt;

use super::assign::Shortage;

/// Why an event, or a group, cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// An attr.type that this PMU does not answer to. ENOENT: perf core asks the next PMU.
    OtherType,
    /// A cache event. ENOENT, as for an id that a model does not have.
    ///
    /// Not mainline's answer for every id: the models' tables are not asked yet
    /// ([`Pmu::cache_event`](super::pmu::Pmu::cache_event)).
    CacheEvent,
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
    /// Any-thread counting before version 3. EINVAL.
    AnyThreadAbsent,
    /// Any-thread counting by someone who may not see other tasks. EACCES.
    AnyThreadNotPermitted,
    /// The in_tx filters together with any-thread counting. EOPNOTSUPP.
    TransactionFilter,
    /// A short period with in_tx_cp: the overflow would abort the transaction and be taken back,
    /// for ever. EOPNOTSUPP.
    CheckpointedPeriod,
    /// An event that needs an extra register (offcore response, load latency, front end), which
    /// nothing programs yet. EOPNOTSUPP; the built-in driver counts it.
    ExtraRegister,
    /// A sampling event, which nothing handles yet. EOPNOTSUPP; the built-in driver samples.
    Sampling,
    /// No counter of this machine can count the event. EINVAL.
    NoCounter,
    /// More events than the machine has counters. EINVAL.
    TooManyEvents,
    /// The events do not fit on the counters together. EINVAL when a group is validated, EAGAIN
    /// when it is added to a busy PMU (perf core makes no difference).
    DoesNotFit(Shortage),
    /// The events would fit, but for what others have at the moment
    /// ([`Limits`](super::limits::Limits)). As for [`DoesNotFit`](Self::DoesNotFit).
    Limited(Shortage),
}

impl From<Shortage> for Refusal {
    fn from(shortage: Shortage) -> Self {
        Self::DoesNotFit(shortage)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OtherType => "another PMU's event type",
            Self::CacheEvent => "cache events are not supported yet",
            Self::NoSuchHardwareId => "no such generic hardware event",
            Self::HardwareEventAbsent => "this CPU does not have the generic hardware event",
            Self::Precise => "precise_ip is not supported",
            Self::PeriodTooShort => "the sample period is too short for this CPU",
            Self::ExtendedRegisters => "extended registers cannot be sampled",
            Self::BranchCounters => "this CPU has no branch counters",
            Self::BranchStack => "branch stacks are not supported",
            Self::AuxOutput => "aux_output needs a precise event",
            Self::AnyThreadAbsent => "this CPU cannot count for any thread",
            Self::AnyThreadNotPermitted => "counting for any thread needs CAP_PERFMON",
            Self::TransactionFilter => "in_tx and in_tx_cp do not go with any-thread counting",
            Self::CheckpointedPeriod => "in_tx_cp needs a sample period of 0x7fffffff or more",
            Self::ExtraRegister => "events with an extra register are not supported yet",
            Self::Sampling => "sampling is not supported yet",
            Self::NoCounter => "no counter of this CPU can count the event",
            Self::TooManyEvents => "more events than counters",
            Self::DoesNotFit(shortage) | Self::Limited(shortage) => return shortage.fmt(f),
        })
    }
}
