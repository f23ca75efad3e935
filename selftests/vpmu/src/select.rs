// SPDX-License-Identifier: GPL-2.0

//! Decodes event selects: the counts of an event select on a model.
//!
//! - Instructions, branches, loads, stores and page walks are exact.
//! - Cycles are [`CYCLES`] per instruction, reference cycles [`REFERENCE_CYCLES`].
//! - Events that are a part of these, such as cache misses of loads, are a declared share of them
//!   ([`Meaning::Part`]).
//! - Every other event of the list counts at its own rate ([`Select::declared_rate`]).
//! - Events that are not in the list, or not for this counter, count nothing.

pub(crate) mod amd;

use crate::event::{
    slots,
    Activity,
    Meaning,
    Register,
    ARCHITECTURAL,
    CRYSTAL_CYCLES,
    CYCLES,
    REFERENCE_CYCLES,
    WHOLE, //
};
use crate::model::{
    Model,
    Offcore, //
};
use crate::retired::PREFETCHES;
use crate::share::{
    self,
    Share,
    Source, //
};

/// Returns what an event counts for loads that took longer than the threshold in MSR_PEBS_LD_LAT.
/// Doubling the threshold halves the count; 4 is the lowest threshold (Intel's lists; SDM vol. 3,
/// 20.3.1.1.2).
pub(crate) fn load_latency(source: Source, threshold: u64) -> Source {
    const LEAST: u32 = 4;
    source.times(LEAST, LEAST.max(threshold as u16 as u32))
}

/// The fields of an event select that determine its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Select {
    /// EVENT_SELECT; AMD's has 12 bits.
    pub(crate) event: u16,
    /// UMASK.
    pub(crate) umask: u8,
    /// CMASK.
    pub(crate) cmask: u8,
    /// INV.
    pub(crate) inv: bool,
    /// E.
    pub(crate) edge: bool,
}

impl Select {
    /// Decodes IA32_PERFEVTSELx.
    pub(crate) fn from_register(value: u64) -> Self {
        Select {
            event: value as u16 & 0xff,
            umask: (value >> 8) as u8,
            cmask: (value >> 24) as u8,
            inv: (value >> 23) & 1 != 0,
            edge: (value >> 18) & 1 != 0,
        }
    }

    /// Looks up the event's meaning on this model and the general counters that count it.
    fn look_up(self, model: &Model) -> LookedUp {
        let code = model.list.with_code(self.event, self.umask);
        let with = |cmask, inv, edge| {
            code.iter()
                .find(|line| (line.cmask, line.inv, line.edge) == (cmask, inv, edge))
        };
        let architectural = ARCHITECTURAL
            .iter()
            .zip(0..)
            .filter(|(_, bit)| model.has_architectural(*bit))
            .find(|((event, umask, _), _)| (*event, *umask) == (self.event, self.umask));
        let line = with(self.cmask, self.inv, self.edge);
        let plain = match (with(0, false, false), architectural) {
            (Some(line), _) => Some(line.meaning),
            (None, Some(((_, _, meaning), _))) => Some(*meaning),
            (None, None) => None,
        };
        // The line with the same fields names the counters or, if there is none, all lines with
        // the same code.
        let counters = line.map_or_else(
            || code.iter().fold(0, |mask, line| mask | line.counters),
            |line| line.counters,
        );
        let counters = match counters {
            0 if architectural.is_some() => 0xff,
            some => some,
        };
        LookedUp {
            plain,
            own: line.map(|line| line.meaning),
            register: code.iter().find_map(|line| line.register),
            counters,
        }
    }

    /// Returns what general counter `counter` counts and the register that further selects it.
    pub(crate) fn source(self, model: &Model, counter: usize) -> (Source, Option<Register>) {
        let found = self.look_up(model);
        if (found.counters >> counter) & 1 == 0 {
            return (Source::Nothing, None);
        }
        let plain = found.plain.unwrap_or(Meaning::Rate(Activity::Instructions));
        let source = match (self.masked(self.plain().meant(plain, model)), found.own) {
            // The list has a line with just these fields, and they would make the event count 0.
            (Source::Nothing, Some(own)) => self.meant(own, model),
            (_, Some(own)) if found.plain.is_none() => self.meant(own, model),
            (source, _) => source,
        };
        (source, found.register)
    }

    /// Returns whether general counter `counter` samples the event precisely on a model with a
    /// format that is not adaptive. INST_RETIRED.ANY_P is precise on all models, because the
    /// built-in driver samples it precisely; only some lists say so, under other names.
    pub(crate) fn is_precise(self, model: &Model, counter: usize) -> bool {
        const INST_RETIRED_ANY_P: (u16, u8) = (0xc0, 0);
        let code = model.list.with_code(self.event, self.umask);
        let counters = code.iter().fold(0, |mask, line| mask | line.precise);
        (self.event, self.umask) == INST_RETIRED_ANY_P || (counters >> counter) & 1 != 0
    }

    /// Clears CMASK, INV and E, which only select cycles.
    fn plain(self) -> Self {
        Select {
            cmask: 0,
            inv: false,
            edge: false,
            ..self
        }
    }

