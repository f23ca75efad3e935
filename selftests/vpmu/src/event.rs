// SPDX-License-Identifier: GPL-2.0

//! What an event counts, and on which counters.
//!
//! - Instructions and branches are exact.
//! - Cycles are [`CYCLES`], reference cycles [`REFERENCE_CYCLES`] per instruction.
//! - Every other event of Intel's list counts at a rate of its own, see [`declared_rate`].
//! - What the list does not have, or has for other counters only, counts nothing.

use crate::counter::Source;
use crate::retired::*;

/// One line of Intel's list.
#[derive(Debug)]
pub struct Listed {
    /// IA32_PERFEVTSELx.EVENT_SELECT.
    pub event: u8,
    /// IA32_PERFEVTSELx.UMASK.
    pub umask: u8,
    /// IA32_PERFEVTSELx.CMASK.
    pub cmask: u8,
    /// IA32_PERFEVTSELx.INV.
    pub inv: bool,
    /// IA32_PERFEVTSELx.E.
    pub edge: bool,
    /// The general counters that it counts on. The list knows four of them.
    pub counters: u8,
}

include!(concat!(env!("OUT_DIR"), "/event_lists.rs"));

/// Core cycles: a CPI of 3/2.
pub const CYCLES: Source = Source::rate(3, 2);
/// Cycles at the rate of the TSC, 6/5 of them for each core cycle's turbo.
pub const REFERENCE_CYCLES: Source = Source::rate(5, 4);
/// Cycles of the 100 MHz crystal reference, of a TSC at 2.5 GHz.
const CRYSTAL_CYCLES: Source = Source::rate(5, 100);

/// Retired instructions.
pub const INSTRUCTIONS: Source = exact(&[INSTRUCTIONS_INDEX]);
const INSTRUCTIONS_INDEX: usize = crate::retired::INSTRUCTIONS;

const ALL_BRANCHES: Source = exact(&[
    CONDITIONAL,
    JUMP,
    JUMP_INDIRECT,
    CALL,
    CALL_INDIRECT,
    RETURN,
    FAR,
]);
const NEAR_TAKEN: Source = exact(&[
    CONDITIONAL_TAKEN,
    JUMP,
    JUMP_INDIRECT,
    CALL,
    CALL_INDIRECT,
    RETURN,
]);

const fn exact(indices: &[usize]) -> Source {
    let mut factors = [0; COUNTS];
    let mut i = 0;
    while i < indices.len() {
        factors[indices[i]] = 1;
        i += 1;
    }
    Source::Exact(factors)
}

const fn not_taken() -> Source {
    let mut factors = [0; COUNTS];
    factors[CONDITIONAL] = 1;
    factors[CONDITIONAL_TAKEN] = -1;
    Source::Exact(factors)
}

/// OFFCORE_RESPONSE with this value of its register. No request chosen or no response chosen counts
/// nothing; each one more adds to the count, so that a subset (misses) never exceeds the whole.
pub fn offcore_response(register: u64) -> Source {
    const ANY: u64 = 1 << 16;
    const RESPONSES: u32 = 22;
    let requests = (register as u16).count_ones();
    let responses = match register {
        any if any & ANY != 0 => RESPONSES,
        some => (some >> 16).count_ones(),
    };
    match requests * responses {
        0 => Source::Nothing,
        chosen => Source::rate(chosen, 8192),
    }
}

/// The fields of an event select that say what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Select {
    /// EVENT_SELECT.
    pub event: u8,
    /// UMASK.
    pub umask: u8,
    /// CMASK.
    pub cmask: u8,
    /// INV.
    pub inv: bool,
    /// E.
    pub edge: bool,
}

impl Select {
    /// The fields of IA32_PERFEVTSELx.
    pub fn from_register(value: u64) -> Self {
        Select {
            event: value as u8,
            umask: (value >> 8) as u8,
            cmask: (value >> 24) as u8,
            inv: (value >> 23) & 1 != 0,
            edge: (value >> 18) & 1 != 0,
        }
    }

    /// What general counter `counter` counts.
    pub fn source(self, list: &[Listed], counter: usize) -> Source {
        if (self.counters(list) >> counter) & 1 == 0 {
            return Source::Nothing;
        }
        // No core does ten things of a kind in a cycle: the inverse is true in every cycle. Tools
        // use that to count cycles with a precise event (INST_RETIRED.TOTAL_CYCLES_PS and its
        // like).
        if self.inv && self.cmask >= 10 {
            return CYCLES;
        }
        if self.cmask != 0 || self.inv || self.edge {
            return self.declared_rate();
        }
        match (self.event, self.umask) {
            (0xc0, 0x00 | 0x01) => INSTRUCTIONS,
            (0xc4, 0x00 | 0x04) => ALL_BRANCHES,
            (0xc4, 0x01) => exact(&[CONDITIONAL]),
            (0xc4, 0x02) => exact(&[CALL, CALL_INDIRECT]),
            (0xc4, 0x08) => exact(&[RETURN]),
            (0xc4, 0x10) => not_taken(),
            (0xc4, 0x20) => NEAR_TAKEN,
            (0xc4, 0x40) => exact(&[FAR]),
            (0x3c, 0x00) => CYCLES,
            (0x3c, 0x01) => CRYSTAL_CYCLES,
            _ => self.declared_rate(),
        }
    }

