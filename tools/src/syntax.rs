// SPDX-License-Identifier: GPL-2.0

//! The perf tool's syntax for lists of events. Names are resolved in `names`.
//!
//! ```text
//!  list    item,item…
//!  item    event  |  {event,event…}  |  {event,event…}:modifiers        a name may precede the {
//!  event   name  |  name:modifiers  |  name/term,term…/modifiers
//!          rHEX  |  type:config  |  subsystem:tracepoint
//!  term    word  |  word=value
//! ```
//!
//! Follows `tools/perf/util/parse-events.l` and `.y`.

use std::fmt;
use std::ops::Range;

/// A range of bytes in the text.
pub type Span = Range<usize>;

/// A mistake in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Its place.
    pub at: Span,
    /// The message.
    pub what: String,
}

impl Mistake {
    /// Creates a mistake.
    pub fn new(at: Span, what: impl Into<String>) -> Self {
        Self {
            at,
            what: what.into(),
        }
    }

    /// Formats the text with carets under the place, and the message.
    pub fn show(&self, text: &str) -> String {
        let before = text.get(..self.at.start).unwrap_or(text).chars().count();
        let within = text
            .get(self.at.clone())
            .map_or(0, |part| part.chars().count());
        let carets = "^".repeat(within.max(1));
        format!("  {text}\n  {}{carets}\n{}", " ".repeat(before), self.what)
    }
}

/// An item of a list: a group, or a single event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The events, the leader first; one if there are no braces.
    pub events: Vec<Event>,
    /// Set if there are braces.
    pub braces: bool,
    /// The modifiers after the braces.
    pub modifiers: Modifiers,
}

/// An event as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The whole event with its modifiers, which perf shows as its name.
    pub text: String,
    /// Its place.
    pub at: Span,
    /// The part before slashes and modifiers.
    pub body: Body,
    /// The place of the body.
    pub body_at: Span,
    /// The terms between slashes, if there are slashes.
    pub terms: Option<Vec<Term>>,
    /// The modifiers after the name or the slashes.
    pub modifiers: Modifiers,
}

/// The part of an event that names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// The name of an event or, before slashes, of a PMU.
    Name(String),
    /// `rHEX`.
    Raw(u64),
    /// `type:config`.
    Numeric {
        /// `attr.type`.
        kind: u64,
        /// `attr.config`.
        config: u64,
    },
    /// `subsystem:event`.
    Tracepoint,
}

/// A term between slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The word.
    pub word: String,
    /// The text after `=`, if there is one.
    pub value: Option<String>,
    /// The place of the term.
    pub at: Span,
}

/// Modifier letters after a colon.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// `u`, `k` and `h`: count at these privilege levels only.
    pub user: bool,
    /// See `user`.
    pub kernel: bool,
    /// See `user`.
    pub hypervisor: bool,
    /// `G`: count in guests only.
    pub guest: bool,
    /// `H`: count on the host only.
    pub host: bool,
    /// The number of `p`.
    pub precise: u8,
    /// `P`: the highest precision available.
    pub precise_max: bool,
    /// `D`: pinned.
    pub pinned: bool,
    /// `e`: exclusive.
    pub exclusive: bool,
    /// `W`: perf may split the group.
    pub weak: bool,
    /// `X`: perf does not move the event to another group.
    pub stays: bool,
    /// The place of the letters, if there are any.
    pub at: Option<Span>,
}

/// All modifier letters. `I` (idle) and `S` (sample read) do not change a plan; `b` (BPF) and `R` (retire latency) make perf count without the kernel's PMU.
const LETTERS: &str = "ukhpPGHSDIWebRX";

impl Modifiers {
    /// Merges the modifiers of an event with those of its group.
    pub fn merged(&self, outer: &Self) -> Self {
        Self {
            user: self.user || outer.user,
            kernel: self.kernel || outer.kernel,
            hypervisor: self.hypervisor || outer.hypervisor,
            guest: self.guest || outer.guest,
            host: self.host || outer.host,
            precise: self.precise.saturating_add(outer.precise),
            precise_max: self.precise_max || outer.precise_max,
            pinned: self.pinned || outer.pinned,
            exclusive: self.exclusive || outer.exclusive,
            weak: self.weak || outer.weak,
            stays: self.stays || outer.stays,
            at: self.at.clone().or(outer.at.clone()),
        }
    }

