// SPDX-License-Identifier: GPL-2.0

//! The registers of a sample whose event the processor has recorded itself: `struct x86_perf_regs`.
//!
//! C header: [`arch/x86/include/asm/perf_event.h`](srctree/arch/x86/include/asm/perf_event.h)

use crate::{bindings, kern::regs::Regs};
use core::{marker::PhantomData, ptr::null_mut, sync::atomic::AtomicU64};
use kernel::types::Opaque;

/// Registers, some of which are those of a record.
pub struct PerfRegs<'a> {
    raw: Opaque<bindings::x86_perf_regs>,
    _xmm: PhantomData<&'a [AtomicU64]>,
}

/// The kernel's flags in RFLAGS: the address is exactly that of the instruction (`PERF_EFLAGS_EXACT`), and it is one
/// of virtual-8086 mode (`PERF_EFLAGS_VM`).
const EXACT: usize = 1 << 3;
const VM: usize = 1 << 5;
/// The processor's flag of virtual-8086 mode.
const X86_VM: usize = 1 << 17;

/// Returns whether these registers are those of user code of 32 bits.
pub fn is_32bit(regs: &Regs) -> bool {
    // SAFETY: The registers are valid as long as the reference; a selector is an integer.
    u32::from(unsafe { (*regs.get()).__bindgen_anon_1.cs }) == bindings::__USER32_CS
}

impl<'a> PerfRegs<'a> {
    /// Begins with the registers of the `interrupted` code, or with zeros. Any context.
    #[inline(always)]
    pub fn new(interrupted: Option<&Regs>) -> Self {
        let regs = match interrupted {
            // SAFETY: The registers are valid as long as the reference.
            Some(interrupted) => unsafe { interrupted.get().read() },
            None => pin_init::zeroed(),
        };
        Self {
            raw: Opaque::new(bindings::x86_perf_regs {
                regs,
                xmm_regs: null_mut(),
            }),
            _xmm: PhantomData,
        }
    }

    fn regs(&mut self) -> &mut bindings::pt_regs {
        // SAFETY: The reference is exclusive.
        unsafe { &mut (*self.raw.get()).regs }
    }

    /// Replaces RFLAGS.
    pub fn set_flags(&mut self, flags: u64) {
        self.regs().flags = flags as usize & !EXACT;
    }

    /// Replaces RIP by a linear address, and CS by a segment for it; `exact` says that it is the address of the
    /// instruction itself. Mainline: `set_linear_ip()`, `arch/x86/events/perf_event.h:1372`.
    pub fn set_ip(&mut self, ip: u64, exact: bool) {
        let regs = self.regs();
        let cs = if ip >> 63 != 0 {
            bindings::__KERNEL_CS
        } else {
            bindings::__USER_CS
        };
        // CAST: a selector.
        regs.__bindgen_anon_1.cs = cs as u16;
        if regs.flags & X86_VM != 0 {
            regs.flags ^= VM | X86_VM;
        }
        regs.flags &= !EXACT;
        if exact {
            regs.flags |= EXACT;
        }
        regs.ip = ip as usize;
    }

    /// Replaces RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI and R8 to R15.
    pub fn set_general(&mut self, general: &[u64; 16]) {
        let regs = self.regs();
        // CAST: registers have 64 bits, here and below.
        [
            regs.ax, regs.cx, regs.dx, regs.bx, regs.sp, regs.bp, regs.si, regs.di, regs.r8,
            regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
        ] = general.map(|value| value as usize);
    }

    /// Adds XMM0 to XMM15, which are in two halves each.
    pub fn set_xmm(&mut self, xmm: &'a [AtomicU64; 32]) {
        // SAFETY: The reference is exclusive. The perf core only reads the registers.
        unsafe { (*self.raw.get()).xmm_regs = xmm.as_ptr().cast::<u64>().cast_mut() };
    }

    /// Returns the registers, for functions of the perf core.
    pub fn as_regs(&self) -> &Regs {
        // CAST: `Opaque` is a transparent wrapper.
        // SAFETY: The registers are valid as long as the reference; XMM registers are found by their address.
        unsafe { &*(&raw const (*self.raw.get()).regs).cast() }
    }
}
