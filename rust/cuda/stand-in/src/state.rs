//! All that the driver knows, and how each call gets at it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::process;
use std::sync::{Mutex, PoisonError};

use crate::host::HostSpan;
use crate::settings::Settings;
use crate::status::{INVALID_CONTEXT, NOT_INITIALIZED, OUT_OF_MEMORY, SUCCESS, Status};
use crate::streams::Streams;

#[derive(Debug)]
pub(crate) struct State {
    /// The process that initialized the driver; 0 before.
    pub(crate) process: u32,
    /// The settings of a test; without them, those of the environment count.
    pub(crate) configured: Option<Settings>,
    /// The visible devices, once initialized.
    pub(crate) devices: Vec<DeviceState>,
    /// Calls so far.
    pub(crate) calls: u64,
    /// The number of the call that is to fail, and its result.
    pub(crate) fail_at: Option<(u64, Status)>,
    /// The name of the call that failed so.
    pub(crate) failed: Option<&'static CStr>,
    /// Memory of `cuMemAlloc`: address to span.
    pub(crate) plain: BTreeMap<u64, Plain>,
    /// Reserved addresses: start to span.
    pub(crate) ranges: BTreeMap<u64, Range>,
    /// Physical memory of `cuMemCreate`.
    pub(crate) handles: BTreeMap<u64, Physical>,
    /// Mapped spans: start to length and handle.
    pub(crate) mappings: BTreeMap<u64, (u64, u64)>,
    pub(crate) next_handle: u64,
    pub(crate) streams: Streams,
}

#[derive(Debug)]
pub(crate) struct DeviceState {
    pub(crate) hardware: u64,
    pub(crate) settings: Settings,
    /// How often the primary context was retained and not released.
    pub(crate) retained: u64,
    pub(crate) used: u64,
}

#[derive(Debug)]
pub(crate) struct Plain {
    pub(crate) bytes: u64,
    pub(crate) device: usize,
    /// Unmapped with the entry.
    pub(crate) _span: HostSpan,
}

#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) bytes: u64,
    /// Unmapped with the entry.
    pub(crate) _span: HostSpan,
}

#[derive(Debug)]
pub(crate) struct Physical {
    pub(crate) bytes: u64,
    pub(crate) device: usize,
    /// Whether its creator has not released it.
    pub(crate) is_held: bool,
    /// The number of its mappings.
    pub(crate) mappings: usize,
    /// The starts of its mappings with access, in the order in which they got it. The last one has the content.
    pub(crate) accessible: Vec<u64>,
}

static STATE: Mutex<State> = Mutex::new(State {
    process: 0,
    configured: None,
    devices: Vec::new(),
    calls: 0,
    fail_at: None,
    failed: None,
    plain: BTreeMap::new(),
    ranges: BTreeMap::new(),
    handles: BTreeMap::new(),
    mappings: BTreeMap::new(),
    next_handle: 1,
    streams: Streams::new(),
});

thread_local! {
    /// The devices whose contexts are on this thread's stack, the current one last.
    pub(crate) static CONTEXTS: RefCell<Vec<usize>> = const { RefCell::new(Vec::new()) };
}

pub(crate) fn with_state<T>(work: impl FnOnce(&mut State) -> T) -> T {
    work(&mut STATE.lock().unwrap_or_else(PoisonError::into_inner))
}

/// Counts a call, fails it if that was ordered, and otherwise runs `work`.
pub(crate) fn call(name: &'static CStr, work: impl FnOnce(&mut State) -> Result<(), Status>) -> Status {
    with_state(|state| {
        state.calls += 1;
        if let Some((_, status)) = state.fail_at.take_if(|(at, _)| *at == state.calls) {
            state.failed = Some(name);
            return status;
        }
        work(state).err().unwrap_or(SUCCESS)
    })
}

/// As `call`, for the functions that need an initialized driver.
pub(crate) fn call_initialized(
    name: &'static CStr,
    work: impl FnOnce(&mut State) -> Result<(), Status>,
) -> Status {
    // A forked child has the driver's memory and none of its threads.
    call(name, |state| if state.process == process::id() { work(state) } else { Err(NOT_INITIALIZED) })
}

impl State {
    /// Returns the device of the current context.
    pub(crate) fn current(&self) -> Result<usize, Status> {
        let current = CONTEXTS.with_borrow(|contexts| contexts.last().copied());
        current.filter(|&device| self.devices[device].retained > 0).ok_or(INVALID_CONTEXT)
    }

    /// Takes memory of a device.
    pub(crate) fn charge(&mut self, device: usize, bytes: u64) -> Result<(), Status> {
        let DeviceState { used, settings, .. } = &mut self.devices[device];
        let sum = used.checked_add(bytes).filter(|sum| *sum <= settings.memory).ok_or(OUT_OF_MEMORY)?;
        *used = sum;
        Ok(())
    }

    pub(crate) fn discharge(&mut self, device: usize, bytes: u64) {
        self.devices[device].used -= bytes;
    }

    /// Frees physical memory that is neither held nor mapped.
    pub(crate) fn settle(&mut self, handle: u64) {
        let gone = self.handles.get(&handle).is_some_and(|memory| !memory.is_held && memory.mappings == 0);
        if gone && let Some(memory) = self.handles.remove(&handle) {
            self.discharge(memory.device, memory.bytes);
        }
    }
}
