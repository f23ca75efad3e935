// SPDX-License-Identifier: GPL-2.0

//! Which counters an event may use.
//!
//! A model's table says it for the events that are not free to use every counter: a slice of
//! [`EventConstraint`]s, of which the first match counts. What comes out of a look-up, cut to the
//! counters that the machine has, is a [`Constraint`]; that is all the scheduler sees.

use crate::logic::regs::{
    counter::{CounterId, CounterMask},
    event_select::EventSelect,
};

/// The counters one event may use on this machine, as the scheduler sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// The counters. Empty where the event cannot be counted at all.
    pub counters: CounterMask,
    /// Whether a greedy choice among the counters can be a wrong one, because another event's
    /// counters overlap with these without containing them. The scheduler remembers where it had
    /// a choice for such an event, and comes back.
    pub overlap: bool,
    /// Whether the event corrupts the sibling thread's counter of the same number (errata BJ122,
    /// BV98, HSD29). Recorded here for the scheduling between the threads of a core.
    pub exclusive: bool,
    /// Whether the event takes the counter behind its own as well (large increments on AMD's
    /// CPUs). The counters are the first ones then, even; the second ones have to be there and free.
    pub pair: bool,
}

impl Constraint {
    /// Any of `counters`, with nothing special about it.
    pub const fn any_of(counters: CounterMask) -> Self {
        Self {
            counters,
            overlap: false,
            exclusive: false,
            pair: false,
        }
    }

    /// What either of two events may use, and what is special about one of them.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self {
            counters: self.counters.union(other.counters),
            overlap: self.overlap | other.overlap,
            exclusive: self.exclusive | other.exclusive,
            pair: self.pair | other.pair,
        }
    }

    /// Whether some counter can count the event.
    pub const fn is_satisfiable(self) -> bool {
        !self.counters.is_empty()
    }
}

/// One line of a model's table: these events, these counters.
///
/// An event select `config` matches if `((config & mask) - code) <= size`, in unsigned wrapping
/// arithmetic. Mainline: `constraint_match()`, `arch/x86/events/perf_event.h:68-71`.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::sched::constraint::{first_match, EventConstraint};
/// use logic::regs::event_select::EventSelect;
///
/// const TABLE: &[EventConstraint] = &[
///     EventConstraint::fixed(0x003c, 1),
///     EventConstraint::event_and_umask(0x0148, 0x4),
///     EventConstraint::event(0xd0, 0xf),
/// ];
/// let find = |config| first_match(TABLE, EventSelect::from_bits(config));
///
/// assert_eq!(find(0x82d0), Some(&TABLE[2]));
/// // The privilege levels play no part, a counter mask rules a fixed counter out.
/// assert_eq!(find(0x3_003c), Some(&TABLE[0]));
/// assert_eq!(find(0x0100_003c), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventConstraint {
    code: u64,
    size: u64,
    mask: u64,
    counters: CounterMask,
    overlap: bool,
    exclusive: bool,
    metric: Option<u8>,
}

impl EventConstraint {
    /// What keeps an event off a fixed counter: all that selects or filters, except the privilege
    /// levels and any-thread (`FIXED_EVENT_FLAGS`, `arch/x86/events/perf_event.h:334`).
    const FIXED_MASK: u64 = EventSelect::RAW | EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;

    /// `counters` has general-purpose counter n at bit n.
    const fn new(code: u64, size: u64, mask: u64, counters: u64) -> Self {
        assert!(code & !mask == 0, "the code has bits that the mask drops");
        Self {
            code,
            size,
            mask,
            counters: CounterMask::from_bits(counters),
            overlap: false,
            exclusive: false,
            metric: None,
        }
    }

    /// The events from `first` to `last` under `mask`, both included, in a table of precise events.
    pub(in crate::logic) const fn masked(first: u64, last: u64, mask: u64, counters: u64) -> Self {
        Self::new(first, last - first, mask, counters)
    }

