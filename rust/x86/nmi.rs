// SPDX-License-Identifier: GPL-2.0

//! Handlers of local non-maskable interrupts, such as the performance monitoring interrupt.
//!
//! C header: [`arch/x86/include/asm/nmi.h`](srctree/arch/x86/include/asm/nmi.h)

use crate::{
    bindings,
    kern::regs::Regs,
    x86::builtin::nmi::{
        Directed,
        Handler as Builtin, //
    },
};
use core::{
    marker::PhantomData,
    ptr::{
        null_mut,
        NonNull, //
    },
    sync::atomic::{
        AtomicPtr,
        Ordering::{
            Acquire,
            Relaxed,
            Release, //
        },
    },
};
use kernel::{
    error::to_result,
    ffi::{
        c_int,
        c_uint,
        c_void, //
    },
    interrupt::LocalInterruptDisabled,
    prelude::*,
    sync::Arc,
    types::{
        NotThreadSafe,
        Opaque, //
    },
};

/// The name of the handler.
///
/// `unregister_nmi_handler()` removes the first handler with this name, whatever has registered it.
/// So the name must not be `PMI`, the built-in driver's, and callers cannot choose it.
const NAME: &CStr = c"rpmu";

/// A handler of NMIs.
pub trait Handler: Send + Sync {
    /// Called for every NMI of a CPU, on that CPU, whatever raised it.
    ///
    /// Returns the number of sources that it has handled. The kernel adds the results of all
    /// handlers of local NMIs. If the sum is 0, it looks for sources outside of the CPU; if it is
    /// more than 1, it tolerates one unknown NMI soon afterwards.
    ///
    /// # Context
    ///
    /// An NMI can interrupt anything: code with interrupts off, code that holds a lock, a store to
    /// the very data that the handler reads. So the handler must not allocate, sleep, take a lock,
    /// print or panic. Data that other code writes must be atomic, or in a
    /// [`CpuCell`](crate::kern::percpu::CpuCell).
    fn handle(&self, nmi: &NmiContext) -> u32;
}

/// Proof of NMI context.
pub struct NmiContext {
    /// Valid until the handler returns.
    regs: *mut bindings::pt_regs,
    is_timed: bool,
    _not_thread_safe: PhantomData<NotThreadSafe>,
}

impl NmiContext {
    /// Returns the proof that interrupts are off.
    #[inline]
    pub fn irqs(&self) -> &LocalInterruptDisabled {
        // SAFETY: The processor enters an NMI with interrupts off, and the kernel does not turn
        // them on before it returns from the NMI. `self` exists during the handler's call only, and
        // the reference borrows from it.
        unsafe { bindings::inline::assume_irqs_disabled() }
    }

    /// Returns the registers of the interrupted code, for functions of the perf core.
    #[inline]
    pub fn regs(&self) -> &Regs {
        // CAST: `Opaque` is a transparent wrapper. SAFETY: The kernel passes valid registers to the
        // handler, which stay valid until it returns.
        unsafe { &*self.regs.cast() }
    }

    /// Returns whether the caller of the handler measures its time and reports it to the perf core.
    #[inline]
    pub fn is_timed(&self) -> bool {
        self.is_timed
    }

    /// Counts a performance monitoring interrupt: the line `PMI` of `/proc/interrupts`.
    #[inline]
    pub fn count_pmi(&self) {
        // SAFETY: The helper increments a per-CPU variable with one instruction.
        unsafe { bindings::rpmu_helper_inc_perf_irq_stat() }
    }
}

/// The registered handler, for [`callback`] and [`directed`], to which the kernel passes no data:
/// the result of [`Arc::into_raw`], or null if there is none.
static HANDLER: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

/// A registered handler. Dropping unregisters the handler, and waits until it runs on no CPU.
///
/// # Invariants
///
/// [`HANDLER`] holds `handler`, which owns a reference of an `Arc<T>`.
pub struct Registration<T: Handler> {
    /// [`None`] only while the value is being made or dropped.
    entry: Option<Entry>,
    handler: NonNull<T>,
}

/// The way in which the kernel calls the handler.
enum Entry {
    /// The built-in driver's handler is directed to `directed::<T>`.
    Directed { _directed: Directed },
    /// The handler has an entry of its own.
    Listed { _listed: Listed },
}

/// An entry in the kernel's list of handlers of local NMIs. Dropping removes it, and waits until no
/// CPU runs the handler.
///
/// # Invariants
///
/// The action is on the list under [`NAME`].
struct Listed {
    _action: Pin<KBox<Opaque<bindings::nmiaction>>>,
}

// SAFETY: A registration is a reference count of a `T`, which is `Send + Sync`, and an entry of a
// list with its own lock. Both may be released by any thread.
unsafe impl<T: Handler> Send for Registration<T> {}

