// SPDX-License-Identifier: GPL-2.0

//! rpmu
use kernel::prelude::*;
mod bindings;
mod perf;

module! {
    type: Rpmu,
    name: "rpmu",
    authors: ["rpmu"],
    description: "x86 core PMU driver",
    license: "GPL",
}

struct Rpmu;

impl kernel::Module for Rpmu {
    fn init(_module: &'static ThisModule) -> Result<Self> {
        pr_info!("size {}\n", core::mem::size_of::<bindings::perf_event>());
        Ok(Self)
    }
}
