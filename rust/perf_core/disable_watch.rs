// SPDX-License-Identifier: GPL-2.0

//! Probes of the functions by which users disable events.
//!
//! When a group in the error state is disabled, the perf core changes nothing
//! (`_perf_event_disable()`, `kernel/events/core.c`), and calls no callback of the PMU. A pinned
//! group that [waits](crate::perf::Scheduling::wait_if_pinned) would be tried again nevertheless.
//! So kprobes watch the functions that disable events for users, and a group for which one of them
//! is called no longer waits:
//!
//! - `perf_ioctl()` and `perf_compat_ioctl()`, with `PERF_EVENT_IOC_DISABLE`
//! - `perf_event_task_disable()`, for prctl()
//! - `perf_event_disable()` and `perf_event_pause()`, for kernel-owned events; KVM calls the second
//!
//! Unlike `_perf_event_disable()`, these are called by pointer or from other files, so there is a
//! call that can be probed. The handlers look for groups when the function is called and when it
//! returns, since a group may begin to wait in between. Only a group that loses its counter and
//! gets it back within one such call continues to count.
//!
//! A kprobe sees every call. A kretprobe sees the returns, but needs an instance for each call that
//! has not returned, and users can make many calls wait for a context's mutex. When the instances
//! are used up, a group that begins to wait during a further call keeps waiting.
//!
//! # While there is no pinned event
//!
//! A probe slows down each call of its function, and most users have no pinned events. So the
//! probes of `perf_ioctl()`, `perf_compat_ioctl()` and `perf_event_task_disable()` are disabled
//! while no pinned event is open, see [`UserProbes`]. The task that opens the first one enables
//! them before it returns to user mode from `perf_event_open()`: until then only a thread that
//! guesses the file descriptor can disable the event. `event_init` itself cannot enable probes:
//! this takes the lock of CPU hotplug, and the caller of `event_init` may hold a lock that CPU
//! hotplug takes inside its own (`perf_try_init_event()`, `perf_event_exit_cpu()`). When one of the
//! functions is called while no pinned event is open, a kernel thread disables the probes, at most
//! once a second, since this rewrites code. The calling task cannot do this: its user can keep it
//! in the function for any time (`PERF_EVENT_IOC_PERIOD` reads memory), and the end of the watch
//! waits for the work.
//!
//! Events that kernel threads open do not enable these probes. Such events have no file and no
//! owner, so only `perf_event_disable()` and `perf_event_pause()` disable them.
//!
//! In the kernel proper the perf core would do this itself.

use super::InternalOperations;
use crate::{
    bindings,
    kern::ticks::Ticks,
    perf::Pmu, //
};
use core::{
    marker::PhantomData,
    mem::{
        self,
        ManuallyDrop, //
    },
    pin::Pin,
    ptr::{
        self,
        with_exposed_provenance_mut, //
    },
};
use kernel::{
    error::to_result,
    new_mutex,
    prelude::*,
    sync::{
        atomic::{
            ordering,
            Atomic,
            Relaxed, //
        },
        rcu,
        Arc,
        Mutex, //
    },
    task::Task,
    time::{
        delay::fsleep,
        Delta, //
    },
    types::Opaque, //
};

/// The maximum number of calls under way whose returns are all seen.
const MAX_DISABLING: c_int = 256;

/// The number of probed functions that users call.
const USER_FUNCTIONS: usize = 3;

/// The shortest time for which probes stay enabled, in milliseconds.
const SHORTEST: u32 = 1000;

/// A watch on the functions that disable events, for one PMU. Waiting pinned groups are tried again
/// only while it exists.
pub struct DisableWatch<T: InternalOperations> {
    _kernels: [Probe<T>; 2],
    pmu: Arc<Pmu<T>>,
}

