// SPDX-License-Identifier: GPL-2.0

//! Accounting of register accesses, PMIs and instructions.
//!
//! All counts are atomic, as QEMU may request the report while the CPU runs.

use std::fmt;
use std::sync::atomic::{
    AtomicBool,
    AtomicU64,
    Ordering::Relaxed, //
};
use std::sync::{
    Mutex,
    PoisonError, //
};

/// The accesses to one register.
#[derive(Debug, Default)]
pub(crate) struct Accesses {
    /// RDMSR or RDPMC.
    pub(crate) reads: AtomicU64,
    /// WRMSR, or a write of the memory-mapped LVTPC.
    pub(crate) writes: AtomicU64,
    /// Accesses that raised #GP.
    pub(crate) faults: AtomicU64,
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

/// The MSRs that are accounted individually, as ranges of first and last.
const RANGES: [(u32, u32); 16] = [
    (0x0c1, 0x0c8), // IA32_PMCx
    (0x10f, 0x10f), // TSX_FORCE_ABORT
    (0x186, 0x18d), // IA32_PERFEVTSELx
    (0x1a0, 0x1a7), // IA32_MISC_ENABLE, MSR_OFFCORE_RSP_x
    (0x1d9, 0x1d9), // IA32_DEBUGCTL
    (0x309, 0x30f), // IA32_FIXED_CTRx
    (0x329, 0x329), // MSR_PERF_METRICS
    (0x345, 0x345), // IA32_PERF_CAPABILITIES
    (0x38d, 0x392), // IA32_FIXED_CTR_CTRL, IA32_PERF_GLOBAL_*
    (0x3f1, 0x3f7), // IA32_PEBS_ENABLE, MSR_PEBS_LD_LAT, MSR_PEBS_FRONTEND
    (0x4c1, 0x4c8), // IA32_A_PMCx
    (LVTPC, LVTPC),
    (0x1328, 0x1329),           // MSR_SNOOP_RSP_x
    (0xc000_0300, 0xc000_0303), // AMD's PerfCntrGlobal*
    (0xc001_0000, 0xc001_0007), // PERF_LEGACY_CTLx, PERF_LEGACY_CTRx
    (0xc001_0200, 0xc001_020b), // PERF_CTLx, PERF_CTRx
];

/// LVTPC, by its x2APIC number. Writes to the memory-mapped register are accounted under this
/// number as well.
pub(crate) const LVTPC: u32 = 0x834;

/// ECX of RDPMC for MSR_PERF_METRICS.
pub(crate) const RDPMC_METRICS: u32 = 1 << 29;

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
/// RDPMC of general counters 0-7, fixed counters 0-3 and MSR_PERF_METRICS.
const COUNTERS: usize = 8 + 4 + 1;

/// The totals that a mark reports.
const TOTALS: [&str; 7] = [
    "reads", "writes", "rdpmc", "faults", "pmi", "kernel", "user",
];

/// A mark: the value that the guest wrote, and the totals at that time.
type Mark = (u64, [u64; TOTALS.len()]);
/// Maximum number of marks, so that a guest cannot use up the host's memory.
const MAX_MARKS: usize = 1 << 16;

/// The accounting of one CPU.
#[derive(Debug)]
pub(crate) struct Accounting {
    msrs: [Accesses; MSRS],
    /// All MSRs outside [`RANGES`] together, such as branch records and those of absent features.
    other: Accesses,
    counters: [Accesses; COUNTERS],
    /// RDPMC of counters that do not exist.
    no_counter: Accesses,
    /// PMIs delivered.
    pub(crate) pmis: AtomicU64,
    /// PMIs that found LVTPC masked.
    pub(crate) lost: AtomicU64,
    /// Instructions retired at CPL 0 and at CPL 1 to 3, while QEMU counts for the PMU or after
    /// [`watch`](Self::watch).
    pub(crate) instructions: [AtomicU64; 2],
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

/// Increments a count.
pub(crate) fn bump(count: &AtomicU64) {
    count.fetch_add(1, Relaxed);
}

impl Accounting {
    /// Returns the accesses to an MSR.
    pub(crate) fn msr(&self, msr: u32) -> &Accesses {
        let mut slot = 0;
        for (first, last) in RANGES {
            if (first..=last).contains(&msr) {
                return &self.msrs[slot + (msr - first) as usize];
            }
            slot += (last - first + 1) as usize;
        }
        &self.other
    }

    /// Returns the executions of RDPMC with this ECX.
    pub(crate) fn rdpmc(&self, ecx: u32) -> &Accesses {
        match (ecx >> 30, ecx & !(1 << 30)) {
            (0, index @ 0..=7) => &self.counters[index as usize],
            (0, RDPMC_METRICS) => &self.counters[12],
            (1, index @ 0..=3) => &self.counters[8 + index as usize],
            _ => &self.no_counter,
        }
    }

    /// Starts the accounting of all instructions, whether a counter counts or not.
    pub(crate) fn watch(&self) {
        self.watched.store(true, Relaxed);
    }

    /// Returns whether all instructions are accounted.
    pub(crate) fn is_watched(&self) -> bool {
        self.watched.load(Relaxed)
    }

    /// Clears all counts and marks.
    pub(crate) fn clear(&self) {
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

    /// Sets a mark, unless there are [`MAX_MARKS`] already. The report has the differences between
    /// the totals at this mark and at the one before.
    pub(crate) fn mark(&self, value: u64) {
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

    /// Iterates over all accesses, with the name of the register.
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
                12 => ("rdpmc metrics".into(), accesses),
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
    /// Writes the report: a line for each register that was accessed, the totals, the marks.
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
    fn every_register_has_its_own_count() {
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
        for ecx in (0..8).chain((1 << 30)..(1 << 30) + 4).chain([1 << 29]) {
            bump(&accounting.rdpmc(ecx).reads);
            assert_eq!(accounting.rdpmc(ecx).reads.load(Relaxed), 1, "{ecx:#x}");
        }
        assert_eq!(accounting.no_counter.reads.load(Relaxed), 0);
        assert!(accounting.to_string().contains("\nrdpmc metrics reads 1 "));
    }

    #[test]
    fn the_report_lists_accessed_registers() {
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
    fn marks_report_what_happened_between_them() {
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
