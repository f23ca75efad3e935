// SPDX-License-Identifier: GPL-2.0

//! Event names: from parsed text to the attributes for perf_event_open.
//!
//! Resolves names as the perf tool does, ignoring case: the model's list, sysfs, generic names, and
//! the events of the kernel's and the tool's own PMUs (`tools/perf/util/{parse-events,pmu,pmus}.c`,
//! `tools/perf/pmu-events/make_legacy_cache.py`). The machine's other PMUs are unknown, so the
//! names of all PMUs in `OTHERS` are accepted.

use crate::data::Listed;
use crate::logic::model::{
    memory_files,
    HardwareId, //
};
use crate::logic::open::attr::{
    Attributes,
    EventType, //
};
use crate::logic::regs::event_select::EventSelect;
use crate::machine::{
    Machine,
    Smt, //
};
use crate::regroup::regroup;
use crate::syntax::{
    self,
    number,
    Body,
    Mistake,
    Modifiers,
    Span,
    Term,
    TermKind,
    Value, //
};
use crate::terms::{
    check_keyword,
    check_numeric,
    check_tracepoint,
    label,
    last,
    Tool, //
};

/// A requested group, or a single event.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The events, the leader first.
    pub events: Vec<WantedEvent>,
    /// Set if the group was written with braces.
    pub braces: bool,
    /// The modifiers after the braces, with their colon.
    pub suffix: String,
    /// Set if perf may split the group if it does not fit (`:W`).
    pub weak: bool,
}

impl Wanted {
    /// Returns the group as written in the list.
    pub fn text(&self) -> String {
        let names: Vec<&str> = self
            .events
            .iter()
            .map(|event| event.name.as_str())
            .collect();
        if self.braces {
            format!("{{{}}}{}", names.join(","), self.suffix)
        } else {
            names.join(",")
        }
    }
}

/// Joins groups to a list in perf's syntax.
pub fn text(groups: &[Wanted]) -> String {
    groups
        .iter()
        .map(Wanted::text)
        .collect::<Vec<_>>()
        .join(",")
}

/// A requested event.
#[derive(Clone, Debug)]
pub struct WantedEvent {
    /// The event as written in the list.
    pub name: String,
    /// The same event outside of its group: with the group's modifiers, except D and W.
    pub alone: String,
    /// The name that perf shows, if its terms give it one.
    pub label: Option<String>,
    /// The provider that counts it.
    pub kind: Kind,
    /// `attr.pinned`.
    pub pinned: bool,
    /// `attr.exclusive`.
    pub exclusive: bool,
    /// Set if perf does not move it to another group (`:X`).
    pub stays: bool,
}

/// The provider that counts an event.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    /// The core's PMU.
    Hardware(Attributes),
    /// The kernel or the perf tool: no counter needed.
    Software,
    /// The PMU with this name, or with names like it: no counter of the core needed.
    Other(Other),
}

/// Another PMU than the core's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    /// The name, or its start.
    pub name: &'static str,
    /// Set if perf leaves the PMU's events in a group of other PMUs.
    pub is_software: bool,
}

/// Generic hardware events by the perf tool's names:
/// `tools/perf/pmu-events/arch/common/common/legacy-hardware.json`.
const HARDWARE: &[(&str, HardwareId)] = &[
    ("cpu-cycles", HardwareId::CpuCycles),
    ("cycles", HardwareId::CpuCycles),
    ("instructions", HardwareId::Instructions),
    ("cache-references", HardwareId::CacheReferences),
    ("cache-misses", HardwareId::CacheMisses),
    ("branches", HardwareId::BranchInstructions),
    ("branch-instructions", HardwareId::BranchInstructions),
    ("branch-misses", HardwareId::BranchMisses),
    ("bus-cycles", HardwareId::BusCycles),
    ("stalled-cycles-frontend", HardwareId::StalledCyclesFrontend),
    ("idle-cycles-frontend", HardwareId::StalledCyclesFrontend),
    ("stalled-cycles-backend", HardwareId::StalledCyclesBackend),
    ("idle-cycles-backend", HardwareId::StalledCyclesBackend),
    ("ref-cycles", HardwareId::RefCpuCycles),
];

/// Software events: `software.json` in the same directory.
#[rustfmt::skip]
const SOFTWARE: &[&str] = &[
    "cpu-clock", "task-clock", "faults", "page-faults", "context-switches", "cs", "cpu-migrations",
    "migrations", "minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy",
    "bpf-output", "cgroup-switches",
];

/// The tool's own events: `tool.json` there, without those of other machines.
#[rustfmt::skip]
const TOOL: &[&str] = &[
    "duration_time", "user_time", "system_time", "has_pmem", "num_cores", "num_cpus", "num_cpus_online", "num_dies",
    "num_packages", "smt_on", "system_tsc_freq", "core_wide", "target_cpu",
];

/// Other PMUs: the name or its start, whether perf leaves its events in groups of other PMUs, its
/// fields and its events. Fields and events are empty if they differ between machines.
#[rustfmt::skip]
const OTHERS: &[(&str, bool, &[&str], &[&str])] = &[
    ("msr", true, &["event"],
        &["tsc", "aperf", "mperf", "pperf", "smi", "ptsc", "irperf", "cpu_thermal_margin"]),
    ("kprobe", true, &["retprobe"], &[]),
    ("uprobe", true, &["retprobe", "ref_ctr_offset"], &[]),
    ("power", false, &["event"], &["energy-cores", "energy-pkg", "energy-ram", "energy-gpu", "energy-psys"]),
    ("cstate_core", false, &["event"], &["c1-residency", "c3-residency", "c6-residency", "c7-residency"]),
    ("cstate_pkg", false, &["event"], &["c2-residency", "c3-residency", "c6-residency", "c7-residency",
        "c8-residency", "c9-residency", "c10-residency"]),
    ("uncore", false, &[], &[]), ("amd_df", false, &[], &[]), ("amd_l3", false, &[], &[]),
    ("amd_umc", false, &[], &[]), ("amd_iommu", false, &[], &[]), ("ibs_op", false, &[], &[]),
    ("ibs_fetch", false, &[], &[]), ("intel_pt", false, &[], &[]), ("intel_bts", false, &[], &[]),
    ("i915", false, &[], &[]), ("xe_", false, &[], &[]), ("iommu", false, &[], &[]), ("dmar", false, &[], &[]),
    ("hwmon", false, &[], &[]), ("drm_", false, &[], &[]),
];

