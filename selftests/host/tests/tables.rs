// SPDX-License-Identifier: GPL-2.0

//! Tests the models' tables against mainline's, read from the kernel's source.

mod exceptions;
mod kernel;

use exceptions::{
    exceptions,
    Exception,
    Reference, //
};
use kernel::{
    Constraint,
    ExtraRegister,
    Init,
    Source, //
};
use rpmu_logic::logic::capabilities::{
    Capabilities,
    Cpuid, //
};
use rpmu_logic::logic::cores::CoreType;
use rpmu_logic::logic::model::cache_event::NoCacheEvent;
use rpmu_logic::logic::model::data_source::DataSources;
use rpmu_logic::logic::model::memory_files;
use rpmu_logic::logic::model::pebs_events::{
    PebsData,
    PebsEvent, //
};
use rpmu_logic::logic::model::{
    first_match,
    Acknowledge,
    HardwareId,
    LbrFilter,
    Model,
    Quirk,
    Scope,
    Vendor,
    GENERIC,
    GENERIC_V5,
    GOLDEN_COVE,
    INTEL_MODELS,
    NEHALEM,
    NOT_DRIVEN, //
};
use rpmu_logic::logic::pmu::PmuInfo;
use rpmu_logic::logic::regs::counter::CounterMask;
use rpmu_logic::logic::regs::event_select::EventSelect;
use rpmu_logic::logic::regs::extra_register::ExtraRegister as Needed;
use rpmu_logic::logic::regs::period::PeriodRule;

/// Returns the number of the model's quirks that mainline has, too.
fn mainline_quirks(model: &Model) -> usize {
    let quirks = model.quirks.iter();
    quirks.filter(|it| **it != Quirk::StatusSticks).count()
}

/// Returns mainline's counters of an event, and whether it is corrupting: first match, after
/// `intel_pmu_check_event_constraints()`.
fn mainline(lines: &[Constraint], config: u64, gp: u64, fixed: u64) -> (u64, bool) {
    let present = gp | (fixed << 32);
    let matches = |line: &&Constraint| (config & line.mask).wrapping_sub(line.code) <= line.size;
    match lines.iter().find(matches) {
        // The pseudo counters of metrics, which exist with fixed counter 3.
        Some(line) if line.counters >> 48 != 0 => (line.counters, line.corrupting),
        Some(line) => {
            let widened = line.fixed && line.code & 0xff != 0;
            let counters = line.counters | if widened { gp } else { 0 };
            (counters & present, line.corrupting)
        }
        None => (gp, false),
    }
}

/// Returns a machine of the model, whether the driver supports it or not.
fn pmu(model: &'static Model, gp: u32, fixed: u32) -> PmuInfo {
    PmuInfo::new(
        model,
        Capabilities::decode(&Cpuid::intel(4, gp, fixed), None).unwrap(),
    )
}

