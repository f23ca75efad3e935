// SPDX-License-Identifier: GPL-2.0

//! Counters that stop while the processor is in system management mode.

use crate::x86::debugctl::{
    try_change,
    Bits, //
};
use kernel::interrupt::LocalInterruptDisabled;

/// Makes the counters of this CPU stop in SMM, or not. Has no effect where a hypervisor refuses
/// that.
///
/// Needs version 2 of architectural performance monitoring. Mainline: `flip_smm_bit()`,
/// `arch/x86/events/intel/core.c`, which tries it as well.
pub fn set_freeze_on_smi(on: bool, irqs: &LocalInterruptDisabled) {
    if on {
        try_change(Bits::NONE, Bits::FREEZE_IN_SMM, irqs);
    } else {
        try_change(Bits::FREEZE_IN_SMM, Bits::NONE, irqs);
    }
}
