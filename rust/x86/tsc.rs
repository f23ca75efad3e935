// SPDX-License-Identifier: GPL-2.0

//! The perf core's clock, if it is derived from the time stamp counter (TSC).
//!
//! C header: [`arch/x86/include/asm/tsc.h`](srctree/arch/x86/include/asm/tsc.h)

use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use core::ptr::NonNull;
use kernel::prelude::*;

/// The perf core's clock.
///
/// # Invariants
///
/// The functions are bound, and `offset` is the address of `__sched_clock_offset`.
pub struct TscClock {
    offset: NonNull<u64>,
}

// SAFETY: The pointer is to kernel data that any thread may read.
unsafe impl Send for TscClock {}

// SAFETY: The methods only read the data behind `offset`, and the bound functions may be called on
// several CPUs at the same time.
unsafe impl Sync for TscClock {}

impl TscClock {
    /// Binds the functions. Fails if they cannot be found. Process context.
    pub fn bind() -> Result<Self> {
        let symbols = Symbols::new()?;
        let native = symbols.find(c"using_native_sched_clock")?;
        let stable = symbols.find(c"sched_clock_stable")?;
        let from_tsc = symbols.find(c"native_sched_clock_from_tsc")?;
        // SAFETY: The addresses belong to functions of the types that the static calls have.
        unsafe {
            bindings::rpmu_helper_bind_tsc_clock(
                native.as_ptr(),
                stable.as_ptr(),
                from_tsc.as_ptr(),
            )
        };
        // INVARIANT: The functions have just been bound, and the symbol found.
        Ok(Self {
            offset: symbols.find(c"__sched_clock_offset")?.cast(),
        })
    }

    /// Returns whether the perf core uses this clock. The perf core changes to another clock if the
    /// time stamp counter turns out to be unstable. Any context.
    pub fn is_used(&self) -> bool {
        // SAFETY: By the type invariant the functions are bound. They may be called in any context.
        unsafe { bindings::rpmu_helper_is_tsc_clock() }
    }

    /// Returns the time in nanoseconds at which the time stamp counter was `tsc`, if this clock [is
    /// used](Self::is_used). Any context.
    ///
    /// Mainline: `setup_pebs_time()`, `arch/x86/events/intel/ds.c`.
    #[inline]
    pub fn time(&self, tsc: u64) -> u64 {
        // SAFETY: By the type invariant the function is bound. It may be called in any context.
        let time = unsafe { bindings::rpmu_helper_native_sched_clock_from_tsc(tsc) };
        // SAFETY: By the type invariant the pointer is valid. The kernel writes the offset while it
        // boots.
        time.wrapping_add(unsafe { self.offset.as_ptr().read_volatile() })
    }
}
