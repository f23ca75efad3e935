// SPDX-License-Identifier: GPL-2.0

//! The data of the built-in PMU driver that the kernel goes on using while another driver is in charge.
//!
//! The kernel decides whether user space may execute `rdpmc` when it switches address spaces
//! (`cr4_update_pce_mm()`, `arch/x86/mm/tlb.c:753`), by two static keys and a count in the address
//! space. A task that may execute it must not read the counts of others, so the kernel sets dirty
//! counters to 0 there (`perf_clear_dirty_counters()`, `arch/x86/events/core.c:2572`). The dirty mask
//! and the registers' addresses are in the built-in driver's structures, and so is the counters' width
//! on the page of a mapped event (`arch_perf_update_userpage()`).
//!
//! KVM and BPF ask the built-in driver which counters run: [`Mirror`].
//!
//! All this works only if the built-in driver has initialised.
//!
//! In the kernel proper, this data would not belong to the built-in driver.

mod mirror;

pub use mirror::Mirror;

use crate::{
    bindings::{
        self,
        layouts::{cpu_hw_events, x86_pmu, Member},
    },
    kern::{
        layout::{Line, Mismatch, Running},
        symbols::Symbols,
    },
};
use core::{mem::transmute, ptr::NonNull};
use kernel::sync::atomic::{ordering, Atomic, Relaxed};
use kernel::{ffi::c_void, interrupt::LocalInterruptDisabled, mm::Mm, prelude::*};

/// The tasks that may execute `rdpmc`: `/sys/bus/event_source/devices/cpu/rdpmc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserRdpmc {
    /// None.
    Never = 0,
    /// Tasks whose address space has an event mapped.
    Mapped = 1,
    /// All.
    Always = 2,
}

/// The places of the members that this module uses of the built-in driver's structures.
///
/// `rust/layouts.c` lists them.
#[derive(Clone, Copy)]
pub struct Layout {
    pmu: x86_pmu,
    events: cpu_hw_events,
}

impl Layout {
    /// Finds the members in the running kernel.
    ///
    /// Fails with the first that is not there or has another size.
    pub fn find(running: &Running) -> Result<Self, Mismatch> {
        let offset_of = |line: &Line| running.offset_of(line);
        // SAFETY: `offset_of()` returns the offset of a member that has the size of the line.
        unsafe {
            Ok(Self {
                pmu: x86_pmu::find(offset_of)?,
                events: cpu_hw_events::find(offset_of)?,
            })
        }
    }
}

/// The built-in driver, which has initialised. It need not be in charge.
///
/// # Invariants
///
/// Each pointer is to the object of this kernel that its documentation names. None is ever freed.
pub struct Builtin {
    layout: Layout,
    /// `x86_pmu`.
    pmu: NonNull<x86_pmu>,
    /// `cpu_hw_events` of each CPU: a per-CPU pointer.
    events: NonNull<cpu_hw_events>,
    /// `rdpmc_never_available_key`.
    never: NonNull<bindings::static_key>,
    /// `rdpmc_always_available_key`.
    always: NonNull<bindings::static_key>,
    /// `cr4_update_pce()`, which brings CR4.PCE of its CPU up to date.
    update_pce: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: The pointers are to objects of the kernel that any thread may use. The methods say how their
// accesses are kept apart.
unsafe impl Send for Builtin {}

// SAFETY: As above.
unsafe impl Sync for Builtin {}

impl Builtin {
    /// Finds the driver, on a machine whose counters have `width` bits.
    ///
    /// Fails with `ENODEV` if it has not initialised, with `ENOENT` or another error if it cannot be
    /// found. Process context.
    pub fn find(width: u8, layout: Layout) -> Result<Self> {
        let symbols = Symbols::new()?;
        let pmu: NonNull<x86_pmu> = symbols.find(c"x86_pmu")?.cast();
        // SAFETY: `pmu` is the address of `x86_pmu`. The built-in driver sets the member once, when it
        // initialises.
        let bits = unsafe { layout.pmu.cntval_bits.of(pmu.as_ptr()).read() };
        if bits != i32::from(width) {
            return Err(ENODEV);
        }
        let update_pce = symbols.find(c"cr4_update_pce")?.as_ptr();
        // INVARIANT: Each address is that of the symbol which the field's documentation names.
        Ok(Self {
            layout,
            pmu,
            // CAST: `cpu_hw_events` is a `struct cpu_hw_events` of each CPU.
            events: symbols.find(c"cpu_hw_events")?.cast(),
            // CAST: `struct static_key_false` is a wrapper of `struct static_key`.
            never: symbols.find(c"rdpmc_never_available_key")?.cast(),
            always: symbols.find(c"rdpmc_always_available_key")?.cast(),
            // SAFETY: `cr4_update_pce()` is of this type. The kernel itself passes it to
            // `on_each_cpu_mask()`, so that it is a legal target of indirect calls.
            update_pce: unsafe {
                transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(update_pce)
            },
        })
    }

    fn attr_rdpmc(&self) -> &Atomic<i32> {
        // SAFETY: By the type invariant `pmu` is `x86_pmu`. Besides this, only the
        // built-in driver's callbacks and its file of sysfs access the member, which are not in use
        // while another driver is in charge.
        unsafe { Atomic::from_ptr(self.layout.pmu.attr_rdpmc.of(self.pmu.as_ptr())) }
    }

