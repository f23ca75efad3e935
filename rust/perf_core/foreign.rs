// SPDX-License-Identifier: GPL-2.0

//! PMUs of built-in drivers, and how a module replaces them.
//!
//! A built-in driver registers its PMU at boot and never unregisters it. [`BuiltinPmu::find`] finds
//! it, [`BuiltinPmu::unregister`] removes it from the perf core's list, and dropping the resulting
//! [`UnregisteredPmu`] registers it again, unchanged.
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
    cpu::CpuId,
    error::{
        code::*,
        from_err_ptr,
        to_result,
        Result, //
    },
    prelude::*, //
};

/// The reason why there is no PMU to take over.
pub enum NotFound {
    /// The PMU belongs to the module of this name.
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

// SAFETY: A shared reference only allows reading the constant name and, under a lock, the events.
unsafe impl Sync for BuiltinPmu {}

impl BuiltinPmu {
    /// Finds the PMU that serves events of type `event_type` on `cpu`, or on all CPUs if `cpu` is
    /// [`None`].
    ///
    /// Opens an event with the given `config`, which the PMU must accept, and closes it. Returns
    /// [`None`] if no PMU accepts it. Fails with a module's name if a PMU of this module accepts
    /// it. Otherwise fails with the error of opening: `EBUSY` if the built-in driver finds its
    /// counters reserved, `ENODEV` if `cpu` is offline. Process context.
    pub fn find(
        event_type: u32,
        config: u64,
        cpu: Option<CpuId>,
    ) -> Result<Option<Self>, NotFound> {
        let mut attr: bindings::perf_event_attr = pin_init::zeroed();
        attr.type_ = event_type;
        // CAST: the structure has less than 200 bytes.
        attr.size = size_of::<bindings::perf_event_attr>() as u32;
        attr.config = config;
        attr.set_disabled(1);

        let cpu = cpu.unwrap_or_else(CpuId::current).into();
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
        // SAFETY: The event was created above, and is not used again.
        unsafe { bindings::perf_event_release_kernel(event) };

        match name {
            Some(name) => Err(NotFound::Module(name)),
            // INVARIANT: The check above has found no module.
            None => Ok(NonNull::new(pmu).map(Self)),
        }
    }

    /// Finds another PMU of the same driver by its name, if there is one. Process context.
    pub fn sibling(&self, name: &CStr) -> Option<Self> {
        // SAFETY: The PMU is registered, and so is its device. The helper returns a PMU on the same
        // bus, or null.
        let pmu = unsafe { bindings::rpmu_helper_pmu_named(self.0.as_ptr(), name.as_char_ptr()) };
        // INVARIANT: Names on a bus are unique. The driver of this PMU, which is built in, has
        // registered all of its PMUs, under these names, at boot.
        NonNull::new(pmu).map(Self)
    }

    /// Returns the name under which the PMU was registered.
    pub fn name(&self) -> &CStr {
        // SAFETY: A registered PMU has a name, a C string that lives as long as the PMU: for good.
        unsafe { CStr::from_char_ptr((*self.0.as_ptr()).name) }
    }

    /// Unregisters the PMU, so that no more events can be opened on it.
    ///
    /// Fails with `EBUSY` and leaves the PMU unchanged if it has events, and for a short time after
    /// an event was closed. Events do not rotate during the attempt. Process context.
    pub fn unregister(self) -> Result<UnregisteredPmu, (Self, Error)> {
        let pmu = self.0.as_ptr();
        // SAFETY: The PMU is registered, and only this function unregisters it.
        unsafe { rotation::stop(pmu) };
        // SAFETY: The PMU is registered, and never freed.
        match to_result(unsafe { bindings::perf_pmu_unregister(pmu) }) {
            // INVARIANT: The PMU has just been unregistered.
            Ok(()) => Ok(UnregisteredPmu(self)),
            Err(e) => {
                // SAFETY: The PMU is still registered.
                unsafe { rotation::allow(pmu) };
                Err((self, e))
            }
        }
    }

    /// Returns whether events are open on the PMU. Process context.
    // Not inlined: the list of users needs stack.
    #[inline(never)]
    pub fn is_used(&self) -> bool {
        let mut users = Users::default();
        self.add_users(&mut users);
        !users.are_none()
    }

    /// Adds the users that have events open on the PMU to `users`. Process context.
    pub fn add_users(&self, users: &mut Users) {
        // SAFETY: The PMU is never freed, and was registered.
        unsafe { users.add_of(self.0.as_ptr()) };
    }
}

/// A PMU of a built-in driver that has been unregistered. Dropping it registers it again.
///
/// # Invariants
///
/// [`BuiltinPmu::unregister`] has succeeded.
pub struct UnregisteredPmu(BuiltinPmu);

impl UnregisteredPmu {
    /// Returns the name under which the PMU will be registered again.
    pub fn name(&self) -> &CStr {
        self.0.name()
    }

