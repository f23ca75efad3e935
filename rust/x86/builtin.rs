// SPDX-License-Identifier: GPL-2.0

//! The data of the built-in PMU driver that the kernel keeps using while another driver is in
//! charge.
//!
//! When the kernel switches address spaces, it decides whether user space may execute `rdpmc`
//! (`cr4_update_pce_mm()`, `arch/x86/mm/tlb.c`), by two static keys and a count in the address
//! space. A task that may execute it must not read the counts of others, so the kernel then sets
//! dirty counters to 0 (`perf_clear_dirty_counters()`, `arch/x86/events/core.c`). The built-in
//! driver's structures hold the dirty mask, the registers' addresses, and the counters' width for
//! the page of a mapped event (`arch_perf_update_userpage()`).
//!
//! KVM and BPF ask the built-in driver which counters run and how branches are recorded:
//! [`Mirror`], [`BranchMirror`]. They do so only if it has initialised.
//!
//! The built-in driver sets this data when it initialises. If it never has (boot option
//! `initcall_blacklist=init_hw_perf_events,bts_init`), the data is zero: the mmap page would show a
//! width of 0, and the kernel would write 0 to other MSRs than those of the dirty counters. In this
//! case [`Builtin::lend`] sets the data, until the [`Builtin`] is dropped.
//!
//! In the kernel proper, this data would not belong to the built-in driver.

mod branch_mirror;
mod debug_store;
mod mirror;
pub mod nmi;
mod precision;
mod select_mask;

pub use {
    branch_mirror::BranchMirror,
    debug_store::StoreOfCpu,
    mirror::Mirror,
    precision::Precision,
    select_mask::SelectMask, //
};

use crate::{
    bindings::{
        self,
        layouts::{
            cpu_hw_events,
            er_account,
            x86_pmu,
            Member, //
        },
    },
    kern::{
        cpu::possible_cpus,
        layout::{
            Line,
            Mismatch,
            Running, //
        },
        symbols::Symbols, //
    },
    x86::msr::Msr, //
};
use core::{
    mem::transmute,
    ptr::NonNull, //
};
use kernel::sync::atomic::{
    ordering,
    Atomic,
    Relaxed, //
};
use kernel::{
    ffi::c_void,
    interrupt::LocalInterruptDisabled,
    mm::Mm,
    prelude::*, //
};

/// The tasks that may execute `rdpmc`: `/sys/bus/event_source/devices/cpu/rdpmc`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserRdpmc {
    /// No tasks.
    Never = 0,
    /// Tasks whose address space has an event mapped.
    Mapped = 1,
    /// All tasks.
    Always = 2,
}

/// The places of the members of the built-in driver's structures that this module uses.
///
/// `rust/layouts.c` lists them.
#[derive(Clone, Copy)]
pub struct Layout {
    pmu: x86_pmu,
    events: cpu_hw_events,
    account: er_account,
}

impl Layout {
    /// Finds the members in the running kernel.
    ///
    /// Fails with the first member that is missing or has another size.
    pub fn find(running: &Running) -> Result<Self, Mismatch> {
        let offset_of = |line: &Line| running.offset_of(line);
        // SAFETY: `offset_of()` returns the offset of a member that has the size of the line.
        unsafe {
            Ok(Self {
                pmu: x86_pmu::find(offset_of)?,
                events: cpu_hw_events::find(offset_of)?,
                account: er_account::find(offset_of)?,
            })
        }
    }
}

/// The registers of the counters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RegisterSet {
    /// Intel's.
    Intel,
    /// AMD's, at the old addresses.
    AmdLegacy,
    /// AMD's core performance counter extensions.
    AmdCore,
}

/// The counters of the machine.
pub struct CounterSet {
    /// The counters' registers.
    pub registers: RegisterSet,
    /// The counters' width in bits.
    pub width: u8,
    /// The mask of the counters, in the layout of IA32_PERF_GLOBAL_CTRL.
    pub mask: u64,
}

/// The built-in driver. It need not be in charge.
///
/// # Invariants
///
/// Each pointer is to the kernel object that its documentation names. None of these is ever freed.
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
    /// `cr4_update_pce()`, which updates CR4.PCE on its CPU.
    update_pce: unsafe extern "C" fn(*mut c_void),
    /// `amd_pmu_addr_offset()`, if the counters need the function.
    addr_offset: Option<NonNull<c_void>>,
    /// Set if the driver has initialised.
    initialised: bool,
    /// Set while [`lend`](Self::lend) provides data that the driver has not set itself.
    lent: Atomic<bool>,
}

// SAFETY: The pointers are to kernel objects that any thread may use. The methods say why their
// accesses do not race.
unsafe impl Send for Builtin {}

// SAFETY: `lent` is atomic. The methods that take a shared reference say why their accesses to the
// kernel's objects do not race.
unsafe impl Sync for Builtin {}

