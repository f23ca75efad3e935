// SPDX-License-Identifier: GPL-2.0

//! The PMU of one logical CPU: its state, counting, overflow and the PMI.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;

use crate::accounting::{bump, Accounting};
use crate::counter::{Counter, WIDTH};
use crate::defect::{self, Defects};
use crate::event::Register;
use crate::model::{Model, MAX_FIXED, MAX_GENERAL};
use crate::msr::RTM_FORCE_ABORT;
use crate::order::{self, Ordered};
use crate::retired::{self, add_to, Retired};
use crate::share::Source;
use crate::shared::{Core, Thread};
use crate::{event, select, Fault};

/// IA32_PERFEVTSELx.USR.
pub(crate) const USR: u64 = 1 << 16;
/// IA32_PERFEVTSELx.OS.
pub(crate) const OS: u64 = 1 << 17;
/// IA32_PERFEVTSELx.INT.
pub(crate) const INT: u64 = 1 << 20;
/// IA32_PERFEVTSELx.AnyThread.
pub(crate) const ANY_THREAD: u64 = 1 << 21;
/// IA32_PERFEVTSELx.EN.
pub(crate) const EN: u64 = 1 << 22;

/// IA32_FIXED_CTR_CTRL: the field of one counter.
pub(crate) const FIXED_OS: u64 = 1 << 0;
pub(crate) const FIXED_USR: u64 = 1 << 1;
pub(crate) const FIXED_ANY_THREAD: u64 = 1 << 2;
pub(crate) const FIXED_PMI: u64 = 1 << 3;

/// IA32_DEBUGCTL.BTF.
pub(crate) const BTF: u64 = 1 << 1;
/// IA32_DEBUGCTL.FREEZE_WHILE_SMM.
pub(crate) const FREEZE_WHILE_SMM: u64 = 1 << 14;
/// IA32_DEBUGCTL.FREEZE_PERFMON_ON_PMI.
pub(crate) const FREEZE_PERFMON_ON_PMI: u64 = 1 << 12;
/// IA32_PERF_GLOBAL_STATUS.CTR_FRZ (version 4).
pub(crate) const CTR_FRZ: u64 = 1 << 59;

/// Position of the fixed counters in IA32_PERF_GLOBAL_*.
pub(crate) const FIXED_SHIFT: usize = 32;

/// A general counter and its event select.
#[derive(Debug, Clone, Copy)]
pub(crate) struct General {
    pub(crate) counter: Counter,
    pub(crate) select: u64,
    /// What `select` means on this counter.
    pub(crate) source: Source,
    /// The register beside `select` that this hangs on.
    pub(crate) register: Option<Register>,
    /// Events since the last one that leaked to the sibling; `None`: none does.
    pub(crate) leak: Option<u64>,
}

/// The registers that a reset clears.
#[derive(Debug)]
pub(crate) struct Registers {
    pub(crate) general: [General; MAX_GENERAL],
    pub(crate) fixed: [Counter; MAX_FIXED],
    pub(crate) fixed_ctrl: u64,
    pub(crate) global_ctrl: u64,
    pub(crate) global_status: u64,
    pub(crate) debugctl: u64,
    /// IA32_PERF_GLOBAL_CTRL and IA32_DEBUGCTL from before the SMI that is handled with all frozen.
    before_smm: Option<(u64, u64)>,
    pub(crate) misc_enable: u64,
    pub(crate) tsx_force_abort: u64,
    pub(crate) ld_lat: u64,
    pub(crate) frontend: u64,
}

/// How much of what a CPU retires matters. Mirrors `enum vpmu_counting`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
pub enum Counting {
    /// Nothing.
    Nothing,
    /// Instructions and page walks.
    Instructions,
    /// All of it.
    All,
}

/// The PMU of one logical CPU.
#[derive(Debug)]
pub struct Pmu {
    pub(crate) model: &'static Model,
    /// General counters of this thread.
    pub(crate) generals: usize,
    pub(crate) regs: Registers,
    pub(crate) defects: Defects,
    /// Its place in its core.
    thread: Thread,
    /// What is wrong at present, by order.
    ordered: Ordered,
    /// A counter overflowed and LVTPC is to be asked at the next opportunity.
    pmi_due: bool,
    /// So many instructions later.
    pmi_after: Option<u64>,
    /// Whether the last PMI comes once more ([`Ordered::SECOND_PMI`]).
    second_pmi: Second,
    /// Instructions until the next transaction ([`defect::TRANSACTION`]).
    to_transaction: u64,
    /// Counts below zero that wait to be balanced, at CPL 0 and above it.
    carry: [Retired; 2],
    /// All that this thread has retired while somebody counted, at CPL 0 and above it: what the next
    /// things are numbered by ([`crate::share::Share`]).
    total: [Retired; 2],
    /// The same of the other thread, as far as counters with AnyThread were told.
    total_of_sibling: [Retired; 2],
    /// Counters with AnyThread have begun or ceased to count, and QEMU has not been told.
    sibling_must_ask: bool,
    pub(crate) accounting: Arc<Accounting>,
    /// How often [`Pmu::retire`] was called.
    pub(crate) told: u64,
    /// The accounting MSRs' selection.
    pub(crate) accounting_select: u64,
}

/// A PMI that comes once more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Second {
    /// None does.
    No,
    /// One will, when LVTPC has been written.
    AfterLvtpc,
    /// It is on its way.
    IsDue,
}

