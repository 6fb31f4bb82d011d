//! Pausing an elastic pool: all of its memory goes back to the source, and later returns at the same addresses.
//!
//! Longer than 300 lines: each step of a pause has its counterpart in the resume, and both are read together.

use std::collections::TryReserveError;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::content_file::{NewFile, check_kind};
use super::pages_of;
use crate::error::Unusable;
use crate::pool::state::State;
use crate::pool::{Pool, Source};
use crate::source::{Grant, PageSource, ReserveError, SourceFailure};
use crate::tables::pages::{PageSpan, count, difference};

/// The most bytes that are copied at once. A block of zeros is not kept, so that memory that was never written to is not.
const BLOCK: u64 = 64 << 10;

/// How many bytes are compared with zero at once.
const COMPARED: usize = 4 << 10;

/// The content of a block of a paused pool.
#[derive(Debug)]
enum Block {
    Zeros,
    InMemory(Vec<u8>),
    InFile,
}

/// The place in which a paused pool keeps the content of its allocations.
#[derive(Debug)]
#[non_exhaustive]
pub enum PausedContent {
    /// Nowhere: it is undefined after the resume.
    Discard,
    /// In memory of the process, outside of the pool.
    Memory,
    /// In a file or on a block device that is open for reading and writing, from its start on. A pause that fails may have
    /// written to it.
    File(File),
    /// In a file at a path, which no other user may open. It is made, or replaces the file there, as the last step: a
    /// pause that fails leaves the path as it was. A block device at the path is written to itself.
    Path(PathBuf),
}

/// Why a pool was not paused, or not resumed. It is as it was before, but for [`PauseError::StaysPaused`], and for the
/// content if a pause that discards it fails.
#[derive(Debug, Clone, Error)]
#[non_exhaustive]
pub enum PauseError {
    /// The pool has whole regions.
    #[error("only an elastic pool can be paused: this one was made without the option elastic")]
    NotElastic,
    /// The content could not be saved or read back.
    #[error("the content of the pool could not be {verb}: {error}")]
    Content {
        /// The step that failed.
        verb: &'static str,
        /// The error of the file.
        error: Arc<io::Error>,
    },
    /// The file for the content could not be made, or not get its path.
    #[error("the file {} for the content of the pool cannot be made: {error}", path.display())]
    File {
        /// The path that was passed.
        path: PathBuf,
        /// The error of the file.
        error: Arc<io::Error>,
    },
    /// A step of a pause failed, and so did its reversal: the pool is paused, and keeps the content.
    #[error(
        "{error}; the pool is paused nevertheless, until a resume, as the memory did not return: {reversal}"
    )]
    StaysPaused {
        /// Why the pause failed.
        error: Box<Self>,
        /// Why its reversal failed.
        reversal: Box<Self>,
    },
    /// The process has no memory for the content.
    #[error(
        "the process has no memory for the {bytes} bytes of content of the pool: keep them in a file, or discard them"
    )]
    NoMemoryForContent {
        /// The bytes of the pages in use.
        bytes: u64,
    },
    /// The source lost addresses of the pool: pages there would not receive memory again.
    #[error("the source lost addresses of this pool, where pages would not receive memory again")]
    AddressesLost,
    /// The source has no memory for the pages in use.
    #[error("the source has no {bytes} bytes for the pages in use: free memory elsewhere and resume again")]
    NoMemory {
        /// The bytes of the pages in use.
        bytes: u64,
    },
    /// The source failed.
    #[error("the region source failed: {0}")]
    SourceFailed(SourceFailure),
    /// The pool cannot be used.
    #[error(transparent)]
    Unusable(#[from] Unusable),
}

/// The content that a paused pool keeps.
#[derive(Debug)]
pub(in crate::pool) struct Paused {
    content: PausedContent,
    /// The saved pages, in order.
    saved: Vec<PageSpan>,
    /// Their content, in blocks, unless it is discarded.
    blocks: Vec<Block>,
    /// Pages that still have memory, because the source did not take it.
    kept: Vec<PageSpan>,
}

impl Pool {
    /// Gives all memory of an elastic pool back and keeps its addresses; returns the bytes. Nothing may use its
    /// allocations until [`Pool::resume`]: their content is kept in `content`.
    ///
    /// A paused pool takes no requests, and does take frees. Pausing it again does nothing. It may be closed.
    ///
    /// # Errors
    /// If the pool is not elastic, is closed, or a step fails. It is not paused then, but for
    /// [`PauseError::StaysPaused`]; with [`PausedContent::Discard`] the content may be undefined.
    pub fn pause(&self, content: PausedContent) -> Result<u64, PauseError> {
        self.with_source(|source| self.pause_with(source, content))?
    }