/// The exceptions of a model, and whether a difference was found for each.
struct Differences(Vec<(&'static Exception, bool)>);

impl Differences {
    fn of(model: &Model, precise: bool) -> Self {
        let all = exceptions(model, Reference::Mainline);
        let about = all.filter(|exception| exception.precise == precise);
        Self(about.map(|exception| (exception, false)).collect())
    }

    /// Returns whether a difference is a known one, and marks its exception as found.
    fn allow(&mut self, select: EventSelect) -> bool {
        let mut about = self
            .0
            .iter_mut()
            .filter(|(exception, _)| exception.is_about(select, exception.precise));
        about.next().map(|(_, used)| *used = true).is_some()
    }

    fn assert_used(self, name: &str) {
        for (exception, used) in self.0 {
            assert!(used, "{name}: no such difference: {exception:x?}");
        }
    }
}

fn same_counters(model: &'static Model, lines: &[Constraint]) {
    let fixed = if lines.iter().any(|line| line.counters == 1 << 47) {
        16
    } else if lines.iter().any(|line| line.counters == 1 << 35) {
        4
    } else {
        3
    };
    let mut differences = Differences::of(model, false);
    let mut compare = |pmu: &PmuInfo, config: u64| {
        let select = EventSelect::from_bits(config);
        let constraint = pmu.constraint(select);
        let metric = first_match(pmu.model.event_constraints, select)
            .filter(|entry| entry.is_metric())
            .map_or(0, |entry| entry.resolve(CounterMask::ALL).counters.bits());
        let gp = pmu.capabilities.counters.gp().bits();
        let found = (constraint.counters.bits() | metric, constraint.corrupting);
        let expected = mainline(lines, config, gp, (1 << fixed) - 1);
        if found != expected && !differences.allow(select) {
            panic!(
                "{} {config:#x} on {gp:#x}: {found:x?}, not {expected:x?}",
                model.name
            );
        }
    };
    for gp in [2, 4, 8] {
        let mut pmu = pmu(model, gp, fixed);
        pmu.capabilities.perf_metrics = true;
        for config in 0..=0xffff {
            compare(&pmu, config);
            compare(&pmu, config | (1 << 24));
        }
        // Filters, most of which exclude events from fixed counters.
        for filter in [1 << 16, 1 << 17, 1 << 18, 1 << 21, 1 << 23, 1 << 32] {
            for line in lines {
                compare(&pmu, line.code | filter);
            }
        }
        for entry in model.event_constraints {
            compare(&pmu, entry.code());
        }
    }
    differences.assert_used(model.name);
}

#[test]
fn every_event_has_mainlines_counters() {
    let Some(source) = Source::read() else {
        return;
    };
    let mut lines = Vec::new();
    for model in INTEL_MODELS {
        let init = source.init(&model.cpus[0]);
        let name = init
            .assigned("x86_pmu.event_constraints")
            .or_else(|| init.assigned("hybrid(pmu, event_constraints)"))
            .unwrap();
        let table = source.constraints(&name);
        same_counters(model, &table);
        lines.push((model.pmu_name, table.len()));
    }
    for (model, name) in [
        (&GENERIC, "intel_gen_event_constraints"),
        (&GENERIC_V5, "intel_v5_gen_event_constraints"),
    ] {
        let table = source.constraints(name);
        same_counters(model, &table);
        lines.push((model.pmu_name, table.len()));
    }
    // Checks that all tables were read completely.
    #[rustfmt::skip]
    assert_eq!(lines, [
        ("nehalem", 11), ("westmere", 7), ("sandybridge", 16), ("sandybridge", 16),
        ("ivybridge", 17), ("ivybridge", 17), ("haswell", 13), ("broadwell", 9), ("skylake", 9),
        ("skylake", 9), ("icelake", 25), ("icelake", 25), ("sapphire_rapids", 31),
        ("granite_rapids", 31), ("alderlake_hybrid", 31), ("silvermont", 3), ("goldmont", 3),
        ("goldmont_plus", 3), ("Tremont", 3), ("gracemont", 6), ("alderlake_hybrid", 6),
        ("crestmont", 6),
        ("generic_arch_v2+", 3), ("generic_arch_v5+", 16),
    ]);
}

/// Returns mainline's counters of a precise event, whether it is corrupting, and the contents of
/// its records; `None` if mainline treats it like a counting event.
fn mainlines_precise(lines: &[Constraint], all: bool, config: u64) -> Option<(u64, bool, &str)> {
    let matches = |line: &&Constraint| (config & line.mask).wrapping_sub(line.code) <= line.size;
    match lines.iter().find(matches) {
        Some(line) => Some((line.counters, line.corrupting, line.pebs)),
        // The counters from the table for counting events.
        None if all => None,
        None => Some((0, false, "")),
    }
}

#[test]
fn every_precise_event_is_mainlines() {
    let Some(source) = Source::read() else {
        return;
    };
    let mut lines = 0;
    for model in INTEL_MODELS {
        let init = source.init(&model.cpus[0]);
        let table = init
            .assigned("x86_pmu.pebs_constraints")
            .or_else(|| init.assigned("hybrid(pmu, pebs_constraints)"))
            .map_or_else(Vec::new, |name| source.constraints(&name));
        lines += table.len();
        let mut differences = Differences::of(model, true);
        // Mainline sets this, too, if the processor has baseline PEBS, as big cores with metrics
        // and small cores from Tremont on have.
        let all = init.contains("PMU_FL_PEBS_ALL")
            || init.contains("num_topdown_events =")
            || init.contains("= tnt_get_event_constraints")
            || init.contains("= cmt_get_event_constraints");
        let pmu = pmu(model, 8, 4);
        let present = pmu.capabilities.counters.bits();

        // All codes without flags and with those of the cycles alias; single flags for the codes of
        // lines.
        let everywhere = (0..=0xffff).flat_map(|code| [code, code | 0x1080_0000]);
        let flags = [1 << 18, 1 << 21, 1 << 23, 1 << 24, 1 << 32, 3 << 16];
        let at_lines = table
            .iter()
            .flat_map(|line| flags.map(|flag| line.code ^ flag))
            .chain([0x0a80_01c0]);
        for config in everywhere.chain(at_lines) {
            let select = EventSelect::from_bits(config);
            let data = match model.pebs_events.find(select).map(PebsEvent::data) {
                None | Some(PebsData::None) => "",
                Some(PebsData::LoadLatency) => "LDLAT",
                Some(PebsData::StoreLatency) => "STLAT",
                Some(PebsData::Store) => "ST",
                Some(PebsData::Load) => "LD_HSW",
                Some(PebsData::StoreAddress) => "ST_HSW",
                Some(PebsData::Address) => "NA_HSW",
            };
            let found = pmu.precise_constraint(select, 1);
            let ordinary = pmu.constraint(select);
            let (counters, corrupting, pebs) = mainlines_precise(&table, all, config).unwrap_or((
                ordinary.counters.bits(),
                ordinary.corrupting,
                "",
            ));
            let found = (found.counters.bits(), found.corrupting, data);
            let expected = (counters & present, corrupting, pebs);
            if found != expected && !differences.allow(select) {
                panic!("{} {config:#x}: {found:x?}, not {expected:x?}", model.name);
            }
        }
        differences.assert_used(model.name);

        // precise_ip=3.
        let hook = init
            .assigned("x86_pmu.get_event_constraints")
            .unwrap_or_default();
        for (code, icl, glc) in [
            (0x00c0, 1 << 32, 1 << 32),
            (0x81d0, 0xf, 1),
            (0x02c0, 0xff, 0),
        ] {
            let found = pmu.precise_constraint(EventSelect::from_bits(code), 3);
            let expected = match hook.as_str() {
                "icl_get_event_constraints" => icl,
                "glc_get_event_constraints" => glc,
                "glp_get_event_constraints" => 1,
                "tnt_get_event_constraints" if code == 0x00c0 => (1 << 32) | 1,
                "tnt_get_event_constraints" => 1,
                "cmt_get_event_constraints" if code == 0x00c0 => (1 << 32) | 3,
                "cmt_get_event_constraints" => 3,
                _ => pmu
                    .precise_constraint(EventSelect::from_bits(code), 2)
                    .counters
                    .bits(),
            };
            assert_eq!(found.counters.bits(), expected, "{} {code:#x}", model.name);
        }
        if hook == "cmt_get_event_constraints" {
            // Events of fixed counters alone have no counter; load latency has two in any case.
            for (code, expected) in [(0x0100, 0), (0x0300, 0), (0x05d0, 3)] {
                let found = pmu.precise_constraint(EventSelect::from_bits(code), 3);
                assert_eq!(found.counters.bits(), expected, "{} {code:#x}", model.name);
            }
        }
    }
    println!("{lines} lines of precise events");
    assert!(lines > 100, "{lines}");
}

/// Returns the number of a register in mainline's tables.
const fn msr(register: Needed) -> u64 {
    match register {
        Needed::OffcoreResponse0 => 0x1a6,
        Needed::OffcoreResponse1 => 0x1a7,
        Needed::LoadLatency => 0x3f6,
        Needed::Frontend => 0x3f7,
        Needed::SnoopResponse0 => 0x1328,
        Needed::SnoopResponse1 => 0x1329,
        Needed::LbrSelect => 0x1c8,
    }
}

#[test]
fn every_event_has_mainlines_extra_register() {
    let Some(source) = Source::read() else {
        return;
    };
    for model in INTEL_MODELS {
        for cpu in model.cpus {
            let lines = match source.init(cpu).assigned("x86_pmu.extra_regs") {
                Some(name) => source.extra_registers(&name),
                None => Vec::new(),
            };
            for config in 0..=0xffff {
                let expected = lines.iter().find(|line| line.code == config);
                let found = model
                    .extra_register_events
                    .find(EventSelect::from_bits(config));
                assert_eq!(
                    found.map(|entry| (msr(entry.register()), entry.valid())),
                    expected.map(|line| (line.msr, line.valid)),
                    "{} {config:#x}",
                    model.name
                );
            }
        }
    }
}

/// Returns the result of `set_ext_hw_attr()` and `x86_pmu_extra_regs()` for values of mainline's
/// tables.
fn mainlines_cache_event(
    event: u64,
    config1: u64,
    registers: &[ExtraRegister],
) -> Result<(u64, u64), NoCacheEvent> {
    let register = registers.iter().find(|line| line.code == event & 0xffff);
    match event {
        0 => Err(NoCacheEvent::Absent),
        u64::MAX => Err(NoCacheEvent::Impossible),
        _ if register.is_some_and(|line| config1 & !line.valid != 0) => {
            Err(NoCacheEvent::ExtraRegister)
        }
        _ => Ok((event, config1)),
    }
}

#[test]
fn every_cache_event_is_mainlines() {
    let Some(source) = Source::read() else {
        return;
    };
    // The numbers of events, impossible ids, absent ids, and values that the register refuses.
    let mut seen = [0; 4];
    for model in INTEL_MODELS {
        let pmu = pmu(model, 4, 3);
        for cpu in model.cpus {
            let init = source.init(cpu);
            let events = source.cache_table_of(&init, "hw_cache_event_ids");
            let extra = source.cache_table_of(&init, "hw_cache_extra_regs");
            let registers = match init.assigned("x86_pmu.extra_regs") {
                Some(name) => source.extra_registers(&name),
                None => Vec::new(),
            };
            for config in 0..=0x2_ffff {
                let [cache, operation, outcome] =
                    [0, 8, 16].map(|shift| ((config >> shift) & 0xff) as usize);
                let expected = if cache < 7 && operation < 3 && outcome < 2 {
                    mainlines_cache_event(
                        events[cache][operation][outcome],
                        extra[cache][operation][outcome],
                        &registers,
                    )
                } else {
                    Err(NoCacheEvent::NoSuchId)
                };
                let found = pmu.cache_event(config);
                assert_eq!(
                    found.map(|(select, config1)| (select.bits(), config1)),
                    expected,
                    "{} {cpu:x?} {config:#x}",
                    model.name
                );
                match expected {
                    Ok(_) => seen[0] += 1,
                    Err(NoCacheEvent::Impossible) => seen[1] += 1,
                    Err(NoCacheEvent::Absent) => seen[2] += 1,
                    Err(NoCacheEvent::ExtraRegister) => seen[3] += 1,
                    Err(NoCacheEvent::NoSuchId) => {}
                }
            }
        }
    }
    println!(
        "{} events, {} impossible, {} absent, {} refused by the register",
        seen[0], seen[1], seen[2], seen[3]
    );
    let cpus: usize = INTEL_MODELS.iter().map(|model| model.cpus.len()).sum();
    assert_eq!(seen.iter().sum::<usize>(), 42 * cpus);
    assert!(seen.iter().all(|count| *count > 0), "{seen:?}");
}

/// Evaluates `X86_CONFIG(.event=…, .umask=…, .inv=1, .cmask=…)`.
fn x86_config(source: &Source, text: &str) -> u64 {
    let fields = text.strip_prefix("X86_CONFIG(").unwrap();
    let fields = fields.strip_suffix(')').unwrap().split(',');
    fields.fold(0, |config, field| {
        let (name, value) = field.split_once('=').unwrap();
        let shift = match name.trim() {
            ".event" => 0,
            ".umask" => 8,
            ".inv" => 23,
            ".cmask" => 24,
            _ => panic!("{field}"),
        };
        config | (source.value(value) << shift)
    })
}

/// Compares the names and texts of the topdown files.
fn same_topdown_files(model: &Model, source: &Source, init: &Init) {
    let attributes = init.assigned("\ttd_attr ").or(init.assigned("\ttd_attr"));
    // Mainline shows the files of a model with metrics only if the CPU has PERF_METRICS.
    let metrics = init.contains("num_topdown_events =");
    assert_eq!(
        model.metrics() != CounterMask::EMPTY,
        metrics,
        "{}",
        model.name
    );
    let mut expected = match attributes {
        Some(attributes) => source.event_files(&attributes, init),
        None => Vec::new(),
    };
    expected.sort();
    let mut files: Vec<[String; 3]> = model
        .topdown_files
        .iter()
        .map(|file| [file.name, file.text(1), file.text(2)].map(String::from))
        .collect();
    files.sort();
    assert_eq!(files, expected, "{}", model.name);
}

/// Returns the end of the texts of event files: a newline, except on hybrids.
fn end_of_text(model: &Model) -> &'static str {
    match model.cpus[0].core {
        CoreType::Only => "\n",
        _ => "",
    }
}

/// Compares the names and texts of the files for loads and stores.
fn same_memory_files(model: &Model, source: &Source, init: &Init) {
    let mut expected = match init.assigned("\tmem_attr") {
        Some(attributes) => source.event_files(&attributes, init),
        None => Vec::new(),
    };
    // `mem_is_visible()`.
    let auxiliary = init.contains("PMU_FL_MEM_LOADS_AUX");
    expected.retain(|[name, ..]| auxiliary || name != memory_files::AUXILIARY);
    expected.sort();
    let end = end_of_text(model);
    let mut files: Vec<[String; 3]> = model
        .memory_files
        .iter()
        .map(|(name, text)| {
            [
                name.to_string(),
                format!("{text}{end}"),
                format!("{text}{end}"),
            ]
        })
        .collect();
    files.sort();
    assert_eq!(files, expected, "{}", model.name);
}

/// Compares the names and texts of the TSX files.
fn same_tsx_files(model: &Model, source: &Source, init: &Init) {
    let attributes = init.assigned("\ttsx_attr").or(init.assigned("\ttsx_attr "));
    let mut expected = match attributes {
        Some(attributes) => source.event_files(&attributes, init),
        None => Vec::new(),
    };
    expected.sort();
    let end = end_of_text(model);
    let mut files: Vec<[String; 3]> = model
        .tsx_files
        .iter()
        .map(|(name, text)| {
            [
                name.to_string(),
                format!("{text}{end}"),
                format!("{text}{end}"),
            ]
        })
        .collect();
    files.sort();
    assert_eq!(files, expected, "{}", model.name);
}

#[test]
fn every_cpu_in_mainlines_tables_has_a_model_or_is_refused() {
    let Some(source) = Source::read() else {
        return;
    };
    let has_table = |(family, number): &(u16, u8)| {
        let mut models = INTEL_MODELS.iter();
        let types = [CoreType::Only, CoreType::Small, CoreType::Big];
        models.any(|model| {
            let mut types = types.into_iter();
            types.any(|core| model.is_for(Vendor::Intel, *family, *number, core))
        })
    };
    let mut without: Vec<(u16, u8)> = source
        .cpus()
        .into_iter()
        .filter(|cpu| !has_table(cpu))
        .collect();
    let mut expected: Vec<(u16, u8)> = NOT_DRIVEN
        .iter()
        .flat_map(|cpu| cpu.numbers.iter().map(|number| (cpu.family, *number)))
        .collect();
    without.sort_unstable();
    expected.sort_unstable();
    assert_eq!(without, expected);
}

#[test]
fn every_model_is_what_mainline_sets_up() {
    let Some(source) = Source::read() else {
        return;
    };
    for model in INTEL_MODELS {
        for cpu in model.cpus {
            let init = source.init(cpu);
            let name = model.name;
            let expected = format!("\"{}\"", model.pmu_name);
            assert_eq!(init.assigned("\tname"), Some(expected), "{name}");

            let rule = match init.assigned("x86_pmu.limit_period").as_deref() {
                None => PeriodRule::NONE,
                Some("glc_limit_period") => PeriodRule::GOLDEN_COVE,
                Some("nhm_limit_period") => PeriodRule::NEHALEM,
                Some("hsw_limit_period") => PeriodRule::HASWELL,
                Some("bdw_limit_period") => PeriodRule::BROADWELL,
                Some(other) => panic!("{other}"),
            };
            assert_eq!(model.period_rule, rule, "{name}");

            for (id, index) in [
                (HardwareId::StalledCyclesFrontend, "FRONTEND"),
                (HardwareId::StalledCyclesBackend, "BACKEND"),
            ] {
                let entry =
                    format!("intel_perfmon_event_map[PERF_COUNT_HW_STALLED_CYCLES_{index}]");
                assert_eq!(
                    model.hardware_events.get(id).map(EventSelect::bits),
                    init.assigned(&entry).map(|text| x86_config(&source, &text)),
                    "{name} {id:?}"
                );
            }

            let late = ["late_ack", "mid_ack"]
                .iter()
                .any(|ack| init.contains(&format!("x86_pmu.{ack} = true")));
            assert_eq!(model.acknowledge == Acknowledge::Late, late, "{name}");
            let clears = init.contains("intel_pmu_nhm_enable_all");
            assert_eq!(model.clearing_events.is_empty(), !clears, "{name}");
            if clears {
                assert_eq!(model.clearing_events, source.numbers("nhm_magic[4]"));
            }
            same_topdown_files(model, &source, &init);
            same_tsx_files(model, &source, &init);
            same_memory_files(model, &source, &init);
            assert_eq!(
                model.checkpointed.bits(),
                if init.contains("hsw_hw_config") { 4 } else { 0 },
                "{name}"
            );
            assert_eq!(
                model.ht_erratum.is_some(),
                init.contains("x86_add_quirk(intel_ht_bug)"),
                "{name}"
            );
            if [0x01b7, 0x012a]
                .iter()
                .any(|code| model.extra_register_events.contains(code))
            {
                let per_thread = init.contains("PMU_FL_NO_HT_SHARING");
                assert_eq!(model.offcore_scope == Scope::Thread, per_thread, "{name}");
            }
            assert_eq!(
                mainline_quirks(model),
                usize::from(init.contains("intel_nehalem_quirk"))
                    + usize::from(init.contains("intel_pmu_ref_cycles_ext"))
                    + usize::from(init.contains("PMU_FL_MEM_LOADS_AUX"))
                    + usize::from(init.contains("PMU_FL_INSTR_LATENCY"))
                    + usize::from(init.contains("lbr_double_abort = true")),
                "{name}"
            );
            let is_server = init.contains("pmem = true") || init.contains("source_skl(true)");
            let data_sources = match (
                init.contains("intel_pmu_pebs_data_source_nhm()"),
                init.contains("intel_pmu_pebs_data_source_skl("),
            ) {
                (true, _) if init.contains("x86_pmu.pebs_no_tlb = 1") => DataSources::NEHALEM,
                (true, _) => DataSources::WESTMERE,
                (_, true) if init.contains("x86_pmu.pebs_block = true") => DataSources::GOLDEN_COVE,
                _ if init.contains("intel_pmu_pebs_data_source_adl()") => match cpu.core {
                    CoreType::Big => DataSources::GOLDEN_COVE_CLIENT,
                    _ => DataSources::GRACEMONT,
                },
                (_, true) if is_server => DataSources::SKYLAKE_SERVER,
                (_, true) => DataSources::SKYLAKE,
                _ if init.contains("intel_pmu_pebs_data_source_grt()") => DataSources::GRACEMONT,
                _ if init.contains("intel_pmu_pebs_data_source_cmt()") => DataSources::CRESTMONT,
                _ => DataSources::SANDY_BRIDGE,
            };
            assert_eq!(model.data_sources, data_sources, "{name} {:#x}", cpu.first);
            let filter = [
                ("intel_pmu_lbr_init_nhm()", LbrFilter::Nehalem),
                ("intel_pmu_lbr_init_slm()", LbrFilter::Silvermont),
                ("intel_pmu_lbr_init_snb()", LbrFilter::SandyBridge),
                ("intel_pmu_lbr_init_hsw()", LbrFilter::Haswell),
                ("intel_pmu_lbr_init_skl()", LbrFilter::Haswell),
            ];
            let filter = filter.into_iter().find(|(call, _)| init.contains(call));
            assert_eq!(model.lbr_filter, filter.map(|(_, filter)| filter), "{name}");
        }
    }
    assert_eq!(
        (mainline_quirks(&NEHALEM), mainline_quirks(&GOLDEN_COVE)),
        (1, 3)
    );
}