    /// Returns what the event counts, given its meaning.
    fn meant(self, meaning: Meaning, model: &Model) -> Source {
        match meaning {
            Meaning::Cycles => CYCLES,
            Meaning::ReferenceCycles => REFERENCE_CYCLES,
            Meaning::CrystalCycles => CRYSTAL_CYCLES,
            Meaning::Slots => slots(model.slots),
            Meaning::Part(of, 0, WHOLE) => of.all(),
            Meaning::Part(of, low, high) => of.part(low, high, WHOLE),
            Meaning::PartAndPrefetches(of, 0, WHOLE) => {
                Source::Share(of.whole().and_each(&[PREFETCHES]))
            }
            Meaning::PartAndPrefetches(of, low, high) => {
                let share = Share::new(of.kinds(), low, high, WHOLE);
                Source::Share(share.and_each(&[PREFETCHES]))
            }
            Meaning::Rate(of) => self.declared_rate(of),
        }
    }

    /// Applies CMASK, INV and E to an event that counts `source` without them. CMASK counts the
    /// cycles with at least CMASK events, INV those with fewer. Without CMASK, INV is ignored (SDM
    /// vol. 3, 20.2.1.1) and E takes CMASK as 1.
    ///
    /// Events at a fixed rate are spread evenly: at 5/3 a cycle, every cycle has one and two of
    /// three have two. Of other events, a cycle has at most one. E counts half of the cycles in
    /// which the condition holds, and none if it always holds.
    fn masked(self, source: Source) -> Source {
        let Source::Share(share) = source else {
            return source;
        };
        let holds = match (self.cmask, self.edge) {
            (0, false) => return source,
            (0, true) => at_least(share, 1),
            (cmask, _) => at_least(share, u32::from(cmask)),
        };
        let inverted = self.inv && self.cmask != 0;
        match (holds, inverted, self.edge) {
            (Holds::Always, false, false) | (Holds::Never, true, false) => CYCLES,
            (Holds::Sometimes(share), false, false) => Source::Share(share),
            (Holds::Sometimes(share), true, false) => Source::CyclesWithout(share),
            (Holds::Sometimes(share), _, true) => Source::Share(share.times(1, 2)),
            (Holds::Always | Holds::Never, _, _) => Source::Nothing,
        }
    }

    /// Returns an arbitrary but fixed rate for this event select: 1/1024 to 63/1024 of the
    /// activity, different for most selects.
    pub(crate) fn declared_rate(self, of: Activity) -> Source {
        let Select {
            event,
            umask,
            cmask,
            inv,
            edge,
        } = self;
        let mix = 37 * u32::from(event)
            + 11 * u32::from(umask)
            + 7 * u32::from(cmask)
            + 5 * u32::from(inv)
            + 3 * u32::from(edge);
        of.part(0, mix % 63 + 1, 1024)
    }
}

/// The entries of a model's list for an event select.
struct LookedUp {
    /// The event's meaning without CMASK, INV and E, if it is listed or architectural.
    plain: Option<Meaning>,
    /// The meaning of the line with exactly these fields.
    own: Option<Meaning>,
    register: Option<Register>,
    counters: u8,
}

/// The cycles in which a condition holds.
enum Holds {
    Never,
    Sometimes(Share),
    Always,
}

/// Returns the cycles in which at least `cmask` events of `share` happen.
fn at_least(share: Share, cmask: u32) -> Holds {
    if !share.is_steady() {
        return match cmask {
            1 => Holds::Sometimes(share),
            _ => Holds::Never,
        };
    }
    // Each cycle has `whole` events, and `rest` of `denominator` cycles one more.
    let events = (share.high - share.low) * share::CYCLES.denominator;
    let denominator = share.denominator * share::CYCLES.high;
    let (whole, rest) = (events / denominator, events % denominator);
    match cmask {
        cmask if cmask <= whole => Holds::Always,
        cmask if cmask == whole + 1 && whole == 0 => Holds::Sometimes(share),
        cmask if cmask == whole + 1 && rest != 0 => Holds::Sometimes(Share {
            low: 0,
            high: rest,
            denominator: share.denominator * share::CYCLES.denominator,
            ..share
        }),
        _ => Holds::Never,
    }
}

/// Returns what an offcore response event counts with this value of its register. Loads and stores
/// are the requests. Without a request bit or without a response bit it counts nothing; each
/// further bit adds to the count, so that a subset (misses) never exceeds the whole.
pub(crate) fn offcore_response(offcore: Offcore, register: u64) -> Source {
    const ANY: u32 = 22;
    let requests = ((1 << offcore.first_response) - 1) | offcore.high_requests;
    let responses = register & !requests & !offcore.only_first;
    let requests = (register & requests).count_ones();
    let responses = match responses >> offcore.first_response {
        responses if offcore.any && responses & 1 != 0 => ANY,
        responses => responses.count_ones(),
    };
    match requests * responses {
        0 => Source::Nothing,
        chosen => Activity::Memory.part(0, chosen, 8192),
    }
}

/// Returns what a snoop response event counts with this value of its register: nothing without a
/// bit; each bit adds to the count.
pub(crate) fn snoop_response(register: u64) -> Source {
    match register.count_ones() {
        0 => Source::Nothing,
        bits => Activity::Memory.part(0, bits, 8192),
    }
}

#[cfg(test)]
mod tests;
