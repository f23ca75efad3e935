// SPDX-License-Identifier: GPL-2.0

//! Counters and sets of counters.
//!
//! Each thing on which an event can be put is one bit of one mask. Bit 56 is rpmu's own. Bits 0 to
//! 47 are laid out as in IA32_PERF_GLOBAL_CTRL and GLOBAL_STATUS (SDM vol. 3B, "Architectural
//! Performance Monitoring Version 2"), bits 48 to 55 as in mainline (`x86_pmu_capability`,
//! `use_fixed_pseudo_encoding()`, `is_metric_idx()`, `is_topdown_idx()`,
//! `arch/x86/include/asm/perf_event.h`):
//!
//! | Bits | What |
//! |---|---|
//! | 0-31 | general-purpose counters: count any event that their event select names |
//! | 32-47 | fixed counters: count one event each |
//! | 48-55 | topdown metrics: shares of the slots, read from PERF_METRICS |
//! | 56 | a guest's branch records: not a counter, but one event at a time can have them |
//! | 57-63 | free, for virtual counters |

use core::fmt;

/// Number of indices for general-purpose counters (`INTEL_PMC_MAX_GENERIC`).
pub const MAX_GP: u8 = 32;
/// Number of indices for fixed counters (`INTEL_PMC_MAX_FIXED`).
pub const MAX_FIXED: u8 = 16;
/// Number of indices for topdown metrics (`INTEL_TD_METRIC_NUM`).
pub const MAX_METRICS: u8 = 8;
/// Number of indices in use.
pub const MAX_COUNTERS: usize = (GUEST_BRANCHES + 1) as usize;

/// Index of the first fixed counter (`INTEL_PMC_IDX_FIXED`).
const FIXED_BASE: u8 = 32;
/// Index of the first metric (`INTEL_PMC_IDX_METRIC_BASE`).
const METRIC_BASE: u8 = 48;
/// Index of the branch records. Mainline's index, `INTEL_PMC_IDX_FIXED_VLBR`, is also a bit of
/// GLOBAL_STATUS.
const GUEST_BRANCHES: u8 = METRIC_BASE + MAX_METRICS;

const _: () = {
    assert!(MAX_GP <= FIXED_BASE, "the ranges overlap");
    assert!(FIXED_BASE + MAX_FIXED <= METRIC_BASE, "the ranges overlap");
    assert!(MAX_COUNTERS <= 64, "an index without a bit in a mask");
};

/// The kind of counter that a [`CounterId`] names, with the counter's number within the kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterKind {
    /// General-purpose counter: IA32_PMCn, selected by IA32_PERFEVTSELn.
    Gp(u8),
    /// Fixed counter: IA32_FIXED_CTRn, controlled by its four bits in IA32_FIXED_CTR_CTRL.
    Fixed(u8),
    /// Topdown metric: a byte of PERF_METRICS.
    Metric(u8),
    /// The branch records, lent to a guest of KVM. Nothing counts.
    GuestBranches,
}

/// One counter.
///
/// # Invariants
///
/// The index is below [`MAX_COUNTERS`].
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::{CounterId, CounterKind};
///
/// let cycles = CounterId::fixed(1).unwrap();
/// assert_eq!(cycles.index(), 33);
/// assert_eq!(cycles.kind(), CounterKind::Fixed(1));
/// assert_eq!(CounterId::gp(32), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CounterId(u8);

impl CounterId {
    /// General-purpose counter 0.
    pub const FIRST: Self = Self(0);
    /// Fixed counter 3, which counts slots. Topdown metrics are shares of them.
    pub const SLOTS: Self = Self(FIXED_BASE + 3);
    /// The first topdown metric. Its bit stands for all of PERF_METRICS in GLOBAL_CTRL and
    /// GLOBAL_STATUS.
    pub const FIRST_METRIC: Self = Self(METRIC_BASE);
    /// The branch records, lent to a guest.
    pub const GUEST_BRANCHES: Self = Self(GUEST_BRANCHES);

    /// Returns general-purpose counter `n`; `None` from [`MAX_GP`] on.
    pub const fn gp(n: u8) -> Option<Self> {
        if n < MAX_GP {
            // INVARIANT: below `MAX_GP`.
            Some(Self(n))
        } else {
            None
        }
    }