impl<T: InternalOperations> DisableWatch<T> {
    /// Starts the watch for `pmu`.
    ///
    /// Fails with the error of `register_kprobe()` or `register_kretprobe()` if the kernel's
    /// functions cannot be probed; needs `CONFIG_KRETPROBES`. Process context.
    pub fn new(pmu: &super::ExtendedPmu<T>) -> Result<Self> {
        let pmu = pmu.share();
        let kernels = [
            Probe::new(c"perf_event_disable", Handlers::of::<Event>(), &pmu)?,
            Probe::new(c"perf_event_pause", Handlers::of::<Event>(), &pmu)?,
        ];
        let user = &pmu.internals().user_probes;
        // SAFETY: There is no watch yet, so no probe can queue the work. The PMU does not move.
        unsafe { user.thread_work.init(&pmu) };
        let mut probes = [const { None }; USER_FUNCTIONS];
        let functions = [
            (c"perf_ioctl", Handlers::of::<Ioctl>()),
            (c"perf_event_task_disable", Handlers::of::<AllOfTask>()),
            (c"perf_compat_ioctl", Handlers::of::<Ioctl>()),
        ];
        for (slot, (function, handlers)) in probes.iter_mut().zip(functions) {
            match Probe::new(function, handlers, &pmu) {
                Ok(probe) => *slot = Some(probe),
                // A kernel that cannot run 32-bit programs.
                Err(error) if error == ENOENT && function == c"perf_compat_ioctl" => {}
                Err(error) => return Err(error),
            }
        }
        *user.probes.lock() = ManuallyDrop::new(probes);
        pmu.internals().retries_pinned.store(true, Relaxed);
        Ok(Self {
            _kernels: kernels,
            pmu,
        })
    }
}

impl<T: InternalOperations> Drop for DisableWatch<T> {
    fn drop(&mut self) {
        self.pmu.internals().retries_pinned.store(false, Relaxed);
        let user = &self.pmu.internals().user_probes;
        let probes = {
            let mut probes = user.probes.lock();
            user.enabled.store(false, Relaxed);
            mem::replace(&mut **probes, [const { None }; USER_FUNCTIONS])
        };
        drop(probes);
        // The probes have gone, so no handler queues the work any more.
        // SAFETY: `new()` has initialised both parts of the work. This is process context, and no
        // lock is held.
        unsafe {
            bindings::irq_work_sync(user.thread_work.irq.get());
            bindings::cancel_work_sync(user.thread_work.work.get());
        }
        // Pending work holds the module, so there is none when the module is unloaded. If loading
        // fails, a task with work is about to return to user mode or to enter a guest.
        while user.pending.load(ordering::Acquire) != 0 {
            fsleep(Delta::from_micros(100));
        }
        if user.was_used.load(Relaxed) {
            // The last task may not have returned from `TaskWork::run()` yet. It does not sleep
            // there any more.
            // SAFETY: This is process context, and no lock is held.
            unsafe { bindings::rpmu_helper_synchronize_rcu_tasks() };
        }
    }
}

/// The probes of the functions that users call. They are enabled while pinned events are open.
/// Afterwards, they stay enabled until a task calls one of these functions.
#[pin_data]
pub(in crate::perf_core) struct UserProbes<T: InternalOperations> {
    /// The probes, which only the end of the watch drops. Each has a reference to the PMU, so that
    /// there are none when the PMU is dropped, and dropping the PMU need not call itself.
    #[pin]
    probes: Mutex<ManuallyDrop<[Option<Probe<T>>; USER_FUNCTIONS]>>,
    /// Set while the probes are enabled. Changes with `probes` locked.
    enabled: Atomic<bool>,
    /// The time at which the probes were last enabled.
    enabled_at: Atomic<usize>,
    /// The number of open events that [`pinned_opened`](Pmu::pinned_opened) has counted.
    open: Atomic<usize>,
    /// Counts the tasks that have [`TaskWork`] to do.
    pending: Atomic<usize>,
    /// Set once a task has had work.
    was_used: Atomic<bool>,
    /// The work that disables the probes.
    thread_work: ThreadWork<T>,
}

