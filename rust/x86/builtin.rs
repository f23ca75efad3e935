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
//! All this works only if the built-in driver has initialised.
//!
//! In the kernel proper, this data would not belong to the built-in driver.

use crate::{bindings, kern::symbols::Symbols};
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

/// The built-in driver, which has initialised. It need not be in charge.
///
/// # Invariants
///
/// Each pointer is to the object of this kernel that its documentation names. None is ever freed.
pub struct Builtin {
    /// `x86_pmu`, a `struct x86_pmu`.
    pmu: NonNull<c_void>,
    /// `cpu_hw_events`, a `struct cpu_hw_events` of each CPU.
    events: NonNull<c_void>,
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
    pub fn find(width: u8) -> Result<Self> {
        // SAFETY: The function returns a constant: whether the helpers know the structures.
        if !unsafe { bindings::rpmu_helper_knows_builtin() } {
            return Err(ENOENT);
        }
        let symbols = Symbols::new()?;
        let pmu = symbols.find(c"x86_pmu")?;
        // SAFETY: `pmu` is the address of `x86_pmu`, whose structure the helper knows.
        let bits = unsafe { bindings::rpmu_helper_builtin_cntval_bits(pmu.as_ptr()) };
        if bits != i32::from(width) {
            return Err(ENODEV);
        }
        let update_pce = symbols.find(c"cr4_update_pce")?.as_ptr();
        // INVARIANT: Each address is that of the symbol which the field's documentation names.
        Ok(Self {
            pmu,
            events: symbols.find(c"cpu_hw_events")?,
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
        unsafe { Atomic::from_ptr(bindings::rpmu_helper_builtin_attr_rdpmc(self.pmu.as_ptr())) }
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

    fn this_cpu_dirty(&self, _irqs: &LocalInterruptDisabled) -> *mut u64 {
        // CAST: an `unsigned long` is a `u64`.
        // SAFETY: By the type invariant `events` is `cpu_hw_events`.
        unsafe { bindings::rpmu_helper_builtin_dirty(self.events.as_ptr()).cast() }
    }

    /// Returns the dirty counters of this CPU, which the kernel sets to 0 before a task runs that may
    /// execute `rdpmc`, in the layout of IA32_PERF_GLOBAL_CTRL.
    pub fn dirty(&self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: The kernel accesses the mask on its own CPU with interrupts off, and so does this.
        unsafe { self.this_cpu_dirty(irqs).read() }
    }

    /// Sets the dirty counters of this CPU. They must not be in use when the kernel sets them to 0.
    pub fn set_dirty(&self, counters: u64, irqs: &LocalInterruptDisabled) {
        // SAFETY: As in `dirty()`.
        unsafe { self.this_cpu_dirty(irqs).write(counters) }
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
        // CAST: an `unsigned long` is a `u64`.
        // SAFETY: By the type invariant `pmu` is `x86_pmu`. The built-in driver reads and writes the
        // member as one word.
        unsafe {
            let attr = bindings::rpmu_helper_builtin_attr_freeze_on_smi(self.pmu.as_ptr());
            Atomic::from_ptr(attr.cast())
        }
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
