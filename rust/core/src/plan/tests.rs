use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

use super::*;
use crate::test_strategies::config;

fn overlaps(one: &Buffer, other: &Buffer) -> bool {
    one.start < other.end && other.start < one.end
}

/// Returns the smallest arena: some order of placing each buffer as low as possible finds it.
fn smallest_arena(buffers: &[Buffer], alignment: u64) -> u64 {
    fn place(buffers: &[Buffer], alignment: u64, placed: &mut Vec<(usize, u64)>, best: &mut u64) {
        if placed.len() == buffers.len() {
            let end = |&(buffer, offset): &(usize, u64)| offset + rounded(buffers[buffer].bytes, alignment);
            *best = (*best).min(placed.iter().map(end).max().unwrap_or(0));
            return;
        }
        for (index, buffer) in buffers.iter().enumerate() {
            if placed.iter().any(|&(other, _)| other == index) {
                continue;
            }
            let size = rounded(buffer.bytes, alignment);
            let mut taken: Vec<_> = placed
                .iter()
                .filter(|&&(other, _)| overlaps(&buffers[other], buffer))
                .map(|&(other, offset)| (offset, offset + rounded(buffers[other].bytes, alignment)))
                .collect();
            taken.sort_unstable();
            let mut offset = 0;
            for (start, end) in taken {
                if start >= offset + size {
                    break;
                }
                offset = offset.max(end);
            }
            placed.push((index, offset));
            place(buffers, alignment, placed, best);
            placed.pop();
        }
    }
    let mut best = u64::MAX;
    place(buffers, alignment, &mut Vec::new(), &mut best);
    best
}

/// Returns the most live bytes, moment by moment.
fn peak(buffers: &[Buffer], alignment: u64) -> u64 {
    let live = |time| {
        let alive = buffers.iter().filter(|buffer| buffer.start <= time && time < buffer.end);
        alive.map(|buffer| rounded(buffer.bytes, alignment)).sum()
    };
    buffers.iter().map(|buffer| live(buffer.start)).max().unwrap_or(0)
}

fn buffers(count: std::ops::Range<usize>, times: u64, sizes: u64) -> impl Strategy<Value = Vec<Buffer>> {
    let buffer = (1..=sizes, 0..times, 1..=times).prop_map(|(bytes, start, length)| Buffer {
        bytes,
        start,
        end: start + length,
    });
    vec(buffer, count).prop_map(|mut buffers| {
        buffers.sort_by_key(|buffer| buffer.start);
        buffers
    })
}

/// Searches without a limit on time.
fn thorough() -> Effort {
    Effort::default().time(Duration::from_secs(3600)).steps(200_000)
}

fn below(random: &mut clock::Random, bound: u64) -> u64 {
    random.below(usize::try_from(bound).expect("small")) as u64
}

