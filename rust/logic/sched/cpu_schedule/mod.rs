// SPDX-License-Identifier: GPL-2.0

//! The state of one CPU's events and their counters.
//!
//! Adding an event decides at once whether it fits. If so, every event of the CPU gets a counter:
//! the *plan*. Nothing is programmed yet. When the perf core enables the PMU again, the driver
//! programs the plan:
//!
//! ```text
//!  perf_pmu_disable
//!    add / commit ──► plan                 any number of times
//!    remove
//!  perf_pmu_enable
//!    leaving()  ──► stop each event on the counter that it leaves
//!    arriving() ──► start each event on the counter that it gets
//!    mark_programmed()
//! ```
//!
//! The plan also assigns [extra registers](crate::logic::regs::extra_register) to the events that
//! need them. An event may get another register when events are added.
//!
//! The events of a txn (a group) are collected first, and then [`commit`](CpuSchedule::commit)
//! places all or none of them. Events that were added before may move for this.
//!
//! An event that is [equal](CpuSchedule::equal_event) to one in the schedule need not be added: it
//! can ride on that event's counter. The caller keeps record of the riders
//! ([`Riders`](super::riders::Riders)); the schedule plans one counter for all of them.
//!
//! Each request to plan gets temporary restrictions from outside of the CPU as [`Limits`]. A
//! [`ThreadUsage`] reports the CPU's counters to its core.
//!
//! Context: the schedule's CPU, interrupts off. Changed only while the PMU is disabled, or when all
//! events have left. The PMI does not use the schedule: it finds events by counter, in a table of
//! the driver. A callback changes an entry of this table only while the counter is inactive; an NMI
//! may change the entry of a shared counter.

mod entry;
mod fast_paths;
mod shared;
mod slots;
mod solve;
#[cfg(test)]
mod tests;
mod trial;

use super::{
    assign::{
        Assignment,
        Policy,
        Problem, //
    },
    limits::Limits,
    register_plan::RegisterValues, //
};
use crate::logic::{
    capabilities::Capabilities,
    model::{
        constraint::Constraint,
        demand::Demand, //
    },
    refusal::{
        Refusal,
        Shortage, //
    },
    regs::{
        counter::{
            CounterId,
            CounterMask, //
        },
        extra_register::ExtraRegister, //
    },
    sched::usage::ThreadUsage, //
};
use slots::{
    SlotSet,
    SLOT_COUNT, //
};

pub use {
    entry::{
        Entries,
        Entry, //
    },
    trial::Trial, //
};

/// The events of one CPU.
///
/// `T` is the driver's handle of an event, such as a pointer or an index; equal handles are the
/// same event.
///
/// # Invariants
///
/// - The slots in `live` hold the events, in the order in which they were added (an event that
///   takes over an entry by [`hand_over`](Self::hand_over) has the place of the entry's former
///   event); other slots have no meaning. `len` is their number, at most `capacity`, which is at
///   most [`MAX_EVENTS`](super::assign::MAX_EVENTS).
/// - The slots in `fresh` have no planned counter. They come after all other slots, each of which
///   has a planned counter of its own, except that a [trial](Self::trial) keeps the events of an
///   open txn outside of `fresh`. Outside of a txn, `fresh` is empty.
/// - The slots in `unprogrammed` have a plan that differs from the registers.
/// - `keys` has the [bit](Key::bit) of each entry's key.
/// - `taken` are the planned counters. `corrupting` and `pairs` count the entries with these flags,
///   `demanding` those that need an extra register.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::capabilities::{Capabilities, Cpuid};
/// use logic::model::constraint::Constraint;
/// use logic::regs::counter::{CounterId, CounterMask};
/// use logic::sched::limits::Limits;
/// use logic::sched::cpu_schedule::CpuSchedule;
/// # let cpuid = Cpuid::intel(3, 4, 3);
/// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
/// let on = |bits| Constraint::any_of(CounterMask::from_bits(bits));
/// let mut schedule = CpuSchedule::new(&capabilities);
///
/// schedule.add("loads", on(0xf), None, &Limits::NONE).unwrap();
/// schedule.mark_programmed();
///
/// // This event needs counter 0: "loads" moves.
/// schedule.add("stalls", on(0x1), None, &Limits::NONE).unwrap();
/// let leaving: Vec<_> = schedule.leaving().collect();
/// assert_eq!(leaving, [("loads", CounterId::gp(0).unwrap())]);
/// let arriving: Vec<_> = schedule.arriving().collect();
/// assert_eq!(
///     arriving,
///     [("loads", CounterId::gp(1).unwrap()), ("stalls", CounterId::gp(0).unwrap())]
/// );
/// schedule.mark_programmed();
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CpuSchedule<T> {
    entries: [Option<Entry<T>>; SLOT_COUNT],
    live: SlotSet,
    fresh: SlotSet,
    unprogrammed: SlotSet,
    len: u8,
    /// The counters and metrics of the machine. Each has room for one event.
    counters: CounterMask,
    /// The number of counters and metrics.
    capacity: u8,
    corrupting: u8,
    pairs: u8,
    demanding: u8,
    /// Set if no other thread uses the extra registers.
    owns_registers: bool,
    /// Set while a txn is open.
    txn: bool,
    policy: Policy,
    taken: CounterMask,
    keys: u64,
    /// The result of the next [`take_wish`](Self::take_wish).
    wish: Option<ThreadUsage>,
    /// Space for [`solve`](Self::solve): the kernel's stack is small.
    problem: Problem,
    /// The result of [`solve`](Self::solve).
    assignment: Assignment,
    registers: RegisterValues,
    /// Space for the plan before a [`trial`](Self::trial).
    saved: [(Option<CounterId>, Option<ExtraRegister>); SLOT_COUNT],
}