    /// The event `code` (event code and unit mask) counts on fixed counter `n`, and on every
    /// general-purpose counter, unless `code` is a pseudo code: one with event code 0, for an event
    /// that only the fixed counter has.
    pub const fn fixed(code: u64, n: u8) -> Self {
        match CounterId::fixed(n) {
            Some(counter) => Self::new(code, 0, Self::FIXED_MASK, counter.mask().bits()),
            None => panic!("no such fixed counter"),
        }
    }

    /// Every event with this event code, whatever its unit mask.
    pub const fn event(code: u8, counters: u64) -> Self {
        Self::new(code as u64, 0, EventSelect::EVENT, counters)
    }

    /// Every event with an event code from `first` to `last`, both included.
    pub const fn events(first: u8, last: u8, counters: u64) -> Self {
        assert!(first < last, "an empty range");
        let size = (last - first) as u64;
        Self::new(first as u64, size, EventSelect::EVENT, counters)
    }

    /// Exactly this event: unit mask in bits 8-15, event code in bits 0-7.
    pub const fn event_and_umask(code: u64, counters: u64) -> Self {
        Self::new(code, 0, EventSelect::CODE, counters)
    }

    /// Exactly this event with exactly this counter mask and inversion: the code's bits 23-31. Edge
    /// and any-thread do not matter.
    pub const fn event_and_cmask(code: u64, counters: u64) -> Self {
        let mask = EventSelect::CODE | EventSelect::CMASK | EventSelect::INV;
        Self::new(code, 0, mask, counters)
    }

    /// Every event with this event code and at least the one unit mask bit set: event code in bits
    /// 0-7, the bit among 8-15.
    pub const fn event_and_umask_bit(code: u64, counters: u64) -> Self {
        assert!(
            (code & EventSelect::UMASK).is_power_of_two(),
            "not one unit mask bit"
        );
        Self::new(code, 0, EventSelect::EVENT | code, counters)
    }

    /// The event `code` is share `n` of the topdown slots, read from PERF_METRICS: it takes no
    /// counter of its own, and cannot be had without that register.
    ///
    /// Mainline has a pseudo counter 48 + n for it, `METRIC_EVENT_CONSTRAINT`,
    /// `arch/x86/events/perf_event.h:486`.
    pub const fn metric(code: u64, n: u8) -> Self {
        let mut this = Self::new(code, 0, EventSelect::CODE, 0);
        this.metric = Some(n);
        this
    }

    /// Which share of the topdown slots the entry is about, if it is about one.
    pub const fn metric_index(&self) -> Option<u8> {
        self.metric
    }

    /// As [`event`](Self::event), and corrupting the sibling thread's counter.
    pub const fn exclusive_event(code: u8, counters: u64) -> Self {
        Self::event(code, counters).exclusive()
    }

    /// Marks the entry as one whose events corrupt the sibling thread's counter.
    #[must_use]
    pub(in crate::logic) const fn exclusive(mut self) -> Self {
        self.exclusive = true;
        self
    }

    /// Marks the entry as one whose counters overlap with another's; see [`Constraint::overlap`].
    pub const fn overlapping(mut self) -> Self {
        self.overlap = true;
        self
    }

    /// Whether the entry is for an event that only a fixed counter has, under a code that no
    /// event select knows: event code 0, unit mask n + 1 for fixed counter n (0x0300 is
    /// CPU_CLK_UNHALTED.REF_TSC). Mainline: `use_fixed_pseudo_encoding()`.
    const fn is_pseudo_code(&self) -> bool {
        self.code & EventSelect::EVENT == 0
    }

    /// Whether the entry is for an event with a fixed counter.
    const fn is_fixed(&self) -> bool {
        self.mask == Self::FIXED_MASK
    }

    /// Whether the entry names counters, and none but those in `counters`.
    pub(in crate::logic) const fn is_within(&self, counters: CounterMask) -> bool {
        !self.counters.is_empty() && self.counters.is_subset(counters)
    }

    /// The lowest event select that the entry matches.
    pub const fn code(&self) -> u64 {
        self.code
    }

