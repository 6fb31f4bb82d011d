use alloc::vec::Vec;

use proptest::prelude::*;

use super::super::choosing::tests::{PAGE, Step, play, step, tables};
use super::*;
use crate::tables::free_target::FreeTarget;
use crate::test_strategies::config;
use crate::units::{GRANULE, round_up};

/// The allocations of a pool that can be freed: address and number.
fn freeable(tables: &Tables) -> Vec<(u64, u64)> {
    let chunks = tables.regions.iter().flat_map(|region| tables.chunks.run(region.first));
    let freeable = chunks.filter(|(_, chunk)| !chunk.is_free() && !chunk.is_held());
    freeable.map(|(_, chunk)| (chunk.address, chunk.number())).collect()
}

/// Plays a program, of which some allocations are held at the end.
fn played(limit: u64, steps: &[Step], held: u64) -> Tables {
    let mut tables = tables(limit * PAGE);
    play(&mut tables, steps);
    for (place, (address, _)) in freeable(&tables).into_iter().enumerate() {
        if held >> (place % 64) & 1 > 0 {
            tables.set_held(address, true);
        }
    }
    tables
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn a_plan_is_found_whenever_frees_serve(
        limit in 4..60_u64,
        steps in prop::collection::vec(step(), 0..80),
        held in prop_oneof![Just(0), any::<u64>(), (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a & b)],
        bytes in 1..30 * PAGE,
        alignment in prop::sample::select(&[GRANULE, GRANULE, 2 * GRANULE, PAGE, 4 * PAGE]),
        from_source in 0..20_u64,
        grants_addresses in any::<bool>(),
    ) {
        let request = ChunkRequest { alignment, ..ChunkRequest::for_chunk(bytes, round_up(bytes)) };
        let supply = Supply::new(from_source * PAGE, 0, true).with_addresses(grants_addresses);
        let serves = |freed: &dyn Fn(u64) -> bool| {
            let mut tables = played(limit, &steps, held);
            for (address, number) in freeable(&tables) {
                if freed(number) {
                    tables.free(address, FreeTarget::ANY).expect("live");
                }
            }
            tables.would_serve(request, true, supply)
        };
        let tables = played(limit, &steps, held);
        let plan = tables.plan_frees_for(request, true, supply);
        if serves(&|_| false) {
            prop_assert_eq!(plan, None);
            return Ok(());
        }
        prop_assert_eq!(plan.is_some(), serves(&|_| true));
        let Some(plan) = plan else { return Ok(()) };
        prop_assert!(serves(&|number| plan.allocations.contains(&number)), "{:?}", plan);
    }
}