impl Pmu {
    /// A PMU in its reset state, with the usual defects; where its core has two threads, nobody is
    /// on the other one.
    pub fn new(model: &'static Model, threads_per_core: u32) -> Self {
        let thread = Thread::new(Core::new(threads_per_core), 0);
        Pmu::on(thread, model, model.defects.usual())
    }

    /// The PMU of one thread of a core, in its reset state.
    pub fn on(thread: Thread, model: &'static Model, defects: Defects) -> Self {
        let generals = model.general_counters(thread.per_core());
        Pmu {
            model,
            generals,
            regs: Registers::new(generals),
            defects,
            thread,
            ordered: Ordered::default(),
            pmi_due: false,
            pmi_after: None,
            second_pmi: Second::No,
            to_transaction: defect::TRANSACTION,
            carry: [[0; retired::COUNTS]; 2],
            total: [[0; retired::COUNTS]; 2],
            total_of_sibling: [[0; retired::COUNTS]; 2],
            sibling_must_ask: false,
            accounting: Arc::default(),
            told: 0,
            accounting_select: 0,
        }
    }

    /// RESET. INIT leaves all MSRs alone (SDM vol. 3, 10.1).
    pub fn reset(&mut self) {
        self.regs = Registers::new(self.generals);
        self.thread.reset();
        self.ordered = Ordered::default();
        self.pmi_due = false;
        self.pmi_after = None;
        self.second_pmi = Second::No;
        self.to_transaction = defect::TRANSACTION;
        self.carry = [[0; retired::COUNTS]; 2];
        self.total = [[0; retired::COUNTS]; 2];
        self.total_of_sibling = [[0; retired::COUNTS]; 2];
    }

    /// A handle on the accounting that other threads may use.
    pub fn accounting(&self) -> Arc<Accounting> {
        self.accounting.clone()
    }

    /// What a leaf of CPUID says (EAX, EBX, ECX, EDX), given what it says of all the rest.
    pub fn cpuid(&self, leaf: u32, subleaf: u32, regs: [u32; 4]) -> [u32; 4] {
        const PDCM: u32 = 1 << 15; // IA32_PERF_CAPABILITIES
        const TSX_FORCE_ABORT: u32 = 1 << 13;
        const HYBRID: u32 = 1 << 15;
        let [eax, ebx, ecx, edx] = regs;
        match (leaf, subleaf) {
            (1, _) => [self.ordered.signature(eax), ebx, ecx | PDCM, edx],
            (7, 0) => {
                let tfa = u32::from(self.defects.tfa) * TSX_FORCE_ABORT;
                let hybrid = u32::from(self.ordered.has(Ordered::HYBRID)) * HYBRID;
                [eax, ebx, ecx, edx | tfa | hybrid]
            }
            (0xa, _) => self.cpuid_leaf_a(),
            _ => regs,
        }
    }

    fn cpuid_leaf_a(&self) -> [u32; 4] {
        let model = self.model;
        let (generals, fixed) = if self.ordered.has(Ordered::FEWER) {
            order::FEW
        } else if self.ordered.has(Ordered::MORE) {
            (order::MANY, model.fixed)
        } else {
            (self.generals, model.fixed)
        };
        let eax = self.ordered.perfmon(model.version)
            | ((generals as u32) << 8)
            | (WIDTH << 16)
            | (model.architectural << 24);
        // From version 5 on, which fixed counters there are.
        let ecx = if model.version >= 5 {
            (1 << fixed) - 1
        } else {
            0
        };
        let edx = fixed as u32 | (WIDTH << 5) | (u32::from(!model.any_thread) << 15);
        [eax, model.missing, ecx, edx]
    }

    /// The general and the fixed counters that can be accessed.
    pub(crate) fn there(&self) -> (usize, usize) {
        if self.ordered.has(Ordered::FEWER.and(Ordered::MISSING)) {
            order::FEW
        } else {
            (self.generals, self.model.fixed)
        }
    }

    /// The bits of IA32_PERF_GLOBAL_CTRL, and of GLOBAL_STATUS as far as it speaks of counters.
    pub(crate) fn counter_bits(&self) -> u64 {
        let (generals, fixed) = self.there();
        ((1 << generals) - 1) | (((1 << fixed) - 1) << FIXED_SHIFT)
    }

    /// The same, if none were missing.
    pub(crate) fn all_counter_bits(&self) -> u64 {
        ((1 << self.generals) - 1) | (((1 << self.model.fixed) - 1) << FIXED_SHIFT)
    }

    /// What is wrong by order.
    pub fn ordered(&self) -> Ordered {
        self.ordered
    }

    /// From now on this is wrong, and nothing else. Counters that are missing do not count.
    pub(crate) fn order(&mut self, ordered: Ordered) {
        self.ordered = ordered;
        self.regs.global_ctrl &= self.counter_bits();
        self.regs.global_status &= self.counter_bits();
        self.regs.fixed_ctrl &= self.fixed_ctrl_bits();
    }

    /// Does the general counter `index` keep its value when it is written?
    pub(crate) fn is_deaf_general(&self, index: usize) -> bool {
        self.ordered.has(Ordered::DEAF_GENERAL) && index + 1 == self.generals
    }

    /// The same of a fixed one.
    pub(crate) fn is_deaf_fixed(&self, index: usize) -> bool {
        self.ordered.has(Ordered::DEAF_FIXED) && index + 1 == self.model.fixed
    }

