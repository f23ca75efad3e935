// SPDX-License-Identifier: GPL-2.0

//! Passes any input from the machine and its users through the whole logic: CPUID, attributes,
//! groups, schedules, siblings, registers, periods, and the texts of refusals. No function may
//! panic, and the hardware must accept all results.

mod cases;

use std::collections::BTreeMap;

use cases::cases;
use prop::sample::{
    select,
    Index, //
};
use proptest::prelude::*;
use rpmu_logic::logic::capabilities::PebsFormat;
use rpmu_logic::logic::capabilities::{
    Capabilities,
    Cpuid,
    Leaf, //
};
use rpmu_logic::logic::cores::CoreType;
use rpmu_logic::logic::model::cache_event::CacheId;
use rpmu_logic::logic::model::constraint::Constraint;
use rpmu_logic::logic::model::demand::{
    Demand,
    Key, //
};
use rpmu_logic::logic::model::{
    HardwareId,
    AMD_MODELS,
    INTEL_MODELS, //
};
use rpmu_logic::logic::nospec::masked;
use rpmu_logic::logic::open::attr::{
    Attributes,
    EventType, //
};
use rpmu_logic::logic::open::configure;
use rpmu_logic::logic::open::event::Event;
use rpmu_logic::logic::pmu::PmuInfo;
use rpmu_logic::logic::refusal::Refusal;
use rpmu_logic::logic::refusal::Shortage;
use rpmu_logic::logic::regs::counter::{
    CounterId,
    CounterKind,
    CounterMask,
    MAX_COUNTERS, //
};
use rpmu_logic::logic::regs::dirty::Dirty;
use rpmu_logic::logic::regs::event_select::EventSelect;
use rpmu_logic::logic::regs::extra_register::ExtraRegister;
use rpmu_logic::logic::regs::period::{
    CounterWidth,
    PeriodLimits,
    PeriodRule, //
};
use rpmu_logic::logic::regs::register::{
    Register,
    RegisterWrite, //
};
use rpmu_logic::logic::regs::shadow::Shadow;
use rpmu_logic::logic::rotation::{
    requeue,
    Beside,
    GroupWants,
    Wants, //
};
use rpmu_logic::logic::sched::assign::Policy;
use rpmu_logic::logic::sched::cpu_schedule::CpuSchedule;
use rpmu_logic::logic::sched::explanation::Explanation;
use rpmu_logic::logic::sched::group::Group;
use rpmu_logic::logic::sched::limits::Limits;
use rpmu_logic::logic::smt::siblings::Core;

fn leaf() -> impl Strategy<Value = Leaf> {
    any::<[u32; 4]>().prop_map(|[eax, ebx, ecx, edx]| Leaf { eax, ebx, ecx, edx })
}

/// Returns EAX of leaf 1 of a model of family 6.
fn signature(model: u8) -> u32 {
    (u32::from(model >> 4) << 16) | (u32::from(model & 0xf) << 4) | 0x600
}

/// Returns CPUID and IA32_PERF_CAPABILITIES of a CPU that could exist; mostly random.
fn machine() -> impl Strategy<Value = (Cpuid, Option<u64>)> {
    let models: Vec<u8> = INTEL_MODELS
        .iter()
        .flat_map(|model| model.cpus)
        .map(|cpus| cpus.first)
        .collect();
    let model = prop_oneof![3 => select(models), 1 => any::<u8>()];
    let leaf_a = (
        prop_oneof![4 => 1u32..7, 1 => any::<u32>()],
        prop_oneof![4 => 1u32..=8, 1 => any::<u32>()],
        prop_oneof![4 => Just(48u32), 1 => any::<u32>()],
        prop_oneof![8 => 7u32..12, 1 => any::<u32>()],
        leaf(),
    )
        .prop_map(|(version, gp, width, mask_length, rest)| Leaf {
            eax: u32::from_le_bytes([version, gp, width, mask_length].map(|it| it as u8)),
            ..rest
        });
    (model, leaf(), leaf(), leaf_a, any::<Option<u64>>()).prop_map(
        |(model, leaf_1, mut leaf_7, leaf_a, perf_capabilities)| {
            leaf_7.edx &= !(1 << 15);
            let core = [0, 0x2000_0001, 0x4000_0001][leaf_7.eax as usize % 3];
            let cpuid = Cpuid {
                leaf_1,
                leaf_7,
                leaf_a,
                leaf_1a: Leaf {
                    eax: core,
                    ..Leaf::default()
                },
                ..Cpuid::intel(0, 0, 0)
            };
            let cpuid = cpuid.with_signature(signature(model));
            (cpuid, perf_capabilities)
        },
    )
}

