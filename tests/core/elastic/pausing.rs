//! Pausing: contents, frees and closing meanwhile, and failures of each step.
//!
//! Longer than 300 lines: a source of known content, and one test for each thing that may happen to a paused pool.

use std::fs::File;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use allotment::source::{
    AddressSpace, Cap, Capped, CheckedPages, CommittedPages, FailingPages, Grant, PageCall, PageSource,
    RegionSource, ReserveError, SourceFailure,
};
use allotment::{AllocError, LimitError, Options, PauseError, PausedContent, Pool, Siblings, Unusable};

pub(crate) const PAGE: u64 = 64 << 10;

/// Made-up addresses whose bytes all have one value.
#[derive(Debug)]
pub(crate) struct Uniform {
    upstream: AddressSpace,
    content: u8,
    commits_zeros: bool,
    pub(crate) written: Arc<AtomicU64>,
}

impl Uniform {
    pub(crate) fn new(content: u8) -> Self {
        Self { upstream: AddressSpace::new(0), content, commits_zeros: false, written: Arc::default() }
    }

    fn upstream(&mut self) -> &mut dyn PageSource {
        self.upstream.pages().expect("it has pages")
    }
}

impl RegionSource for Uniform {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.upstream.reserve(bytes, alignment)
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
    }

    fn pages(&mut self) -> Option<&mut dyn PageSource> {
        Some(self)
    }
}

impl PageSource for Uniform {
    fn granule(&self) -> u64 {
        4096
    }

    fn reserve_addresses(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.upstream().reserve_addresses(bytes, alignment)
    }

    fn release_addresses(&mut self, range: Grant) {
        self.upstream().release_addresses(range);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.upstream().commit(span)
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        self.upstream().decommit(span)
    }

    fn commits_zeros(&mut self) -> bool {
        self.commits_zeros
    }

    fn read(&mut self, _address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        into.fill(self.content);
        Ok(())
    }

    fn write(&mut self, _address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        assert!(from.iter().all(|&byte| byte == self.content));
        self.written.fetch_add(from.len() as u64, Ordering::Relaxed);
        Ok(())
    }
}

fn pool() -> (Pool, CommittedPages) {
    let (source, pages) = CheckedPages::new(Uniform::new(7), PAGE);
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    (Pool::new(source, options).expect("valid"), pages)
}

#[test]
fn a_paused_pool_has_no_memory_and_takes_no_request() {
    let (pool, pages) = pool();
    let kept = pool.allocate(5 * PAGE).expect("room");
    let gone = pool.allocate(PAGE).expect("room");
    assert_eq!(pool.pause(PausedContent::Discard).expect("pausable"), 6 * PAGE);
    assert_eq!((pages.bytes(), pool.stats().expect("usable").reserved), (0, 0));
    assert!(matches!(pool.allocate(1), Err(AllocError::Unusable(Unusable::Paused))));
    assert_eq!(pool.pause(PausedContent::Memory).expect("paused already"), 0);
    pool.free(gone.address).expect("a free is taken");
    assert_eq!(pool.resume().expect("resumable"), 5 * PAGE);
    assert_eq!(pool.resume().expect("not paused"), 0);
    assert_eq!(pages.bytes(), 5 * PAGE);
    pool.free(kept.address).expect("live");
    pool.check().expect("sound");
}

#[test]
fn zeros_are_written_only_where_committed_memory_may_have_other_content() {
    for (content, commits_zeros, expected) in [(7, false, 5), (7, true, 5), (0, false, 5), (0, true, 0)] {
        let source = Uniform { commits_zeros, ..Uniform::new(content) };
        let written = Arc::clone(&source.written);
        let (source, _) = CheckedPages::new(source, PAGE);
        let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
        let pool = Pool::new(source, options).expect("valid");
        pool.allocate(5 * PAGE).expect("room");
        pool.pause(PausedContent::Memory).expect("pausable");
        pool.resume().expect("resumable");
        assert_eq!(written.load(Ordering::Relaxed), expected * PAGE, "{content} {commits_zeros}");
    }
}

#[test]
fn the_limit_of_a_paused_pool_leaves_room_to_resume() {
    let (pool, _) = pool();
    let [kept, gone] = [5, 2].map(|pages| pool.allocate(pages * PAGE).expect("room"));
    pool.pause(PausedContent::Memory).expect("pausable");
    for trim in [false, true] {
        let error = pool.set_limit(7 * PAGE - 1, trim, "a test").expect_err("below the content");
        assert!(matches!(error, LimitError::BelowPaused { bytes, .. } if bytes == 7 * PAGE), "{error}");
    }
    pool.set_limit(7 * PAGE, false, "a test").expect("room for all");
    pool.free(gone.address).expect("live");
    pool.set_limit(5 * PAGE, false, "a test").expect("room for the rest");
    assert_eq!(pool.resume().expect("resumable"), 5 * PAGE);
    assert!(pool.explain(1).expect("usable").is_some());
    pool.free(kept.address).expect("live");
    pool.check().expect("sound");
}

