//! Figures of this process in a file that the command reads at the end, however the process ends.
//!
//! The file is mapped and shared: each figure is written by one store, and stays when the process is killed.

use std::ffi::{CStr, c_char};
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::process;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::new_file;
use crate::settings::Settings;

/// The first bytes of a file; the Python side knows them and the order of the figures.
const MAGIC: &[u8; 16] = b"allotment host 1";
/// Bytes of the name of the program, filled up with zeros.
const NAME_BYTES: usize = 16;
const FILE_BYTES: usize = MAGIC.len() + NAME_BYTES + 8 * FIGURES;

/// The figures in the file, in this order.
#[derive(Debug, Clone, Copy)]
#[repr(usize)]
pub(crate) enum Figure {
    /// Bytes of the large blocks that are in use.
    Live,
    /// The most of that so far.
    PeakLive,
    /// Large blocks that were ever allocated.
    Blocks,
    /// Requests that were refused.
    Refused,
    /// Bytes of the first request that was refused.
    FirstRefused,
    /// The most bytes of pages that had memory, free ones included.
    PeakCommitted,
    /// Events that are not in the record, as its file could not be made or written any further.
    Unrecorded,
}

const FIGURES: usize = 7;

/// The figures before there is a file, and where there can be none.
static WITHOUT_FILE: [AtomicU64; FIGURES] = [const { AtomicU64::new(0) }; FIGURES];

/// The figures in the file; null before there is one.
static IN_FILE: AtomicPtr<AtomicU64> = AtomicPtr::new(ptr::null_mut());

/// The process for which making the file was tried. Locked, too, while a figure changes that is not in the file.
static TRIED_BY: Mutex<u32> = Mutex::new(0);

fn in_file(figure: Figure) -> Option<&'static AtomicU64> {
    let shared = IN_FILE.load(Ordering::Acquire);
    // SAFETY: the page has all figures, and stays mapped.
    (!shared.is_null()).then(|| unsafe { &*shared.add(figure as usize) })
}

/// Calls `work` with a figure, which does not move to the file meanwhile.
#[inline]
fn with_figure<T>(figure: Figure, work: impl FnOnce(&AtomicU64) -> T) -> T {
    if let Some(figure) = in_file(figure) {
        return work(figure);
    }
    let _stays = TRIED_BY.lock().unwrap_or_else(PoisonError::into_inner);
    work(in_file(figure).unwrap_or(&WITHOUT_FILE[figure as usize]))
}

/// Adds to a figure; returns its new value.
pub(crate) fn add(which: Figure, amount: u64) -> u64 {
    with_figure(which, |figure| figure.fetch_add(amount, Ordering::Relaxed)).wrapping_add(amount)
}

/// Subtracts from a figure; returns its new value.
pub(crate) fn subtract(which: Figure, amount: u64) -> u64 {
    add(which, amount.wrapping_neg())
}

/// Raises a figure to a value, unless it is as high.
pub(crate) fn raise(which: Figure, value: u64) {
    with_figure(which, |figure| {
        if figure.load(Ordering::Relaxed) < value {
            figure.fetch_max(value, Ordering::Relaxed);
        }
    });
}

/// Tells the process that started this one that the library was loaded.
pub(crate) fn report_loaded(settings: &Settings) {
    // SAFETY: the function has no preconditions.
    if unsafe { libc::getppid() } == settings.starter {
        let _ = File::create_new(settings.statistics.join(format!("loaded.{}", process::id())));
    }
}

/// Makes the file of this process, if there is none yet. Called inside the pool, before any other function here.
#[inline]
pub(crate) fn begin(settings: &Settings) {
    if IN_FILE.load(Ordering::Acquire).is_null() {
        make(settings);
    }
}

#[cold]
fn make(settings: &Settings) {
    // Other threads that change a figure wait for this lock.
    let mut tried_by = TRIED_BY.lock().unwrap_or_else(PoisonError::into_inner);
    if *tried_by == process::id() {
        return;
    }
    *tried_by = process::id();
    // Where the folder is gone, nothing reads it any more.
    if let Some(shared) = make_file(&settings.statistics) {
        for (place, value) in WITHOUT_FILE.iter().enumerate() {
            // SAFETY: the page has all figures, and stays mapped.
            unsafe { &*shared.add(place) }.store(value.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        IN_FILE.store(shared, Ordering::Release);
    }
}

/// In a forked child, which has one thread: the file is the parent's. What is inherited is in use in the child, too.
pub(crate) fn leave_to_parent() {
    let live = with_figure(Figure::Live, |figure| figure.load(Ordering::Relaxed));
    IN_FILE.store(ptr::null_mut(), Ordering::Release);
    for value in &WITHOUT_FILE {
        value.store(0, Ordering::Relaxed);
    }
    for which in [Figure::Live, Figure::PeakLive] {
        WITHOUT_FILE[which as usize].store(live, Ordering::Relaxed);
    }
}

/// Makes a file for this program of this process and maps its figures.
fn make_file(folder: &Path) -> Option<*mut AtomicU64> {
    let names = (0_u32..).map(|taken| folder.join(format!("{}.{taken}", process::id())));
    let (mut file, _) = new_file::create(names).ok()?;
    file.write_all(MAGIC).ok()?;
    file.write_all(&program_name()).ok()?;
    file.seek(SeekFrom::Start(FILE_BYTES as u64 - 8)).ok()?;
    file.write_all(&[0; 8]).ok()?;
    // SAFETY: the system picks the address; the mapping outlives the descriptor.
    let page = unsafe {
        libc::mmap(
            ptr::null_mut(),
            FILE_BYTES,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            0,
        )
    };
    if page == libc::MAP_FAILED {
        return None;
    }
    // SAFETY: the figures come after the two texts, at a multiple of 8.
    Some(unsafe { page.cast::<u8>().add(MAGIC.len() + NAME_BYTES) }.cast())
}

/// Returns the name of the program, cut off or filled up with zeros.
pub(crate) fn program_name() -> [u8; NAME_BYTES] {
    unsafe extern "C" {
        static program_invocation_short_name: *const c_char;
    }
    // SAFETY: the C library sets it before any code of a program runs, to a text that ends with a zero byte.
    let name = unsafe { CStr::from_ptr(program_invocation_short_name) }.to_bytes();
    let mut cut = [0; NAME_BYTES];
    for (place, byte) in cut.iter_mut().zip(name) {
        *place = *byte;
    }
    cut
}
