// SPDX-License-Identifier: GPL-2.0

//! What AMD's models are described with.
//!
//! The driver does not drive them yet. An event code has twelve bits here, the upper four in bits
//! 32-35 of the event select, and the unit mask can decide about the counters as well.

use crate::logic::{
    model::HardwareEvents,
    open::cache_event::CacheEvents,
    regs::{counter::CounterMask, event_select::EventSelect},
    sched::constraint::{can_mislead, Constraint},
};

/// What the unit mask has to be like for a line to match.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnitMask {
    /// Anything.
    Any,
    /// At most one bit.
    AtMostOneBit,
    /// More than one bit.
    SeveralBits,
    /// At least one bit of bits 0-3, and one of bits 4-7.
    BothHalves,
}

impl UnitMask {
    const fn matches(self, umask: u8) -> bool {
        match self {
            Self::Any => true,
            Self::AtMostOneBit => umask.count_ones() <= 1,
            Self::SeveralBits => umask.count_ones() > 1,
            Self::BothHalves => umask & 0x0f != 0 && umask & 0xf0 != 0,
        }
    }
}

/// One line of a model's table: these events, these counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmdEvent {
    first: u16,
    last: u16,
    mask: u16,
    umask: UnitMask,
    counters: CounterMask,
    overlap: bool,
    pair: bool,
}

impl AmdEvent {
    const fn new(first: u16, last: u16, mask: u16, counters: u64) -> Self {
        assert!(
            first <= last && last & !mask == 0,
            "no such range of event codes"
        );
        Self {
            first,
            last,
            mask,
            umask: UnitMask::Any,
            counters: CounterMask::from_bits(counters),
            overlap: false,
            pair: false,
        }
    }

    /// The events with this event code, all twelve bits.
    pub const fn event(code: u16, counters: u64) -> Self {
        Self::new(code, code, 0xfff, counters)
    }

    /// The events with an event code from `first` to `last`, both included.
    pub const fn events(first: u16, last: u16, counters: u64) -> Self {
        Self::new(first, last, 0xfff, counters)
    }

    /// The events of the units with bits 4-7 of the event code from `first` to `last`, both
    /// included.
    pub const fn units(first: u16, last: u16, counters: u64) -> Self {
        Self::new(first, last, 0x0f0, counters)
    }

    /// The line is for such unit masks alone.
    #[must_use]
    pub const fn with(mut self, umask: UnitMask) -> Self {
        self.umask = umask;
        self
    }

    /// Marks the line as one whose counters overlap with another's; see [`Constraint::overlap`].
    #[must_use]
    pub const fn overlapping(mut self) -> Self {
        self.overlap = true;
        self
    }

    /// The events take the counter behind theirs as well; see [`Constraint::pair`].
    #[must_use]
    pub const fn pair(mut self) -> Self {
        self.pair = true;
        self
    }

    const fn matches(&self, select: EventSelect) -> bool {
        let code = event_code(select) & self.mask;
        // CAST: eight bits.
        let umask = (select.bits() >> 8) as u8;
        self.first <= code && code <= self.last && self.umask.matches(umask)
    }

    /// Whether every event that `other` matches is matched by this line too, and that can be told
    /// from the event codes.
    const fn covers(&self, other: &Self) -> bool {
        matches!(self.umask, UnitMask::Any)
            && self.mask & other.mask == self.mask
            && self.first <= other.first & self.mask
            && other.last & self.mask <= self.last
    }
}

/// The event code, all twelve bits. Mainline: `amd_get_event_code()`,
/// `arch/x86/events/amd/core.c:350`.
pub const fn event_code(select: EventSelect) -> u16 {
    // CAST: twelve bits.
    (((select.bits() >> 24) & 0xf00) | (select.bits() & 0xff)) as u16
}

/// An event select with a twelve-bit event code.
pub const fn amd_select(code: u16, umask: u8) -> EventSelect {
    let code = code as u64;
    EventSelect::from_bits(((code & 0xf00) << 24) | ((umask as u64) << 8) | (code & 0xff))
}

/// What becomes of events that no line speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Others {
    /// They may use every counter.
    Anywhere,
    /// There are none.
    Nowhere,
}

/// A microarchitecture of AMD's.
#[derive(Debug)]
pub struct AmdModel {
    /// The name for people.
    pub name: &'static str,
    /// The CPUID families that this is. Within families 0x17 and 0x19, the CPU's generation decides.
    pub families: &'static [u16],
    /// The counters. From performance monitoring version 2 on (Zen 4), CPUID says how many there
    /// are instead.
    pub counters: CounterMask,
    /// The events that may not use every counter; the first match counts.
    pub events: &'static [AmdEvent],
    /// All others.
    pub others: Others,
    /// Whether the events with codes 0xe0 to 0xff are the northbridge's. Its counters show through
    /// the cores', so two cores of a node may not use the same one. Elsewhere they have counters of
    /// their own, and are another PMU's.
    pub northbridge_events: bool,
    /// The generic hardware events.
    pub hardware_events: HardwareEvents,
    /// The generic cache events.
    pub cache_events: CacheEvents,
}