impl Builtin {
    /// Finds the driver.
    ///
    /// Fails with `ENODEV` if the driver has initialised for other `counters`, and with `ENOENT` or
    /// another error if it cannot be found. Changes nothing. Process context.
    pub fn find(counters: &CounterSet, layout: Layout) -> Result<Self> {
        let symbols = Symbols::new()?;
        let pmu: NonNull<x86_pmu> = symbols.find(c"x86_pmu")?.cast();
        // SAFETY: `pmu` is the address of `x86_pmu`. The built-in driver sets the members once,
        // when it initialises, and sets all to zero if this fails.
        let (initialised, bits) = unsafe {
            let handle_irq = layout.pmu.handle_irq.of(pmu.as_ptr()).read();
            (
                handle_irq != 0,
                layout.pmu.cntval_bits.of(pmu.as_ptr()).read(),
            )
        };
        if bits
            != if initialised {
                counters.width.into()
            } else {
                0
            }
        {
            return Err(ENODEV);
        }
        // The function is needed only if the driver has not initialised, and only for these
        // registers.
        let addr_offset = match counters.registers {
            RegisterSet::AmdCore if !initialised => Some(symbols.find(c"amd_pmu_addr_offset")?),
            _ => None,
        };
        let update_pce = symbols.find(c"cr4_update_pce")?.as_ptr();
        // INVARIANT: Each address belongs to the symbol that the field's documentation names.
        Ok(Self {
            layout,
            pmu,
            // CAST: `cpu_hw_events` is a `struct cpu_hw_events` of each CPU.
            events: symbols.find(c"cpu_hw_events")?.cast(),
            // CAST: `struct static_key_false` is a wrapper of `struct static_key`.
            never: symbols.find(c"rdpmc_never_available_key")?.cast(),
            always: symbols.find(c"rdpmc_always_available_key")?.cast(),
            // SAFETY: `cr4_update_pce()` has this type. The kernel itself passes it to
            // `on_each_cpu_mask()`, so it is a legal target of indirect calls.
            update_pce: unsafe {
                transmute::<*mut c_void, unsafe extern "C" fn(*mut c_void)>(update_pce)
            },
            addr_offset,
            initialised,
            lent: Atomic::new(false),
        })
    }

    /// Returns whether the driver has initialised.
    pub fn has_initialised(&self) -> bool {
        self.initialised
    }

    /// Sets the data that the kernel needs for `rdpmc`, if the driver has not initialised, until
    /// `self` is dropped.
    ///
    /// In this case no other code uses these members: it either checks for a handler first
    /// (`x86_pmu_initialized()`), belongs to the driver's PMU, or is called by the driver's NMI
    /// handler or hotplug callbacks. Process context.
    pub fn lend(&self, counters: &CounterSet) {
        if self.initialised || self.lent.xchg(true, Relaxed) {
            return;
        }
        let (first, first_fixed) = match counters.registers {
            RegisterSet::Intel => (Msr::IA32_PMC0.number(), Msr::IA32_FIXED_CTR0.number()),
            RegisterSet::AmdLegacy => (Msr::AMD_LEGACY_CTR0.number(), 0),
            RegisterSet::AmdCore => (Msr::AMD_PERF_CTR0.number(), 0),
        };
        self.set_counters(&Lent {
            width: counters.width.into(),
            // `INTEL_PMC_IDX_FIXED`, and no more than `INTEL_PMC_MAX_FIXED`.
            fixed: counters.mask >> 32 & 0xffff,
            first,
            first_fixed,
            // CAST: an address has 64 bits.
            addr_offset: self
                .addr_offset
                .map_or(0, |function| function.as_ptr().expose_provenance() as u64),
        });
        // As `init_hw_perf_events()` does.
        self.attr_rdpmc().store(UserRdpmc::Mapped as i32, Relaxed);
    }

    /// Reverts [`lend`](Self::lend). No event is mapped any more.
    fn take_back(&self) {
        // From here on, no task may execute `rdpmc`, and no CPU sets dirty counters to 0.
        self.set_user_rdpmc(UserRdpmc::Mapped);
        for cpu in possible_cpus() {
            // CAST: a per-CPU pointer.
            // SAFETY: By the type invariant `events` is a per-CPU object.
            let events = unsafe {
                bindings::rpmu_helper_per_cpu_ptr(self.events.as_ptr().cast(), cpu.as_u32())
            };
            // SAFETY: The member belongs to `cpu`. Only this driver sets it, for events, and there
            // are none any more; no CPU clears it, see above.
            unsafe { self.layout.events.dirty.of(events.cast()).write(0) };
        }
        self.attr_rdpmc().store(0, Relaxed);
        self.set_counters(&Lent {
            width: 0,
            fixed: 0,
            first: 0,
            first_fixed: 0,
            addr_offset: 0,
        });
    }

