// SPDX-License-Identifier: GPL-2.0

//! CPUs that come and go.
//!
//! C header: [`include/linux/cpuhotplug.h`](srctree/include/linux/cpuhotplug.h)

use crate::bindings;
use core::marker::PhantomData;
use kernel::{
    container_of,
    cpu::CpuId,
    error::{from_result, to_result},
    ffi::{c_int, c_uint},
    prelude::*,
    sync::Arc,
    types::{NotThreadSafe, Opaque},
};

/// Keeps CPUs from coming and going while it exists.
pub struct ReadGuard(PhantomData<NotThreadSafe>);

/// Keeps CPUs from coming and going. Process context; not in [`Callbacks`], whose caller waits for
/// this very lock.
#[must_use = "CPUs may come and go again as soon as the guard is dropped"]
pub fn read_lock() -> ReadGuard {
    // SAFETY: It may sleep, which process context allows; the guard unlocks it.
    unsafe { bindings::cpus_read_lock() };
    ReadGuard(PhantomData)
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        // SAFETY: Locked by this same thread when the guard was made.
        unsafe { bindings::cpus_read_unlock() };
    }
}

/// When callbacks are called, on a CPU's way up and down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Slot {
    /// By another CPU, before the CPU starts and after it has died. May sleep.
    Prepare,
    /// By the CPU itself, first thing when it starts and last thing before it dies, before and
    /// after there can be a perf event on it. Interrupts are off, `startup` must not fail.
    ///
    /// It is the slot of the built-in driver, so it is busy where that driver has initialised.
    PerfStarting,
    /// By a thread of the CPU itself, when it is up; after perf core has let events in, and on the
    /// way down before it has thrown them out. May sleep.
    Online,
}

impl Slot {
    fn state(self) -> bindings::cpuhp_state {
        match self {
            Slot::Prepare => bindings::cpuhp_state_CPUHP_BP_PREPARE_DYN,
            Slot::PerfStarting => bindings::cpuhp_state_CPUHP_AP_PERF_X86_STARTING,
            Slot::Online => bindings::cpuhp_state_CPUHP_AP_ONLINE_DYN,
        }
    }
}

/// What to do when a CPU comes or goes.
///
/// # Context
///
/// See [`Slot`]. The hotplug lock is held for writing by whoever brings the CPU up or down, or for
/// reading by [`Registration::new`] and by its `drop`.
pub trait Callbacks: Send + Sync {
    /// `cpu` is coming up. An error keeps it down.
    fn startup(&self, cpu: CpuId) -> Result;

    /// `cpu` is going down.
    fn teardown(&self, cpu: CpuId);
}

/// What the kernel's node leads back to.
#[repr(C)]
struct Instance<T: Callbacks> {
    node: Opaque<bindings::hlist_node>,
    callbacks: Arc<T>,
}

/// Registered callbacks. Dropping it calls `teardown` for each CPU that is up, and unregisters.
///
/// # Invariants
///
/// `state` is a state of multiple instances with this module's callbacks for `T`, and `instance` is
/// its one instance.
pub struct Registration<T: Callbacks> {
    state: bindings::cpuhp_state,
    instance: Pin<KBox<Instance<T>>>,
}

// SAFETY: A registration is a reference count of a `T`, which is `Send + Sync`, and an entry of a
// list with its own lock. Both may be let go from any thread.
unsafe impl<T: Callbacks> Send for Registration<T> {}

// SAFETY: A shared reference to a registration gives access to nothing.
unsafe impl<T: Callbacks> Sync for Registration<T> {}

impl<T: Callbacks> Registration<T> {
    /// Registers callbacks, and calls `startup` for each CPU that is up already. `name` is what
    /// `/sys/devices/system/cpu/hotplug/states` shows.
    ///
    /// `EBUSY` if the slot is taken (only [`Slot::PerfStarting`] can be), `ENOSPC` if all dynamic
    /// states are in use, `ENOMEM`, or the error of a `startup`; in any case `teardown` has been
    /// called for whichever had started. Process context.
    pub fn new(slot: Slot, name: &'static CStr, callbacks: Arc<T>) -> Result<Self> {
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
        let ret = unsafe {
            bindings::rpmu_helper_cpuhp_setup_state_multi(
                slot.state(),
                name.as_char_ptr(),
                Some(startup_callback::<T>),
                Some(teardown_callback::<T>),
            )
        };
        to_result(ret)?;
        // Dynamic states return the state that they have got, others 0.
        let state = if ret > 0 { ret } else { slot.state() };

        // SAFETY: `state` has just been set up for multiple instances. The node is in an `Instance`
        // of the callbacks' type, which stays where it is until `drop` has taken it out.
        let ret = unsafe {
            bindings::__cpuhp_state_add_instance(state, instance.node.get().cast(), true)
        };
        if let Err(err) = to_result(ret) {
            // SAFETY: This state is ours, and it has no instance.
            unsafe { bindings::__cpuhp_remove_state(state, false) };
            return Err(err);
        }
        // INVARIANT: Both have just been done.
        Ok(Self { state, instance })
    }
}

impl<T: Callbacks> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the state is ours and this is its one instance. This calls
        // the teardown callback where the CPU is up, and none is called after it returns.
        unsafe {
            bindings::__cpuhp_state_remove_instance(
                self.state,
                self.instance.node.get().cast(),
                true,
            );
            bindings::__cpuhp_remove_state(self.state, false);
        }
    }
}

/// # Safety
///
/// Only for the kernel to call: `cpu` is a CPU, and `node` that of an [`Instance<T>`].
unsafe extern "C" fn startup_callback<T: Callbacks>(
    cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    from_result(|| {
        // SAFETY: This function's own requirement.
        let (cpu, callbacks) = unsafe { callback_arguments::<T>(cpu, node) };
        callbacks.startup(cpu).map(|()| 0)
    })
}

/// # Safety
///
/// Only for the kernel to call: `cpu` is a CPU, and `node` that of an [`Instance<T>`].
unsafe extern "C" fn teardown_callback<T: Callbacks>(
    cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> c_int {
    // SAFETY: This function's own requirement.
    let (cpu, callbacks) = unsafe { callback_arguments::<T>(cpu, node) };
    callbacks.teardown(cpu);
    0
}

/// # Safety
///
/// `cpu` must be a CPU, and `node` that of an [`Instance<T>`] which stays registered for `'a`.
unsafe fn callback_arguments<'a, T: Callbacks>(
    cpu: c_uint,
    node: *mut bindings::hlist_node,
) -> (CpuId, &'a T) {
    // SAFETY: This function's own requirement. An instance is only ever borrowed shared.
    let instance =
        unsafe { &*container_of!(Opaque::cast_from(node.cast_const()), Instance<T>, node) };
    // SAFETY: This function's own requirement.
    let cpu = unsafe { CpuId::from_u32_unchecked(cpu) };
    (cpu, &instance.callbacks)
}