/// Names of the caches and the numbers of their operations. The index of a cache, an operation or a
/// result is its number in `attr.config`.
#[rustfmt::skip]
const CACHES: &[(&[&str], &[u64])] = &[
    (&["L1-dcache", "l1-d", "l1d", "L1-data"], &[0, 1, 2]),
    (&["L1-icache", "l1-i", "l1i", "L1-instruction"], &[0, 2]),
    (&["LLC", "L2"], &[0, 1, 2]),
    (&["dTLB", "d-tlb", "Data-TLB"], &[0, 1, 2]),
    (&["iTLB", "i-tlb", "Instruction-TLB"], &[0]),
    (&["branch", "branches", "bpu", "btb", "bpc"], &[0]),
    (&["node"], &[0, 1, 2]),
];
#[rustfmt::skip]
const OPERATIONS: &[&[&str]] = &[
    &["load", "loads", "read"],
    &["store", "stores", "write"],
    &["prefetch", "prefetches", "speculative-read", "speculative-load"],
];
const OUTCOMES: &[&[&str]] = &[&["refs", "Reference", "ops", "access"], &["misses", "miss"]];

/// Returns every name of a generic cache event with its `attr.config`.
fn cache_events() -> impl Iterator<Item = (String, u64)> {
    let outcomes = || {
        let all = (0u64..).zip(OUTCOMES);
        all.flat_map(|(outcome, names)| names.iter().map(move |name| (*name, outcome << 16)))
    };
    let caches = (0u64..).zip(CACHES);
    caches.flat_map(move |(cache, (names, possible))| {
        names.iter().flat_map(move |name| {
            let alone = [((*name).to_owned(), cache)].into_iter();
            let by_outcome =
                outcomes().map(move |(word, outcome)| (format!("{name}-{word}"), cache | outcome));
            let operations = possible.iter().flat_map(move |operation| {
                let words = OPERATIONS
                    .get(*operation as usize)
                    .into_iter()
                    .flat_map(|all| *all);
                words.flat_map(move |word| {
                    let start = format!("{name}-{word}");
                    let config = cache | (operation << 8);
                    let with_outcome = outcomes().map({
                        let start = start.clone();
                        move |(word, outcome)| (format!("{start}-{word}"), config | outcome)
                    });
                    [(start, config)].into_iter().chain(with_outcome)
                })
            });
            alone.chain(operations).chain(by_outcome)
        })
    })
}

/// Resolves a parsed list of events for a command on a machine, and regroups its events.
///
/// # Errors
///
/// The first unknown name or term.
pub fn resolve(
    groups: &[syntax::Group],
    machine: &Machine,
    tool: Tool,
) -> Result<Vec<Wanted>, Mistake> {
    let groups: Result<Vec<Wanted>, Mistake> = groups
        .iter()
        .map(|group| resolve_group(group, machine, tool))
        .collect();
    Ok(regroup(groups?, machine))
}

/// Parses and resolves a list of events for perf stat on a machine.
///
/// # Errors
///
/// The first mistake in the text.
pub fn parse(text: &str, machine: &Machine) -> Result<Vec<Wanted>, Mistake> {
    parse_for(text, machine, Tool::Stat)
}

/// Parses and resolves a list of events for a command on a machine.
///
/// # Errors
///
/// The first mistake in the text.
pub fn parse_for(text: &str, machine: &Machine, tool: Tool) -> Result<Vec<Wanted>, Mistake> {
    resolve(&syntax::parse(text)?, machine, tool)
}

fn resolve_group(group: &syntax::Group, machine: &Machine, tool: Tool) -> Result<Wanted, Mistake> {
    let mut events = Vec::new();
    for (index, event) in group.events.iter().enumerate() {
        let modifiers = event.modifiers.merged(&group.modifiers);
        if modifiers.precise > 3 {
            let at = group.modifiers.at.clone().unwrap_or(event.at.clone());
            return Err(Mistake::new(at, "at most three p are allowed"));
        }
        // The modifiers D and e after braces apply to the leader only.
        let is_leader = index == 0;
        let pinned = event.modifiers.pinned || (group.modifiers.pinned && is_leader);
        let exclusive = event.modifiers.exclusive || (group.modifiers.exclusive && is_leader);
        let terms = event.terms.as_deref().unwrap_or_default();
        let mut kind = kind_of(event, machine, tool)?;
        if let Kind::Hardware(attr) = &mut kind {
            if tool == Tool::Record || attr.has_extensions() {
                // Plan events with rpmu's own fields as sampled; perf stat would not sample them.
                (attr.sample_period, attr.freq) = sampled(terms, tool);
            }
            apply(attr, &modifiers, machine, tool);
        }
        events.push(WantedEvent {
            name: event.text.clone(),
            alone: alone(event, group, (pinned, exclusive)),
            label: label(terms),
            kind,
            pinned,
            exclusive,
            stays: modifiers.stays,
        });
    }
    let letters: String = group.modifiers.letters();
    Ok(Wanted {
        events,
        braces: group.braces,
        suffix: if letters.is_empty() {
            letters
        } else {
            format!(":{letters}")
        },
        weak: group.modifiers.weak,
    })
}

