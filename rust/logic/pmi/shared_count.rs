// SPDX-License-Identifier: GPL-2.0

//! The count of a counter that several events share.
//!
//! The PMI serves one of the events, the *owner*: it sets the counter to the start of the owner's
//! next period. All others are *riders*. Every event of the counter, also the owner, counts the
//! difference between two sums of the counter ([`SharedCount`]), which does not change when a
//! period is started. So a PMI costs the same with any number of riders.
//!
//! A PMI may interrupt a callback at any point, bring counts up to date, stop events, and make a
//! rider the owner. No increment is counted twice, since each event takes the growth of the sum in
//! one step ([`Base::take`]). An increment that the interrupted callback has read, but not added to
//! the sum yet, is in the event's next count; a rider that this very PMI stops misses it.

use super::Word;
use core::sync::atomic::AtomicU64;

/// Number of events that a CPU can have: the ids of riders are below.
pub const MAX_IDS: usize = 128;

const BITS: usize = u64::BITS as usize;

/// The sum of the increments of a shared counter, and its started riders.
pub struct SharedCount<W = AtomicU64> {
    sum: W,
    riders: [W; MAX_IDS / BITS],
}

impl<W: Word> Default for SharedCount<W> {
    fn default() -> Self {
        Self {
            sum: W::new(0),
            riders: core::array::from_fn(|_| W::new(0)),
        }
    }
}

/// Changes a word by `change`, and returns its previous value.
fn update<W: Word>(word: &W, change: impl Fn(u64) -> u64) -> u64 {
    let mut before = word.load();
    loop {
        match word.compare_exchange(before, change(before)) {
            Ok(()) => return before,
            Err(changed) => before = changed,
        }
    }
}

impl<W: Word> SharedCount<W> {
    /// Adds the counter's increment since the last call.
    pub fn add(&self, delta: u64) {
        update(&self.sum, |sum| sum.wrapping_add(delta));
    }

    /// Returns the word with the bit of `id`, and the bit.
    fn place(&self, id: usize) -> (&W, u64) {
        // The mask changes no id, and leaves no panic path for the NMI.
        let word = &self.riders[(id / BITS) & (MAX_IDS / BITS - 1)];
        // CAST: less than 64.
        (word, 1u64.wrapping_shl((id % BITS) as u32))
    }

    /// Records that the rider `id` is started.
    pub fn insert(&self, id: usize) {
        let (word, bit) = self.place(id);
        update(word, |riders| riders | bit);
    }

    /// Records that the rider `id` is stopped or has become the owner. Returns whether it was
    /// started.
    pub fn remove(&self, id: usize) -> bool {
        let (word, bit) = self.place(id);
        update(word, |riders| riders & !bit) & bit != 0
    }

    /// [Removes](Self::remove) a rider that is started, and returns it: it becomes the owner.
    pub fn take_any(&self) -> Option<usize> {
        for (number, word) in self.riders.iter().enumerate() {
            // CAST: at most 64.
            let lowest = |riders: u64| riders.trailing_zeros() as usize;
            let before = update(word, |riders| riders & riders.wrapping_sub(1));
            if before != 0 {
                return Some(number.wrapping_mul(BITS).wrapping_add(lowest(before)));
            }
        }
        None
    }

    /// Forgets the riders.
    pub fn clear(&self) {
        self.riders.iter().for_each(|word| word.store(0));
    }
}

/// The sum of a shared counter up to which an event is counted.
pub struct Base<W = AtomicU64>(W);

impl<W: Word> Default for Base<W> {
    fn default() -> Self {
        Self(W::new(0))
    }
}

impl<W: Word> Base<W> {
    /// Begins to count, from the present sum of `counter` on.
    pub fn begin<C: Word>(&self, counter: &SharedCount<C>) {
        self.0.store(counter.sum.load());
    }

    /// Returns the growth of the sum of `counter` since the last call, for the caller to add to the
    /// event's count.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::pmi::shared_count::{Base, SharedCount};
    ///
    /// let counter = <SharedCount>::default();
    /// let (owner, rider) = (<Base>::default(), <Base>::default());
    /// counter.add(5);
    /// rider.begin(&counter);
    /// counter.add(2);
    /// assert_eq!((owner.take(&counter), rider.take(&counter)), (7, 2));
    /// assert_eq!(rider.take(&counter), 0);
    /// ```
    pub fn take<C: Word>(&self, counter: &SharedCount<C>) -> u64 {
        let mut base = self.0.load();
        loop {
            let sum = counter.sum.load();
            match self.0.compare_exchange(base, sum) {
                Ok(()) => return sum.wrapping_sub(base),
                Err(changed) => base = changed,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn riders_are_taken_once() {
        let counter = <SharedCount>::default();
        for id in [127, 3, 64, 5] {
            counter.insert(id);
        }
        assert!(counter.remove(5) && !counter.remove(5) && !counter.remove(63));
        let taken: Vec<_> = std::iter::from_fn(|| counter.take_any()).collect();
        assert_eq!(taken, [3, 64, 127]);
        counter.insert(1);
        counter.clear();
        assert_eq!(counter.take_any(), None);
    }

    #[test]
    fn sums_wrap() {
        let counter = <SharedCount>::default();
        let base = <Base>::default();
        counter.add(u64::MAX);
        base.begin(&counter);
        counter.add(3);
        assert_eq!(base.take(&counter), 3);
    }
}
