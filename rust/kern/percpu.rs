// SPDX-License-Identifier: GPL-2.0

//! Data of which every CPU has its own.
//!
//! [`PerCpu`] is the allocation, one value per possible CPU. [`CpuCell`] goes into it and makes
//! what only the CPU itself uses writable, without a lock and without an atomic instruction.
//!
//! C header: [`include/linux/percpu.h`](srctree/include/linux/percpu.h)

use super::cpu::possible_cpus;
use crate::bindings;
use core::{
    cell::UnsafeCell,
    marker::PhantomData,
    mem::{align_of, size_of},
    ops::{Deref, DerefMut},
    ptr::NonNull,
    sync::atomic::{AtomicU8, Ordering},
};
use kernel::{cpu::CpuId, ffi::c_void, interrupt::LocalInterruptDisabled, prelude::*};

/// One `T` per possible CPU.
///
/// A value is made for CPUs that are not there yet, too, so that nothing has to be allocated when
/// one comes online. It stays at its place until all are dropped together.
///
/// # Invariants
///
/// `ptr` is a per-CPU allocation in which there is a valid, pinned `T` for every possible CPU.
pub struct PerCpu<T: Send + Sync> {
    ptr: NonNull<T>,
    _owns: PhantomData<T>,
}

// SAFETY: A `PerCpu` owns its values, and these may be dropped by another thread.
unsafe impl<T: Send + Sync> Send for PerCpu<T> {}

// SAFETY: A shared `PerCpu` hands out shared references to values which are `Sync`.
unsafe impl<T: Send + Sync> Sync for PerCpu<T> {}

impl<T: Send + Sync> PerCpu<T> {
    /// Values of different CPUs do not share a cache line.
    const ALIGN: usize = {
        // `PCPU_MIN_UNIT_SIZE`: the allocator warns when asked for more.
        assert!(size_of::<T>() > 0 && size_of::<T>() <= 32 << 10);
        assert!(align_of::<T>() <= 4096);
        if align_of::<T>() > 64 {
            align_of::<T>()
        } else {
            64
        }
    };

    /// Allocates the values and makes each with what `init` returns for its CPU.
    ///
    /// `ENOMEM`, or the error of `init` or of what it returns. Process context.
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
            // SAFETY: The allocation has room for a `T` for every possible CPU; this one's is not
            // initialised yet, and stays where it is until it is dropped. If the initialiser fails,
            // `Partial` does not look at this CPU's.
            unsafe { pin_init::raw_try_init(per_cpu_ptr(partial.ptr, cpu), init(cpu))? };
            partial.initialised += 1;
        }
        let ptr = partial.ptr;
        core::mem::forget(partial);
        // INVARIANT: The loop has initialised a `T` for every possible CPU.
        Ok(Self {
            ptr,
            _owns: PhantomData,
        })
    }

    /// The value of `cpu`, or `None` if there can be no such CPU on this machine.
    #[inline]
    pub fn get(&self, cpu: CpuId) -> Option<&T> {
        if !super::cpu::possible(cpu) {
            return None;
        }
        // SAFETY: `cpu` is possible, so by the type invariant this is a valid `T`, for as long as
        // `self` is.
        Some(unsafe { &*per_cpu_ptr(self.ptr, cpu) })
    }

    /// The value of the CPU that this runs on.
    #[inline]
    pub fn this_cpu(&self, _irqs: &LocalInterruptDisabled) -> &T {
        let offset = bindings::inline::this_cpu_offset();
        // SAFETY: A CPU that runs is possible, so by the type invariant this is a valid `T`, for as
        // long as `self` is. It would be, too, if the task moved on to another CPU.
        unsafe { &*self.ptr.as_ptr().wrapping_byte_add(offset) }
    }

    /// The values of all possible CPUs.
    pub fn iter(&self) -> impl Iterator<Item = (CpuId, &T)> {
        possible_cpus().filter_map(|cpu| Some((cpu, self.get(cpu)?)))
    }
}

impl<T: Send + Sync> Drop for PerCpu<T> {
    fn drop(&mut self) {
        // This drops the values and frees the allocation.
        drop(Partial {
            ptr: self.ptr,
            initialised: possible_cpus().count(),
        });
    }
}

/// A per-CPU allocation in which the first `initialised` possible CPUs have a valid `T`, and which
/// nobody else uses.
struct Partial<T> {
    ptr: NonNull<T>,
    initialised: usize,
}

impl<T> Drop for Partial<T> {
    fn drop(&mut self) {
        for cpu in possible_cpus().take(self.initialised) {
            // SAFETY: This CPU's value is valid and nobody else uses it. It is not touched again.
            unsafe { per_cpu_ptr(self.ptr, cpu).drop_in_place() };
        }
        // SAFETY: The pointer is from the per-CPU allocator; nobody uses the values any more.
        unsafe { bindings::free_percpu(self.ptr.as_ptr().cast()) };
    }
}

