//! Large blocks: one pool for all of them.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use allotment::{AllocError, Allocation, Options, Pool, Request};

use crate::entry::Inside;
use crate::journal::{self, Event};
use crate::ranges::{self, PAGE};
use crate::settings::Settings;
use crate::source::{BlockSource, committed};
use crate::statistics::{self, Figure};
use crate::{content, entry, report};

/// The limit of pools without one: above every machine's memory.
const NO_LIMIT: u64 = 1 << 46;
/// From this limit on memory comes in huge pages.
const MIN_LIMIT_FOR_HUGE_PAGES: u64 = 256 << 20;
/// The page size of the pool below that.
const SMALL_PAGES: u64 = 64 << 10;

/// Free pages keep their memory up to this part of what is in use, unless the setting is more.
const KEPT_PART: u64 = 4;

/// The option that sets the limit, for reports.
pub(crate) const LIMIT_SET_BY: &str = "--limit";

/// Requests of fewer bytes go to the real allocator: all of them before there is a pool.
static THRESHOLD: AtomicUsize = AtomicUsize::new(usize::MAX);

static BLOCKS: OnceLock<Blocks> = OnceLock::new();

/// The large blocks of this process.
pub(crate) struct Blocks {
    pub(crate) pool: Pool,
    settings: Settings,
    pub(crate) limit: u64,
    /// Bytes of the blocks in whole pages.
    pub(crate) held: AtomicU64,
    /// Whether the pool's limit is above `limit`, by less than two pages of the pool: see `resizing.rs`.
    pub(crate) is_above_limit: AtomicBool,
    /// Free memory that could not be given back, in bytes, and some more.
    stuck: AtomicU64,
}

/// Whether a request is one for a large block.
#[inline(always)]
pub(crate) fn are_large(bytes: usize) -> bool {
    bytes >= THRESHOLD.load(Ordering::Relaxed)
}

/// Starts to serve large requests, before the program's `main`.
pub(crate) fn begin(settings: Settings) -> Result<(), allotment::OptionsError> {
    let limit = settings.limit.unwrap_or(NO_LIMIT);
    let page_size = if limit >= MIN_LIMIT_FOR_HUGE_PAGES { None } else { Some(SMALL_PAGES) };
    let options = Options::new(limit).elastic(true).page_size(page_size).limit_set_by(LIMIT_SET_BY);
    let pool = Pool::new(BlockSource::new(), options)?;
    let threshold = settings.threshold;
    let blocks = Blocks {
        pool,
        settings,
        limit,
        held: AtomicU64::new(0),
        is_above_limit: AtomicBool::new(false),
        stuck: AtomicU64::new(0),
    };
    if BLOCKS.set(blocks).is_ok() {
        THRESHOLD.store(threshold, Ordering::Relaxed);
    }
    Ok(())
}

/// Allocates a large block; `None` if there is no pool for this thread now, and a null pointer if it is refused.
pub(crate) fn allocate(bytes: usize, alignment: usize, zeroed: bool) -> Option<*mut c_void> {
    let blocks = BLOCKS.get().filter(|_| !entry::is_inside())?;
    let _inside = Inside::enter();
    // A panic would be a fault of the pool. The program gets memory elsewhere then.
    let block = catch_unwind(AssertUnwindSafe(|| blocks.allocate(bytes, alignment))).ok()?;
    let Some(block) = block else {
        set_errno(libc::ENOMEM);
        return Some(ptr::null_mut());
    };
    if zeroed {
        // SAFETY: the block was just allocated.
        unsafe { content::clear(block, bytes) };
    }
    ranges::mark_written(block.addr().get(), bytes);
    Some(block.as_ptr().cast())
}

