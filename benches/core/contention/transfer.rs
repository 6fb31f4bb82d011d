//! What does it cost to hand cache lines from one core to another?

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::race::float;

/// Round trips of a measurement; the median of the measurements counts.
const ROUNDS: u64 = 2_000;
const MEASUREMENTS: usize = 25;

/// A number on cache lines of its own: processors fetch them in pairs.
#[repr(align(128))]
#[derive(Default)]
struct Line(AtomicU64);

/// Returns the cores that this process may use.
///
/// # Panics
/// If the system does not tell.
pub(crate) fn cores() -> Vec<usize> {
    let set = sched_getaffinity(None).expect("the cores of this process");
    (0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect()
}

/// Returns the nanoseconds in which one core hands a turn and `lines` written lines to another, which writes each.
///
/// The lines are independent, so that their transfers overlap. With no lines it is the transfer of the turn alone.
pub(crate) fn hand_over(cores: [usize; 2], lines: usize) -> f64 {
    let turn = Line::default();
    let lines: Vec<_> = (0..lines).map(|_| Line::default()).collect();
    let play = |player: u64| {
        pin(cores[usize::try_from(player).expect("0 or 1")]);
        let mut measurements = Vec::new();
        let mut next = player;
        for _ in 0..MEASUREMENTS {
            let start = Instant::now();
            for _ in 0..ROUNDS {
                // No hint for the processor, and no call of the system: both take longer than a transfer.
                while turn.0.load(Ordering::Acquire) != next {}
                for Line(number) in &lines {
                    number.store(number.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
                }
                turn.0.store(next + 1, Ordering::Release);
                next += 2;
            }
            let nanoseconds = 1e9 * start.elapsed().as_secs_f64();
            measurements.push(nanoseconds / float(2 * ROUNDS));
        }
        measurements.sort_unstable_by(f64::total_cmp);
        measurements[MEASUREMENTS / 2]
    };
    thread::scope(|scope| {
        let other = scope.spawn(|| play(1));
        let first = scope.spawn(|| play(0));
        other.join().expect("no panic");
        first.join().expect("no panic")
    })
}

fn pin(core: usize) {
    let mut set = CpuSet::new();
    set.set(core);
    sched_setaffinity(None, &set).expect("a core of this process");
}
