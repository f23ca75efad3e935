// SPDX-License-Identifier: GPL-2.0

//! The CPUID leaves that describe the PMU.

use super::state::Pmu;
use crate::inject::{
    self,
    Injected, //
};
use crate::model::{
    Common,
    CoreType,
    LbrFormat, //
};

/// Leaf 1CH. EAX: 8, 16 or 32 records, which may be lost in deep C-states; addresses are effective.
/// EBX: filters by level and by kind, call stack. ECX: mispredictions, cycles, kinds. EDX is
/// reserved.
const CPUID_LBR: [u32; 4] = [0x4000_000b, 7, 7, 0];

impl Pmu {
    /// Returns a leaf of CPUID (EAX, EBX, ECX, EDX), given its value without a PMU.
    pub fn cpuid(&self, leaf: u32, subleaf: u32, regs: [u32; 4]) -> [u32; 4] {
        if let Some(amd) = self.model.amd() {
            return self.amd_cpuid(amd, leaf, regs);
        }
        const DTES64: u32 = 1 << 2; // the DS area has 64-bit fields
        const PDCM: u32 = 1 << 15; // IA32_PERF_CAPABILITIES
        const DS: u32 = 1 << 21;
        const TSX_FORCE_ABORT: u32 = 1 << 13;
        const HYBRID: u32 = 1 << 15;
        const ARCH_LBR: u32 = 1 << 19;
        let arch_lbr = self
            .model
            .lbr
            .is_some_and(|lbr| lbr.format == LbrFormat::Architectural);
        let [eax, ebx, ecx, edx] = regs;
        match (leaf, subleaf) {
            (1, _) => {
                let (dtes64, ds) = match self.pebs {
                    Some(_) => (DTES64, DS),
                    None => (0, 0),
                };
                let eax = self.injected.signature(eax);
                let pdcm = match self.profile {
                    Some(profile) if !profile.has_capabilities() => 0,
                    _ => PDCM,
                };
                [eax, ebx, ecx | pdcm | dtes64, edx | ds]
            }
            (7, 0) => {
                let tfa = u32::from(self.defects.tfa) * TSX_FORCE_ABORT;
                let hybrid = self.core_type.is_some() || self.injected.has(Injected::HYBRID);
                let hybrid = u32::from(hybrid) * HYBRID;
                let lbr = u32::from(arch_lbr) * ARCH_LBR;
                [eax, ebx, ecx, edx | tfa | hybrid | lbr]
            }
            (0xa, _) => self.cpuid_leaf_a(),
            (0x1a, 0) => match self.core_type {
                Some(core_type) => [core_type.native_id, 0, 0, 0],
                None => regs,
            },
            (0x1c, 0) if arch_lbr => CPUID_LBR,
            _ => regs,
        }
    }

    pub(super) fn cpuid_leaf_a(&self) -> [u32; 4] {
        let model = self.model;
        // On a hybrid processor, leaf 0AH is the same on all CPUs.
        let common = self.core_type.map_or(
            Common {
                generals: self.generals,
                fixed: model.fixed,
                architectural: model.architectural,
            },
            CoreType::common,
        );
        let (generals, fixed) = if self.injected.has(Injected::FEWER) {
            inject::FEW
        } else if self.injected.has(Injected::MORE) {
            (inject::MANY, common.fixed)
        } else {
            (common.generals, common.fixed)
        };
        let eax = self.injected.perfmon(model.version)
            | ((generals as u32) << 8)
            | (model.width << 16)
            | (common.architectural << 24);
        // From version 5 on, a mask of the fixed counters.
        let ecx = if model.version >= 5 {
            (1 << fixed) - 1
        } else {
            0
        };
        let edx = fixed as u32 | (model.width << 5) | (u32::from(!model.any_thread) << 15);
        [eax, model.missing, ecx, edx]
    }
}