    /// The CPU retired this much at CPL 0 or, if `user`, above it. A count may be negative: then
    /// instructions that were reported earlier did not retire after all. They are taken off what
    /// comes next.
    pub fn retire(&mut self, user: bool, counts: &Retired) {
        self.told += 1;
        let mut retired = [0; retired::COUNTS];
        for ((carry, &count), retired) in self.carry[usize::from(user)]
            .iter_mut()
            .zip(counts)
            .zip(&mut retired)
        {
            let sum = *carry + count;
            *retired = sum.max(0);
            *carry = sum.min(0);
        }
        self.accounting.instructions[usize::from(user)]
            .fetch_add(retired[retired::INSTRUCTIONS] as u64, Relaxed);

        if let Some(left) = self.pmi_after {
            let left = left.saturating_sub(retired[retired::INSTRUCTIONS] as u64);
            self.pmi_after = (left != 0).then_some(left);
            self.pmi_due |= left == 0;
        }
        self.count(user, &retired, !0, true);
        add_to(&mut self.total[usize::from(user)], &retired);
        if self.leaky() {
            self.take_leaked();
        }
        if self.thread.is_wanted() {
            self.thread.send(user, &retired);
        }
        let any_thread = self.any_thread();
        if any_thread != 0 {
            for user in [false, true] {
                let retired = self.thread.receive(user);
                self.count(user, &retired, any_thread, false);
                add_to(&mut self.total_of_sibling[usize::from(user)], &retired);
            }
        }
        if self.defects.tfa {
            self.transactions(retired[retired::INSTRUCTIONS] as u64);
        }
    }

