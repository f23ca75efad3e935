// SPDX-License-Identifier: GPL-2.0

//! The entries of a model's table of constraints, which map events to counters.
//!
//! A table is a slice of [`EventConstraint`]s, and the first match decides. An event without a
//! match may use every general-purpose counter.

use crate::logic::{
    model::constraint::Constraint,
    regs::{
        counter::{
            CounterId,
            CounterMask, //
        },
        event_select::EventSelect, //
    },
};

/// The unit masks that an entry matches, if the event code alone does not decide (AMD's family
/// 15h).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitMask {
    /// All unit masks that the entry's mask allows.
    Any,
    /// Unit masks with at most one bit.
    AtMostOneBit,
    /// Unit masks with more than one bit.
    SeveralBits,
    /// Unit masks with at least one of bits 0-3 and one of bits 4-7.
    BothHalves,
}

impl UnitMask {
    const fn matches(self, select: EventSelect) -> bool {
        let umask = select.bits() & EventSelect::UMASK;
        match self {
            Self::Any => true,
            Self::AtMostOneBit => umask.count_ones() <= 1,
            Self::SeveralBits => umask.count_ones() > 1,
            Self::BothHalves => umask & 0x0f00 != 0 && umask & 0xf000 != 0,
        }
    }
}

/// An entry of a model's table: the events that match, and their counters.
///
/// An event select `config` matches if `((config & mask) - code) <= size`, in unsigned wrapping
/// arithmetic, and if its unit mask is as the entry's [`UnitMask`] demands. Mainline:
/// `constraint_match()`, `arch/x86/events/perf_event.h`.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::model::{first_match, EventConstraint};
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
/// // Privilege levels do not matter. A counter mask rules out a fixed counter.
/// assert_eq!(find(0x3_003c), Some(&TABLE[0]));
/// assert_eq!(find(0x0100_003c), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventConstraint {
    code: u64,
    size: u64,
    mask: u64,
    counters: CounterMask,
    umask: UnitMask,
    overlap: bool,
    corrupting: bool,
    pair: bool,
    northbridge: bool,
    uncountable: bool,
}

impl EventConstraint {
    /// The bits that must match for an event to use a fixed counter: all that select or filter,
    /// except the privilege levels and any-thread (`FIXED_EVENT_FLAGS`,
    /// `arch/x86/events/perf_event.h`).
    pub const FIXED_MASK: u64 =
        EventSelect::RAW | EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;

    /// Makes an entry; `counters` has the bits of a [`CounterMask`], counter n at bit n.
    const fn new(code: u64, size: u64, mask: u64, counters: u64) -> Self {
        assert!(code & !mask == 0, "the code has bits that the mask drops");
        Self {
            code,
            size,
            mask,
            counters: CounterMask::from_bits(counters),
            umask: UnitMask::Any,
            overlap: false,
            corrupting: false,
            pair: false,
            northbridge: false,
            uncountable: false,
        }
    }

    /// Matches the events from `first` to `last` under `mask`, both included, in a table of precise
    /// events.
    pub(in crate::logic) const fn masked(first: u64, last: u64, mask: u64, counters: u64) -> Self {
        Self::new(first, last - first, mask, counters)
    }

    /// Matches the event `code` (event code and unit mask) without filters, which fixed counter `n`
    /// and every general-purpose counter count. With a pseudo code, which has event code 0, only
    /// the fixed counter counts it.
    pub const fn fixed(code: u64, n: u8) -> Self {
        match CounterId::fixed(n) {
            Some(counter) => Self::new(code, 0, Self::FIXED_MASK, counter.mask().bits()),
            None => panic!("no such fixed counter"),
        }
    }

    /// Matches every event with this event code, whatever its unit mask.
    pub const fn event(code: u8, counters: u64) -> Self {
        Self::new(code as u64, 0, EventSelect::EVENT, counters)
    }

    /// Matches every event with an event code from `first` to `last`, both included.
    pub const fn events(first: u8, last: u8, counters: u64) -> Self {
        assert!(first < last, "a range of fewer than two codes");
        let size = (last - first) as u64;
        Self::new(first as u64, size, EventSelect::EVENT, counters)
    }

    /// Matches this event, with any filters: unit mask in bits 8-15, event code in bits 0-7.
    pub const fn event_and_umask(code: u64, counters: u64) -> Self {
        Self::new(code, 0, EventSelect::CODE, counters)
    }

