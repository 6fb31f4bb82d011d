//! Device memory that is mapped page by page into reserved addresses.
//!
//! Each page with memory has a handle of its own, so that its memory can be mapped elsewhere. A move maps the memory at
//! the new addresses first, and unmaps it at the old ones last: until then the old ones can be used, whatever fails.

use std::collections::BTreeMap;
use std::sync::Arc;

use allotment::source::{Grant, PageSource, ReserveError, SourceFailure};

use crate::driver::VirtualMemory;
use crate::error::{CudaError, refusal};
use crate::sys::{Device, Handle, NOT_SUPPORTED};
use crate::teardown::{Step, Teardown};
use crate::virtual_memory::{CudaVirtualMemory, length, virtual_memory};

/// The ranges of a source, and the memory of their pages.
#[derive(Debug, Default)]
pub(crate) struct MappedPages {
    /// Start of each range to its length and page size.
    ranges: BTreeMap<u64, (u64, u64)>,
    /// Address of each page with memory to that memory.
    handles: BTreeMap<u64, Handle>,
}

impl MappedPages {
    /// Adds the steps that give everything back.
    pub(crate) fn give_back(&mut self, teardown: &mut Teardown) {
        for (address, handle) in std::mem::take(&mut self.handles) {
            let (_, (_, page_size)) =
                self.ranges.range(..=address).next_back().expect("a page lies in a range");
            teardown.push(Step::Unmap(Grant { address, bytes: *page_size }));
            teardown.push(Step::Release(handle));
        }
        for (address, (bytes, _)) in std::mem::take(&mut self.ranges) {
            teardown.push(Step::FreeAddresses(Grant { address, bytes }));
        }
    }

    /// Returns the pages of a span.
    ///
    /// # Panics
    /// If the span lies in no range of this source.
    fn pages_of(&self, span: Grant) -> Vec<Grant> {
        let range = self.ranges.range(..=span.address).next_back();
        let range = range.filter(|(start, (bytes, _))| span.end() <= **start + bytes);
        let (_, &(_, bytes)) = range.unwrap_or_else(|| panic!("{span:?} is in no range of this source"));
        (0..span.bytes / bytes).map(|page| Grant { address: span.address + page * bytes, bytes }).collect()
    }

    /// Returns the pages of a span with their memory.
    ///
    /// # Panics
    /// If one has none.
    fn with_memory(&self, span: Grant) -> Vec<(Grant, Handle)> {
        let handle = |page: &Grant| self.handles.get(&page.address).copied();
        let pages = self.pages_of(span).into_iter();
        pages.map(|page| (page, handle(&page).unwrap_or_else(|| panic!("{page:?} has no memory")))).collect()
    }
}

/// The steps that a call has done so far.
#[derive(Debug, Default)]
struct Progress {
    handles: Vec<Handle>,
    mapped: Vec<Grant>,
    /// Pages to unmap that the driver has not unmapped yet.
    left: Vec<Grant>,
    is_done: bool,
}