    /// Returns fixed counter `n`; `None` from [`MAX_FIXED`] on.
    pub const fn fixed(n: u8) -> Option<Self> {
        if n < MAX_FIXED {
            // INVARIANT: below `FIXED_BASE + MAX_FIXED`.
            Some(Self(FIXED_BASE + n))
        } else {
            None
        }
    }

    /// Returns topdown metric `n`; `None` from [`MAX_METRICS`] on.
    pub const fn metric(n: u8) -> Option<Self> {
        if n < MAX_METRICS {
            // INVARIANT: below `METRIC_BASE + MAX_METRICS`.
            Some(Self(METRIC_BASE + n))
        } else {
            None
        }
    }

    /// Returns the counter with the given bit number; `None` where no counter has that bit.
    pub const fn from_index(index: usize) -> Option<Self> {
        if index < MAX_COUNTERS {
            // INVARIANT: the index has just been checked.
            Some(Self(index as u8))
        } else {
            None
        }
    }

    /// Returns the bit number in a [`CounterMask`], which is also `hw_perf_event.idx`.
    pub const fn index(self) -> usize {
        self.0 as usize
    }

    /// Returns the kind, with the number within the kind.
    #[inline]
    pub const fn kind(self) -> CounterKind {
        if self.0 < FIXED_BASE {
            CounterKind::Gp(self.0)
        } else if self.0 < METRIC_BASE {
            CounterKind::Fixed(self.0 - FIXED_BASE)
        } else if self.0 < GUEST_BRANCHES {
            CounterKind::Metric(self.0 - METRIC_BASE)
        } else {
            CounterKind::GuestBranches
        }
    }

    /// Returns whether this is a general-purpose counter.
    #[inline]
    pub const fn is_gp(self) -> bool {
        self.0 < FIXED_BASE
    }

    /// Returns whether this is a fixed counter.
    #[inline]
    pub const fn is_fixed(self) -> bool {
        matches!(self.kind(), CounterKind::Fixed(_))
    }

    /// Returns the operand of RDPMC (ECX; SDM vol. 2B): a general-purpose counter's number, a fixed
    /// counter's number with bit 30, and bit 29 for the metrics, which are one register. 0 for the
    /// branch records, which RDPMC cannot read.
    pub const fn rdpmc_index(self) -> u32 {
        match self.kind() {
            CounterKind::Gp(n) => n as u32,
            CounterKind::Fixed(n) => n as u32 | (1 << 30),
            CounterKind::Metric(_) => 1 << 29,
            CounterKind::GuestBranches => 0,
        }
    }

    /// Returns the set with only this counter.
    pub const fn mask(self) -> CounterMask {
        // Not `<<`: the compiler does not know that the index is below 64.
        CounterMask(1u64.wrapping_shl(self.0 as u32))
    }
}

impl fmt::Display for CounterId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind() {
            CounterKind::Gp(n) => write!(f, "PMC{n}"),
            CounterKind::Fixed(n) => write!(f, "FIXED{n}"),
            CounterKind::Metric(n) => write!(f, "METRIC{n}"),
            CounterKind::GuestBranches => f.write_str("LBR"),
        }
    }
}

/// A set of counters: counter n of [`CounterId::index`] is bit n.
///
/// # Invariants
///
/// No bit from [`MAX_COUNTERS`] on is set.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::{CounterId, CounterMask};
///
/// let set = CounterMask::first_gp(4) | CounterMask::first_fixed(3);
/// assert_eq!(set.weight(), 7);
/// assert_eq!(set.gp(), CounterMask::first_gp(4));
/// assert_eq!(set.iter().last(), CounterId::fixed(2));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct CounterMask(u64);

impl CounterMask {
    /// No counter.
    pub const EMPTY: Self = Self(0);
    /// Every counter that has an index.
    pub const ALL: Self = Self(
        Self::ALL_GP | Self::ALL_FIXED | Self::ALL_METRICS | CounterId::GUEST_BRANCHES.mask().0,
    );

    const ALL_GP: u64 = (1 << MAX_GP) - 1;
    const ALL_FIXED: u64 = ((1 << MAX_FIXED) - 1) << FIXED_BASE;
    const ALL_METRICS: u64 = ((1 << MAX_METRICS) - 1) << METRIC_BASE;

    /// Returns the set with the given bits; bits that name no counter are dropped.
    pub const fn from_bits(bits: u64) -> Self {
        // INVARIANT: no mask of a kind has a bit from `MAX_COUNTERS` on.
        Self(bits & Self::ALL.0)
    }

