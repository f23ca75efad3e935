// SPDX-License-Identifier: GPL-2.0

//! The fields of a `perf_event_attr` that only this driver has: the built-in driver ignores
//! attr.config3 and attr.config4.
//!
//! `Documentation/fields.md` has the layout, the bits that are reserved for future fields, and the
//! reason for using these two words.
//!
//! Context: as for [`configure`](super::configure).

use super::attr::{
    Attributes,
    SWITCH, //
};
use crate::logic::{
    refusal::Refusal,
    sample::random_period::RandomPeriods, //
};

/// The bits of attr.config4 that have a meaning.
const KNOWN: u64 = SWITCH;

/// The decoded fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extensions {
    /// The random part of sample periods.
    pub(super) random: RandomPeriods,
    /// Set if each overflow ends the turn of the groups on the CPU.
    pub(super) switches: bool,
}

impl Extensions {
    /// Decodes the fields.
    ///
    /// # Errors
    ///
    /// The reason why the event cannot have a requested extension.
    pub(super) fn of(attr: &Attributes) -> Result<Self, Refusal> {
        // A user must not believe that this driver provides an extension that only a later one has.
        if attr.config4 & !KNOWN != 0 {
            return Err(Refusal::FieldAbsent);
        }
        Ok(Self {
            random: random_periods(attr)?,
            switches: switches(attr)?,
        })
    }
}

/// Decodes `switch` (attr.config4), with which each overflow ends the turn. Only leaders can have
/// it, because it is groups that take turns.
fn switches(attr: &Attributes) -> Result<bool, Refusal> {
    if attr.config4 & SWITCH == 0 {
        Ok(false)
    } else if attr.is_member {
        Err(Refusal::SwitchOfMember)
    } else if attr.sample_period == 0 {
        Err(Refusal::SwitchCounting)
    } else if attr.pinned {
        Err(Refusal::SwitchPinned)
    } else {
        Ok(true)
    }
}

/// Decodes the random part of sample periods (attr.config3).
///
/// # Errors
///
/// The reason why the event's periods cannot vary as requested.
fn random_periods(attr: &Attributes) -> Result<RandomPeriods, Refusal> {
    let random = RandomPeriods::from_config3(attr.config3);
    if random == RandomPeriods::NONE {
        Ok(random)
    } else if !random.vary() {
        Err(Refusal::RandomSeedAlone)
    } else if attr.sample_period == 0 {
        Err(Refusal::RandomCounting)
    } else if attr.freq {
        Err(Refusal::RandomFrequency)
    } else if attr.precise_ip > 0 {
        Err(Refusal::RandomPrecise)
    } else if !random.suit(attr.sample_period) {
        Err(Refusal::RandomMaskTooWide)
    } else {
        Ok(random)
    }
}

#[cfg(test)]
mod tests;
