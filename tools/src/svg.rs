// SPDX-License-Identifier: GPL-2.0

//! The report as a picture of the counters over time, and as a page with picture and text.

use crate::report::Report;
use crate::text::text;
use std::fmt::{
    self,
    Write, //
};

/// Maximum number of intervals drawn.
const MAX_TURNS: usize = 24;
/// Height of a counter's row, left end of the time axis, and total width, in pixels.
const ROW: usize = 26;
const LEFT: usize = 74;
const WIDTH: usize = 980;

/// Colours that are distinct with colour vision deficiencies, too (Okabe and Ito, and darker shades
/// of these).
const COLOURS: &[&str] = &[
    "#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#8c8c00", "#004c77",
    "#a06e00", "#006b4e", "#8f5174", "#2e8fc4",
];

const STYLE: &str = "\
:root{color-scheme:light dark}\
.rp{font:12px system-ui,sans-serif}.rp text{fill:#222}.rp .soft{fill:#8882}.rp .line{stroke:#8886}\
.rp .in{fill:#fff}\
@media(prefers-color-scheme:dark){.rp text{fill:#ddd}.rp .in{fill:#fff}}";

pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

/// Returns the text if it fits into this many pixels, otherwise `other` if that fits, otherwise
/// nothing.
fn fitting(text: &str, other: &str, pixels: usize) -> String {
    let fits = |text: &&str| text.chars().count() <= pixels / 7;
    let fitting = [text, other].into_iter().find(fits);
    fitting.unwrap_or_default().to_owned()
}

/// Returns the event's number in the list below the picture, from 1 on.
fn number(report: &Report, name: &str) -> Option<usize> {
    let mut events = report.events.iter();
    Some(events.position(|event| event.name == name)? + 1)
}

/// Draws a row for each counter and a column for each interval, and below them each event's share
/// of time.
pub fn picture(report: &Report) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = draw(report, &mut out);
    out
}

fn colour(report: &Report, name: &str) -> &'static str {
    let number = number(report, name);
    number.map_or("#777777", |number| COLOURS[(number - 1) % COLOURS.len()])
}

/// The place of the drawing's parts: the columns are intervals, the rows counters.
struct Layout<'a> {
    turns: &'a [usize],
    /// The width of a column.
    width: usize,
    /// The lower end of the rows.
    end: usize,
}

fn draw(report: &Report, out: &mut String) -> fmt::Result {
    let turns = &report.turns[..report.turns.len().min(MAX_TURNS)];
    let layout = Layout {
        turns,
        width: (WIDTH - LEFT) / turns.len().max(1),
        end: 34 + report.machine.counters.len() * ROW,
    };
    let height = layout.end + 40 + report.events.len() * 22;
    writeln!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"rp\" viewBox=\"0 0 {WIDTH} {height}\" \
         width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n<title>{} ({}), policy={}: counters over \
         time</title>\n<style>{STYLE}</style>",
        escape(report.machine.name),
        report.machine.model,
        report.machine.policy
    )?;
    grid(report, &layout, out)?;
    bars(report, &layout, out)?;
    time(report, &layout, out)?;
    shares(report, &layout, out)?;
    writeln!(out, "</svg>")
}

/// Draws the rows and columns, with their names.
fn grid(report: &Report, layout: &Layout<'_>, out: &mut String) -> fmt::Result {
    let Layout { turns, width, end } = *layout;
    for (row, counter) in report.machine.counters.iter().enumerate() {
        let y = 30 + row * ROW;
        writeln!(
            out,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{counter}</text>",
            LEFT - 8,
            y + 17
        )?;
        let full = width * turns.len();
        writeln!(
            out,
            "<rect class=\"soft\" x=\"{LEFT}\" y=\"{y}\" width=\"{full}\" height=\"{}\"/>",
            ROW - 3
        )?;
    }
    for (column, turn) in turns.iter().enumerate() {
        let x = LEFT + column * width;
        let name = &report.configurations[*turn].name;
        writeln!(
            out,
            "<text x=\"{}\" y=\"20\" text-anchor=\"middle\">{}</text>",
            x + width / 2,
            fitting(name, "", width + 14)
        )?;
        writeln!(
            out,
            "<line class=\"line\" x1=\"{x}\" y1=\"26\" x2=\"{x}\" y2=\"{end}\"/>"
        )?;
    }
    Ok(())
}

