use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;
use crate::policy::{Policy, SplitRule};
use crate::source::Grant;
use crate::tables::free_target::FreeTarget;
use crate::tables::pages::count;
use crate::tables::{Limit, Planned};
use crate::test_strategies::config;
use crate::units::{GRANULE, round_up};

pub(in crate::tables::elastic) const PAGE: u64 = 4 * GRANULE;
const RANGE: u64 = 128 * PAGE;
/// The start of the first range, a multiple of 8 pages and of no higher power of two: alignments above that count from
/// address 0 and not from the range.
const START: u64 = 1000 * PAGE;

/// One step of a random program.
#[derive(Debug, Clone, Copy)]
pub(in crate::tables::elastic) enum Step {
    Allocate(u64),
    Free(usize),
    GiveBack(u64),
}

pub(in crate::tables::elastic) fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1..10 * PAGE).prop_map(Step::Allocate),
        3 => any::<usize>().prop_map(Step::Free),
        1 => (0..40_u64).prop_map(Step::GiveBack),
    ]
}

/// Creates an elastic pool's tables with two ranges.
pub(in crate::tables::elastic) fn tables(limit: u64) -> Tables {
    let rule = SplitRule { policy: Policy::Tight, fraction: 0.0 };
    let mut tables = Tables::new(Limit { bytes: limit, set_by: "".into() }, true, rule, false);
    tables.set_elastic(Elastic::new(PAGE));
    for address in [START, START + 2 * RANGE] {
        tables.adopt_range(Grant { address, bytes: RANGE }, 0);
    }
    tables
}

pub(in crate::tables::elastic) fn play(tables: &mut Tables, steps: &[Step]) {
    let mut live = Vec::new();
    for &step in steps {
        match step {
            Step::Allocate(bytes) => {
                let request = ChunkRequest::for_chunk(bytes, round_up(bytes));
                match tables.plan_pages(request, bytes % 3 == 0) {
                    Planned::Served(allocation) => live.push(allocation.address),
                    Planned::Pages(plan) => {
                        let new = count(&plan.missing).saturating_sub(count(&plan.free));
                        live.push(tables.complete(&plan, new).expect("all pages have memory").address);
                    }
                    Planned::Addresses(..) | Planned::Freeing => {}
                }
            }
            Step::Free(_) if live.is_empty() => {}
            Step::Free(number) => {
                let address = live.swap_remove(number % live.len());
                tables.free(address, FreeTarget::ANY).expect("live");
            }
            Step::GiveBack(most) => {
                let given = count(&tables.take_free_pages(most));
                tables.count_decommits(given);
            }
        }
    }
}

/// The pages that an address range has a byte of.
fn pages_of(start: u64, end: u64) -> BTreeSet<u64> {
    (start / PAGE..end.div_ceil(PAGE)).collect()
}

/// Looks at each end of each hole, and at each page there.
fn choose_slowly(tables: &Tables, request: ChunkRequest, is_short: bool) -> Option<(u64, u64)> {
    let chunks: Vec<_> = tables.regions.iter().flat_map(|region| tables.chunks.run(region.first)).collect();
    let in_use = chunks.iter().filter(|(_, chunk)| !chunk.is_free());
    let touched: BTreeSet<u64> = in_use.flat_map(|(_, chunk)| pages_of(chunk.address, chunk.end())).collect();
    let room = (tables.limit / PAGE).saturating_sub(touched.len() as u64);
    let is_tight = is_short || touched.len() as u64 >= (tables.limit / 2).div_ceil(PAGE);
    let mut places = Vec::new();
    for &(handle, chunk) in chunks.iter().filter(|(_, chunk)| chunk.is_free()) {
        let hole = tables.hole(handle);
        let with_memory: BTreeSet<u64> =
            hole.committed.spans(hole.whole).flat_map(|span| span.first..span.end).collect();
        let ends_range = chunk.next.is_none();
        let (bytes, alignment) = (request.rounded(), request.alignment.max(GRANULE));
        let Some(last) = chunk.end().checked_sub(bytes) else { continue };
        let mut starts = vec![chunk.address.next_multiple_of(alignment)];
        if !ends_range {
            starts.push(last / alignment * alignment);
        }
        for (number, start) in starts.into_iter().enumerate() {
            if start < chunk.address || start > last {
                continue;
            }
            let new: BTreeSet<u64> = pages_of(start, start + bytes).difference(&touched).copied().collect();
            let missing = new.difference(&with_memory).count();
            if new.len() as u64 > room {
                continue;
            }
            let needs = if is_tight {
                (new.len(), usize::from(ends_range), missing)
            } else {
                (usize::from(ends_range), missing, new.len())
            };
            places.push((needs, chunk.size, chunk.address, number, start));
        }
    }
    places.into_iter().min().map(|(.., hole, _, start)| (hole, start))
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_place_is_the_one_that_a_look_at_each_page_finds(
        limit in 4..400_u64,
        steps in prop::collection::vec(step(), 0..120),
        bytes in 1..12 * PAGE,
        alignment in prop::sample::select(&[GRANULE, GRANULE, 2 * GRANULE, PAGE, 4 * PAGE]),
        is_short in any::<bool>(),
    ) {
        let mut tables = tables(limit * PAGE);
        play(&mut tables, &steps);
        prop_assert_eq!(tables.check_pages(), Ok(()));
        let request = ChunkRequest { alignment, ..ChunkRequest::for_chunk(bytes, round_up(bytes)) };
        // Of many holes the best is not always looked for.
        let holes = tables.bins.all_from(&tables.chunks, request.rounded());
        prop_assume!(is_short || holes.len() <= CANDIDATES);
        let chosen = tables.choose(request, is_short);
        let chosen = chosen.map(|(handle, place)| (tables.chunks.get(handle).address, place.start));
        prop_assert_eq!(chosen, choose_slowly(&tables, request, is_short));
    }
}
