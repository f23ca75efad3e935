// SPDX-License-Identifier: GPL-2.0

//! The layout of a record, in words of 64 bits: SDM vol. 3, 20.3.1.1.1 (Nehalem), 20.3.6.2
//! (Haswell), 20.3.8.1 (Skylake) and 20.9.2 (adaptive).

use super::access::{
    GPR,
    LBR,
    LBR_ENTRIES_SHIFT,
    LOAD_LATENCY_SHIFT,
    MEMORY,
    PRECISE_STORE,
    XMM, //
};
use super::{
    FIXED_ADAPTIVE,
    SELECT_ADAPTIVE, //
};
use crate::event::Register;
use crate::model::{
    Pebs,
    PebsFormat, //
};
use crate::pmu::registers::FIXED_SHIFT;
use crate::pmu::state::Pmu;
use crate::retired::{
    LOADS,
    STORES,
    WALK_LOAD,
    WALK_STORE, //
};
use crate::sample::Sample;

/// Numbers of the general registers, in the order of the formats up to Skylake: RAX, RBX, RCX, RDX,
/// RSI, RDI, RBP, RSP, R8 to R15.
const OLD_ORDER: [usize; 16] = [0, 3, 1, 2, 6, 7, 5, 4, 8, 9, 10, 11, 12, 13, 14, 15];

/// TSX: no instruction is in a transaction.
const NO_TSX: u64 = 0;

/// Data sources (SDM vol. 3, 20.3.1.1.2): L1, L2, L3 without a snoop, local memory. The flags of
/// the STLB and of locks are clear.
const SOURCES: [u64; 4] = [0x1, 0x3, 0x4, 0xa];
/// By declaration, the data source depends on the latency in cycles; these are the limits of the
/// sources.
const SOURCE_BOUNDS: [u64; 3] = [8, 32, 128];
/// The data source of a store: it hit the L1.
const STORE_HIT: u64 = 1;
/// Minimum of the declared latency, in cycles.
const LEAST_LATENCY: u64 = 4;
/// In a record with two latencies, the cache latency is above the instruction's; both have 16 bits.
const CACHE_LATENCY_SHIFT: usize = 32;
/// Maximum of each latency in a record with two latencies.
const MOST_LATENCY: u64 = 0xffff;

/// The latency of retirement is in the basic group's first word, above the groups.
const RETIRE_LATENCY_SHIFT: u32 = 32;
/// By declaration, it is one cycle plus the number in these bits of the instruction's address.
const RETIRE_LATENCY_BITS: u64 = 0xf;

/// The fields of a record for the instruction's memory access.
#[derive(Debug, Clone, Copy, Default)]
struct Access {
    /// Linear address.
    address: u64,
    /// Data source.
    source: u64,
    /// Latency.
    latency: u64,
}

impl Pmu {
    /// Returns the record that is written for these counters.
    pub(super) fn pebs_record(&self, counters: u64, sample: &Sample) -> Vec<u64> {
        match self.pebs.map(|pebs| pebs.format) {
            None => Vec::new(),
            Some(PebsFormat::Adaptive) => self.adaptive_record(counters, sample),
            Some(format) => self.old_record(format, counters, sample),
        }
    }

    /// Returns a record of the formats up to Skylake.
    fn old_record(&self, format: PebsFormat, counters: u64, sample: &Sample) -> Vec<u64> {
        let status = if format >= PebsFormat::Skylake {
            counters
        } else {
            self.regs.global_status
        };
        let access = self.access(counters, sample);
        let mut record = vec![sample.flags, sample.next_ip];
        record.extend(OLD_ORDER.map(|number| sample.regs[number]));
        record.extend([status, access.address, access.source, access.latency]);
        if format >= PebsFormat::Haswell {
            record.extend([sample.ip, NO_TSX]);
        }
        if format >= PebsFormat::Skylake {
            record.push(sample.tsc);
        }
        record
    }

