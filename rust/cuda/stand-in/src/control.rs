//! What tests alone call: settings, failures to order, and what was not given back.

use std::ffi::{CStr, c_char, c_uint};

use crate::settings::Settings;
use crate::state::with_state;
use crate::status::Status;

/// Counts of objects that were taken from the driver and not given back.
#[derive(Debug, Default)]
#[repr(C)]
struct Outstanding {
    /// Allocations of `cuMemAlloc`.
    allocations: u64,
    /// Reserved ranges of addresses.
    ranges: u64,
    /// Physical memory of `cuMemCreate`, held or mapped.
    handles: u64,
    /// Mapped spans.
    mappings: u64,
    /// Retained contexts.
    contexts: u64,
    /// Bytes of all devices in use.
    bytes: u64,
    /// Events.
    events: u64,
}

/// Sets the devices, instead of the environment; has an effect before `cuInit` alone.
#[unsafe(no_mangle)]
extern "C" fn standInConfigure(devices: u64, memory: u64, granularity: u64, has_virtual_memory: c_uint) {
    with_state(|state| {
        state.configured = Some(Settings {
            devices,
            memory,
            granularity,
            has_virtual_memory: has_virtual_memory != 0,
            capability: 90,
            name: "Stand-in GPU".to_owned(),
            mask: None,
        });
    });
}

/// Sets the bytes of one device, once `cuInit` has made it; what it has in use stays.
#[unsafe(no_mangle)]
extern "C" fn standInSetMemory(device: usize, memory: u64) {
    with_state(|state| {
        if let Some(device) = state.devices.get_mut(device) {
            device.settings.memory = memory;
        }
    });
}

/// Lets the `nth` call from now on fail with `status`, without an effect; 1 is the next call, 0 none.
#[unsafe(no_mangle)]
extern "C" fn standInFailAt(nth: u64, status: Status) {
    with_state(|state| {
        state.fail_at = (nth > 0).then_some((state.calls + nth, status));
        state.failed = None;
    });
}

/// Returns the number of calls so far.
#[unsafe(no_mangle)]
extern "C" fn standInCalls() -> u64 {
    with_state(|state| state.calls)
}

/// Returns the name of the call that failed as ordered; null if none did.
#[unsafe(no_mangle)]
extern "C" fn standInFailed() -> *const c_char {
    with_state(|state| state.failed.map_or(std::ptr::null(), CStr::as_ptr))
}

/// Writes what was not given back.
#[unsafe(no_mangle)]
unsafe extern "C" fn standInOutstanding(outstanding: *mut Outstanding) {
    let found = with_state(|state| Outstanding {
        allocations: state.plain.len() as u64,
        ranges: state.ranges.len() as u64,
        handles: state.handles.len() as u64,
        mappings: state.mappings.len() as u64,
        contexts: state.devices.iter().map(|device| device.retained).sum(),
        bytes: state.devices.iter().map(|device| device.used).sum(),
        events: state.streams.num_events(),
    });
    // SAFETY: the test passes a pointer that may be written to.
    unsafe { outstanding.write(found) };
}

/// Queues a piece of work in a stream; returns its number in that stream, from 1 on, 0 if there is no such stream.
#[unsafe(no_mangle)]
extern "C" fn standInQueueWork(stream: u64) -> u64 {
    with_state(|state| state.streams.queue_work(stream))
}

/// Returns the number of a stream, which no other one has or had; 0 if there is no such stream.
#[unsafe(no_mangle)]
extern "C" fn standInStreamNumber(stream: u64) -> u64 {
    with_state(|state| state.streams.number(stream).unwrap_or(0))
}

/// Returns whether work that is queued in `stream` now would run behind a piece of work of the stream of a number.
#[unsafe(no_mangle)]
extern "C" fn standInIsBehind(stream: u64, other_number: u64, work: u64) -> bool {
    with_state(|state| state.streams.is_behind(stream, other_number, work))
}
