// SPDX-License-Identifier: GPL-2.0

//! The driver's messages, and the errors of loading it, in other words: what they mean and what
//! to do.

/// Words in a message of rpmu, and what they mean to a person who does not know the driver.
#[rustfmt::skip]
const MEANINGS: &[(&str, &str)] = &[
    ("counters raise interrupts without an overflow", "The PMU interrupts again and again for no reason: a fault of the hardware or of the hypervisor. rpmu has stopped it before the machine could hang."),
    ("overflows of counters cannot be acknowledged", "The PMU goes on reporting overflows that were handled: a fault of the hardware or of the hypervisor. Samples cannot be taken."),
    ("a counter ran backwards or jumped", "A counter has changed by more than it can count, so its counts would be wrong: a fault of the hardware or of the hypervisor. The built-in driver does not look for this."),
    ("a counter of cycles or instructions does not count", "A counter stands still while programs run: usual in virtual machines that imitate a PMU in part, otherwise a fault of the hardware. The built-in driver does not look for this."),
    ("a register of the PMU faults", "A counter of a CPU has stopped working after the CPU came up or the machine woke up: a fault of the hardware, of the firmware or of the hypervisor."),
    ("All counters are off", "rpmu has found that the PMU does not work, and has given it up."),
    ("rpmu would load;", "Nothing prevents rpmu from taking the PMU over."),
    ("rpmu would not load", "Loading would fail now, for the reason above."),
    ("general-purpose and", "The processor has a table in rpmu; these are its counters."),
    ("events can sample", "perf record and perf top work."),
    ("events can be precise", "perf record works with :p, :pp and :ppp (PEBS)."),
    ("no precise events: the CPU has none", "perf record works without :p only: this processor or virtual machine has no PEBS."),
    ("no precise events: see", "perf record works without :p only; a line above has the reason."),
    ("PEBS cannot be used", "perf record works without :p only: something that PEBS needs is missing in this kernel."),
    ("precise events are opened on the PMU ibs_op", "perf record with :p uses AMD's IBS, whose driver stays in place."),
    ("the last ", "perf record -b and --call-graph lbr work."),
    ("no branch stacks", "perf record -b does not work."),
    ("topdown metrics: ", "perf stat --topdown works with the processor's own metrics."),
    ("no topdown metrics", "perf stat --topdown computes its values from ordinary events, if at all."),
    ("user space can read counters with rdpmc", "Libraries can read counters without a system call."),
    ("user space cannot read counters", "Libraries have to read counters with read()."),
    ("intel_pt and intel_bts keep working", "Intel PT and BTS keep their own drivers."),
    ("a mediated PMU is refused", "Virtual machines that run here keep working, unless they get the PMU itself."),
    ("KVM guests have mediated PMUs", "End the virtual machines, or load KVM with enable_mediated_pmu=0."),
    ("keep the core's other thread off", "The workaround for an erratum of this processor is on, as in the built-in driver."),
    ("can corrupt the counts of the core's other thread", "The workaround for an erratum of this processor is off: see ht_workaround in rpmu(4)."),
    ("PMU is in use", "Somebody counts with the PMU. End what the line names; for the NMI watchdog: sysctl kernel.nmi_watchdog=0."),
    ("drives the PMU; unload it first", "Another module has replaced the built-in driver."),
    ("is reserved by another module", "Another module uses a counter. Unload other profilers, such as VTune's or oprofile."),
    ("another module had reserved counters", "Another module used a counter for a moment: run rpmu-check again."),
    ("has taken the event type", "Another module registered a PMU at the same moment. Try again."),
    ("not this machine's core PMU", "The kernel drives the PMU in a way that rpmu does not expect on this processor. The report says which one it is."),
    ("the built-in driver has no PMU", "The kernel drives the PMU in a way that rpmu does not expect on this processor. The report says which one it is."),
    ("a type of core has no CPU online", "rpmu has to see each type of this processor's cores. Bring all CPUs online: echo 1 >/sys/devices/system/cpu/cpuN/online."),
    ("is of an unknown type of core", "This processor has a type of core that rpmu does not know. The report says which processor it is."),
    ("hybrid CPUs", "This processor has cores of different types, and rpmu does not know them."),
    ("keep the built-in driver", "rpmu does not know this processor. The report still helps: it says which one it is."),
    ("does not hold what is written to it", "A counter of this machine does not work: usual in virtual machines that imitate a PMU in part, otherwise a fault of the hardware."),
    ("the PMU is hidden", "The kernel's command line hides the PMU: boot without clearcpuid=arch_perfmon."),
    ("the PMU cannot be controlled", "The machine, usually a virtual one, lacks a register that rpmu needs."),
    ("build rpmu.ko for this kernel", "rpmu.ko was built for another kernel: build it with make KDIR=/lib/modules/$(uname -r)/build, or install rpmu-dkms and this kernel's headers."),
    ("structures cannot be checked", "This kernel has no BTF, so rpmu cannot check that it fits: see trust_layouts in rpmu(4)."),
    ("cannot be found", "This kernel lacks a function that the feature needs."),
    ("not tried on Linux", "rpmu leaves the feature off, because it was not tried on this kernel version."),
    ("no local APIC", "Counters raise no interrupts here: perf stat works, perf record does not."),
    ("more general-purpose counters are not used", "rpmu uses the counters that have architectural addresses."),
    ("no built-in driver is in charge", "The kernel's own driver has not started; rpmu would use the free PMU."),
];

/// Returns what a message of rpmu means, if it is known.
pub fn meaning(message: &str) -> Option<&'static str> {
    let found = MEANINGS.iter().find(|(words, _)| message.contains(words));
    found.map(|(_, meaning)| *meaning)
}