/// Where the value of `cpu` is.
///
/// # Safety
///
/// `ptr` must be a per-CPU allocation, and `cpu` a possible CPU.
#[inline]
unsafe fn per_cpu_ptr<T>(ptr: NonNull<T>, cpu: CpuId) -> *mut T {
    let ptr: *mut c_void = ptr.as_ptr().cast();
    // SAFETY: Within the array of offsets because `CpuId` is below `nr_cpu_ids`; the rest is this
    // function's own requirement.
    unsafe { bindings::rpmu_helper_per_cpu_ptr(ptr, cpu.into()) }.cast()
}

/// Data that one CPU alone uses, with interrupts off.
///
/// With interrupts off, nothing but an NMI comes between two instructions of a CPU. So it takes no
/// more than a flag to tell whether the data is in use: whoever finds it set is either an NMI that
/// has interrupted the user, or the user itself once more. Both are refused. So is everybody while
/// the data is [closed](CpuCellGuard::close).
///
/// # Invariants
///
/// While `state` is [`BORROWED`], there is one [`CpuCellGuard`], on the CPU `owner`; otherwise there
/// is none.
pub struct CpuCell<T> {
    owner: CpuId,
    state: AtomicU8,
    value: UnsafeCell<T>,
}

/// The states of a [`CpuCell`].
const FREE: u8 = 0;
const BORROWED: u8 = 1;
const CLOSED: u8 = 2;

// SAFETY: `borrow` gives out the data to one user at a time, on one CPU. Different tasks use it one
// after the other, which takes `T: Send`; a `&T` is never given to two of them, so `T: Sync` is not
// needed.
unsafe impl<T: Send> Sync for CpuCell<T> {}

impl<T> CpuCell<T> {
    /// Data for `owner` to use.
    pub fn new(owner: CpuId, value: T) -> Self {
        // INVARIANT: Not borrowed, and no guard has been made yet.
        Self {
            owner,
            state: AtomicU8::new(FREE),
            value: UnsafeCell::new(value),
        }
    }

    /// Gives access to the data until the guard is dropped.
    ///
    /// `None` on any other CPU than the owner; in an NMI that has interrupted a borrower; if the
    /// caller, or one further up, has a guard of this cell already, which is a bug of theirs; and
    /// while it is closed.
    ///
    /// Any context with interrupts off, NMI included.
    #[inline]
    pub fn borrow<'a>(&'a self, irqs: &'a LocalInterruptDisabled) -> Option<CpuCellGuard<'a, T>> {
        // Only the owner goes on to look at the state, so it need not be changed atomically: an NMI
        // between the load and the store leaves it as it was. The orderings keep the compiler from
        // moving uses of the data out; the processor sees its own accesses in order.
        if bindings::inline::cpu_number() != self.owner.as_u32()
            || self.state.load(Ordering::Acquire) != FREE
        {
            return None;
        }
        self.state.store(BORROWED, Ordering::Relaxed);
        compiler_barrier();
        // INVARIANT: This is the only guard, because the state was another; interrupts stay off
        // while it exists, so that it stays on this CPU, the owner.
        Some(CpuCellGuard { cell: self, irqs })
    }

    /// Whether the data is closed.
    pub fn is_closed(&self) -> bool {
        self.state.load(Ordering::Relaxed) == CLOSED
    }

    /// Opens the data again if it is closed. On the owner, in no NMI.
    pub fn open(&self, _irqs: &LocalInterruptDisabled) {
        if bindings::inline::cpu_number() == self.owner.as_u32() && self.is_closed() {
            // INVARIANT: There is no guard, as there was none.
            self.state.store(FREE, Ordering::Release);
        }
    }
}

/// Keeps the compiler from moving memory accesses across.
#[inline(always)]
fn compiler_barrier() {
    // SAFETY: There are no instructions in it.
    unsafe { core::arch::asm!("", options(nostack, preserves_flags)) };
}

/// Access to the data of a [`CpuCell`].
///
/// # Invariants
///
/// It is the only guard of `cell`, it is used by the CPU `cell.owner` only, and `cell.state` is
/// [`BORROWED`].
pub struct CpuCellGuard<'a, T> {
    cell: &'a CpuCell<T>,
    /// Keeps interrupts off, and by not being `Sync` keeps the guard from other threads.
    irqs: &'a LocalInterruptDisabled,
}

impl<T> CpuCellGuard<'_, T> {
    /// The proof that interrupts are off.
    #[inline]
    pub fn irqs(&self) -> &LocalInterruptDisabled {
        self.irqs
    }

    /// Keeps everybody from the data from now on, until it is [opened](CpuCell::open).
    pub fn close(self) {
        // INVARIANT: The only guard is going away, without `drop`.
        self.cell.state.store(CLOSED, Ordering::Release);
        core::mem::forget(self);
    }
}

impl<T> Deref for CpuCellGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: By the type invariant nobody else accesses the value.
        unsafe { &*self.cell.value.get() }
    }
}

impl<T> DerefMut for CpuCellGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: By the type invariant nobody else accesses the value, and `self` is borrowed
        // mutably.
        unsafe { &mut *self.cell.value.get() }
    }
}

impl<T> Drop for CpuCellGuard<'_, T> {
    #[inline]
    fn drop(&mut self) {
        // INVARIANT: The only guard is going away.
        self.cell.state.store(FREE, Ordering::Release);
    }
}
