//! A set of addresses, as spans.

use std::collections::BTreeMap;

use super::Grant;

/// Disjoint spans: start to end. No two are adjacent.
#[derive(Debug, Default)]
pub(super) struct Spans(BTreeMap<u64, u64>);

impl Spans {
    /// Adds a span; returns false, without a change, if part of it is in the set.
    pub(super) fn insert(&mut self, span: Grant) -> bool {
        if self.meets(span) {
            return false;
        }
        let (mut start, mut end) = (span.address, span.end());
        if let Some((&before, &before_end)) = self.0.range(..span.address).next_back()
            && before_end == span.address
        {
            start = before;
        }
        if let Some(after_end) = self.0.remove(&end) {
            end = after_end;
        }
        self.0.insert(start, end);
        true
    }

    /// Removes a span; returns false, without a change, if part of it is not in the set.
    pub(super) fn remove(&mut self, span: Grant) -> bool {
        let Some((start, end)) = self.around(span) else { return false };
        self.0.remove(&start);
        for (start, end) in [(start, span.address), (span.end(), end)] {
            if start < end {
                self.0.insert(start, end);
            }
        }
        true
    }

    /// Returns whether all of a span is in the set.
    pub(super) fn covers(&self, span: Grant) -> bool {
        self.around(span).is_some()
    }

    /// Returns whether any of a span is in the set.
    pub(super) fn meets(&self, span: Grant) -> bool {
        self.0.range(..span.end()).next_back().is_some_and(|(_, &end)| end > span.address)
    }

    /// Returns start and end of the span of the set that covers `span`.
    fn around(&self, span: Grant) -> Option<(u64, u64)> {
        let (&start, &end) = self.0.range(..=span.address).next_back()?;
        (span.end() <= end).then_some((start, end))
    }
}

#[cfg(test)]
mod tests;