#[test]
fn pages_that_the_source_keeps_of_a_paused_pool_count_under_its_limit() {
    let fails = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&fails);
    let failing = FailingPages::new(Uniform::new(7), move |made, _, span| {
        let chosen = made == PageCall::Commit || made == PageCall::Decommit && span.bytes == 2 * PAGE;
        (chosen && switch.load(Ordering::Relaxed)).then_some(ReserveError::Declined)
    });
    let (source, pages) = CheckedPages::new(failing, PAGE);
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    let [first, middle, last] = [2, 1, 3].map(|size| pool.allocate(size * PAGE).expect("room").address);
    pool.free(middle).expect("live");
    pool.trim().expect("usable");
    fails.store(true, Ordering::Relaxed);
    assert!(matches!(pool.pause(PausedContent::Discard), Err(PauseError::StaysPaused { .. })));
    pool.free(first).expect("live");
    assert_eq!(pages.bytes(), 2 * PAGE);
    let error = pool.set_limit(4 * PAGE, false, "a test").expect_err("five pages after a resume");
    assert!(
        matches!(error, LimitError::BelowReserved { reserved, trim_helps: true, .. } if reserved == 5 * PAGE),
        "{error}"
    );
    let error = pool.set_limit(4 * PAGE, true, "a test").expect_err("two pages stay");
    assert!(matches!(error, LimitError::SourceFailed { reserved, .. } if reserved == 5 * PAGE), "{error}");
    fails.store(false, Ordering::Relaxed);
    assert!(pool.is_paused().expect("usable"));
    assert_eq!(pool.set_limit(4 * PAGE, true, "a test").expect("a trim helps"), 2 * PAGE);
    assert_eq!(pool.resume().expect("resumable"), 3 * PAGE);
    assert_eq!((pages.bytes(), pool.stats().expect("usable").reserved), (3 * PAGE, 3 * PAGE));
    pool.free(last).expect("live");
    pool.check().expect("sound");
}

#[test]
fn a_pool_that_resumes_takes_what_siblings_have_free() {
    let cap = Cap::new(8 * PAGE);
    let siblings = Arc::new(Siblings::default());
    let [pool, other] = [(); 2].map(|()| {
        let source = Capped::new(AddressSpace::new(0), Arc::clone(&cap));
        let options = Options::new(8 * PAGE).elastic(true).page_size(PAGE);
        let pool = Arc::new(Pool::new(source, options).expect("valid"));
        assert!(pool.join(&siblings));
        pool
    });
    let kept = pool.allocate(5 * PAGE).expect("room");
    pool.pause(PausedContent::Discard).expect("pausable");
    let [small, large] = [3, 4].map(|pages| other.allocate(pages * PAGE).expect("room").address);
    other.free(small).expect("live");
    // The source has one page, and three are free in the other pool, which keeps them where they are not enough.
    let error = pool.resume().expect_err("four pages");
    assert!(matches!(error, PauseError::NoMemory { bytes } if bytes == 5 * PAGE), "{error}");
    assert_eq!(other.stats().expect("usable").reserved, 7 * PAGE);
    other.free(large).expect("live");
    assert_eq!(pool.resume().expect("eight pages"), 5 * PAGE);
    assert_eq!((cap.used(), other.stats().expect("usable").reserved), (5 * PAGE, 0));
    pool.free(kept.address).expect("live");
    for pool in [pool, other] {
        pool.check().expect("sound");
    }
}

#[test]
fn a_paused_pool_may_be_closed() {
    let (pool, pages) = pool();
    let kept = pool.allocate(5 * PAGE).expect("room");
    pool.pause(PausedContent::Memory).expect("pausable");
    pool.close().expect("closable");
    pool.free(kept.address).expect("live");
    assert_eq!((pages.bytes(), pages.ranges().len()), (0, 0));
}

#[test]
fn a_pool_of_regions_is_not_paused() {
    let pool = Pool::new(AddressSpace::new(0), Options::new(1 << 20)).expect("valid");
    assert!(matches!(pool.pause(PausedContent::Discard), Err(PauseError::NotElastic)));
}

