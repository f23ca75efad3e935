// SPDX-License-Identifier: GPL-2.0

//! CPU hotplug: callbacks for CPUs that come online and go offline.
//!
//! C header: [`include/linux/cpuhotplug.h`](srctree/include/linux/cpuhotplug.h)

use crate::bindings;
use kernel::{
    container_of,
    error::to_result,
    ffi::{
        c_int,
        c_uint, //
    },
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::Arc,
    types::Opaque, //
};

/// The hotplug state of [`Callbacks::starting`] and [`Callbacks::dying`], which the CPU itself
/// calls. When a CPU comes up, the perf core puts events on it only after `starting`; when it goes
/// down, the perf core removes the CPU's own events before `dying` (`CPUHP_AP_PERF_ONLINE`).
///
/// The kernel has no dynamic states in this section, and the built-in driver occupies x86's state.
/// This file uses the state of Arm's PMU drivers, which x86 kernels lack. It comes after x86's
/// state: while a CPU goes down, PEBS is off before the built-in driver clears IA32_DS_AREA
/// (`intel_pmu_cpu_dying()`).
const STATE: bindings::cpuhp_state = bindings::cpuhp_state_CPUHP_AP_PERF_ARM_STARTING;

/// Callbacks for a CPU that comes online or goes offline.
pub trait Callbacks: Send + Sync {
    /// Called on a CPU that has come up, and on each online CPU when the callbacks are registered.
    /// One CPU at a time; the CPU's sibling mask is complete.
    ///
    /// On a CPU that comes up, this is among the first calls. It must be short.
    fn starting(&self, irqs: &LocalInterruptDisabled);

    /// Called on a CPU that is about to be switched off, and on each online CPU when the callbacks
    /// are unregistered.
    ///
    /// On a CPU that goes down, this is among the last calls, on the stopper thread, while all
    /// other CPUs wait. It must be short. The stopper thread's own events are still on the CPU; the
    /// perf core removes them afterwards, when the thread sleeps.
    fn dying(&self, irqs: &LocalInterruptDisabled);
}

/// Returns the number of the state, for messages.
pub fn state() -> i32 {
    STATE
}

/// The callbacks, with the node that is on the kernel's list.
///
/// # Invariants
///
/// While the instance is registered, `callbacks` points to the valid `T` of its
/// [`Registration<T>`].
// Without a type parameter, which would make the name of its drop function long.
#[repr(C)]
struct Instance {
    node: Opaque<bindings::hlist_node>,
    callbacks: *const c_void,
}

/// Registered callbacks. Registering calls [`Callbacks::starting`] on each online CPU. Dropping
/// calls [`Callbacks::dying`] there and unregisters.
///
/// # Invariants
///
/// [`STATE`] is set up as a multi-instance state with this module's callbacks for `T`, and
/// `instance` is its only instance.
pub struct Registration<T: Callbacks> {
    instance: Pin<KBox<Instance>>,
    _callbacks: Arc<T>,
}

// SAFETY: A registration is a reference count of a `T`, which is `Send + Sync`, and an entry of a
// list with its own lock. Both may be released by any thread.
unsafe impl<T: Callbacks> Send for Registration<T> {}

// SAFETY: A registration has no methods that take a shared reference.
unsafe impl<T: Callbacks> Sync for Registration<T> {}

impl<T: Callbacks> Registration<T> {
    /// Registers callbacks under the `name` that `/sys/devices/system/cpu/hotplug/states` shows.
    ///
    /// Fails with `EBUSY` if the state is in use, or with `ENOMEM`. Process context.
    pub fn new(name: &'static CStr, callbacks: Arc<T>) -> Result<Self> {
        // The kernel passes data to the callbacks of multi-instance states only. So this is one,
        // with one instance.
        let instance = KBox::pin(
            Instance {
                node: Opaque::zeroed(),
                // INVARIANT: The registration keeps the `T`.
                callbacks: Arc::as_ptr(&callbacks).cast(),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The name is static, and the state is removed before the module goes, by `drop` or
        // below. Its callbacks are only called for instances, and there are none yet.
        to_result(unsafe {
            bindings::rpmu_helper_cpuhp_setup_state_multi(
                STATE,
                name.as_char_ptr(),
                Some(startup_callback::<T>),
                Some(teardown_callback::<T>),
            )
        })?;

        // SAFETY: The state has just been set up for multiple instances. The node is in an
        // `Instance` for the callbacks' type, which stays in place until `drop` has removed it from
        // the list.
        let ret = unsafe {
            bindings::__cpuhp_state_add_instance(STATE, instance.node.get().cast(), true)
        };
        if let Err(err) = to_result(ret) {
            // SAFETY: The state has been set up above and has no instance.
            unsafe { bindings::__cpuhp_remove_state(STATE, false) };
            return Err(err);
        }
        // INVARIANT: The state has been set up and the instance added above.
        Ok(Self {
            instance,
            _callbacks: callbacks,
        })
    }
}

impl<T: Callbacks> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the state is this module's and this is its one instance.
        // Removing the instance calls the teardown callback on each online CPU; no callback runs
        // afterwards.
        unsafe {
            bindings::__cpuhp_state_remove_instance(STATE, self.instance.node.get().cast(), true);
            bindings::__cpuhp_remove_state(STATE, false);
        }
    }
}

/// Calls `f` with the callbacks.
///
/// # Safety
///
/// `node` must be the node of a registered [`Instance`] for `T`. Interrupts must be off, outside of
/// NMIs.
unsafe fn with_instance<T: Callbacks>(
    node: *mut bindings::hlist_node,
    f: impl FnOnce(&T, &LocalInterruptDisabled),
) -> c_int {
    // SAFETY: By this function's requirements. Removing the instance excludes CPU hotplug
    // (`cpus_read_lock()`), so the instance stays until this returns. There are only shared
    // references to it.
    let instance = unsafe { &*container_of!(Opaque::cast_from(node.cast_const()), Instance, node) };
    // SAFETY: By this function's requirements. The kernel calls the callbacks of states in the
    // STARTING section with interrupts off, in the CPU's hotplug thread too (`cpuhp_thread_fun()`,
    // kernel/cpu.c).
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    // SAFETY: By the type invariant.
    let callbacks = unsafe { &*instance.callbacks.cast::<T>() };
    f(callbacks, irqs);
    0
}

/// # Safety
///
/// As [`with_instance`].
unsafe extern "C" fn startup_callback<T: Callbacks>(
    _cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { with_instance(node, T::starting) }
}

/// # Safety
///
/// As [`with_instance`].
unsafe extern "C" fn teardown_callback<T: Callbacks>(
    _cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { with_instance(node, T::dying) }
}