    /// Returns the tasks that may execute `rdpmc`.
    pub fn user_rdpmc(&self) -> UserRdpmc {
        match self.attr_rdpmc().load(Relaxed) {
            0 => UserRdpmc::Never,
            2 => UserRdpmc::Always,
            _ => UserRdpmc::Mapped,
        }
    }

    /// Sets the tasks that may execute `rdpmc`, on all CPUs when this returns.
    ///
    /// Process context; the caller keeps calls apart. Mainline: `set_attr_rdpmc()`,
    /// `arch/x86/events/core.c:2670`.
    pub fn set_user_rdpmc(&self, new: UserRdpmc) {
        let old = self.user_rdpmc();
        if new == old {
            return;
        }
        for (key, mode) in [
            (self.never, UserRdpmc::Never),
            (self.always, UserRdpmc::Always),
        ] {
            if new == mode {
                // SAFETY: By the type invariant `key` is a static key. This is process context.
                unsafe { bindings::static_key_slow_inc(key.as_ptr()) };
            } else if old == mode {
                // SAFETY: As above. The key was incremented when `old` was set.
                unsafe { bindings::static_key_slow_dec(key.as_ptr()) };
            }
        }
        // SAFETY: `cr4_update_pce()` may be called on any CPU with interrupts off, and ignores its
        // argument.
        unsafe { bindings::rpmu_helper_on_each_cpu(Some(self.update_pce), core::ptr::null_mut()) };
        // CAST: the discriminants are the values of the member.
        self.attr_rdpmc().store(new as i32, Relaxed);
    }

    /// Lets the tasks of `mm` execute `rdpmc`, until [`disallow`](Self::disallow) is called as often.
    ///
    /// Process context, with `mm`'s lock held for writing.
    pub fn allow(&self, mm: &Mm) {
        if allowed(mm).fetch_add(1, ordering::Full) == 0 {
            self.update_pce(mm);
        }
    }

    /// Reverts one [`allow`](Self::allow).
    ///
    /// Process context.
    pub fn disallow(&self, mm: &Mm) {
        if allowed(mm).fetch_add(-1, ordering::Full) == 1 {
            self.update_pce(mm);
        }
    }

    /// Brings CR4.PCE up to date on the CPUs that have `mm` loaded. Other CPUs do so when they load it.
    fn update_pce(&self, mm: &Mm) {
        // SAFETY: `mm` is valid. The rest is as in `set_user_rdpmc()`.
        unsafe {
            bindings::rpmu_helper_on_each_cpu_mask(
                bindings::rpmu_helper_mm_cpumask(mm.as_raw().cast()),
                Some(self.update_pce),
                core::ptr::null_mut(),
            );
        }
    }

    /// Returns the address of a member of this CPU's `cpu_hw_events`. Any context, NMIs included.
    #[inline(always)]
    fn this_cpu<T>(
        &self,
        member: Member<cpu_hw_events, T>,
        _irqs: &LocalInterruptDisabled,
    ) -> *mut T {
        let offset = bindings::inline::this_cpu_offset();
        member.of(self.events.as_ptr().wrapping_byte_add(offset))
    }

    /// Returns the dirty counters of this CPU, which the kernel sets to 0 before a task runs that may
    /// execute `rdpmc`, in the layout of IA32_PERF_GLOBAL_CTRL.
    pub fn dirty(&self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: The kernel accesses the mask on its own CPU with interrupts off, and so does this.
        unsafe { self.this_cpu(self.layout.events.dirty, irqs).read() }
    }

    /// Sets the dirty counters of this CPU. They must not be in use when the kernel sets them to 0.
    pub fn set_dirty(&self, counters: u64, irqs: &LocalInterruptDisabled) {
        // SAFETY: As in `dirty()`.
        unsafe {
            self.this_cpu(self.layout.events.dirty, irqs)
                .write(counters)
        }
    }

    /// Returns whether the built-in driver makes counters stop in SMM on CPUs that come up.
    pub fn freeze_on_smi(&self) -> bool {
        self.attr_freeze_on_smi().load(Relaxed) != 0
    }

    /// Sets whether the built-in driver makes counters stop in SMM on CPUs that come up.
    pub fn set_freeze_on_smi(&self, on: bool) {
        self.attr_freeze_on_smi().store(on.into(), Relaxed);
    }

    fn attr_freeze_on_smi(&self) -> &Atomic<u64> {
        // SAFETY: By the type invariant `pmu` is `x86_pmu`. The built-in driver reads and writes the
        // member as one word.
        unsafe { Atomic::from_ptr(self.layout.pmu.attr_freeze_on_smi.of(self.pmu.as_ptr())) }
    }
}

/// Returns the count of reasons to let the tasks of `mm` execute `rdpmc`.
fn allowed(mm: &Mm) -> &Atomic<i32> {
    // SAFETY: `mm` is valid, and the member is an `atomic_t`.
    unsafe {
        Atomic::from_ptr(bindings::rpmu_helper_mm_perf_rdpmc_allowed(
            mm.as_raw().cast(),
        ))
    }
}
