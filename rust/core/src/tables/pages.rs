//! Pages: spans of page numbers, and which pages of a hole have memory.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use crate::source::Grant;

/// Pages with the numbers from `first` up to `end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PageSpan {
    pub(crate) first: u64,
    pub(crate) end: u64,
}

impl PageSpan {
    /// Returns the pages that lie wholly between two addresses.
    pub(crate) fn within(start: u64, end: u64, shift: u32) -> Self {
        let first = start.div_ceil(1 << shift);
        Self { first, end: (end >> shift).max(first) }
    }

    pub(crate) fn len(self) -> u64 {
        self.end - self.first
    }

    pub(crate) fn is_empty(self) -> bool {
        self.first == self.end
    }

    /// Returns the addresses of the pages.
    pub(crate) fn addresses(self, shift: u32) -> Grant {
        Grant { address: self.first << shift, bytes: self.len() << shift }
    }

    /// Returns the pages that are also in `other`.
    pub(crate) fn common(self, other: Self) -> Self {
        let first = self.first.max(other.first);
        Self { first, end: self.end.min(other.end).max(first) }
    }
}

/// The pages of a hole that have memory; each page of it lies wholly within the hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Committed<'a> {
    /// All pages, or there are none.
    All,
    /// No page, and there are some.
    None,
    /// These, and there are others.
    One(PageSpan),
    /// These, two spans or more, in order; no two adjoin.
    Many(Cow<'a, [PageSpan]>),
}

impl Committed<'_> {
    /// Returns the shortest form for a hole with the pages `whole`. The spans are in order and do not overlap.
    pub(crate) fn of(whole: PageSpan, spans: impl IntoIterator<Item = PageSpan>) -> Committed<'static> {
        let mut spans = spans.into_iter().filter(|span| !span.is_empty());
        if whole.is_empty() {
            return Committed::All;
        }
        let Some(mut last) = spans.next() else { return Committed::None };
        let mut before = Vec::new();
        for span in spans {
            if last.end == span.first {
                last.end = span.end;
            } else {
                before.push(core::mem::replace(&mut last, span));
            }
        }
        if !before.is_empty() {
            before.push(last);
            Committed::Many(before.into())
        } else if last == whole {
            Committed::All
        } else {
            Committed::One(last)
        }
    }

    /// Iterates over the committed pages among those of the hole, `whole`.
    pub(crate) fn spans(&self, whole: PageSpan) -> impl Iterator<Item = PageSpan> {
        let (one, many): (_, &[PageSpan]) = match self {
            Self::All => (Some(whole).filter(|whole| !whole.is_empty()), &[]),
            Self::None => (None, &[]),
            Self::One(span) => (Some(*span), &[]),
            Self::Many(spans) => (None, spans),
        };
        one.into_iter().chain(many.iter().copied())
    }

    /// Returns what remains for a hole with the pages `part` of this one.
    pub(crate) fn clip(&self, part: PageSpan) -> Committed<'static> {
        match self {
            Self::All => Committed::All,
            _ => Self::of(part, self.spans(part).map(|span| span.common(part))),
        }
    }

    /// Returns the pages of `part` without memory.
    pub(crate) fn missing(&self, part: PageSpan) -> Vec<PageSpan> {
        let mut missing = Vec::new();
        let mut at = part.first;
        for span in self.spans(part).map(|span| span.common(part)).filter(|span| !span.is_empty()) {
            if at < span.first {
                missing.push(PageSpan { first: at, end: span.first });
            }
            at = span.end;
        }
        if at < part.end {
            missing.push(PageSpan { first: at, end: part.end });
        }
        missing
    }

    /// Returns the number of pages of `part` without memory.
    pub(crate) fn count_missing(&self, part: PageSpan) -> u64 {
        match self {
            Self::All => 0,
            Self::None => part.len(),
            Self::One(span) => part.len() - span.common(part).len(),
            Self::Many(spans) => part.len() - spans.iter().map(|span| span.common(part).len()).sum::<u64>(),
        }
    }

    /// Takes up to `most` pages from the end of a hole with the pages `whole`; returns the taken spans.
    pub(crate) fn take(&mut self, whole: PageSpan, most: u64) -> Vec<PageSpan> {
        let mut left: Vec<_> = self.spans(whole).collect();
        let mut taken = Vec::new();
        let mut wanted = most;
        while wanted > 0
            && let Some(last) = left.last_mut()
        {
            let count = wanted.min(last.len());
            let first = last.end - count;
            taken.push(PageSpan { first, end: last.end });
            last.end = first;
            wanted -= count;
            if last.is_empty() {
                left.pop();
            }
        }
        *self = Self::of(whole, left);
        taken
    }

    /// Adds pages without memory to those that have some.
    pub(crate) fn add(&mut self, whole: PageSpan, added: &[PageSpan]) {
        let mut spans: Vec<_> = self.spans(whole).chain(added.iter().copied()).collect();
        spans.sort_unstable();
        *self = Self::of(whole, spans);
    }
}

/// The number of pages in all spans.
pub(crate) fn count(spans: &[PageSpan]) -> u64 {
    spans.iter().map(|span| span.len()).sum()
}

/// Returns the pages of all spans that are in none of the others, of which no two overlap.
pub(crate) fn difference(spans: &[PageSpan], others: &[PageSpan]) -> Vec<PageSpan> {
    let mut others: Vec<_> = others.iter().copied().filter(|span| !span.is_empty()).collect();
    others.sort_unstable();
    let rest = |&span: &PageSpan| {
        let from = others.partition_point(|other| other.end <= span.first);
        let within = others[from..].iter().take_while(|other| other.first < span.end);
        Committed::of(span, within.map(|other| other.common(span))).missing(span)
    };
    spans.iter().flat_map(rest).collect()
}

#[cfg(test)]
mod tests;
