// SPDX-License-Identifier: GPL-2.0

//! Tests that the names of errnos match the kernel errors that the driver returns.

use rpmu_plan::logic::refusal::Errno;

#[test]
fn the_driver_returns_the_errno_that_is_named() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../rust/driver/errors.rs");
    let text = std::fs::read_to_string(path).unwrap();
    for errno in [
        Errno::NoEntry,
        Errno::Access,
        Errno::NoData,
        Errno::NoAddress,
        Errno::Busy,
        Errno::NoDevice,
        Errno::NotSupported,
        Errno::Invalid,
    ] {
        let arm = format!("Errno::{errno:?} => {},", errno.name());
        assert!(text.contains(&arm), "{arm}");
    }
}
