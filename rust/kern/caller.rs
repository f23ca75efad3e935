// SPDX-License-Identifier: GPL-2.0

//! Who runs, for people to read.

use crate::bindings;
use core::{fmt, ptr};
use kernel::{
    current,
    task::{Pid, Task},
};

/// `TASK_COMM_LEN`.
const COMM_LEN: usize = bindings::TASK_COMM_LEN as usize;

/// A task as it was at some time: its id and its name, as `ps` has them.
#[derive(Clone, Copy)]
pub struct Caller {
    pid: Pid,
    /// Ends with a NUL, which is always there even while it is being changed.
    comm: [u8; COMM_LEN],
}

impl Caller {
    /// The task that runs here now, whatever it is doing. Any context.
    pub fn current() -> Self {
        // SAFETY: The current task is there while it runs. Another may change its name meanwhile;
        // any byte of that is as good as another.
        let comm = unsafe { ptr::read_volatile(&raw const (*Task::current_raw()).comm) };
        Self {
            pid: current!().pid(),
            comm,
        }
    }
}

impl fmt::Display for Caller {
    /// The id, then the name. What is not printable in that, a blank included, becomes a `?`.
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
