// SPDX-License-Identifier: GPL-2.0

//! The errno for each reason.

use crate::logic::{pmu::Unsupported, refusal::Refusal};
use kernel::{error::code::*, prelude::*};

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal {
            Refusal::OtherType | Refusal::CacheEventAbsent | Refusal::HardwareEventAbsent => ENOENT,
            Refusal::AnyThreadNotPermitted => EACCES,
            Refusal::LoadLatencyAlone => ENODATA,
            Refusal::ExtraRegisterAbsent => ENXIO,
            Refusal::BranchStackExcluded => EBUSY,
            Refusal::Precise
            | Refusal::PreciseBranches
            | Refusal::BranchStack
            | Refusal::BranchFilterAbsent
            | Refusal::CallStackAbsent
            | Refusal::TransactionFilter
            | Refusal::CheckpointedPeriod
            | Refusal::EveryBranch
            | Refusal::SwitchUntried
            | Refusal::Sampling => EOPNOTSUPP,
            Refusal::NoSuchHardwareId
            | Refusal::NoSuchCacheId
            | Refusal::CacheEventImpossible
            | Refusal::ExtraRegisterValue
            | Refusal::ExtraRegisterTaken
            | Refusal::ExtraRegisterLimited
            | Refusal::PreciseCounting
            | Refusal::PreciseGuestBranches
            | Refusal::NeverPrecise
            | Refusal::PeriodTooShort
            | Refusal::FieldAbsent
            | Refusal::RandomSeedAlone
            | Refusal::RandomCounting
            | Refusal::RandomFrequency
            | Refusal::RandomPrecise
            | Refusal::RandomMaskTooWide
            | Refusal::SwitchOfMember
            | Refusal::SwitchCounting
            | Refusal::SwitchPinned
            | Refusal::ExtendedRegisters
            | Refusal::BranchCounters
            | Refusal::CallStackFilter
            | Refusal::AuxOutput
            | Refusal::TopdownFilter
            | Refusal::MetricSampling
            | Refusal::MetricWithoutSlots
            | Refusal::MetricOfSampledSlots
            | Refusal::AnyThreadAbsent
            | Refusal::NoCounter
            | Refusal::DoesNotFit(_)
            | Refusal::Limited(_) => EINVAL,
        }
    }
}

impl From<Unsupported> for Error {
    fn from(_: Unsupported) -> Error {
        ENODEV
    }
}
