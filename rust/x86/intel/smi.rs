// SPDX-License-Identifier: GPL-2.0

//! Freezing the counters while the processor is in system management mode.

use crate::x86::debugctl::{
    try_change,
    Bits, //
};
use kernel::interrupt::LocalInterruptDisabled;

/// Sets whether the counters of this CPU stop in SMM. Has no effect if a hypervisor refuses.
///
/// Needs version 2 of architectural performance monitoring. Mainline: `flip_smm_bit()`,
/// `arch/x86/events/intel/core.c`, which tolerates a refusal, too.
pub fn set_freeze_on_smi(on: bool, irqs: &LocalInterruptDisabled) {
    if on {
        try_change(Bits::NONE, Bits::FREEZE_IN_SMM, irqs);
    } else {
        try_change(Bits::FREEZE_IN_SMM, Bits::NONE, irqs);
    }
}
