//! TensorFlow's allocator, through the driver in `tests/oracle/bfc_driver.cc`.
//!
//! The only file of the tests with unsafe code. The four structs below mirror those of the driver.
//!
//! Longer than 300 lines: each structure and function of one driver, declared and wrapped.
#![allow(dead_code, reason = "each test and benchmark takes its part")]

use std::ffi::c_void;
use std::path::PathBuf;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::time::Duration;

use allotment::Grant;
use allotment::replay::Event;
use allotment::source::{AddressSpace, Call};
use libloading::Library;

/// The setup of an allocator and its source, for both sides.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) limit: u64,
    /// The most bytes the source grants at once.
    pub(crate) cap: u64,
    /// Bytes between two grants.
    pub(crate) gap: u64,
    /// The most bytes of one grant.
    pub(crate) largest: u64,
    /// Bit n: the source declines request number n, from 0.
    pub(crate) refused: u64,
    pub(crate) fraction: f64,
    pub(crate) joins: bool,
    pub(crate) growth: bool,
    pub(crate) trim_on_oom: bool,
}

impl Setup {
    /// A source that declines nothing.
    pub(crate) const NO_REFUSALS: Self = Self {
        limit: 0,
        cap: u64::MAX / 4,
        gap: 0,
        largest: u64::MAX,
        refused: 0,
        fraction: 0.0,
        joins: false,
        growth: false,
        trim_on_oom: false,
    };
}

/// The result of an event, and the state after it.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Step {
    /// Offset of the allocated or freed chunk from the first region's start; -1 for none.
    pub(crate) offset: i64,
    /// Bytes of that chunk.
    pub(crate) chunk: i64,
    pub(crate) num_allocs: i64,
    pub(crate) in_use: i64,
    pub(crate) peak_in_use: i64,
    /// The largest chunk ever allocated.
    pub(crate) largest: i64,
    pub(crate) reserved: i64,
    pub(crate) peak_reserved: i64,
    /// Source calls so far.
    pub(crate) calls: u64,
}

#[repr(C)]
struct RawEvent {
    bytes: u64,
    slot: u32,
    allocates: u32,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct RawCall {
    bytes: u64,
    offset: i64,
    releases: u64,
}

type Handle = NonNull<c_void>;

/// The functions of the driver, copied out of a library that is never closed.
struct Functions {
    create: unsafe extern "C" fn(*const Setup) -> Option<Handle>,
    destroy: unsafe extern "C" fn(Handle),
    run: unsafe extern "C" fn(Handle, *const RawEvent, usize, usize, *const Step, *mut Step) -> usize,
    replay: unsafe extern "C" fn(Handle, *const RawEvent, usize, usize) -> u64,
    clock: unsafe extern "C" fn(Handle, *const RawEvent, usize, usize, *mut u64),
    ask: unsafe extern "C" fn(Handle, usize) -> u64,
    call_count: unsafe extern "C" fn(Handle) -> usize,
    calls: unsafe extern "C" fn(Handle, *mut RawCall),
}

/// Loads the driver.
///
/// # Panics
/// If it does not exist; the message says how to build it.
pub(crate) fn require() {
    functions();
}

/// Returns an error, which says how to build the driver, if it does not exist or cannot be loaded.
pub(crate) fn availability() -> Result<(), String> {
    library().map(drop)
}

fn functions() -> &'static Functions {
    static FUNCTIONS: OnceLock<Functions> = OnceLock::new();
    FUNCTIONS.get_or_init(|| {
        let library = library().unwrap_or_else(|error| panic!("{error}"));
        Functions::of(library).unwrap_or_else(|error| panic!("the driver cannot be used: {error}"))
    })
}

/// Returns the driver, which is loaded once and never closed; the error says how to build it.
fn library() -> Result<&'static Library, String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let library = LIBRARY.get_or_init(|| {
        let path = std::env::var_os("ALLOTMENT_ORACLE").map_or_else(
            || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/oracle/libbfc_driver.so"),
            PathBuf::from,
        );
        let at = path.display();
        if !path.exists() {
            let remedy = "run `make oracle`, or name it in ALLOTMENT_ORACLE";
            return Err(format!("the driver of TensorFlow's allocator is not at {at}: {remedy}"));
        }
        // Without this, TensorFlow prints a line about another of its libraries while it is loaded.
        // SAFETY: only that library reads the environment past `std`, and it is not loaded yet.
        unsafe { std::env::set_var("TF_ENABLE_ONEDNN_OPTS", "0") };
        // SAFETY: the file is our driver. Its initialisers and TensorFlow's are those of any library: they ask nothing.
        unsafe { Library::new(&path) }.map_err(|error| format!("{at} cannot be used: {error}"))
    });
    library.as_ref().map_err(Clone::clone)
}

impl Functions {
    fn of(library: &'static Library) -> Result<Self, libloading::Error> {
        // SAFETY: the types are those of the driver's source, which is built from the same commit.
        unsafe {
            Ok(Self {
                create: *library.get(b"bfc_create")?,
                destroy: *library.get(b"bfc_destroy")?,
                run: *library.get(b"bfc_run")?,
                replay: *library.get(b"bfc_replay")?,
                clock: *library.get(b"bfc_clock")?,
                ask: *library.get(b"bfc_ask")?,
                call_count: *library.get(b"bfc_call_count")?,
                calls: *library.get(b"bfc_calls")?,
            })
        }
    }
}

/// Events in the driver's form; every slot is below `slots`.
pub(crate) struct Events {
    raw: Vec<RawEvent>,
    slots: usize,
}

impl Events {
    pub(crate) fn new(events: &[Event]) -> Self {
        let raw: Vec<_> = events.iter().map(RawEvent::from).collect();
        let slots = raw.iter().map(|event| event.slot as usize + 1).max().unwrap_or(0);
        Self { raw, slots }
    }
}

