// SPDX-License-Identifier: GPL-2.0

//! The directory `rpmu/` in debugfs, for root.
//!
//! Its files are no interface for programs. They exist as long as the module is loaded. A kernel without
//! debugfs only lacks these reports.

use super::{
    snapshot::Snapshot,
    users::{write_others, Open},
};
use crate::{
    driver::{unit::Units, Machine},
    kern::cpu::possible_cpus,
};
use kernel::{
    cpu::CpuId,
    debugfs::{Dir, File, Writer},
    fmt,
    prelude::*,
    str::CString,
    sync::Arc,
};

/// The files. Dropping removes them, and waits until none is being read.
#[pin_data]
pub(crate) struct Files {
    #[pin]
    users: File<Users>,
    units: KVec<Pin<KBox<OfUnit>>>,
    schedules: KVec<Pin<KBox<OfCpu>>>,
}

/// The file of a unit.
#[pin_data]
struct OfUnit {
    #[pin]
    file: File<Of>,
}

/// The files of a CPU.
// A type of its own keeps the names short of what drops it.
#[pin_data]
struct OfCpu {
    #[pin]
    schedule: File<Cpu>,
}

impl Files {
    /// Makes the files of `machine`.
    pub(crate) fn new(machine: &Arc<Machine>) -> Result<Pin<KBox<Self>>> {
        let dir = Dir::new(c"rpmu");
        let mut schedules = KVec::new();
        for cpu in possible_cpus() {
            let name = CString::try_from_fmt(fmt!("cpu{}", cpu.as_u32()))?;
            let schedule = Cpu {
                machine: machine.clone(),
                id: cpu,
            };
            let subdir = dir.subdir(&name);
            let files = try_pin_init!(OfCpu {
                schedule <- subdir.read_only_file(c"schedule", schedule),
            });
            // The file keeps its directory alive.
            schedules.push(KBox::pin_init(files, GFP_KERNEL)?, GFP_KERNEL)?;
        }
        let mut units = KVec::new();
        for (unit, name) in Units::FILES.iter().enumerate() {
            if let Some(name) = name {
                let of = Of {
                    machine: machine.clone(),
                    unit,
                };
                let file = dir.read_only_file(name, of);
                let file = try_pin_init!(OfUnit { file <- file });
                units.push(KBox::pin_init(file, GFP_KERNEL)?, GFP_KERNEL)?;
            }
        }
        KBox::pin_init(
            try_pin_init!(Self {
                users <- dir.read_only_file(c"users", Users(machine.clone())),
                units,
                schedules,
            }),
            GFP_KERNEL,
        )
    }
}

/// The file of a unit, by its index among [`Units::FILES`].
// The names of these types are short, as the kernel makes long ones of them.
struct Of {
    machine: Arc<Machine>,
    unit: usize,
}

impl Writer for Of {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Units::write_header(self.unit, f)?;
        self.machine.pmus().try_for_each(|pmu| {
            let driver = pmu.ops();
            let cpus = possible_cpus().filter_map(|cpu| driver.cpus.get(cpu));
            let cpus = cpus.map(|cpu| &cpu.units);
            driver.units.write(self.unit, cpus, f)
        })
    }
}

/// `users`.
struct Users(Arc<Machine>);

impl Writer for Users {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "# open events, and what has opened them; rpmu can be unloaded when there are none\n",
        )?;
        let mut events: u32 = 0;
        for pmu in self.0.pmus() {
            let users = pmu.users();
            let open = Open(&users);
            events = events.saturating_add(open.events());
            fmt::Display::fmt(&open, f)?;
        }
        write_others(f, events)
    }
}

/// `cpuN/schedule`.
struct Cpu {
    machine: Arc<Machine>,
    id: CpuId,
}

impl Writer for Cpu {
    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Snapshot::take(self.machine.pmu_of(self.id), self.id) {
            Ok(snapshot) => fmt::Display::fmt(&*snapshot, f),
            Err(error) if error == ENXIO => f.write_str("# this CPU is off\n"),
            Err(error) => writeln!(f, "# {error:?}"),
        }
    }
}