/// Returns the event as it must be written outside of its group. The flags are set if it is pinned
/// and exclusive.
fn alone(
    event: &syntax::Event,
    group: &syntax::Group,
    (pinned, exclusive): (bool, bool),
) -> String {
    let mut modifiers = event.modifiers.merged(&group.modifiers);
    (modifiers.pinned, modifiers.exclusive) = (pinned, exclusive);
    modifiers.weak = false;
    let end = event
        .modifiers
        .at
        .as_ref()
        .map_or(event.at.end, |at| at.start);
    let name = event
        .text
        .get(..end - event.at.start)
        .unwrap_or(&event.text);
    let name = name.trim_end().trim_end_matches(':').trim_end();
    match (modifiers.letters().as_str(), name.ends_with('/')) {
        ("", _) => name.to_owned(),
        (letters, true) => format!("{name}{letters}"),
        (letters, false) => format!("{name}:{letters}"),
    }
}

fn apply(attr: &mut Attributes, modifiers: &Modifiers, machine: &Machine, tool: Tool) {
    if modifiers.user || modifiers.kernel || modifiers.hypervisor {
        attr.exclude_user = !modifiers.user;
        attr.exclude_kernel = !modifiers.kernel;
    }
    attr.exclude_host = modifiers.guest && !modifiers.host;
    attr.precise_ip = modifiers.precise;
    if modifiers.retire_latency {
        attr.precise_ip = attr.precise_ip.max(1);
    }
    // Perf stat ignores P. Perf record tries the levels, starting with the highest.
    if modifiers.precise_max && tool == Tool::Record {
        let opens = |level: &u8| {
            let attr = Attributes {
                precise_ip: *level,
                ..*attr
            };
            let event = machine.configure(&attr);
            let constraint = event.map(|event| event.constraint(&machine.pmu));
            constraint.is_ok_and(|constraint| !constraint.counters.is_empty())
        };
        attr.precise_ip = (1..=3).rev().find(opens).unwrap_or(0);
    }
}

/// Returns the sample period from the terms, and whether it is a frequency. Without such a term:
/// perf record's default, or 0 for perf stat, which does not sample.
fn sampled(terms: &[Term], tool: Tool) -> (u64, bool) {
    /// Perf record's default.
    const FREQUENCY: u64 = 4000;
    let mut sampled = match tool {
        Tool::Stat => (0, false),
        Tool::Record => (FREQUENCY, true),
    };
    for term in terms.iter().filter(|term| term.kind == TermKind::Keyword) {
        match (term.word.as_str(), &term.value) {
            ("period", Value::Number(period)) => sampled = (*period, false),
            ("freq", Value::Number(frequency)) => sampled = (*frequency, true),
            _ => {}
        }
    }
    sampled
}

fn kind_of(event: &syntax::Event, machine: &Machine, tool: Tool) -> Result<Kind, Mistake> {
    let terms = event.terms.as_deref().unwrap_or_default();
    let numeric = |kind| {
        check_numeric(terms, tool)?;
        let mut attr = match kind {
            Kind::Hardware(attr) => attr,
            other => return Ok(other),
        };
        for (word, config) in [
            ("config", &mut attr.config),
            ("config1", &mut attr.config1),
            ("config2", &mut attr.config2),
            ("config3", &mut attr.config3),
            ("config4", &mut attr.config4),
        ] {
            match last(terms, word) {
                Some(Value::Number(value)) => *config = *value,
                Some(_) => *config = 1,
                None => {}
            }
        }
        Ok(Kind::Hardware(attr))
    };
    let counting = |of, config| Kind::Hardware(Attributes::counting(of, config));
    match &event.body {
        Body::Tracepoint { system, event_at } => {
            if find(system, machine).is_some() || is_pmu(system) {
                let what = format!("unknown modifiers; known are {}", syntax::LETTERS);
                return Err(Mistake::new(event_at.clone(), what));
            }
            check_tracepoint(terms, tool).map(|()| Kind::Software)
        }
        Body::Breakpoint => numeric(Kind::Software),
        Body::Raw(config) => numeric(counting(EventType::Raw, *config)),
        Body::Numeric { kind, config } => match kind {
            0 => numeric(counting(EventType::Hardware, *config)),
            1 | 2 | 5 => numeric(Kind::Software),
            3 => numeric(counting(EventType::HwCache, *config)),
            4 => numeric(counting(EventType::Raw, *config)),
            _ => {
                let what =
                    format!("type {kind} belongs to another PMU; only the core's PMU is planned");
                Err(Mistake::new(event.body_at.clone(), what))
            }
        },
        Body::Name(name) => named(name, event, machine, tool),
    }
}

/// Finds the meaning of a name: before slashes a PMU or an event, otherwise an event.
fn named(
    name: &str,
    event: &syntax::Event,
    machine: &Machine,
    tool: Tool,
) -> Result<Kind, Mistake> {
    let terms = event.terms.as_deref().unwrap_or_default();
    let mut mistake = None;
    if event.terms.is_some() {
        for pmu in pmus(name) {
            match of_pmu(pmu, terms, machine, tool) {
                Ok(kind) => return Ok(kind),
                Err(it) => mistake = mistake.or(Some(it)),
            }
        }
    }
    // As an event, it is added after the other terms.
    let itself = Term {
        word: name.to_owned(),
        kind: TermKind::Name,
        value: Value::Absent,
        at: event.body_at.clone(),
    };
    let with_it: Vec<Term> = terms.iter().cloned().chain([itself]).collect();
    match provider(name, machine) {
        Some(pmu) => of_pmu(pmu, &with_it, machine, tool),
        None => Err(mistake.unwrap_or_else(|| {
            let what = if terms.is_empty() {
                unknown(name, machine)
            } else {
                format!("unknown PMU or event {name}")
            };
            Mistake::new(event.body_at.clone(), what)
        })),
    }
}

/// A PMU of events.
#[derive(Clone, Copy)]
enum Pmu {
    Core,
    Software,
    Tool,
    Tracepoint,
    Breakpoint,
    Other(usize),
}

