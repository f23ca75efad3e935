// SPDX-License-Identifier: GPL-2.0

//! Who uses the counters: the kernel keeps a note per register, so that two drivers do not program
//! the same one.
//!
//! C: `arch/x86/kernel/cpu/perfctr-watchdog.c`

use super::{
    intel::perfmon::{Counters, Gp},
    msr::Msr,
};
use crate::bindings;
use kernel::prelude::*;

/// All general-purpose counters and their event selects, noted as in use until this is dropped.
///
/// # Invariants
///
/// The registers of the first `reserved` of `counters` are reserved for this.
pub struct Reservation {
    counters: Counters,
    reserved: usize,
}

impl Reservation {
    /// Reserves them. `EBUSY` if another driver uses one: the built-in one does while it has
    /// events.
    pub fn new(counters: &Counters) -> Result<Self> {
        // INVARIANT: None is reserved yet.
        let mut this = Self {
            counters: *counters,
            reserved: 0,
        };
        for counter in counters.all_gp() {
            reserve(counter)?;
            // INVARIANT: One more has been reserved.
            this.reserved += 1;
        }
        Ok(this)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for counter in self.counters.all_gp().take(self.reserved) {
            release_pmc(counter);
            // SAFETY: By the type invariant it is reserved for this.
            unsafe { bindings::release_evntsel_nmi(Msr::perfevtsel(counter).number()) };
        }
    }
}

/// Both registers of a counter, or none.
fn reserve(counter: Gp) -> Result {
    // SAFETY: Sets a bit in the kernel's note, and refuses numbers that it has no bit for.
    if unsafe { bindings::reserve_perfctr_nmi(Msr::pmc(counter).number()) } == 0 {
        return Err(EBUSY);
    }
    // SAFETY: As above.
    if unsafe { bindings::reserve_evntsel_nmi(Msr::perfevtsel(counter).number()) } == 0 {
        release_pmc(counter);
        return Err(EBUSY);
    }
    Ok(())
}

/// Undoes the reservation of a counter's value register, which the caller must have.
fn release_pmc(counter: Gp) {
    // SAFETY: Clears a bit in the kernel's note, which is this driver's.
    unsafe { bindings::release_perfctr_nmi(Msr::pmc(counter).number()) };
}
