// SPDX-License-Identifier: GPL-2.0

//! The terms between slashes: perf's own words, and the rules for their values.
//!
//! Follows `config_term_common()` and its callers in `tools/perf/util/parse-events.c`.

use crate::syntax::{
    Mistake,
    Term,
    TermKind,
    Value, //
};

/// The command that the list is for. `perf record` accepts more terms than `perf stat`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tool {
    /// `perf stat`.
    #[default]
    Stat,
    /// `perf record`.
    Record,
}

/// The type of a term's value.
enum Type {
    /// A number; a missing one is 1.
    Number,
    /// 0 or 1.
    Switch,
    /// A number of 32 bits.
    Half,
    /// A word.
    Word,
    /// A factor above 0, as a word.
    Factor,
    /// The number of a CPU, a list of CPUs or the name of a PMU.
    Cpus,
}

/// Perf's own words, the types of their values, and whether perf stat accepts them.
#[rustfmt::skip]
const KEYWORDS: &[(&str, Type, bool)] = &[
    ("config", Type::Number, true), ("config1", Type::Number, true), ("config2", Type::Number, true),
    ("config3", Type::Number, true), ("config4", Type::Number, true), ("name", Type::Word, true),
    ("period", Type::Number, true), ("percore", Type::Switch, true), ("metric-id", Type::Word, true),
    ("cpu", Type::Cpus, true),
    ("freq", Type::Number, false), ("branch_type", Type::Word, false), ("time", Type::Switch, false),
    ("call-graph", Type::Word, false), ("stack-size", Type::Number, false), ("max-stack", Type::Number, false),
    ("nr", Type::Number, false), ("inherit", Type::Number, false), ("no-inherit", Type::Number, false),
    ("overwrite", Type::Number, false), ("no-overwrite", Type::Number, false), ("aux-output", Type::Number, false),
    ("aux-action", Type::Word, false), ("aux-sample-size", Type::Half, false), ("ratio-to-prev", Type::Factor, false),
];

/// The words that tracepoints accept; only perf record accepts them.
#[rustfmt::skip]
const OF_TRACEPOINTS: &[&str] = &[
    "call-graph", "stack-size", "inherit", "no-inherit", "max-stack", "nr", "overwrite", "no-overwrite", "aux-output",
    "aux-action", "aux-sample-size",
];

/// The values of `branch_type`.
#[rustfmt::skip]
const BRANCH_TYPES: &[&str] = &[
    "no", "u", "k", "hv", "any", "any_call", "any_ret", "ind_call", "abort_tx", "in_tx", "no_tx", "cond", "ind_jmp",
    "call", "no_flags", "no_cycles", "save_type", "stack", "priv", "counter",
];

/// Checks a term that is one of perf's own words, for an event of a PMU.
///
/// # Errors
///
/// The value has another type, or the command does not accept the word.
pub fn check_keyword(term: &Term, tool: Tool) -> Result<(), Mistake> {
    let wrong = |what: &str| Err(Mistake::new(term.at.clone(), what));
    let Some((word, of, in_stat)) = KEYWORDS.iter().find(|it| it.0 == term.word) else {
        return wrong("perf uses this term for its own lists");
    };
    match (of, &term.value) {
        (Type::Number | Type::Half | Type::Switch, Value::Word(_)) => return wrong("not a number"),
        (Type::Switch, Value::Number(number)) if *number as u32 > 1 => {
            return wrong("expected 0 or 1");
        }
        (Type::Word | Type::Factor, Value::Absent | Value::Number(_)) => {
            return wrong("expected a word");
        }
        (Type::Factor, Value::Word(text)) if !text.parse().is_ok_and(|it: f64| it > 0.0) => {
            return wrong("expected a number above 0");
        }
        (Type::Half, Value::Number(number)) if *number > u64::from(u32::MAX) => {
            return wrong("too large for 32 bits");
        }
        (Type::Cpus, Value::Word(text)) if !is_cpus(text) => {
            return wrong("expected a CPU's number, a list of these or a PMU");
        }
        _ => {}
    }
    if let ("branch_type", Value::Word(text)) = (*word, &term.value) {
        if !BRANCH_TYPES.contains(&text.as_str()) {
            return wrong("unknown type of branches");
        }
    }
    if tool == Tool::Stat && !in_stat {
        let what = format!("perf stat does not take {word}; --record plans for perf record");
        return Err(Mistake::new(term.at.clone(), what));
    }
    Ok(())
}

/// Checks the terms of an event that is given by numbers: only perf's own words are allowed, and
/// `rHEX` for perf record.
///
/// # Errors
///
/// A term that perf does not accept there.
pub fn check_numeric(terms: &[Term], tool: Tool) -> Result<(), Mistake> {
    for term in terms {
        match term.kind {
            TermKind::Keyword => check_keyword(term, tool)?,
            TermKind::Raw if tool == Tool::Record => {}
            _ => {
                let what = format!(
                    "{} needs a PMU in front of the slash, such as cpu",
                    term.word
                );
                return Err(Mistake::new(term.at.clone(), what));
            }
        }
    }
    Ok(())
}

/// Checks the terms of a tracepoint.
///
/// # Errors
///
/// A term that perf does not accept there.
pub fn check_tracepoint(terms: &[Term], tool: Tool) -> Result<(), Mistake> {
    for term in terms {
        if term.kind != TermKind::Keyword || !OF_TRACEPOINTS.contains(&term.word.as_str()) {
            let what = format!("a tracepoint takes no {}", term.word);
            return Err(Mistake::new(term.at.clone(), what));
        }
        check_keyword(term, tool)?;
    }
    Ok(())
}

fn is_cpus(text: &str) -> bool {
    let is_list = |part: &str| part.split('-').all(|end| end.parse::<u32>().is_ok());
    is_list(text) || super::names::is_pmu(text)
}

/// Returns the value of the last term with `word`, one of perf's own words.
pub fn last<'a>(terms: &'a [Term], word: &str) -> Option<&'a Value> {
    let mut terms = terms.iter().rev();
    let term = terms.find(|term| term.kind == TermKind::Keyword && term.word == word);
    term.map(|term| &term.value)
}

/// Returns the name that the terms give to the event: like perf, the first one.
pub fn label(terms: &[Term]) -> Option<String> {
    let mut terms = terms.iter();
    let term = terms.find(|term| term.kind == TermKind::Keyword && term.word == "name")?;
    match &term.value {
        Value::Word(name) => Some(name.clone()),
        _ => None,
    }
}
