// SPDX-License-Identifier: GPL-2.0

//! The removal of personal details from messages: the report is made to be published.

/// The words that must not be in a report.
#[derive(Clone, Debug, Default)]
pub struct Private {
    words: Vec<String>,
}

/// The shortest word that is removed: a user called `a` would take the report apart.
const SHORTEST: usize = 3;

/// User names that say nothing about a person.
const COMMON: [&str; 6] = ["root", "nobody", "user", "admin", "test", "debian"];

impl Private {
    /// Collects the words to remove: the name of the `host`, without and with its domain, the
    /// users of `/etc/passwd` with a number of 1000 and more, and the names in their comments.
    pub fn new(host: &str, passwd: &str) -> Self {
        let mut words = vec![host.trim().to_owned()];
        words.extend(host.trim().split('.').next().map(str::to_owned));
        for line in passwd.lines() {
            let fields: Vec<&str> = line.split(':').collect();
            let [name, _, uid, _, comment, ..] = fields[..] else {
                continue;
            };
            if !uid.parse::<u32>().is_ok_and(|uid| uid >= 1000) {
                continue;
            }
            words.push(name.to_owned());
            words.extend(
                comment
                    .split(',')
                    .flat_map(str::split_whitespace)
                    .map(str::to_owned),
            );
        }
        let common = |word: &String| COMMON.contains(&word.to_lowercase().as_str());
        words.retain(|word| word.len() >= SHORTEST && !common(word) && word != "localhost");
        // Longer words first, as they may contain shorter ones.
        words.sort_by_key(|word| std::cmp::Reverse(word.len()));
        words.dedup();
        Self { words }
    }

    /// Returns `text` without personal details: the words, paths outside /sys, /proc and
    /// /dev/cpu, hardware addresses, and names of processes (`name[123]`).
    pub fn clean(&self, text: &str) -> String {
        let mut cleaned = String::new();
        let separates = |it: char| it.is_whitespace() || "\"'(){},;=".contains(it);
        for piece in text.split_inclusive(separates) {
            let word = piece.trim_end_matches(separates);
            let (word, dot) = match word.strip_suffix([':', '.']) {
                Some(shorter) => (shorter, &word[shorter.len()..]),
                None => (word, ""),
            };
            cleaned += &self.clean_word(word);
            cleaned += dot;
            cleaned += &piece[word.len() + dot.len()..];
        }
        cleaned
    }

    fn clean_word(&self, word: &str) -> String {
        if is_path(word) {
            return "(a path)".to_owned();
        }
        if is_address(word) {
            return "(an address)".to_owned();
        }
        if is_process(word) {
            return "(a process)".to_owned();
        }
        let mut word = word.to_owned();
        for private in &self.words {
            word = replace(&word, private);
        }
        word
    }
}

/// Replaces `what` in `word`, whatever the case of its letters, where no letter or digit is
/// around it.
fn replace(word: &str, what: &str) -> String {
    let (lower, what) = (word.to_ascii_lowercase(), what.to_ascii_lowercase());
    let mut replaced = String::new();
    let mut from = 0;
    while let Some(at) = lower[from..].find(&what).map(|at| at + from) {
        let end = at + what.len();
        let inside = lower[..at].ends_with(char::is_alphanumeric)
            || lower[end..].starts_with(char::is_alphanumeric);
        replaced += &word[from..at];
        replaced += if inside { &word[at..end] } else { "(removed)" };
        from = end;
    }
    replaced + &word[from..]
}

fn is_path(word: &str) -> bool {
    // Also behind a name, as in `file:/home`.
    let Some(start) = word.find('/') else {
        return false;
    };
    let known = ["/sys", "/proc", "/dev/cpu"];
    let path = &word[start..];
    let before = &word[..start];
    (before.is_empty() || before.ends_with(':') || before.starts_with(['.', '~']))
        && path.len() > 1
        && !known.iter().any(|known| path.starts_with(known))
}

/// Returns whether the word is a hardware address: six bytes.
fn is_address(word: &str) -> bool {
    let bytes: Vec<&str> = word.split([':', '-']).collect();
    let is_byte = |it: &&str| it.len() == 2 && it.bytes().all(|it| it.is_ascii_hexdigit());
    bytes.len() == 6 && bytes.iter().all(is_byte)
}

/// Returns whether the word is a process as rpmu's log names them: `name[123]`.
fn is_process(word: &str) -> bool {
    let inside = word.strip_suffix(']').and_then(|it| it.rsplit_once('['));
    inside.is_some_and(|(_, pid)| !pid.is_empty() && pid.bytes().all(|it| it.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\n\
        daemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n\
        jane:x:1000:1000:Jane Roe,,,:/home/jane:/bin/bash\n\
        al:x:1001:1001::/home/al:/bin/bash\n\
        user:x:1002:1002:Margarete:/home/user:/bin/bash\n";

    #[test]
    fn personal_details_are_removed() {
        let private = Private::new("gandalf.example.org\n", PASSWD);
        let cases = [
            (
                "gandalf: 2 of perf[1234], /home/jane/x, 00:16:3e:aa:bb:cc, see /sys/module",
                "(removed): 2 of (a process), (a path), (an address), see /sys/module",
            ),
            ("7.3.4-gandalf+", "7.3.4-(removed)+"),
            (
                "built on Gandalf by JANE",
                "built on (removed) by (removed)",
            ),
            ("gandalf.example.org.", "(removed)."),
            ("Margarete's", "(removed)'s"),
            ("./report.html", "(a path)"),
            ("file:/home/al/rpmu.ko", "(a path)"),
            ("(/opt/x)", "((a path))"),
            (
                "in use: 1 of my-tool[77] (end it)",
                "in use: 1 of (a process) (end it)",
            ),
            ("02:42:ac:11:00:02", "(an address)"),
        ];
        for (text, cleaned) in cases {
            assert_eq!(private.clean(text), cleaned);
        }
    }

    #[test]
    fn the_rest_stays() {
        let private = Private::new("gandalf.example.org\n", PASSWD);
        for text in [
            "",
            "  two  blanks ",
            "Intel(R) Xeon(R) Gold 6454S @ 2.2 GHz, ucode 0x2b000590",
            "janet is not jane2, and root is the user of all machines",
            "see /sys/kernel/debug/rpmu/users: events, 3/4 of the time",
            "exact_count.c:57:instructions_user:Expected expected (200005) == read_value(fd) (200006)",
            "counter[x], MSR 0x38f",
        ] {
            assert_eq!(private.clean(text), text);
        }
        // A name of one or two letters would be found everywhere.
        assert_eq!(Private::new("a", PASSWD).clean("a al"), "a al");
    }
}
