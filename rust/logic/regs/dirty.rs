// SPDX-License-Identifier: GPL-2.0

//! Dirty counters: counters that hold counts of events that are no longer on them.
//!
//! A task that may execute RDPMC could read these counts. Before such a task runs, the kernel
//! clears the counters that are marked as dirty (`perf_clear_dirty_counters()`,
//! `arch/x86/events/core.c`). The driver marks them, and must never mark a counter that it uses.
//!
//! Context: the counters' CPU, interrupts off.

use super::counter::CounterMask;

/// The dirty counters of one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dirty {
    /// The counters that have events.
    used: CounterMask,
    /// The counters that were to be marked after the last call.
    marked: CounterMask,
}

/// The changed and the wanted marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marks {
    /// The counters that the kernel has cleared since the last call.
    pub cleared: CounterMask,
    /// All counters that are to be marked from now on, and no others.
    pub marked: CounterMask,
}

impl Dirty {
    /// Records that the counters `used` have events from now on. `marked` are the counters that are
    /// marked at present. Returns the marks that the kernel has removed, and the wanted marks.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::regs::counter::CounterMask;
    /// use logic::regs::dirty::Dirty;
    ///
    /// let mask = CounterMask::from_bits;
    /// let mut dirty = Dirty::default();
    /// // Counters 0 and 1 get events, then counter 0 loses its event.
    /// dirty.use_counters(mask(0x3), mask(0));
    /// assert_eq!(dirty.use_counters(mask(0x2), mask(0)).marked, mask(0x1));
    /// // The kernel has cleared counter 0.
    /// let marks = dirty.use_counters(mask(0x2), mask(0));
    /// assert_eq!((marks.cleared, marks.marked), (mask(0x1), mask(0)));
    /// ```
    pub fn use_counters(&mut self, used: CounterMask, marked: CounterMask) -> Marks {
        let cleared = self.marked.without(marked);
        // `marked` may contain marks of the built-in driver.
        self.marked = marked.union(self.used).without(used);
        self.used = used;
        Marks {
            cleared,
            marked: self.marked,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments (used, marked) and results (cleared, marked) of consecutive calls.
    type Steps = &'static [((u64, u64), (u64, u64))];

    #[test]
    fn marks() {
        let mask = CounterMask::from_bits;
        let cases: &[(&str, Steps)] = &[
            ("nothing", &[((0, 0), (0, 0))]),
            (
                "left, cleared",
                &[((0x3, 0), (0, 0)), ((0, 0), (0, 0x3)), ((0, 0), (0x3, 0))],
            ),
            (
                "left, used again",
                &[
                    ((0x3, 0), (0, 0)),
                    ((0, 0), (0, 0x3)),
                    ((0x1, 0x3), (0, 0x2)),
                ],
            ),
            (
                "used again after it was cleared",
                &[
                    ((0x1, 0), (0, 0)),
                    ((0, 0), (0, 0x1)),
                    ((0x1, 0), (0x1, 0)),
                    ((0, 0), (0, 0x1)),
                ],
            ),
            (
                "a fixed counter, moved to another",
                &[((0x1_0000_0000, 0), (0, 0)), ((0x1, 0), (0, 0x1_0000_0000))],
            ),
            (
                "marked by the driver before",
                &[((0x1, 0x5), (0, 0x4)), ((0x4, 0x4), (0, 0x1))],
            ),
        ];
        for (name, steps) in cases {
            let mut dirty = Dirty::default();
            for ((used, before), (cleared, marked)) in *steps {
                let expected = Marks {
                    cleared: mask(*cleared),
                    marked: mask(*marked),
                };
                assert_eq!(
                    dirty.use_counters(mask(*used), mask(*before)),
                    expected,
                    "{name}"
                );
            }
        }
    }
}
