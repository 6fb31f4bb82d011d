//! Plays one program in both allocators and reports the first difference.

use std::fmt::{self, Write};
use std::ops::AddAssign;

use allotment::replay::{Event, Program};
use allotment::source::{AddressSpace, Call, Cap, Capped, FailingSource, Log, Recording};
use allotment::{AllocError, Allocation, Options, Pool, Stats};

use crate::reference::{Events, Reference, Setup, Step};

/// The largest size that TensorFlow repeats after a refusal: nine tenths of it, in whole granules, is the same
/// number.
const STUCK: u64 = 2304;

/// Totals of the comparisons.
#[derive(Default)]
pub(crate) struct Compared {
    pub(crate) events: usize,
    pub(crate) refused: usize,
    /// Events from the first one on from which TensorFlow would not return.
    beyond: usize,
    calls: usize,
    releases: usize,
}

impl AddAssign for Compared {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.refused += other.refused;
        self.beyond += other.beyond;
        self.calls += other.calls;
        self.releases += other.releases;
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { events, refused, beyond, calls, releases } = self;
        write!(
            f,
            "{events} events ({refused} refused) and {calls} calls of the source ({releases} releases)"
        )?;
        write!(f, ", {beyond} more events lie where TensorFlow would hang")
    }
}

/// The behaviour of one side.
struct Record {
    steps: Vec<Step>,
    calls: Vec<Call>,
}

/// Plays the program on both sides and compares every step and every source call.
///
/// # Errors
/// A description of the first difference.
pub(crate) fn compare(setup: &Setup, program: &Program) -> Result<Compared, String> {
    let mut ours = Ours::new(setup, program.slots());
    let events = program.events();
    let played = events.iter().take_while(|&&event| ours.play(event).is_some()).count();
    let compared = ours.judge(&events[..played])?;
    Ok(Compared { beyond: events.len() - played, ..compared })
}

/// Our side: a pool that plays events, and its record.
pub(crate) struct Ours<'a> {
    setup: &'a Setup,
    pool: Pool,
    log: Log,
    held: Vec<Option<Allocation>>,
    hang: Hang,
    record: Record,
    largest: i64,
}

impl<'a> Ours<'a> {
    /// Creates a new pool; every slot of the events is below `slots`.
    pub(crate) fn new(setup: &'a Setup, slots: usize) -> Self {
        let log = Log::default();
        let Setup { largest, refused, .. } = *setup;
        let capped = Capped::new(AddressSpace::new(setup.gap), Cap::new(setup.cap));
        let source = FailingSource::new(capped, move |number, bytes| {
            bytes > largest || (number < 64 && refused >> number & 1 == 1)
        });
        let options = Options::new(setup.limit)
            .growth(setup.growth)
            .trim_on_oom(setup.trim_on_oom)
            .joins_regions(setup.joins)
            .fragmentation_fraction(setup.fraction);
        Self {
            setup,
            pool: Pool::new(Recording::new(source, log.clone()), options).expect("options in range"),
            log,
            held: vec![None; slots],
            hang: Hang::new(setup),
            record: Record { steps: Vec::new(), calls: Vec::new() },
            largest: 0,
        }
    }

    /// Plays one event and returns the state after it; `None` if TensorFlow would not return from it.
    pub(crate) fn play(&mut self, event: Event) -> Option<Stats> {
        let touched = match event {
            Event::Allocate { slot, bytes } => {
                let allocation = match self.pool.allocate(bytes) {
                    Ok(allocation) => Some(allocation).filter(|allocation| allocation.address != 0),
                    Err(AllocError::OutOfMemory(_)) => None,
                    Err(other) => panic!("{other}"),
                };
                self.held[slot as usize] = allocation;
                allocation
            }
            Event::Free { slot } => {
                let allocation = self.held[slot as usize].take();
                if let Some(allocation) = allocation {
                    self.pool.free(allocation.address).expect("a live allocation");
                }
                allocation
            }
        };
        let calls = self.log.take();
        if self.hang.would_begin(event, &calls) {
            return None;
        }
        self.record.calls.extend(calls);
        let size = touched.map_or(0, |allocation| signed(allocation.size));
        self.largest = size.max(self.largest);
        let stats = self.pool.stats().expect("a pool of this process");
        self.record.steps.push(Step {
            offset: touched.map_or(-1, |allocation| signed(allocation.address - AddressSpace::START)),
            chunk: size,
            num_allocs: signed(stats.num_allocs),
            in_use: signed(stats.in_use),
            peak_in_use: signed(stats.peak_in_use),
            largest: self.largest,
            reserved: signed(stats.reserved),
            peak_reserved: signed(stats.peak_reserved),
            calls: self.record.calls.len() as u64,
        });
        Some(stats)
    }

