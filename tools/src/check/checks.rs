// SPDX-License-Identifier: GPL-2.0

//! The checks of `rpmu-check`.
//!
//! Most are programs of selftests/, which compare counts with known ones and know what the CPU and
//! the driver offer. On real hardware, three things differ from the emulated PMU of the project's
//! own tests: other programs run, interrupts come at any time, and many processors count an
//! interrupt's return as an instruction or branch of the interrupted program, so that a count
//! for user mode alone can be a few too high. A test that fails is therefore
//! [repeated](Check::tries).

/// An action that disturbs the machine, so that the user must ask for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Asked {
    /// Nothing.
    No,
    /// `--hotplug`.
    Hotplug,
    /// `--suspend`.
    Suspend,
}

/// How rpmu must be loaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Load {
    /// With `trial=`, so that the PMU goes back even if the machine's user space hangs.
    OnTrial,
    /// On trial, ten times; the check also runs each time on the built-in driver.
    TenTimes,
    /// Not on trial: then, counters cannot be read with rdpmc.
    ForRdpmc,
}

/// A check: a program, and which of its tests.
#[derive(Clone, Copy, Debug)]
pub struct Check {
    /// The name on the command line.
    pub name: &'static str,
    /// What it checks, in words.
    pub title: &'static str,
    /// The program.
    pub program: &'static str,
    /// Options of the kernel's test harness: `-t` takes a test in, `-T` leaves it out.
    pub options: &'static [&'static str],
    /// How rpmu must be loaded.
    pub load: Load,
    /// The action that the user must ask for.
    pub asked: Asked,
    /// The time after which the program is ended, in seconds.
    pub limit: u64,
}

impl Check {
    /// How often a test may run until it passes.
    pub const fn tries(&self) -> u32 {
        3
    }
}

const fn check(
    name: &'static str,
    title: &'static str,
    program: &'static str,
    options: &'static [&'static str],
) -> Check {
    Check {
        name,
        title,
        program,
        options,
        load: Load::OnTrial,
        asked: Asked::No,
        limit: 60,
    }
}

/// All checks, in the order in which they run on each driver.
#[rustfmt::skip]
pub const CHECKS: &[Check] = &[
    check("exact", "Exact counts of instructions and branches", "exact_count", &["-T", "every_counter"]),
    check("counters", "All general-purpose and fixed counters at once", "exact_count", &["-t", "every_counter"]),
    check("machine", "Every CPU, excess of counts, costs of system calls", "real_machine", &["-t", "instructions", "-t", "branches", "-t", "every_cpu", "-t", "every_cpu_samples", "-t", "cost"]),
    check("shares", "Shares of the counters, and samples at a frequency: measured", "real_machine", &["-t", "shares", "-t", "frequency"]),
    check("groups", "Groups of events", "group_read", &[]),
    check("switches", "Counts across task switches", "switching", &[]),
    check("migration", "Counts across moves to other CPUs", "migration", &[]),
    check("children", "Inherited events", "inherit", &["-T", "sibling_comes_on_line"]),
    check("overflow", "Overflows: samples and periods", "sampling", &["-T", "frequency", "-T", "frequency_of_an_event_that_becomes_rare"]),
    check("frequency", "Samples at a frequency", "sampling", &["-t", "frequency", "-t", "frequency_of_an_event_that_becomes_rare"]),
    check("multiplexing", "More events than counters", "multiplex", &["-t", "six_events", "-t", "as_many_as_counters", "-t", "both_on_counter_2", "-t", "no_event_starves"]),
    check("pebs", "Precise events (PEBS): counts and addresses of known loops", "precise", &[]),
    check("pebs-memory", "Precise events (PEBS): data addresses", "precise_memory", &[]),
    check("branches", "Branch stacks of known programs", "branches", &[]),
    check("topdown", "Topdown metrics: their sums", "topdown", &[]),
    check("siblings", "Two hardware threads of a core", "ht_exclusion", &["-t", "half_of_the_counters_each", "-t", "all_counters_without_corrupting_events", "-t", "counts_are_right", "-t", "one_thread_per_core"]),
    check("control-groups", "Events of a control group", "real_machine", &["-t", "control_group"]),
    check("errors", "Refused events, and their errors", "refused", &[]),
    check("watchdog", "The NMI watchdog", "real_machine", &["-t", "watchdog"]),
    Check { asked: Asked::Hotplug, ..check("hotplug", "CPUs that go offline and come back", "hotplug", &[]) },
    Check { asked: Asked::Suspend, ..check("suspend", "Sleep and resume", "suspend", &[]) },
    Check { load: Load::TenTimes, ..check("take-over", "Ten take-overs: exact counts after each change of the driver", "exact_count", &["-t", "instructions_user"]) },
    // Last: rpmu is loaded once more, without the trial.
    Check { load: Load::ForRdpmc, ..check("rdpmc", "Reading counters from user space (rdpmc)", "user_read", &[]) },
];

/// Returns the check with this name.
pub fn find(name: &str) -> Option<&'static Check> {
    CHECKS.iter().find(|check| check.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        for (i, check) in CHECKS.iter().enumerate() {
            assert!(
                CHECKS[..i].iter().all(|it| it.name != check.name),
                "{}",
                check.name
            );
            assert!(
                check.options.len() % 2 == 0,
                "{}: an option without a test",
                check.name
            );
        }
    }

    /// The programs and the tests exist: a renamed test would silently no longer run.
    #[test]
    fn tests_exist() {
        for check in CHECKS {
            let path = format!(
                "{}/../selftests/{}.c",
                env!("CARGO_MANIFEST_DIR"),
                check.program
            );
            let source = std::fs::read_to_string(&path).expect(&path);
            for pair in check.options.chunks(2) {
                let test = pair[1];
                assert!(
                    source.contains(&format!(", {test})"))
                        || source.contains(&format!("TEST({test})")),
                    "{}: {} has no test {test}",
                    check.name,
                    check.program
                );
            }
        }
    }

    /// The package has the programs.
    #[test]
    fn programs_are_built() {
        let path = format!("{}/../selftests/Makefile", env!("CARGO_MANIFEST_DIR"));
        let makefile = std::fs::read_to_string(&path).expect(&path);
        let (_, list) = makefile.split_once("CHECK_PROGRAMS := ").expect("a list");
        let (list, _) = list.split_once("\n\n").expect("its end");
        for check in CHECKS {
            let mut names = list.split_whitespace();
            assert!(names.any(|it| it == check.program), "{}", check.program);
        }
    }

    /// A check runs its tests or all others, so that each test is in one check at most.
    #[test]
    fn options_are_of_one_kind() {
        for check in CHECKS {
            let kinds: Vec<_> = check.options.chunks(2).map(|pair| pair[0]).collect();
            assert!(
                kinds.windows(2).all(|pair| pair[0] == pair[1]),
                "{}",
                check.name
            );
        }
    }
}
