// SPDX-License-Identifier: GPL-2.0

//! The records that the processor writes to the PEBS buffer of the DS area.
//!
//! The buffer is memory that hardware writes, so it is read word by word and nothing in it is trusted: [`Records`]
//! ends at a record that does not fit into what is left, or whose size is not that of its groups.
//!
//! Source: SDM volume 3, 20.3.1.1.1 (Nehalem), 20.3.6.2 (Haswell), 20.3.8.1 (Skylake) and 20.9.2 (adaptive).
//! Mainline: `struct pebs_record_nhm` and what follows, `arch/x86/events/intel/ds.c:746`, and `struct pebs_basic`,
//! `arch/x86/include/asm/perf_event.h:475`.
//!
//! Context: any, NMIs included.

#[cfg(test)]
mod tests;

use crate::logic::regs::counter::CounterMask;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The layout of records: IA32_PERF_CAPABILITIES.PEBS_REC_FMT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Format 1: registers, and the instruction's memory access.
    Nehalem,
    /// Format 2: the address of the instruction as well, and TSX.
    Haswell,
    /// Format 3: the time as well.
    Skylake,
    /// Format 4 with PEBS_BASELINE: groups by MSR_PEBS_DATA_CFG.
    Adaptive,
}

impl Format {
    /// Returns the format that IA32_PERF_CAPABILITIES tells. [`None`] if it is another or there is none.
    ///
    /// Format 4 without PEBS_BASELINE, of small cores, is another.
    pub const fn from_capabilities(perf_capabilities: u64) -> Option<Self> {
        match (perf_capabilities >> 8) & 0xf {
            1 => Some(Self::Nehalem),
            2 => Some(Self::Haswell),
            3 => Some(Self::Skylake),
            4 if (perf_capabilities >> 14) & 1 != 0 => Some(Self::Adaptive),
            _ => None,
        }
    }

    /// Returns whether records tell the address of the instruction itself, and not only of the next.
    pub const fn tells_ip(self) -> bool {
        !matches!(self, Self::Nehalem)
    }

    /// Returns whether records tell the time.
    pub const fn tells_time(self) -> bool {
        matches!(self, Self::Skylake | Self::Adaptive)
    }

    /// Returns the number of words of a record with these `groups`, which only [`Adaptive`](Self::Adaptive) has.
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
    /// Bits that are known here. A record with another has a layout that is not.
    const KNOWN: u64 = Self::MEMORY
        | Self::REGISTERS
        | Self::XMM
        | Self::BRANCHES
        | (0xff << Self::BRANCHES_SHIFT);

    /// Returns these groups: a set of the constants.
    pub const fn new(groups: u64) -> Self {
        Self(groups & (Self::MEMORY | Self::REGISTERS | Self::XMM))
    }

    /// Adds the `depth` last branches, of which there are at most 256.
    #[must_use]
    pub const fn with_branches(self, depth: u8) -> Self {
        let last = (depth as u64).saturating_sub(1);
        Self(self.0 | Self::BRANCHES | (last << Self::BRANCHES_SHIFT))
    }

    /// Returns the groups that one of both has. The numbers of branches must be the same.
    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the value of MSR_PEBS_DATA_CFG.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the number of words of a record.
    const fn words(self) -> usize {
        let mut words = 4;
        if self.has(Self::MEMORY) {
            words += 4;
        }
        if self.has(Self::REGISTERS) {
            words += 18;
        }
        if self.has(Self::XMM) {
            words += 32;
        }
        words + 3 * self.branches()
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

/// The registers at the end of the instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// RFLAGS.
    pub flags: u64,
    /// RIP: the address of the next instruction.
    pub next_ip: u64,
    /// RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8 to R15.
    pub general: [u64; 16],
}

/// The memory access of the instruction. What it means depends on the event ([`PebsData`](super::PebsData)).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// The linear address.
    pub address: u64,
    /// The data source.
    pub source: u64,
    /// The latency in cycles.
    pub latency: u64,
}