/// Returns the PMUs with this name, or with names that match it.
fn pmus(name: &str) -> Vec<Pmu> {
    let own = [
        ("cpu", Pmu::Core),
        ("default_core", Pmu::Core),
        ("software", Pmu::Software),
        ("tool", Pmu::Tool),
        ("tracepoint", Pmu::Tracepoint),
        ("breakpoint", Pmu::Breakpoint),
    ];
    let is_it = |pmu: &&(&str, Pmu)| pmu.0 == name || matches_glob(pmu.0, name);
    let own: Vec<Pmu> = own.iter().filter(is_it).map(|pmu| pmu.1).collect();
    let plain = name.trim_matches(|letter: char| "*?[]".contains(letter));
    let likes = |start: &str| {
        let is_instance = plain.strip_prefix(start).is_some_and(|rest| {
            start.ends_with('_') || rest.is_empty() || rest.starts_with(['_', '0', '1'])
        });
        is_instance || matches_glob(start, name)
    };
    let others = (0..OTHERS.len()).filter(|number| likes(OTHERS[*number].0));
    own.into_iter().chain(others.map(Pmu::Other)).collect()
}

/// Returns whether a PMU has this name.
pub(crate) fn is_pmu(name: &str) -> bool {
    !pmus(name).is_empty()
}

/// Returns whether a pattern with `*` and `?` matches a name.
fn matches_glob(name: &str, pattern: &str) -> bool {
    fn matches(name: &[u8], pattern: &[u8]) -> bool {
        match (pattern.first(), name.first()) {
            (None, first) => first.is_none(),
            (Some(b'*'), _) => {
                matches(name, &pattern[1..]) || (!name.is_empty() && matches(&name[1..], pattern))
            }
            (Some(b'?'), Some(_)) => matches(&name[1..], &pattern[1..]),
            (Some(one), Some(other)) => one == other && matches(&name[1..], &pattern[1..]),
            (Some(_), None) => false,
        }
    }
    pattern.contains(['*', '?']) && matches(name.as_bytes(), pattern.as_bytes())
}

/// Finds the PMU that has an event of this name.
fn provider(name: &str, machine: &Machine) -> Option<Pmu> {
    let is_it = |known: &&str| known.eq_ignore_ascii_case(name);
    if alias(name, machine).is_some() {
        return Some(Pmu::Core);
    }
    if SOFTWARE.iter().any(is_it) {
        return Some(Pmu::Software);
    }
    if TOOL.iter().any(is_it) {
        return Some(Pmu::Tool);
    }
    let mut others = OTHERS.iter();
    let number = others.position(|other| other.3.iter().any(is_it))?;
    Some(Pmu::Other(number))
}

/// Resolves the terms of an event of a PMU.
fn of_pmu(pmu: Pmu, terms: &[Term], machine: &Machine, tool: Tool) -> Result<Kind, Mistake> {
    let known = |events: &[&str], term: &Term| {
        let word = match (&term.value, term.word.as_str()) {
            (Value::Absent, word) => word,
            (Value::Word(word), "event") => word,
            _ => return false,
        };
        events.iter().any(|known| known.eq_ignore_ascii_case(word))
    };
    let check = |what: &str, takes: &dyn Fn(&Term) -> bool| {
        for term in terms {
            match term.kind {
                TermKind::Keyword => check_keyword(term, tool)?,
                TermKind::Raw | TermKind::Driver => {}
                TermKind::Name if takes(term) => {}
                TermKind::Name => {
                    let what = format!("the PMU {what} has no event or term {}", term.word);
                    return Err(Mistake::new(term.at.clone(), what));
                }
            }
        }
        Ok(())
    };
    match pmu {
        Pmu::Core => with_terms(terms, machine, tool).map(Kind::Hardware),
        Pmu::Software => check("software", &|term| known(SOFTWARE, term)).map(|()| Kind::Software),
        Pmu::Tool => {
            // Only as tool/slots/ is this event the tool's; slots alone is an event of the core.
            let takes = |term: &Term| known(TOOL, term) || known(&["slots"], term);
            check("tool", &takes).map(|()| Kind::Software)
        }
        Pmu::Tracepoint => check("tracepoint", &|_| false).map(|()| Kind::Software),
        Pmu::Breakpoint => check("breakpoint", &|_| false).map(|()| Kind::Software),
        Pmu::Other(number) => {
            let (name, is_software, fields, events) = OTHERS[number];
            let takes = |term: &Term| {
                fields.is_empty() || fields.contains(&term.word.as_str()) || known(events, term)
            };
            check(name, &takes)?;
            Ok(Kind::Other(Other { name, is_software }))
        }
    }
}

/// Finds an event by name.
pub fn find(name: &str, machine: &Machine) -> Option<Kind> {
    let of_core = |alias: Alias| {
        let mut attr = Attributes::counting(EventType::Raw, 0);
        alias.apply(&mut attr);
        Kind::Hardware(attr)
    };
    match provider(name, machine)? {
        Pmu::Core => alias(name, machine).map(of_core),
        Pmu::Other(number) => {
            let (name, is_software, ..) = OTHERS[number];
            Some(Kind::Other(Other { name, is_software }))
        }
        _ => Some(Kind::Software),
    }
}

/// The meaning of an event name of the core's PMU.
#[derive(Clone, Copy)]
enum Alias {
    /// The bits of `attr.config` and `attr.config1`.
    Bits(u64, u64),
    /// A generic event.
    Generic(EventType, u64),
}

impl Alias {
    fn apply(self, attr: &mut Attributes) {
        match self {
            Self::Bits(config, config1) => {
                attr.config |= config;
                attr.config1 |= config1;
            }
            Self::Generic(event_type, config) => {
                (attr.event_type, attr.config) = (event_type, config);
            }
        }
    }
}

/// Finds an event of the core: in the list, in sysfs, among the generic ones.
fn alias(name: &str, machine: &Machine) -> Option<Alias> {
    if let Some(listed) = machine.list.find(name) {
        return Some(Alias::Bits(listed.config, listed.config1));
    }
    if let Some((config, config1)) = in_sysfs(name, machine) {
        return Some(Alias::Bits(config, config1));
    }
    let mut hardware = HARDWARE.iter();
    if let Some((_, id)) = hardware.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        return Some(Alias::Generic(EventType::Hardware, *id as u64));
    }
    let (_, config) = cache_events().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(Alias::Generic(EventType::HwCache, config))
}

