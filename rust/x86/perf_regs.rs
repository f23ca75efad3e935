// SPDX-License-Identifier: GPL-2.0

//! The registers of a sample that the processor itself has recorded: `struct x86_perf_regs`.
//!
//! C header: [`arch/x86/include/asm/perf_event.h`](srctree/arch/x86/include/asm/perf_event.h)

use crate::{
    bindings,
    kern::regs::Regs, //
};
use core::{
    arch::asm,
    marker::PhantomData,
    mem::MaybeUninit,
    ptr::{
        self,
        null_mut, //
    },
    sync::atomic::AtomicU64, //
};

/// The kernel's flags in RFLAGS: the address is exactly the instruction's (`PERF_EFLAGS_EXACT`),
/// and it is a virtual-8086 mode address (`PERF_EFLAGS_VM`).
const EXACT: usize = 1 << 3;
const VM: usize = 1 << 5;
/// The processor's flag of virtual-8086 mode.
const X86_VM: usize = 1 << 17;

/// Returns whether the registers belong to 32-bit user code.
pub fn is_32bit(regs: &Regs) -> bool {
    // SAFETY: The registers are valid as long as the reference; a selector is an integer.
    u32::from(unsafe { (*regs.get()).__bindgen_anon_1.cs }) == bindings::__USER32_CS
}

// `write()` initialises all members.
const _: () = assert!(
    size_of::<bindings::x86_perf_regs>() == size_of::<bindings::pt_regs>() + size_of::<*mut u64>()
);

/// The memory in which [`PerfRegs`] are built in place: in an NMI, they are too large to be moved.
pub struct Space(MaybeUninit<bindings::x86_perf_regs>);

impl Space {
    /// Returns memory that is not initialised. Any context.
    #[inline(always)]
    pub const fn new() -> Self {
        Self(MaybeUninit::uninit())
    }

    /// Initialises the memory with the registers of the `interrupted` code, or with zeros. Any
    /// context.
    #[inline(always)]
    pub fn begin<'a>(&'a mut self, interrupted: Option<&Regs>) -> PerfRegs<'a> {
        // SAFETY: The pointer is to memory of this type.
        unsafe { write(self.0.as_mut_ptr(), interrupted) };
        PerfRegs {
            // SAFETY: All members have just been initialised: integers, and a pointer that may be
            // null.
            raw: unsafe { self.0.assume_init_mut() },
            _xmm: PhantomData,
        }
    }
}

/// Writes the registers of the `interrupted` code, or zeros.
///
/// # Safety
///
/// `raw` must be valid for writes.
#[inline(always)]
unsafe fn write(raw: *mut bindings::x86_perf_regs, interrupted: Option<&Regs>) {
    // SAFETY: By this function's requirements. The registers of the interrupted code are valid as
    // long as the reference, and do not overlap `raw`.
    unsafe {
        match interrupted {
            Some(interrupted) => copy(&raw mut (*raw).regs, interrupted.get()),
            None => (&raw mut (*raw).regs).write_bytes(0, 1),
        }
        (&raw mut (*raw).xmm_regs).write(null_mut());
    }
}

/// Copies registers with one string instruction, as C compilers do for the same copy in the
/// built-in driver. `memcpy()` would execute 80 instructions on processors without fast short REP
/// MOVSB.
///
/// # Safety
///
/// `to` must be valid for writes and `from` for reads, and they must not overlap.
#[inline(always)]
unsafe fn copy(to: *mut bindings::pt_regs, from: *const bindings::pt_regs) {
    // SAFETY: By this function's requirements. The direction flag is clear in Rust code, and the
    // structure's size is a multiple of a word.
    unsafe {
        asm!(
            "rep movsq",
            inout("rcx") size_of::<bindings::pt_regs>() / size_of::<u64>() => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

const _: () = assert!(size_of::<bindings::pt_regs>() % size_of::<u64>() == 0);

/// Registers of the interrupted code, some of them replaced by those of a record.
pub struct PerfRegs<'a> {
    raw: &'a mut bindings::x86_perf_regs,
    _xmm: PhantomData<&'a [AtomicU64]>,
}

impl<'a> PerfRegs<'a> {
    /// Initialises all registers again, as [`Space::begin`].
    pub fn reset(&mut self, interrupted: Option<&Regs>) {
        // SAFETY: The reference is valid for writes.
        unsafe { write(self.raw, interrupted) };
    }

    /// Replaces RFLAGS.
    pub fn set_flags(&mut self, flags: u64) {
        self.raw.regs.flags = flags as usize & !EXACT;
    }

    /// Replaces RIP by a linear address, and CS by a matching segment. `exact` is set if this is
    /// the address of the sampled instruction itself. Mainline: `set_linear_ip()`,
    /// `arch/x86/events/perf_event.h`.
    pub fn set_ip(&mut self, ip: u64, exact: bool) {
        let regs = &mut self.raw.regs;
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
        let regs = &mut self.raw.regs;
        // CAST: `usize` has 64 bits, here and above.
        [
            regs.ax, regs.cx, regs.dx, regs.bx, regs.sp, regs.bp, regs.si, regs.di, regs.r8,
            regs.r9, regs.r10, regs.r11, regs.r12, regs.r13, regs.r14, regs.r15,
        ] = general.map(|value| value as usize);
    }

    /// Adds XMM0 to XMM15, in two halves each.
    pub fn set_xmm(&mut self, xmm: &'a [AtomicU64; 32]) {
        // The perf core only reads the registers.
        self.raw.xmm_regs = xmm.as_ptr().cast::<u64>().cast_mut();
    }

    /// Returns the registers, for functions of the perf core.
    pub fn as_regs(&self) -> &Regs {
        let raw = ptr::from_ref(&*self.raw);
        // CAST: `Regs` is a transparent wrapper, whose content may change.
        // SAFETY: The registers are valid as long as the reference, and the perf core only reads
        // them; it finds the XMM registers by the address of the others.
        unsafe { &*(&raw const (*raw).regs).cast() }
    }
}
