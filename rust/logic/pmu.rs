// SPDX-License-Identifier: GPL-2.0

//! The PMU at hand: a model's constants and a machine's counters, put together.

use core::fmt;

use crate::logic::{
    capabilities::{Capabilities, Cpuid},
    model::{HardwareId, Model, Need, Quirk, GENERIC, GENERIC_V5, MODELS, WITHOUT_A_TABLE},
    open::cache_event::{CacheId, NoCacheEvent},
    regs::{counter::CounterMask, event_select::EventSelect, period::PeriodLimits},
    sample::pebs::PreciseDistribution,
    sched::constraint::{first_match, Constraint, EventConstraint},
};

/// A PMU that is supported.
#[derive(Clone, Copy, Debug)]
pub struct Pmu {
    /// The microarchitecture.
    pub model: &'static Model,
    /// The machine's counters.
    pub capabilities: Capabilities,
}

/// The counter of the topdown method's slots.
const SLOTS: CounterMask = CounterMask::first_fixed(4).without(CounterMask::first_fixed(3));

impl Pmu {
    /// Finds out whether the PMU that CPUID describes is supported.
    ///
    /// `perf_capabilities` is IA32_PERF_CAPABILITIES where
    /// [it exists](Cpuid::has_perf_capabilities).
    ///
    /// # Errors
    ///
    /// What is the case, with a text for the log that says what to do.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::capabilities::{Cpuid, Leaf};
    /// use logic::pmu::Pmu;
    ///
    /// let mut cpuid = Cpuid {
    ///     leaf_0: Leaf { eax: 0x16, ebx: 0x756e6547, ecx: 0x6c65746e, edx: 0x49656e69 },
    ///     leaf_1: Leaf { eax: 0x506e3, ..Leaf::default() },
    ///     leaf_a: Leaf { eax: 0x0730_0404, edx: 0x603, ..Leaf::default() },
    ///     ..Cpuid::default()
    /// };
    /// assert_eq!(Pmu::probe(&cpuid, None).unwrap().model.pmu_name, "skylake");
    ///
    /// cpuid.leaf_1.eax = 0x506c1;
    /// assert_eq!(
    ///     Pmu::probe(&cpuid, None).unwrap_err().to_string(),
    ///     "Goldmont is not supported yet: it needs a trial, for it has run on no such CPU; keep \
    ///      the built-in driver"
    /// );
    ///
    /// cpuid.leaf_1.eax = 0x106c2;
    /// assert_eq!(
    ///     Pmu::probe(&cpuid, None).unwrap_err().to_string(),
    ///     "CPU family 6 model 0x1c is not supported; keep the built-in driver"
    /// );
    /// ```
    pub fn probe(cpuid: &Cpuid, perf_capabilities: Option<u64>) -> Result<Self, Unsupported> {
        if &cpuid.vendor() != b"GenuineIntel" {
            return Err(Unsupported::Vendor(Vendor(cpuid.vendor())));
        }
        if cpuid.is_hybrid() {
            return Err(Unsupported::Hybrid);
        }
        let Some(capabilities) = Capabilities::decode(cpuid, perf_capabilities) else {
            return Err(if cpuid.is_virtual() {
                Unsupported::NoVirtualPmu
            } else {
                Unsupported::NoPmu
            });
        };
        let Some(model) = find_model(cpuid, capabilities.version) else {
            return Err(Unsupported::Model {
                family: cpuid.family(),
                model: cpuid.model(),
            });
        };
        if !model.is_supported() {
            return Err(Unsupported::Needs {
                name: model.name,
                needs: model.needs,
            });
        }
        // Without version 2 there is no GLOBAL_CTRL to stop all counters with.
        if capabilities.version < 2 {
            return Err(Unsupported::Version(capabilities.version));
        }
        Ok(Self {
            model,
            capabilities,
        })
    }

