use std::collections::HashMap;

use super::*;

/// A cheap, seeded stream of numbers.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

#[test]
fn agrees_with_the_standard_map_through_growth_and_removal() {
    let mut next = numbers(7);
    let mut table = LiveTable::default();
    let mut model: HashMap<u64, Handle> = HashMap::new();
    let mut by_number: Vec<u64> = Vec::new();
    for step in 0..200_000_u64 {
        // A narrow range of addresses in clusters: long runs of neighbours and many collisions.
        let address = (next() % 4096 + (next() % 3) * (1 << 24)) * GRANULE;
        if let Some(&handle) = model.get(&address) {
            let found = table.find(address, |h| by_number[h.get() as usize - 1] == address);
            assert_eq!(found, Some(handle), "step {step}");
            let removed = table.remove(address, |h| by_number[h.get() as usize - 1] == address);
            assert_eq!(removed, Some(handle), "step {step}");
            model.remove(&address);
        } else {
            assert_eq!(table.find(address, |h| by_number[h.get() as usize - 1] == address), None);
            by_number.push(address);
            let handle = Handle::new(u32::try_from(by_number.len()).unwrap()).unwrap();
            table.insert(address, handle);
            model.insert(address, handle);
        }
        assert_eq!(table.len(), model.len());
    }
}

#[test]
fn a_shared_tag_is_not_a_shared_address() {
    let mut table = LiveTable::default();
    table.insert(512, Handle::new(1).unwrap());
    assert_eq!(table.find(512, |_| false), None);
    assert_eq!(table.remove(512, |_| false), None);
    assert_eq!(table.len(), 1);
}