/// Returns a name that the perf tool accepts for an event with these attributes.
pub fn name_of(attr: &Attributes, machine: &Machine) -> String {
    let config = attr.config;
    let known = match attr.event_type {
        EventType::Hardware => {
            let mut names = HARDWARE.iter();
            let is_it = |it: &&(&str, HardwareId)| it.1 as u64 == config && it.0 != "cpu-cycles";
            names.find(is_it).map(|(name, _)| (*name).to_owned())
        }
        EventType::HwCache => cache_name(config),
        EventType::Raw | EventType::Other => {
            let mut events = machine.list.events();
            let is_it = |it: &Listed| (it.config, it.config1) == (config, attr.config1);
            let listed = events.find(is_it).map(|it| it.name);
            let mut own = sysfs_names(machine)
                .filter(|name| in_sysfs(name, machine) == Some((config, attr.config1)));
            let name = listed.or_else(|| own.next());
            name.map(str::to_owned)
        }
    };
    known.unwrap_or_else(|| match (attr.event_type, attr.config1) {
        (EventType::Hardware, _) => format!("0:{config:#x}"),
        (EventType::HwCache, _) => format!("3:{config:#x}"),
        (_, 0) => format!("r{config:x}"),
        (_, config1) => format!("cpu/config={config:#x},config1={config1:#x}/"),
    })
}

/// Returns the usual name of a generic cache event: LLC-loads, LLC-load-misses.
fn cache_name(config: u64) -> Option<String> {
    let part = |shift: u32| usize::try_from((config >> shift) & 0xff).ok();
    let cache = CACHES.get(part(0)?)?.0.first()?;
    let words = OPERATIONS.get(part(8)?)?;
    match part(16)? {
        0 => Some(format!("{cache}-{}", words.get(1)?)),
        1 => Some(format!("{cache}-{}-misses", words.first()?)),
        _ => None,
    }
}

/// Returns the names of the topdown events of sysfs.
fn topdown_names(machine: &Machine) -> impl Iterator<Item = &'static str> {
    let files = machine.pmu.model.topdown_files.iter();
    // The other files have scales and units.
    files
        .map(|file| file.name)
        .filter(|name| !name.contains('.'))
}

/// Returns the names in sysfs' `events/` other than generic events: events of topdown, of TSX, of
/// loads and of stores.
fn sysfs_names(machine: &Machine) -> impl Iterator<Item = &'static str> {
    let (model, capabilities) = (&machine.pmu.model, &machine.pmu.capabilities);
    let (rtm, precise) = (capabilities.rtm, capabilities.pebs_format.is_some());
    let tsx = model.tsx_files.iter().filter(move |_| rtm);
    let memory = model.memory_files.iter();
    let memory = memory.filter(move |(name, _)| precise || *name == memory_files::AUXILIARY);
    topdown_names(machine).chain(tsx.chain(memory).map(|(name, _)| *name))
}

/// Finds the bits of `attr.config` and `attr.config1` of an event of sysfs.
fn in_sysfs(name: &str, machine: &Machine) -> Option<(u64, u64)> {
    let is_it = |known: &str| known.eq_ignore_ascii_case(name);
    let mut ids = HardwareId::ALL.into_iter();
    if let Some(id) = ids.find(|id| is_it(id.sysfs_name())) {
        return machine.pmu.hardware_event(id).map(|it| (it.bits(), 0));
    }
    let known = sysfs_names(machine).find(|known| is_it(known))?;
    let model = &machine.pmu.model;
    let mut topdown = model.topdown_files.iter();
    let threads = if machine.smt == Smt::Off { 1 } else { 2 };
    let mut others = model.tsx_files.iter().chain(model.memory_files);
    let text = match topdown.find(|file| file.name == known) {
        Some(file) => file.text(threads),
        None => others.find(|file| file.0 == known)?.1,
    };
    let mut bits = (0, 0);
    for term in text.trim().split(',') {
        let (word, value) = term.split_once('=').unwrap_or((term, "1"));
        if word == "ldlat" {
            bits.1 |= number(value)?;
        } else {
            let (_, shift, _) = FIELDS.iter().find(|field| field.0 == word)?;
            bits.0 |= number(value)? << shift;
        }
    }
    Some(bits)
}

/// The fields of a raw event's `attr.config`: name, lowest bit, number of bits.
const FIELDS: &[(&str, u32, u32)] = &[
    ("event", 0, 8),
    ("umask", 8, 8),
    ("edge", 18, 1),
    ("pc", 19, 1),
    ("any", 21, 1),
    ("inv", 23, 1),
    ("cmask", 24, 8),
    ("in_tx", 32, 1),
    ("in_tx_cp", 33, 1),
];

/// The fields of `attr.config3`, which are this driver's own, like bit 0 of `attr.config4`: name,
/// lowest bit, number of bits.
const OWN_FIELDS: &[(&str, u32, u32)] = &[("rand_mask", 0, 32), ("rand_seed", 32, 32)];
/// The field of `attr.config4`.
const SWITCH: &str = "switch";

/// Returns whether the PMU has the field on this machine. It always has rpmu's own fields, which
/// sysfs shows on request only.
fn has_field(name: &str, machine: &Machine) -> bool {
    let mut own = OWN_FIELDS.iter().map(|field| field.0).chain([SWITCH]);
    own.any(|own| own == name) || machine.pmu.fields().any(|field| field.0 == name)
}