impl<T: InternalOperations> UserProbes<T> {
    pub(in crate::perf_core) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            probes <- new_mutex!(ManuallyDrop::new([const { None }; USER_FUNCTIONS])),
            enabled: Atomic::new(false),
            enabled_at: Atomic::new(0),
            open: Atomic::new(0),
            pending: Atomic::new(0),
            was_used: Atomic::new(false),
            thread_work: ThreadWork {
                irq: Opaque::zeroed(),
                work: Opaque::zeroed(),
                pmu: Atomic::new(ptr::null_mut()),
            },
        })
    }

    /// Returns whether the probes have been enabled for long enough and no pinned event is open.
    fn are_unneeded(&self) -> bool {
        self.open.load(Relaxed) == 0
            && Ticks::from_number(self.enabled_at.load(Relaxed)).age() >= SHORTEST
    }

    /// Enables the probes if pinned events are open, and disables them if they are unneeded.
    /// Process context, with no lock held.
    ///
    /// Fails with the error of `enable_kprobe()`; then all probes are disabled.
    fn update(&self) -> Result {
        let probes = self.probes.lock();
        if self.enabled.load(Relaxed) {
            if !self.are_unneeded() {
                return Ok(());
            }
            // With a concurrent `pinned_opened()`, either this code sees its event, or
            // `pinned_opened()` sees that the probes are disabled, and adds work that calls this
            // function again.
            self.enabled.xchg(false, ordering::Full);
            if self.open.load(Relaxed) == 0 {
                probes.iter().flatten().for_each(Probe::disable);
                return Ok(());
            }
        } else if self.open.load(Relaxed) == 0 {
            return Ok(());
        }
        let enabled = probes.iter().flatten().try_for_each(Probe::enable);
        enabled.inspect_err(|_| probes.iter().flatten().for_each(Probe::disable))?;
        self.enabled_at.store(Ticks::now().number(), Relaxed);
        self.enabled.store(true, ordering::Release);
        Ok(())
    }
}

impl<T: InternalOperations> Pmu<T> {
    /// Counts an event of a pinned group that is being opened, and has the functions probed by
    /// which its user can disable it. Returns whether [`pinned_closed`](Self::pinned_closed) has to
    /// be called when the event is destroyed.
    ///
    /// Fails with `ENOMEM`; the event is not counted then. Process context.
    pub(in crate::perf_core) fn pinned_opened(&self) -> Result<bool> {
        // SAFETY: The current task exists while it runs; no other task changes this flag.
        let flags = unsafe { ptr::read_volatile(&raw const (*Task::current_raw()).flags) };
        if !self.internals().retries_pinned.load(Relaxed)
            || flags & kernel::bindings::PF_KTHREAD != 0
        {
            return Ok(false);
        }
        let user = &self.internals().user_probes;
        user.open.fetch_add(1, ordering::Full);
        if !user.enabled.load(ordering::Acquire) {
            TaskWork::add(self).inspect_err(|_| self.pinned_closed())?;
        }
        Ok(true)
    }

    /// Removes an event from the count of [`pinned_opened`](Self::pinned_opened).
    pub(in crate::perf_core) fn pinned_closed(&self) {
        self.internals().user_probes.open.fetch_sub(1, Relaxed);
    }
}

/// Work for a task before it returns to user mode: [`UserProbes::update`].
///
/// # Invariants
///
/// `pmu` is valid until its `pending`, which counts this work, is decremented.
struct TaskWork<T: InternalOperations> {
    head: Opaque<bindings::callback_head>,
    pmu: *const Pmu<T>,
}

impl<T: InternalOperations> TaskWork<T> {
    /// Adds work to the current task, which must not be a kernel thread. A task that is exiting
    /// does not get it, since it does not return to user mode.
    ///
    /// Fails with `ENOMEM`. Process context.
    fn add(pmu: &Pmu<T>) -> Result {
        let user = &pmu.internals().user_probes;
        let work = KBox::new(
            Self {
                head: Opaque::zeroed(),
                pmu,
            },
            GFP_KERNEL,
        )?;
        user.was_used.store(true, Relaxed);
        // INVARIANT: The watch ends before the PMU is freed, and its end waits until the number is
        // 0. By then there are no more events, so nothing calls this function.
        user.pending.fetch_add(1, Relaxed);
        // A user can delay the work: work that the task gets later runs first, such as the release
        // of the group's leader, which waits for a context's mutex. Hold the module meanwhile, so
        // that rmmod is refused instead of waiting.
        // SAFETY: The PMU is valid. The perf core holds the module while it calls `event_init`.
        unsafe { bindings::rpmu_helper_module_get((*pmu.as_raw()).module) };
        let work = KBox::into_raw(work);
        // SAFETY: `head` is a member of the work, which was just allocated. The work is freed only
        // by `run()`, or below if the task does not accept it.
        let ret = unsafe {
            let head = Opaque::cast_into(&raw const (*work).head);
            bindings::rpmu_helper_init_task_work(head, Some(Self::run));
            bindings::rpmu_helper_task_work_add(head)
        };
        if ret != 0 {
            // SAFETY: The task has not accepted the work, so this is its only owner.
            drop(unsafe { KBox::from_raw(work) });
            user.pending.fetch_sub(1, ordering::Release);
            // SAFETY: The module was held above; the perf core holds it, too.
            unsafe { bindings::rpmu_helper_module_put((*pmu.as_raw()).module) };
        }
        Ok(())
    }

