// SPDX-License-Identifier: GPL-2.0

use super::*;
use PebsData::{
    Address,
    Load,
    LoadLatency,
    None,
    Store,
    StoreAddress,
    StoreLatency, //
};

const MODELS: [DataSources; 7] = [
    DataSources::NEHALEM,
    DataSources::WESTMERE,
    DataSources::SANDY_BRIDGE,
    DataSources::SKYLAKE,
    DataSources::SKYLAKE_SERVER,
    DataSources::GOLDEN_COVE,
    DataSources::GRACEMONT,
];

/// The accesses of mainline's `get_data_src()` for a field of the record, on each of [`MODELS`].
struct Case(PebsData, u64, [u64; 7]);

#[rustfmt::skip]
const CASES: &[Case] = &[
    Case(None, 0x0, [0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021]),
    Case(None, 0x1, [0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021]),
    Case(LoadLatency, 0x0, [0x6_0508_0082, 0x106_6808_0082, 0x106_6808_0082, 0x106_6808_0082, 0x106_6808_0082, 0x106_6808_0082, 0x106_6808_0082]),
    Case(LoadLatency, 0x1, [0x2_0510_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142]),
    Case(LoadLatency, 0x2, [0x18_0510_0242, 0x118_6810_0242, 0x118_6810_0242, 0x118_6810_0242, 0x118_6810_0242, 0x118_6810_0242, 0x118_6810_0242]),
    Case(LoadLatency, 0x3, [0x4_0510_0442, 0x104_6810_0442, 0x104_6810_0442, 0x104_6810_0442, 0x104_6810_0442, 0x104_6810_0442, 0x104_6810_0442]),
    Case(LoadLatency, 0x4, [0x6_0510_0842, 0x106_6810_0842, 0x106_6810_0842, 0x106_6810_0842, 0x106_6810_0842, 0x106_6810_0842, 0x106_6810_0842]),
    Case(LoadLatency, 0x5, [0x6_0520_0842, 0x106_6820_0842, 0x106_6840_0842, 0x106_6840_0842, 0x106_6840_0842, 0x106_6840_0842, 0x106_6820_0842]),
    Case(LoadLatency, 0x6, [0x6_0580_0842, 0x106_6880_0842, 0x106_6820_0842, 0x106_6820_0842, 0x106_6820_0842, 0x106_6820_0842, 0x106_6880_0842]),
    Case(LoadLatency, 0x7, [0x6_0580_0842, 0x106_6880_0842, 0x106_6880_0842, 0x106_6880_0842, 0x106_6880_0842, 0x106_6880_0842, 0x106_6880_0842]),
    Case(LoadLatency, 0x8, [0x26_0520_8042, 0x126_6820_8042, 0x126_6820_8042, 0x108_6820_0042, 0x11c_6820_0042, 0x11c_6820_0042, 0x146_6800_0842]),
    Case(LoadLatency, 0x9, [0x26_0580_8042, 0x126_6880_8042, 0x126_6880_8042, 0x128_6820_0042, 0x13c_6820_0042, 0x13c_6820_0042, 0x126_6880_8042]),
    Case(LoadLatency, 0xa, [0x1a_0520_1042, 0x11a_6820_1042, 0x11a_6820_1042, 0x11a_6820_1042, 0x11a_6820_1042, 0x11a_6820_1042, 0x11a_6820_1042]),
    Case(LoadLatency, 0xb, [0x26_0520_2042, 0x126_6820_2042, 0x126_6820_2042, 0x13a_6810_0042, 0x13a_6810_0042, 0x13a_6810_0042, 0x126_6820_2042]),
    Case(LoadLatency, 0xc, [0x1a_0550_1042, 0x11a_6850_1042, 0x11a_6850_1042, 0x176_6800_0042, 0x176_6800_0042, 0x176_6800_0042, 0x11a_6850_1042]),
    Case(LoadLatency, 0xd, [0x3a_0550_2042, 0x13a_6850_2042, 0x13a_6850_2042, 0x136_6880_0042, 0x136_6880_0042, 0x136_6880_0042, 0x13a_6850_2042]),
    Case(LoadLatency, 0xe, [0x1e_0512_0042, 0x11e_6812_0042, 0x11e_6812_0042, 0x11e_6812_0042, 0x11e_6812_0042, 0x11e_6812_0042, 0x11e_6812_0042]),
    Case(LoadLatency, 0xf, [0x1e_0514_0042, 0x11e_6814_0042, 0x11e_6814_0042, 0x11e_6814_0042, 0x11e_6814_0042, 0x11e_6814_0042, 0x11e_6814_0042]),
    Case(LoadLatency, 0x11, [0x2_0510_0142, 0x102_5010_0142, 0x102_5010_0142, 0x102_5010_0142, 0x102_5010_0142, 0x102_5010_0142, 0x102_6a10_0142]),
    Case(LoadLatency, 0x21, [0x2_0510_0142, 0x102_6a10_0142, 0x102_6a10_0142, 0x102_6a10_0142, 0x102_6a10_0142, 0x102_6a10_0142, 0x102_5010_0142]),
    Case(LoadLatency, 0x31, [0x2_0510_0142, 0x102_5210_0142, 0x102_5210_0142, 0x102_5210_0142, 0x102_5210_0142, 0x102_5210_0142, 0x102_5210_0142]),
    Case(LoadLatency, 0x41, [0x2_0510_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142, 0x202_6810_0142, 0x202_6810_0142]),
    Case(LoadLatency, 0x81, [0x2_0510_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142, 0x102_6810_0142, 0x402_6810_0142, 0x102_6810_0142]),
    Case(LoadLatency, 0xf1, [0x2_0510_0142, 0x102_5210_0142, 0x102_5210_0142, 0x102_5210_0142, 0x102_5210_0142, 0x602_5210_0142, 0x202_5210_0142]),
    Case(StoreLatency, 0x0, [0x106_6808_0084, 0x106_6808_0084, 0x106_6808_0084, 0x106_6808_0084, 0x106_6808_0084, 0x106_6808_0084, 0x106_6808_0084]),
    Case(StoreLatency, 0x1, [0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144]),
    Case(StoreLatency, 0x12, [0x118_5010_0244, 0x118_5010_0244, 0x118_5010_0244, 0x118_5010_0244, 0x118_5010_0244, 0x118_5010_0244, 0x118_6a10_0244]),
    Case(StoreLatency, 0x24, [0x106_6a10_0844, 0x106_6a10_0844, 0x106_6a10_0844, 0x106_6a10_0844, 0x106_6a10_0844, 0x106_6a10_0844, 0x106_5010_0844]),
    Case(StoreLatency, 0x38, [0x126_5220_8044, 0x126_5220_8044, 0x126_5220_8044, 0x108_5220_0044, 0x11c_5220_0044, 0x11c_5220_0044, 0x146_5200_0844]),
    Case(StoreLatency, 0xc1, [0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x102_6810_0144, 0x202_6810_0144]),
    Case(Store, 0x0, [0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184]),
    Case(Store, 0x1, [0x4808_0144, 0x4808_0144, 0x4808_0144, 0x4808_0144, 0x4808_0144, 0x4808_0144, 0x4808_0144]),
    Case(Store, 0x10, [0x5008_0184, 0x5008_0184, 0x5008_0184, 0x5008_0184, 0x5008_0184, 0x5008_0184, 0x5008_0184]),
    Case(Store, 0x20, [0x4a08_0184, 0x4a08_0184, 0x4a08_0184, 0x4a08_0184, 0x4a08_0184, 0x4a08_0184, 0x4a08_0184]),
    Case(Store, 0x31, [0x5208_0144, 0x5208_0144, 0x5208_0144, 0x5208_0144, 0x5208_0144, 0x5208_0144, 0x5208_0144]),
    Case(Store, 0xce, [0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184, 0x4808_0184]),
    Case(Load, 0x0, [0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022]),
    Case(Load, 0x1, [0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022, 0x1e_0508_0022]),
    Case(StoreAddress, 0x0, [0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184]),
    Case(StoreAddress, 0x1, [0x1e_0508_0144, 0x1e_0508_0144, 0x1e_0508_0144, 0x1e_0508_0144, 0x1e_0508_0144, 0x1e_0508_0144, 0x1e_0508_0144]),
    Case(StoreAddress, 0xfe, [0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184, 0x1e_0508_0184]),
    Case(Address, 0x0, [0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021]),
    Case(Address, 0x1, [0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021, 0x1e_0508_0021]),
];

#[test]
fn accesses_are_mainlines() {
    for Case(data, field, accesses) in CASES {
        for (model, (sources, access)) in MODELS.iter().zip(accesses).enumerate() {
            let found = sources.data_src(*data, *field);
            assert_eq!(
                found, *access,
                "{data:?} {field:#x}, model {model}: {found:#x}"
            );
        }
    }
}

#[test]
fn models_differ_in_load_latencies_alone() {
    for data in [None, Store, Load, StoreAddress, Address] {
        for field in 0..0x100 {
            let first = MODELS[0].data_src(data, field);
            assert!(MODELS
                .iter()
                .all(|model| model.data_src(data, field) == first));
        }
    }
}

/// The field of a record may have any value: unknown bits have no effect.
#[test]
fn reserved_bits_change_nothing() {
    for sources in MODELS {
        for data in [
            None,
            LoadLatency,
            StoreLatency,
            Store,
            Load,
            StoreAddress,
            Address,
        ] {
            for field in 0..0x100 {
                let access = sources.data_src(data, field);
                for reserved in 8..64 {
                    assert_eq!(sources.data_src(data, field | (1 << reserved)), access);
                }
            }
        }
    }
}
