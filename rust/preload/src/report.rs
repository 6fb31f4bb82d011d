//! What the library says on standard error: refused requests, and its own troubles.

use std::fmt;
use std::mem;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::{Bytes, OutOfMemory};

use crate::statistics;

/// The most refusals of each kind that a process reports. The command prints their number at the end.
const MAX_REPORTS: u64 = 10;

/// Refusals of this process for lack of memory, and for other reasons, such as a size above all limits.
static OUT_OF_MEMORY: AtomicU64 = AtomicU64::new(0);
static OTHER: AtomicU64 = AtomicU64::new(0);

/// Prints a refusal for lack of memory: the first one of this process in full, with what `add_details` adds to it; later
/// ones in a line each.
pub(crate) fn out_of_memory(mut refused: Box<OutOfMemory>, add_details: impl FnOnce(&mut OutOfMemory)) {
    let before = OUT_OF_MEMORY.fetch_add(1, Ordering::Relaxed);
    if before == 0 {
        add_details(&mut refused);
        print(&refused.to_string());
    } else if before < MAX_REPORTS {
        let OutOfMemory { requested, limit, in_use, .. } = *refused;
        print(&format!(
            "out of memory again: asked for {} with {} of {} in use",
            Bytes(requested),
            Bytes(in_use),
            Bytes(limit)
        ));
    }
}

/// Prints a refusal for another reason than lack of memory.
pub(crate) fn other_refusal(error: &dyn fmt::Display) {
    if OTHER.fetch_add(1, Ordering::Relaxed) < MAX_REPORTS {
        print(&error.to_string());
    }
}

/// In a forked child: it has refused nothing yet.
pub(crate) fn begin_child() {
    OUT_OF_MEMORY.store(0, Ordering::Relaxed);
    OTHER.store(0, Ordering::Relaxed);
}

/// Prints a text with the name and number of the process, at once.
pub(crate) fn print(text: &str) {
    let name = statistics::program_name();
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..length]).into_owned();
    let line = format!("allotment: {name} ({}): {text}\n", process::id());
    without_broken_pipe(|| {
        // SAFETY: the bytes are the text's. Not by way of `std`: another thread may hold its lock at a fork.
        unsafe { libc::write(2, line.as_ptr().cast(), line.len()) };
    });
}

/// Runs `work` so that a pipe without a reader does not end the process: the program itself may never write to it.
fn without_broken_pipe(work: impl FnOnce()) {
    // SAFETY: the sets are filled before they are read, and the calls change only this thread. A signal that was pending
    // before stays.
    unsafe {
        let (mut pipe, mut before, mut pending) = (mem::zeroed(), mem::zeroed(), mem::zeroed());
        libc::sigemptyset(&raw mut pipe);
        libc::sigaddset(&raw mut pipe, libc::SIGPIPE);
        libc::sigpending(&raw mut pending);
        let was_pending = libc::sigismember(&raw const pending, libc::SIGPIPE) == 1;
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const pipe, &raw mut before);
        work();
        if !was_pending {
            let at_once = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            libc::sigtimedwait(&raw const pipe, ptr::null_mut(), &raw const at_once);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
    }
}
