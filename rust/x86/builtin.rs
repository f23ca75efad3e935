// SPDX-License-Identifier: GPL-2.0

//! What the kernel goes on using of its built-in PMU driver while another driver is in charge.
//!
//! Whether user space may execute `rdpmc` is decided where the kernel switches address spaces
//! (`cr4_update_pce_mm()`, `arch/x86/mm/tlb.c:753`), by two static keys and a count in the address
//! space. A task that may do so must not read what others have counted; so the kernel sets counters
//! that are marked as dirty to 0 there (`perf_clear_dirty_counters()`, `arch/x86/events/core.c:2572`).
//! It finds the marks, and which registers the counters are, in the built-in driver's structures. The
//! width of counters that a mapped event tells (`arch_perf_update_userpage()`) is from there, too.
//!
//! All that is usable only where the built-in driver has initialised.
//!
//! This has no place in the kernel proper, where it is not the built-in driver's.

use crate::{bindings, kern::symbols::Symbols};
use core::{mem::transmute, ptr::NonNull};
use kernel::sync::atomic::{ordering, Atomic, Relaxed};
use kernel::{ffi::c_void, interrupt::LocalInterruptDisabled, mm::Mm, prelude::*};

/// Who may execute `rdpmc` in user space: `/sys/bus/event_source/devices/cpu/rdpmc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserRdpmc {
    /// Nobody.
    Never = 0,
    /// Who has mapped an event, as long as that is mapped.
    Mapped = 1,
    /// Everybody.
    Always = 2,
}

/// The built-in driver, which has initialised and need not be in charge.
///
/// # Invariants
///
/// The pointers are to what their names say, of this kernel's. None of it is ever freed.
pub struct Builtin {
    /// `x86_pmu`, a `struct x86_pmu`.
    pmu: NonNull<c_void>,
    /// `cpu_hw_events`, a `struct cpu_hw_events` of each CPU.
    events: NonNull<c_void>,
    /// `rdpmc_never_available_key`.
    never: NonNull<bindings::static_key>,
    /// `rdpmc_always_available_key`.
    always: NonNull<bindings::static_key>,
    /// `cr4_update_pce()`, which makes CR4.PCE of its CPU what it has to be.
    update_pce: unsafe extern "C" fn(*mut c_void),
}

// SAFETY: What is pointed to is the kernel's and is there for every thread. The methods say how they
// keep from each other's way.
unsafe impl Send for Builtin {}

// SAFETY: As above.
unsafe impl Sync for Builtin {}

impl Builtin {
    /// Finds the driver, on a machine whose counters have `width` bits.
    ///
    /// `ENODEV` if it has not initialised; `ENOENT` or another error if it cannot be found. Process
    /// context.
    pub fn find(width: u8) -> Result<Self> {
        // SAFETY: The function says whether the others know the structures.
        if !unsafe { bindings::rpmu_helper_knows_builtin() } {
            return Err(ENOENT);
        }
        let symbols = Symbols::new()?;
        let pmu = symbols.find(c"x86_pmu")?;
        // SAFETY: `pmu` is the kernel's `x86_pmu`, and the structure is known.
        let bits = unsafe { bindings::rpmu_helper_builtin_cntval_bits(pmu.as_ptr()) };
        if bits != i32::from(width) {
            return Err(ENODEV);
        }
        let update_pce = symbols.find(c"cr4_update_pce")?.as_ptr();
        // INVARIANT: So they are called.
        Ok(Self {
            pmu,
            events: symbols.find(c"cpu_hw_events")?,
            // CAST: `struct static_key_false` is a wrapper of `struct static_key`.
            never: symbols.find(c"rdpmc_never_available_key")?.cast(),
            always: symbols.find(c"rdpmc_always_available_key")?.cast(),
            // SAFETY: It is the address of a function of this type. The kernel itself calls it by
            // pointer, so it begins as such a function has to.
            update_pce: unsafe {
                transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(update_pce)
            },
        })
    }

    fn attr_rdpmc(&self) -> &Atomic<i32> {
        // SAFETY: By the type invariant it is `x86_pmu`. The built-in driver, which is not in charge,
        // is the only other one to access the member.
        unsafe { Atomic::from_ptr(bindings::rpmu_helper_builtin_attr_rdpmc(self.pmu.as_ptr())) }
    }

