//! The pages of a pool that is being paused or resumed: which have memory, and the calls to the source for them.

use super::pages_of;
use super::pausing::PauseError;
use crate::pool::Source;
use crate::source::{Grant, PageSource, ReserveError};
use crate::tables::pages::{PageSpan, count, difference};

/// The pages of a source, and which of a pool's have memory.
pub(super) struct Memory<'a> {
    pub(super) pages: &'a mut dyn PageSource,
    pub(super) shift: u32,
    pub(super) committed: Vec<PageSpan>,
    /// The number of pages that received memory.
    pub(super) received: u64,
}

impl<'a> Memory<'a> {
    pub(super) fn new(source: &'a mut Source<'_>, shift: u32, committed: Vec<PageSpan>) -> Self {
        Self { pages: pages_of(source), shift, committed, received: 0 }
    }

    /// Commits those pages of all spans that have no memory, or none: after an error those that received memory give it
    /// back, as far as the source takes it.
    pub(super) fn commit(&mut self, spans: &[PageSpan]) -> Result<(), PauseError> {
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
    pub(super) fn free_more(
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
    pub(super) fn decommit(&mut self, spans: &[PageSpan]) -> Result<(), PauseError> {
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
