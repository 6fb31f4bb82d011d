//! What does a lock alone cost around a few nanoseconds of work?

use std::hint::black_box;
use std::time::Duration;

use spinning_top::BackoffSpinlock;

use crate::race::{Lap, Speed, Turns, race};
use crate::settings::{Settings, Tables};

/// Dependent steps under the lock, of 5 cycles each: 7 ns at 2.8 GHz.
const STEPS: usize = 4;
/// Operations between two readings of the clock.
const PART: u64 = 512;

/// A lock around a number.
trait Lock: Sync {
    /// Runs `work` with the lock held.
    fn with(&self, work: impl FnOnce(&mut u64));
}

impl Lock for allotment_sync::Mutex<u64> {
    #[inline]
    fn with(&self, work: impl FnOnce(&mut u64)) {
        work(&mut self.lock().expect("no panic"));
    }
}

impl Lock for parking_lot::Mutex<u64> {
    #[inline]
    fn with(&self, work: impl FnOnce(&mut u64)) {
        work(&mut self.lock());
    }
}

impl Lock for std::sync::Mutex<u64> {
    #[inline]
    fn with(&self, work: impl FnOnce(&mut u64)) {
        work(&mut self.lock().expect("no panic"));
    }
}

impl Lock for BackoffSpinlock<u64> {
    #[inline]
    fn with(&self, work: impl FnOnce(&mut u64)) {
        work(&mut self.lock());
    }
}

/// Fast path of a pool: the owner's, and where that is not open the lock itself.
struct AsOwner(allotment_sync::Mutex<u64>);

impl Lock for AsOwner {
    #[inline]
    fn with(&self, work: impl FnOnce(&mut u64)) {
        let mut work = Some(work);
        let done = self.0.try_with_as_owner(|value| work.take().map(|work| work(value)));
        if done.is_none()
            && let Some(work) = work
        {
            self.0.with(work).expect("no thread panics");
        }
    }
}

/// Steps of a mixing function: each needs the result of the one before.
#[inline]
fn work(value: &mut u64) {
    for _ in 0..STEPS {
        *value = (*value ^ (*value >> 31)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// A thread's operations on a lock.
struct Operations<'a, L>(&'a L);

impl<L: Lock> Turns for Operations<'_, L> {
    fn run(&mut self) -> u64 {
        for _ in 0..PART {
            self.0.with(work);
        }
        PART
    }
}

/// A thread's operations on a number of its own, without a lock.
struct Unlocked(u64);

impl Turns for Unlocked {
    fn run(&mut self) -> u64 {
        for _ in 0..PART {
            work(black_box(&mut self.0));
        }
        PART
    }
}

fn speed<L: Lock>(lock: &L, threads: usize, window: Duration) -> Speed {
    speed_of(&race(threads, window, |_| Operations(lock)), window)
}

fn speed_of<T>(laps: &[Lap<T>], window: Duration) -> Speed {
    Speed::new(&laps.iter().map(|lap| lap.done).collect::<Vec<_>>(), window)
}

/// A lock by name; each measurement gets a new one.
struct Contender {
    name: &'static str,
    speed: fn(usize, Duration) -> Speed,
}

const CONTENDERS: [Contender; 6] = [
    Contender {
        name: "ours, owner's path first",
        speed: |threads, window| speed(&AsOwner(allotment_sync::Mutex::new(1)), threads, window),
    },
    Contender {
        name: "ours, lock",
        speed: |threads, window| speed(&allotment_sync::Mutex::new(1), threads, window),
    },
    Contender {
        name: "parking_lot",
        speed: |threads, window| speed(&parking_lot::Mutex::new(1), threads, window),
    },
    Contender {
        name: "standard library",
        speed: |threads, window| speed(&std::sync::Mutex::new(1), threads, window),
    },
    Contender {
        name: "spin with back-off",
        speed: |threads, window| speed(&BackoffSpinlock::new(1), threads, window),
    },
    Contender {
        name: "no lock, a number for each thread",
        speed: |threads, window| speed_of(&race(threads, window, |_| Unlocked(1)), window),
    },
];

/// Prints the tables of the locks.
pub(crate) fn measure(settings: &Settings) {
    let names: Vec<_> = CONTENDERS.iter().map(|contender| contender.name).collect();
    let mut tables =
        Tables::new("contention_locks", "ns an operation of all threads together, locks", &names);
    for &threads in &settings.threads {
        let mut speeds: Vec<_> = CONTENDERS.iter().map(|_| Vec::new()).collect();
        for _ in 0..settings.runs {
            for (contender, speeds) in CONTENDERS.iter().zip(&mut speeds) {
                speeds.push((contender.speed)(threads, settings.window));
            }
        }
        let medians: Vec<_> = speeds.iter().map(|speeds| Speed::median(speeds)).collect();
        tables.row(&crate::settings::threads(threads), &medians);
    }
    tables.finish();
}
