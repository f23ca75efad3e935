// SPDX-License-Identifier: GPL-2.0

use super::Register::{
    Counter,
    FixedControl,
    GlobalControl, //
};
use super::*;

const CYCLES: EventSelect = EventSelect::event(0x3c, 0x00).counting_user(true);
const BRANCHES: EventSelect = EventSelect::event(0xc4, 0x00).counting_user(true);
const BOTH: EventSelect = BRANCHES.counting_kernel(true);

/// A shadow, and the register writes that it has requested.
struct Recorder {
    shadow: Shadow,
    writes: Vec<(Register, u64)>,
}

impl Recorder {
    fn new(counters: CounterMask) -> Self {
        Self {
            shadow: Shadow::new(counters),
            writes: Vec::new(),
        }
    }

    fn reset(&mut self) {
        let writes = &mut self.writes;
        self.shadow.reset(|w| writes.push((w.register, w.value)));
    }

    fn suspend(&mut self) {
        if self.shadow.suspend() {
            self.writes.push((GlobalControl, 0));
        }
    }

    fn resume(&mut self) {
        let writes = &mut self.writes;
        let write = |w: RegisterWrite| writes.push((w.register, w.value));
        if let Some(counters) = self.shadow.resume(write) {
            self.writes.push((GlobalControl, counters.bits()));
        }
    }

    fn start(&mut self, counter: CounterId, select: EventSelect, value: u64) {
        let writes = &mut self.writes;
        let write = |w: RegisterWrite| writes.push((w.register, w.value));
        self.shadow.plan(counter, Programming::of(select));
        self.shadow.start(counter, value, write);
    }

    fn start_offcore(&mut self, counter: CounterId, register: ExtraRegister, extra: u64) {
        let writes = &mut self.writes;
        let write = |w: RegisterWrite| writes.push((w.register, w.value));
        let programming = Programming {
            extra: Some((register, extra)),
            ..Programming::of(BRANCHES)
        };
        self.shadow.plan(counter, programming);
        self.shadow.start(counter, 0, write);
    }

    fn needs_clearing(&mut self, counter: CounterId, select: EventSelect) -> bool {
        self.shadow.plan(counter, Programming::of(select));
        self.shadow.needs_clearing(counter)
    }

    /// Returns the writes since the last call.
    fn take(&mut self) -> Vec<(Register, u64)> {
        core::mem::take(&mut self.writes)
    }
}

/// Four general-purpose counters, and `fixed` ones.
fn counters(fixed: u8) -> CounterMask {
    CounterMask::first_gp(4).union(CounterMask::first_fixed(fixed))
}

/// Four general-purpose counters, three fixed ones, all zero.
fn recorder() -> Recorder {
    let mut recorder = Recorder::new(counters(3));
    recorder.reset();
    recorder.take();
    recorder
}

fn gp(n: u8) -> CounterId {
    CounterId::gp(n).unwrap()
}

fn fixed(n: u8) -> CounterId {
    CounterId::fixed(n).unwrap()
}

/// Seven events, as in a context switch with a full PMU.
fn full() -> Recorder {
    let mut recorder = recorder();
    for n in 0..4 {
        recorder.start(gp(n), BRANCHES, 100);
    }
    for n in 0..3 {
        recorder.start(fixed(n), CYCLES, 100);
    }
    recorder.resume();
    recorder
}

fn stop_all(recorder: &mut Recorder, value: Option<u64>) {
    recorder.suspend();
    for counter in recorder.shadow.active() {
        recorder.shadow.stop(counter, value);
    }
    recorder.resume();
}

#[test]
fn reset_writes_every_register_that_exists_global_control_first() {
    let mut recorder = Recorder::new(counters(3));
    recorder.reset();
    let writes = recorder.take();
    assert_eq!(writes[0], (GlobalControl, 0));
    assert_eq!(writes.len(), 2 + 4 * 2 + 3);
    assert!(writes.iter().all(|(_, value)| *value == 0));
    // A reset does not rely on known values.
    recorder.reset();
    assert_eq!(recorder.take(), writes);
}

#[test]
fn no_fixed_control_without_fixed_counters() {
    let mut recorder = Recorder::new(counters(0));
    recorder.reset();
    recorder.resume();
    let writes = recorder.take();
    assert!(writes.iter().all(|(register, _)| *register != FixedControl));
}

#[test]
fn first_start_of_a_full_pmu() {
    let writes = full().take();
    // Each general-purpose counter and its event select, each fixed counter, and the two control
    // registers.
    assert_eq!(writes.len(), 4 * 2 + 3 + 2);
    assert_eq!(writes[writes.len() - 2], (FixedControl, 0x222));
    assert_eq!(writes[writes.len() - 1], (GlobalControl, 0x7_0000_000f));
}

