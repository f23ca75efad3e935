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

use super::{
    assign::{Assignment, Order, Policy, Problem, Shortage, MAX_EVENTS},
    constraint::Constraint,
    extra_register::{Demand, ExtraRegister, Requirement},
    limits::Limits,
    register_plan::{self, RegisterValues},
};
use crate::logic::{
    capabilities::Capabilities,
    open::refusal::Refusal,
    regs::counter::{CounterId, CounterMask},
    smt::claim::Claim,
};

/// One event of a [`Roster`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry<T> {
    /// The driver's handle on the event.
    pub event: T,
    /// The counters that it may use.
    pub constraint: Constraint,
    /// What it needs besides a counter.
    requirement: Option<Requirement>,
    /// The counter that it had when it was on this CPU last, if it was: a wish.
    previous: Option<CounterId>,
    /// The counter that it is to have. `None` only within a transaction.
    planned: Option<CounterId>,
    /// The counter that it has been programmed on.
    placed: Option<CounterId>,
    /// The extra register that it is to have, and the one that it has been programmed for.
    planned_register: Option<ExtraRegister>,
    placed_register: Option<ExtraRegister>,
}

impl<T> Entry<T> {
    /// The counter that the event has on the hardware; `None` before it has been programmed.
    pub fn placed(&self) -> Option<CounterId> {
        self.placed
    }

    /// What the event needs.
    pub fn demand(&self) -> Demand {
        Demand {
            constraint: self.constraint,
            requirement: self.requirement,
        }
    }

    /// The counter that the event is to have.
    pub fn planned(&self) -> Option<CounterId> {
        self.planned
    }

    /// The extra register that the event is to have; `None` if it needs none.
    pub fn planned_register(&self) -> Option<ExtraRegister> {
        self.planned_register
    }

    /// Whether the event is where it is to be. One that gets another register has to be programmed
    /// anew, on whatever counter.
    fn is_settled(&self) -> bool {
        self.placed == self.planned && self.placed_register == self.planned_register
    }
}

/// Places for events. More than there can be events, so that one who goes leaves a gap and nobody has
/// to move; gaps are closed when the last place has been used.
const SLOTS: usize = 64;
const _: () = assert!(MAX_EVENTS < SLOTS);

/// Some of the places, a bit for each. As an iterator, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Slots(u64);

impl Slots {
    const NONE: Self = Self(0);

    const fn is_empty(self) -> bool {
        self.0 == 0
    }

    const fn contains(self, slot: usize) -> bool {
        self.0 & Self::only(slot).0 != 0
    }

    /// The place `slot` alone.
    const fn only(slot: usize) -> Self {
        Self(1u64.wrapping_shl(slot as u32))
    }

    const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The first place behind all of these; [`SLOTS`] if there is none.
    const fn end(self) -> usize {
        SLOTS.wrapping_sub(self.0.leading_zeros() as usize)
    }
}

impl Iterator for Slots {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let slot = self.0.trailing_zeros() as usize;
        self.0 &= self.0.wrapping_sub(1);
        Some(slot)
    }
}