    /// The general counters that count it: those of its line in the list, else of all lines with
    /// its code.
    fn counters(self, list: &[Listed]) -> u8 {
        let code = list
            .iter()
            .filter(|line| (line.event, line.umask) == (self.event, self.umask));
        let line = code
            .clone()
            .find(|line| (line.cmask, line.inv, line.edge) == (self.cmask, self.inv, self.edge));
        let counters = line.map_or_else(
            || code.fold(0, |mask, line| mask | line.counters),
            |line| line.counters,
        );
        // The list is written for a core with two threads. With one thread the other one's counters
        // join, and count everything but what is tied to certain counters.
        match counters {
            0b1111 => 0xff,
            some => some,
        }
    }

    /// An arbitrary rate that is fixed for each event: 1/1024 to 63/1024 per instruction, different
    /// for most.
    pub fn declared_rate(self) -> Source {
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
        Source::rate(mix % 63 + 1, 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn select(event: u8, umask: u8) -> Select {
        Select {
            event,
            umask,
            cmask: 0,
            inv: false,
            edge: false,
        }
    }

    #[test]
    fn every_listed_event_counts_on_its_counters_and_on_no_other() {
        for list in [&HASWELL[..], &SKYLAKE] {
            for line in list {
                let select = Select {
                    event: line.event,
                    umask: line.umask,
                    cmask: line.cmask,
                    inv: line.inv,
                    edge: line.edge,
                };
                for counter in 0..8 {
                    let listed = (line.counters >> counter) & 1 != 0;
                    let joined = counter >= 4 && line.counters == 0b1111;
                    let counts = select.source(list, counter) != Source::Nothing;
                    assert_eq!(counts, listed || joined, "{line:x?} on {counter}");
                }
            }
        }
    }

    #[test]
    fn events_tied_to_a_counter() {
        struct Case(&'static [Listed], Select, u8);
        let stalls_l1d_pending = Select {
            cmask: 12,
            ..select(0xa3, 0x0c)
        };
        let total_cycles = Select {
            cmask: 10,
            inv: true,
            ..select(0xc0, 0x01)
        };
        for Case(list, select, counters) in [
            Case(&HASWELL, select(0x48, 0x01), 0b0100), // L1D_PEND_MISS.PENDING
            Case(&SKYLAKE, select(0x48, 0x01), 0xff),
            Case(&HASWELL, stalls_l1d_pending, 0b0100),
            Case(&HASWELL, select(0xcd, 0x01), 0b1000), // MEM_TRANS_RETIRED.LOAD_LATENCY_*
            Case(&HASWELL, select(0xc0, 0x01), 0b0010), // INST_RETIRED.PREC_DIST
            Case(&SKYLAKE, select(0xc0, 0x01), 0b0010),
            Case(&SKYLAKE, total_cycles, 0b1101), // INST_RETIRED.TOTAL_CYCLES_PS
            Case(&SKYLAKE, select(0xb7, 0x01), 0xff),
            Case(&SKYLAKE, select(0xbb, 0x01), 0xff),
        ] {
            assert_eq!(select.counters(list), counters, "{select:x?}");
        }
    }

    #[test]
    fn events_outside_the_list_count_nothing() {
        assert_eq!(select(0xff, 0xff).source(&HASWELL, 0), Source::Nothing);
        assert_eq!(select(0x00, 0x00).source(&SKYLAKE, 0), Source::Nothing);
        // CORE_POWER.LVL0_TURBO_LICENSE: a server's.
        assert_eq!(select(0x28, 0x07).source(&SKYLAKE, 0), Source::Nothing);
    }

    #[test]
    fn exact_events_are_not_exact_under_a_counter_mask() {
        assert_eq!(select(0xc0, 0x00).source(&HASWELL, 0), INSTRUCTIONS);
        let masked = Select {
            cmask: 1,
            ..select(0xc0, 0x00)
        };
        assert!(matches!(masked.source(&HASWELL, 0), Source::Rate(..)));
        let every_cycle = Select {
            cmask: 16,
            inv: true,
            ..select(0xc0, 0x00)
        };
        assert_eq!(every_cycle.source(&HASWELL, 0), CYCLES);
    }

    #[test]
    fn declared_rates_are_never_zero() {
        for list in [&HASWELL[..], &SKYLAKE] {
            for line in list {
                let Source::Rate(numerator, _) = select(line.event, line.umask).declared_rate()
                else {
                    panic!("{line:?} has no rate");
                };
                assert!((1..=63).contains(&numerator));
            }
        }
    }
}