    /// Returns the allocation in a slot.
    pub(crate) fn held(&self, slot: usize) -> Option<Allocation> {
        self.held[slot]
    }

    /// Plays the same events in TensorFlow's allocator and compares every step and every source call.
    ///
    /// # Errors
    /// A description of the first difference.
    pub(crate) fn judge(self, played: &[Event]) -> Result<Compared, String> {
        let Self { setup, record: ours, .. } = self;
        let mut reference = Reference::new(setup);
        let steps = reference.run(&Events::new(played), Some(&ours.steps));
        let theirs = Record { steps, calls: reference.calls() };
        drop(reference);
        if let Some(event) = first_difference(&ours.steps, &theirs.steps) {
            return Err(describe(setup, played, event, &ours, &theirs));
        }
        if let Some(call) = first_difference(&ours.calls, &theirs.calls) {
            let event = ours.steps.partition_point(|step| step.calls <= call as u64);
            return Err(describe(setup, played, event, &ours, &theirs));
        }
        let refused = |(event, step): &(&Event, &Step)| {
            matches!(event, Event::Allocate { bytes: 1.., .. }) && step.offset < 0
        };
        Ok(Compared {
            events: played.len(),
            refused: played.iter().zip(&ours.steps).filter(refused).count(),
            beyond: 0,
            calls: ours.calls.len(),
            releases: ours.calls.iter().filter(|call| matches!(call, Call::Release(_))).count(),
        })
    }
}

/// Detects events for which TensorFlow's allocator loops for ever; ours proceeds, so the comparison ends there.
struct Hang {
    /// A lower bound of TensorFlow's growth step, which it keeps in 64 bits.
    step: u128,
}

impl Hang {
    fn new(setup: &Setup) -> Self {
        let first = if setup.growth { setup.limit.min(2 << 20) } else { setup.limit };
        Self { step: u128::from(first.next_multiple_of(256)) }
    }

    /// Returns whether TensorFlow would not return from this event, which made these calls.
    fn would_begin(&mut self, event: Event, calls: &[Call]) -> bool {
        let Event::Allocate { bytes, .. } = event else { return false };
        if calls.is_empty() {
            return false;
        }
        // A request doubles the step until it holds the request; doubling never changes a step of 0.
        while self.step < u128::from(bytes) {
            self.step *= 2;
        }
        for call in calls {
            match call {
                Call::Reserve { answer: Some(_), .. } => self.step *= 2,
                Call::Reserve { bytes: ..=STUCK, answer: None } => return true,
                _ => {}
            }
        }
        self.step > u128::from(u64::MAX / 2)
    }
}

fn signed(bytes: u64) -> i64 {
    bytes.cast_signed()
}

fn first_difference<T: PartialEq>(ours: &[T], theirs: &[T]) -> Option<usize> {
    let differs = ours.iter().zip(theirs).position(|(one, other)| one != other);
    differs.or_else(|| (ours.len() != theirs.len()).then(|| ours.len().min(theirs.len())))
}

/// Describes the options, the event, and both sides: the state after it and its calls.
fn describe(setup: &Setup, events: &[Event], event: usize, ours: &Record, theirs: &Record) -> String {
    let mut text = format!("{setup:?}\nfirst difference at event {event}: {:?}", events.get(event));
    for (side, record) in [("ours", ours), ("TensorFlow", theirs)] {
        let first = event.checked_sub(1).map_or(0, |before| record.steps[before].calls);
        let calls: Vec<_> = record.calls.iter().skip(usize::try_from(first).unwrap_or(0)).take(32).collect();
        let step = record.steps.get(event);
        let _ = write!(text, "\n{side}: {step:?}\n{side}, calls from here on: {calls:?}");
    }
    text
}
