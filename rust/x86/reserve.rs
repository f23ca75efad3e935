// SPDX-License-Identifier: GPL-2.0

//! Reservation of counters. The kernel keeps a bit per register, so that no two drivers program
//! one.
//!
//! C: `arch/x86/kernel/cpu/perfctr-watchdog.c`

use super::msr::Msr;
use crate::bindings;
use kernel::prelude::*;

/// The two registers of a general-purpose counter.
#[derive(Clone, Copy)]
pub struct CounterRegisters {
    /// Its event select.
    pub select: Msr,
    /// The counter itself.
    pub counter: Msr,
}

/// Counters whose registers are reserved until this is dropped.
///
/// # Invariants
///
/// The registers of all `counters` are reserved for this.
pub struct Reservation {
    counters: KVec<CounterRegisters>,
}

impl Reservation {
    /// Reserves them. `EBUSY` if another driver uses one: the built-in one does while it has
    /// events. Process context.
    pub fn new(counters: impl Iterator<Item = CounterRegisters>) -> Result<Self> {
        // INVARIANT: None is reserved yet.
        let mut this = Self {
            counters: KVec::new(),
        };
        for registers in counters {
            // So that what is reserved can be kept.
            this.counters.reserve(1, GFP_KERNEL)?;
            reserve(registers)?;
            // INVARIANT: One more has been reserved.
            this.counters.push(registers, GFP_KERNEL)?;
        }
        Ok(this)
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        for registers in &self.counters {
            release_counter(*registers);
            // SAFETY: By the type invariant it is reserved for this.
            unsafe { bindings::release_evntsel_nmi(registers.select.number()) };
        }
    }
}

/// Reserves both registers of a counter, or none.
fn reserve(registers: CounterRegisters) -> Result {
    // SAFETY: Sets a bit of the kernel's bitmap, and refuses numbers that have no bit in it.
    if unsafe { bindings::reserve_perfctr_nmi(registers.counter.number()) } == 0 {
        return Err(EBUSY);
    }
    // SAFETY: As above.
    if unsafe { bindings::reserve_evntsel_nmi(registers.select.number()) } == 0 {
        release_counter(registers);
        return Err(EBUSY);
    }
    Ok(())
}

/// Releases the counter itself, which the caller must have reserved.
fn release_counter(registers: CounterRegisters) {
    // SAFETY: Clears a bit of the kernel's bitmap, which the caller has set.
    unsafe { bindings::release_perfctr_nmi(registers.counter.number()) };
}
