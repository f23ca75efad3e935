// SPDX-License-Identifier: GPL-2.0

//! Noticing that users disable events.
//!
//! To disable a group that is in the error state changes nothing in the perf core
//! (`_perf_event_disable()`, `kernel/events/core.c:2729`), and no PMU is told. A pinned group that
//! [waits](crate::perf::OnCpu::wait_if_pinned) would be tried again nevertheless. So the functions that
//! disable events for users are probed, and groups that they are asked to disable wait no longer:
//!
//! - `perf_ioctl()` and `perf_compat_ioctl()`, with `PERF_EVENT_IOC_DISABLE`
//! - `perf_event_task_disable()`, for prctl()
//! - `perf_event_disable()`, for events of the kernel's own
//!
//! These are called by pointer or from other files, so they are not inlined everywhere, as
//! `_perf_event_disable()` itself can be. Groups are looked for when the function is called and when it
//! returns: they may begin to wait in between. Only a group that within one such call loses its counter
//! and gets it back goes on counting.
//!
//! In the kernel proper this would be the perf core's business.

use crate::{
    bindings,
    perf::{Operations, Pmu},
};
use core::{
    pin::Pin,
    ptr::{self, with_exposed_provenance_mut},
};
use kernel::{
    error::to_result,
    prelude::*,
    sync::{atomic::Relaxed, rcu, Arc},
    task::Task,
    types::Opaque,
};

/// How many tasks can be disabling events at a time without one of them going unnoticed.
const MAX_DISABLING: c_int = 256;

/// The time in which a PMU notices that its events are disabled. Only in this time are pinned groups
/// that wait tried again.
pub struct DisableWatch<T: Operations> {
    _probes: [Probe<T>; 3],
    _compat: Option<Probe<T>>,
    pmu: Arc<Pmu<T>>,
}

impl<T: Operations> DisableWatch<T> {
    /// Begins to watch the events of `pmu`.
    ///
    /// The error of `register_kretprobe()` if the kernel's functions cannot be probed; it takes
    /// `CONFIG_KRETPROBES`. Process context.
    pub fn new(pmu: Arc<Pmu<T>>) -> Result<Self> {
        let probes = [
            Probe::new(c"perf_ioctl", ioctl_entry::<T>, &pmu)?,
            Probe::new(c"perf_event_task_disable", task_disable_entry::<T>, &pmu)?,
            Probe::new(c"perf_event_disable", disable_entry::<T>, &pmu)?,
        ];
        let compat = match Probe::new(c"perf_compat_ioctl", ioctl_entry::<T>, &pmu) {
            Ok(probe) => Some(probe),
            // The kernel runs no 32-bit programs.
            Err(error) if error == ENOENT => None,
            Err(error) => return Err(error),
        };
        pmu.internals.retries_pinned.store(true, Relaxed);
        Ok(Self {
            _probes: probes,
            _compat: compat,
            pmu,
        })
    }
}

impl<T: Operations> Drop for DisableWatch<T> {
    fn drop(&mut self) {
        self.pmu.internals.retries_pinned.store(false, Relaxed);
    }
}

type EntryHandler =
    unsafe extern "C" fn(*mut bindings::kretprobe_instance, *mut bindings::pt_regs) -> c_int;

/// A function that is probed.
///
/// # Invariants
///
/// `register_kretprobe()` has succeeded for `raw`.
struct Probe<T: Operations>(Pin<KBox<Inner<T>>>);

struct Inner<T: Operations> {
    raw: Opaque<bindings::kretprobe>,
    pmu: Arc<Pmu<T>>,
}

// SAFETY: A kretprobe may be unregistered by any task. `Arc<Pmu<T>>` is `Send`.
unsafe impl<T: Operations> Send for Probe<T> {}

// SAFETY: A shared reference gives access to nothing.
unsafe impl<T: Operations> Sync for Probe<T> {}

impl<T: Operations> Probe<T> {
    fn new(function: &'static CStr, entry: EntryHandler, pmu: &Arc<Pmu<T>>) -> Result<Self> {
        let inner = KBox::pin(
            Inner {
                raw: Opaque::new(bindings::kretprobe {
                    kp: bindings::kprobe {
                        symbol_name: function.as_char_ptr(),
                        ..pin_init::zeroed()
                    },
                    handler: Some(return_handler::<T>),
                    entry_handler: Some(entry),
                    maxactive: MAX_DISABLING,
                    data_size: size_of::<Target>(),
                    ..pin_init::zeroed()
                }),
                pmu: pmu.clone(),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The probe names a function, handlers and the size of their data and is otherwise zero,
        // as it has to be. It stays where it is until `drop` has unregistered it.
        to_result(unsafe { bindings::rpmu_helper_register_kretprobe(inner.raw.get()) })?;
        // INVARIANT: Just registered.
        Ok(Self(inner))
    }
}

impl<T: Operations> Drop for Probe<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. This waits until no CPU is in a handler; a task that is still
        // in the function returns without one.
        unsafe { bindings::rpmu_helper_unregister_kretprobe(self.0.raw.get()) };
    }
}

/// Which events are disabled. The pointers are for comparison only.
#[derive(Clone, Copy)]
pub(in crate::perf) enum Target {
    /// An event, and those that were inherited from it.
    Event(*mut bindings::perf_event),
    /// All events that the task has opened.
    OpenedBy(*mut bindings::task_struct),
}

