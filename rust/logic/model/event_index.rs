// SPDX-License-Identifier: GPL-2.0

//! An index of a table of constraints by event code.

use core::ops::Range;

use super::EventConstraint;
use crate::logic::regs::event_select::EventSelect;

/// The range of a table's entries that can match, for each event code (event select bits 0-7).
///
/// Without the index, a search compares the event with every entry, and most events match none.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::model::{EventConstraint, EventIndex};
/// use logic::regs::event_select::EventSelect;
///
/// const TABLE: &[EventConstraint] = &[
///     EventConstraint::event(0xcd, 0x8),
///     EventConstraint::events(0xd0, 0xd2, 0xf),
/// ];
/// let index = EventIndex::of(TABLE);
/// assert_eq!(index.range(EventSelect::event(0xd1, 0x20)), 1..2);
/// assert!(index.range(EventSelect::event(0xd3, 0x20)).is_empty());
/// ```
#[derive(Clone, Copy, Debug)]
pub struct EventIndex([(u8, u8); 256]);

impl EventIndex {
    /// Makes the index of `table`.
    ///
    /// # Panics
    ///
    /// If the table has more than 255 entries.
    pub const fn of(table: &[EventConstraint]) -> Self {
        assert!(table.len() <= u8::MAX as usize, "the table is too long");
        let mut ranges = [(0, 0); 256];
        let mut code = 0;
        while code < ranges.len() {
            let mut i = 0;
            while i < table.len() {
                if table[i].may_match_event_code(code as u64) {
                    if ranges[code].1 == 0 {
                        ranges[code].0 = i as u8;
                    }
                    ranges[code].1 = i as u8 + 1;
                }
                i += 1;
            }
            code += 1;
        }
        Self(ranges)
    }

    /// Returns the range from the first to the last entry that can match an event with the event
    /// code of `select`. Entries between these two may have other event codes.
    pub const fn range(&self, select: EventSelect) -> Range<usize> {
        let (first, end) = self.0[(select.bits() & EventSelect::EVENT) as usize];
        first as usize..end as usize
    }
}