    /// # Safety
    ///
    /// For the kernel to call, with the `head` of work that [`add`](Self::add) has given to the
    /// task.
    unsafe extern "C" fn run(head: *mut bindings::callback_head) {
        let head = Opaque::cast_from(head.cast_const());
        // SAFETY: By this function's requirements; `add()` has passed the ownership to this
        // function.
        let work = unsafe { KBox::from_raw(kernel::container_of!(head, Self, head).cast_mut()) };
        // SAFETY: By the type invariant.
        let pmu = unsafe { &*work.pmu };
        drop(work);
        pmu.update_probes();
        // SAFETY: The PMU is valid.
        let module = unsafe { (*pmu.as_raw()).module };
        // The last access to the PMU: the end of the watch waits for it.
        pmu.internals()
            .user_probes
            .pending
            .fetch_sub(1, ordering::Release);
        // SAFETY: `add()` took this reference. The end of the watch waits until this task has left
        // the module's code.
        unsafe { bindings::rpmu_helper_module_put(module) };
    }
}

/// Work for a kernel thread that updates the probes when they are unneeded. The handler of a probe
/// queues it through an irq_work, since the handler may be in NMI context (`exc_int3()`,
/// `arch/x86/kernel/traps.c`).
///
/// # Invariants
///
/// Once initialised, `pmu` is the PMU whose [`UserProbes`] contain this work.
struct ThreadWork<T: InternalOperations> {
    irq: Opaque<bindings::irq_work>,
    work: Opaque<bindings::work_struct>,
    pmu: Atomic<*mut Pmu<T>>,
}

// SAFETY: The functions of irq_work and of workqueues may be called on any CPU; the rest is `Send`.
unsafe impl<T: InternalOperations> Send for ThreadWork<T> {}

// SAFETY: The functions of irq_work and of workqueues synchronise. `pmu` is atomic, and a `Pmu` is
// `Sync`.
unsafe impl<T: InternalOperations> Sync for ThreadWork<T> {}

impl<T: InternalOperations> ThreadWork<T> {
    /// Initialises the work.
    ///
    /// # Safety
    ///
    /// The work must be a part of `pmu`, which must not move, and must not be queued.
    unsafe fn init(&self, pmu: &Arc<Pmu<T>>) {
        // INVARIANT: By this function's requirements.
        self.pmu.store(Arc::as_ptr(pmu).cast_mut(), Relaxed);
        let irq = bindings::irq_work {
            func: Some(Self::queue_callback),
            ..pin_init::zeroed()
        };
        // SAFETY: By this function's requirements, nothing else uses `irq` and `work`, and they
        // stay in place.
        unsafe {
            *self.irq.get() = irq;
            bindings::rpmu_helper_init_work(self.work.get(), Some(Self::run_callback));
        }
    }

    /// Queues the work, unless it is queued. To be called by the handlers of functions that users
    /// call. Any context.
    fn queue(&self) {
        // SAFETY: Probes are registered only after `init()`. The end of the watch removes the
        // probes and then waits for the interrupt.
        unsafe { bindings::irq_work_queue(self.irq.get()) };
    }

    /// # Safety
    ///
    /// For the kernel to call, with the `irq` of a `ThreadWork` that was initialised.
    unsafe extern "C" fn queue_callback(irq: *mut bindings::irq_work) {
        let irq = Opaque::cast_from(irq.cast_const());
        // SAFETY: By this function's requirements. The end of the watch waits for this function and
        // then for the work.
        unsafe {
            let this = &*kernel::container_of!(irq, Self, irq);
            bindings::rpmu_helper_schedule_work(this.work.get());
        }
    }

    /// # Safety
    ///
    /// For the kernel to call, with the `work` of a `ThreadWork` that was initialised.
    unsafe extern "C" fn run_callback(work: *mut bindings::work_struct) {
        let work = Opaque::cast_from(work.cast_const());
        // SAFETY: By this function's requirements; the end of the watch waits for this function.
        let this = unsafe { &*kernel::container_of!(work, Self, work) };
        // SAFETY: By the type invariant; the PMU lives as long as `this`.
        let pmu = unsafe { &*this.pmu.load(Relaxed) };
        pmu.update_probes();
    }
}