/// The events of one CPU.
///
/// `T` is the driver's handle on an event, a pointer or an index; equal handles are one event.
///
/// # Invariants
///
/// - The slots in `live` have the events, in the order in which they were added; what is in others
///   means nothing. They are `len`, which is at most `capacity`, which is at most [`MAX_EVENTS`].
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

    /// The short way, for what happens most: nobody moves, the new events get what they had, or by
    /// ascending weight what is free. `false` if this does not do; nothing has changed then.
    ///
    /// It finds what [`solve`](Self::solve) would find.
    #[inline]
    fn plan_beside(&mut self, limits: &Limits) -> bool {
        if self.pairs != 0 {
            return false;
        }
        let mut taken = self.taken;
        let mut fits = true;
        // Those of the new events that do not get what they had.
        let mut rest = Slots::NONE;
        for slot in self.fresh {
            let Some(entry) = self.at_mut(slot) else {
                continue;
            };
            fits &= entry.requirement.is_none();
            let counters = limits.counters(entry.constraint);
            match entry.previous {
                Some(it) if counters.contains(it) && !taken.contains(it) => {
                    taken.insert(it);
                    entry.planned = Some(it);
                }
                _ => rest = rest.with(Slots::only(slot)),
            }
        }
        if fits && !rest.is_empty() {
            // By mainline's rule, all keep what they had or nobody does.
            fits = (self.policy == Policy::Rpmu || taken.is_empty())
                && self.place_beside(rest, limits, &mut taken);
        }
        let limit = limits.gp(self.exclusive != 0);
        // Counting bits is dear without an instruction for it.
        if fits && limit != u32::MAX {
            fits = taken.gp().weight() <= limit.max(self.taken.gp().weight());
        }
        if fits {
            // INVARIANT: None of the new counters was taken before, nor twice here. What is new is not
            // programmed.
            self.taken = taken;
            self.unsettled = self.unsettled.with(self.fresh);
            self.fresh = Slots::NONE;
        } else {
            for slot in self.fresh {
                if let Some(entry) = self.at_mut(slot) {
                    entry.planned = None;
                }
            }
        }
        fits
    }

    /// Gives the new events of `rest` what is free beside `taken`. Whether there is something for each.
    fn place_beside(&mut self, rest: Slots, limits: &Limits, taken: &mut CounterMask) -> bool {
        // Sorting takes a while to set up.
        let mut others = rest;
        if let (Some(slot), None) = (others.next(), others.next()) {
            return self.place_one_beside(slot, limits, taken);
        }
        let mut order = Order::EMPTY;
        for (slot, entry) in rest.zip(self.at(rest)) {
            // CAST: a slot is below 64.
            order.insert(slot as u8, limits.counters(entry.constraint));
        }
        let mut number = 0;
        while let Some(slot) = order.get(number) {
            number = number.wrapping_add(1);
            if !self.place_one_beside(slot.into(), limits, taken) {
                return false;
            }
        }
        true
    }

    fn place_one_beside(&mut self, slot: usize, limits: &Limits, taken: &mut CounterMask) -> bool {
        let Some(entry) = self.at_mut(slot) else {
            return false;
        };
        let free = limits.counters(entry.constraint).without(*taken);
        let fixed = free.fixed();
        let Some(counter) = if fixed.is_empty() { free } else { fixed }.lowest() else {
            return false;
        };
        entry.planned = Some(counter);
        taken.insert(counter);
        true
    }

    /// The short way to refuse: all counters of a new event are taken by events that can have no
    /// others. [`None`] if this does not answer.
    #[cold]
    #[inline(never)]
    fn refuse_beside(&self, limits: &Limits) -> Option<Refusal> {
        // Another refusal might come first, or hold for the moment only.
        if self.demanding != 0 || self.pairs != 0 || self.is_cut_by(limits) {
            return None;
        }
        let closed = |wanted: CounterMask| {
            wanted.is_subset(self.taken)
                && self.at(self.live.without(self.fresh)).all(|entry| {
                    entry.planned.is_none_or(|it| !wanted.contains(it))
                        || entry.constraint.counters.is_subset(wanted)
                })
        };
        let mut wanted = self.collected().map(|entry| entry.constraint.counters);
        wanted.find(|wanted| closed(*wanted)).map(|counters| {
            let events = counters.weight().wrapping_add(1);
            Shortage::Contended { events, counters }.into()
        })
    }

    /// The long way, which decides.
    #[cold]
    #[inline(never)]
    fn plan_anew(&mut self, limits: &Limits) -> Result<(), Refusal> {
        let (assignment, registers) = match self.solve(limits) {
            Err(refusal) if self.is_cut_by(limits) && self.solve(&Limits::NONE).is_ok() => {
                if self.wish.is_none() {
                    self.wish = self.claim_under(&limits.lasting());
                }
                return Err(refusal.for_the_moment());
            }
            solved => solved?,
        };
        // INVARIANT: All entries are planned, for the counters that become `taken`.
        self.taken = assignment.iter().collect();
        self.fresh = Slots::NONE;
        self.unsettled = Slots::NONE;
        for (slot, counter) in self.live.zip(assignment.iter()) {
            let Some(entry) = self.at_mut(slot) else {
                continue;
            };
            entry.planned = Some(counter);
            entry.planned_register = entry.requirement.and_then(|it| registers.find(it));
            if !entry.is_settled() {
                self.unsettled = self.unsettled.with(Slots::only(slot));
            }
        }
        Ok(())
    }

    /// Finds a counter for every event, within `limits` for what is new, and values for the extra
    /// registers.
    fn solve(&self, limits: &Limits) -> Result<(Assignment, RegisterValues), Refusal> {
        let mut registers = RegisterValues::NONE;
        if self.demanding != 0 {
            let wanted = self.entries();
            let wanted = wanted.filter_map(|it| Some((it.requirement?, it.planned_register)));
            registers = register_plan::plan(wanted, limits.registers)?;
        }
        let gp_limit = limits.gp(self.exclusive != 0);
        let gp_limit = gp_limit.max(self.taken.gp().weight());

        let mut problem = Problem::new(gp_limit).with_policy(self.policy);
        for entry in self.entries() {
            let mut constraint = entry.constraint;
            let has = entry.planned.map_or(CounterMask::EMPTY, CounterId::mask);
            constraint.counters = limits.counters(constraint) | has;
            let wish = entry.planned.or(entry.previous);
            if problem.push(constraint, wish).is_err() {
                return Err(Refusal::TooManyEvents);
            }
        }
        Ok((problem.solve()?, registers))
    }

    /// What the events, those that are not planned included, would claim under `limits`, if they fit.
    fn claim_under(&self, limits: &Limits) -> Option<Claim> {
        let (assignment, registers) = self.solve(limits).ok()?;
        let mut claim = Claim::default();
        for (entry, counter) in self.entries().zip(assignment.iter()) {
            claim.used.insert(counter);
            if entry.constraint.exclusive {
                claim.exclusive.insert(counter);
            }
        }
        claim.registers = registers;
        Some(claim)
    }

    /// What the events would claim if the core's other thread had none, together with the first group
    /// that was refused [for the moment](Refusal::is_for_the_moment) since this was last called;
    /// [`None`] if none was, or if it would not fit then either.
    pub fn take_wish(&mut self) -> Option<Claim> {
        self.wish.take()
    }

    /// Whether `limits` leave the events less than no limits do.
    fn is_cut_by(&self, limits: &Limits) -> bool {
        limits.gp(self.exclusive != 0) != u32::MAX
            || self.entries().any(|entry| {
                limits.counters(entry.constraint) != entry.constraint.counters
                    || (entry.requirement.is_some() && limits.registers != RegisterValues::NONE)
            })
    }

    /// Whether an event corrupts the sibling thread's counts.
    pub fn any_exclusive(&self) -> bool {
        self.exclusive != 0
    }

    /// Returns which of `counters` an event that is new would have to have one of to fit within
    /// `limits`, and for how many events that need a general-purpose counter there is room at most.
    ///
    /// These are the counters that are free, and those that an event would leave for one of them.
    /// Without them nothing fits; with them, it has to be [tried](Self::trial).
    pub fn reach(&self, counters: CounterMask, limits: &Limits) -> (CounterMask, u32) {
        let mut free = counters.without(limits.closed).without(self.taken);
        let mut room = free.gp().weight();
        let limit = limits.gp(self.exclusive != 0);
        if limit != u32::MAX {
            room = room.min(limit.saturating_sub(self.taken.gp().weight()));
            if room == 0 {
                free = free.fixed();
            }
        }
        if free.is_empty() {
            return (free, 0);
        }
        let mut reach = free;
        loop {
            let before = reach;
            for entry in self.entries() {
                let counter = entry
                    .planned
                    .filter(|_| entry.constraint.counters.intersects(reach));
                if let Some(counter) = counter {
                    reach.insert(counter);
                }
            }
            if reach == before {
                break;
            }
        }
        for entry in self.entries() {
            let leaves = entry.constraint.counters.intersects(free.fixed());
            if leaves && entry.planned.is_some_and(|it| counters.gp().contains(it)) {
                room = room.wrapping_add(1);
            }
        }
        (reach, room)
    }

    /// Begins to try what could be added. Whatever is tried, the roster is as it was when the
    /// result is dropped.
    pub fn trial(&mut self) -> Trial<'_, T> {
        // So that there is a slot for whoever there is room for, and nobody moves during the trial.
        self.close_gaps();
        let mut planned = [(None, None); SLOTS];
        for (saved, entry) in planned.iter_mut().zip(self.entries()) {
            *saved = (entry.planned, entry.planned_register);
        }
        Trial {
            before: self.live,
            fresh: core::mem::replace(&mut self.fresh, Slots::NONE),
            unsettled: self.unsettled,
            transaction: core::mem::replace(&mut self.transaction, true),
            pushed: Ok(()),
            taken: self.taken,
            planned,
            roster: self,
        }
    }
}

