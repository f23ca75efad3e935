// SPDX-License-Identifier: GPL-2.0

//! The fields of a `perf_event_attr` that this driver alone knows: the built-in driver ignores attr.config3.
//!
//! Context: as for [`attr`](super::attr).

use super::{attr::Attributes, refusal::Refusal};
use crate::logic::sample::random_period::RandomPeriods;

/// Decodes the random part of sample periods (attr.config3).
///
/// # Errors
///
/// The reason why the event's periods cannot vary as requested.
pub(super) fn random_periods(attr: &Attributes) -> Result<RandomPeriods, Refusal> {
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
