use std::collections::HashMap;
use std::num::NonZeroU64;

use super::*;
use crate::units::GRANULE;

/// Returns a cheap seeded generator.
fn numbers(mut state: u64) -> impl FnMut() -> u64 {
    move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state >> 33
    }
}

fn add(table: &mut LiveTable, chunks: &mut ChunkTable, handle: Handle) {
    let address = chunks.get(handle).address;
    chunks.get_mut(handle).link = table.push(chunks, handle, address);
}

#[test]
fn agrees_with_the_standard_map_through_growth_and_removal() {
    let mut next = numbers(7);
    let mut table = LiveTable::default();
    let mut chunks = ChunkTable::default();
    let mut model: HashMap<u64, Handle> = HashMap::new();
    for step in 0..200_000_u64 {
        // Clustered addresses from a narrow range: runs of neighbours and many collisions.
        let address = (next() % 4096 + (next() % 3) * (1 << 24)) * GRANULE;
        assert_eq!(table.find(&chunks, address), model.get(&address).copied(), "step {step}");
        if let Some(handle) = model.remove(&address) {
            assert_eq!(table.remove(&mut chunks, address, FreeTarget::ANY), Some(handle), "step {step}");
            chunks.remove(handle);
        } else {
            assert_eq!(table.remove(&mut chunks, address, FreeTarget::ANY), None, "step {step}");
            let handle = chunks.insert(address, GRANULE);
            add(&mut table, &mut chunks, handle);
            model.insert(address, handle);
        }
        assert_eq!(table.len(), model.len());
    }
}

#[test]
fn another_allocation_at_the_address_is_not_removed() {
    let mut table = LiveTable::default();
    let mut chunks = ChunkTable::default();
    let handle = chunks.insert(512, GRANULE);
    chunks.get_mut(handle).id = NonZeroU64::new(2);
    add(&mut table, &mut chunks, handle);
    assert_eq!(table.remove(&mut chunks, 512, FreeTarget::number(NonZeroU64::MIN)), None);
    assert_eq!(table.len(), 1);
    assert_eq!(table.remove(&mut chunks, 512, FreeTarget::number(NonZeroU64::new(2).unwrap())), Some(handle));
    assert_eq!(table.find(&chunks, 512), None);
}
