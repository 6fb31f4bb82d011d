//! What the command sets in the environment of the program.

use std::ffi::CStr;
use std::path::PathBuf;

use crate::real;

/// The settings of this process.
#[derive(Debug)]
pub(crate) struct Settings {
    /// The most bytes of large blocks; `None` for no limit.
    pub(crate) limit: Option<u64>,
    /// Requests of at least this many bytes are large blocks.
    pub(crate) threshold: usize,
    /// The most bytes of free pages that keep their memory.
    pub(crate) keep: u64,
    /// The folder in which each process writes its statistics.
    pub(crate) statistics: PathBuf,
    /// The process that started the program.
    pub(crate) starter: i32,
    /// The file that receives the events.
    pub(crate) record: Option<PathBuf>,
    /// The start of the program, in nanoseconds of the monotonic clock.
    pub(crate) start: u64,
}

impl Settings {
    /// Reads the settings; `None` if the command did not start this process.
    pub(crate) fn read() -> Option<Self> {
        Some(Self {
            limit: number(c"ALLOTMENT_HOST_LIMIT"),
            threshold: usize::try_from(number(c"ALLOTMENT_HOST_THRESHOLD")?).ok()?,
            keep: number(c"ALLOTMENT_HOST_KEEP")?,
            statistics: path(c"ALLOTMENT_HOST_STATISTICS")?,
            starter: i32::try_from(number(c"ALLOTMENT_HOST_STARTER")?).ok()?,
            record: path(c"ALLOTMENT_HOST_RECORD"),
            start: number(c"ALLOTMENT_HOST_START")?,
        })
    }
}

fn number(name: &CStr) -> Option<u64> {
    real::variable(name)?.to_str().ok()?.parse().ok()
}

fn path(name: &CStr) -> Option<PathBuf> {
    let text = real::variable(name)?.to_bytes();
    #[cfg(unix)]
    let text = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(text);
    Some(PathBuf::from(text)).filter(|path| path.is_absolute())
}