impl<T: InternalOperations> Pmu<T> {
    /// Updates the probes. Process context, with no lock held.
    fn update_probes(&self) {
        if let Err(error) = self.internals().user_probes.update() {
            kernel::pr_warn_once!(
                "perf_ioctl() cannot be watched ({error:?}): pinned events that find no counter stay in \
                 the error state until they are enabled again\n"
            );
            self.internals().retries_pinned.store(false, Relaxed);
        }
    }
}

/// A probed function, by the events that it disables.
trait Watched {
    /// Set if users call the function: its probe is disabled while it is [not
    /// needed](UserProbes::are_unneeded).
    const BY_USERS: bool;

    /// Returns the events that a call disables, if any.
    ///
    /// # Safety
    ///
    /// `regs` must be the registers at the entry of the function.
    unsafe fn target(regs: *mut bindings::pt_regs) -> Option<Target>;
}

/// `perf_ioctl()` and `perf_compat_ioctl()`.
struct Ioctl;

impl Watched for Ioctl {
    const BY_USERS: bool = true;

    /// # Safety
    ///
    /// As for [`Watched::target`].
    unsafe fn target(regs: *mut bindings::pt_regs) -> Option<Target> {
        // SAFETY: `regs` are the registers at the entry of a function with three arguments.
        let (file, command, flags) = unsafe {
            (
                bindings::rpmu_helper_argument(regs, 0),
                bindings::rpmu_helper_argument(regs, 1),
                bindings::rpmu_helper_argument(regs, 2),
            )
        };
        // CAST: the argument is an `unsigned int`.
        if command as u32 != bindings::RUST_CONST_HELPER_PERF_EVENT_IOC_DISABLE {
            return None;
        }
        let whole_group = flags & bindings::perf_event_ioc_flags_PERF_IOC_FLAG_GROUP as usize != 0;
        // SAFETY: The first argument is the file of an event. The caller keeps the file open, and
        // so the event. The leader is only compared.
        let event = unsafe {
            let event: *mut bindings::perf_event =
                bindings::rpmu_helper_private_data(with_exposed_provenance_mut(file)).cast();
            match whole_group {
                true => ptr::read_volatile(&raw const (*event).group_leader),
                false => event,
            }
        };
        Some(Target::Event(event))
    }
}

/// `perf_event_task_disable()`.
struct AllOfTask;

impl Watched for AllOfTask {
    const BY_USERS: bool = true;

    /// # Safety
    ///
    /// As for [`Watched::target`].
    unsafe fn target(_regs: *mut bindings::pt_regs) -> Option<Target> {
        Some(Target::OpenedBy(Task::current_raw().cast()))
    }
}

/// `perf_event_disable()` and `perf_event_pause()`.
struct Event;

impl Watched for Event {
    const BY_USERS: bool = false;

    /// # Safety
    ///
    /// As for [`Watched::target`].
    unsafe fn target(regs: *mut bindings::pt_regs) -> Option<Target> {
        // SAFETY: `regs` are the registers at the entry of a function whose first argument is an
        // event.
        let event = unsafe { bindings::rpmu_helper_argument(regs, 0) };
        Some(Target::Event(with_exposed_provenance_mut(event)))
    }
}

type CallHandler = unsafe extern "C" fn(*mut bindings::kprobe, *mut bindings::pt_regs) -> c_int;
type EntryHandler =
    unsafe extern "C" fn(*mut bindings::kretprobe_instance, *mut bindings::pt_regs) -> c_int;

/// The handlers of a function's probes.
struct Handlers<T: InternalOperations> {
    call: CallHandler,
    entry: EntryHandler,
    by_users: bool,
    _pmu: PhantomData<Pmu<T>>,
}

impl<T: InternalOperations> Handlers<T> {
    fn of<W: Watched>() -> Self {
        Self {
            call: call_handler::<T, W>,
            entry: entry_handler::<T, W>,
            by_users: W::BY_USERS,
            _pmu: PhantomData,
        }
    }
}

/// A probed function.
///
/// # Invariants
///
/// `register_kprobe()` has succeeded for `call`, and `register_kretprobe()` for `exit`.
struct Probe<T: InternalOperations>(Pin<KBox<Inner<T>>>);

struct Inner<T: InternalOperations> {
    /// The probe of each call.
    call: Opaque<bindings::kprobe>,
    /// The probe of the returns, for up to [`MAX_DISABLING`] calls at a time.
    exit: Opaque<bindings::kretprobe>,
    pmu: Arc<Pmu<T>>,
}

