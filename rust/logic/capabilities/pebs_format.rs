// SPDX-License-Identifier: GPL-2.0

//! The layouts of the records that the processor writes for precise events.

/// The layout of PEBS records: IA32_PERF_CAPABILITIES.PEBS_REC_FMT.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PebsFormat {
    /// PebsFormat 1: registers, and the instruction's memory access.
    Nehalem,
    /// PebsFormat 2: the address of the instruction as well, and TSX.
    Haswell,
    /// PebsFormat 3: the time as well.
    Skylake,
    /// PebsFormat 4 with PEBS_BASELINE: groups by MSR_PEBS_DATA_CFG.
    Adaptive,
}

impl PebsFormat {
    /// Returns the format that IA32_PERF_CAPABILITIES tells. [`None`] if it is another or there is
    /// none.
    ///
    /// PebsFormat 4 without PEBS_BASELINE, of small cores, is another.
    pub const fn from_capabilities(perf_capabilities: u64) -> Option<Self> {
        match (perf_capabilities >> 8) & 0xf {
            1 => Some(Self::Nehalem),
            2 => Some(Self::Haswell),
            3 => Some(Self::Skylake),
            4 if (perf_capabilities >> 14) & 1 != 0 => Some(Self::Adaptive),
            _ => None,
        }
    }

    /// Returns whether records tell the address of the instruction itself, and not only of the
    /// next.
    pub const fn tells_ip(self) -> bool {
        !matches!(self, Self::Nehalem)
    }

    /// Returns whether records tell the time.
    pub const fn tells_time(self) -> bool {
        matches!(self, Self::Skylake | Self::Adaptive)
    }
}
