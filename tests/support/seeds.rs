//! Seeds and other numbers of a run, from the environment or the clock, and lines that say them.

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

/// A line that the test harness does not hold back: the seed is of use while a run is still going.
pub(crate) fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}
