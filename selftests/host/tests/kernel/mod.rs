// SPDX-License-Identifier: GPL-2.0

//! The built-in driver's tables, read from the kernel's source.
//!
//! A reader of text, not a compiler: a table is the text between two marks, a CPU's part of
//! `intel_pmu_init()` the text between its `case` and the `break`. Macros are replaced by their
//! definitions.

// Every test file includes this module, and each uses only a part of it.
#![allow(dead_code)]

use rpmu_logic::logic::cores::CoreType;
use rpmu_logic::logic::model::Cpus;
use std::collections::HashMap;
use std::path::Path;

/// The source of the built-in driver.
pub(crate) struct Source {
    /// `arch/x86/events/intel/core.c`, `ds.c` and `arch/x86/events/amd/core.c`.
    core: String,
    /// The macros without arguments.
    defines: HashMap<String, String>,
}

/// A line of a table of constraints. It matches `code` to `code + size` under `mask`.
#[derive(Debug)]
pub(crate) struct Constraint {
    pub(crate) code: u64,
    pub(crate) size: u64,
    pub(crate) mask: u64,
    pub(crate) counters: u64,
    pub(crate) fixed: bool,
    pub(crate) corrupting: bool,
    /// `PERF_X86_EVENT_PEBS_*`, without the prefix.
    pub(crate) pebs: &'static str,
}

/// A line of a table of extra registers.
#[derive(Debug)]
pub(crate) struct ExtraRegister {
    pub(crate) code: u64,
    pub(crate) msr: u64,
    pub(crate) valid: u64,
}

impl Source {
    /// Reads the tree that `KERNEL_SOURCE` names; `make test` sets it. Without it, prints that
    /// nothing is compared.
    pub(crate) fn read() -> Option<Self> {
        let Some(tree) = std::env::var_os("KERNEL_SOURCE") else {
            eprintln!("not compared: KERNEL_SOURCE is not set");
            return None;
        };
        let read = |path| {
            let path = Path::new(&tree).join("arch/x86").join(path);
            std::fs::read_to_string(path).expect("KERNEL_SOURCE is no kernel tree")
        };
        let core = [
            "events/intel/core.c",
            "events/intel/ds.c",
            "events/amd/core.c",
        ]
        .map(read)
        .concat();
        let headers = [
            "include/asm/intel-family.h",
            "include/asm/msr-index.h",
            "include/asm/perf_event.h",
        ]
        .map(read)
        .concat();
        let mut defines = HashMap::new();
        for text in [&core, &headers] {
            for define in text.replace("\\\n", " ").split("\n#define").skip(1) {
                let line = define.lines().next().unwrap_or_default().trim();
                if let Some((name, value)) = line.split_once(char::is_whitespace) {
                    defines.insert(name.to_owned(), without_comments(value));
                }
            }
        }
        Some(Self { core, defines })
    }

    /// Evaluates a constant expression: `|`, `&`, `~`, unary `-`, `<<`, `BIT()`, `BIT_ULL()`,
    /// macros.
    pub(crate) fn value(&self, expression: &str) -> u64 {
        let mut tokens = tokens(expression);
        tokens.reverse();
        let value = self.or(&mut tokens);
        assert!(tokens.is_empty(), "not understood: {expression}");
        value
    }

    fn or(&self, tokens: &mut Vec<String>) -> u64 {
        let mut value = self.and(tokens);
        while took(tokens, "|") {
            value |= self.and(tokens);
        }
        value
    }

    fn and(&self, tokens: &mut Vec<String>) -> u64 {
        let mut value = self.shift(tokens);
        while took(tokens, "&") {
            value &= self.shift(tokens);
        }
        value
    }

    fn shift(&self, tokens: &mut Vec<String>) -> u64 {
        let mut value = self.atom(tokens);
        while took(tokens, "<<") {
            value <<= self.atom(tokens);
        }
        value
    }