/// Draws a bar for each event on a counter, over the intervals in which it has the counter.
fn bars(report: &Report, layout: &Layout<'_>, out: &mut String) -> fmt::Result {
    let Layout { turns, width, .. } = *layout;
    for (row, counter) in report.machine.counters.iter().enumerate() {
        let on = |turn: &usize| {
            let mut counters = report.configurations[*turn].counters.iter();
            counters
                .find(|(it, _)| it == counter)
                .map(|(_, event)| event)
        };
        let mut column = 0;
        while column < turns.len() {
            let event = on(&turns[column]);
            let same = turns[column..]
                .iter()
                .take_while(|turn| on(turn) == event)
                .count();
            if let Some(event) = event {
                bar(
                    report,
                    out,
                    (LEFT + column * width, 30 + row * ROW),
                    same * width,
                    event,
                )?;
            }
            column += same;
        }
    }
    Ok(())
}

/// Writes the time below the columns.
fn time(report: &Report, layout: &Layout<'_>, out: &mut String) -> fmt::Result {
    let Layout { turns, width, end } = *layout;
    let duration = report.interval_ms * turns.len() as f64;
    writeln!(out, "<text x=\"{LEFT}\" y=\"{}\">0</text>", end + 14)?;
    writeln!(
        out,
        "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{duration} ms</text>",
        LEFT + width * turns.len(),
        end + 14
    )
}

/// Draws the share of each event.
fn shares(report: &Report, layout: &Layout<'_>, out: &mut String) -> fmt::Result {
    for (row, event) in report.events.iter().enumerate() {
        let y = layout.end + 30 + row * 22;
        let part = (event.share * 180.0).round();
        writeln!(
            out,
            "<rect class=\"soft\" x=\"{LEFT}\" y=\"{y}\" width=\"180\" height=\"16\"/>\
             <rect x=\"{LEFT}\" y=\"{y}\" width=\"{part}\" height=\"16\" fill=\"{}\"/>\
             <text x=\"{}\" y=\"{}\">{}</text><text x=\"{}\" y=\"{}\">{}</text>",
            colour(report, &event.name),
            LEFT + 190,
            y + 12,
            escape(event.shown.as_str()),
            LEFT + 300,
            y + 12,
            escape(&format!("{}: {}", row + 1, event.name)),
        )?;
    }
    Ok(())
}

fn bar(
    report: &Report,
    out: &mut String,
    at: (usize, usize),
    width: usize,
    event: &str,
) -> fmt::Result {
    let (x, y) = at;
    // Names often start alike, so a name that does not fit is replaced by a number, not truncated.
    let number = number(report, event).map_or(String::new(), |number| number.to_string());
    writeln!(
        out,
        "<g><title>{0}</title><rect x=\"{1}\" y=\"{y}\" width=\"{2}\" height=\"{3}\" rx=\"2\" fill=\"{4}\"/>\
         <text class=\"in\" style=\"fill:#fff\" x=\"{5}\" y=\"{6}\">{7}</text></g>",
        escape(event),
        x + 1,
        width - 2,
        ROW - 3,
        colour(report, event),
        x + 6,
        y + 16,
        escape(&fitting(event, &number, width.saturating_sub(8))),
    )
}

/// Returns the page with the picture and the report as text.
pub fn page(report: &Report) -> String {
    let title = format!("{}: counters over time", report.machine.name);
    format!(
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\"><title>{0}</title>\n\
         <style>body{{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;\
         color-scheme:light dark}}svg{{max-width:100%;height:auto}}pre{{overflow-x:auto}}</style>\n\
         <h1>{0}</h1>\n{1}<pre>{2}</pre>\n</html>\n",
        escape(&title),
        picture(report),
        escape(&text(report)),
    )
}
