// SPDX-License-Identifier: GPL-2.0

//! IA32_PERFEVTSELx, AMD's PERF_CTLx, and an event's four bits in IA32_FIXED_CTR_CTRL.
//!
//! Layout: SDM vol. 3B, "Architectural Performance Monitoring"; APM vol. 2, section 13.2.1; names
//! of the bits as in `arch/x86/include/asm/perf_event.h`.

/// Value of an event select register, without the enable bit.
///
/// `hw_perf_event.config` holds its [`bits`](Self::bits).
///
/// # Examples
///
/// ```
/// # use rpmu_logic::logic;
/// use logic::regs::event_select::EventSelect;
///
/// let branches = EventSelect::event(0xc4, 0x00).counting_user(true);
/// assert_eq!(branches.bits(), 0x1_00c4);
/// assert_eq!(branches.enabled(), 0x41_00c4);
/// assert_eq!(branches.fixed_control(), 0b0010);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventSelect(u64);

impl EventSelect {
    /// Event code, bits 0-7.
    pub const EVENT: u64 = 0xff;
    /// Unit mask, bits 8-15.
    pub const UMASK: u64 = 0xff00;
    /// Count while at privilege level 1 to 3.
    pub const USR: u64 = 1 << 16;
    /// Count while at privilege level 0.
    pub const OS: u64 = 1 << 17;
    /// Count rising edges instead of cycles.
    pub const EDGE: u64 = 1 << 18;
    /// Toggle a pin on overflow. Never set: the bit of attr.config is dropped, as in mainline.
    pub const PIN_CONTROL: u64 = 1 << 19;
    /// Raise a PMI on overflow.
    pub const INT: u64 = 1 << 20;
    /// Count for all threads of the core. From version 3 on.
    pub const ANY: u64 = 1 << 21;
    /// Enable the counter.
    pub const ENABLE: u64 = 1 << 22;
    /// Invert the comparison with the counter mask.
    pub const INV: u64 = 1 << 23;
    /// Counter mask, bits 24-31: count cycles with at least this number of occurrences.
    pub const CMASK: u64 = 0xff00_0000;
    /// Count inside TSX transactions only. From Haswell on, if RTM or HLE exists.
    pub const IN_TX: u64 = 1 << 32;
    /// Discard the counts of aborted TSX transactions. Counter 2 only.
    pub const IN_TX_CHECKPOINTED: u64 = 1 << 33;
    /// Write adaptive PEBS records, with the groups of MSR_PEBS_DATA_CFG (`ICL_EVENTSEL_ADAPTIVE`).
    pub const ADAPTIVE: u64 = 1 << 34;

    /// AMD: event code, bits 0-7 and 32-35 (`AMD64_EVENTSEL_EVENT`).
    pub const AMD_EVENT: u64 = 0xf_0000_00ff;
    /// AMD: count in virtual machines only. With both this and [`HOST_ONLY`](Self::HOST_ONLY), or
    /// neither, the counter counts everywhere. With one of them, it counts nothing while SVM is off
    /// (EFER.SVME).
    pub const GUEST_ONLY: u64 = 1 << 40;
    /// AMD: count outside of virtual machines only.
    pub const HOST_ONLY: u64 = 1 << 41;

    /// Event code and unit mask, as in the manual's event lists (`INTEL_ARCH_EVENT_MASK`).
    pub const CODE: u64 = Self::EVENT | Self::UMASK;
    /// The bits that users may set in attr.config of PERF_TYPE_RAW on all of Intel's PMUs
    /// (`X86_RAW_EVENT_MASK`). Some PMUs also allow `any`, `in_tx` and `in_tx_cp`.
    pub const RAW: u64 = Self::CODE | Self::EDGE | Self::INV | Self::CMASK;
    /// The bits that users may set in attr.config of PERF_TYPE_RAW on AMD's PMUs
    /// (`AMD64_RAW_EVENT_MASK`).
    pub const AMD_RAW: u64 = Self::RAW | Self::AMD_EVENT;

    /// Selects an event by its code and unit mask.
    pub const fn event(code: u8, umask: u8) -> Self {
        Self(code as u64 | ((umask as u64) << 8))
    }

    /// Selects an event of AMD's, whose code has twelve bits.
    pub const fn amd_event(code: u16, umask: u8) -> Self {
        let code = code as u64;
        Self(((code & 0xf00) << 24) | ((umask as u64) << 8) | (code & 0xff))
    }

    /// Returns the event code of an event of AMD's, without unit mask.
    pub const fn amd_code(self) -> u16 {
        // CAST: the code's low byte, and four bits above it.
        ((self.0 >> 24) & 0xf00) as u16 | (self.0 & Self::EVENT) as u16
    }

    /// Makes an event select of any value, such as `attr.config`.
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Returns the value.
    pub const fn bits(self) -> u64 {
        self.0
    }

    /// Returns the value with the enable bit.
    pub const fn enabled(self) -> u64 {
        self.0 | Self::ENABLE
    }

