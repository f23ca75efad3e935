// SPDX-License-Identifier: GPL-2.0

//! The debug store (DS): the memory of each CPU that its PEBS records are written to, and the
//! registers that make the processor write them.
//!
//! The kernel allocates the memory and points IA32_DS_AREA to it, as long as the built-in driver's
//! hardware is [reserved](crate::x86::reserve). This driver never writes that register, and where
//! records go is not up to it: what it writes to the debug store is the place of the next record,
//! which can only be the first one, the number of records after which a PMI is raised, and the
//! values that counters are started with.
//!
//! Source: SDM volume 3, 19.4.9 (DS save area) and 20.6.2.4 (PEBS).
//!
//! C header: [`arch/x86/include/asm/intel_ds.h`](srctree/arch/x86/include/asm/intel_ds.h)

use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::NonNull,
    sync::atomic::{
        AtomicU64,
        Ordering::Relaxed, //
    },
};
use kernel::interrupt::LocalInterruptDisabled;

/// The debug store of a CPU, with a buffer for PEBS.
///
/// # Invariants
///
/// For `'a` the area is a `struct debug_store`, and its PEBS buffer, from `pebs_buffer_base` to
/// `pebs_absolute_maximum`, is memory that stays mapped and that nothing but the processor writes.
pub struct DebugStore<'a> {
    area: NonNull<bindings::debug_store>,
    _lives: PhantomData<&'a bindings::debug_store>,
}

/// The number of values that general-purpose counters have in the debug store before those of fixed
/// counters, up to format 4 (`MAX_PEBS_EVENTS_FMT4`).
const GENERAL_PURPOSE: usize = 8;

impl<'a> DebugStore<'a> {
    /// Returns the debug store at `area`. [`None`] if that is null or has no buffer for PEBS.
    ///
    /// # Safety
    ///
    /// `area` must be null or, for `'a`, a debug store that `reserve_ds_buffers()` has set up.
    pub(in crate::x86) unsafe fn new(area: *mut bindings::debug_store) -> Option<Self> {
        // INVARIANT: By this function's requirements; `alloc_pebs_buffer()` has mapped the buffer
        // into the entry area, or left its address 0.
        let this = Self {
            area: NonNull::new(area)?,
            _lives: PhantomData,
        };
        (this.base() != 0).then_some(this)
    }

    /// Returns a member. Processor and driver write it.
    fn member(&self, of: fn(*mut bindings::debug_store) -> *mut u64) -> &'a AtomicU64 {
        // SAFETY: By the type invariant the area is a debug store, and `of` returns the address of
        // a member.
        unsafe { AtomicU64::from_ptr(of(self.area.as_ptr())) }
    }

    fn base(&self) -> u64 {
        // SAFETY: Only the address of the member is taken.
        self.member(|area| unsafe { &raw mut (*area).pebs_buffer_base })
            .load(Relaxed)
    }

    fn index(&self) -> &'a AtomicU64 {
        // SAFETY: `member()` passes the debug store. Only the address of the member is taken.
        self.member(|area| unsafe { &raw mut (*area).pebs_index })
    }

    fn end(&self) -> u64 {
        // SAFETY: `member()` passes the debug store. Only the address of the member is taken.
        self.member(|area| unsafe { &raw mut (*area).pebs_absolute_maximum })
            .load(Relaxed)
    }

    /// Returns the number of words that the buffer has.
    pub fn capacity(&self) -> usize {
        self.words(self.base(), u64::MAX)
    }

    /// Returns the number of words that the buffer has from its `base` to `index`.
    #[inline]
    fn words(&self, base: u64, index: u64) -> usize {
        let bytes = self.end().min(index).saturating_sub(base);
        // CAST: the size of a buffer.
        bytes.min(u64::from(bindings::RUST_CONST_HELPER_PEBS_BUFFER_SIZE)) as usize
            / size_of::<u64>()
    }

    /// Returns whether there may be records: none if the processor should ever have left the index
    /// before the base, but [`clear`](Self::clear) is due then as well. Any context, on the CPU.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.index().load(Relaxed) != self.base()
    }

    /// Returns the records that have been written. Any context, on the CPU, whose counters are
    /// stopped: no more are written then.
    pub fn records(&self, _irqs: &LocalInterruptDisabled) -> &'a [AtomicU64] {
        let base = self.base();
        let words = self.words(base, self.index().load(Relaxed));
        // CAST: an address.
        let base: *const AtomicU64 = core::ptr::with_exposed_provenance(base as usize);
        // SAFETY: By the type invariant, so many words from the base on are mapped memory,
        // page-aligned. Atomics may be written at any time, also by the processor.
        unsafe { core::slice::from_raw_parts(base, words) }
    }

    /// Discards the records. As [`records`](Self::records).
    pub fn clear(&self, _irqs: &LocalInterruptDisabled) {
        self.index().store(self.base(), Relaxed);
    }

    /// Sets after how many words a PMI is raised. On the CPU.
    pub fn set_threshold(&self, words: usize, _irqs: &LocalInterruptDisabled) {
        // CAST: no more than the buffer has.
        let bytes = words.min(self.capacity()).wrapping_mul(size_of::<u64>()) as u64;
        // SAFETY: Only the address of the member is taken.
        self.member(|area| unsafe { &raw mut (*area).pebs_interrupt_threshold })
            .store(self.base().wrapping_add(bytes), Relaxed);
    }

    /// Sets the value that general-purpose or fixed counter `n` is started with when a record of
    /// its event has been written. On the CPU.
    pub fn set_reload(&self, fixed: bool, n: u8, value: u64, _irqs: &LocalInterruptDisabled) {
        let slot = usize::from(n).wrapping_add(if fixed { GENERAL_PURPOSE } else { 0 });
        // SAFETY: Only the address of the member is taken.
        let values = unsafe { &raw mut (*self.area.as_ptr()).pebs_event_reset };
        // SAFETY: By the type invariant the area is a debug store.
        if let Some(entry) = unsafe { (*values).get_mut(slot) } {
            // SAFETY: The entry is a word, which the processor only reads while counters run.
            unsafe { AtomicU64::from_ptr(entry) }.store(value, Relaxed);
        }
    }

    /// Sets PEBS_ENABLE: the counters whose events are recorded, and which of them record latencies
    /// or stores.
    ///
    /// On the CPU, whose counters are stopped. If the processor refuses (`#GP`), the kernel warns
    /// once.
    #[inline]
    pub fn set_enable(&self, value: u64, irqs: &LocalInterruptDisabled) {
        write(bindings::MSR_IA32_PEBS_ENABLE, value, irqs);
    }

    /// Sets PEBS_DATA_CFG: the groups of adaptive records. As [`set_enable`](Self::set_enable).
    pub fn set_data_config(&self, value: u64, irqs: &LocalInterruptDisabled) {
        write(bindings::MSR_PEBS_DATA_CFG, value, irqs);
    }
}

fn write(msr: u32, value: u64, _irqs: &LocalInterruptDisabled) {
    // SAFETY: Both registers make the processor write records, to the CPU's buffer in the debug
    // store and nowhere else: the caller has a `DebugStore`, so that the kernel has pointed
    // IA32_DS_AREA to it.
    unsafe { bindings::rpmu_helper_wrmsrq(msr, value) }
}
