//! What does an event of a recorded program cost in an elastic pool, compared with a plain one?
//!
//! Every recorded program plays in new pools over made-up addresses at a limit that never binds, so that the
//! bookkeeping is the only cost: a plain pool, and elastic ones with pages of 64 KiB and 2 MiB. The sides take turns in
//! one process; the best run counts. The budget is 1.3 times the plain pool in the geometric mean.
//!
//! ```text
//! cargo bench --features oracle --bench elastic [-- [--quick] [--instructions] [PART OF A TRACE'S NAME …]]
//! ```
//!
//! `--instructions` adds the executed instructions of an event, counted by valgrind: they do not depend on what else
//! the machine does. `ALLOTMENT_TRACES` adds a folder of recorded programs.

use std::process::Command;
use std::time::Duration;

use allotment::replay::{Program, play};
use allotment::source::AddressSpace;
use allotment::{Options, Pool};

mod choice;
mod table;

#[path = "../../tests/support/traces.rs"]
mod traces;

use choice::Choice;
use table::Table;
use traces::Trace;

/// A limit that no program reaches.
const AMPLE: u64 = 1 << 50;
const RUNS: usize = 15;
/// How many further plays valgrind counts.
const MORE: usize = 5;
/// The page sizes of the sides; 0 is the plain pool.
const SIDES: [u64; 3] = [0, 64 << 10, 2 << 20];
/// The option of a process that plays one program for valgrind: the trace, the page size, the number of plays.
const COUNTED: &str = "--counted";

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(place) = arguments.iter().position(|argument| argument == COUNTED) {
        let [name, page_size, plays] = &arguments[place + 1..] else { panic!("{COUNTED} NAME PAGES PLAYS") };
        let trace = traces::named(|trace| trace == name).pop().expect("a known trace");
        for _ in 0..plays.parse().expect("a number") {
            time(&trace.program, page_size.parse().expect("a number of bytes"));
        }
        return;
    }
    let counts = arguments.iter().any(|argument| argument == "--instructions");
    let choice = Choice::from_arguments();
    let (traces, runs) = (choice.traces(), choice.runs(RUNS));
    measure("elastic", "ns an event", &traces, |trace| times(&trace.program, runs));
    if counts {
        measure("elastic_instructions", "instructions an event", &traces, instructions);
    }
}

/// Prints a table of what each side takes for an event, with ratios to the plain pool.
fn measure(name: &str, what: &str, traces: &[Trace], of: impl Fn(&Trace) -> [f64; 3]) {
    let columns = [what, "events", "plain", "64 KiB", "ratio", "2 MiB", "ratio"];
    let mut table = Table::new(name, &columns);
    let mut logarithms = [0.0; 3];
    for trace in traces {
        let sides = of(trace);
        let ratios = sides.map(|side| side / sides[0]);
        for (sum, ratio) in logarithms.iter_mut().zip(ratios) {
            *sum += ratio.ln();
        }
        let events = table::count(trace.program.events().len() as u64);
        let [plain, small, large] = sides.map(table::figure);
        let [_, small_ratio, large_ratio] = ratios.map(table::figure);
        table.row(&[trace.name.clone(), events, plain, small, small_ratio, large, large_ratio]);
    }
    let [_, small, large] = logarithms.map(|sum| table::figure((sum / count(traces.len())).exp()));
    let none = String::new;
    table.row(&["geometric mean".to_owned(), none(), none(), none(), small, none(), large]);
}

/// Returns the nanoseconds of an event for each side.
fn times(program: &Program, runs: usize) -> [f64; 3] {
    let mut best = [Duration::MAX; 3];
    for _ in 0..runs {
        for (best, page_size) in best.iter_mut().zip(SIDES) {
            *best = (*best).min(time(program, page_size));
        }
    }
    best.map(|time| time.as_secs_f64() * 1e9 / count(program.events().len()))
}

fn time(program: &Program, page_size: u64) -> Duration {
    let options = Options::new(AMPLE);
    let options = if page_size == 0 { options } else { options.elastic(true).page_size(page_size) };
    let pool = Pool::new(AddressSpace::new(0), options).expect("options in range");
    let outcome = play(&pool, program, |_, _| {}).expect("a source that does not fail");
    assert_eq!(outcome.refused, 0, "the limit is meant to be ample");
    outcome.elapsed
}

/// Returns the instructions of an event for each side: those of further plays.
fn instructions(trace: &Trace) -> [f64; 3] {
    SIDES.map(|page_size| {
        let [once, often] = [1, 1 + MORE].map(|plays| counted(&trace.name, page_size, plays));
        // Reading the file takes a few more or a few fewer from one process to the next.
        count(often.saturating_sub(once) / MORE) / count(trace.program.events().len())
    })
}

/// Returns the instructions of a process that plays a program so many times.
fn counted(name: &str, page_size: u64, plays: usize) -> usize {
    let program = std::env::current_exe().expect("a program");
    let numbers = [page_size.to_string(), plays.to_string()];
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args([COUNTED, name])
        .args(numbers)
        .output()
        .expect("valgrind is installed");
    let report = String::from_utf8_lossy(&output.stderr);
    let line = report.lines().find(|line| line.contains("refs:")).unwrap_or_else(|| panic!("{report}"));
    let digits: String = line.split(':').next_back().unwrap_or_default().replace([',', ' '], "");
    digits.parse().unwrap_or_else(|_| panic!("{line}"))
}

#[allow(clippy::cast_precision_loss, reason = "counts are far below 2^52")]
fn count(number: usize) -> f64 {
    number as f64
}