/// What could be added to a [`Roster`], one group after the other.
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
/// let on = |bits| Constraint::any_of(CounterMask::from_bits(bits));
/// let mut roster = Roster::new(&capabilities);
/// roster.add("pinned", on(0x4), None, &Limits::NONE).unwrap();
///
/// let mut trial = roster.trial();
/// trial.push("a", on(0xf), None);
/// trial.push("b", on(0x4), None);
/// assert!(trial.fits(&Limits::NONE).is_err());
/// trial.push("c", on(0xf), None);
/// assert!(trial.fits(&Limits::NONE).is_ok());
/// drop(trial);
/// assert_eq!(roster.len(), 1);
/// ```
pub struct Trial<'a, T: Copy + PartialEq> {
    roster: &'a mut Roster<T>,
    /// The slots of events that were there before.
    before: Slots,
    /// Whether there was room for the events of the group that is being tried.
    pushed: Result<(), Refusal>,
    /// What is to be as it was.
    fresh: Slots,
    unsettled: Slots,
    transaction: bool,
    taken: CounterMask,
    planned: [(Option<CounterId>, Option<ExtraRegister>); SLOTS],
}

impl<T: Copy + PartialEq> Trial<'_, T> {
    /// Adds an event to the group that is tried next. The handle does not matter.
    pub fn push(&mut self, event: T, demand: impl Into<Demand>, previous: Option<CounterId>) {
        let pushed = self.roster.push(event, demand.into(), previous);
        self.pushed = self.pushed.and(pushed);
    }

    /// As [`Roster::reach`], beside all that fitted.
    pub fn reach(&self, counters: CounterMask, limits: &Limits) -> (CounterMask, u32) {
        self.roster.reach(counters, limits)
    }

    /// Whether the group fits beside all that fitted before.
    ///
    /// # Errors
    ///
    /// As for [`Roster::commit`]. The group is forgotten then.
    pub fn fits(&mut self, limits: &Limits) -> Result<(), Refusal> {
        let pushed = core::mem::replace(&mut self.pushed, Ok(()));
        let fits = pushed.and_then(|()| self.roster.plan(limits));
        if fits.is_err() {
            self.roster.drop_fresh();
        }
        fits
    }

    /// As [`Roster::take_wish`].
    pub fn take_wish(&mut self) -> Option<Claim> {
        self.roster.take_wish()
    }
}

