//! Marks: how a free chunk says which of its pages have memory.

use alloc::vec;
use alloc::vec::Vec;

use super::Elastic;
use super::hole::Hole;
use crate::chunk::{Chunk, Handle};
use crate::tables::pages::{Committed, PageSpan};

// How a free chunk says which of its pages are committed: the two lowest bits of `requested`, which is meaningless
// otherwise.
/// All pages, or there are none. The other bits are 0, too.
pub(super) const ALL: u64 = 0;
/// No page, and there are some.
pub(super) const NONE: u64 = 1;
/// One span: the other bits are its length and, above, its distance from the first page that lies wholly in the chunk.
pub(super) const ONE: u64 = 2;
/// The spans of a list, with the number in the other bits.
pub(super) const LISTED: u64 = 3;

/// The bits of the kind, of a length, and of a distance.
const KIND_BITS: u32 = 2;
pub(super) const KIND: u64 = (1 << KIND_BITS) - 1;
pub(super) const LENGTH_BITS: u32 = 31;
const DISTANCE_BITS: u32 = 64 - LENGTH_BITS - KIND_BITS;

impl Elastic {
    /// Returns a free chunk as a hole, with its committed pages.
    pub(super) fn look_into(&self, handle: Handle, chunk: &Chunk) -> Hole<'_> {
        let Chunk { address: start, requested: mark, .. } = *chunk;
        let end = chunk.end();
        let whole = self.within(start, end);
        let committed = match mark & KIND {
            ALL => Committed::All,
            NONE => Committed::None,
            ONE => Committed::One(span_of(mark, whole)),
            _ => match &self.lists[list_of(mark)][..] {
                &[span] => Committed::One(span),
                spans => Committed::Many(spans.into()),
            },
        };
        Hole { handle, start, end, whole, committed }
    }

    /// Returns the number of pages without memory among `pages`, of a hole with the pages `whole` and this mark.
    #[inline(always)]
    pub(super) fn count_missing(&self, mark: u64, whole: PageSpan, pages: PageSpan) -> u64 {
        let in_span = |span: PageSpan| pages.len() - span.common(pages).len();
        match mark & KIND {
            ALL => 0,
            NONE => pages.len(),
            ONE => in_span(span_of(mark, whole)),
            _ => {
                pages.len()
                    - self.lists[list_of(mark)].iter().map(|span| span.common(pages).len()).sum::<u64>()
            }
        }
    }

    /// Returns the committed pages of a free chunk; `None` if they are more than one span.
    #[inline(always)]
    pub(super) fn single_span(&self, chunk: &Chunk) -> Option<PageSpan> {
        let whole = self.within(chunk.address, chunk.end());
        match chunk.requested & KIND {
            ALL => Some(whole),
            NONE => Some(PageSpan { first: whole.first, end: whole.first }),
            ONE => Some(span_of(chunk.requested, whole)),
            _ => None,
        }
    }

    /// Returns a free chunk as a hole, which forgets its committed pages.
    pub(super) fn take(&mut self, handle: Handle, chunk: &Chunk) -> Hole<'static> {
        let Hole { start, end, whole, committed, .. } = self.look_into(handle, chunk);
        let committed = match committed {
            Committed::All => Committed::All,
            Committed::None => Committed::None,
            Committed::One(span) => Committed::One(span),
            Committed::Many(_) => {
                Committed::Many(core::mem::take(&mut self.lists[list_of(chunk.requested)]).into())
            }
        };
        if chunk.requested & LISTED == LISTED {
            self.vacant_lists.push(list_of(chunk.requested));
        }
        Hole { handle, start, end, whole, committed }
    }

    /// Keeps the pages of a hole; returns what its chunk keeps of them.
    pub(super) fn record(&mut self, hole: Hole<'_>) -> u64 {
        self.lacking = None;
        let spans = match hole.committed {
            Committed::All => return ALL,
            Committed::None => return NONE,
            Committed::One(span) => return self.mark_of_one(span, hole.whole),
            Committed::Many(spans) => spans.into_owned(),
        };
        self.keep_list(spans)
    }

    /// Returns what a hole with the pages `whole` keeps if of these the pages of a span have memory.
    #[inline(always)]
    pub(super) fn mark_of_span(&mut self, span: PageSpan, whole: PageSpan) -> u64 {
        if span.len() == whole.len() {
            ALL
        } else if span.is_empty() {
            NONE
        } else {
            self.mark_of_one(span, whole)
        }
    }

    #[inline(always)]
    fn mark_of_one(&mut self, span: PageSpan, whole: PageSpan) -> u64 {
        let (distance, length) = (span.first - whole.first, span.len());
        if distance >> DISTANCE_BITS == 0 && length >> LENGTH_BITS == 0 {
            return distance << (KIND_BITS + LENGTH_BITS) | length << KIND_BITS | ONE;
        }
        self.keep_list(vec![span])
    }

    #[cold]
    fn keep_list(&mut self, spans: Vec<PageSpan>) -> u64 {
        let number = self.vacant_lists.pop().unwrap_or_else(|| {
            self.lists.push(Vec::new());
            self.lists.len() - 1
        });
        self.lists[number] = spans;
        (number as u64) << KIND_BITS | LISTED
    }
}

/// Returns the committed pages of a hole with the pages `whole` and a mark of the kind [`ONE`].
#[inline(always)]
fn span_of(mark: u64, whole: PageSpan) -> PageSpan {
    let first = whole.first + (mark >> (KIND_BITS + LENGTH_BITS));
    PageSpan { first, end: first + length_of(mark) }
}

/// Returns the number of committed pages of a hole with a mark of the kind [`NONE`] or [`ONE`].
#[inline(always)]
pub(super) fn length_of(mark: u64) -> u64 {
    (mark >> KIND_BITS) & ((1 << LENGTH_BITS) - 1)
}

/// Returns how many of the first pages of a hole have memory, if no page after them does and some lack it.
pub(super) fn committed_at_start(mark: u64) -> Option<u64> {
    match mark & KIND {
        NONE => Some(0),
        ONE if mark >> (KIND_BITS + LENGTH_BITS) == 0 => Some(mark >> KIND_BITS),
        _ => None,
    }
}

/// Returns what the chunk of such a hole keeps.
pub(super) fn mark_of_start(length: u64) -> u64 {
    if length == 0 { NONE } else { length << KIND_BITS | ONE }
}

/// Returns the number of the list that a chunk of the kind [`LISTED`] has.
fn list_of(mark: u64) -> usize {
    (mark >> KIND_BITS) as usize
}
