// SPDX-License-Identifier: GPL-2.0

//! The tokens of the perf tool's lists of events.
//!
//! Follows `tools/perf/util/parse-events.l`: at each place the longest match is the token, and of
//! equally long ones the first rule. Between tokens, perf skips characters that begin none, blanks
//! among them.

use crate::syntax::{
    Mistake,
    Modifiers,
    Span,
    LETTERS, //
};

/// A token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// The name of an event, a PMU, a group, or a field.
    Name(String),
    /// `rHEX` as an event.
    Raw(u64),
    /// `rHEX` among terms, with the r.
    RawTerm(String),
    /// A number.
    Number(u64),
    /// Modifier letters.
    Modifiers(Modifiers),
    /// One of perf's own words among terms.
    Keyword(String),
    /// `@word` among terms, without the `@`.
    Driver(String),
    /// `mem:`, the start of a breakpoint.
    Mem,
    /// The slash before a breakpoint's length.
    LengthSlash,
    /// The colon before a breakpoint's accesses.
    AccessColon,
    /// A breakpoint's accesses, some of `rwx`.
    Access(String),
    /// One of `/ , : { } =`.
    Char(char),
    /// The end of the text.
    End,
}

/// Perf's own words among terms.
const KEYWORDS: &[&str] = &[
    "config",
    "config1",
    "config2",
    "config3",
    "config4",
    "name",
    "period",
    "freq",
    "branch_type",
    "time",
    "call-graph",
    "stack-size",
    "max-stack",
    "nr",
    "inherit",
    "no-inherit",
    "overwrite",
    "no-overwrite",
    "percore",
    "aux-output",
    "aux-action",
    "aux-sample-size",
    "metric-id",
    "cpu",
    "ratio-to-prev",
    "legacy-hardware-config",
    "legacy-cache-config",
];

/// A start condition of perf's lexer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before an event or a group.
    Event,
    /// In an event.
    Initial,
    /// Between slashes.
    Config,
    /// In a breakpoint.
    Mem,
}

/// Splits the text into tokens, the last of which is [`Token::End`].
///
/// # Errors
///
/// Wrong modifiers, a number of more than 64 bits, an unmatched brace, and `/` or `}` in place of
/// an event.
pub fn tokens(text: &str) -> Result<Vec<(Token, Span)>, Mistake> {
    let mut lexer = Lexer {
        text,
        at: 0,
        state: State::Event,
    };
    let mut tokens = Vec::new();
    while lexer.at < text.len() {
        if let Some(token) = lexer.token()? {
            tokens.push(token);
        }
    }
    tokens.push((Token::End, text.len()..text.len()));
    Ok(tokens)
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    state: State,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    /// Returns the token here and advances beyond it; `None` for skipped characters.
    fn token(&mut self) -> Result<Option<(Token, Span)>, Mistake> {
        let start = self.at;
        let (length, token) = match self.state {
            State::Event => return self.before_event(),
            State::Mem => self.in_breakpoint()?,
            State::Config => self.among_terms()?,
            State::Initial => self.in_event()?,
        };
        self.at += length;
        Ok(token.map(|token| (token, start..self.at)))
    }

    /// Looks ahead for an event or a group.
    fn before_event(&mut self) -> Result<Option<(Token, Span)>, Mistake> {
        let rest = self.rest();
        let here = self.at..self.at + 1;
        let first = rest.chars().next();
        match first {
            Some(',') => {
                self.at += 1;
                return Ok(Some((Token::Char(','), here)));
            }
            // Perf prints these and continues.
            Some('/') => return Err(Mistake::new(here, "expected an event, found /")),
            Some('}') => return Err(Mistake::new(here, "expected an event, found }")),
            _ => {}
        }
        let stop = rest.find([',', '{', '}', '/']).unwrap_or(rest.len());
        if rest[stop..].starts_with('{') && !rest[stop..].contains('}') {
            let open = self.at + stop;
            return Err(Mistake::new(open..open + 1, "unmatched {"));
        }
        self.state = State::Initial;
        Ok(None)
    }

    /// Returns the length of the token, and the token.
    fn in_event(&mut self) -> Result<(usize, Option<Token>), Mistake> {
        let rest = self.rest();
        let mut found = Longest::default();
        found.offer(if rest.starts_with("mem:") { 4 } else { 0 }, Rule::Mem);
        found.offer(raw(rest), Rule::Raw);
        found.offer(decimal(rest), Rule::Decimal);
        found.offer(hexadecimal(rest), Rule::Hexadecimal);
        let letters = span(rest, |letter| LETTERS.contains(letter)).min(17);
        found.offer(letters, Rule::Modifiers);
        found.offer(name(rest, ""), Rule::Name);
        found.offer(quoted(rest), Rule::Quoted);
        self.found(found)
    }

    fn among_terms(&mut self) -> Result<(usize, Option<Token>), Mistake> {
        let rest = self.rest();
        let mut found = Longest::default();
        for word in KEYWORDS.iter().filter(|word| rest.starts_with(**word)) {
            found.offer(word.len(), Rule::Keyword);
        }
        found.offer(raw(rest), Rule::RawTerm);
        if let Some(digits) = rest.strip_prefix("r0x") {
            let digits = hex_digits(digits);
            found.offer(if digits > 0 { 3 + digits } else { 0 }, Rule::RawTerm);
        }
        found.offer(decimal(rest), Rule::Decimal);
        found.offer(hexadecimal(rest), Rule::Hexadecimal);
        found.offer(name(rest, ":"), Rule::Name);
        found.offer(driver(rest), Rule::Driver);
        found.offer(quoted(rest), Rule::Quoted);
        self.found(found)
    }

    fn in_breakpoint(&mut self) -> Result<(usize, Option<Token>), Mistake> {
        let rest = self.rest();
        let accesses = |text: &str| span(text, |letter| "rwx".contains(letter)).min(3);
        let after = &rest[rest.chars().next().map_or(0, char::len_utf8)..];
        if accesses(rest) > 0 {
            let letters = rest[..accesses(rest)].to_owned();
            return Ok((letters.len(), Some(Token::Access(letters))));
        }
        match (rest.as_bytes().first(), after.chars().next()) {
            (Some(b':'), _) if accesses(after) > 0 => Ok((1, Some(Token::AccessColon))),
            (Some(b'/'), Some(next)) if next.is_ascii_digit() => Ok((1, Some(Token::LengthSlash))),
            (Some(b'/'), Some(_)) => {
                self.state = State::Config;
                Ok((1, Some(Token::Char('/'))))
            }
            _ => {
                let mut found = Longest::default();
                found.offer(decimal(rest), Rule::Decimal);
                found.offer(hexadecimal(rest), Rule::Hexadecimal);
                if found.length > 0 {
                    return self.found(found);
                }
                self.state = State::Initial;
                Ok((0, None))
            }
        }
    }

    /// Makes the token of the longest match.
    fn found(&mut self, found: Longest) -> Result<(usize, Option<Token>), Mistake> {
        let text = &self.rest()[..found.length];
        let at = self.at..self.at + found.length;
        let number = |digits: &str, base| {
            let number = u64::from_str_radix(digits, base);
            number.map_err(|_| Mistake::new(at.clone(), "value exceeds 64 bits"))
        };
        let token = match found.rule {
            None => return Ok(self.single()),
            Some(Rule::Mem) => {
                self.state = State::Mem;
                Token::Mem
            }
            Some(Rule::Raw) => Token::Raw(number(&text[1..], 16)?),
            Some(Rule::RawTerm) => Token::RawTerm(text.to_owned()),
            Some(Rule::Decimal) => Token::Number(number(text, 10)?),
            Some(Rule::Hexadecimal) => Token::Number(number(&text[2..], 16)?),
            Some(Rule::Modifiers) => Token::Modifiers(Modifiers::parse(text, self.at)?),
            Some(Rule::Keyword) => Token::Keyword(text.to_owned()),
            Some(Rule::Name) => Token::Name(text.to_owned()),
            Some(Rule::Quoted) => Token::Name(text[1..text.len() - 1].to_owned()),
            Some(Rule::Driver) => Token::Driver(text[1..].to_owned()),
        };
        Ok((found.length, Some(token)))
    }

    /// Returns the length and the token of a single character.
    fn single(&mut self) -> (usize, Option<Token>) {
        let letter = self.rest().chars().next().unwrap_or_default();
        let inside = self.state == State::Config;
        match letter {
            '/' if inside => self.state = State::Initial,
            '/' => self.state = State::Config,
            ',' if inside => {}
            ',' | '{' => self.state = State::Event,
            _ => {}
        }
        let token = "/,:{}=".contains(letter).then_some(Token::Char(letter));
        (letter.len_utf8(), token)
    }
}

