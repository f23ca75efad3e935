// SPDX-License-Identifier: GPL-2.0

//! The processors of a model, by CPUID.

use crate::logic::cores::CoreType;

/// The vendor of a processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Vendor {
    /// GenuineIntel.
    Intel,
    /// AuthenticAMD.
    Amd,
    /// HygonGenuine, whose processors are AMD's Zen.
    Hygon,
}

impl Vendor {
    /// Returns the vendor with the given string in CPUID leaf 0; `None` for a vendor without a
    /// model.
    pub const fn from_cpuid(vendor: &[u8; 12]) -> Option<Self> {
        match vendor {
            b"GenuineIntel" => Some(Self::Intel),
            b"AuthenticAMD" => Some(Self::Amd),
            b"HygonGenuine" => Some(Self::Hygon),
            _ => None,
        }
    }
}

/// Processors of one vendor and display family with neighbouring display models, or the cores of
/// one type in these processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpus {
    /// The vendor.
    pub vendor: Vendor,
    /// The display family.
    pub family: u16,
    /// The lowest display model.
    pub first: u8,
    /// The highest display model.
    pub last: u8,
    /// The type of the cores.
    pub core: CoreType,
}

impl Cpus {
    /// Returns Intel's processors of family 6 with these models.
    pub(super) const fn intel<const N: usize>(models: [u8; N]) -> [Self; N] {
        let mut cpus = [Self::family(Vendor::Intel, 6); N];
        let mut i = 0;
        while i < N {
            cpus[i].first = models[i];
            cpus[i].last = models[i];
            i += 1;
        }
        cpus
    }

    /// Returns the cores of the type `core` in Intel's hybrids of family 6 with these models.
    pub(super) const fn hybrid<const N: usize>(models: [u8; N], core: CoreType) -> [Self; N] {
        let mut cpus = Self::intel(models);
        let mut i = 0;
        while i < N {
            cpus[i].core = core;
            i += 1;
        }
        cpus
    }

    /// Returns AMD's processors of a family with models from `first` to `last`, both included.
    pub(super) const fn amd(family: u16, first: u8, last: u8) -> Self {
        assert!(first <= last, "an empty range");
        Self {
            vendor: Vendor::Amd,
            family,
            first,
            last,
            core: CoreType::Only,
        }
    }

    /// Returns all processors of a family.
    pub(super) const fn family(vendor: Vendor, family: u16) -> Self {
        Self {
            vendor,
            family,
            first: 0,
            last: u8::MAX,
            core: CoreType::Only,
        }
    }

    /// Returns whether these processors include the one with this vendor, family and model, if its
    /// core has the type `core`.
    pub fn contains(&self, vendor: Vendor, family: u16, model: u8, core: CoreType) -> bool {
        self.vendor == vendor
            && self.family == family
            && self.first <= model
            && model <= self.last
            && self.core == core
    }
}