    fn pause_with(&self, source: &mut Source<'_>, content: PausedContent) -> Result<u64, PauseError> {
        if !self.options.elastic {
            return Err(PauseError::NotElastic);
        }
        let state = self.lock_state()?;
        if state.paused.is_some() {
            return Ok(0);
        }
        state.open()?;
        if state.allocator.has_lost_ranges() {
            return Err(PauseError::AddressesLost);
        }
        drop(state);
        let (content, new_file) = match content {
            PausedContent::Path(path) => {
                let (file, new_file) = NewFile::open(&path).map_err(|error| file_error(&path, error))?;
                (PausedContent::File(file), new_file.map(|new_file| (new_file, path)))
            }
            other => (other, None),
        };
        // The source lock is held: nothing has closed or paused the pool meanwhile.
        let mut state = self.lock_state()?;
        let shift = state.allocator.page_shift();
        let free = state.allocator.take_free_pages(u64::MAX);
        let touched = state.allocator.touched_pages();
        state.allocator.set_paused(true);
        self.update_slow_path(&mut state, |slow_path| slow_path.paused = true);
        drop(state);
        let mut memory = Memory::new(source, shift, [free, touched.clone()].concat());
        let mut paused = Paused { content, saved: touched, blocks: Vec::new(), kept: Vec::new() };
        let mut result = paused.save(&mut memory);
        let mut is_paused = result.is_ok();
        if is_paused {
            let all = memory.committed.clone();
            let replace =
                |(file, path): (NewFile, PathBuf)| file.replace().map_err(|error| file_error(&path, error));
            result = memory.decommit(&all).and_then(|()| new_file.map_or(Ok(()), replace));
            if let Err(error) = result {
                let lost = difference(&paused.saved, &memory.committed);
                let reversal = memory.commit(&all).and_then(|()| paused.load(&mut memory, &lost));
                is_paused = reversal.is_err();
                result = Err(match reversal {
                    Ok(()) => error,
                    Err(reversal) => {
                        PauseError::StaysPaused { error: error.into(), reversal: reversal.into() }
                    }
                });
            }
        }
        let Memory { committed, received, .. } = memory;
        let mut state = self.lock_state()?;
        let before = state.allocator.counters.reserved();
        state.allocator.recount(count(&committed), received);
        if is_paused {
            paused.kept = committed;
            state.paused = Some(paused);
        } else {
            state.allocator.set_paused(false);
            self.update_slow_path(&mut state, |slow_path| slow_path.paused = false);
            state.return_pages_that_are_free(&committed);
        }
        result.map(|()| before)
    }

    /// Fetches the memory of a paused pool back, at the same addresses and with the kept content; returns the bytes. Does
    /// nothing if the pool is not paused.
    ///
    /// # Errors
    /// If the source has too little memory, or a step fails; the pool stays paused then, and keeps the content. After
    /// [`PauseError::AddressesLost`] no later call succeeds before the allocations there are freed.
    pub fn resume(&self) -> Result<u64, PauseError> {
        let resume = || self.with_source(|source| self.resume_with(source))?;
        match resume() {
            Err(PauseError::NoMemory { bytes }) if self.reclaim_bytes(bytes)? => resume(),
            other => other,
        }
    }

    fn resume_with(&self, source: &mut Source<'_>) -> Result<u64, PauseError> {
        let mut state = self.lock_state()?;
        let Some(mut paused) = state.paused.take() else { return Ok(0) };
        let touched = state.allocator.touched_pages();
        let shift = state.allocator.page_shift();
        let ranges: Vec<Grant> = state.allocator.regions.iter().map(|region| region.span).collect();
        let (wanted, free) = (difference(&touched, &paused.kept), difference(&paused.kept, &touched));
        if wanted.iter().any(|pages| state.allocator.is_lost(pages.addresses(shift).address)) {
            state.paused = Some(paused);
            return Err(PauseError::AddressesLost);
        }
        drop(state);
        let kept = mem::take(&mut paused.kept);
        let mut memory = Memory::new(source, shift, kept);
        let mut lost = None;
        let mut commit = || match memory.commit(&wanted) {
            Err(PauseError::NoMemory { .. }) if memory.free_more(&free, &ranges, &mut lost)? => {
                memory.commit(&wanted)
            }
            other => other,
        };
        let result = commit().and_then(|()| {
            paused.load(&mut memory, &touched).inspect_err(|_| {
                let _ = memory.decommit(&wanted);
            })
        });
        let Memory { committed, received, .. } = memory;
        let mut state = self.lock_state()?;
        state.allocator.recount(count(&committed), received);
        if let Some(range) = lost {
            state.allocator.lose(range);
        }
        if let Err(error) = result {
            paused.kept = committed;
            state.paused = Some(paused);
            return Err(error);
        }
        state.allocator.set_paused(false);
        self.update_slow_path(&mut state, |slow_path| slow_path.paused = false);
        state.return_pages_that_are_free(&committed);
        state.retry_reasons += 1;
        drop(state);
        self.freed.notify_all();
        Ok(count(&wanted) << shift)
    }

