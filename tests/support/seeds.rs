//! Seeds and other parameters of a run, from the environment or the clock, and their output.

use std::io::Write;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}

pub(crate) fn seed_of_now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock past 1970");
    since.as_secs() << 10 | u64::from(since.subsec_millis())
}

/// Prints a line that the test harness does not capture: the seed is needed while a run is in progress.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
