// SPDX-License-Identifier: GPL-2.0

//! The records in the PEBS buffer of the DS area, which the processor writes.
//!
//! Hardware writes the buffer, so it is read word by word and its content is not trusted:
//! [`Records`] ends at a record that does not fit into the rest of the buffer, that has unknown
//! groups, or whose size does not match its groups.
//!
//! Source: SDM volume 3, 20.3.1.1.1 (Nehalem), 20.3.6.2 (Haswell), 20.3.8.1 (Skylake) and 20.9.2
//! (adaptive). Mainline: `struct pebs_record_nhm` and the structures after it,
//! `arch/x86/events/intel/ds.c`, and `struct pebs_basic`, `arch/x86/include/asm/perf_event.h`.
//!
//! Context: any, NMIs included.

#[cfg(test)]
mod tests;

use crate::logic::{
    capabilities::PebsFormat,
    regs::counter::CounterMask, //
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::Relaxed, //
};

impl PebsFormat {
    /// Returns the number of words of a record with these `groups`, which only
    /// [`Adaptive`](Self::Adaptive) has.
    pub const fn words(self, groups: Groups) -> usize {
        match self {
            Self::Nehalem => 22,
            Self::Haswell => 24,
            Self::Skylake => 25,
            Self::Adaptive => groups.words(),
        }
    }
}

/// The groups of an adaptive record: bits of MSR_PEBS_DATA_CFG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups(u64);

impl Groups {
    /// The memory access, and TSX.
    pub const MEMORY: u64 = 1 << 0;
    /// The general registers.
    pub const REGISTERS: u64 = 1 << 1;
    /// The XMM registers.
    pub const XMM: u64 = 1 << 2;
    /// Recorded branches.
    const BRANCHES: u64 = 1 << 3;
    const BRANCHES_SHIFT: u32 = 24;
    /// The known bits. The layout of records with other bits is unknown.
    const KNOWN: u64 = Self::MEMORY
        | Self::REGISTERS
        | Self::XMM
        | Self::BRANCHES
        | (0xff << Self::BRANCHES_SHIFT);

    /// Makes a set of groups from the constants.
    pub const fn new(groups: u64) -> Self {
        Self(groups & (Self::MEMORY | Self::REGISTERS | Self::XMM))
    }

    /// Adds the last `depth` branches; one if `depth` is 0.
    #[must_use]
    pub const fn with_branches(self, depth: u8) -> Self {
        let last = (depth as u64).saturating_sub(1);
        Self(self.0 | Self::BRANCHES | (last << Self::BRANCHES_SHIFT))
    }

    /// Returns the groups in either set. If both have branches, the numbers of branches must be the
    /// same.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the value of MSR_PEBS_DATA_CFG.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the number of words of a record.
    #[inline]
    const fn words(self) -> usize {
        self.words_before(0) + 3 * self.branches()
    }

    /// Returns the groups and the size of a record, as in its first word.
    const fn layout(self) -> u64 {
        // CAST: at most a few thousand.
        self.0 | ((self.words() as u64).wrapping_mul(size_of::<u64>() as u64) << 48)
    }

    /// Returns the number of words before `group` in a record; for 0, the number of all words but
    /// those of the branches.
    #[inline]
    const fn words_before(self, group: u64) -> usize {
        let mut words = 4;
        let mut of = [(Self::MEMORY, 4), (Self::REGISTERS, 18), (Self::XMM, 32)].as_slice();
        while let [(other, its), rest @ ..] = of {
            if *other == group {
                return words;
            }
            if self.has(*other) {
                words += *its;
            }
            of = rest;
        }
        words
    }

    /// Returns where `group` begins, if it is included.
    #[inline]
    const fn place(self, group: u64) -> Option<usize> {
        if self.has(group) {
            Some(self.words_before(group))
        } else {
            None
        }
    }

    /// Returns whether these groups are included.
    const fn has(self, group: u64) -> bool {
        self.0 & group != 0
    }

    /// Returns the number of branches in a record.
    const fn branches(self) -> usize {
        if self.has(Self::BRANCHES) {
            // CAST: at most 255.
            ((self.0 >> Self::BRANCHES_SHIFT) & 0xff) as usize + 1
        } else {
            0
        }
    }
}

/// The memory access of the instruction. The meaning of the values depends on the event
/// ([`PebsData`](crate::logic::model::pebs_events::PebsData)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The linear address.
    pub address: u64,
    /// The data source.
    pub source: u64,
    /// The latency in cycles.
    pub latency: u64,
}

/// A record. Its parts are only read when they are needed.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    format: PebsFormat,
    /// The groups of an adaptive record.
    groups: Groups,
    /// All words of the record, as many as the format and the groups have.
    words: &'a [AtomicU64],
}

