// SPDX-License-Identifier: GPL-2.0

//! Counters that stop while the processor is in system management mode.

use crate::x86::debugctl::{change, Bits};
use kernel::interrupt::LocalInterruptDisabled;

/// Makes the counters of this CPU stop in SMM, or not.
///
/// Needs version 2 of architectural performance monitoring. Mainline: `flip_smm_bit()`,
/// `arch/x86/events/intel/core.c:5996`.
pub fn set_freeze_on_smi(on: bool, irqs: &LocalInterruptDisabled) {
    if on {
        change(Bits::NONE, Bits::FREEZE_IN_SMM, irqs);
    } else {
        change(Bits::FREEZE_IN_SMM, Bits::NONE, irqs);
    }
}
