//! Events of the large blocks, in a file that is a journal as `python/allotment/trace/journal.py` describes it.
//!
//! The file is mapped, so that an event costs no system call and none is lost when the process is killed. Its blocks have
//! texts of a fixed length, in which the number of rows is set after each row. The file is longer than what is written:
//! zeros follow.
//!
//! No descriptor stays open: programs close those that they do not know. To lengthen the file it is opened again.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{new_file, report, statistics};

const MAGIC: &[u8] = b"allotment events 1\n";
const ROW_BYTES: usize = 40;

/// Rows of a block: their number has eight digits.
const MAX_ROWS: usize = 50_000_000;
/// The digits of the number of rows, which are written by one store.
const DIGITS: usize = 8;

/// Bytes by which the file grows at first, and the most; twice as many each time.
const MIN_GROWTH: usize = 1 << 20;
const MAX_GROWTH: usize = 64 << 20;

/// A kind of event, as in the journal's column `op`.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Event {
    Allocated = 1,
    Freed = 2,
    Refused = 3,
}

/// An open journal of this process.
struct Journal {
    path: PathBuf,
    /// Device and number of the file: another one may take its name.
    identity: (u64, u64),
    map: *mut u8,
    mapped: usize,
    /// The positions of the next row, and of the number of rows of its block.
    next: usize,
    count_at: usize,
    rows: usize,
    start: u64,
    /// The blocks that were in use when the journal began, by number: some of them have an event of their allocation yet
    /// to come, from threads that were just there.
    first: HashSet<u64>,
}

// SAFETY: the mapping is the journal's own.
unsafe impl Send for Journal {}

enum State {
    /// There is none yet in this process.
    NotBegun,
    Open(Journal),
    /// There is none, or it ended because the file could not be lengthened.
    Ended,
}

static STATE: Mutex<State> = Mutex::new(State::NotBegun);

/// Adds an event. Begins the journal with the first one; then it has `live`, the blocks in use, which include that of the
/// event.
pub(crate) fn add(
    path: &Path,
    start: u64,
    event: Event,
    (id, bytes): (u64, u64),
    live: impl FnOnce() -> Vec<(u64, u64)>,
) {
    let mut state = lock();
    if let State::NotBegun = *state {
        let begun = Journal::begin(path, start).and_then(|mut journal| {
            for (id, bytes) in live() {
                journal.push(Event::Allocated, id, bytes)?;
                journal.first.insert(id);
            }
            Ok(journal)
        });
        match begun {
            Ok(journal) => *state = State::Open(journal),
            Err(error) => end(&mut state, path, &error),
        }
    }
    if let State::Open(journal) = &mut *state
        && let Err(error) = journal.add(event, id, bytes)
    {
        let path = journal.path.clone();
        end(&mut state, &path, &error);
    }
}

fn end(state: &mut State, path: &Path, error: &io::Error) {
    *state = State::Ended;
    report::print(&format!("{}: the record ends here: {error}", path.display()));
}

/// In a forked child: the journal is the parent's. The child begins its own with its next event.
pub(crate) fn leave_to_parent() {
    // The mapping goes, too, so that nothing can be written to it.
    if let State::Open(journal) = std::mem::replace(&mut *lock(), State::NotBegun) {
        journal.unmap();
    }
}

fn lock() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns nanoseconds of the monotonic clock, which is the same in all processes.
fn now() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is the system's own for this call, which cannot fail for this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

/// Returns a number of the calling thread, from 0 on in the order of their first events.
fn thread() -> u32 {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    thread_local! {
        static NUMBER: std::cell::Cell<u32> = const { std::cell::Cell::new(u32::MAX) };
    }
    if NUMBER.get() == u32::MAX {
        NUMBER.set(NEXT.fetch_add(1, Ordering::Relaxed));
    }
    NUMBER.get()
}

impl Journal {
    /// Makes the file: the first of `path`, `path.PID`, `path.PID.2`, `path.PID.3`, ... that is not there.
    fn begin(path: &Path, start: u64) -> io::Result<Self> {
        let names = (0_u32..).map(|taken| {
            let mut name = path.as_os_str().to_owned();
            if taken > 0 {
                name.push(format!(".{}", process::id()));
            }
            if taken > 1 {
                name.push(format!(".{taken}"));
            }
            PathBuf::from(name)
        });
        let (file, path) = new_file::create(names)?;
        let about = file.metadata()?;
        let identity = (about.dev(), about.ino());
        let mut journal = Self {
            path,
            identity,
            map: ptr::null_mut(),
            mapped: 0,
            next: 0,
            count_at: 0,
            rows: 0,
            start,
            first: HashSet::new(),
        };
        journal.lengthen(&file)?;
        journal.write(MAGIC);
        journal.begin_block();
        Ok(journal)
    }