    /// Returns whether the pool is paused.
    ///
    /// # Errors
    /// In a forked child.
    pub fn is_paused(&self) -> Result<bool, Unusable> {
        self.with_state(|state| state.allocator.is_paused())
    }
}

impl State {
    /// Returns those of the committed pages to their holes that no allocation touches: the free ones, and those of
    /// allocations that were freed while the pool was paused.
    fn return_pages_that_are_free(&mut self, committed: &[PageSpan]) {
        let touched = self.allocator.touched_pages();
        self.allocator.return_free_pages(difference(committed, &touched));
    }

    /// Returns the bytes that the pool holds, or would hold after a resume, and those of them that a trim releases.
    pub(in crate::pool) fn held_and_releasable(&self) -> (u64, u64) {
        let allocator = &self.allocator;
        let Some(paused) = &self.paused else {
            return (allocator.counters.reserved(), allocator.releasable());
        };
        let free = count(&difference(&paused.kept, &allocator.touched_pages())) << allocator.page_shift();
        (allocator.bytes_to_resume() + free, free)
    }

    /// Takes the free ones of the pages that kept their memory in a paused pool.
    pub(in crate::pool) fn take_kept_free_pages(&mut self) -> Vec<PageSpan> {
        let touched = self.allocator.touched_pages();
        let Some(paused) = &mut self.paused else { return Vec::new() };
        let free = difference(&paused.kept, &touched);
        paused.kept = difference(&paused.kept, &free);
        free
    }

    /// Records pages that kept their memory in a paused pool; returns whether there are any.
    pub(in crate::pool) fn keep_pages(&mut self, pages: Vec<PageSpan>) -> bool {
        self.paused.as_mut().is_some_and(|paused| {
            paused.kept.extend(pages);
            !paused.kept.is_empty()
        })
    }
}

/// The pages of a source, and which of a pool's have memory.
struct Memory<'a> {
    pages: &'a mut dyn PageSource,
    shift: u32,
    committed: Vec<PageSpan>,
    /// The number of pages that received memory.
    received: u64,
}

impl<'a> Memory<'a> {
    fn new(source: &'a mut Source<'_>, shift: u32, committed: Vec<PageSpan>) -> Self {
        Self { pages: pages_of(source), shift, committed, received: 0 }
    }

    /// Commits those pages of all spans that have no memory, or none: after an error those that received memory give it
    /// back, as far as the source takes it.
    fn commit(&mut self, spans: &[PageSpan]) -> Result<(), PauseError> {
        let wanted = difference(spans, &self.committed);
        for (index, span) in wanted.iter().enumerate() {
            if let Err(error) = self.pages.commit(span.addresses(self.shift)) {
                let _ = self.decommit(&wanted[..index]);
                return Err(match error {
                    ReserveError::Declined => PauseError::NoMemory { bytes: count(spans) << self.shift },
                    ReserveError::Failed(failure) => PauseError::SourceFailed(failure),
                });
            }
            self.committed.push(*span);
            self.received += span.len();
        }
        Ok(())
    }

    /// Gives the memory of free pages to the source, and lets it make free what it could; returns whether a commit may
    /// succeed now.
    ///
    /// # Errors
    /// If the source lost the addresses of a range, which is noted in `lost`.
    fn free_more(
        &mut self,
        free: &[PageSpan],
        ranges: &[Grant],
        lost: &mut Option<Grant>,
    ) -> Result<bool, PauseError> {
        let before = count(&self.committed);
        let _ = self.decommit(free);
        let mut helps = count(&self.committed) < before;
        for &range in ranges {
            helps |= self.pages.recycle(range).map_err(|failure| {
                *lost = Some(range);
                PauseError::SourceFailed(failure)
            })?;
        }
        Ok(helps)
    }

    /// Decommits all spans as far as the source takes them back; returns the first failure.
    fn decommit(&mut self, spans: &[PageSpan]) -> Result<(), PauseError> {
        let mut result = Ok(());
        let mut taken = Vec::with_capacity(spans.len());
        for &span in spans {
            match self.pages.decommit(span.addresses(self.shift)) {
                Ok(()) => taken.push(span),
                Err(failure) => result = result.and(Err(PauseError::SourceFailed(failure))),
            }
        }
        self.committed = difference(&self.committed, &taken);
        result
    }
}

/// Splits a span of addresses into blocks that fit a buffer.
fn blocks_of(span: Grant) -> impl Iterator<Item = Grant> {
    let starts = (span.address..span.end()).step_by(BLOCK.try_into().unwrap_or(usize::MAX));
    starts.map(move |address| Grant { address, bytes: BLOCK.min(span.end() - address) })
}