/// Refuses a request for more bytes than 64 bits can say; returns a null pointer.
#[cold]
#[inline(never)]
pub(crate) fn refuse_product(count: usize, bytes: usize) -> *mut c_void {
    if let Some(blocks) = BLOCKS.get().filter(|_| !entry::is_inside()) {
        let _inside = Inside::enter();
        let _ = catch_unwind(AssertUnwindSafe(|| {
            statistics::begin(&blocks.settings);
            blocks.count_refusal(usize::MAX);
            report::other_refusal(&format_args!(
                "cannot allocate {count} times {bytes} bytes: the largest request is {} bytes",
                allotment::MAX_BYTES
            ));
        }));
    }
    set_errno(libc::ENOMEM);
    ptr::null_mut()
}

/// Frees a block; returns false if it is not the pool's.
///
/// # Safety
/// As for `free`: the block has no other user.
pub(crate) unsafe fn free(block: *mut c_void) -> bool {
    let Some(entry) = ranges::block_at(block.addr()) else { return false };
    let Some(blocks) = BLOCKS.get() else { return false };
    let errno = errno();
    let inside = Inside::enter();
    let bytes = entry.bytes();
    if bytes == 0 {
        drop(inside);
        misuse("free", block);
    }
    let _ = catch_unwind(AssertUnwindSafe(|| blocks.free(block, entry)));
    set_errno(errno);
    true
}

/// Returns the usable bytes of a block; `None` if it is not the pool's. `function` is the one that the program called.
pub(crate) fn usable_size(block: *mut c_void, function: &str) -> Option<usize> {
    match ranges::block_at(block.addr())?.bytes() {
        0 => misuse(function, block),
        bytes => Some(bytes.next_multiple_of(PAGE)),
    }
}

/// Gives the memory of free pages back; returns whether there was any.
pub(crate) fn trim() -> bool {
    let Some(blocks) = BLOCKS.get().filter(|_| !entry::is_inside()) else { return false };
    let _inside = Inside::enter();
    let trimmed = catch_unwind(AssertUnwindSafe(|| blocks.pool.trim_to(0)));
    trimmed.is_ok_and(|bytes| bytes.unwrap_or_else(|error| error.released()) > 0)
}

impl Blocks {
    fn allocate(&self, bytes: usize, alignment: usize) -> Option<NonNull<u8>> {
        match self.take(bytes, alignment) {
            Ok(allocation) => Some(self.enter(&allocation, bytes)),
            Err(error) => {
                self.refuse(error, bytes);
                None
            }
        }
    }

    /// Allocates whole pages from the pool.
    pub(crate) fn take(&self, bytes: usize, alignment: usize) -> Result<Allocation, AllocError> {
        statistics::begin(&self.settings);
        let whole = bytes.checked_next_multiple_of(PAGE).unwrap_or(usize::MAX);
        let request = Request::new(whole as u64).align((alignment as u64).max(allotment::GRANULE));
        self.pool.allocate(request)
    }

    /// Makes an allocation a block of the program.
    fn enter(&self, allocation: &Allocation, bytes: usize) -> NonNull<u8> {
        let block = set_block(allocation, bytes);
        self.held.fetch_add(whole_pages(bytes), Ordering::Relaxed);
        let live = statistics::add(Figure::Live, bytes as u64);
        statistics::raise(Figure::PeakLive, live);
        statistics::raise(Figure::PeakCommitted, committed());
        statistics::add(Figure::Blocks, 1);
        self.record(Event::Allocated, allocation.id, bytes);
        block
    }

    /// Counts and tells a refusal.
    pub(crate) fn refuse(&self, error: AllocError, bytes: usize) {
        self.count_refusal(bytes);
        match error {
            AllocError::OutOfMemory(refused) => report::out_of_memory(refused, |refused| {
                let _ = self.pool.add_details(refused);
            }),
            other => report::other_refusal(&other),
        }
    }

    fn count_refusal(&self, bytes: usize) {
        let number = statistics::add(Figure::Refused, 1);
        if number == 1 {
            statistics::add(Figure::FirstRefused, bytes as u64);
        }
        self.record(Event::Refused, 0, bytes);
    }

