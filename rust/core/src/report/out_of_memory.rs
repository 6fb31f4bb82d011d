//! The out-of-memory error: its figures, its verdict, and its text for every language.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use thiserror::Error;

use crate::report::advice::{Action, Advice};
use crate::report::details::{Details, OwnerGroup, SizeGroup, Splitter};
#[cfg(feature = "std")]
use crate::tables::ChunkRequest;
use crate::tables::owner::ScopeLimitReached;
use crate::units::{Bytes, GRANULE, MAX_BYTES, round_up};

/// A refused request: no free chunk fits, and the pool cannot grow. All figures are from the moment of the refusal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub struct OutOfMemory {
    /// Requested bytes.
    pub requested: u64,
    /// The size in bytes of a chunk that serves the request wherever it starts: rounded, with padding for alignment and red
    /// zones. An elastic pool finds an aligned place without padding.
    pub needed: u64,
    /// The page size of an elastic pool in bytes, 0 in other pools: its limit holds for whole pages.
    pub page_size: u64,
    /// The most bytes the pool may reserve.
    pub limit: u64,
    /// The setting that defined the limit.
    pub limit_set_by: Arc<str>,
    /// Requested bytes of all live allocations.
    pub live_requested: u64,
    /// Bytes of the chunks in use.
    pub in_use: u64,
    /// `in_use - live_requested`: bytes lost inside chunks.
    pub internal_fragmentation: u64,
    /// Bytes of all regions.
    pub reserved: u64,
    /// `reserved - in_use`, in bytes.
    pub free: u64,
    /// Size of the largest free chunk in bytes, 0 if there is none; in an elastic pool the largest request that its memory
    /// serves.
    pub largest_free: u64,
    /// Number of live allocations.
    pub num_live: u64,
    /// The reason for the refusal.
    pub verdict: Verdict,
    /// The scope limit that the request would exceed, if the verdict is [`Verdict::Scope`].
    pub scope_limit: Option<ScopeLimitReached>,
    /// Changes that make the request succeed, the most useful first. A refusal carries the advice that is cheap to
    /// find; [`Pool::add_details`](crate::Pool::add_details) adds the rest.
    pub advice: Vec<Advice>,
    /// The use of the memory, if [`Pool::add_details`](crate::Pool::add_details) was called.
    pub details: Option<Box<Details>>,
}

/// The reason for a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[cfg_attr(not(feature = "_exhaustive"), non_exhaustive)]
pub enum Verdict {
    /// The bytes in use and the request with its padding exceed the limit together: no arrangement holds them.
    Full,
    /// The room under the limit suffices, but it is in pieces that are too small.
    Fragmented,
    /// Chunks are larger than their rounded requests, because of remainders that were not split off and padding for
    /// alignment. Without those bytes the request would be within the limit.
    Slack,
    /// The request alone, with its padding, exceeds the limit.
    Limit,
    /// The limit allows the request, but the source declined it.
    Source,
    /// A scope limit does not allow the request.
    Scope,
}

impl Verdict {
    /// Returns the name used by other languages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Fragmented => "fragmented",
            Self::Slack => "slack",
            Self::Limit => "limit",
            Self::Source => "source",
            Self::Scope => "scope",
        }
    }
}

impl OutOfMemory {
    /// Joins the advice into one sentence without a full stop; empty if there is none.
    #[must_use]
    pub fn suggestion(&self) -> String {
        let texts: Vec<_> = self.advice.iter().map(Advice::to_string).collect();
        texts.join("; or ")
    }

    /// Returns whether the release of wholly free regions, which the pool is configured to keep, lets the request
    /// succeed.
    #[must_use]
    pub fn trim_helps(&self) -> bool {
        self.advice.iter().any(|advice| advice.action == Action::Trim && advice.targets.is_empty())
    }

    /// Returns the refused request, without its owner.
    #[cfg(feature = "std")]
    pub(crate) fn request(&self) -> ChunkRequest {
        let request = ChunkRequest::for_chunk(self.requested, self.needed);
        // An elastic pool has no red zones: what is above the rounded size is padding.
        let padding = if self.page_size > 0 { self.needed - round_up(self.requested) } else { 0 };
        ChunkRequest { alignment: GRANULE + padding, ..request }
    }

    /// Returns whether `held` bytes and the request without its padding are within the limit.
    pub(crate) fn fits_without_padding(&self, held: u64) -> bool {
        if self.requested > MAX_BYTES {
            return false;
        }
        let bytes = round_up(self.requested).next_multiple_of(self.page_size.max(GRANULE));
        bytes <= self.limit.saturating_sub(held)
    }

    /// Returns the limit as whole pages, after the word for it; empty for pools without pages.
    fn limit_in_pages(&self) -> String {
        let pages = self.limit.checked_div(self.page_size);
        let pages = pages.map(|pages| format!(" of {} of {} bytes", count_of(pages, "page"), self.page_size));
        pages.unwrap_or_default()
    }

