// SPDX-License-Identifier: GPL-2.0

//! The comparison of the running kernel's structures with those that the module was built for.

use crate::{
    kern::layout::{
        Mismatch,
        Running, //
    },
    x86::builtin, //
};
use kernel::prelude::*;

/// Checks all layouts on which the module relies. Returns the layouts of the built-in driver's
/// structures.
///
/// `trust` is a module parameter: if the running kernel has no BTF, assumes the layouts for which
/// the module was built.
///
/// Fails with `ENOEXEC`, the error for a module that was built for another kernel, and logs the
/// difference, or fails with `ENOMEM`. Changes nothing. Process context.
// Not inlined, so that the frame is gone when the perf core is called.
#[inline(never)]
pub(crate) fn check_layouts(trust: bool) -> Result<Option<builtin::Layout>> {
    let running = match Running::find() {
        Ok(running) => running,
        Err(error) if error == ENOMEM => return Err(error),
        Err(error) if trust => {
            pr_notice!(
                "the kernel's structures cannot be checked ({error:?}): trust_layouts=1 takes them as \
                 rpmu.ko was built\n"
            );
            Running::as_built()
        }
        Err(error) => {
            pr_err!(
                "the kernel's structures cannot be checked ({error:?}): it takes a kernel with \
                 CONFIG_DEBUG_INFO_BTF, CONFIG_KPROBES and CONFIG_KALLSYMS_ALL, or trust_layouts=1 if \
                 rpmu.ko was built from exactly this kernel's source and configuration\n"
            );
            return Err(ENOEXEC);
        }
    };
    running.compare().map_err(refuse)?;
    match builtin::Layout::find(&running) {
        Ok(layout) => Ok(Some(layout)),
        Err(_) if !running.is_known() => Ok(None),
        Err(mismatch) => Err(refuse(mismatch)),
    }
}

fn refuse(mismatch: Mismatch) -> Error {
    pr_err!(
        "{}; build rpmu.ko for this kernel\n",
        format_args!("{mismatch}")
    );
    ENOEXEC
}
