//! Arbitrary bytes as a program for a pool and its shadow.
//!
//! The first bytes define the options and the source; each further seven bytes are a step. Every byte string is a
//! program; missing bytes at its end are zeros.

use allotment::{MAX_BYTES, Options, Policy};
use arbitrary::{Arbitrary, Result, Unstructured};

use crate::misbehaving::{Habits, Misdeed, Place};
use crate::numbers::Numbers;
use crate::program::{self, ALLOCATES, KINDS, Mark, Size, Step};
use crate::run::{Pace, Tally, run};
use crate::setup::{Kind, Setup};

/// The full state is compared after this many events.
const EVERY: u64 = 32;

/// From this value on, a program holds many allocations, most of one size.
const MANY: usize = 224;

/// The minimum of those.
const CROWD: usize = 128;

/// The most bytes granted by a source whose grants lie anywhere.
const SCATTERED_UP_TO: u64 = 1 << 40;

/// Runs the program that the bytes define.
///
/// # Panics
/// If the pool differs from its shadow.
pub(crate) fn play(bytes: &[u8]) -> Tally {
    let mut bytes = Unstructured::new(bytes);
    let (setup, pace) = head(&mut bytes).expect("what is missing is zeros");
    let steps = std::iter::from_fn(|| {
        (!bytes.is_empty()).then(|| step(&mut bytes, pace).expect("what is missing is zeros"))
    });
    run(&setup, steps, pace)
}

/// Generates bytes for a program of `steps` steps that alternates between phases of much and little free memory.
pub(crate) fn fresh(random: &mut Numbers, steps: usize, into: &mut Vec<u8>) {
    into.clear();
    while into.len() < HEAD {
        into.extend_from_slice(&random.next().to_le_bytes());
    }
    into.truncate(HEAD);
    let (mut eager, mut left) = (0, 0);
    for _ in 0..steps {
        if left == 0 {
            eager = [30, 50, 55, 60, 75, 95][random.place(6)];
            left = 1 + random.place(200);
        }
        left -= 1;
        let allocates = random.chance(eager);
        let [kind, rest @ ..] = random.next().to_le_bytes();
        let kind = if allocates { kind % ALLOCATES } else { ALLOCATES + kind % (KINDS - ALLOCATES) };
        into.push(kind);
        into.extend_from_slice(&rest[..6]);
    }
}

/// Bytes that [`head`] reads: limit, switches, fraction, habits, seed.
const HEAD: usize = 10 + 4 + 4 + 8 + 8;

fn head(bytes: &mut Unstructured<'_>) -> Result<(Setup, Pace)> {
    let limit = limit(bytes)?;
    let [switches, fraction, live, place]: [u8; 4] = bytes.arbitrary()?;
    let options = Options::new(limit)
        .growth(switches & 1 == 0)
        .trim_on_oom(switches & 2 == 0)
        .joins_regions([None, None, Some(true), Some(false)][usize::from((switches >> 2) & 3)])
        .policy(if switches & 0x30 == 0x30 { Policy::Tight } else { Policy::TensorFlow })
        .fragmentation_fraction(self::fraction(bytes, fraction)?);
    let habits = habits(bytes, limit, place)?;
    let setup = Setup { kind: Kind::Misbehaving(habits), seed: bytes.arbitrary()?, options };
    Ok((setup, Pace { every: EVERY, most_live: most_live(live) }))
}

/// Returns the most live allocations: usually tens, which is fast; sometimes enough to fill a bin.
fn most_live(part: u8) -> usize {
    let part = usize::from(part);
    if part < MANY { 2 + part % 62 } else { CROWD + (part - MANY) * 16 }
}

/// Returns a limit, usually of a few regions, else any valid one.
fn limit(bytes: &mut Unstructured<'_>) -> Result<u64> {
    let [kind, shift]: [u8; 2] = bytes.arbitrary()?;
    let number = u64::arbitrary(bytes)?;
    let power = match kind % 16 {
        0 => u32::from(shift % 63),
        1..5 => 8 + u32::from(shift % 13),
        _ => 20 + u32::from(shift % 4),
    };
    let most = (1 << power) + (number & ((1 << power) - 1));
    let limit = match kind / 16 % 4 {
        0 => 1 << power,
        1 => most / 256 * 256,
        2 => (1 << power) + number % 257,
        _ => most,
    };
    Ok(limit.clamp(1, MAX_BYTES))
}

/// Returns no fraction, a fraction that often matters, or any number from 0 to 1.
fn fraction(bytes: &mut Unstructured<'_>, kind: u8) -> Result<f64> {
    let number = u32::arbitrary(bytes)?;
    Ok(match kind % 8 {
        0..3 => 0.0,
        3 => [0.001, 0.01, 0.05, 0.3, 1.0, 1e-12, f64::MIN_POSITIVE, 0.5][number as usize % 8],
        4 => f64::from(number) / f64::from(u32::MAX),
        _ => f64::from(number) / f64::from(u32::MAX) / f64::from(1_u32 << (kind / 8)),
    })
}

fn habits(bytes: &mut Unstructured<'_>, limit: u64, place: u8) -> Result<Habits> {
    let gap = 256 * [0, 0, 1, 16, 4096][usize::from(place / 4) % 5];
    let place = match place % 4 {
        0 | 1 => Place::Ascending { gap },
        2 => Place::Descending { gap },
        _ if limit <= SCATTERED_UP_TO => Place::Scattered,
        _ => Place::Ascending { gap },
    };
    let [cap, largest, nth, misdeed, often, panics]: [u8; 6] = bytes.arbitrary()?;
    let misdeeds = u16::arbitrary(bytes)?;
    let nth_misdeed = Misdeed::ALL[usize::from(misdeed) % Misdeed::ALL.len()];
    Ok(Habits {
        place,
        cap: share(limit, cap),
        largest: share(limit, largest),
        nth: (nth % 2 == 1).then(|| (u64::from(nth / 2) % 32, nth_misdeed)),
        // Half of the sources rarely misbehave.
        often: often.saturating_sub(128),
        // One kind of misdeed, or any mixture.
        misdeeds: if panics < 128 { 1 << (misdeeds % 11) } else { misdeeds },
        panics_at_release: u64::from(panics % 16).saturating_sub(8),
    })
}

/// Returns no cap, or a fraction of the limit plus a little.
fn share(limit: u64, part: u8) -> u64 {
    if part < 128 { u64::MAX } else { limit / 128 * u64::from(part - 127) + u64::from(part) }
}

fn step(bytes: &mut Unstructured<'_>, pace: Pace) -> Result<Step> {
    let kind = u8::arbitrary(bytes)? % KINDS;
    let (a, b) = (u32::arbitrary(bytes)?, u16::arbitrary(bytes)?);
    Ok(match program::step(kind, a, b) {
        // Many chunks of one size share a bin.
        Step::Allocate { alignment, call, .. } if pace.most_live >= CROWD && !b.is_multiple_of(16) => {
            Step::Allocate { size: Size::Near { of: Mark::Newest, halvings: 0, more: 0 }, alignment, call }
        }
        step => step,
    })
}
