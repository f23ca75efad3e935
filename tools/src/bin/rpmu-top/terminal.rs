// SPDX-License-Identifier: GPL-2.0

//! The screen on a terminal: keys come in, readings are drawn.

use ratatui::crossterm::event::{
    poll,
    read,
    Event,
    KeyCode,
    KeyEvent,
    KeyEventKind,
    KeyModifiers, //
};
use ratatui::DefaultTerminal;
use rpmu_plan::top::draw::draw;
use rpmu_plan::top::facts::Facts;
use rpmu_plan::top::readings::{
    Reading,
    Source, //
};
use rpmu_plan::top::screen::{
    Action,
    Key,
    Screen, //
};
use std::env;
use std::time::{
    Duration,
    Instant, //
};

/// The shortest and the longest interval that the keys set, in milliseconds.
const INTERVALS: std::ops::RangeInclusive<u64> = 125..=64_000;

/// Returns the milliseconds of a time, at least one.
pub(super) fn ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX).max(1)
}

/// Returns whether the locale has UTF-8.
pub(super) fn has_utf8() -> bool {
    let names = ["LC_ALL", "LC_CTYPE", "LANG"].iter();
    let mut values = names.filter_map(|name| env::var(name).ok().filter(|it| !it.is_empty()));
    values.next().is_some_and(|value| {
        let value = value.to_lowercase();
        value.contains("utf-8") || value.contains("utf8")
    })
}

/// Shows readings of `source` until the user quits.
pub(super) fn run(source: &mut Source, screen: Screen) -> Result<(), String> {
    let mut terminal = ratatui::try_init().map_err(|error| error.to_string())?;
    let done = show(&mut terminal, source, screen);
    ratatui::restore();
    done
}

fn show(
    terminal: &mut DefaultTerminal,
    source: &mut Source,
    mut screen: Screen,
) -> Result<(), String> {
    let mut before: Option<Reading> = None;
    let mut due = Instant::now();
    loop {
        let now = Instant::now();
        if now >= due && !screen.paused {
            let ended = source.is_over() || source.is_still() && before.is_some();
            if !ended {
                let reading = source.take()?;
                let parameters = source.parameters();
                let facts = Facts::new(source.machine(), parameters, before.as_ref(), &reading);
                // The first shares come soon.
                due = match before {
                    None => now + Duration::from_millis(screen.interval_ms.min(200)),
                    Some(_) => now + Duration::from_millis(screen.interval_ms),
                };
                screen.facts = Some(facts);
                before = Some(reading);
            } else {
                due = now + Duration::from_millis(screen.interval_ms);
            }
        }
        let drawn = terminal.draw(|frame| draw(frame, &mut screen));
        drawn.map_err(|error| error.to_string())?;
        let wait = match screen.paused {
            true => Duration::from_secs(3600),
            false => due.saturating_duration_since(Instant::now()),
        };
        if !poll(wait).map_err(|error| error.to_string())? {
            continue;
        }
        let Event::Key(event) = read().map_err(|error| error.to_string())? else {
            // The size may have changed: draw again.
            continue;
        };
        let Some(key) = key(event) else {
            continue;
        };
        let interval = screen.interval_ms;
        match screen.key(key) {
            Action::Draw => {}
            Action::Faster => screen.interval_ms = (interval / 2).max(*INTERVALS.start()),
            Action::Slower => {
                screen.interval_ms = interval.saturating_mul(2).min(*INTERVALS.end());
            }
            Action::Refresh => due = Instant::now(),
            Action::Quit => return Ok(()),
        }
    }
}

/// Translates a key; `None` if it has no meaning.
fn key(event: KeyEvent) -> Option<Key> {
    if event.kind == KeyEventKind::Release {
        return None;
    }
    if event.modifiers.contains(KeyModifiers::CONTROL) {
        return (event.code == KeyCode::Char('c')).then_some(Key::Letter('q'));
    }
    Some(match event.code {
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        KeyCode::PageUp => Key::PageUp,
        KeyCode::PageDown => Key::PageDown,
        KeyCode::Home => Key::Home,
        KeyCode::End => Key::End,
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Char(letter) => Key::Letter(letter),
        _ => return None,
    })
}
