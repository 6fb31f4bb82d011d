//! Where the content of paused pools is, when steps fail: it is lost in no case, and neither is a file of the caller.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::source::{CheckedPages, CommittedPages, FailingPages, PageCall, ReserveError};
use allotment::{Options, PauseError, PausedContent, Pool};

use crate::pausing::{PAGE, Uniform};

/// Returns a source that fails where `rule` says so, its pool of two allocations of two pages with one of them free, and
/// the number of bytes that were written to its pages.
fn failing_pool(
    rule: impl FnMut(PageCall, u64) -> bool + Send + 'static,
) -> (Pool, CommittedPages, Arc<AtomicU64>) {
    let mut rule = rule;
    let upstream = Uniform::new(7);
    let written = Arc::clone(&upstream.written);
    let failing = FailingPages::new(upstream, move |call, number, _| {
        rule(call, number).then_some(ReserveError::Declined)
    });
    let (source, pages) = CheckedPages::new(failing, PAGE);
    let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
    let pool = Pool::new(source, options).expect("valid");
    let [_, gone, _] = [(); 3].map(|()| pool.allocate(2 * PAGE).expect("room").address);
    pool.free(gone).expect("live");
    (pool, pages, written)
}

#[test]
fn a_pool_stays_paused_and_keeps_content_that_does_not_return() {
    let folder = Folder::new();
    for content in [PausedContent::Memory, PausedContent::Path(folder.0.join("content"))] {
        let (pool, pages, written) = failing_pool(|call, number| match call {
            PageCall::Decommit => number == 1,
            PageCall::Write => number == 0,
            _ => false,
        });
        let error = pool.pause(content).expect_err("pages stay, and the content of others does not return");
        assert!(matches!(&error, PauseError::StaysPaused { .. }), "{error}");
        let text = "refused on purpose; the pool is paused nevertheless, until a resume, as the memory did not return";
        assert!(error.to_string().contains(text), "{error}");
        assert!(pool.is_paused().expect("usable"));
        assert_eq!(folder.files(), [""; 0]);
        assert_eq!(pages.bytes(), 6 * PAGE);
        pool.resume().expect("the source works again");
        assert_eq!((written.load(Ordering::Relaxed), pages.bytes()), (4 * PAGE, 6 * PAGE));
        pool.check().expect("sound");
    }
}

#[test]
fn content_returns_only_to_pages_that_lost_it() {
    // The first span is free, the last one stays.
    let (pool, pages, written) = failing_pool(|call, number| call == PageCall::Decommit && number == 2);
    let before = pool.stats().expect("usable").num_commits;
    assert!(matches!(pool.pause(PausedContent::Memory), Err(PauseError::SourceFailed(_))));
    assert!(!pool.is_paused().expect("usable"));
    assert_eq!((written.load(Ordering::Relaxed), pages.bytes()), (2 * PAGE, 6 * PAGE));
    assert_eq!(pool.stats().expect("usable").num_commits - before, 4);
    pool.check().expect("sound");
}

#[test]
fn pages_count_as_committed_when_they_receive_memory() {
    let (pool, _, _) = failing_pool(|call, number| call == PageCall::Commit && (3..6).contains(&number));
    pool.pause(PausedContent::Discard).expect("pausable");
    let before = pool.stats().expect("usable").num_commits;
    for _ in 0..3 {
        assert!(matches!(pool.resume(), Err(PauseError::NoMemory { bytes }) if bytes == 4 * PAGE));
    }
    assert_eq!(pool.stats().expect("usable").num_commits, before);
    pool.resume().expect("there is memory now");
    assert_eq!(pool.stats().expect("usable").num_commits, before + 4);
}

/// A folder that is removed with its files.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let name =
            format!("allotment-pausing-{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = std::env::temp_dir().join(name);
        fs::create_dir(&folder).expect("a folder");
        Self(folder)
    }

    fn files(&self) -> Vec<OsString> {
        let files = fs::read_dir(&self.0).expect("readable");
        files.map(|file| file.expect("readable").file_name()).collect()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_file_is_replaced_only_by_a_pause_that_succeeds() {
    let folder = Folder::new();
    let path = folder.0.join("content");
    let (pool, _, _) = failing_pool(|call, number| match call {
        PageCall::Read | PageCall::Decommit => number == 0,
        _ => false,
    });
    let content = || PausedContent::Path(path.clone());
    pool.pause(content()).expect_err("the first read fails");
    assert_eq!(folder.files(), [""; 0]);
    fs::write(&path, "a letter").expect("writable");
    pool.pause(content()).expect_err("the first decommit fails");
    assert_eq!(
        (folder.files(), fs::read(&path).expect("readable")),
        (vec!["content".into()], b"a letter".into())
    );
    pool.pause(content()).expect("pausable");
    assert_eq!(
        (folder.files(), fs::read(&path).expect("readable").len() as u64),
        (vec!["content".into()], 4 * PAGE)
    );
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = path.metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
    pool.resume().expect("resumable");
}

#[test]
fn the_file_of_one_paused_pool_is_not_overwritten_by_another() {
    let folder = Folder::new();
    let path = folder.0.join("content");
    let [first, second] = [7, 9].map(|content| {
        let options = Options::new(64 * PAGE).elastic(true).page_size(PAGE);
        let pool = Pool::new(Uniform::new(content), options).expect("valid");
        pool.allocate(3 * PAGE).expect("room");
        pool.pause(PausedContent::Path(path.clone())).expect("pausable");
        pool
    });
    // The source checks what is written to its pages.
    first.resume().expect("its content is there still");
    second.resume().expect("its content is there");
}

#[test]
fn a_path_without_a_folder_or_of_a_folder_is_an_error_that_names_it() {
    let folder = Folder::new();
    let (pool, pages, _) = failing_pool(|_, _| false);
    for path in [folder.0.clone(), folder.0.join("missing/content"), PathBuf::new()] {
        let error = pool.pause(PausedContent::Path(path.clone())).expect_err("no file");
        assert!(matches!(&error, PauseError::File { path: named, .. } if *named == path), "{error}");
    }
    assert_eq!((pages.bytes(), pool.is_paused()), (6 * PAGE, Ok(false)));
}
