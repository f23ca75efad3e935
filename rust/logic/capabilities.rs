// SPDX-License-Identifier: GPL-2.0

//! The PMU as CPUID and IA32_PERF_CAPABILITIES describe it.
//!
//! No other module decodes the two. This module executes no instruction: the driver fills in a
//! [`Cpuid`]. Intel's PMUs have leaf 0xA. AMD's have no leaf before PerfMonV2: a feature bit,
//! PerfCtrExtCore, distinguishes six counters from four.

mod builder;
mod pebs_format;

use crate::logic::{
    cores::{
        CoreType,
        ALDER_LAKE, //
    },
    regs::{
        counter::{
            CounterId,
            CounterMask,
            MAX_FIXED,
            MAX_GP, //
        },
        period::CounterWidth, //
    },
};

pub use pebs_format::PebsFormat;

/// The registers of one CPUID leaf, subleaf 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    /// EAX.
    pub eax: u32,
    /// EBX.
    pub ebx: u32,
    /// ECX.
    pub ecx: u32,
    /// EDX.
    pub edx: u32,
}

/// The CPUID leaves that are decoded. Leaves above the highest one of their range stay 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpuid {
    /// Leaf 0x0: highest basic leaf, vendor.
    pub leaf_0: Leaf,
    /// Leaf 0x1: family, model, PDCM, the debug store (DS, DTES64), hypervisor.
    pub leaf_1: Leaf,
    /// Leaf 0x7: HLE, RTM, TSX_FORCE_ABORT, RTM_ALWAYS_ABORT, hybrid, architectural LBRs.
    pub leaf_7: Leaf,
    /// Leaf 0xA: architectural performance monitoring.
    pub leaf_a: Leaf,
    /// Leaf 0x1A: the type of the core, on a hybrid.
    pub leaf_1a: Leaf,
    /// Leaf 0x1C: architectural LBRs.
    pub leaf_1c: Leaf,
    /// Leaf 0x8000_0001: AMD's features.
    pub leaf_8000_0001: Leaf,
    /// Leaf 0x8000_0008: the sizes of addresses.
    pub leaf_8000_0008: Leaf,
    /// Leaf 0x8000_0022: AMD's extended performance monitoring.
    pub leaf_8000_0022: Leaf,
}

/// The registers by which counters are enabled and report overflows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interface {
    /// Intel's architectural performance monitoring: GLOBAL_CTRL and GLOBAL_STATUS from version 2
    /// on.
    ArchPerfmon,
    /// AMD's four legacy counters: an enable bit in each event select, and no status.
    AmdLegacy,
    /// AMD's core performance counter extensions (PerfCtrExtCore): the same with six counters at
    /// other addresses.
    AmdCore,
    /// AMD's PerfMonV2: the same counters with PerfCntrGlobalCtl and PerfCntrGlobalStatus.
    AmdV2,
}

impl Interface {
    /// Returns whether the PMU is AMD's.
    #[inline]
    pub const fn is_amd(self) -> bool {
        !matches!(self, Self::ArchPerfmon)
    }
}

const fn bit(value: u32, bit: u32) -> bool {
    (value >> bit) & 1 != 0
}

const fn byte(value: u32, shift: u32) -> u8 {
    (value >> shift) as u8
}

impl Cpuid {
    /// Returns the vendor string, twelve ASCII characters in EBX, EDX, ECX.
    pub const fn vendor(&self) -> [u8; 12] {
        let [b0, b1, b2, b3] = self.leaf_0.ebx.to_le_bytes();
        let [d0, d1, d2, d3] = self.leaf_0.edx.to_le_bytes();
        let [c0, c1, c2, c3] = self.leaf_0.ecx.to_le_bytes();
        [b0, b1, b2, b3, d0, d1, d2, d3, c0, c1, c2, c3]
    }

    /// Returns the display family (SDM vol. 2A, CPUID).
    pub const fn family(&self) -> u16 {
        let base = ((self.leaf_1.eax >> 8) & 0xf) as u16;
        if base == 0xf {
            base + byte(self.leaf_1.eax, 20) as u16
        } else {
            base
        }
    }

