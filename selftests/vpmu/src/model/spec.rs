// SPDX-License-Identifier: GPL-2.0

//! The differences between CPU models. Properties that all models of a vendor share are not fields:
//! IA32_MISC_ENABLE; MSR_PEBS_LD_LAT, if an event of the list uses it.

use crate::defect::Defects;
use crate::event::{
    amd,
    List, //
};

/// The PMU of one CPU model. Features that a vendor's PMUs do not have are zero or empty.
#[derive(Debug)]
pub struct Model {
    /// The microarchitecture.
    pub name: &'static str,
    /// CPUID family, extended family included.
    pub family: u32,
    /// CPUID models, extended model included.
    pub models: &'static [u32],
    /// The vendor, which determines the registers and events.
    pub(crate) vendor: Vendor,
    /// Version of architectural performance monitoring (CPUID.0AH:EAX\[7:0\]).
    pub(crate) version: u32,
    /// Number of general counters.
    pub(crate) general: General,
    /// Width of all counters, in bits.
    pub(crate) width: u32,
    /// Number of fixed counters. The fourth counts TOPDOWN.SLOTS.
    pub(crate) fixed: usize,
    /// Number of architectural events that CPUID enumerates (CPUID.0AH:EAX\[31:24\]).
    pub(crate) architectural: u32,
    /// Mask of the architectural events that are not available (CPUID.0AH:EBX).
    pub(crate) missing: u32,
    /// The event selects and IA32_FIXED_CTR_CTRL have AnyThread. Otherwise the bits are reserved
    /// and CPUID.0AH:EDX\[15\] is set.
    pub any_thread: bool,
    /// IA32_PERFEVTSELx.PC can be set. From Sandy Bridge on it is "reserved (not writeable)" (SDM
    /// vol. 3, 20.2.1.1).
    pub(crate) pin_control: bool,
    /// IA32_PERF_CAPABILITIES without LBR_FMT and the fields for PEBS.
    pub(crate) capabilities: u64,
    /// The offcore response registers.
    pub offcore: Offcore,
    /// The writable bits of MSR_PEBS_FRONTEND; 0 if the register does not exist.
    pub frontend: u64,
    /// Number of snoop response registers.
    pub(crate) snoop: usize,
    /// Pipeline slots per cycle; 0 if no event counts them.
    pub(crate) slots: u32,
    /// Number of shares in MSR_PERF_METRICS; 0 if the register does not exist.
    pub(crate) metrics: usize,
    /// The recording of branches; `None` if the CPU has none.
    pub(crate) lbr: Option<Lbr>,
    /// Precise sampling, which a CPU has on request; `None` if the hardware lacks it.
    pub(crate) pebs: Option<Pebs>,
    /// The defects that the hardware can have.
    pub defects: Defects,
    /// Intel's event list.
    pub list: &'static List,
}

/// The vendor-specific registers and events of a PMU.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Vendor {
    Intel,
    Amd(Amd),
}

/// The differences between AMD's models.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Amd {
    /// The counters are at MSRC001_0200 and following (CPUID 8000_0001H:ECX.PerfCtrExtCore), the
    /// first four also at MSRC001_0000 and following. Without PerfCtrExtCore, they are only at the
    /// latter.
    pub(crate) extended: bool,
    /// PerfMonV2: global control and status (CPUID 8000_0022H:EAX\[0\]).
    pub(crate) global: bool,
    /// Two counters can be merged for events that happen very often in one cycle.
    pub(crate) merge: bool,
    /// Events of the northbridge count on the cores' counters; all cores of a node share the
    /// counters with the same number.
    pub(crate) northbridge: bool,
    /// The event list, sorted by event code.
    pub(crate) list: &'static [amd::Event],
}

/// Number of general counters.
#[derive(Debug, Clone, Copy)]
pub(crate) enum General {
    /// Each thread has this many.
    Thread(usize),
    /// The core has this many; two threads have half of them each (SDM vol. 3, 20.3.4).
    Core(usize),
}

/// MSR_OFFCORE_RSP_x.
#[derive(Debug, Clone, Copy)]
pub struct Offcore {
    /// Number of registers.
    pub registers: usize,
    /// The threads of a core share the registers. Otherwise each thread has its own.
    pub(crate) per_core: bool,
    /// The writable bits of all registers.
    pub writable: u64,
    /// The lowest response bit. The bits below are requests.
    pub(crate) first_response: u32,
    /// The bits above the responses that are requests, too.
    pub(crate) high_requests: u64,
    /// The bits that are writable in the first register alone. They do not change what counts.
    pub(crate) only_first: u64,
    /// The lowest response bit means "any response".
    pub(crate) any: bool,
}

/// Last branch records.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lbr {
    pub(crate) format: LbrFormat,
    /// Maximum number of records.
    pub(crate) depth: usize,
    /// The records are in MSRs 40H and 60H, as on Core 2, instead of 680H and 6C0H.
    pub(crate) low: bool,
    /// The bits of MSR_LBR_SELECT or IA32_LBR_CTL that are not reserved.
    pub(crate) select: u64,
    /// The threads of a core share MSR_LBR_SELECT.
    pub(crate) per_core: bool,
}