    /// Who may execute `rdpmc`.
    pub fn user_rdpmc(&self) -> UserRdpmc {
        match self.attr_rdpmc().load(Relaxed) {
            0 => UserRdpmc::Never,
            2 => UserRdpmc::Always,
            _ => UserRdpmc::Mapped,
        }
    }

    /// Says who may execute `rdpmc`. It is so on all CPUs when this returns.
    ///
    /// Process context; one at a time. Mainline: `set_attr_rdpmc()`,
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
                // SAFETY: By the type invariant it is a static key. This is process context.
                unsafe { bindings::static_key_slow_inc(key.as_ptr()) };
            } else if old == mode {
                // SAFETY: As above; it was incremented when `old` became what it is.
                unsafe { bindings::static_key_slow_dec(key.as_ptr()) };
            }
        }
        // SAFETY: The function may be called on every CPU with interrupts off; it takes no argument.
        unsafe { bindings::rpmu_helper_on_each_cpu(Some(self.update_pce), core::ptr::null_mut()) };
        // CAST: the values are those of the member.
        self.attr_rdpmc().store(new as i32, Relaxed);
    }

    /// Lets the tasks of `mm` execute `rdpmc`, as long as there is no [`disallow`](Self::disallow)
    /// for it.
    ///
    /// Process context, with `mm`'s lock held for writing.
    pub fn allow(&self, mm: &Mm) {
        if allowed(mm).fetch_add(1, ordering::Full) == 0 {
            self.update_pce(mm);
        }
    }

    /// Takes back one [`allow`](Self::allow).
    ///
    /// Process context.
    pub fn disallow(&self, mm: &Mm) {
        if allowed(mm).fetch_add(-1, ordering::Full) == 1 {
            self.update_pce(mm);
        }
    }

    /// Makes CR4.PCE right on the CPUs that `mm` is loaded on. Others do so when they load it.
    fn update_pce(&self, mm: &Mm) {
        // SAFETY: `mm` is valid; the rest is as in `set_user_rdpmc()`.
        unsafe {
            bindings::rpmu_helper_on_each_cpu_mask(
                bindings::rpmu_helper_mm_cpumask(mm.as_raw().cast()),
                Some(self.update_pce),
                core::ptr::null_mut(),
            );
        }
    }

    fn this_cpu_dirty(&self, _irqs: &LocalInterruptDisabled) -> *mut u64 {
        // SAFETY: By the type invariant it is `cpu_hw_events`. CAST: an `unsigned long` is a `u64`.
        unsafe { bindings::rpmu_helper_builtin_dirty(self.events.as_ptr()).cast() }
    }

    /// The counters of this CPU that the kernel will set to 0 before a task that may execute `rdpmc`
    /// runs, in the layout of IA32_PERF_GLOBAL_CTRL.
    pub fn dirty(&self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: The kernel accesses the mask on its own CPU and with interrupts off, as this is.
        unsafe { self.this_cpu_dirty(irqs).read() }
    }

    /// Says which counters of this CPU the kernel will set to 0. They must not be in use then.
    pub fn set_dirty(&self, counters: u64, irqs: &LocalInterruptDisabled) {
        // SAFETY: As in `dirty()`.
        unsafe { self.this_cpu_dirty(irqs).write(counters) }
    }

    /// Whether counters are to stop in SMM, as the built-in driver believes: it says so of each CPU
    /// that comes.
    pub fn freeze_on_smi(&self) -> bool {
        self.attr_freeze_on_smi().load(Relaxed) != 0
    }

    /// Makes the built-in driver believe that they are, or are not.
    pub fn set_freeze_on_smi(&self, on: bool) {
        self.attr_freeze_on_smi().store(on.into(), Relaxed);
    }

    fn attr_freeze_on_smi(&self) -> &Atomic<u64> {
        // SAFETY: By the type invariant it is `x86_pmu`. The built-in driver writes the member in its
        // file alone, which is not there now, and reads it with one access.
        // CAST: an `unsigned long` is a `u64`.
        unsafe {
            let attr = bindings::rpmu_helper_builtin_attr_freeze_on_smi(self.pmu.as_ptr());
            Atomic::from_ptr(attr.cast())
        }
    }
}

/// How many reasons there are to let the tasks of `mm` execute `rdpmc`.
fn allowed(mm: &Mm) -> &Atomic<i32> {
    // SAFETY: `mm` is valid, and all access the member as an atomic.
    unsafe {
        Atomic::from_ptr(bindings::rpmu_helper_mm_perf_rdpmc_allowed(
            mm.as_raw().cast(),
        ))
    }
}