    /// Returns the display model (SDM vol. 2A, CPUID).
    pub const fn model(&self) -> u8 {
        let base = ((self.leaf_1.eax >> 4) & 0xf) as u8;
        match self.family() {
            6 | 15.. => base | (byte(self.leaf_1.eax, 16) << 4),
            _ => base,
        }
    }

    /// Returns whether IA32_PERF_CAPABILITIES exists (PDCM). Otherwise reading it raises #GP.
    pub const fn has_perf_capabilities(&self) -> bool {
        bit(self.leaf_1.ecx, 15)
    }

    /// Returns whether the processor writes 64-bit records to a debug store (DS, DTES64).
    const fn has_debug_store(&self) -> bool {
        bit(self.leaf_1.edx, 21) && bit(self.leaf_1.ecx, 2)
    }

    /// Returns whether a hypervisor announces itself.
    pub const fn is_virtual(&self) -> bool {
        bit(self.leaf_1.ecx, 31)
    }

    /// Returns whether the processor has different kinds of cores.
    pub const fn is_hybrid(&self) -> bool {
        bit(self.leaf_7.edx, 15)
    }

    /// Returns the type of this CPU's core. A hybrid is a processor of Intel that says so, or an
    /// [Alder Lake](ALDER_LAKE), some of whose dies have big cores only. [`None`] if the type is
    /// unknown.
    pub fn core_type(&self) -> Option<CoreType> {
        let is_alder_lake = self.family() == 6 && ALDER_LAKE.contains(&self.model());
        if self.vendor() == *b"GenuineIntel" && (self.is_hybrid() || is_alder_lake) {
            CoreType::of_hybrid(self.leaf_1a.eax)
        } else {
            Some(CoreType::Only)
        }
    }

    /// Returns the number of general-purpose counters and the mask of fixed counters in leaf 0xA.
    ///
    /// On Alder and Raptor Lake, the leaf has the counters that both types of cores have, and big
    /// cores have two and one more. If the firmware has turned all small cores off, the leaf has
    /// all counters of big cores, though the processor still says that it is a hybrid. Mainline:
    /// `intel_pmu_init()`, `arch/x86/events/intel/core.c`.
    fn reported(&self) -> (u8, u32) {
        let leaf = &self.leaf_a;
        let (gp, fixed) = (byte(leaf.eax, 8), leaf.ecx);
        let lacks_some = gp <= 6 && fixed <= 0b111;
        if self.is_hybrid() && self.core_type() == Some(CoreType::Big) && lacks_some {
            (gp + 2, (fixed << 1) | 1)
        } else {
            (gp, fixed)
        }
    }

    /// Returns whether IA32_PERF_CAPABILITIES lacks PERF_METRICS_AVAILABLE though PERF_METRICS
    /// exists: erratum RPL018, on big cores of Raptor Lake. Mainline:
    /// `intel_pmu_broken_perf_cap()`, `arch/x86/events/intel/core.c`.
    fn hides_metrics(&self) -> bool {
        self.core_type() == Some(CoreType::Big) && matches!(self.model(), 0xb7 | 0xba | 0xbf)
    }

    /// Returns whether TSX (RTM or HLE) exists, which the in_tx filters need.
    pub const fn has_tsx(&self) -> bool {
        self.has_rtm() || bit(self.leaf_7.ebx, 4)
    }

    /// Returns whether RTM exists. Without it, sysfs does not show the in_tx formats.
    pub const fn has_rtm(&self) -> bool {
        bit(self.leaf_7.ebx, 11)
    }

    /// Overrides the kinds of TSX transactions in CPUID.
    pub fn set_tsx(&mut self, rtm: bool, hle: bool) {
        self.leaf_7.ebx &= !((1 << 11) | (1 << 4));
        self.leaf_7.ebx |= (u32::from(rtm) << 11) | (u32::from(hle) << 4);
    }

