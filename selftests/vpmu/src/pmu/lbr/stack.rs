// SPDX-License-Identifier: GPL-2.0

//! The stack of records.

/// Maximum number of records.
const MAX: usize = 32;

/// One record, as software reads it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) info: u64,
}

/// The records, a ring. The caller passes its size as `depth`.
#[derive(Debug, Default)]
pub(super) struct Stack {
    /// The records by number.
    pub(super) records: [Record; MAX],
    /// The number of the newest one.
    pub(super) top: usize,
}

impl Stack {
    /// Adds a record in the place of the oldest one.
    pub(super) fn push(&mut self, depth: usize, record: Record) {
        self.top = (self.top + 1) % depth;
        self.records[self.top] = record;
    }

    /// Removes the newest record, if there is one.
    pub(super) fn pop(&mut self, depth: usize) {
        let newest = &mut self.records[self.top];
        if *newest != Record::default() {
            *newest = Record::default();
            self.top = (self.top + depth - 1) % depth;
        }
    }

    /// Returns the number of a record, given its age: 0 is the newest.
    pub(super) fn by_age(&self, depth: usize, age: usize) -> usize {
        (self.top + depth - age) % depth
    }
}