    /// The counters that the event `select` may use.
    ///
    /// First match in the model's table, else any general-purpose counter; cut to the counters
    /// that exist, and to those that count user mode alone, or can do without an aborted
    /// transaction's counts, where the event wants that. A share of the topdown slots counts all of
    /// them where PERF_METRICS does not exist: only hypervisors leave it out. Mainline:
    /// `x86_get_event_constraints()`, `arch/x86/events/intel/core.c:4258-4277`, and
    /// `hsw_get_event_constraints()`, `5519-5535`.
    pub fn constraint(&self, select: EventSelect) -> Constraint {
        let present = self.capabilities.counters;
        let constraint = match first_match(self.model.event_constraints, select) {
            Some(entry) if entry.metric_index().is_some() && !self.capabilities.perf_metrics => {
                Constraint::any_of(SLOTS & present)
            }
            Some(entry) => entry.resolve(present),
            None => Constraint::any_of(present.gp()),
        };
        self.restricted(select, constraint)
    }

    /// The counters that the event `select` may use with a `precise_ip` of 1 to 3.
    ///
    /// The model's table of precise events; where it is silent, every counter that counts the event
    /// or, on most models, none. Mainline: `intel_pebs_constraints()`,
    /// `arch/x86/events/intel/ds.c:1544`, and for the greatest precision
    /// `icl_get_event_constraints()` to `glp_get_event_constraints()`,
    /// `arch/x86/events/intel/core.c:5537-5590`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::{Cpuid, Leaf};
    /// # use logic::pmu::Pmu;
    /// # let cpuid = Cpuid {
    /// #     leaf_0: Leaf { eax: 0x16, ebx: 0x756e6547, ecx: 0x6c65746e, edx: 0x49656e69 },
    /// #     leaf_1: Leaf { eax: 0x506e3, ..Leaf::default() },
    /// #     leaf_a: Leaf { eax: 0x0730_0404, edx: 0x603, ..Leaf::default() },
    /// #     ..Cpuid::default()
    /// # };
    /// use logic::regs::event_select::EventSelect;
    ///
    /// let skylake = Pmu::probe(&cpuid, None).unwrap();
    /// let prec_dist = EventSelect::event(0xc0, 0x01);
    /// assert_eq!(skylake.precise_constraint(prec_dist, 2).counters.bits(), 0x2);
    /// // A fixed counter cannot be precise here, counters 0 to 3 can.
    /// let instructions = EventSelect::event(0xc0, 0x00);
    /// assert_eq!(skylake.precise_constraint(instructions, 1).counters.bits(), 0xf);
    /// ```
    pub fn precise_constraint(&self, select: EventSelect, precise_ip: u8) -> Constraint {
        let present = self.capabilities.counters;
        let distribution = if precise_ip >= 3 {
            self.model.precise_distribution
        } else {
            PreciseDistribution::AsOtherPrecise
        };
        let counter_0 = CounterMask::first_gp(1);
        let instructions = EventConstraint::fixed(0x00c0, 0);
        match distribution {
            PreciseDistribution::InstructionsOnFixed0 | PreciseDistribution::Fixed0AndCounter0
                if instructions.matches(select) =>
            {
                return Constraint::any_of(CounterMask::first_fixed(1) & present);
            }
            PreciseDistribution::Counter0 => return Constraint::any_of(counter_0 & present),
            _ => {}
        }
        let mut constraint = match self.model.pebs_events.find(select) {
            Some(line) => self.restricted(select, line.constraint().resolve(present)),
            None if self.model.pebs_events.has_others() => self.constraint(select),
            None => Constraint::any_of(CounterMask::EMPTY),
        };
        if distribution == PreciseDistribution::Fixed0AndCounter0 {
            constraint.counters = constraint.counters & counter_0;
        }
        constraint
    }

    /// `constraint`, cut to the counters that count user mode alone, and that can do without an
    /// aborted transaction's counts, where the event wants that.
    fn restricted(&self, select: EventSelect, mut constraint: Constraint) -> Constraint {
        if select.has(EventSelect::USR) && !select.has(EventSelect::OS) {
            constraint.counters = constraint.counters.without(self.model.need_kernel_mode);
        }
        if select.has(EventSelect::IN_TX_CHECKPOINTED) {
            constraint.counters = constraint.counters & self.model.checkpointed;
        }
        constraint
    }

