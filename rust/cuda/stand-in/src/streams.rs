//! Streams and events. No work is done: each stream knows behind which work of the others its next work comes.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::c_uint;

use crate::device::write;
use crate::state::call_initialized;
use crate::status::{INVALID_HANDLE, INVALID_VALUE, NOT_READY, Status};

/// For streams by their number: how many pieces of their work come before.
type Clock = BTreeMap<u64, u64>;

/// The default stream: its handle is 0 or 1, its number 1.
const LEGACY: u64 = 1;
/// The handle that is another stream on each thread.
const PER_THREAD: u64 = 2;
/// The handles of the first created stream and of the first event.
const FIRST_STREAM: u64 = 0x5000;
const FIRST_EVENT: u64 = 0xE000;

#[derive(Debug)]
pub(crate) struct Streams {
    /// Live streams: handle to number. A handle is used again, as the driver may do, and a number is not.
    handles: BTreeMap<u64, u64>,
    /// The work that comes before the next work of each stream, by its number.
    clocks: BTreeMap<u64, Clock>,
    /// Live events: handle to what comes before it.
    events: BTreeMap<u64, Clock>,
    /// Work that is done.
    done: Clock,
    last_number: u64,
    last_event: u64,
}

thread_local! {
    /// The number of this thread's default stream, 0 before its first use.
    static OWN: Cell<u64> = const { Cell::new(0) };
}

impl Streams {
    pub(crate) const fn new() -> Self {
        Self {
            handles: BTreeMap::new(),
            clocks: BTreeMap::new(),
            events: BTreeMap::new(),
            done: BTreeMap::new(),
            last_number: LEGACY,
            last_event: FIRST_EVENT,
        }
    }

    pub(crate) fn num_events(&self) -> u64 {
        self.events.len() as u64
    }

    /// All work that was queued is done.
    pub(crate) fn synchronize(&mut self) {
        for clock in self.clocks.values() {
            join(&mut self.done, clock);
        }
    }

    pub(crate) fn queue_work(&mut self, handle: u64) -> u64 {
        let Ok(number) = self.number(handle) else { return 0 };
        let own = self.clocks.entry(number).or_default().entry(number).or_default();
        *own += 1;
        *own
    }

    pub(crate) fn is_behind(&mut self, handle: u64, other: u64, work: u64) -> bool {
        let Ok(number) = self.number(handle) else { return false };
        let mut before = self.clocks.get(&number).cloned().unwrap_or_default();
        join(&mut before, &self.done);
        before.get(&other).is_some_and(|last| *last >= work)
    }

    /// Returns the number of a stream.
    pub(crate) fn number(&mut self, handle: u64) -> Result<u64, Status> {
        match handle {
            0 | LEGACY => Ok(LEGACY),
            PER_THREAD => Ok(OWN.with(|own| {
                if own.get() == 0 {
                    self.last_number += 1;
                    own.set(self.last_number);
                }
                own.get()
            })),
            _ => self.handles.get(&handle).copied().ok_or(INVALID_HANDLE),
        }
    }

    fn create(&mut self) -> u64 {
        let mut handle = FIRST_STREAM;
        while self.handles.contains_key(&handle) {
            handle += 1;
        }
        self.last_number += 1;
        self.handles.insert(handle, self.last_number);
        handle
    }
}

/// Adds to a clock what comes before another point.
fn join(clock: &mut Clock, other: &Clock) {
    for (&stream, &work) in other {
        let last = clock.entry(stream).or_default();
        *last = (*last).max(work);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(stream: *mut u64, flags: c_uint) -> Status {
    call_initialized(c"cuStreamCreate", |state| {
        state.current()?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let handle = state.streams.create();
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(stream, handle) }
    })
}

/// The work that is queued in the stream goes on.
#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(stream: u64) -> Status {
    call_initialized(c"cuStreamDestroy_v2", |state| {
        state.streams.handles.remove(&stream).map(|_| ()).ok_or(INVALID_HANDLE)
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetId(stream: u64, id: *mut u64) -> Status {
    call_initialized(c"cuStreamGetId", |state| {
        state.current()?;
        let number = state.streams.number(stream)?;
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(id, number) }
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamWaitEvent(stream: u64, event: u64, flags: c_uint) -> Status {
    call_initialized(c"cuStreamWaitEvent", |state| {
        state.current()?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let number = state.streams.number(stream)?;
        let before = state.streams.events.get(&event).ok_or(INVALID_HANDLE)?;
        join(state.streams.clocks.entry(number).or_default(), before);
        Ok(())
    })
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(event: *mut u64, flags: c_uint) -> Status {
    call_initialized(c"cuEventCreate", |state| {
        state.current()?;
        if flags > 7 {
            return Err(INVALID_VALUE);
        }
        state.streams.last_event += 1;
        let handle = state.streams.last_event;
        state.streams.events.insert(handle, Clock::new());
        // SAFETY: the caller's pointer, as in the driver.
        unsafe { write(event, handle) }
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(event: u64) -> Status {
    call_initialized(c"cuEventDestroy_v2", |state| {
        state.streams.events.remove(&event).map(|_| ()).ok_or(INVALID_HANDLE)
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(event: u64, stream: u64) -> Status {
    call_initialized(c"cuEventRecord", |state| {
        state.current()?;
        let number = state.streams.number(stream)?;
        let before = state.streams.clocks.get(&number).cloned().unwrap_or_default();
        *state.streams.events.get_mut(&event).ok_or(INVALID_HANDLE)? = before;
        Ok(())
    })
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(event: u64) -> Status {
    call_initialized(c"cuEventQuery", |state| {
        let streams = &state.streams;
        let before = streams.events.get(&event).ok_or(INVALID_HANDLE)?;
        let is_done = before.iter().all(|(stream, work)| streams.done.get(stream) >= Some(work));
        if is_done { Ok(()) } else { Err(NOT_READY) }
    })
}
