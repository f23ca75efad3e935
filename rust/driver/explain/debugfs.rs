// SPDX-License-Identifier: GPL-2.0

//! The directory `rpmu/` in debugfs, for root.
//!
//! Its files are not an interface for programs. They exist while the module is loaded. Without
//! debugfs, only these reports are missing.

use super::{
    snapshot::Snapshot,
    users::{
        write_others,
        Open, //
    },
};
use crate::{
    driver::{
        unit::Units,
        CorePmu,
        Driver,
        Machine, //
    },
    kern::{
        cpu::possible_cpus,
        debugfs::{
            Dir,
            Writer, //
        },
    },
    logic::{
        breaker::{
            EMPTY_INTERRUPTS,
            RESETS, //
        },
        cores::CoreType, //
    },
    perf::Operations, //
};
use kernel::{
    cpu::CpuId,
    fmt,
    prelude::*,
    str::CString,
    sync::Arc, //
};

/// The files of a machine. Dropping removes them, and waits until none is being read.
pub(crate) struct Files(#[expect(dead_code)] Dir);

impl Files {
    /// Makes the files of `machine`. If memory is short, logs this and makes no files.
    #[inline(never)]
    pub(crate) fn new(machine: &Arc<Machine>) -> Option<Self> {
        Self::make(machine)
            .inspect_err(|error| pr_warn!("no files in debugfs: {error:?}\n"))
            .ok()
    }

    #[inline(never)]
    fn make(machine: &Arc<Machine>) -> Result<Self> {
        let mut dir = Dir::new(c"rpmu");
        for cpu in possible_cpus() {
            let name = CString::try_from_fmt(fmt!("cpu{}", cpu.as_u32()))?;
            let schedule = Cpu {
                machine: machine.clone(),
                id: cpu,
            };
            dir.subdir(&name).file(c"schedule", schedule)?;
        }
        for (unit, name) in Units::FILES.iter().enumerate() {
            if let Some(name) = name {
                let file = UnitFile {
                    machine: machine.clone(),
                    unit,
                };
                dir.file(name, file)?;
            }
        }
        dir.file(c"users", Users(machine.clone()))?;
        dir.file(c"breaker", Breaker(machine.clone()))?;
        Ok(Self(dir))
    }
}

/// Writes the line above what concerns `pmu`, in a file about all PMUs of a hybrid: its name.
fn write_name(pmu: &CorePmu, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match pmu.ops().hardware.pmu.model.core() {
        CoreType::Only => Ok(()),
        core => writeln!(f, "# {}", core.pmu_name().to_str().unwrap_or_default()),
    }
}

/// The file of the unit with this index in [`Units::FILES`].
// The types have short names, because the symbols of generic functions contain them.
struct UnitFile {
    machine: Arc<Machine>,
    unit: usize,
}

impl Writer for UnitFile {
    type OwnerModule = <Driver as Operations>::OwnerModule;

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Units::write_header(self.unit, f)?;
        self.machine.pmus().try_for_each(|pmu| {
            write_name(pmu, f)?;
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
    type OwnerModule = <Driver as Operations>::OwnerModule;

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "# open events, and what has opened them; rpmu can be unloaded when there are none\n",
        )?;
        let mut events: u32 = 0;
        for pmu in self.0.pmus() {
            write_name(pmu, f)?;
            let users = pmu.users();
            let open = Open(&users);
            events = events.saturating_add(open.events());
            fmt::Display::fmt(&open, f)?;
        }
        write_others(f, events)
    }
}

/// `breaker`.
struct Breaker(Arc<Machine>);

impl Writer for Breaker {
    type OwnerModule = <Driver as Operations>::OwnerModule;

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.common().breaker.tripped() {
            None => f.write_str("# the PMU works, as far as its counters and interrupts show\n")?,
            Some(tripped) => {
                write!(f, "# given up because of CPU {}: ", tripped.cpu)?;
                writeln!(f, "{}", format_args!("{}", tripped.cause))?;
            }
        }
        f.write_str(
            "# longest series of interrupts without an overflow, and of resets; and the limits\n",
        )?;
        for cpu in possible_cpus() {
            let state = |pmu: &CorePmu| {
                pmu.ops()
                    .cpus
                    .get(cpu)
                    .map(|it| it.pmi_state.signs.longest())
            };
            if let Some((empty, resets)) = self.0.pmu_of(cpu).and_then(state) {
                writeln!(
                    f,
                    "cpu{} interrupts={empty}/{EMPTY_INTERRUPTS} resets={resets}/{RESETS}",
                    cpu.as_u32()
                )?;
            }
        }
        Ok(())
    }
}

/// `cpuN/schedule`.
struct Cpu {
    machine: Arc<Machine>,
    id: CpuId,
}

impl Writer for Cpu {
    type OwnerModule = <Driver as Operations>::OwnerModule;

    fn write(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(pmu) = self.machine.pmu_of(self.id) else {
            return f.write_str("# this CPU has no PMU\n");
        };
        match Snapshot::take(pmu, self.id) {
            Ok(snapshot) => fmt::Display::fmt(&*snapshot, f),
            Err(error) if error == ENXIO => f.write_str("# this CPU is off\n"),
            Err(error) => writeln!(f, "# {error:?}"),
        }
    }
}
