// SPDX-License-Identifier: GPL-2.0

use super::*;

const LOADS: CacheEvent = CacheEvent::new(Cache::L1d, Operation::Read, Outcome::Access, 0x81d0);
const TABLE: CacheEvents = CacheEvents::checked(&[
    LOADS,
    CacheEvent::new(Cache::Node, Operation::Write, Outcome::Miss, 0x01b7).offcore(0x2),
]);

fn get(events: CacheEvents, config: u64) -> Result<(u64, u64), NoCacheEvent> {
    let (select, config1) = events.get(CacheId::from_config(config).unwrap())?;
    Ok((select.bits(), config1))
}

#[test]
fn ids_and_configs_agree() {
    let mut ids = 0;
    for config in 0..=0xf_ffff {
        if let Some(id) = CacheId::from_config(config) {
            assert_eq!(id.config(), config);
            ids += 1;
        }
    }
    assert_eq!(ids, 7 * 3 * 2);
    // All bits above the third byte are ignored.
    assert_eq!(
        CacheId::from_config(0xff00_0000_0101_0206),
        CacheId::from_config(0x01_0206)
    );
    assert_eq!(CacheId::from_config(7), None);
    assert_eq!(CacheId::from_config(0x300), None);
    assert_eq!(CacheId::from_config(0x2_0000), None);
}

#[test]
fn found_absent_and_impossible() {
    assert_eq!(get(TABLE, 0), Ok((0x81d0, 0)));
    assert_eq!(get(TABLE, 0x1_0106), Ok((0x01b7, 0x2)));
    assert_eq!(get(TABLE, 0x1_0000), Err(NoCacheEvent::Absent));
    for config in [0x0101, 0x1_0101, 0x0104, 0x0204, 0x0105, 0x1_0205] {
        assert_eq!(get(TABLE, config), Err(NoCacheEvent::Impossible));
        assert_eq!(get(CacheEvents::NONE, config), Err(NoCacheEvent::Absent));
    }
    assert_eq!(get(TABLE, 0x0201), Err(NoCacheEvent::Absent));
}

#[test]
fn changes_replace_events() {
    const CHANGED: CacheEvents = TABLE.with(&[
        CacheEvent::new(Cache::L1d, Operation::Read, Outcome::Access, 0xf1d0),
        CacheEvent::impossible(Cache::Node, Operation::Write, Outcome::Miss),
    ]);
    assert_eq!(get(CHANGED, 0), Ok((0xf1d0, 0)));
    assert_eq!(get(CHANGED, 0x1_0106), Err(NoCacheEvent::Impossible));
}

#[test]
#[should_panic(expected = "a cache event twice")]
fn check_refuses_an_id_twice() {
    CacheEvents::checked(&[LOADS, LOADS]);
}
