// SPDX-License-Identifier: GPL-2.0

//! The parts of a PMU that hypervisors give their guests (`vpmu-profile`).

use std::ffi::CStr;

use crate::defect::Defects;
use crate::model::{
    Amd,
    General,
    Model,
    Offcore,
    Vendor,
    CAP_FW_WRITE, //
};

/// The PMU of a hypervisor's guests: at most this much of the processor's, except for what the
/// hypervisor emulates: the bits of IA32_PERF_CAPABILITIES, and reserved bits. Guests have no
/// PEBS, no branch records, no topdown metrics, no AnyThread, and no registers that further select
/// events.
#[derive(Debug)]
pub struct Profile {
    /// The name, as `vpmu-profile` takes it.
    pub name: &'static str,
    /// Highest version of architectural performance monitoring.
    version: u32,
    /// Maximum number of general counters.
    general: usize,
    /// Maximum number of fixed counters.
    fixed: usize,
    /// The bits of IA32_PERF_CAPABILITIES; `None` if the register does not exist.
    capabilities: Option<u64>,
    /// The architectural events that are not available, as in CPUID.0AH:EBX.
    missing: u32,
    /// AMD's PerfMonV2 is available, if the processor has it.
    perfmon_v2: bool,
    /// CPUID says that there is no AnyThread. Otherwise it says what the processor does.
    any_thread_hidden: bool,
    /// IA32_PERFEVTSELx.PC, and the bits of a fixed counter beyond its width, ignore writes.
    /// Otherwise setting them is a fault.
    pub(crate) lenient: bool,
    /// At RESET, IA32_PERF_GLOBAL_CTRL enables the general counters, as on processors. AMD's
    /// counters are always enabled.
    pub(crate) enabled_at_reset: bool,
    /// The bits of IA32_DEBUGCTL that ignore writes. Setting another one is a fault.
    pub(crate) debugctl_ignored: u64,
    /// Registers of features that the guest does not have read as 0 and ignore writes. Otherwise
    /// accesses to them fault.
    pub(crate) absent_ignored: bool,
    /// The delivery of a PMI sets the mask flag of LVTPC, as on Intel's processors.
    pub(crate) masks: bool,
}

/// IA32_DEBUGCTL.LBR.
const LBR: u64 = 1 << 0;
/// IA32_DEBUGCTL.BTF.
const BTF: u64 = 1 << 1;
/// Architectural events (CPUID.0AH:EBX): references to and misses of the last-level cache.
const CACHE_EVENTS: u32 = 0b1_1000;
/// AMD's counters without and with PerfCtrExtCore. CPUID has no other number without PerfMonV2.
const AMD_COUNTERS: [usize; 2] = [4, 6];