    /// Appends an event, unless it is the allocation of a block that the journal began with.
    fn add(&mut self, event: Event, id: u64, bytes: u64) -> io::Result<()> {
        // Empty in most journals, and soon in all others.
        if !self.first.is_empty() && self.first.remove(&id) && matches!(event, Event::Allocated) {
            return Ok(());
        }
        self.push(event, id, bytes)
    }

    /// Appends a row, and then counts it.
    fn push(&mut self, event: Event, id: u64, bytes: u64) -> io::Result<()> {
        // A row, and the text of the next block.
        if self.next + ROW_BYTES + 256 > self.mapped {
            let file = OpenOptions::new().read(true).write(true).open(&self.path)?;
            let about = file.metadata()?;
            if (about.dev(), about.ino()) != self.identity {
                return Err(io::Error::other("another file has taken its place"));
            }
            self.lengthen(&file)?;
        }
        if self.rows == MAX_ROWS {
            self.begin_block();
        }
        let mut row = [0; ROW_BYTES];
        let time = now().saturating_sub(self.start);
        // A refused request may be of any size; the columns have signed numbers.
        let bytes = bytes.min(i64::MAX.cast_unsigned());
        for (place, number) in [time, id, bytes].into_iter().enumerate() {
            row[8 * place..][..8].copy_from_slice(&number.to_le_bytes());
        }
        for (place, number) in [1, thread(), u32::MAX, event as u32].into_iter().enumerate() {
            row[24 + 4 * place..][..4].copy_from_slice(&number.to_le_bytes());
        }
        self.write(&row);
        self.rows += 1;
        self.set_count();
        Ok(())
    }

    /// Starts a block without rows. The digits of their number are at a multiple of 8.
    fn begin_block(&mut self) {
        let name = statistics::program_name();
        let name: String = name.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect();
        let name: String =
            name.chars().filter(|&one| one.is_ascii_graphic() && !"\"\\".contains(one)).collect();
        let pool = format!("{name} ({})", process::id());
        let head = "{\"rows\":";
        let padding = (self.next + 4 + head.len()).next_multiple_of(8) - (self.next + 4 + head.len());
        let text = format!(
            "{head}{}{:DIGITS$},\"tags\":[],\"pools\":{{\"1\":\"{pool}\"}},\"lost\":0}}",
            " ".repeat(padding),
            0
        );
        self.count_at = self.next + 4 + head.len() + padding;
        self.rows = 0;
        let length = u32::try_from(text.len()).unwrap_or(0);
        // The length last: a reader takes 0 as the end.
        let at = self.next;
        self.next += 4;
        self.write(text.as_bytes());
        // SAFETY: these four bytes were skipped above.
        unsafe { self.map.add(at).cast::<[u8; 4]>().write(length.to_le_bytes()) };
    }

    fn write(&mut self, content: &[u8]) {
        // SAFETY: `push` and `begin` make sure that the content fits.
        unsafe { self.map.add(self.next).copy_from_nonoverlapping(content.as_ptr(), content.len()) };
        self.next += content.len();
    }

    /// Sets the number of rows of the block, by one store: a reader sees the old number or the new one.
    fn set_count(&mut self) {
        let mut digits = [b' '; DIGITS];
        let mut rest = self.rows;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        // SAFETY: the mapping starts at a page, and the digits are at a multiple of 8 in it.
        #[expect(clippy::cast_ptr_alignment, reason = "a multiple of 8")]
        let place = unsafe { &*self.map.add(self.count_at).cast::<AtomicU64>() };
        place.store(u64::from_ne_bytes(digits), Ordering::Release);
    }

    /// Lengthens the file and maps all of it. The system sets the memory aside, as writing to a mapping cannot fail
    /// otherwise than by a signal.
    fn lengthen(&mut self, file: &File) -> io::Result<()> {
        let length = self.mapped + self.mapped.clamp(MIN_GROWTH, MAX_GROWTH);
        // SAFETY: the call has no preconditions.
        let failed =
            unsafe { libc::posix_fallocate(file.as_raw_fd(), 0, libc::off_t::try_from(length).unwrap_or(0)) };
        if failed != 0 {
            return Err(io::Error::from_raw_os_error(failed));
        }
        // SAFETY: the system picks the address.
        let map = unsafe {
            libc::mmap(
                ptr::null_mut(),
                length,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                file.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.unmap();
        self.map = map.cast();
        self.mapped = length;
        Ok(())
    }

    fn unmap(&self) {
        if !self.map.is_null() {
            // SAFETY: the mapping is the journal's own.
            unsafe { libc::munmap(self.map.cast(), self.mapped) };
        }
    }
}