    /// The event select of a generic hardware event; `None` where the model has no such event or
    /// CPUID marks it as absent.
    ///
    /// Also what decides whether sysfs shows the event.
    pub fn hardware_event(&self, id: HardwareId) -> Option<EventSelect> {
        let absent_bit = match id {
            HardwareId::CpuCycles => Some(0),
            HardwareId::Instructions => Some(1),
            HardwareId::BusCycles => Some(2),
            HardwareId::CacheReferences => Some(3),
            HardwareId::CacheMisses => Some(4),
            HardwareId::BranchInstructions => Some(5),
            HardwareId::BranchMisses => Some(6),
            HardwareId::StalledCyclesFrontend
            | HardwareId::StalledCyclesBackend
            | HardwareId::RefCpuCycles => None,
        };
        let absent = |bit| self.capabilities.absent_events.contains(bit);
        match id {
            HardwareId::BranchMisses
                if self.model.has(Quirk::BranchMissesExecuted) && absent(6) =>
            {
                Some(EventSelect::event(0x89, 0x7f)) // BR_MISP_EXEC.ANY
            }
            HardwareId::RefCpuCycles
                if self.model.has(Quirk::ReferenceCyclesAnywhere) && !absent(2) =>
            {
                Some(EventSelect::event(0x3c, 0x01)) // CPU_CLK_UNHALTED.REF_TSC_P
            }
            _ if absent_bit.is_some_and(absent) => None,
            _ => self.model.hardware_events.get(id),
        }
    }

    /// The event select, without privilege levels, and the extra register's value (`attr.config1`)
    /// of the cache event with the given `attr.config`.
    ///
    /// Mainline: `set_ext_hw_attr()`, `arch/x86/events/core.c:376-409`.
    ///
    /// # Errors
    ///
    /// Why there is no such event. The register of a client core does not take every value that
    /// its model's table has.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::open::cache_event::NoCacheEvent;
    /// # use logic::capabilities::{Capabilities, Cpuid, Leaf};
    /// # use logic::model::{SANDY_BRIDGE, SANDY_BRIDGE_SERVER};
    /// # use logic::pmu::Pmu;
    /// # let cpuid = Cpuid {
    /// #     leaf_0: Leaf { eax: 0xd, ..Leaf::default() },
    /// #     leaf_a: Leaf { eax: 0x0730_0403, ebx: 0, ecx: 0, edx: 0x603 },
    /// #     ..Cpuid::default()
    /// # };
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// # let client = Pmu { model: &SANDY_BRIDGE, capabilities };
    /// # let server = Pmu { model: &SANDY_BRIDGE_SERVER, capabilities };
    /// // LLC-load-misses: all that memory answers, remote memory included.
    /// let (select, config1) = server.cache_event(0x1_0002).unwrap();
    /// assert_eq!((select.bits(), config1), (0x01b7, 0x3f_ffc0_0081));
    /// assert_eq!(client.cache_event(0x1_0002), Err(NoCacheEvent::ExtraRegister));
    /// ```
    pub fn cache_event(&self, config: u64) -> Result<(EventSelect, u64), NoCacheEvent> {
        let id = CacheId::from_config(config).ok_or(NoCacheEvent::NoSuchId)?;
        let (select, config1) = self.model.cache_events.get(id)?;
        match self.model.extra_register_events.find(select) {
            Some(entry) if !entry.accepts(config1) => Err(NoCacheEvent::ExtraRegister),
            _ => Ok((select, config1)),
        }
    }

    /// What every start value has to keep to.
    pub fn period_limits(&self) -> PeriodLimits {
        PeriodLimits {
            width: self.capabilities.width,
            max_period: self.capabilities.max_period(),
            rule: self.model.period_rule,
        }
    }
}

/// The model of a core; of one that nobody has a table for, what is architectural.
fn find_model(cpuid: &Cpuid, version: u8) -> Option<&'static Model> {
    let (family, number) = (cpuid.family(), cpuid.model());
    let is_this = |model: &&&Model| family == 6 && model.cpuid_models.contains(&number);
    match MODELS.iter().find(is_this) {
        Some(model) => Some(model),
        None if WITHOUT_A_TABLE.contains(&(family, number)) => None,
        None if version < 5 => Some(&GENERIC),
        None => Some(&GENERIC_V5),
    }
}

/// A vendor string as CPUID has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vendor([u8; 12]);

impl fmt::Display for Vendor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = core::str::from_utf8(&self.0).unwrap_or("");
        let name = name.trim_end_matches('\0');
        // Nothing that would break the line, or be none.
        let is_a_name = !name.is_empty() && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        f.write_str(if is_a_name { name } else { "unknown" })
    }
}