    /// Returns whether architectural LBRs exist.
    const fn has_arch_lbr(&self) -> bool {
        bit(self.leaf_7.edx, 19)
    }

    /// Overrides whether architectural LBRs exist.
    pub fn set_arch_lbr(&mut self, exist: bool) {
        self.leaf_7.edx &= !(1 << 19);
        self.leaf_7.edx |= u32::from(exist) << 19;
    }

    /// Returns whether AMD's core performance counter extensions exist (PerfCtrExtCore).
    const fn has_amd_core(&self) -> bool {
        bit(self.leaf_8000_0001.ecx, 23)
    }

    /// Returns whether AMD's PerfMonV2 exists.
    const fn has_amd_v2(&self) -> bool {
        bit(self.leaf_8000_0022.eax, 0)
    }

    /// Overrides the existence of AMD's extensions.
    pub fn set_amd(&mut self, core: bool, v2: bool) {
        self.leaf_8000_0001.ecx &= !(1 << 23);
        self.leaf_8000_0001.ecx |= u32::from(core) << 23;
        self.leaf_8000_0022.eax &= !1;
        self.leaf_8000_0022.eax |= u32::from(v2);
    }

    /// Returns AMD's branch records (LbrExtV2); [`None`] if there are none.
    const fn amd_lbr(&self) -> Option<AmdLbr> {
        let leaf = &self.leaf_8000_0022;
        if !bit(leaf.eax, 1) {
            return None;
        }
        Some(AmdLbr {
            // CAST: a field of six bits.
            depth: ((leaf.ebx >> 4) & 0x3f) as u8,
            freezes: bit(leaf.eax, 2),
            virtual_bits: byte(self.leaf_8000_0008.eax, 8),
        })
    }

    /// Overrides whether AMD's branch records exist, and whether a PMI can freeze them.
    pub fn set_amd_lbr(&mut self, exist: bool, freeze: bool) {
        self.leaf_8000_0022.eax &= !0b110;
        self.leaf_8000_0022.eax |= (u32::from(exist) << 1) | (u32::from(freeze) << 2);
    }

    /// Returns whether TSX transactions corrupt general-purpose counter 3 unless
    /// MSR_TSX_FORCE_ABORT aborts them: TSX_FORCE_ABORT without RTM_ALWAYS_ABORT. Mainline: `TFA`,
    /// `arch/x86/events/intel/core.c`.
    pub const fn tsx_uses_counter_3(&self) -> bool {
        bit(self.leaf_7.edx, 13) && !bit(self.leaf_7.edx, 11)
    }
}

/// The architectural events that CPUID can mark as absent, by their bit in leaf 0xA EBX.
///
/// SDM vol. 3B, table "Architectural Performance Events"; mainline: `intel_arch_events_map`,
/// `arch/x86/events/intel/core.c`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AbsentEvents(u8);

impl AbsentEvents {
    /// Number of events that every CPU has to describe (`ARCH_PERFMON_EVENTS_COUNT`).
    pub const COUNT: u8 = 7;

    /// Returns whether the event with the given bit is marked as absent.
    pub const fn contains(self, bit: u8) -> bool {
        bit < Self::COUNT && (self.0 >> bit) & 1 != 0
    }
}

/// The architectural LBRs: leaf 0x1C, SDM volume 2A, CPUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArchLbr {
    eax: u32,
    ebx: u32,
    ecx: u32,
}

impl ArchLbr {
    /// Makes the value from the registers of the leaf.
    pub const fn from_leaf(eax: u32, ebx: u32, ecx: u32) -> Self {
        Self { eax, ebx, ecx }
    }

    /// Returns the maximum number of branches that can be recorded, 8 to 32; 0 if CPUID has none of
    /// these.
    pub const fn depth(self) -> u8 {
        // Bit n is set if 8 * (n + 1) is possible.
        let possible = self.eax & 0xf;
        // CAST: at most 32.
        (8 * (u32::BITS - possible.leading_zeros())) as u8
    }

    /// Returns whether branches can be filtered by privilege level.
    pub const fn levels(self) -> bool {
        bit(self.ebx, 0)
    }

