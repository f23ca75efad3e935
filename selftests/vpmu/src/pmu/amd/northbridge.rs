// SPDX-License-Identifier: GPL-2.0

//! Events of the northbridge on the cores' counters (BKDG of family 10h, "Performance Monitors").
//!
//! The northbridge has one set of counters and event selects, which all cores of the node share: an
//! event selected in one core's PERF_CTL replaces the event that another core has selected in its
//! PERF_CTL of the same number. The other core's counter then counts something else; here it stops.

use crate::pmu::state::Pmu;
use crate::select::amd::is_northbridge;
use crate::share::Source;

impl Pmu {
    fn on_northbridge(&self, select: u64) -> bool {
        self.model.amd().is_some_and(|amd| amd.northbridge) && is_northbridge(select)
    }

    /// Makes the northbridge count the event that this counter selects, if it is one of the
    /// northbridge's.
    pub(in crate::pmu) fn select_northbridge(&mut self, index: usize) {
        if self.on_northbridge(self.regs.general[index].select) {
            self.thread.take_northbridge(index);
        }
    }

    /// Returns what a counter that selects `source` counts: nothing if that is an event of the
    /// northbridge and another core's counter of this number has selected one since.
    pub(in crate::pmu) fn unless_replaced(&self, index: usize, source: Source) -> Source {
        if self.on_northbridge(self.regs.general[index].select)
            && !self.thread.has_northbridge(index)
        {
            Source::Nothing
        } else {
            source
        }
    }
}
