//! A forked child and its parent do not reach each other's pages.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::ffi::c_int;
use std::io::{PipeReader, PipeWriter, Read, Write, pipe};

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment_host::HostMemory;

unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
}

const PAGES: u64 = 8;

fn pages(range: Grant, size: u64, first: u64, count: u64) -> Grant {
    Grant { address: range.address + first * size, bytes: count * size }
}

fn memory(span: Grant) -> &'static mut [u8] {
    let start = std::ptr::with_exposed_provenance_mut(usize::try_from(span.address).unwrap());
    // SAFETY: the test has committed these pages, and makes one slice of them at a time.
    unsafe { std::slice::from_raw_parts_mut(start, usize::try_from(span.bytes).unwrap()) }
}

fn all(span: Grant, byte: u8) -> bool {
    memory(span).iter().all(|&found| found == byte)
}

/// Runs `child` in a forked child once told to; returns how to tell it, and its process.
fn forked(child: impl FnOnce() -> bool) -> (PipeWriter, c_int) {
    let (mut told, tell): (PipeReader, PipeWriter) = pipe().unwrap();
    // SAFETY: the child runs the check and ends without running the parent's destructors.
    let process = unsafe { fork() };
    assert!(process >= 0);
    if process == 0 {
        drop(tell);
        let mut nothing = Vec::new();
        let passed = told.read_to_end(&mut nothing).is_ok() && child();
        // SAFETY: as above.
        unsafe { _exit(c_int::from(!passed)) };
    }
    (tell, process)
}

fn succeeded((mut tell, process): (PipeWriter, c_int)) -> bool {
    tell.flush().unwrap();
    drop(tell);
    let mut status = -1;
    // SAFETY: the pointer is to a local variable.
    assert_eq!(unsafe { waitpid(process, &raw mut status, 0) }, process);
    status == 0
}

#[test]
fn a_child_and_its_parent_keep_their_own_pages() {
    for size in [4096, 1 << 16, 2 << 20] {
        let mut source = Some(HostMemory::new());
        let host = source.as_mut().unwrap().pages().unwrap();
        let range = host.reserve_addresses(4 * PAGES * size, size).unwrap();
        let [first, second] = [0, PAGES].map(|page| pages(range, size, page, PAGES));
        for (span, byte) in [(first, 7), (second, 8)] {
            host.commit(span).unwrap();
            memory(span).fill(byte);
        }
        let target = pages(range, size, 2 * PAGES, PAGES).address;
        let is_movable = host.move_pages(first, target).is_ok();
        if is_movable {
            host.move_pages(Grant { address: target, ..first }, first.address).unwrap();
        }
        // It gets its copy of the source; the parent goes on meanwhile.
        let child = forked(|| {
            let mut inherited = source.take().unwrap();
            let host = inherited.pages().unwrap();
            let declines = matches!(host.move_pages(first, target), Err(ReserveError::Declined));
            let kept = all(first, 7) && all(second, 8);
            memory(first).fill(1);
            let decommitted = host.decommit(second).is_ok();
            drop(inherited);
            declines && kept && decommitted && all(first, 1)
        });
        let host = source.as_mut().unwrap().pages().unwrap();
        // Shared with the child: their memory does not move, and they count as moved all the same.
        assert_eq!(host.move_pages(first, target).is_ok(), is_movable);
        if is_movable {
            memory(Grant { address: target, ..first }).fill(9);
        }
        assert!(all(second, 8));
        assert!(succeeded(child), "pages of {size} bytes");
        assert!(all(second, 8));
        if is_movable {
            assert!(all(Grant { address: target, ..first }, 9));
            // Written to after the fork: no longer shared.
            memory(second).fill(10);
            host.move_pages(second, first.address).unwrap();
            assert!(all(first, 10), "moved, not lost");
        }
    }
}
