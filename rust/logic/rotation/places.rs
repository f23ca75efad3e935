// SPDX-License-Identifier: GPL-2.0

//! The replacement policy of a cache: which entry makes room for a new one.

/// Number of failed lookups after which an entry that was not used meanwhile makes room.
const PATIENCE: u64 = 64;

/// The places of a cache with `N` entries.
///
/// An entry that is used again soon keeps its place, even if new entries then find no place. With
/// replacement of the oldest entry instead, `N + 1` entries that are used in turn would displace
/// each other, and no lookup would ever succeed.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::rotation::Places;
///
/// let mut places = Places::<2>::NEW;
/// assert_eq!((places.new_entry(), places.new_entry()), (Some(0), Some(1)));
/// assert_eq!(places.new_entry(), None);
///
/// // One that is not used for long makes room.
/// let place = (0..1000).find_map(|_| {
///     places.used(0);
///     places.new_entry()
/// });
/// assert_eq!(place, Some(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Places<const N: usize> {
    /// Number of failed lookups.
    misses: u64,
    /// For each place, the number of failed lookups when its entry was last used.
    used: [u64; N],
}

impl<const N: usize> Places<N> {
    /// A cache without entries.
    pub const NEW: Self = Self {
        misses: PATIENCE,
        used: [0; N],
    };

    /// Records that the entry in `place` is used.
    pub fn used(&mut self, place: usize) {
        if let Some(used) = self.used.get_mut(place) {
            *used = self.misses;
        }
    }

    /// Returns the place for a new entry after a failed lookup; [`None`] if there is no place for
    /// it.
    pub fn new_entry(&mut self) -> Option<usize> {
        self.misses = self.misses.saturating_add(1);
        let long_ago = self.misses.saturating_sub(PATIENCE);
        let place = self.used.iter().position(|used| *used < long_ago)?;
        self.used(place);
        Some(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Looks up `entries` in turn, each `times` times. Returns the number of successful lookups.
    fn in_turn(entries: u64, times: u64) -> u64 {
        let (mut places, mut cache) = (Places::<8>::NEW, [None; 8]);
        let mut found = 0;
        for entry in (0..times).flat_map(|_| 0..entries) {
            match cache.iter().position(|it| *it == Some(entry)) {
                Some(place) => {
                    places.used(place);
                    found += 1;
                }
                None => {
                    if let Some(place) = places.new_entry() {
                        cache[place] = Some(entry);
                    }
                }
            }
        }
        found
    }

    #[test]
    fn entries_that_are_used_in_turn_keep_their_places() {
        assert_eq!(in_turn(8, 1000), 8 * 999);
        for entries in [9, 12, 20, 50] {
            assert_eq!(in_turn(entries, 1000), 8 * 999, "{entries}");
        }
    }

    #[test]
    fn entries_that_are_used_no_more_make_room() {
        let mut places = Places::<8>::NEW;
        assert!((0..8).all(|place| places.new_entry() == Some(place)));
        let places: Vec<_> = (0..1000).filter_map(|_| places.new_entry()).collect();
        // Each of the new entries keeps its place for some time.
        assert!((100..130).contains(&places.len()), "{places:?}");
        assert_eq!(
            places[..16],
            [0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 4, 5, 6, 7]
        );
    }
}
