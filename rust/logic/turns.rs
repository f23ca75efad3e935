// SPDX-License-Identifier: GPL-2.0

//! Whose turn it is, where groups of events outnumber the counters.
//!
//! The perf core takes turns by order: a context's groups are tried one after the other, and with
//! each interval the first that counts goes to the end. So a group that cannot count keeps those
//! behind it waiting, and what else a group gets depends on who stands next to it
//! (`group_can_go_on()`, `perf_rotate_context()`, `kernel/events/core.c:2920`, `4604`).
//!
//! Here the group that has had the least goes first, whatever the order, then the one that has had
//! the second least if both fit together, and so on ([`Queue`]). Whoever waits comes to the front
//! sooner or later, so nobody starves; and where each group is one event, the number of counters
//! in use is the greatest possible, because sets of events that fit on counters are a matroid.
//!
//! What a group has had is its time on counters, and old times count less and less ([`Had`]): with
//! each turn a 64th is forgotten. So an advantage that was unavoidable, when nobody else fitted,
//! does not have to be paid back for longer than a few dozen turns.
//!
//! Within an interval nothing changes hands: when a task comes back to a CPU, those whose turn it
//! was go first ([`Turn`]).
//!
//! Context: any; nothing but values.

/// Whether it is a group's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// There is room for everybody, as far as is known.
    Free,
    /// There was none for the group, and nothing has been decided yet: with the next turn.
    Undecided,
    /// The group counts.
    Counts,
    /// The group waits.
    Waits,
}

impl Turn {
    /// As a number, for an atomic.
    pub const fn code(self) -> u32 {
        match self {
            Self::Free => 0,
            Self::Undecided => 1,
            Self::Counts => 2,
            Self::Waits => 3,
        }
    }

    /// The turn with this [`code`](Self::code).
    pub const fn from_code(code: u32) -> Self {
        match code {
            0 => Self::Free,
            1 => Self::Undecided,
            2 => Self::Counts,
            _ => Self::Waits,
        }
    }
}

/// What a group has had since there are turns: time on counters, in any unit.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::turns::Had;
///
/// let mut first = Had::NOTHING;
/// first.account(4_000);
/// assert_eq!(first.weight(), None); // What was before there were turns does not count.
/// first.join(0);
/// first.account(8_000);
/// assert_eq!(first.weight(), Some(4_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Had {
    /// What it has had, the more recent the more of it. [`None`] where there are no turns yet.
    weight: Option<u64>,
    /// The group's time on counters when this was last brought up to date.
    until: u64,
}

/// A turn is forgotten with a half-life of 44 turns.
const FORGOTTEN: u32 = 6;

impl Had {
    /// A group that has just come.
    pub const NOTHING: Self = Self {
        weight: None,
        until: 0,
    };

    /// As [`parts`](Self::parts) has returned it.
    pub const fn from_parts(weight: u64, until: u64) -> Self {
        Self {
            weight: match weight {
                u64::MAX => None,
                weight => Some(weight),
            },
            until,
        }
    }

    /// As two numbers, for atomics.
    pub const fn parts(self) -> (u64, u64) {
        match self.weight {
            None => (u64::MAX, self.until),
            Some(weight) => (weight, self.until),
        }
    }

    /// What counts: the less it is, the sooner it is the group's turn. [`None`] if the group is new.
    pub const fn weight(self) -> Option<u64> {
        self.weight
    }

    /// Brings it up to date at the end of a turn. `running` is the time that the group has been on
    /// counters since it was opened. Of a new group no more is kept than that.
    pub const fn account(&mut self, running: u64) {
        let turn = running.wrapping_sub(self.until);
        self.until = running;
        if let Some(weight) = &mut self.weight {
            *weight = weight.wrapping_sub(*weight >> FORGOTTEN);
            *weight = weight.saturating_add(turn);
        }
    }

    /// Lets a new group begin as if it had had what the others have at least. It would otherwise be
    /// served alone until it has caught up.
    pub const fn join(&mut self, least: u64) {
        self.weight = Some(least);
    }

    /// Forgets it all, where nobody has to wait any more.
    pub const fn forget(&mut self) {
        self.weight = None;
    }
}