    /// Returns the first `count` general-purpose counters. `count` is clipped to [`MAX_GP`].
    pub const fn first_gp(count: u8) -> Self {
        let count = if count < MAX_GP { count } else { MAX_GP };
        Self((1 << count) - 1)
    }

    /// Returns the first `count` fixed counters. `count` is clipped to [`MAX_FIXED`].
    pub const fn first_fixed(count: u8) -> Self {
        let count = if count < MAX_FIXED { count } else { MAX_FIXED };
        Self(((1 << count) - 1) << FIXED_BASE)
    }

    /// Returns the first `count` topdown metrics. `count` is clipped to [`MAX_METRICS`].
    pub const fn first_metrics(count: u8) -> Self {
        let count = if count < MAX_METRICS {
            count
        } else {
            MAX_METRICS
        };
        Self(((1 << count) - 1) << METRIC_BASE)
    }

    /// Returns the bits.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the number of counters in the set.
    pub const fn weight(self) -> u32 {
        self.0.count_ones()
    }

    /// Returns whether the set is empty.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the general-purpose counters of the set.
    pub const fn gp(self) -> Self {
        Self(self.0 & Self::ALL_GP)
    }

    /// Returns the fixed counters of the set.
    pub const fn fixed(self) -> Self {
        Self(self.0 & Self::ALL_FIXED)
    }

    /// Returns the members of the set that are not general-purpose counters.
    pub const fn beyond_gp(self) -> Self {
        Self(self.0 & !Self::ALL_GP)
    }

    /// Returns the topdown metrics of the set.
    pub const fn metrics(self) -> Self {
        Self(self.0 & Self::ALL_METRICS)
    }

    /// Returns whether a topdown metric is in the set.
    pub const fn has_metrics(self) -> bool {
        self.0 & Self::ALL_METRICS != 0
    }

    /// Returns whether `counter` is in the set.
    pub const fn contains(self, counter: CounterId) -> bool {
        self.0 & counter.mask().0 != 0
    }

    /// Returns whether every counter of this set is in `other`.
    pub const fn is_subset(self, other: Self) -> bool {
        self.0 & !other.0 == 0
    }

    /// Returns whether the two sets share a counter.
    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the counters in either set; `|` for constants.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the counters in both sets; `&` for constants.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// Returns the counters of this set that are not in `other`.
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Returns the counter with the lowest index.
    pub const fn lowest(self) -> Option<CounterId> {
        if self.0 == 0 {
            None
        } else {
            // INVARIANT: no bit from `MAX_COUNTERS` on is set, so the lowest is below it.
            Some(CounterId(self.0.trailing_zeros() as u8))
        }
    }

    /// Returns the counter with the highest index.
    pub const fn highest(self) -> Option<CounterId> {
        if self.0 == 0 {
            None
        } else {
            // INVARIANT: As in `lowest()`.
            Some(CounterId(self.0.ilog2() as u8))
        }
    }

    /// Returns the counter behind each counter of the set, if there is one: the second counters of
    /// pairs.
    pub const fn behind(self) -> Self {
        Self::from_bits(self.0 << 1)
    }

    /// Adds `counter` to the set.
    pub fn insert(&mut self, counter: CounterId) {
        self.0 |= counter.mask().0;
    }

    /// Removes `counter` from the set.
    pub fn remove(&mut self, counter: CounterId) {
        self.0 &= !counter.mask().0;
    }

    /// Returns the counters by ascending index.
    pub const fn iter(self) -> CounterIter {
        CounterIter(self)
    }
}

impl core::ops::BitOr for CounterMask {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.union(other)
    }
}

impl core::ops::BitAnd for CounterMask {
    type Output = Self;

    fn bitand(self, other: Self) -> Self {
        self.intersection(other)
    }
}

impl IntoIterator for CounterMask {
    type Item = CounterId;
    type IntoIter = CounterIter;

    fn into_iter(self) -> CounterIter {
        self.iter()
    }
}

impl FromIterator<CounterId> for CounterMask {
    fn from_iter<I: IntoIterator<Item = CounterId>>(counters: I) -> Self {
        let mut mask = Self::EMPTY;
        for counter in counters {
            mask.insert(counter);
        }
        mask
    }
}

/// Formats the mask in hexadecimal, general-purpose counters lowest.
impl fmt::Display for CounterMask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The counters of a set by ascending index.
#[derive(Clone, Copy, Debug)]
pub struct CounterIter(CounterMask);