/// Returns an AMD or Hygon processor, usually of a family with a table.
fn amd_machine() -> impl Strategy<Value = Cpuid> {
    let family = prop_oneof![
        6 => select(vec![0x10u32, 0x15, 0x16, 0x17, 0x18, 0x19, 0x1a, 0x1b]),
        1 => 0u32..0x10e,
    ];
    (family, any::<u8>(), any::<bool>(), leaf(), leaf(), leaf()).prop_map(
        |(family, model, hygon, leaf_1, leaf_8000_0001, leaf_8000_0022)| {
            let vendor = if hygon {
                b"HygonGenuine"
            } else {
                b"AuthenticAMD"
            };
            let cpuid = Cpuid {
                leaf_1,
                leaf_8000_0001,
                leaf_8000_0022,
                ..Cpuid::amd()
            };
            cpuid.with_vendor(vendor).with_model(family, model.into())
        },
    )
}

/// Returns a PMU of either vendor.
fn pmu() -> impl Strategy<Value = PmuInfo> {
    let amd = (amd_machine(), select(AMD_MODELS)).prop_map(|(cpuid, model)| {
        let capabilities = Capabilities::decode_amd(&cpuid)
            .unwrap_or_else(|| Capabilities::decode_amd(&Cpuid::default()).unwrap());
        PmuInfo::new(model, capabilities)
    });
    prop_oneof![3 => intel_pmu(), 1 => amd]
}

/// Returns a supported PMU or, to cover models that `PmuInfo::probe()` refuses, any model's table
/// with possible capabilities.
fn intel_pmu() -> impl Strategy<Value = PmuInfo> {
    const USUAL: u32 = 0x0730_0804;
    (machine(), select(INTEL_MODELS)).prop_map(|((mut cpuid, perf_capabilities), model)| {
        PmuInfo::probe(&cpuid, perf_capabilities).unwrap_or_else(|_| {
            let decoded = Capabilities::decode(&cpuid, perf_capabilities);
            let capabilities = decoded
                .filter(|found| found.version >= 2)
                .unwrap_or_else(|| {
                    cpuid.leaf_a.eax = USUAL;
                    Capabilities::decode(&cpuid, perf_capabilities).unwrap()
                });
            PmuInfo::new(model, capabilities)
        })
    })
}

/// Returns a config with few bits, with many bits, or with an event code and unit mask of a model's
/// tables.
fn config() -> impl Strategy<Value = u64> {
    let tables = INTEL_MODELS.iter().flat_map(|model| {
        let precise = model
            .pebs_events
            .lines()
            .iter()
            .map(|line| line.constraint());
        model.event_constraints.iter().chain(precise)
    });
    let codes: Vec<u64> = (0..=0xffff)
        .filter(|code| {
            let code = EventSelect::from_bits(*code);
            tables.clone().any(|entry| entry.matches(code))
        })
        .chain(INTEL_MODELS.iter().flat_map(|model| {
            let needs = model.extra_register_events;
            (0..=0xffff).filter(move |code| needs.contains(code))
        }))
        .collect();
    prop_oneof![
        4 => select(codes),
        2 => 0u64..0x1_0000,
        1 => 0u64..12,
        1 => any::<u64>(),
    ]
}

fn few_bits() -> impl Strategy<Value = u64> {
    prop_oneof![4 => Just(0u64), 2 => (0u32..64).prop_map(|bit| 1 << bit), 1 => any::<u64>()]
}

