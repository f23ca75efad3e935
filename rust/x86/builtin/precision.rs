// SPDX-License-Identifier: GPL-2.0

//! The highest precision of events that the built-in driver supports.
//!
//! The built-in driver knows on which processors PEBS is broken and which microcode, loadable at
//! any time, repairs it (`intel_snb_check_microcode()`, `arch/x86/events/intel/core.c`). It also
//! knows whether there are buffers for records.
//!
//! In the kernel proper, the driver in charge would know this.

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use kernel::prelude::*;

/// The built-in driver's function for the precision.
///
/// # Invariants
///
/// `x86_pmu_max_precise()` is bound.
pub struct Precision(());

impl Precision {
    /// Binds the function. Fails if it cannot be found. Process context.
    pub fn bind() -> Result<Self> {
        let max_precise = Symbols::new()?.find(c"x86_pmu_max_precise")?;
        // SAFETY: This is the address of the function that has the static call's type.
        unsafe { bindings::rpmu_helper_bind_max_precise(max_precise.as_ptr()) };
        // INVARIANT: The function has just been bound.
        Ok(Self(()))
    }

    /// Returns the maximum `precise_ip`. The built-in driver's hardware must be
    /// [reserved](crate::x86::reserve). Any context.
    pub fn max_precise(&self) -> u8 {
        // SAFETY: By the type invariant the function is bound. Its argument, a PMU, may be null; it
        // matters only on hybrids with architectural PEBS, which this driver does not know.
        let precise = unsafe { bindings::rpmu_helper_max_precise() };
        precise.try_into().unwrap_or(0)
    }
}
