// SPDX-License-Identifier: GPL-2.0

//! What the lists have wrong, and what they lack.

/// Where a list is known to be wrong.
pub(crate) struct Exception {
    /// Directories of the lists.
    pub(crate) lists: &'static str,
    /// EVENT_SELECT, and UMASK unless any will do.
    pub(crate) event: u8,
    pub(crate) umask: Option<u8>,
    /// The counters that the list names, and those that it should.
    pub(crate) listed: u8,
    pub(crate) right: u8,
}

pub(crate) const EXCEPTIONS: [Exception; 1] = [
    // OFFCORE_RESPONSE: all 270 lines name counter 2 alone. SDM vol. 3, 20.3.1.1.3 lets any
    // IA32_PERFEVTSELx select it, and the list of Westmere, whose facility is the same with a second
    // register, names counters 0 to 3 in each of these lines.
    Exception {
        lists: "nehalemep",
        event: 0xb7,
        umask: None,
        listed: 0b0100,
        right: 0b1111,
    },
];

/// What a list lacks.
pub(crate) struct Missing {
    /// Directories of the lists.
    pub(crate) lists: &'static str,
    pub(crate) event: u8,
    pub(crate) umask: u8,
    /// The name of the listed event that counts the same on the same counters.
    pub(crate) same_as: &'static str,
}

/// MEM_UOPS_RETIRED's umask is made of two halves, which the lists of Sandy Bridge and Ivy Bridge have
/// in the combinations that Intel recommends: 01H loads, 02H stores; and of these 10H those that
/// missed the STLB, 20H locked ones, 40H those that cross a line, 80H all (SDM vol. 3, the table of
/// event D0H: "combine with umask 10H, 20H, 40H, 80H"). With all four of the latter they are all
/// loads, or all stores, as 80H has the others in it. The built-in driver's L1-dcache-loads and
/// L1-dcache-stores are these (`snb_hw_cache_event_ids`, MEM_UOP_RETIRED.LOADS and .STORES).
pub(crate) const MISSING: [Missing; 2] = [
    Missing {
        lists: "sandybridge jaketown ivybridge ivytown",
        event: 0xd0,
        umask: 0xf1,
        same_as: "MEM_UOPS_RETIRED.ALL_LOADS",
    },
    Missing {
        lists: "sandybridge jaketown ivybridge ivytown",
        event: 0xd0,
        umask: 0xf2,
        same_as: "MEM_UOPS_RETIRED.ALL_STORES",
    },
];
