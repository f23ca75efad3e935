// SPDX-License-Identifier: GPL-2.0

//! The machine to plan for: a CPU model and its threads per core, or a virtual machine on such a
//! CPU.
//!
//! This module builds the CPUID leaves of such a machine, and [`PmuInfo::probe`] decodes them as in
//! the driver: a model that the driver refuses is refused here, too.

use crate::data::{
    lists,
    List, //
};
use crate::logic::capabilities::Cpuid;
use crate::logic::cores::CoreType;
use crate::logic::model::{
    models,
    Model,
    Quirk,
    Vendor, //
};
use crate::logic::open::attr::Attributes;
use crate::logic::open::configure;
use crate::logic::open::event::Event;
use crate::logic::pmu::PmuInfo;
use crate::logic::refusal::Refusal;
use crate::logic::regs::counter::CounterMask;
use serde::Serialize;

/// Hardware threads of a core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Smt {
    /// Two.
    On,
    /// Two, one of them offline: the counters stay divided.
    Offline,
    /// One, which owns all counters on models that split them between threads.
    Off,
}

/// The machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The model's event list.
    pub list: List,
    /// The PMU as the driver probes it.
    pub pmu: PmuInfo,
    /// Hardware threads of a core.
    pub smt: Smt,
    /// Set if TSX reserves counter 3: the CPU has TSX_FORCE_ABORT, and `allow_tsx_force_abort`
    /// is 0.
    pub no_force_abort: bool,
    /// The virtual machine's share of the PMU; `None` on bare metal.
    pub guest: Option<Guest>,
}

/// The counters of a virtual machine. `None` stands for the processor's, up to three fixed ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Guest {
    /// Number of general-purpose counters.
    pub gp: Option<u8>,
    /// Number of fixed counters.
    pub fixed: Option<u8>,
}

/// The reason why a machine cannot be planned for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoMachine {
    /// No model has this name.
    Unknown(String),
    /// The model has no `allow_tsx_force_abort`.
    NoForceAbort(&'static str),
    /// A virtual machine cannot have these counters, for this reason.
    Counters(String),
    /// The driver refuses the machine, for this reason.
    Unsupported(String),
}

/// Common names, including QEMU's, and the perf tool's name for the same model.
const ALIASES: &[(&str, &str)] = &[
    ("nehalem", "nehalemep"),
    ("nhm", "nehalemep"),
    ("westmere", "westmereep-dp"),
    ("wsm", "westmereep-dp"),
    ("snb", "sandybridge"),
    ("sandybridge-ep", "jaketown"),
    ("snb-ep", "jaketown"),
    ("ivb", "ivybridge"),
    ("ivybridge-ep", "ivytown"),
    ("ivb-ep", "ivytown"),
    ("hsw", "haswell"),
    ("haswell-ep", "haswellx"),
    ("bdw", "broadwell"),
    ("broadwell-ep", "broadwellx"),
    ("skl", "skylake"),
    ("skylake-client", "skylake"),
    ("skylake-server", "skylakex"),
    ("skx", "skylakex"),
    ("kabylake", "skylake"),
    ("coffeelake", "skylake"),
    ("cometlake", "skylake"),
    ("cascadelake", "cascadelakex"),
    ("clx", "cascadelakex"),
    ("icl", "icelake"),
    ("icelake-server", "icelakex"),
    ("icx", "icelakex"),
    ("tgl", "tigerlake"),
    ("rkl", "rocketlake"),
    ("spr", "sapphirerapids"),
    ("emr", "emeraldrapids"),
    ("gnr", "graniterapids"),
    ("slm", "silvermont"),
    ("airmont", "silvermont"),
    ("baytrail", "silvermont"),
    ("avoton", "silvermont"),
    ("glm", "goldmont"),
    ("apollolake", "goldmont"),
    ("denverton", "goldmont"),
    ("glp", "goldmontplus"),
    ("geminilake", "goldmontplus"),
    ("tremont", "snowridgex"),
    ("snowridge", "snowridgex"),
    ("jasperlake", "elkhartlake"),
    ("gracemont", "alderlaken"),
    ("adl-n", "alderlaken"),
    ("n100", "alderlaken"),
    ("crestmont", "sierraforest"),
    ("srf", "sierraforest"),
    ("grr", "grandridge"),
    ("zen", "amdzen1"),
    ("epyc", "amdzen1"),
    ("zen2", "amdzen2"),
    ("epyc-rome", "amdzen2"),
    ("zen3", "amdzen3"),
    ("epyc-milan", "amdzen3"),
    ("zen4", "amdzen4"),
    ("epyc-genoa", "amdzen4"),
    ("zen5", "amdzen5"),
    ("epyc-turin", "amdzen5"),
    ("zen6", "amdzen6"),
    ("epyc-venice", "amdzen6"),
    ("bulldozer", "amdfam15h"),
];

