// SPDX-License-Identifier: GPL-2.0

//! The events of one CPU: who is there, and which counter each is to have.
//!
//! Adding an event decides at once whether it fits, and if so gives every event of the CPU its
//! counter: the *plan*. Nothing is programmed by that. When perf core enables the PMU again, the
//! driver brings the hardware to the plan:
//!
//! ```text
//!  perf_pmu_disable
//!    add / commit ──► plan                 any number of times
//!    remove
//!  perf_pmu_enable
//!    leaving()  ──► stop each event on the counter that it leaves
//!    arriving() ──► start each event on the counter that it gets
//!    settle()       the plan is what is programmed
//! ```
//!
//! An event that needs an [extra register](super::extra_register) gets that by the same plan, and
//! may get another than it has when events come.
//!
//! Events of a transaction (a group) are collected first, and placed as a whole by
//! [`commit`](Roster::commit), or not at all. Events that are there already may move for that.
//!
//! What is decided outside of the CPU, for the moment, comes as [`Limits`] with every request to
//! plan, and what others have to know of the CPU goes out as a [`Claim`].
//!
//! Context: the CPU that the roster belongs to, interrupts off, PMU disabled. The PMI does not
//! look at it: it finds the events by counter, in a table of the driver's that only changes while
//! the counter is inactive.

mod entry;
mod fast_paths;
mod slots;
mod solve;
#[cfg(test)]
mod tests;
mod trial;

use super::{assign::Policy, constraint::Constraint, extra_register::Demand, limits::Limits};
use crate::logic::{
    capabilities::Capabilities,
    open::refusal::Refusal,
    regs::counter::{CounterId, CounterMask},
    smt::usage::Claim,
};
use slots::{Slots, SLOTS};

pub use {entry::Entry, trial::Trial};

/// The events of one CPU.
///
/// `T` is the driver's handle on an event, a pointer or an index; equal handles are one event.
///
/// # Invariants
///
/// - The slots in `live` have the events, in the order in which they were added; what is in others
///   means nothing. They are `len`, which is at most `capacity`, which is at most [`MAX_EVENTS`](super::assign::MAX_EVENTS).
/// - Those in `fresh`, which are none outside of a transaction, are not planned. They come after
///   all others, which are, and no two for the same counter.
/// - Those in `unsettled` are to have something else than is programmed.
/// - `taken` are the counters that are planned; `exclusive`, `pairs` and `demanding` count the
///   entries with these flags and those that need an extra register.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::capabilities::{Capabilities, Cpuid, Leaf};
/// use logic::sched::constraint::Constraint;
/// use logic::regs::counter::{CounterId, CounterMask};
/// use logic::sched::limits::Limits;
/// use logic::sched::cpu_schedule::Roster;
/// # let cpuid = Cpuid {
/// #     leaf_0: Leaf { eax: 0xd, ..Leaf::default() },
/// #     leaf_a: Leaf { eax: 0x0730_0403, ebx: 0, ecx: 0, edx: 0x603 },
/// #     ..Cpuid::default()
/// # };
/// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
/// let on = |bits| Constraint::any_of(CounterMask::from_bits(bits));
/// let mut roster = Roster::new(&capabilities);
///
/// roster.add("loads", on(0xf), None, &Limits::NONE).unwrap();
/// roster.settle();
///
/// // Counter 0 alone will do for this one: "loads" moves.
/// roster.add("stalls", on(0x1), None, &Limits::NONE).unwrap();
/// let leaving: Vec<_> = roster.leaving().collect();
/// assert_eq!(leaving, [("loads", CounterId::gp(0).unwrap())]);
/// let arriving: Vec<_> = roster.arriving().collect();
/// assert_eq!(
///     arriving,
///     [("loads", CounterId::gp(1).unwrap()), ("stalls", CounterId::gp(0).unwrap())]
/// );
/// roster.settle();
/// ```
#[derive(Clone, Debug)]
pub struct Roster<T> {
    entries: [Option<Entry<T>>; SLOTS],
    live: Slots,
    fresh: Slots,
    unsettled: Slots,
    len: u8,
    /// Most events: one for each counter of the machine.
    capacity: u8,
    exclusive: u8,
    pairs: u8,
    demanding: u8,
    /// Whether a transaction is open.
    transaction: bool,
    policy: Policy,
    taken: CounterMask,
    /// See [`take_wish`](Self::take_wish).
    wish: Option<Claim>,
}

