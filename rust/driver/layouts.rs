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
/// structures; [`None`] if they are in no header and the running kernel has no BTF.
///
/// `trust` is the module parameter `trust_layouts`. If it is set and the running kernel's layouts
/// cannot be read, this function assumes the layouts for which the module was built.
///
/// Fails with `ENOEXEC`, insmod's error for a module of another kernel, and a line in the log, if a
/// layout differs, or if the layouts cannot be read and `trust` is not set. Fails with `ENOMEM` if
/// memory is short. Changes nothing. Process context.
// Not inlined: its stack frame must be gone when the perf core is called.
#[inline(never)]
pub(crate) fn check_layouts(trust: bool) -> Result<Option<builtin::Layout>> {
    let running = match Running::find() {
        Ok(running) => running,
        Err(error) if error == ENOMEM => return Err(error),
        Err(error) if trust => {
            pr_notice!(
                "the kernel's structures cannot be checked ({error:?}): with trust_layouts=1, rpmu \
                 assumes those that rpmu.ko was built for\n"
            );
            Running::as_built()
        }
        Err(error) => {
            pr_err!(
                "the kernel's structures cannot be checked ({error:?}): rpmu needs a kernel with \
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