    /// Whether the entry speaks of the event `select`.
    pub const fn matches(&self, select: EventSelect) -> bool {
        (select.bits() & self.mask).wrapping_sub(self.code) <= self.size
    }

    /// The entry on a machine with the counters `present`.
    ///
    /// An event with a fixed counter may use every general-purpose counter too, unless the code
    /// is one that only the fixed counter understands. Mainline:
    /// `intel_pmu_check_event_constraints()`, `arch/x86/events/intel/core.c:7711-7755`.
    pub const fn resolve(&self, present: CounterMask) -> Constraint {
        let wanted = if self.is_fixed() && !self.is_pseudo_code() {
            self.counters.union(present.gp())
        } else {
            self.counters
        };
        Constraint {
            counters: wanted.intersection(present),
            overlap: self.overlap,
            exclusive: self.exclusive,
            pair: false,
        }
    }

    /// Whether every event that `other` matches is matched by this entry too.
    ///
    /// Exact for entries whose size runs over the event code only, which is all that the
    /// constructors make.
    pub(in crate::logic) const fn covers(&self, other: &Self) -> bool {
        if self.mask & other.mask != self.mask {
            return false;
        }
        let mut step = 0;
        while step <= other.size {
            if !self.matches(EventSelect::from_bits(other.code + step)) {
                return false;
            }
            step += 1;
        }
        true
    }
}

/// The first entry that speaks of `select`; `None` means that any general-purpose counter will do.
pub fn first_match(table: &[EventConstraint], select: EventSelect) -> Option<&EventConstraint> {
    table.iter().find(|entry| entry.matches(select))
}

/// The table, if it is right for a model that can have `counters`. A wrong one does not compile.
///
/// - No entry is shadowed by an earlier one: it could never match.
/// - Every entry but a metric's names a counter, and none that a machine of this model cannot have.
/// - The overlap flag is set exactly where it is needed: where some other entry of at least the
///   same weight shares a counter with this one without containing it, and the scheduler, which
///   takes the lowest free counter, could take a shared one while another is left. (Of 0x0f and
///   0xfe, the first needs no flag: its counter 0, which the second cannot use, comes first.) Fixed
///   counters do not count here, because the scheduler tries them first, and no two events share
///   one.
///
/// # Panics
///
/// When the table is wrong; so call it in a constant.
///
/// ```compile_fail
/// # use rpmu_logic::logic;
/// use logic::sched::constraint::{checked, EventConstraint};
/// use logic::regs::counter::CounterMask;
///
/// // The second line can never match.
/// const TABLE: &[EventConstraint] = checked(
///     CounterMask::first_gp(8),
///     &[EventConstraint::event(0xa3, 0xf), EventConstraint::event_and_umask(0x04a3, 0x4)],
/// );
/// # let _ = TABLE;
/// ```
pub const fn checked(counters: CounterMask, table: &[EventConstraint]) -> &[EventConstraint] {
    let mut i = 0;
    while i < table.len() {
        let entry = &table[i];
        assert!(
            entry.counters.is_empty() == entry.metric.is_some(),
            "an entry without a counter"
        );
        assert!(
            entry.counters.is_subset(counters),
            "a counter that the model does not have"
        );

        let mut overlaps = false;
        let mut j = 0;
        while j < table.len() {
            let other = &table[j];
            assert!(
                j >= i || !other.covers(entry),
                "an entry that an earlier one shadows"
            );
            overlaps |= can_mislead(entry.counters, other.counters);
            j += 1;
        }
        assert!(overlaps == entry.overlap, "a wrong overlap flag");
        i += 1;
    }
    table
}

