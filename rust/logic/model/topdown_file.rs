// SPDX-License-Identifier: GPL-2.0

//! The topdown method's events in sysfs.
//!
//! User space finds them by name in the PMU's `events/` directory. If an event has a `.scale` file,
//! user space multiplies the event's count by the content of this file.

/// A file of a topdown event in `events/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopdownFile {
    /// The name of the file.
    pub name: &'static str,
    one_thread: &'static str,
    more_threads: &'static str,
}

impl TopdownFile {
    /// Describes a file with the same text, newline included, on every machine.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self::by_threads(name, text, text)
    }

    /// Describes a file with different texts for cores with one thread and with more threads: with
    /// any-thread counting, an event counts the core's slots once per thread.
    ///
    /// As in mainline (`events_ht_sysfs_show()`, `arch/x86/events/core.c`), the texts do not end in
    /// a newline.
    pub const fn by_threads(
        name: &'static str,
        one_thread: &'static str,
        more_threads: &'static str,
    ) -> Self {
        Self {
            name,
            one_thread,
            more_threads,
        }
    }

    /// Returns the file's text on a machine with `threads_per_core` threads per core.
    ///
    /// # Examples
    ///
    /// ```
    /// # use rpmu_logic::logic;
    /// use logic::model::HASWELL;
    ///
    /// let scale = HASWELL.topdown_files.iter().find(|file| file.name == "topdown-total-slots.scale");
    /// assert_eq!(scale.unwrap().text(1), "4");
    /// assert_eq!(scale.unwrap().text(2), "2");
    /// ```
    pub const fn text(&self, threads_per_core: u32) -> &'static str {
        if threads_per_core > 1 {
            self.more_threads
        } else {
            self.one_thread
        }
    }
}