/// Finds the list by the perf tool's name or by an alias, ignoring case.
pub fn find_list(name: &str) -> Option<List> {
    let lower = name.to_lowercase();
    let alias = ALIASES.iter().find(|(alias, _)| *alias == lower);
    let wanted = alias.map_or(lower.as_str(), |(_, name)| name);
    lists().find(|list| list.name == wanted)
}

/// Returns the aliases of a list.
pub fn aliases(list: List) -> impl Iterator<Item = &'static str> {
    let is_it = move |alias: &&(&str, &str)| alias.1 == list.name;
    ALIASES.iter().filter(is_it).map(|(alias, _)| *alias)
}

/// Finds the list for a CPUID family and model: its own, or the list of another model of the same
/// microarchitecture.
pub fn list_of(family: u16, cpuid_model: u8) -> Option<List> {
    let is_it = |list: &List| (list.family, list.cpuid_model) == (family, cpuid_model);
    lists().find(is_it).or_else(|| {
        let vendor = vendor(family);
        let mut models = models();
        let model =
            models.find(|model| model.is_for(vendor, family, cpuid_model, CoreType::Only))?;
        // Zen 2 and Zen 3 are one model, with a list for each family.
        let mut lists = lists().filter(|list| list.family == family);
        lists.find(|list| model.is_for(vendor, family, list.cpuid_model, CoreType::Only))
    })
}

/// Returns the maker of processors of a family with an event list.
fn vendor(family: u16) -> Vendor {
    if family == 6 {
        Vendor::Intel
    } else {
        Vendor::Amd
    }
}

/// The lists of small cores, which have one thread.
const SMALL_CORES: &[&str] = &[
    "silvermont",
    "goldmont",
    "goldmontplus",
    "snowridgex",
    "elkhartlake",
    "alderlaken",
    "sierraforest",
    "grandridge",
];

/// Returns whether the cores of a list's processors can have two threads. Of AMD's processors, Zen
/// is the first with threads (a module of family 15h has two cores).
fn has_smt(list: List) -> bool {
    if vendor(list.family) == Vendor::Intel {
        !SMALL_CORES.contains(&list.name)
    } else {
        list.family >= 0x17
    }
}

/// Returns the names of models that are similar to this one, the most similar first.
pub fn similar(name: &str) -> Vec<&'static str> {
    let lower = name.to_lowercase();
    let names = lists().flat_map(|list| [list.name].into_iter().chain(aliases(list)));
    let mut near: Vec<(f64, &str)> = names
        .map(|known| (strsim::jaro_winkler(&lower, known), known))
        .filter(|(likeness, _)| *likeness > 0.85)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    near.iter().take(3).map(|(_, name)| *name).collect()
}

impl Machine {
    /// Creates the machine for a model's name.
    ///
    /// # Errors
    ///
    /// [`NoMachine`] says why there is none.
    pub fn new(name: &str, smt: Smt, no_force_abort: bool) -> Result<Self, NoMachine> {
        let list = find_list(name).ok_or_else(|| NoMachine::Unknown(name.to_owned()))?;
        Self::of_list(list, smt, no_force_abort)
    }

    /// Creates the machine for an event list.
    ///
    /// # Errors
    ///
    /// [`NoMachine`] says why there is none.
    pub fn of_list(list: List, smt: Smt, no_force_abort: bool) -> Result<Self, NoMachine> {
        let smt = if has_smt(list) { smt } else { Smt::Off };
        let unsupported = |why: &dyn ToString| NoMachine::Unsupported(why.to_string());
        let plain = cpuid(list, Traits::SKYLAKE, smt, false);
        let model = PmuInfo::probe(&plain, None)
            .map_err(|why| unsupported(&why))?
            .model;
        if no_force_abort && model.pmu_name != "skylake" {
            return Err(NoMachine::NoForceAbort(list.name));
        }
        let traits = Traits::of(model);
        let cpuid = cpuid(list, traits, smt, no_force_abort);
        let capabilities = perf_capabilities(model.pmu_name, traits.metrics);
        let pmu = PmuInfo::probe(&cpuid, Some(capabilities)).map_err(|why| unsupported(&why))?;
        Ok(Self {
            list,
            pmu,
            smt,
            no_force_abort,
            guest: None,
        })
    }