impl Iterator for CounterIter {
    type Item = CounterId;

    fn next(&mut self) -> Option<CounterId> {
        let counter = self.0.lowest()?;
        self.0.remove(counter);
        Some(counter)
    }
}

/// One `T` for every counter. The index cannot be out of range.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::{CounterId, PerCounter};
///
/// let mut owner: PerCounter<Option<&str>> = PerCounter::new(None);
/// owner[CounterId::gp(3).unwrap()] = Some("branches");
/// assert_eq!(owner[CounterId::gp(3).unwrap()], Some("branches"));
/// assert_eq!(owner[CounterId::fixed(3).unwrap()], None);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PerCounter<T>([T; PER_COUNTER]);

/// [`MAX_COUNTERS`] rounded up to a power of two, so that masking an index bounds it.
const PER_COUNTER: usize = MAX_COUNTERS.next_power_of_two();

impl<T: Copy> PerCounter<T> {
    /// Makes a table with `value` for every counter.
    pub const fn new(value: T) -> Self {
        Self([value; PER_COUNTER])
    }
}

impl<T> core::ops::Index<CounterId> for PerCounter<T> {
    type Output = T;

    fn index(&self, counter: CounterId) -> &T {
        // The mask changes nothing, by the invariant of `CounterId`. It shows the compiler that no
        // bounds check is needed, so that there is no panic path in NMI context.
        &self.0[counter.index() & (PER_COUNTER - 1)]
    }
}

impl<T> core::ops::IndexMut<CounterId> for PerCounter<T> {
    fn index_mut(&mut self, counter: CounterId) -> &mut T {
        &mut self.0[counter.index() & (PER_COUNTER - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_index_names_one_counter() {
        for index in 0..MAX_COUNTERS {
            let counter = CounterId::from_index(index).unwrap();
            assert_eq!(counter.index(), index);
            let again = match counter.kind() {
                CounterKind::Gp(n) => CounterId::gp(n),
                CounterKind::Fixed(n) => CounterId::fixed(n),
                CounterKind::Metric(n) => CounterId::metric(n),
                CounterKind::GuestBranches => Some(CounterId::GUEST_BRANCHES),
            };
            assert_eq!(again, Some(counter));
            assert_eq!(counter.mask().bits(), 1 << index);
        }
        assert_eq!(CounterId::from_index(MAX_COUNTERS), None);
        assert_eq!(CounterId::gp(MAX_GP), None);
        assert_eq!(CounterId::fixed(MAX_FIXED), None);
        assert_eq!(CounterId::metric(MAX_METRICS), None);
    }

    #[test]
    fn rdpmc_selects_fixed_counters_with_bit_30() {
        assert_eq!(CounterId::gp(7).unwrap().rdpmc_index(), 7);
        assert_eq!(CounterId::fixed(2).unwrap().rdpmc_index(), 0x4000_0002);
    }

    #[test]
    fn bits_that_name_no_counter_are_dropped() {
        assert_eq!(CounterMask::from_bits(!0).weight(), MAX_COUNTERS as u32);
        assert_eq!(CounterMask::first_gp(200).weight(), 32);
        assert_eq!(CounterMask::first_fixed(200).weight(), 16);
    }

    #[test]
    fn iteration_ascends_and_is_complete() {
        let mask = CounterMask::from_bits(0x7_0000_000a);
        let indices: Vec<usize> = mask.iter().map(CounterId::index).collect();
        assert_eq!(indices, [1, 3, 32, 33, 34]);
        assert_eq!(mask.iter().collect::<CounterMask>(), mask);
        assert_eq!(mask.gp().bits(), 0xa);
        assert_eq!(mask.fixed().bits(), 0x7_0000_0000);
        assert_eq!(mask.highest(), CounterId::fixed(2));
        assert_eq!(CounterMask::EMPTY.highest(), None);
        assert_eq!(CounterMask::from_bits(0x15).behind().bits(), 0x2a);
    }

    #[test]
    fn display() {
        assert_eq!(CounterId::fixed(1).unwrap().to_string(), "FIXED1");
        assert_eq!(CounterId::metric(7).unwrap().to_string(), "METRIC7");
        assert_eq!(
            CounterMask::from_bits(0x7_0000_000f).to_string(),
            "0x70000000f"
        );
    }
}