    /// Returns whether branches can be filtered by kind.
    pub const fn filters(self) -> bool {
        bit(self.ebx, 1)
    }

    /// Returns whether the records can be a call stack.
    pub const fn call_stack(self) -> bool {
        bit(self.ebx, 2)
    }

    /// Returns whether records have mispredictions.
    pub const fn mispredictions(self) -> bool {
        bit(self.ecx, 0)
    }

    /// Returns whether records have cycles.
    pub const fn cycles(self) -> bool {
        bit(self.ecx, 1)
    }

    /// Returns whether records have the types of branches.
    pub const fn types(self) -> bool {
        bit(self.ecx, 2)
    }
}

/// AMD's branch records, LbrExtV2: APM volume 3, appendix E, CPUID Fn8000_0022.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AmdLbr {
    /// The number of branches that are recorded.
    pub depth: u8,
    /// Set if a PMI can stop the recording.
    pub freezes: bool,
    /// The number of significant bits of a virtual address.
    pub virtual_bits: u8,
}

/// Number of general-purpose counters whose registers have the same addresses on every CPU: the SDM
/// names IA32_PMC0 to 7, IA32_PERFEVTSEL0 to 7 and IA32_A_PMC0 to 7 (volume 4, table 2-2).
pub const ADDRESSABLE_GP: u8 = 8;

/// Number of AMD's counters without extensions, and with PerfCtrExtCore.
const AMD_LEGACY_GP: u8 = 4;
const AMD_CORE_GP: u8 = 6;
/// Width of AMD's counters (APM volume 2, section 13.2.1).
const AMD_WIDTH: u8 = 48;

/// The PMU that one CPU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The registers by which counters are enabled and report overflows.
    pub interface: Interface,
    /// Version of architectural performance monitoring; 0 for AMD's PMUs.
    pub version: u8,
    /// The usable counters of both kinds.
    pub counters: CounterMask,
    /// The number of general-purpose counters in CPUID beyond [`ADDRESSABLE_GP`].
    pub unused_gp: u8,
    /// Width of the counters.
    pub width: CounterWidth,
    /// Set if general-purpose counters can be written in their full width, through IA32_A_PMCn.
    /// Otherwise a write has 32 bits and is sign-extended.
    pub full_width_write: bool,
    /// Set if PERF_METRICS exists, from which the topdown metrics are read.
    pub perf_metrics: bool,
    /// The usable topdown metrics. [`PmuInfo::probe`](super::pmu::PmuInfo::probe) sets them, since
    /// their number depends on the model.
    pub metrics: CounterMask,
    /// The architectural events that are absent.
    pub absent_events: AbsentEvents,
    /// Set if any-thread counting exists. If so, sysfs shows the format.
    pub any_thread: bool,
    /// Set if TSX exists, RTM or HLE.
    pub tsx: bool,
    /// Set if RTM exists. If so, and if the model has in_tx filters, sysfs shows the in_tx formats.
    pub rtm: bool,
    /// Set if TSX transactions corrupt general-purpose counter 3.
    pub tsx_uses_counter_3: bool,
    /// The format of branch records: IA32_PERF_CAPABILITIES[5:0].
    pub lbr_format: u8,
    /// The architectural LBRs, if they exist.
    pub arch_lbr: Option<ArchLbr>,
    /// The layout of PEBS records, if the processor writes records with a known layout.
    pub pebs_format: Option<PebsFormat>,
    /// Set if the address in a PEBS record is the next instruction's, in formats without the
    /// address of the instruction itself: IA32_PERF_CAPABILITIES.PEBS_TRAP.
    pub pebs_trap: bool,
    /// Set if a PEBS record has the cycles to the instruction's retirement: PEBS_TIMING_INFO.
    pub pebs_timing: bool,
    /// AMD's branch records, if they exist. Only with PerfMonV2, as in mainline
    /// (`amd_pmu_lbr_init()`, `arch/x86/events/amd/lbr.c`).
    pub amd_lbr: Option<AmdLbr>,
}