fn attributes() -> impl Strategy<Value = Attributes> {
    let kind = prop_oneof![
        6 => Just(4u32), 2 => Just(0u32), 1 => Just(3u32), 1 => any::<u32>(),
    ];
    (
        (
            kind,
            config(),
            few_bits(),
            few_bits(),
            few_bits(),
            few_bits(),
        ),
        (few_bits(), few_bits(), few_bits(), few_bits(), few_bits()),
        any::<[bool; 8]>(),
        prop_oneof![6 => Just(0u8), 3 => 1u8..4, 1 => any::<u8>()],
        any::<bool>(),
    )
        .prop_map(|(numbers, more, flags, precise_ip, is_simple)| {
            let (kind, config, filters, config1, config2, sample_period) = numbers;
            let (sample_type, branch_sample_type, sample_regs_user, sample_regs_intr, config3) =
                more;
            let [has_auxiliary, freq, exclude_user, exclude_kernel, others, ends, pinned, member] =
                flags;
            let simple = Attributes {
                config1: config1 & if is_simple { 0xffff } else { !0 },
                exclude_user,
                exclude_kernel,
                ..Attributes::counting(EventType::decode(kind, 4), config | filters)
            };
            if is_simple {
                // With random attributes, nearly all would be refused.
                let precise_ip = precise_ip & 3;
                return Attributes {
                    precise_ip,
                    sample_period: if precise_ip == 0 { 0 } else { sample_period },
                    ..simple
                };
            }
            Attributes {
                config2,
                config3,
                config4: u64::from(ends) | (config3 & 2),
                pinned,
                is_member: member,
                has_auxiliary,
                sample_period,
                freq,
                precise_ip,
                exclude_host: others,
                exclude_guest: !others,
                aux_output: others && freq,
                sample_type,
                branch_sample_type,
                sample_regs_user,
                sample_regs_intr,
                ..simple
            }
        })
}

fn limits() -> impl Strategy<Value = Limits> {
    let none = any::<u8>().prop_map(|_| Limits::NONE);
    let some = (few_bits(), few_bits(), 0u32..10, 0u32..10, any::<u64>()).prop_map(
        |(closed, closed_to_sharing, gp, gp_with_corrupting, value)| {
            let mut limits = Limits {
                closed: CounterMask::from_bits(closed),
                closed_to_sharing: CounterMask::from_bits(closed_to_sharing),
                gp,
                gp_with_corrupting,
                ..Limits::NONE
            };
            let _ = limits
                .registers
                .place(ExtraRegister::OffcoreResponse0, value & 0xff);
            limits
        },
    );
    prop_oneof![none, some]
}

/// Returns whether `text` is a single non-empty line of fewer than 1000 bytes.
fn is_a_line(text: &str) -> bool {
    !text.trim().is_empty() && !text.contains('\n') && text.len() < 1000
}

/// Returns whether the event matches the attributes, judging by its registers.
fn matches_attributes(pmu: &PmuInfo, attr: &Attributes, event: &Event, any: bool) -> bool {
    const NOT_IN_A_CONFIG: u64 = EventSelect::ENABLE | EventSelect::PIN_CONTROL;
    let select = event.select;
    let filters = EventSelect::IN_TX | EventSelect::IN_TX_CHECKPOINTED;
    select.has(EventSelect::USR) != attr.exclude_user
        && select.has(EventSelect::OS) != attr.exclude_kernel
        && select.has(EventSelect::INT) == event.precise.is_none()
        && !select.has(NOT_IN_A_CONFIG)
        && select.bits() >> 35 == 0
        && select.has(EventSelect::ADAPTIVE) == (event.precise.is_some() && is_adaptive(pmu))
        && (!select.has(EventSelect::ANY) || any && pmu.capabilities.any_thread)
        && (!select.has(filters) || pmu.capabilities.tsx)
        && (1..=i64::MAX as u64).contains(&event.period)
        && (!event.random.vary() || attr.sample_period == event.period && !attr.freq)
        && event.random.suit(event.period)
        && attr.config4 <= 1
        && event.switches == (attr.config4 != 0)
        && (!event.switches || attr.sample_period != 0 && !attr.is_member && !attr.pinned)
        && event.requirement.is_none_or(|required| {
            let entry = pmu.model.extra_register_events.find(select);
            entry.is_some_and(|entry| entry.accepts(required.value))
        })
}