/// Whether the scheduler could take a counter for an event that may use `own`, and leave an event
/// that may use `other`, and comes later, without.
pub(in crate::logic) const fn can_mislead(own: CounterMask, other: CounterMask) -> bool {
    let shared = own.intersection(other).bits();
    let unshared = own.without(other).bits();
    own.weight() <= other.weight()
        && shared != 0
        && unshared != 0
        && shared.trailing_zeros() < 63 - unshared.leading_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HASWELL_HT: CounterMask = CounterMask::first_gp(4).union(CounterMask::first_fixed(3));

    fn select(bits: u64) -> EventSelect {
        EventSelect::from_bits(bits)
    }

    #[test]
    fn ranges_include_both_ends_and_nothing_below() {
        let entry = EventConstraint::events(0x48, 0x56, 0xf);
        for (config, matches) in [
            (0x47, false),
            (0x48, true),
            (0xff50, true),
            (0x56, true),
            (0x57, false),
            (0x00, false),
        ] {
            assert_eq!(entry.matches(select(config)), matches, "{config:#x}");
        }
    }

    #[test]
    fn fixed_counter_is_ruled_out_by_every_filter() {
        let entry = EventConstraint::fixed(0x00c0, 0);
        for bit in 0..64 {
            let filter = 1u64 << bit;
            let harmless = EventSelect::USR
                | EventSelect::OS
                | EventSelect::INT
                | EventSelect::ANY
                | EventSelect::ENABLE
                | EventSelect::PIN_CONTROL
                | !((1 << 34) - 1);
            assert_eq!(
                entry.matches(select(0x00c0 ^ filter)),
                harmless & filter != 0,
                "bit {bit}"
            );
        }
    }

    #[test]
    fn resolved_fixed_events_may_use_gp_counters_pseudo_codes_not() {
        let cycles = EventConstraint::fixed(0x003c, 1).resolve(HASWELL_HT);
        assert_eq!(cycles.counters.bits(), 0x2_0000_000f);
        let reference = EventConstraint::fixed(0x0300, 2).resolve(HASWELL_HT);
        assert_eq!(reference.counters.bits(), 0x4_0000_0000);
    }

    #[test]
    fn absent_counters_are_cut_off() {
        let no_fixed = CounterMask::first_gp(4);
        assert_eq!(
            EventConstraint::fixed(0x003c, 1).resolve(no_fixed).counters,
            no_fixed
        );
        let reference = EventConstraint::fixed(0x0300, 2).resolve(no_fixed);
        assert!(!reference.is_satisfiable());
        let eight = EventConstraint::event(0xa3, 0xff).resolve(no_fixed);
        assert_eq!(eight.counters.bits(), 0xf);
    }

    #[test]
    fn flags_survive_resolving() {
        let entry = EventConstraint::exclusive_event(0xd0, 0xf).overlapping();
        let constraint = entry.resolve(HASWELL_HT);
        assert!(constraint.exclusive && constraint.overlap);
        assert!(
            !EventConstraint::event(0xd0, 0xf)
                .resolve(HASWELL_HT)
                .exclusive
        );
    }

    const EIGHT: CounterMask = CounterMask::first_gp(8);

    #[test]
    fn check_accepts_crossing_counters_with_the_flag() {
        checked(
            EIGHT,
            &[
                EventConstraint::event(0x01, 0x9).overlapping(),
                EventConstraint::event(0x02, 0x7),
            ],
        );
    }

    #[test]
    #[should_panic(expected = "wrong overlap flag")]
    fn check_refuses_crossing_counters_without_the_flag() {
        checked(
            EIGHT,
            &[
                EventConstraint::event(0x01, 0x9),
                EventConstraint::event(0x02, 0x7),
            ],
        );
    }

    #[test]
    #[should_panic(expected = "wrong overlap flag")]
    fn check_refuses_a_needless_overlap_flag() {
        checked(EIGHT, &[EventConstraint::event(0x01, 0x9).overlapping()]);
    }

    #[test]
    #[should_panic(expected = "wrong overlap flag")]
    fn check_refuses_a_flag_where_the_lowest_counter_is_the_right_one() {
        checked(
            EIGHT,
            &[
                EventConstraint::event(0x01, 0x0f).overlapping(),
                EventConstraint::event(0x02, 0xfe),
            ],
        );
    }

    #[test]
    fn check_wants_the_flag_only_where_a_shared_counter_could_come_first() {
        for (own, other, misled) in [
            (0x0f, 0xfe, false),
            (0x09, 0x07, true),
            (0x09, 0x38, false),
            (0x1e, 0x2d, true), // 1, 2, 3, 4 against 0, 2, 3, 5
            (0x03, 0x0f, false),
            (0x03, 0x0c, false),
            (0xfe, 0x0f, false),
        ] {
            let [own, other] = [own, other].map(CounterMask::from_bits);
            assert_eq!(can_mislead(own, other), misled, "{own:?} {other:?}");
        }
    }

    #[test]
    fn umask_bits() {
        let entry = EventConstraint::event_and_umask_bit(0x08a3, 0x4);
        for (config, matches) in [
            (0x08a3, true),
            (0x0ca3, true),
            (0xffa3, true),
            (0x04a3, false),
            (0x08a2, false),
        ] {
            assert_eq!(entry.matches(select(config)), matches, "{config:#x}");
        }
    }

    #[test]
    fn counter_mask_and_inversion() {
        let entry = EventConstraint::event_and_cmask(0x0180_010e, 0xf);
        for (config, matches) in [
            (0x0180_010e, true),
            (0x01a4_010e, true), // edge, any-thread
            (0x01b7_010e, true), // and the privilege levels
            (0x0000_010e, false),
            (0x0100_010e, false),
            (0x0080_010e, false),
            (0x0280_010e, false),
            (0x0180_020e, false),
        ] {
            assert_eq!(entry.matches(select(config)), matches, "{config:#x}");
        }
        // Narrower than the event, so it comes first.
        checked(EIGHT, &[entry, EventConstraint::event(0x0e, 0xff)]);
    }

    #[test]
    #[should_panic(expected = "shadows")]
    fn check_refuses_filters_behind_the_whole_event() {
        checked(
            EIGHT,
            &[
                EventConstraint::event_and_umask(0x010e, 0xff),
                EventConstraint::event_and_cmask(0x0180_010e, 0xf),
            ],
        );
    }

    #[test]
    #[should_panic(expected = "not one unit mask bit")]
    fn umask_bits_are_one() {
        EventConstraint::event_and_umask_bit(0x0ca3, 0x4);
    }

    #[test]
    fn metrics_have_no_counter() {
        let entry = EventConstraint::metric(0x8200, 2);
        assert_eq!(entry.metric_index(), Some(2));
        assert!(entry.matches(select(0x8200)));
        assert!(!entry.resolve(HASWELL_HT).is_satisfiable());
        checked(EIGHT, &[entry]);
    }

    #[test]
    #[should_panic(expected = "shadows")]
    fn check_refuses_a_repeated_line() {
        checked(
            EIGHT,
            &[
                EventConstraint::event_and_umask(0x04a3, 0xf),
                EventConstraint::event_and_umask(0x04a3, 0x4),
            ],
        );
    }

    #[test]
    #[should_panic(expected = "shadows")]
    fn check_refuses_a_line_inside_a_range() {
        checked(
            EIGHT,
            &[
                EventConstraint::events(0x90, 0xfe, 0xff),
                EventConstraint::events(0xd0, 0xdf, 0xf),
            ],
        );
    }

    #[test]
    fn check_accepts_a_range_that_only_touches_an_earlier_line() {
        checked(
            EIGHT,
            &[
                EventConstraint::events(0xd0, 0xdf, 0xf),
                EventConstraint::events(0x90, 0xfe, 0xff),
            ],
        );
    }

    #[test]
    #[should_panic(expected = "does not have")]
    fn check_refuses_a_counter_beyond_the_model() {
        checked(EIGHT, &[EventConstraint::event(0x01, 0x100)]);
    }

    #[test]
    #[should_panic(expected = "without a counter")]
    fn check_refuses_an_entry_without_a_counter() {
        checked(EIGHT, &[EventConstraint::event(0x01, 0)]);
    }
}
