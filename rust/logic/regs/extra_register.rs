// SPDX-License-Identifier: GPL-2.0

//! Extra registers, which some events need besides a counter's registers.

/// A register that an event can need besides a counter's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExtraRegister {
    /// MSR_OFFCORE_RSP_0: types of requests and of responses.
    OffcoreResponse0,
    /// MSR_OFFCORE_RSP_1.
    OffcoreResponse1,
    /// MSR_PEBS_LD_LAT_THRESHOLD: minimum latency of loads in cycles.
    LoadLatency,
    /// MSR_PEBS_FRONTEND: type of front-end event.
    Frontend,
    /// MSR_SNOOP_RSP_0: types of snoop responses.
    SnoopResponse0,
    /// MSR_SNOOP_RSP_1.
    SnoopResponse1,
    /// MSR_LBR_SELECT, or IA32_LBR_CTL: the branches that are recorded. Events need it for a branch
    /// stack, not because of their code.
    LbrSelect,
}

impl ExtraRegister {
    /// All extra registers.
    pub const ALL: [Self; 7] = [
        Self::OffcoreResponse0,
        Self::OffcoreResponse1,
        Self::LoadLatency,
        Self::Frontend,
        Self::SnoopResponse0,
        Self::SnoopResponse1,
        Self::LbrSelect,
    ];

    /// Returns the register with the given number in [`ALL`](Self::ALL).
    pub fn from_index(index: usize) -> Option<Self> {
        Self::ALL.get(index).copied()
    }

    /// Returns the register's number in [`ALL`](Self::ALL).
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Returns whether the threads of a core share the register on models with
    /// [`Scope::Core`](crate::logic::model::Scope::Core). Of these, only Nehalem and Westmere have
    /// two threads per core. SDM vol. 4, table 2-15.
    pub const fn can_be_shared(self) -> bool {
        matches!(
            self,
            Self::OffcoreResponse0 | Self::OffcoreResponse1 | Self::LbrSelect
        )
    }

    /// Returns the register that has the same function for another event code.
    pub const fn twin(self) -> Option<Self> {
        match self {
            Self::OffcoreResponse0 => Some(Self::OffcoreResponse1),
            Self::OffcoreResponse1 => Some(Self::OffcoreResponse0),
            Self::LoadLatency
            | Self::Frontend
            | Self::SnoopResponse0
            | Self::SnoopResponse1
            | Self::LbrSelect => None,
        }
    }
}