/// A record, without its size.
#[derive(Clone, Copy, Debug)]
pub struct Record<'a> {
    /// The counters that it is for, as bits of IA32_PERF_GLOBAL_CTRL. Before Skylake, IA32_PERF_GLOBAL_STATUS when it
    /// was written: with counters that have overflowed for other reasons, and sometimes without its own.
    pub counters: u64,
    /// The address of the instruction, if the processor tells.
    pub ip: Option<u64>,
    /// The registers, if they are included.
    pub registers: Option<Registers>,
    /// The memory access, if it is included.
    pub access: Option<Access>,
    /// TSX: the cycles of the last transaction, and the reasons of its abort from bit 32 on. 0 without TSX.
    pub tsx: u64,
    /// The time by the TSC, if it is included.
    pub tsc: Option<u64>,
    /// The cycles to the instruction's retirement from that of the one before; 0 if the processor does not tell.
    pub retire_latency: u16,
    /// XMM0 to XMM15, in two halves each, or nothing.
    pub xmm: &'a [AtomicU64],
    /// Branches, the latest first: FROM, TO and INFO of each.
    pub branches: &'a [AtomicU64],
}

/// The counters that a record is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owners {
    /// These, one or more.
    Of(CounterMask),
    /// One of these. Which one cannot be told, so the record is lost.
    OneOf(CounterMask),
}

impl Record<'_> {
    /// TSX: an abort of a transaction, in [`transaction`](Self::transaction) (`PERF_TXN_TRANSACTION`).
    const TRANSACTION: u64 = 1 << 1;

    /// Returns the cycles of the last transaction; 0 without TSX.
    pub const fn transaction_cycles(&self) -> u64 {
        self.tsx & 0xffff_ffff
    }

    /// Returns the kind of the transaction, the reasons of its abort, and the abort's code if an instruction has set
    /// it: bits `PERF_TXN_*`. 0 without TSX.
    ///
    /// Mainline: `intel_get_tsx_transaction()`, `arch/x86/events/intel/ds.c:2083`.
    pub fn transaction(&self) -> u64 {
        let kind = (self.tsx >> 32) & 0xff;
        let ax = self.registers.map_or(0, |it| it.general[0]);
        if kind & Self::TRANSACTION != 0 && ax & 1 != 0 {
            kind | (((ax >> 24) & 0xff) << 32)
        } else {
            kind
        }
    }

    /// Returns the counters that the record is for, of those whose events are `precise`.
    ///
    /// Before Skylake the record has a status, in which counters of other events may be set; none may be if the
    /// status was cleared at the same moment, which leaves no doubt only if one event is precise; and several may
    /// be if their events came together, in which case the processor writes one record for all of them. Mainline:
    /// `intel_pmu_drain_pebs_nhm()`, `arch/x86/events/intel/ds.c:2957`.
    pub fn owners(&self, format: Format, precise: CounterMask) -> Owners {
        let owners = CounterMask::from_bits(self.counters) & precise;
        if format.tells_time() {
            return Owners::Of(owners);
        }
        match owners.weight() {
            0 if precise.weight() == 1 => Owners::Of(precise),
            0 | 1 => Owners::Of(owners),
            _ => Owners::OneOf(owners),
        }
    }
}

/// The rest of the buffer.
struct Words<'a>(&'a [AtomicU64]);

impl<'a> Words<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u64; N]> {
        let (taken, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(taken.each_ref().map(|word| word.load(Relaxed)))
    }

    fn take_slice(&mut self, len: usize) -> Option<&'a [AtomicU64]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }
}

/// The records in a buffer, in the order in which they were written.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// # use std::sync::atomic::AtomicU64;
/// use logic::sample::pebs::record::{Format, Records};
///
/// // Skylake: RFLAGS, RIP, 16 registers, counters, access, address of the instruction, TSX, TSC.
/// let mut record = [0; 25];
/// (record[1], record[18], record[22]) = (0x401003, 1 << 2, 0x401000);
/// let record = record.map(AtomicU64::new);
///
/// let mut records = Records::new(Format::Skylake, &record);
/// let first = records.next().unwrap();
/// assert_eq!((first.counters, first.ip), (1 << 2, Some(0x401000)));
/// assert!(records.next().is_none() && records.is_whole());
/// ```
pub struct Records<'a> {
    format: Format,
    rest: &'a [AtomicU64],
}

