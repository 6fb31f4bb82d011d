//! How full is the memory at the first refusal, compared with other allocators?
//!
//! Random programs that hold more and more: two allocations per free of a random one, until the first refusal. The
//! result is the ratio of live requested bytes to the limit. All allocators get the same programs; ours and
//! TensorFlow's must give the same result, if it is there. Allocators without a limit are left out.
//!
//! ```text
//! cargo bench --features oracle --bench fill
//! ```

use allotment::replay::Event;

mod peers;
mod table;

#[allow(dead_code, reason = "random programs use the rest")]
#[path = "../../tests/support/numbers.rs"]
mod numbers;
#[path = "../../tests/support/oracle.rs"]
mod reference;

use numbers::Numbers;
use peers::{Contender, Held, Ours, Script};
use table::Table;

const LIMIT: u64 = 1 << 30;
const SEEDS: u64 = 10;

/// The distribution of a program's sizes.
struct Mix {
    name: &'static str,
    draw: fn(&mut Numbers) -> u64,
}

const MIXES: [Mix; 5] = [
    Mix { name: "256 B to 64 KiB, doublings alike", draw: |numbers| log_uniform(numbers, 8, 16) },
    Mix { name: "4 KiB to 16 MiB, doublings alike", draw: |numbers| log_uniform(numbers, 12, 24) },
    Mix { name: "1 B to 4 MiB, sizes alike", draw: |numbers| 1 + numbers.below(4 << 20) },
    Mix {
        name: "nine of 1 to 16 KiB, one of 8 to 16 MiB",
        draw: |numbers| {
            if numbers.chance(90) { log_uniform(numbers, 10, 14) } else { log_uniform(numbers, 23, 24) }
        },
    },
    Mix {
        name: "powers of two and one byte more, 1 KiB to 8 MiB",
        draw: |numbers| (1 << (10 + numbers.below(14))) + numbers.below(2),
    },
];

fn main() {
    let mut contenders = peers::contenders();
    // Blocks are in the same places as allocations.
    contenders.retain(|contender| contender.has_limit && contender.name != peers::BLOCKS);
    let theirs = contenders.iter().position(|contender| contender.name == peers::TENSORFLOW);
    contenders.push(Contender {
        name: "ours, fragmentation_fraction just above 0",
        has_limit: true,
        make: |limit| Box::new(Held::new(Ours::splitting(limit))),
    });
    let mut columns = vec!["per cent of the limit, mean (least)"];
    columns.extend(contenders.iter().map(|contender| contender.name));
    let mut table = Table::new("fill", &columns);
    for mix in &MIXES {
        let programs: Vec<_> = (0..SEEDS).map(|seed| program(mix, seed)).collect();
        let filled = |contender: &Contender| -> Vec<u64> {
            programs.iter().map(|program| filled(contender, program)).collect()
        };
        let all: Vec<_> = contenders.iter().map(filled).collect();
        if let Some(theirs) = theirs {
            assert_eq!(all[0], all[theirs], "ours and TensorFlow's decide alike");
        }
        let cells = all.iter().map(|each| {
            let mean = each.iter().sum::<u64>() / each.len() as u64;
            let least = each.iter().copied().min().unwrap_or(0);
            format!("{:.1} ({:.1})", per_cent(mean), per_cent(least))
        });
        let cells: Vec<_> = std::iter::once(mix.name.to_owned()).chain(cells).collect();
        table.row(&cells);
    }
}

/// Returns the live bytes at the first refusal.
fn filled(contender: &Contender, program: &Script) -> u64 {
    let refused = contender.make(LIMIT).play_until_refused(program).expect("more than the limit holds");
    let mut held = vec![0; refused];
    for event in &program.events()[..refused] {
        match *event {
            Event::Allocate { slot, bytes } => held[slot as usize] = bytes,
            Event::Free { slot } => held[slot as usize] = 0,
        }
    }
    held.iter().sum()
}

/// Generates a program until more is live than the limit holds.
fn program(mix: &Mix, seed: u64) -> Script {
    let mut numbers = Numbers::new(seed);
    let (mut events, mut live) = (Vec::new(), Vec::new());
    let (mut next, mut live_bytes) = (0, 0);
    while live_bytes <= LIMIT {
        if numbers.below(3) == 0 && !live.is_empty() {
            let (slot, bytes) = live.swap_remove(numbers.place(live.len()));
            events.push(Event::Free { slot });
            live_bytes -= bytes;
        } else {
            let bytes = (mix.draw)(&mut numbers);
            events.push(Event::Allocate { slot: next, bytes });
            live.push((next, bytes));
            live_bytes += bytes;
            next += 1;
        }
    }
    Script::new(events)
}

/// Returns a number between 2^`low` and 2^`high`; all powers of two are equally likely.
fn log_uniform(numbers: &mut Numbers, low: u64, high: u64) -> u64 {
    let doubling = 1 << (low + numbers.below(high - low));
    doubling + numbers.below(doubling)
}

#[allow(clippy::cast_precision_loss, reason = "for people")]
fn per_cent(bytes: u64) -> f64 {
    100.0 * bytes as f64 / LIMIT as f64
}
