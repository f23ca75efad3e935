// SPDX-License-Identifier: GPL-2.0

//! The count of a counter that several events share.
//!
//! The PMI serves one of the events, the *owner*: it sets the counter to the start of the owner's
//! next period. All others are *riders* here, even the head
//! ([`sched::riders`](crate::logic::sched::riders)) if it is not the owner. Every event of the
//! counter, also the owner, counts the difference between two totals of the counter. Starting a
//! period does not change the total. So a PMI costs the same with any number of riders.
//!
//! The total consists of the total when the counter was last written ([`SharedCount`]) and of the
//! increment since ([`LastValue`]). Reading it changes neither. While the counter is being
//! written, the total is *frozen*:
//!
//! ```text
//!           freeze(), then the counter is written
//!  counting ────────────► frozen
//!           ◄────────────
//!               thaw()
//! ```
//!
//! A PMI may interrupt a callback at any point, read counts, and stop events. Unless the callback
//! has deactivated the counter, the PMI may also make a rider the owner, and write the counter.
//! Each event takes the growth of the total in one step ([`Base::take`]), so no increment is
//! counted twice. An event that the PMI stops has all increments until then: the interrupted
//! callback keeps none to itself, except those of the event whose count it is bringing up to date.

use super::{
    last_value::LastValue,
    Word, //
};
use crate::logic::regs::period::CounterWidth;
use core::sync::atomic::AtomicU64;

/// Number of events that a CPU can have: the ids of riders are below.
pub const MAX_IDS: usize = 128;

const BITS: usize = u64::BITS as usize;

/// The sum of the increments of a shared counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Total(
    /// Twice the number of occurrences: bit 0 is [`FROZEN`].
    u64,
);

const FROZEN: u64 = 1;

impl Total {
    /// Returns the total after `delta` further occurrences.
    #[inline]
    const fn plus(self, delta: u64) -> Self {
        Self(self.0.wrapping_add(delta.wrapping_shl(1)))
    }

    /// Returns the number of occurrences since `earlier`; less than 0 if `earlier` is later.
    #[inline]
    const fn since(self, earlier: Self) -> i64 {
        // CAST: two's complement.
        (self.0.wrapping_sub(earlier.0) as i64).wrapping_shr(1)
    }

    /// Returns the total as a word, for storage elsewhere.
    #[inline]
    pub const fn to_word(self) -> u64 {
        self.0
    }

    /// Returns the total with this [word](Self::to_word).
    #[inline]
    pub const fn from_word(word: u64) -> Self {
        Self(word & !FROZEN)
    }
}

/// The total of a shared counter when it was last written, and its started riders.
pub struct SharedCount<W = AtomicU64> {
    /// A [`Total`], and [`FROZEN`] if that is the total now.
    at_write: W,
    riders: [W; MAX_IDS / BITS],
}

