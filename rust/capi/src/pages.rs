//! Sources of pages that are functions of C: addresses are reserved first, and memory is committed to pages of them.

use std::ffi::c_void;
use std::mem::offset_of;

use allotment::source::{Grant, PageSource as CorePageSource, ReserveError, SourceFailure};

use crate::source::{ALLOTMENT_DECLINED, ALLOTMENT_GRANTED, CSource, failure};
use crate::status::{Failure, null};
use crate::versioned::copy_of;

/// The functions of a source for elastic pools, beside `reserve` and `release`: they reserve addresses without memory,
/// and commit memory to pages of them. `context` is that of the source. Spans are multiples of the pool's page
/// size and lie in one range. A function that does not return `ALLOTMENT_GRANTED` has changed nothing:
/// `ALLOTMENT_DECLINED` where memory or addresses are missing, any other number for a failure, which the error of the
/// call names.
///
/// Set all of it to 0 first. Later versions add fields at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PageSource {
    /// The size of this structure in bytes, as the caller was compiled: `sizeof(allotment_page_source)`.
    pub struct_size: usize,
    /// The smallest page size in bytes, a power of two. Page sizes of pools are multiples of it.
    pub granule: u64,
    /// The page size in bytes of pools that set none; 0: `granule`.
    pub page_size: u64,
    /// Reserves exactly `bytes` addresses without memory at a multiple of `page_size`, the pool's, and stores the first
    /// one.
    pub reserve_addresses: Option<
        unsafe extern "C" fn(context: *mut c_void, bytes: u64, page_size: u64, address: *mut u64) -> i32,
    >,
    /// Takes a range of addresses back. No page of it is committed.
    pub release_addresses: Option<unsafe extern "C" fn(context: *mut c_void, address: u64, bytes: u64)>,
    /// Commits memory to all pages of a span, of which none is committed. Its content is undefined.
    pub commit: Option<unsafe extern "C" fn(context: *mut c_void, address: u64, bytes: u64) -> i32>,
    /// Takes the memory of all pages of a span, all of which are committed.
    pub decommit: Option<unsafe extern "C" fn(context: *mut c_void, address: u64, bytes: u64) -> i32>,
    /// Moves the memory of the committed pages of a span to those at `to`, of which none is committed; the content is
    /// undefined then. May be null: the pool decommits and commits.
    pub move_pages:
        Option<unsafe extern "C" fn(context: *mut c_void, address: u64, bytes: u64, to: u64) -> i32>,
    /// Reads committed memory, for a pause that keeps its content. May be null.
    pub read: Option<
        unsafe extern "C" fn(context: *mut c_void, address: u64, into: *mut c_void, bytes: usize) -> i32,
    >,
    /// Writes committed memory, for a resume. May be null.
    pub write: Option<
        unsafe extern "C" fn(context: *mut c_void, address: u64, from: *const c_void, bytes: usize) -> i32,
    >,
}

impl PageSource {
    const EMPTY: Self = Self {
        struct_size: 0,
        granule: 0,
        page_size: 0,
        reserve_addresses: None,
        release_addresses: None,
        commit: None,
        decommit: None,
        move_pages: None,
        read: None,
        write: None,
    };
}

/// The functions of a source of pages, checked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pages {
    granule: u64,
    page_size: u64,
    reserve_addresses: unsafe extern "C" fn(*mut c_void, u64, u64, *mut u64) -> i32,
    release_addresses: unsafe extern "C" fn(*mut c_void, u64, u64),
    commit: unsafe extern "C" fn(*mut c_void, u64, u64) -> i32,
    decommit: unsafe extern "C" fn(*mut c_void, u64, u64) -> i32,
    move_to: Option<unsafe extern "C" fn(*mut c_void, u64, u64, u64) -> i32>,
    read: Option<unsafe extern "C" fn(*mut c_void, u64, *mut c_void, usize) -> i32>,
    write: Option<unsafe extern "C" fn(*mut c_void, u64, *const c_void, usize) -> i32>,
}

