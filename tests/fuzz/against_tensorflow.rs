//! Arbitrary bytes as a program for a pool and for TensorFlow's allocator.
//!
//! The first bytes define the options and the source, as far as both sides support them; each further five bytes are
//! an event, whose size is relative to the pool's state. Every byte string is a program; missing bytes at its end are
//! zeros.

use allotment::replay::Event;
use allotment::{GRANULE, Stats};
use arbitrary::{Arbitrary, Result, Unstructured};

use crate::compare::{Compared, Ours};
use crate::numbers::Numbers;
use crate::reference::Setup;

/// TensorFlow keeps a table proportional to a region: a small limit makes a fast program.
const MOST: u64 = 64 << 20;

/// From this value on, a program holds many allocations, most of one size.
const MANY: usize = 224;

/// The minimum of those.
const CROWD: usize = 128;

/// Bytes that [`head`] reads: limit, cap, largest grant, refusals, switches, fraction, slots.
const HEAD: usize = 6 + 1 + 1 + 9 + 2 + 4 + 1;

/// Runs the program that the bytes define.
///
/// # Panics
/// If the two sides differ, with the first difference.
pub(crate) fn play(bytes: &[u8]) -> Compared {
    let mut bytes = Unstructured::new(bytes);
    let (setup, slots) = head(&mut bytes).expect("what is missing is zeros");
    let mut program = Program::new(&setup, slots);
    while !bytes.is_empty() {
        if program.event(&mut bytes).expect("what is missing is zeros").is_none() {
            break;
        }
    }
    let Program { ours, played, .. } = program;
    ours.judge(&played).unwrap_or_else(|difference| panic!("{difference}"))
}

/// Generates bytes for a program of `events` events that alternates between phases of much and little free memory.
pub(crate) fn fresh(random: &mut Numbers, events: usize, into: &mut Vec<u8>) {
    into.clear();
    while into.len() < HEAD {
        into.extend_from_slice(&random.next().to_le_bytes());
    }
    into.truncate(HEAD);
    let (mut eager, mut left) = (0, 0);
    for _ in 0..events {
        if left == 0 {
            eager = [20, 45, 55, 60, 75, 95][random.place(6)];
            left = 1 + random.place(200);
        }
        left -= 1;
        let [_, which, rest @ ..] = random.next().to_le_bytes();
        into.push(u8::from(!random.chance(eager)) | which << 1);
        into.extend_from_slice(&rest[..4]);
    }
}

fn head(bytes: &mut Unstructured<'_>) -> Result<(Setup, usize)> {
    let limit = limit(bytes)?;
    let [cap, largest]: [u8; 2] = bytes.arbitrary()?;
    let share =
        |part: u8| if part < 160 { None } else { Some(limit / 96 * u64::from(part - 159) + u64::from(part)) };
    let refused = u64::arbitrary(bytes)?;
    let refused = match u8::arbitrary(bytes)? % 8 {
        0 => refused,
        1 => refused & refused.rotate_left(7),
        2 => refused & refused.rotate_left(7) & refused.rotate_left(23),
        3 => 1 << (refused % 64),
        _ => 0,
    };
    let [switches, gap]: [u8; 2] = bytes.arbitrary()?;
    let setup = Setup {
        limit,
        cap: share(cap).unwrap_or(Setup::NO_REFUSALS.cap),
        largest: share(largest).unwrap_or(Setup::NO_REFUSALS.largest),
        refused,
        gap: [0, 0, 256, 4096, 1 << 20][usize::from(gap) % 5],
        fraction: fraction(bytes, limit, switches >> 3)?,
        joins: switches & 1 == 0,
        growth: switches & 2 == 0,
        trim_on_oom: switches & 4 == 0,
    };
    Ok((setup, slots(u8::arbitrary(bytes)?)))
}

/// Returns the most live allocations: usually tens; sometimes enough to fill a bin.
fn slots(part: u8) -> usize {
    let part = usize::from(part);
    if part < MANY { 2 + part % 62 } else { CROWD + (part - MANY) * 16 }
}

