// SPDX-License-Identifier: GPL-2.0

//! The debug store (DS): the memory to which each CPU writes its PEBS records, and the registers
//! that control this.
//!
//! The kernel allocates the memory and points IA32_DS_AREA to it, as long as the built-in driver's
//! hardware is [reserved](crate::x86::reserve). This driver never writes that register, so it
//! cannot choose where records go. To the debug store it only writes the place of the next record,
//! which is always the start of the buffer, the threshold at which a PMI is raised, and the reload
//! values of counters.
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

/// The number of reload values for general-purpose counters in the debug store, before those for
/// fixed counters, up to format 4 (`MAX_PEBS_EVENTS_FMT4`).
const GENERAL_PURPOSE: usize = 8;

impl<'a> DebugStore<'a> {
    /// Returns the debug store at `area`; [`None`] if `area` is null or has no buffer for PEBS.
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

    /// Returns the size of the buffer in words.
    pub fn capacity(&self) -> usize {
        self.words(self.base(), u64::MAX)
    }

    /// Returns the number of words of the buffer from `base` to `index`.
    #[inline]
    fn words(&self, base: u64, index: u64) -> usize {
        let bytes = self.end().min(index).saturating_sub(base);
        // CAST: at most the size of a buffer.
        bytes.min(u64::from(bindings::RUST_CONST_HELPER_PEBS_BUFFER_SIZE)) as usize
            / size_of::<u64>()
    }

    /// Returns whether there may be records. Also true if the processor has left the index below
    /// the base: then there are no records, but the index must be [reset](Self::clear). Any
    /// context, on the CPU.
    #[inline]
    pub fn has_records(&self) -> bool {
        self.index().load(Relaxed) != self.base()
    }

    /// Returns the records that have been written. Any context, on the CPU, whose counters must be
    /// stopped, so that no more records are written.
    pub fn records(&self, _irqs: &LocalInterruptDisabled) -> &'a [AtomicU64] {
        let base = self.base();
        let words = self.words(base, self.index().load(Relaxed));
        // CAST: an address.
        let base: *const AtomicU64 = core::ptr::with_exposed_provenance(base as usize);
        // SAFETY: By the type invariant, the `words` words from the base on are mapped memory, and
        // the base is page-aligned. The processor may write atomics at any time.
        unsafe { core::slice::from_raw_parts(base, words) }
    }

    /// Discards the records. The context is as for [`records`](Self::records).
    pub fn clear(&self, _irqs: &LocalInterruptDisabled) {
        self.index().store(self.base(), Relaxed);
    }

    /// Sets the number of words after which a PMI is raised. On the CPU.
    pub fn set_threshold(&self, words: usize, _irqs: &LocalInterruptDisabled) {
        // CAST: no more than the buffer has.
        let bytes = words.min(self.capacity()).wrapping_mul(size_of::<u64>()) as u64;
        // SAFETY: Only the address of the member is taken.
        self.member(|area| unsafe { &raw mut (*area).pebs_interrupt_threshold })
            .store(self.base().wrapping_add(bytes), Relaxed);
    }

    /// Sets the reload value of general-purpose or fixed counter `n`, with which the processor
    /// restarts the counter after it has written a record. On the CPU.
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

    /// Sets PEBS_ENABLE: the counters whose events are recorded, and those that record latencies or
    /// stores.
    ///
    /// On the CPU, whose counters must be stopped. If the processor refuses (`#GP`), the kernel
    /// warns once.
    #[inline]
    pub fn set_enable(&self, value: u64, irqs: &LocalInterruptDisabled) {
        write(bindings::MSR_IA32_PEBS_ENABLE, value, irqs);
    }

    /// Sets PEBS_DATA_CFG: the groups of adaptive records. Context and errors are as for
    /// [`set_enable`](Self::set_enable).
    pub fn set_data_config(&self, value: u64, irqs: &LocalInterruptDisabled) {
        write(bindings::MSR_PEBS_DATA_CFG, value, irqs);
    }
}

fn write(msr: u32, value: u64, _irqs: &LocalInterruptDisabled) {
    // SAFETY: Both registers make the processor write records, to the CPU's buffer in the debug
    // store and nowhere else: the caller has a `DebugStore`, so the kernel has pointed IA32_DS_AREA
    // to it.
    unsafe { bindings::rpmu_helper_wrmsrq(msr, value) }
}
