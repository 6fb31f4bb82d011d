//! Host memory that is committed page by page.
//!
//! A range is one mapping. Committing takes no system call: memory is used from the first write on. Decommitting
//! discards, and moving moves entries of page tables, so that the number of mappings of the process stays the same.
//! Where the system accounts for writable memory that nothing was written to, committing makes pages writable, and
//! decommitting takes that back: mappings are then as many as spans with and without memory.

use std::collections::BTreeMap;
use std::process;
use std::sync::Arc;

use allotment::source::{Grant, PageSource, ReserveError, SourceFailure};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use thiserror::Error;

use crate::mapping::{self, Access, HUGE_PAGE, numbers};
use crate::regions::{self, Origin};
use crate::userfault::PageMover;
use crate::{HostMemory, strict_overcommit};

/// How pages get memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommitMethod {
    /// By the first write to them.
    FirstWrite { moves: bool },
    /// By access to them, which takes memory from what the system may promise.
    Access,
}

impl CommitMethod {
    /// Returns the method for this system; with `moves`, pages may be moved where the kernel can.
    fn of_system(moves: bool) -> Self {
        // A limit of data counts writable addresses, too.
        let counts_addresses = strict_overcommit()
            || cfg!(not(target_os = "linux"))
            || getrlimit(Resource::Data).current.is_some();
        if counts_addresses { Self::Access } else { Self::FirstWrite { moves } }
    }
}

/// The ranges of one source.
#[derive(Debug)]
pub(crate) struct PageRanges {
    /// Chosen for the first range.
    method: Option<CommitMethod>,
    /// Whether pages may be moved where the kernel can.
    moves: bool,
    /// Opened for the first range.
    mover: Option<PageMover>,
    ranges: BTreeMap<u64, PageRange>,
    /// The process that made the source.
    process: u32,
}

#[derive(Debug)]
struct PageRange {
    bytes: u64,
    committed: u64,
    /// Its pages may be moved to.
    is_target: bool,
    /// Its pages are backed by huge pages.
    is_huge: bool,
}

impl Default for PageRanges {
    fn default() -> Self {
        Self { method: None, moves: true, mover: None, ranges: BTreeMap::new(), process: process::id() }
    }
}

impl PageRanges {
    pub(crate) fn with_method(method: CommitMethod) -> Self {
        Self { method: Some(method), ..Self::default() }
    }

    pub(crate) fn without_moves() -> Self {
        Self { moves: false, ..Self::default() }
    }

    pub(crate) fn contains(&self, address: u64) -> bool {
        self.find(Grant { address, bytes: 1 }).is_some()
    }

    /// Returns the ranges in which no page has memory; none in a forked child, where another thread may have been
    /// inside the source.
    pub(crate) fn empty(&self) -> Vec<Grant> {
        let is_ours = self.process == process::id();
        let empty = self.ranges.iter().filter(|(_, range)| is_ours && range.committed == 0);
        empty.map(|(&address, range)| Grant { address, bytes: range.bytes }).collect()
    }

    fn find(&self, span: Grant) -> Option<&PageRange> {
        let (address, range) = self.ranges.range(..=span.address).next_back()?;
        (span.end() <= address + range.bytes).then_some(range)
    }

    /// Returns the range around a span.
    ///
    /// # Panics
    /// If there is none: the pages could belong to other code.
    fn around(&mut self, span: Grant) -> &mut PageRange {
        let range = self.ranges.range_mut(..=span.address).next_back();
        let range = range.filter(|(address, range)| span.end() <= **address + range.bytes);
        range.unwrap_or_else(|| panic!("{span:?} is in no range of this source")).1
    }

    fn method(&mut self) -> CommitMethod {
        let moves = self.moves;
        *self.method.get_or_insert_with(|| CommitMethod::of_system(moves))
    }

    /// Makes a mapping for pages of `page_size` bytes.
    fn map(&mut self, bytes: u64, page_size: u64) -> Option<Grant> {
        let length = usize::try_from(bytes).ok()?;
        let alignment = usize::try_from(page_size).ok()?;
        let method = self.method();
        let access = if method == CommitMethod::Access { Access::Nothing } else { Access::ReadAndWrite };
        let start = mapping::map(length, alignment, access)?;
        let range = Grant { address: start as u64, bytes };
        // A huge page is not freed when only part of it is decommitted.
        let is_huge = alignment >= HUGE_PAGE;
        mapping::advise_huge_pages(start, length, is_huge);
        if method == (CommitMethod::FirstWrite { moves: true }) {
            self.mover = self.mover.take().or_else(PageMover::open);
        }
        let is_target = self.mover.as_ref().is_some_and(|mover| mover.register(range));
        self.ranges.insert(range.address, PageRange { bytes, committed: 0, is_target, is_huge });
        Some(range)
    }
}

