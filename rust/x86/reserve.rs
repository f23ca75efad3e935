// SPDX-License-Identifier: GPL-2.0

//! Reservation of counters. The kernel keeps a bit per register, so that no two drivers program the
//! same register. It does not record which driver has set a bit
//! (`arch/x86/kernel/cpu/perfctr-watchdog.c`).
//!
//! The built-in driver reserves all of its registers at once, for itself and for `intel_bts`
//! (`x86_reserve_hardware()`, `arch/x86/events/core.c`). A driver that calls the same function
//! shares the registers with them. A driver that sets the bits itself would keep `intel_bts` from
//! opening events (`bts_event_init()`, `arch/x86/events/intel/bts.c`). If counters can be written
//! in their full width, the built-in driver uses other addresses for them, for which the kernel has
//! no bits: this driver reserves these counters itself, by their first addresses.
//! `x86_reserve_hardware()` also sets up the following, which the kernel uses whichever driver is
//! in charge:
//!
//! | What | Users while another driver is in charge |
//! |---|---|
//! | `cpu_hw_events.ds`, the DS area of each CPU, and IA32_DS_AREA | this driver's PEBS ([`ds`](super::intel::ds)); `bts.c`; KVM, for the host's value of the register (`intel_guest_get_msrs()`, `intel/core.c`) |
//! | the same of a CPU that comes up | `intel_pmu_cpu_starting()`, `intel/core.c`: writes IA32_DS_AREA |
//! | the same of a CPU that goes down | `intel_pmu_cpu_dying()`, `intel/core.c`: clears it |
//! | the same after suspend to RAM or to disk | `perf_restore_debug_store()`, `intel/ds.c`, which `__restore_processor_state()`, `arch/x86/power/cpu.c` calls |
//!
//! The other per-CPU data of the built-in driver is not used. `intel_pmu_cpu_prepare()` allocates
//! its shared registers. `intel_pmu_cpu_starting()` joins them to the core's, resets LBR, and sets
//! FREEZE_WHILE_SMM and TSX_FORCE_ABORT; this driver therefore sets these two later in the same
//! sequence. `intel_pmu_cpu_dead()` frees them. None of these touches a counter.
//! `perf_event_print_debug()`, for SysRq-p and a stuck interrupt, reads and prints the counters'
//! registers, whichever driver has written them.

use super::msr::Msr;
use crate::{
    bindings,
    kern::symbols::Symbols, //
};
use kernel::{
    error::to_result,
    prelude::*, //
};

/// A register for which the kernel has a reservation bit.
#[derive(Clone, Copy)]
pub enum Register {
    /// A general-purpose counter: Intel's by its first address, IA32_PMCx; AMD's by the address at
    /// which the driver accesses it.
    Counter(Msr),
    /// An event select.
    Select(Msr),
}

impl Register {
    /// Returns the register.
    fn msr(self) -> Msr {
        match self {
            Self::Counter(msr) | Self::Select(msr) => msr,
        }
    }

    /// Reserves the register. Returns whether it was free; the kernel treats registers without a
    /// bit as free.
    fn reserve(self) -> bool {
        // SAFETY: The functions may be called in any context with any number: they set a bit by an
        // atomic operation, after checking that the bitmap has it (`reserve_perfctr_nmi()`,
        // `perfctr-watchdog.c`).
        unsafe {
            match self {
                Self::Counter(msr) => bindings::reserve_perfctr_nmi(msr.number()) != 0,
                Self::Select(msr) => bindings::reserve_evntsel_nmi(msr.number()) != 0,
            }
        }
    }

    /// Releases the register, which the caller must have reserved.
    fn release(self) {
        // SAFETY: As in `reserve()`. The caller has set the bit that the functions clear.
        unsafe {
            match self {
                Self::Counter(msr) => bindings::release_perfctr_nmi(msr.number()),
                Self::Select(msr) => bindings::release_evntsel_nmi(msr.number()),
            }
        }
    }
}

/// The reason why registers could not be reserved.
pub enum NotReserved {
    /// Something else has reserved this register.
    Taken(Msr),
    /// Another reason.
    Failed(Error),
}

impl<T: Into<Error>> From<T> for NotReserved {
    fn from(error: T) -> Self {
        Self::Failed(error.into())
    }
}

