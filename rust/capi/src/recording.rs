//! Recordings: the events of a pool as they happen.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CString, c_char};
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use allotment::{EventKind, EventLog, Keep, PoolEvent, Unusable};

use crate::pool::{Pool, core_of, require, store};
use crate::status::{Failure, Status, null, run};

/// A full recording keeps the last events: the oldest one makes room.
pub const ALLOTMENT_KEEP_LAST_EVENTS: i32 = 0;
/// A full recording keeps what it has, and counts new events as lost.
pub const ALLOTMENT_KEEP_FIRST_EVENTS: i32 = 1;

/// An allocation was made, or was live when the recording began. One that is resized is freed and made anew, under the
/// same number.
pub const ALLOTMENT_EVENT_ALLOCATED: u32 = 1;
/// An allocation was freed.
pub const ALLOTMENT_EVENT_FREED: u32 = 2;
/// A request was refused.
pub const ALLOTMENT_EVENT_REFUSED: u32 = 3;

/// An event of a pool.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Event {
    /// Nanoseconds since the recording began.
    pub nanoseconds: u64,
    /// The number of the allocation in its pool; 0 for a refusal.
    pub id: u64,
    /// The requested bytes.
    pub bytes: u64,
    /// `ALLOTMENT_EVENT_ALLOCATED`, `ALLOTMENT_EVENT_FREED` or `ALLOTMENT_EVENT_REFUSED`.
    pub kind: u32,
    /// The thread of the call, numbered from 0 on.
    pub thread: u32,
    /// The tag of that thread, `allotment_set_tag`; null for none. Valid until the recording ends.
    pub tag: *const c_char,
}

/// A recording of a pool, which `allotment_recording_end` ends and frees. All threads may use it at once.
#[derive(Debug)]
pub struct Recording {
    pool: Weak<allotment::Pool>,
    log: EventLog,
    reader: Mutex<Reader>,
}

/// The events on their way from the log to the caller.
#[derive(Debug, Default)]
struct Reader {
    /// Events that did not fit the caller's array.
    rest: VecDeque<PoolEvent>,
    /// The tags of all events as texts of C. Their bytes stay where they are.
    tags: HashMap<Arc<str>, CString>,
}

impl Recording {
    fn reader(&self) -> MutexGuard<'_, Reader> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reader {
    fn event(&mut self, event: PoolEvent) -> Event {
        let PoolEvent { kind, nanoseconds, id, bytes, thread, tag, .. } = event;
        let kind = if kind == EventKind::Allocated {
            ALLOTMENT_EVENT_ALLOCATED
        } else if kind == EventKind::Freed {
            ALLOTMENT_EVENT_FREED
        } else {
            ALLOTMENT_EVENT_REFUSED
        };
        let tag = tag.map_or(ptr::null(), |tag| {
            // Tags of this library have no null bytes.
            let text = |tag: &Arc<str>| CString::new(&**tag).unwrap_or_default();
            self.tags.entry(tag).or_insert_with_key(text).as_ptr()
        });
        Event { nanoseconds, id, bytes, kind, thread, tag }
    }
}

/// Begins a recording of at most `capacity` events, at least 1, and stores it; null on failure. Its first events are
/// the live allocations. `keep` is `ALLOTMENT_KEEP_LAST_EVENTS` or `ALLOTMENT_KEEP_FIRST_EVENTS`. A pool may have
/// several recordings. Allocations of zero bytes are no events.
///
/// # Safety
/// `pool` is a pool; `recording` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_recording_begin(
    pool: *const Pool,
    capacity: usize,
    keep: i32,
    recording: *mut *mut Recording,
) -> Status {
    run(|| {
        require(recording, "recording")?;
        // SAFETY: guaranteed by the caller.
        let pool = unsafe {
            store(recording, ptr::null_mut());
            core_of(pool)?
        };
        if capacity == 0 {
            return Err(Failure::invalid("capacity 0 holds no event: pass at least 1"));
        }
        let keep = match keep {
            ALLOTMENT_KEEP_LAST_EVENTS => Keep::Last,
            ALLOTMENT_KEEP_FIRST_EVENTS => Keep::First,
            other => return Err(Failure::invalid(format!("keep {other} is neither 0 (last) nor 1 (first)"))),
        };
        let log = EventLog::new(capacity, keep);
        pool.start_recording(&log)?;
        let made = Recording { pool: Arc::downgrade(pool), log, reader: Mutex::default() };
        // SAFETY: guaranteed by the caller.
        unsafe { store(recording, Box::into_raw(Box::new(made))) };
        Ok(())
    })
}

/// Returns a recording argument.
///
/// # Safety
/// `recording` is null or a recording that has not ended.
unsafe fn recording_of<'a>(recording: *const Recording) -> Result<&'a Recording, Failure> {
    // SAFETY: guaranteed by the caller.
    let recording = unsafe { recording.as_ref() }.ok_or_else(|| null("recording"))?;
    check_process(recording)?;
    Ok(recording)
}

/// Refuses a recording of the parent process, also after the end of its pool: another thread of the parent may hold the
/// lock of the log.
fn check_process(recording: &Recording) -> Result<(), Failure> {
    if recording.log.is_inherited() { Err(Unusable::Forked.into()) } else { Ok(()) }
}

/// Removes up to `capacity` events, the oldest first, and stores them and their number: fewer than `capacity` if there
/// are no more now. It works after the end of the pool, too.
///
/// # Safety
/// `recording` is a recording; `events` points to `capacity` writable events; `count` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_recording_take(
    recording: *const Recording,
    events: *mut Event,
    capacity: usize,
    count: *mut usize,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let recording = unsafe { recording_of(recording)? };
        require(events, "events")?;
        require(count, "count")?;
        let mut reader = recording.reader();
        let mut stored = 0;
        while stored < capacity {
            if reader.rest.is_empty() {
                reader.rest = recording.log.take();
            }
            let Some(event) = reader.rest.pop_front() else { break };
            let event = reader.event(event);
            // SAFETY: guaranteed by the caller, as `stored` is below `capacity`.
            unsafe { events.add(stored).write(event) };
            stored += 1;
        }
        // SAFETY: guaranteed by the caller.
        unsafe { store(count, stored) };
        Ok(())
    })
}

/// Stores how many events a full recording dropped, and how many requests were refused since it began, dropped ones
/// included.
///
/// # Safety
/// `recording` is a recording; `lost` and `refused` are null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_recording_counts(
    recording: *const Recording,
    lost: *mut u64,
    refused: *mut u64,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let recording = recording_of(recording)?;
            store(lost, recording.log.lost());
            store(refused, recording.log.refused());
        }
        Ok(())
    })
}

/// Ends a recording and frees it, with the events that were not taken and all tags, also on failure: a forked child
/// gets `ALLOTMENT_FORKED` for a recording of its parent. Null is accepted.
///
/// # Safety
/// `recording` is a recording that no thread uses now or later, or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_recording_end(recording: *mut Recording) -> Status {
    run(|| {
        if !recording.is_null() {
            // SAFETY: guaranteed by the caller; it came from `Box::into_raw`.
            let recording = unsafe { Box::from_raw(recording) };
            check_process(&recording)?;
            if let Some(pool) = recording.pool.upgrade() {
                pool.stop_recording(&recording.log)?;
            }
        }
        Ok(())
    })
}