impl HostMemory {
    /// Creates a source that does not move pages, as where the kernel cannot.
    ///
    /// Moving needs an open file descriptor. Libraries in the process of a program that closes all descriptors, or counts
    /// on their numbers, do without.
    #[must_use]
    pub fn without_page_moves() -> Self {
        Self { grants: Arc::default(), pages: PageRanges::without_moves() }
    }

    /// Creates a source whose pages are only accessible while they are committed, as under strict overcommit
    /// accounting. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_strict_accounting() -> Self {
        Self::with_method(CommitMethod::Access)
    }
}

impl PageSource for HostMemory {
    fn granule(&self) -> u64 {
        (rustix::param::page_size() as u64).max(allotment::GRANULE)
    }

    fn page_size(&self) -> u64 {
        self.granule().max(HUGE_PAGE as u64)
    }

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        let range = self.pages.map(bytes, page_size).ok_or(ReserveError::Declined)?;
        regions::register(range.address, range.end(), Origin::Mapping);
        self.grants.insert(range);
        Ok(range)
    }

    /// Unmaps a range.
    ///
    /// # Panics
    /// If this source did not grant the range or has already released it: unmapping could hit other memory.
    fn release_addresses(&mut self, range: Grant) {
        let known = self.pages.ranges.get(&range.address).filter(|known| known.bytes == range.bytes);
        assert!(known.is_some(), "{range:?} is no range of this source");
        self.pages.ranges.remove(&range.address);
        self.grants.remove(range);
        regions::unregister(range.address);
        mapping::unmap_all(range);
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        let method = self.pages.method();
        let range = self.pages.around(span);
        if method == CommitMethod::Access {
            if mapping::allow_access(span).is_err() {
                // It may have reached part of them.
                let _ = mapping::replace_by_nothing(span);
                return Err(ReserveError::Declined);
            }
            if let Some((start, length)) = numbers(span) {
                mapping::advise_huge_pages(start, length, range.is_huge);
            }
        }
        range.committed += span.bytes;
        Ok(())
    }

    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        let method = self.pages.method();
        let range = self.pages.around(span);
        let taken = match method {
            CommitMethod::FirstWrite { .. } => mapping::discard(span),
            // With as many mappings as the system allows, the memory is freed and only stays promised.
            CommitMethod::Access => mapping::replace_by_nothing(span).or_else(|_| mapping::discard(span)),
        };
        taken.map_err(|reason| Arc::new(PagesKept { span, reason }) as SourceFailure)?;
        range.committed -= span.bytes;
        Ok(())
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        let source_is_huge = self.pages.around(from).is_huge;
        let target = Grant { address: to, ..from };
        let PageRange { is_target, is_huge, .. } = *self.pages.around(target);
        let mover = self.pages.mover.as_ref().filter(|mover| is_target && mover.is_ours());
        let Some(mover) = mover else { return Err(ReserveError::Declined) };
        let is_huge = is_huge && source_is_huge;
        let all_moved = mover.move_pages(from, to, is_huge);
        if !all_moved || is_huge {
            // A page that could not be moved is discarded, and the target gets its memory from the first write to it. This
            // also frees the page tables, without which the kernel uses a huge page at the next first write.
            let discarded = mapping::discard(from);
            if !all_moved && discarded.is_err() {
                return Err(ReserveError::Declined);
            }
        }
        self.pages.around(from).committed -= from.bytes;
        self.pages.around(target).committed += from.bytes;
        Ok(())
    }

    fn commits_zeros(&mut self) -> bool {
        true
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        let span = Grant { address, bytes: into.len() as u64 };
        self.pages.around(span);
        if let Some((start, length)) = numbers(span) {
            // SAFETY: the pages are mapped, and readable while they are committed.
            unsafe { into.as_mut_ptr().copy_from_nonoverlapping(mapping::pages(start).cast(), length) };
        }
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        let span = Grant { address, bytes: from.len() as u64 };
        self.pages.around(span);
        if let Some((start, length)) = numbers(span) {
            // SAFETY: the pages are mapped, and writable while they are committed.
            unsafe { from.as_ptr().copy_to_nonoverlapping(mapping::pages(start).cast(), length) };
        }
        Ok(())
    }
}

/// The failure of a decommit.
#[derive(Debug, Error)]
#[error(
    "the system did not take back the memory of {} bytes at {:#x}: {reason}; memory that is locked (`mlock`, `mlockall`) \
     stays",
    span.bytes, span.address
)]
struct PagesKept {
    span: Grant,
    reason: Errno,
}

#[cfg(test)]
mod tests;