/// Returns buffers that fill an arena without a gap: six bands, cut in two again and again. No moment divides them.
fn cut(seed: u64, pieces: usize) -> Vec<Buffer> {
    let random = &mut clock::Random::new(seed);
    let (size, time) = (1 << 20, 1 << 12);
    let mut open: Vec<_> = (0..6).map(|band| (band * size / 6, (band + 1) * size / 6, 0, time)).collect();
    while open.len() < pieces {
        let (low, high, start, end) = open.swap_remove(random.below(open.len()));
        let across = if high - low < 2 { false } else { end - start < 2 || random.below(2) == 0 };
        if across {
            let at = low + 1 + below(random, high - low - 1);
            open.extend([(low, at, start, end), (at, high, start, end)]);
        } else if end - start >= 2 {
            let at = start + 1 + below(random, end - start - 1);
            open.extend([(low, high, start, at), (low, high, at, end)]);
        } else {
            open.push((low, high, start, end));
        }
    }
    open.sort_by_key(|piece| piece.2);
    open.into_iter().map(|(low, high, start, end)| Buffer { bytes: high - low, start, end }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..config() })]

    #[test]
    fn few_buffers_get_the_smallest_arena(buffers in buffers(1..7, 9, 9), alignment in prop::sample::select(&[1, 2, 4])) {
        let found = plan(buffers.clone(), alignment, &thorough(), |_| true).expect("valid");
        prop_assert_eq!(found.lower_bound(), peak(&buffers, alignment));
        prop_assert_eq!(found.arena(), smallest_arena(&buffers, alignment));
        prop_assert!(found.is_optimal());
    }

    #[test]
    fn branch_and_bound_knows_what_fits(buffers in buffers(1..7, 7, 9)) {
        let (blocks, _) = sections::to_blocks(&buffers, 1);
        let mut go_on = |_| true;
        let mut clock = clock::Clock::new(&thorough(), 0, &mut go_on);
        for part in sections::parts(&blocks) {
            let members: Vec<_> = part.members.iter().map(|&member| buffers[member as usize]).collect();
            let smallest = smallest_arena(&members, 1);
            let neighbours = neighbours::Neighbours::listed(&part.blocks);
            let mut search = exact::Exact::new(&part, &neighbours);
            for keys in orders::ORDERS {
                let order = orders::order(&part, keys);
                let mut answer = |capacity| search.search(capacity, &order, u64::MAX, &mut clock);
                prop_assert_eq!(answer(smallest), exact::Answer::Fits);
                prop_assert_eq!(answer(smallest - 1), exact::Answer::Impossible);
            }
        }
    }

    #[test]
    fn a_plan_keeps_what_lives_at_the_same_time_apart(buffers in buffers(0..60, 40, 1000)) {
        let found = plan(buffers.clone(), 1, &thorough().steps(5_000), |_| true).expect("valid");
        let ranges: Vec<_> = found.offsets().iter().zip(&buffers).map(|(&offset, buffer)| offset..offset + buffer.bytes).collect();
        for (one, other) in (0..buffers.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let apart = ranges[one].end <= ranges[other].start || ranges[other].end <= ranges[one].start;
            prop_assert!(apart || !overlaps(&buffers[one], &buffers[other]), "buffers {one} and {other}");
        }
        prop_assert_eq!(found.arena(), ranges.iter().map(|range| range.end).max().unwrap_or(0));
        prop_assert!(found.lower_bound() == peak(&buffers, 1) && found.arena() >= found.lower_bound());
    }

    #[test]
    fn the_check_finds_each_overlap(buffers in buffers(1..12, 9, 9), offsets in vec(0..40_u64, 12)) {
        let offsets = &offsets[..buffers.len()];
        let range = |index: usize| offsets[index]..offsets[index] + buffers[index].bytes;
        let pairs = || (0..buffers.len()).flat_map(|one| (0..one).map(move |other| (one, other)));
        let expected = pairs().any(|(one, other)| {
            let apart = range(one).end <= range(other).start || range(other).end <= range(one).start;
            !apart && overlaps(&buffers[one], &buffers[other])
        });
        match Plan::new(buffers.clone(), offsets.to_vec(), 1) {
            Ok(_) => prop_assert!(!expected),
            Err(PlanError::Overlap { first, second, offset }) => {
                prop_assert!(expected && overlaps(&buffers[first], &buffers[second]));
                prop_assert!(range(first).contains(&offset) && range(second).contains(&offset));
            }
            Err(other) => prop_assert!(false, "{other}"),
        }
    }

    #[test]
    fn sections_overlap_as_lifetimes_do(buffers in buffers(1..30, 20, 9)) {
        let (blocks, count) = sections::to_blocks(&buffers, 1);
        for (one, other) in (0..buffers.len()).flat_map(|one| (0..one).map(move |other| (one, other))) {
            let share = blocks[one].from < blocks[other].to && blocks[other].from < blocks[one].to;
            prop_assert_eq!(share, overlaps(&buffers[one], &buffers[other]));
        }
        prop_assert_eq!(sections::totals(&blocks, count).into_iter().max(), Some(peak(&buffers, 1)));
        let neighbours = neighbours::Neighbours::listed(&blocks);
        let pairs: usize = (0..blocks.len()).map(|block| neighbours.list(block).len()).sum();
        prop_assert_eq!(pairs as u64, 2 * neighbours::count_pairs(&blocks));
    }

    #[test]
    fn lists_and_tree_find_the_same_neighbours(buffers in buffers(1..40, 30, 9), placed in vec(any::<bool>(), 40)) {
        let (blocks, _) = sections::to_blocks(&buffers, 1);
        let (lists, mut tree) = (neighbours::Neighbours::listed(&blocks), neighbours::Neighbours::searched(&blocks));
        for block in (0..blocks.len()).filter(|&block| placed[block]) {
            tree.place(&blocks, block);
        }
        for block in (0..blocks.len()).filter(|&block| !placed[block]) {
            let mut listed: Vec<_> = lists.list(block).iter().map(|&other| other as usize).filter(|&other| placed[other]).collect();
            let mut found = Vec::new();
            tree.visit(&blocks, block, |other| found.push(other));
            listed.sort_unstable();
            found.sort_unstable();
            prop_assert_eq!(listed, found);
        }
    }
}

