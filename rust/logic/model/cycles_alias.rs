// SPDX-License-Identifier: GPL-2.0

//! The event that replaces cycles in precise sampling.

use crate::logic::regs::event_select::EventSelect;

/// CPU_CLK_UNHALTED.THREAD_P, which cannot be precise.
const CYCLES: u64 = 0x003c;
/// The counter mask for all cycles: in each cycle, fewer instructions or micro-operations retire
/// than this.
const ALL_CYCLES: u8 = 16;

/// The event that counts cycles and can be precise. It replaces cycles in precise events.
///
/// Mainline: `intel_pebs_aliases_core2()`, `intel_pebs_aliases_snb()`,
/// `intel_pebs_aliases_precdist()`, `intel_pebs_aliases_ivb()`, `intel_pebs_aliases_skl()`,
/// `arch/x86/events/intel/core.c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CyclesAlias {
    /// Cycles themselves can be precise.
    None,
    /// INST_RETIRED.ANY_P.
    Instructions,
    /// UOPS_RETIRED.ALL.
    Uops,
    /// UOPS_RETIRED.ALL, and with the maximum precision INST_RETIRED.PREC_DIST.
    UopsOrPrecDist,
    /// INST_RETIRED.ANY_P, and with the maximum precision INST_RETIRED.PREC_DIST.
    InstructionsOrPrecDist,
}

impl CyclesAlias {
    const INST_RETIRED: u64 = 0x00c0;
    const PREC_DIST: u64 = 0x01c0;
    const UOPS_RETIRED: u64 = 0x01c2;

    /// Returns whether there is another event for the maximum precision.
    pub const fn has_prec_dist(self) -> bool {
        matches!(self, Self::UopsOrPrecDist | Self::InstructionsOrPrecDist)
    }

    /// Returns the event select that replaces `select` in an event with this `precise_ip`, which is
    /// not 0. Only cycles without filters are replaced; other events keep `select`.
    pub fn apply(self, select: EventSelect, precise_ip: u8) -> EventSelect {
        let code = match self {
            Self::None => return select,
            _ if self.has_prec_dist() && precise_ip >= 3 => Self::PREC_DIST,
            Self::Uops | Self::UopsOrPrecDist => Self::UOPS_RETIRED,
            Self::Instructions | Self::InstructionsOrPrecDist => Self::INST_RETIRED,
        };
        if select.bits() & EventSelect::RAW != CYCLES {
            return select;
        }
        select.with_code(code).cycles_below(ALL_CYCLES)
    }
}
