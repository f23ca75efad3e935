// SPDX-License-Identifier: GPL-2.0

//! Signals: those that end the program are noted, so that it gives the PMU back first; and ending
//! the test programs.

use std::fs;
use std::sync::atomic::{
    AtomicBool,
    Ordering, //
};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

const SIGHUP: i32 = 1;
const SIGINT: i32 = 2;
const SIGKILL: i32 = 9;
const SIGTERM: i32 = 15;

extern "C" {
    fn signal(number: i32, handler: extern "C" fn(i32)) -> usize;
    fn kill(pid: i32, number: i32) -> i32;
}

extern "C" fn note(_: i32) {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Notes the signals of Ctrl-C, kill(1) and a closed terminal from now on.
pub(crate) fn note_all() {
    for number in [SIGHUP, SIGINT, SIGTERM] {
        // SAFETY: `note` only stores to an atomic variable, which a signal handler may do.
        unsafe { signal(number, note) };
    }
}

/// Returns whether one of them has arrived.
pub(crate) fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Kills a process that this program has started, and the processes that it has started.
///
/// The test harness puts each test into a process group of its own, so one group is not enough.
pub(crate) fn kill_all(pid: u32) {
    let mut pids = vec![pid];
    let mut at = 0;
    let all = processes();
    while let Some(parent) = pids.get(at).copied() {
        pids.extend(all.iter().filter(|it| it.1 == parent).map(|it| it.0));
        at += 1;
    }
    for pid in pids {
        if let Ok(pid) = i32::try_from(pid) {
            // SAFETY: A plain system call, without pointers.
            unsafe { kill(pid, SIGKILL) };
        }
    }
}

/// Returns all processes with their parents.
fn processes() -> Vec<(u32, u32)> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            // The name, in parentheses, may contain blanks; the state and the parent follow.
            let (_, rest) = stat.rsplit_once(')')?;
            let parent = rest.split_whitespace().nth(1)?.parse().ok()?;
            Some((pid, parent))
        })
        .collect()
}
