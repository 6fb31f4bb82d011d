//! The smallest limits of recorded programs, beside the peak of what they request.

use allotment::replay::{Event, play, replay};
use allotment::source::AddressSpace;
use allotment::{Options, Pool};

use crate::traces::all;

/// How far above the peak of live bytes a limit may be, in thousandths of it.
fn most(page_size: u64, peak: u64) -> Option<u64> {
    match page_size {
        0x1000 if peak >= 64 << 20 => Some(5),
        0x1_0000 if peak >= 64 << 20 => Some(20),
        0x20_0000 if peak >= 256 << 20 => Some(50),
        0x20_0000 if peak >= 64 << 20 => Some(120),
        _ => None,
    }
}

#[test]
fn a_limit_close_to_the_peak_completes() {
    let mut judged = 0;
    for trace in all() {
        // Rounding to granules is lost in every pool.
        let peak = trace.program.peak_in_granules();
        for page_size in [4 << 10, 64 << 10, 2 << 20] {
            let Some(most) = most(page_size, peak) else { continue };
            let limit = (peak + peak / 1000 * most) / page_size * page_size;
            let options = Options::new(limit).elastic(true).page_size(page_size);
            let refused = replay(&trace.program, &options, 0, None).expect("replayable").refused;
            assert_eq!(refused, 0, "{}: limit {limit}, peak {peak}, pages of {page_size}", trace.name);
            judged += 1;
        }
    }
    assert!(judged >= 6);
}

#[test]
fn little_more_than_the_peak_is_committed_at_an_ample_limit() {
    for trace in all() {
        let peak = trace.program.peak_in_granules();
        for page_size in [64 << 10, 2 << 20] {
            let options = Options::new(1 << 40).elastic(true).page_size(page_size);
            let stats = replay(&trace.program, &options, 0, None).expect("replayable").stats;
            let most = peak + peak / 50 + page_size * trace.program.slots() as u64;
            assert!(stats.peak_reserved <= most, "{}: {} of {most}", trace.name, stats.peak_reserved);
        }
    }
}

#[test]
fn the_second_half_of_a_program_commits_hardly_any_page() {
    for trace in all() {
        for page_size in [64 << 10, 2 << 20] {
            let options = Options::new(1 << 40).elastic(true).page_size(page_size);
            let pool = Pool::new(AddressSpace::new(0), options).expect("valid");
            let events = trace.program.events();
            let half = events.len() / 2;
            let mut commits = 0;
            let outcome = play(&pool, &trace.program, |event, _| {
                if event == half {
                    commits = pool.stats().expect("usable").num_commits;
                }
            });
            let commits = outcome.expect("replayable").stats.num_commits - commits;
            let pages: u64 = events[half..]
                .iter()
                .map(|event| match event {
                    Event::Allocate { bytes, .. } => bytes.div_ceil(page_size),
                    Event::Free { .. } => 0,
                })
                .sum();
            assert!(
                commits * 1000 <= pages.max(1000),
                "{}: {commits} of {pages} pages of {page_size}",
                trace.name
            );
        }
    }
}
#[test]
#[ignore]
fn print_figures() {
    for trace in all() {
        let peak = trace.program.peak_in_granules();
        if peak < 20 << 20 {
            continue;
        }
        for page_size in [64 << 10, 2 << 20] {
            let options = Options::new(1 << 40).elastic(true).page_size(page_size);
            let pool = Pool::new(AddressSpace::new(0), options.clone()).expect("valid");
            let events = trace.program.events();
            let half = events.len() / 2;
            let mut commits = 0;
            let outcome = play(&pool, &trace.program, |event, _| {
                if event == half {
                    commits = pool.stats().expect("usable").num_commits;
                }
            })
            .unwrap();
            let commits = outcome.stats.num_commits - commits;
            let pages: u64 = events[half..]
                .iter()
                .map(|event| match event {
                    Event::Allocate { bytes, .. } => bytes.div_ceil(page_size),
                    Event::Free { .. } => 0,
                })
                .sum();
            let plain = replay(&trace.program, &Options::new(1 << 40), 0, None).unwrap();
            let again = replay(&trace.program, &options, 0, None).unwrap();
            // smallest limit
            let mut limit = peak / page_size * page_size;
            while replay(&trace.program, &options.clone().limit(limit), 0, None).unwrap().refused > 0
            {
                limit += page_size.max(peak / 2000 / page_size * page_size);
            }
            println!(
                "{:34} {:8} half2 {:7.4}% all {:7.4}% reserved {:.3} of allowed, time {:5.1} plain {:5.1} ratio {:.2} min {:.4}",
                trace.name,
                page_size,
                commits as f64 * 100.0 / pages as f64,
                outcome.stats.num_commits as f64 * page_size as f64 / peak as f64,
                outcome.stats.peak_reserved as f64
                    / (peak as f64 * 1.02 + (page_size * trace.program.slots() as u64) as f64),
                again.nanoseconds_per(events.len()),
                plain.nanoseconds_per(events.len()),
                again.nanoseconds_per(events.len()) / plain.nanoseconds_per(events.len()),
                limit as f64 / peak as f64
            );
        }
    }
}

#[test]
#[ignore]
fn one_replay() {
    for trace in all().iter().filter(|t| t.name.contains("tf_eager_gan")) {
        let options = Options::new(1 << 40).elastic(true).page_size(2 << 20);
        replay(&trace.program, &options, 0, None).unwrap();
    }
}
