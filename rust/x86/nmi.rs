// SPDX-License-Identifier: GPL-2.0

//! Handlers of non-maskable interrupts of this CPU: performance monitoring interrupts.
//!
//! C header: [`arch/x86/include/asm/nmi.h`](srctree/arch/x86/include/asm/nmi.h)

use crate::bindings;
use core::{
    marker::PhantomData,
    ptr::{null_mut, NonNull},
};
use kernel::{
    error::to_result,
    ffi::{c_int, c_uint, c_void},
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::{
        atomic::{ordering, Atomic},
        Arc,
    },
    types::{NotThreadSafe, Opaque},
};

/// The name that the kernel knows the handler by.
///
/// `unregister_nmi_handler()` takes out the first handler of this name, whoever it belongs to. It
/// must therefore not be `PMI`, which is the built-in driver's, and is not for callers to choose.
const NAME: &CStr = c"rpmu";

/// What to do when an NMI comes in.
pub trait Handler: Send + Sync {
    /// Called for every NMI of a CPU, on that CPU, whatever raised it.
    ///
    /// Returns how many sources it has handled: 0 lets the kernel go on looking. With more than 1
    /// the kernel expects an NMI too many soon and keeps silent about it.
    ///
    /// # Context
    ///
    /// An NMI comes in anywhere: with interrupts off, in the middle of a store to the very data
    /// that this wants to look at, while a lock is held. So there is no allocation, no sleeping, no
    /// lock, no printing and no panic in here, and data that others write is either atomic or
    /// guarded as [`CpuCell`](crate::kern::percpu::CpuCell) is.
    fn handle(&self, nmi: &NmiContext) -> u32;
}

/// Proof that the code runs in an NMI.
pub struct NmiContext {
    /// Valid as long as the context: until the handler returns.
    regs: *mut bindings::pt_regs,
    _not_thread_safe: PhantomData<NotThreadSafe>,
}

impl NmiContext {
    /// Proof that interrupts are off, for what needs only that.
    #[inline]
    pub fn irqs(&self) -> &LocalInterruptDisabled {
        // SAFETY: The processor enters an NMI with interrupts off and the kernel does not turn them
        // on before it returns from it. `self` exists no longer than the handler's call, and
        // neither does a reference that borrows from it.
        unsafe { bindings::inline::assume_irqs_disabled() }
    }

    /// The registers of what was interrupted, for the functions of perf core that want them.
    #[inline]
    pub fn regs(&self) -> &Opaque<bindings::pt_regs> {
        // CAST: `Opaque` is a transparent wrapper.
        // SAFETY: The kernel passes valid registers to the handler, and they stay so until it
        // returns.
        unsafe { &*self.regs.cast() }
    }

    /// Counts a performance monitoring interrupt: the line `PMI` of `/proc/interrupts`.
    #[inline]
    pub fn count_pmi(&self) {
        // SAFETY: The helper increments a per-CPU variable with one instruction.
        unsafe { bindings::rpmu_helper_inc_perf_irq_stat() }
    }
}

/// What [`callback`] passes to the handler, as the kernel passes nothing. Null when no handler is
/// registered; otherwise what [`Arc::into_raw`] returned for the registered handler.
static HANDLER: Atomic<*mut c_void> = Atomic::new(null_mut());

/// A registered handler. Dropping it unregisters the handler, and waits until it runs nowhere.
///
/// # Invariants
///
/// - `_action` is on the kernel's list of handlers of local NMIs under [`NAME`], and its function
///   is `callback::<T>`.
/// - [`HANDLER`] holds `handler`, which owns a reference of an `Arc<T>`.
pub struct Registration<T: Handler> {
    _action: Pin<KBox<Opaque<bindings::nmiaction>>>,
    handler: NonNull<T>,
}

// SAFETY: A registration is a reference count of a `T`, which is `Send + Sync`, and an entry of a
// list with its own lock. Both may be let go from any thread.
unsafe impl<T: Handler> Send for Registration<T> {}

// SAFETY: A shared reference to a registration gives access to nothing.
unsafe impl<T: Handler> Sync for Registration<T> {}

impl<T: Handler> Registration<T> {
    /// Registers a handler: on return it is called for every NMI on every CPU.
    ///
    /// `EBUSY` if this module has one registered already. Process context.
    pub fn new(handler: Arc<T>) -> Result<Self> {
        let action = KBox::pin(
            Opaque::new(bindings::nmiaction {
                handler: Some(callback::<T>),
                name: NAME.as_char_ptr(),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: Nobody else knows of `action` yet, it is initialised, and it stays where it is
        // because it is pinned. An empty list points to itself.
        unsafe {
            let list = &raw mut (*action.get()).list;
            (*list).next = list;
            (*list).prev = list;
        }

        let handler = Arc::into_raw(handler).cast_mut();
        if HANDLER
            .cmpxchg(null_mut(), handler.cast(), ordering::Full)
            .is_err()
        {
            // SAFETY: `handler` is from `into_raw` above and nothing else uses it.
            drop(unsafe { Arc::from_raw(handler) });
            return Err(EBUSY);
        }

        // SAFETY: `action` is initialised, its list is empty, and it stays valid until `drop` has
        // taken it out again. `callback` may be called from here on: `HANDLER` has been set before,
        // to a `T`.
        let ret = unsafe { bindings::__register_nmi_handler(bindings::NMI_LOCAL, action.get()) };
        if let Err(err) = to_result(ret) {
            HANDLER.store(null_mut(), ordering::Release);
            // SAFETY: `handler` is from `into_raw` above; the kernel has not taken `callback`.
            drop(unsafe { Arc::from_raw(handler) });
            return Err(err);
        }
        // INVARIANT: Both have just been done.
        Ok(Self {
            _action: action,
            // SAFETY: `into_raw` does not return null.
            handler: unsafe { NonNull::new_unchecked(handler) },
        })
    }
}

impl<T: Handler> Drop for Registration<T> {
    fn drop(&mut self) {
        // SAFETY: `NAME` is a valid C string. By the type invariant the entry of this name is ours.
        // This waits (`synchronize_rcu()`) until no CPU runs the handler or looks at the entry.
        unsafe { bindings::unregister_nmi_handler(bindings::NMI_LOCAL, NAME.as_char_ptr()) };
        HANDLER.store(null_mut(), ordering::Release);
        // SAFETY: By the type invariant `handler` owns a reference, and nobody can get at it
        // through `HANDLER` any more.
        drop(unsafe { Arc::from_raw(self.handler.as_ptr()) });
    }
}

/// The C side of [`Handler::handle`].
///
/// # Safety
///
/// Only for the kernel to call, in an NMI, while a [`Registration<T>`] exists or is being made or
/// dropped.
unsafe extern "C" fn callback<T: Handler>(_type: c_uint, regs: *mut bindings::pt_regs) -> c_int {
    let handler: *const T = HANDLER.load(ordering::Acquire).cast();
    // SAFETY: `HANDLER` is set before this function can be called and reset after it can be called
    // for the last time, and it is this `T`, because there is one registration at a time and both
    // are from the same.
    let handler = unsafe { &*handler };
    let nmi = NmiContext {
        regs,
        _not_thread_safe: PhantomData,
    };
    handler.handle(&nmi) as c_int
}