    fn set_counters(&self, lent: &Lent) {
        let (layout, pmu) = (&self.layout.pmu, self.pmu.as_ptr());
        // SAFETY: By the type invariant `pmu` is `x86_pmu`, which is writable. By the documentation
        // of `lend()`, the kernel only uses the members for pages of events of this driver's PMU,
        // which is not registered now, and for dirty counters, of which there are none now.
        // `addr_offset` is null, or the function that the driver itself would call by this pointer.
        unsafe {
            layout.cntval_bits.of(pmu).write(lent.width);
            layout.fixed_cntr_mask64.of(pmu).write(lent.fixed);
            layout.perfctr.of(pmu).write(lent.first);
            layout.fixedctr.of(pmu).write(lent.first_fixed);
            layout.addr_offset.of(pmu).write(lent.addr_offset);
        }
    }

    fn attr_rdpmc(&self) -> &Atomic<i32> {
        // SAFETY: By the type invariant `pmu` is `x86_pmu`. Otherwise only the built-in driver's
        // callbacks and its sysfs file access the member, and they are not in use while another
        // driver is in charge.
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

    /// Sets the tasks that may execute `rdpmc`. When this returns, the setting is in effect on all
    /// CPUs.
    ///
    /// Process context; the caller serialises calls. Mainline: `set_attr_rdpmc()`,
    /// `arch/x86/events/core.c`.
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
                // SAFETY: By the type invariant `key` is a static key. It was incremented when
                // `old` was set, here or by `set_attr_rdpmc()`. This is process context.
                unsafe { bindings::static_key_slow_dec(key.as_ptr()) };
            }
        }
        // SAFETY: `cr4_update_pce()` may be called on any CPU with interrupts off, and ignores its
        // argument.
        unsafe { bindings::rpmu_helper_on_each_cpu(Some(self.update_pce), core::ptr::null_mut()) };
        // CAST: the discriminants are the values of the member.
        self.attr_rdpmc().store(new as i32, Relaxed);
    }

    /// Allows the tasks of `mm` to execute `rdpmc`, until [`disallow`](Self::disallow) has been
    /// called once for each call of this.
    ///
    /// Process context, with `mm`'s lock held for writing.
    pub fn allow(&self, mm: &Mm) {
        if allowed(mm).fetch_add(1, ordering::Full) == 0 {
            self.update_pce(mm);
        }
    }

    /// Reverts one call of [`allow`](Self::allow).
    ///
    /// Process context.
    pub fn disallow(&self, mm: &Mm) {
        if allowed(mm).fetch_add(-1, ordering::Full) == 1 {
            self.update_pce(mm);
        }
    }

    /// Updates CR4.PCE on the CPUs that have `mm` loaded. Other CPUs do so when they load it.
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

    /// Returns the dirty counters of this CPU, in the layout of IA32_PERF_GLOBAL_CTRL. The kernel
    /// sets them to 0 before it runs a task that may execute `rdpmc`.
    pub fn dirty(&self, irqs: &LocalInterruptDisabled) -> u64 {
        // SAFETY: The kernel and this function access the mask on its own CPU, with interrupts off.
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

    /// Returns whether the built-in driver freezes counters in SMM on CPUs that come up.
    pub fn freeze_on_smi(&self) -> bool {
        self.attr_freeze_on_smi().load(Relaxed) != 0
    }

    /// Sets whether the built-in driver freezes counters in SMM on CPUs that come up.
    pub fn set_freeze_on_smi(&self, on: bool) {
        self.attr_freeze_on_smi().store(on.into(), Relaxed);
    }

    fn attr_freeze_on_smi(&self) -> &Atomic<u64> {
        // SAFETY: By the type invariant `pmu` is `x86_pmu`. The built-in driver reads and writes
        // the member as one word.
        unsafe { Atomic::from_ptr(self.layout.pmu.attr_freeze_on_smi.of(self.pmu.as_ptr())) }
    }
}

impl Drop for Builtin {
    fn drop(&mut self) {
        if self.lent.load(Relaxed) {
            self.take_back();
        }
    }
}

/// The members of `x86_pmu` that the kernel needs for `rdpmc`.
struct Lent {
    width: i32,
    fixed: u64,
    /// The MSRs of the first counter of either kind. Those of further counters follow, unless there
    /// is an `addr_offset`.
    first: u32,
    first_fixed: u32,
    /// The function that returns the offset of another counter's MSR; 0 for none.
    addr_offset: u64,
}

/// Returns the count of reasons to allow the tasks of `mm` to execute `rdpmc`.
fn allowed(mm: &Mm) -> &Atomic<i32> {
    // SAFETY: `mm` is valid, and the member is an `atomic_t`.
    unsafe {
        Atomic::from_ptr(bindings::rpmu_helper_mm_perf_rdpmc_allowed(
            mm.as_raw().cast(),
        ))
    }
}