/// Resolves the terms of an event of the core. First, generic events and terms for a whole word
/// (`config=` to `config4=`, `rHEX`) are assigned in the order of the terms. Then the bits of names
/// and fields are set, and none is cleared.
fn with_terms(terms: &[Term], machine: &Machine, tool: Tool) -> Result<Attributes, Mistake> {
    let mut attr = Attributes::counting(EventType::Raw, 0);
    let mut names: Vec<Alias> = Vec::new();
    let mut event: Option<&Term> = None;
    for term in terms {
        if stands_for_event(term, machine) && event.replace(term).is_some() {
            return Err(Mistake::new(
                term.at.clone(),
                "a second event between the slashes",
            ));
        }
        match (term.kind, &term.value) {
            (TermKind::Keyword, _) if term.word.starts_with("legacy-") => {
                legacy(term)?.apply(&mut attr);
            }
            (TermKind::Keyword, value) => {
                check_keyword(term, tool)?;
                let value = match value {
                    Value::Number(number) => *number,
                    _ => 1,
                };
                match term.word.as_str() {
                    "config" => attr.config = value,
                    "config1" => attr.config1 = value,
                    "config2" => attr.config2 = value,
                    "config3" => attr.config3 = value,
                    "config4" => attr.config4 = value,
                    _ => {}
                }
            }
            (TermKind::Raw, _) => match alias(&term.word, machine) {
                Some(alias) => names.push(alias),
                None => attr.config = raw_term(&term.word).unwrap_or_default(),
            },
            (TermKind::Driver, _) => {}
            (TermKind::Name, Value::Absent) => {
                let has_it = field_bits(&term.word, machine).is_none();
                match alias(&term.word, machine).filter(|_| has_it) {
                    Some(alias @ Alias::Generic(..)) => alias.apply(&mut attr),
                    Some(alias) => names.push(alias),
                    None => set(&mut attr.clone(), term, 1, machine)?,
                }
            }
            (TermKind::Name, Value::Word(word)) => {
                let alias =
                    alias(word, machine).filter(|_| term.word.eq_ignore_ascii_case("event"));
                match alias {
                    Some(alias @ Alias::Generic(..)) => alias.apply(&mut attr),
                    Some(alias) => names.push(alias),
                    None if field_bits(&term.word, machine).is_none() => {
                        return Err(no_term(term, machine));
                    }
                    None => return Err(Mistake::new(term.at.clone(), "not a number")),
                }
            }
            (TermKind::Name, Value::Number(_)) => {}
        }
    }
    names.into_iter().for_each(|alias| alias.apply(&mut attr));
    for term in terms.iter().filter(|term| term.kind == TermKind::Name) {
        let is_field = field_bits(&term.word, machine).is_some();
        match &term.value {
            Value::Number(value) => set(&mut attr, term, *value, machine)?,
            Value::Absent if is_field => set(&mut attr, term, 1, machine)?,
            _ => {}
        }
    }
    Ok(attr)
}

/// Returns whether a term stands for an event; perf accepts only one such term.
fn stands_for_event(term: &Term, machine: &Machine) -> bool {
    match (term.kind, &term.value) {
        (TermKind::Keyword, _) => term.word.starts_with("legacy-"),
        (TermKind::Raw, _) => alias(&term.word, machine).is_some(),
        (TermKind::Name, Value::Absent) => {
            field_bits(&term.word, machine).is_none() && alias(&term.word, machine).is_some()
        }
        (TermKind::Name, Value::Word(word)) => {
            term.word.eq_ignore_ascii_case("event") && alias(word, machine).is_some()
        }
        _ => false,
    }
}

/// Returns the generic event of a term `legacy-…-config`, which perf uses in its own lists.
fn legacy(term: &Term) -> Result<Alias, Mistake> {
    let value = match term.value {
        Value::Number(value) => value,
        Value::Absent => 1,
        Value::Word(_) => return Err(Mistake::new(term.at.clone(), "not a number")),
    };
    let parts = [value & 0xff, (value >> 8) & 0xff, value >> 16];
    match term.word.as_str() {
        "legacy-hardware-config" if HardwareId::from_config(value).is_some() => {
            Ok(Alias::Generic(EventType::Hardware, value))
        }
        "legacy-cache-config" if parts[0] < 7 && parts[1] < 3 && parts[2] < 2 => {
            Ok(Alias::Generic(EventType::HwCache, value))
        }
        _ => Err(Mistake::new(term.at.clone(), "too big")),
    }
}

/// Returns the number of bits of a field, if the PMU has it on this machine.
fn field_bits(word: &str, machine: &Machine) -> Option<u32> {
    let of_extra_register = match word {
        "offcore_rsp" | "snoop_rsp" => Some(64),
        "ldlat" => Some(16),
        "frontend" => Some(24),
        SWITCH => Some(1),
        // Bits 0-7 and 32-35.
        "event" if machine.pmu.capabilities.interface.is_amd() => Some(12),
        _ => None,
    };
    let mut fields = FIELDS.iter().chain(OWN_FIELDS);
    let bits = of_extra_register.or_else(|| Some(fields.find(|field| field.0 == word)?.2));
    bits.filter(|_| has_field(word, machine))
}

/// Sets the bits of the field of a term.
fn set(attr: &mut Attributes, term: &Term, value: u64, machine: &Machine) -> Result<(), Mistake> {
    let word = term.word.as_str();
    let Some(bits) = field_bits(word, machine) else {
        return Err(no_term(term, machine));
    };
    if term.value == Value::Absent && bits > 1 {
        return Err(Mistake::new(
            term.at.clone(),
            format!("{word} needs a value"),
        ));
    }
    let value = in_bits(value, bits, &term.at)?;
    match word {
        SWITCH => attr.config4 |= value,
        "offcore_rsp" | "ldlat" | "frontend" | "snoop_rsp" => attr.config1 |= value,
        "event" if machine.pmu.capabilities.interface.is_amd() => {
            attr.config |= EventSelect::amd_event(value as u16, 0).bits();
        }
        _ if OWN_FIELDS.iter().any(|field| field.0 == word) => {
            set_field(&mut attr.config3, OWN_FIELDS, word, value);
        }
        _ => set_field(&mut attr.config, FIELDS, word, value),
    }
    Ok(())
}

/// Sets the bits of a field of `config`.
fn set_field(config: &mut u64, fields: &[(&str, u32, u32)], word: &str, value: u64) {
    if let Some((_, shift, _)) = fields.iter().find(|field| field.0 == word) {
        *config |= value << shift;
    }
}

fn raw_term(word: &str) -> Option<u64> {
    let digits = word.strip_prefix('r')?;
    u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
}