impl<T: Copy + PartialEq> CpuSchedule<T> {
    /// The empty schedule of a CPU without counters.
    pub const NOTHING: Self = Self {
        entries: [const { None }; SLOT_COUNT],
        live: SlotSet::NONE,
        fresh: SlotSet::NONE,
        unprogrammed: SlotSet::NONE,
        len: 0,
        counters: CounterMask::EMPTY,
        capacity: 0,
        corrupting: 0,
        pairs: 0,
        demanding: 0,
        owns_registers: false,
        txn: false,
        policy: Policy::Rpmu,
        taken: CounterMask::EMPTY,
        keys: 0,
        wish: None,
        problem: Problem::new(0),
        assignment: Assignment::NOTHING,
        registers: RegisterValues::NONE,
        saved: [(None, None); SLOT_COUNT],
    };

    /// Creates an empty schedule for a CPU with these capabilities.
    pub const fn new(capabilities: &Capabilities) -> Self {
        let mut schedule = Self::NOTHING;
        schedule.set_up(capabilities, Policy::Rpmu);
        schedule
    }

    /// Sets the capabilities of the CPU, and the policy. There must be no events.
    pub const fn set_up(&mut self, capabilities: &Capabilities, policy: Policy) {
        self.counters = capabilities.all();
        // CAST: at most `MAX_COUNTERS`.
        self.capacity = capabilities.all().weight() as u8;
        self.policy = policy;
    }

    /// Sets the policy; [`new`](Self::new) sets [`Policy::Rpmu`].
    #[must_use]
    pub const fn with_policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Returns the number of events.
    pub fn len(&self) -> usize {
        self.len.into()
    }

    /// Returns whether there is no event.
    pub fn is_empty(&self) -> bool {
        self.live.is_empty()
    }

