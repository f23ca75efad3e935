// SPDX-License-Identifier: GPL-2.0

//! The state of the screen: what is shown of the facts, and what a key changes.

use super::facts::{
    EventFacts,
    Facts,
    State, //
};
use std::cmp::Ordering;

/// A key that was pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// An arrow up.
    Up,
    /// An arrow down.
    Down,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
    /// Return.
    Enter,
    /// Escape.
    Escape,
    /// Backspace.
    Backspace,
    /// A letter.
    Letter(char),
}

/// An action that follows a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Draw the screen.
    Draw,
    /// Refresh twice as often.
    Faster,
    /// Refresh half as often.
    Slower,
    /// Take a reading now.
    Refresh,
    /// End.
    Quit,
}

/// The order of the rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// By CPU, then as the driver lists the events.
    Cpu,
    /// Smallest share first.
    Share,
    /// By the name of the event.
    Event,
    /// By the user that has opened it.
    Opener,
    /// By the task that it counts.
    Task,
}

impl Sort {
    /// All orders.
    pub const ALL: [Self; 5] = [
        Self::Cpu,
        Self::Share,
        Self::Event,
        Self::Opener,
        Self::Task,
    ];

    /// Returns the name, for the command line and the screen.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Share => "share",
            Self::Event => "event",
            Self::Opener => "opener",
            Self::Task => "task",
        }
    }

    fn next(self) -> Self {
        let place = Self::ALL.iter().position(|it| *it == self);
        Self::ALL[place.map_or(0, |place| (place + 1) % Self::ALL.len())]
    }

    fn compare(self, a: &EventFacts, b: &EventFacts) -> Ordering {
        match self {
            Self::Cpu => a.cpu.cmp(&b.cpu),
            // Events without a share come last.
            Self::Share => {
                let share = |it: &EventFacts| it.share.unwrap_or(2.0);
                share(a).total_cmp(&share(b))
            }
            Self::Event => a.event.name.cmp(&b.event.name),
            Self::Opener => a.opener().cmp(b.opener()),
            Self::Task => a.counts().cmp(b.counts()),
        }
    }
}

/// The rows that are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those of this CPU.
    pub cpu: Option<u32>,
    /// Only those that wait or are in the error state.
    pub waiting: bool,
    /// Only those with this text in the event, the opener, the task, the place or the reason.
    pub text: String,
}

impl Filter {
    /// Returns whether the event is wanted.
    pub fn wants(&self, it: &EventFacts) -> bool {
        let text = self.text.to_lowercase();
        let why = it.event.why.as_deref().unwrap_or_default();
        let fields = [it.place(), &it.event.name, it.opener(), it.counts(), why];
        self.cpu.is_none_or(|cpu| it.cpu == cpu)
            && (!self.waiting || it.state >= State::Waits)
            && (text.is_empty() || fields.iter().any(|it| it.to_lowercase().contains(&text)))
    }
}

/// Returns the wanted events in this order.
pub fn rows<'a>(facts: &'a Facts, filter: &Filter, sort: Sort) -> Vec<&'a EventFacts> {
    let mut rows: Vec<&EventFacts> = facts.events.iter().filter(|it| filter.wants(it)).collect();
    // Stable: equal ones stay in the driver's order.
    rows.sort_by(|a, b| sort.compare(a, b));
    rows
}

/// A text that is being typed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Typing {
    /// The text of the filter.
    Text,
    /// The number of a CPU.
    Cpu,
}

/// The state of the screen.
#[derive(Clone, Debug)]
pub struct Screen {
    /// The facts; `None` before the first reading.
    pub facts: Option<Facts>,
    /// The wanted rows.
    pub filter: Filter,
    /// Their order.
    pub sort: Sort,
    /// The selected event, by CPU and ID; `None` selects the first row.
    pub selected: Option<(u32, u64)>,
    /// The number of rows that fit; set by drawing.
    pub page: usize,
    /// The first row that is shown.
    pub top: usize,
    /// The text that is being typed, and the filter as it was.
    pub typing: Option<(Typing, Filter)>,
    /// Set if the keys are explained.
    pub help: bool,
    /// Set if no readings are taken.
    pub paused: bool,
    /// Set if only ASCII may be drawn.
    pub ascii: bool,
    /// Set if colours may be used.
    pub colour: bool,
    /// The time between readings, in milliseconds.
    pub interval_ms: u64,
}

