// SPDX-License-Identifier: GPL-2.0

//! The description of this machine's PMU: the model's constants and the machine's counters.

use core::fmt;

use crate::logic::{
    capabilities::{
        Capabilities,
        Cpuid,
        Interface,
        PebsFormat, //
    },
    cores::{
        CoreType,
        Prefix, //
    },
    model::{
        cache_event::{
            CacheId,
            NoCacheEvent, //
        },
        constraint::Constraint,
        first_match,
        models,
        pebs_events::PreciseDistribution,
        EventConstraint,
        EventIndex,
        HardwareId,
        Model,
        NotDriven,
        Quirk,
        Vendor,
        AMD_ZEN_4,
        GENERIC,
        GENERIC_V5, //
    },
    regs::{
        counter::{
            CounterId,
            CounterMask, //
        },
        event_select::EventSelect,
        extra_register::ExtraRegister,
        period::PeriodLimits, //
    },
    sample::lbr::Lbr, //
};

/// The description of a supported PMU.
#[derive(Clone, Copy, Debug)]
pub struct PmuInfo {
    /// The microarchitecture.
    pub model: &'static Model,
    /// The machine's counters.
    pub capabilities: Capabilities,
    /// The machine's branch records, if they can be used. The driver removes them if it cannot use
    /// them.
    pub lbr: Option<Lbr>,
    /// The index of the model's [`event_constraints`](Model::event_constraints).
    index: EventIndex,
}

impl PmuInfo {
    /// Returns the start of a message about this PMU.
    pub fn prefix(&self) -> Prefix {
        Prefix(self.model.core())
    }

    /// Returns the PMU that CPUID describes, if it is supported.
    ///
    /// `perf_capabilities` is IA32_PERF_CAPABILITIES, if [it exists](Cpuid::has_perf_capabilities).
    ///
    /// # Errors
    ///
    /// The reason, whose text for the log explains what to do.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::capabilities::Cpuid;
    /// use logic::pmu::PmuInfo;
    ///
    /// let mut cpuid = Cpuid::intel(4, 4, 3).with_signature(0x506e3);
    /// assert_eq!(PmuInfo::probe(&cpuid, None).unwrap().model.pmu_name, "skylake");
    ///
    /// cpuid.leaf_1.eax = 0x106c2;
    /// assert_eq!(
    ///     PmuInfo::probe(&cpuid, None).unwrap_err().to_string(),
    ///     "Bonnell is not supported yet: it needs a table of its events; keep the built-in driver"
    /// );
    /// ```
    pub fn probe(cpuid: &Cpuid, perf_capabilities: Option<u64>) -> Result<Self, Unsupported> {
        // The interface depends on the vendor, even for unknown models.
        let Some(vendor) = Vendor::from_cpuid(&cpuid.vendor()) else {
            return Err(Unsupported::Vendor(VendorName(cpuid.vendor())));
        };
        let is_intel = vendor == Vendor::Intel;
        let capabilities = if is_intel {
            Capabilities::decode(cpuid, perf_capabilities)
        } else {
            Capabilities::decode_amd(cpuid)
        };
        let Some(mut capabilities) = capabilities else {
            return Err(if cpuid.is_virtual() {
                Unsupported::NoVirtualPmu
            } else {
                Unsupported::NoPmu
            });
        };
        if is_intel {
            if let Some(cpu) = NotDriven::find(cpuid.family(), cpuid.model()) {
                return Err(Unsupported::NotDriven(cpu));
            }
        }
        let Some(model) = find_model(vendor, cpuid, capabilities.version) else {
            return Err(if cpuid.core_type() != Some(CoreType::Only) {
                Unsupported::Hybrid
            } else {
                Unsupported::Model {
                    family: cpuid.family(),
                    model: cpuid.model(),
                }
            });
        };
        // Before version 2 there is no GLOBAL_CTRL, which is needed to stop all counters.
        if is_intel && capabilities.version < 2 {
            return Err(Unsupported::Version(capabilities.version));
        }
        // The metrics are shares of the count of fixed counter 3.
        if capabilities.perf_metrics && capabilities.counters.contains(CounterId::SLOTS) {
            capabilities.metrics = model.metrics();
        }
        Ok(Self::new(model, capabilities))
    }

