// SPDX-License-Identifier: GPL-2.0

//! Tests that `data/events` equals the current output of `data/convert` for the kernel's lists.

use std::path::Path;
use std::process::Command;

#[test]
fn the_events_are_those_of_the_kernel() {
    let Some(kernel) = std::env::var_os("KERNEL_SOURCE") else {
        eprintln!("not compared: KERNEL_SOURCE is not set");
        return;
    };
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("data");
    let committed = std::fs::read_to_string(data.join("events")).unwrap();
    let converted = Command::new(data.join("convert"))
        .arg(kernel)
        .output()
        .unwrap();
    assert!(
        converted.status.success(),
        "{}",
        String::from_utf8_lossy(&converted.stderr)
    );
    // Ignore the date and the kernel's release.
    let body = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| !line.starts_with("# Source"))
            .map(str::to_owned)
            .collect()
    };
    let converted = body(&String::from_utf8(converted.stdout).unwrap());
    let committed = body(&committed);
    assert_eq!(committed.len(), converted.len());
    for (ours, theirs) in committed.iter().zip(&converted) {
        assert_eq!(
            ours, theirs,
            "tools/data/events is out of date: run make plan-events"
        );
    }
}