/// Returns a limit from 1 byte to the maximum, usually of a few regions.
fn limit(bytes: &mut Unstructured<'_>) -> Result<u64> {
    let [kind, shift]: [u8; 2] = bytes.arbitrary()?;
    let number = u64::from(u32::arbitrary(bytes)?);
    let power = match kind % 16 {
        0 => u32::from(shift % 26),
        1..5 => 8 + u32::from(shift % 13),
        _ => 20 + u32::from(shift % 3),
    };
    let most = (1 << power) + number % (1 << power);
    let limit = match kind / 16 % 4 {
        0 => 1 << power,
        1 => most / GRANULE * GRANULE,
        2 => (1 << power) + number % 257,
        _ => most,
    };
    Ok(limit.clamp(1, MOST))
}

/// Returns no fraction, or one of at least a byte of the limit: below that, TensorFlow splits off chunks of 0 bytes.
fn fraction(bytes: &mut Unstructured<'_>, limit: u64, kind: u8) -> Result<f64> {
    let number = u32::arbitrary(bytes)?;
    let share = f64::from(number) / f64::from(u32::MAX);
    let fraction = match kind % 4 {
        0 | 1 => 0.0,
        2 => share / f64::from(1_u32 << (kind / 4)),
        _ => share,
    };
    let bytes = fraction * f64::from(u32::try_from(limit).expect("at most 64 MiB"));
    Ok(if bytes < 1.0 { 0.0 } else { fraction })
}

/// A program under construction: each event depends on the pool's state.
struct Program<'a> {
    limit: u64,
    ours: Ours<'a>,
    played: Vec<Event>,
    /// Slots with an allocation, and slots without one.
    full: Vec<u32>,
    empty: Vec<u32>,
    last: Option<Stats>,
    /// Bytes of the chunk freed last, and of the newest allocation.
    freed: u64,
    newest: u64,
    crowded: bool,
}

impl<'a> Program<'a> {
    fn new(setup: &'a Setup, slots: usize) -> Self {
        Self {
            limit: setup.limit,
            ours: Ours::new(setup, slots),
            played: Vec::new(),
            full: Vec::new(),
            empty: (0..u32::try_from(slots).expect("a few slots")).rev().collect(),
            last: None,
            freed: 0,
            newest: GRANULE,
            crowded: slots >= CROWD,
        }
    }

    /// Plays the next event; `None` if the program ends, because TensorFlow would not return from it.
    fn event(&mut self, bytes: &mut Unstructured<'_>) -> Result<Option<()>> {
        let [kind, a, b, c, d]: [u8; 5] = bytes.arbitrary()?;
        let frees = !self.full.is_empty() && (kind & 1 == 1 || self.empty.is_empty());
        let event = if frees {
            let slot = self.full.swap_remove(usize::from(kind >> 1) % self.full.len());
            self.freed = self.ours.held(slot as usize).map_or(0, |freed| freed.size);
            self.empty.push(slot);
            Event::Free { slot }
        } else {
            let slot = *self.empty.last().expect("no slot is full, or there is an empty one");
            Event::Allocate { slot, bytes: self.size(a, b, u16::from_le_bytes([c, d])) }
        };
        let Some(stats) = self.ours.play(event) else { return Ok(None) };
        self.last = Some(stats);
        self.played.push(event);
        if let Event::Allocate { slot, .. } = event
            && let Some(allocation) = self.ours.held(slot as usize)
        {
            self.newest = allocation.size;
            self.empty.pop();
            self.full.push(slot);
        }
        Ok(Some(()))
    }

    /// Returns a number of bytes, usually relative to the pool's state.
    fn size(&self, kind: u8, a: u8, b: u16) -> u64 {
        // Many chunks of one size share a bin.
        if self.crowded && !b.is_multiple_of(16) {
            return self.newest;
        }
        let (largest_free, reserved) = self.last.map_or((0, 0), |stats| (stats.largest_free, stats.reserved));
        let mark = match kind / 4 % 16 {
            0..5 => largest_free,
            5..8 => self.freed,
            8..10 => self.limit - reserved,
            10..14 => self.limit,
            14 => 1 << (a % 28),
            // Sizes beyond the range of either side are left out: TensorFlow has no rule for them.
            _ => 1 << (28 + a % 29),
        };
        let whole = mark >> (a / 32);
        match kind % 4 {
            0 => u64::from(b) >> (a % 17),
            1 | 2 => whole / 65_536 * u64::from(b) + whole % 65_536 * u64::from(b) / 65_536,
            _ => whole.saturating_add_signed([0, 0, -1, 1, -255, 255, -256, 256, 257][usize::from(b) % 9]),
        }
    }
}