impl From<&Event> for RawEvent {
    fn from(event: &Event) -> Self {
        match *event {
            Event::Allocate { slot, bytes } => Self { bytes, slot, allocates: 1 },
            Event::Free { slot } => Self { bytes: 0, slot, allocates: 0 },
        }
    }
}

/// One of TensorFlow's allocators over a bump source that caps and records. Slots persist between calls.
pub(crate) struct Reference(Handle);

impl Reference {
    pub(crate) fn new(setup: &Setup) -> Self {
        // SAFETY: `setup` is read during the call only.
        let handle = unsafe { (functions().create)(setup) };
        Self(handle.expect("`new` of the driver throws or returns an object"))
    }

    /// Plays events and records the state after each; if steps are expected, stops at the first difference.
    ///
    /// # Panics
    /// If there are more events than expected steps.
    pub(crate) fn run(&mut self, events: &Events, expected: Option<&[Step]>) -> Vec<Step> {
        let Events { raw, slots } = events;
        assert!(expected.is_none_or(|steps| raw.len() <= steps.len()), "a step is expected of every event");
        let expected = expected.map_or(std::ptr::null(), <[Step]>::as_ptr);
        let mut steps = vec![Step::default(); raw.len()];
        let (raw, count, into) = (raw.as_ptr(), raw.len(), steps.as_mut_ptr());
        // SAFETY: the handle is live and `&mut` makes it exclusive; the arrays, if present, have at least the length
        // passed, and no slot is `slots` or more.
        let played = unsafe { (functions().run)(self.0, raw, count, *slots, expected, into) };
        steps.truncate(played);
        steps
    }

    /// Plays events and nothing else; returns the time of that loop.
    pub(crate) fn replay(&mut self, events: &Events) -> Duration {
        let Events { raw, slots } = events;
        // SAFETY: as in `run`.
        Duration::from_nanos(unsafe { (functions().replay)(self.0, raw.as_ptr(), raw.len(), *slots) })
    }

    /// Plays events; returns the nanoseconds of each, including one clock reading.
    pub(crate) fn clock(&mut self, events: &Events) -> Vec<u64> {
        let mut nanoseconds = vec![0; events.raw.len()];
        let Events { raw, slots } = events;
        // SAFETY: as in `run`.
        unsafe { (functions().clock)(self.0, raw.as_ptr(), raw.len(), *slots, nanoseconds.as_mut_ptr()) };
        nanoseconds
    }

    /// Queries the counters repeatedly; returns the elapsed time.
    pub(crate) fn ask(&mut self, times: usize) -> Duration {
        // SAFETY: the handle is live and `&mut` makes it exclusive.
        Duration::from_nanos(unsafe { (functions().ask)(self.0, times) })
    }

    /// Returns the source calls so far, with the addresses that our made-up source would have granted.
    pub(crate) fn calls(&self) -> Vec<Call> {
        // SAFETY: the handle is live, and no events can run while `self` is borrowed.
        let count = unsafe { (functions().call_count)(self.0) };
        let mut raw = vec![RawCall::default(); count];
        // SAFETY: as above; the driver writes as many calls as it just reported.
        unsafe { (functions().calls)(self.0, raw.as_mut_ptr()) };
        raw.into_iter().map(Call::from).collect()
    }
}

impl From<RawCall> for Call {
    fn from(call: RawCall) -> Self {
        let address = u64::try_from(call.offset).ok().map(|offset| AddressSpace::START + offset);
        let span = address.map(|address| Grant { address, bytes: call.bytes });
        match span {
            Some(region) if call.releases != 0 => Self::Release(region),
            answer => Self::Reserve { bytes: call.bytes, answer },
        }
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        // SAFETY: the handle came from `create` and is dropped once.
        unsafe { (functions().destroy)(self.0) };
    }
}

/// One of TensorFlow's allocators, for several threads at once.
pub(crate) struct SharedReference {
    reference: Reference,
    allocate: unsafe extern "C" fn(Handle, u64) -> *mut c_void,
    free: unsafe extern "C" fn(Handle, *mut c_void),
}

// SAFETY: any thread may allocate and free: the allocator has a lock. Nothing else is shared.
unsafe impl Sync for SharedReference {}
// SAFETY: the driver depends on no thread.
unsafe impl Send for SharedReference {}

impl SharedReference {
    /// Creates an allocator.
    ///
    /// # Errors
    /// If there is no driver that has it; the text says how to build it.
    pub(crate) fn new(setup: &Setup) -> Result<Self, String> {
        let library = library()?;
        // SAFETY: the types are those of the driver's source.
        let functions = unsafe {
            library.get(b"bfc_allocate").and_then(|allocate| Ok((*allocate, *library.get(b"bfc_free")?)))
        };
        let (allocate, free) = functions.map_err(|error| format!("the driver is old: {error}"))?;
        Ok(Self { reference: Reference::new(setup), allocate, free })
    }

    /// Returns the address, which is 0 if the request is refused.
    #[inline]
    pub(crate) fn allocate(&self, bytes: u64) -> u64 {
        // SAFETY: the handle is live, and the function may run on several threads.
        unsafe { (self.allocate)(self.reference.0, bytes) }.expose_provenance() as u64
    }

    /// Frees an allocation.
    ///
    /// # Safety
    /// `address` is an allocation of this allocator that was not freed.
    #[inline]
    pub(crate) unsafe fn free(&self, address: u64) {
        let address = usize::try_from(address).expect("an address of this machine");
        // SAFETY: the caller vouches for the address; the function may run on several threads.
        unsafe { (self.free)(self.reference.0, std::ptr::with_exposed_provenance_mut(address)) };
    }
}
