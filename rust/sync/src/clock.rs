//! A clock for operations of a few nanoseconds: the counter of the processor, where it runs at one rate.
//!
//! Reading the clock of the operating system takes as long as a whole allocation. A ready-made crate for this measures
//! the counter's rate at the start, for up to a fifth of a second; here the rate is measured while the program runs.

use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

/// The shortest time that gives a rate: a reading of the system's clock is wrong by some 50 ns.
const MEASURED: Duration = Duration::from_millis(10);

/// Counts ticks from some moment before [`Clock::new`] on.
#[derive(Debug)]
pub struct Clock {
    start: Instant,
    first: u64,
    counts: bool,
}

/// Readings of both clocks at one moment.
struct Moment {
    time: Instant,
    ticks: u64,
}

impl Moment {
    /// Reads both clocks. The thread may be interrupted between two readings: the closest ones of several count.
    fn now() -> Self {
        let readings = (0..8).map(|_| {
            let (before, time, after) = (counter(), Instant::now(), counter());
            (after.saturating_sub(before), Self { time, ticks: before + after.saturating_sub(before) / 2 })
        });
        let closest = readings.min_by_key(|(apart, _)| *apart);
        closest.map_or_else(|| Self { time: Instant::now(), ticks: counter() }, |(_, moment)| moment)
    }

    /// The moment when the first clock of the process was made.
    fn first() -> &'static Self {
        static FIRST: OnceLock<Moment> = OnceLock::new();
        FIRST.get_or_init(Self::now)
    }
}

impl Clock {
    /// Starts a clock.
    #[must_use]
    pub fn new() -> Self {
        let counts = has_steady_counter();
        Moment::first();
        let Moment { time, ticks } = Moment::now();
        Self { start: time, first: if counts { ticks } else { 0 }, counts }
    }

    /// Returns the ticks now.
    #[inline(always)]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        if self.counts { counter() } else { nanoseconds(self.start.elapsed()) }
    }

    /// Returns the nanoseconds from the start of the clock to some ticks of it; 0 for earlier ones.
    ///
    /// May wait, for 10 ms after the first clock of the process was made, until the counter's rate is known.
    #[must_use]
    pub fn nanoseconds(&self, ticks: u64) -> u64 {
        if !self.counts {
            return ticks;
        }
        let (elapsed, passed) = rate();
        let nanoseconds =
            u128::from(ticks.saturating_sub(self.first)) * u128::from(elapsed) / u128::from(passed);
        u64::try_from(nanoseconds).unwrap_or(u64::MAX)
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new()
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns some nanoseconds, and the ticks in them: the same ones in all of the process's life, so that times of events
/// that are read one after the other do not decrease.
fn rate() -> (u64, u64) {
    static RATE: OnceLock<(u64, u64)> = OnceLock::new();
    *RATE.get_or_init(|| {
        let first = Moment::first();
        thread::sleep(MEASURED.saturating_sub(first.time.elapsed()));
        let now = Moment::now();
        (nanoseconds(now.time - first.time), now.ticks.saturating_sub(first.ticks).max(1))
    })
}

/// Returns whether the processor has a counter that runs at one rate in all its states, the same on all its cores.
fn has_steady_counter() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| processor_says_so() && !system_distrusts_it())
}

/// Returns whether Linux has taken one of the clocks that it takes where the counters of cores differ.
fn system_distrusts_it() -> bool {
    let source = std::fs::read_to_string("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    source.is_ok_and(|source| ["hpet", "acpi_pm", "jiffies"].contains(&source.trim()))
}

#[cfg(target_arch = "x86_64")]
fn processor_says_so() -> bool {
    use std::arch::x86_64::__cpuid;
    const POWER_LEAF: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    __cpuid(0x8000_0000).eax >= POWER_LEAF && __cpuid(POWER_LEAF).edx & INVARIANT != 0
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn counter() -> u64 {
    // SAFETY: every processor of this architecture has the instruction; it only reads.
    unsafe { std::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
fn processor_says_so() -> bool {
    false
}

#[cfg(not(target_arch = "x86_64"))]
fn counter() -> u64 {
    0
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::thread;
    use std::time::{Duration, Instant};

    use super::Clock;

    #[test]
    fn ticks_are_as_many_nanoseconds_as_the_other_clock_says() {
        for counts in [true, false] {
            let mut clock = Clock::new();
            if !counts {
                clock = Clock { counts, first: 0, ..clock };
            }
            let (before, first) = (Instant::now(), clock.ticks());
            thread::sleep(Duration::from_millis(20));
            let (second, passed) = (clock.ticks(), before.elapsed());
            assert!(first < second);
            let between = Duration::from_nanos(clock.nanoseconds(second) - clock.nanoseconds(first));
            assert!(
                between <= passed.mul_f64(1.1) && between >= Duration::from_millis(18),
                "{between:?} of {passed:?}"
            );
            assert_eq!(clock.nanoseconds(0), 0);
        }
    }
}
