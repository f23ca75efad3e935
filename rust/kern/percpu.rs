// SPDX-License-Identifier: GPL-2.0

//! Per-CPU data.
//!
//! [`PerCpu`] is an allocation with one value for each possible CPU. A [`CpuCell`] in it makes data
//! writable that only its CPU uses, without a lock and without an atomic instruction.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use super::{
    cpu::possible_cpus,
    init::in_cell, //
};
use crate::bindings;
use core::{
    cell::UnsafeCell,
    hint::assert_unchecked,
    marker::PhantomData,
    mem::{
        align_of,
        size_of, //
    },
    ops::{
        Deref,
        DerefMut, //
    },
    ptr::NonNull,
    sync::atomic::{
        AtomicU32,
        Ordering, //
    },
};
use kernel::{
    cpu::CpuId,
    interrupt::LocalInterruptDisabled,
    prelude::*, //
};

/// One `T` for each possible CPU.
///
/// Possible CPUs that are offline have a value too, so that nothing has to be allocated when one
/// comes online. The values stay in place until all are dropped together.
///
/// # Invariants
///
/// `ptr` is a per-CPU allocation with a valid, pinned `T` for each possible CPU.
pub struct PerCpu<T: Send + Sync> {
    ptr: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: A `PerCpu` owns its values, and these may be dropped by another thread.
unsafe impl<T: Send + Sync> Send for PerCpu<T> {}

// SAFETY: A shared `PerCpu` gives out shared references to values that are `Sync`.
unsafe impl<T: Send + Sync> Sync for PerCpu<T> {}

impl<T: Send + Sync> PerCpu<T> {
    /// The alignment of the values: the values of different CPUs share no cache line.
    const ALIGN: usize = {
        // The allocator warns above `PCPU_MIN_UNIT_SIZE`.
        assert!(size_of::<T>() > 0 && size_of::<T>() <= 32 << 10);
        assert!(align_of::<T>() <= 4096);
        if align_of::<T>() > 64 {
            align_of::<T>()
        } else {
            64
        }
    };

    /// Allocates the values, and initialises each with the initialiser that `init` returns for its
    /// CPU.
    ///
    /// Fails with `ENOMEM`, or with the error of an initialiser. Process context.
    pub fn new<I, E>(mut init: impl FnMut(CpuId) -> I) -> Result<Self>
    where
        I: PinInit<T, E>,
        Error: From<E>,
    {
        // SAFETY: The size is not zero and the alignment is a power of two, see `ALIGN`.
        let ptr = unsafe { bindings::rpmu_helper_alloc_percpu(size_of::<T>(), Self::ALIGN) };
        let mut partial = Partial {
            ptr: NonNull::new(ptr.cast::<T>()).ok_or(ENOMEM)?,
            initialised: 0,
        };
        for cpu in possible_cpus() {
            // SAFETY: The allocation has room for a `T` for each possible CPU. The value of `cpu`
            // is not initialised yet and stays in place until it is dropped. If the initialiser
            // fails, `Partial` does not touch this value.
            unsafe { pin_init::raw_try_init(per_cpu_ptr(partial.ptr, cpu), init(cpu))? };
            partial.initialised += 1;
        }
        let ptr = partial.ptr;
        core::mem::forget(partial);
        // INVARIANT: The loop has initialised a `T` for each possible CPU.
        Ok(Self {
            ptr,
            _owns: PhantomData,
        })
    }

    /// Returns the value of `cpu`, or [`None`] if `cpu` is not possible.
    #[inline]
    pub fn get(&self, cpu: CpuId) -> Option<&T> {
        if !super::cpu::possible(cpu) {
            return None;
        }
        // SAFETY: `cpu` is possible, so by the type invariant this is a valid `T` as long as `self`
        // lives.
        Some(unsafe { &*per_cpu_ptr(self.ptr, cpu) })
    }

    /// Returns the values of all possible CPUs.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        possible_cpus().filter_map(|cpu| self.get(cpu))
    }

    /// Returns the value of this CPU.
    #[inline]
    pub fn this_cpu(&self, _irqs: &LocalInterruptDisabled) -> &T {
        let offset = bindings::inline::this_cpu_offset();
        let value = self.ptr.as_ptr().wrapping_byte_add(offset);
        // SAFETY: A CPU that runs is possible, so by the type invariant this is a valid `T` as long
        // as `self` lives, even if the task moves to another CPU.
        unsafe {
            // The compiler cannot infer non-null from an addition, and would check each `Option` of
            // a guard twice.
            assert_unchecked(!value.is_null());
            &*value
        }
    }
}

impl<T: Send + Sync> Drop for PerCpu<T> {
    fn drop(&mut self) {
        // Drops the values and frees the allocation.
        drop(Partial {
            ptr: self.ptr,
            initialised: possible_cpus().count(),
        });
    }
}

/// A per-CPU allocation in which the first `initialised` possible CPUs have a valid `T`, with
/// exclusive access to it.
struct Partial<T> {
    ptr: NonNull<T>,
    initialised: usize,
}

impl<T> Drop for Partial<T> {
    fn drop(&mut self) {
        for cpu in possible_cpus().take(self.initialised) {
            // SAFETY: The value of `cpu` is valid, access to it is exclusive, and it is not used
            // again.
            unsafe { per_cpu_ptr(self.ptr, cpu).drop_in_place() };
        }
        // SAFETY: The pointer is from the per-CPU allocator, and the values are no longer used.
        unsafe { bindings::free_percpu(self.ptr.as_ptr().cast()) };
    }
}

