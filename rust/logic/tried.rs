// SPDX-License-Identifier: GPL-2.0

//! The kernel versions on which a feature was tried, for features that rely on behaviour of the
//! perf core that no structure layout shows.

use core::fmt;

/// A kernel version, without the number of the stable update.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Version {
    major: u16,
    minor: u16,
}

impl Version {
    /// Parses the version in the name of a release, as `uname -r` prints it.
    ///
    /// ```
    /// use rpmu_logic::logic::tried::Version;
    ///
    /// assert_eq!(Version::of_release(b"7.3.4+deb13-amd64").unwrap().to_string(), "7.3");
    /// assert_eq!(Version::of_release(b"7.10-rc1").unwrap().to_string(), "7.10");
    /// assert_eq!(Version::of_release(b"next"), None);
    /// ```
    pub fn of_release(release: &[u8]) -> Option<Self> {
        let (major, rest) = number(release)?;
        let (minor, _) = number(rest.strip_prefix(b".")?)?;
        Some(Self { major, minor })
    }
}

/// Splits off the number at the start of `text`.
fn number(text: &[u8]) -> Option<(u16, &[u8])> {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (digits, rest) = text.split_at_checked(digits)?;
    let number = core::str::from_utf8(digits).ok()?.parse().ok()?;
    Some((number, rest))
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// A feature that relies on the perf core's behaviour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Feature {
    /// The order in which waiting groups are offered.
    ///
    /// Relies on the readers of `group_caps` (`group_can_go_on()`, `perf_event_open()`), the order
    /// of `perf_event_groups_cmp()`, the users of `rotate_disable`, and on the protocol of the
    /// rotation timer: `hrtimer_active` is set from the timer's start to the end of its function,
    /// and in this function, the perf core disables the PMU once, before anything else.
    GroupOrder,
    /// Retrying pinned groups in the error state.
    ///
    /// Relies on a change of `state` under the context's lock being enough to leave the error
    /// state, and on the set of functions that disable events.
    PinnedRetries,
    /// Branch stacks.
    ///
    /// Relies on the constants of `branch_type()` (`X86_BR_*`) and of `x86_add_exclusive()`
    /// (`x86_lbr_exclusive_lbr`), and on the time of the `sched_task` call for a task that is
    /// switched in: after its events were added and before the PMU is enabled.
    BranchStacks,
    /// Precise events.
    ///
    /// Relies on the buffers of `x86_reserve_hardware()` and their use by the built-in driver at
    /// hotplug and resume, on the types and effects of functions that are not exported
    /// (`rust/static_calls.c`), and on `sched_task` being called while a task that is switched out
    /// is still the current one.
    PreciseEvents,
    /// Groups whose overflows end their turn.
    ///
    /// Relies on the protocol of the rotation timer: while `hrtimer_active` is set and the timer is
    /// queued, it may be started anew under its lock, and ends the turn when it expires.
    SwitchOnOverflow,
}

impl Feature {
    /// Returns the versions on which the feature was tried.
    fn tried(self) -> &'static [Version] {
        const V7_3: Version = Version { major: 7, minor: 3 };
        match self {
            Self::GroupOrder
            | Self::PinnedRetries
            | Self::BranchStacks
            | Self::PreciseEvents
            | Self::SwitchOnOverflow => &[V7_3],
        }
    }

    /// Returns whether the feature was tried on a kernel of `version`; `false` for [`None`].
    pub fn was_tried_on(self, version: Option<Version>) -> bool {
        version.is_some_and(|version| self.tried().contains(&version))
    }

    /// Returns a text on the driver's behaviour without the feature.
    pub fn without(self) -> &'static str {
        match self {
            Self::GroupOrder => {
                "groups rotate in the perf core's order, as with policy=mainline"
            }
            Self::PinnedRetries => {
                "pinned events that find no counter stay in the error state until they are enabled again"
            }
            Self::BranchStacks => "samples have no branch stacks",
            Self::PreciseEvents => "there are no precise events",
            Self::SwitchOnOverflow => "events with switch are refused",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read() {
        for (release, expected) in [
            (&b"7.3.4+deb13-cloud-amd64"[..], Some((7, 3))),
            (b"7.3", Some((7, 3))),
            (b"7.30.1", Some((7, 30))),
            (b"17.3.4-debug", Some((17, 3))),
            (b"7.4-rc3", Some((7, 4))),
            (b"", None),
            (b"7", None),
            (b"7.", None),
            (b".3", None),
            (b"7.x", None),
            (b"v7.3", None),
            (b"7.70000", None),
        ] {
            let version = Version::of_release(release);
            assert_eq!(version.map(|it| (it.major, it.minor)), expected);
        }
    }

    #[test]
    fn other_versions_are_not_tried() {
        for feature in [
            Feature::GroupOrder,
            Feature::PinnedRetries,
            Feature::BranchStacks,
            Feature::PreciseEvents,
            Feature::SwitchOnOverflow,
        ] {
            let on = |release: &[u8]| feature.was_tried_on(Version::of_release(release));
            assert!(on(b"7.3.4+deb13-amd64"));
            assert!(on(b"7.3.99"));
            assert!(!on(b"7.2.9"));
            assert!(!on(b"7.4"));
            assert!(!on(b"8.3"));
            assert!(!on(b"linux"));
        }
    }
}
