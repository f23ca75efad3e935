// SPDX-License-Identifier: GPL-2.0

//! The machine, as far as a report needs it.

use serde::Serialize;

/// The machine. Has no field that identifies it.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Machine {
    /// The processor's name.
    pub cpu: String,
    /// GenuineIntel, AuthenticAMD or another.
    pub vendor: String,
    /// Family, model and stepping, in decimal as in `/proc/cpuinfo`.
    pub signature: String,
    /// The microcode's version.
    pub microcode: String,
    /// The number of CPUs that are online.
    pub cpus: usize,
    /// The number of hardware threads per core.
    pub threads_per_core: usize,
    /// Whether this is a virtual machine.
    pub virtual_machine: bool,
    /// The kernel's release, as `uname -r` prints it.
    pub kernel: String,
}

impl Machine {
    /// Reads the contents of `/proc/cpuinfo` and of `/proc/sys/kernel/osrelease`.
    pub fn new(cpuinfo: &str, release: &str) -> Self {
        let field = |name: &str| {
            let mut lines = cpuinfo.lines().filter_map(|line| line.split_once(':'));
            let found = lines.find(|(key, _)| key.trim() == name);
            found.map_or(String::new(), |(_, value)| value.trim().to_owned())
        };
        let number = |name: &str| field(name).parse::<usize>().unwrap_or(0);
        let cores = number("cpu cores").max(1);
        Self {
            cpu: field("model name"),
            vendor: field("vendor_id"),
            signature: format!(
                "family {}, model {}, stepping {}",
                field("cpu family"),
                field("model"),
                field("stepping")
            ),
            microcode: field("microcode"),
            cpus: cpuinfo
                .lines()
                .filter(|line| line.starts_with("processor"))
                .count(),
            threads_per_core: (number("siblings") / cores).max(1),
            virtual_machine: field("flags").split(' ').any(|it| it == "hypervisor"),
            kernel: release.trim().to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_guest() {
        let cpuinfo = "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 60\n\
            model name\t: Intel Core Processor (Haswell)\nstepping\t: 4\nmicrocode\t: 0x1\n\
            siblings\t: 4\ncpu cores\t: 2\nflags\t\t: fpu hypervisor lahf_lm\n\nprocessor\t: 1\n";
        let machine = Machine::new(cpuinfo, "7.3.4+deb13-amd64\n");
        assert_eq!(machine.cpu, "Intel Core Processor (Haswell)");
        assert_eq!(machine.signature, "family 6, model 60, stepping 4");
        assert_eq!((machine.cpus, machine.threads_per_core), (2, 2));
        assert!(machine.virtual_machine);
        assert_eq!(machine.kernel, "7.3.4+deb13-amd64");
    }
}
