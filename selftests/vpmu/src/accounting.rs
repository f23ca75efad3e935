// SPDX-License-Identifier: GPL-2.0

//! How often each register was accessed.
//!
//! All counts are atomics because QEMU may ask for the report while the CPU still runs.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// What is counted for one register.
#[derive(Debug, Default)]
pub struct Accesses {
    /// RDMSR or RDPMC.
    pub reads: AtomicU64,
    /// WRMSR.
    pub writes: AtomicU64,
    /// Either, answered with #GP.
    pub faults: AtomicU64,
}

impl Accesses {
    fn clear(&self) {
        for count in [&self.reads, &self.writes, &self.faults] {
            count.store(0, Relaxed);
        }
    }

    fn is_zero(&self) -> bool {
        [&self.reads, &self.writes, &self.faults]
            .iter()
            .all(|count| count.load(Relaxed) == 0)
    }
}

/// The ranges of MSRs that are accounted one by one, as first and last.
const RANGES: [(u32, u32); 11] = [
    (0x0c1, 0x0c8), // IA32_PMCx
    (0x10f, 0x10f), // TSX_FORCE_ABORT
    (0x186, 0x18d), // IA32_PERFEVTSELx
    (0x1a0, 0x1a7), // IA32_MISC_ENABLE, MSR_OFFCORE_RSP_x
    (0x1d9, 0x1d9), // IA32_DEBUGCTL
    (0x309, 0x30f), // IA32_FIXED_CTRx
    (0x345, 0x345), // IA32_PERF_CAPABILITIES
    (0x38d, 0x392), // IA32_FIXED_CTR_CTRL, IA32_PERF_GLOBAL_*
    (0x3f1, 0x3f7), // IA32_PEBS_ENABLE, MSR_PEBS_LD_LAT, MSR_PEBS_FRONTEND
    (0x4c1, 0x4c8), // IA32_A_PMCx
    (LVTPC, LVTPC),
];

/// LVTPC by its x2APIC address; writes through memory are counted here as well.
pub const LVTPC: u32 = 0x834;

const fn slots() -> usize {
    let mut sum = 0;
    let mut i = 0;
    while i < RANGES.len() {
        sum += (RANGES[i].1 - RANGES[i].0 + 1) as usize;
        i += 1;
    }
    sum
}

const MSRS: usize = slots();
/// RDPMC of general counters 0-7 and fixed counters 0-3.
const COUNTERS: usize = 8 + 4;

/// What a marker sums up.
const TOTALS: [&str; 7] = [
    "reads", "writes", "rdpmc", "faults", "pmi", "kernel", "user",
];

/// The guest wrote `.0` to the marker register when the totals stood at `.1`.
type Mark = (u64, [u64; TOTALS.len()]);
/// Markers that are kept: a guest must not use up the host's memory.
const MAX_MARKS: usize = 1 << 16;

/// The accounting of one CPU.
#[derive(Debug)]
pub struct Accounting {
    msrs: [Accesses; MSRS],
    /// All other registers of the PMU together: those that do not exist.
    other: Accesses,
    counters: [Accesses; COUNTERS],
    /// RDPMC of anything else.
    no_counter: Accesses,
    /// PMIs delivered.
    pub pmis: AtomicU64,
    /// PMIs that found LVTPC masked.
    pub lost: AtomicU64,
    /// Instructions retired at CPL 0 and above it: while something counts, or from
    /// [`watch`](Self::watch) on.
    pub instructions: [AtomicU64; 2],
    watched: AtomicBool,
    marks: Mutex<Vec<Mark>>,
}

impl Default for Accounting {
    fn default() -> Self {
        Accounting {
            msrs: std::array::from_fn(|_| Accesses::default()),
            other: Accesses::default(),
            counters: Default::default(),
            no_counter: Accesses::default(),
            pmis: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            instructions: Default::default(),
            watched: AtomicBool::new(false),
            marks: Mutex::default(),
        }
    }
}