impl Target {
    /// Whether the group of `event` is among them.
    ///
    /// # Safety
    ///
    /// `event` must be open, or have been destroyed after this RCU reader began.
    pub(in crate::perf) unsafe fn has_group_of(self, event: *mut bindings::perf_event) -> bool {
        // SAFETY: The event is freed after RCU readers have ended, and so is its leader: before that
        // leaves the group, the event gets another (`perf_group_detach()`). An inherited event keeps the
        // one that it was inherited from until it is freed.
        unsafe {
            let leader = ptr::read_volatile(&raw const (*event).group_leader);
            let parent = (*leader).parent;
            let opened = if parent.is_null() { leader } else { parent };
            match self {
                Self::Event(disabled) => ptr::eq(opened, disabled),
                Self::OpenedBy(task) => ptr::read_volatile(&raw const (*opened).owner) == task,
            }
        }
    }
}

/// # Safety
///
/// For the kernel to call, at the entry of `perf_ioctl()` or `perf_compat_ioctl()`.
unsafe extern "C" fn ioctl_entry<T: Operations>(
    instance: *mut bindings::kretprobe_instance,
    regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: `regs` are those at the entry of a function with three arguments.
    let (file, command, flags) = unsafe {
        (
            bindings::rpmu_helper_argument(regs, 0),
            bindings::rpmu_helper_argument(regs, 1),
            bindings::rpmu_helper_argument(regs, 2),
        )
    };
    // CAST: the argument is an `unsigned int`.
    if command as u32 != bindings::RUST_CONST_HELPER_PERF_EVENT_IOC_DISABLE {
        return NOT_THIS_CALL;
    }
    let whole_group = flags & bindings::perf_event_ioc_flags_PERF_IOC_FLAG_GROUP as usize != 0;
    // SAFETY: The first argument is the file of an event, which the caller keeps open, and so the event.
    // Its leader is compared only.
    let event = unsafe {
        let event: *mut bindings::perf_event =
            bindings::rpmu_helper_private_data(with_exposed_provenance_mut(file)).cast();
        match whole_group {
            true => ptr::read_volatile(&raw const (*event).group_leader),
            false => event,
        }
    };
    // SAFETY: This is an entry handler.
    unsafe { begin::<T>(instance, Target::Event(event)) }
}

/// # Safety
///
/// For the kernel to call, at the entry of `perf_event_task_disable()`.
unsafe extern "C" fn task_disable_entry<T: Operations>(
    instance: *mut bindings::kretprobe_instance,
    _regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: This is an entry handler.
    unsafe { begin::<T>(instance, Target::OpenedBy(Task::current_raw().cast())) }
}

/// # Safety
///
/// For the kernel to call, at the entry of `perf_event_disable()`.
unsafe extern "C" fn disable_entry<T: Operations>(
    instance: *mut bindings::kretprobe_instance,
    regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: `regs` are those at the entry of a function with an argument.
    let event = unsafe { bindings::rpmu_helper_argument(regs, 0) };
    // SAFETY: This is an entry handler.
    unsafe { begin::<T>(instance, Target::Event(with_exposed_provenance_mut(event))) }
}

/// What an entry handler returns if the return handler is not to be called.
const NOT_THIS_CALL: c_int = 1;

/// # Safety
///
/// To be called by an entry handler, with its argument.
unsafe fn begin<T: Operations>(
    instance: *mut bindings::kretprobe_instance,
    target: Target,
) -> c_int {
    // SAFETY: By this function's requirements.
    let Some((pmu, data)) = (unsafe { of_instance::<T>(instance) }) else {
        return NOT_THIS_CALL;
    };
    // SAFETY: The instance's data has room for it, but need not be aligned for it.
    unsafe { data.write_unaligned(target) };
    pmu.forget_disabled(target);
    0
}

/// # Safety
///
/// For the kernel to call, when a function returns whose entry handler has returned 0.
unsafe extern "C" fn return_handler<T: Operations>(
    instance: *mut bindings::kretprobe_instance,
    _regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By this function's requirements.
    if let Some((pmu, data)) = unsafe { of_instance::<T>(instance) } {
        // SAFETY: `begin()` has written it.
        pmu.forget_disabled(unsafe { data.read_unaligned() });
    }
    0
}

/// The PMU of the probe that an instance is of, and the instance's data.
///
/// # Safety
///
/// `instance` must be the argument of a handler, and the result must not leave that.
unsafe fn of_instance<'a, T: Operations>(
    instance: *mut bindings::kretprobe_instance,
) -> Option<(&'a Pmu<T>, *mut Target)> {
    // SAFETY: By this function's requirements.
    let probe = unsafe { bindings::rpmu_helper_get_kretprobe(instance) };
    if probe.is_null() {
        return None;
    }
    let raw = Opaque::cast_from(probe.cast_const());
    // SAFETY: A handler's probe is registered, and its `Inner` only ever borrowed shared.
    let inner = unsafe { &*kernel::container_of!(raw, Inner<T>, raw) };
    // SAFETY: By this function's requirements.
    let data = unsafe { bindings::rpmu_helper_kretprobe_data(instance) };
    Some((&inner.pmu, data.cast()))
}

impl<T: Operations> Pmu<T> {
    /// Lets the groups of `target` wait no longer. Preemption is off.
    fn forget_disabled(&self, target: Target) {
        // It is set under the lock of the group's context, which the probed function takes to look at the
        // group's state. So it is seen when that returns, if not before.
        if !self.internals.has_waited.load(Relaxed) {
            return;
        }
        let _guard = rcu::read_lock();
        // SAFETY: An event that waits was not destroyed before this RCU reader began, or it would have
        // been forgotten.
        let is_disabled = |event| unsafe { target.has_group_of(event) };
        for state in self.cpu_states() {
            state.internals.waiting.forget_if(is_disabled);
        }
    }
}
