//! Forks in the middle of a history, while other threads may hold every lock.
//!
//! The promise: the parent does not notice. In the child every call on the inherited pool is an error at once, and a
//! pool of the child works, for several threads as well.

use std::ffi::{c_int, c_uint};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use allotment::{AllocError, FreeError, Pool, Request, Unusable, fork};

use crate::numbers::Numbers;
use crate::round;
use crate::seeds::{from_environment, say, seed_of_now};
use crate::setup::{Setup, Threads};

const HISTORIES: u64 = 12;
const CALLS: u64 = 20_000;
const CALLS_OF_A_CHILD: u64 = 2_000;
const FORKS: u64 = 4;
/// A child that waits for a lock of its parent's threads would wait for ever.
const SECONDS_OF_A_CHILD: c_uint = 60;

// SAFETY: these are the functions of the C library with these names.
unsafe extern "C" {
    #[link_name = "fork"]
    safe fn split() -> c_int;
    safe fn alarm(seconds: c_uint) -> c_uint;
    safe fn _exit(status: c_int) -> !;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
}

#[test]
fn a_fork_disturbs_no_history_and_a_child_has_its_own() {
    let seed = from_environment("ALLOTMENT_SEED").unwrap_or_else(seed_of_now);
    say(&format!("forks in histories of ALLOTMENT_SEED={seed}"));
    for number in 0..HISTORIES {
        let mut random = Numbers::one_of(seed, number);
        let setup = Setup { threads: Threads::Together(4), ..Setup::new(random.next(), CALLS) };
        let played = round::play(&setup, |pool| {
            for _ in 0..FORKS {
                std::thread::sleep(Duration::from_micros(random.below(2_000)));
                let history = random.next();
                in_a_child(|| child(pool, history));
            }
        });
        played.check();
    }
}

fn child(inherited: &Pool, seed: u64) {
    fork::entered_child();
    let forked = |error| matches!(error, AllocError::Unusable(Unusable::Forked));
    assert!(inherited.allocate(1).is_err_and(forked));
    assert!(inherited.try_allocate(Request::new(1).align(512)).is_err_and(forked));
    assert_eq!(inherited.free(256), Err(FreeError::Unusable(Unusable::Forked)));
    assert_eq!(inherited.stats(), Err(Unusable::Forked));
    assert_eq!(inherited.trim(), Err(Unusable::Forked.into()));
    assert_eq!(inherited.close(), Err(Unusable::Forked));
    let setup = Setup::new(seed, CALLS_OF_A_CHILD);
    round::play(&setup, |_| ()).check();
}

/// Runs `work` in a forked child, and waits for its end.
fn in_a_child(work: impl FnOnce()) {
    let process = split();
    assert!(process >= 0, "the system cannot fork");
    if process == 0 {
        alarm(SECONDS_OF_A_CHILD);
        let done = catch_unwind(AssertUnwindSafe(work));
        _exit(c_int::from(done.is_err()));
    }
    let mut status = 0;
    // SAFETY: the status is a valid place for one number.
    let ended = unsafe { waitpid(process, &raw mut status, 0) };
    assert_eq!((ended, status), (process, 0), "the child fails (or waits for ever, if the status is 14)");
}