    /// Returns this machine as seen by a virtual machine on it: version 2 of architectural
    /// performance monitoring, no PEBS, no branch records, no topdown metrics and no extra
    /// registers. Mainline: `kvm_init_pmu_capability()`, `arch/x86/kvm/pmu.c`.
    ///
    /// # Errors
    ///
    /// [`NoMachine::Counters`] if the processor has fewer counters.
    pub fn as_guest(self, guest: Guest) -> Result<Self, NoMachine> {
        const VERSION: u32 = 2;
        const MOST_FIXED: u8 = 3;
        const FULL_WIDTH_WRITE: u64 = 1 << 13;
        let name = self.list.name;
        let present = self.pmu.capabilities.counters;
        // CAST: at most 64.
        let number = |counters: CounterMask| counters.iter().count() as u8;
        let most_gp = number(present.gp());
        let most_fixed = number(present.fixed()).min(MOST_FIXED);
        let gp = guest.gp.unwrap_or(most_gp);
        let fixed = guest.fixed.unwrap_or(most_fixed);
        if gp == 0 || gp > most_gp {
            return Err(NoMachine::Counters(format!(
                "--counters: {name} has 1 to {most_gp} general-purpose counters"
            )));
        }
        if fixed > most_fixed {
            return Err(NoMachine::Counters(format!(
                "--fixed: virtual machines on {name} have at most {most_fixed} fixed counters"
            )));
        }
        let cpuid = if vendor(self.list.family) == Vendor::Amd {
            // CPUID only shows whether there are six.
            if ![AMD_LEGACY_GP, AMD_CORE_GP].contains(&gp) {
                return Err(NoMachine::Counters(format!(
                    "--counters: virtual machines on AMD's processors have {AMD_LEGACY_GP} or \
                     {AMD_CORE_GP} counters"
                )));
            }
            let mut cpuid = amd_cpuid(self.list);
            cpuid.set_amd(gp == AMD_CORE_GP, false);
            cpuid
        } else {
            let traits = Traits::of(self.pmu.model);
            let mut cpuid = Cpuid::intel(VERSION, gp.into(), fixed.into())
                .with_model(6, self.list.cpuid_model.into());
            cpuid.leaf_a.ebx = traits.absent;
            cpuid
        };
        let pmu = PmuInfo::probe(&cpuid.with_hypervisor(), Some(FULL_WIDTH_WRITE))
            .map_err(|why| NoMachine::Unsupported(why.to_string()))?;
        Ok(Self {
            pmu,
            guest: Some(guest),
            ..self
        })
    }

    /// Returns the event that the driver makes of `attr`.
    ///
    /// # Errors
    ///
    /// The driver's refusal.
    pub fn configure(&self, attr: &Attributes) -> Result<Event, Refusal> {
        configure(&self.pmu, attr, |_| self.guest.is_none(), || true)
    }

    /// Returns whether the core's other thread is online.
    pub fn has_sibling(&self) -> bool {
        self.smt == Smt::On
    }
}

/// Returns IA32_PERF_CAPABILITIES of a microarchitecture (SDM vol. 4, table 2-2).
fn perf_capabilities(pmu_name: &str, metrics: bool) -> u64 {
    const LBR_FORMAT_EIP_FLAGS: u64 = 3;
    const PEBS_TRAP: u64 = 1 << 6;
    const PEBS_FORMAT: u32 = 8;
    const PEBS_BASELINE: u64 = 1 << 14;
    const PERF_METRICS_AVAILABLE: u32 = 15;

    let pebs = match pmu_name {
        // The address of the instruction is found with the last branch.
        "nehalem" | "westmere" | "sandybridge" | "ivybridge" => {
            (1 << PEBS_FORMAT) | PEBS_TRAP | LBR_FORMAT_EIP_FLAGS
        }
        "haswell" | "broadwell" | "silvermont" => 2 << PEBS_FORMAT,
        "skylake" | "goldmont" | "goldmont_plus" => 3 << PEBS_FORMAT,
        "icelake" | "sapphire_rapids" | "granite_rapids" | "Tremont" | "gracemont"
        | "crestmont" => (4 << PEBS_FORMAT) | PEBS_BASELINE,
        _ => 0,
    };
    pebs | (u64::from(metrics) << PERF_METRICS_AVAILABLE)
}