    /// Counts what this thread, or else the other one, has retired, on some of the counters.
    fn count(&mut self, user: bool, retired: &Retired, counters: u64, own: bool) {
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
                }
                self.add(i, events);
            }
        }
        for i in 0..self.model.fixed {
            if active & (1 << (FIXED_SHIFT + i)) != 0 {
                let source = self.fixed_source(i);
                let before = self.before(FIXED_SHIFT + i);
                let overflow = self.regs.fixed[i].count(source, &before, retired);
                self.overflowed(
                    overflow,
                    FIXED_SHIFT + i,
                    self.fixed_field(i) & FIXED_PMI != 0,
                );
            }
        }
    }

    /// All that has retired before at the levels, and on the threads, that a counter counts.
    fn before(&self, counter: usize) -> Retired {
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
            add_to(&mut before, &self.total[level]);
            if any_thread != 0 {
                add_to(&mut before, &self.total_of_sibling[level]);
            }
        }
        before
    }

    /// The active counters that count the other thread as well.
    fn any_thread(&self) -> u64 {
        if self.thread.per_core() < 2 {
            return 0;
        }
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let general = general.filter(|(general, _)| general.select & ANY_THREAD != 0);
        let fixed = (0..self.model.fixed).filter(|&i| self.fixed_field(i) & FIXED_ANY_THREAD != 0);
        let counters = general
            .map(|(_, i)| i)
            .chain(fixed.map(|i| FIXED_SHIFT + i));
        counters.fold(0, |mask, i| mask | (1 << i)) & (self.active(false) | self.active(true))
    }

    /// What depends on what is retired?
    pub fn counting(&self) -> Counting {
        let active = self.active(false) | self.active(true);
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let more_than_instructions = general
            .filter(|(_, i)| active & (1 << i) != 0)
            .any(|(general, _)| general.register.is_some() || !general.source.is_of_instructions());
        if more_than_instructions || self.thread.is_wanted() {
            Counting::All
        } else if self.pmi_due
            || self.pmi_after.is_some()
            || self.defects.tfa
            || self.accounting.is_watched()
            || active != 0
        {
            Counting::Instructions
        } else {
            Counting::Nothing
        }
    }

    /// An SMI is delivered, or RSM ends its handler. With FREEZE_WHILE_SMM the one clears
    /// IA32_PERF_GLOBAL_CTRL and of IA32_DEBUGCTL what single-steps and traces, and the other sets both
    /// to what they were (SDM vol. 3, 20.8.1, which says of the former that the enable bits "will be set
    /// to 1": those that were).
    pub fn smm(&mut self, inside: bool) {
        let regs = &mut self.regs;
        if !inside {
            if let Some((ctrl, debugctl)) = regs.before_smm.take() {
                regs.global_ctrl = ctrl;
                regs.debugctl = debugctl;
            }
        } else if regs.debugctl & FREEZE_WHILE_SMM != 0 {
            regs.before_smm = Some((regs.global_ctrl, regs.debugctl));
            regs.global_ctrl = 0;
            regs.debugctl &= !BTF;
        }
        self.regs.global_ctrl &= self.counter_bits();
        self.publish();
    }

    /// Do the other thread's counters count what this one retires?
    pub fn sibling_counts(&self) -> bool {
        self.thread.is_wanted()
    }

    /// Must the core's other thread ask [`Pmu::counting`] anew? True once for each time.
    pub fn sibling_must_ask(&mut self) -> bool {
        std::mem::take(&mut self.sibling_must_ask)
    }

    /// Adds to a general counter.
    fn add(&mut self, index: usize, events: u64) {
        let general = &mut self.regs.general[index];
        let overflow = general.counter.add(events);
        let interrupt = general.select & INT != 0;
        self.overflowed(overflow, index, interrupt);
    }

    /// Can events leak to and from the other thread ([`Defects::ht_leak`])?
    pub(crate) fn leaky(&self) -> bool {
        self.defects.ht_leak && self.thread.per_core() > 1
    }

    /// How many of these events on a general counter the other thread's counter gets instead.
    fn leak(&mut self, index: usize, events: u64) -> u64 {
        match &mut self.regs.general[index].leak {
            Some(since) if self.thread.sibling_has(index) => {
                let sum = *since + events;
                *since = sum % defect::LEAK;
                self.thread.leak(index, sum / defect::LEAK);
                sum / defect::LEAK
            }
            _ => 0,
        }
    }

    /// Adds what has leaked into counters that are switched on; the rest is gone.
    fn take_leaked(&mut self) {
        for i in 0..self.generals {
            let events = self.thread.take_leaked(i);
            if events != 0 && self.enabled(USR | OS) & (1 << i) != 0 {
                self.add(i, events);
            }
        }
    }

    /// So many instructions retired: have there been transactions that use counter 3
    /// ([`Defects::tfa`])?
    fn transactions(&mut self, instructions: u64) {
        if instructions < self.to_transaction {
            self.to_transaction -= instructions;
            return;
        }
        let since = (instructions - self.to_transaction) % defect::TRANSACTION;
        self.to_transaction = defect::TRANSACTION - since;
        if self.regs.tsx_force_abort & RTM_FORCE_ABORT == 0 {
            let index = defect::TRANSACTION_COUNTER;
            self.write_select(index, defect::TRANSACTION_SELECT);
            self.regs.general[index]
                .counter
                .set(defect::TRANSACTION_COUNT);
        }
    }

    /// Lets the other thread know which counters are switched on, and whether any of them counts it.
    pub(crate) fn publish(&mut self) {
        if self.leaky() {
            self.thread.publish(self.enabled(USR | OS));
        }
        self.sibling_must_ask |= self.thread.want(self.any_thread() != 0);
    }

    /// MSR_OFFCORE_RSP_0 or _1.
    pub(crate) fn offcore_rsp(&self, index: usize) -> &AtomicU64 {
        self.thread.offcore_rsp(self.model.offcore.per_core, index)
    }

    fn overflowed(&mut self, overflow: bool, bit: usize, interrupt: bool) {
        if overflow {
            self.regs.global_status |= 1 << bit;
            if interrupt && self.ordered.has(Ordered::LATE_PMI) {
                self.pmi_after.get_or_insert(order::LATE_BY);
            } else {
                self.pmi_due |= interrupt;
            }
        }
    }

    /// The counters that count at this privilege, as bits of IA32_PERF_GLOBAL_CTRL.
    fn active(&self, user: bool) -> u64 {
        let (level, fixed_level) = if user {
            (USR, FIXED_USR)
        } else {
            (OS, FIXED_OS)
        };
        if self.is_frozen() {
            return 0;
        }
        let fixed = (0..self.model.fixed).filter(|&i| self.fixed_field(i) & fixed_level != 0);
        let fixed = fixed.fold(0, |mask, i| mask | (1 << (FIXED_SHIFT + i)));
        self.enabled(level) | fixed & self.regs.global_ctrl
    }

    /// The general counters that are switched on for one of these levels ([`USR`], [`OS`]).
    fn enabled(&self, levels: u64) -> u64 {
        if self.is_frozen() {
            return 0;
        }
        let general = self.regs.general[..self.generals].iter().zip(0..);
        let enabled = general.filter(|(g, _)| g.select & EN != 0 && g.select & levels != 0);
        enabled.fold(0, |mask, (_, i)| mask | (1 << i)) & self.regs.global_ctrl
    }

    fn is_frozen(&self) -> bool {
        self.regs.global_status & CTR_FRZ != 0
    }

    /// What a general counter counts just now: some events hang on a register beside them.
    fn general_source(&self, index: usize) -> Source {
        let general = &self.regs.general[index];
        match general.register {
            Some(Register::Offcore(index)) => {
                let value = self.offcore_rsp(index).load(Relaxed);
                select::offcore_response(self.model.offcore, value)
            }
            Some(Register::LoadLatency) => select::load_latency(general.source, self.regs.ld_lat),
            Some(Register::Frontend) if self.regs.frontend == 0 => Source::Nothing,
            Some(Register::Frontend) | None => general.source,
        }
    }

    /// What a fixed counter counts: INST_RETIRED.ANY, CPU_CLK_UNHALTED.THREAD,
    /// CPU_CLK_UNHALTED.REF_TSC, TOPDOWN.SLOTS.
    fn fixed_source(&self, index: usize) -> Source {
        match index {
            0 => event::INSTRUCTIONS,
            1 => event::CYCLES,
            2 => event::REFERENCE_CYCLES,
            _ => event::slots(self.model.slots),
        }
    }

    /// A fixed counter's field of IA32_FIXED_CTR_CTRL.
    pub(crate) fn fixed_field(&self, index: usize) -> u64 {
        (self.regs.fixed_ctrl >> (4 * index)) & 0xf
    }

    /// How many instructions may retire at this privilege until something is due; negative: it is
    /// due now.
    pub fn budget(&self, user: bool) -> i64 {
        /// Far off, with room to spare for what is taken from it and given back.
        const NEVER: u64 = 1 << 62;
        /// What the other thread counts must not come much later than it came about.
        const SHARED: u64 = 1 << 12;
        if self.pmi_due {
            return -1;
        }
        let active = self.active(user);
        let general = (0..self.generals)
            .filter(|&i| active & (1 << i) != 0 && self.regs.general[i].select & INT != 0);
        let general = general.map(|i| {
            self.regs.general[i]
                .counter
                .instructions_to_overflow(self.general_source(i), &self.before(i))
        });
        let fixed = (0..self.model.fixed).filter(|&i| {
            active & (1 << (FIXED_SHIFT + i)) != 0 && self.fixed_field(i) & FIXED_PMI != 0
        });
        let fixed = fixed.map(|i| {
            self.regs.fixed[i]
                .instructions_to_overflow(self.fixed_source(i), &self.before(FIXED_SHIFT + i))
        });
        let leaking = (0..self.generals)
            .any(|i| active & (1 << i) != 0 && self.regs.general[i].leak.is_some());
        let shared = leaking && self.leaky() || self.thread.is_wanted() || self.any_thread() != 0;
        let most = if shared { SHARED } else { NEVER };
        let least = general
            .chain(fixed)
            .chain([self.pmi_after])
            .flatten()
            .min()
            .unwrap_or(NEVER)
            .min(most);
        // QEMU asks once the budget is below zero, which must be so after `least` instructions.
        least as i64 - 1
    }

    /// Is a PMI to be delivered now? True is taken for done. One that finds LVTPC masked is lost: the
    /// mask inhibits the interrupt's reception (SDM vol. 3, 11.5.1), and nothing asks for it again.
    pub fn pmi(&mut self, masked: bool) -> bool {
        if !std::mem::take(&mut self.pmi_due) {
            return false;
        }
        self.freeze();
        self.second_pmi = match self.second_pmi {
            Second::No if !masked && self.ordered.has(Ordered::SECOND_PMI) => Second::AfterLvtpc,
            _ => Second::No,
        };
        bump(if masked {
            &self.accounting.lost
        } else {
            &self.accounting.pmis
        });
        !masked
    }

    /// SDM vol. 3, 18.4.7: the request for a PMI stops the counters by clearing GLOBAL_CTRL, from
    /// version 4 on by CTR_FRZ. What the APIC makes of the request is not the PMU's affair.
    fn freeze(&mut self) {
        if self.regs.debugctl & FREEZE_PERFMON_ON_PMI != 0 {
            if self.model.version >= 4 {
                self.regs.global_status |= CTR_FRZ;
            } else {
                self.regs.global_ctrl = 0;
            }
            self.publish();
        }
    }

    /// The guest wrote LVTPC.
    pub fn lvtpc_write(&mut self) {
        bump(&self.accounting.msr(crate::accounting::LVTPC).writes);
        if self.second_pmi == Second::AfterLvtpc {
            self.second_pmi = Second::IsDue;
            self.pmi_after = Some(1);
        }
    }

    /// RDPMC: ECX is a general counter's number or, with bit 30, a fixed counter's.
    pub fn rdpmc(&self, ecx: u32) -> Result<u64, Fault> {
        let accesses = self.accounting.rdpmc(ecx);
        bump(&accesses.reads);
        let (generals, fixed) = self.there();
        let counter = match (ecx >> 30, (ecx & !(1 << 30)) as usize) {
            (0, index) if index < generals => Some(&self.regs.general[index].counter),
            (1, index) => self.regs.fixed[..fixed].get(index),
            _ => None,
        };
        counter.map(Counter::value).ok_or_else(|| {
            bump(&accesses.faults);
            Fault
        })
    }
}

