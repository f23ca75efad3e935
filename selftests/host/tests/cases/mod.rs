// SPDX-License-Identifier: GPL-2.0

//! The number of random cases of a property.

use proptest::test_runner::Config;

/// Returns a configuration with `usual` cases, multiplied by RPMU_TIMES if the environment has it.
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
