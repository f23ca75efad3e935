// SPDX-License-Identifier: GPL-2.0

//! Converting the reasons of `rust/logic` to the kernel's errors.

use crate::logic::{
    pmu::Unsupported,
    refusal::{
        Errno,
        Refusal, //
    },
};
use kernel::{
    error::code::*,
    prelude::*, //
};

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        match refusal.errno() {
            Errno::NoEntry => ENOENT,
            Errno::Access => EACCES,
            Errno::NoData => ENODATA,
            Errno::NoAddress => ENXIO,
            Errno::Busy => EBUSY,
            Errno::NoDevice => ENODEV,
            Errno::NotSupported => EOPNOTSUPP,
            Errno::Invalid => EINVAL,
        }
    }
}

impl From<Unsupported> for Error {
    fn from(_: Unsupported) -> Error {
        ENODEV
    }
}