#[test]
fn switching_out_is_one_write() {
    let mut recorder = full();
    recorder.take();
    stop_all(&mut recorder, Some(200));
    assert_eq!(recorder.take(), [(GlobalControl, 0)]);
}

#[test]
fn switching_the_same_events_in_again_is_one_write() {
    let mut recorder = full();
    stop_all(&mut recorder, Some(200));
    recorder.take();
    recorder.suspend();
    for n in 0..4 {
        recorder.start(gp(n), BRANCHES, 200);
    }
    for n in 0..3 {
        recorder.start(fixed(n), CYCLES, 200);
    }
    recorder.resume();
    assert_eq!(recorder.take(), [(GlobalControl, 0x7_0000_000f)]);
}

#[test]
fn another_task_with_the_same_events_costs_its_counters() {
    let mut recorder = full();
    stop_all(&mut recorder, Some(200));
    recorder.take();
    recorder.start(gp(0), BRANCHES, 300);
    recorder.start(fixed(1), CYCLES, 300);
    recorder.resume();
    assert_eq!(
        recorder.take(),
        [
            (Counter(gp(0)), 300),
            (Counter(fixed(1)), 300),
            (GlobalControl, 0x2_0000_0001),
        ]
    );
}

#[test]
fn rotation_writes_only_changes() {
    let mut recorder = full();
    recorder.take();
    recorder.suspend();
    recorder.shadow.stop(gp(3), Some(200));
    recorder.start(gp(3), BOTH, 300);
    recorder.resume();
    assert_eq!(
        recorder.take(),
        [
            (GlobalControl, 0),
            (Counter(gp(3)), 300),
            (Register::EventSelect(gp(3)), 0x43_00c4),
            (GlobalControl, 0x7_0000_000f),
        ]
    );
}

#[test]
fn a_stopped_counter_does_not_count() {
    let mut recorder = full();
    recorder.take();
    recorder.suspend();
    recorder.shadow.stop(gp(1), None);
    recorder.shadow.stop(fixed(2), None);
    recorder.resume();
    let mask = 0x3_0000_000d;
    assert_eq!(recorder.shadow.active().bits(), mask);
    assert_eq!(recorder.take(), [(GlobalControl, 0), (GlobalControl, mask)]);
}

#[test]
fn a_value_that_was_not_read_is_written() {
    let mut recorder = full();
    stop_all(&mut recorder, None);
    recorder.take();
    // The very value that the counter was started with.
    recorder.start(gp(0), BRANCHES, 100);
    assert_eq!(recorder.take(), [(Counter(gp(0)), 100)]);
}

#[test]
fn the_value_of_a_started_counter_is_not_known() {
    let mut recorder = full();
    recorder.take();
    // The driver does not do this. The counter has counted since, so it has to be written.
    recorder.start(gp(0), BRANCHES, 100);
    assert_eq!(recorder.take(), [(Counter(gp(0)), 100)]);
}

#[test]
fn fixed_counters_do_not_disturb_each_other() {
    let mut recorder = full();
    recorder.take();
    recorder.suspend();
    recorder.shadow.stop(fixed(1), Some(200));
    recorder.start(fixed(1), BOTH.with(EventSelect::INT, true), 200);
    recorder.resume();
    assert_eq!(
        recorder.take(),
        [
            (GlobalControl, 0),
            (FixedControl, 0x2b2),
            (GlobalControl, 0x7_0000_000f),
        ]
    );
}

#[test]
fn counters_run_where_their_events_count() {
    let mut recorder = recorder();
    let shadow = &mut recorder.shadow;
    for (counter, host, guest) in [
        (gp(0), false, false),
        (gp(1), true, false),
        (gp(2), false, true),
        (gp(3), true, true),
        (fixed(1), false, true),
        (fixed(2), true, false),
    ] {
        let mut writes = Vec::new();
        let counts_in = CountsIn { host, guest };
        let programming = Programming {
            counts_in,
            ..Programming::of(BRANCHES)
        };
        shadow.plan(counter, programming);
        shadow.start(counter, 1, |write| writes.push(write.register));
        // A counter is programmed wherever it runs.
        if counter.is_gp() {
            assert_eq!(
                writes,
                [Register::Counter(counter), Register::EventSelect(counter)]
            );
        }
    }
    recorder.take();
    recorder.resume();
    assert_eq!(recorder.shadow.active().bits(), 0x6_0000_000f);
    assert_eq!(recorder.shadow.in_guest().bits(), 0x2_0000_000c);
    let fixed = (FixedControl, 0x220);
    assert_eq!(recorder.take(), [fixed, (GlobalControl, 0x4_0000_000a)]);

    // Without an event that counts in the host, the register need not be written.
    recorder.suspend();
    for counter in [gp(1), gp(3), self::fixed(2)] {
        recorder.shadow.stop(counter, None);
    }
    recorder.take();
    recorder.resume();
    assert_eq!(recorder.take(), []);
    assert_eq!(recorder.shadow.in_guest().bits(), 0x2_0000_0004);
    recorder.shadow.stop(gp(2), None);
    assert_eq!(recorder.shadow.in_guest().bits(), 0x2_0000_0000);
}

