// SPDX-License-Identifier: GPL-2.0

//! Draws the screen.

use super::facts::{
    CounterFacts,
    CpuFacts,
    EventFacts,
    Facts,
    State, //
};
use super::screen::{
    Screen,
    Typing, //
};
use super::table::share;
use ratatui::layout::Rect;
use ratatui::style::{
    Color,
    Modifier,
    Style, //
};
use ratatui::text::Line;
use ratatui::widgets::{
    Paragraph,
    Wrap, //
};
use ratatui::Frame;

/// The keys, and what they do.
const KEYS: &[(&str, &str)] = &[
    (
        "arrows, j k",
        "select an event; the lines below describe it",
    ),
    (
        "PgUp PgDn g G",
        "move by pages, to the first and to the last event",
    ),
    ("s", "sort by CPU, share, event, opener, task"),
    ("w", "show only events that wait"),
    ("/", "show only events with a text"),
    ("c", "show only events of a CPU"),
    ("Esc", "show all events"),
    ("p", "pause"),
    ("+ -", "refresh more or less often"),
    ("r", "refresh now"),
    ("q, Ctrl-C", "quit"),
];

/// The lines that describe the selected event.
const DETAILS: u16 = 4;

/// The least width at which the reasons have a column.
const WIDE: usize = 140;

/// Draws the screen, and remembers how many rows fit.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let area = frame.area();
    let (width, ascii) = (usize::from(area.width), screen.ascii);
    let mut y = 0;
    let mut put = |frame: &mut Frame<'_>, text: String, style: Style| {
        if y < area.height {
            let line = Line::styled(clipped(&text, width, ascii), style);
            frame.render_widget(line, Rect::new(0, y, area.width, 1));
        }
        y += 1;
    };
    let Some(facts) = screen.facts.clone() else {
        put(frame, "reading".to_owned(), Style::new());
        return;
    };
    put(
        frame,
        facts.head(),
        Style::new().add_modifier(Modifier::BOLD),
    );
    if screen.help {
        put(frame, String::new(), Style::new());
        for (keys, meaning) in KEYS {
            put(frame, format!("  {keys:<15} {meaning}"), Style::new());
        }
        put(frame, String::new(), Style::new());
        put(
            frame,
            "SHARE is the part of the last interval in which an event counted.".to_owned(),
            Style::new(),
        );
        return;
    }
    let (selected, shown) = place(screen, area.height, &facts, width);
    for line in cpu_lines(&facts, screen, width, shown.cpu_lines, selected.as_ref()) {
        put(frame, line, Style::new());
    }
    let columns = Columns::new(width);
    put(
        frame,
        columns.head(screen),
        Style::new().add_modifier(Modifier::REVERSED),
    );
    let rows = screen.rows();
    let index = screen.index(&rows);
    for (number, row) in rows.iter().enumerate().skip(screen.top).take(shown.rows) {
        let mut style = style(row, screen.colour);
        if number == index {
            style = style.add_modifier(Modifier::REVERSED);
        }
        put(frame, columns.row(row, ascii), style);
    }
    if rows.is_empty() {
        let text = match facts.events.is_empty() {
            true => "No event is open.",
            false => "No event matches the filter (Esc shows all).",
        };
        put(frame, text.to_owned(), Style::new());
    }
    if area.height > DETAILS + 1 {
        let details = Rect::new(0, area.height - DETAILS - 1, area.width, DETAILS);
        let text = selected.as_ref().map_or_else(String::new, describe);
        frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: false }), details);
    }
    if area.height > 1 {
        let last = Rect::new(0, area.height - 1, area.width, 1);
        let text = clipped(&foot(screen, rows.len(), index), width, screen.ascii);
        let style = Style::new().add_modifier(Modifier::DIM);
        frame.render_widget(Line::styled(text, style), last);
    }
}

/// The lines of each part of the screen.
struct Shown {
    cpu_lines: usize,
    rows: usize,
}