#[derive(Clone, Copy)]
enum Rule {
    Mem,
    Raw,
    RawTerm,
    Decimal,
    Hexadecimal,
    Modifiers,
    Keyword,
    Name,
    Quoted,
    Driver,
}

/// The longest match; of equally long ones, the first.
#[derive(Default)]
struct Longest {
    length: usize,
    rule: Option<Rule>,
}

impl Longest {
    fn offer(&mut self, length: usize, rule: Rule) {
        if length > self.length {
            (self.length, self.rule) = (length, Some(rule));
        }
    }
}

/// Returns the length of the characters at the start that `is_it` accepts.
fn span(text: &str, is_it: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !is_it(letter)).unwrap_or(text.len())
}

fn hex_digits(text: &str) -> usize {
    span(text, |letter| letter.is_ascii_hexdigit()).min(16)
}

fn decimal(text: &str) -> usize {
    span(text, |letter| letter.is_ascii_digit())
}

fn hexadecimal(text: &str) -> usize {
    let digits = text.strip_prefix("0x").map_or(0, hex_digits);
    if digits > 0 {
        2 + digits
    } else {
        0
    }
}

fn raw(text: &str) -> usize {
    let digits = text.strip_prefix('r').map_or(0, hex_digits);
    if digits > 0 {
        1 + digits
    } else {
        0
    }
}

fn starts_name(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "_*?[]".contains(letter)
}

/// Returns the length of a name, which may also contain the characters of `more`.
fn name(text: &str, more: &str) -> usize {
    if !text.starts_with(starts_name) {
        return 0;
    }
    span(text, |letter| {
        starts_name(letter) || ".!-".contains(letter) || more.contains(letter)
    })
}

fn quoted(text: &str) -> usize {
    let inner = text.strip_prefix('\'').map_or(0, |text| name(text, ":,="));
    if inner > 0 && text[1 + inner..].starts_with('\'') {
        inner + 2
    } else {
        0
    }
}

fn driver(text: &str) -> usize {
    let Some(text) = text.strip_prefix('@') else {
        return 0;
    };
    let is_in_word = |letter: char| letter.is_ascii_alphanumeric() || "_.".contains(letter);
    let word = span(text, is_in_word);
    if word == 0 {
        return 0;
    }
    let value = text[word..].strip_prefix('=').map_or(0, |text| {
        span(text, |letter| is_in_word(letter) || "*?:".contains(letter))
    });
    1 + word + if value > 0 { 1 + value } else { 0 }
}