    fn atom(&self, tokens: &mut Vec<String>) -> u64 {
        let token = tokens.pop().expect("an expression that ends too early");
        match token.as_str() {
            "(" => {
                let value = self.or(tokens);
                assert_eq!(tokens.pop().as_deref(), Some(")"));
                value
            }
            "~" => !self.atom(tokens),
            "-" => self.atom(tokens).wrapping_neg(),
            "BIT" | "BIT_ULL" => 1 << self.atom(tokens),
            _ => number(&token).unwrap_or_else(|| {
                let definition = self.defines.get(&token);
                self.value(definition.unwrap_or_else(|| panic!("no macro {token}")))
            }),
        }
    }

    /// Returns the lines of the array that begins at `declaration`, without comments.
    fn array(&self, declaration: &str) -> String {
        let start = self.core.find(declaration).expect(declaration);
        let body = &self.core[start..];
        without_comments(&body[..body.find("\n};").expect("an array without an end")])
    }

    /// Reads `static struct event_constraint NAME[]`.
    pub(crate) fn constraints(&self, name: &str) -> Vec<Constraint> {
        let calls = calls(&self.array(&format!(" {name}[]")));
        let calls = calls
            .iter()
            .filter(|(kind, _)| kind.contains("_CONSTRAINT"));
        let line = |(kind, arguments): &(String, Vec<String>)| {
            let values: Vec<u64> = arguments.iter().map(|text| self.value(text)).collect();
            // `X86_ALL_EVENT_FLAGS`: edge, pin control, any, inv, cmask, in_tx, in_tx_cp.
            const FLAGS: u64 = 0x3_ffac_0000;
            let (code, last, counters) = match values[..] {
                [code, counters] => (code, code, counters),
                [first, last, counters] => (first, last, counters),
                _ => panic!("{kind} with {arguments:?}"),
            };
            let (mask, counters) = match kind.as_str() {
                // Event, umask, edge, inv, cmask, in_tx, in_tx_cp.
                "FIXED_EVENT_CONSTRAINT" => (0x3_ff84_ffff, 1 << (32 + counters)),
                "METRIC_EVENT_CONSTRAINT" => (0xffff, 1 << (48 + counters)),
                "INTEL_UEVENT_CONSTRAINT" => (0xffff, counters),
                "INTEL_UBIT_EVENT_CONSTRAINT" => (0xff | code, counters),
                "INTEL_PLD_CONSTRAINT"
                | "INTEL_PSD_CONSTRAINT"
                | "INTEL_PST_CONSTRAINT"
                | "INTEL_HYBRID_LDLAT_CONSTRAINT"
                | "INTEL_HYBRID_STLAT_CONSTRAINT" => (0xffff | FLAGS, counters),
                "INTEL_ALL_EVENT_CONSTRAINT" => (FLAGS, counters),
                _ if kind.starts_with("INTEL_FLAGS_UEVENT_CONSTRAINT") => {
                    (0xffff | FLAGS, counters)
                }
                _ if kind.starts_with("INTEL_FLAGS_EVENT_CONSTRAINT") => (0xff | FLAGS, counters),
                "INTEL_EVENT_CONSTRAINT"
                | "INTEL_EVENT_CONSTRAINT_RANGE"
                | "INTEL_EXCLEVT_CONSTRAINT" => (0xff, counters),
                _ => panic!("a kind that this test does not know: {kind}"),
            };
            Constraint {
                code,
                size: last - code,
                mask,
                counters,
                fixed: kind == "FIXED_EVENT_CONSTRAINT",
                corrupting: kind == "INTEL_EXCLEVT_CONSTRAINT"
                    || kind.ends_with("_XLD")
                    || kind.ends_with("_XST"),
                pebs: match kind.as_str() {
                    "INTEL_PLD_CONSTRAINT" | "INTEL_HYBRID_LDLAT_CONSTRAINT" => "LDLAT",
                    "INTEL_PSD_CONSTRAINT" | "INTEL_HYBRID_STLAT_CONSTRAINT" => "STLAT",
                    "INTEL_PST_CONSTRAINT" => "ST",
                    _ if kind.contains("_DATALA_LD") || kind.contains("_DATALA_XLD") => "LD_HSW",
                    _ if kind.contains("_DATALA_ST") || kind.contains("_DATALA_XST") => "ST_HSW",
                    _ if kind.contains("_DATALA_NA") => "NA_HSW",
                    _ => "",
                },
            }
        };
        calls.map(line).collect()
    }

