//! Random programs and random setups, each from one number.

use std::ops::Range;

use allotment::replay::Program;

use crate::reference::Setup;

const GIB: u64 = 1 << 30;

/// The smallest request over a capped source, in bytes.
///
/// TensorFlow never returns when such a source refuses 2304 bytes and the request is no larger: its tenth
/// less, rounded up, is 2304 again.
const SMALLEST_OVER_A_CAP: u64 = 2305;

/// A seeded stream of numbers (`SplitMix64`).
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The stream of the program with this number.
    pub(crate) fn of(seed: u64, number: usize) -> Self {
        Self(Self(seed ^ number as u64).next())
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a length")
    }

    fn in_range(&mut self, range: &Range<u64>) -> u64 {
        range.start + self.below(range.end - range.start)
    }

    /// True `times` times in a hundred.
    fn percent(&mut self, times: u64) -> bool {
        self.below(100) < times
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.index(from.len())]
    }

    /// Each power of two between the ends as likely as the next.
    fn log_uniform(&mut self, range: &Range<u64>) -> u64 {
        let power = self.in_range(&(u64::from(range.start.ilog2())..u64::from(range.end.ilog2()) + 1));
        let value = (1 << power) + self.below(1 << power);
        value.clamp(range.start, range.end - 1)
    }
}

/// Options and a source, over everything that can matter.
pub(crate) fn setup(random: &mut Random) -> Setup {
    // Most limits that come out of this are no multiple of the granule.
    let limit = random.log_uniform(&(1 << 10..8 * GIB));
    let limit = match random.below(4) {
        0 => limit.next_power_of_two(),
        1 => limit.next_multiple_of(256),
        _ => limit,
    };
    let share = random.in_range(&(30..110));
    Setup {
        limit,
        cap: if random.percent(30) { limit * share / 100 } else { u64::MAX / 4 },
        gap: random.pick(&[0, 0, 256, 4096, 1 << 20]),
        // Times the limit at least 1: below, TensorFlow splits off chunks of 0 bytes.
        fraction: random.pick(&[0.0, 0.0, 0.0, 0.001, 0.01, 0.05, 0.3, 1.0]),
        joins: random.percent(50),
        growth: random.percent(70),
        trim_on_oom: random.percent(50),
    }
}

/// How a program draws its sizes.
#[derive(Clone, Copy)]
enum Mix {
    LogUniform,
    /// Many of one small size, few of one large.
    Bimodal,
    /// A few bytes or granules off a power of two.
    OffBin,
    /// One of the three, drawn anew for each request.
    All,
}

struct Sizes {
    range: Range<u64>,
    mix: Mix,
    small: u64,
    large: u64,
}

impl Sizes {
    fn new(random: &mut Random, setup: &Setup) -> Self {
        let least = if setup.cap < setup.limit { SMALLEST_OVER_A_CAP } else { 1 };
        let shrunk = setup.limit >> random.below(10);
        let most = if random.percent(10) { GIB } else { shrunk.clamp(least + 256, GIB) };
        let range = least..most + 1;
        let (one, other) = (random.log_uniform(&range), random.log_uniform(&range));
        let mix = random.pick(&[Mix::LogUniform, Mix::Bimodal, Mix::OffBin, Mix::All]);
        Self { range, mix, small: one.min(other), large: one.max(other) }
    }

    fn next(&self, random: &mut Random) -> u64 {
        if random.below(500) == 0 {
            return 0;
        }
        let mix = match self.mix {
            Mix::All => random.pick(&[Mix::LogUniform, Mix::Bimodal, Mix::OffBin]),
            mix => mix,
        };
        let size = match mix {
            Mix::Bimodal if random.percent(15) => self.large + random.below(self.large / 8 + 1),
            Mix::Bimodal => self.small + random.below(self.small / 8 + 1),
            Mix::OffBin => {
                let unit = random.pick(&[1, 256]);
                let below = random.pick(&[0, 0, 1, 2, 3]);
                (1_u64 << random.log_uniform(&self.range).ilog2())
                    .saturating_add(random.below(4) * unit)
                    .saturating_sub(below * unit)
            }
            Mix::LogUniform | Mix::All => random.log_uniform(&self.range),
        };
        size.clamp(self.range.start, self.range.end - 1)
    }
}

/// A program of `events` events that fits the setup: its live bytes go up and down between nothing and more
/// than the limit.
pub(crate) fn program(random: &mut Random, setup: &Setup, events: usize) -> Program {
    let sizes = Sizes::new(random, setup);
    let (mut ops, mut ids, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    let mut live: Vec<(i64, u64)> = Vec::new();
    let mut live_bytes = 0;
    let (mut target, mut phase_end) = (0, 0);
    // Which of the live blocks goes: any, one of the newest, or one of the oldest.
    let order = random.below(3);
    for event in 0..events {
        if event == phase_end {
            phase_end += 50 + random.index(2000);
            target = setup.limit / 100 * random.pick(&[0, 10, 40, 70, 90, 98, 110]);
        }
        let allocates = live.is_empty() || random.percent(if live_bytes < target { 70 } else { 30 });
        let (op, (id, size)) = if allocates {
            let block = (i64::try_from(event).expect("a count of events"), sizes.next(random));
            live.push(block);
            live_bytes += block.1;
            (1, block)
        } else {
            let near = random.index(live.len().min(8));
            let index = match order {
                0 => random.index(live.len()),
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