/// Divides the screen, and moves its first row so that the selected one is shown. Returns the
/// selected event.
fn place(
    screen: &mut Screen,
    height: u16,
    facts: &Facts,
    width: usize,
) -> (Option<EventFacts>, Shown) {
    let all = facts.cpus.len().div_ceil(per_line(facts, width));
    let cpu_lines = all.min(usize::from(height / 4).max(1));
    // The head and the head of the table, and the foot.
    let other = 3 + usize::from(DETAILS);
    let rows = usize::from(height).saturating_sub(other + cpu_lines).max(1);
    let found = screen.rows();
    let index = screen.index(&found);
    let selected = found.get(index).map(|it| (*it).clone());
    let last = found.len().saturating_sub(rows);
    let top = screen.top.clamp((index + 1).saturating_sub(rows), index);
    screen.top = top.min(last);
    screen.page = rows;
    (selected, Shown { cpu_lines, rows })
}

/// Returns the number of CPUs in a line.
fn per_line(facts: &Facts, width: usize) -> usize {
    let widest = facts.cpus.iter().map(|cpu| cpu_cell(cpu, false).len() + 2);
    (width / widest.max().unwrap_or(1).max(1)).max(1)
}

/// Describes a CPU's counters, a character each.
fn cpu_cell(cpu: &CpuFacts, ascii: bool) -> String {
    let mut cell = format!("CPU {:<3}", cpu.cpu);
    let mut kind = "";
    for counter in &cpu.counters {
        let this = counter
            .name
            .trim_end_matches(|it: char| it.is_ascii_digit());
        if this != kind {
            cell += " ";
            cell += this;
            cell += " ";
            kind = this;
        }
        cell.push(level(counter, ascii));
    }
    if cpu.waiting != 0 {
        cell += &format!(" {} wait", cpu.waiting);
    }
    cell
}

/// Returns a bar whose height is the share of the event that has the counter.
fn level(counter: &CounterFacts, ascii: bool) -> char {
    let bars: &[char] = match ascii {
        false => &['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'],
        true => &['1', '2', '3', '4', '5', '6', '7', '8', '9', '#'],
    };
    match (counter.event, counter.share) {
        (None, _) => '.',
        (Some(_), None) => '?',
        (Some(_), Some(share)) => {
            // CAST: the number of bars is small, and the share is at most 1.
            let place = (share * bars.len() as f64).ceil() as usize;
            bars[place.clamp(1, bars.len()) - 1]
        }
    }
}

/// Returns the lines of the CPUs: those around the selected event's.
fn cpu_lines(
    facts: &Facts,
    screen: &Screen,
    width: usize,
    lines: usize,
    selected: Option<&EventFacts>,
) -> Vec<String> {
    let per_line = per_line(facts, width);
    let cells: Vec<String> = facts
        .cpus
        .iter()
        .map(|cpu| cpu_cell(cpu, screen.ascii))
        .collect();
    let column = cells.iter().map(|cell| cell.chars().count() + 2).max();
    let column = column.unwrap_or(0);
    let all: Vec<String> = cells
        .chunks(per_line)
        .map(|cells| {
            let padded = cells.iter().map(|cell| format!("{cell:<column$}"));
            padded.collect::<String>()
        })
        .collect();
    let cpu = selected.map(|it| it.cpu);
    let wanted = facts.cpus.iter().position(|it| Some(it.cpu) == cpu);
    let line = wanted.unwrap_or(0) / per_line;
    let first = (line + 1).saturating_sub(lines);
    all.into_iter().skip(first).take(lines).collect()
}

/// The widths of the columns.
struct Columns {
    /// The share as a bar; 0 for none.
    bar: usize,
    event: usize,
    opener: usize,
    counts: usize,
    /// The reason; 0 for none.
    why: usize,
}

impl Columns {
    fn new(width: usize) -> Self {
        let bar = if width >= 100 { 10 } else { 0 };
        // CPU, counter, share, and the blanks between the columns.
        let fixed = 4 + 1 + 8 + 1 + 6 + 1 + if bar == 0 { 0 } else { bar + 1 };
        let rest = width.saturating_sub(fixed);
        let (rest, why) = match width >= WIDE {
            true => (rest * 6 / 10, rest - rest * 6 / 10 - 1),
            false => (rest, 0),
        };
        let opener = rest * 27 / 100;
        let counts = rest * 27 / 100;
        Self {
            bar,
            event: rest.saturating_sub(opener + counts + 2),
            opener,
            counts,
            why,
        }
    }