    /// Reads `static struct extra_reg NAME[]`.
    pub(crate) fn extra_registers(&self, name: &str) -> Vec<ExtraRegister> {
        let line = |(kind, arguments): (String, Vec<String>)| {
            let value = |n: usize| self.value(&arguments[n]);
            match kind.as_str() {
                "INTEL_UEVENT_EXTRA_REG" => ExtraRegister {
                    code: value(0),
                    msr: value(1),
                    valid: value(2),
                },
                "INTEL_UEVENT_PEBS_LDLAT_EXTRA_REG" => ExtraRegister {
                    code: value(0),
                    msr: self.value("MSR_PEBS_LD_LAT_THRESHOLD"),
                    valid: 0xffff,
                },
                _ => panic!("a kind that this test does not know: {kind}"),
            }
        };
        let calls = calls(&self.array(&format!(" {name}[]")));
        calls.into_iter().map(line).collect()
    }

    /// Reads the array of numbers that is declared as `name`.
    pub(crate) fn numbers(&self, name: &str) -> Vec<u64> {
        let (_, rest) = self.core.split_once(&format!("{name} = {{")).expect(name);
        let (values, _) = rest.split_once('}').unwrap();
        values.split(',').map(|text| self.value(text)).collect()
    }

    /// Reads the array of numbers `NAME[PERF_COUNT_HW_MAX]`, by the names of the ids; missing ones
    /// are 0.
    pub(crate) fn event_map(&self, name: &str) -> HashMap<String, u64> {
        let text = self.array(&format!(" {name}[PERF_COUNT_HW_MAX]"));
        let line = |line: &str| {
            let (id, value) = line.split_once("]\t")?;
            let (_, value) = value.split_once('=')?;
            let (_, id) = id.split_once("[PERF_COUNT_HW_")?;
            let value = value.split_once(',').map_or(value, |(value, _)| value);
            Some((id.to_owned(), self.value(value)))
        };
        text.lines().skip(1).filter_map(line).collect()
    }

    /// Returns the body of the function `name`, with a statement or label per line.
    pub(crate) fn function(&self, name: &str) -> Vec<String> {
        let start = self.core.find(&format!("\n{name}(")).expect(name);
        let body = &self.core[start..];
        let body = &body[..body.find("\n}").unwrap()];
        let (_, body) = body.split_once("\n{").unwrap();
        let joined = without_comments(body).replace(")\n", ") ");
        let lines = joined.lines().map(str::trim);
        lines
            .filter(|line| !line.is_empty())
            .map(str::to_owned)
            .collect()
    }

    /// Returns the initialiser of `static struct event_constraint NAME`.
    pub(crate) fn initial(&self, name: &str) -> &str {
        let declaration = format!("struct event_constraint {name} = ");
        let (_, rest) = self.core.split_once(&declaration).expect(name);
        rest.split_once(';').unwrap().0
    }

    /// Returns the text of the macro `name`.
    pub(crate) fn define(&self, name: &str) -> &str {
        &self.defines[name]
    }