impl CudaVirtualMemory {
    /// Calls `work` with the functions in the device's context.
    fn with_memory_functions(
        &self,
        work: impl FnOnce(&VirtualMemory<'_>, Device) -> Result<(), CudaError>,
    ) -> Result<(), CudaError> {
        self.context.with(|driver| {
            let memory = virtual_memory(driver, self.context.ordinal)?;
            work(&memory, self.context.device)
        })
    }

    /// Ends a call that has done its work: an error is about what comes after it, and is reported by the next request.
    fn end(&mut self, result: Result<(), CudaError>, left: Vec<Grant>) {
        for page in left {
            self.teardown.push(Step::Unmap(page));
        }
        if let Err(error) = result {
            self.teardown.fail_later(error);
        }
    }

    /// Takes back the mappings and the memory of a call that failed.
    fn undo(&mut self, progress: Progress) {
        for page in progress.mapped {
            self.teardown.push(Step::Unmap(page));
        }
        for handle in progress.handles {
            self.teardown.push(Step::Release(handle));
        }
        self.tear_down();
    }
}

/// Unmaps pages, once nothing uses them. If the driver refuses the first one, nothing is unmapped; others that it
/// refuses are left for later.
fn unmap(memory: &VirtualMemory<'_>, pages: &[Grant], progress: &mut Progress) -> Result<(), CudaError> {
    // Unmapping does not wait for the device.
    memory.synchronize()?;
    let mut failure = None;
    for page in pages {
        match memory.unmap(page.address, length(page.bytes)) {
            Ok(()) => progress.is_done = true,
            Err(error) if progress.is_done => {
                progress.left.push(*page);
                failure.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    failure.map_or(Ok(()), Err)
}

impl PageSource for CudaVirtualMemory {
    fn granule(&self) -> u64 {
        self.granularity
    }

    fn reserve_addresses(&mut self, bytes: u64, page_size: u64) -> Result<Grant, ReserveError> {
        self.settle()?;
        let mut reserved = None;
        let alignment = if page_size > self.granularity { length(page_size) } else { 0 };
        let result = self.with_memory_functions(|memory, _| {
            reserved = Some(Grant { address: memory.reserve_addresses(length(bytes), alignment)?, bytes });
            Ok(())
        });
        match reserved {
            Some(range) if result.is_ok() && range.address.is_multiple_of(page_size) => {
                self.pages.ranges.insert(range.address, (bytes, page_size));
                return Ok(range);
            }
            Some(range) => {
                self.teardown.push(Step::FreeAddresses(range));
                self.tear_down();
            }
            None => {}
        }
        result.map_err(refusal)?;
        Err(ReserveError::Declined)
    }

    /// Frees the addresses of a range. A failure is reported by the next request, and the call is tried again then.
    ///
    /// # Panics
    /// If this source did not grant the range or has already released it.
    fn release_addresses(&mut self, range: Grant) {
        let known = self.pages.ranges.remove(&range.address).filter(|(bytes, _)| *bytes == range.bytes);
        assert!(known.is_some(), "{range:?} is no range of this source");
        self.teardown.push(Step::FreeAddresses(range));
        self.tear_down();
    }

    fn commit(&mut self, span: Grant) -> Result<(), ReserveError> {
        self.settle()?;
        let pages = self.pages.pages_of(span);
        let mut progress = Progress::default();
        let result = self.with_memory_functions(|memory, device| {
            for page in &pages {
                let bytes = length(page.bytes);
                let handle = memory.create(bytes, device)?;
                progress.handles.push(handle);
                memory.map(page.address, bytes, handle)?;
                progress.mapped.push(*page);
            }
            memory.set_access(span.address, length(span.bytes), device)
        });
        if result.is_err() {
            self.undo(progress);
            return result.map_err(refusal);
        }
        let addresses = pages.iter().map(|page| page.address);
        self.pages.handles.extend(addresses.zip(progress.handles));
        Ok(())
    }

    /// Unmaps pages after waiting for the device, and frees their memory. If the driver refuses part of that, the call
    /// is tried again by the next request, which reports the failure.
    fn decommit(&mut self, span: Grant) -> Result<(), SourceFailure> {
        let pages = self.pages.with_memory(span);
        let spans: Vec<Grant> = pages.iter().map(|(page, _)| *page).collect();
        let mut progress = Progress::default();
        let result = self.with_memory_functions(|memory, _| unmap(memory, &spans, &mut progress));
        if let (Err(error), false) = (&result, progress.is_done) {
            return Err(Arc::new(error.clone()));
        }
        self.end(result, progress.left);
        for (page, handle) in pages {
            self.pages.handles.remove(&page.address);
            self.teardown.push(Step::Release(handle));
        }
        self.tear_down();
        Ok(())
    }

    fn move_pages(&mut self, from: Grant, to: u64) -> Result<(), ReserveError> {
        self.settle()?;
        let pages = self.pages.with_memory(from);
        let targets = self.pages.pages_of(Grant { address: to, ..from });
        let sources: Vec<Grant> = pages.iter().map(|(page, _)| *page).collect();
        let mut progress = Progress::default();
        let result = self.with_memory_functions(|memory, device| {
            for (target, (_, handle)) in targets.iter().zip(&pages) {
                memory.map(target.address, length(target.bytes), *handle)?;
                progress.mapped.push(*target);
            }
            memory.set_access(to, length(from.bytes), device)?;
            unmap(memory, &sources, &mut progress)
        });
        if !progress.is_done {
            self.undo(progress);
            return match result {
                // A driver that maps memory at one address only.
                Err(CudaError::Call { code: NOT_SUPPORTED, .. }) => Err(ReserveError::Declined),
                Err(error) => Err(refusal(error)),
                Ok(()) => Ok(()),
            };
        }
        self.end(result, progress.left);
        for (target, (page, handle)) in targets.into_iter().zip(pages) {
            self.pages.handles.remove(&page.address);
            self.pages.handles.insert(target.address, handle);
        }
        Ok(())
    }

    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), SourceFailure> {
        let copied = self.context.with(|driver| driver.copy_to_host(address, into));
        copied.map_err(|error| Arc::new(error) as SourceFailure)
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), SourceFailure> {
        let copied = self.context.with(|driver| driver.copy_from_host(address, from));
        copied.map_err(|error| Arc::new(error) as SourceFailure)
    }
}
