// SPDX-License-Identifier: GPL-2.0

//! CPUs that come up.
//!
//! The perf core takes all events from a CPU before it goes down. What is left to do is to forget
//! what its registers held, before it comes up again: they are set up when the first event comes.

use super::CorePmu;
use crate::x86::hotplug::Callbacks;
use kernel::{cpu::CpuId, prelude::*};

impl Callbacks for CorePmu {
    /// On another CPU, while `cpu` is off.
    fn startup(&self, cpu: CpuId) -> Result {
        if let Some(cpu) = self.ops().cpus.get(cpu) {
            cpu.shared.forget();
        }
        Ok(())
    }

    fn teardown(&self, _cpu: CpuId) {}
}
