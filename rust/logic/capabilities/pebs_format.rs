// SPDX-License-Identifier: GPL-2.0

//! The layouts of PEBS records, which the processor writes for precise events.

/// The layout of PEBS records: IA32_PERF_CAPABILITIES.PEBS_REC_FMT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PebsFormat {
    /// PEBS format 1: registers, and the instruction's memory access.
    Nehalem,
    /// PEBS format 2: also the address of the instruction, and TSX.
    Haswell,
    /// PEBS format 3: also the time.
    Skylake,
    /// PEBS format 4 with PEBS_BASELINE: the groups that MSR_PEBS_DATA_CFG selects.
    Adaptive,
}

impl PebsFormat {
    /// Decodes the format in IA32_PERF_CAPABILITIES; [`None`] without a supported format.
    ///
    /// PEBS format 4 without PEBS_BASELINE, on small cores, is not supported.
    pub const fn from_capabilities(perf_capabilities: u64) -> Option<Self> {
        match (perf_capabilities >> 8) & 0xf {
            1 => Some(Self::Nehalem),
            2 => Some(Self::Haswell),
            3 => Some(Self::Skylake),
            4 if (perf_capabilities >> 14) & 1 != 0 => Some(Self::Adaptive),
            _ => None,
        }
    }

    /// Returns whether records have the address of the instruction itself, not only of the next.
    pub const fn has_ip(self) -> bool {
        !matches!(self, Self::Nehalem)
    }

    /// Returns whether records have the time.
    pub const fn has_time(self) -> bool {
        matches!(self, Self::Skylake | Self::Adaptive)
    }
}