fn in_bits(value: u64, bits: u32, at: &Span) -> Result<u64, Mistake> {
    if bits < 64 && value >> bits != 0 {
        let what = format!("too large for {bits} bits: at most {}", (1u64 << bits) - 1);
        return Err(Mistake::new(at.clone(), what));
    }
    Ok(value)
}

fn no_term(term: &Term, machine: &Machine) -> Mistake {
    let fields = FIELDS.iter().map(|field| field.0);
    let fields = fields.chain(["offcore_rsp", "ldlat", "frontend", "snoop_rsp"]);
    let fields = fields.chain(OWN_FIELDS.iter().map(|field| field.0));
    let fields = fields.chain([SWITCH]);
    let known: Vec<&str> = fields.filter(|name| has_field(name, machine)).collect();
    let what = format!(
        "unknown term {} on this model; known are {}, config, config1, name and event names",
        term.word,
        known.join(", ")
    );
    Mistake::new(term.at.clone(), what)
}

/// Returns the message for an unknown event, with similar names.
fn unknown(name: &str, machine: &Machine) -> String {
    let lower = name.to_lowercase();
    let generic = HARDWARE
        .iter()
        .map(|(name, _)| *name)
        .chain(SOFTWARE.iter().copied())
        .chain(TOOL.iter().copied());
    let listed = machine.list.events().map(|event| event.name);
    let listed = listed.chain(sysfs_names(machine));
    let names = generic.map(str::to_owned).chain(listed.map(str::to_owned));
    let names = names.chain(cache_events().map(|(name, _)| name));
    let mut near: Vec<(f64, String)> = names
        .map(|known| (strsim::jaro_winkler(&lower, &known.to_lowercase()), known))
        .filter(|(likeness, _)| *likeness > 0.8)
        .collect();
    near.sort_by(|one, other| other.0.total_cmp(&one.0));
    let near: Vec<&str> = near.iter().take(5).map(|(_, name)| name.as_str()).collect();
    let model = machine.list.name;
    if near.is_empty() {
        format!("unknown event {name} on {model}; `rpmu-plan list -m {model}` lists all")
    } else {
        format!(
            "unknown event {name} on {model}; similar names: {}",
            near.join(", ")
        )
    }
}

