//! Pausing an elastic pool: all of its memory goes back to the source, and later returns at the same addresses.
//!
use std::io;
use std::mem;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use thiserror::Error;

use super::content_file::{NewFile, check_kind};
use super::paused_content::{Paused, PausedContent, content_error};
use super::paused_memory::Memory;
use crate::error::Unusable;
use crate::pool::state::State;
use crate::pool::{Pool, Source};
use crate::source::{Grant, SourceFailure};
use crate::tables::pages::{PageSpan, count, difference};

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
            PausedContent::File(file) => {
                file.metadata().and_then(|there| check_kind(&there)).map_err(content_error("saved"))?;
                (PausedContent::File(file), None)
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
        let mut paused = Paused::new(content, touched);
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

fn file_error(path: &Path, error: io::Error) -> PauseError {
    PauseError::File { path: path.to_owned(), error: error.into() }
}