    /// Returns the PMU of a machine of this `model`, whether the driver supports it or not.
    pub fn new(model: &'static Model, capabilities: Capabilities) -> Self {
        Self {
            model,
            capabilities,
            lbr: Lbr::new(model.lbr_filter, &capabilities),
            index: EventIndex::of(model.event_constraints),
        }
    }

    /// Returns the counters that the event `select` may use.
    ///
    /// The result is the first match in the model's table, or else all general-purpose counters.
    /// Excludes absent counters. For an event that counts only user mode, also excludes the
    /// counters that need kernel mode; for an event with in_tx_cp, those that cannot discard the
    /// counts of aborted TSX transactions. Without PERF_METRICS, which only hypervisors hide, a
    /// topdown metric counts all slots. Mainline: `x86_get_event_constraints()` and
    /// `hsw_get_event_constraints()`, `arch/x86/events/intel/core.c`.
    pub fn constraint(&self, select: EventSelect) -> Constraint {
        let present = self.capabilities.all();
        let table = self.model.event_constraints.get(self.index.range(select));
        let constraint = match first_match(table.unwrap_or_default(), select) {
            Some(entry) if entry.is_metric() && !self.capabilities.perf_metrics => {
                Constraint::any_of(CounterId::SLOTS.mask() & present)
            }
            Some(entry) => entry.resolve(present),
            None => Constraint::any_of(present.gp()),
        };
        self.restricted(select, constraint)
    }

    /// Returns the maximum `precise_ip` that CPUID and the model allow; 0 without PEBS. The driver
    /// allows less with some microcode versions.
    ///
    /// Mainline: `x86_pmu_max_precise()`, `arch/x86/events/core.c`.
    pub fn max_precise(&self) -> u8 {
        let Some(format) = self.capabilities.pebs_format else {
            return 0;
        };
        let has_ip = format.has_ip() || self.lbr.is_some();
        let evenly = self.model.cycles_alias.has_prec_dist()
            || self.model.precise_distribution != PreciseDistribution::AsOtherPrecise;
        1 + u8::from(has_ip) + u8::from(evenly)
    }

    /// Returns whether precise samples can have XMM registers.
    pub fn has_extended_registers(&self) -> bool {
        self.capabilities.pebs_format == Some(PebsFormat::Adaptive)
    }

