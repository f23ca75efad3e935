// SPDX-License-Identifier: GPL-2.0

//! The content of a CPU's branch records, and the steps before they can be used.
//!
//! Records contain neither the task nor the filter with which they were recorded. So they are reset
//! when events begin to use them, when the filter changes, and when another task is switched in. If
//! the new task has a call stack that was saved when it was switched out, this is restored instead,
//! unless the registers still hold it. (Mainline resets the records when an event without runtime
//! begins to use them, and at context switches: `intel_pmu_lbr_add()`,
//! `arch/x86/events/intel/lbr.c`.)
//!
//! The records of a guest of KVM that [owns them](GUEST) are treated like a call stack, including
//! the guest's value of LBR_SELECT: the guest changes all of these registers itself.
//!
//! Context: the records' CPU, interrupts off, PMU disabled.

use super::GUEST;

/// The contents of the records of a CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct State {
    /// The filter of the branches, if all of them belong to the current task.
    valid: Option<u32>,
    /// The value that was last written to LBR_SELECT, if it is known.
    select: Option<u32>,
    /// The number of the last saved call stack, if the records still hold it.
    saved: Option<u64>,
    /// The number of call stacks that were saved.
    saves: u64,
}

/// The steps before branches are recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// The value to write to LBR_SELECT. For [`GUEST`], write the value that was saved with the
    /// restored records, or 0.
    pub select: Option<u32>,
    /// The step for the records.
    pub records: Records,
}

/// The step for the records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Records {
    /// They stay as they are.
    Keep,
    /// They are reset.
    Reset,
    /// They are replaced by the task's saved call stack.
    Restore,
    /// They hold the task's saved call stack. If deep sleep has reset them, it is restored.
    RestoreIfLost,
}

impl State {
    /// Decides the steps before the events on the CPU use the records with the filter `wanted`;
    /// [`None`] if no event uses them.
    pub fn prepare(&mut self, wanted: Option<u32>) -> Steps {
        if wanted == self.valid {
            return Steps {
                select: None,
                records: Records::Keep,
            };
        }
        match wanted {
            Some(select) => self.begin(select, Records::Reset),
            None => {
                self.valid = None;
                Steps {
                    select: None,
                    records: Records::Keep,
                }
            }
        }
    }

    /// Decides the steps when a task has been switched in. `saved` is the number of the task's
    /// saved records, if it has any and the filter's records are saved
    /// ([`Lbr::keeps`](super::Lbr::keeps)); 0 if they were saved on another CPU.
    pub fn switch_in(&mut self, wanted: Option<u32>, saved: Option<u64>) -> Steps {
        let Some(select) = wanted else {
            return self.prepare(None);
        };
        let records = match saved {
            Some(_) if saved == self.saved => Records::RestoreIfLost,
            Some(_) => Records::Restore,
            None => Records::Reset,
        };
        self.begin(select, records)
    }

    /// Returns the filter of the records, if all of them belong to the current task.
    pub fn filter(&self) -> Option<u32> {
        self.valid
    }

    /// Records that the call stack of the current task is being saved. Returns the number of this
    /// save, which is unique on this CPU.
    pub fn save(&mut self) -> u64 {
        self.saves = self.saves.wrapping_add(1);
        self.saved = Some(self.saves);
        self.saves
    }

    /// Records that the registers may have any values. The numbers of saves continue, because
    /// sleeping tasks keep theirs.
    pub fn forget(&mut self) {
        self.valid = None;
        self.select = None;
        self.saved = None;
    }

    /// Records that the core's other thread may have written LBR_SELECT. Events that continue to
    /// use the records need no new write: the other thread does not write another value meanwhile.
    pub fn forget_select(&mut self) {
        self.select = None;
    }

    fn begin(&mut self, select: u32, records: Records) -> Steps {
        let write = (self.select != Some(select)).then_some(select);
        self.select = Some(select).filter(|select| *select != GUEST);
        self.valid = Some(select);
        self.saved = None;
        Steps {
            select: write,
            records,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEEP: Steps = Steps {
        select: None,
        records: Records::Keep,
    };

    fn steps(select: Option<u32>, records: Records) -> Steps {
        Steps { select, records }
    }

    #[test]
    fn records_are_reset_when_their_use_begins() {
        let mut state = State::default();
        assert_eq!(state.prepare(None), KEEP);
        assert_eq!(state.prepare(Some(1)), steps(Some(1), Records::Reset));
        assert_eq!(state.prepare(Some(1)), KEEP);
        // Another task may run while no event uses them.
        assert_eq!(state.prepare(None), KEEP);
        assert_eq!(state.prepare(Some(1)), steps(None, Records::Reset));
    }

    #[test]
    fn another_filter_resets_the_records() {
        let mut state = State::default();
        state.prepare(Some(1));
        assert_eq!(state.prepare(Some(2)), steps(Some(2), Records::Reset));
        assert_eq!(state.prepare(Some(1)), steps(Some(1), Records::Reset));
    }

    #[test]
    fn another_task_resets_the_records() {
        let mut state = State::default();
        state.prepare(Some(1));
        assert_eq!(state.switch_in(Some(1), None), steps(None, Records::Reset));
        assert_eq!(state.prepare(Some(1)), KEEP);
        assert_eq!(state.switch_in(None, None), KEEP);
        assert_eq!(state.prepare(Some(1)), steps(None, Records::Reset));
    }

    #[test]
    fn a_saved_call_stack_comes_back() {
        let mut state = State::default();
        state.prepare(Some(1));
        assert_eq!(state.filter(), Some(1));
        let first = state.save();
        // No event has used the records meanwhile.
        state.prepare(None);
        let here = state.switch_in(Some(1), Some(first));
        assert_eq!(here, steps(None, Records::RestoreIfLost));
        // The records have changed since.
        let again = state.switch_in(Some(1), Some(first));
        assert_eq!(again, steps(None, Records::Restore));

        let second = state.save();
        state.switch_in(Some(1), None);
        let after_another = state.switch_in(Some(1), Some(second));
        assert_eq!(after_another, steps(None, Records::Restore));
    }

    #[test]
    fn a_guests_filter_is_always_written() {
        let mut state = State::default();
        assert_eq!(
            state.prepare(Some(GUEST)),
            steps(Some(GUEST), Records::Reset)
        );
        let saved = state.save();
        let back = state.switch_in(Some(GUEST), Some(saved));
        assert_eq!(back, steps(Some(GUEST), Records::RestoreIfLost));
        // The guest may have left any value.
        assert_eq!(state.prepare(Some(1)), steps(Some(1), Records::Reset));
    }

    #[test]
    fn saves_have_numbers_of_their_own() {
        let mut state = State::default();
        let mut numbers: Vec<_> = (0..3).map(|_| state.save()).collect();
        state.forget();
        numbers.push(state.save());
        assert_eq!(numbers, [1, 2, 3, 4]);
    }

    #[test]
    fn registers_that_may_hold_anything() {
        let mut state = State::default();
        state.prepare(Some(1));
        let saved = state.save();
        state.forget();
        let back = state.switch_in(Some(1), Some(saved));
        assert_eq!(back, steps(Some(1), Records::Restore));
        state.forget_select();
        assert_eq!(state.prepare(Some(1)), KEEP);
        state.prepare(None);
        assert_eq!(state.prepare(Some(1)), steps(Some(1), Records::Reset));
    }
}
