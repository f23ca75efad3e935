// SPDX-License-Identifier: GPL-2.0

//! The kernel's scheduler, by way of `kernel.c`.

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

/// The one set of events that `kernel.c` has.
pub(crate) struct Events {
    len: i32,
    /// Not to be shared between threads: `kernel.c` has no lock.
    _not_sync: PhantomData<*mut ()>,
}

impl Events {
    /// Nobody else may have it.
    pub(crate) fn take() -> Option<Self> {
        (!TAKEN.swap(true, Ordering::Acquire)).then_some(Self {
            len: 0,
            _not_sync: PhantomData,
        })
    }

    /// Makes the set hold `wants`, of which there are at most 64, and the counters they had.
    pub(crate) fn set(&mut self, wants: &[Want], previous: &[Option<u8>]) {
        // SAFETY: nobody else uses the set, as there is one `Events` and `&mut` to it is held.
        unsafe { c::assign_test_clear() };
        self.len = 0;
        for (i, want) in wants.iter().take(MAX).enumerate() {
            let flags = u32::from(want.overlap) | (u32::from(want.pair) << 1);
            let had = previous.get(i).copied().flatten().map_or(-1, i32::from);
            // SAFETY: nobody else uses the set, as there is one `Events` and `&mut` to it is held;
            // the set has room for `MAX` events.
            unsafe { c::assign_test_add(want.counters, flags, had) };
            self.len += 1;
        }
    }

    /// `perf_assign_events()`: the number of events without a counter.
    pub(crate) fn assign(&mut self, gp_limit: u32) -> i32 {
        // SAFETY: as in `set()`.
        unsafe { c::assign_test_assign(gp_limit as i32) }
    }

    /// What `x86_schedule_events()` does around it.
    pub(crate) fn schedule(&mut self, gp_limit: u32) -> i32 {
        // SAFETY: as in `set()`.
        unsafe { c::assign_test_schedule(gp_limit as i32) }
    }

    /// The counters, after 0 from either of these.
    pub(crate) fn counters(&self) -> impl Iterator<Item = i32> + '_ {
        // SAFETY: `event` is one that was added, and `&self` keeps others from changing the set.
        (0..self.len).map(|event| unsafe { c::assign_test_counter(event) })
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        TAKEN.store(false, Ordering::Release);
    }
}

/// Instructions that this CPU has retired in the kernel; `None` but on the emulated PMU.
pub(crate) fn instructions() -> Option<u64> {
    let mut instructions = 0;
    // SAFETY: the pointer is to a local variable; where the MSR is absent, the fault is handled.
    unsafe { c::assign_test_instructions(&mut instructions) }.then_some(instructions)
}

/// How many instructions `f` takes, without interrupts, less what an empty function does.
pub(crate) fn cost(mut f: impl FnMut()) -> Option<u64> {
    // Once before, to have everything in place.
    f();
    // SAFETY: restored below, on this CPU, and nothing in between sleeps: what is measured
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