impl Registers {
    /// SDM vol. 3, table 10-1: all clear but GLOBAL_CTRL, which has the general counters' bits set.
    fn new(generals: usize) -> Self {
        let general = General {
            counter: Counter::default(),
            select: 0,
            source: Source::Nothing,
            register: None,
            leak: None,
        };
        Registers {
            general: [general; MAX_GENERAL],
            fixed: Default::default(),
            fixed_ctrl: 0,
            global_ctrl: (1 << generals) - 1,
            global_status: 0,
            debugctl: 0,
            before_smm: None,
            misc_enable: crate::msr::MISC_ENABLE_RESET,
            tsx_force_abort: 0,
            ld_lat: 0,
            frontend: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::counter::MASK;
    use crate::model;

    const HASWELL: u32 = 60;
    const SKYLAKE: u32 = 94;
    const KERNEL: bool = false;
    const USER: bool = true;

    const INST_RETIRED: u64 = 0xc0;
    const BR_INST_RETIRED: u64 = 0xc4;
    const L1D_PEND_MISS: u64 = 0x148;
    const UOPS_ISSUED_ANY: u64 = 0x10e;
    const REF_XCLK: u64 = 0x13c;
    const LOADS: u64 = 0x81d0;
    const WALKS: u64 = 0x0108;
    const OFFCORE_RESPONSE_0: u64 = 0x1b7;
    const OFFCORE_RESPONSE_1: u64 = 0x1bb;

    const STATUS: u32 = 0x38e;
    const GLOBAL_CTRL: u32 = 0x38f;
    const STATUS_RESET: u32 = 0x390;

    fn pmu(model: u32) -> Pmu {
        let mut pmu = Pmu::new(model::find(6, model).unwrap(), 2);
        write(&mut pmu, GLOBAL_CTRL, 0x7_0000_000f);
        pmu
    }

    fn write(pmu: &mut Pmu, msr: u32, value: u64) {
        pmu.wrmsr(msr, value).unwrap().unwrap();
    }

    fn read(pmu: &Pmu, msr: u32) -> u64 {
        pmu.rdmsr(msr).unwrap().unwrap()
    }

    /// All of them load.
    fn retire(pmu: &mut Pmu, user: bool, instructions: i64) {
        let mut counts = [0; retired::COUNTS];
        counts[retired::INSTRUCTIONS] = instructions;
        counts[retired::LOADS] = instructions;
        pmu.retire(user, &counts);
    }

    #[test]
    fn privilege_split() {
        let mut pmu = pmu(HASWELL);
        for (index, levels) in [OS | USR, OS, USR, 0].into_iter().enumerate() {
            write(&mut pmu, 0x186 + index as u32, INST_RETIRED | EN | levels);
        }
        write(&mut pmu, 0x38d, 0x123); // F0: all, F1: user, F2: kernel
        retire(&mut pmu, KERNEL, 1000);
        retire(&mut pmu, USER, 40);
        let counts = [0, 1, 2, 3].map(|index| pmu.rdpmc(index).unwrap());
        assert_eq!(counts, [1040, 1000, 40, 0]);
        let counts = [0, 1, 2].map(|index| pmu.rdpmc((1 << 30) | index).unwrap());
        assert_eq!(counts, [1040, 60, 1250]);
    }

    #[test]
    fn an_idle_pmu_need_not_be_told() {
        let idle = || {
            let mut pmu = pmu(HASWELL);
            write(&mut pmu, GLOBAL_CTRL, 0x7_0000_000f);
            assert_eq!(pmu.counting(), Counting::Nothing);
            pmu
        };
        // A level enabled, in a counter's control and not in GLOBAL_CTRL.
        for (msr, value, counting) in [
            (0x186, INST_RETIRED | EN | USR, Counting::Instructions),
            (0x186, INST_RETIRED | EN | OS, Counting::Instructions),
            (0x186, UOPS_ISSUED_ANY | EN | OS, Counting::Instructions),
            (0x186, WALKS | EN | OS, Counting::Instructions),
            (0x186, BR_INST_RETIRED | EN | OS, Counting::All),
            (0x186, LOADS | EN | USR, Counting::All),
            (
                0x186,
                LOADS | (1 << 24) | (1 << 23) | EN | USR,
                Counting::All,
            ),
            (0x186, OFFCORE_RESPONSE_0 | EN | USR, Counting::All),
            (0x186, LOADS | USR, Counting::Nothing),
            (0x38d, 0x200, Counting::Instructions),
            (0x38d, 0x008, Counting::Nothing),
        ] {
            let mut pmu = idle();
            write(&mut pmu, msr, value);
            assert_eq!(pmu.counting(), counting, "{msr:#x} {value:#x}");
            write(&mut pmu, GLOBAL_CTRL, 0);
            assert_eq!(pmu.counting(), Counting::Nothing);
        }
        // A PMI on its way.
        let mut pmu = idle();
        write(&mut pmu, 0x38d, 0x00b);
        write(&mut pmu, 0x309, MASK);
        retire(&mut pmu, KERNEL, 1);
        write(&mut pmu, 0x38d, 0);
        assert_eq!(pmu.counting(), Counting::Instructions);
        assert!(pmu.pmi(false));
        assert_eq!(pmu.counting(), Counting::Nothing);
        // Somebody looks at how often it was told, and then at the accounting.
        assert_eq!(read(&pmu, 0x4000_ff05), 1);
        assert_eq!(pmu.counting(), Counting::Nothing);
        read(&pmu, 0x4000_ff06);
        assert_eq!(pmu.counting(), Counting::Instructions);
    }

    #[test]
    fn nothing_counts_unless_enabled_twice() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, INST_RETIRED | USR);
        retire(&mut pmu, USER, 1);
        write(&mut pmu, 0x186, INST_RETIRED | USR | EN);
        write(&mut pmu, GLOBAL_CTRL, 0xe);
        retire(&mut pmu, USER, 1);
        assert_eq!(pmu.rdpmc(0), Ok(0));
        write(&mut pmu, GLOBAL_CTRL, 0x1);
        retire(&mut pmu, USER, 1);
        assert_eq!(pmu.rdpmc(0), Ok(1));
    }

