// SPDX-License-Identifier: GPL-2.0

//! Decoding the registers of one recorded branch.
//!
//! Context: any, NMIs included.

use crate::logic::capabilities::ArchLbr;

/// The raw registers of one branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// LBR_x_FROM: the address of the branch, and flags on some processors. On Intel's, 0 if
    /// nothing is recorded.
    pub from: u64,
    /// LBR_x_TO: the address of its target.
    pub to: u64,
    /// LBR_x_INFO, if it exists.
    pub info: u64,
}

/// A recorded branch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Branch {
    /// The address of the branch.
    pub from: u64,
    /// The address of its target.
    pub to: u64,
    /// Its flags and cycles.
    pub flags: Flags,
    /// The number of the branch type that the processor has recorded, if it records types: an index
    /// of [`ARCH_TYPES`](super::stack::ARCH_TYPES), or 6 to 15 for other types.
    pub arch_type: Option<u8>,
}

/// Flags and cycles of a branch, in the bits of `struct perf_branch_entry`
/// (`include/uapi/linux/perf_event.h`). Bits for which the processor has no information are 0,
/// except that without records of mispredictions, architectural LBRs have
/// [`PREDICTED`](Self::PREDICTED), as in mainline.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(u64);

impl Flags {
    /// The target was mispredicted.
    pub const MISPREDICTED: Self = Self(1 << 0);
    /// The target was predicted.
    pub const PREDICTED: Self = Self(1 << 1);
    /// It was in a TSX transaction.
    pub const IN_TX: Self = Self(1 << 2);
    /// It was an abort of a TSX transaction.
    pub const ABORT: Self = Self(1 << 3);
    const SPECULATION_SHIFT: u32 = 24;
    const SPECULATION: u64 = 0b11 << Self::SPECULATION_SHIFT;

    /// Nothing is known.
    pub const NONE: Self = Self(0);

    /// Returns the bits.
    #[inline]
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns whether this has all bits of `others`.
    #[inline]
    pub const fn has(self, others: Self) -> bool {
        self.0 & others.0 == others.0
    }

    /// Adds the bits of `others`.
    #[inline]
    #[must_use]
    pub const fn or(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns the bits that remain with `PERF_SAMPLE_BRANCH_NO_FLAGS` and `NO_CYCLES`.
    #[inline]
    #[must_use]
    pub const fn bare(self) -> Self {
        Self(self.0 & Self::SPECULATION)
    }

    /// Returns the flag of a prediction.
    const fn of_prediction(mispredicted: bool) -> Self {
        if mispredicted {
            Self::MISPREDICTED
        } else {
            Self::PREDICTED
        }
    }

    /// Returns the flags of TSX in bits 62 (in a transaction) and 61 (an abort) of a register.
    const fn of_transaction(register: u64) -> Self {
        Self((register >> 60) & Self::IN_TX.0 | (register >> 58) & Self::ABORT.0)
    }

    /// Returns the field with the cycles since the previous branch.
    pub const fn of_cycles(cycles: u16) -> Self {
        Self((cycles as u64) << 4)
    }

    /// Returns the field with the outcome of speculation.
    pub const fn of_speculation(speculation: Speculation) -> Self {
        Self((speculation as u64) << Self::SPECULATION_SHIFT)
    }
}

/// The outcome of speculation for a branch (`PERF_BR_SPEC_*`, `include/uapi/linux/perf_event.h`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Speculation {
    /// The processor has no information.
    #[default]
    Unknown = 0,
    /// The branch was taken speculatively, and was not on the program's path.
    WrongPath = 1,
    /// The branch was not speculative.
    None = 2,
    /// The branch was taken speculatively, and was on the program's path.
    CorrectPath = 3,
}