#[test]
fn extra_registers_are_written_before_the_event_and_when_they_change() {
    use ExtraRegister::{
        OffcoreResponse0,
        OffcoreResponse1, //
    };
    let mut recorder = recorder();
    recorder.start_offcore(gp(0), OffcoreResponse0, 0x10);
    let select = (Register::EventSelect(gp(0)), 0x41_00c4);
    // 0 is a value like others: the register's contents were unknown.
    let first = (Register::Extra(OffcoreResponse0), 0x10);
    assert_eq!(recorder.take(), [first, select]);
    recorder.start_offcore(gp(1), OffcoreResponse1, 0);
    let second = (Register::Extra(OffcoreResponse1), 0);
    assert_eq!(recorder.take()[0], second);
    recorder.resume();

    // Out and in again: the register is not written unless another thread may have written it.
    for shared in [false, true] {
        if shared {
            recorder.shadow.share_extra_registers();
        }
        recorder.suspend();
        recorder.shadow.stop(gp(0), Some(0));
        recorder.resume();
        recorder.suspend();
        recorder.take();
        recorder.start_offcore(gp(0), OffcoreResponse0, 0x10);
        let expected: &[_] = if shared { &[first] } else { &[] };
        assert_eq!(recorder.take(), expected);
    }
    recorder.reset();
    recorder.take();
    recorder.start_offcore(gp(0), OffcoreResponse0, 0x10);
    assert_eq!(recorder.take(), [first, select]);
}

#[test]
fn clearing_comes_before_the_first_programming_and_leaves_nothing_behind() {
    let mut recorder = recorder();
    let select = Register::EventSelect;
    assert!(recorder.needs_clearing(gp(1), BRANCHES));
    assert!(!recorder.needs_clearing(fixed(1), CYCLES));
    let events = [0x43_00b5, 0x43_00d2, 0x43_00b1, 0x43_00b1];
    let writes = &mut recorder.writes;
    recorder
        .shadow
        .clear(&events, |w| writes.push((w.register, w.value)));
    assert_eq!(
        recorder.take(),
        [
            // The counters are 0 already.
            (select(gp(0)), 0x43_00b5),
            (select(gp(1)), 0x43_00d2),
            (select(gp(2)), 0x43_00b1),
            (select(gp(3)), 0x43_00b1),
            (GlobalControl, 0xf),
            (GlobalControl, 0),
        ]
    );
    assert!(!recorder.needs_clearing(gp(1), BRANCHES));

    // The counter is written, since it may not be 0 any more.
    recorder.start(gp(1), BRANCHES, 0);
    recorder.resume();
    assert_eq!(
        recorder.take(),
        [
            (Counter(gp(1)), 0),
            (select(gp(1)), BRANCHES.enabled()),
            // The other clearing events are removed.
            (select(gp(0)), 0),
            (select(gp(2)), 0),
            (select(gp(3)), 0),
            (GlobalControl, 0x2),
        ]
    );
    // A programmed event select stays.
    recorder.suspend();
    recorder.shadow.stop(gp(1), None);
    assert!(!recorder.needs_clearing(gp(1), BRANCHES));
    assert!(recorder.needs_clearing(gp(1), BOTH));
}

#[test]
fn a_counter_is_given_away_switched_off() {
    let mut recorder = full();
    recorder.suspend();
    recorder.shadow.stop(gp(3), Some(7));
    recorder.take();
    let writes = &mut recorder.writes;
    recorder
        .shadow
        .give_away(gp(3), |w| writes.push((w.register, w.value)));
    assert_eq!(recorder.take(), [(Register::EventSelect(gp(3)), 0)]);
    // An event that comes back is programmed anew.
    recorder.start(gp(3), BRANCHES, 7);
    let select = BRANCHES.enabled();
    assert_eq!(recorder.take(), [(Register::EventSelect(gp(3)), select)]);
}

#[test]
fn suspending_twice_is_one_write() {
    let mut recorder = full();
    recorder.take();
    recorder.suspend();
    recorder.suspend();
    assert_eq!(recorder.take(), [(GlobalControl, 0)]);
}

