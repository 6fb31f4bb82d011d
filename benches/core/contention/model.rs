//! How does contention go on with more cores than this machine has? A model, with what it is computed from.
//!
//! Three things are measured here: the time of a pair on one thread, the time in which one core hands cache lines to
//! another, and the lines that an allocation and a free touch and others write. The rest is arithmetic, with the
//! share of calls whose predecessor ran on another core being (cores − 1) / cores:
//!
//! - A lock: a pair takes its own time, and twice the time to hand over the lines of a call. Lines that depend on each
//!   other move one after the other; independent ones overlap. The truth lies between the two.
//! - A lock whose holder often takes it again, as locks that let running threads barge allow: the hand-over is paid
//!   once for several pairs.
//! - Combining: the tables stay with one core, which fetches one line with the request of each other.
//! - Caches of threads: pairs run beside each other, and a share of them takes the lock.
//! - A pool for each thread: pairs run beside each other, and nothing is shared.
//!
//! The model knows no sockets and no polling: waiting threads that read the lock's line make it move more often.

use crate::allocators;
use crate::lines::{self, Lines};
use crate::settings::Settings;
use crate::table::{self, Table, line};
use crate::transfer::{cores, hand_over};

/// The numbers of cores of the model.
const CORES: [u32; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Pairs in a row of a barging thread.
const IN_A_ROW: f64 = 10.0;
/// Of so many pairs one takes the lock, if threads have caches.
const CACHED: f64 = 32.0;

/// What the model is computed from, in nanoseconds.
struct Measured {
    /// A pair on one thread.
    pair: f64,
    /// Handing over one line.
    transfer: f64,
    /// Handing over the lines of an allocation and then those of a free, if those of a call overlap.
    overlapped: f64,
    /// The same if they move one after the other.
    in_turn: f64,
}

impl Measured {
    /// Returns the nanoseconds a pair of all threads together, by kind of allocator.
    fn model(&self, cores: u32) -> [f64; 6] {
        let cores = f64::from(cores);
        let elsewhere = (cores - 1.0) / cores;
        let in_turn = self.pair + elsewhere * self.in_turn;
        let overlapped = self.pair + elsewhere * self.overlapped;
        let combining = self.pair + elsewhere * 2.0 * self.transfer;
        let barging = self.pair + elsewhere * self.in_turn / IN_A_ROW;
        let alone = self.pair / cores;
        [in_turn, overlapped, barging, combining, alone.max(in_turn / CACHED), alone]
    }
}

/// Prints what the model is computed from, and the model.
pub(crate) fn measure(settings: &Settings) {
    let cores = cores();
    let [first, others @ ..] = &cores[..] else { return };
    let Some(&far) = others.last() else {
        line("there is no model without a second core");
        return;
    };
    let counted: Vec<_> = lines::TRACES.iter().map(|trace| (trace, lines::count(trace))).collect();
    let mut table = Table::new(
        "contention_lines",
        &["lines that others write too, valgrind's count", "an allocation", "a free"],
    );
    for (trace, lines) in &counted {
        match lines {
            Ok(Lines { allocate, free }) => {
                table.row(&[trace.to_string(), table::figure(*allocate), table::figure(*free)]);
            }
            Err(reason) => line(&format!("{trace}: not counted: {reason}")),
        }
    }

    let mut table = Table::new("contention_transfers", &["a core hands lines to another, measured", "ns"]);
    let mut hand = |number: usize, what: &str| {
        let nanoseconds = hand_over([*first, far], number);
        table.row(&[what.to_owned(), table::figure(nanoseconds)]);
        nanoseconds
    };
    let transfer = hand(0, "one line");
    let two = hand(1, "2 lines");
    for number in [3, 7] {
        hand(number, &format!("{} lines", number + 1));
    }
    for &other in &others[..others.len() - 1] {
        let nanoseconds = hand_over([*first, other], 0);
        table.row(&[format!("one line, from core {first} to {other}"), table::figure(nanoseconds)]);
    }

    // Pairs behind the plain lock of another crate: a biased lock alone does other things than for many threads.
    let Some((_, Ok(Lines { allocate, free }))) = counted.get(2) else {
        line("there is no model without valgrind's count of lines");
        return;
    };
    let calls = [allocate, free];
    let measured = Measured {
        pair: allocators::pair_behind_lock(1, settings).nanoseconds,
        transfer,
        overlapped: calls.iter().map(|lines| hand_over([*first, far], whole(**lines) - 1)).sum(),
        // A line that is read and then written, which is what a call does, costs more than the first, which tells.
        in_turn: calls.iter().map(|lines| transfer + (**lines - 1.0) * (two - transfer)).sum(),
    };
    print(&measured, cores.len(), settings);
}

fn print(measured: &Measured, cores: usize, settings: &Settings) {
    let mut table = Table::new(
        "contention_model",
        &[
            "ns a pair of all threads together, pairs of 1 KiB",
            "measured: in parking_lot's lock",
            "measured: ours",
            "model: a lock, lines in turn",
            "model: a lock, lines overlap",
            "model: a lock, 10 pairs in a row",
            "model: combining",
            "model: caches, one pair in 32 at the lock",
            "model: a pool for each thread",
        ],
    );
    for number in CORES {
        let threads = usize::try_from(number).expect("a small number");
        let is_here = threads <= cores;
        let of = |speed: fn(usize, &Settings) -> crate::race::Speed| {
            if is_here { speed(threads, settings).nanoseconds } else { f64::NAN }
        };
        let here = [of(allocators::pair_behind_lock), of(allocators::pair_of_ours)];
        let cells = here.into_iter().chain(measured.model(number)).map(table::figure);
        let name = if number == 1 { "1 core".to_owned() } else { format!("{number} cores") };
        table.row(&std::iter::once(name).chain(cells).collect::<Vec<_>>());
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a small count")]
fn whole(lines: f64) -> usize {
    (lines.round() as usize).max(1)
}
