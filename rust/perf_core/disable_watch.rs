// SPDX-License-Identifier: GPL-2.0

//! A watch on the functions by which users disable events.
//!
//! Disabling a group in the error state changes nothing in the perf core (`_perf_event_disable()`,
//! `kernel/events/core.c`), and calls no PMU. A pinned group that
//! [waits](crate::perf::Scheduling::wait_if_pinned) would be tried again nevertheless. So kprobes
//! watch the functions that disable events for users, and a group that one is called for waits no
//! longer:
//!
//! - `perf_ioctl()` and `perf_compat_ioctl()`, with `PERF_EVENT_IOC_DISABLE`
//! - `perf_event_task_disable()`, for prctl()
//! - `perf_event_disable()` and `perf_event_pause()`, for events of the kernel's own; KVM calls the
//!   second
//!
//! These are called by pointer or from other files, so they are not inlined everywhere, as
//! `_perf_event_disable()` itself can be. The handlers look for groups when the function is called
//! and when it returns, as a group may begin to wait in between. Only a group that loses its
//! counter and gets it back within one such call goes on counting.
//!
//! A kprobe sees every call. A kretprobe sees the returns, but needs an instance for each call that
//! has not returned, and a user can have many calls wait for a context's mutex. When the instances
//! are used up, a group that begins to wait during a further call goes on waiting.
//!
//! # While there is no pinned event
//!
//! A probe makes each call of its function dearer, and most users have no pinned events. So the
//! probes of `perf_ioctl()`, `perf_compat_ioctl()` and `perf_event_task_disable()` are disabled
//! while none is open, see [`UserProbes`]. The task that opens the first one enables them before it
//! returns to user mode from `perf_event_open()`: until then only a thread that guesses the number
//! of the file can disable the event. `event_init` itself cannot enable probes, as that takes the
//! lock of CPU hotplug, and a lock may be held there that CPU hotplug takes within its own
//! (`perf_try_init_event()`, `perf_event_exit_cpu()`). A call of one of the functions while no
//! pinned event is open has a kernel thread disable the probes, at most once a second, as that
//! rewrites code. The calling task cannot do that: a user can keep it in the function for any time
//! (`PERF_EVENT_IOC_PERIOD` reads memory), and the end of the watch waits for the work.
//!
//! Events that kernel threads open do not enable them. These have no file and no owner, so only
//! `perf_event_disable()` and `perf_event_pause()` disable them.
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

/// The most calls that can be under way with the returns of all of them noticed.
const MAX_DISABLING: c_int = 256;

/// Number of the functions that users call.
const USER_FUNCTIONS: usize = 3;

/// The least time for which probes stay enabled, in milliseconds.
const SHORTEST: u32 = 1000;

/// The watch on the events of a PMU. Pinned groups that wait are tried again only while it exists.
pub struct DisableWatch<T: InternalOperations> {
    _kernels: [Probe<T>; 2],
    pmu: Arc<Pmu<T>>,
}

impl<T: InternalOperations> DisableWatch<T> {
    /// Begins to watch the events of `pmu`.
    ///
    /// The error of `register_kprobe()` or `register_kretprobe()` if the kernel's functions cannot
    /// be probed; it takes `CONFIG_KRETPROBES`. Process context.
    pub fn new(pmu: &super::Pmu<T>) -> Result<Self> {
        let pmu = pmu.share();
        let kernels = [
            Probe::new(c"perf_event_disable", Handlers::of::<Event>(), &pmu)?,
            Probe::new(c"perf_event_pause", Handlers::of::<Event>(), &pmu)?,
        ];
        let user = &pmu.internals().user_probes;
        // SAFETY: There is no watch yet, so no probe of users' functions. The PMU does not move.
        unsafe { user.vain.init(&pmu) };
        let mut probes = [const { None }; USER_FUNCTIONS];
        let functions = [
            (c"perf_ioctl", Handlers::of::<Ioctl>()),
            (c"perf_event_task_disable", Handlers::of::<AllOfTask>()),
            (c"perf_compat_ioctl", Handlers::of::<Ioctl>()),
        ];
        for (slot, (function, handlers)) in probes.iter_mut().zip(functions) {
            match Probe::new(function, handlers, &pmu) {
                Ok(probe) => *slot = Some(probe),
                // The kernel runs no 32-bit programs.
                Err(error) if error == ENOENT && function == c"perf_compat_ioctl" => {}
                Err(error) => return Err(error),
            }
        }
        *user.probes.lock() = probes;
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
            core::mem::replace(&mut *probes, [const { None }; USER_FUNCTIONS])
        };
        drop(probes);
        // Without probes no handler queues the work any more.
        // SAFETY: `new()` has initialised both, and this is process context without a lock.
        unsafe {
            bindings::irq_work_sync(user.vain.irq.get());
            bindings::cancel_work_sync(user.vain.work.get());
        }
        // Pending work holds the module, so there is none when it is unloaded. If loading fails, a
        // task with work is about to return to user mode, or to enter a guest.
        while user.pending.load(ordering::Acquire) != 0 {
            fsleep(Delta::from_micros(100));
        }
        if user.was_used.load(Relaxed) {
            // The last task may not have returned from `Work::run()` yet. It does not sleep there
            // any more. SAFETY: This is process context, and no lock is held.
            unsafe { bindings::rpmu_helper_synchronize_rcu_tasks() };
        }
    }
}

