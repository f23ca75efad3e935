// SPDX-License-Identifier: GPL-2.0

//! The readers of an event's mmap page, and whether they can read its counter with RDPMC.
//!
//! A page has one index for all its readers, and RDPMC reads a counter of the CPU that executes it.
//! So an index is right for a task that reads its own event. For other readers it is right only by
//! chance: an event of another task counts on the CPU where that task runs, and the reader of a
//! CPU's event may be on another CPU. Without an index, libraries call `read()`.
//!
//! Context: any, NMIs included, except for [`Mappings`].

/// The tasks for which the page has the index of the event's counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// No tasks: the count is not in a single counter, or the reader may be on another CPU.
    None,
    /// The tasks of the counted process, while no other process has the event mapped.
    OwnProcess,
    /// All tasks, by the administrator's choice.
    All,
}

impl Readers {
    /// Returns the readers of a new event. It counts a CPU (`counts_cpu`) or a task, including the
    /// task's children if it `inherits`. In the mode `always` (2 in the file `rdpmc`), a CPU's
    /// event has an index, as with the built-in driver.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::user_read::Readers;
    ///
    /// assert_eq!(Readers::of(false, false, false), Readers::OwnProcess);
    /// assert_eq!(Readers::of(true, false, false), Readers::None);
    /// ```
    pub fn of(counts_cpu: bool, inherits: bool, always: bool) -> Self {
        match (counts_cpu, inherits) {
            (true, _) if always => Self::All,
            (true, _) | (false, true) => Self::None,
            (false, false) => Self::OwnProcess,
        }
    }
}

/// The mappings of a task's event, by address space. An address space is a number that is not 0.
///
/// Process context, one caller at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mappings {
    /// If `own` is not 0, the address space in which the event's own process has mapped it.
    pub space: u64,
    /// The number of mappings in `space`.
    pub own: u32,
    /// The number of all other mappings.
    pub others: u32,
}

impl Mappings {
    /// Adds a mapping in `space`. `own` is set if the event's own process makes it.
    pub fn map(&mut self, space: u64, own: bool) {
        if own && self.own == 0 {
            self.space = space;
        }
        if own && self.space == space {
            self.own = self.own.saturating_add(1);
        } else {
            self.others = self.others.saturating_add(1);
        }
    }

    /// Removes a mapping in `space`.
    pub fn unmap(&mut self, space: u64) {
        // An address space lives as long as it has mappings, so no other address space can have
        // this number.
        if self.own != 0 && self.space == space {
            self.own = self.own.saturating_sub(1);
        } else {
            self.others = self.others.saturating_sub(1);
        }
    }

    /// Returns the address space that has all mappings, if it belongs to the event's own process;
    /// otherwise 0. The event has an index as long as its task has this address space.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::user_read::Mappings;
    ///
    /// let mut mappings = Mappings::default();
    /// mappings.map(7, true);
    /// assert_eq!(mappings.reader(), 7);
    /// // A child of the process has got the descriptor and maps it, too.
    /// mappings.map(8, false);
    /// assert_eq!(mappings.reader(), 0);
    /// ```
    pub fn reader(&self) -> u64 {
        if self.own != 0 && self.others == 0 {
            self.space
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers() {
        let cases = [
            // (counts a CPU, inherits, always)
            ((false, false, false), Readers::OwnProcess),
            ((false, false, true), Readers::OwnProcess),
            ((false, true, false), Readers::None),
            ((false, true, true), Readers::None),
            ((true, false, false), Readers::None),
            ((true, true, false), Readers::None),
            ((true, false, true), Readers::All),
            ((true, true, true), Readers::All),
        ];
        for (case, expected) in cases {
            let (counts_cpu, inherits, always) = case;
            assert_eq!(
                Readers::of(counts_cpu, inherits, always),
                expected,
                "{case:?}"
            );
        }
    }

    #[derive(Clone, Copy)]
    enum Step {
        Own(u64),
        Other(u64),
        Unmap(u64),
    }
    use Step::*;

    #[test]
    fn mappings() {
        let cases: &[(&str, &[(Step, u64)])] = &[
            ("own", &[(Own(7), 7), (Unmap(7), 0)]),
            (
                "own, twice",
                &[(Own(7), 7), (Own(7), 7), (Unmap(7), 7), (Unmap(7), 0)],
            ),
            ("another's", &[(Other(8), 0), (Unmap(8), 0)]),
            (
                "own and another's",
                &[(Own(7), 7), (Other(8), 0), (Unmap(8), 7), (Unmap(7), 0)],
            ),
            (
                "another's and own",
                &[(Other(8), 0), (Own(7), 0), (Unmap(8), 7), (Unmap(7), 0)],
            ),
            (
                "own leaves first",
                &[(Own(7), 7), (Other(8), 0), (Unmap(7), 0), (Unmap(8), 0)],
            ),
            (
                "a task that shares the address space maps it",
                &[(Other(7), 0), (Own(7), 0), (Unmap(7), 0), (Unmap(7), 0)],
            ),
            (
                "own after exec, while another keeps the old address space",
                &[(Own(7), 7), (Own(9), 0), (Unmap(7), 0), (Unmap(9), 0)],
            ),
            (
                "own again after all have left",
                &[(Own(7), 7), (Unmap(7), 0), (Own(9), 9), (Unmap(9), 0)],
            ),
        ];
        for (name, steps) in cases {
            let mut mappings = Mappings::default();
            for (i, (step, reader)) in steps.iter().enumerate() {
                match *step {
                    Own(space) => mappings.map(space, true),
                    Other(space) => mappings.map(space, false),
                    Unmap(space) => mappings.unmap(space),
                }
                assert_eq!(mappings.reader(), *reader, "{name}, step {i}");
            }
            assert_eq!((mappings.own, mappings.others), (0, 0), "{name}");
        }
    }
}
