// SPDX-License-Identifier: GPL-2.0

//! Intel's and AMD's event lists, compiled in.
//!
//! `data/convert` makes `data/events` from the kernel's source; the head of that file describes its
//! format. Lookups by config scan the text: a few thousand lines take well under a millisecond.

use std::sync::OnceLock;

/// The text of `data/events`.
const EVENTS: &str = include_str!("../data/events");

/// The event list of some CPU models.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List {
    /// The list's letter in the file.
    letter: char,
    /// The perf tool's name for the models, such as `haswellx`.
    pub name: &'static str,
    /// The CPUID family: 6 for Intel's lists, others for AMD's.
    pub family: u16,
    /// One of the CPUID models that the list covers.
    pub cpuid_model: u8,
    /// The maker's version of the list; `none` where there are no names of events.
    pub version: &'static str,
}

/// A listed event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The name in lower case, as the perf tool shows it.
    pub name: &'static str,
    /// `attr.config`.
    pub config: u64,
    /// `attr.config1`.
    pub config1: u64,
    /// The counters that Intel lists, such as `0-3` or `F1`; `-` for AMD's.
    pub counters: &'static str,
}

/// Returns all lists, oldest CPU models first.
pub fn lists() -> impl Iterator<Item = List> {
    lines().filter_map(|line| {
        let mut words = line.strip_prefix("list ")?.split(' ');
        Some(List {
            letter: words.next()?.chars().next()?,
            name: words.next()?,
            family: u16::from_str_radix(words.next()?, 16).ok()?,
            cpuid_model: u8::from_str_radix(words.next()?, 16).ok()?,
            version: words.next()?,
        })
    })
}

/// Returns the source of the events from the head of the file.
pub fn source() -> &'static str {
    let mut lines = EVENTS.lines();
    let source = lines.find_map(|line| line.strip_prefix("# Source: "));
    source.unwrap_or_default()
}

impl List {
    /// Returns the events, sorted by name.
    pub fn events(self) -> impl Iterator<Item = Listed> {
        lines().filter_map(move |line| self.event(line))
    }

    /// Finds an event by name, ignoring case.
    pub fn find(self, name: &str) -> Option<Listed> {
        let wanted = name.to_ascii_lowercase();
        let all = by_name();
        let start = all.partition_point(|line| name_of(line) < wanted.as_str());
        let named = all[start..].iter();
        let mut named = named.take_while(|line| name_of(line) == wanted);
        named.find_map(|line| self.event(line))
    }

    /// Parses the event on a line, if this list has it.
    fn event(self, line: &'static str) -> Option<Listed> {
        let mut words = line.split(' ');
        let (name, config) = (words.next()?, words.next()?);
        let (counters, lists) = (words.next()?, words.next()?);
        // Lines that declare a list have more words.
        if words.next().is_some() || !lists.contains(self.letter) {
            return None;
        }
        let (config, config1) = config.split_once(':').unwrap_or((config, "0"));
        Some(Listed {
            name,
            config: u64::from_str_radix(config, 16).ok()?,
            config1: u64::from_str_radix(config1, 16).ok()?,
            counters,
        })
    }
}

fn lines() -> impl Iterator<Item = &'static str> {
    EVENTS
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns the lines with events, which are sorted by name.
fn by_name() -> &'static [&'static str] {
    static EVENT_LINES: OnceLock<Vec<&str>> = OnceLock::new();
    EVENT_LINES.get_or_init(|| lines().filter(|line| !line.starts_with("list ")).collect())
}

fn name_of(line: &str) -> &str {
    line.split(' ').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_are_sorted() {
        assert!(by_name().is_sorted_by_key(|line| name_of(line)));
    }

    #[test]
    fn every_line_is_understood() {
        let lists: Vec<List> = lists().collect();
        assert!(lists.len() > 20);
        let events = lines().filter(|line| !line.starts_with("list "));
        let letters: usize = events
            .map(|line| line.rsplit(' ').next().unwrap().len())
            .sum();
        let read: usize = lists.iter().map(|list| list.events().count()).sum();
        assert_eq!(read, letters);
    }

    #[test]
    fn no_event_is_in_a_list_twice() {
        for list in lists().filter(|list| list.version != "none") {
            let names: Vec<&str> = list.events().map(|event| event.name).collect();
            assert!(names.len() > 100, "{}", list.name);
            assert!(names.is_sorted());
            assert!(
                names.windows(2).all(|two| two[0] != two[1]),
                "{}",
                list.name
            );
        }
    }

    #[test]
    fn events_are_encoded_as_perf_does() {
        let find = |list: &str, name: &str| {
            let list = lists().find(|it| it.name == list).unwrap();
            let event = list.find(name).unwrap();
            (event.config, event.config1, event.counters)
        };
        assert_eq!(find("haswell", "L1D_PEND_MISS.PENDING"), (0x148, 0, "2"));
        assert_eq!(find("haswell", "inst_retired.any"), (0xc0, 0, "F0"));
        assert_eq!(find("icelake", "topdown.slots"), (0x400, 0, "F3"));
        let offcore = find(
            "haswell",
            "offcore_response.demand_rfo.l3_miss.any_response",
        );
        assert_eq!(offcore, (0x1b7, 0x3f_ffc0_0002, "0-3"));
    }

    #[test]
    fn the_source_is_named() {
        assert!(source().contains("tools/perf/pmu-events/arch/x86 of Linux 7."));
    }
}
