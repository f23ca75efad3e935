// SPDX-License-Identifier: GPL-2.0

//! The users of a PMU, for messages: tasks and kernel functions that have events open.

use super::InternalOperations;
use crate::{
    bindings,
    perf::{
        Event,
        OnCpu,
        Pmu, //
    },
};
use core::{
    ffi::CStr,
    fmt, //
};
use kernel::sync::atomic::Relaxed;

/// The size of a [`Name`] with its NUL: enough for most functions and their module.
const LENGTH: usize = 64;

/// The maximum number of users that are named. There may be more.
const NAMED: usize = 8;

/// The name of a task, a module or a function.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name([u8; LENGTH]);

impl Name {
    const EMPTY: Self = Self([0; LENGTH]);

    /// Returns the name of a module.
    ///
    /// # Safety
    ///
    /// `module` must be valid.
    pub(super) unsafe fn of_module(module: *mut bindings::module) -> Self {
        let mut name = Self::EMPTY;
        // SAFETY: By this function's requirements. The helper writes a string that fits.
        unsafe { bindings::rpmu_helper_module_name(module, name.0.as_mut_ptr().cast(), LENGTH) };
        name
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = CStr::from_bytes_until_nul(&self.0).unwrap_or_default();
        name.to_bytes().iter().try_for_each(|&byte| {
            // A task's name may be any bytes.
            let printable = byte.is_ascii_graphic() || byte == b' ';
            fmt::Write::write_char(f, if printable { byte.into() } else { '?' })
        })
    }
}

/// A kind of user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum UserKind {
    /// The NMI watchdog: kernel-owned events that have `attr.pinned`, count a CPU and sample a
    /// generic hardware event. The watchdog has one per CPU while it is on.
    Watchdog,
    /// A guest's virtual PMU: kernel-owned events that do not count in the host.
    Guest,
    /// Other parts of the kernel, and modules.
    Kernel,
    /// User space.
    Task,
}

/// A user of a PMU.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct User {
    /// The kind of the user.
    kind: UserKind,
    /// The task that has opened the event, or the function that a kernel-owned event calls on
    /// overflow.
    name: Name,
    /// The task's pid; 0 if the task has ended, and for kernel-owned events.
    pid: i32,
}

impl User {
    /// Returns the kind of the user.
    pub const fn kind(&self) -> UserKind {
        self.kind
    }

    /// Returns whether the user is a task that has ended.
    pub const fn has_ended(&self) -> bool {
        matches!(self.kind, UserKind::Task) && self.pid == 0
    }

    /// Returns the user that has opened `event`, or the event's parent if it is inherited.
    ///
    /// # Safety
    ///
    /// `event` must be in its PMU's list, whose lock must be held, or in a context from which it is
    /// not removed meanwhile.
    unsafe fn of_event(event: *mut bindings::perf_event) -> Self {
        // SAFETY: By this function's requirements.
        let parent = unsafe { (*event).parent };
        // An inherited event has no owner. Its parent stays valid: `inherit_event()`
        // (kernel/events/core.c) takes a reference, under the mutex of the context of the parent or
        // of another child, and `put_event()` drops it after the event has left the list.
        let event = if parent.is_null() { event } else { parent };
        let mut name = Name::EMPTY;
        let text = name.0.as_mut_ptr().cast();
        // SAFETY: By this function's requirements. The helper writes a string that fits. It reads
        // the owner once: null, the kernel's mark, or a task, which is freed only after an RCU
        // grace period (see `perf_remove_from_owner()`, kernel/events/core.c).
        let pid = unsafe { bindings::rpmu_helper_event_task(event, text, LENGTH) };
        if pid >= 0 {
            let kind = UserKind::Task;
            return Self { kind, name, pid };
        }
        // SAFETY: By this function's requirements. The helper writes a string that fits.
        unsafe { bindings::rpmu_helper_event_handler(event, text, LENGTH) };
        // SAFETY: By this function's requirements.
        let (attr, cpu) = unsafe { (&(*event).attr, (*event).cpu) };
        // SAFETY: Both members of the union are `u64`.
        let sampling = unsafe { attr.__bindgen_anon_1.sample_period } != 0;
        let kind = if attr.exclude_host() != 0 {
            UserKind::Guest
        } else if attr.pinned() != 0
            && cpu >= 0
            && sampling
            && attr.type_ == bindings::perf_type_id_PERF_TYPE_HARDWARE
        {
            UserKind::Watchdog
        } else {
            UserKind::Kernel
        };
        Self { kind, name, pid: 0 }
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.kind, self.pid) {
            (UserKind::Task, 0) => f.write_str("a task that has ended"),
            (UserKind::Task, pid) => write!(f, "{}[{pid}]", self.name),
            _ => write!(f, "{}", self.name),
        }
    }
}

