// SPDX-License-Identifier: GPL-2.0

//! Branch stacks: the last branches that the processor has recorded (LBR).
//!
//! ```text
//!  At load               [`Lbr`]      the registers and filters of the machine
//!  perf_event_open()     [`filter`]   attr.branch_sample_type to a [`Request`], or a refusal
//!  add, del, switches    [`state`]    the contents of the registers, and steps before their use
//!  PMI                   [`record`]   the contents of the registers to branches
//!                        [`stack`]    the branches that an event has asked for
//! ```
//!
//! A CPU has one set of records and one filter in hardware, LBR_SELECT. So events with the same
//! value of it share the records, and events with different ones take turns: the value is the
//! second [extra register](crate::logic::regs::extra_register) that an event can need. What an
//! event has not asked for and the hardware does not leave out, software does, for each event by
//! itself.
//!
//! Source: Intel SDM volume 3, chapters 18 (architectural LBRs) and 19.4 to 19.14; AMD APM volume
//! 2, section 13.1.1.9 (LbrExtV2). Mainline: `arch/x86/events/intel/lbr.c`,
//! `arch/x86/events/amd/lbr.c`.

pub mod filter;
pub mod record;
pub mod stack;
pub mod state;

use crate::logic::{
    capabilities::{
        ArchLbr,
        Capabilities, //
    },
    model::LbrFilter, //
};
pub use filter::{
    Kinds,
    Request, //
};
use record::Format;

/// Stands for a value of LBR_SELECT where a guest of KVM has the records: it writes the register
/// itself. No value has the bit.
pub const GUEST: u32 = 1 << 31;

/// The largest number of branches that any processor records.
pub const MAX_BRANCHES: usize = 32;

/// The branch records of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lbr {
    /// The number of branches that are recorded, at most [`MAX_BRANCHES`].
    pub depth: u8,
    /// The layout of a record.
    pub format: Format,
    /// The filters in hardware.
    pub filter: Filter,
}

/// The filters in hardware, and the register that has them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// LBR_SELECT, whose bits suppress branches.
    Select(LbrFilter),
    /// LBR_CTL of the architectural LBRs, whose bits let branches be recorded.
    Control(ArchLbr),
    /// AMD's LBR_SELECT, with the bits of Sandy Bridge's.
    Amd,
}

impl Lbr {
    /// Returns the branch records of a processor with these capabilities, whose model has
    /// LBR_SELECT as in `filter`. [`None`] if it has none that are usable.
    ///
    /// Hypervisors can leave the registers out, so they have to be tried.
    pub fn new(filter: Option<LbrFilter>, capabilities: &Capabilities) -> Option<Self> {
        if let Some(amd) = capabilities.amd_lbr {
            return (1..=MAX_BRANCHES)
                .contains(&amd.depth.into())
                .then_some(Self {
                    depth: amd.depth,
                    format: Format::Amd {
                        virtual_bits: amd.virtual_bits,
                    },
                    filter: Filter::Amd,
                });
        }
        if let Some(arch) = capabilities.arch_lbr {
            let depth = arch.depth();
            return (1..=MAX_BRANCHES).contains(&depth.into()).then_some(Self {
                depth,
                format: Format::Architectural(arch),
                filter: Filter::Control(arch),
            });
        }
        let format = Format::from_capabilities(capabilities.lbr_format, capabilities.tsx)?;
        Some(Self {
            depth: match format {
                Format::Info { .. } => 32,
                _ => 16,
            },
            format,
            filter: Filter::Select(filter?),
        })
    }

    /// Returns whether the registers are those of the architectural LBRs, where the latest branch
    /// is always in the first.
    pub const fn is_architectural(&self) -> bool {
        matches!(self.filter, Filter::Control(_))
    }

    /// Returns whether the records with the filter `select`, a value of LBR_SELECT or LBR_CTL, are
    /// kept for a task that leaves: those of a call stack, and a guest's.
    pub const fn keeps(&self, select: u32) -> bool {
        select == GUEST || self.is_call_stack(select)
    }

    /// Returns the number that a sample has of the latest branch, which is in the register `place`
    /// (`PERF_SAMPLE_BRANCH_HW_INDEX`). Where the latest is always in the first, Intel's driver
    /// gives -1 (unknown), and AMD's 0.
    pub fn latest_branch(&self, place: u32) -> u64 {
        match self.filter {
            Filter::Control(_) => u64::MAX,
            Filter::Select(_) | Filter::Amd => place.into(),
        }
    }
}
