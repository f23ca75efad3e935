// SPDX-License-Identifier: GPL-2.0

//! Pseudo-random sets of events.

use super::logic::model::INTEL_MODELS;
use super::logic::regs::counter::CounterMask;
use super::mainline::Want;

/// The most events of a set, two more than any model has counters.
const MAX_EVENTS: usize = 14;

/// The kernel saves at most two choices and warns about more, so a set has at most two events with
/// the overlap flag.
const MAX_OVERLAP: usize = 2;

/// The kinds of events of AMD family 15h (`amd_format_attr`, `arch/x86/events/amd/core.c`).
pub(crate) const FAMILY_15H: &[Want] = &[
    any(0x01),
    any(0x07),
    any(0x08),
    overlapping(0x09),
    any(0x3f),
    any(0x38),
];

/// The kinds of events of AMD family 17h: any of six counters, and MERGE events, which need two.
const FAMILY_17H: &[Want] = &[
    any(0x3f),
    Want {
        pair: true,
        ..any(0x15)
    },
];

const fn any(counters: u64) -> Want {
    Want {
        counters,
        overlap: false,
        pair: false,
    }
}

const fn overlapping(counters: u64) -> Want {
    Want {
        overlap: true,
        ..any(counters)
    }
}

/// SplitMix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    fn among<T: Copy>(&mut self, slice: &[T]) -> Option<T> {
        slice.get(self.below(slice.len())).copied()
    }
}

/// Events that need counters, and the limit on general-purpose counters.
pub(crate) struct Set {
    wants: [Want; MAX_EVENTS],
    len: usize,
    pub(crate) gp_limit: u32,
}

impl Set {
    pub(crate) fn wants(&self) -> &[Want] {
        self.wants.get(..self.len).unwrap_or(&[])
    }

    fn push(&mut self, want: Want) {
        let overlaps = self.wants().iter().filter(|want| want.overlap).count();
        if want.counters == 0 || (want.overlap && overlaps == MAX_OVERLAP) {
            return;
        }
        if let Some(slot) = self.wants.get_mut(self.len) {
            *slot = want;
            self.len += 1;
        }
    }

    pub(crate) fn random(random: &mut Random) -> Self {
        let mut set = Self {
            wants: [Want::default(); MAX_EVENTS],
            len: 0,
            gp_limit: 6,
        };
        match random.below(8) {
            0..4 => set.of_a_model(random),
            4..6 => set.of_kinds(random, FAMILY_15H),
            6 => set.of_kinds(random, FAMILY_17H),
            _ => set.of_anything(random),
        }
        set
    }

    /// Adds events of a model's table. In some sets, the sibling thread has some of the counters,
    /// and in some, only half of the general-purpose counters may be used.
    fn of_a_model(&mut self, random: &mut Random) {
        let (Some(model), Some(gp), Some(fixed)) = (
            random.among(INTEL_MODELS),
            random.among(&[2, 4, 8]),
            random.among(&[3, 4]),
        ) else {
            return;
        };
        let all = CounterMask::first_gp(gp) | CounterMask::first_fixed(fixed);
        let closed = match random.below(2) {
            0 => 0,
            _ => random.next() & random.next() & 0xf,
        };
        let open = CounterMask::from_bits(all.bits() & !closed);
        self.gp_limit = u32::from(gp) >> random.below(2);
        for _ in 0..random.below(usize::from(gp + fixed) + 2) {
            let entry = match random.below(3) {
                0 => None,
                _ => random.among(model.event_constraints),
            };
            let constraint = entry.map(|entry| entry.resolve(all));
            let counters = constraint.map_or(all.gp(), |constraint| constraint.counters);
            self.push(any((counters & open).bits()));
        }
    }

    /// Adds random events of these kinds.
    fn of_kinds(&mut self, random: &mut Random, kinds: &[Want]) {
        for _ in 0..random.below(8) + 1 {
            if let Some(want) = random.among(kinds) {
                self.push(want);
            }
        }
    }

    /// Adds events with random masks of six counters.
    fn of_anything(&mut self, random: &mut Random) {
        self.gp_limit = 4 + random.below(3) as u32;
        for _ in 0..random.below(8) {
            let want = any(random.next() & 0x3f);
            let overlap = random.below(2) == 0;
            self.push(Want { overlap, ..want });
        }
    }
}