    /// Returns the letters.
    pub fn letters(&self) -> String {
        let flags = [
            (self.user, 'u'),
            (self.kernel, 'k'),
            (self.hypervisor, 'h'),
            (self.guest, 'G'),
            (self.host, 'H'),
            (self.precise_max, 'P'),
            (self.pinned, 'D'),
            (self.exclusive, 'e'),
            (self.weak, 'W'),
            (self.stays, 'X'),
        ];
        let letters = flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, letter)| *letter);
        letters.chain((0..self.precise).map(|_| 'p')).collect()
    }

    fn is_like(text: &str) -> bool {
        !text.is_empty() && text.len() <= 17 && text.chars().all(|letter| LETTERS.contains(letter))
    }

    fn parse(text: &str, at: usize) -> Result<Self, Mistake> {
        let mut this = Self {
            at: Some(at..at + text.len()),
            ..Self::default()
        };
        let mut seen = String::new();
        for (index, letter) in text.char_indices() {
            let here = at + index..at + index + letter.len_utf8();
            if letter != 'p' && seen.contains(letter) {
                return Err(Mistake::new(here, format!("duplicate modifier {letter}")));
            }
            seen.push(letter);
            match letter {
                'u' => this.user = true,
                'k' => this.kernel = true,
                'h' => this.hypervisor = true,
                'G' => this.guest = true,
                'H' => this.host = true,
                'p' if this.precise == 3 => {
                    return Err(Mistake::new(here, "at most three p are allowed"));
                }
                'p' => this.precise += 1,
                'P' => this.precise_max = true,
                'D' => this.pinned = true,
                'e' => this.exclusive = true,
                'W' => this.weak = true,
                'X' => this.stays = true,
                'I' | 'S' => {}
                'b' | 'R' => {
                    let what = format!(
                        "modifier {letter} makes perf count without the PMU, which is not planned"
                    );
                    return Err(Mistake::new(here, what));
                }
                _ => {
                    let what = format!("unknown modifier {letter}; known are {LETTERS}");
                    return Err(Mistake::new(here, what));
                }
            }
        }
        Ok(this)
    }
}

