// SPDX-License-Identifier: GPL-2.0

//! The records that the processor writes to the PEBS buffer of the DS area.
//!
//! The buffer is memory that hardware writes, so nothing in it is trusted: [`Records`] ends at a record that does not
//! fit into what is left, or whose size is not that of its groups.
//!
//! Source: SDM volume 3, 20.3.1.1.1 (Nehalem), 20.3.6.2 (Haswell), 20.3.8.1 (Skylake) and 20.9.2 (adaptive).
//! Mainline: `struct pebs_record_nhm` and what follows, `arch/x86/events/intel/ds.c:746`, and `struct pebs_basic`,
//! `arch/x86/include/asm/perf_event.h:475`.
//!
//! Context: any, NMIs included.

#[cfg(test)]
mod tests;

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

/// The groups of an adaptive record: bits of MSR_PEBS_DATA_CFG.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Groups(u64);

impl Groups {
    const MEMORY: u64 = 1 << 0;
    const REGISTERS: u64 = 1 << 1;
    const XMM: u64 = 1 << 2;
    const BRANCHES: u64 = 1 << 3;
    const BRANCHES_SHIFT: u32 = 24;
    /// Bits that are known here. A record with another has a layout that is not.
    const KNOWN: u64 =
        Self::MEMORY | Self::REGISTERS | Self::XMM | Self::BRANCHES | 0xff << Self::BRANCHES_SHIFT;

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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
    pub xmm: &'a [u64],
    /// Branches, the latest first: FROM, TO and INFO of each.
    pub branches: &'a [u64],
}

/// The rest of the buffer.
struct Words<'a>(&'a [u64]);

impl<'a> Words<'a> {
    fn take<const N: usize>(&mut self) -> Option<&'a [u64; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(taken)
    }

    fn take_slice(&mut self, len: usize) -> Option<&'a [u64]> {
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
/// use logic::sample::pebs::record::{Format, Records};
///
/// // Skylake: RFLAGS, RIP, 16 registers, counters, access, address of the instruction, TSX, TSC.
/// let mut record = [0; 25];
/// (record[1], record[18], record[22]) = (0x401003, 1 << 2, 0x401000);
///
/// let mut records = Records::new(Format::Skylake, &record);
/// let first = records.next().unwrap();
/// assert_eq!((first.counters, first.ip), (1 << 2, Some(0x401000)));
/// assert!(records.next().is_none() && records.is_whole());
/// ```
pub struct Records<'a> {
    format: Format,
    rest: &'a [u64],
}

impl<'a> Records<'a> {
    /// Walks through `buffer`, from its base to its index.
    pub const fn new(format: Format, buffer: &'a [u64]) -> Self {
        Self {
            format,
            rest: buffer,
        }
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
    let [flags, next_ip, ax, bx, cx, dx, si, di, bp, sp] = *words.take()?;
    let [r8, r9, r10, r11, r12, r13, r14, r15] = *words.take()?;
    let [counters, address, source, latency] = *words.take()?;
    let (ip, tsx) = match format {
        Format::Nehalem => (None, 0),
        _ => {
            let [ip, tsx] = *words.take()?;
            (Some(ip), tsx)
        }
    };
    let tsc = match format {
        Format::Skylake => {
            let [tsc] = *words.take()?;
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
    let [layout, ip, counters, tsc] = *words.take()?;
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
        let [address, source, latency, transaction] = *words.take()?;
        access = Some(Access {
            address,
            source,
            latency,
        });
        tsx = transaction;
    }
    let mut registers = None;
    if groups.has(Groups::REGISTERS) {
        let [flags, next_ip] = *words.take()?;
        registers = Some(Registers {
            flags,
            next_ip,
            general: *words.take()?,
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