    /// Matches exactly this event with exactly this counter mask and inversion, bits 23-31 of the
    /// code, and with any values of edge and any-thread.
    pub const fn event_and_cmask(code: u64, counters: u64) -> Self {
        let mask = EventSelect::CODE | EventSelect::CMASK | EventSelect::INV;
        Self::new(code, 0, mask, counters)
    }

    /// Matches every event with this event code, in bits 0-7, and at least this unit mask bit,
    /// among bits 8-15.
    pub const fn event_and_umask_bit(code: u64, counters: u64) -> Self {
        assert!(
            (code & EventSelect::UMASK).is_power_of_two(),
            "not one unit mask bit"
        );
        Self::new(code, 0, EventSelect::EVENT | code, counters)
    }

    /// Matches the event `code`, which is topdown metric `n` (`METRIC_EVENT_CONSTRAINT`,
    /// `arch/x86/events/perf_event.h`).
    pub const fn metric(code: u64, n: u8) -> Self {
        match CounterId::metric(n) {
            Some(metric) => Self::new(code, 0, EventSelect::CODE, metric.mask().bits()),
            None => panic!("no such metric"),
        }
    }

    /// Matches every event with this event code of twelve bits, whatever its unit mask (AMD).
    pub const fn amd_event(code: u16, counters: u64) -> Self {
        Self::amd_events(code, code, counters)
    }

    /// Matches every event with an event code of twelve bits from `first` to `last`, both included
    /// (AMD).
    pub const fn amd_events(first: u16, last: u16, counters: u64) -> Self {
        assert!(
            first <= last && first >> 8 == last >> 8,
            "no such range of event codes"
        );
        let code = EventSelect::amd_event(first, 0).bits();
        Self::new(
            code,
            (last - first) as u64,
            EventSelect::AMD_EVENT,
            counters,
        )
    }

    /// Matches every event of AMD's units `first` to `last`, both included: bits 4-7 of the event
    /// code (`AMD_EVENT_TYPE_MASK`).
    pub const fn amd_units(first: u8, last: u8, counters: u64) -> Self {
        assert!(first <= last, "an empty range");
        Self::new(first as u64, (last - first) as u64, 0xf0, counters)
    }

    /// Matches the events of AMD's northbridge (`amd_is_nb_event()`). For these, counter n of every
    /// core of a node is the northbridge's counter n, so two cores must not use the same one.
    pub const fn amd_northbridge(counters: u64) -> Self {
        let mut this = Self::new(0xe0, 0, 0xe0, counters);
        this.northbridge = true;
        this
    }

    /// Matches every event: the last entry of a table that lists all countable events.
    pub const fn every_event(counters: u64) -> Self {
        Self::new(0, 0, 0, counters)
    }

    /// Restricts the entry to these unit masks.
    #[must_use]
    pub const fn with_umask(mut self, umask: UnitMask) -> Self {
        self.umask = umask;
        self
    }

    /// Marks events that also take the next counter; see [`Constraint::pair`].
    #[must_use]
    pub const fn pair(mut self) -> Self {
        self.pair = true;
        self
    }

    /// Marks events that no counter counts. The entry must not name a counter.
    #[must_use]
    pub const fn uncountable(mut self) -> Self {
        self.uncountable = true;
        self
    }

    /// Returns whether the entry is for a topdown metric.
    pub const fn is_metric(&self) -> bool {
        self.counters.has_metrics()
    }

    /// Makes an entry like [`event`](Self::event), for events that corrupt the sibling thread's
    /// counter.
    pub const fn corrupting_event(code: u8, counters: u64) -> Self {
        Self::event(code, counters).corrupting()
    }

    /// Marks events that corrupt the sibling thread's counter.
    #[must_use]
    const fn corrupting(mut self) -> Self {
        self.corrupting = true;
        self
    }

    /// Marks counters that overlap with another entry's; see [`Constraint::overlap`].
    pub const fn overlapping(mut self) -> Self {
        self.overlap = true;
        self
    }

    /// Returns whether the entry has a pseudo code, which stands for an event that only a fixed
    /// counter counts: event code 0, unit mask n + 1 for fixed counter n (0x0300 is
    /// CPU_CLK_UNHALTED.REF_TSC). Mainline: `use_fixed_pseudo_encoding()`.
    const fn is_pseudo_code(&self) -> bool {
        self.code & EventSelect::EVENT == 0
    }