    /// Reads the files of `static struct attribute *ATTRIBUTES[]`, with the changes of `init`:
    /// name, text with one thread per core, and with more.
    pub(crate) fn event_files(&self, attributes: &str, init: &Init) -> Vec<[String; 3]> {
        let pointers = calls(&self.array(&format!(" *{attributes}[]")));
        let pointers = pointers.iter().filter(|(kind, _)| kind == "EVENT_PTR");
        let file = |(_, arguments): &(String, Vec<String>)| {
            let variable = &arguments[0];
            let hybrid = "EVENT_ATTR_STR_HYBRID(";
            let mut definitions = ["EVENT_ATTR_STR(", "EVENT_ATTR_STR_HT(", hybrid]
                .into_iter()
                .flat_map(|kind| self.core.match_indices(kind))
                .map(|(at, kind)| &self.core[at + kind.len()..])
                .filter(|rest| rest.split(',').nth(1).map(str::trim) == Some(variable));
            let definition = definitions.next().expect(variable);
            let definition = without_comments(definition.split_once(')').unwrap().0);
            let name = definition.split_once(',').unwrap().0.trim().to_owned();
            if init.core != CoreType::Only {
                // The texts are in the order of the types, without a newline
                // (`events_hybrid_sysfs_show()`).
                let text = definition.split('"').nth(1).unwrap();
                let types = definition.rsplit(',').next().unwrap().trim();
                let text = match (types, init.core) {
                    ("hybrid_big", CoreType::Big) => text,
                    ("hybrid_big_small", CoreType::Big) => text.split_once(';').unwrap().1,
                    ("hybrid_big_small", CoreType::Small) => text.split_once(';').unwrap().0,
                    ("hybrid_big", CoreType::Small) => return None,
                    _ => panic!("not understood: {definition}"),
                };
                return Some([&name, text, text].map(String::from));
            }
            let texts: Vec<&str> = definition.split('"').skip(1).step_by(2).collect();
            let changed = |field: &str, text: &str| {
                let value = init.assigned(&format!("event_attr_{variable}.{field}"));
                value.map_or(text.to_owned(), |value| value.trim_matches('"').to_owned())
            };
            Some(match texts[..] {
                // Mainline adds a newline to these only.
                [text] => {
                    let text = changed("event_str", text) + "\n";
                    [name, text.clone(), text]
                }
                [one, more] => [
                    name,
                    changed("event_str_noht", one),
                    changed("event_str_ht", more),
                ],
                _ => panic!("not understood: {definition}"),
            })
        };
        pointers.filter_map(file).collect()
    }

    /// Returns family and model of the CPUs that `intel_pmu_init()` names.
    pub(crate) fn cpus(&self) -> Vec<(u16, u8)> {
        let start = self.core.find("__init int intel_pmu_init(void)").unwrap();
        let cases = self.core[start..].split("\tcase INTEL_").skip(1);
        let cpu = |rest: &str| {
            let name = format!("INTEL_{}", rest.split_once(':').unwrap().0);
            let id = self.defines[&name].trim();
            let id = id.strip_prefix("IFM(").unwrap().strip_suffix(')').unwrap();
            let (family, model) = id.split_once(',').unwrap();
            let [family, model] = [family, model].map(|text| number(text.trim()).unwrap());
            (family.try_into().unwrap(), model.try_into().unwrap())
        };
        cases.map(cpu).collect()
    }

    /// Reads the table of numbers `NAME[7][3][2]`; missing ones are 0.
    pub(crate) fn cache_table(&self, name: &str) -> CacheTable {
        let text = self.array(&format!(" u64 {name}\n"));
        let mut table = CacheTable::default();
        let mut at = [0; 3];
        // The first parts are the declaration and its size.
        for piece in text.split_once('{').unwrap().1.split("C(").skip(1) {
            let (label, rest) = piece.split_once(')').unwrap();
            let (depth, index) = cache_index(label);
            at[depth] = index;
            let (_, value) = rest.split_once('=').unwrap();
            if depth == 2 {
                let value = value.split_once(',').unwrap().0;
                table[at[0]][at[1]][at[2]] = self.value(value);
            }
        }
        table
    }

    /// Returns the table `name` (`hw_cache_event_ids`, `hw_cache_extra_regs`), with the changes of
    /// `init`.
    pub(crate) fn cache_table_of(&self, init: &Init, name: &str) -> CacheTable {
        let Some(copied) = init.copied(name) else {
            return CacheTable::default();
        };
        let mut table = self.cache_table(&copied);
        for (indices, value) in init.changes(name) {
            let labels: Vec<&str> = indices.split("C(").skip(1).collect();
            let index = |n: usize| cache_index(labels[n].split_once(')').unwrap().0).1;
            table[index(0)][index(1)][index(2)] = self.value(&value);
        }
        table
    }