/// The probes of the functions that users call. They are enabled while pinned events are open, and
/// then until a task calls one of these functions in vain.
#[pin_data]
pub(in crate::perf_core) struct UserProbes<T: InternalOperations> {
    #[pin]
    probes: Mutex<[Option<Probe<T>>; USER_FUNCTIONS]>,
    /// Set while they are enabled. Changes with `probes` locked.
    enabled: Atomic<bool>,
    /// The time at which they were enabled last.
    enabled_at: Atomic<usize>,
    /// Counts the events that [`pinned_opened`](Pmu::pinned_opened) has told of.
    open: Atomic<usize>,
    /// Counts the tasks that have [`Work`] to do.
    pending: Atomic<usize>,
    /// Set once there has been any.
    was_used: Atomic<bool>,
    /// The work after a function was called in vain.
    vain: VainWork<T>,
}

impl<T: InternalOperations> UserProbes<T> {
    pub(in crate::perf_core) fn new() -> impl PinInit<Self> {
        pin_init!(Self {
            probes <- new_mutex!([const { None }; USER_FUNCTIONS]),
            enabled: Atomic::new(false),
            enabled_at: Atomic::new(0),
            open: Atomic::new(0),
            pending: Atomic::new(0),
            was_used: Atomic::new(false),
            vain: VainWork {
                irq: Opaque::zeroed(),
                work: Opaque::zeroed(),
                pmu: Atomic::new(ptr::null_mut()),
            },
        })
    }

    /// Returns whether the probes have been enabled for long enough and no pinned event is open.
    fn is_vain(&self) -> bool {
        self.open.load(Relaxed) == 0
            && Ticks::from_number(self.enabled_at.load(Relaxed)).age() >= SHORTEST
    }

    /// Enables the probes if pinned events are open, and disables them if they are in vain. Process
    /// context, with no lock held.
    ///
    /// The error of `enable_kprobe()`; all probes are disabled then.
    fn update(&self) -> Result {
        let probes = self.probes.lock();
        if self.enabled.load(Relaxed) {
            if !self.is_vain() {
                return Ok(());
            }
            // Either this sees an event that is being opened, or that sees that the probes are
            // disabled, and waits for the lock (`pinned_opened()`).
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
    /// Counts an event of a pinned group that is being opened, and gets the calls watched by which
    /// users disable events. Returns whether [`pinned_closed`](Self::pinned_closed) has to be
    /// called when it goes.
    ///
    /// `ENOMEM`, and nothing has to be done. Process context.
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
            Work::add(self).inspect_err(|_| self.pinned_closed())?;
        }
        Ok(true)
    }

    /// Takes an event off the count that [`pinned_opened`](Self::pinned_opened) was called for.
    pub(in crate::perf_core) fn pinned_closed(&self) {
        self.internals().user_probes.open.fetch_sub(1, Relaxed);
    }
}

/// Work for a task before it returns to user mode: [`UserProbes::update`].
///
/// # Invariants
///
/// `pmu` is valid until `pending` there, in which this is counted, is decremented.
struct Work<T: InternalOperations> {
    head: Opaque<bindings::callback_head>,
    pmu: *const Pmu<T>,
}

