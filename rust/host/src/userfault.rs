//! Moves pages within this process by `UFFDIO_MOVE` (Linux 6.8 and newer): the kernel moves entries of page tables, and
//! the mappings stay as they are.
//!
//! `mremap` would leave a mapping for each piece that it moves, and a process has about 65,000 of them.
//!
//! Target ranges are registered for write protection, which nothing ever requests: so no access to them waits for a
//! handler. Registered for missing pages, which is the usual way, each first write would.

use std::os::fd::OwnedFd;
use std::process;

use allotment::source::Grant;
use rustix::io::{self, Errno};
use rustix::ioctl::{Opcode, Updater, ioctl, opcode};
use rustix::mm::{UserfaultfdFlags, userfaultfd};

use crate::mapping::{HUGE_PAGE, numbers};

/// Only faults of the process itself, not those in system calls; needs no privilege. `UFFD_USER_MODE_ONLY` of the
/// kernel's `linux/userfaultfd.h`, as all constants and structures here.
const USER_MODE_ONLY: u32 = 1;
const API_VERSION: u64 = 0xAA;
const FEATURE_MOVE: u64 = 1 << 16;
const REGISTER_WRITE_PROTECTION: u64 = 1 << 1;
const MOVE_ALLOW_HOLES: u64 = 1 << 1;

/// Interrupted calls in a row that moved nothing, after which the move ends.
const MAX_INTERRUPTIONS: u32 = 100;

#[repr(C)]
struct Api {
    version: u64,
    features: u64,
    ioctls: u64,
}

#[repr(C)]
struct Register {
    start: u64,
    length: u64,
    mode: u64,
    ioctls: u64,
}

#[repr(C)]
struct Move {
    target: u64,
    source: u64,
    length: u64,
    mode: u64,
    /// Output: the bytes that were moved, or a negative error.
    moved: i64,
}

const API: Opcode = opcode::read_write::<Api>(0xAA, 0x3F);
const REGISTER: Opcode = opcode::read_write::<Register>(0xAA, 0x00);
const MOVE: Opcode = opcode::read_write::<Move>(0xAA, 0x05);

/// Moves pages of the process that opened it.
#[derive(Debug)]
pub(crate) struct PageMover {
    file: OwnedFd,
    process: u32,
}

impl PageMover {
    /// Opens a mover; `None` if the kernel is too old, or refuses it, as in containers that filter system calls.
    pub(crate) fn open() -> Option<Self> {
        let flags = UserfaultfdFlags::CLOEXEC | UserfaultfdFlags::from_bits_retain(USER_MODE_ONLY);
        // SAFETY: what it may change are mappings that are registered, which are only those of one source.
        let file = unsafe { userfaultfd(flags) }.ok()?;
        let mut api = Api { version: API_VERSION, features: FEATURE_MOVE, ioctls: 0 };
        // SAFETY: the structure is the kernel's own for this request.
        let opened = unsafe { ioctl(&file, Updater::<API, Api>::new(&mut api)) };
        opened.is_ok().then(|| Self { file, process: process::id() })
    }

    /// Registers a mapping, so that pages can be moved to it; returns whether they can.
    pub(crate) fn register(&self, range: Grant) -> bool {
        let page = rustix::param::page_size() as u64;
        let mut register = Register {
            start: range.address,
            length: range.bytes.next_multiple_of(page),
            mode: REGISTER_WRITE_PROTECTION,
            ioctls: 0,
        };
        // SAFETY: as above. No page is ever protected, so no access waits.
        unsafe { ioctl(&self.file, Updater::<REGISTER, Register>::new(&mut register)) }.is_ok()
    }

    /// Returns whether this process opened it: in a forked child it would move pages of the parent.
    pub(crate) fn is_ours(&self) -> bool {
        self.process == process::id()
    }

    /// Moves the memory of pages to others, which have none, of a registered mapping. Returns whether all is moved;
    /// otherwise part of it may still be where it was.
    ///
    /// `huge` pages that have no memory stay without one, so that the kernel uses a huge page when they are written to.
    pub(crate) fn move_pages(&self, from: Grant, to: u64, huge: bool) -> bool {
        let Some((_, length)) = numbers(from) else { return false };
        let mode = if huge { 0 } else { MOVE_ALLOW_HOLES };
        let (mut done, mut interruptions) = (0, 0);
        while done < length {
            let offset = done as u64;
            let (moved, result) = self.call(from.address + offset, to + offset, from.bytes - offset, mode);
            done += moved;
            interruptions = if moved > 0 { 0 } else { interruptions + 1 };
            match result {
                Ok(()) => {}
                Err(Errno::AGAIN | Errno::INTR) if interruptions < MAX_INTERRUPTIONS => {}
                // A page without memory ends the call. The rest of its huge page, if there is any, stays behind.
                Err(Errno::NOENT) if huge => done = (done + 1).next_multiple_of(HUGE_PAGE),
                // Pages that a forked child shares, or a device uses.
                Err(_) => return false,
            }
        }
        true
    }

    /// Makes one call; returns the moved bytes and the result.
    fn call(&self, source: u64, target: u64, length: u64, mode: u64) -> (usize, io::Result<()>) {
        let mut request = Move { target, source, length, mode, moved: 0 };
        // SAFETY: the structure is the kernel's own for this request. Both spans are of one source, which moves what has
        // no user to where nothing is.
        let result = unsafe { ioctl(&self.file, Updater::<MOVE, Move>::new(&mut request)) };
        (usize::try_from(request.moved).unwrap_or(0), result)
    }
}
