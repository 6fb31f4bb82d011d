//! Order of the work of streams around memory that one of them frees and another one gets.
//!
//! A runtime frees memory when its host code is done with it; the device may not be. Later work in the same stream
//! comes behind that work by itself. Before another stream uses memory of the pool, it waits for an event of each stream
//! that has freed memory since it last waited. The host waits for nothing. The order is one for all memory of a pool:
//! it knows which stream freed something, and not what.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use crate::context::DeviceContext;
use crate::driver::Driver;
use crate::error::CudaError;
use crate::sys::{Event, Stream};

/// Handles of the legacy default stream: the driver's, and that of `CU_STREAM_LEGACY`.
const LEGACY: [u64; 2] = [0, 1];
/// So many streams that freed memory are kept before the ones whose work is done are dropped.
const MOST_FREEING: usize = 32;
/// So many streams that waited are kept before all are forgotten, and wait once more.
const MOST_WAITING: usize = 256;

/// Which stream a handle means. A handle can mean another stream later, or on another thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum StreamKey {
    /// The default stream, which exists as long as its context.
    Legacy,
    /// The driver's number, which is never used again.
    Id(u64),
    /// The handle on a thread, with a driver that has no numbers.
    Handle(u64, ThreadId),
}

/// A stream that freed memory.
#[derive(Debug)]
struct Freeing {
    key: StreamKey,
    /// The number of its last free.
    last: u64,
    /// The event, and the free that it was recorded behind.
    recorded: Option<(Event, u64)>,
}

#[derive(Debug, Default)]
struct State {
    /// Number of frees so far.
    frees: u64,
    freeing: Vec<Freeing>,
    /// For each stream, the number of the last free that it has waited for.
    waited: HashMap<StreamKey, u64>,
    /// Whether an event was not recorded: the next use waits for the whole device.
    must_synchronize: bool,
}

/// The order of the streams of one device that share a pool's memory.
pub struct StreamOrder {
    context: DeviceContext,
    state: Mutex<State>,
}

impl StreamOrder {
    /// Creates the order for a device, by the driver's index. Makes no context.
    ///
    /// # Errors
    /// If there is no such device, or the driver fails.
    pub fn new(driver: &Driver, ordinal: u32) -> Result<Self, CudaError> {
        Ok(Self { context: DeviceContext::new(driver, ordinal)?, state: Mutex::default() })
    }

    /// Returns the driver's index of the device.
    #[must_use]
    pub fn ordinal(&self) -> u32 {
        self.context.ordinal
    }

    /// Notes that work in `stream` may still use memory that is freed after this call.
    ///
    /// Of a stream that may be destroyed later the event is recorded now. Without a stream, and if the driver refuses
    /// that, as for a stream that does not exist any more, the host waits for the device before the next use of memory.
    pub fn before_free(&self, stream: Option<u64>) {
        // Before the lock: in a forked child it may be held for ever, and nothing there is freed.
        if self.context.check_process().is_err() {
            return;
        }
        let mut state = self.lock();
        let Some(stream) = stream else {
            state.must_synchronize = true;
            return;
        };
        state.frees += 1;
        let result = if LEGACY.contains(&stream) {
            state.note(StreamKey::Legacy);
            Ok(())
        } else {
            self.context.with(|driver| {
                let key = key(driver, stream)?;
                state.note(key).record(driver, handle(stream))
            })
        };
        state.must_synchronize |= result.is_err();
        if state.freeing.len() > MOST_FREEING {
            let _ = self.context.with(|driver| {
                state.drop_done(driver);
                Ok(())
            });
        }
    }

