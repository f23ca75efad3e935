// SPDX-License-Identifier: GPL-2.0

//! The errno of each refusal.

use super::Refusal;

/// An error of `perf_event_open()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errno {
    /// `ENOENT`.
    NoEntry,
    /// `EACCES`.
    Access,
    /// `ENODATA`.
    NoData,
    /// `ENXIO`.
    NoAddress,
    /// `EBUSY`.
    Busy,
    /// `ENODEV`.
    NoDevice,
    /// `EOPNOTSUPP`.
    NotSupported,
    /// `EINVAL`.
    Invalid,
}

impl Errno {
    /// Returns the errno's name, in capitals.
    pub const fn name(self) -> &'static str {
        match self {
            Self::NoEntry => "ENOENT",
            Self::Access => "EACCES",
            Self::NoData => "ENODATA",
            Self::NoAddress => "ENXIO",
            Self::Busy => "EBUSY",
            Self::NoDevice => "ENODEV",
            Self::NotSupported => "EOPNOTSUPP",
            Self::Invalid => "EINVAL",
        }
    }
}

impl Refusal {
    /// Returns the errno, which the variant's doc names.
    pub const fn errno(&self) -> Errno {
        match self {
            Self::OtherType | Self::CacheEventAbsent | Self::HardwareEventAbsent => Errno::NoEntry,
            Self::AnyThreadNotPermitted => Errno::Access,
            Self::LoadLatencyAlone => Errno::NoData,
            Self::ExtraRegisterAbsent => Errno::NoAddress,
            Self::BranchStackExcluded => Errno::Busy,
            Self::Tripped(_) => Errno::NoDevice,
            Self::Precise
            | Self::PreciseBranches
            | Self::BranchStack
            | Self::BranchFilterAbsent
            | Self::CallStackAbsent
            | Self::TransactionFilter
            | Self::CheckpointedPeriod
            | Self::EveryBranch
            | Self::SwitchUntried
            | Self::Sampling => Errno::NotSupported,
            Self::NoSuchHardwareId
            | Self::NoSuchCacheId
            | Self::CacheEventImpossible
            | Self::ExtraRegisterValue
            | Self::TooManyEvents
            | Self::ExtraRegisterTaken
            | Self::ExtraRegisterLimited
            | Self::PreciseCounting
            | Self::PreciseGuestBranches
            | Self::NeverPrecise
            | Self::PeriodTooShort
            | Self::FieldAbsent
            | Self::RandomSeedAlone
            | Self::RandomCounting
            | Self::RandomFrequency
            | Self::RandomPrecise
            | Self::RandomMaskTooWide
            | Self::SwitchOfMember
            | Self::SwitchCounting
            | Self::SwitchPinned
            | Self::ExtendedRegisters
            | Self::BranchCounters
            | Self::CallStackFilter
            | Self::AuxOutput
            | Self::TopdownFilter
            | Self::MetricSampling
            | Self::MetricWithoutSlots
            | Self::MetricOfSampledSlots
            | Self::AnyThreadAbsent
            | Self::NoCounter
            | Self::DoesNotFit(_)
            | Self::Limited(_) => Errno::Invalid,
        }
    }
}