    fn verdict_text(&self) -> String {
        let held = if self.verdict == Verdict::Limit { 0 } else { self.in_use };
        // Only these verdicts mention the padding.
        let is_padded = matches!(self.verdict, Verdict::Full | Verdict::Limit) && self.page_size == 0;
        let padded = if is_padded && self.fits_without_padding(held) {
            format!(", with {} bytes of padding,", self.needed - round_up(self.requested))
        } else {
            String::new()
        };
        let text = match self.verdict {
            _ if self.trim_helps() => {
                "free regions are in the way: the pool is at its limit and is set to keep them"
            }
            Verdict::Full => {
                let pages = self.limit_in_pages();
                return format!(
                    "full: what is in use and the request together{padded} are above the limit{pages}"
                );
            }
            Verdict::Fragmented if self.page_size > 0 => {
                "fragmented, not full: the room under the limit is in pages that allocations share"
            }
            Verdict::Fragmented => {
                "fragmented, not full: the room under the limit is in pieces that are too small"
            }
            Verdict::Slack => {
                "slack: without the bytes lost inside chunks, the request would be within the limit"
            }
            Verdict::Limit => {
                return format!("the request alone{padded} is above the limit{}", self.limit_in_pages());
            }
            Verdict::Source => "the limit allows it, the source of the memory refused",
            Verdict::Scope => {
                return self.scope_limit.as_ref().map_or_else(String::new, ScopeLimitReached::to_string);
            }
        };
        text.to_owned()
    }
}

/// Prints the report in at most 25 lines.
impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            requested, needed, page_size, limit, live_requested, in_use, internal_fragmentation, ..
        } = *self;
        let Self { reserved, free, largest_free, num_live, .. } = *self;
        write!(f, "out of memory: asked for {} ({requested} bytes", Bytes(requested))?;
        let rounded = if page_size > 0 { round_up(requested) } else { needed };
        if rounded != requested {
            write!(f, ", {rounded} rounded up")?;
        }
        writeln!(f, ")")?;
        let mut line = |what: &str, bytes: u64, note: &str| {
            writeln!(f, "  {what:<14} {:>12}  {bytes} bytes{note}", Bytes(bytes))
        };
        line("limit", limit, &format!(", set by {}", self.limit_set_by))?;
        line("in use", in_use, &format!(" in {}", count_of(num_live, "allocation")))?;
        if internal_fragmentation > 0 {
            line("requested", live_requested, " of those in use")?;
            line("lost in chunks", internal_fragmentation, " of those in use")?;
        }
        line("reserved", reserved, "")?;
        line("free", free, "")?;
        line("largest free", largest_free, "")?;
        write!(f, "  verdict        {}", self.verdict_text())?;
        if let Some(details) = &self.details {
            details.fmt(f)?;
        }
        for (place, advice) in self.advice.iter().enumerate() {
            let title = if place == 0 { "what helps" } else { "or" };
            write!(f, "\n  {title:<14} {advice}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ScopeLimitReached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, limit, live } = self;
        write!(f, "scope {name:?} holds {} of the {} that it may hold", Bytes(*live), Bytes(*limit))
    }
}

/// Prints whole lines, each after a line break.
impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(splitter) = &self.splitter {
            write!(f, "\n  in the way     {splitter}")?;
        }
        lines(f, "most by size", &self.by_size, self.other_sizes, "size")?;
        lines(f, "most by owner", &self.by_owner, self.other_owners, "owner")
    }
}

fn lines<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    groups: &[T],
    others: usize,
    kind: &str,
) -> fmt::Result {
    for (place, group) in groups.iter().enumerate() {
        write!(f, "\n  {:<14} {group}", if place == 0 { title } else { "" })?;
    }
    if others > 0 {
        write!(f, "\n  {:<14} and {} more", "", count_of(others as u64, kind))?;
    }
    Ok(())
}

impl fmt::Display for Splitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { address, size, id, owner, before, after } = self;
        write!(f, "allocation {id} of {} at {address:#x}", Bytes(*size))?;
        if let Some(owner) = owner {
            write!(f, ", of {owner}")?;
        }
        write!(f, ", between holes of {} and {}", Bytes(*before), Bytes(*after))
    }
}

impl fmt::Display for SizeGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, count, smallest, largest } = *self;
        write!(f, "{:>12} in {} of {}", Bytes(bytes), count_of(count, "allocation"), Bytes(smallest))?;
        if largest == smallest { Ok(()) } else { write!(f, " to {}", Bytes(largest)) }
    }
}

impl fmt::Display for OwnerGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bytes, count, owner } = self;
        write!(f, "{:>12} in {} of {owner}", Bytes(*bytes), count_of(*count, "allocation"))
    }
}

fn count_of(count: u64, kind: &str) -> String {
    format!("{count} {kind}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests;
