// SPDX-License-Identifier: GPL-2.0

//! CPUs that come and go.
//!
//! C header: [`include/linux/cpuhotplug.h`](srctree/include/linux/cpuhotplug.h)

use crate::bindings;
use kernel::{
    container_of,
    error::to_result,
    ffi::{c_int, c_uint},
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::Arc,
    types::Opaque,
};

/// The state in which [`Callbacks::starting`] and [`Callbacks::dying`] are called: on the CPU's way
/// up perf core puts no event on it before, and on its way down it has taken the CPU's own events
/// from it by then (`CPUHP_AP_PERF_ONLINE`), and the CPU itself does it.
///
/// The kernel has no dynamic states there, and the one of x86 is the built-in driver's, which keeps
/// it. Arm's PMU drivers, who cannot be around, have one at the same place.
const STATE: bindings::cpuhp_state = bindings::cpuhp_state_CPUHP_AP_PERF_ARM_STARTING;

/// What to do when a CPU comes or goes.
pub trait Callbacks: Send + Sync {
    /// This CPU has come up, or the callbacks have just been registered. CPUs do so one at a time,
    /// and know their siblings by then.
    ///
    /// In the former case it is one of the first things that the CPU does. It must be short.
    fn starting(&self, irqs: &LocalInterruptDisabled);

    /// This CPU is about to be switched off, or the callbacks are being unregistered.
    ///
    /// In the former case it is one of the last things that the CPU does: on the stopper's thread,
    /// all other CPUs waiting. It must be short. That thread's own events are still on the CPU; perf
    /// core takes them away afterwards, when the thread goes to sleep.
    fn dying(&self, irqs: &LocalInterruptDisabled);
}

/// What the kernel's node leads back to.
#[repr(C)]
struct Instance<T: Callbacks> {
    node: Opaque<bindings::hlist_node>,
    callbacks: Arc<T>,
}

/// Registered callbacks. Registering calls [`Callbacks::starting`] on each CPU that is up; dropping
/// it calls [`Callbacks::dying`] there, and unregisters.
///
/// # Invariants
///
/// [`STATE`] is a state of multiple instances with this module's callback for `T`, and the value is
/// its one instance.
pub struct Registration<T: Callbacks>(Pin<KBox<Instance<T>>>);

// SAFETY: A registration is a reference count of a `T`, which is `Send + Sync`, and an entry of a
// list with its own lock. Both may be let go from any thread.
unsafe impl<T: Callbacks> Send for Registration<T> {}

// SAFETY: A shared reference to a registration gives access to nothing.
unsafe impl<T: Callbacks> Sync for Registration<T> {}

impl<T: Callbacks> Registration<T> {
    /// Registers callbacks. `name` is what `/sys/devices/system/cpu/hotplug/states` shows.
    ///
    /// `EBUSY` if somebody else uses the state, or `ENOMEM`. Process context.
    pub fn new(name: &'static CStr, callbacks: Arc<T>) -> Result<Self> {
        // The kernel's callbacks have no pointer to data unless the state is one of multiple
        // instances, hence such a state with one instance.
        let instance = KBox::pin(
            Instance {
                node: Opaque::zeroed(),
                callbacks,
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The name is static, and the callbacks are taken back before the module goes, by
        // `drop` or below. They are only called with instances, of which there are none yet.
        to_result(unsafe {
            bindings::rpmu_helper_cpuhp_setup_state_multi(
                STATE,
                name.as_char_ptr(),
                Some(startup_callback::<T>),
                Some(teardown_callback::<T>),
            )
        })?;

        // SAFETY: The state has just been set up for multiple instances. The node is in an
        // `Instance` of the callback's type, which stays where it is until `drop` has taken it out.
        let ret = unsafe {
            bindings::__cpuhp_state_add_instance(STATE, instance.node.get().cast(), true)
        };
        if let Err(err) = to_result(ret) {
            // SAFETY: The state is ours, and it has no instance.
            unsafe { bindings::__cpuhp_remove_state(STATE, false) };
            return Err(err);
        }
        // INVARIANT: Both have just been done.
        Ok(Self(instance))
    }
}

impl<T: Callbacks> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the state is ours and this is its one instance. This calls
        // the callback on each CPU that is up, and none is called after it returns.
        unsafe {
            bindings::__cpuhp_state_remove_instance(STATE, self.0.node.get().cast(), true);
            bindings::__cpuhp_remove_state(STATE, false);
        }
    }
}

/// Calls `f` with the callbacks, on a CPU that comes or goes.
///
/// # Safety
///
/// Only for the kernel's callbacks, with interrupts off: `node` is that of an [`Instance<T>`].
unsafe fn with_instance<T: Callbacks>(
    node: *mut bindings::hlist_node,
    f: impl FnOnce(&T, &LocalInterruptDisabled),
) -> c_int {
    // SAFETY: This function's own requirement: the instance stays registered until this returns,
    // and it is only ever borrowed shared.
    let instance =
        unsafe { &*container_of!(Opaque::cast_from(node.cast_const()), Instance<T>, node) };
    // SAFETY: The state is one of the STARTING section, whose callbacks the kernel calls with
    // interrupts off, also where it has a thread of the CPU do so (`cpuhp_thread_fun()`,
    // kernel/cpu.c), and not in an NMI.
    let irqs = unsafe { LocalInterruptDisabled::assume_disabled() };
    f(&instance.callbacks, irqs);
    0
}

/// # Safety
///
/// As for [`with_instance`].
unsafe extern "C" fn startup_callback<T: Callbacks>(
    _cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { with_instance(node, T::starting) }
}

/// # Safety
///
/// As for [`with_instance`].
unsafe extern "C" fn teardown_callback<T: Callbacks>(
    _cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { with_instance(node, T::dying) }
}