/// The words in rpmu's line about a PMU that it gives up, after the reason.
const SWITCHED_OFF: &str = ". All counters are off";

/// Returns why rpmu has switched its counters off, if this message says that it has.
pub fn why_switched_off(message: &str) -> Option<&str> {
    // "rpmu: CPU 3: the reason. All counters are off, …"
    let (before, _) = message.split_once(SWITCHED_OFF)?;
    Some(before.rsplit_once(": ").map_or(before, |(_, why)| why))
}

/// Returns the messages, each with its [`meaning`] below it.
pub fn explained(messages: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for message in messages {
        lines.push(message.clone());
        lines.extend(meaning(message).map(str::to_owned));
    }
    lines
}

/// Words in an error of insmod or modprobe, and what to do.
#[rustfmt::skip]
const REMEDIES: &[(&str, &str)] = &[
    ("Key was rejected", "Secure Boot refuses the module: enrol the key that signed it with mokutil --import (usage.md, \"Secure Boot\"), or turn Secure Boot off in the firmware"),
    ("Required key not available", "Secure Boot refuses the module: enrol the key that signed it with mokutil --import (usage.md, \"Secure Boot\"), or turn Secure Boot off in the firmware"),
    ("not found in", "there is no rpmu for this kernel: install rpmu-dkms with this kernel's headers (dkms status rpmu says what it has built), or name a module with --module FILE"),
    ("can't change directory", "there is no rpmu for this kernel: install rpmu-dkms with this kernel's headers, or name a module with --module FILE"),
    ("No such file", "there is no such module: build it with make KDIR=/lib/modules/$(uname -r)/build and name it with --module FILE"),
    ("nvalid module format", "the module was built for another kernel: build it with make KDIR=/lib/modules/$(uname -r)/build, or install rpmu-dkms and this kernel's headers"),
    ("Exec format error", "the module was built for another kernel: build it with make KDIR=/lib/modules/$(uname -r)/build, or install rpmu-dkms and this kernel's headers"),
    ("nknown symbol", "the module was built for another kernel, or this one lacks CONFIG_RUST: rpmu needs 7.3 or newer with CONFIG_RUST"),
    ("Operation not permitted", "the kernel is locked down, or this is a container: sign the module (usage.md, \"Secure Boot\"), and run rpmu-check on the machine itself"),
    ("resource busy", "the PMU is in use: end what the lines above name"),
    ("No such device", "rpmu cannot drive this PMU: the lines above have the reason"),
    ("File exists", "rpmu is loaded already: unload it first (modprobe -r rpmu)"),
];

/// Returns what to do about an error of insmod or modprobe, if it is known.
pub fn remedy(error: &str) -> Option<&'static str> {
    let found = REMEDIES.iter().find(|(words, _)| error.contains(words));
    found.map(|(_, remedy)| *remedy)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages that the driver no longer prints would be explained in vain.
    #[test]
    fn the_driver_prints_these() {
        let source = driver();
        for (words, _) in MEANINGS {
            assert!(source.contains(words), "the driver does not say {words:?}");
        }
    }

    /// Each reason for which rpmu switches its counters off is found in its line, and explained.
    #[test]
    fn reasons_for_switching_off() {
        let driver = driver();
        let (before, _) = driver.split_once(SWITCHED_OFF).unwrap();
        assert!(before.ends_with(": {}"), "the driver's line has changed");
        let breaker = concat!(env!("CARGO_MANIFEST_DIR"), "/../rust/logic/breaker.rs");
        let source = std::fs::read_to_string(breaker).expect(breaker);
        let (_, display) = source.split_once("impl fmt::Display for Cause").unwrap();
        let (display, _) = display.split_once("\n}\n").unwrap();
        let reasons: Vec<&str> = display.split('"').skip(1).step_by(2).collect();
        assert_eq!(reasons.len(), 5, "{reasons:?}");
        for reason in reasons {
            let line = format!("rpmu: CPU 3: {reason}. All counters are off, their events are");
            assert_eq!(why_switched_off(&line), Some(reason));
            let explanation = meaning(&line).unwrap();
            assert_ne!(meaning("All counters are off"), Some(explanation));
        }
        assert_eq!(why_switched_off("rpmu: on trial for 600 s"), None);
    }

    #[test]
    fn explanations_follow_their_messages() {
        let [known, new] = ["rpmu: hybrid CPUs", "rpmu: new"].map(str::to_owned);
        let lines = explained(&[known.clone(), new.clone()]);
        let explanation = meaning(&known).unwrap().to_owned();
        assert_eq!(lines, [known, explanation, new]);
    }

    /// Returns the driver's source.
    fn driver() -> String {
        let mut source = String::new();
        for directory in ["driver", "logic"] {
            read(
                &format!("{}/../rust/{directory}", env!("CARGO_MANIFEST_DIR")),
                &mut source,
            );
        }
        // Strings of several lines.
        let joined: Vec<&str> = source.split("\\\n").map(str::trim_start).collect();
        joined.concat()
    }

    fn read(directory: &str, source: &mut String) {
        for entry in std::fs::read_dir(directory).expect(directory).flatten() {
            let path = entry.path();
            if path.is_dir() {
                read(&path.to_string_lossy(), source);
            } else {
                *source += &std::fs::read_to_string(&path).unwrap_or_default();
            }
        }
    }

    /// An earlier row must not hide a later one.
    #[test]
    fn each_row_is_reached() {
        for (words, text) in MEANINGS {
            assert_eq!(meaning(words), Some(*text), "{words}");
        }
        for (words, text) in REMEDIES {
            assert_eq!(remedy(words), Some(*text), "{words}");
        }
        assert_eq!(meaning("something new"), None);
    }
}