/// The layout of last branch records (SDM vol. 3, 17.4.8.1 and chapter 19; APM vol. 2, 13.1.1.9).
/// The discriminants are the values of IA32_PERF_CAPABILITIES.LBR_FMT, if there is one. All formats
/// store effective addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LbrFormat {
    /// AMD's LbrExtV2: FROM has the flag of mispredicted branches, TO the flags of speculation.
    Amd = 0,
    /// Addresses alone.
    Addresses = 1,
    /// MSR_LASTBRANCH_x_FROM_IP has the flag of mispredicted branches.
    Flags = 3,
    /// It also has the flags of TSX.
    TsxFlags = 4,
    /// MSR_LBR_INFO_x has the flags, and the cycles since the last record.
    Info = 5,
    /// FROM has the flag of mispredicted branches, bits 63:48 of MSR_LASTBRANCH_x_TO_IP have the
    /// cycles since the last record.
    CyclesInTo = 6,
    /// As [`LbrFormat::Info`], without the flags of TSX.
    InfoWithoutTsx = 7,
    /// Architectural: IA32_LBR_x_INFO has also the kind of branch.
    Architectural = 0x3f,
}

impl LbrFormat {
    /// Returns whether the registers are numbered by age: 0 is the newest record.
    pub(crate) fn is_by_age(self) -> bool {
        matches!(self, LbrFormat::Amd | LbrFormat::Architectural)
    }
}

/// Processor event based sampling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pebs {
    pub(crate) format: PebsFormat,
    pub(crate) sampled: Sampled,
    /// Precise store: IA32_PEBS_ENABLE\[63\] adds the address to the records of events of stores.
    pub(crate) precise_store: bool,
    /// Records of events of loads and stores have the address.
    pub(crate) addresses: bool,
    /// Mask of the counters that count load latency if PEBS is switched on, beside those in the
    /// list.
    pub(crate) load_latency: u8,
    /// A record has two latencies: the instruction's in bits 15:0, and its cache access's in bits
    /// 47:32 (`struct pebs_meminfo` of the kernel, "Alder Lake and later").
    pub(crate) two_latencies: bool,
    /// A record's basic group has the cycles between the retirements of the previous instruction
    /// and of the record's (IA32_PERF_CAPABILITIES.PEBS_TIMING_INFO).
    pub(crate) retire_latency: bool,
}

/// The counters and events that PEBS samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sampled {
    /// The first four general counters, and the events that the list calls precise. In
    /// IA32_PEBS_ENABLE, bits 35:32 are these counters' load latency.
    Listed,
    /// General counter 0 alone, and the events that the list calls precise. IA32_PEBS_ENABLE has
    /// only its bit.
    ListedFirst,
    /// General counter 0 alone, and any event. IA32_PEBS_ENABLE has only its bit.
    First,
    /// All counters, the fixed ones included, and any event (Extended PEBS).
    All,
}

/// The layout of records (SDM vol. 3, 20.3.1.1.1, 20.3.6.2, 20.3.8.1 and 20.9). The discriminants
/// are the values of IA32_PERF_CAPABILITIES.PEBS_REC_FMT.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PebsFormat {
    /// General registers, IA32_PERF_GLOBAL_STATUS, data address, data source and latency.
    Nehalem = 1,
    /// Also the address of the instruction, and TSX.
    Haswell = 2,
    /// Also the TSC; of the status, only the counters that the record is for.
    Skylake = 3,
    /// Adaptive: groups of fields, as software selects them (PEBS_BASELINE).
    Adaptive = 4,
}

/// IA32_PERF_CAPABILITIES.SMM_FREEZE: IA32_DEBUGCTL.FREEZE_WHILE_SMM exists.
pub(crate) const CAP_SMM_FREEZE: u64 = 1 << 12;
/// IA32_PERF_CAPABILITIES.FW_WRITE: IA32_A_PMCx exist.
pub(crate) const CAP_FW_WRITE: u64 = 1 << 13;

/// IA32_PERF_CAPABILITIES.PERF_METRICS_AVAILABLE: MSR_PERF_METRICS exists.
pub(crate) const CAP_PERF_METRICS: u64 = 1 << 15;

/// Maximum number of general counters of a thread.
pub(crate) const MAX_GENERAL: usize = 8;
/// Maximum number of fixed counters.
pub(crate) const MAX_FIXED: usize = 4;
/// Maximum number of snoop response registers.
pub(crate) const MAX_SNOOP: usize = 2;

impl Offcore {
    /// Returns the writable bits of a register.
    pub fn bits(&self, index: usize) -> u64 {
        match index {
            0 => self.writable | self.only_first,
            _ => self.writable,
        }
    }
}

impl Model {
    /// Returns the mask of a counter's bits.
    pub(crate) fn counter_mask(&self) -> u64 {
        (1 << self.width) - 1
    }

    /// Returns the number of general counters of a thread.
    pub(crate) fn general_counters(&self, threads_per_core: u32) -> usize {
        match self.general {
            General::Thread(counters) => counters,
            General::Core(counters) if threads_per_core > 1 => counters / 2,
            General::Core(counters) => counters,
        }
    }

    /// Returns the width of linear addresses: processors from Ice Lake on have five-level paging,
    /// and check MSRs for it whether it is on or not (Intel, "5-Level Paging and 5-Level EPT"). By
    /// declaration, so has every processor with adaptive records.
    pub(crate) fn linear_address_bits(&self) -> u32 {
        match self.pebs {
            Some(pebs) if pebs.format == PebsFormat::Adaptive => 57,
            _ => 48,
        }
    }

    /// Returns the AMD-specific data, if the CPU is AMD's.
    pub(crate) fn amd(&self) -> Option<&Amd> {
        match &self.vendor {
            Vendor::Intel => None,
            Vendor::Amd(amd) => Some(amd),
        }
    }

    /// Returns whether an architectural event is available. `bit` is its bit in CPUID.0AH:EBX.
    pub(crate) fn has_architectural(&self, bit: u32) -> bool {
        bit < self.architectural && self.missing & (1 << bit) == 0
    }
}
