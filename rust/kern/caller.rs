// SPDX-License-Identifier: GPL-2.0

//! A task's pid and name, kept for reports.

use crate::bindings;
use core::{
    fmt,
    ptr, //
};
use kernel::{
    current,
    task::{
        Pid,
        Task, //
    },
};

/// `TASK_COMM_LEN`.
const COMM_LEN: usize = bindings::TASK_COMM_LEN as usize;

/// The pid and the name that a task had when it was recorded, as `ps -L` shows them for threads.
#[derive(Clone, Copy)]
pub struct Caller {
    pid: Pid,
    /// NUL-terminated, even while the name is being changed.
    comm: [u8; COMM_LEN],
}

impl Caller {
    /// Records the current task. Any context.
    pub fn current() -> Self {
        // SAFETY: The current task stays valid while it runs. Another task may change its name
        // meanwhile (`/proc/PID/comm`); any mix of the two names is a valid value.
        let comm = unsafe { ptr::read_volatile(&raw const (*Task::current_raw()).comm) };
        Self {
            pid: current!().pid(),
            comm,
        }
    }
}

impl fmt::Display for Caller {
    /// Writes the pid and the name, with `?` for each byte that is not a printable ASCII character,
    /// and for blanks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ", self.pid)?;
        let name = self.comm.iter().take_while(|byte| **byte != 0);
        name.map(|byte| match byte {
            b'!'..=b'~' => char::from(*byte),
            _ => '?',
        })
        .try_for_each(|letter| fmt::Write::write_char(f, letter))
    }
}