/// Parses a list.
///
/// # Errors
///
/// The first mistake in the text.
pub fn parse(text: &str) -> Result<Vec<Group>, Mistake> {
    let mut reader = Reader { text, at: 0 };
    let mut groups = Vec::new();
    loop {
        groups.push(reader.item()?);
        match reader.peek() {
            None => return Ok(groups),
            Some(',') => reader.at += 1,
            Some(other) => return Err(reader.here(format!("expected a comma, found {other}"))),
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn here(&self, what: impl Into<String>) -> Mistake {
        let end = self.at + self.peek().map_or(0, char::len_utf8);
        Mistake::new(self.at..end, what)
    }

    /// Consumes the text up to one of these characters or to the end.
    fn until(&mut self, stops: &[char]) -> (Span, &'a str) {
        let rest = self.rest();
        let length = rest.find(stops).unwrap_or(rest.len());
        let start = self.at;
        self.at += length;
        (start..self.at, &rest[..length])
    }

    fn item(&mut self) -> Result<Group, Mistake> {
        let rest = self.rest();
        let stop = rest.find([',', '{', '}', '/']).unwrap_or(rest.len());
        if rest[stop..].starts_with('{') {
            let name = &rest[..stop];
            if !name.chars().all(is_in_name) {
                let at = self.at..self.at + stop;
                return Err(Mistake::new(at, "invalid group name"));
            }
            self.at += stop;
            return self.group();
        }
        Ok(Group {
            events: vec![self.event()?],
            braces: false,
            modifiers: Modifiers::default(),
        })
    }

    fn group(&mut self) -> Result<Group, Mistake> {
        let open = self.at;
        self.at += 1;
        let mut events = Vec::new();
        loop {
            events.push(self.event()?);
            match self.peek() {
                Some(',') => self.at += 1,
                Some('}') => break,
                Some('{') => return Err(self.here("groups cannot be nested")),
                Some(other) => return Err(self.here(format!("expected , or }}, found {other}"))),
                None => return Err(Mistake::new(open..open + 1, "unmatched {")),
            }
        }
        self.at += 1;
        let mut modifiers = Modifiers::default();
        if self.peek() == Some(':') {
            self.at += 1;
            let (at, letters) = self.until(&[',', '{', '}', '/', ':']);
            if letters.is_empty() {
                return Err(Mistake::new(at, "expected a modifier after the colon"));
            }
            modifiers = Modifiers::parse(letters, at.start)?;
        }
        Ok(Group {
            events,
            braces: true,
            modifiers,
        })
    }

    fn event(&mut self) -> Result<Event, Mistake> {
        let start = self.at;
        let (body_at, name) = self.until(&[',', '{', '}', '/', ':']);
        if name.is_empty() {
            return Err(self.here("expected an event"));
        }
        if let Some((index, wrong)) = name.char_indices().find(|(_, letter)| !is_in_name(*letter)) {
            let at = start + index..start + index + wrong.len_utf8();
            return Err(Mistake::new(
                at,
                format!("invalid character {wrong:?} in an event name"),
            ));
        }
        let mut body = match raw(name, &body_at)? {
            Some(config) => Body::Raw(config),
            None => Body::Name(name.to_owned()),
        };
        if name == "mem" && self.peek() == Some(':') {
            return Err(Mistake::new(
                body_at,
                "a breakpoint takes no counter; not planned",
            ));
        }
        if self.peek() == Some(':') {
            body = self.after_colon(name, body)?;
        }
        let numeric = matches!(body, Body::Numeric { .. });
        let mut modifiers = Modifiers::default();
        let mut terms = None;
        if self.peek() == Some('/') {
            terms = Some(self.terms()?);
            // Behind slashes without a colon, unless what stands before is a number.
            let (at, letters) = self.until(&[',', '{', '}', '/']);
            let letters_at = match letters.strip_prefix(':') {
                Some(letters) if matches!(body, Body::Name(_)) && !letters.is_empty() => {
                    let what = "behind a slash, perf wants the modifiers without a colon";
                    return Err(Mistake::new(at, what));
                }
                Some(_) => at.start + 1,
                None => at.start,
            };
            let letters = &self.text[letters_at..at.end];
            if !letters.is_empty() {
                modifiers = Modifiers::parse(letters, letters_at)?;
            }
        } else if self.peek() == Some(':') {
            self.at += 1;
            let (at, letters) = self.until(&[',', '{', '}', '/', ':']);
            // Perf accepts a colon without letters after a name.
            if !letters.is_empty() {
                modifiers = Modifiers::parse(letters, at.start)?;
            } else if numeric {
                return Err(Mistake::new(at, "expected a modifier after the colon"));
            }
        }
        Ok(Event {
            text: self.text[start..self.at].to_owned(),
            at: start..self.at,
            body,
            body_at,
            terms,
            modifiers,
        })
    }

    /// Parses a body that continues after a colon. Stops before a colon with modifiers.
    fn after_colon(&mut self, name: &str, body: Body) -> Result<Body, Mistake> {
        let after = &self.rest()[1..];
        let length = after.find([',', '{', '}', '/', ':']).unwrap_or(after.len());
        let word = &after[..length];
        if let (Some(kind), Some(config)) = (number(name), number(word)) {
            self.at += 1 + length;
            return Ok(Body::Numeric { kind, config });
        }
        if word.is_empty() || Modifiers::is_like(word) {
            return Ok(body);
        }
        let tracepoint = word.len() > 3 && word.chars().all(is_in_name) && name != "cpu";
        if tracepoint && word.contains('_') {
            self.at += 1 + length;
            return Ok(Body::Tracepoint);
        }
        Modifiers::parse(word, self.at + 1).map(|_| body)
    }

    fn terms(&mut self) -> Result<Vec<Term>, Mistake> {
        let open = self.at;
        self.at += 1;
        let mut terms = Vec::new();
        if self.peek() == Some('/') {
            self.at += 1;
            return Ok(terms);
        }
        loop {
            let (at, text) = self.until(&[',', '/']);
            let (word, value) = match text.split_once('=') {
                Some((word, value)) => (word, Some(value)),
                None => (text, None),
            };
            if word.is_empty() || value == Some("") {
                return Err(Mistake::new(at, "expected a term: word or word=value"));
            }
            terms.push(Term {
                word: word.to_owned(),
                value: value.map(str::to_owned),
                at,
            });
            match self.peek() {
                Some(',') => self.at += 1,
                Some(_) => break,
                None => return Err(Mistake::new(open..open + 1, "unmatched /")),
            }
        }
        self.at += 1;
        Ok(terms)
    }
}

/// Parses `rHEX`; `None` if the name has another form.
fn raw(name: &str, at: &Span) -> Result<Option<u64>, Mistake> {
    let Some(digits) = name.strip_prefix('r') else {
        return Ok(None);
    };
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    if digits.is_empty() || !digits.chars().all(|digit| digit.is_ascii_hexdigit()) {
        return Ok(None);
    }
    match u64::from_str_radix(digits, 16) {
        Ok(config) => Ok(Some(config)),
        Err(_) => Err(Mistake::new(at.clone(), "value exceeds 64 bits")),
    }
}

/// Parses a number in perf's notation: decimal, or hexadecimal after 0x.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn is_in_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_.-!".contains(letter)
}

/// A list of events for perf's `-e`, quoted for the shell if needed.
#[derive(Clone, Debug)]
pub struct Quoted<'a>(pub &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.contains(['{', '}', '*', '?', '[', '!']) {
            write!(f, "'{}'", self.0)
        } else {
            f.write_str(self.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> String {
        let group = |group: &Group| {
            let events: Vec<&str> = group
                .events
                .iter()
                .map(|event| event.text.as_str())
                .collect();
            let events = events.join(" ");
            if group.braces {
                format!("[{events}]")
            } else {
                events
            }
        };
        let groups = parse(text).unwrap();
        groups.iter().map(group).collect::<Vec<_>>().join(" ")
    }

    fn event(text: &str) -> Event {
        parse(text).unwrap().remove(0).events.remove(0)
    }

    #[test]
    fn lists_and_groups() {
        assert_eq!(shape("a,b.c:u"), "a b.c:u");
        assert_eq!(shape("{a,faults},b:D,{c}:k"), "[a faults] b:D [c]");
        assert_eq!(shape("cpu/event=1,umask=2/u,x"), "cpu/event=1,umask=2/u x");
        assert_eq!(shape("{cpu/event=1/,r01b7}"), "[cpu/event=1/ r01b7]");
        assert_eq!(shape("name{a,b}"), "[a b]");
    }

    #[test]
    fn bodies() {
        let body = |text| event(text).body;
        assert_eq!(body("r1b7:u"), Body::Raw(0x1b7));
        assert_eq!(body("r0x1b7"), Body::Raw(0x1b7));
        assert_eq!(body("ref-cycles"), Body::Name("ref-cycles".to_owned()));
        let numeric = Body::Numeric {
            kind: 4,
            config: 0x1b7,
        };
        assert_eq!(body("4:0x1b7"), numeric);
        assert_eq!(body("4:0x1b7:u"), numeric);
        assert!(event("4:0x1b7:u").modifiers.user);
        assert_eq!(body("sched:sched_switch"), Body::Tracepoint);
        assert_eq!(body("cycles:uk"), Body::Name("cycles".to_owned()));
    }

    #[test]
    fn terms() {
        let terms = event("cpu/event=0x3c,any,name=x/k").terms.unwrap();
        let words: Vec<_> = terms
            .iter()
            .map(|term| (term.word.as_str(), term.value.as_deref()))
            .collect();
        assert_eq!(
            words,
            [("event", Some("0x3c")), ("any", None), ("name", Some("x"))]
        );
        assert!(event("cpu/event=0x3c/k").modifiers.kernel);
        assert_eq!(event("cycles//").terms, Some(Vec::new()));
    }

    #[test]
    fn modifiers() {
        let modifiers = event("cycles:ukDpp").modifiers;
        assert!(modifiers.user && modifiers.kernel && modifiers.pinned);
        assert_eq!((modifiers.precise, modifiers.weak), (2, false));
        let group = parse("{a,b}:We").unwrap().remove(0);
        assert!(group.modifiers.weak && group.modifiers.exclusive);
    }

    #[test]
    fn mistakes_are_shown_where_they_are() {
        for (text, carets) in [
            ("", "^"),
            ("a,", "  ^"),
            ("a,,b", "  ^"),
            ("{a,b", "^"),
            ("{a,{b}}", "   ^"),
            ("a}", " ^"),
            ("{a}b", "   ^"),
            ("a:uu", "   ^"),
            ("a:pppp", "     ^"),
            ("a:z", "  ^"),
            ("a b", " ^"),
            ("cpu/event=1", "   ^"),
            ("cpu/event=/", "    ^^^^^^"),
            ("cpu/event=1/:u", "            ^^"),
            ("{a}:", "    ^"),
            ("mem:0x1000", "^^^"),
            ("r11111111111111111", "^^^^^^^^^^^^^^^^^^"),
            ("cycles:b", "       ^"),
        ] {
            let mistake = match parse(text) {
                Err(mistake) => mistake,
                Ok(_) => panic!("{text} is accepted"),
            };
            let shown = mistake.show(text);
            let second = shown.lines().nth(1).unwrap();
            assert_eq!(second, format!("  {carets}"), "{text}: {shown}");
        }
    }
}