impl<T: InternalOperations> Work<T> {
    /// Adds work to the current task, which must not be a kernel thread. A task that exits does not
    /// get it, as it does not return to user mode.
    ///
    /// `ENOMEM`. Process context.
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
        // INVARIANT: The end of the watch, after which the PMU may be freed, waits until this is 0.
        // There are no more events then, so that nothing calls this.
        user.pending.fetch_add(1, Relaxed);
        // A user can keep the task before the work: work that the task gets later runs first, such
        // as the release of the group's leader, which waits for a context's mutex. So rmmod is
        // refused meanwhile, instead of waiting. SAFETY: The PMU is valid. The perf core holds the
        // module while it calls `event_init`.
        unsafe { bindings::rpmu_helper_module_get((*pmu.as_raw()).module) };
        let work = KBox::into_raw(work);
        // SAFETY: `head` is the first part of what has just been allocated, and stays until `run()`
        // has been called or the task does not take it.
        let ret = unsafe {
            let head = Opaque::cast_into(&raw const (*work).head);
            bindings::rpmu_helper_init_task_work(head, Some(Self::run));
            bindings::rpmu_helper_task_work_add(head)
        };
        if ret != 0 {
            // SAFETY: The task has not taken it.
            drop(unsafe { KBox::from_raw(work) });
            user.pending.fetch_sub(1, ordering::Release);
            // SAFETY: Held above; the perf core holds the module too.
            unsafe { bindings::rpmu_helper_module_put((*pmu.as_raw()).module) };
        }
        Ok(())
    }

    /// # Safety
    ///
    /// For the kernel to call, with the `head` of what [`add`](Self::add) has given to the task.
    unsafe extern "C" fn run(head: *mut bindings::callback_head) {
        let head = Opaque::cast_from(head.cast_const());
        // SAFETY: By this function's requirements; `add()` has left it to this.
        let work = unsafe { KBox::from_raw(kernel::container_of!(head, Self, head).cast_mut()) };
        // SAFETY: By the type invariant.
        let pmu = unsafe { &*work.pmu };
        drop(work);
        pmu.update_probes();
        // SAFETY: The PMU is valid.
        let module = unsafe { (*pmu.as_raw()).module };
        // The last access: the end of the watch waits for it.
        pmu.internals()
            .user_probes
            .pending
            .fetch_sub(1, ordering::Release);
        // SAFETY: `add()` holds it. The end of the watch waits until this task has left the
        // module's code.
        unsafe { bindings::rpmu_helper_module_put(module) };
    }
}

/// The same work, for a kernel thread, after a function was called in vain. A handler of a probe
/// queues it, which may be in NMI context (`exc_int3()`, `arch/x86/kernel/traps.c`), by way of an
/// interrupt.
///
/// # Invariants
///
/// Once it was initialised, `pmu` is that of the [`UserProbes`] that this is in.
struct VainWork<T: InternalOperations> {
    irq: Opaque<bindings::irq_work>,
    work: Opaque<bindings::work_struct>,
    pmu: Atomic<*mut Pmu<T>>,
}

// SAFETY: The functions of irq_work and of workqueues may be called on any CPU; the rest is `Send`.
unsafe impl<T: InternalOperations> Send for VainWork<T> {}

// SAFETY: The functions of irq_work and of workqueues synchronise. `pmu` is atomic, and a `Pmu` is
// `Sync`.
unsafe impl<T: InternalOperations> Sync for VainWork<T> {}

impl<T: InternalOperations> VainWork<T> {
    /// Initialises the work.
    ///
    /// # Safety
    ///
    /// This must be part of `pmu`, which must not move, and not be queued.
    unsafe fn init(&self, pmu: &Arc<Pmu<T>>) {
        // INVARIANT: By this function's requirements.
        self.pmu.store(Arc::as_ptr(pmu).cast_mut(), Relaxed);
        let irq = bindings::irq_work {
            func: Some(Self::queue_callback),
            ..pin_init::zeroed()
        };
        // SAFETY: By this function's requirements, nothing else uses them, and they stay where they
        // are.
        unsafe {
            *self.irq.get() = irq;
            bindings::rpmu_helper_init_work(self.work.get(), Some(Self::run_callback));
        }
    }

    /// Queues the work, unless it is queued. To be called by a handler of a probe that users call.
    /// Any context.
    fn queue(&self) {
        // SAFETY: A probe has a handler only after `init()`. The end of the watch waits for the
        // interrupt when the probes and so their handlers have gone.
        unsafe { bindings::irq_work_queue(self.irq.get()) };
    }