/// Returns the names of all hardware events of a machine: generic events, the list's and sysfs'.
pub fn all(machine: &Machine) -> impl Iterator<Item = String> {
    let hardware = HARDWARE.iter().map(|(name, _)| (*name).to_owned());
    let caches = cache_events().filter(|(name, _)| {
        // Perf marks the other names as deprecated.
        ["L1-", "LLC-", "dTLB-", "iTLB-", "branch-", "node-"]
            .iter()
            .any(|start| name.starts_with(start))
            && ["loads", "stores", "prefetches", "misses"]
                .iter()
                .any(|end| name.ends_with(end))
            && !name.contains("data-")
            && !name.contains("instruction-")
            && !name.ends_with("es-misses")
            && !name.ends_with("s-misses")
    });
    let listed = machine.list.events().map(|event| event.name);
    let listed = listed.chain(sysfs_names(machine)).map(str::to_owned);
    hardware.chain(caches.map(|(name, _)| name)).chain(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine::new("haswell", Smt::On, false).unwrap()
    }

    fn attributes(text: &str) -> Attributes {
        attributes_for(text, Tool::Stat)
    }

    fn attributes_for(text: &str, tool: Tool) -> Attributes {
        match parse_for(text, &machine(), tool)
            .unwrap()
            .remove(0)
            .events
            .remove(0)
            .kind
        {
            Kind::Hardware(attr) => attr,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn generic_cache_names() {
        for (name, config) in [
            ("LLC-loads", 0x2),
            ("LLC-load-misses", 0x1_0002),
            ("LLC-stores", 0x102),
            ("LLC-store-misses", 0x1_0102),
            ("L1-icache-load-misses", 0x1_0001),
            ("L1-dcache-stores", 0x100),
            ("dTLB-load-misses", 0x1_0003),
            ("iTLB-loads", 0x4),
            ("branch-loads", 0x5),
            ("node-prefetches", 0x206),
            ("l1d", 0x0),
        ] {
            let attr = attributes(name);
            assert_eq!(
                (attr.event_type, attr.config),
                (EventType::HwCache, config),
                "{name}"
            );
        }
        // Generic hardware events whose names look like cache events.
        assert_eq!(attributes("branches").event_type, EventType::Hardware);
        assert_eq!(
            attributes("idle-cycles-backend").event_type,
            EventType::Hardware
        );
        // Perf prefers the definition in sysfs.
        let misses = attributes("branch-misses");
        assert_eq!((misses.event_type, misses.config), (EventType::Raw, 0xc5));
    }

    #[test]
    fn terms_change_what_a_name_means() {
        for (text, config, config1) in [
            ("cpu/event=0x3c,umask=1/", 0x13c, 0),
            ("cpu/event=0xc0,cmask=2,inv,edge=1/", 0x284_00c0, 0),
            ("cpu/l1d_pend_miss.pending,cmask=3/", 0x300_0148, 0),
            ("l1d_pend_miss.pending/cmask=3/", 0x300_0148, 0),
            ("cpu/r1b7,offcore_rsp=0x10001/", 0x1b7, 0x1_0001),
            ("cpu/config=0x3c,event=0xc0/", 0xfc, 0),
            ("cpu/mem-loads,ldlat=30/", 0x1cd, 31),
            ("cpu/mem-stores/P", 0x82d0, 0),
            ("r1b7/config1=0x11/", 0x1b7, 0x11),
            ("cpu/config=0xc4,name=x,period=1000/", 0xc4, 0),
            ("4:0x148:u", 0x148, 0),
        ] {
            let attr = attributes(text);
            assert_eq!((attr.config, attr.config1), (config, config1), "{text}");
        }
    }

    #[test]
    fn own_fields() {
        let attr = attributes("cpu/event=0xc0,period=100000,rand_mask=0xfff,rand_seed=7/");
        assert_eq!(
            (attr.config3, attr.sample_period, attr.freq),
            ((7 << 32) | 0xfff, 100_000, false)
        );
        let attr = attributes_for("cpu/event=0xc0,freq=1000,config3=1/", Tool::Record);
        assert_eq!(
            (attr.config3, attr.sample_period, attr.freq),
            (1, 1000, true)
        );
        let attr = attributes("cpu/event=0xc0,period=1000,switch/");
        assert_eq!((attr.config4, attr.sample_period), (1, 1000));
        // Without one of rpmu's fields, the plan is perf stat's.
        assert_eq!(attributes("cpu/event=0xc0,period=1000/").sample_period, 0);
    }

    #[test]
    fn perf_record_samples() {
        let attributes = |text| attributes_for(text, Tool::Record);
        let attr = attributes("cycles/call-graph=fp/");
        assert_eq!((attr.sample_period, attr.freq), (4000, true));
        let attr = attributes("cpu/cycles,period=1000/");
        assert_eq!((attr.sample_period, attr.freq), (1000, false));
        assert_eq!(attributes("cpu/mem-loads,ldlat=30/P").precise_ip, 3);
        assert_eq!(attributes("cycles:P").precise_ip, 3);
        let zen = Machine::new("zen4", Smt::On, false).unwrap();
        let groups = parse_for("cycles:P", &zen, Tool::Record).unwrap();
        let Kind::Hardware(attr) = groups[0].events[0].kind else {
            panic!()
        };
        assert_eq!(attr.precise_ip, 0);
        // Perf stat ignores P.
        assert_eq!(super::tests::attributes("cpu/mem-loads/P").precise_ip, 0);
    }

    #[test]
    fn modifiers_become_attributes() {
        let attr = attributes("cycles:u");
        assert!(attr.exclude_kernel && !attr.exclude_user);
        assert!(attributes("cycles:G").exclude_host);
        assert_eq!(attributes("cycles:pp").precise_ip, 2);
        let groups = parse("{cycles:k,instructions}:uD", &machine()).unwrap();
        let events = &groups[0].events;
        assert!(events[0].pinned && !events[1].pinned);
        let Kind::Hardware(attr) = events[0].kind else {
            panic!()
        };
        assert!(!attr.exclude_kernel && !attr.exclude_user);
    }

    #[test]
    fn mistakes() {
        for (text, at, word) in [
            ("l1d_pend_mis.pending", 0..20, "l1d_pend_miss.pending"),
            ("cycles,qqqqqq", 7..13, "rpmu-plan list"),
            ("cpu/event=0x100/", 4..15, "255"),
            ("cpu/frontend=1/", 4..14, "unknown term"),
            ("cpu/in_tx/", 4..9, "unknown term"),
            ("cpu/umask=x/", 4..11, "not a number"),
            ("cpu/event/", 4..9, "needs a value"),
            ("cpu/cycles,instructions/", 11..23, "second event"),
            ("cpu/cycles,freq=100/", 11..19, "--record"),
            ("r1b7/umask=1/", 5..12, "needs a PMU"),
            ("cycles:z", 7..8, "unknown modifiers"),
            ("uncoree/event=1/", 0..7, "unknown PMU"),
            ("9:1", 0..3, "another PMU"),
        ] {
            let Err(mistake) = parse(text, &machine()) else {
                panic!("{text} is accepted")
            };
            assert_eq!(mistake.at, at, "{text}");
            assert!(mistake.what.contains(word), "{text}: {}", mistake.what);
        }
    }

    #[test]
    fn who_counts() {
        let kind = |text: &str| {
            let mut groups = parse(text, &machine()).unwrap();
            groups.remove(0).events.remove(0).kind
        };
        for text in [
            "duration_time",
            "tool/user_time/",
            "software/faults/",
            "sched:*",
            "printk:console",
            "mem:0x1000:rw",
            "1:2",
        ] {
            assert!(matches!(kind(text), Kind::Software), "{text}");
        }
        for text in ["msr/tsc/", "tsc", "uncore_imc_0/event=4/", "energy-pkg"] {
            assert!(matches!(kind(text), Kind::Other(_)), "{text}");
        }
        for text in ["default_core/cycles/", "cp*/cycles/", "cycles:b"] {
            assert!(matches!(kind(text), Kind::Hardware(_)), "{text}");
        }
    }

    #[test]
    fn events_outside_of_their_group() {
        let groups = parse("{cycles:u,cpu/event=1/k,faults}:DWp,x:u", &machine());
        assert!(groups.is_err());
        let groups = parse("{cycles:u,cpu/event=1/k,faults}:DWk", &machine()).unwrap();
        let alone: Vec<&str> = groups[0]
            .events
            .iter()
            .map(|it| it.alone.as_str())
            .collect();
        assert_eq!(alone, ["cycles:ukD", "cpu/event=1/k", "faults:k"]);
        let groups = parse("{cycles,faults}:e", &machine()).unwrap();
        let alone: Vec<_> = groups[0].events.iter().map(|it| &it.alone).collect();
        assert_eq!(alone, ["cycles:e", "faults"]);
    }

    #[test]
    fn names_of_sysfs() {
        // With two threads per core, AnyThread is set.
        assert_eq!(attributes("topdown-total-slots").config, 0x20_003c);
        let machine = Machine::new("icx", Smt::On, false).unwrap();
        let retiring = Attributes::counting(EventType::Raw, 0x8000);
        assert_eq!(name_of(&retiring, &machine), "topdown-retiring");
        let machine = Machine::new("spr", Smt::On, false).unwrap();
        let Some(Kind::Hardware(auxiliary)) = find("mem-loads-aux", &machine) else {
            panic!()
        };
        assert_eq!(auxiliary.config, 0x8203);
        let Err(mistake) = parse("topdown-retired", &machine) else {
            panic!()
        };
        assert!(
            mistake.what.contains("topdown-retiring"),
            "{}",
            mistake.what
        );
    }
}