/// The layout of a record: IA32_PERF_CAPABILITIES[5:0], SDM volume 3, section 19.4.8.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Addresses only.
    Addresses,
    /// Bit 63 of FROM: the branch was mispredicted.
    Flags,
    /// Bit 63 as before, and bits 62 and 61 of FROM: in a TSX transaction, and an abort.
    TsxFlags {
        /// Set if the processor has no TSX: then the two bits have no meaning, and have to be
        /// written as part of the sign extension (`lbr_from_signext_quirk_needed()`,
        /// `arch/x86/events/intel/lbr.c`).
        without_tsx: bool,
    },
    /// Flags and cycles are in INFO.
    Info {
        /// Set if INFO has the TSX bits.
        tsx: bool,
    },
    /// Bit 63 of FROM: the branch was mispredicted; the high 16 bits of TO: the cycles.
    CyclesInTo,
    /// Architectural LBRs: INFO has flags, cycles and the type.
    Architectural(ArchLbr),
    /// AMD's LbrExtV2: a flag in bit 63 of FROM, and others in the three highest bits of TO. APM
    /// volume 2, figures 13-7 and 13-8.
    Amd {
        /// The number of significant address bits.
        virtual_bits: u8,
    },
}

const BIT_63: u64 = 1 << 63;
const BIT_62: u64 = 1 << 62;
const BIT_61: u64 = 1 << 61;
/// Bit 60 of INFO: the cycles are valid.
const CYCLES_VALID: u64 = 1 << 60;

impl Format {
    /// Returns the layout with this number; [`None`] if it is unknown or not a 64-bit layout.
    pub const fn from_capabilities(format: u8, tsx: bool) -> Option<Self> {
        match format {
            1 | 2 => Some(Self::Addresses),
            3 => Some(Self::Flags),
            4 => Some(Self::TsxFlags { without_tsx: !tsx }),
            5 => Some(Self::Info { tsx: true }),
            6 => Some(Self::CyclesInTo),
            7 => Some(Self::Info { tsx: false }),
            _ => None,
        }
    }

    /// Returns whether there is an INFO register.
    pub const fn has_info(self) -> bool {
        matches!(self, Self::Info { .. } | Self::Architectural(_))
    }

    /// Decodes a record. Returns [`None`] if it contains no branch.
    ///
    /// Mainline: `intel_pmu_lbr_read_64()`, `intel_pmu_store_lbr()`, `arch/x86/events/intel/lbr.c`,
    /// and `amd_pmu_lbr_read()`, `arch/x86/events/amd/lbr.c`.
    #[inline]
    pub const fn decode(self, record: Record) -> Option<Branch> {
        match self {
            Self::Amd { virtual_bits } => decode_amd(record, virtual_bits),
            _ if record.from == 0 => None,
            _ => Some(self.decode_intel(record)),
        }
    }

    #[inline]
    const fn decode_intel(self, record: Record) -> Branch {
        let Record { from, to, info } = record;
        let plain = Branch {
            from,
            to,
            flags: Flags::NONE,
            arch_type: None,
        };
        match self {
            Self::Addresses | Self::Amd { .. } => plain,
            Self::Flags => Branch {
                from: sign_extend(from, 1),
                flags: Flags::of_prediction(from & BIT_63 != 0),
                ..plain
            },
            Self::CyclesInTo => Branch {
                from: sign_extend(from, 1),
                to: sign_extend(to, 16),
                // CAST: the high 16 bits.
                flags: Flags::of_prediction(from & BIT_63 != 0)
                    .or(Flags::of_cycles((to >> 48) as u16)),
                arch_type: None,
            },
            Self::TsxFlags { without_tsx } => {
                let flags = Flags::of_prediction(from & BIT_63 != 0);
                Branch {
                    from: sign_extend(from, 3),
                    flags: if without_tsx {
                        flags
                    } else {
                        flags.or(Flags::of_transaction(from))
                    },
                    ..plain
                }
            }
            Self::Info { tsx } => {
                // CAST: the low 16 bits.
                let cycles = Flags::of_cycles(info as u16);
                let flags = Flags::of_prediction(info & BIT_63 != 0).or(cycles);
                Branch {
                    flags: if tsx {
                        flags.or(Flags::of_transaction(info))
                    } else {
                        flags
                    },
                    ..plain
                }
            }
            Self::Architectural(arch) => {
                let mispredicted = arch.mispredictions() && info & BIT_63 != 0;
                let flags = Flags::of_prediction(mispredicted).or(Flags::of_transaction(info));
                // CAST: a field of four bits.
                let arch_type = ((info >> 56) & 0xf) as u8;
                Branch {
                    flags: if arch.cycles() && info & CYCLES_VALID != 0 {
                        // CAST: the low 16 bits.
                        flags.or(Flags::of_cycles(info as u16))
                    } else {
                        flags
                    },
                    arch_type: if arch.types() { Some(arch_type) } else { None },
                    ..plain
                }
            }
        }
    }