impl AmdModel {
    /// The counters that the event `select` may use, of those in `present`.
    ///
    /// Mainline: `amd_get_event_constraints()` and its kin, `arch/x86/events/amd/core.c:1054`,
    /// `1163`, `1238`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::model::{amd_select, AMD_ZEN};
    ///
    /// // Retired floating point operations: large increments.
    /// let flops = AMD_ZEN.constraint(amd_select(0x003, 0xff), AMD_ZEN.counters);
    /// assert_eq!(flops.counters.bits(), 0b01_0101);
    /// assert!(flops.pair);
    /// ```
    pub fn constraint(&self, select: EventSelect, present: CounterMask) -> Constraint {
        match self.events.iter().find(|line| line.matches(select)) {
            Some(line) => {
                let counters = if line.pair {
                    // The second ones have to be there.
                    CounterMask::from_bits(line.counters.bits() & (present.bits() >> 1))
                } else {
                    line.counters
                };
                Constraint {
                    overlap: line.overlap,
                    pair: line.pair,
                    ..Constraint::any_of(counters & present)
                }
            }
            None => Constraint::any_of(match self.others {
                Others::Anywhere => present,
                Others::Nowhere => CounterMask::EMPTY,
            }),
        }
    }

    /// Whether the event `select` is the northbridge's, and its counter has to be had from the node.
    pub const fn is_northbridge_event(&self, select: EventSelect) -> bool {
        self.northbridge_events && select.bits() & 0xe0 == 0xe0
    }
}

/// The table, if it is right for a model that can have `counters`. A wrong one does not compile.
///
/// As for Intel's ([`constraint::checked`](crate::logic::sched::constraint::checked)): no line is shadowed
/// by an earlier one, none names a counter that is not there, overlap flags are where they are needed.
///
/// # Panics
///
/// When the table is wrong; so call it in a constant.
pub(in crate::logic::model) const fn checked(
    counters: CounterMask,
    table: &[AmdEvent],
) -> &[AmdEvent] {
    let mut i = 0;
    while i < table.len() {
        let line = &table[i];
        assert!(
            line.counters.is_subset(counters),
            "a counter that the model does not have"
        );
        let mut overlaps = false;
        let mut j = 0;
        while j < table.len() {
            assert!(
                j >= i || !table[j].covers(line),
                "a line that an earlier one shadows"
            );
            overlaps |= can_mislead(line.counters, table[j].counters);
            j += 1;
        }
        assert!(overlaps == line.overlap, "a wrong overlap flag");
        i += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::{
        model::{AMD_15H, AMD_K8, AMD_MODELS, AMD_ZEN},
        sched::assign::Problem,
    };

    #[test]
    fn event_codes_have_twelve_bits() {
        let select = amd_select(0x1c0, 0x07);
        assert_eq!(select.bits(), 0x1_0000_07c0);
        assert_eq!(event_code(select), 0x1c0);
    }

    /// Mainline refuses this set, six events on six counters: `perf_sched_restore_state()` does not
    /// take back what it has counted.
    #[test]
    fn the_set_that_mainline_refuses() {
        let mut problem = Problem::new(6);
        for code in [0x02e, 0x076, 0x080, 0x07d, 0x1c0, 0x000] {
            let constraint = AMD_15H.constraint(amd_select(code, 0), AMD_15H.counters);
            problem.push(constraint, None).unwrap();
        }
        assert!(problem.solve().is_ok());
    }

    #[test]
    fn pairs_need_their_second_counter() {
        let flops = amd_select(0x003, 0xff);
        for (counters, firsts) in [(6, 0b01_0101), (5, 0b00_0101), (1, 0)] {
            let found = AMD_ZEN.constraint(flops, CounterMask::first_gp(counters));
            assert_eq!(found.counters.bits(), firsts, "{counters}");
        }
    }

    #[test]
    fn three_pairs_fill_six_counters() {
        let fits = |pairs: usize, singles: usize| {
            let mut problem = Problem::new(6);
            let codes = [0x003].iter().cycle().take(pairs);
            for code in codes.chain([0x076].iter().cycle().take(singles)) {
                let constraint = AMD_ZEN.constraint(amd_select(*code, 0x1), AMD_ZEN.counters);
                problem.push(constraint, None).unwrap();
            }
            problem.solve().is_ok()
        };
        assert!(fits(3, 0) && fits(2, 2) && fits(0, 6));
        assert!(!fits(3, 1) && !fits(2, 3) && !fits(4, 0));
    }

    #[test]
    fn northbridge_events_are_the_nodes_on_k8() {
        let northbridge = amd_select(0x0e9, 0x1f);
        assert!(AMD_K8.is_northbridge_event(northbridge));
        assert!(!AMD_K8.is_northbridge_event(amd_select(0x0d0, 0)));
        assert!(!AMD_ZEN.is_northbridge_event(northbridge));
        let found = AMD_15H.constraint(northbridge, AMD_15H.counters);
        assert!(!found.is_satisfiable());
    }

    #[test]
    fn families_are_told_apart() {
        for family in 0x0f..=0x1a {
            let models = AMD_MODELS
                .iter()
                .filter(|model| model.families.contains(&family));
            assert_eq!(models.count(), 1, "{family:#x}");
        }
    }
}
