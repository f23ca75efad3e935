// SPDX-License-Identifier: GPL-2.0

//! Counters that equal events share.

use super::{
    CpuSchedule,
    Entry,
    SlotSet,
    SLOT_COUNT, //
};
use crate::logic::model::demand::{
    Demand,
    Key, //
};

impl<T: Copy + PartialEq> CpuSchedule<T> {
    /// Returns whether the schedule may have an event that is equal to one with this `key`.
    #[inline]
    pub const fn may_have_equal(&self, key: Key) -> bool {
        key.is_in(self.keys)
    }

    /// Returns the bits of the keys of the events that others can ride on ([`Key::bit`]), and
    /// possibly of some that have left.
    pub const fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns the entry of the event on whose counter an event with this `demand` can ride, also
    /// within a txn; [`None`] if there is no such event.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::{Capabilities, Cpuid};
    /// use logic::model::{constraint::Constraint, demand::{Demand, Key}};
    /// use logic::regs::{counter::CounterMask, event_select::EventSelect, global::CountsIn};
    /// use logic::sched::{cpu_schedule::CpuSchedule, limits::Limits};
    /// # let cpuid = Cpuid::intel(3, 4, 3);
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// let mut schedule = CpuSchedule::new(&capabilities);
    /// let event = |code, samples| Demand {
    ///     key: Key::new(EventSelect::event(code, 0), CountsIn::EVERYWHERE, samples),
    ///     ..Constraint::any_of(CounterMask::first_gp(4)).into()
    /// };
    /// schedule.add("branches", event(0xc4, false), None, &Limits::NONE).unwrap();
    /// let equal = |event| schedule.equal_event(&event).map(|entry| entry.event);
    /// assert_eq!(equal(event(0xc4, true)), Some("branches"));
    /// assert_eq!(equal(event(0xc5, false)), None);
    ///
    /// // Only one of the events on a counter is sampled.
    /// schedule.set_samples("branches", true);
    /// let equal = |event| schedule.equal_event(&event).map(|entry| entry.event);
    /// assert_eq!(equal(event(0xc4, true)), None);
    /// assert_eq!(equal(event(0xc4, false)), Some("branches"));
    /// ```
    #[inline]
    pub fn equal_event(&self, demand: &Demand) -> Option<&Entry<T>> {
        let mut entries = self.entries();
        let first = entries.find(|entry| demand.key.is_equal(entry.key))?;
        // Almost always, an equal key means an equal demand.
        if demand.can_ride_on(&first.demand()) {
            return Some(first);
        }
        self.next_equal(demand)
    }

    #[cold]
    #[inline(never)]
    fn next_equal(&self, demand: &Demand) -> Option<&Entry<T>> {
        let mut entries = self.entries();
        entries.find(|entry| demand.can_ride_on(&entry.demand()))
    }

    /// Forgets the keys of events that have left, so that
    /// [`may_have_equal`](Self::may_have_equal) finds them no more.
    #[cold]
    #[inline(never)]
    pub fn forget_keys(&mut self) {
        // INVARIANT: These are the bits of all entries' keys.
        self.keys = self.entries().fold(0, |keys, it| keys | it.key.bit());
    }

    /// Returns the event of another entry, on whose counter `event` and its riders can ride;
    /// [`None`] if there is no such entry, or one of the two has no planned counter.
    ///
    /// Two entries are equal if both were sampled, and the sampled event of one has left.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::{Capabilities, Cpuid};
    /// use logic::model::{constraint::Constraint, demand::{Demand, Key}};
    /// use logic::regs::{counter::CounterMask, event_select::EventSelect, global::CountsIn};
    /// use logic::sched::{cpu_schedule::CpuSchedule, limits::Limits};
    /// # let cpuid = Cpuid::intel(3, 4, 3);
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// let mut schedule = CpuSchedule::new(&capabilities);
    /// let sampled = Demand {
    ///     key: Key::new(EventSelect::event(0xc4, 0), CountsIn::EVERYWHERE, true),
    ///     ..Constraint::any_of(CounterMask::first_gp(4)).into()
    /// };
    /// schedule.add("first", sampled, None, &Limits::NONE).unwrap();
    /// schedule.add("second", sampled, None, &Limits::NONE).unwrap();
    /// assert_eq!(schedule.equal_to("first"), None);
    ///
    /// // The sampled event of the first entry leaves.
    /// schedule.set_samples("first", false);
    /// assert_eq!(schedule.equal_to("first"), Some("second"));
    /// assert_eq!(schedule.equal_to("second"), Some("first"));
    /// ```
    pub fn equal_to(&self, event: T) -> Option<T> {
        let (_, entry) = self.find(event)?;
        entry.planned?;
        let demand = entry.demand();
        let mut others = self.entries().filter(|other| other.event != event);
        let equal =
            others.find(|other| other.planned.is_some() && demand.can_ride_on(&other.demand()));
        Some(equal?.event)
    }

