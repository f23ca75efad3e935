// SPDX-License-Identifier: GPL-2.0

//! The errno shown with a refusal is the one that the driver returns.

use rpmu_plan::logic::refusal::Refusal;
use rpmu_plan::open::Why;

#[test]
fn errnos_are_the_drivers() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../rust/driver/errors.rs");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, arms) = text.split_once("match refusal {").unwrap();
    let (arms, _) = arms.split_once("\n        }").unwrap();
    let errno_of = |name: &str| {
        let arm = arms.split_inclusive(',').find(|arm| {
            let mut words = arm.split(|letter: char| !(letter.is_alphanumeric() || letter == ':'));
            words.any(|word| word == format!("Refusal::{name}"))
        });
        let arm = arm.unwrap_or_else(|| panic!("{name} has no arm"));
        let (_, errno) = arm.split_once("=>").unwrap();
        errno
            .trim_matches(|letter: char| !letter.is_ascii_alphanumeric())
            .to_owned()
    };
    for refusal in [
        Refusal::OtherType,
        Refusal::CacheEventAbsent,
        Refusal::CacheEventImpossible,
        Refusal::HardwareEventAbsent,
        Refusal::NoSuchHardwareId,
        Refusal::AnyThreadAbsent,
        Refusal::AnyThreadNotPermitted,
        Refusal::ExtraRegisterAbsent,
        Refusal::ExtraRegisterValue,
        Refusal::ExtraRegisterTaken,
        Refusal::Precise,
        Refusal::PreciseBranches,
        Refusal::PreciseCounting,
        Refusal::PreciseGuestBranches,
        Refusal::NeverPrecise,
        Refusal::EveryBranch,
        Refusal::FieldAbsent,
        Refusal::RandomSeedAlone,
        Refusal::RandomCounting,
        Refusal::RandomFrequency,
        Refusal::RandomPrecise,
        Refusal::RandomMaskTooWide,
        Refusal::SwitchOfMember,
        Refusal::SwitchCounting,
        Refusal::SwitchPinned,
        Refusal::SwitchUntried,
        Refusal::LoadLatencyAlone,
        Refusal::TopdownFilter,
        Refusal::MetricSampling,
        Refusal::MetricWithoutSlots,
        Refusal::MetricOfSampledSlots,
        Refusal::TransactionFilter,
        Refusal::NoCounter,
    ] {
        let name = format!("{refusal:?}");
        assert_eq!(Why::Driver(refusal).errno(), errno_of(&name), "{name}");
    }
}
