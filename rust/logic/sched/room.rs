// SPDX-License-Identifier: GPL-2.0

//! The test whether a set of events has room on the counters at the same time.
//!
//! Context: any.

use crate::logic::regs::counter::{
    CounterId,
    CounterMask,
    PerCounter, //
};

/// Returns whether all events can have a counter at the same time. `wants` has the possible
/// counters of each event. Ignores pairs, extra registers and all limits: events without room can
/// never count together, and events with room need not fit either.
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::counter::CounterMask;
/// use logic::sched::room::have_room;
///
/// let counters = |bits| CounterMask::from_bits(bits);
/// assert!(have_room([counters(0b11), counters(0b01)].into_iter()));
/// assert!(!have_room([counters(0b11), counters(0b01), counters(0b11)].into_iter()));
/// ```
pub fn have_room(wants: impl Iterator<Item = CounterMask>) -> bool {
    let mut taken = Taken {
        counters: CounterMask::EMPTY,
        wanted: PerCounter::new(CounterMask::EMPTY),
    };
    let mut wants = wants;
    wants.all(|wanted| taken.take(wanted))
}

/// The counters of the previous events.
struct Taken {
    counters: CounterMask,
    /// For each counter, the counters that its event wants.
    wanted: PerCounter<CounterMask>,
}

impl Taken {
    /// Gives one of the counters `wanted` to another event, along an augmenting path on which
    /// earlier events move to other counters. Returns `false`, and changes nothing, if there is no
    /// such path.
    fn take(&mut self, wanted: CounterMask) -> bool {
        // For each counter, the counter whose event could move to it; for counters of the new
        // event, the counter itself.
        let mut from: PerCounter<Option<CounterId>> = PerCounter::new(None);
        for counter in wanted {
            from[counter] = Some(counter);
        }
        let (mut reached, mut left) = (wanted, wanted);
        loop {
            if let Some(free) = reached.without(self.counters).lowest() {
                self.move_along(&from, free, wanted);
                return true;
            }
            let Some(counter) = left.lowest() else {
                return false;
            };
            left.remove(counter);
            let new = self.wanted[counter].without(reached);
            for next in new {
                from[next] = Some(counter);
            }
            (reached, left) = (reached | new, left | new);
        }
    }

    /// Moves each event on the path to the next counter, up to the `free` one, and gives the first
    /// counter to the new event.
    fn move_along(
        &mut self,
        from: &PerCounter<Option<CounterId>>,
        free: CounterId,
        wanted: CounterMask,
    ) {
        self.counters.insert(free);
        let mut to = free;
        while let Some(counter) = from[to].filter(|counter| *counter != to) {
            self.wanted[to] = self.wanted[counter];
            to = counter;
        }
        self.wanted[to] = wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(wants: &[u64]) -> bool {
        have_room(wants.iter().map(|bits| CounterMask::from_bits(*bits)))
    }

    #[test]
    fn earlier_events_move() {
        assert!(room(&[0b0011, 0b0110, 0b0010, 0b1100]));
        assert!(room(&[0b11, 0b01]));
        assert!(!room(&[0b0011, 0b0110, 0b0010, 0b0100]));
        assert!(!room(&[0b01, 0b01]));
        assert!(!room(&[0]));
        assert!(room(&[]));
    }

    /// A group that needs a fixed counter which a pinned event has.
    #[test]
    fn a_group_beside_the_watchdog() {
        let (cycles, any) = (0x2_0000_000f, 0xf);
        assert!(room(&[cycles, any, any, any, any]));
        assert!(!room(&[cycles, cycles, any, any, any, any]));
        assert!(room(&[cycles, cycles, any, any, any]));
    }

    /// Hall's theorem: events have room if and only if no subset of them outnumbers the counters
    /// that the subset wants.
    #[test]
    fn events_have_room_by_halls_theorem() {
        let mut seed = 1u64;
        let mut next = || {
            seed = seed
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            seed >> 33
        };
        let mut fitted = 0;
        for _ in 0..2000 {
            let wants: Vec<u64> = (0..1 + next() % 6).map(|_| next() % 64).collect();
            let has_room = |set: &u64| {
                let chosen = (0..wants.len()).filter(|event| (set >> event) & 1 != 0);
                let (count, all) = chosen.fold((0, 0), |(count, all), event| {
                    (count + 1, all | wants[event])
                });
                count <= all.count_ones()
            };
            let expected = (0..1 << wants.len()).all(|set: u64| has_room(&set));
            assert_eq!(room(&wants), expected, "{wants:x?}");
            fitted += u32::from(expected);
        }
        assert!((100..1900).contains(&fitted));
    }
}