/// The counters to which a record belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// All of these counters. Empty if the record belongs to none of the precise events, or if its
    /// owner is not certain.
    Of(CounterMask),
    /// One of these counters. The record does not show which, so the record is lost.
    OneOf(CounterMask),
}

impl<'a> Record<'a> {
    /// TSX: an abort of a transaction, in [`transaction`](Self::transaction)
    /// (`PERF_TXN_TRANSACTION`).
    const TRANSACTION: u64 = 1 << 1;

    #[inline(always)]
    fn word(&self, n: usize) -> u64 {
        self.words.get(n).map_or(0, |word| word.load(Relaxed))
    }

    /// Returns the start of `group` in an adaptive record, or `place`, the start of the same part
    /// in other formats. [`None`] if the part is not included.
    #[inline(always)]
    fn place(&self, group: u64, place: usize) -> Option<usize> {
        if self.format == PebsFormat::Adaptive {
            self.groups.place(group)
        } else {
            Some(place)
        }
    }

    /// Returns the counters of the record, as bits of IA32_PERF_GLOBAL_CTRL. Before Skylake,
    /// returns the value of IA32_PERF_GLOBAL_STATUS at the time of writing: it includes counters
    /// that have overflowed for other reasons, and sometimes lacks the record's own.
    #[inline]
    pub fn counters(&self) -> u64 {
        self.word(if self.format == PebsFormat::Adaptive {
            2
        } else {
            18
        })
    }

    /// Returns the address of the instruction, if the record has it.
    #[inline]
    pub fn ip(&self) -> Option<u64> {
        match self.format {
            PebsFormat::Nehalem => None,
            PebsFormat::Haswell | PebsFormat::Skylake => Some(self.word(22)),
            PebsFormat::Adaptive => Some(self.word(1)),
        }
    }

    /// Returns RFLAGS and the address of the next instruction, if they are included.
    #[inline]
    pub fn flags_and_next_ip(&self) -> Option<(u64, u64)> {
        let at = self.place(Groups::REGISTERS, 0)?;
        Some((self.word(at), self.word(at.wrapping_add(1))))
    }

    /// Returns the general registers at the end of the instruction, if they are included: RAX, RCX,
    /// RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub fn general(&self) -> Option<[u64; 16]> {
        let at = self.place(Groups::REGISTERS, 0)?.wrapping_add(2);
        let words = self.words.get(at..)?.first_chunk::<16>()?;
        let values = words.each_ref().map(|word| word.load(Relaxed));
        if self.format == PebsFormat::Adaptive {
            return Some(values);
        }
        let [ax, bx, cx, dx, si, di, bp, sp, r8, r9, r10, r11, r12, r13, r14, r15] = values;
        Some([
            ax, cx, dx, bx, sp, bp, si, di, r8, r9, r10, r11, r12, r13, r14, r15,
        ])
    }

    /// Returns the memory access of the instruction, if it is included.
    #[inline]
    pub fn access(&self) -> Option<Access> {
        let at = self.place(Groups::MEMORY, 19)?;
        Some(Access {
            address: self.word(at),
            source: self.word(at.wrapping_add(1)),
            latency: self.word(at.wrapping_add(2)),
        })
    }

    /// Returns the TSX word: the cycles of the last transaction, and from bit 32 on the reasons of
    /// its abort. 0 without TSX.
    fn tsx(&self) -> u64 {
        match self.format {
            PebsFormat::Nehalem => 0,
            PebsFormat::Haswell | PebsFormat::Skylake => self.word(23),
            PebsFormat::Adaptive => {
                let at = self.groups.place(Groups::MEMORY);
                at.map_or(0, |at| self.word(at.wrapping_add(3)))
            }
        }
    }

    /// Returns the time stamp counter's value, if it is included.
    #[inline]
    pub fn tsc(&self) -> Option<u64> {
        match self.format {
            PebsFormat::Nehalem | PebsFormat::Haswell => None,
            PebsFormat::Skylake => Some(self.word(24)),
            PebsFormat::Adaptive => Some(self.word(3)),
        }
    }

    /// Returns the cycles between the retirements of the previous instruction and this one; 0 if
    /// the record does not have them.
    pub fn retire_latency(&self) -> u16 {
        if self.format != PebsFormat::Adaptive {
            return 0;
        }
        // CAST: the field has 16 bits.
        (self.word(0) >> 32) as u16
    }

    /// Returns XMM0 to XMM15, in two halves each, if they are included.
    #[inline]
    pub fn xmm(&self) -> Option<&'a [AtomicU64; 32]> {
        let at = self.place(Groups::XMM, usize::MAX)?;
        self.words.get(at..)?.first_chunk()
    }

    /// Returns the branches, the latest first: FROM, TO and INFO of each.
    pub fn branches(&self) -> &'a [AtomicU64] {
        let at = self.place(Groups::BRANCHES, usize::MAX);
        at.and_then(|at| self.words.get(at..)).unwrap_or(&[])
    }

    /// Returns the cycles of the last transaction; 0 without TSX.
    pub fn transaction_cycles(&self) -> u64 {
        self.tsx() & 0xffff_ffff
    }

    /// Returns the kind of the transaction, the reasons of its abort, and the abort's code if an
    /// instruction has set it: bits `PERF_TXN_*`. 0 without TSX.
    ///
    /// Mainline: `intel_get_tsx_transaction()`, `arch/x86/events/intel/ds.c`.
    pub fn transaction(&self) -> u64 {
        let kind = (self.tsx() >> 32) & 0xff;
        if kind & Self::TRANSACTION == 0 {
            return kind;
        }
        let ax = self.general().map_or(0, |[ax, ..]| ax);
        if ax & 1 != 0 {
            kind | (((ax >> 24) & 0xff) << 32)
        } else {
            kind
        }
    }

    /// Returns the record's counters among those with `precise` events.
    ///
    /// Before Skylake the record has a status, in which counters of other events may be set. If the
    /// status was cleared at the same moment, no precise counter is set, and the owner is only
    /// certain if there is one precise event. If several events occurred together, several counters
    /// are set, and the processor writes one record for all of them. Mainline:
    /// `intel_pmu_drain_pebs_nhm()`, `arch/x86/events/intel/ds.c`.
    #[inline]
    pub fn owners(&self, format: PebsFormat, precise: CounterMask) -> Owners {
        let owners = CounterMask::from_bits(self.counters()) & precise;
        if format.has_time() {
            return Owners::Of(owners);
        }
        match owners.weight() {
            0 if precise.weight() == 1 => Owners::Of(precise),
            0 | 1 => Owners::Of(owners),
            _ => Owners::OneOf(owners),
        }
    }
}