    /// Returns an event with a planned counter that could ride on the counter of an event with
    /// branch stacks instead; [`None`] if there is none.
    ///
    /// An event with branch stacks rides on no counter: if it is added while an equal event is on
    /// the CPU, it gets a counter of its own.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::{Capabilities, Cpuid};
    /// use logic::model::{constraint::Constraint, demand::{Demand, Key}};
    /// use logic::regs::{counter::CounterMask, event_select::EventSelect, global::CountsIn};
    /// use logic::sched::{cpu_schedule::CpuSchedule, limits::Limits};
    /// # let cpuid = Cpuid::intel(3, 4, 3);
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// let mut schedule = CpuSchedule::new(&capabilities);
    /// let event = |code, samples, lbr_select| Demand {
    ///     key: Key::new(EventSelect::event(code, 0), CountsIn::EVERYWHERE, samples),
    ///     lbr_select,
    ///     ..Constraint::any_of(CounterMask::first_gp(4)).into()
    /// };
    /// schedule.add("counted", event(0xc4, false, None), None, &Limits::NONE).unwrap();
    /// schedule.add("other", event(0xc5, false, None), None, &Limits::NONE).unwrap();
    /// assert_eq!(schedule.equal_to_branches(), None);
    /// schedule.add("branches", event(0xc4, true, Some(1)), None, &Limits::NONE).unwrap();
    /// assert_eq!(schedule.equal_to_branches(), Some("counted"));
    /// assert_eq!(schedule.equal_to("counted"), Some("branches"));
    ///
    /// // Both are sampled.
    /// schedule.set_samples("counted", true);
    /// assert_eq!(schedule.equal_to_branches(), None);
    /// ```
    #[inline]
    pub fn equal_to_branches(&self) -> Option<T> {
        match self.demanding {
            0 => None,
            _ => self.find_equal_to_branches(),
        }
    }

    #[cold]
    #[inline(never)]
    fn find_equal_to_branches(&self) -> Option<T> {
        let mut all = self.entries().filter(|entry| entry.lbr_select.is_some());
        all.find_map(|branches| {
            branches.planned?;
            let demand = branches.demand();
            let mut others = self.entries();
            let equal = others.find(|it| {
                it.planned.is_some() && it.key.counts_only() && it.demand().can_ride_on(&demand)
            });
            Some(equal?.event)
        })
    }

    /// Returns the slot of the event on whose counter an event with this `demand` would ride in a
    /// [trial](Self::trial). `sampled` are the slots whose counters sampled events of the trial
    /// already ride on.
    pub(super) fn equal_slot(&self, demand: &Demand, sampled: SlotSet) -> Option<usize> {
        for slot in self.live {
            let Some(entry) = &self.entries[slot & (SLOT_COUNT - 1)] else {
                continue;
            };
            // Events that an open txn had collected before the trial have no counter.
            let is_there = entry.planned.is_some() || self.fresh.contains(slot);
            let is_sampled = demand.key.samples() && sampled.contains(slot);
            if is_there && !is_sampled && demand.can_ride_on(&entry.demand()) {
                return Some(slot);
            }
        }
        None
    }

    /// Returns whether an event with this `demand` could ride on the counter of one of the entries
    /// in `among`, which has a bit for each entry, in the order of [`entries`](Self::entries). If
    /// the event is sampled, removes that entry from `among_sampled`, the entries on whose counters
    /// sampled events could ride.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::{Capabilities, Cpuid};
    /// use logic::model::{constraint::Constraint, demand::{Demand, Key}};
    /// use logic::regs::{counter::CounterMask, event_select::EventSelect, global::CountsIn};
    /// use logic::sched::{cpu_schedule::CpuSchedule, limits::Limits};
    /// # let cpuid = Cpuid::intel(3, 4, 3);
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// let mut schedule = CpuSchedule::new(&capabilities);
    /// let branches = |samples| Demand {
    ///     key: Key::new(EventSelect::event(0xc4, 0), CountsIn::EVERYWHERE, samples),
    ///     ..Constraint::any_of(CounterMask::first_gp(4)).into()
    /// };
    /// schedule.add("branches", branches(false), None, &Limits::NONE).unwrap();
    /// let mut among_sampled = 1;
    /// assert!(schedule.could_ride(&branches(true), 1, &mut among_sampled));
    /// // Only one of the events on a counter is sampled.
    /// assert!(!schedule.could_ride(&branches(true), 1, &mut among_sampled));
    /// assert!(schedule.could_ride(&branches(false), 1, &mut among_sampled));
    /// assert!(!schedule.could_ride(&branches(false), 0, &mut 0));
    /// ```
    #[inline(never)]
    pub fn could_ride(&self, demand: &Demand, among: u64, among_sampled: &mut u64) -> bool {
        let samples = demand.key.samples();
        let among = if samples { *among_sampled } else { among };
        let mut bit = 1u64;
        for entry in self.entries() {
            if among & bit != 0 && demand.can_ride_on(&entry.demand()) {
                if samples {
                    *among_sampled &= !bit;
                }
                return true;
            }
            bit = bit.wrapping_shl(1);
        }
        false
    }

    /// Records whether `event`, or an event that rides on its counter, is sampled.
    pub fn set_samples(&mut self, event: T, samples: bool) {
        if let Some((slot, _)) = self.find(event) {
            if let Some(entry) = self.at_mut(slot) {
                entry.key = entry.key.with_samples(samples);
            }
        }
    }

    /// Passes the entry of the event `from`, with its counter, to the event `to`, which rides on
    /// that counter. `demand` is the demand of `to`. `to` takes the place of `from` in the order.
    /// Returns `false` if `from` is not in the schedule.
    pub fn hand_over(&mut self, from: T, to: T, demand: &Demand) -> bool {
        let Some((slot, _)) = self.find(from) else {
            return false;
        };
        let Some(entry) = self.at_mut(slot) else {
            return false;
        };
        let before = entry.demand().needs_register();
        entry.event = to;
        // All else is equal.
        entry.lbr_select = demand.lbr_select;
        let after = entry.demand().needs_register();
        // INVARIANT: The event `from`, with its demand, has left.
        self.demanding = self
            .demanding
            .wrapping_sub(before.into())
            .wrapping_add(after.into());
        true
    }
}
