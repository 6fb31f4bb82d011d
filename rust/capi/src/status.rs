//! The results of calls, and the last error of each thread.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;

use allotment::{
    AllocError, FreeError, LimitError, OptionsError, OutOfMemory, PauseError, ResizeError, TrimError,
    Unusable,
};

/// The result of a call. A call with another result than `ALLOTMENT_OK` changed nothing, unless the result or the
/// function says otherwise, and `allotment_last_error` describes it. Later versions add results.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Done.
    AllotmentOk = 0,
    /// No memory is available: `allotment_last_refusal_json` has the figures of a refused request and what would help.
    AllotmentOutOfMemory = 1,
    /// An argument or an option is out of range, null, or not UTF-8.
    AllotmentInvalidArgument = 2,
    /// No allocation starts at the address: freed twice, or never of this pool.
    AllotmentNotAllocated = 3,
    /// An allocation cannot grow that far in place.
    AllotmentNoRoom = 4,
    /// A call that does not wait could not be served now.
    AllotmentNotNow = 5,
    /// The pool is closed, and takes no more requests.
    AllotmentClosed = 6,
    /// This process is a forked child of the one that made the pool.
    AllotmentForked = 7,
    /// The source of the regions failed, or granted a span that cannot be a region.
    AllotmentSourceFailed = 8,
    /// Guard mode found a write outside of an allocation or after its free. A free was made nevertheless; a request was
    /// not served, and may be made again. Each damage is reported once.
    AllotmentDamaged = 9,
    /// The allocation is held by a buffer or a runtime.
    AllotmentPinned = 10,
    /// The source called its own pool for something that waits for the source.
    AllotmentInsideSource = 11,
    /// The scope is not open any more.
    AllotmentScopeClosed = 12,
    /// The library failed: a bug of it, or of a source. The pool may be unusable.
    AllotmentInternal = 13,
    /// The pool is paused, and none of its pages has memory.
    AllotmentPaused = 14,
    /// The system call `membarrier`, on which the pool's lock relies, was forbidden after the pool was made.
    AllotmentBarrierForbidden = 15,
    /// A file could not be opened, written or read.
    AllotmentFileFailed = 16,
    /// The system started no thread for the option `idle_trim_seconds`. No pool was made.
    AllotmentNoThread = 17,
    /// The thread is about to end, and can open no scope of its own.
    AllotmentThreadEnds = 18,
}

/// The error of a call: its status and its text.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) text: String,
    pub(crate) refusal: Option<Box<OutOfMemory>>,
}

impl Failure {
    pub(crate) fn invalid(text: impl Into<String>) -> Self {
        Self { status: Status::AllotmentInvalidArgument, text: text.into(), refusal: None }
    }

    fn new(status: Status, error: &dyn std::error::Error) -> Self {
        Self { status, text: error.to_string(), refusal: None }
    }
}

impl From<Unusable> for Failure {
    fn from(error: Unusable) -> Self {
        let status = match error {
            Unusable::Closed => Status::AllotmentClosed,
            Unusable::Forked => Status::AllotmentForked,
            Unusable::InsideSource => Status::AllotmentInsideSource,
            Unusable::Paused => Status::AllotmentPaused,
            Unusable::BarrierForbidden => Status::AllotmentBarrierForbidden,
            Unusable::ThreadEnds => Status::AllotmentThreadEnds,
            _ => Status::AllotmentInternal,
        };
        Self::new(status, &error)
    }
}

impl From<AllocError> for Failure {
    fn from(error: AllocError) -> Self {
        let status = match &error {
            AllocError::OutOfMemory(_) => Status::AllotmentOutOfMemory,
            AllocError::TooLarge { .. } | AllocError::BadAlignment { .. } => Status::AllotmentInvalidArgument,
            AllocError::SourceFailed { .. } | AllocError::BadGrant { .. } => Status::AllotmentSourceFailed,
            AllocError::Damaged(_) => Status::AllotmentDamaged,
            AllocError::Unusable(unusable) => return (*unusable).into(),
            _ => Status::AllotmentInternal,
        };
        let failure = Self::new(status, &error);
        let refusal = match error {
            AllocError::OutOfMemory(refused) | AllocError::SourceFailed { refused, .. } => Some(refused),
            _ => None,
        };
        Self { refusal, ..failure }
    }
}

impl From<FreeError> for Failure {
    fn from(error: FreeError) -> Self {
        let status = match error {
            FreeError::NotAllocated { .. } => Status::AllotmentNotAllocated,
            FreeError::Pinned { .. } => Status::AllotmentPinned,
            FreeError::Damaged(_) => Status::AllotmentDamaged,
            FreeError::Unusable(unusable) => return unusable.into(),
            _ => Status::AllotmentInternal,
        };
        Self::new(status, &error)
    }
}

impl From<ResizeError> for Failure {
    fn from(error: ResizeError) -> Self {
        let status = match error {
            ResizeError::NoRoom { .. } | ResizeError::ScopeLimit { .. } => Status::AllotmentNoRoom,
            ResizeError::ZeroBytes { .. } => Status::AllotmentInvalidArgument,
            ResizeError::NotAllocated { .. } => Status::AllotmentNotAllocated,
            ResizeError::Pinned { .. } => Status::AllotmentPinned,
            ResizeError::Unusable(unusable) => return unusable.into(),
            _ => Status::AllotmentInternal,
        };
        Self::new(status, &error)
    }
}