    fn free(&self, block: *mut c_void, entry: &ranges::Block) {
        // First: the journal may begin with this event, and then with this block. And no other thread may get the address
        // before the journal has the free.
        self.record(Event::Freed, entry.id(), entry.bytes());
        let bytes = entry.take();
        if bytes == 0 {
            misuse("free", block);
        }
        statistics::subtract(Figure::Live, bytes as u64);
        self.held.fetch_sub(whole_pages(bytes), Ordering::Relaxed);
        let freed = self.pool.free(block.addr() as u64);
        debug_assert!(freed.is_ok(), "a block of the pool");
        self.give_back();
        if self.is_above_limit.load(Ordering::Relaxed) {
            self.restore_limit();
        }
    }

    /// Gives the memory of free pages back that are above what is kept: a program that frees and allocates in turns would
    /// otherwise get cleared pages from the system each time, which takes longer than all else here.
    pub(crate) fn give_back(&self) {
        let held = self.held.load(Ordering::Relaxed);
        let keep = if self.settings.keep == 0 { 0 } else { self.settings.keep.max(held / KEPT_PART) };
        if committed().saturating_sub(held) <= keep.max(self.stuck.load(Ordering::Relaxed)) {
            return;
        }
        let _ = self.pool.trim_to(held + keep);
        // Pages that a block has part of stay. The next attempt is when there is more to give.
        let stays = committed().saturating_sub(self.held.load(Ordering::Relaxed));
        let stuck = if stays > keep { stays + (keep / 8).max(1 << 20) } else { 0 };
        self.stuck.store(stuck, Ordering::Relaxed);
    }

    pub(crate) fn record(&self, event: Event, id: u64, bytes: usize) {
        let Some(path) = &self.settings.record else { return };
        journal::add(path, self.settings.start, event, (id, bytes as u64), || self.live());
    }

    /// Returns numbers and bytes of the blocks in use.
    fn live(&self) -> Vec<(u64, u64)> {
        let Ok(snapshot) = self.pool.snapshot() else { return Vec::new() };
        let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks).filter(|chunk| chunk.in_use);
        let block = |chunk: &allotment::ChunkSnapshot| {
            let bytes = ranges::block_at(usize::try_from(chunk.address).ok()?)?.bytes() as u64;
            (bytes > 0).then_some((chunk.id, bytes))
        };
        chunks.filter_map(block).collect()
    }
}

/// Returns the blocks of this process; `None` before there is a pool.
pub(crate) fn get() -> Option<&'static Blocks> {
    BLOCKS.get()
}

/// Notes that a block starts at an allocation, and returns it.
pub(crate) fn set_block(allocation: &Allocation, bytes: usize) -> NonNull<u8> {
    let address = usize::try_from(allocation.address).expect("an address of this process");
    // In a pool whose sizes are all whole pages, and which splits every remainder off, addresses are, too.
    assert!(address.is_multiple_of(PAGE), "a block starts at a page");
    ranges::block_at(address).expect("an address of the pool").set(bytes, allocation.id);
    NonNull::new(ptr::with_exposed_provenance_mut(address)).expect("not the address of nothing")
}

/// Returns the bytes of a block in whole pages.
pub(crate) fn whole_pages(bytes: usize) -> u64 {
    bytes.next_multiple_of(PAGE) as u64
}

/// Ends the process as the C library does when a program frees what is not allocated: its memory is damaged.
pub(crate) fn misuse(function: &str, block: *mut c_void) -> ! {
    report::print(&format!("{function}(): {block:p} is not the start of an allocated block"));
    // SAFETY: the function has no preconditions.
    unsafe { libc::abort() }
}

fn errno() -> i32 {
    // SAFETY: the address is that of the calling thread's value.
    unsafe { *libc::__errno_location() }
}

pub(crate) fn set_errno(number: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = number };
}