impl<T: Copy + PartialEq> Drop for Trial<'_, T> {
    fn drop(&mut self) {
        let roster = &mut *self.roster;
        roster.drop_all(roster.live.without(self.before));
        roster.transaction = self.transaction;
        // INVARIANT: As before, and so is what the entries have planned.
        roster.fresh = self.fresh;
        roster.unsettled = self.unsettled;
        roster.taken = self.taken;
        for (slot, (planned, register)) in self.before.zip(self.planned) {
            if let Some(entry) = roster.at_mut(slot) {
                entry.planned = planned;
                entry.planned_register = register;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::capabilities::{Cpuid, Leaf};

    const NONE: Limits = Limits::NONE;

    /// Four general-purpose counters, three fixed ones.
    fn roster() -> Roster<char> {
        let cpuid = Cpuid {
            leaf_0: Leaf {
                eax: 0xd,
                ..Leaf::default()
            },
            leaf_a: Leaf {
                eax: 0x0730_0403,
                edx: 0x603,
                ..Leaf::default()
            },
            ..Cpuid::default()
        };
        Roster::new(&Capabilities::decode(&cpuid, None).unwrap())
    }

    fn on(bits: u64) -> Constraint {
        Constraint::any_of(CounterMask::from_bits(bits))
    }

    fn gp(n: u8) -> CounterId {
        CounterId::gp(n).unwrap()
    }

    fn events(roster: &Roster<char>) -> String {
        roster.entries().map(|entry| entry.event).collect()
    }

    /// `a`, `b` and so on, on any general-purpose counter, settled.
    fn with_any(events: &str) -> Roster<char> {
        let mut roster = roster();
        for event in events.chars() {
            roster.add(event, on(0xf), None, &NONE).unwrap();
        }
        roster.settle();
        roster
    }

    fn state(roster: &Roster<char>) -> (Vec<Entry<char>>, bool) {
        (roster.entries().copied().collect(), roster.in_transaction())
    }

    /// The counters by the long way.
    fn solved(roster: &Roster<char>, limits: &Limits) -> Option<Vec<Option<CounterId>>> {
        let (assignment, _) = roster.solve(limits).ok()?;
        Some(assignment.iter().map(Some).collect())
    }

    #[test]
    fn closing_gaps_changes_nothing() {
        let seen = |roster: &Roster<char>| {
            (
                state(roster),
                roster.leaving().collect::<Vec<_>>(),
                roster.arriving().collect::<Vec<_>>(),
                roster.collected().copied().collect::<Vec<_>>(),
                roster.claim(),
            )
        };
        let mut roster = with_any("ab");
        let (mut moved, mut last) = (0, 0);
        // Who is first goes, and comes back as the last. On the way one moves, one is collected.
        for turn in 0..4 * SLOTS {
            let first = roster.entries().next().unwrap().event;
            roster.remove(first).unwrap();
            let wanted = on(if turn % 3 == 0 { 0x1 } else { 0xf });
            if turn % 2 == 0 {
                roster.begin();
            }
            roster.add(first, wanted, Some(gp(0)), &NONE).unwrap();
            last = last.max(roster.live.end());
            for commits in [false, true] {
                if commits {
                    roster.commit(&NONE).unwrap();
                }
                moved += usize::from(roster.leaving().next().is_some());
                let mut tidy = roster.clone();
                tidy.close_gaps();
                assert_eq!(tidy.live, Slots(0b11));
                assert_eq!(seen(&tidy), seen(&roster), "{turn}");
            }
            if turn % 5 == 0 {
                roster.settle();
            }
        }
        assert!(moved > 10 && last == SLOTS, "{moved} {last}");
    }

    #[test]
    fn the_short_ways_find_what_the_long_one_does() {
        let masks = [0x1, 0x6, 0xf, 0x1_0000_000f, 0x2_0000_0000];
        let wishes = [None, Some(gp(0)), Some(gp(1)), Some(gp(3))];
        let closing = NONE.closing(CounterMask::from_bits(0b1));
        let (mut short, mut long, mut refused) = (0, 0, 0);
        for limits in [NONE, closing, Limits { gp: 2, ..NONE }] {
            for policy in [Policy::Rpmu, Policy::Mainline] {
                for choice in 0..5 * 5 * 5 * 5 * 4 * 4 {
                    let mask = |n| on(masks[choice / 5usize.pow(n) % 5]);
                    let wish = |n| wishes[choice / 625 / 4usize.pow(n) % 4];
                    let mut roster = roster().with_policy(policy);
                    for (n, event) in ['a', 'b'].into_iter().enumerate() {
                        let _ = roster.add(event, mask(n as u32), None, &NONE);
                    }
                    roster.begin();
                    for (n, event) in ['c', 'd'].into_iter().enumerate() {
                        let n = n as u32;
                        roster.add(event, mask(n + 2), wish(n), &limits).unwrap();
                    }
                    let expected = solved(&roster, &limits);
                    if roster.clone().plan_beside(&limits) {
                        short += 1;
                    } else if let Some(refusal) = roster.refuse_beside(&limits) {
                        // With fixed counters among them, the long way may name others.
                        let same = roster.clone().plan_anew(&limits) == Err(refusal);
                        let fixed = (0..4).any(|n| !mask(n).counters.fixed().is_empty());
                        assert!(
                            same || (fixed && expected.is_none()),
                            "{choice} {refusal:?}"
                        );
                        refused += 1;
                    } else {
                        long += 1;
                    }
                    let committed = roster.commit(&limits).is_ok();
                    let planned = roster.entries().map(|entry| entry.planned()).collect();
                    let found = committed.then_some(planned);
                    assert_eq!(found, expected, "{choice} {policy:?} {limits:?}");
                }
            }
        }
        let times = [short, long, refused];
        assert!(times.iter().all(|times| *times > 1000), "{times:?}");
    }

    #[test]
    fn settled_events_neither_leave_nor_arrive() {
        let roster = with_any("ab");
        assert_eq!(roster.leaving().count() + roster.arriving().count(), 0);
        assert_eq!(roster.get('b').unwrap().placed(), Some(gp(1)));
    }

    #[test]
    fn a_fifth_event_is_refused_and_changes_nothing() {
        let mut roster = with_any("abcd");
        let before = state(&roster);
        assert!(matches!(
            roster.add('e', on(0xf), None, &NONE),
            Err(Refusal::DoesNotFit(_))
        ));
        assert_eq!(state(&roster), before);
    }

    #[test]
    fn room_ends_with_the_counters() {
        let mut roster = with_any("abcd");
        roster.begin();
        for event in "efg".chars() {
            roster.add(event, on(0x7_0000_0000), None, &NONE).unwrap();
        }
        let refused = roster.add('h', on(0xf), None, &NONE);
        assert_eq!(refused, Err(Refusal::TooManyEvents));
        assert_eq!(events(&roster), "abcdefg");
    }

    #[test]
    fn removal_keeps_the_order_and_the_counters() {
        let mut roster = with_any("abcd");
        let removed = roster.remove('b').unwrap();
        assert_eq!(removed.placed(), Some(gp(1)));
        assert_eq!(events(&roster), "acd");
        assert_eq!(roster.remove('b'), None);
        assert_eq!(roster.len(), 3);
        // Who is left stays put, and the gap is used.
        roster.add('e', on(0xf), Some(gp(1)), &NONE).unwrap();
        assert_eq!(roster.leaving().count(), 0);
        assert_eq!(roster.arriving().collect::<Vec<_>>(), [('e', gp(1))]);
    }

    #[test]
    fn a_removed_event_comes_back_to_its_counter() {
        let mut roster = with_any("abc");
        for event in "abc".chars() {
            roster.remove(event).unwrap();
        }
        // In another order than before.
        for (event, counter) in [('c', gp(2)), ('a', gp(0)), ('b', gp(1))] {
            roster.add(event, on(0xf), Some(counter), &NONE).unwrap();
            assert_eq!(roster.get(event).unwrap().planned(), Some(counter));
        }
    }

    #[test]
    fn a_group_is_placed_as_a_whole() {
        let mut roster = with_any("a");
        roster.begin();
        roster.add('b', on(0x1), None, &NONE).unwrap();
        roster.add('c', on(0x2), None, &NONE).unwrap();
        // Nothing is planned before the commit.
        assert_eq!(roster.arriving().count(), 0);
        roster.commit(&NONE).unwrap();
        assert!(!roster.in_transaction());
        let leaving: Vec<_> = roster.leaving().collect();
        assert_eq!(leaving, [('a', gp(0))]);
        let arriving: Vec<_> = roster.arriving().collect();
        assert_eq!(arriving, [('a', gp(2)), ('b', gp(0)), ('c', gp(1))]);
    }

    #[test]
    fn a_group_that_does_not_fit_leaves_no_trace() {
        let mut roster = with_any("ab");
        let before = state(&roster);
        roster.begin();
        roster.add('c', on(0x4), None, &NONE).unwrap();
        roster.add('d', on(0x4), None, &NONE).unwrap();
        assert!(matches!(roster.commit(&NONE), Err(Refusal::DoesNotFit(_))));
        assert!(roster.in_transaction());
        // What perf core does then: remove them, in any order, and cancel.
        assert_eq!(roster.remove('c').unwrap().placed(), None);
        roster.cancel();
        assert_eq!(state(&roster), before);
        roster.cancel();
        assert_eq!(state(&roster), before);
    }

    #[test]
    fn an_older_event_may_go_during_a_transaction() {
        let mut roster = with_any("ab");
        roster.begin();
        roster.add('c', on(0xf), None, &NONE).unwrap();
        roster.remove('a').unwrap();
        roster.cancel();
        assert_eq!(events(&roster), "b");
    }

    #[test]
    fn a_plan_may_change_before_it_is_applied() {
        let mut roster = roster();
        roster.add('a', on(0xf), None, &NONE).unwrap();
        roster.add('b', on(0x1), None, &NONE).unwrap();
        // 'a' was planned for counter 0, and never was there.
        assert_eq!(roster.leaving().count(), 0);
        let arriving: Vec<_> = roster.arriving().collect();
        assert_eq!(arriving, [('a', gp(1)), ('b', gp(0))]);
    }

    fn exclusive_on(bits: u64) -> Constraint {
        Constraint {
            exclusive: true,
            ..on(bits)
        }
    }

    #[test]
    fn limits_decide_what_may_be_taken() {
        let mut roster = with_any("a");
        let limits = Limits {
            closed: CounterMask::from_bits(0b0010),
            closed_to_exclusive: CounterMask::from_bits(0b0110),
            ..NONE
        };
        roster.add('b', exclusive_on(0xf), None, &limits).unwrap();
        roster.add('c', on(0xf), None, &limits).unwrap();
        let counters: Vec<_> = roster.entries().map(|entry| entry.planned()).collect();
        assert_eq!(counters, [Some(gp(0)), Some(gp(3)), Some(gp(2))]);
        // Counter 1 is free, and closed.
        let refused = roster.add('d', on(0xf), None, &limits);
        assert!(matches!(refused, Err(Refusal::Limited(_))));
        // With the limits or without, five do not fit.
        roster.add('d', on(0xf), None, &NONE).unwrap();
        let refused = roster.add('e', on(0xf), None, &limits);
        assert!(matches!(refused, Err(Refusal::DoesNotFit(_))));
    }

    #[test]
    fn what_an_event_has_is_not_taken_from_it() {
        let mut roster = with_any("abc");
        let limits = Limits {
            closed: CounterMask::from_bits(0b0111),
            gp: 2,
            ..NONE
        };
        let refused = roster.add('d', on(0xf), None, &limits);
        assert!(matches!(refused, Err(Refusal::Limited(_))));
        // A fixed counter is not a third of two.
        roster.add('e', on(0x1_0000_000f), None, &limits).unwrap();
        assert_eq!(roster.leaving().count(), 0);
        // Who goes does not come back.
        roster.remove('a').unwrap();
        let refused = roster.add('a', on(0xf), Some(gp(0)), &limits);
        assert!(matches!(refused, Err(Refusal::Limited(_))));
    }

    #[test]
    fn half_of_the_counters_with_an_exclusive_event() {
        let mut roster = with_any("a");
        let half = Limits::beside_sibling(4);
        roster.add('b', on(0xf), None, &half).unwrap();
        let refused = roster.add('c', exclusive_on(0xf), None, &half);
        assert!(matches!(refused, Err(Refusal::Limited(_))));
        roster.remove('a').unwrap();
        roster.add('c', exclusive_on(0xf), None, &half).unwrap();
        let refused = roster.add('d', on(0xf), None, &half);
        assert!(matches!(refused, Err(Refusal::Limited(_))));
    }

    #[test]
    fn a_claim_follows_the_plan() {
        let mut roster = with_any("a");
        let claim = |used, exclusive| Claim {
            used: CounterMask::from_bits(used),
            exclusive: CounterMask::from_bits(exclusive),
            ..Claim::default()
        };
        // 'a' moves from counter 0 to 1, and back again.
        roster.add('b', exclusive_on(0x1), None, &NONE).unwrap();
        assert_eq!(roster.claim(), claim(0b11, 0b01));
        roster.remove('b').unwrap();
        assert_eq!(roster.claim(), claim(0b10, 0));
        roster.add('c', exclusive_on(0x2), None, &NONE).unwrap();
        assert_eq!(roster.claim(), claim(0b11, 0b10));
    }

    #[test]
    fn events_of_an_open_transaction_claim_nothing() {
        let mut roster = with_any("a");
        let before = roster.claim();
        roster.begin();
        roster.add('b', exclusive_on(0xf), None, &NONE).unwrap();
        assert_eq!(roster.claim(), before);
        roster.commit(&NONE).unwrap();
        assert_ne!(roster.claim(), before);
    }

    /// OFFCORE_RESPONSE_0 or _1 with a value.
    fn offcore(register: ExtraRegister, value: u64) -> Demand {
        let alternative = match register {
            ExtraRegister::OffcoreResponse0 => ExtraRegister::OffcoreResponse1,
            _ => ExtraRegister::OffcoreResponse0,
        };
        Demand {
            requirement: Some(Requirement {
                value,
                register,
                alternative: Some(alternative),
            }),
            ..on(0xf).into()
        }
    }

    use ExtraRegister::{OffcoreResponse0, OffcoreResponse1};

    fn register(roster: &Roster<char>, event: char) -> Option<ExtraRegister> {
        roster.get(event).unwrap().planned_register()
    }

    #[test]
    fn two_values_have_registers_and_a_third_has_none() {
        let mut roster = with_any("a");
        for (event, value) in [('b', 1), ('c', 2), ('d', 1)] {
            let demand = offcore(OffcoreResponse0, value);
            roster.add(event, demand, None, &NONE).unwrap();
        }
        assert_eq!(register(&roster, 'a'), None);
        assert_eq!(register(&roster, 'b'), Some(OffcoreResponse0));
        assert_eq!(register(&roster, 'c'), Some(OffcoreResponse1));
        assert_eq!(register(&roster, 'd'), Some(OffcoreResponse0));
        let claimed = roster.claim().registers;
        assert_eq!(claimed.get(OffcoreResponse0), Some(1));
        assert_eq!(claimed.get(OffcoreResponse1), Some(2));
        roster.remove('a');
        let before = state(&roster);
        let third = offcore(OffcoreResponse1, 3);
        let refused = roster.add('e', third, None, &NONE);
        assert_eq!(refused, Err(Refusal::ExtraRegisterTaken));
        assert_eq!(state(&roster), before);
        // When the second has gone, there is room.
        roster.remove('c');
        roster.add('e', third, None, &NONE).unwrap();
        assert_eq!(register(&roster, 'e'), Some(OffcoreResponse1));
    }

    #[test]
    fn an_event_that_gets_another_register_is_programmed_anew() {
        let mut roster = roster();
        roster
            .add('a', offcore(OffcoreResponse0, 1), None, &NONE)
            .unwrap();
        roster.settle();
        let no_choice = Demand {
            requirement: Some(Requirement {
                value: 2,
                register: OffcoreResponse0,
                alternative: None,
            }),
            ..on(0xf).into()
        };
        roster.add('b', no_choice, None, &NONE).unwrap();
        assert_eq!(register(&roster, 'a'), Some(OffcoreResponse1));
        // On the counter that it has.
        assert_eq!(roster.leaving().collect::<Vec<_>>(), [('a', gp(0))]);
        let arriving: Vec<_> = roster.arriving().collect();
        assert_eq!(arriving, [('a', gp(0)), ('b', gp(1))]);
        roster.settle();
        assert_eq!(roster.leaving().count() + roster.arriving().count(), 0);
    }

    #[test]
    fn what_the_sibling_holds_limits_for_the_moment() {
        let mut held = RegisterValues::NONE;
        held.place(OffcoreResponse0, 1).unwrap();
        held.place(OffcoreResponse1, 2).unwrap();
        let limits = Limits {
            registers: held,
            ..NONE
        };
        let mut roster = roster();
        let third = offcore(OffcoreResponse0, 3);
        let refused = roster.add('a', third, None, &limits);
        assert_eq!(refused, Err(Refusal::ExtraRegisterLimited));
        let same = offcore(OffcoreResponse0, 2);
        roster.add('b', same, None, &limits).unwrap();
        assert_eq!(register(&roster, 'b'), Some(OffcoreResponse1));
        // The sibling's own do not become this thread's.
        assert_eq!(roster.claim().registers.get(OffcoreResponse0), None);
        // One that can never be has nobody to wait for.
        roster.begin();
        for (event, value) in [('c', 1), ('d', 4)] {
            let demand = offcore(OffcoreResponse0, value);
            roster.add(event, demand, None, &limits).unwrap();
        }
        assert_eq!(roster.commit(&limits), Err(Refusal::ExtraRegisterTaken));
    }

    #[test]
    fn a_trial_leaves_nothing_behind() {
        let mut roster = with_any("ab");
        let before: Vec<_> = roster.entries().copied().collect();
        roster.begin();
        let mut trial = roster.trial();
        // "a" would have to move for this one.
        trial.push('c', on(0x1), None);
        assert_eq!(trial.fits(&NONE), Ok(()));
        trial.push('d', on(0xf), None);
        trial.push('e', on(0x1), None);
        assert!(trial.fits(&NONE).is_err());
        // There is room for what is left of the group that does not fit.
        trial.push('d', on(0xf), None);
        assert_eq!(trial.fits(&NONE), Ok(()));
        for event in 'f'..='z' {
            trial.push(event, on(0xf), None);
        }
        assert_eq!(trial.fits(&NONE), Err(Refusal::TooManyEvents));
        trial.push('f', on(1 << 32), None);
        assert_eq!(trial.fits(&NONE), Ok(()));
        drop(trial);
        assert!(roster.in_transaction());
        assert!(roster.entries().copied().eq(before));
        roster.add('c', on(0xf), None, &NONE).unwrap();
        roster.cancel();
        assert_eq!(events(&roster), "ab");
    }
}
