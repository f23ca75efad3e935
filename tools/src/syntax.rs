// SPDX-License-Identifier: GPL-2.0

//! The perf tool's syntax for lists of events. Names are resolved in `names`.
//!
//! ```text
//!  list    item,item…
//!  item    event  |  {event,event…}  |  {event,event…}:modifiers        a name may precede the {
//!  event   name  |  name:modifiers  |  name/term,term…/modifiers
//!          rHEX  |  type:config  |  subsystem:tracepoint  |  mem:address/length:rwx
//!  term    word  |  word=value
//! ```
//!
//! Follows `tools/perf/util/parse-events.y`; the tokens are in `lexer`.

use crate::lexer::{
    tokens,
    Token, //
};
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
    /// Creates an error.
    pub fn new(at: Span, what: impl Into<String>) -> Self {
        Self {
            at,
            what: what.into(),
        }
    }

    /// Formats the text with carets under the place of the error, and the message.
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
    Tracepoint {
        /// The subsystem.
        system: String,
        /// The place of the event.
        event_at: Span,
    },
    /// `mem:address`.
    Breakpoint,
}

/// A term between slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// The word, without the `@` of a driver's own term.
    pub word: String,
    /// The kind of the word.
    pub kind: TermKind,
    /// The value after `=`.
    pub value: Value,
    /// The place of the term.
    pub at: Span,
}

/// A kind of term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TermKind {
    /// A word of the perf tool's own.
    Keyword,
    /// A field of the PMU, or one of its events.
    Name,
    /// `rHEX` without a value.
    Raw,
    /// `@word`, for the PMU's driver.
    Driver,
}

/// The value of a term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// No value is written, which means 1.
    Absent,
    /// A number.
    Number(u64),
    /// A word.
    Word(String),
}

/// Modifier letters after a colon or a slash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Modifiers {
    /// `u`, `k` and `h`: count at these privilege levels only.
    pub user: bool,
    /// See `user`.
    pub kernel: bool,
    /// See `user`.
    pub hypervisor: bool,
    /// `I`: do not count while the CPU is idle.
    pub non_idle: bool,
    /// `G`: count in guests only.
    pub guest: bool,
    /// `H`: count on the host only.
    pub host: bool,
    /// The number of `p`.
    pub precise: u8,
    /// `P`: the highest precision available.
    pub precise_max: bool,
    /// `S`: read the group with each sample.
    pub sample_read: bool,
    /// `D`: pinned.
    pub pinned: bool,
    /// `e`: exclusive.
    pub exclusive: bool,
    /// `W`: perf may split the group.
    pub weak: bool,
    /// `b`: perf counts with a BPF program, which reads the event on each CPU.
    pub bpf: bool,
    /// `R`: perf samples the event precisely, for its retirement latency.
    pub retire_latency: bool,
    /// `X`: perf does not move the event to another group.
    pub stays: bool,
    /// The place of the letters, if there are any.
    pub at: Option<Span>,
}

impl Modifiers {
    /// Merges the modifiers of an event with those of its group.
    pub fn merged(&self, outer: &Self) -> Self {
        Self {
            user: self.user || outer.user,
            kernel: self.kernel || outer.kernel,
            hypervisor: self.hypervisor || outer.hypervisor,
            non_idle: self.non_idle || outer.non_idle,
            guest: self.guest || outer.guest,
            host: self.host || outer.host,
            precise: self.precise.saturating_add(outer.precise),
            precise_max: self.precise_max || outer.precise_max,
            sample_read: self.sample_read || outer.sample_read,
            pinned: self.pinned || outer.pinned,
            exclusive: self.exclusive || outer.exclusive,
            weak: self.weak || outer.weak,
            bpf: self.bpf || outer.bpf,
            retire_latency: self.retire_latency || outer.retire_latency,
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
            (self.non_idle, 'I'),
            (self.guest, 'G'),
            (self.host, 'H'),
            (self.precise_max, 'P'),
            (self.sample_read, 'S'),
            (self.pinned, 'D'),
            (self.exclusive, 'e'),
            (self.weak, 'W'),
            (self.bpf, 'b'),
            (self.retire_latency, 'R'),
            (self.stays, 'X'),
        ];
        let letters = flags
            .iter()
            .filter(|(set, _)| *set)
            .map(|(_, letter)| *letter);
        letters.chain((0..self.precise).map(|_| 'p')).collect()
    }