    /// Returns the entries in `slots`.
    #[inline]
    fn at(&self, slots: SlotSet) -> Entries<'_, T> {
        Entries {
            entries: &self.entries,
            slots,
        }
    }

    fn at_mut(&mut self, slot: usize) -> Option<&mut Entry<T>> {
        self.entries[slot & (SLOT_COUNT - 1)].as_mut()
    }

    /// Returns the events, in the order in which they were added.
    pub fn entries(&self) -> Entries<'_, T> {
        self.at(self.live)
    }

    /// Returns the slot of `event`, and its entry.
    fn find(&self, event: T) -> Option<(usize, &Entry<T>)> {
        let mut slots = self.live;
        slots.find_map(|slot| {
            let entry = self.entries[slot & (SLOT_COUNT - 1)].as_ref()?;
            (entry.event == event).then_some((slot, entry))
        })
    }

    /// Returns the entry of `event`, if it is in the schedule.
    pub fn get(&self, event: T) -> Option<&Entry<T>> {
        self.find(event).map(|(_, entry)| entry)
    }

    /// Returns the planned counters.
    pub fn taken(&self) -> CounterMask {
        self.taken
    }

    /// Returns the planned counters, including the second counters of pairs.
    #[inline]
    pub fn occupied(&self) -> CounterMask {
        if self.pairs == 0 {
            self.taken
        } else {
            self.taken | self.seconds()
        }
    }

    #[cold]
    fn seconds(&self) -> CounterMask {
        let pairs = self.entries().filter(|entry| entry.constraint.pair);
        let firsts: CounterMask = pairs.filter_map(|entry| entry.planned).collect();
        firsts.behind()
    }

    /// Returns the planned counters of the northbridge's events.
    pub fn northbridge(&self) -> CounterMask {
        let events = self.entries().filter(|it| it.constraint.northbridge);
        events.filter_map(|entry| entry.planned).collect()
    }

    /// Returns the planned filter of the branch records; [`None`] if no event has branch stacks.
    #[inline]
    pub fn lbr_select(&self) -> Option<u32> {
        if self.demanding == 0 {
            return None;
        }
        let mut planned = self.entries().filter(|entry| entry.planned.is_some());
        planned.find_map(|entry| entry.lbr_select)
    }

    /// Records that no other thread uses this CPU's extra registers, so that they need not be
    /// reported to the core.
    pub const fn own_registers(&mut self) {
        self.owns_registers = true;
    }

    /// Returns whether the core needs to know only the events' counters: no event is corrupting,
    /// and no event needs an extra register, or this CPU [owns](Self::own_registers) these
    /// registers.
    pub fn needs_counters_only(&self) -> bool {
        self.corrupting == 0 && (self.demanding == 0 || self.owns_registers)
    }

    /// Adds an event, whose counter was `previous` when it was last on this CPU.
    ///
    /// Outside of a txn, every event gets a counter. Within a txn, the event is only collected, and
    /// `limits` have no effect.
    ///
    /// # Errors
    ///
    /// [`Refusal::DoesNotFit`] if there are more events than counters or no assignment,
    /// [`Refusal::ExtraRegisterTaken`] if the extra registers do not suffice; [`Refusal::Limited`]
    /// or [`Refusal::ExtraRegisterLimited`] if only `limits` are the reason. Then the schedule is
    /// unchanged.
    pub fn add(
        &mut self,
        event: T,
        demand: impl Into<Demand>,
        previous: Option<CounterId>,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        self.add_demand(event, &demand.into(), previous, limits)
    }

    /// [Adds](Self::add) an event with this `demand`.
    #[inline]
    pub fn add_demand(
        &mut self,
        event: T,
        demand: &Demand,
        previous: Option<CounterId>,
        limits: &Limits,
    ) -> Result<(), Refusal> {
        self.push(event, demand, previous)?;
        if !self.txn {
            if let Err(refusal) = self.plan(limits) {
                self.drop_fresh();
                return Err(refusal);
            }
        }
        Ok(())
    }

    /// Adds an event without a counter.
    // Inlined: the entry is built in place.
    #[inline(always)]
    fn push(
        &mut self,
        event: T,
        demand: &Demand,
        previous: Option<CounterId>,
    ) -> Result<(), Refusal> {
        if self.len >= self.capacity {
            return Err(Shortage::more_than(self.counters).into());
        }
        if self.live.end() >= SLOT_COUNT {
            self.close_gaps();
        }
        let slot = self.live.end();
        let Demand {
            constraint,
            requirement,
            lbr_select,
            key,
        } = *demand;
        self.entries[slot & (SLOT_COUNT - 1)] = Some(Entry {
            event,
            constraint,
            requirement,
            lbr_select,
            key,
            previous,
            planned: None,
            placed: None,
            planned_register: None,
            placed_register: None,
        });
        // INVARIANT: `keys` gets the key's bit. The slot is behind all others, and has no planned
        // counter.
        self.keys = match self.live.is_empty() {
            true => key.bit(),
            false => self.keys | key.bit(),
        };
        self.live = self.live.with(SlotSet::only(slot));
        self.fresh = self.fresh.with(SlotSet::only(slot));
        self.len = self.len.wrapping_add(1);
        self.corrupting = self.corrupting.wrapping_add(constraint.corrupting.into());
        self.pairs = self.pairs.wrapping_add(constraint.pair.into());
        self.demanding = self.demanding.wrapping_add(demand.needs_register().into());
        Ok(())
    }

    /// Moves all entries to the first slots, and keeps their order. Counters and plans stay.
    #[cold]
    fn close_gaps(&mut self) {
        let (live, fresh, unprogrammed) = (self.live, self.fresh, self.unprogrammed);
        [self.live, self.fresh, self.unprogrammed] = [SlotSet::NONE; 3];
        for (to, from) in live.enumerate() {
            self.entries
                .swap(to & (SLOT_COUNT - 1), from & (SLOT_COUNT - 1));
            let to = SlotSet::only(to);
            self.live = self.live.with(to);
            if fresh.contains(from) {
                self.fresh = self.fresh.with(to);
            }
            if unprogrammed.contains(from) {
                self.unprogrammed = self.unprogrammed.with(to);
            }
        }
    }

    /// Removes an event, within a txn or outside. The others keep their order.
    ///
    /// Returns the entry, by which the driver knows whether a counter has to be stopped; [`None`]
    /// if the event is not in the schedule.
    #[inline]
    pub fn remove(&mut self, event: T) -> Option<Entry<T>> {
        let (slot, entry) = self.find(event)?;
        let entry = *entry;
        self.vacate(slot, &entry);
        Some(entry)
    }

    /// Empties a slot.
    fn vacate(&mut self, slot: usize, entry: &Entry<T>) {
        let slot = SlotSet::only(slot);
        self.live = self.live.without(slot);
        self.fresh = self.fresh.without(slot);
        self.unprogrammed = self.unprogrammed.without(slot);
        self.len = self.len.wrapping_sub(1);
        if let Some(counter) = entry.planned {
            self.taken.remove(counter);
        }
        let Constraint {
            corrupting, pair, ..
        } = entry.constraint;
        self.corrupting = self.corrupting.wrapping_sub(corrupting.into());
        self.pairs = self.pairs.wrapping_sub(pair.into());
        let demanding = entry.demand().needs_register();
        self.demanding = self.demanding.wrapping_sub(demanding.into());
    }

    /// Removes the events without a planned counter.
    fn drop_fresh(&mut self) {
        self.drop_all(self.fresh);
    }

    /// Removes all events, and closes an open txn.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::{Capabilities, Cpuid};
    /// use logic::model::constraint::Constraint;
    /// use logic::regs::counter::CounterMask;
    /// use logic::sched::limits::Limits;
    /// use logic::sched::cpu_schedule::CpuSchedule;
    /// # let cpuid = Cpuid::intel(3, 4, 3);
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// let mut schedule = CpuSchedule::new(&capabilities);
    /// let any = Constraint::any_of(CounterMask::first_gp(4));
    /// schedule.add("placed", any, None, &Limits::NONE).unwrap();
    /// schedule.mark_programmed();
    /// schedule.add("planned", any, None, &Limits::NONE).unwrap();
    /// schedule.begin();
    /// schedule.add("collected", any, None, &Limits::NONE).unwrap();
    ///
    /// schedule.clear();
    /// assert!(schedule.is_empty() && !schedule.in_txn());
    /// assert_eq!(schedule.taken(), CounterMask::EMPTY);
    /// assert_eq!((schedule.leaving().count(), schedule.arriving().count()), (0, 0));
    /// ```
    pub fn clear(&mut self) {
        self.txn = false;
        self.drop_all(self.live);
    }

    fn drop_all(&mut self, slots: SlotSet) {
        for slot in slots {
            if let Some(entry) = self.entries[slot & (SLOT_COUNT - 1)] {
                self.vacate(slot, &entry);
            }
        }
    }

    /// Opens a txn. If a txn is already open, it continues.
    pub fn begin(&mut self) {
        self.txn = true;
    }

    /// Returns whether a txn is open.
    pub fn in_txn(&self) -> bool {
        self.txn
    }

    /// Returns the events that the open txn has collected; none without an open txn.
    pub fn collected(&self) -> Entries<'_, T> {
        self.at(self.fresh)
    }

    /// Places all events of the txn, and closes it.
    ///
    /// # Errors
    ///
    /// As for [`add`](Self::add). Then the txn stays open and nothing has changed; the perf core
    /// will [remove](Self::remove) the txn's events and [cancel](Self::cancel) it.
    pub fn commit(&mut self, limits: &Limits) -> Result<(), Refusal> {
        self.plan(limits)?;
        self.txn = false;
        Ok(())
    }

    /// Closes the txn and removes its events. Does nothing without an open txn.
    pub fn cancel(&mut self) {
        self.txn = false;
        self.drop_fresh();
    }

    /// Returns whether events have to leave counters or to be programmed.
    #[inline]
    pub fn has_unprogrammed(&self) -> bool {
        !self.unprogrammed.is_empty()
    }

    /// Returns the programmed events whose counter or extra register changes, with the counter that
    /// they had so far.
    ///
    /// All of them have to be stopped before any event [arrives](Self::arriving).
    pub fn leaving(&self) -> impl Iterator<Item = (T, CounterId)> + '_ {
        self.at(self.unprogrammed)
            .filter_map(|entry| Some((entry.event, entry.placed?)))
    }

    /// Returns the events that have to be programmed, with their planned counter: new events, and
    /// those whose counter or extra register changes.
    pub fn arriving(&self) -> impl Iterator<Item = (T, CounterId)> + '_ {
        self.arriving_entries()
            .map(|(entry, counter)| (entry.event, counter))
    }

    /// Returns the entries of the events that [arrive](Self::arriving), with their planned counter.
    #[inline]
    pub fn arriving_entries(&self) -> impl Iterator<Item = (&Entry<T>, CounterId)> + '_ {
        self.at(self.unprogrammed)
            .filter_map(|entry| Some((entry, entry.planned?)))
    }

    /// Records that the plan has been programmed.
    pub fn mark_programmed(&mut self) {
        for slot in core::mem::replace(&mut self.unprogrammed, SlotSet::NONE) {
            if let Some(entry) = self.at_mut(slot) {
                entry.placed = entry.planned;
                entry.placed_register = entry.planned_register;
            }
        }
    }

    /// Returns the planned counters, and the planned extra registers unless this CPU
    /// [owns](Self::own_registers) them. Events of an open txn have none yet.
    ///
    /// Until the plan is [programmed](Self::mark_programmed), the hardware may still use the
    /// counters and registers of an earlier plan.
    #[inline]
    pub fn usage(&self) -> ThreadUsage {
        if self.needs_counters_only() {
            return ThreadUsage {
                used: self.taken,
                ..ThreadUsage::default()
            };
        }
        self.usage_of_entries()
    }

    fn usage_of_entries(&self) -> ThreadUsage {
        let mut usage = ThreadUsage {
            used: self.taken,
            ..ThreadUsage::default()
        };
        for entry in self.entries() {
            if let Some(counter) = entry.planned.filter(|_| entry.constraint.corrupting) {
                usage.corrupting.insert(counter);
            }
            if let (Some(required), Some(register)) = (entry.requirement, entry.planned_register) {
                // The plan has only one value for each register.
                let _ = usage.registers.place(register, required.value);
            }
            if let (Some(select), Some(_)) = (entry.lbr_select, entry.planned) {
                // The plan has only one value for LBR_SELECT.
                let _ = usage
                    .registers
                    .place(ExtraRegister::LbrSelect, select.into());
            }
        }
        usage
    }

    /// Gives the fresh events counters and the extra registers that they need; other events may
    /// move for this. Changes nothing on failure.
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

    /// Takes the wish: the usage that the thread would have without the sibling, together with the
    /// first group since the last call that was refused [for the
    /// moment](Refusal::is_for_the_moment) and would fit without the sibling. [`None`] if there was
    /// no such group.
    pub fn take_wish(&mut self) -> Option<ThreadUsage> {
        self.wish.take()
    }

    /// Returns whether any event corrupts the sibling thread's counts.
    pub fn any_corrupting(&self) -> bool {
        self.corrupting != 0
    }
}
