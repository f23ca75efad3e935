// SPDX-License-Identifier: GPL-2.0

//! Processors that the driver refuses, although mainline drives them.

use core::fmt;

use Need::{
    ArchitecturalPebs,
    Leaf23,
    NoGlobalControl,
    OffmoduleResponse,
    Table,
    TenCounters, //
};

/// Processors that mainline knows by their models and this driver does not drive. The architectural
/// model would be wrong for them.
#[derive(Debug, PartialEq, Eq)]
pub struct NotDriven {
    /// The name in messages.
    pub name: &'static str,
    /// Display family.
    pub family: u16,
    /// Display models.
    pub numbers: &'static [u8],
    /// The features that they need and the driver does not have yet; not empty.
    pub needs: &'static [Need],
}

impl NotDriven {
    const fn new(
        name: &'static str,
        family: u16,
        numbers: &'static [u8],
        needs: &'static [Need],
    ) -> Self {
        Self {
            name,
            family,
            numbers,
            needs,
        }
    }

    /// Returns the entry of Intel's processors with this display family and model, if there is one.
    pub fn find(family: u16, number: u8) -> Option<&'static Self> {
        NOT_DRIVEN
            .iter()
            .find(|cpu| cpu.family == family && cpu.numbers.contains(&number))
    }
}

/// Writes "Clearwater Forest is not supported yet: it needs" and the missing features.
impl fmt::Display for NotDriven {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is not supported yet: it needs ", self.name)?;
        for (i, need) in self.needs.iter().enumerate() {
            let separator = match i {
                0 => "",
                i if i + 1 == self.needs.len() => " and ",
                _ => ", ",
            };
            write!(f, "{separator}{need}")?;
        }
        Ok(())
    }
}

/// A feature that the driver does not have yet. The text continues "it needs".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Version 1 of architectural performance monitoring: each counter is started and stopped by
    /// its own event select.
    NoGlobalControl,
    /// A table of the events and their counters, for at least one type of cores.
    Table,
    /// Each type of cores describes its counters in CPUID leaf 0x23, and leaf 0xA describes the
    /// common ones only, or not all. Mainline: `update_pmu_cap_from_perfmonext()`.
    Leaf23,
    /// The registers of Lion Cove's counters 8 and 9. Mainline: `intel_lnc_event_constraints`.
    TenCounters,
    /// Four registers that replace those of offcore response. Mainline: `PMU_FL_HAS_OMR`.
    OffmoduleResponse,
    /// PEBS records in a buffer without a debug store area: PEBS_REC_FMT 0xF in
    /// IA32_PERF_CAPABILITIES. Mainline: `x86_pmu.arch_pebs`.
    ArchitecturalPebs,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoGlobalControl => "counters without GLOBAL_CTRL",
            Self::Table => "a table of its events",
            Self::Leaf23 => "CPUID leaf 0x23",
            Self::TenCounters => "ten general-purpose counters",
            Self::OffmoduleResponse => "offmodule response",
            Self::ArchitecturalPebs => "architectural PEBS",
        })
    }
}

/// Intel's processors that mainline has a case for and this driver does not drive. Mainline:
/// `intel_pmu_init()`, `arch/x86/events/intel/core.c`.
#[rustfmt::skip]
pub const NOT_DRIVEN: &[NotDriven] = &[
    NotDriven::new("Core Duo", 6, &[0x0e], &[NoGlobalControl]),
    NotDriven::new("Core 2", 6, &[0x0f, 0x16, 0x17, 0x1d], &[Table]),
    NotDriven::new("Bonnell", 6, &[0x1c, 0x26], &[Table]),
    NotDriven::new("Saltwell", 6, &[0x27, 0x35, 0x36], &[Table]),
    NotDriven::new("Knights Landing", 6, &[0x57], &[Table]),
    NotDriven::new("Knights Mill", 6, &[0x85], &[Table]),
    // Darkmont
    NotDriven::new("Clearwater Forest", 6, &[0xdd], &[Table, Leaf23, ArchitecturalPebs]),
    // Panther Cove
    NotDriven::new("Diamond Rapids", 19, &[0x01], &[Table, Leaf23, OffmoduleResponse, ArchitecturalPebs]),
    // Redwood Cove and Crestmont
    NotDriven::new("Meteor Lake", 6, &[0xaa, 0xac], &[Leaf23]),
    NotDriven::new("Arrow Lake-U", 6, &[0xb5], &[Leaf23]),
    // Lion Cove and Skymont; Arrow Lake-H also has Crestmont
    NotDriven::new("Arrow Lake", 6, &[0xc5, 0xc6], &[Table, Leaf23, TenCounters]),
    NotDriven::new("Lunar Lake", 6, &[0xbd], &[Table, Leaf23, TenCounters]),
    // Cougar Cove, with Lion Cove's events, and Darkmont
    NotDriven::new(
        "Panther Lake", 6, &[0xcc],
        &[Table, Leaf23, TenCounters, ArchitecturalPebs],
    ),
    NotDriven::new(
        "Wildcat Lake", 6, &[0xd5],
        &[Table, Leaf23, TenCounters, ArchitecturalPebs],
    ),
    // Coyote Cove and Arctic Wolf
    NotDriven::new(
        "Nova Lake", 18, &[0x01, 0x03],
        &[Table, Leaf23, OffmoduleResponse, ArchitecturalPebs],
    ),
];
