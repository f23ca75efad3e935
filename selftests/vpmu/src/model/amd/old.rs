// SPDX-License-Identifier: GPL-2.0

//! Families 10h, 15h and 16h, whose event lists are in no machine-readable form: tables by hand.
//!
//! Sources: BKDG 31116 (family 10h), 42301 (15h, models 00h to 0Fh) and 48751 (16h), the sections
//! on performance monitor events, also by way of AMD's own event files for OProfile, which add the
//! counters and the units of each event.

mod family10;
mod family15;
mod family16;

use crate::event::amd::{
    Event,
    Meaning, //
};

pub(super) use family10::MODEL as K10;
pub(super) use family15::MODEL as PILEDRIVER;
pub(super) use family16::MODEL as JAGUAR;

/// Returns an event.
const fn event(event: u16, counters: u8, meaning: Meaning) -> Event {
    Event {
        event,
        counters,
        meaning,
    }
}
