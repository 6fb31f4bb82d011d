//! How many cache lines that other threads write does an allocation touch, and a free?
//!
//! Hardware counters are absent on many virtual machines. valgrind's tool `lackey` prints each access to memory of a
//! program instead: this benchmark runs itself in it. A line counts if it is neither on the stack nor of the thread,
//! and if any allocation or free of the traced ones writes it: such lines move when another core comes next.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering, compiler_fence};
use std::thread;

use crate::numbers::Numbers;
use crate::peers::{Behind, Ours, Peer};
use crate::race::float;

/// The option with which the benchmark runs itself.
const OPTION: &str = "--traced=";
const LINE: u64 = 64;
/// Live allocations in churn.
const STANDING: usize = 256;
const WARM_UP: usize = 1_000;
const TRACED: usize = 200;
/// More owners than a biased lock serves, so that it is a lock for all threads.
const OTHERS: usize = 8;
/// The reach of a thread's own memory around one of its variables: stack, and what is local to it.
const OWN: u64 = 1 << 14;

/// Written before each traced free, each traced allocation, and after it.
static MARK: AtomicU64 = AtomicU64::new(0);
const MARKS: usize = 3;

thread_local! {
    static LOCAL: AtomicU64 = const { AtomicU64::new(0) };
}

/// Lines of an allocation and of a free, on average.
#[derive(Clone, Copy)]
pub(crate) struct Lines {
    pub(crate) allocate: f64,
    pub(crate) free: f64,
}

/// The traced loops: of each allocator a pair of 1 KiB, and churn.
pub(crate) const TRACES: [&str; 4] = ["ours pairs", "ours churn", "parking_lot pairs", "parking_lot churn"];

/// Runs the traced loop if this process was started for that, and returns whether it was.
pub(crate) fn run_traced() -> bool {
    let option = std::env::args().find_map(|argument| argument.strip_prefix(OPTION).map(str::to_owned));
    match option.as_deref().and_then(|trace| trace.split_once(' ')) {
        Some(("ours", workload)) => traced(&Ours::new(), workload),
        Some((_, workload)) => traced(&Behind::parking_lot(), workload),
        None => return false,
    }
    true
}

#[allow(clippy::print_stdout, reason = "the parent reads it")]
fn traced(peer: &impl Peer, workload: &str) {
    let pair = || peer.free(peer.allocate(1), 1);
    for _ in 0..OTHERS {
        thread::scope(|scope| scope.spawn(pair).join().expect("no panic"));
    }
    let mut numbers = Numbers::new(7);
    let standing = if workload == "churn" { STANDING } else { 1 };
    let mut blocks: Vec<_> = (0..standing).map(|_| peer.allocate(1024)).collect();
    for _ in 0..WARM_UP + TRACED {
        let doubling = 1 << (6 + numbers.below(9));
        let bytes = if standing == 1 { 1024 } else { doubling + numbers.below(doubling) };
        let block = &mut blocks[numbers.place(standing)];
        mark();
        peer.free(*block, 1024);
        mark();
        *block = peer.allocate(bytes);
        mark();
    }
    let local = LOCAL.with(|local| std::ptr::from_ref(local).addr());
    println!("{} {} {local}", (&raw const MARK).addr(), std::ptr::from_ref(&pair).addr());
}

fn mark() {
    compiler_fence(Ordering::SeqCst);
    // A stronger order would be two accesses.
    MARK.store(1, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
}

/// Counts the lines of a trace.
///
/// # Errors
/// If valgrind is absent or fails.
pub(crate) fn count(trace: &str) -> Result<Lines, String> {
    let log = std::env::temp_dir().join(format!("lines-{}", std::process::id()));
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let run = Command::new("valgrind")
        .args(["--tool=lackey", "--trace-mem=yes"])
        .arg(format!("--log-file={}", log.display()))
        .arg(this)
        .arg(format!("{OPTION}{trace}"))
        .output();
    let counted = match run {
        Err(error) => Err(format!("valgrind: {error}")),
        Ok(output) if !output.status.success() => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        Ok(output) => read(&log, &String::from_utf8_lossy(&output.stdout)),
    };
    // The file may not be there; and a file too much in a temporary folder is no error.
    let _ = std::fs::remove_file(&log);
    counted
}

fn read(log: &Path, addresses: &str) -> Result<Lines, String> {
    let addresses: Vec<u64> =
        addresses.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [mark, stack, local] = addresses[..] else { return Err("no addresses".to_owned()) };
    let log = BufReader::new(File::open(log).map_err(|error| error.to_string())?);
    // The lines that follow each mark: touched, and written.
    let mut calls: Vec<[HashSet<u64>; 2]> = Vec::new();
    for access in log.lines().map_while(Result::ok) {
        // `I  address,size` is an instruction, ` L`, ` S` and ` M` load, store and do both.
        let Some((kind, rest)) = access.trim_start().split_once(' ') else { continue };
        let address = rest.trim_start().split_once(',').map(|(text, _)| u64::from_str_radix(text, 16));
        let (Some(Ok(address)), "L" | "S" | "M") = (address, kind) else { continue };
        if address == mark {
            calls.push(Default::default());
        } else if let Some([touched, written]) = calls.last_mut()
            && address.abs_diff(stack) > OWN
            && address.abs_diff(local) > OWN
        {
            touched.insert(address / LINE);
            if kind != "L" {
                written.insert(address / LINE);
            }
        }
    }
    let traced =
        calls.len().checked_sub(MARKS * TRACED).map(|first| &calls[first..]).ok_or("too few marks")?;
    let shared: HashSet<_> =
        traced.chunks(MARKS).flat_map(|turn| &turn[..2]).flat_map(|[_, written]| written).collect();
    let mean = |place: usize| {
        let touched = traced.iter().skip(place).step_by(MARKS).flat_map(|[touched, _]| touched);
        float(touched.filter(|line| shared.contains(line)).count() as u64) / float(TRACED as u64)
    };
    Ok(Lines { free: mean(0), allocate: mean(1) })
}