/// Why a PMU is not supported. The text names the case and says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// Not an Intel CPU.
    Vendor(Vendor),
    /// Cores of different kinds, each with a PMU of its own.
    Hybrid,
    /// No architectural PMU, on bare metal.
    NoPmu,
    /// No architectural PMU, in a virtual machine.
    NoVirtualPmu,
    /// An Intel CPU that needs a table of its own, and there is none.
    Model {
        /// Display family.
        family: u16,
        /// Display model.
        model: u8,
    },
    /// A model with a table, for which the driver does not do all that is needed.
    Needs {
        /// The model's name.
        name: &'static str,
        /// What is missing.
        needs: &'static [Need],
    },
    /// A version of architectural performance monitoring without GLOBAL_CTRL.
    Version(u8),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vendor(vendor) => write!(
                f,
                "CPU vendor {vendor} is not supported, only GenuineIntel is; \
                 keep the built-in driver"
            ),
            Self::Hybrid => f.write_str(
                "hybrid CPUs (different kinds of cores) are not supported; \
                 keep the built-in driver",
            ),
            Self::NoPmu => f.write_str(
                "the CPU describes no PMU in CPUID leaf 0xA; \
                 look for a firmware setting that hides it",
            ),
            Self::NoVirtualPmu => f.write_str(
                "this virtual machine has no PMU; \
                 start it with one (QEMU: -accel kvm -cpu host,pmu=on)",
            ),
            Self::Model { family, model } => write!(
                f,
                "CPU family {family} model {model:#04x} is not supported; keep the built-in driver"
            ),
            Self::Needs { name, needs } => {
                write!(f, "{name} is not supported yet: it needs ")?;
                enumerate(f, needs.iter())?;
                f.write_str("; keep the built-in driver")
            }
            Self::Version(version) => write!(
                f,
                "architectural performance monitoring version {version} is too old, \
                 version 2 is needed; keep the built-in driver"
            ),
        }
    }
}