/// Returns the address of the value of `cpu` in a per-CPU allocation; a valid one if `cpu` is
/// possible.
#[inline]
fn per_cpu_ptr<T>(ptr: NonNull<T>, cpu: CpuId) -> *mut T {
    let offset = bindings::inline::per_cpu_offset(cpu);
    ptr.as_ptr().wrapping_byte_add(offset)
}

/// Data that only one CPU uses, with interrupts off.
///
/// With interrupts off, only an NMI can interrupt a CPU. So a flag is enough to mark the data as
/// borrowed: only an NMI that has interrupted the borrower, or the borrower itself, can find it
/// set. Both are refused, and so is every borrow while the data is [closed](CpuCellGuard::close).
///
/// # Invariants
///
/// `state` is the number of the CPU `owner` while the data is free, [`BORROWED`] or [`CLOSED`].
/// While it is [`BORROWED`], there is one [`CpuCellGuard`], on the CPU `owner`; otherwise there is
/// none.
pub struct CpuCell<T> {
    owner: CpuId,
    state: AtomicU32,
    value: UnsafeCell<T>,
}

/// States of a [`CpuCell`] besides the numbers of CPUs.
const BORROWED: u32 = u32::MAX;
const CLOSED: u32 = u32::MAX - 1;

// SAFETY: `borrow` gives the data to one borrower at a time, on one CPU. Different tasks borrow it
// one after the other, for which `T` has to be `Send`. No two of them have a `&T` at the same time,
// so `T` need not be `Sync`.
unsafe impl<T: Send> Sync for CpuCell<T> {}

impl<T> CpuCell<T> {
    /// Makes data that only the CPU `owner` can borrow.
    pub fn new(owner: CpuId, value: T) -> Self {
        // INVARIANT: The data is free, and there is no guard yet.
        Self {
            owner,
            state: AtomicU32::new(owner.as_u32()),
            value: UnsafeCell::new(value),
        }
    }

    /// As [`new`](Self::new), with data that `value` initialises in place, and that is closed until
    /// it is [opened](Self::open).
    pub fn init_closed<E>(owner: CpuId, value: impl Init<T, E>) -> impl Init<Self, E> {
        // INVARIANT: The data is closed, and there is no guard yet.
        try_init!(Self {
            owner,
            state: AtomicU32::new(CLOSED),
            value <- in_cell(value),
        }? E)
    }

    /// Gives access to the data until the guard is dropped.
    ///
    /// Returns [`None`] on any other CPU than the owner, while the data is closed, and in an NMI
    /// that has interrupted a borrower. Also returns it if the caller, or one of its callers, has
    /// borrowed the data already, which is a bug.
    ///
    /// Any context with interrupts off, NMI included.
    #[inline]
    pub fn borrow<'a>(&'a self, irqs: &'a LocalInterruptDisabled) -> Option<CpuCellGuard<'a, T>> {
        // Only the owner writes the state, so reading and writing it need not be one atomic
        // operation: an NMI in between leaves the state as it was. Another CPU never reads its own
        // number. The orderings keep the compiler from moving accesses of the data out; the
        // processor sees its own accesses in order.
        if self.state.load(Ordering::Acquire) != bindings::inline::cpu_number() {
            return None;
        }
        self.state.store(BORROWED, Ordering::Relaxed);
        compiler_barrier();
        // INVARIANT: The state was the number of this CPU, so this is the owner, and there is no
        // other guard. Interrupts are off as long as this guard exists, so that it stays on this
        // CPU.
        Some(CpuCellGuard {
            cell: self,
            _irqs: irqs,
        })
    }

    /// Returns whether the data is closed.
    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Relaxed) == CLOSED
    }

    /// Opens the data again if it is closed. On the owner, not in an NMI.
    pub fn open(&self, _irqs: &LocalInterruptDisabled) {
        if bindings::inline::cpu_number() == self.owner.as_u32() && self.is_closed() {
            // INVARIANT: There is no guard of a closed cell.
            self.state.store(self.owner.as_u32(), Ordering::Release);
        }
    }
}

/// Keeps the compiler from moving memory accesses across this call.
#[inline(always)]
fn compiler_barrier() {
    // SAFETY: The assembly contains no instructions.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
}

/// Access to the data of a [`CpuCell`].
///
/// # Invariants
///
/// This is the only guard of `cell`, only the CPU `cell.owner` uses it, and `cell.state` is
/// [`BORROWED`].
pub struct CpuCellGuard<'a, T> {
    cell: &'a CpuCell<T>,
    /// Keeps interrupts off, and by not being `Sync` keeps the guard from other threads.
    _irqs: &'a LocalInterruptDisabled,
}

impl<T> CpuCellGuard<'_, T> {
    /// Closes the data: nothing can borrow it until it is [opened](CpuCell::open).
    pub fn close(self) {
        // INVARIANT: The only guard goes away, without `drop`.
        self.cell.state.store(CLOSED, Ordering::Release);
        core::mem::forget(self);
    }
}

impl<T> Deref for CpuCellGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: By the type invariant only this guard accesses the value.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for CpuCellGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariant only this guard accesses the value, and `self` is borrowed
        // mutably.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for CpuCellGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // INVARIANT: The only guard goes away.
        let free = self.cell.owner.as_u32();
        self.cell.state.store(free, Ordering::Release);
    }
}
