#![doc = include_str!("../README.md")]

mod allocation;
mod headroom;
mod limits;
mod memory;
mod options;
mod pages;
mod plan;
mod pool;
mod recording;
mod report;
mod scope;
mod siblings;
mod source;
mod status;
mod versioned;

pub use allocation::*;
pub use headroom::*;
pub use limits::*;
pub use memory::*;
pub use options::*;
pub use pages::*;
pub use plan::*;
pub use pool::*;
pub use recording::*;
pub use report::*;
pub use scope::*;
pub use siblings::*;
pub use source::*;
pub use status::*;

/// The version of the interface: functions and structures are only added while the first number stays.
pub const ALLOTMENT_VERSION_MAJOR: u32 = 0;
/// The second number of the version.
pub const ALLOTMENT_VERSION_MINOR: u32 = 1;
/// The third number of the version.
pub const ALLOTMENT_VERSION_PATCH: u32 = 0;

/// Returns the version of the library that runs: major * 65536 + minor * 256 + patch.
#[unsafe(no_mangle)]
pub extern "C" fn allotment_version() -> u32 {
    ALLOTMENT_VERSION_MAJOR << 16 | ALLOTMENT_VERSION_MINOR << 8 | ALLOTMENT_VERSION_PATCH
}

/// Marks this process as a forked child: pools of its parent return `ALLOTMENT_FORKED` from then on, and release
/// nothing. Call it in the child before any other call, for instance by `pthread_atfork`.
#[unsafe(no_mangle)]
pub extern "C" fn allotment_entered_child() {
    allotment::fork::entered_child();
}