/// The reservation of the counters' registers. Dropping releases them.
pub struct Reservation {
    /// The registers that the built-in driver reserves.
    _builtin: Option<BuiltinHardware>,
    /// The other registers.
    _registers: Registers,
}

impl Reservation {
    /// Reserves `registers` one by one.
    ///
    /// Process context.
    pub fn new(registers: impl Iterator<Item = Register>) -> Result<Self, NotReserved> {
        Ok(Self {
            _builtin: None,
            _registers: Registers::new(registers)?,
        })
    }

    /// Reserves `registers` together with the built-in driver, which must have initialised.
    /// `full_width` is set if counters can be written in their full width.
    ///
    /// Returns [`None`] if the built-in driver's function cannot be found. Process context.
    pub fn with_builtin(
        registers: impl Iterator<Item = Register> + Clone,
        full_width: bool,
    ) -> Result<Option<Self>, NotReserved> {
        let Some(builtin) = BuiltinHardware::new(registers.clone())? else {
            return Ok(None);
        };
        let left_out = |it: &Register| full_width && matches!(it, Register::Counter(_));
        Ok(Some(Self {
            _builtin: Some(builtin),
            _registers: Registers::new(registers.filter(left_out))?,
        }))
    }
}

/// The built-in driver's reservation of the counters' registers, shared with it and with
/// `intel_bts`.
///
/// # Invariants
///
/// `x86_reserve_hardware()` has succeeded once for this value, and both functions are bound.
struct BuiltinHardware(());

impl BuiltinHardware {
    /// Reserves the registers, which include `registers`. Returns [`None`] if the function cannot
    /// be found.
    ///
    /// Process context. The built-in driver must have initialised.
    fn new(registers: impl Iterator<Item = Register>) -> Result<Option<Self>, NotReserved> {
        let Ok(symbols) = Symbols::new() else {
            return Ok(None);
        };
        let reserve = symbols.find(c"x86_reserve_hardware");
        let release = symbols.find(c"x86_release_hardware");
        let (Ok(reserve), Ok(release)) = (reserve, release) else {
            return Ok(None);
        };
        // SAFETY: The addresses are those of functions of the types that the static calls have.
        unsafe {
            bindings::rpmu_helper_bind_x86_reserve_hardware(reserve.as_ptr(), release.as_ptr())
        };
        // SAFETY: The function is bound. It counts its users under a lock of its own, and may
        // sleep. By this function's requirements the driver has initialised, so it knows the
        // registers.
        let reserved = to_result(unsafe { bindings::rpmu_helper_x86_reserve_hardware() });
        match reserved {
            // INVARIANT: The hardware has just been reserved.
            Ok(()) => Ok(Some(Self(()))),
            Err(error) => Err(match first_reserved(registers) {
                Some(taken) => NotReserved::Taken(taken),
                None => NotReserved::Failed(error),
            }),
        }
    }
}

impl Drop for BuiltinHardware {
    fn drop(&mut self) {
        // SAFETY: By the type invariant the function is bound, and the registers are reserved for
        // this value.
        unsafe { bindings::rpmu_helper_x86_release_hardware() };
    }
}

/// Registers that are reserved one by one.
///
/// # Invariants
///
/// All of them are reserved for this value.
struct Registers(KVec<Register>);

impl Registers {
    /// Reserves `registers`. Process context.
    fn new(registers: impl Iterator<Item = Register>) -> Result<Self, NotReserved> {
        // INVARIANT: None is reserved yet.
        let mut this = Self(KVec::new());
        for register in registers {
            // Before reserving: the `push()` below must not fail.
            this.0.reserve(1, GFP_KERNEL)?;
            if !register.reserve() {
                return Err(NotReserved::Taken(register.msr()));
            }
            // INVARIANT: One more has been reserved.
            this.0.push(register, GFP_KERNEL)?;
        }
        Ok(this)
    }
}

impl Drop for Registers {
    fn drop(&mut self) {
        for register in &self.0 {
            register.release();
        }
    }
}

/// Returns the first of `registers` that something has reserved. The caller and the built-in driver
/// must not have reserved any.
///
/// Reserves and releases each register: another driver that reserves one meanwhile may fail.
/// Process context.
pub fn first_reserved(mut registers: impl Iterator<Item = Register>) -> Option<Msr> {
    let taken = registers.find(|register| {
        let free = register.reserve();
        if free {
            register.release();
        }
        !free
    });
    taken.map(Register::msr)
}