/// The records in a buffer, in the order in which they were written.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// # use std::sync::atomic::AtomicU64;
/// use logic::{capabilities::PebsFormat, sample::pebs::record::Records};
///
/// // Skylake: RFLAGS, RIP, 16 registers, counters, access, address of the instruction, TSX, TSC.
/// let mut record = [0; 25];
/// (record[1], record[18], record[22]) = (0x401003, 1 << 2, 0x401000);
/// let record = record.map(AtomicU64::new);
///
/// let mut records = Records::new(PebsFormat::Skylake, &record);
/// let first = records.next().unwrap();
/// assert_eq!((first.counters(), first.ip()), (1 << 2, Some(0x401000)));
/// assert!(records.next().is_none() && records.left() == 0);
/// ```
pub struct Records<'a> {
    format: PebsFormat,
    rest: &'a [AtomicU64],
    /// The size and the groups of the last adaptive record, in their bits of its first word.
    layout: u64,
}

impl<'a> Records<'a> {
    /// The bits of the groups in the first word of an adaptive record; `LAYOUT` also has those of
    /// its size.
    const GROUPS: u64 = 0xffff_ffff;
    const LAYOUT: u64 = Self::GROUPS | (0xffff << 48);
    const NO_LAYOUT: u64 = !Self::LAYOUT;

    /// Iterates over `buffer`, which reaches from the PEBS buffer's base to its index in the DS
    /// area.
    pub const fn new(format: PebsFormat, buffer: &'a [AtomicU64]) -> Self {
        Self {
            format,
            rest: buffer,
            layout: Self::NO_LAYOUT,
        }
    }

    /// Returns the number of words that are left.
    pub const fn left(&self) -> usize {
        self.rest.len()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    #[inline]
    fn next(&mut self) -> Option<Record<'a>> {
        let format = self.format;
        let mut groups = Groups::default();
        let mut size = format.words(groups);
        if format == PebsFormat::Adaptive {
            let layout = self.rest.first()?.load(Relaxed) & Self::LAYOUT;
            groups = Groups(layout & Self::GROUPS);
            // CAST: the size in bytes is a field of the first word.
            size = (layout >> 48) as usize / size_of::<u64>();
            // Nearly all records have the same layout.
            if layout != self.layout {
                if groups.0 & !Groups::KNOWN != 0 || layout != groups.layout() {
                    return None;
                }
                self.layout = layout;
            }
        }
        let (words, rest) = self.rest.split_at_checked(size)?;
        self.rest = rest;
        Some(Record {
            format,
            groups,
            words,
        })
    }
}