    /// Parses letters at a place of the text.
    ///
    /// # Errors
    ///
    /// The first letter that is wrong.
    pub fn parse(text: &str, at: usize) -> Result<Self, Mistake> {
        let mut this = Self {
            at: Some(at..at + text.len()),
            ..Self::default()
        };
        for (index, letter) in text.char_indices() {
            let here = at + index..at + index + letter.len_utf8();
            let flag = match letter {
                'u' => &mut this.user,
                'k' => &mut this.kernel,
                'h' => &mut this.hypervisor,
                'I' => &mut this.non_idle,
                'G' => &mut this.guest,
                'H' => &mut this.host,
                'p' if this.precise == 3 => {
                    return Err(Mistake::new(here, "at most three p are allowed"));
                }
                'p' => {
                    this.precise += 1;
                    continue;
                }
                'P' => &mut this.precise_max,
                'S' => &mut this.sample_read,
                'D' => &mut this.pinned,
                'e' => &mut this.exclusive,
                'W' => &mut this.weak,
                'b' => &mut this.bpf,
                'R' => &mut this.retire_latency,
                'X' => &mut this.stays,
                _ => {
                    let what = format!("unknown modifier {letter}; known are {LETTERS}");
                    return Err(Mistake::new(here, what));
                }
            };
            if std::mem::replace(flag, true) {
                return Err(Mistake::new(here, format!("duplicate modifier {letter}")));
            }
        }
        Ok(this)
    }
}

/// All modifier letters.
pub const LETTERS: &str = "ukhpPGHSDIWebRX";

/// Parses a list.
///
/// # Errors
///
/// The first mistake in the text.
pub fn parse(text: &str) -> Result<Vec<Group>, Mistake> {
    let mut reader = Reader {
        text,
        tokens: tokens(text)?,
        next: 0,
    };
    let mut groups = vec![reader.item()?];
    loop {
        match reader.peek() {
            Token::End => return Ok(groups),
            Token::Char(',') => reader.next += 1,
            _ => return Err(reader.unexpected("expected a comma")),
        }
        groups.push(reader.item()?);
    }
}

/// A reader of tokens. The last one is [`Token::End`].
struct Reader<'a> {
    text: &'a str,
    tokens: Vec<(Token, Span)>,
    next: usize,
}