impl<W: Word> Default for SharedCount<W> {
    fn default() -> Self {
        Self {
            at_write: W::new(0),
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
    /// Starts with no riders, and with a total of 0, which it returns. This is the total at the
    /// counter's last value ([`LastValue`]), up to which the counter's event, if any, is counted.
    /// `counts` is set if that event is started; otherwise the total is frozen.
    ///
    /// To be called before the PMI and readers use the total.
    pub fn begin(&self, counts: bool) -> Total {
        self.riders.iter().for_each(|word| word.store(0));
        self.at_write.store(if counts { 0 } else { FROZEN });
        Total(0)
    }

    /// Returns the total. `read` returns the counter's value, and `last` has the value that was
    /// last written.
    #[inline]
    pub fn total(
        &self,
        last: &LastValue<W>,
        width: CounterWidth,
        mut read: impl FnMut() -> u64,
    ) -> Total {
        loop {
            let written = last.get();
            let at_write = self.at_write.load();
            if at_write & FROZEN != 0 {
                return Total::from_word(at_write);
            }
            let now = read();
            // A PMI in between may have written the counter.
            if last.get() == written {
                return Total(at_write).plus(width.delta(written, now));
            }
        }
    }

    /// Freezes the total, with `delta` occurrences since the counter was last written. Returns
    /// `false` if it was frozen before.
    ///
    /// To be called by the PMI, or while it does not handle the counter. The counter must not
    /// count.
    #[inline]
    pub fn freeze(&self, delta: u64) -> bool {
        let at_write = self.at_write.load();
        if at_write & FROZEN != 0 {
            return false;
        }
        self.at_write.store(Total(at_write).plus(delta).0 | FROZEN);
        true
    }

    /// Lets the total grow again, after the counter was written.
    ///
    /// To be called by the PMI, or while it does not handle the counter.
    #[inline]
    pub fn thaw(&self) {
        self.at_write.store(self.at_write.load() & !FROZEN);
    }

    /// Calls `publish` with `ahead` and `written`: the last written value of the counter is
    /// `written`, and an event with this `base` is counted up to `ahead` occurrences after that
    /// write. Calls it again if a PMI has changed these values meanwhile, and not at all if the
    /// total is frozen.
    #[inline]
    pub fn publish(&self, last: &LastValue<W>, base: &Base<W>, mut publish: impl FnMut(i64, u64)) {
        let present = || (last.get(), self.at_write.load(), base.0.load());
        let mut published = present();
        loop {
            let (written, at_write, base) = published;
            if at_write & FROZEN != 0 {
                return;
            }
            publish(Total(base).since(Total(at_write)), written);
            // A PMI in between has published later values, which this call may have overwritten.
            let now = present();
            if now == published {
                return;
            }
            published = now;
        }
    }

    /// Returns the word with the bit of `id`, and the bit.
    #[inline]
    fn place(&self, id: usize) -> (&W, u64) {
        // The mask changes no id, and leaves no panic path for the NMI.
        let word = &self.riders[(id / BITS) & (MAX_IDS / BITS - 1)];
        // CAST: less than 64.
        (word, 1u64.wrapping_shl((id % BITS) as u32))
    }

    /// Records that the rider `id` is started.
    #[inline]
    pub fn insert(&self, id: usize) {
        let (word, bit) = self.place(id);
        word.set_bits(bit);
    }

    /// Records that the rider `id` is stopped or has become the owner. Returns whether it was
    /// started.
    #[inline]
    pub fn remove(&self, id: usize) -> bool {
        let (word, bit) = self.place(id);
        word.load() & bit != 0 && update(word, |riders| riders & !bit) & bit != 0
    }

    /// [Removes](Self::remove) a rider that is started, and returns it, so that the caller can make
    /// it the owner.
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
}

/// The total of a shared counter up to which an event is counted.
pub struct Base<W = AtomicU64>(W);

impl<W: Word> Default for Base<W> {
    fn default() -> Self {
        Self(W::new(0))
    }
}

impl<W: Word> Base<W> {
    /// Begins to count, from `total` on.
    #[inline]
    pub fn begin(&self, total: Total) {
        self.0.store(total.0);
    }

    /// Returns the growth of the total since the last call, for the caller to add to the event's
    /// count. `total` returns the total now, or in a group read the total that was read for the
    /// first member: the growth is 0 if a PMI has taken a later total meanwhile.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::pmi::last_value::LastValue;
    /// use logic::pmi::shared_count::{Base, SharedCount};
    /// use logic::regs::period::CounterWidth;
    ///
    /// let width = CounterWidth::new(48).unwrap();
    /// let (counter, last) = (<SharedCount>::default(), <LastValue>::default());
    /// let (owner, rider) = (<Base>::default(), <Base>::default());
    /// owner.begin(counter.begin(true));
    /// rider.begin(counter.total(&last, width, || 5));
    /// let total = || counter.total(&last, width, || 7);
    /// assert_eq!((owner.take(total), rider.take(total)), (7, 2));
    ///
    /// // A period is over.
    /// assert!(counter.freeze(width.delta(last.get(), 8)));
    /// last.written(width, 100);
    /// counter.thaw();
    /// let total = || counter.total(&last, width, || 104);
    /// assert_eq!((owner.take(total), rider.take(total)), (5, 5));
    /// assert_eq!(rider.take(total), 0);
    /// ```
    #[inline]
    pub fn take(&self, mut total: impl FnMut() -> Total) -> u64 {
        // In this order: the total is not older than the base.
        let mut base = self.0.load();
        loop {
            let total = total();
            let grown = total.since(Total(base));
            if grown <= 0 {
                return 0;
            }
            match self.0.compare_exchange(base, total.0) {
                // CAST: greater than 0.
                Ok(()) => return grown as u64,
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
        counter.begin(true);
        assert_eq!(counter.take_any(), None);
    }

    const WIDTH: CounterWidth = CounterWidth::new(48).unwrap();

    #[test]
    fn totals_wrap() {
        let (counter, last) = (<SharedCount>::default(), <LastValue>::default());
        let base = <Base>::default();
        counter.freeze(u64::MAX >> 1);
        base.begin(counter.total(&last, WIDTH, || 0));
        counter.thaw();
        assert_eq!(base.take(|| counter.total(&last, WIDTH, || 3)), 3);
    }

    #[test]
    fn a_total_is_frozen_once() {
        let (counter, last) = (<SharedCount>::default(), <LastValue>::default());
        assert_eq!(counter.begin(true), counter.total(&last, WIDTH, || 0));
        assert!(counter.freeze(5) && !counter.freeze(7));
        let total = counter.total(&last, WIDTH, || 9);
        assert_eq!(total.since(Total(0)), 5);
        assert_eq!(Total::from_word(total.to_word()), total);
        counter.begin(false);
        assert!(!counter.freeze(1));
    }

    /// An event that has been counted beyond the total of a group read does not go back.
    #[test]
    fn counts_do_not_decrease() {
        let base = <Base>::default();
        base.begin(Total(0).plus(7));
        assert_eq!(base.take(|| Total(0).plus(5)), 0);
        assert_eq!(base.take(|| Total(0).plus(9)), 2);
    }
}
