// SPDX-License-Identifier: GPL-2.0

//! PMUs of built-in drivers, and how a module takes their place.
//!
//! A built-in driver registers its PMU at boot and never unregisters it. [`BuiltinPmu`] finds it,
//! [`BuiltinPmu::unregister`] takes it off the perf core's list, and dropping the resulting
//! [`UnregisteredPmu`] puts it back as if nothing had happened.
//!
//! This has no place in the kernel proper, where such a driver would not be built in.

use super::{
    rotation,
    users::{
        Name,
        Users, //
    },
    InternalOperations,
    PmuState, //
};
use crate::{
    bindings,
    perf::Pmu, //
};
use core::{
    ptr::{
        self,
        NonNull, //
    },
    sync::atomic::Ordering::Relaxed, //
};
use kernel::{
    error::{
        code::*,
        from_err_ptr,
        to_result,
        Result, //
    },
    prelude::*, //
};

/// Why there is no PMU to take over.
pub enum NotFound {
    /// It belongs to the module of this name.
    Module(Name),
    /// Opening an event has failed.
    Failed(Error),
}

impl From<Error> for NotFound {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A PMU of a built-in driver that is registered.
///
/// # Invariants
///
/// The pointer is to a `struct pmu` that belongs to no module. It is never freed: built-in
/// drivers have it in static memory or keep it for good.
pub struct BuiltinPmu(NonNull<bindings::pmu>);

// SAFETY: The perf core's functions for a PMU may be called by any thread.
unsafe impl Send for BuiltinPmu {}

// SAFETY: A shared reference allows to read its constant name and, under a lock, its events.
unsafe impl Sync for BuiltinPmu {}

impl BuiltinPmu {
    /// Finds the PMU that serves events of type `event_type`.
    ///
    /// It opens, and closes, an event with the given `config`, which the PMU must accept. [`None`]
    /// if no PMU does. Fails with the name of the module if one of a module does; else with what
    /// opening fails with, `EBUSY` where the built-in driver finds its counters reserved. Process
    /// context.
    pub fn find(event_type: u32, config: u64) -> Result<Option<Self>, NotFound> {
        let mut attr: bindings::perf_event_attr = pin_init::zeroed();
        attr.type_ = event_type;
        // CAST: the structure has less than 200 bytes.
        attr.size = size_of::<bindings::perf_event_attr>() as u32;
        attr.config = config;
        attr.set_disabled(1);

        let cpu = kernel::cpu::CpuId::current().into();
        // SAFETY: `attr` is valid for the call; no task and no handler are fine for a counter of
        // a CPU.
        let event = from_err_ptr(unsafe {
            bindings::perf_event_create_kernel_counter(
                &raw mut attr,
                cpu,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
            )
        });
        let event = match event {
            Ok(event) => event,
            Err(e) if e == ENOENT => return Ok(None),
            Err(e) => return Err(NotFound::Failed(e)),
        };

        // SAFETY: The event is valid until it is released, and so is its PMU.
        let (pmu, module) = unsafe { ((*event).pmu, (*(*event).pmu).module) };
        // SAFETY: The event keeps the module loaded.
        let name = (!module.is_null()).then(|| unsafe { Name::of_module(module) });
        // SAFETY: The event is ours.
        unsafe { bindings::perf_event_release_kernel(event) };

        match name {
            Some(name) => Err(NotFound::Module(name)),
            // INVARIANT: Just checked.
            None => Ok(NonNull::new(pmu).map(Self)),
        }
    }

    /// Returns the name that the PMU was registered under.
    pub fn name(&self) -> &CStr {
        // SAFETY: A registered PMU has a name, which is a C string that lives as long as the PMU,
        // that is, for good.
        unsafe { CStr::from_char_ptr((*self.0.as_ptr()).name) }
    }

    /// Unregisters the PMU, so that no more events can be opened on it.
    ///
    /// `EBUSY`, and the PMU as it was, if it has events, and for a short time after an event was
    /// closed. During the attempt events do not rotate. Process context.
    pub fn unregister(self) -> Result<UnregisteredPmu, (Self, Error)> {
        let pmu = self.0.as_ptr();
        // SAFETY: The PMU is registered, and only this unregisters it.
        unsafe { rotation::stop(pmu) };
        // SAFETY: The PMU is registered, and never freed.
        match to_result(unsafe { bindings::perf_pmu_unregister(pmu) }) {
            // INVARIANT: Just unregistered.
            Ok(()) => Ok(UnregisteredPmu(self)),
            Err(e) => {
                // SAFETY: The PMU is still registered.
                unsafe { rotation::allow(pmu) };
                Err((self, e))
            }
        }
    }

