// SPDX-License-Identifier: GPL-2.0

//! The value that a counter had when it was last read or written.
//!
//! A count grows by the difference between two values of its counter. A PMI may interrupt a
//! callback between reading the counter and remembering its value. The PMI may itself read and
//! remember, and even write the counter. Whichever of the two changes the remembered value adds the
//! difference to the count. A PMI may write the same value again, so each write is numbered, too
//! ([`CounterWidth::remember_written`]).

use super::Word;
use crate::logic::regs::period::CounterWidth;
use core::sync::atomic::AtomicU64;

/// The value that a counter had when it was last read or written, with the number of its last
/// write. Of a counter that events [share](super::shared_count), only the writes are remembered; of
/// a topdown metric, the slots of its share.
pub struct LastValue<W = AtomicU64>(W);

impl<W: Word> Default for LastValue<W> {
    fn default() -> Self {
        Self(W::new(0))
    }
}

impl<W: Word> LastValue<W> {
    /// Returns the value with the number of the write, for the functions of [`CounterWidth`].
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load()
    }

    /// Reads the counter by `read`, and remembers its value. Returns the previous and the new
    /// value, whose difference the caller has to add to the count.
    // The loop, which repeats only after a PMI, is apart: in it, no register of the caller would
    // stay where it is.
    #[inline(always)]
    pub fn advance(&self, width: CounterWidth, mut read: impl FnMut() -> u64) -> (u64, u64) {
        let previous = self.0.load();
        let now = read();
        match self.replace(width, previous, now) {
            Ok(()) => (previous, now),
            Err(changed) => self.advance_from(width, changed, read),
        }
    }

    /// [Advances](Self::advance) from the value `previous`, which a PMI has just remembered.
    #[cold]
    #[inline(never)]
    fn advance_from(
        &self,
        width: CounterWidth,
        mut previous: u64,
        mut read: impl FnMut() -> u64,
    ) -> (u64, u64) {
        loop {
            let now = read();
            match self.replace(width, previous, now) {
                Ok(()) => return (previous, now),
                Err(changed) => previous = changed,
            }
        }
    }

    /// Remembers that the counter was read as `now`, if its last value was `previous`.
    ///
    /// # Errors
    ///
    /// Fails with the last value if it is not `previous`.
    #[inline(always)]
    pub fn replace(&self, width: CounterWidth, previous: u64, now: u64) -> Result<(), u64> {
        self.0
            .compare_exchange(previous, width.remember_read(previous, now))
    }

    /// Remembers that `value` has been written to the counter.
    ///
    /// To be called by the PMI itself, or while the PMI does not handle the counter.
    #[inline]
    pub fn written(&self, width: CounterWidth, value: u64) {
        self.0.store(width.remember_written(self.0.load(), value));
    }

    /// Calls `publish` with the last value, and again if the value has changed meanwhile.
    #[inline]
    pub fn publish(&self, mut publish: impl FnMut(u64)) {
        let published = self.0.load();
        publish(published);
        if self.0.load() != published {
            self.publish_again(publish);
        }
    }

    /// [Publishes](Self::publish) again: a PMI has published a later value, which the caller may
    /// have overwritten.
    #[cold]
    #[inline(never)]
    fn publish_again(&self, mut publish: impl FnMut(u64)) {
        let mut published = self.0.load();
        loop {
            publish(published);
            let now = self.0.load();
            if now == published {
                return;
            }
            published = now;
        }
    }
}
