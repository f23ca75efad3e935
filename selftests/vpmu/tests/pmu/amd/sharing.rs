// SPDX-License-Identifier: GPL-2.0

//! Tests the state that the cores of a node share.

use std::sync::Arc;

use super::*;
use vpmu::defect::Defects;
use vpmu::retired::*;
use vpmu::shared::{
    Core,
    Node,
    Thread, //
};

const DRAM_ACCESSES: u64 = 0x3fe0;
const L3_READS: u64 = 0x4_0000_07e0;

fn cores(cpu: &Cpu) -> [Pmu; 2] {
    let node: Arc<Node> = Arc::default();
    [0, 1].map(|_| {
        let thread = Thread::new(Core::on(node.clone(), 1), 0);
        Pmu::on(
            thread,
            model::find(cpu.family, cpu.model).unwrap(),
            Defects::NONE,
        )
    })
}

fn counts(pmu: &mut Pmu, counter: u32) -> bool {
    write(pmu, K10.ctr(counter), 0);
    retire(pmu, true, &[(INSTRUCTIONS, 1 << 16), (LOADS, 1 << 16)]);
    read(pmu, K10.ctr(counter)) != 0
}

/// The northbridge has one set of counters: the last write wins.
#[test]
fn northbridge_events_replace_those_of_other_cores() {
    let [mut a, mut b] = cores(K10);
    write(&mut a, K10.ctl(1), DRAM_ACCESSES | USR | EN);
    assert!(counts(&mut a, 1));
    // Another number, another event: no conflict.
    write(&mut b, K10.ctl(2), L3_READS | USR | EN);
    write(&mut b, K10.ctl(1), RETIRED_INSTRUCTIONS | USR | EN);
    assert!(counts(&mut a, 1) && counts(&mut b, 1) && counts(&mut b, 2));
    write(&mut b, K10.ctl(1), L3_READS | USR | EN);
    assert!(!counts(&mut a, 1) && counts(&mut b, 1));
    // The replaced event does not count again by itself.
    write(&mut b, K10.ctl(1), 0);
    assert!(!counts(&mut a, 1));
    write(&mut a, K10.ctl(1), DRAM_ACCESSES | USR | EN);
    assert!(counts(&mut a, 1));
    b.reset();
    assert!(counts(&mut a, 1));
}

#[test]
fn other_events_are_the_cores_own() {
    let [mut a, mut b] = cores(K10);
    for pmu in [&mut a, &mut b] {
        write(pmu, K10.ctl(0), RETIRED_INSTRUCTIONS | USR | EN);
    }
    assert!(counts(&mut a, 0) && counts(&mut b, 0));
}