/// How many groups are considered in one turn. Others come later, as they have had less by then.
pub const LONGEST_QUEUE: usize = 32;

/// Groups, in the order in which it is their turn.
///
/// # Invariants
///
/// The first `len` entries are `Some`, in ascending order; the rest are `None`.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::turns::{Queue, Turn};
///
/// let mut queue = Queue::new();
/// queue.push(Turn::Waits, 30, "a");
/// queue.push(Turn::Waits, 10, "b");
/// queue.push(Turn::Counts, 40, "c");
/// queue.push(Turn::Waits, 10, "d");
/// // Those that count come first, then those that have had the least, the first of equals first.
/// assert_eq!(queue.iter().collect::<String>(), "cbda");
/// ```
pub struct Queue<T> {
    entries: [Option<((bool, u64), T)>; LONGEST_QUEUE],
    len: usize,
}

impl<T: Copy> Queue<T> {
    /// Nobody yet.
    pub const fn new() -> Self {
        Self {
            entries: [const { None }; LONGEST_QUEUE],
            len: 0,
        }
    }

    /// Lets `group` queue up: behind all whose turn it is, unless it is its own, and behind all that
    /// have had as much or less. Who is behind [`LONGEST_QUEUE`] others then is not considered.
    pub fn push(&mut self, turn: Turn, had: u64, group: T) {
        let key = (turn != Turn::Counts, had);
        let mut new = Some((key, group));
        for slot in &mut self.entries {
            match slot {
                Some((key, _)) if new.is_some_and(|(it, _)| it < *key) => {
                    core::mem::swap(slot, &mut new);
                }
                Some(_) => {}
                None => {
                    *slot = new;
                    self.len = self.len.saturating_add(1);
                    return;
                }
            }
        }
    }

    /// The groups, in their order.
    pub fn iter(&self) -> impl Iterator<Item = T> + '_ {
        self.entries.iter().flatten().map(|(_, group)| *group)
    }

    /// Number of groups.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nobody.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<T: Copy> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_and_numbers() {
        for turn in [Turn::Free, Turn::Undecided, Turn::Counts, Turn::Waits] {
            assert_eq!(Turn::from_code(turn.code()), turn);
        }
        let mut had = Had::NOTHING;
        for _ in 0..2 {
            let (weight, until) = had.parts();
            assert_eq!(Had::from_parts(weight, until), had);
            had.join(7);
            had.account(9);
        }
    }

    #[test]
    fn old_times_are_forgotten() {
        let mut had = Had::NOTHING;
        had.join(0);
        had.account(6400);
        for _ in 0..44 {
            had.account(6400);
        }
        let left = had.weight().unwrap();
        assert!((3200..3300).contains(&left), "{left}");
        // However long it counts: there is an end to what counts.
        let mut running = 6400;
        for _ in 0..10_000 {
            running += 100;
            had.account(running);
        }
        assert!(had.weight().unwrap() <= 6400);
    }

    #[test]
    fn a_new_group_does_not_go_before_all_others_for_long() {
        let mut had = Had::NOTHING;
        had.account(1000);
        assert_eq!(had.weight(), None);
        had.join(70);
        had.account(1005);
        assert_eq!(had.weight(), Some(74));
        // Nor does a time without turns count.
        had.forget();
        had.account(9000);
        assert_eq!(had.weight(), None);
    }

    #[test]
    fn the_longest_queue_keeps_those_that_have_had_the_least() {
        let mut queue = Queue::new();
        assert!(queue.is_empty());
        for group in (0..100u64).rev() {
            queue.push(Turn::Waits, group / 2, group);
        }
        assert_eq!(queue.len(), LONGEST_QUEUE);
        // Of two that have had the same, the one that was pushed first.
        let expected = (0..16).flat_map(|pair| [2 * pair + 1, 2 * pair]);
        assert!(queue.iter().eq(expected));
        queue.push(Turn::Counts, 1000, 1000);
        assert_eq!(queue.iter().next(), Some(1000));
        assert_eq!(queue.len(), LONGEST_QUEUE);
    }
}