// SAFETY: A registration has no methods that take a shared reference.
unsafe impl<T: Handler> Sync for Registration<T> {}

impl<T: Handler> Registration<T> {
    /// Registers a handler, which is called for every NMI on every CPU from now on: through the
    /// built-in driver's handler if `builtin` is given, otherwise beside it.
    ///
    /// Fails with `EBUSY` if this module already has a handler, or with `ENOMEM`. Process context.
    pub fn new(handler: Arc<T>, builtin: Option<&Builtin>) -> Result<Self> {
        let handler = Arc::into_raw(handler).cast_mut();
        if HANDLER
            .compare_exchange(null_mut(), handler.cast(), Release, Relaxed)
            .is_err()
        {
            // SAFETY: `handler` is from `into_raw` above, and nothing else uses it.
            drop(unsafe { Arc::from_raw(handler) });
            return Err(EBUSY);
        }
        // INVARIANT: `HANDLER` has been set above.
        let mut registration = Self {
            entry: None,
            // SAFETY: `into_raw` does not return null.
            handler: unsafe { NonNull::new_unchecked(handler) },
        };
        // From here on, `callback` and `directed` may be called, and find a `T` in `HANDLER`.
        registration.entry = Some(match builtin {
            Some(builtin) => Entry::Directed {
                _directed: builtin.direct(directed::<T>),
            },
            None => Entry::Listed {
                _listed: Listed::new(callback::<T>)?,
            },
        });
        Ok(registration)
    }
}

impl Listed {
    fn new(
        callback: unsafe extern "C" fn(c_uint, *mut bindings::pt_regs) -> c_int,
    ) -> Result<Self> {
        let action = KBox::pin(
            Opaque::new(bindings::nmiaction {
                handler: Some(callback),
                name: NAME.as_char_ptr(),
                ..pin_init::zeroed()
            }),
            GFP_KERNEL,
        )?;
        // SAFETY: `action` is initialised and pinned, and nothing else refers to it yet. An empty
        // list points to itself.
        unsafe {
            let list = &raw mut (*action.get()).list;
            (*list).next = list;
            (*list).prev = list;
        }
        // SAFETY: `action` is initialised, its list is empty, and it stays valid until `drop` has
        // unregistered it.
        to_result(unsafe { bindings::__register_nmi_handler(bindings::NMI_LOCAL, action.get()) })?;
        // INVARIANT: The action has just been registered.
        Ok(Self { _action: action })
    }
}

impl Drop for Listed {
    fn drop(&mut self) {
        // SAFETY: `NAME` is a valid C string. By the type invariant the entry of this name is
        // `_action`. The function waits (`synchronize_rcu()`) until no CPU runs the handler or
        // reads the entry.
        unsafe { bindings::unregister_nmi_handler(bindings::NMI_LOCAL, NAME.as_char_ptr()) };
    }
}

impl<T: Handler> Drop for Registration<T> {
    fn drop(&mut self) {
        // After this, no CPU is in the handler.
        self.entry = None;
        HANDLER.store(null_mut(), Release);
        // SAFETY: By the type invariant `handler` owns a reference, and `HANDLER` does not hold it
        // any more.
        drop(unsafe { Arc::from_raw(self.handler.as_ptr()) });
    }
}

/// The C side of [`Handler::handle`] for a handler with an entry of its own.
///
/// # Safety
///
/// To be called by the kernel, in an NMI, while a [`Registration<T>`] exists or is being made or
/// dropped.
unsafe extern "C" fn callback<T: Handler>(_type: c_uint, regs: *mut bindings::pt_regs) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { handle::<T>(regs, false) }
}

/// The C side of [`Handler::handle`] for a call from the built-in driver's handler, which measures
/// the time.
///
/// # Safety
///
/// As for [`callback`].
unsafe extern "C" fn directed<T: Handler>(regs: *mut bindings::pt_regs) -> c_int {
    // SAFETY: By this function's requirements.
    unsafe { handle::<T>(regs, true) }
}

/// Calls the handler.
///
/// # Safety
///
/// As for [`callback`].
#[inline(never)]
unsafe fn handle<T: Handler>(regs: *mut bindings::pt_regs, is_timed: bool) -> c_int {
    let handler: *const T = HANDLER.load(Acquire).cast();
    // SAFETY: `HANDLER` is set before the callbacks can be called, and reset when they cannot be
    // called any more. It holds a `T`: there is one registration at a time, which has set both the
    // callback and `HANDLER`.
    let handler = unsafe { &*handler };
    let nmi = NmiContext {
        regs,
        is_timed,
        _not_thread_safe: PhantomData,
    };
    handler.handle(&nmi) as c_int
}