/// AMD's counters without PerfCtrExtCore, and with it.
const AMD_LEGACY_GP: u8 = 4;
const AMD_CORE_GP: u8 = 6;

/// Values of CPUID and IA32_PERF_CAPABILITIES that differ between models.
#[derive(Clone, Copy)]
struct Traits {
    /// Architectural performance monitoring version.
    version: u32,
    /// General-purpose counters per thread with two threads per core, and with one.
    gp: [u32; 2],
    /// Fixed counters.
    fixed: u32,
    /// Architectural events that CPUID.0AH:EBX marks as absent.
    absent: u32,
    /// PERF_METRICS exists.
    metrics: bool,
}

impl Traits {
    const SKYLAKE: Self = Self {
        version: 4,
        gp: [4, 8],
        fixed: 3,
        absent: 0,
        metrics: false,
    };

    /// Returns the values of a microarchitecture (SDM vol. 3, 20.3; errata for the absent events).
    fn of(model: &Model) -> Self {
        let branch_misses_absent = model.has(Quirk::BranchMissesExecuted);
        let old = Self {
            version: 3,
            ..Self::SKYLAKE
        };
        match model.pmu_name {
            "nehalem" => Self {
                gp: [4, 4],
                // Erratum AAJ80, and the reference cycles.
                absent: (u32::from(branch_misses_absent) << 6) | (1 << 2),
                ..old
            },
            "westmere" => Self {
                gp: [4, 4],
                absent: 1 << 2,
                ..old
            },
            "skylake" => Self::SKYLAKE,
            "icelake" | "sapphire_rapids" | "granite_rapids" => Self {
                version: 5,
                gp: [8, 8],
                fixed: 4,
                absent: 0,
                metrics: true,
            },
            "silvermont" => Self { gp: [2, 2], ..old },
            "goldmont" | "goldmont_plus" => Self {
                gp: [4, 4],
                ..Self::SKYLAKE
            },
            "Tremont" => Self {
                version: 5,
                gp: [4, 4],
                ..Self::SKYLAKE
            },
            "crestmont" => Self {
                version: 5,
                gp: [8, 8],
                ..Self::SKYLAKE
            },
            "gracemont" => Self {
                version: 5,
                gp: [6, 6],
                ..Self::SKYLAKE
            },
            _ => old,
        }
    }
}

/// Builds the CPUID leaves that the driver reads.
fn cpuid(list: List, traits: Traits, smt: Smt, defect: bool) -> Cpuid {
    if vendor(list.family) == Vendor::Amd {
        return amd_cpuid(list);
    }
    let gp = traits.gp[usize::from(smt == Smt::Off)];
    let mut cpuid = Cpuid::intel(traits.version, gp, traits.fixed)
        .with_model(6, list.cpuid_model.into())
        .with_debug_store();
    // RTM and TSX_FORCE_ABORT.
    cpuid.leaf_7.ebx = u32::from(defect) << 11;
    cpuid.leaf_7.edx = u32::from(defect) << 13;
    cpuid.leaf_a.ebx = traits.absent;
    // From version 5 on, AnyThread is deprecated.
    cpuid.leaf_a.edx |= u32::from(traits.version >= 5) << 15;
    cpuid
}