/// Writes "a, b and c".
fn enumerate<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    items: impl Iterator<Item = T> + Clone,
) -> fmt::Result {
    let count = items.clone().count();
    for (i, item) in items.enumerate() {
        let separator = match i {
            0 => "",
            i if i + 1 == count => " and ",
            _ => ", ",
        };
        write!(f, "{separator}{item}")?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logic::{
        capabilities::Leaf,
        model::{GOLDEN_COVE, NEHALEM, WESTMERE},
        regs::counter::CounterMask,
    };

    fn cpuid(leaf_1_eax: u32, leaf_a_eax: u32) -> Cpuid {
        Cpuid {
            leaf_0: Leaf {
                eax: 0x16,
                ebx: u32::from_le_bytes(*b"Genu"),
                edx: u32::from_le_bytes(*b"ineI"),
                ecx: u32::from_le_bytes(*b"ntel"),
            },
            leaf_1: Leaf {
                eax: leaf_1_eax,
                ..Leaf::default()
            },
            leaf_a: Leaf {
                eax: leaf_a_eax,
                edx: 0x603,
                ..Leaf::default()
            },
            ..Cpuid::default()
        }
    }

    fn haswell() -> Cpuid {
        cpuid(0x306c3, 0x0730_0403)
    }

    fn skylake() -> Cpuid {
        cpuid(0x506e3, 0x0730_0404)
    }

    fn probe(cpuid: &Cpuid) -> Pmu {
        Pmu::probe(cpuid, Some(0x2000)).unwrap()
    }

    #[test]
    fn every_supported_model_is_found() {
        // Family 6, model, stepping 1 as leaf 1 EAX has them.
        for (eax, pmu_name) in [
            (0x306c1, "haswell"),
            (0x306f1, "haswell"),
            (0x40651, "haswell"),
            (0x40661, "haswell"),
            (0x306d1, "broadwell"),
            (0x40671, "broadwell"),
            (0x406f1, "broadwell"),
            (0x50661, "broadwell"),
            (0x406e1, "skylake"),
            (0x50651, "skylake"),
            (0x506e1, "skylake"),
            (0x806e1, "skylake"),
            (0x906e1, "skylake"),
            (0xa0651, "skylake"),
            (0xa0661, "skylake"),
        ] {
            let pmu = probe(&cpuid(eax, 0x0730_0404));
            assert_eq!(pmu.model.pmu_name, pmu_name, "{eax:#x}");
        }
    }

    #[test]
    fn a_share_of_the_slots_is_all_of_them_without_the_register() {
        let mut pmu = probe(&cpuid(0x606a6, 0x0830_0805));
        let fixed = pmu.capabilities.counters.fixed();
        let retiring = EventSelect::event(0x00, 0x80);
        let slots = EventSelect::event(0x00, 0x04);
        for (perf_metrics, has_slots) in [(false, true), (false, false), (true, true)] {
            pmu.capabilities.perf_metrics = perf_metrics;
            let counters = if has_slots {
                SLOTS
            } else {
                fixed.without(SLOTS)
            };
            pmu.capabilities.counters = pmu.capabilities.counters.gp() | counters;
            let found = pmu.constraint(retiring).counters;
            let expected = if perf_metrics {
                CounterMask::EMPTY
            } else {
                pmu.constraint(slots).counters
            };
            assert_eq!(found, expected, "{perf_metrics} {has_slots}");
            assert_eq!(found.is_empty(), perf_metrics || !has_slots);
        }
    }

    #[test]
    fn what_every_cpuid_model_is_taken_for() {
        let mut counts = [0; 3];
        for number in 0..=0xff_u32 {
            let eax = 0x600 | ((number & 0xf) << 4) | ((number >> 4) << 16);
            // CAST: below 256.
            let number = number as u8;
            let with_table = MODELS
                .iter()
                .find(|model| model.cpuid_models.contains(&number));
            match (Pmu::probe(&cpuid(eax, 0x0730_0404), None), with_table) {
                (Ok(pmu), Some(model)) => assert_eq!(pmu.model.name, model.name),
                (Ok(pmu), None) => {
                    assert_eq!(pmu.model.pmu_name, "generic_arch_v2+");
                    counts[0] += 1;
                }
                (Err(Unsupported::Needs { .. }), Some(model)) => {
                    assert!(!model.is_supported());
                    counts[1] += 1;
                }
                (Err(Unsupported::Model { .. }), None) => {
                    assert!(WITHOUT_A_TABLE.contains(&(6, number)));
                    counts[2] += 1;
                }
                other => panic!("{number:#x}: {other:?}"),
            }
        }
        assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
    }

    #[test]
    fn unknown_cores_have_what_is_architectural() {
        // Family 6 model 0xfe, and a family to come.
        for eax in [0xf06e0, 0x0100_0f10] {
            for (version, pmu_name) in [(2, "generic_arch_v2+"), (5, "generic_arch_v5+")] {
                let pmu = probe(&cpuid(eax, 0x0730_0400 | version));
                assert_eq!(pmu.model.pmu_name, pmu_name, "{eax:#x}");
                let cycles = pmu.constraint(EventSelect::event(0x3c, 0));
                assert!(cycles.counters.bits() & 0xf == 0xf);
            }
        }
    }

    #[test]
    fn unsupported_machines() {
        let amd = Cpuid {
            leaf_0: Leaf {
                eax: 0xd,
                ebx: u32::from_le_bytes(*b"Auth"),
                edx: u32::from_le_bytes(*b"enti"),
                ecx: u32::from_le_bytes(*b"cAMD"),
            },
            ..haswell()
        };
        let mut hybrid = haswell();
        hybrid.leaf_7.edx = 1 << 15;
        let no_pmu = cpuid(0x306c3, 0);
        let mut no_virtual_pmu = no_pmu;
        no_virtual_pmu.leaf_1.ecx = 1 << 31;
        for (cpuid, text) in [
            (amd, "CPU vendor AuthenticAMD is not supported"),
            (hybrid, "hybrid CPUs"),
            (no_pmu, "describes no PMU in CPUID leaf 0xA; look"),
            (no_virtual_pmu, "this virtual machine has no PMU; start"),
            (cpuid(0x106c2, 0x0730_0403), "family 6 model 0x1c is not"),
            (
                cpuid(0x00400f10, 0x0730_0406),
                "family 19 model 0x01 is not",
            ),
            (cpuid(0x306c3, 0x0730_0401), "version 1 is too old"),
        ] {
            let refused = Pmu::probe(&cpuid, None).unwrap_err();
            assert!(refused.to_string().contains(text), "{refused}");
        }
    }

    #[test]
    fn models_that_need_more_are_refused() {
        let refused = Pmu::probe(&cpuid(0x506c1, 0x0730_0403), None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "Goldmont is not supported yet: it needs a trial, for it has run on no such CPU; keep \
             the built-in driver"
        );
    }

    #[test]
    fn broadwell_constraints() {
        let pmu = probe(&cpuid(0x306d4, 0x0730_0403));
        for (config, counters) in [
            (0x0000_00c0, 0x1_0000_000f),
            (0x0000_01c0, 0x2),
            (0x0000_01cd, 0x8),
            (0x0000_0148, 0x4),
            (0x0000_08a3, 0x4),
            (0x0000_0ca3, 0x4),
            (0x0000_04a3, 0xf),
            (0x0000_82d0, 0xf),
        ] {
            let constraint = pmu.constraint(EventSelect::from_bits(config));
            assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
            assert!(!constraint.exclusive, "no erratum");
        }
    }

    /// A PMU of a model that the driver may not drive yet.
    fn pmu_of(model: &'static Model, leaf_a_ebx: u32) -> Pmu {
        let mut cpuid = cpuid(0, 0x0730_0404);
        cpuid.leaf_a.ebx = leaf_a_ebx;
        Pmu {
            model,
            capabilities: Capabilities::decode(&cpuid, None).unwrap(),
        }
    }

    #[test]
    fn executed_branch_misses_stand_in_for_retired_ones() {
        for (ebx, expected) in [(0, 0x00c5), (1 << 6, 0x7f89)] {
            let found = pmu_of(&NEHALEM, ebx).hardware_event(HardwareId::BranchMisses);
            assert_eq!(found.map(EventSelect::bits), Some(expected));
        }
        let westmere = pmu_of(&WESTMERE, 1 << 6);
        assert_eq!(westmere.hardware_event(HardwareId::BranchMisses), None);
    }

    #[test]
    fn reference_cycles_are_an_event_of_their_own_unless_absent() {
        for (ebx, expected, bus) in [(0, 0x013c, Some(0x013c)), (1 << 2, 0x0300, None)] {
            let pmu = pmu_of(&GOLDEN_COVE, ebx);
            let bits = |id| pmu.hardware_event(id).map(EventSelect::bits);
            assert_eq!(bits(HardwareId::RefCpuCycles), Some(expected));
            assert_eq!(bits(HardwareId::BusCycles), bus);
        }
    }

    #[test]
    fn haswell_constraints() {
        let pmu = probe(&haswell());
        for (config, counters) in [
            (0x0_00c0, 0x1_0000_000f), // instructions
            (0x3_003c, 0x2_0000_000f), // cycles
            (0x0_0300, 0x4_0000_0000), // reference cycles
            (0x0_0148, 0x4),           // L1D_PEND_MISS.PENDING
            (0x0_01c0, 0x2),           // INST_RETIRED.PREC_DIST
            (0x0_02cd, 0x8),           // MEM_TRANS_RETIRED
            (0x0_08a3, 0x4),
            (0x0_0ca3, 0x4),
            (0x0_04a3, 0xf),
            (0x0_82d0, 0xf),
            (0x0_013c, 0xf),    // bus cycles, unconstrained
            (0x0_00c4, 0xf),    // branches, unconstrained
            (0x0104_003c, 0xf), // cycles with filters
        ] {
            let constraint = pmu.constraint(EventSelect::from_bits(config));
            assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
            assert_eq!(constraint.exclusive, config & 0xff == 0xd0, "{config:#x}");
        }
    }

    #[test]
    fn haswell_constraints_with_one_thread_a_core() {
        let pmu = probe(&cpuid(0x306c3, 0x0730_0803));
        for (config, counters, exclusive) in [
            (0x003c, 0x2_0000_00ff, false),
            (0x01a3, 0xff, false),
            (0x02a3, 0xf, false),
            (0x04a3, 0xf, false),
            (0x01b7, 0xf, false), // OFFCORE_RESPONSE
            (0x01bb, 0xf, false),
            (0x010e, 0xff, false),      // UOPS_ISSUED.ANY
            (0x0180_010e, 0xf, false),  // UOPS_ISSUED.STALL_CYCLES
            (0x01a0_010e, 0xf, false),  // the same for any thread
            (0x0280_010e, 0xff, false), // in no list
            (0x82d0, 0xf, true),
            (0x01d1, 0xf, true),
            (0x01d2, 0xf, true),
            (0x01d3, 0xf, true),
        ] {
            let constraint = pmu.constraint(EventSelect::from_bits(config));
            assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
            assert_eq!(constraint.exclusive, exclusive, "{config:#x}");
        }
    }

    #[test]
    fn skylake_constraints_with_one_thread_a_core() {
        let pmu = probe(&cpuid(0x506e3, 0x0730_0804));
        for (config, counters) in [
            (0x00c0, 0x1_0000_00ff),
            (0x01c0, 0x2),
            (0x0a80_01c0, 0xd), // INST_RETIRED.TOTAL_CYCLES_PS
            (0x01b7, 0xf),
            (0x01bb, 0xf),
            (0x0148, 0xff),
            (0x81d0, 0xf),
            (0x20d1, 0xf),
            (0x01d2, 0xf),
            (0x02cd, 0xf),
            (0x01c6, 0xf),
            (0x00c4, 0xff),
        ] {
            let constraint = pmu.constraint(EventSelect::from_bits(config));
            assert_eq!(constraint.counters.bits(), counters, "{config:#x}");
            assert!(!constraint.exclusive);
        }
    }

    #[test]
    fn events_of_user_mode_alone_stay_off_broadwells_upper_counters() {
        let broadwell = |gp: u32| probe(&cpuid(0x306d4, 0x0730_0003 | (gp << 8)));
        let haswell = probe(&cpuid(0x306c3, 0x0730_0803));
        let (usr, os) = (EventSelect::USR, EventSelect::OS);
        for (pmu, levels, code, counters) in [
            (broadwell(8), usr, 0x00c4, 0xf),
            (broadwell(8), os, 0x00c4, 0xff),
            (broadwell(8), usr | os, 0x00c4, 0xff),
            (broadwell(8), 0, 0x00c4, 0xff),
            (broadwell(8), usr, 0x00c0, 0x1_0000_000f),
            (broadwell(8), usr, 0x0148, 0x4),
            (broadwell(4), usr, 0x00c4, 0xf),
            (haswell, usr, 0x00c4, 0xff),
        ] {
            let select = EventSelect::from_bits(code | levels);
            let found = pmu.constraint(select).counters.bits();
            assert_eq!(found, counters, "{} {levels:#x} {code:#x}", pmu.model.name);
        }
    }

    #[test]
    fn checkpointed_events_count_on_counter_2_or_not_at_all() {
        let pmu = probe(&haswell());
        for (code, counters) in [(0x00c0, 0x4), (0x0148, 0x4), (0x01c0, 0), (0x01cd, 0)] {
            let select = EventSelect::from_bits(code | EventSelect::IN_TX_CHECKPOINTED);
            assert_eq!(
                pmu.constraint(select).counters,
                CounterMask::from_bits(counters),
                "{code:#x}"
            );
        }
    }

    #[test]
    fn hardware_events() {
        let pmu = probe(&skylake());
        let configs = HardwareId::ALL.map(|id| pmu.hardware_event(id).map(EventSelect::bits));
        #[rustfmt::skip]
        assert_eq!(configs, [
            Some(0x003c), Some(0x00c0), Some(0x4f2e), Some(0x412e), Some(0x00c4),
            Some(0x00c5), Some(0x013c), None, None, Some(0x0300),
        ]);
    }

    #[test]
    fn absent_events_are_not_offered() {
        for (bit, id) in [
            (0, HardwareId::CpuCycles),
            (1, HardwareId::Instructions),
            (2, HardwareId::BusCycles),
            (3, HardwareId::CacheReferences),
            (4, HardwareId::CacheMisses),
            (5, HardwareId::BranchInstructions),
            (6, HardwareId::BranchMisses),
        ] {
            let mut cpuid = skylake();
            cpuid.leaf_a.ebx = 1 << bit;
            let pmu = probe(&cpuid);
            let full = probe(&skylake());
            for other in HardwareId::ALL {
                let expected = full.hardware_event(other).filter(|_| other != id);
                assert_eq!(pmu.hardware_event(other), expected, "bit {bit} {other:?}");
            }
        }
    }
}
