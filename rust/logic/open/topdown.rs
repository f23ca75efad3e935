// SPDX-License-Identifier: GPL-2.0

//! The events of the topdown method that do with ordinary counters, as sysfs offers them.
//!
//! The method sorts a pipeline's slots by what became of them. User space finds its events by their
//! names in the PMU's `events/` directory, and multiplies what has a `.scale` by that.

/// A file of the topdown method in sysfs' `events/`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopdownFile {
    /// The file's name.
    pub name: &'static str,
    one_thread: &'static str,
    more_threads: &'static str,
}

impl TopdownFile {
    /// The same text on every machine, with its newline.
    pub const fn new(name: &'static str, text: &'static str) -> Self {
        Self::by_threads(name, text, text)
    }

    /// One text where a core has one thread, another where it has more. With two threads, what is a
    /// core's is counted for any thread, and so twice.
    ///
    /// Mainline shows these without a newline at their end (`events_ht_sysfs_show()`,
    /// `arch/x86/events/core.c:1927`), so they have none.
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

    /// What the file holds on a machine with so many threads a core.
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