/// Builds the CPUID leaves of an AMD processor, whose threads do not share counters.
fn amd_cpuid(list: List) -> Cpuid {
    let (family, number) = (u32::from(list.family), u32::from(list.cpuid_model));
    let mut cpuid = Cpuid::amd().with_model(family, number);
    cpuid.leaf_8000_0022.ebx = 6;
    // PerfMonV2 came with Zen 4.
    let v2 = (family, number) >= (0x19, 0x10);
    cpuid.set_amd(family != 0x16, v2);
    cpuid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(name: &str, smt: Smt) -> CounterMask {
        Machine::new(name, smt, false)
            .unwrap()
            .pmu
            .capabilities
            .counters
    }

    #[test]
    fn threads_divide_the_counters_up_to_skylake() {
        for (name, on, off) in [
            ("nhm", 0x7_0000_000f, 0x7_0000_000f),
            ("westmere", 0x7_0000_000f, 0x7_0000_000f),
            ("SNB", 0x7_0000_000f, 0x7_0000_00ff),
            ("Haswell", 0x7_0000_000f, 0x7_0000_00ff),
            ("skylakex", 0x7_0000_000f, 0x7_0000_00ff),
            ("icelakex", 0xf_0000_00ff, 0xf_0000_00ff),
            ("spr", 0xf_0000_00ff, 0xf_0000_00ff),
            ("gnr", 0xf_0000_00ff, 0xf_0000_00ff),
            ("avoton", 0x7_0000_0003, 0x7_0000_0003),
            ("denverton", 0x7_0000_000f, 0x7_0000_000f),
            ("geminilake", 0x7_0000_000f, 0x7_0000_000f),
            ("tremont", 0x7_0000_000f, 0x7_0000_000f),
            ("jasperlake", 0x7_0000_000f, 0x7_0000_000f),
            ("srf", 0x7_0000_00ff, 0x7_0000_00ff),
            ("n100", 0x7_0000_003f, 0x7_0000_003f),
            ("zen2", 0x3f, 0x3f),
            ("zen4", 0x3f, 0x3f),
        ] {
            assert_eq!(counters(name, Smt::On).bits(), on, "{name}");
            assert_eq!(counters(name, Smt::Offline).bits(), on, "{name}");
            assert_eq!(counters(name, Smt::Off).bits(), off, "{name}");
        }
    }

    /// Returns the counters of a virtual machine, as bits.
    fn of_guest(name: &str, gp: Option<u8>, fixed: Option<u8>) -> Result<u64, NoMachine> {
        let machine = Machine::new(name, Smt::On, false)?.as_guest(Guest { gp, fixed })?;
        Ok(machine.pmu.capabilities.counters.bits())
    }

    #[test]
    fn guests_have_what_they_are_given() {
        for (name, gp, fixed, counters) in [
            ("haswell", None, None, 0x7_0000_000f),
            ("haswell", Some(4), Some(0), 0xf),
            ("haswell", Some(2), Some(1), 0x1_0000_0003),
            // Slots are not for guests.
            ("icelakex", None, None, 0x7_0000_00ff),
            ("spr", Some(4), None, 0x7_0000_000f),
            ("zen4", None, None, 0x3f),
            ("zen4", Some(4), Some(0), 0xf),
            ("amdfam16h", None, None, 0xf),
        ] {
            assert_eq!(
                of_guest(name, gp, fixed),
                Ok(counters),
                "{name} {gp:?} {fixed:?}"
            );
        }
        for (name, gp, fixed) in [
            ("haswell", Some(0), None),
            ("haswell", Some(5), None),
            ("icelakex", None, Some(4)),
            ("zen2", Some(5), None),
            ("zen2", None, Some(1)),
        ] {
            let refused = of_guest(name, gp, fixed);
            assert!(
                matches!(refused, Err(NoMachine::Counters(_))),
                "{name} {gp:?} {fixed:?}"
            );
        }
    }

    #[test]
    fn guests_have_counters_only() {
        for list in lists() {
            let machine = Machine::of_list(list, Smt::On, false).unwrap();
            let guest = machine.as_guest(Guest::default()).unwrap();
            let capabilities = guest.pmu.capabilities;
            assert_eq!(guest.pmu.max_precise(), 0, "{}", list.name);
            assert!(guest.pmu.lbr.is_none(), "{}", list.name);
            assert!(capabilities.metrics.is_empty() && !capabilities.any_thread);
            assert_eq!(
                capabilities.absent_events,
                machine.pmu.capabilities.absent_events
            );
        }
    }

    #[test]
    fn every_list_has_a_machine() {
        for list in lists() {
            assert!(Machine::of_list(list, Smt::On, false).is_ok());
        }
    }

    #[test]
    fn aliases_are_no_lists_and_lead_to_one() {
        for (alias, name) in ALIASES {
            assert!(lists().all(|list| list.name != *alias), "{alias}");
            assert!(lists().any(|list| list.name == *name), "{name}");
        }
    }

    #[test]
    fn only_skylake_has_the_defect() {
        let machine = Machine::new("skx", Smt::On, true).unwrap();
        assert!(machine.pmu.capabilities.tsx_uses_counter_3);
        let none = Machine::new("hsw", Smt::On, true).unwrap_err();
        assert_eq!(none, NoMachine::NoForceAbort("haswell"));
    }
}