// SAFETY: The functions of kprobes may be called on any CPU; the rest is `Send`.
unsafe impl<T: InternalOperations> Send for Inner<T> {}

// SAFETY: Only the functions of kprobes use `call` and `exit`, and they synchronise
// (`kprobe_mutex`). `pmu` is `Sync`.
unsafe impl<T: InternalOperations> Sync for Inner<T> {}

impl<T: InternalOperations> Probe<T> {
    /// Probes `function`. If users call it, the probes are disabled at first.
    ///
    /// Fails with the error of `register_kprobe()` or `register_kretprobe()`. Process context.
    fn new(function: &'static CStr, handlers: Handlers<T>, pmu: &Arc<Pmu<T>>) -> Result<Self> {
        let flags = match handlers.by_users {
            true => bindings::KPROBE_FLAG_DISABLED,
            false => 0,
        };
        let probe = || bindings::kprobe {
            symbol_name: function.as_char_ptr(),
            flags,
            ..pin_init::zeroed()
        };
        let inner = KBox::pin(
            Inner {
                call: Opaque::new(bindings::kprobe {
                    pre_handler: Some(handlers.call),
                    ..probe()
                }),
                exit: Opaque::new(bindings::kretprobe {
                    kp: probe(),
                    handler: Some(return_handler::<T>),
                    entry_handler: Some(handlers.entry),
                    maxactive: MAX_DISABLING,
                    data_size: size_of::<Target>(),
                    ..pin_init::zeroed()
                }),
                pmu: pmu.clone(),
            },
            GFP_KERNEL,
        )?;
        // SAFETY: The probe names a function and a handler and is otherwise zero, as it has to be.
        // It stays in place until `drop` has unregistered it.
        to_result(unsafe { bindings::rpmu_helper_register_kprobe(inner.call.get()) })?;
        // SAFETY: The probe names a function, its handlers and the size of their data, and is
        // otherwise zero, as it has to be. It stays in place until `drop` has unregistered it.
        to_result(unsafe { bindings::rpmu_helper_register_kretprobe(inner.exit.get()) })
            // SAFETY: The kprobe has been registered above.
            .inspect_err(|_| unsafe {
                bindings::rpmu_helper_unregister_kprobe(inner.call.get())
            })?;
        // INVARIANT: Both have just been registered.
        Ok(Self(inner))
    }

    fn enable(&self) -> Result {
        // SAFETY: By the type invariant. This is process context, and no lock is held but the lock
        // of `UserProbes`, which is never taken inside another lock.
        unsafe {
            to_result(bindings::rpmu_helper_enable_kprobe(self.0.call.get()))?;
            to_result(bindings::rpmu_helper_enable_kretprobe(self.0.exit.get()))
        }
    }

    /// Disables both probes. Calls that are under way still run the return handler. If this fails,
    /// the probes stay enabled.
    fn disable(&self) {
        // SAFETY: As in `enable()`.
        unsafe {
            bindings::rpmu_helper_disable_kretprobe(self.0.exit.get());
            bindings::rpmu_helper_disable_kprobe(self.0.call.get());
        }
    }
}

impl<T: InternalOperations> Drop for Probe<T> {
    fn drop(&mut self) {
        // SAFETY: By the type invariant. Both functions wait until no CPU is in a handler. A task
        // that is still in the probed function returns without a handler.
        unsafe {
            bindings::rpmu_helper_unregister_kretprobe(self.0.exit.get());
            bindings::rpmu_helper_unregister_kprobe(self.0.call.get());
        }
    }
}

/// The events that a call disables. The pointers are for comparison only.
#[derive(Clone, Copy)]
pub(in crate::perf_core) enum Target {
    /// An event, and the events inherited from it.
    Event(*mut bindings::perf_event),
    /// All events that the task has opened.
    OpenedBy(*mut bindings::task_struct),
}