impl<'a> Records<'a> {
    /// Walks through `buffer`, from its base to its index.
    pub const fn new(format: Format, buffer: &'a [AtomicU64]) -> Self {
        Self {
            format,
            rest: buffer,
        }
    }

    /// Returns the number of words that are left.
    pub const fn left(&self) -> usize {
        self.rest.len()
    }

    /// Returns whether all of the buffer was records, once [`next`](Iterator::next) has returned [`None`].
    pub const fn is_whole(&self) -> bool {
        self.rest.is_empty()
    }
}

impl<'a> Iterator for Records<'a> {
    type Item = Record<'a>;

    fn next(&mut self) -> Option<Record<'a>> {
        let mut words = Words(self.rest);
        let record = match self.format {
            Format::Adaptive => adaptive(&mut words)?,
            format => fixed(format, &mut words)?,
        };
        self.rest = words.0;
        Some(record)
    }
}

/// Decodes a record of the formats up to Skylake.
fn fixed<'a>(format: Format, words: &mut Words<'a>) -> Option<Record<'a>> {
    let [flags, next_ip, ax, bx, cx, dx, si, di, bp, sp] = words.take()?;
    let [r8, r9, r10, r11, r12, r13, r14, r15] = words.take()?;
    let [counters, address, source, latency] = words.take()?;
    let (ip, tsx) = match format {
        Format::Nehalem => (None, 0),
        _ => {
            let [ip, tsx] = words.take()?;
            (Some(ip), tsx)
        }
    };
    let tsc = match format {
        Format::Skylake => {
            let [tsc] = words.take()?;
            Some(tsc)
        }
        _ => None,
    };
    Some(Record {
        counters,
        ip,
        registers: Some(Registers {
            flags,
            next_ip,
            general: [
                ax, cx, dx, bx, sp, bp, si, di, r8, r9, r10, r11, r12, r13, r14, r15,
            ],
        }),
        access: Some(Access {
            address,
            source,
            latency,
        }),
        tsx,
        tsc,
        retire_latency: 0,
        xmm: &[],
        branches: &[],
    })
}

/// Decodes an adaptive record. [`None`] if its size is not that of its groups, or it has groups that are not known.
fn adaptive<'a>(words: &mut Words<'a>) -> Option<Record<'a>> {
    let whole = words.0.len();
    let [layout, ip, counters, tsc] = words.take()?;
    // CAST: the size in bytes, the latency and the groups are fields of it.
    let (size, retire_latency, groups) = (
        (layout >> 48) as usize,
        (layout >> 32) as u16,
        Groups(layout & 0xffff_ffff),
    );
    if groups.0 & !Groups::KNOWN != 0 {
        return None;
    }
    let (mut access, mut tsx) = (None, 0);
    if groups.has(Groups::MEMORY) {
        let [address, source, latency, transaction] = words.take()?;
        access = Some(Access {
            address,
            source,
            latency,
        });
        tsx = transaction;
    }
    let mut registers = None;
    if groups.has(Groups::REGISTERS) {
        let [flags, next_ip] = words.take()?;
        registers = Some(Registers {
            flags,
            next_ip,
            general: words.take()?,
        });
    }
    let xmm = match groups.has(Groups::XMM) {
        true => words.take_slice(2 * 16)?,
        false => &[],
    };
    let branches = words.take_slice(groups.branches().wrapping_mul(3))?;
    let read = whole.wrapping_sub(words.0.len());
    (size == read.wrapping_mul(8)).then_some(Record {
        counters,
        ip: Some(ip),
        registers,
        access,
        tsx,
        tsc: Some(tsc),
        retire_latency,
        xmm,
        branches,
    })
}
