// SPDX-License-Identifier: GPL-2.0

//! How many random cases a property is tried with.

use proptest::test_runner::Config;

/// `usual` many, or RPMU_TIMES as many where the environment has that: for a night's run.
pub(crate) fn cases(usual: u32) -> Config {
    let times = match std::env::var("RPMU_TIMES") {
        Ok(times) => times.parse().expect("RPMU_TIMES is a number"),
        Err(_) => 1,
    };
    Config {
        cases: usual * times,
        failure_persistence: None,
        ..Config::default()
    }
}