fn file_error(path: &Path, error: io::Error) -> PauseError {
    PauseError::File { path: path.to_owned(), error: error.into() }
}

fn content_error(verb: &'static str) -> impl Fn(io::Error) -> PauseError {
    move |error| PauseError::Content { verb, error: error.into() }
}

/// Returns a buffer for one block, without an end of the process if there is no memory for it.
fn new_buffer(verb: &'static str) -> Result<Vec<u8>, PauseError> {
    let mut buffer = Vec::new();
    let reserved = buffer.try_reserve_exact(usize::try_from(BLOCK).unwrap_or(usize::MAX));
    reserved.map(|()| buffer).map_err(|_| content_error(verb)(ErrorKind::OutOfMemory.into()))
}

fn copy_of(content: &[u8]) -> Result<Vec<u8>, TryReserveError> {
    let mut copy = Vec::new();
    copy.try_reserve_exact(content.len())?;
    copy.extend_from_slice(content);
    Ok(copy)
}

impl Paused {
    /// Copies the content of the pages.
    fn save(&mut self, memory: &mut Memory<'_>) -> Result<(), PauseError> {
        if let PausedContent::File(file) = &mut self.content {
            file.metadata().and_then(|there| check_kind(&there)).map_err(content_error("saved"))?;
            file.seek(SeekFrom::Start(0)).map_err(content_error("saved"))?;
            // Not before: the file may hold the content of a pool that is paused already. A device has no length.
            let _ = file.set_len(0);
        }
        if matches!(self.content, PausedContent::Discard) {
            return Ok(());
        }
        // The content may be more than the process has memory for.
        let bytes = count(&self.saved) << memory.shift;
        let no_memory = |_| PauseError::NoMemoryForContent { bytes };
        let mut buffer = new_buffer("saved")?;
        for block in self.saved.iter().flat_map(|span| blocks_of(span.addresses(memory.shift))) {
            self.blocks.try_reserve(1).map_err(no_memory)?;
            buffer.resize(length_of(block), 0);
            memory.pages.read(block.address, &mut buffer).map_err(PauseError::SourceFailed)?;
            self.blocks.push(match &mut self.content {
                _ if is_zero(&buffer) => Block::Zeros,
                PausedContent::File(file) => {
                    file.write_all(&buffer).map_err(content_error("saved"))?;
                    Block::InFile
                }
                _ => Block::InMemory(copy_of(&buffer).map_err(no_memory)?),
            });
        }
        Ok(())
    }

    /// Copies the content back to those of its pages that are in `touched`.
    fn load(&mut self, memory: &mut Memory<'_>, touched: &[PageSpan]) -> Result<(), PauseError> {
        if touched.is_empty() {
            return Ok(());
        }
        if let PausedContent::File(file) = &mut self.content {
            file.seek(SeekFrom::Start(0)).map_err(content_error("read back"))?;
        }
        if matches!(self.content, PausedContent::Discard) {
            return Ok(());
        }
        let commits_zeros = memory.pages.commits_zeros();
        let mut buffer = new_buffer("read back")?;
        let spans = self.saved.iter().flat_map(|span| blocks_of(span.addresses(memory.shift)));
        for (span, block) in spans.zip(&self.blocks) {
            let content = match (block, &mut self.content) {
                // Pages that kept their memory have kept these zeros, too.
                (Block::Zeros, _) if commits_zeros => continue,
                (Block::InMemory(content), _) => content,
                (Block::InFile, PausedContent::File(file)) => {
                    buffer.resize(length_of(span), 0);
                    file.read_exact(&mut buffer).map_err(content_error("read back"))?;
                    &buffer
                }
                _ => {
                    buffer.clear();
                    buffer.resize(length_of(span), 0);
                    &buffer
                }
            };
            let from = touched.partition_point(|pages| pages.addresses(memory.shift).end() <= span.address);
            let pages = touched[from..].iter().map(|pages| pages.addresses(memory.shift));
            for pages in pages.take_while(|pages| pages.address < span.end()) {
                let (start, end) = (pages.address.max(span.address), pages.end().min(span.end()));
                let offset = |address: u64| usize::try_from(address - span.address).unwrap_or(usize::MAX);
                let part = &content[offset(start)..offset(end)];
                memory.pages.write(start, part).map_err(PauseError::SourceFailed)?;
            }
        }
        Ok(())
    }
}

fn length_of(block: Grant) -> usize {
    usize::try_from(block.bytes).unwrap_or(usize::MAX)
}

/// Returns whether all bytes are 0.
fn is_zero(bytes: &[u8]) -> bool {
    // No look at single bytes, so that many are compared at once.
    bytes.chunks(COMPARED).all(|part| part.iter().fold(0, |any, byte| any | byte) == 0)
}