    /// # Safety
    ///
    /// For the kernel to call, with the `irq` of a `VainWork` that was initialised.
    unsafe extern "C" fn queue_callback(irq: *mut bindings::irq_work) {
        let irq = Opaque::cast_from(irq.cast_const());
        // SAFETY: By this function's requirements. The end of the watch waits for this function,
        // then for the work.
        unsafe {
            let this = &*kernel::container_of!(irq, Self, irq);
            bindings::rpmu_helper_schedule_work(this.work.get());
        }
    }

    /// # Safety
    ///
    /// For the kernel to call, with the `work` of a `VainWork` that was initialised.
    unsafe extern "C" fn run_callback(work: *mut bindings::work_struct) {
        let work = Opaque::cast_from(work.cast_const());
        // SAFETY: By this function's requirements; the end of the watch waits for this function.
        let this = unsafe { &*kernel::container_of!(work, Self, work) };
        // SAFETY: By the type invariant; the PMU stays as `this` does.
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

/// A function that is probed, by what it disables.
trait Watched {
    /// Set if users call it, so that it is probed while pinned events are open.
    const BY_USERS: bool;

    /// Returns the events that a call disables, if any.
    ///
    /// # Safety
    ///
    /// `regs` must be those at the entry of the function.
    unsafe fn target(regs: *mut bindings::pt_regs) -> Option<Target>;
}

/// `perf_ioctl()` and `perf_compat_ioctl()`.
struct Ioctl;

impl Watched for Ioctl {
    const BY_USERS: bool = true;

    /// # Safety
    ///
    /// As [`Watched::target`] says.
    unsafe fn target(regs: *mut bindings::pt_regs) -> Option<Target> {
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
            return None;
        }
        let whole_group = flags & bindings::perf_event_ioc_flags_PERF_IOC_FLAG_GROUP as usize != 0;
        // SAFETY: The first argument is the file of an event, which the caller keeps open, and so
        // the event. Its leader is compared only.
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
    /// As [`Watched::target`] says.
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
    /// As [`Watched::target`] says.
    unsafe fn target(regs: *mut bindings::pt_regs) -> Option<Target> {
        // SAFETY: `regs` are those at the entry of a function whose first argument is an event.
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

/// A function that is probed.
///
/// # Invariants
///
/// `register_kprobe()` has succeeded for `call`, and `register_kretprobe()` for `exit`.
struct Probe<T: InternalOperations>(Pin<KBox<Inner<T>>>);

struct Inner<T: InternalOperations> {
    /// Sees each call.
    call: Opaque<bindings::kprobe>,
    /// Sees the returns from [`MAX_DISABLING`] calls at a time.
    exit: Opaque<bindings::kretprobe>,
    pmu: Arc<Pmu<T>>,
}

// SAFETY: The functions of kprobes may be called on any CPU; the rest is `Send`.
unsafe impl<T: InternalOperations> Send for Inner<T> {}

// SAFETY: The functions of kprobes, which alone use `call` and `exit`, synchronise
// (`kprobe_mutex`). `pmu` is `Sync`.
unsafe impl<T: InternalOperations> Sync for Inner<T> {}

impl<T: InternalOperations> Probe<T> {
    /// Probes `function`. The probes are disabled at first if users call it.
    ///
    /// The error of `register_kprobe()` or `register_kretprobe()`. Process context.
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
        // It stays where it is until `drop` has unregistered it.
        to_result(unsafe { bindings::rpmu_helper_register_kprobe(inner.call.get()) })?;
        // SAFETY: The probe names a function, its handlers and the size of their data, and is
        // otherwise zero, as it has to be. It stays where it is until `drop` has unregistered it.
        to_result(unsafe { bindings::rpmu_helper_register_kretprobe(inner.exit.get()) })
            // SAFETY: It is registered.
            .inspect_err(|_| unsafe {
                bindings::rpmu_helper_unregister_kprobe(inner.call.get())
            })?;
        // INVARIANT: Just registered.
        Ok(Self(inner))
    }

    fn enable(&self) -> Result {
        // SAFETY: By the type invariant. This is process context, and no lock is held but that of
        // `UserProbes`, which is never taken within another.
        unsafe {
            to_result(bindings::rpmu_helper_enable_kprobe(self.0.call.get()))?;
            to_result(bindings::rpmu_helper_enable_kretprobe(self.0.exit.get()))
        }
    }

    /// Calls that have begun still end with the return handler. If this fails, the probes stay
    /// enabled.
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
        // SAFETY: By the type invariant. These wait until no CPU is in a handler; a task that is
        // still in the function returns without one.
        unsafe {
            bindings::rpmu_helper_unregister_kretprobe(self.0.exit.get());
            bindings::rpmu_helper_unregister_kprobe(self.0.call.get());
        }
    }
}

/// The events that are disabled. The pointers are for comparison only.
#[derive(Clone, Copy)]
pub(in crate::perf_core) enum Target {
    /// An event, and those that were inherited from it.
    Event(*mut bindings::perf_event),
    /// All events that the task has opened.
    OpenedBy(*mut bindings::task_struct),
}

impl Target {
    /// Returns whether the group of `event` is among them.
    ///
    /// # Safety
    ///
    /// `event` must be open, or have been destroyed after this RCU reader began.
    pub(in crate::perf_core) unsafe fn has_group_of(
        self,
        event: *mut bindings::perf_event,
    ) -> bool {
        // SAFETY: The event is freed after RCU readers have ended, and so is its leader: before
        // that leaves the group, the event gets another (`perf_group_detach()`). An inherited event
        // keeps the one that it was inherited from until it is freed.
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

/// Returns whether a call cannot be about a pinned event. If so, the probes are disabled soon.
///
/// To be called by a handler of a function that users call.
fn is_vain<T: InternalOperations>(pmu: &Pmu<T>) -> bool {
    let user = &pmu.internals().user_probes;
    let vain = user.is_vain();
    if vain && user.enabled.load(Relaxed) {
        user.vain.queue();
    }
    vain
}

/// # Safety
///
/// For the kernel to call, at the entry of a function, with the `call` of its [`Probe`].
unsafe extern "C" fn call_handler<T: InternalOperations, W: Watched>(
    probe: *mut bindings::kprobe,
    regs: *mut bindings::pt_regs,
) -> c_int {
    let probe = Opaque::cast_from(probe.cast_const());
    // SAFETY: A handler's probe is registered, and its `Inner` only ever borrowed shared.
    let inner = unsafe { &*kernel::container_of!(probe, Inner<T>, call) };
    if W::BY_USERS && is_vain(&inner.pmu) {
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

/// Keeps what the call disables for the return handler.
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
    if W::BY_USERS && pmu.internals().user_probes.is_vain() {
        return NOT_THIS_CALL;
    }
    // SAFETY: This is an entry handler.
    let Some(target) = (unsafe { W::target(regs) }) else {
        return NOT_THIS_CALL;
    };
    // SAFETY: The instance's data has room for it, but need not be aligned for it.
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
        // SAFETY: `entry_handler()` has written it.
        pmu.forget_disabled(unsafe { data.read_unaligned() });
    }
    0
}

/// Returns the PMU of the probe of an instance, and the instance's data.
///
/// # Safety
///
/// `instance` must be the argument of a handler, and the result must not leave that.
unsafe fn of_instance<'a, T: InternalOperations>(
    instance: *mut bindings::kretprobe_instance,
) -> Option<(&'a Pmu<T>, *mut Target)> {
    // SAFETY: By this function's requirements.
    let probe = unsafe { bindings::rpmu_helper_get_kretprobe(instance) };
    if probe.is_null() {
        return None;
    }
    let exit = Opaque::cast_from(probe.cast_const());
    // SAFETY: A handler's probe is registered, and its `Inner` only ever borrowed shared.
    let inner = unsafe { &*kernel::container_of!(exit, Inner<T>, exit) };
    // SAFETY: By this function's requirements.
    let data = unsafe { bindings::rpmu_helper_kretprobe_data(instance) };
    Some((&inner.pmu, data.cast()))
}

impl<T: InternalOperations> Pmu<T> {
    /// Takes the groups of `target` off the waiting ones. Preemption is off.
    fn forget_disabled(&self, target: Target) {
        // It is set under the lock of the group's context, which the probed function takes to look
        // at the group's state. So it is seen when that returns, if not before.
        if !self.internals().has_waited.load(Relaxed) {
            return;
        }
        let _guard = rcu::read_lock();
        // SAFETY: An event that waits was not destroyed before this RCU reader began, or it would
        // have been forgotten.
        let is_disabled = |event| unsafe { target.has_group_of(event) };
        for state in self.data_of_cpus() {
            state.waiting.forget_if(is_disabled);
        }
    }
}
