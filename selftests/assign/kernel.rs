// SPDX-License-Identifier: GPL-2.0

//! The kernel's scheduler, called through `kernel.c`.

use core::marker::PhantomData;
use core::sync::atomic::{
    AtomicBool,
    Ordering, //
};

use super::mainline::{
    Want,
    MAX, //
};

mod c {
    extern "C" {
        pub(super) fn assign_test_instructions(instructions: *mut u64) -> bool;
        pub(super) fn assign_test_irq_save() -> usize;
        pub(super) fn assign_test_irq_restore(flags: usize);
        pub(super) fn assign_test_clear();
        pub(super) fn assign_test_add(mask: u64, flags: u32, had: i32);
        pub(super) fn assign_test_assign(gpmax: i32) -> i32;
        pub(super) fn assign_test_schedule(gpmax: i32) -> i32;
        pub(super) fn assign_test_counter(event: i32) -> i32;
    }
}

static TAKEN: AtomicBool = AtomicBool::new(false);

/// The one set of events in `kernel.c`.
pub(crate) struct Events {
    len: i32,
    /// Not shared between threads: `kernel.c` has no lock.
    _not_sync: PhantomData<*mut ()>,
}

impl Events {
    /// Takes the set; returns `None` if it is taken.
    pub(crate) fn take() -> Option<Self> {
        (!TAKEN.swap(true, Ordering::Acquire)).then_some(Self {
            len: 0,
            _not_sync: PhantomData,
        })
    }

    /// Fills the set with `wants`, at most 64 events, and their previous counters.
    pub(crate) fn set(&mut self, wants: &[Want], previous: &[Option<u8>]) {
        // SAFETY: there is one `Events`, and `&mut self` is held: no other code uses the set.
        unsafe { c::assign_test_clear() };
        self.len = 0;
        for (i, want) in wants.iter().take(MAX).enumerate() {
            let flags = u32::from(want.overlap) | (u32::from(want.pair) << 1);
            let had = previous.get(i).copied().flatten().map_or(-1, i32::from);
            // SAFETY: there is one `Events`, and `&mut self` is held: no other code uses the set,
            // which has room for `MAX` events.
            unsafe { c::assign_test_add(want.counters, flags, had) };
            self.len += 1;
        }
    }

    /// Calls `perf_assign_events()` and returns the number of events without a counter.
    pub(crate) fn assign(&mut self, gp_limit: u32) -> i32 {
        // SAFETY: there is one `Events`, and `&mut self` is held: no other code uses the set.
        unsafe { c::assign_test_assign(gp_limit as i32) }
    }

    /// Calls the copy of `x86_schedule_events()` and returns the number of events without a
    /// counter.
    pub(crate) fn schedule(&mut self, gp_limit: u32) -> i32 {
        // SAFETY: there is one `Events`, and `&mut self` is held: no other code uses the set.
        unsafe { c::assign_test_schedule(gp_limit as i32) }
    }

    /// Returns the events' counters; valid after `assign()` or `schedule()` has returned 0.
    pub(crate) fn counters(&self) -> impl Iterator<Item = i32> + '_ {
        // SAFETY: `event` was added, and `&self` prevents changes of the set.
        (0..self.len).map(|event| unsafe { c::assign_test_counter(event) })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

/// Returns the instructions that this CPU has retired in the kernel; `None` except on the emulated
/// PMU.
pub(crate) fn instructions() -> Option<u64> {
    let mut instructions = 0;
    // SAFETY: the pointer is to a local variable; where the MSR is absent, the fault is handled.
    unsafe { c::assign_test_instructions(&mut instructions) }.then_some(instructions)
}

/// Returns the number of instructions of `f`, with interrupts off, less those of the measurement.
/// Calls `f` twice.
pub(crate) fn cost(mut f: impl FnMut()) -> Option<u64> {
    // Warm up.
    f();
    // SAFETY: restored below, on this CPU, and nothing in between sleeps: the measured code only
    // computes.
    let flags = unsafe { c::assign_test_irq_save() };
    let nothing = instructions().zip(instructions());
    let before = instructions();
    f();
    let after = instructions();
    // SAFETY: `flags` is from the call above.
    unsafe { c::assign_test_irq_restore(flags) };
    let (start, end) = nothing?;
    Some(
        after?
            .wrapping_sub(before?)
            .wrapping_sub(end.wrapping_sub(start)),
    )
}
