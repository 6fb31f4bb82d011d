//! What the library says on standard error: refused requests, and its own troubles.

use std::mem;
use std::process;
use std::ptr;

use allotment::{Bytes, OutOfMemory};

use crate::statistics;

/// The most refusals of a process that are told in a line each, after the first one, which is told in full. The command
/// tells their number at the end.
const MAX_LINES: u64 = 9;

/// Tells a refusal; `number` counts those of this process from 1 on.
pub(crate) fn refused(refused: &OutOfMemory, number: u64) {
    if number == 1 {
        print(&refused.to_string());
    } else if number <= 1 + MAX_LINES {
        let OutOfMemory { requested, limit, in_use, .. } = *refused;
        print(&format!(
            "out of memory again: asked for {} with {} of {} in use",
            Bytes(requested),
            Bytes(in_use),
            Bytes(limit)
        ));
    }
}

/// Prints a text with the name and number of the process, at once.
pub(crate) fn print(text: &str) {
    let name = statistics::program_name();
    let length = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let name = String::from_utf8_lossy(&name[..length]).into_owned();
    let line = format!("allotment: {name} ({}): {text}\n", process::id());
    without_broken_pipe(|| {
        // SAFETY: the bytes are the text's. Not by way of `std`, whose lock another thread may hold at a fork.
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
