// SPDX-License-Identifier: GPL-2.0

//! The users of a PMU as text: for the log, if they keep this driver from loading, and for
//! `rpmu/users` in debugfs, if they keep it loaded.

use crate::{
    driver::Driver,
    kern::module,
    perf::Operations,
    perf_core::{
        User,
        UserKind,
        Users, //
    },
};
use kernel::fmt::{
    self,
    Write as _, //
};

/// The kinds of users, with their names and the way to close their events.
const KINDS: [(UserKind, &str, &str); 4] = [
    (
        UserKind::Watchdog,
        "the NMI watchdog",
        "sysctl kernel.nmi_watchdog=0",
    ),
    (UserKind::Task, "user space", "end running perf commands"),
    (UserKind::Guest, "guests", "stop guests that have a PMU"),
    (
        UserKind::Kernel,
        "the kernel",
        "unload the module, or stop what uses this function",
    ),
];

/// Names the users of a PMU, and how to stop them, in one line.
// A reference, because the value is large for the kernel's stack.
pub(in crate::driver) struct Named<'a>(pub(in crate::driver) &'a Users);

impl fmt::Display for Named<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, user, cure) in KINDS {
            let events = self.0.events(kind);
            if events == 0 {
                continue;
            }
            write!(f, " events of {user}: {events}")?;
            if kind != UserKind::Watchdog {
                let mut before = ", ";
                for (user, events) in self.0.named(kind) {
                    write!(f, "{before}{events} of {user}")?;
                    before = " and ";
                }
            }
            write!(f, " ({cure});")?;
        }
        Ok(())
    }
}

/// Names the user that has opened an event. A task's name has `?` for each blank, so that none
/// looks like a part of the line that follows.
pub(super) struct Opener<'a>(pub(super) &'a User);

impl core::fmt::Display for Opener<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.0.kind() {
            UserKind::Watchdog => f.write_str("the NMI watchdog"),
            UserKind::Task if !self.0.has_ended() => write!(NoBlanks(f), "{}", self.0),
            _ => core::fmt::Display::fmt(self.0, f),
        }
    }
}

/// Writes `?` for each blank.
struct NoBlanks<'a, 'b>(&'a mut fmt::Formatter<'b>);

impl fmt::Write for NoBlanks<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let letters = text.chars();
        let mut letters = letters.map(|it| if it == ' ' { '?' } else { it });
        letters.try_for_each(|it| self.0.write_char(it))
    }
}

/// Lists the users of a PMU of this driver, one a line.
// A reference, because the value is large for the kernel's stack.
pub(super) struct Open<'a>(pub(super) &'a Users);

impl fmt::Display for Open<'_> {
    #[inline(never)]
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, name, cure) in KINDS {
            let mut others = self.0.events(kind);
            if kind != UserKind::Watchdog {
                for (user, events) in self.0.named(kind) {
                    writeln!(f, "{events:>6}  {user} ({cure})")?;
                    others = others.saturating_sub(*events);
                }
            }
            if others != 0 {
                writeln!(f, "{others:>6}  {name} ({cure})")?;
            }
        }
        Ok(())
    }
}

impl Open<'_> {
    /// Returns the number of events.
    pub(super) fn events(&self) -> u32 {
        KINDS.iter().map(|(kind, ..)| self.0.events(*kind)).sum()
    }
}

/// Writes the number of references that keep the module loaded, besides `events` and the open file
/// that is being read, if there are any.
pub(super) fn write_others(f: &mut fmt::Formatter<'_>, events: u32) -> fmt::Result {
    let known = events.saturating_add(1);
    let others = module::references::<<Driver as Operations>::OwnerModule>().saturating_sub(known);
    if others == 0 {
        return Ok(());
    }
    writeln!(
        f,
        "{others:>6}  events on rpmu's tracepoints, BPF programs or probes on its functions, or files in this directory \
         (end perf and bpf commands, close the files)"
    )
}