    /// Returns what has events open on the PMU. Process context.
    pub fn users(&self) -> Users {
        // SAFETY: The PMU is never freed, and was registered.
        unsafe { Users::of(self.0.as_ptr()) }
    }
}

/// A PMU of a built-in driver that has been unregistered. Dropping it registers it again.
///
/// # Invariants
///
/// [`BuiltinPmu::unregister`] has succeeded.
pub struct UnregisteredPmu(BuiltinPmu);

impl UnregisteredPmu {
    /// Returns the name that the PMU is to be registered under again.
    pub fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Registers the PMU again. [`None`] if that fails, which is logged. Process context.
    pub fn give_back(self) -> Option<BuiltinPmu> {
        let registered = self.register();
        let pmu = self.0 .0;
        core::mem::forget(self);
        // INVARIANT: That of `self.0`, and it is registered.
        registered.ok().map(|()| BuiltinPmu(pmu))
    }

    /// Registers the PMU again. Logs it if that fails.
    fn register(&self) -> Result {
        let pmu = self.0 .0.as_ptr();
        // SAFETY: The PMU is not registered, so no one else uses it. Unregistering has freed what
        // the first two pointed to and left them dangling, and registering takes a device that is
        // there for one that it need not make. Name and type are what they were: the type is the
        // index in a table that we found the PMU by.
        let ret = unsafe {
            (*pmu).dev = ptr::null_mut();
            (*pmu).cpu_pmu_context = ptr::null_mut();
            bindings::perf_pmu_register(pmu, (*pmu).name, (*pmu).type_)
        };
        to_result(ret).inspect_err(|e| pr_err!("cannot register the built-in PMU again: {e:?}\n"))
    }

    /// Makes `pmu`, which is not registered yet, call this PMU's `pmu_enable` whenever it has been
    /// enabled itself.
    ///
    /// A program that is attached to that function, such as the one of dynolog's `bperf` (fexit of
    /// `x86_pmu_enable()`), then runs as often as with the built-in driver, and finds the same
    /// events.
    pub fn follow<T: InternalOperations>(&self, pmu: &Pmu<T>) {
        let predecessor = self.0 .0.as_ptr();
        let internals = pmu.internals();
        internals.predecessor.store(predecessor, Relaxed);
        // SAFETY: By the type invariant the PMU is never freed. Its callbacks do not change.
        if let Some(enable) = unsafe { (*predecessor).pmu_enable } {
            // CAST: the address of the function's code, which is only read.
            internals.hook.store(enable as *mut u64, Relaxed);
        }
    }
}

/// The first bytes of a function that nothing is attached to: ENDBR64, and the NOP of five bytes
/// that ftrace makes a call.
const UNHOOKED: u64 = u64::from_le_bytes([0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0x00]);

/// Stands for the code of `pmu_enable` where a PMU replaces none.
static NO_FUNCTION: u64 = UNHOOKED;

/// Returns the place of the first bytes of a function that nothing can be attached to.
pub(super) fn no_function() -> *mut u64 {
    (&raw const NO_FUNCTION).cast_mut()
}

impl<T: InternalOperations> PmuState<T> {
    /// Calls `pmu_enable` of the PMU that this one replaces, if something is attached to its start,
    /// or if that cannot be told.
    ///
    /// # Safety
    ///
    /// To be called when the PMU has been enabled on this CPU, with interrupts off and not in an
    /// NMI.
    #[inline]
    pub(super) unsafe fn enable_predecessor(&self) {
        // SAFETY: It points to `NO_FUNCTION`, or to a function of the kernel, which is aligned to
        // 16 bytes and whose code can be read. That may change meanwhile.
        let start = unsafe { self.hook.load(Relaxed).read_volatile() };
        if start != UNHOOKED {
            // SAFETY: By this function's requirements.
            unsafe { self.call_predecessor() };
        }
    }

    /// # Safety
    ///
    /// As [`enable_predecessor`](Self::enable_predecessor).
    #[cold]
    unsafe fn call_predecessor(&self) {
        let predecessor = self.predecessor.load(Relaxed);
        // SAFETY: `follow()` has stored the predecessor, before this PMU was registered. By the
        // type invariant of `UnregisteredPmu` that PMU is never freed, and it is unregistered as
        // long as this one is registered. It is `x86_pmu`'s, whose function returns at once,
        // because `cpu_hw_events.enabled` is set (`x86_pmu_enable()`, `arch/x86/events/core.c`):
        // initially, and after each `perf_pmu_disable()` with its `perf_pmu_enable()`, which the
        // perf core has not called since the PMU was unregistered. Otherwise only PMI handlers
        // clear the field, while they run.
        unsafe {
            if let Some(enable) = (*predecessor).pmu_enable {
                enable(predecessor);
            }
        }
    }
}

impl Drop for UnregisteredPmu {
    fn drop(&mut self) {
        if self.register().is_ok() {
            pr_info!("the built-in driver has its PMU back\n");
        }
    }
}
