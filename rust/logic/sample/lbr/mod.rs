// SPDX-License-Identifier: GPL-2.0

//! Branch stacks: the last branches that the processor has recorded (LBR).
//!
//! ```text
//!  At load               [`Lbr`]      the registers and filters of the machine
//!  perf_event_open()     [`filter`]   attr.branch_sample_type to a [`Request`], or a refusal
//!  add, del, switches    [`state`]    the contents of the registers, and steps before their use
//!  PMI                   [`record`]   the contents of the registers to branches
//!                        [`stack`]    the branches that an event requests
//! ```
//!
//! A CPU has one set of records and one hardware filter, LBR_SELECT. So events with the same value
//! of LBR_SELECT share the records, and events with different values take turns: LBR_SELECT is the
//! second [extra register](crate::logic::regs::extra_register) that an event can need. For each
//! event, software removes the branches that the event does not request and the hardware does not
//! suppress.
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

/// Stands for the value of LBR_SELECT while a guest of KVM owns the records and writes the register
/// itself. No value has this bit.
pub const GUEST: u32 = 1 << 31;

/// The maximum number of branches that any processor records.
pub const MAX_BRANCHES: usize = 32;

/// The branch records of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lbr {
    /// The number of branches that are recorded, at most [`MAX_BRANCHES`].
    pub depth: u8,
    /// The layout of a record.
    pub format: Format,
    /// The hardware filters.
    pub filter: Filter,
}

/// The hardware filters, by the register that controls them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// LBR_SELECT, whose bits suppress branches.
    Select(LbrFilter),
    /// LBR_CTL of the architectural LBRs, whose bits enable the recording of branches.
    Control(ArchLbr),
    /// AMD's LBR_SELECT, with the bits of Sandy Bridge's.
    Amd,
}

impl Lbr {
    /// Returns the branch records of a processor with these capabilities, whose model has the
    /// LBR_SELECT described by `filter` (without effect on architectural LBRs and on AMD's
    /// processors). [`None`] if it has no usable records.
    ///
    /// Hypervisors may leave out the registers, so the driver has to try them.
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
        let filter = filter?;
        Some(Self {
            depth: match (filter, format) {
                (LbrFilter::Silvermont, _) => 8,
                (_, Format::Info { .. } | Format::CyclesInTo) => 32,
                _ => 16,
            },
            format,
            filter: Filter::Select(filter),
        })
    }

    /// Returns whether these are architectural LBRs, where the latest branch is always in the first
    /// register.
    pub const fn is_architectural(&self) -> bool {
        matches!(self.filter, Filter::Control(_))
    }

    /// Returns whether the records are in the registers of Core 2.
    pub const fn is_in_core_2_registers(&self) -> bool {
        matches!(self.filter, Filter::Select(LbrFilter::Silvermont))
    }

    /// Returns whether the records with the filter `select`, a value of LBR_SELECT or LBR_CTL, are
    /// saved for a task that is switched out. Only a call stack's and a guest's records are.
    pub const fn keeps(&self, select: u32) -> bool {
        select == GUEST || self.is_call_stack(select)
    }

    /// Returns the number of the latest branch for a sample (`PERF_SAMPLE_BRANCH_HW_INDEX`).
    /// `place` is the number of the register with the branch. Where this is always the first
    /// register, returns -1 (unknown) for Intel's processors and 0 for AMD's, as mainline's driver
    /// does.
    pub fn latest_branch(&self, place: u32) -> u64 {
        match self.filter {
            Filter::Control(_) => u64::MAX,
            Filter::Select(_) | Filter::Amd => place.into(),
        }
    }
}
