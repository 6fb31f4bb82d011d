//! What does a pool lose to contention?
//!
//! 1 to 16 threads use one pool, and other allocators in turns with it: TensorFlow's, three for whole processes, and
//! our allocator behind other locks. Each thread runs one of three loops:
//!
//! - `pairs`: an allocation of 1 KiB, and its free;
//! - `churn`: 256 live allocations of 64 bytes to 32 KiB; a turn frees a random one and allocates another, and a
//!   quarter of the frees is left to whichever thread passes the same place next;
//! - `replay`: recorded programs, whose allocations are dealt to the threads in turns. Allocators for whole processes
//!   are left out: they map and unmap memory for blocks of megabytes, and a window ends before they come to others.
//!
//! A measurement runs for a fixed time after a warm-up on new allocators. It counts the pairs of all threads, which
//! gives the time a pair, and those of the slowest thread by the mean, which tells how fair it is; the median of the
//! runs counts. In further runs the clock is read around each allocation. Reading it takes longer than a pair, so that
//! threads meet less often than without.
//!
//! The control is a pool for each thread: what it loses with more threads is the scheduler's share, and the machine's.
//!
//! `locks` measures the lock alone around some 7 ns of work. `model` computes how contention goes on to 64 cores, from
//! the time of a transfer of a cache line between cores, which is measured here, and the lines that a pair writes,
//! which valgrind counts.
//!
//! ```text
//! cargo bench --features oracle --bench contention [-- [--quick] [--threads=1,2] [--milliseconds=N] [--runs=N]
//!     [pairs] [churn] [replay] [locks] [model]]
//! ```
//!
//! TensorFlow's allocator is left out without its driver, and snmalloc unless `RUSTFLAGS="--cfg snmalloc"` asks for it.

mod allocators;
mod lines;
mod locks;
mod model;
mod peers;
mod race;
mod settings;
mod transfer;
mod waits;
mod workloads;

#[allow(dead_code, reason = "random programs use the rest")]
#[path = "../../../tests/support/numbers.rs"]
mod numbers;
#[path = "../../../tests/support/oracle.rs"]
mod reference;
#[path = "../table.rs"]
mod table;
#[allow(dead_code, reason = "the names of programs are not used")]
#[path = "../../../tests/support/traces.rs"]
mod traces;

use settings::Settings;

fn main() {
    if lines::run_traced() {
        return;
    }
    let settings = Settings::from_arguments();
    if settings.wants("locks") {
        locks::measure(&settings);
    }
    if ["pairs", "churn", "replay"].iter().any(|part| settings.wants(part)) {
        allocators::measure(&settings);
    }
    if settings.wants("model") {
        model::measure(&settings);
    }
}