    /// Returns the event type under which the PMU will be registered again.
    pub fn event_type(&self) -> u32 {
        // CAST: the type of a PMU that was registered is not negative.
        // SAFETY: The PMU is never freed. It keeps its type (`perf_pmu_unregister()`,
        // `kernel/events/core.c`).
        unsafe { (*self.0 .0.as_ptr()).type_ as u32 }
    }

    /// Registers the PMU again. Returns [`None`] if this fails, and logs the failure, as dropping
    /// does. Process context.
    pub fn register_again(self) -> Option<BuiltinPmu> {
        let registered = self.register();
        let pmu = self.0 .0;
        core::mem::forget(self);
        // INVARIANT: By the invariant of `self.0`; the PMU has just been registered.
        registered.ok().map(|()| BuiltinPmu(pmu))
    }

    /// Registers the PMU again. Logs a failure, and if the PMU has got another event type than
    /// before.
    fn register(&self) -> Result {
        let pmu = self.0 .0.as_ptr();
        let before = self.event_type();
        // SAFETY: The PMU is not registered, so nothing else uses it. Unregistering has freed the
        // objects behind the first two pointers and left these dangling, and registering would
        // reuse a device that is not null. Name and type are unchanged. If another PMU has got the
        // type meanwhile, the kernel only warns, and takes the next type that is free.
        let ret = unsafe {
            (*pmu).dev = ptr::null_mut();
            (*pmu).cpu_pmu_context = ptr::null_mut();
            bindings::perf_pmu_register(pmu, (*pmu).name, (*pmu).type_)
        };
        self.check_registered(to_result(ret), before)
    }

    /// Logs if registering has failed, as `result` tells, or has not got the type `before`.
    // A separate function: messages need stack, which must be free while the perf core is called.
    #[inline(never)]
    fn check_registered(&self, result: Result, before: u32) -> Result {
        let (name, now) = (self.name(), self.event_type());
        match result {
            Err(e) => {
                pr_err!("cannot register the built-in driver's PMU {name:?} again: {e:?}\n");
            }
            Ok(()) if now != before => pr_warn!(
                "the built-in driver's PMU {name:?} now has the event type {now}: another PMU has its \
                 type {before}\n"
            ),
            Ok(()) => {}
        }
        result
    }

    /// Makes `pmu`, which is not registered yet, call this PMU's `pmu_enable` each time after the
    /// perf core has enabled `pmu`.
    ///
    /// A BPF program that is attached to this function, such as dynolog's `bperf` (fexit of
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

/// The first bytes of a function to which nothing is attached: ENDBR64, and the five-byte NOP that
/// ftrace turns into a call.
const UNHOOKED: u64 = u64::from_le_bytes([0xf3, 0x0f, 0x1e, 0xfa, 0x0f, 0x1f, 0x44, 0x00]);

/// Replaces the code of `pmu_enable` for a PMU without a predecessor.
static NO_FUNCTION: u64 = UNHOOKED;

/// Returns the address of [`NO_FUNCTION`], to which nothing can be attached.
pub(super) fn no_function() -> *mut u64 {
    (&raw const NO_FUNCTION).cast_mut()
}

impl<T: InternalOperations> PmuState<T> {
    /// Calls `pmu_enable` of the PMU that this one replaces, if something is or may be attached to
    /// its start.
    ///
    /// # Safety
    ///
    /// To be called when the PMU has been enabled on this CPU, with interrupts off and not in an
    /// NMI.
    #[inline]
    pub(super) unsafe fn enable_predecessor(&self) {
        // SAFETY: `hook` points to `NO_FUNCTION`, or to a function of the kernel, which is aligned
        // to 16 bytes and whose code can be read. The code may change meanwhile.
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
        // type invariant of `UnregisteredPmu`, the predecessor is never freed, and it is
        // unregistered as long as this PMU is registered. Its function is `x86_pmu_enable()`
        // (`arch/x86/events/core.c`), which returns at once because `cpu_hw_events.enabled` is set.
        // The field is set initially, and again after each pair of `perf_pmu_disable()` and
        // `perf_pmu_enable()`, which the perf core has not called since the PMU was unregistered.
        // Otherwise only PMI handlers clear the field, while they run.
        unsafe {
            if let Some(enable) = (*predecessor).pmu_enable {
                enable(predecessor);
            }
        }
    }
}

impl Drop for UnregisteredPmu {
    fn drop(&mut self) {
        // The log has the failure.
        let _ = self.register();
    }
}