    /// Returns whether the entry is for an event with a fixed counter.
    const fn is_fixed(&self) -> bool {
        self.mask == Self::FIXED_MASK
    }

    /// Returns whether the entry names counters, and only ones in `counters`.
    pub(in crate::logic) const fn is_within(&self, counters: CounterMask) -> bool {
        !self.counters.is_empty() && self.counters.is_subset(counters)
    }

    /// Returns the lowest event select that the entry matches, its [`UnitMask`] aside.
    pub const fn code(&self) -> u64 {
        self.code
    }

    /// Returns whether the entry matches the event `select`.
    pub const fn matches(&self, select: EventSelect) -> bool {
        self.matches_code(select) && self.umask.matches(select)
    }

    const fn matches_code(&self, select: EventSelect) -> bool {
        (select.bits() & self.mask).wrapping_sub(self.code) <= self.size
    }

    /// Returns whether the entry matches some event with the event code `event` (bits 0-7). Always
    /// true if its size exceeds 0xff, the highest event code.
    pub(in crate::logic) const fn may_match_event_code(&self, event: u64) -> bool {
        let mut step = 0;
        while step <= self.size && self.size <= EventSelect::EVENT {
            if (self.code + step) & EventSelect::EVENT == event & self.mask {
                return true;
            }
            step += 1;
        }
        self.size > EventSelect::EVENT
    }

    /// Returns the entry's constraint on a machine with the counters `present`.
    ///
    /// An event with a fixed counter may also use every general-purpose counter, unless it has a
    /// pseudo code. Mainline: `intel_pmu_check_event_constraints()`,
    /// `arch/x86/events/intel/core.c`.
    pub const fn resolve(&self, present: CounterMask) -> Constraint {
        let wanted = if self.is_fixed() && !self.is_pseudo_code() {
            self.counters.union(present.gp())
        } else if self.pair {
            // The second counters have to exist, too.
            let firsts = CounterMask::from_bits(present.bits() >> 1);
            self.counters.intersection(firsts)
        } else {
            self.counters
        };
        Constraint {
            counters: wanted.intersection(present),
            overlap: self.overlap,
            corrupting: self.corrupting,
            pair: self.pair,
            northbridge: self.northbridge,
        }
    }

    /// Returns whether this entry matches every event that `other` matches.
    ///
    /// Exact for entries whose size only spans event codes, which all constructors make, but false
    /// if this entry restricts the unit mask by a [`UnitMask`].
    pub(in crate::logic) const fn covers(&self, other: &Self) -> bool {
        let any_umask = matches!(self.umask, UnitMask::Any);
        if self.mask & other.mask != self.mask || !any_umask {
            return false;
        }
        let mut step = 0;
        while step <= other.size {
            if !self.matches_code(EventSelect::from_bits(other.code + step)) {
                return false;
            }
            step += 1;
        }
        true
    }
}

/// Returns the first entry that matches `select`; `None` if every general-purpose counter counts
/// the event.
pub fn first_match(table: &[EventConstraint], select: EventSelect) -> Option<&EventConstraint> {
    table.iter().find(|entry| entry.matches(select))
}

/// Returns `table`, checked for a model that can have `counters`. A wrong table does not compile.
///
/// - No entry is shadowed by an earlier one, so that it could never match.
/// - Every entry that is not marked as uncountable names a counter, and no entry names a counter
///   that machines of this model cannot have.
/// - The overlap flag is set exactly if it is needed: if another entry of at least the same weight
///   shares a counter with this one without containing it, and the scheduler, which takes the
///   lowest free counter, could take a shared one while another is left. (Of 0x0f and 0xfe, the
///   first needs no flag: its counter 0, which the second cannot use, is taken first.) Fixed
///   counters have no influence: the scheduler tries them first, and an entry names at most one.
///
/// # Panics
///
/// If the table is wrong; so call it in a constant.
///
/// ```compile_fail
/// # use rpmu_logic::logic;
/// use logic::model::{checked, EventConstraint};
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
            entry.counters.is_empty() == entry.uncountable,
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

/// Returns whether the scheduler could choose a counter in `own` so that a later event with the
/// counters `other` finds none.
const fn can_mislead(own: CounterMask, other: CounterMask) -> bool {
    let shared = own.intersection(other).bits();
    let unshared = own.without(other).bits();
    own.weight() <= other.weight()
        && shared != 0
        && unshared != 0
        && shared.trailing_zeros() < 63 - unshared.leading_zeros()
}

#[cfg(test)]
mod tests;