#[test]
fn metrics_come_and_go_with_the_slots() {
    const METRICS: u64 = 1 << 48;
    const SLOTS: u64 = 1 << 35;
    let mut recorder = Recorder::new(counters(4));
    recorder.reset();
    let metric = |n| CounterId::metric(n).unwrap();
    for _ in 0..2 {
        recorder.take();
        recorder.start(CounterId::SLOTS, CYCLES, 0);
        recorder.shadow.start_metrics();
        // Not the first metric, whose bit stands for PERF_METRICS.
        recorder.shadow.set_virtual_active(metric(2), true);
        recorder.resume();
        assert_eq!(
            recorder.take().last(),
            Some(&(GlobalControl, SLOTS | METRICS))
        );
        assert_eq!(recorder.shadow.in_guest().bits(), SLOTS | METRICS);
        assert!(recorder.shadow.active().contains(metric(2)));
        recorder.suspend();
        // A metric that stops leaves the others.
        recorder.shadow.set_virtual_active(metric(2), false);
        recorder.resume();
        assert_eq!(
            recorder.take().last(),
            Some(&(GlobalControl, SLOTS | METRICS))
        );
        recorder.suspend();
        recorder.shadow.stop(CounterId::SLOTS, None);
        recorder.shadow.stop_metrics();
        recorder.resume();
        assert!(recorder.shadow.active().is_empty() && recorder.shadow.in_guest().is_empty());
    }
}

#[test]
fn the_second_counter_of_a_pair_comes_and_goes_with_the_first() {
    const MERGE: EventSelect = EventSelect::amd_event(0xfff, 0);
    const VALUE: u64 = 0xffff;
    let mut shadow = Shadow::new(CounterMask::first_gp(6));
    let mut writes = Vec::new();
    shadow.reset(|write| writes.push(write));

    let gp = |n| CounterId::gp(n).unwrap();
    let flops = EventSelect::amd_event(0x003, 0xff).counting_user(true);
    // A pair on counters 2 and 3, then a pair on 0 and 1; both twice.
    for round in 0..2 {
        writes.clear();
        shadow.start_second(gp(3), MERGE, VALUE, |write| writes.push(write));
        let start = 0xffff_ffff_fff0;
        shadow.plan(gp(2), Programming::of(flops));
        shadow.start(gp(2), start, |write| writes.push(write));
        let value = |counter, value| RegisterWrite {
            register: Register::Counter(counter),
            value,
        };
        assert!(writes.contains(&value(gp(3), VALUE)), "{round}");
        let merge = RegisterWrite {
            register: Register::EventSelect(gp(3)),
            value: MERGE.enabled(),
        };
        assert!(writes.contains(&merge), "{round}");
        assert_eq!(shadow.resume(|_| {}), Some(CounterMask::from_bits(0xc)));
        assert_eq!(shadow.active(), gp(2).mask());

        assert!(shadow.suspend());
        shadow.stop(gp(2), Some(start));
        shadow.stop_second_of(gp(2));
        shadow.start_second(gp(1), MERGE, VALUE, |_| {});
        shadow.plan(gp(0), Programming::of(flops));
        shadow.start(gp(0), start, |_| {});
        writes.clear();
        let running = shadow.resume(|write| writes.push(write));
        assert_eq!(running, Some(CounterMask::from_bits(0x3)));
        // The pair that counts keeps its second counter.
        let cleared = RegisterWrite {
            register: Register::EventSelect(gp(3)),
            value: 0,
        };
        assert!(writes.contains(&cleared), "{round}");
        assert!(!writes
            .iter()
            .any(|write| write.register == Register::EventSelect(gp(1))));

        assert!(shadow.suspend());
        shadow.stop(gp(0), None);
        shadow.stop_second_of(gp(0));
    }
}

#[test]
fn every_change_of_the_running_counters_touches() {
    let changes: [fn(&mut Shadow); 9] = [
        |shadow| shadow.start(gp(1), 0, |_| {}),
        |shadow| shadow.stop(gp(0), None),
        |shadow| shadow.start_second(gp(1), BRANCHES, 0, |_| {}),
        |shadow| shadow.start_metrics(),
        |shadow| shadow.stop_metrics(),
        |shadow| shadow.set_virtual_active(CounterId::GUEST_BRANCHES, true),
        |shadow| shadow.set_virtual_active(CounterId::GUEST_BRANCHES, false),
        |shadow| shadow.clear(&[BRANCHES.bits(); 4], |_| {}),
        |shadow| shadow.reset(|_| {}),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        let mut recorder = recorder();
        recorder.start(gp(0), BRANCHES, 100);
        recorder.start(fixed(0), CYCLES, 100);
        recorder.resume();
        assert!(!recorder.shadow.is_touched());

        // The same counters run again, and nothing else is written.
        recorder.take();
        recorder.suspend();
        recorder.resume();
        let run = (GlobalControl, 0x1_0000_0001);
        assert_eq!(recorder.take(), [(GlobalControl, 0), run]);

        recorder.suspend();
        change(&mut recorder.shadow);
        assert!(recorder.shadow.is_touched(), "change {n}");
        recorder.resume();
        assert!(!recorder.shadow.is_touched());
    }
}