    /// Returns the part of `intel_pmu_init()` for processors of family 6, with the parts that it
    /// jumps to and the functions for big and small cores that it calls. On a hybrid, the parts for
    /// the cores of another type are left out.
    pub(crate) fn init(&self, cpus: &Cpus) -> Init {
        let id = format!("IFM(6, 0x{:02X})", cpus.first);
        let is_it = |(_, value): &(&String, &String)| value.trim() == id;
        let (name, _) = self.defines.iter().find(is_it).expect("no such CPU");
        let start = self.core.find("__init int intel_pmu_init(void)").unwrap();
        let function = &self.core[start..];

        let mut text = String::new();
        let mut mark = format!("\tcase {name}:");
        loop {
            let start = function.find(&mark).unwrap_or_else(|| panic!("no {mark}"));
            let rest = &function[start..];
            let rest = &rest[..rest.find("\n\t\tbreak;").unwrap()];
            let Some((before, after)) = rest.split_once("\n\t\tgoto ") else {
                text.push_str(rest);
                break;
            };
            text.push_str(before);
            mark = format!("\n\t{}:", after.split_once(';').unwrap().0);
        }
        if cpus.core != CoreType::Only {
            text = self.for_core(&text, cpus.core);
        }
        // The hybrids' and Crestmont's functions call another one first.
        let functions: &[&str] = match () {
            () if text.contains("intel_pmu_init_glc(NULL)") => &["glc"],
            () if text.contains("intel_pmu_init_glc_hybrid(&pmu->pmu)") => &["glc", "glc_hybrid"],
            () if text.contains("intel_pmu_init_grt(") => &["grt"],
            () if text.contains("intel_pmu_init_cmt(NULL)") => &["grt", "cmt"],
            () => &[],
        };
        for core in functions {
            let function = format!("void intel_pmu_init_{core}(struct");
            let body = &self.core[self.core.find(&function).unwrap()..];
            // Without hybrids, these are the members of `x86_pmu` and the static tables.
            let body = body[..body.find("\n}").unwrap()]
                .replace("hybrid_var(pmu, hw_cache_event_ids)", "hw_cache_event_ids")
                .replace("hybrid(pmu, extra_regs)", "x86_pmu.extra_regs");
            text.push_str(&body);
        }
        let text = text.replace("\tpmu->extra_regs", "\tx86_pmu.extra_regs");
        Init {
            // The server's value comes first, the client's after the else.
            first: text.contains(&format!("x86_vfm == {name})")),
            text: without_comments(&text),
            core: cpus.core,
        }
    }

    /// Returns the text of a hybrid's part of `intel_pmu_init()` for cores of the type `core`: what
    /// is for all cores or for these, with the functions for these cores instead of those that
    /// distinguish the types.
    fn for_core(&self, text: &str, core: CoreType) -> String {
        let (common, rest) = text.split_once("/* Initialize big core specific").unwrap();
        let (big, rest) = rest.split_once("/* Initialize Atom core specific").unwrap();
        let (small, end) = rest.split_once("\n\n").unwrap();
        let is_big = core == CoreType::Big;
        let mut text = [common, "/*", if is_big { big } else { small }, end].join("\n");
        for name in ["adl_get_event_constraints", "adl_hw_config"] {
            let start = self.core.find(&format!("{name}(struct")).expect(name);
            let test = if is_big {
                "== hybrid_big)"
            } else {
                "== hybrid_small)"
            };
            let (_, rest) = self.core[start..].split_once(test).unwrap();
            let (_, rest) = rest.split_once("return ").unwrap();
            text = text.replace(name, rest.split_once('(').unwrap().0);
        }
        if !is_big {
            // `require_mem_loads_aux_event()`.
            text = text.replace("PMU_FL_MEM_LOADS_AUX", "");
        }
        text
    }
}

/// A number for each generic cache event.
pub(crate) type CacheTable = [[[u64; 2]; 3]; 7];

