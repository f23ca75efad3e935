// SPDX-License-Identifier: GPL-2.0

//! The precision of events that the built-in driver finds possible.
//!
//! It knows the processors on which PEBS is broken and the microcode that mends them, which may be
//! loaded at any time (`intel_snb_check_microcode()`, `arch/x86/events/intel/core.c`), and whether
//! there are buffers for records.
//!
//! In the kernel proper, the driver that is in charge would know.

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use kernel::prelude::*;

/// The function that tells.
///
/// # Invariants
///
/// `x86_pmu_max_precise()` is bound.
pub struct Precision(());

impl Precision {
    /// Binds the function. Fails if it cannot be found. Process context.
    pub fn bind() -> Result<Self> {
        let max_precise = Symbols::new()?.find(c"x86_pmu_max_precise")?;
        // SAFETY: It is the address of the function whose type the static call has.
        unsafe { bindings::rpmu_helper_bind_max_precise(max_precise.as_ptr()) };
        // INVARIANT: Just bound.
        Ok(Self(()))
    }

    /// Returns the greatest `precise_ip`, while the built-in driver's hardware is
    /// [reserved](crate::x86::reserve). Any context.
    pub fn greatest(&self) -> u8 {
        // SAFETY: By the type invariant. The function looks at the PMU that it gets only on
        // hybrids, which this driver refuses.
        let precise = unsafe { bindings::rpmu_helper_max_precise() };
        precise.try_into().unwrap_or(0)
    }
}