    /// Returns the counters that the event `select` may use with a `precise_ip` of 1 to 3.
    ///
    /// The result is the first match in the model's table of precise events. Without a match, it is
    /// every counter that counts the event or, on most models, none. With a `precise_ip` of 3, the
    /// model's [`PreciseDistribution`] replaces or restricts this result. Mainline:
    /// `intel_pebs_constraints()`, `arch/x86/events/intel/ds.c`, and for the maximum precision
    /// `icl_get_event_constraints()` to `cmt_get_event_constraints()`,
    /// `arch/x86/events/intel/core.c`.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// # use logic::capabilities::Cpuid;
    /// # use logic::pmu::PmuInfo;
    /// # let cpuid = Cpuid::intel(4, 4, 3).with_signature(0x506e3);
    /// use logic::regs::event_select::EventSelect;
    ///
    /// let skylake = PmuInfo::probe(&cpuid, None).unwrap();
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
            PreciseDistribution::Fixed0OrCounter0 if instructions.matches(select) => {
                let either = CounterMask::first_fixed(1) | counter_0;
                return Constraint::any_of(either & present);
            }
            PreciseDistribution::Fixed0OrCounters0And1 if instructions.matches(select) => {
                let any = CounterMask::first_fixed(1) | CounterMask::first_gp(2);
                return Constraint::any_of(any & present);
            }
            PreciseDistribution::Counter0 | PreciseDistribution::Fixed0OrCounter0 => {
                return Constraint::any_of(counter_0 & present);
            }
            _ => {}
        }
        let mut constraint = match self.model.pebs_events.find(select) {
            Some(line) => Constraint {
                // Only the table of all events has this flag.
                corrupting: self.constraint(select).corrupting,
                ..self.restricted(select, line.constraint().resolve(present))
            },
            None if self.model.pebs_events.has_others() => self.constraint(select),
            None => Constraint::any_of(CounterMask::EMPTY),
        };
        match distribution {
            PreciseDistribution::Fixed0AndCounter0 => {
                constraint.counters = constraint.counters & counter_0;
            }
            PreciseDistribution::Fixed0OrCounters0And1 => {
                constraint.counters = constraint.counters & CounterMask::first_gp(2);
            }
            _ => {}
        }
        constraint
    }

    /// Returns `constraint` without the counters that need kernel mode, if `select` counts only
    /// user mode, and without those that cannot discard the counts of aborted TSX transactions, if
    /// it has in_tx_cp. Drops the northbridge flag on processors with core performance counter
    /// extensions, where AMD's northbridge has a PMU of its own.
    fn restricted(&self, select: EventSelect, mut constraint: Constraint) -> Constraint {
        constraint.northbridge &= self.capabilities.interface == Interface::AmdLegacy;
        if select.has(EventSelect::USR) && !select.has(EventSelect::OS) {
            constraint.counters = constraint.counters.without(self.model.need_kernel_mode);
        }
        let checkpointed = self.model.checkpointed;
        // On models without such counters, the bit belongs to another field.
        if select.has(EventSelect::IN_TX_CHECKPOINTED) && !checkpointed.is_empty() {
            constraint.counters = constraint.counters & checkpointed;
        }
        constraint
    }

    /// Returns this PMU's fields of raw events: each name in `format/`, and its bits in the
    /// attributes.
    ///
    /// Mainline: `intel_arch_formats_attr`, `hsw_format_attr`, `skl_format_attr`, `cmt_format_attr`
    /// and their visibility, `arch/x86/events/intel/core.c`; `amd_format_attr`,
    /// `arch/x86/events/amd/core.c`.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let amd = self.capabilities.interface.is_amd();
        let registers = &self.model.extra_register_events;
        let offcore = registers.has(ExtraRegister::OffcoreResponse0);
        let load_latency = registers.has(ExtraRegister::LoadLatency);
        let tsx = self.capabilities.rtm && !self.model.checkpointed.is_empty();
        let frontend = registers.has(ExtraRegister::Frontend);
        let snoop = registers.has(ExtraRegister::SnoopResponse0);

        #[rustfmt::skip]
        let fields = [
            ("event",       "config:0-7",       !amd),
            ("event",       "config:0-7,32-35", amd),
            ("umask",       "config:8-15",   true),
            ("edge",        "config:18",     true),
            ("pc",          "config:19",     !amd),
            ("any",         "config:21",     self.capabilities.any_thread),
            ("inv",         "config:23",     true),
            ("cmask",       "config:24-31",  true),
            ("in_tx",       "config:32",     tsx),
            ("in_tx_cp",    "config:33",     tsx),
            ("offcore_rsp", "config1:0-63",  offcore),
            ("ldlat",       "config1:0-15",  load_latency),
            ("frontend",    "config1:0-23",  frontend),
            ("snoop_rsp",   "config1:0-63",  snoop),
        ];
        fields
            .into_iter()
            .filter_map(|(name, bits, exists)| exists.then_some((name, bits)))
    }

    /// Returns the event select of a generic hardware event; `None` if the model has no such event,
    /// or if CPUID marks it as absent and the model has no
    /// [substitute](Quirk::BranchMissesExecuted) for it. Sysfs shows the events that have an event
    /// select.
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

    /// Returns the event select, without privilege levels, and the extra register's value
    /// (`attr.config1`) of the cache event with the given `attr.config`.
    ///
    /// Mainline: `set_ext_hw_attr()`, `arch/x86/events/core.c`.
    ///
    /// # Errors
    ///
    /// The reason why there is no such event. A client core's register does not support every value
    /// in its model's table.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::model::cache_event::NoCacheEvent;
    /// # use logic::capabilities::{Capabilities, Cpuid};
    /// # use logic::model::{SANDY_BRIDGE, SANDY_BRIDGE_SERVER};
    /// # use logic::pmu::PmuInfo;
    /// # let cpuid = Cpuid::intel(3, 4, 3);
    /// # let capabilities = Capabilities::decode(&cpuid, None).unwrap();
    /// # let client = PmuInfo::new(&SANDY_BRIDGE, capabilities);
    /// # let server = PmuInfo::new(&SANDY_BRIDGE_SERVER, capabilities);
    /// // LLC-load-misses: all responses of local and remote memory.
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

    /// Returns the limits of start values.
    pub fn period_limits(&self) -> PeriodLimits {
        PeriodLimits {
            width: self.capabilities.width,
            max_period: self.capabilities.max_period(),
            rule: self.model.period_rule,
        }
    }
}

