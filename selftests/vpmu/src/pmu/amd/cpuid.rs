// SPDX-License-Identifier: GPL-2.0

//! The CPUID leaves that describe AMD's PMU.

use crate::inject::{
    self,
    Injected, //
};
use crate::model::Amd;
use crate::pmu::state::Pmu;

impl Pmu {
    /// Returns a leaf of CPUID, given its value without a PMU.
    pub(in crate::pmu) fn amd_cpuid(&self, amd: &Amd, leaf: u32, regs: [u32; 4]) -> [u32; 4] {
        const PERF_CTR_EXT_CORE: u32 = 1 << 23;
        const PERF_MON_V2: u32 = 1 << 0;
        const LBR_STACK: u32 = 1 << 1;
        const LBR_AND_PMC_FREEZE: u32 = 1 << 2;
        let [eax, ebx, ecx, edx] = regs;
        // Injected version 1 removes PerfMonV2, and none (0) also removes PerfCtrExtCore.
        let version = self.injected.perfmon(2);
        match leaf {
            1 => [self.injected.signature(eax), ebx, ecx, edx],
            0x8000_0001 => {
                let extended = u32::from(amd.extended && version >= 1) * PERF_CTR_EXT_CORE;
                [self.injected.signature(eax), ebx, ecx | extended, edx]
            }
            // EBX[3:0] is the number of counters, EBX[9:4] that of branch records.
            0x8000_0022 if amd.global && version >= 2 => {
                let counters = if self.injected.has(Injected::FEWER) {
                    inject::FEW.0
                } else if self.injected.has(Injected::MORE) {
                    inject::MANY
                } else {
                    self.generals
                };
                let (lbr, records) = match self.model.lbr {
                    Some(lbr) => (LBR_STACK | LBR_AND_PMC_FREEZE, lbr.depth as u32),
                    None => (0, 0),
                };
                let ebx = (ebx & !0x3ff) | (records << 4) | counters as u32;
                [eax | PERF_MON_V2 | lbr, ebx, ecx, edx]
            }
            _ => regs,
        }
    }
}