/// The users of one or several PMUs.
#[derive(Clone, Copy, Default)]
pub struct Users {
    /// The first users that were found, and the number of events of each.
    named: [Option<(User, u32)>; NAMED],
    /// The number of events of each [`UserKind`].
    events: [u32; 4],
}

impl Users {
    /// Returns the users of `pmu`. Process context.
    ///
    /// # Safety
    ///
    /// `pmu` must be valid and have been registered.
    pub(super) unsafe fn of(pmu: *mut bindings::pmu) -> Self {
        let mut users = Self::default();
        // SAFETY: By this function's requirements.
        unsafe { users.add_of(pmu) };
        users
    }

    /// Adds the users of `pmu`. Process context.
    ///
    /// # Safety
    ///
    /// As [`of`](Self::of).
    pub(super) unsafe fn add_of(&mut self, pmu: *mut bindings::pmu) {
        // SAFETY: By this function's requirements; registering initialises the lock.
        let lock = unsafe { &raw mut (*pmu).events_lock };
        // SAFETY: By this function's requirements the PMU was registered, which initialised the
        // lock. The perf core takes the lock in process context only, and this is process context.
        // CAST: both are bindings of `spinlock_t`.
        unsafe { kernel::bindings::spin_lock(lock.cast()) };
        // SAFETY: Under the lock the list is consistent and the events in it are valid.
        unsafe {
            let head = &raw mut (*pmu).events;
            let mut node = (*head).next;
            while node != head {
                let event = kernel::container_of!(node, bindings::perf_event, pmu_list);
                self.add(User::of_event(event));
                node = (*node).next;
            }
        }
        // SAFETY: The lock was taken above.
        unsafe { kernel::bindings::spin_unlock(lock.cast()) };
    }

    /// Counts an event of `user`.
    fn add(&mut self, user: User) {
        // CAST: the discriminants are the indices.
        if let Some(events) = self.events.get_mut(user.kind as usize) {
            *events = events.saturating_add(1);
        }
        let place = self
            .named
            .iter_mut()
            .find(|it| it.is_none_or(|(named, _)| named == user));
        if let Some(place) = place {
            let (_, events) = place.get_or_insert((user, 0));
            *events = events.saturating_add(1);
        }
    }

    /// Returns whether there are no users.
    pub fn are_none(&self) -> bool {
        self.events.iter().all(|&events| events == 0)
    }

    /// Returns the number of events that users of this kind have open.
    pub fn events(&self, kind: UserKind) -> u32 {
        // CAST: the discriminants are the indices.
        self.events.get(kind as usize).copied().unwrap_or(0)
    }

    /// Returns the users of this kind, and the number of events of each. There may be more.
    pub fn named(&self, kind: UserKind) -> impl Iterator<Item = &(User, u32)> {
        let named = self.named.iter().flatten();
        named.filter(move |(user, _)| user.kind == kind)
    }
}

impl<T: InternalOperations> OnCpu<'_, T> {
    /// Returns the user that has opened the event, or the event's parent if it is inherited. The
    /// event must be on this CPU, or in a context that is locked.
    pub fn user_of(&self, event: &Event<T>) -> User {
        // SAFETY: The perf core removes an event from its context with the context locked, and an
        // event that is on a CPU only there, with interrupts off (`event_function_call()`,
        // kernel/events/core.c).
        unsafe { User::of_event(event.as_raw()) }
    }
}

impl<T: InternalOperations> Pmu<T> {
    /// Returns the users that have events open on the PMU; none before it is registered. Process
    /// context.
    #[inline(never)]
    pub fn users(&self) -> Users {
        if !self.internals().was_open.load(Relaxed) {
            return Users::default();
        }
        // SAFETY: The PMU is valid and has been registered. Unregistering does not free or change
        // its list of events and the lock (`perf_pmu_free()`, `kernel/events/core.c`).
        unsafe { Users::of(self.as_raw()) }
    }
}