impl Screen {
    /// Makes a screen without facts.
    pub fn new(filter: Filter, sort: Sort, interval_ms: u64) -> Self {
        Self {
            facts: None,
            filter,
            sort,
            selected: None,
            page: 1,
            top: 0,
            typing: None,
            help: false,
            paused: false,
            ascii: false,
            colour: true,
            interval_ms,
        }
    }

    /// Returns the rows.
    pub fn rows(&self) -> Vec<&EventFacts> {
        let facts = self.facts.as_ref();
        facts.map_or_else(Vec::new, |facts| rows(facts, &self.filter, self.sort))
    }

    /// Returns the index of the selected row among `rows`.
    pub fn index(&self, rows: &[&EventFacts]) -> usize {
        let is_selected = |it: &&EventFacts| Some((it.cpu, it.event.id)) == self.selected;
        rows.iter().position(is_selected).unwrap_or(0)
    }

    /// Moves the selection to the row with this index, or to the last one.
    fn select(&mut self, index: usize) {
        let rows = self.rows();
        let last = rows.len().saturating_sub(1);
        let selected = rows.get(index.min(last)).map(|it| (it.cpu, it.event.id));
        self.selected = selected;
    }

    /// Changes what a key changes.
    pub fn key(&mut self, key: Key) -> Action {
        if self.typing.is_some() {
            self.type_key(key);
            return Action::Draw;
        }
        if self.help {
            self.help = false;
            return Action::Draw;
        }
        let index = self.index(&self.rows());
        match key {
            Key::Up | Key::Letter('k') => self.select(index.saturating_sub(1)),
            Key::Down | Key::Letter('j') => self.select(index + 1),
            Key::PageUp => self.select(index.saturating_sub(self.page)),
            Key::PageDown | Key::Letter(' ') => self.select(index + self.page),
            Key::Home | Key::Letter('g') => self.select(0),
            Key::End | Key::Letter('G') => self.select(usize::MAX),
            Key::Letter('s') => self.sort = self.sort.next(),
            Key::Letter('w') => self.filter.waiting = !self.filter.waiting,
            Key::Letter('p') => {
                self.paused = !self.paused;
                return Action::Refresh;
            }
            Key::Letter('/') => {
                self.typing = Some((Typing::Text, self.filter.clone()));
                self.filter.text.clear();
            }
            Key::Letter('c') => {
                self.typing = Some((Typing::Cpu, self.filter.clone()));
                self.filter.cpu = None;
            }
            Key::Escape => self.filter = Filter::default(),
            Key::Letter('?' | 'h') => self.help = true,
            Key::Letter('+') => return Action::Faster,
            Key::Letter('-') => return Action::Slower,
            Key::Letter('r') => return Action::Refresh,
            Key::Letter('q') => return Action::Quit,
            Key::Enter | Key::Backspace | Key::Letter(_) => {}
        }
        Action::Draw
    }

    /// Changes the text that is being typed. The rows follow at once.
    fn type_key(&mut self, key: Key) {
        let Some((typing, before)) = &self.typing else {
            return;
        };
        let (typing, before) = (*typing, before.clone());
        match (key, typing) {
            (Key::Enter, _) => self.typing = None,
            (Key::Escape, _) => {
                self.filter = before;
                self.typing = None;
            }
            (Key::Backspace, Typing::Text) => {
                self.filter.text.pop();
            }
            (Key::Backspace, Typing::Cpu) => {
                self.filter.cpu = self.filter.cpu.map(|cpu| cpu / 10).filter(|cpu| *cpu != 0);
            }
            (Key::Letter(letter), Typing::Text) => self.filter.text.push(letter),
            (Key::Letter(letter), Typing::Cpu) => {
                if let Some(digit) = letter.to_digit(10) {
                    let cpu = self.filter.cpu.unwrap_or(0);
                    self.filter.cpu = Some(cpu.saturating_mul(10).saturating_add(digit));
                }
            }
            _ => {}
        }
    }
}