    /// Returns event code and unit mask.
    pub const fn code(self) -> u64 {
        self.0 & Self::CODE
    }

    /// Replaces event code and unit mask.
    pub const fn with_code(self, code: u64) -> Self {
        Self(self.0 & !Self::CODE | code & Self::CODE)
    }

    /// Returns whether any of `bits` is set.
    pub const fn has(self, bits: u64) -> bool {
        self.0 & bits != 0
    }

    /// Changes the event to count the cycles with fewer than `n` occurrences.
    pub const fn cycles_below(self, n: u8) -> Self {
        Self(self.0 & !Self::CMASK | Self::INV | ((n as u64) << 24))
    }

    /// Sets whether to count at privilege levels 1 to 3.
    pub const fn counting_user(self, on: bool) -> Self {
        self.with(Self::USR, on)
    }

    /// Sets whether to count at privilege level 0.
    pub const fn counting_kernel(self, on: bool) -> Self {
        self.with(Self::OS, on)
    }

    /// Sets or clears `bits`.
    pub const fn with(self, bits: u64, on: bool) -> Self {
        if on {
            Self(self.0 | bits)
        } else {
            Self(self.0 & !bits)
        }
    }

    /// Returns the event's field of IA32_FIXED_CTR_CTRL, at bit 0: OS, USR, any thread and PMI, and
    /// at bit 32 adaptive PEBS records (`ICL_FIXED_0_ADAPTIVE`).
    ///
    /// The field must express all of the event; otherwise the event's constraint excludes the fixed
    /// counter. Mainline: `intel_pmu_enable_fixed()`, `arch/x86/events/intel/core.c`.
    pub const fn fixed_control(self) -> u64 {
        (self.has(Self::OS) as u64)
            | ((self.has(Self::USR) as u64) << 1)
            | ((self.has(Self::ANY) as u64) << 2)
            | ((self.has(Self::INT) as u64) << 3)
            | ((self.has(Self::ADAPTIVE) as u64) << 32)
    }

    /// The bits of [`fixed_control`](Self::fixed_control).
    pub const FIXED_CONTROL: u64 = (1 << 32) | 0xf;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_mask_is_mainlines() {
        // event, umask, edge, inv, cmask; neither usr, os, pc, int, any nor enable.
        assert_eq!(EventSelect::RAW, 0xff84_ffff);
        assert_eq!(EventSelect::AMD_RAW, 0xf_ff84_ffff);
    }

    #[test]
    fn fields_do_not_overlap() {
        let fields = [
            EventSelect::EVENT,
            EventSelect::UMASK,
            EventSelect::USR,
            EventSelect::OS,
            EventSelect::EDGE,
            EventSelect::PIN_CONTROL,
            EventSelect::INT,
            EventSelect::ANY,
            EventSelect::ENABLE,
            EventSelect::INV,
            EventSelect::CMASK,
            EventSelect::IN_TX,
            EventSelect::IN_TX_CHECKPOINTED,
            EventSelect::ADAPTIVE,
        ];
        let sum = fields.iter().fold(0u64, |sum, field| {
            assert_eq!(sum & field, 0, "{field:#x} overlaps");
            sum | field
        });
        // Gapless.
        assert_eq!(sum, (1 << 35) - 1);
    }

    #[test]
    fn amds_event_codes_have_twelve_bits() {
        let select = EventSelect::amd_event(0x1c0, 0x07);
        assert_eq!(select.bits(), 0x1_0000_07c0);
        assert_eq!(select.bits() & EventSelect::AMD_EVENT, 0x1_0000_00c0);
        assert_eq!(select.amd_code(), 0x1c0);
        assert_eq!(EventSelect::from_bits(u64::MAX).amd_code(), 0xfff);
    }

    #[test]
    fn cycles_below() {
        let issued = EventSelect::event(0x0e, 0x01);
        assert_eq!(issued.cycles_below(1).bits(), 0x0180_010e);
        assert_eq!(
            issued.cycles_below(0xff).cycles_below(2).bits(),
            0x0280_010e
        );
    }

    #[test]
    fn another_code() {
        let select = EventSelect::from_bits(0x0113_01b7);
        assert_eq!(select.with_code(0x012b).bits(), 0x0113_012b);
        assert_eq!(select.with_code(u64::MAX).bits(), 0x0113_ffff);
    }

    #[test]
    fn fixed_control_bits() {
        let select = EventSelect::event(0xc0, 0);
        for (bits, control) in [
            (0, 0b0000),
            (EventSelect::OS, 0b0001),
            (EventSelect::USR, 0b0010),
            (EventSelect::ANY, 0b0100),
            (EventSelect::INT, 0b1000),
            (EventSelect::ADAPTIVE, 1 << 32),
            (
                EventSelect::INT | EventSelect::USR | EventSelect::OS,
                0b1011,
            ),
        ] {
            assert_eq!(select.with(bits, true).fixed_control(), control);
        }
    }
}