/// Returns whether precise events have adaptive records.
fn is_adaptive(pmu: &PmuInfo) -> bool {
    pmu.capabilities.pebs_format == Some(PebsFormat::Adaptive)
}

/// Returns a key for a register: its kind, and its number among its kind.
fn key(register: Register) -> (u8, usize) {
    match register {
        Register::EventSelect(counter) => (0, counter.index()),
        Register::Counter(counter) => (1, counter.index()),
        Register::FixedControl => (2, 0),
        Register::GlobalControl => (3, 0),
        Register::Extra(register) => (4, register.index()),
        Register::Metrics => (5, 0),
    }
}

/// The registers of a CPU. Records writes to registers that the machine lacks, and of invalid
/// values.
struct Hardware {
    pmu: PmuInfo,
    registers: BTreeMap<(u8, usize), u64>,
    wrong: Option<RegisterWrite>,
}

impl Hardware {
    fn write(&mut self, write: RegisterWrite) {
        let present = self.pmu.capabilities.counters;
        let adaptive = u64::from(is_adaptive(&self.pmu));
        let RegisterWrite { register, value } = write;
        let ok = match register {
            Register::EventSelect(counter) => {
                counter.is_gp() && present.contains(counter) && value >> (34 + adaptive) == 0
            }
            Register::Counter(counter) => {
                present.contains(counter) && value & !self.pmu.capabilities.width.mask() == 0
            }
            Register::FixedControl => {
                let fields = present.fixed().iter().map(|counter| match counter.kind() {
                    CounterKind::Fixed(n) => (0xf | (adaptive << 32)) << (4 * n),
                    _ => 0,
                });
                value & !fields.fold(0u64, |sum, field| sum | field) == 0
            }
            Register::GlobalControl => value & !present.bits() == 0,
            Register::Extra(register) => self.pmu.model.extra_register_events.has(register),
            Register::Metrics => !self.pmu.capabilities.metrics.is_empty(),
        };
        if !ok {
            self.wrong = Some(write);
        }
        self.registers.insert(key(register), value);
    }

    /// Writes GLOBAL_CTRL with the running counters.
    fn run(&mut self, counters: CounterMask) {
        let register = Register::GlobalControl;
        let value = counters.bits();
        self.write(RegisterWrite { register, value });
    }

    fn suspend(&mut self, shadow: &mut Shadow) {
        if shadow.suspend() {
            self.run(CounterMask::EMPTY);
        }
    }

    fn resume(&mut self, shadow: &mut Shadow) {
        if let Some(counters) = shadow.resume(|write| self.write(write)) {
            self.run(counters);
        }
    }
}

/// Programs a schedule: stops the events that leave, then starts those that arrive.
fn program(
    schedule: &mut CpuSchedule<usize>,
    shadow: &mut Shadow,
    hardware: &mut Hardware,
    events: &[(Event, Demand)],
    left: i64,
) {
    let pmu = hardware.pmu;
    hardware.suspend(shadow);
    for (_, counter) in schedule.leaving().collect::<Vec<_>>() {
        shadow.stop(counter, None);
    }
    for (entry, counter) in schedule.arriving_entries() {
        let (event, _) = events[entry.event];
        let registers = pmu.model.extra_register_events;
        let programming = entry.programming(event.select, event.counts_in, registers);
        let limits = pmu.period_limits();
        let start = limits.start(programming.select, event.period, left);
        shadow.plan(counter, programming);
        shadow.start(counter, start.value, |write| hardware.write(write));
    }
    schedule.mark_programmed();
    hardware.resume(shadow);
}