    /// Returns the value to write to FROM to restore the address and flags that were read from it.
    pub const fn from_to_write(self, from: u64) -> u64 {
        match self {
            Self::TsxFlags { without_tsx: true } => {
                let extended = from & !(BIT_62 | BIT_61);
                extended | ((from & (0b11 << 59)) << 2)
            }
            _ => from,
        }
    }
}

const fn decode_amd(record: Record, virtual_bits: u8) -> Option<Branch> {
    let Record { from, to, .. } = record;
    let (valid, speculative) = (to & BIT_63 != 0, to & BIT_62 != 0);
    // Erratum 1452: a record with bit 61 is wrong.
    if to & BIT_61 != 0 {
        return None;
    }
    let speculation = match (valid, speculative) {
        (false, false) => return None,
        (false, true) => Speculation::WrongPath,
        (true, false) => Speculation::None,
        (true, true) => Speculation::CorrectPath,
    };
    let unused = 64u32.saturating_sub(virtual_bits as u32);
    Some(Branch {
        from: sign_extend(from, unused),
        to: sign_extend(to, unused),
        flags: Flags::of_prediction(from & BIT_63 != 0).or(Flags::of_speculation(speculation)),
        arch_type: None,
    })
}

/// Replaces the highest `flags` bits, which are not part of the address, by its sign extension.
const fn sign_extend(from: u64, flags: u32) -> u64 {
    // CAST: two's complement, for the arithmetic shift.
    ((from << flags) as i64 >> flags) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: u64 = 0xffff_ffff_8100_0000;
    const USER: u64 = 0x0000_7f00_1234_5678;

    fn record(from: u64, info: u64) -> Record {
        Record { from, to: 1, info }
    }

    #[test]
    fn flags_are_not_part_of_the_address() {
        for address in [KERNEL, USER] {
            let of = |format: Format, from| format.decode(record(from, 0)).unwrap();
            assert_eq!(of(Format::Addresses, address).from, address);
            assert_eq!(of(Format::Addresses, address).flags, Flags::NONE);

            let clear = address & !(BIT_63 | BIT_62 | BIT_61);
            let (mispredicted, predicted) = (Flags::MISPREDICTED, Flags::PREDICTED);
            for (flags, prediction, tsx) in [
                (0, predicted, Flags::NONE),
                (BIT_63, mispredicted, Flags::NONE),
                (BIT_62, predicted, Flags::IN_TX),
                (BIT_63 | BIT_61, mispredicted, Flags::ABORT),
            ] {
                let haswell = Format::TsxFlags { without_tsx: false };
                let branch = of(haswell, clear | flags);
                assert_eq!(branch.from, address);
                assert_eq!(branch.flags, prediction.or(tsx));

                let branch = of(Format::TsxFlags { without_tsx: true }, clear | flags);
                assert_eq!(branch.from, address);
                assert_eq!(branch.flags, prediction);
            }
            let branch = of(Format::Flags, address & !BIT_63);
            assert_eq!((branch.from, branch.flags), (address, predicted));
        }
    }

    #[test]
    fn bits_61_and_62_are_written_as_sign_extension_without_tsx() {
        let format = Format::TsxFlags { without_tsx: true };
        // The hardware records a kernel address with these bits clear, and a write has to set them.
        let read = KERNEL & !(BIT_63 | BIT_62 | BIT_61);
        assert_eq!(format.from_to_write(read), KERNEL & !BIT_63);
        assert_eq!(format.from_to_write(read | BIT_63), KERNEL);
        assert_eq!(format.from_to_write(USER), USER);
        let with_tsx = Format::TsxFlags { without_tsx: false };
        assert_eq!(with_tsx.from_to_write(read), read);
    }

    #[test]
    fn info_has_cycles() {
        let info = BIT_63 | BIT_61 | 1234;
        let skylake = Format::Info { tsx: true }
            .decode(record(USER, info))
            .unwrap();
        let flags = Flags::MISPREDICTED.or(Flags::of_cycles(1234));
        assert_eq!(skylake.flags, flags.or(Flags::ABORT));
        let without = Format::Info { tsx: false }
            .decode(record(USER, info))
            .unwrap();
        assert_eq!(without.flags, flags);
    }

    #[test]
    fn cycles_in_to() {
        for address in [KERNEL, USER] {
            let low = (1 << 48) - 1;
            let record = Record {
                from: address & !BIT_63,
                to: address & low | (1234 << 48),
                info: 0,
            };
            let branch = Format::CyclesInTo.decode(record).unwrap();
            assert_eq!((branch.from, branch.to), (address, address));
            let cycles = Flags::of_cycles(1234);
            assert_eq!(branch.flags, Flags::PREDICTED.or(cycles));
            let from = record.from | BIT_63;
            let branch = Format::CyclesInTo.decode(Record { from, ..record });
            assert_eq!(branch.unwrap().flags, Flags::MISPREDICTED.or(cycles));
        }
    }

    #[test]
    fn architectural_info() {
        let all = Format::Architectural(ArchLbr::from_leaf(0x8, 0x7, 0x7));
        let info = CYCLES_VALID | (4 << 56) | 77;
        let branch = all.decode(record(USER, info)).unwrap();
        assert_eq!(branch.flags, Flags::PREDICTED.or(Flags::of_cycles(77)));
        assert_eq!(branch.arch_type, Some(4));
        let branch = all.decode(record(USER, info & !CYCLES_VALID)).unwrap();
        assert_eq!(branch.flags, Flags::PREDICTED);
        let none = Format::Architectural(ArchLbr::from_leaf(0x8, 0x7, 0));
        let branch = none.decode(record(USER, info | BIT_63)).unwrap();
        assert_eq!((branch.flags, branch.arch_type), (Flags::PREDICTED, None));
    }

    #[test]
    fn nothing_is_recorded() {
        let formats = [Format::Addresses, Format::Flags, Format::Info { tsx: true }];
        for format in formats {
            assert_eq!(format.decode(record(0, 0)), None);
        }
    }

    #[test]
    fn amd_marks_speculation() {
        let format = Format::Amd { virtual_bits: 48 };
        let low = |address: u64| address & ((1 << 58) - 1);
        for address in [KERNEL, USER] {
            for (flags, speculation) in [
                (BIT_62, Speculation::WrongPath),
                (BIT_63, Speculation::None),
                (BIT_63 | BIT_62, Speculation::CorrectPath),
            ] {
                let (from, to) = (low(address) | BIT_63, low(address) | flags);
                let branch = format.decode(Record { from, to, info: 0 }).unwrap();
                assert_eq!((branch.from, branch.to), (address, address));
                let flags = Flags::MISPREDICTED.or(Flags::of_speculation(speculation));
                assert_eq!(branch.flags, flags);
                let erratum_1452 = to | BIT_61;
                let wrong = Record {
                    from,
                    to: erratum_1452,
                    info: 0,
                };
                assert_eq!(format.decode(wrong), None);
            }
            let (from, to) = (low(address), low(address));
            assert_eq!(format.decode(Record { from, to, info: 0 }), None);
        }
        // With five levels of page tables, addresses have 57 bits.
        let wide = Format::Amd { virtual_bits: 57 };
        let address = 0xff12_3456_789a_bcde_u64;
        let to = low(address) | BIT_63;
        let branch = wide
            .decode(Record {
                from: low(address),
                to,
                info: 0,
            })
            .unwrap();
        assert_eq!((branch.from, branch.to), (address, address));
    }

    #[test]
    fn known_formats() {
        for (number, known) in [(0, false), (3, true), (5, true), (6, true), (0x3f, false)] {
            assert_eq!(Format::from_capabilities(number, true).is_some(), known);
        }
    }
}