impl Target {
    /// Returns whether the group of `event` is among the events.
    ///
    /// # Safety
    ///
    /// `event` must be open, or have been destroyed after the current RCU read-side section began.
    pub(in crate::perf_core) unsafe fn has_group_of(
        self,
        event: *mut bindings::perf_event,
    ) -> bool {
        // SAFETY: The event is freed after RCU readers have ended, and so is its leader: before a
        // leader leaves the group, the event gets another one (`perf_group_detach()`). An inherited
        // event keeps its parent until it is freed.
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

/// Returns whether a call cannot concern a pinned event. If so, has the probes disabled soon.
///
/// To be called by the handlers of functions that users call.
fn is_unneeded<T: InternalOperations>(pmu: &Pmu<T>) -> bool {
    let user = &pmu.internals().user_probes;
    let unneeded = user.are_unneeded();
    if unneeded && user.enabled.load(Relaxed) {
        user.thread_work.queue();
    }
    unneeded
}

/// # Safety
///
/// For the kernel to call, at the entry of a function, with the `call` of its [`Probe`].
unsafe extern "C" fn call_handler<T: InternalOperations, W: Watched>(
    probe: *mut bindings::kprobe,
    regs: *mut bindings::pt_regs,
) -> c_int {
    let probe = Opaque::cast_from(probe.cast_const());
    // SAFETY: A handler's probe is registered, and there are only shared references to its `Inner`.
    let inner = unsafe { &*kernel::container_of!(probe, Inner<T>, call) };
    if W::BY_USERS && is_unneeded(&inner.pmu) {
        return 0;
    }
    // SAFETY: This is an entry handler.
    if let Some(target) = unsafe { W::target(regs) } {
        inner.pmu.forget_disabled(target);
    }
    0
}

/// The result of an entry handler that skips the return handler.
const NOT_THIS_CALL: c_int = 1;

/// Stores the target of the call for the return handler.
///
/// # Safety
///
/// For the kernel to call, at the entry of a function.
unsafe extern "C" fn entry_handler<T: InternalOperations, W: Watched>(
    instance: *mut bindings::kretprobe_instance,
    regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By this function's requirements.
    let Some((pmu, data)) = (unsafe { of_instance::<T>(instance) }) else {
        return NOT_THIS_CALL;
    };
    if W::BY_USERS && pmu.internals().user_probes.are_unneeded() {
        return NOT_THIS_CALL;
    }
    // SAFETY: This is an entry handler.
    let Some(target) = (unsafe { W::target(regs) }) else {
        return NOT_THIS_CALL;
    };
    // SAFETY: The instance's data has room for a `Target`, but need not be aligned for it.
    unsafe { data.write_unaligned(target) };
    0
}

/// # Safety
///
/// For the kernel to call, when a function returns whose entry handler has returned 0.
unsafe extern "C" fn return_handler<T: InternalOperations>(
    instance: *mut bindings::kretprobe_instance,
    _regs: *mut bindings::pt_regs,
) -> c_int {
    // SAFETY: By this function's requirements.
    if let Some((pmu, data)) = unsafe { of_instance::<T>(instance) } {
        // SAFETY: `entry_handler()` has written the target.
        pmu.forget_disabled(unsafe { data.read_unaligned() });
    }
    0
}

/// Returns the PMU of the probe of an instance, and the instance's data.
///
/// # Safety
///
/// `instance` must be the argument of a handler, and the result must not outlive the handler.
unsafe fn of_instance<'a, T: InternalOperations>(
    instance: *mut bindings::kretprobe_instance,
) -> Option<(&'a Pmu<T>, *mut Target)> {
    // SAFETY: By this function's requirements.
    let probe = unsafe { bindings::rpmu_helper_get_kretprobe(instance) };
    if probe.is_null() {
        return None;
    }
    let exit = Opaque::cast_from(probe.cast_const());
    // SAFETY: A handler's probe is registered, and there are only shared references to its `Inner`.
    let inner = unsafe { &*kernel::container_of!(exit, Inner<T>, exit) };
    // SAFETY: By this function's requirements.
    let data = unsafe { bindings::rpmu_helper_kretprobe_data(instance) };
    Some((&inner.pmu, data.cast()))
}

impl<T: InternalOperations> Pmu<T> {
    /// Removes the groups of `target` from the waiting ones. Preemption is off.
    fn forget_disabled(&self, target: Target) {
        // The flag is set under the lock of the group's context, which the probed function takes to
        // look at the group's state. So the flag is seen at the latest when the function returns.
        if !self.internals().has_waited.load(Relaxed) {
            return;
        }
        let _guard = rcu::read_lock();
        // SAFETY: An event that waits was not destroyed before this RCU read-side section began:
        // `destroy` removes it from the waiting ones.
        let is_disabled = |event| unsafe { target.has_group_of(event) };
        for state in self.data_of_cpus() {
            state.waiting.forget_if(is_disabled);
        }
    }
}
