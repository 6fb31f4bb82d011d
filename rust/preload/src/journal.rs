//! Events of the large blocks, in a file that is a journal as `python/allotment/trace/journal.py` describes it.
//!
//! The file is mapped, so that an event costs no system call and none is lost when the process is killed. Its blocks have
//! texts of a fixed length, in which the number of rows is set after each row. The file is longer than what is written:
//! zeros follow. Where it cannot become longer, the record ends, and the last text tells the error and how many events came
//! after it.
//!
//! No descriptor stays open: programs close those that they do not know. To lengthen the file it is opened again.
//!
//! Longer than 300 lines: one mapped file, and all of its unsafe code.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::statistics::{self, Figure};
use crate::{new_file, report};

const MAGIC: &[u8] = b"allotment events 1\n";
const ROW_BYTES: usize = 40;

/// Rows of a block: their number has eight digits.
const MAX_ROWS: usize = 50_000_000;
/// The most events after the end of the record that are counted, as a number of eight digits.
const MAX_UNWRITTEN: usize = 99_999_999;
/// The digits of a number that changes, which are written by one store.
const DIGITS: usize = 8;

/// The most bytes of the text of a block, with its length.
const TEXT_BYTES: usize = 320;

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
    /// The positions of two numbers of the block: events after the end of the record, and the error that ended it.
    unwritten_at: usize,
    error_at: usize,
    unwritten: usize,
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
    /// There is none, or it ended because the file could not be lengthened: the events from then on are counted in it.
    Ended(Option<Journal>),
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
        *state = match Journal::begin(path, start) {
            Ok(mut journal) => match journal.add_first(live()) {
                Ok(()) => State::Open(journal),
                Err(error) => ended(Some(journal), path, &error),
            },
            Err(error) => ended(None, path, &error),
        };
    }
    if let State::Open(journal) = &mut *state {
        let Err(error) = journal.add(event, id, bytes) else { return };
        let State::Open(journal) = std::mem::replace(&mut *state, State::NotBegun) else { return };
        let path = journal.path.clone();
        *state = ended(Some(journal), &path, &error);
    }
    if let State::Ended(journal) = &mut *state {
        statistics::add(Figure::Unrecorded, 1);
        if let Some(journal) = journal {
            journal.count_unwritten();
        }
    }
}

fn ended(mut journal: Option<Journal>, path: &Path, error: &io::Error) -> State {
    if let Some(journal) = &mut journal {
        journal.set_error(error);
    }
    report::print(&format!("{}: the record ends here: {error}", path.display()));
    State::Ended(journal)
}

/// In a forked child: the journal is the parent's. The child begins its own with its next event.
pub(crate) fn leave_to_parent() {
    // The mapping goes, too, so that nothing can be written to it.
    let before = std::mem::replace(&mut *lock(), State::NotBegun);
    if let State::Open(journal) | State::Ended(Some(journal)) = before {
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

/// Adds the number 0 to a text that begins at a position of the file, with blanks before it so that its digits are at a
/// multiple of 8; returns the place of the digits in the text.
fn add_number(text: &mut String, start: usize) -> usize {
    while !(start + text.len()).is_multiple_of(8) {
        text.push(' ');
    }
    let at = text.len();
    let _ = write!(text, "{:DIGITS$}", 0);
    at
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
            unwritten_at: 0,
            error_at: 0,
            unwritten: 0,
            start,
            first: HashSet::new(),
        };
        if let Err(error) = journal.lengthen(&file) {
            // An empty file would pass for a record without events.
            let _ = fs::remove_file(&journal.path);
            return Err(error);
        }
        journal.write(MAGIC);
        journal.begin_block();
        Ok(journal)
    }

    /// Appends the blocks that are in use when the journal begins.
    fn add_first(&mut self, live: Vec<(u64, u64)>) -> io::Result<()> {
        for (id, bytes) in live {
            self.push(Event::Allocated, id, bytes)?;
            self.first.insert(id);
        }
        Ok(())
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
        if self.next + ROW_BYTES + TEXT_BYTES > self.mapped {
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
        self.set_number(self.count_at, self.rows);
        Ok(())
    }

    /// Starts a block without rows. The digits of their number are at a multiple of 8.
    fn begin_block(&mut self) {
        let name = statistics::program_name();
        let name: String = name.iter().take_while(|&&byte| byte != 0).map(|&byte| char::from(byte)).collect();
        let name: String =
            name.chars().filter(|&one| one.is_ascii_graphic() && !"\"\\".contains(one)).collect();
        let pool = format!("{name} ({})", process::id());
        let start = self.next + 4;
        let mut text = String::from("{\"rows\":");
        self.count_at = start + add_number(&mut text, start);
        let _ = write!(text, ",\"tags\":[],\"pools\":{{\"1\":\"{pool}\"}},\"lost\":0,\"unwritten\":");
        self.unwritten_at = start + add_number(&mut text, start);
        text.push_str(",\"error\":");
        self.error_at = start + add_number(&mut text, start);
        text.push('}');
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

    /// Counts an event that comes after the end of the record.
    fn count_unwritten(&mut self) {
        self.unwritten = (self.unwritten + 1).min(MAX_UNWRITTEN);
        self.set_number(self.unwritten_at, self.unwritten);
    }

    /// Notes why the record ended.
    fn set_error(&self, error: &io::Error) {
        let number = error.raw_os_error().unwrap_or(libc::EIO);
        self.set_number(self.error_at, usize::try_from(number).unwrap_or(0));
    }

    /// Sets a number in the text of the block, by one store: a reader sees the old number or the new one.
    fn set_number(&self, at: usize, number: usize) {
        let mut digits = [b' '; DIGITS];
        let mut rest = number;
        for digit in digits.iter_mut().rev() {
            *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        // SAFETY: the mapping starts at a page, and the digits are at a multiple of 8 in it.
        #[expect(clippy::cast_ptr_alignment, reason = "a multiple of 8")]
        let place = unsafe { &*self.map.add(at).cast::<AtomicU64>() };
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