impl Reader<'_> {
    fn token(&self, ahead: usize) -> &(Token, Span) {
        let last = self.tokens.len() - 1;
        &self.tokens[(self.next + ahead).min(last)]
    }

    fn peek(&self) -> &Token {
        &self.token(0).0
    }

    fn at(&self) -> Span {
        self.token(0).1.clone()
    }

    /// Returns the end of the last token that was consumed.
    fn end(&self) -> usize {
        match self.next.checked_sub(1) {
            Some(last) => self.tokens[last].1.end,
            None => 0,
        }
    }

    /// Consumes a character, if it is next.
    fn takes(&mut self, letter: char) -> bool {
        let is_it = *self.peek() == Token::Char(letter);
        self.next += usize::from(is_it);
        is_it
    }

    /// Returns an error at the next token.
    fn unexpected(&self, expected: &str) -> Mistake {
        let at = self.at();
        let found = self.text.get(at.clone()).unwrap_or_default();
        let what = match (self.peek(), expected) {
            (Token::Char('/'), "expected a comma" | "expected , or }") => "unmatched /".to_owned(),
            (Token::Char(':'), _) if self.text[..at.start].ends_with('/') => {
                "behind a slash, perf wants the modifiers without a colon".to_owned()
            }
            (Token::End, _) => expected.to_owned(),
            _ => format!("{expected}, found {found}"),
        };
        Mistake::new(at, what)
    }

    fn item(&mut self) -> Result<Group, Mistake> {
        let is_named = matches!(self.peek(), Token::Name(_)) && self.token(1).0 == Token::Char('{');
        self.next += usize::from(is_named);
        if self.takes('{') {
            return self.group();
        }
        Ok(Group {
            events: vec![self.event()?],
            braces: false,
            modifiers: Modifiers::default(),
        })
    }

    fn group(&mut self) -> Result<Group, Mistake> {
        let mut events = vec![self.event()?];
        while !self.takes('}') {
            match self.peek() {
                Token::Char(',') => self.next += 1,
                _ => return Err(self.unexpected("expected , or }")),
            }
            events.push(self.event()?);
        }
        let mut modifiers = Modifiers::default();
        if self.takes(':') {
            match self.peek().clone() {
                Token::Modifiers(letters) => modifiers = letters,
                _ => return Err(self.unexpected("expected modifiers after the colon")),
            }
            self.next += 1;
        }
        Ok(Group {
            events,
            braces: true,
            modifiers,
        })
    }

    fn event(&mut self) -> Result<Event, Mistake> {
        let start = self.at().start;
        let body = self.body()?;
        let body_at = start..self.end();
        let mut terms = None;
        if self.takes('/') {
            terms = Some(self.terms()?);
        }
        // Perf also accepts a colon without letters, but not after the slash of a PMU.
        if terms.is_none() || !matches!(body, Body::Name(_)) {
            self.takes(':');
        }
        let mut modifiers = Modifiers::default();
        if let Token::Modifiers(letters) = self.peek().clone() {
            if letters.weak {
                let what = "W is for groups, behind the brace";
                return Err(Mistake::new(self.at(), what));
            }
            modifiers = letters;
            self.next += 1;
        }
        let at = start..self.end();
        Ok(Event {
            text: self.text[at.clone()].to_owned(),
            at,
            body,
            body_at,
            terms,
            modifiers,
        })
    }

    fn body(&mut self) -> Result<Body, Mistake> {
        let (token, second, third) = (
            self.peek().clone(),
            self.token(1).0.clone(),
            self.token(2).0.clone(),
        );
        let colon = second == Token::Char(':');
        self.next += 1;
        match (token, third) {
            (Token::Name(system), Token::Name(_)) if colon => {
                self.next += 2;
                let event_at = self.tokens[self.next - 1].1.clone();
                Ok(Body::Tracepoint { system, event_at })
            }
            (Token::Name(name), _) => Ok(Body::Name(name)),
            (Token::Raw(config), _) => Ok(Body::Raw(config)),
            (Token::Number(kind), Token::Number(config)) if colon => {
                self.next += 2;
                Ok(Body::Numeric {
                    // Perf drops the upper half.
                    kind: kind & u64::from(u32::MAX),
                    config,
                })
            }
            (Token::Mem, _) => {
                self.breakpoint()?;
                Ok(Body::Breakpoint)
            }
            (Token::Char('{'), _) => {
                self.next -= 1;
                Err(Mistake::new(self.at(), "groups cannot be nested"))
            }
            _ => {
                self.next -= 1;
                Err(self.unexpected("expected an event"))
            }
        }
    }

    /// Parses `address/length:rwx` behind `mem:`.
    fn breakpoint(&mut self) -> Result<(), Mistake> {
        if !matches!(self.peek(), Token::Number(_)) {
            return Err(self.unexpected("expected an address"));
        }
        self.next += 1;
        if *self.peek() == Token::LengthSlash {
            self.next += 1;
            if !matches!(self.peek(), Token::Number(_)) {
                return Err(self.unexpected("expected a length"));
            }
            self.next += 1;
        }
        if *self.peek() == Token::AccessColon {
            let accesses = self.token(1).0.clone();
            self.next += 1;
            match accesses {
                Token::Access(letters) if letters.len() == distinct(&letters) => self.next += 1,
                _ => return Err(self.unexpected("expected some of r, w and x once")),
            }
        }
        Ok(())
    }

    /// Parses terms behind a slash, and the slash behind them.
    fn terms(&mut self) -> Result<Vec<Term>, Mistake> {
        let open = self.end() - 1;
        let mut terms = Vec::new();
        if self.takes('/') {
            return Ok(terms);
        }
        loop {
            terms.push(self.term()?);
            match self.peek() {
                Token::Char(',') => self.next += 1,
                Token::Char('/') => break,
                Token::End => return Err(Mistake::new(open..open + 1, "unmatched /")),
                _ => return Err(self.unexpected("expected a comma or a slash")),
            }
        }
        self.next += 1;
        Ok(terms)
    }

    fn term(&mut self) -> Result<Term, Mistake> {
        const EXPECTED: &str = "expected a term: word or word=value";
        let start = self.at().start;
        let token = self.peek().clone();
        let (word, mut kind) = match token {
            Token::Keyword(word) => (word, TermKind::Keyword),
            Token::Name(word) => (word, TermKind::Name),
            Token::RawTerm(word) => (word, TermKind::Raw),
            Token::Driver(word) => (word, TermKind::Driver),
            _ => return Err(self.unexpected(EXPECTED)),
        };
        self.next += 1;
        let mut value = Value::Absent;
        if kind != TermKind::Driver && self.takes('=') {
            value = match self.peek().clone() {
                Token::Number(number) => Value::Number(number),
                Token::Name(word) | Token::RawTerm(word) => Value::Word(word),
                Token::Keyword(word) if kind == TermKind::Keyword => Value::Word(word),
                _ => return Err(Mistake::new(start..self.end(), EXPECTED)),
            };
            self.next += 1;
            if kind == TermKind::Raw {
                kind = TermKind::Name;
            }
        }
        Ok(Term {
            word,
            kind,
            value,
            at: start..self.end(),
        })
    }
}