    #[test]
    fn branches_by_class() {
        let cases = [
            (0x00, 1 + 4 + 8 + 16 + 32 + 64 + 128),
            (0x01, 1),
            (0x02, 16 + 32),
            (0x04, 1 + 4 + 8 + 16 + 32 + 64 + 128),
            (0x08, 64),
            (0x10, 1 - 1),
            (0x20, 1 + 4 + 8 + 16 + 32 + 64),
            (0x40, 128),
        ];
        for (umask, expected) in cases {
            let mut pmu = pmu(HASWELL);
            write(&mut pmu, 0x186, BR_INST_RETIRED | (umask << 8) | USR | EN);
            pmu.retire(USER, &[500, 0, 0, 0, 1, 0, 4, 8, 16, 32, 64, 128, 0, 0, 0]);
            assert_eq!(pmu.rdpmc(0), Ok(expected), "umask {umask:#x}");
        }
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, BR_INST_RETIRED | (0x10 << 8) | USR | EN);
        pmu.retire(USER, &[500, 0, 0, 0, 4, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(pmu.rdpmc(0), Ok(5));
    }

    #[test]
    fn what_did_not_retire_is_taken_off_later() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, INST_RETIRED | USR | OS | EN);
        retire(&mut pmu, USER, 10);
        retire(&mut pmu, USER, -4);
        assert_eq!(pmu.rdpmc(0), Ok(10));
        // Only at its own privilege.
        retire(&mut pmu, KERNEL, 3);
        assert_eq!(pmu.rdpmc(0), Ok(13));
        retire(&mut pmu, USER, 1);
        assert_eq!(pmu.rdpmc(0), Ok(13));
        retire(&mut pmu, USER, 5);
        assert_eq!(pmu.rdpmc(0), Ok(15));
    }

    #[test]
    fn writes_to_a_running_counter() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, INST_RETIRED | USR | EN);
        retire(&mut pmu, USER, 7);
        write(&mut pmu, 0x4c1, 100);
        retire(&mut pmu, USER, 7);
        assert_eq!(read(&pmu, 0xc1), 107);
        // Another event goes on from there.
        write(&mut pmu, 0x186, L1D_PEND_MISS | USR | EN);
        retire(&mut pmu, USER, 1 << 20);
        assert_eq!(read(&pmu, 0xc1), 107);
    }

    #[test]
    fn counters_that_an_event_is_not_allowed_on() {
        let mut pmu = pmu(HASWELL);
        for index in 0..4 {
            write(&mut pmu, 0x186 + index, L1D_PEND_MISS | USR | EN);
        }
        retire(&mut pmu, USER, 1 << 20);
        let counts = [0, 1, 2, 3].map(|index| pmu.rdpmc(index).unwrap() != 0);
        assert_eq!(counts, [false, false, true, false]);
    }

    #[test]
    fn offcore_responses_need_their_register() {
        for (event, own, other) in [
            (OFFCORE_RESPONSE_0, 0x1a6, 0x1a7),
            (OFFCORE_RESPONSE_1, 0x1a7, 0x1a6),
        ] {
            let mut pmu = pmu(HASWELL);
            write(&mut pmu, 0x186, event | USR | EN);
            for (msr, value, counts) in [
                (other, 0x10001, false),
                (own, 0x00001, false), // any response missing
                (own, 0x10000, false), // any request missing
                (own, 0x10001, true),
            ] {
                write(&mut pmu, msr, value);
                retire(&mut pmu, USER, 1 << 20);
                assert_eq!(pmu.rdpmc(0).unwrap() != 0, counts, "{msr:#x} {value:#x}");
            }
        }
    }

    #[test]
    fn both_offcore_registers_count_alike() {
        let mut pmu = pmu(SKYLAKE);
        for (index, event, msr) in [
            (0, OFFCORE_RESPONSE_0, 0x1a6),
            (1, OFFCORE_RESPONSE_1, 0x1a7),
        ] {
            write(&mut pmu, 0x186 + index, event | USR | EN);
            write(&mut pmu, msr, 0x3f_8001_0003);
        }
        retire(&mut pmu, USER, 1 << 20);
        assert_eq!(pmu.rdpmc(0), pmu.rdpmc(1));
        assert_ne!(pmu.rdpmc(0), Ok(0));
    }

    /// What one event has had says nothing about the next one's share.
    #[test]
    fn a_new_event_has_its_own_share() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, UOPS_ISSUED_ANY | USR | EN);
        retire(&mut pmu, USER, 15);
        // A whole of it is 20, and 15 are over.
        write(&mut pmu, 0x186, REF_XCLK | USR | EN);
        write(&mut pmu, 0x4c1, 0);
        retire(&mut pmu, USER, 4);
        assert_eq!(pmu.rdpmc(0), Ok(0));
        retire(&mut pmu, USER, 1);
        assert_eq!(pmu.rdpmc(0), Ok(1));
    }

    #[test]
    fn overflow_sets_status_and_only_int_raises_a_pmi() {
        for (select, expected) in [(0, false), (INT, true)] {
            let mut pmu = pmu(HASWELL);
            write(&mut pmu, 0x187, INST_RETIRED | USR | EN | select);
            write(&mut pmu, 0x4c2, MASK - 9);
            assert_eq!(pmu.budget(USER) == 9, expected);
            retire(&mut pmu, USER, 9);
            assert_eq!(read(&pmu, STATUS), 0);
            retire(&mut pmu, USER, 1);
            assert_eq!(read(&pmu, STATUS), 1 << 1);
            assert_eq!(pmu.budget(USER) < 0, expected);
            assert_eq!(pmu.pmi(false), expected);
            // Once.
            assert!(!pmu.pmi(false));
            assert!(pmu.budget(USER) > 1 << 40);
            write(&mut pmu, STATUS_RESET, 1 << 1);
            assert_eq!(read(&pmu, STATUS), 0);
        }
    }

    #[test]
    fn fixed_counters_overflow_too() {
        for (field, expected) in [(0x3, false), (0xb, true)] {
            for index in 0..3 {
                let mut pmu = pmu(SKYLAKE);
                write(&mut pmu, 0x38d, field << (4 * index));
                write(&mut pmu, 0x309 + index, MASK - 2);
                let budget = pmu.budget(KERNEL);
                assert_eq!(budget < 3, expected);
                retire(&mut pmu, KERNEL, 3);
                assert_eq!(read(&pmu, STATUS), 1 << (32 + index));
                assert_eq!(pmu.pmi(false), expected);
            }
        }
    }

    /// QEMU runs until the budget is below zero: then, and not an instruction earlier, the PMI is
    /// due.
    #[test]
    fn the_budget_is_exact() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x38d, 0x0b0); // cycles, CPI 3/2
        write(&mut pmu, 0x30a, MASK + 1 - 3000);
        assert_eq!(pmu.budget(KERNEL), 1999);
        retire(&mut pmu, KERNEL, 1999);
        assert!(!pmu.pmi(false));
        assert_eq!(pmu.budget(KERNEL), 0);
        retire(&mut pmu, KERNEL, 1);
        assert!(pmu.pmi(false));
    }

    #[test]
    fn the_budget_is_that_of_the_privilege() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x186, INST_RETIRED | USR | EN | INT);
        write(&mut pmu, 0x4c1, MASK);
        assert_eq!(pmu.budget(USER), 0);
        assert!(pmu.budget(KERNEL) > 1 << 40);
    }

    #[test]
    fn a_masked_pmi_is_lost() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x38d, 0x00b);
        write(&mut pmu, 0x309, MASK);
        retire(&mut pmu, KERNEL, 1);
        assert!(!pmu.pmi(true));
        // It does not make QEMU ask again and again, and is not delivered later.
        assert!(pmu.budget(KERNEL) >= 0);
        pmu.lvtpc_write();
        assert!(!pmu.pmi(false));
        // The status stays.
        assert_eq!(read(&pmu, STATUS), 1 << 32);
        let counts = [&pmu.accounting.pmis, &pmu.accounting.lost];
        assert_eq!(counts.map(|count| count.load(Relaxed)), [0, 1]);
    }

    /// The interrupt is on its way to the APIC by then.
    #[test]
    fn clearing_the_status_takes_no_pmi_back() {
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x38d, 0x00b);
        write(&mut pmu, 0x309, MASK);
        retire(&mut pmu, KERNEL, 1);
        write(&mut pmu, STATUS_RESET, 1 << 32);
        assert!(pmu.pmi(false));
    }

    #[test]
    fn freeze_on_pmi() {
        for (model, frozen, masked) in [
            (HASWELL, false, false),
            (HASWELL, false, true),
            (SKYLAKE, true, false),
            (SKYLAKE, true, true),
        ] {
            let mut pmu = pmu(model);
            write(&mut pmu, 0x1d9, FREEZE_PERFMON_ON_PMI);
            write(&mut pmu, 0x38d, 0x00b);
            write(&mut pmu, 0x309, MASK);
            retire(&mut pmu, KERNEL, 1);
            assert_eq!(pmu.pmi(masked), !masked);
            retire(&mut pmu, KERNEL, 100);
            assert_eq!(pmu.rdpmc(1 << 30), Ok(0));
            let status = read(&pmu, STATUS);
            if frozen {
                assert_eq!(status, CTR_FRZ | (1 << 32));
                assert_eq!(read(&pmu, GLOBAL_CTRL), 0x7_0000_000f);
                write(&mut pmu, STATUS_RESET, CTR_FRZ);
            } else {
                assert_eq!(status, 1 << 32);
                assert_eq!(read(&pmu, GLOBAL_CTRL), 0);
                write(&mut pmu, GLOBAL_CTRL, 1 << 32);
            }
            retire(&mut pmu, KERNEL, 100);
            assert_eq!(pmu.rdpmc(1 << 30), Ok(100));
        }
    }

    /// An SMI at user level, whose handler retires 1000 instructions at CPL 0.
    #[test]
    fn freeze_while_smm() {
        const FREEZE: u64 = FREEZE_WHILE_SMM | FREEZE_PERFMON_ON_PMI | BTF;
        for (debugctl, counted, inside) in
            [(0, 1107, 0), (BTF, 1107, BTF), (FREEZE, 107, FREEZE & !BTF)]
        {
            let mut pmu = pmu(HASWELL);
            write(&mut pmu, 0x1d9, debugctl);
            write(&mut pmu, 0x186, INST_RETIRED | OS | USR | EN);
            write(&mut pmu, 0x187, LOADS | OS | USR | EN);
            write(&mut pmu, 0x38d, 0x003);
            let ctrl = 0x1_0000_0003;
            write(&mut pmu, GLOBAL_CTRL, ctrl);
            retire(&mut pmu, USER, 100);
            pmu.smm(true);
            let frozen = debugctl == FREEZE;
            assert_eq!(pmu.counting() == Counting::Nothing, frozen);
            assert_eq!(read(&pmu, GLOBAL_CTRL), if frozen { 0 } else { ctrl });
            assert_eq!(read(&pmu, 0x1d9), inside);
            retire(&mut pmu, KERNEL, 1000);
            pmu.smm(false);
            assert_eq!(
                [GLOBAL_CTRL, 0x1d9].map(|msr| read(&pmu, msr)),
                [ctrl, debugctl]
            );
            retire(&mut pmu, USER, 7);
            for ecx in [0, 1, 1 << 30] {
                assert_eq!(pmu.rdpmc(ecx), Ok(counted), "{debugctl:#x} {ecx:#x}");
            }
        }
        // RESET ends SMM.
        let mut pmu = pmu(HASWELL);
        write(&mut pmu, 0x1d9, FREEZE_WHILE_SMM);
        pmu.smm(true);
        pmu.reset();
        pmu.smm(false);
        assert_eq!(read(&pmu, 0x1d9), 0);
    }

    #[test]
    fn rdpmc_of_absent_counters_faults() {
        let pmu = pmu(HASWELL);
        for ecx in [0, 3, 1 << 30, (1 << 30) | 2] {
            assert!(pmu.rdpmc(ecx).is_ok(), "{ecx:#x}");
        }
        for ecx in [4, 8, (1 << 30) | 3, 1 << 31, 1 << 29, 3 << 30, u32::MAX] {
            assert_eq!(pmu.rdpmc(ecx), Err(Fault), "{ecx:#x}");
        }
        let unthreaded = Pmu::new(model::find(6, HASWELL).unwrap(), 1);
        assert!(unthreaded.rdpmc(7).is_ok());
        assert_eq!(unthreaded.rdpmc(8), Err(Fault));
    }
}