/// Checks the text of a refusal, alone and with its obstacles.
fn explained(refusal: Refusal, demand: Demand, limits: Limits) -> Result<(), TestCaseError> {
    for refusal in [refusal, refusal.for_the_moment()] {
        let explanation = Explanation {
            refusal,
            constraint: demand.constraint,
            limits,
            tfa: limits.closed,
        };
        prop_assert!(is_a_line(&explanation.to_string()), "{explanation}");
        prop_assert!(is_a_line(&Explanation::from(refusal).to_string()));
        prop_assert!(explanation.counters().weight() <= MAX_COUNTERS as u32);
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(4096))]

    /// CPUID with up to four random leaves, from any vendor.
    #[test]
    fn any_cpuid(
        (mut cpuid, capabilities) in machine(),
        noise in prop::array::uniform4(leaf()),
        which: u8,
    ) {
        let leaves = [&mut cpuid.leaf_0, &mut cpuid.leaf_1, &mut cpuid.leaf_7, &mut cpuid.leaf_a];
        for (i, (leaf, noise)) in leaves.into_iter().zip(noise).enumerate() {
            if which & (1 << i) != 0 {
                *leaf = noise;
            }
        }
        match PmuInfo::probe(&cpuid, capabilities) {
            Err(unsupported) => prop_assert!(is_a_line(&unsupported.to_string()), "{unsupported}"),
            Ok(pmu) => {
                let found = pmu.capabilities;
                prop_assert!(found.version >= 2);
                let is_of_hybrid = pmu.model.cpus.iter().any(|cpus| cpus.core != CoreType::Only);
                prop_assert!(is_of_hybrid || !cpuid.is_hybrid());
                prop_assert!((1..=32).contains(&found.gp()) && found.fixed() <= 16);
                prop_assert!(found.max_period() <= i64::MAX as u64);
                for id in HardwareId::ALL {
                    if let Some(select) = pmu.hardware_event(id) {
                        prop_assert_eq!(select.bits() & !(EventSelect::RAW), 0);
                    }
                }
            }
        }
    }

    /// CPUID of any AMD or Hygon processor.
    #[test]
    fn any_amd_cpuid(cpuid in amd_machine(), capabilities: Option<u64>) {
        match PmuInfo::probe(&cpuid, capabilities) {
            Err(unsupported) => prop_assert!(is_a_line(&unsupported.to_string()), "{unsupported}"),
            Ok(pmu) => {
                let found = pmu.capabilities;
                prop_assert!(found.interface.is_amd());
                prop_assert!((1..=15).contains(&found.gp()) && found.fixed() == 0);
                prop_assert_eq!(found.max_period(), (1 << 47) - 1);
                for id in HardwareId::ALL {
                    if let Some(select) = pmu.hardware_event(id) {
                        prop_assert_eq!(select.bits() & !EventSelect::AMD_RAW, 0);
                    }
                }
            }
        }
    }

    /// No event, precise or not, may be on a counter that the machine lacks.
    #[test]
    fn any_config(pmu in pmu(), config in config(), filters in few_bits(), precise_ip: u8) {
        let select = EventSelect::from_bits(config | filters);
        let present = pmu.capabilities.all();
        for constraint in [pmu.constraint(select), pmu.precise_constraint(select, precise_ip)] {
            prop_assert!(constraint.counters.is_subset(present));
        }
        if let Ok((select, value)) = pmu.cache_event(config | filters) {
            prop_assert_eq!(select.bits() & !EventSelect::RAW, 0);
            let needed = pmu.model.extra_register_events.find(select);
            prop_assert!(needed.is_none_or(|entry| entry.accepts(value)));
        }
        if let Some(id) = CacheId::from_config(config) {
            prop_assert_eq!(id.config(), config);
        }
    }

    /// Events from attributes to registers: alone, as a group, and beside others.
    #[test]
    fn any_events(
        pmu in intel_pmu(),
        wanted in prop::collection::vec((attributes(), any::<[bool; 2]>()), 1..24),
        groups in prop::collection::vec(1usize..5, 24),
        limits in limits(),
        leave in prop::collection::vec(any::<Index>(), 8),
        left: i64,
        mainline: bool,
    ) {
        let policy = if mainline { Policy::Mainline } else { Policy::Rpmu };
        let mut events: Vec<(Event, Demand)> = Vec::new();
        for (attr, [has_registers, allowed]) in &wanted {
            match configure(&pmu, attr, |_| *has_registers, || *allowed) {
                Err(refusal) => prop_assert!(is_a_line(&Explanation::from(refusal).to_string())),
                Ok(event) => {
                    prop_assert!(matches_attributes(&pmu, attr, &event, *allowed), "{attr:x?} {event:x?}");
                    let constraint = pmu.constraint(event.select);
                    let requirement = event.requirement;
                    let lbr_select = event.branches.map(|request| request.select);
                    let key = Key::NONE;
                    events.push((event, Demand { constraint, requirement, lbr_select, key }));
                }
            }
        }

        let mut schedule = CpuSchedule::new(&pmu.capabilities).with_policy(policy);
        let mut shadow = Shadow::new(pmu.capabilities.counters);
        let mut hardware = Hardware { pmu, registers: BTreeMap::new(), wrong: None };
        shadow.reset(|write| hardware.write(write));
        let mut core = Core::new(pmu.capabilities.gp()).sharing_registers();
        let (own, other) = (core.join(0).unwrap(), core.join(1).unwrap());

        let mut first = 0;
        for size in groups {
            let members = first..events.len().min(first + size);
            first = members.end;
            if members.is_empty() {
                break;
            }
            // On an idle PMU, as in perf_event_open().
            let mut group = Group::new(&pmu.capabilities, &limits).with_policy(policy);
            let mut verdict = Ok(());
            for id in members.clone() {
                verdict = verdict.and(group.push(events[id].1));
            }
            verdict = verdict.and_then(|()| group.validate());
            if schedule.is_empty() {
                // On an empty schedule, a trial gives the same verdict.
                let mut trial = schedule.trial();
                for id in members.clone() {
                    trial.push(id, events[id].1, None);
                }
                let fits = trial.fits(&limits);
                prop_assert_eq!(fits.is_ok(), verdict.is_ok(), "{:?} {:?}", fits, verdict);
            }
            if let Err(refusal) = verdict {
                explained(refusal, events[members.start].1, limits)?;
            }

            schedule.begin();
            let mut added = Ok(());
            for id in members.clone() {
                added = added.and_then(|()| schedule.add(id, events[id].1, None, &limits));
            }
            if let Err(refusal) = added.and_then(|()| schedule.commit(&limits)) {
                explained(refusal, events[members.start].1, limits)?;
                for id in members {
                    schedule.remove(id);
                }
                schedule.cancel();
            }
            core.set_usage(own, schedule.usage());
            // The other thread's limits can be explained.
            let limits = core.limits(other);
            core.wait(other);
            explained(Refusal::DoesNotFit(Shortage::NotFound), events[0].1, limits)?;
        }

        program(&mut schedule, &mut shadow, &mut hardware, &events, left);
        for index in leave {
            let ids: Vec<usize> = schedule.entries().map(|entry| entry.event).collect();
            if ids.is_empty() {
                break;
            }
            hardware.suspend(&mut shadow);
            let gone = schedule.remove(ids[index.index(ids.len())]);
            if let Some(counter) = gone.and_then(|entry| entry.placed()) {
                shadow.stop(counter, Some(left as u64 & pmu.capabilities.width.mask()));
            }
            core.set_usage(own, schedule.usage());
            core.wakes_sibling(own);
            program(&mut schedule, &mut shadow, &mut hardware, &events, left);
        }
        prop_assert_eq!(hardware.wrong, None);
        prop_assert_eq!(shadow.active(), schedule.taken());
        for entry in schedule.entries() {
            let counter = entry.placed().unwrap();
            prop_assert!(events[entry.event].1.constraint.counters.contains(counter));
            if counter.is_gp() {
                let held = hardware.registers[&key(Register::EventSelect(counter))];
                // The code may be that of the other offcore response register.
                let wanted = events[entry.event].0.select.enabled();
                prop_assert_eq!(held & !EventSelect::CODE, wanted & !EventSelect::CODE);
            }
        }
    }

    /// A counter starts with a value that it can hold, at most the longest period, or 128 events,
    /// before its overflow.
    #[test]
    fn any_period(
        width in 32u8..=64,
        max_period in any::<u64>(),
        rule in select(vec![
            PeriodRule::NONE,
            PeriodRule::NEHALEM,
            PeriodRule::HASWELL,
            PeriodRule::BROADWELL,
        ]),
        config in config(),
        period in prop_oneof![0u64..200, any::<u64>()],
        left in prop_oneof![-200i64..200, any::<i64>()],
        readings in any::<[u64; 3]>(),
    ) {
        let width = CounterWidth::new(width).unwrap();
        let max_period = (max_period & (width.mask() >> 1)).max(127);
        let limits = PeriodLimits { width, max_period, rule };
        let select = EventSelect::from_bits(config);
        let start = limits.start(select, period, left);
        prop_assert_eq!(start.value, start.previous & width.mask());
        let counts = width.delta(start.value, 0);
        prop_assert!(counts <= max_period.max(128), "{} of {}", counts, max_period);
        limits.is_too_short(select, period);

        let [remembered, now, later] = readings;
        let read = width.remember_read(remembered, now);
        prop_assert_eq!(width.delta(read, later), width.delta(now, later));
        let written = width.remember_written(read, later);
        prop_assert_eq!(written & width.mask(), later & width.mask());
        prop_assert_eq!(width.sign_extend(later) as u64 & width.mask(), later & width.mask());
    }

    /// Places in the order of rotation, and the demands of groups.
    #[test]
    fn any_turns(
        places in prop::collection::vec(any::<[u64; 3]>(), 1..40),
        groups in prop::collection::vec((any::<u64>(), any::<bool>(), any::<bool>()), 0..40),
        [reach, gp, room]: [u64; 3],
    ) {
        for [had, latest, charge] in places {
            let charge = charge >> 1;
            prop_assert!(requeue(had, latest, charge) >= had.max(charge));
        }
        let (mut wants, mut active) = (Wants::NOTHING, Wants::NOTHING);
        for (counters, corrupting, alone) in groups {
            let counters = CounterMask::from_bits(counters);
            let mut group = GroupWants::default();
            group.add(Constraint { corrupting, ..Constraint::any_of(counters) });
            prop_assert_eq!(group.is_corrupting(), corrupting);
            wants.add(&group, alone);
            active.add(&group, alone);
        }
        // CAST: any value will do.
        let (gp, room) = (gp as u32, room as u32);
        prop_assert!(!wants.could_use(&active, CounterMask::from_bits(reach), room));
        for limits in [Limits::NONE, Limits::beside_sibling(gp)] {
            prop_assert!(wants.charge(true, gp, &limits) >= wants.charge(false, gp, &limits));
            let beside = Beside { corrupting: room, others: gp };
            let waits = [true, false].map(|it| wants.waits_for_its_kind(it, beside, gp, &limits));
            prop_assert!(waits != [true, true]);
        }
    }

    /// Masks, indices, and the marks of dirty counters.
    #[test]
    fn any_counters(
        steps in prop::collection::vec(any::<[u64; 2]>(), 1..8),
        index: usize,
        len in 0usize..100,
    ) {
        let mut dirty = Dirty::default();
        for [used, marked] in steps {
            let (used, marked) = (CounterMask::from_bits(used), CounterMask::from_bits(marked));
            let marks = dirty.use_counters(used, marked);
            prop_assert!(!marks.marked.intersects(used));
            let counters: Vec<CounterId> = used.iter().collect();
            prop_assert_eq!(counters.len() as u32, used.weight());
            for counter in counters {
                prop_assert_eq!(CounterId::from_index(counter.index()), Some(counter));
                prop_assert!(used.contains(counter) && is_a_line(&counter.to_string()));
            }
        }
        let index = index & isize::MAX as usize;
        prop_assert_eq!(masked(index, len), if index < len { index } else { 0 });
        prop_assert_eq!(CounterId::from_index(index).map_or(index, CounterId::index), index);
    }

    /// AMD's tables.
    #[test]
    fn any_amd_event(
        model in select(AMD_MODELS),
        pmu in pmu(),
        config: u64,
        counters: u64,
        code in 0u16..0x1000,
        umask: u8,
    ) {
        let present = CounterMask::from_bits(counters);
        let mut pmu = PmuInfo::new(model, pmu.capabilities);
        pmu.capabilities.counters = present;
        for select in [EventSelect::from_bits(config), EventSelect::amd_event(code, umask)] {
            prop_assert!(pmu.constraint(select).counters.is_subset(present));
        }
    }

    /// A topdown file has a text for any number of threads per core.
    #[test]
    fn any_topdown_file(model in select(INTEL_MODELS), threads: u32) {
        for file in model.topdown_files {
            prop_assert!(is_a_line(file.text(threads).trim_end()));
        }
    }
}