impl Pages {
    /// Checks and copies the functions; `None` if there are none.
    ///
    /// # Safety
    /// `pages` is null or points to a source of pages.
    pub(crate) unsafe fn new(pages: *const PageSource) -> Result<Option<Self>, Failure> {
        if pages.is_null() {
            return Ok(None);
        }
        let first = offset_of!(PageSource, write) + size_of::<usize>();
        // SAFETY: guaranteed by the caller.
        let pages = unsafe { copy_of(pages, PageSource::EMPTY, first, "allotment_page_source")? };
        let size = |bytes: u64, name: &str| {
            let is_valid = bytes.is_power_of_two();
            let text = || Failure::invalid(format!("pages->{name} {bytes} is not a power of two"));
            if is_valid { Ok(bytes) } else { Err(text()) }
        };
        let granule = size(pages.granule, "granule")?;
        let page_size = if pages.page_size == 0 { granule } else { size(pages.page_size, "page_size")? };
        Ok(Some(Self {
            granule,
            page_size,
            reserve_addresses: pages.reserve_addresses.ok_or_else(|| null("pages->reserve_addresses"))?,
            release_addresses: pages.release_addresses.ok_or_else(|| null("pages->release_addresses"))?,
            commit: pages.commit.ok_or_else(|| null("pages->commit"))?,
            decommit: pages.decommit.ok_or_else(|| null("pages->decommit"))?,
            move_to: pages.move_pages,
            read: pages.read,
            write: pages.write,
        }))
    }
}

/// Returns the result of a function that cannot decline.
fn done(function: &'static str, code: i32) -> Result<(), SourceFailure> {
    if code == ALLOTMENT_GRANTED { Ok(()) } else { Err(failure(function, code)) }
}

/// Returns the result of a function that may decline.
fn granted(function: &'static str, code: i32) -> Result<(), ReserveError> {
    if code == ALLOTMENT_DECLINED {
        return Err(ReserveError::Declined);
    }
    done(function, code).map_err(ReserveError::Failed)
}

/// The failure of a source without a function.
#[derive(Debug)]
struct Missing(&'static str);

impl std::fmt::Display for Missing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "its function {} is null, which a pause that keeps content needs", self.0)
    }
}

impl std::error::Error for Missing {}

/// Only called if the source has pages: see `CSource::pages`.
impl CorePageSource for CSource {
    fn granule(&self) -> u64 {
        self.functions().granule
    }

    fn page_size(&self) -> u64 {
        self.functions().page_size
    }

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        let mut address = 0;
        let reserve = self.functions().reserve_addresses;
        // SAFETY: the contract of `CSource::new`; the number is writable.
        granted("reserve_addresses", unsafe { reserve(self.context, bytes, page_size, &raw mut address) })?;
        Ok(Grant { address, bytes })
    }

    fn release_addresses(&mut self, range: Grant) {
        // SAFETY: the contract of `CSource::new`.
        unsafe { (self.functions().release_addresses)(self.context, range.address, range.bytes) }
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        // SAFETY: the contract of `CSource::new`.
        granted("commit", unsafe { (self.functions().commit)(self.context, span.address, span.bytes) })
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        // SAFETY: the contract of `CSource::new`.
        done("decommit", unsafe { (self.functions().decommit)(self.context, span.address, span.bytes) })
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        let Some(move_to) = self.functions().move_to else { return Err(ReserveError::Declined) };
        // SAFETY: the contract of `CSource::new`.
        granted("move_pages", unsafe { move_to(self.context, from.address, from.bytes, to) })
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        let Some(read) = self.functions().read else { return Err(std::sync::Arc::new(Missing("read"))) };
        // SAFETY: the contract of `CSource::new`; the buffer is writable.
        done("read", unsafe { read(self.context, address, into.as_mut_ptr().cast(), into.len()) })
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        let Some(write) = self.functions().write else { return Err(std::sync::Arc::new(Missing("write"))) };
        // SAFETY: the contract of `CSource::new`; the buffer is readable.
        done("write", unsafe { write(self.context, address, from.as_ptr().cast(), from.len()) })
    }
}
