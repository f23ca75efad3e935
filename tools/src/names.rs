// SPDX-License-Identifier: GPL-2.0

//! Event names: from parsed text to the attributes for perf_event_open.
//!
//! Resolves names as the perf tool does, ignoring case: generic names, software events, the model's
//! list, sysfs (`tools/perf/util/parse-events.c`, `tools/perf/pmu-events/make_legacy_cache.py`).

use crate::data::Listed;
use crate::logic::model::HardwareId;
use crate::logic::open::attr::{Attributes, EventType};
use crate::logic::regs::event_select::EventSelect;
use crate::logic::sched::extra_register::ExtraRegister;
use crate::machine::{Machine, Smt};
use crate::regroup::regroup;
use crate::syntax::{self, number, Body, Mistake, Modifiers, Span, Term};

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
    /// The same event outside of its group: with the group's modifiers.
    pub alone: String,
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

/// Software events and tool events: `software.json` and `tool.json` in the same directory.
#[rustfmt::skip]
const SOFTWARE: &[&str] = &[
    "cpu-clock", "task-clock", "faults", "page-faults", "context-switches", "cs", "cpu-migrations",
    "migrations", "minor-faults", "major-faults", "alignment-faults", "emulation-faults", "dummy",
    "bpf-output", "cgroup-switches", "duration_time", "user_time", "system_time",
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

/// Resolves a parsed list of events on a machine, and regroups its topdown events.
///
/// # Errors
///
/// The first unknown name or term.
pub fn resolve(groups: &[syntax::Group], machine: &Machine) -> Result<Vec<Wanted>, Mistake> {
    let groups: Result<Vec<Wanted>, Mistake> = groups
        .iter()
        .map(|group| resolve_group(group, machine))
        .collect();
    Ok(regroup(groups?, machine))
}

/// Parses and resolves a list of events on a machine.
///
/// # Errors
///
/// The first mistake in the text.
pub fn parse(text: &str, machine: &Machine) -> Result<Vec<Wanted>, Mistake> {
    resolve(&syntax::parse(text)?, machine)
}

fn resolve_group(group: &syntax::Group, machine: &Machine) -> Result<Wanted, Mistake> {
    let mut events = Vec::new();
    for (index, event) in group.events.iter().enumerate() {
        let modifiers = event.modifiers.merged(&group.modifiers);
        let is_leader = index == 0;
        let mut kind = kind_of(event, machine)?;
        if let Kind::Hardware(attr) = &mut kind {
            apply(attr, &modifiers);
        }
        events.push(WantedEvent {
            name: event.text.clone(),
            alone: alone(event, group),
            kind,
            // After braces, the modifier applies to the leader only.
            pinned: event.modifiers.pinned || (group.modifiers.pinned && is_leader),
            exclusive: event.modifiers.exclusive || (group.modifiers.exclusive && is_leader),
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

/// Returns the event as it has to be written outside of its group.
fn alone(event: &syntax::Event, group: &syntax::Group) -> String {
    let mut modifiers = event.modifiers.merged(&group.modifiers);
    (modifiers.pinned, modifiers.weak) = (event.modifiers.pinned, false);
    let end = event
        .modifiers
        .at
        .as_ref()
        .map_or(event.at.end, |at| at.start);
    let name = event
        .text
        .get(..end - event.at.start)
        .unwrap_or(&event.text);
    let name = name.trim_end_matches(':');
    match (modifiers.letters().as_str(), name.ends_with('/')) {
        ("", _) => name.to_owned(),
        (letters, true) => format!("{name}{letters}"),
        (letters, false) => format!("{name}:{letters}"),
    }
}

fn apply(attr: &mut Attributes, modifiers: &Modifiers) {
    if modifiers.user || modifiers.kernel || modifiers.hypervisor {
        attr.exclude_user = !modifiers.user;
        attr.exclude_kernel = !modifiers.kernel;
    }
    attr.exclude_host = modifiers.guest && !modifiers.host;
    // Perf stat ignores P, which is for sampling.
    attr.precise_ip = modifiers.precise;
}

fn kind_of(event: &syntax::Event, machine: &Machine) -> Result<Kind, Mistake> {
    let terms = event.terms.as_deref().unwrap_or_default();
    let raw = |config| Attributes::counting(EventType::Raw, config);
    let kind = match &event.body {
        Body::Tracepoint => Kind::Software,
        Body::Raw(config) => Kind::Hardware(raw(*config)),
        Body::Numeric { kind, config } => match kind {
            0 => Kind::Hardware(Attributes::counting(EventType::Hardware, *config)),
            1 | 2 => Kind::Software,
            3 => Kind::Hardware(Attributes::counting(EventType::HwCache, *config)),
            4 => Kind::Hardware(raw(*config)),
            _ => {
                let what =
                    format!("type {kind} belongs to another PMU; only the core's PMU is planned");
                return Err(Mistake::new(event.body_at.clone(), what));
            }
        },
        Body::Name(name) if name == "cpu" && event.terms.is_some() => {
            return Ok(Kind::Hardware(with_terms(raw(0), terms, machine)?));
        }
        Body::Name(name) => match find(name, machine) {
            Some(kind) => kind,
            None => {
                let what = if terms.is_empty() {
                    unknown(name, machine)
                } else {
                    format!("unknown PMU or event {name}; only the PMU cpu is planned")
                };
                return Err(Mistake::new(event.body_at.clone(), what));
            }
        },
    };
    match kind {
        Kind::Hardware(attr) => Ok(Kind::Hardware(with_terms(attr, terms, machine)?)),
        Kind::Software => Ok(kind),
    }
}

/// Finds an event by name.
pub fn find(name: &str, machine: &Machine) -> Option<Kind> {
    if SOFTWARE
        .iter()
        .any(|known| known.eq_ignore_ascii_case(name))
    {
        return Some(Kind::Software);
    }
    let mut hardware = HARDWARE.iter();
    if let Some((_, id)) = hardware.find(|(known, _)| known.eq_ignore_ascii_case(name)) {
        let attr = Attributes::counting(EventType::Hardware, *id as u64);
        return Some(Kind::Hardware(attr));
    }
    if let Some(listed) = machine.list.find(name) {
        let mut attr = Attributes::counting(EventType::Raw, listed.config);
        attr.config1 = listed.config1;
        return Some(Kind::Hardware(attr));
    }
    if let Some(config) = topdown(name, machine) {
        return Some(Kind::Hardware(Attributes::counting(EventType::Raw, config)));
    }
    let (_, config) = cache_events().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    Some(Kind::Hardware(Attributes::counting(
        EventType::HwCache,
        config,
    )))
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
            let mut topdown =
                topdown_names(machine).filter(|name| topdown(name, machine) == Some(config));
            let name = listed.or_else(|| topdown.next().filter(|_| attr.config1 == 0));
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
    // The others have scales and units.
    files
        .map(|file| file.name)
        .filter(|name| !name.contains('.'))
}

/// Finds the config of a topdown event of sysfs.
fn topdown(name: &str, machine: &Machine) -> Option<u64> {
    let file = machine
        .pmu
        .model
        .topdown_files
        .iter()
        .find(|file| file.name == name)?;
    let threads = if machine.smt == Smt::Off { 1 } else { 2 };
    let mut config = 0;
    for term in file.text(threads).trim().split(',') {
        let (word, value) = term.split_once('=').unwrap_or((term, "1"));
        let (_, shift, _) = FIELDS.iter().find(|field| field.0 == word)?;
        config |= number(value)? << shift;
    }
    Some(config)
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

/// The fields of `attr.config3`, which are this driver's own, as is bit 0 of `attr.config4`: name, lowest bit, number
/// of bits.
const OWN_FIELDS: &[(&str, u32, u32)] = &[("rand_mask", 0, 32), ("rand_seed", 32, 32)];
/// The field of `attr.config4`.
const SWITCH: &str = "switch";

/// Terms without effect on the PMU, or without effect on counting.
const IDLE_TERMS: &[&str] = &["name", "period", "freq", "time"];

/// Returns whether this machine's sysfs has the field.
fn has_field(name: &str, machine: &Machine) -> bool {
    let registers = &machine.pmu.model.extra_register_events;
    let capabilities = &machine.pmu.capabilities;
    match name {
        "pc" => !capabilities.interface.is_amd(),
        "any" => capabilities.any_thread,
        "in_tx" | "in_tx_cp" => capabilities.rtm && !machine.pmu.model.checkpointed.is_empty(),
        "offcore_rsp" => registers.has(ExtraRegister::OffcoreResponse0),
        "ldlat" => registers.has(ExtraRegister::LoadLatency),
        "frontend" => registers.has(ExtraRegister::Frontend),
        _ => true,
    }
}

fn with_terms(
    mut attr: Attributes,
    terms: &[Term],
    machine: &Machine,
) -> Result<Attributes, Mistake> {
    // A name among the terms selects the event that the other terms modify.
    for term in terms.iter().filter(|term| term.value.is_none()) {
        if is_flag(&term.word) || IDLE_TERMS.contains(&term.word.as_str()) {
            continue;
        }
        attr = match (raw_term(&term.word), find(&term.word, machine)) {
            (Some(config), _) => Attributes::counting(EventType::Raw, config),
            (None, Some(Kind::Hardware(event))) => event,
            (None, _) => return Err(no_term(term, machine)),
        };
    }
    for term in terms {
        let value = match term.value.as_deref() {
            None if is_flag(&term.word) => Some(1),
            None => continue,
            Some(_) if IDLE_TERMS.contains(&term.word.as_str()) => continue,
            Some(text) => number(text),
        };
        let Some(value) = value else {
            return Err(Mistake::new(term.at.clone(), "not a number"));
        };
        match term.word.as_str() {
            "config" => attr.config = value,
            "config1" => attr.config1 = value,
            "config2" => attr.config2 = value,
            "config3" => attr.config3 = value,
            "config4" => attr.config4 = value,
            SWITCH => attr.config4 = (attr.config4 & !1) | in_bits(value, 1, &term.at)?,
            "offcore_rsp" | "ldlat" | "frontend" if has_field(&term.word, machine) => {
                let bits = match term.word.as_str() {
                    "offcore_rsp" => 64,
                    "ldlat" => 16,
                    _ => 24,
                };
                attr.config1 = in_bits(value, bits, &term.at)?;
            }
            // Bits 0-7 and 32-35.
            "event" if machine.pmu.capabilities.interface.is_amd() => {
                let code = in_bits(value, 12, &term.at)?;
                let select = EventSelect::amd_event(code as u16, 0);
                attr.config = (attr.config & !EventSelect::AMD_EVENT) | select.bits();
            }
            word if OWN_FIELDS.iter().any(|field| field.0 == word) => {
                set_field(&mut attr.config3, OWN_FIELDS, word, value, &term.at)?;
            }
            word => {
                let field = FIELDS.iter().find(|field| field.0 == word);
                if field.is_none() || !has_field(word, machine) {
                    return Err(no_term(term, machine));
                }
                set_field(&mut attr.config, FIELDS, word, value, &term.at)?;
            }
        }
    }
    if attr.has_extensions() {
        // perf record samples. (perf stat ignores these terms.)
        (attr.sample_period, attr.freq) = sampled(terms)?;
    }
    Ok(attr)
}

/// Returns whether the word is a field, which is 1 without a value.
fn is_flag(word: &str) -> bool {
    word == SWITCH || FIELDS.iter().any(|field| field.0 == word)
}

/// Sets a field of `config` to `value`.
fn set_field(
    config: &mut u64,
    fields: &[(&str, u32, u32)],
    word: &str,
    value: u64,
    at: &Span,
) -> Result<(), Mistake> {
    if let Some((_, shift, bits)) = fields.iter().find(|field| field.0 == word) {
        let mask = ((1 << bits) - 1) << shift;
        *config = (*config & !mask) | (in_bits(value, *bits, at)? << shift);
    }
    Ok(())
}

/// Returns the sample period of the terms, and whether it is a frequency; 0 if there is none.
fn sampled(terms: &[Term]) -> Result<(u64, bool), Mistake> {
    let mut sampled = (0, false);
    for term in terms {
        let (true, Some(text)) = (["period", "freq"].contains(&&*term.word), &term.value) else {
            continue;
        };
        let value = number(text).ok_or_else(|| Mistake::new(term.at.clone(), "not a number"))?;
        sampled = (value, term.word == "freq");
    }
    Ok(sampled)
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
    let fields = fields.chain(["offcore_rsp", "ldlat", "frontend"]);
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
        .chain(SOFTWARE.iter().copied());
    let listed = machine.list.events().map(|event| event.name);
    let listed = listed.chain(topdown_names(machine));
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

/// Returns the names of all hardware events of a machine: the generic ones, the list's and sysfs'.
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
    let listed = listed.chain(topdown_names(machine)).map(str::to_owned);
    hardware.chain(caches.map(|(name, _)| name)).chain(listed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine::new("haswell", Smt::On, false).unwrap()
    }

    fn attributes(text: &str) -> Attributes {
        match parse(text, &machine())
            .unwrap()
            .remove(0)
            .events
            .remove(0)
            .kind
        {
            Kind::Hardware(attr) => attr,
            Kind::Software => panic!("{text}: a software event"),
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
        assert_eq!(attributes("branch-misses").event_type, EventType::Hardware);
    }

    #[test]
    fn terms_change_what_a_name_means() {
        for (text, config, config1) in [
            ("cpu/event=0x3c,umask=1/", 0x13c, 0),
            ("cpu/event=0xc0,cmask=2,inv,edge=1/", 0x284_00c0, 0),
            ("cpu/l1d_pend_miss.pending,cmask=3/", 0x300_0148, 0),
            ("l1d_pend_miss.pending/cmask=3/", 0x300_0148, 0),
            ("cpu/r1b7,offcore_rsp=0x10001/", 0x1b7, 0x1_0001),
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
        let attr = attributes("cpu/event=0xc0,freq=1000,config3=1/");
        assert_eq!(
            (attr.config3, attr.sample_period, attr.freq),
            (1, 1000, true)
        );
        let attr = attributes("cpu/event=0xc0,period=1000,switch/");
        assert_eq!((attr.config4, attr.sample_period), (1, 1000));
        // Without a field of ours the plan is perf stat's.
        assert_eq!(attributes("cpu/event=0xc0,period=1000/").sample_period, 0);
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
            ("uncore/event=1/", 0..6, "cpu"),
            ("9:1", 0..1, "another PMU"),
        ] {
            let Err(mistake) = parse(text, &machine()) else {
                panic!("{text} is accepted")
            };
            assert_eq!(mistake.at, at, "{text}");
            assert!(mistake.what.contains(word), "{text}: {}", mistake.what);
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
        assert_eq!(alone, ["cycles:uk", "cpu/event=1/k", "faults:k"]);
    }

    #[test]
    fn sysfs_names() {
        // With two threads per core, AnyThread is set.
        assert_eq!(attributes("topdown-total-slots").config, 0x20_003c);
        let machine = Machine::new("icx", Smt::On, false).unwrap();
        let retiring = Attributes::counting(EventType::Raw, 0x8000);
        assert_eq!(name_of(&retiring, &machine), "topdown-retiring");
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