impl From<PauseError> for Failure {
    fn from(error: PauseError) -> Self {
        if let PauseError::StaysPaused { error: first, .. } = &error {
            let Self { status, .. } = PauseError::clone(first).into();
            return Self::new(status, &error);
        }
        let status = match error {
            PauseError::NotElastic => Status::AllotmentInvalidArgument,
            PauseError::Content { .. } | PauseError::File { .. } => Status::AllotmentFileFailed,
            PauseError::AddressesLost | PauseError::SourceFailed(_) => Status::AllotmentSourceFailed,
            PauseError::NoMemory { .. } | PauseError::NoMemoryForContent { .. } => {
                Status::AllotmentOutOfMemory
            }
            PauseError::Unusable(unusable) => return unusable.into(),
            _ => Status::AllotmentInternal,
        };
        Self::new(status, &error)
    }
}

impl From<OptionsError> for Failure {
    fn from(error: OptionsError) -> Self {
        if let OptionsError::Wait { wait } = error {
            return Self::invalid(format!("wait_seconds {} is not between 0 and a year", wait.as_secs_f64()));
        }
        Self::new(Status::AllotmentInvalidArgument, &error)
    }
}

impl From<LimitError> for Failure {
    fn from(error: LimitError) -> Self {
        match error {
            LimitError::Unusable(unusable) => unusable.into(),
            LimitError::SourceFailed { .. } => Self::new(Status::AllotmentSourceFailed, &error),
            error => Self::new(Status::AllotmentInvalidArgument, &error),
        }
    }
}

impl From<TrimError> for Failure {
    fn from(error: TrimError) -> Self {
        match error {
            TrimError::Unusable(unusable) => unusable.into(),
            TrimError::SourceFailed { .. } => Self::new(Status::AllotmentSourceFailed, &error),
            _ => Self::new(Status::AllotmentInternal, &error),
        }
    }
}

/// The last error of a thread.
#[derive(Default)]
struct LastError {
    text: CString,
    refusal: Option<Box<OutOfMemory>>,
}

/// The text where no other can be kept.
const THREAD_HAS_ENDED: &CStr =
    c"no text of an error is kept at the very end of a thread: see the result of the call";

thread_local! {
    static LAST_ERROR: RefCell<LastError> = RefCell::default();
}

/// Runs the body of a call: a failure or a panic becomes a status and the thread's last error.
#[inline]
pub(crate) fn run(body: impl FnOnce() -> Result<(), Failure>) -> Status {
    match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => Status::AllotmentOk,
        Ok(Err(failure)) => store(failure),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text =
                text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic without text");
            let failure = Failure { status: Status::AllotmentInternal, text: text.to_owned(), refusal: None };
            // The text of a panic may panic when it is dropped.
            std::mem::forget(panic);
            store(failure)
        }
    }
}

#[cold]
fn store(failure: Failure) -> Status {
    let Failure { status, text, refusal } = failure;
    let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
    // Thread-local storage is gone at the very end of a thread.
    let _ = LAST_ERROR.try_with(|last| last.replace(LastError { text, refusal }));
    status
}

/// Returns the text of this thread's last error, empty before the first; calls that succeed leave it. The library owns
/// it: it is valid until the thread's next failing call, or its end. Where a destructor of `pthread_key_create` runs
/// at the very end of a thread, only the result of a call tells what happened, and the text says so.
#[unsafe(no_mangle)]
pub extern "C" fn allotment_last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().text.as_ptr()).unwrap_or(THREAD_HAS_ENDED.as_ptr())
}

/// Returns the refusal of this thread's last error as JSON, which the caller frees with `allotment_string_free`: the
/// figures of the pool, the verdict and the advice. Null if that error was no refused request, and at the very end of a
/// thread.
#[unsafe(no_mangle)]
pub extern "C" fn allotment_last_refusal_json() -> *mut c_char {
    let text = catch_unwind(|| {
        let refusal = LAST_ERROR.try_with(|last| last.borrow().refusal.clone()).ok().flatten()?;
        CString::new(crate::report::refusal_json(&refusal).to_string()).ok()
    });
    text.ok().flatten().map_or(ptr::null_mut(), CString::into_raw)
}

/// Frees a text that a function of this library returned for the caller to free. Null is accepted.
///
/// # Safety
/// `text` is such a text and is not used afterwards, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_string_free(text: *mut c_char) {
    if !text.is_null() {
        // SAFETY: the caller guarantees that it came from `CString::into_raw`.
        drop(unsafe { CString::from_raw(text) });
    }
}

/// Returns a text argument.
///
/// # Safety
/// `text` is null or points to a text that ends with a null byte.
pub(crate) unsafe fn text_argument<'a>(text: *const c_char, name: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: guaranteed by the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map(Some).map_err(|_| Failure::invalid(format!("{name} is not UTF-8")))
}

/// Returns the error of a null argument.
pub(crate) fn null(name: &str) -> Failure {
    Failure::invalid(format!("{name} is null"))
}