impl<T: Copy + PartialEq> Roster<T> {
    /// No event yet, for a CPU with these capabilities.
    pub const fn new(capabilities: &Capabilities) -> Self {
        Self {
            entries: [const { None }; SLOTS],
            live: Slots::NONE,
            fresh: Slots::NONE,
            unsettled: Slots::NONE,
            len: 0,
            // CAST: at most `MAX_COUNTERS`.
            capacity: capabilities.counters.weight() as u8,
            exclusive: 0,
            pairs: 0,
            demanding: 0,
            transaction: false,
            policy: Policy::Rpmu,
            taken: CounterMask::EMPTY,
            wish: None,
        }
    }

    /// The same under another policy; [`new`](Self::new) gives [`Policy::Rpmu`].
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Number of events.
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// What is in some slots.
    fn at(&self, slots: Slots) -> impl Iterator<Item = &Entry<T>> + Clone {
        // The mask changes nothing and leaves no bounds check.
        slots.filter_map(|slot| self.entries[slot & (SLOTS - 1)].as_ref())
    }

    fn at_mut(&mut self, slot: usize) -> Option<&mut Entry<T>> {
        self.entries[slot & (SLOTS - 1)].as_mut()
    }

    /// The events, in the order in which they were added.
    pub fn entries(&self) -> impl Iterator<Item = &Entry<T>> + Clone {
        self.at(self.live)
    }

    /// The slot of `event`, and its entry.
    fn find(&self, event: T) -> Option<(usize, &Entry<T>)> {
        let mut slots = self.live;
        slots.find_map(|slot| {
            let entry = self.entries[slot & (SLOTS - 1)].as_ref()?;
            (entry.event == event).then_some((slot, entry))
        })
    }

    /// The entry of `event`, if it is there.
    pub fn get(&self, event: T) -> Option<&Entry<T>> {
        self.find(event).map(|(_, entry)| entry)
    }

    /// The counters that events are to have.
    pub fn taken(&self) -> CounterMask {
        self.taken
    }

    /// Whether no event is exclusive or needs an extra register.
    pub fn is_plain(&self) -> bool {
        self.exclusive == 0 && self.demanding == 0
    }