/// Returns the dimension and the index of a name in `C()`.
fn cache_index(label: &str) -> (usize, usize) {
    let names: [&[&str]; 3] = [
        &["L1D", "L1I", "LL", "DTLB", "ITLB", "BPU", "NODE"],
        &["OP_READ", "OP_WRITE", "OP_PREFETCH"],
        &["RESULT_ACCESS", "RESULT_MISS"],
    ];
    let label = label.trim();
    let position = |depth: usize| names[depth].iter().position(|name| *name == label);
    let mut found = (0..3).filter_map(|depth| position(depth).map(|index| (depth, index)));
    found.next().unwrap_or_else(|| panic!("no index {label}"))
}

/// The part of `intel_pmu_init()` for a CPU.
pub(crate) struct Init {
    text: String,
    first: bool,
    core: CoreType,
}

impl Init {
    /// Returns the text that is assigned to `variable`: of several assignments, the first for a
    /// server, otherwise the last.
    pub(crate) fn assigned(&self, variable: &str) -> Option<String> {
        let assignment = format!("{variable} =");
        let mut values = self.text.match_indices(&assignment).map(|(at, found)| {
            let value = &self.text[at + found.len()..];
            value[..value.find(';').unwrap()].trim().to_owned()
        });
        if self.first {
            values.next()
        } else {
            values.last()
        }
    }

    /// Returns whether the part contains `text`.
    pub(crate) fn contains(&self, text: &str) -> bool {
        self.text.contains(text)
    }

    /// Returns the name of the table that is copied to the table `name`.
    pub(crate) fn copied(&self, name: &str) -> Option<String> {
        let (_, arguments) = calls(&self.text)
            .into_iter()
            .filter(|(kind, arguments)| kind == "memcpy" && arguments[0].contains(name))
            .last()?;
        Some(arguments[1].clone())
    }

    /// Returns the assignments to elements of the table `name`: the texts of indices and value.
    pub(crate) fn changes(&self, name: &str) -> Vec<(String, String)> {
        self.text
            .split(&format!("\t{name}["))
            .skip(1)
            .map(|rest| {
                let (indices, rest) = rest.split_once(" =").unwrap();
                let value = rest.split_once(';').unwrap().0;
                (format!("[{indices}"), value.trim().to_owned())
            })
            .collect()
    }
}

fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        kept.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, after)| after);
    }
    kept + rest
}

fn number(text: &str) -> Option<u64> {
    let text = text.trim_end_matches(['u', 'U', 'l', 'L']);
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Removes the next token if it is `wanted`, and returns whether it was.
fn took(tokens: &mut Vec<String>, wanted: &str) -> bool {
    let is_next = tokens.last().is_some_and(|token| token == wanted);
    if is_next {
        tokens.pop();
    }
    is_next
}

/// Splits an expression into numbers, names and operators.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for character in text.chars() {
        let word = character.is_alphanumeric() || character == '_';
        match tokens.last_mut() {
            Some(last) if (word && in_word) || (character == '<' && last == "<") => {
                last.push(character);
            }
            _ if character.is_whitespace() => {}
            _ => tokens.push(character.to_string()),
        }
        in_word = word;
    }
    tokens
}

/// Finds calls, with their arguments.
fn calls(text: &str) -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find('(') {
        let name = rest[..open]
            .rsplit(|character: char| !(character.is_alphanumeric() || character == '_'))
            .next()
            .unwrap_or_default();
        let mut depth = 0;
        let mut arguments = vec![String::new()];
        let mut end = open;
        for (at, character) in rest[open..].char_indices() {
            end = open + at + 1;
            match character {
                '(' => depth += 1,
                ')' => depth -= 1,
                ',' if depth == 1 => arguments.push(String::new()),
                _ => {}
            }
            if depth == 0 {
                break;
            }
            if depth != 1 || (character != '(' && character != ',') {
                arguments.last_mut().unwrap().push(character);
            }
        }
        let arguments = arguments
            .iter()
            .map(|text| text.trim().to_owned())
            .collect();
        found.push((name.to_owned(), arguments));
        rest = &rest[end..];
    }
    found
}