    /// Returns an adaptive record: the groups that MSR_PEBS_DATA_CFG selects if any of the counters
    /// has its flag set, otherwise the basic group alone.
    fn adaptive_record(&self, counters: u64, sample: &Sample) -> Vec<u64> {
        let mut groups = match counters & self.adaptive_counters() {
            0 => 0,
            _ => self.regs.pebs.data_cfg,
        };
        if groups & LBR == 0 {
            groups &= MEMORY | GPR | XMM;
        }
        let mut record = vec![groups, sample.ip, counters, sample.tsc];
        if groups & MEMORY != 0 {
            let access = self.access(counters, sample);
            record.extend([access.address, access.source, access.latency, NO_TSX]);
        }
        if groups & GPR != 0 {
            record.extend([sample.flags, sample.next_ip]);
            record.extend(sample.regs);
        }
        if groups & XMM != 0 {
            record.extend(sample.xmm.iter().flatten());
        }
        if groups & LBR != 0 {
            for age in 0..=(groups >> LBR_ENTRIES_SHIFT) as usize {
                record.extend(self.lbr_by_age(age));
            }
        }
        record[0] |= self.retire_latency(counters, sample) << RETIRE_LATENCY_SHIFT;
        record[0] |= (8 * record.len() as u64) << 48;
        record
    }

    /// Returns the cycles between the retirements of the previous instruction and of this one; 0 if
    /// records do not have them. Fixed counter 0 does not support them, by the kernel's
    /// `rwc_get_event_constraints()`.
    fn retire_latency(&self, counters: u64, sample: &Sample) -> u64 {
        let has_them = self.pebs.is_some_and(|pebs| pebs.retire_latency);
        if has_them && counters != 1 << FIXED_SHIFT {
            1 + (sample.ip & RETIRE_LATENCY_BITS)
        } else {
            0
        }
    }

    /// Returns the counters with the flag of adaptive records.
    fn adaptive_counters(&self) -> u64 {
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let general = general.filter(|(general, _)| general.select & SELECT_ADAPTIVE != 0);
        let general = general.fold(0, |mask, (_, i)| mask | (1 << i));
        let fixed = (0..self.model.fixed)
            .filter(|i| self.regs.fixed_ctrl & (FIXED_ADAPTIVE << (4 * i)) != 0);
        fixed.fold(general, |mask, i| mask | (1 << (FIXED_SHIFT + i)))
    }

    /// Returns the latency in a record for a load of this many cycles. By declaration, the caches
    /// take half of them.
    fn latency_field(&self, latency: u64) -> u64 {
        if self.pebs.is_some_and(|pebs| pebs.two_latencies) {
            let latency = latency.min(MOST_LATENCY);
            latency | ((latency / 2) << CACHE_LATENCY_SHIFT)
        } else {
            latency
        }
    }

    /// Returns the record's fields for the memory access: those for the first counter with an event
    /// of loads or stores.
    fn access(&self, counters: u64, sample: &Sample) -> Access {
        let generals = (0..self.generals).filter(|i| counters & (1 << i) != 0);
        let mut accesses = generals.filter_map(|i| self.access_of(i, sample));
        accesses.next().unwrap_or_default()
    }

    /// Returns the fields of one general counter for the memory access, or `None` if its event has
    /// none: other events than those of loads and stores and, if these have no addresses, all but
    /// load latency and precise store.
    fn access_of(&self, counter: usize, sample: &Sample) -> Option<Access> {
        let Pebs {
            format, addresses, ..
        } = self.pebs?;
        let enable = self.regs.pebs.enable;
        let latency_enabled =
            format == PebsFormat::Adaptive || enable & (1 << (LOAD_LATENCY_SHIFT + counter)) != 0;
        if self.regs.general[counter].register == Some(Register::LoadLatency) && latency_enabled {
            // It is more than the threshold.
            let latency = (self.regs.ld_lat + 1).max(LEAST_LATENCY);
            let source = SOURCE_BOUNDS
                .iter()
                .filter(|&&bound| latency >= bound)
                .count();
            return Some(Access {
                address: sample.load,
                source: SOURCES[source],
                latency: self.latency_field(latency),
            });
        }
        let source = self.general_source(counter);
        let stores = source.is_of(&[STORES, WALK_STORE]) && sample.store != 0;
        if stores && (addresses || enable & PRECISE_STORE != 0) {
            Some(Access {
                address: sample.store,
                source: STORE_HIT,
                latency: 0,
            })
        } else if source.is_of(&[LOADS, WALK_LOAD]) && addresses {
            Some(Access {
                address: sample.load,
                ..Access::default()
            })
        } else {
            None
        }
    }
}
