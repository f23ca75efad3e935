// SPDX-License-Identifier: GPL-2.0

//! Counts the occurrences in the CPU that QEMU reports.

use std::sync::atomic::Ordering::Relaxed;

use super::metrics::METRICS;
use super::registers::{
    ANY_THREAD,
    FIXED_ANY_THREAD,
    FIXED_OS,
    FIXED_PMI,
    FIXED_SHIFT,
    FIXED_USR,
    INT,
    OS,
    USR, //
};
use super::state::Pmu;
use crate::defect;
use crate::event::{
    self,
    Register, //
};
use crate::inject::Injected;
use crate::retired::{
    self,
    add_to,
    derive,
    Retired, //
};
use crate::select;
use crate::share::Source;

impl Pmu {
    /// Counts what the CPU retired at CPL 0 or, if `user`, above. A negative count takes back
    /// instructions that were reported but did not retire; it is subtracted from the next counts.
    pub fn retire(&mut self, user: bool, counts: &Retired) {
        self.told += 1;
        if counts[retired::INSTRUCTIONS] < 0 {
            self.cancel_record();
        }
        let retired = self.totals.balance(user, &derive(counts));
        self.accounting.instructions[usize::from(user)]
            .fetch_add(retired[retired::INSTRUCTIONS] as u64, Relaxed);

        self.pending.retire(retired[retired::INSTRUCTIONS] as u64);
        self.count(user, &retired, !0, true);
        add_to(&mut self.totals.own[usize::from(user)], &retired);
        if self.leaky() {
            self.take_leaked();
        }
        if self.thread.is_counted_by_sibling() {
            self.thread.send(user, &retired);
        }
        let any_thread = self.any_thread();
        if any_thread != 0 {
            for user in [false, true] {
                let retired = self.thread.receive(user);
                self.count(user, &retired, any_thread, false);
                add_to(&mut self.totals.of_sibling[usize::from(user)], &retired);
            }
        }
        if self.defects.tfa {
            let instructions = retired[retired::INSTRUCTIONS] as u64;
            if self.tsx.retire(instructions) {
                self.corrupt();
            }
        }
    }

    /// Makes those of `counters` that are active count what this thread (`own`) or the sibling
    /// retired.
    pub(super) fn count(&mut self, user: bool, retired: &Retired, counters: u64, own: bool) {
        if self.injected.has(Injected::STILL) {
            return;
        }
        let backwards = self.injected.has(Injected::BACKWARDS);
        let active = self.active(user) & counters;
        for i in 0..self.generals {
            if active & (1 << i) != 0 {
                let source = self.general_source(i);
                let before = self.before(i);
                let mut events = self.regs.general[i]
                    .counter
                    .events(source, &before, retired);
                if own {
                    events -= self.leak(i, events);
                    self.pebs_events(i, events, retired);
                }
                if backwards {
                    self.regs.general[i].counter.subtract(events);
                    continue;
                }
                self.add(i, events);
            }
        }
        for i in 0..self.model.fixed {
            if active & (1 << (FIXED_SHIFT + i)) != 0 {
                let source = self.fixed_source(i);
                let before = self.before(FIXED_SHIFT + i);
                let events = self.regs.fixed[i].events(source, &before, retired);
                if own {
                    self.pebs_events(FIXED_SHIFT + i, events, retired);
                }
                if backwards {
                    self.regs.fixed[i].subtract(events);
                    continue;
                }
                let overflow = self.regs.fixed[i].add(events);
                self.overflowed(
                    overflow,
                    FIXED_SHIFT + i,
                    self.fixed_field(i) & FIXED_PMI != 0,
                );
            }
        }
        if active & METRICS != 0 {
            self.count_metrics(user, retired);
        }
    }

    /// Adds events to a general counter, and handles its overflow.
    pub(super) fn add(&mut self, index: usize, events: u64) {
        let general = &mut self.regs.general[index];
        let overflow = general.counter.add(events);
        let interrupt = general.select & INT != 0;
        let overflow = overflow && self.carry(index);
        self.overflowed(overflow, index, interrupt);
    }

    /// Corrupts counter 3, like a transaction.
    fn corrupt(&mut self) {
        let index = defect::TRANSACTION_COUNTER;
        self.write_select(index, defect::TRANSACTION_SELECT);
        self.regs.general[index]
            .counter
            .set(defect::TRANSACTION_COUNT);
    }

    /// Returns the totals so far at the levels and on the threads that a counter counts.
    pub(super) fn before(&self, counter: usize) -> Retired {
        let (levels, any_thread) = if counter < FIXED_SHIFT {
            let select = self.regs.general[counter].select;
            ([select & OS, select & USR], select & ANY_THREAD)
        } else {
            let field = self.fixed_field(counter - FIXED_SHIFT);
            (
                [field & FIXED_OS, field & FIXED_USR],
                field & FIXED_ANY_THREAD,
            )
        };
        let mut before = [0; retired::COUNTS];
        for level in (0..2).filter(|&level| levels[level] != 0) {
            add_to(&mut before, &self.totals.own[level]);
            if any_thread != 0 {
                add_to(&mut before, &self.totals.of_sibling[level]);
            }
        }
        before
    }

    /// Returns what a general counter counts, given the register that further selects it.
    pub(super) fn general_source(&self, index: usize) -> Source {
        let general = &self.regs.general[index];
        match general.register {
            Some(Register::Offcore(index)) => {
                let value = self.offcore_rsp(index).load(Relaxed);
                select::offcore_response(self.model.offcore, value)
            }
            Some(Register::LoadLatency) => select::load_latency(general.source, self.regs.ld_lat),
            Some(Register::Frontend) if self.regs.frontend == 0 => Source::Nothing,
            Some(Register::Frontend) => general.source,
            Some(Register::Snoop(index)) => select::snoop_response(self.regs.snoop[index]),
            None => {
                let source = self.unless_replaced(index, general.source);
                self.unless_lost(index, source)
            }
        }
    }

    /// Returns what a fixed counter counts: INST_RETIRED.ANY, CPU_CLK_UNHALTED.THREAD,
    /// CPU_CLK_UNHALTED.REF_TSC, TOPDOWN.SLOTS.
    pub(super) fn fixed_source(&self, index: usize) -> Source {
        match index {
            0 => event::INSTRUCTIONS,
            1 => event::CYCLES,
            2 => event::REFERENCE_CYCLES,
            _ => event::slots(self.model.slots),
        }
    }
}
