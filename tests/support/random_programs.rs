//! Random programs and random setups, each from one number.

use std::ops::Range;

use allotment::replay::Program;

use crate::numbers::Numbers;
use crate::reference::Setup;

const GIB: u64 = 1 << 30;

/// The smallest request over a capped source, in bytes.
///
/// TensorFlow never returns if such a source declines 2304 bytes and the request is no larger: a tenth less, rounded
/// up, is 2304 again.
const SMALLEST_OVER_A_CAP: u64 = 2305;

/// Returns the stream of the program with this number.
pub(crate) fn numbers(seed: u64, number: usize) -> Numbers {
    Numbers::one_of(seed, number as u64)
}

fn pick<T: Copy>(random: &mut Numbers, from: &[T]) -> T {
    from[random.place(from.len())]
}

/// Returns a number in the range; all powers of two are equally likely.
fn log_uniform(random: &mut Numbers, range: &Range<u64>) -> u64 {
    let (lowest, highest) = (range.start.ilog2(), range.end.ilog2());
    let power = 1 << (u64::from(lowest) + random.below(u64::from(highest - lowest) + 1));
    (power + random.below(power)).clamp(range.start, range.end - 1)
}

/// Returns options and a source, over everything that can matter.
pub(crate) fn setup(random: &mut Numbers) -> Setup {
    // Most of these limits are not multiples of the granule.
    let limit = log_uniform(random, &(1 << 10..8 * GIB));
    let limit = match random.below(4) {
        0 => limit.next_power_of_two(),
        1 => limit.next_multiple_of(256),
        _ => limit,
    };
    let share = 30 + random.below(80);
    Setup {
        limit,
        cap: if random.chance(30) { limit * share / 100 } else { u64::MAX / 4 },
        gap: pick(random, &[0, 0, 256, 4096, 1 << 20]),
        // Times the limit at least 1: below that, TensorFlow splits off chunks of 0 bytes.
        fraction: pick(random, &[0.0, 0.0, 0.0, 0.001, 0.01, 0.05, 0.3, 1.0]),
        joins: random.chance(50),
        growth: random.chance(70),
        trim_on_oom: random.chance(50),
        ..Setup::NO_REFUSALS
    }
}

/// The distribution of a program's sizes.
#[derive(Clone, Copy)]
enum Mix {
    LogUniform,
    /// Many of one small size, few of one large size.
    Bimodal,
    /// A few bytes or granules off a power of two.
    OffBin,
    /// One of the three, chosen for each request.
    All,
}

struct Sizes {
    range: Range<u64>,
    mix: Mix,
    small: u64,
    large: u64,
}

impl Sizes {
    fn new(random: &mut Numbers, setup: &Setup) -> Self {
        let least = if setup.cap < setup.limit { SMALLEST_OVER_A_CAP } else { 1 };
        let shrunk = setup.limit >> random.below(10);
        let most = if random.chance(10) { GIB } else { shrunk.clamp(least + 256, GIB) };
        let range = least..most + 1;
        let (one, other) = (log_uniform(random, &range), log_uniform(random, &range));
        let mix = pick(random, &[Mix::LogUniform, Mix::Bimodal, Mix::OffBin, Mix::All]);
        Self { range, mix, small: one.min(other), large: one.max(other) }
    }

    fn next(&self, random: &mut Numbers) -> u64 {
        if random.below(500) == 0 {
            return 0;
        }
        let mix = match self.mix {
            Mix::All => pick(random, &[Mix::LogUniform, Mix::Bimodal, Mix::OffBin]),
            mix => mix,
        };
        let size = match mix {
            Mix::Bimodal if random.chance(15) => self.large + random.below(self.large / 8 + 1),
            Mix::Bimodal => self.small + random.below(self.small / 8 + 1),
            Mix::OffBin => {
                let unit = pick(random, &[1, 256]);
                let below = pick(random, &[0, 0, 1, 2, 3]);
                (1_u64 << log_uniform(random, &self.range).ilog2())
                    .saturating_add(random.below(4) * unit)
                    .saturating_sub(below * unit)
            }
            Mix::LogUniform | Mix::All => log_uniform(random, &self.range),
        };
        size.clamp(self.range.start, self.range.end - 1)
    }
}

/// Generates a program of `events` events for the setup: its live bytes go up and down between zero and more than the
/// limit.
pub(crate) fn program(random: &mut Numbers, setup: &Setup, events: usize) -> Program {
    let mut sizes = Sizes::new(random, setup);
    let (mut ops, mut ids, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut live: Vec<(i64, u64)> = Vec::new();
    let mut live_bytes = 0;
    let (mut target, mut resolve, mut phase_end) = (0, 0, 0);
    // The live block to free: any, one of the newest, or one of the oldest.
    let order = random.below(3);
    for event in 0..events {
        if event == phase_end {
            phase_end += 50 + random.place(2000);
            // Other sizes fit badly into the freed memory, so regions are released.
            if random.chance(40) {
                sizes = Sizes::new(random, setup);
            }
            // The percentage of steps towards the target: the last value really empties the pool.
            resolve = pick(random, &[60, 70, 95]);
            target = setup.limit / 100 * pick(random, &[0, 10, 40, 70, 90, 98, 110]);
        }
        let allocates = live.is_empty() || random.chance(resolve) == (live_bytes < target);
        let (op, (id, size)) = if allocates {
            let block = (i64::try_from(event).expect("a count of events"), sizes.next(random));
            live.push(block);
            live_bytes += block.1;
            (1, block)
        } else {
            let near = random.place(live.len().min(8));
            let index = match order {
                0 => random.place(live.len()),
                1 => live.len() - 1 - near,
                _ => near,
            };
            let block = live.swap_remove(index);
            live_bytes -= block.1;
            (2, block)
        };
        ops.push(op);
        ids.push(id);
        bytes.push(size.cast_signed());
    }
    Program::from_columns(&ops, &ids, &bytes).expect("every free has its allocation")
}