    /// Lets work that is queued in `stream` from now on wait for the work of other streams that freed memory. Without a
    /// stream the host waits for the device, if any stream has freed memory.
    ///
    /// # Errors
    /// If the driver fails; memory that was just allocated must not be used then.
    pub fn before_use(&self, stream: Option<u64>) -> Result<(), CudaError> {
        self.context.check_process()?;
        let mut state = self.lock();
        if state.must_synchronize || stream.is_none() && !state.freeing.is_empty() {
            self.context.with(|driver| {
                driver.synchronize()?;
                state.drop_all(driver);
                Ok(())
            })?;
            state.must_synchronize = false;
        }
        let Some(stream) = stream else { return Ok(()) };
        let is_legacy = LEGACY.contains(&stream);
        if is_legacy && state.has_waited(StreamKey::Legacy) || state.freeing.is_empty() {
            return Ok(());
        }
        self.context.with(|driver| {
            let key = if is_legacy { StreamKey::Legacy } else { key(driver, stream)? };
            state.wait(driver, key, handle(stream))
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns the entry of a stream, with the present free as its last.
    fn note(&mut self, key: StreamKey) -> &mut Freeing {
        let at = self.freeing.iter().position(|freeing| freeing.key == key).unwrap_or_else(|| {
            self.freeing.push(Freeing { key, last: 0, recorded: None });
            self.freeing.len() - 1
        });
        self.freeing[at].last = self.frees;
        &mut self.freeing[at]
    }

    fn has_waited(&self, key: StreamKey) -> bool {
        let waited = self.waited.get(&key).copied().unwrap_or(0);
        self.freeing.iter().all(|freeing| freeing.key == key || freeing.last <= waited)
    }

    fn wait(&mut self, driver: &Driver, key: StreamKey, stream: Stream) -> Result<(), CudaError> {
        let waited = self.waited.get(&key).copied().unwrap_or(0);
        for freeing in &mut self.freeing {
            if freeing.key == key || freeing.last <= waited {
                continue;
            }
            if freeing.key == StreamKey::Legacy {
                freeing.record(driver, handle(LEGACY[0]))?;
            }
            if let Some((event, _)) = freeing.recorded {
                driver.wait_event(stream, event)?;
            }
        }
        if self.waited.len() >= MOST_WAITING {
            self.waited.clear();
        }
        self.waited.insert(key, self.frees);
        Ok(())
    }

    /// Drops all streams that freed memory; their work is done.
    fn drop_all(&mut self, driver: &Driver) {
        for (event, _) in self.freeing.drain(..).filter_map(|freeing| freeing.recorded) {
            destroy(driver, event);
        }
    }

    /// Drops the streams whose work is done: no one needs to wait for it.
    fn drop_done(&mut self, driver: &Driver) {
        self.freeing.retain(|freeing| {
            let Some((event, number)) = freeing.recorded else { return true };
            let is_done = number == freeing.last && driver.is_event_done(event).unwrap_or(false);
            if is_done {
                destroy(driver, event);
            }
            !is_done
        });
    }
}

impl Freeing {
    /// Records the event behind the work that is queued in the stream.
    fn record(&mut self, driver: &Driver, stream: Stream) -> Result<(), CudaError> {
        if self.recorded.is_some_and(|(_, number)| number == self.last) {
            return Ok(());
        }
        let event = match self.recorded {
            Some((event, _)) => event,
            None => driver.create_event()?,
        };
        // Kept before it is recorded, so that a failure does not lose it.
        self.recorded = Some((event, 0));
        driver.record_event(event, stream)?;
        self.recorded = Some((event, self.last));
        Ok(())
    }
}

impl Drop for StreamOrder {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if state.freeing.iter().any(|freeing| freeing.recorded.is_some()) {
            // At the end of the process the driver may have ended before.
            let _ = self.context.with(|driver| {
                state.drop_all(driver);
                Ok(())
            });
        }
    }
}

impl fmt::Debug for StreamOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StreamOrder(device {})", self.context.ordinal)
    }
}

/// Destroys an event; tries a second time, for a failure that passes.
fn destroy(driver: &Driver, event: Event) {
    if driver.destroy_event(event).is_err() {
        let _ = driver.destroy_event(event);
    }
}

/// Finds out which stream a handle means; its context is current.
fn key(driver: &Driver, stream: u64) -> Result<StreamKey, CudaError> {
    let id = driver.stream_id(handle(stream))?;
    Ok(id.map_or_else(|| StreamKey::Handle(stream, thread::current().id()), StreamKey::Id))
}

fn handle(stream: u64) -> Stream {
    // An address of this machine.
    std::ptr::without_provenance_mut(usize::try_from(stream).unwrap_or(usize::MAX))
}