/// Returns the number of different letters.
fn distinct(letters: &str) -> usize {
    let mut letters: Vec<char> = letters.chars().collect();
    letters.sort_unstable();
    letters.dedup();
    letters.len()
}

/// Parses a number in perf's notation: decimal, or hexadecimal after 0x.
pub fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
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
        assert_eq!(shape("a,c.d:u"), "a c.d:u");
        assert_eq!(shape("{a,faults},c:D,{d}:k"), "[a faults] c:D [d]");
        assert_eq!(shape("cpu/event=1,umask=2/u,x"), "cpu/event=1,umask=2/u x");
        assert_eq!(shape("{cpu/event=1/,r01b7}"), "[cpu/event=1/ r01b7]");
        assert_eq!(shape("name{a,c}"), "[a c]");
    }

    #[test]
    fn bodies() {
        let body = |text| event(text).body;
        assert_eq!(body("r1b7:u"), Body::Raw(0x1b7));
        // Among terms, perf also accepts r0x1b7.
        assert_eq!(body("r0x1b7"), Body::Name("r0x1b7".to_owned()));
        assert_eq!(body("ref-cycles"), Body::Name("ref-cycles".to_owned()));
        let numeric = Body::Numeric {
            kind: 4,
            config: 0x1b7,
        };
        assert_eq!(body("4:0x1b7"), numeric);
        assert_eq!(body("4:0x1b7:u"), numeric);
        assert!(event("4:0x1b7:u").modifiers.user);
        for text in [
            "sched:sched_switch",
            "printk:console",
            "sched:*",
            "sched:x:u",
        ] {
            assert!(matches!(body(text), Body::Tracepoint { .. }), "{text}");
        }
        for text in [
            "mem:0x1000",
            "mem:0x1000/4:rw:u",
            "mem:0x1000:x",
            "mem:1/name=x/u",
        ] {
            assert_eq!(body(text), Body::Breakpoint, "{text}");
        }
        assert_eq!(body("cycles:uk"), Body::Name("cycles".to_owned()));
    }

    #[test]
    fn terms() {
        let terms = event("cpu/event=0x3c,any,name=x,r1b7,@a=b/k")
            .terms
            .unwrap();
        let terms: Vec<_> = terms
            .iter()
            .map(|term| (term.word.as_str(), term.kind, term.value.clone()))
            .collect();
        assert_eq!(
            terms,
            [
                ("event", TermKind::Name, Value::Number(0x3c)),
                ("any", TermKind::Name, Value::Absent),
                ("name", TermKind::Keyword, Value::Word("x".to_owned())),
                ("r1b7", TermKind::Raw, Value::Absent),
                ("a=b", TermKind::Driver, Value::Absent),
            ]
        );
        assert!(event("cpu/event=0x3c/k").modifiers.kernel);
        assert_eq!(event("cycles//").terms, Some(Vec::new()));
        let quoted = event("cpu/name='a:b,c.d=e'/").terms.unwrap().remove(0);
        assert_eq!(quoted.value, Value::Word("a:b,c.d=e".to_owned()));
    }

    #[test]
    fn blanks_are_skipped() {
        assert_eq!(shape("a, c ,{ d , f } :u"), "a c [d f]");
        assert!(event(" a :u").modifiers.user);
        assert!(event("a u").modifiers.user);
    }

    #[test]
    fn modifiers() {
        let modifiers = event("cycles:ukDpp").modifiers;
        assert!(modifiers.user && modifiers.kernel && modifiers.pinned);
        assert_eq!((modifiers.precise, modifiers.weak), (2, false));
        let group = parse("{a,c}:We").unwrap().remove(0);
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
            ("a:4", "  ^"),
            ("a c", "  ^"),
            ("a:W", "  ^"),
            ("{a:W}", "   ^"),
            ("cpu/event=1", "   ^"),
            ("cpu/event=/", "    ^^^^^^"),
            ("cpu/event=1/:u", "            ^"),
            ("cpu/4/", "    ^"),
            ("{a}:", "    ^"),
            ("mem:x", "    ^"),
            ("mem:0x1000:rr", "           ^^"),
            ("4:99999999999999999999", "  ^^^^^^^^^^^^^^^^^^^^"),
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