/// The profiles. `kvm` is from the source of Linux 7.3, without the options for LBR and PEBS:
/// `kvm_init_pmu_capability()`, `__do_cpuid_func()`, `intel_is_valid_msr()`, `intel_pmu_set_msr()`,
/// `intel_pmu_refresh()`, `kvm_pmu_refresh()`, `svm_set_cpu_caps()`, `vmx_is_valid_debugctl()`,
/// `vmx_get_perf_capabilities()` and `kvm_apic_local_deliver()`. `xen` is from the source of Xen:
/// `core2_vpmu_do_wrmsr()`, `core2_vpmu_do_cpuid()`, `core2_vpmu_alloc_resource()` and
/// `vpmu_do_interrupt()`. The others are declarations: what guests are known to miss, at its worst.
pub static PROFILES: [Profile; 6] = [
    Profile {
        name: "kvm",
        version: 2,
        general: 8,
        fixed: 3,
        capabilities: Some(CAP_FW_WRITE),
        missing: 0,
        perfmon_v2: true,
        any_thread_hidden: true,
        lenient: true,
        enabled_at_reset: true,
        debugctl_ignored: LBR | BTF,
        absent_ignored: false,
        masks: true,
    },
    // With the parameter ignore_msrs=1 of KVM (`kvm_do_msr_access()`).
    Profile {
        name: "kvm-ignore",
        version: 2,
        general: 8,
        fixed: 3,
        capabilities: Some(CAP_FW_WRITE),
        missing: 0,
        perfmon_v2: true,
        any_thread_hidden: true,
        lenient: true,
        enabled_at_reset: true,
        debugctl_ignored: !0,
        absent_ignored: true,
        masks: true,
    },
    // Older versions do not mask LVTPC, leave the counters disabled at RESET, and have neither
    // full-width writes nor PerfMonV2.
    Profile {
        name: "kvm-old",
        version: 2,
        general: 8,
        fixed: 3,
        capabilities: Some(0),
        missing: 0,
        perfmon_v2: false,
        any_thread_hidden: true,
        lenient: true,
        enabled_at_reset: false,
        debugctl_ignored: LBR | BTF,
        absent_ignored: false,
        masks: false,
    },
    // Version 3, with the fixed counter of slots, and without PDCM in CPUID.
    Profile {
        name: "xen",
        version: 3,
        general: 8,
        fixed: 4,
        capabilities: None,
        missing: 0,
        perfmon_v2: false,
        any_thread_hidden: false,
        lenient: false,
        enabled_at_reset: false,
        debugctl_ignored: LBR,
        absent_ignored: false,
        masks: false,
    },
    // All writes of IA32_DEBUGCTL are ignored.
    Profile {
        name: "no-capabilities",
        version: 2,
        general: 4,
        fixed: 3,
        capabilities: None,
        missing: 0,
        perfmon_v2: false,
        any_thread_hidden: true,
        lenient: true,
        enabled_at_reset: true,
        debugctl_ignored: !0,
        absent_ignored: false,
        masks: true,
    },
    // Two general counters and one fixed one; no references to and misses of the last-level cache.
    Profile {
        name: "few",
        version: 2,
        general: 2,
        fixed: 1,
        capabilities: Some(0),
        missing: CACHE_EVENTS,
        perfmon_v2: false,
        any_thread_hidden: true,
        lenient: true,
        enabled_at_reset: true,
        debugctl_ignored: !0,
        absent_ignored: false,
        masks: true,
    },
];

/// Returns the profile of this name, or a message.
pub fn find(name: &str) -> Result<&'static Profile, &'static CStr> {
    let profile = PROFILES.iter().find(|profile| profile.name == name);
    profile.ok_or(c"vpmu-profile takes kvm, kvm-ignore, kvm-old, xen, no-capabilities or few")
}

impl Profile {
    /// Returns what a guest sees of this model.
    pub(crate) fn of(&self, model: &Model, threads_per_core: u32) -> Model {
        let [legacy, extended] = AMD_COUNTERS;
        let mut general = model.general_counters(threads_per_core).min(self.general);
        let vendor = match model.vendor {
            Vendor::Intel => Vendor::Intel,
            Vendor::Amd(amd) => {
                let extended = amd.extended && general >= extended;
                if !extended {
                    general = legacy;
                }
                Vendor::Amd(Amd {
                    extended,
                    global: amd.global && self.perfmon_v2,
                    merge: false,
                    northbridge: false,
                    ..amd
                })
            }
        };
        Model {
            vendor,
            version: model.version.min(self.version),
            general: General::Thread(general),
            fixed: model.fixed.min(self.fixed),
            missing: model.missing | self.missing,
            any_thread: model.any_thread && !self.any_thread_hidden,
            pin_control: self.lenient,
            capabilities: self.capabilities.unwrap_or(0),
            offcore: Offcore {
                registers: 0,
                ..model.offcore
            },
            frontend: 0,
            snoop: 0,
            metrics: 0,
            lbr: None,
            pebs: None,
            defects: Defects::NONE,
            ..*model
        }
    }

    /// Returns whether IA32_PERF_CAPABILITIES exists.
    pub(crate) fn has_capabilities(&self) -> bool {
        self.capabilities.is_some()
    }
}