    /// Adds an event that had the counter `previous` when it was on this CPU last.
    ///
    /// Outside a transaction, everybody gets a counter. Within one, the event is only collected, and
    /// `limits` do not matter.
    ///
    /// # Errors
    ///
    /// [`Refusal::TooManyEvents`] if there is no room, [`Refusal::DoesNotFit`] if there is no
    /// assignment, [`Refusal::Limited`] if there is none under `limits`. The roster is then as it
    /// was before.
    pub fn add(
        &mut self,
        event: T,
        demand: impl Into<Demand>,
        previous: Option<CounterId>,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        self.push(event, demand.into(), previous)?;
        if !self.transaction {
            if let Err(refusal) = self.plan(limits) {
                self.drop_fresh();
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Adds an event that has no counter yet.
    fn push(
        &mut self,
        event: T,
        demand: Demand,
        previous: Option<CounterId>,
    ) -> Result<(), Refusal> {
        if self.len >= self.capacity {
            return Err(Refusal::TooManyEvents);
        }
        if self.live.end() >= SLOTS {
            self.close_gaps();
        }
        let slot = self.live.end();
        let Demand {
            constraint,
            requirement,
        } = demand;
        self.entries[slot & (SLOTS - 1)] = Some(Entry {
            event,
            constraint,
            requirement,
            previous,
            planned: None,
            placed: None,
            planned_register: None,
            placed_register: None,
        });
        // INVARIANT: Behind all others, and not planned.
        self.live = self.live.with(Slots::only(slot));
        self.fresh = self.fresh.with(Slots::only(slot));
        self.len = self.len.wrapping_add(1);
        self.exclusive = self.exclusive.wrapping_add(constraint.exclusive.into());
        self.pairs = self.pairs.wrapping_add(constraint.pair.into());
        self.demanding = self.demanding.wrapping_add(requirement.is_some().into());
        Ok(())
    }

    /// Moves all events to the front, in their order.
    #[cold]
    fn close_gaps(&mut self) {
        let (live, fresh, unsettled) = (self.live, self.fresh, self.unsettled);
        [self.live, self.fresh, self.unsettled] = [Slots::NONE; 3];
        for (to, from) in live.enumerate() {
            self.entries.swap(to & (SLOTS - 1), from & (SLOTS - 1));
            let to = Slots::only(to);
            self.live = self.live.with(to);
            if fresh.contains(from) {
                self.fresh = self.fresh.with(to);
            }
            if unsettled.contains(from) {
                self.unsettled = self.unsettled.with(to);
            }
        }
    }

    /// Removes an event, in a transaction or outside. The order of the others stays.
    ///
    /// Returns the entry, from which the driver sees whether a counter has to be stopped; `None`
    /// if the event was not there.
    #[inline]
    pub fn remove(&mut self, event: T) -> Option<Entry<T>> {
        let (slot, entry) = self.find(event)?;
        let entry = *entry;
        self.vacate(slot, &entry);
        Some(entry)
    }

    /// Takes an entry out of the books.
    fn vacate(&mut self, slot: usize, entry: &Entry<T>) {
        let slot = Slots::only(slot);
        self.live = self.live.without(slot);
        self.fresh = self.fresh.without(slot);
        self.unsettled = self.unsettled.without(slot);
        self.len = self.len.wrapping_sub(1);
        if let Some(counter) = entry.planned {
            self.taken.remove(counter);
        }
        let Constraint {
            exclusive, pair, ..
        } = entry.constraint;
        self.exclusive = self.exclusive.wrapping_sub(exclusive.into());
        self.pairs = self.pairs.wrapping_sub(pair.into());
        let demanding = entry.requirement.is_some();
        self.demanding = self.demanding.wrapping_sub(demanding.into());
    }

    /// Forgets the events that are not planned.
    fn drop_fresh(&mut self) {
        self.drop_all(self.fresh);
    }

    /// Removes all events, and closes a transaction that is open.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::{Capabilities, Cpuid, Leaf};
    /// use logic::sched::constraint::Constraint;
    /// use logic::regs::counter::CounterMask;
    /// use logic::sched::limits::Limits;
    /// use logic::sched::cpu_schedule::Roster;
    /// # let cpuid = Cpuid {
    /// #     leaf_0: Leaf { eax: 0xd, ..Leaf::default() },
    /// #     leaf_a: Leaf { eax: 0x0730_0403, ebx: 0, ecx: 0, edx: 0x603 },
    /// #     ..Cpuid::default()
    /// # };
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// let mut roster = Roster::new(&capabilities);
    /// let any = Constraint::any_of(CounterMask::first_gp(4));
    /// roster.add("placed", any, None, &Limits::NONE).unwrap();
    /// roster.settle();
    /// roster.add("planned", any, None, &Limits::NONE).unwrap();
    /// roster.begin();
    /// roster.add("collected", any, None, &Limits::NONE).unwrap();
    ///
    /// roster.clear();
    /// assert!(roster.is_empty() && roster.is_settled() && !roster.in_transaction());
    /// assert_eq!(roster.taken(), CounterMask::EMPTY);
    /// assert_eq!((roster.leaving().count(), roster.arriving().count()), (0, 0));
    /// ```
    pub fn clear(&mut self) {
        self.transaction = false;
        self.drop_all(self.live);
    }

    fn drop_all(&mut self, slots: Slots) {
        for slot in slots {
            if let Some(entry) = self.entries[slot & (SLOTS - 1)] {
                self.vacate(slot, &entry);
            }
        }
    }

    /// Opens a transaction. One that is open already goes on from where it started.
    pub fn begin(&mut self) {
        self.transaction = true;
    }

    /// Whether a transaction is open.
    pub fn in_transaction(&self) -> bool {
        self.transaction
    }

    /// The events that the open transaction has collected; none without one.
    pub fn collected(&self) -> impl Iterator<Item = &Entry<T>> + Clone {
        self.at(self.fresh)
    }

    /// Places the events of the transaction, all of them, and closes it.
    ///
    /// # Errors
    ///
    /// [`Refusal::DoesNotFit`], or [`Refusal::Limited`]. The transaction stays open, nothing has
    /// changed, and perf core will [remove](Self::remove) its events and [cancel](Self::cancel)
    /// it.
    pub fn commit(&mut self, limits: &Limits) -> Result<(), Refusal> {
        self.plan(limits)?;
        self.transaction = false;
        Ok(())
    }

    /// Closes the transaction and forgets its events. Without one, nothing happens.
    pub fn cancel(&mut self) {
        self.transaction = false;
        self.drop_fresh();
    }

    /// Whether the hardware is as [planned](Self::settle), but for events that have gone.
    pub fn is_settled(&self) -> bool {
        self.unsettled.is_empty()
    }

    /// The events that have to leave a counter, with that counter.
    ///
    /// All of them have to be stopped before any event [arrives](Self::arriving).
    pub fn leaving(&self) -> impl Iterator<Item = (T, CounterId)> + '_ {
        self.at(self.unsettled)
            .filter_map(|entry| Some((entry.event, entry.placed?)))
    }

    /// The events that have to be programmed, new or moved, with the counter they get.
    pub fn arriving(&self) -> impl Iterator<Item = (T, CounterId)> + '_ {
        self.at(self.unsettled)
            .filter_map(|entry| Some((entry.event, entry.planned?)))
    }

    /// Says that the hardware has been brought to the plan.
    pub fn settle(&mut self) {
        for slot in core::mem::replace(&mut self.unsettled, Slots::NONE) {
            if let Some(entry) = self.at_mut(slot) {
                entry.placed = entry.planned;
                entry.placed_register = entry.planned_register;
            }
        }
    }

    /// What the events are to have. Those of an open transaction have nothing yet.
    ///
    /// While the plan is not [settled](Self::settle), the hardware may still have what was claimed
    /// before.
    pub fn claim(&self) -> Claim {
        let mut claim = Claim {
            used: self.taken,
            ..Claim::default()
        };
        // Most events are nothing but users of a counter.
        if self.is_plain() {
            return claim;
        }
        for entry in self.entries() {
            if let Some(counter) = entry.planned.filter(|_| entry.constraint.exclusive) {
                claim.exclusive.insert(counter);
            }
            if let (Some(required), Some(register)) = (entry.requirement, entry.planned_register) {
                // By the plan nobody has another value for it.
                let _ = claim.registers.place(register, required.value);
            }
        }
        claim
    }

    /// Gives the fresh events a counter and the extra register that they need; others may move for
    /// that. On failure nothing has changed.
    #[inline]
    fn plan(&mut self, limits: &Limits) -> Result<(), Refusal> {
        if self.plan_beside(limits) {
            return Ok(());
        }
        match self.refuse_beside(limits) {
            Some(refusal) => Err(refusal),
            None => self.plan_anew(limits),
        }
    }

    /// What the events would claim if the core's other thread had none, together with the first group
    /// that was refused [for the moment](Refusal::is_for_the_moment) since this was last called;
    /// [`None`] if none was, or if it would not fit then either.
    pub fn take_wish(&mut self) -> Option<Claim> {
        self.wish.take()
    }

    /// Whether an event corrupts the sibling thread's counts.
    pub fn any_exclusive(&self) -> bool {
        self.exclusive != 0
    }
}
