// SPDX-License-Identifier: GPL-2.0

//! Building CPUID data of any processor, for tests, examples and `rpmu-plan`.
//!
//! ```
//! # use rpmu_logic::logic;
//! use logic::{capabilities::Cpuid, pmu::PmuInfo};
//!
//! // Version 4, eight general-purpose counters, three fixed ones.
//! let skylake = Cpuid::intel(4, 8, 3).with_signature(0x506e3);
//! assert_eq!(PmuInfo::probe(&skylake, None).unwrap().model.pmu_name, "skylake");
//! ```

use super::{
    Cpuid,
    Leaf, //
};

/// The counter width of most supported processors.
const WIDTH: u32 = 48;
/// Number of architectural events that leaf 0xA describes, none of them absent.
const EVENTS: u32 = 7;

impl Cpuid {
    /// No leaf.
    const NOTHING: Self = {
        const ZERO: Leaf = Leaf {
            eax: 0,
            ebx: 0,
            ecx: 0,
            edx: 0,
        };
        Self {
            leaf_0: ZERO,
            leaf_1: ZERO,
            leaf_7: ZERO,
            leaf_a: ZERO,
            leaf_1a: ZERO,
            leaf_1c: ZERO,
            leaf_8000_0001: ZERO,
            leaf_8000_0008: ZERO,
            leaf_8000_0022: ZERO,
        }
    };

    /// Describes an Intel processor with this `version` of architectural performance monitoring,
    /// `gp` general-purpose counters and the first `fixed` fixed ones.
    pub const fn intel(version: u32, gp: u32, fixed: u32) -> Self {
        let mut cpuid = Self::NOTHING.with_vendor(b"GenuineIntel");
        cpuid.leaf_0.eax = 0x20;
        cpuid.leaf_a.eax = (EVENTS << 24) | (WIDTH << 16) | (gp << 8) | version;
        cpuid.leaf_a.edx = (WIDTH << 5) | fixed;
        if version >= 5 {
            cpuid.leaf_a.ecx = (1 << fixed) - 1;
        }
        cpuid
    }

    /// Describes an AMD processor with the four legacy counters.
    pub const fn amd() -> Self {
        let mut cpuid = Self::NOTHING.with_vendor(b"AuthenticAMD");
        cpuid.leaf_0.eax = 0x10;
        cpuid
    }

    /// Sets the vendor.
    #[must_use]
    pub const fn with_vendor(mut self, name: &[u8; 12]) -> Self {
        let [b0, b1, b2, b3, d0, d1, d2, d3, c0, c1, c2, c3] = *name;
        self.leaf_0.ebx = u32::from_le_bytes([b0, b1, b2, b3]);
        self.leaf_0.edx = u32::from_le_bytes([d0, d1, d2, d3]);
        self.leaf_0.ecx = u32::from_le_bytes([c0, c1, c2, c3]);
        self
    }

    /// Sets family, model and stepping: leaf 1 EAX.
    #[must_use]
    pub const fn with_signature(mut self, signature: u32) -> Self {
        self.leaf_1.eax = signature;
        self
    }

    /// Sets display family and model, with stepping 0.
    #[must_use]
    pub const fn with_model(self, family: u32, model: u32) -> Self {
        let base = if family < 0xf { family } else { 0xf };
        let extended = ((family - base) << 20) | ((model >> 4) << 16);
        self.with_signature(extended | (base << 8) | ((model & 0xf) << 4))
    }

    /// Makes this a core of a hybrid, with its type in EAX of leaf 0x1A.
    #[must_use]
    pub const fn with_core_type(mut self, eax: u32) -> Self {
        self.leaf_7.edx |= 1 << 15;
        self.leaf_1a.eax = eax;
        self
    }

    /// Adds a hypervisor that announces itself.
    #[must_use]
    pub const fn with_hypervisor(mut self) -> Self {
        self.leaf_1.ecx |= 1 << 31;
        self
    }

    /// Adds IA32_PERF_CAPABILITIES, and a debug store for 64-bit records.
    #[must_use]
    pub const fn with_debug_store(mut self) -> Self {
        // PDCM, DTES64; DS.
        self.leaf_1.ecx |= (1 << 15) | (1 << 2);
        self.leaf_1.edx |= 1 << 21;
        self
    }
}