impl Capabilities {
    /// Decodes CPUID and, if it exists, IA32_PERF_CAPABILITIES.
    ///
    /// Returns `None` if CPUID describes no usable PMU: no version, too few architectural events,
    /// no general-purpose counter, counters of less than 32 bits or of an impossible width.
    ///
    /// General-purpose counters: at most [`ADDRESSABLE_GP`].
    ///
    /// Fixed counters: version 1 has none. In versions 2 to 4, CPUID has their number, and on bare
    /// metal there are at least three, whatever the number is (mainline: `intel_pmu_init()`,
    /// `arch/x86/events/intel/core.c`). From version 5 on there is also a mask, and a counter
    /// exists if the number or the mask includes it (SDM volume 2A, CPUID, leaf 0AH, ECX; mainline
    /// only uses the mask).
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::capabilities::{Capabilities, Cpuid};
    ///
    /// // Haswell with two threads a core: version 3, 4 counters of 48 bits, 3 fixed ones.
    /// let cpuid = Cpuid::intel(3, 4, 3);
    /// let capabilities = Capabilities::decode(&cpuid, Some(0x2000)).unwrap();
    /// assert_eq!(capabilities.counters.bits(), 0x7_0000_000f);
    /// assert_eq!(capabilities.max_period(), (1 << 47) - 1);
    /// ```
    pub fn decode(cpuid: &Cpuid, perf_capabilities: Option<u64>) -> Option<Self> {
        if cpuid.leaf_0.eax < 0xa {
            return None;
        }
        let leaf = &cpuid.leaf_a;
        let version = byte(leaf.eax, 0);
        let (reported_gp, fixed_mask) = cpuid.reported();
        let gp = if reported_gp < ADDRESSABLE_GP {
            reported_gp
        } else {
            ADDRESSABLE_GP
        };
        let mask_length = byte(leaf.eax, 24);
        if version == 0 || gp == 0 || mask_length < AbsentEvents::COUNT {
            return None;
        }
        let width = match CounterWidth::new(byte(leaf.eax, 16)) {
            // A write to a counter has at least 32 bits.
            Some(width) if width.bits() >= 32 => width,
            _ => return None,
        };

        let reported_fixed = (leaf.edx & 0x1f) as u8;
        let fixed = if version >= 5 {
            // A bit from `MAX_FIXED` on would become a topdown metric.
            CounterMask::from_bits(u64::from(fixed_mask) << MAX_GP)
                .fixed()
                .union(CounterMask::first_fixed(reported_fixed))
        } else if version >= 2 {
            let minimum = if cpuid.is_virtual() { 0 } else { 3 };
            CounterMask::first_fixed(if reported_fixed > minimum {
                reported_fixed
            } else {
                minimum
            })
        } else {
            CounterMask::EMPTY
        };

        let perf_capabilities = perf_capabilities.unwrap_or(0);
        Some(Self {
            interface: Interface::ArchPerfmon,
            version,
            counters: CounterMask::first_gp(gp).union(fixed),
            unused_gp: reported_gp.wrapping_sub(gp),
            width,
            full_width_write: (perf_capabilities >> 13) & 1 != 0,
            perf_metrics: (perf_capabilities >> 15) & 1 != 0 || cpuid.hides_metrics(),
            metrics: CounterMask::EMPTY,
            absent_events: AbsentEvents(byte(leaf.ebx, 0) & ((1 << AbsentEvents::COUNT) - 1)),
            any_thread: version >= 3 && !(version >= 5 && bit(leaf.edx, 15)),
            tsx: cpuid.has_tsx(),
            rtm: cpuid.has_rtm(),
            tsx_uses_counter_3: cpuid.tsx_uses_counter_3(),
            lbr_format: (perf_capabilities & 0x3f) as u8,
            arch_lbr: if cpuid.has_arch_lbr() {
                let Leaf { eax, ebx, ecx, .. } = cpuid.leaf_1c;
                Some(ArchLbr { eax, ebx, ecx })
            } else {
                None
            },
            pebs_format: if cpuid.has_debug_store() {
                PebsFormat::from_capabilities(perf_capabilities)
            } else {
                None
            },
            pebs_trap: (perf_capabilities >> 6) & 1 != 0,
            pebs_timing: (perf_capabilities >> 17) & 1 != 0,
            amd_lbr: None,
        })
    }