#[test]
fn arenas_that_buffers_can_fill_are_nearly_found() {
    let mut full = 0;
    for seed in 0..6 {
        let effort = Effort::default().time(Duration::from_secs(60)).steps(2_000_000);
        let found = plan(cut(seed, 150), 1, &effort, |_| true).expect("valid");
        assert_eq!(found.lower_bound(), 1 << 20, "every moment is full");
        assert!(found.arena() <= (1 << 20) / 100 * 105, "seed {seed}: {}", found.arena());
        full += u32::from(found.arena() == 1 << 20);
    }
    assert!(full >= 4, "{full} of 6 are full");
}

#[test]
fn the_same_steps_find_the_same_plan() {
    let buffers = cut(9, 120);
    let effort = Effort::default().time(Duration::from_secs(3600)).steps(100_000);
    let one = plan(buffers.clone(), 1, &effort, |_| true);
    assert_eq!(one, plan(buffers, 1, &effort, |_| true));
}

#[test]
fn a_search_ends_when_it_is_told_to() {
    let buffers = cut(1, 400);
    let found = plan(buffers.clone(), 1, &Effort::default(), |progress| {
        assert_eq!(progress.lower_bound, 1 << 20);
        false
    });
    assert_eq!(found.err(), Some(PlanError::Stopped));
    // No time at all still finds a plan.
    assert!(plan(buffers, 1, &Effort::default().time(Duration::ZERO), |_| true).is_ok());
}

#[test]
fn numbers_out_of_range_are_refused() {
    let ok = Buffer { bytes: 1, start: 0, end: 1 };
    let refused = |buffers: &[Buffer], offsets: &[u64], alignment| {
        Plan::new(buffers.to_vec(), offsets.to_vec(), alignment).expect_err("invalid")
    };
    assert_eq!(refused(&[ok], &[0], 3), PlanError::Alignment { alignment: 3 });
    assert_eq!(refused(&[ok], &[], 1), PlanError::Lengths { buffers: 1, offsets: 0 });
    assert_eq!(refused(&[Buffer { bytes: 0, ..ok }], &[0], 1), PlanError::Size { buffer: 0, bytes: 0 });
    assert_eq!(
        refused(&[Buffer { end: 0, ..ok }], &[0], 1),
        PlanError::Lifetime { buffer: 0, start: 0, end: 0 }
    );
    assert_eq!(refused(&[ok], &[1], 2), PlanError::Misaligned { buffer: 0, offset: 1, alignment: 2 });
    assert_eq!(refused(&[ok], &[u64::MAX], 1), PlanError::TooLarge { buffer: 0 });
    let later = Buffer { start: 1, end: 2, ..ok };
    assert_eq!(refused(&[later, ok], &[0, 0], 1), PlanError::Order { buffer: 1 });
    let huge = Buffer { bytes: crate::MAX_BYTES, ..ok };
    let many = vec![huge; 300];
    assert!(matches!(plan(many, 256, &thorough(), |_| true), Err(PlanError::TooLarge { .. })));
}
