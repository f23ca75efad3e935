// SPDX-License-Identifier: GPL-2.0

//! Errors and omissions of Intel's lists.

/// A known error of a list.
pub(crate) struct Exception {
    /// Directories of the lists.
    pub(crate) lists: &'static str,
    /// EVENT_SELECT, and UMASK if only that one is wrong.
    pub(crate) event: u8,
    pub(crate) umask: Option<u8>,
    /// The counters that the list names, and the right ones.
    pub(crate) listed: u8,
    pub(crate) right: u8,
}

pub(crate) const EXCEPTIONS: [Exception; 1] = [
    // OFFCORE_RESPONSE: all 270 lines name counter 2 alone. By SDM vol. 3, 20.3.1.1.3 any
    // IA32_PERFEVTSELx can select it, and the list of Westmere, which only adds a second register,
    // names counters 0 to 3 in all of these lines.
    Exception {
        lists: "nehalemep",
        event: 0xb7,
        umask: None,
        listed: 0b0100,
        right: 0b1111,
    },
];

/// An event that a list lacks.
pub(crate) struct Missing {
    /// Directories of the lists.
    pub(crate) lists: &'static str,
    pub(crate) event: u8,
    pub(crate) umask: u8,
    /// The listed event that counts the same on the same counters.
    pub(crate) same_as: &'static str,
    /// The register that further selects it, if it is not that event's.
    pub(crate) register: Option<&'static str>,
}

/// The umask of MEM_UOPS_RETIRED has two halves: 01H loads, 02H stores; 10H those that missed the
/// STLB, 20H locked ones, 40H those that cross a line, 80H all (SDM vol. 3, the table of event D0H:
/// "combine with umask 10H, 20H, 40H, 80H"). The lists of Sandy Bridge and Ivy Bridge have the
/// combinations that Intel recommends. F0H is all loads or stores too, as 80H includes the others;
/// the built-in driver uses it for L1-dcache-loads and L1-dcache-stores (`snb_hw_cache_event_ids`,
/// MEM_UOP_RETIRED.LOADS and .STORES).
///
/// OCR, OFFCORE_RESPONSE before Tremont, has two unit masks, one for each register, in Intel's own
/// lists of small cores; the kernel's copies have the first one only.
///
/// Goldmont Plus's list has page walks by size (DTLB_LOAD_MISSES, 02H, 04H, 08H of 08H;
/// DTLB_STORE_MISSES, of 49H). The kernel's `glp_hw_cache_event_ids` has all sizes together (0EH).
///
/// The snoop responses of Crestmont (27H, with a register for each of two unit masks) are in no
/// list, but in the kernel's `intel_cmt_extra_regs`. By declaration, their register alone decides
/// what they count; any counter counts them.
pub(crate) const MISSING: [Missing; 10] = [
    Missing {
        lists: "sandybridge jaketown ivybridge ivytown",
        event: 0xd0,
        umask: 0xf1,
        same_as: "MEM_UOPS_RETIRED.ALL_LOADS",
        register: None,
    },
    Missing {
        lists: "sandybridge jaketown ivybridge ivytown",
        event: 0xd0,
        umask: 0xf2,
        same_as: "MEM_UOPS_RETIRED.ALL_STORES",
        register: None,
    },
    Missing {
        lists: "silvermont goldmont goldmontplus",
        event: 0xb7,
        umask: 0x02,
        same_as: "OFFCORE_RESPONSE",
        register: Some("Offcore(1)"),
    },
    Missing {
        lists: "goldmontplus",
        event: 0x08,
        umask: 0x0e,
        same_as: "MEM_UOPS_RETIRED.DTLB_MISS_LOADS",
        register: None,
    },
    Missing {
        lists: "goldmontplus",
        event: 0x49,
        umask: 0x0e,
        same_as: "MEM_UOPS_RETIRED.DTLB_MISS_STORES",
        register: None,
    },
    Missing {
        lists: "snowridgex",
        event: 0xb7,
        umask: 0x02,
        same_as: "OCR.ALL_CODE_RD.L3_HIT",
        register: Some("Offcore(1)"),
    },
    Missing {
        lists: "alderlaken alderlake/cpu_atom",
        event: 0xb7,
        umask: 0x02,
        same_as: "OCR.COREWB_M.ANY_RESPONSE",
        register: Some("Offcore(1)"),
    },
    Missing {
        lists: "sierraforest",
        event: 0xb7,
        umask: 0x02,
        same_as: "OCR.DEMAND_DATA_RD.ANY_RESPONSE",
        register: Some("Offcore(1)"),
    },
    Missing {
        lists: "sierraforest",
        event: 0x27,
        umask: 0x01,
        same_as: "LONGEST_LAT_CACHE.MISS",
        register: Some("Snoop(0)"),
    },
    Missing {
        lists: "sierraforest",
        event: 0x27,
        umask: 0x02,
        same_as: "LONGEST_LAT_CACHE.MISS",
        register: Some("Snoop(1)"),
    },
];