    /// Decodes CPUID of an AMD processor. Returns [`None`] if PerfMonV2 has no counter.
    ///
    /// Without PerfMonV2, CPUID does not show whether there is a PMU: on hypervisors without one,
    /// the registers fault, or do not keep their values.
    ///
    /// Source: APM volume 3, appendix E, CPUID Fn8000_0001_ECX bit 23 and Fn8000_0022. Mainline:
    /// `amd_core_pmu_init()`, `arch/x86/events/amd/core.c`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::capabilities::{Capabilities, Cpuid, Interface, Leaf};
    ///
    /// // Zen 2: six counters, without a register that switches all of them.
    /// let cpuid = Cpuid {
    ///     leaf_8000_0001: Leaf { ecx: 1 << 23, ..Leaf::default() },
    ///     ..Cpuid::default()
    /// };
    /// let capabilities = Capabilities::decode_amd(&cpuid).unwrap();
    /// assert_eq!(capabilities.interface, Interface::AmdCore);
    /// assert_eq!(capabilities.counters.bits(), 0x3f);
    /// assert_eq!(capabilities.max_period(), (1 << 47) - 1);
    /// ```
    pub const fn decode_amd(cpuid: &Cpuid) -> Option<Self> {
        let (interface, gp) = if !cpuid.has_amd_core() {
            (Interface::AmdLegacy, AMD_LEGACY_GP)
        } else if !cpuid.has_amd_v2() {
            (Interface::AmdCore, AMD_CORE_GP)
        } else {
            let reported = cpuid.leaf_8000_0022.ebx & 0xf;
            (Interface::AmdV2, reported as u8)
        };
        let width = match CounterWidth::new(AMD_WIDTH) {
            Some(width) if gp != 0 => width,
            _ => return None,
        };
        Some(Self {
            interface,
            version: 0,
            counters: CounterMask::first_gp(gp),
            unused_gp: 0,
            width,
            full_width_write: true,
            perf_metrics: false,
            metrics: CounterMask::EMPTY,
            absent_events: AbsentEvents(0),
            any_thread: false,
            tsx: false,
            rtm: false,
            tsx_uses_counter_3: false,
            lbr_format: 0,
            arch_lbr: None,
            pebs_format: None,
            pebs_trap: false,
            pebs_timing: false,
            amd_lbr: match interface {
                Interface::AmdV2 => cpuid.amd_lbr(),
                _ => None,
            },
        })
    }

    /// Returns the number of general-purpose counters.
    pub const fn gp(&self) -> u32 {
        self.counters.gp().weight()
    }

    /// Returns the number of fixed counters.
    pub const fn fixed(&self) -> u32 {
        self.counters.fixed().weight()
    }

    /// Returns everything on which an event can be put: the counters and the topdown metrics.
    pub const fn all(&self) -> CounterMask {
        self.counters.union(self.metrics)
    }

    /// Returns the counters that report overflows. The first metric's bit stands for PERF_METRICS.
    #[inline]
    pub const fn reporting(&self) -> CounterMask {
        let metrics = self.metrics.intersection(CounterId::FIRST_METRIC.mask());
        self.counters.union(metrics)
    }

    /// Returns the longest period that can be programmed: half the range of values that can be
    /// written to a counter.
    ///
    /// Mainline: `intel_pmu`, `arch/x86/events/intel/core.c`.
    pub const fn max_period(&self) -> u64 {
        if self.full_width_write {
            self.width.mask() >> 1
        } else {
            (1 << 31) - 1
        }
    }
}

const _: () = assert!(MAX_GP == 32 && MAX_FIXED <= 16);

#[cfg(test)]
mod tests;