/// Adds one.
pub fn bump(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

impl Accounting {
    /// The accesses to an MSR.
    pub fn msr(&self, msr: u32) -> &Accesses {
        let mut slot = 0;
        for (first, last) in RANGES {
            if (first..=last).contains(&msr) {
                return &self.msrs[slot + (msr - first) as usize];
            }
            slot += (last - first + 1) as usize;
        }
        &self.other
    }

    /// The uses of RDPMC with this ECX.
    pub fn rdpmc(&self, ecx: u32) -> &Accesses {
        match (ecx >> 30, ecx & !(1 << 30)) {
            (0, index @ 0..=7) => &self.counters[index as usize],
            (1, index @ 0..=3) => &self.counters[8 + index as usize],
            _ => &self.no_counter,
        }
    }

    /// From now on all instructions are to be accounted, whether something counts or not.
    pub fn watch(&self) {
        self.watched.store(true, Relaxed);
    }

    /// Are all instructions to be accounted?
    pub fn is_watched(&self) -> bool {
        self.watched.load(Relaxed)
    }

    /// Starts from zero.
    pub fn clear(&self) {
        self.all().for_each(|(_, accesses)| accesses.clear());
        self.marks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
        for count in [&self.pmis, &self.lost]
            .into_iter()
            .chain(&self.instructions)
        {
            count.store(0, Relaxed);
        }
    }

    /// Sets a marker: the report will say what came about since the one before it.
    pub fn mark(&self, value: u64) {
        let mut totals = [0; TOTALS.len()];
        let [reads, writes, rdpmc, faults, pmis, kernel, user] = &mut totals;
        for (name, accesses) in self.all() {
            let read = accesses.reads.load(Relaxed);
            *(if name.starts_with("msr") {
                &mut *reads
            } else {
                &mut *rdpmc
            }) += read;
            *writes += accesses.writes.load(Relaxed);
            *faults += accesses.faults.load(Relaxed);
        }
        *pmis = self.pmis.load(Relaxed);
        *kernel = self.instructions[0].load(Relaxed);
        *user = self.instructions[1].load(Relaxed);
        let mut marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.len() < MAX_MARKS {
            marks.push((value, totals));
        }
    }

    /// All accesses with what they are accesses to.
    fn all(&self) -> impl Iterator<Item = (String, &Accesses)> {
        let numbers = RANGES.into_iter().flat_map(|(first, last)| first..=last);
        let msrs = numbers
            .zip(&self.msrs)
            .map(|(msr, accesses)| (format!("msr {msr:#x}"), accesses));
        let counters = self
            .counters
            .iter()
            .enumerate()
            .map(|(i, accesses)| match i {
                0..8 => (format!("rdpmc {i}"), accesses),
                _ => (format!("rdpmc fixed{}", i - 8), accesses),
            });
        let rest = [
            ("msr other".into(), &self.other),
            ("rdpmc other".into(), &self.no_counter),
        ];
        msrs.chain(counters).chain(rest)
    }
}

impl fmt::Display for Accounting {
    /// One line for each register that was used, then the totals.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, accesses) in self.all().filter(|(_, accesses)| !accesses.is_zero()) {
            let [reads, writes, faults] = [&accesses.reads, &accesses.writes, &accesses.faults]
                .map(|count| count.load(Relaxed));
            writeln!(f, "{name} reads {reads} writes {writes} faults {faults}")?;
        }
        writeln!(
            f,
            "pmi {} lost {}",
            self.pmis.load(Relaxed),
            self.lost.load(Relaxed)
        )?;
        let [kernel, user] = [0, 1].map(|user| self.instructions[user].load(Relaxed));
        writeln!(f, "instructions kernel {kernel} user {user}")?;

        let mut before = [0; TOTALS.len()];
        let marks = self.marks.lock().unwrap_or_else(PoisonError::into_inner);
        for (value, totals) in marks.iter() {
            write!(f, "mark {value:#x}")?;
            for ((name, total), before) in TOTALS.iter().zip(totals).zip(before) {
                write!(f, " {name} {}", total - before)?;
            }
            writeln!(f)?;
            before = *totals;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_register_has_a_place_of_its_own() {
        let accounting = Accounting::default();
        for (first, last) in RANGES {
            for msr in first..=last {
                bump(&accounting.msr(msr).reads);
                assert_eq!(accounting.msr(msr).reads.load(Relaxed), 1, "{msr:#x}");
            }
        }
        assert_eq!(accounting.other.reads.load(Relaxed), 0);
        bump(&accounting.msr(0x600).reads);
        assert_eq!(accounting.other.reads.load(Relaxed), 1);
    }

    #[test]
    fn the_report_has_what_was_used() {
        let accounting = Accounting::default();
        bump(&accounting.msr(0x38f).writes);
        bump(&accounting.rdpmc((1 << 30) | 1).reads);
        bump(&accounting.pmis);
        assert_eq!(
            accounting.to_string(),
            "msr 0x38f reads 0 writes 1 faults 0\n\
             rdpmc fixed1 reads 1 writes 0 faults 0\n\
             pmi 1 lost 0\n\
             instructions kernel 0 user 0\n"
        );
        accounting.clear();
        assert_eq!(
            accounting.to_string(),
            "pmi 0 lost 0\ninstructions kernel 0 user 0\n"
        );
    }

    #[test]
    fn markers_bracket_what_is_between_them() {
        let accounting = Accounting::default();
        bump(&accounting.msr(0x38f).writes);
        accounting.mark(1);
        bump(&accounting.msr(0x38f).writes);
        bump(&accounting.msr(0x600).reads);
        bump(&accounting.msr(0x600).faults);
        bump(&accounting.rdpmc(0).reads);
        accounting.instructions[1].fetch_add(7, Relaxed);
        accounting.mark(0xbeef);
        let report = accounting.to_string();
        let marks: Vec<_> = report
            .lines()
            .filter(|line| line.starts_with("mark"))
            .collect();
        assert_eq!(
            marks,
            [
                "mark 0x1 reads 0 writes 1 rdpmc 0 faults 0 pmi 0 kernel 0 user 0",
                "mark 0xbeef reads 1 writes 1 rdpmc 1 faults 1 pmi 0 kernel 0 user 7"
            ]
        );
        accounting.clear();
        assert!(!accounting.to_string().contains("mark"));
    }
}
