//! One program in both allocators, and the first place where they differ.

use std::fmt::{self, Write};
use std::ops::AddAssign;

use allotment::replay::{Event, Program};
use allotment::source::{AddressSpace, Call, Cap, Capped, Log, Recording};
use allotment::{AllocError, Allocation, Options, Pool};

use crate::reference::{Events, Reference, Setup, Step};

/// The largest size that TensorFlow asks for again when it is refused: nine tenths of it, in whole granules,
/// are the same number.
const STUCK: u64 = 2304;

/// What was compared.
#[derive(Default)]
pub(crate) struct Compared {
    events: usize,
    refused: usize,
    /// Events from the first on that TensorFlow would not return from.
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

/// What one side did.
struct Record {
    steps: Vec<Step>,
    calls: Vec<Call>,
}

/// Plays the program on both sides and compares every step and every call of the source.
///
/// # Errors
/// The first difference, in words.
pub(crate) fn compare(setup: &Setup, program: &Program) -> Result<Compared, String> {
    let events = program.events();
    let ours = ours(setup, program);
    let played = &events[..ours.steps.len()];
    let mut reference = Reference::new(setup);
    let theirs = Record { steps: reference.run(&Events::new(played)), calls: reference.calls() };
    drop(reference);
    if let Some(event) = first_difference(&ours.steps, &theirs.steps) {
        return Err(describe(setup, events, event, &ours, &theirs));
    }
    if let Some(call) = first_difference(&ours.calls, &theirs.calls) {
        let event = ours.steps.partition_point(|step| step.calls <= call as u64);
        return Err(describe(setup, events, event, &ours, &theirs));
    }
    let refused = |(event, step): &(&Event, &Step)| {
        matches!(event, Event::Allocate { bytes: 1.., .. }) && step.offset < 0
    };
    Ok(Compared {
        events: played.len(),
        refused: played.iter().zip(&ours.steps).filter(refused).count(),
        beyond: events.len() - played.len(),
        calls: ours.calls.len(),
        releases: ours.calls.iter().filter(|call| matches!(call, Call::Release(_))).count(),
    })
}

/// Plays the program into a pool, up to where TensorFlow would not return.
fn ours(setup: &Setup, program: &Program) -> Record {
    let log = Log::default();
    let source = Capped::new(AddressSpace::new(setup.gap), Cap::new(setup.cap));
    let options = Options {
        growth: setup.growth,
        trim_on_oom: setup.trim_on_oom,
        joins_regions: Some(setup.joins),
        fragmentation_fraction: setup.fraction,
        ..Options::new(setup.limit)
    };
    let pool = Pool::new(Recording::new(source, log.clone()), options).expect("options in range");
    let mut hang = Hang::new(setup, program);
    let mut held: Vec<Option<Allocation>> = vec![None; program.slots()];
    let mut record = Record { steps: Vec::with_capacity(program.events().len()), calls: Vec::new() };
    let mut largest = 0;
    for &event in program.events() {
        let touched = match event {
            Event::Allocate { slot, bytes } => {
                let allocation = match pool.allocate(bytes) {
                    Ok(allocation) => Some(allocation).filter(|allocation| allocation.address != 0),
                    Err(AllocError::OutOfMemory(_)) => None,
                    Err(other) => panic!("{other}"),
                };
                held[slot as usize] = allocation;
                allocation
            }
            Event::Free { slot } => {
                let allocation = held[slot as usize].take();
                if let Some(allocation) = allocation {
                    pool.free(allocation.address).expect("a live allocation");
                }
                allocation
            }
        };
        let calls = log.take();
        if hang.would_begin(&calls) {
            break;
        }
        record.calls.extend(calls);
        let size = touched.map_or(0, |allocation| signed(allocation.size));
        largest = size.max(largest);
        let stats = pool.stats().expect("a pool of this process");
        record.steps.push(Step {
            offset: touched.map_or(-1, |allocation| signed(allocation.address - AddressSpace::START)),
            chunk: size,
            num_allocs: signed(stats.num_allocs),
            in_use: signed(stats.in_use),
            peak_in_use: signed(stats.peak_in_use),
            largest,
            reserved: signed(stats.reserved),
            peak_reserved: signed(stats.peak_reserved),
            calls: record.calls.len() as u64,
        });
    }
    record
}

/// Where TensorFlow's allocator would loop for ever. Ours goes on there, so there is nothing to compare.
struct Hang {
    /// Grants that are left before the growth step may have doubled to more than 64 bits hold.
    doublings: u32,
}

impl Hang {
    fn new(setup: &Setup, program: &Program) -> Self {
        let largest = program.events().iter().map(|event| match event {
            Event::Allocate { bytes, .. } => *bytes,
            Event::Free { .. } => 0,
        });
        // A request doubles the step to less than twice its own size, a grant doubles it once.
        let first = if setup.growth { setup.limit.min(2 << 20) } else { setup.limit };
        let reached = largest.max().unwrap_or(0).min(setup.limit).next_power_of_two() * 2;
        Self { doublings: first.next_power_of_two().max(reached).max(1 << 9).leading_zeros() }
    }

    /// Whether an event with these calls is one that TensorFlow does not return from.
    fn would_begin(&mut self, calls: &[Call]) -> bool {
        for call in calls {
            match call {
                Call::Reserve { answer: Some(_), .. } if self.doublings == 0 => return true,
                Call::Reserve { answer: Some(_), .. } => self.doublings -= 1,
                Call::Reserve { bytes: ..=STUCK, answer: None } => return true,
                Call::Reserve { .. } | Call::Release(_) => {}
            }
        }
        false
    }
}

fn signed(bytes: u64) -> i64 {
    bytes.cast_signed()
}

fn first_difference<T: PartialEq>(ours: &[T], theirs: &[T]) -> Option<usize> {
    let differs = ours.iter().zip(theirs).position(|(one, other)| one != other);
    differs.or_else(|| (ours.len() != theirs.len()).then(|| ours.len().min(theirs.len())))
}

/// The options, the event, and both sides of it: the state after it and the calls made for it.
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