/// Returns the model of a processor, on a hybrid for the type of this core. An Intel processor with
/// cores of one type for which neither this driver nor mainline has a table gets the architectural
/// model. An AMD processor of a family above those with a table gets the newest model, as in
/// mainline (`amd_pmu_event_map()`, `arch/x86/events/amd/core.c`).
fn find_model(vendor: Vendor, cpuid: &Cpuid, version: u8) -> Option<&'static Model> {
    let (family, number) = (cpuid.family(), cpuid.model());
    let core = cpuid.core_type()?;
    match models().find(|model| model.is_for(vendor, family, number, core)) {
        Some(model) => Some(model),
        None if core != CoreType::Only => None,
        None if vendor != Vendor::Intel => (family > 0x1a).then_some(&AMD_ZEN_4),
        None if version < 5 => Some(&GENERIC),
        None => Some(&GENERIC_V5),
    }
}

/// A vendor string of CPUID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VendorName([u8; 12]);

impl fmt::Display for VendorName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = core::str::from_utf8(&self.0).unwrap_or("");
        let name = name.trim_end_matches('\0');
        // Only print visible characters.
        let is_a_name = !name.is_empty() && name.bytes().all(|byte| matches!(byte, b' '..=b'~'));
        f.write_str(if is_a_name { name } else { "unknown" })
    }
}

/// Reason why a PMU is not supported. The text says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// The CPU is not Intel's, AMD's or Hygon's: the driver does not know the interface of its PMU.
    Vendor(VendorName),
    /// Cores of different kinds, each with a PMU of its own, on a CPU that mainline does not know.
    Hybrid,
    /// No usable PMU in CPUID, on bare metal: leaf 0xA, or 0x8000_0022 of AMD's processors.
    NoPmu,
    /// No usable PMU in CPUID, in a virtual machine.
    NoVirtualPmu,
    /// An Intel CPU that mainline drives and this driver does not.
    NotDriven(&'static NotDriven),
    /// An AMD CPU of an old family or an unknown model, for which there is no table.
    Model {
        /// Display family.
        family: u16,
        /// Display model.
        model: u8,
    },
    /// A version of architectural performance monitoring without GLOBAL_CTRL.
    Version(u8),
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vendor(vendor) => write!(
                f,
                "CPU vendor {vendor} is not supported, only GenuineIntel, AuthenticAMD and \
                 HygonGenuine are; keep the built-in driver"
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
            Self::NotDriven(cpu) => write!(f, "{cpu}; keep the built-in driver"),
            Self::Model { family, model } => write!(
                f,
                "CPU family {family} model {model:#04x} is not supported; keep the built-in driver"
            ),
            Self::Version(version) => write!(
                f,
                "architectural performance monitoring version {version} is too old, \
                 version 2 is needed; keep the built-in driver"
            ),
        }
    }
}

#[cfg(test)]
mod tests;