    fn line(&self, cells: [&str; 7], ascii: bool) -> String {
        let [cpu, counter, share, bar, event, opener, counts] = cells;
        let cell = |text: &str, width: usize| format!("{:<width$}", clipped(text, width, ascii));
        let mut line = format!("{cpu:>4} {} {share:>6} ", cell(counter, 8));
        if self.bar != 0 {
            line += &format!("{} ", cell(bar, self.bar));
        }
        line += &format!("{} ", cell(event, self.event));
        line += &format!("{} ", cell(opener, self.opener));
        line + &cell(counts, self.counts)
    }

    fn head(&self, screen: &Screen) -> String {
        let cells = [
            "CPU",
            "COUNTER",
            "SHARE",
            "",
            "EVENT",
            "OPENED BY",
            "COUNTS",
        ];
        let line = self.line(cells, screen.ascii);
        match self.why {
            0 => line,
            width => format!("{line} {:<width$}", "WHY NOT"),
        }
    }

    fn row(&self, it: &EventFacts, ascii: bool) -> String {
        let full = if ascii { "#" } else { "█" };
        // CAST: the share is at most 1, and the width small.
        let length = it
            .share
            .map_or(0, |share| (share * self.bar as f64).round() as usize);
        let cells = [
            &it.cpu.to_string(),
            it.place(),
            &share(it.share),
            &full.repeat(length),
            &it.event.name,
            it.opener(),
            it.counts(),
        ];
        let line = self.line(cells, ascii);
        match (self.why, &it.event.why) {
            (0, _) | (_, None) => line,
            (width, Some(why)) => format!("{line} {}", clipped(why, width, ascii)),
        }
    }
}

/// Returns the style of a row.
fn style(it: &EventFacts, colour: bool) -> Style {
    match it.state {
        _ if !colour => Style::new(),
        State::Counts => Style::new(),
        State::Rides => Style::new().fg(Color::Cyan),
        State::Waits => Style::new().fg(Color::Yellow),
        State::Error => Style::new().fg(Color::Red),
    }
}

/// Describes an event in words.
fn describe(it: &EventFacts) -> String {
    let event = &it.event;
    let mut text = format!("{}, id {}", event.name, event.id);
    if event.group != event.id {
        text += &format!(", of the group of {}", event.group);
    }
    if event.pinned {
        text += ", pinned";
    }
    text += &format!("; opened by {}; counts {}", it.opener(), it.counts());
    if let Some(ms) = event.counted_ms {
        text += &format!("; counted for {} s", seconds(ms));
    }
    if let (Some(counter), Some(ms)) = (&event.counter, event.for_ms) {
        text += &format!("; on {counter} for {} s", seconds(ms));
    }
    if let (Some(counter), Some(head)) = (&event.counter, event.rides_on) {
        text += &format!("; rides on {counter}, which event {head} has");
    }
    if let Some(why) = &event.why {
        text += &format!("\n{why}");
    }
    text
}

fn seconds(ms: u64) -> String {
    format!("{}.{:03}", ms / 1000, ms % 1000)
}

/// Returns the last line: the text that is being typed, or the settings and the most useful keys.
fn foot(screen: &Screen, rows: usize, index: usize) -> String {
    let filter = &screen.filter;
    match &screen.typing {
        Some((Typing::Text, _)) => {
            return format!("show events with: {}_  (Enter, Esc)", filter.text);
        }
        Some((Typing::Cpu, _)) => {
            let cpu = filter.cpu.map_or_else(String::new, |cpu| cpu.to_string());
            return format!("show events of CPU: {cpu}_  (Enter, Esc)");
        }
        None => {}
    }
    let mut text = match rows {
        0 => String::new(),
        rows => format!("{}/{rows} ", index + 1),
    };
    text += &format!("by {}", screen.sort.name());
    if let Some(cpu) = filter.cpu {
        text += &format!(", CPU {cpu}");
    }
    if filter.waiting {
        text += ", waiting";
    }
    if !filter.text.is_empty() {
        text += &format!(", with {}", filter.text);
    }
    if screen.paused {
        text += ", PAUSED";
    } else {
        text += &format!(", every {} s", seconds(screen.interval_ms));
    }
    text + "   ? help  s sort  w waiting  / filter  c CPU  q quit"
}

/// Shortens a text to this width.
fn clipped(text: &str, width: usize, ascii: bool) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let end = if ascii { '~' } else { '…' };
    let mut short: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        short.push(end);
    }
    short
}
