// SPDX-License-Identifier: GPL-2.0

//! The attributes with which a user opens an event: `struct perf_event_attr`.

use crate::bindings;

/// The attributes of an event that is being opened.
///
/// The perf core has checked them as far as it understands them. In particular, the upper half
/// of `config` is clear for events of the types `PERF_TYPE_HARDWARE` and `PERF_TYPE_HW_CACHE`.
#[derive(Clone, Copy)]
pub struct Attr<'a>(&'a bindings::perf_event_attr);

impl<'a> Attr<'a> {
    pub(super) fn new(raw: &'a bindings::perf_event_attr) -> Self {
        Self(raw)
    }

    /// Returns the type of the event, see [`event_type`](super::event_type).
    pub fn event_type(&self) -> u32 {
        self.0.type_
    }

    /// Returns the code of the event, by the rules of its type.
    pub fn config(&self) -> u64 {
        self.0.config
    }

    /// Returns the second part of the event's code, such as the value of an extra register.
    pub fn config1(&self) -> u64 {
        // SAFETY: The members of the union are `u64`, so every bit pattern is valid for each.
        unsafe { self.0.__bindgen_anon_3.config1 }
    }

    /// Returns the third part of the event's code.
    pub fn config2(&self) -> u64 {
        // SAFETY: The members of the union are `u64`, so every bit pattern is valid for each.
        unsafe { self.0.__bindgen_anon_4.config2 }
    }

    /// Returns the fourth part of the event's code.
    pub fn config3(&self) -> u64 {
        self.0.config3
    }

    /// Returns the fifth part of the event's code.
    pub fn config4(&self) -> u64 {
        self.0.config4
    }

    /// Returns whether the event must always be on its CPU, if it leads a group.
    pub fn pinned(&self) -> bool {
        self.0.pinned() != 0
    }

    /// Returns whether the event wants to be alone on the PMU with its group, if it leads one.
    pub fn exclusive(&self) -> bool {
        self.0.exclusive() != 0
    }

    /// Returns the number of events from one sample to the next, or the samples per second if
    /// [`freq`](Self::freq); 0 for an event that only counts.
    pub fn sample_period(&self) -> u64 {
        // SAFETY: Both members of the union are `u64`, so every bit pattern is valid for each.
        unsafe { self.0.__bindgen_anon_1.sample_period }
    }

    /// Returns whether [`sample_period`](Self::sample_period) is a frequency in Hz.
    pub fn freq(&self) -> bool {
        self.0.freq() != 0
    }

    /// Returns whether the event also counts the tasks that its task will start.
    pub fn inherit(&self) -> bool {
        self.0.inherit() != 0
    }

    /// Returns the requested precision of the sampled instruction pointer, from 0 (any skid) to 3
    /// (no skid).
    pub fn precise_ip(&self) -> u8 {
        // CAST: the field has two bits.
        self.0.precise_ip() as u8
    }

    /// Returns the number of samples after which the user is woken, or of bytes if
    /// [`watermark`](Self::watermark). 0 is the default.
    pub fn wakeup_events(&self) -> u32 {
        // SAFETY: The members of the union are `u32`, so every bit pattern is valid for each.
        unsafe { self.0.__bindgen_anon_2.wakeup_events }
    }

    /// Returns whether [`wakeup_events`](Self::wakeup_events) is a number of bytes.
    pub fn watermark(&self) -> bool {
        self.0.watermark() != 0
    }

    /// Returns whether samples take their times from another clock than perf's.
    pub fn use_clockid(&self) -> bool {
        self.0.use_clockid() != 0
    }

    /// Returns whether `attr.aux_action` is set, with which a sample pauses or resumes the AUX
    /// trace of the group's leader.
    pub fn has_aux_action(&self) -> bool {
        // SAFETY: The members of the union are `u32` in all, so every bit pattern is valid for
        // each.
        unsafe { self.0.__bindgen_anon_5.aux_action != 0 }
    }

    /// Returns the fields to record with a sample, `PERF_SAMPLE_*`.
    pub fn sample_type(&self) -> u64 {
        self.0.sample_type
    }

    /// Returns the branches to record with a sample, `PERF_SAMPLE_BRANCH_*`.
    pub fn branch_sample_type(&self) -> u64 {
        self.0.branch_sample_type
    }

    /// Returns the registers of the sampled user context to record.
    pub fn sample_regs_user(&self) -> u64 {
        self.0.sample_regs_user
    }

    /// Returns the registers of the sampled context to record.
    pub fn sample_regs_intr(&self) -> u64 {
        self.0.sample_regs_intr
    }

    /// Returns whether samples go to the group leader's AUX buffer.
    pub fn aux_output(&self) -> bool {
        self.0.aux_output() != 0
    }

    /// Returns whether the event does not count in user space.
    pub fn exclude_user(&self) -> bool {
        self.0.exclude_user() != 0
    }

    /// Returns whether the event does not count in the kernel.
    pub fn exclude_kernel(&self) -> bool {
        self.0.exclude_kernel() != 0
    }

    /// Returns whether the event counts only while the CPU runs a guest.
    pub fn exclude_host(&self) -> bool {
        self.0.exclude_host() != 0
    }

    /// Returns whether the event does not count while the CPU runs a guest.
    pub fn exclude_guest(&self) -> bool {
        self.0.exclude_guest() != 0
    }
}