#[test]
fn a_file_that_cannot_be_written_leaves_the_pool_as_it_was() {
    let (pool, pages) = pool();
    let kept = pool.allocate(5 * PAGE).expect("room");
    let path = std::env::temp_dir().join(format!("allotment-paused-{}", std::process::id()));
    File::create(&path).expect("writable");
    let read_only = File::open(&path).expect("readable");
    assert!(matches!(pool.pause(PausedContent::File(read_only)), Err(PauseError::Content { .. })));
    std::fs::remove_file(&path).expect("removable");
    assert_eq!(pages.bytes(), 5 * PAGE);
    pool.check().expect("sound");
    pool.allocate(1).expect("not paused");
    pool.free(kept.address).expect("live");
}

#[test]
fn a_free_during_a_pause_that_fails_leaves_its_pages_with_their_memory() {
    let shared: Arc<OnceLock<(Weak<Pool>, u64)>> = Arc::default();
    let during = Arc::clone(&shared);
    let failing = FailingPages::new(Uniform::new(7), move |made, _, _| {
        let (pool, address) = during.get()?;
        let pool = pool.upgrade().filter(|_| made == PageCall::Read)?;
        // A second free of it fails, and then the source works.
        pool.free(*address).is_ok().then_some(ReserveError::Declined)
    });
    let (source, pages) = CheckedPages::new(failing, PAGE);
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    let pool = Arc::new(Pool::new(source, options).expect("valid"));
    let [gone, kept] = [3, 2].map(|size| pool.allocate(size * PAGE).expect("room").address);
    shared.set((Arc::downgrade(&pool), gone)).expect("empty");
    pool.pause(PausedContent::Memory).expect_err("the source fails once");
    pool.check().expect("sound");
    assert_eq!((pages.bytes(), pool.stats().expect("usable").reserved), (5 * PAGE, 5 * PAGE));
    pool.allocate(3 * PAGE).expect("room");
    assert_eq!(pages.bytes(), 5 * PAGE);
    pool.free(kept).expect("live");
}

#[test]
fn what_a_failing_source_keeps_of_a_paused_pool_goes_back_when_it_is_closed() {
    let fails = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&fails);
    let failing = FailingPages::new(Uniform::new(7), move |made, number, _| {
        let chosen = match made {
            PageCall::Decommit => number % 2 == 1,
            PageCall::Commit => true,
            _ => false,
        };
        (chosen && switch.load(Ordering::Relaxed)).then_some(ReserveError::Declined)
    });
    let (source, pages) = CheckedPages::new(failing, PAGE);
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    let all: Vec<_> = (0..5).map(|_| pool.allocate(2 * PAGE).expect("room").address).collect();
    pool.free(all[1]).expect("live");
    pool.free(all[3]).expect("live");
    fails.store(true, Ordering::Relaxed);
    pool.pause(PausedContent::Discard).expect_err("pages stay, and those that went do not return");
    assert!(pool.is_paused().expect("usable") && pages.bytes() > 0);
    fails.store(false, Ordering::Relaxed);
    pool.close().expect("closable");
    for address in [all[0], all[2], all[4]] {
        pool.free(address).expect("live");
    }
    assert_eq!((pages.bytes(), pages.ranges().len()), (0, 0));
}

#[test]
fn each_call_failing_in_turn_leaves_the_state_before() {
    for call in [PageCall::Commit, PageCall::Decommit, PageCall::Read, PageCall::Write] {
        for nth in 0..6 {
            fail_once(call, nth);
        }
    }
}

/// Pauses and resumes with the `nth` call of a kind failing, from the pause on.
fn fail_once(call: PageCall, nth: u64) {
    let left = Arc::new(AtomicU64::new(u64::MAX));
    let counted = Arc::clone(&left);
    let failing = FailingPages::new(Uniform::new(7), move |made, _, _| {
        let fails = made == call && counted.fetch_sub(1, Ordering::Relaxed) == 0;
        fails.then_some(ReserveError::Declined)
    });
    let (source, pages) = CheckedPages::new(failing, PAGE);
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    let all: Vec<_> = (0..7).map(|_| pool.allocate(3 * PAGE).expect("room")).collect();
    for gone in all.iter().step_by(2) {
        pool.free(gone.address).expect("live");
    }
    let before = pages.bytes();
    left.store(nth, Ordering::Relaxed);
    match pool.pause(PausedContent::Memory) {
        Ok(bytes) => {
            assert_eq!((bytes, pages.bytes()), (before, 0));
            if pool.resume().is_err() {
                assert_eq!(pages.bytes(), 0, "still paused: {call:?} {nth}");
                pool.resume().expect("the second attempt succeeds");
            }
            assert_eq!(pages.bytes(), 9 * PAGE, "{call:?} {nth}");
        }
        Err(_) => assert_eq!(pages.bytes(), before, "{call:?} {nth}"),
    }
    pool.check().expect("sound");
    pool.allocate(PAGE).expect("not paused");
}
