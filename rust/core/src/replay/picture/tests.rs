//! Pictures against lists of all blocks, and grids against the area of each cell computed on its own.

#![expect(clippy::cast_precision_loss, reason = "events and addresses of tests are small")]

use proptest::prelude::*;

use super::{BlockSpan, Detail, Picture, picture};
use crate::options::Options;
use crate::replay::{Event, Program, replay};

const WHOLE: Detail =
    Detail { events: 0..usize::MAX, points: usize::MAX, blocks: usize::MAX, columns: 7, rows: 5 };

fn draw(program: &Program, limit: u64, detail: &Detail) -> Picture {
    picture(program, &Options::new(limit), 0, detail).unwrap()
}

/// A program of allocations of up to 64 KiB and frees of the block that each number names.
fn program(steps: &[(bool, u16)]) -> Program {
    let (mut ops, mut ids, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    let mut live: Vec<(i64, i64)> = Vec::new();
    for (number, &(frees, value)) in (0_i64..).zip(steps) {
        let (op, (id, size)) = if frees && !live.is_empty() {
            (2, live.swap_remove(usize::from(value) % live.len()))
        } else {
            live.push((number, i64::from(value)));
            (1, (number, i64::from(value)))
        };
        ops.push(op);
        ids.push(id);
        sizes.push(size);
    }
    Program::from_columns(&ops, &ids, &sizes).unwrap()
}

/// All blocks with an address, from the offsets of an ordinary replay.
fn all_blocks(program: &Program, limit: u64) -> Vec<(usize, Option<usize>, i64, u64)> {
    let mut offsets = vec![0; program.events().len()];
    replay(program, &Options::new(limit), 0, Some(&mut offsets)).unwrap();
    let mut open: Vec<Option<usize>> = vec![None; program.slots()];
    let mut found = Vec::new();
    for (number, event) in program.events().iter().enumerate() {
        match *event {
            Event::Allocate { slot, bytes } if offsets[number] >= 0 => {
                open[slot as usize] = Some(found.len());
                found.push((number, None, offsets[number], bytes));
            }
            Event::Allocate { .. } => {}
            Event::Free { slot } => {
                if let Some(place) = open[slot as usize].take() {
                    found[place].1 = Some(number);
                }
            }
        }
    }
    found
}

proptest! {
    #[test]
    fn every_block_is_shown_where_the_replay_puts_it(
        steps in prop::collection::vec((any::<bool>(), any::<u16>()), 1..200),
        limit in (1_u64..64).prop_map(|granules| granules << 14),
    ) {
        let program = program(&steps);
        let drawn = draw(&program, limit, &WHOLE);
        let shown: Vec<_> = drawn
            .blocks
            .iter()
            .map(|block| (block.start, block.end, block.offset.cast_signed(), block.requested))
            .collect();
        let all = all_blocks(&program, limit);
        prop_assert_eq!(&shown, &all);
        let plain = replay(&program, &Options::new(limit), 0, None).unwrap();
        prop_assert_eq!(drawn.outcome.refused, plain.refused);
        prop_assert_eq!(drawn.outcome.first_refused, plain.first_refused);
        prop_assert_eq!(drawn.refusals.len() as u64, plain.refused);
        prop_assert_eq!(drawn.outcome.stats, plain.stats);
        // The curve is the sum of the blocks that are live.
        let mut peak = (0, None);
        for point in &drawn.points {
            let live = |&&(start, end, ..): &&(usize, Option<usize>, i64, u64)| {
                start <= point.event && end.is_none_or(|end| end > point.event)
            };
            let sum: u64 = all.iter().filter(live).map(|&(.., bytes)| bytes).sum();
            prop_assert_eq!((point.least_live, point.most_live), (sum, sum));
            if peak.1.is_none() || sum > peak.0 {
                peak = (sum, Some(point.event));
            }
        }
        prop_assert_eq!(drawn.peak, peak.1);
        prop_assert_eq!(drawn.at_peak.iter().map(|block| block.requested).sum::<u64>(), peak.0);
        let requested = drawn.sizes.iter().map(|&(count, _)| count).sum::<u64>();
        let requests = program.events().iter().filter(|event| matches!(event, Event::Allocate { .. })).count();
        prop_assert_eq!(requested, requests as u64);
    }

    #[test]
    fn less_detail_keeps_the_largest_areas_and_shades_the_rest(
        steps in prop::collection::vec((any::<bool>(), 1..u16::MAX), 1..120),
        kept in 0_usize..20,
        points in 1_usize..30,
        cut in (0_usize..60, 1_usize..60),
    ) {
        let program = program(&steps);
        let events = cut.0..cut.0 + cut.1;
        let whole = draw(&program, 1 << 40, &Detail { events: events.clone(), ..WHOLE });
        let less = draw(&program, 1 << 40, &Detail { events, blocks: kept, points, ..WHOLE });
        prop_assert_eq!(less.shade.blocks() + less.blocks.len() as u64, whole.blocks.len() as u64);
        prop_assert_eq!(less.blocks.len(), kept.min(whole.blocks.len()));
        prop_assert_eq!(&less.at_peak, &whole.at_peak);
        prop_assert_eq!((less.peak, less.top, less.sizes), (whole.peak, whole.top, whole.sizes));
        let area = |block: &BlockSpan| block.area(&whole.events);
        let rest: Vec<_> = whole.blocks.iter().filter(|block| !less.blocks.contains(block)).collect();
        let smallest = less.blocks.iter().map(area).min().unwrap_or(u128::MAX);
        prop_assert!(rest.iter().all(|block| area(block) <= smallest));
        // Each cell on its own: the overlaps of its rectangle with all blocks that are not shown.
        let cells = less.shade.cells();
        let (width, height) = (whole.events.len() as f64 / 7.0, whole.top as f64 / 5.0);
        prop_assert!(!whole.events.is_empty() || cells.iter().all(|&cell| cell == 0));
        for (number, &cell) in cells.iter().enumerate().filter(|_| !whole.events.is_empty()) {
            let (column, row) = ((number % 7) as f64, (number / 7) as f64);
            let share: f64 = rest
                .iter()
                .map(|block| {
                    let start = block.start.max(whole.events.start) - whole.events.start;
                    let end = block.end.unwrap_or(usize::MAX).min(whole.events.end) - whole.events.start;
                    let x = (end as f64).min((column + 1.0) * width) - (start as f64).max(column * width);
                    let y = ((block.offset + block.size) as f64).min((row + 1.0) * height)
                        - (block.offset as f64).max(row * height);
                    x.max(0.0) * y.max(0.0) / (width * height)
                })
                .sum();
            let wanted = if share < 1e-9 { 0.0 } else { (share * 255.0).clamp(1.0, 255.0) };
            prop_assert!((f64::from(cell) - wanted).abs() <= 1.01, "cell {number}: {cell} not {wanted}");
        }
        // Points are the extremes of the events in between.
        let mut fine = whole.points.iter().peekable();
        for point in &less.points {
            let mut group: Vec<&super::Point> = Vec::new();
            while fine.peek().is_some_and(|one| one.event <= point.event) {
                group.extend(fine.next());
            }
            let live = group.iter().map(|one| one.most_live);
            prop_assert_eq!(point.most_live, live.clone().max().unwrap());
            prop_assert_eq!(point.least_live, live.min().unwrap());
            prop_assert_eq!(point.most_reserved, group.iter().map(|one| one.most_reserved).max().unwrap());
            prop_assert_eq!(point.largest_free, group.last().unwrap().largest_free);
        }
        prop_assert!(fine.next().is_none() && less.points.len() <= points);
    }
}

#[test]
fn a_program_without_events_has_an_empty_picture() {
    let drawn = draw(&Program::default(), 1 << 20, &WHOLE);
    assert_eq!((drawn.points.len(), drawn.blocks.len(), drawn.peak, drawn.top), (0, 0, None, 0));
    assert!(drawn.shade.cells().iter().all(|&cell| cell == 0));
}
