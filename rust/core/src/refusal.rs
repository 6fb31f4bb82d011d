//! A refusal: its figures, and the sentences made of them for every language.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use crate::details::{Details, OwnerGroup, SizeGroup, Splitter};
use crate::owner::Capped;
use crate::units::{Bytes, round_down, round_up};

/// No free chunk fits and there is no more to get. All figures are of the moment of the refusal.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct OutOfMemory {
    /// Bytes asked for.
    pub requested: u64,
    /// Bytes a chunk would have had to have: rounded, padding for alignment included.
    pub needed: u64,
    /// The most the pool may reserve, in bytes.
    pub limit: u64,
    /// Who set the limit.
    pub limit_set_by: Arc<str>,
    /// Bytes of the chunks in use.
    pub in_use: u64,
    /// Bytes of all regions.
    pub reserved: u64,
    /// `reserved - in_use`, in bytes.
    pub free: u64,
    /// Size of the largest free chunk in bytes, 0 if there is none.
    pub largest_free: u64,
    /// Allocations held.
    pub num_live: u64,
    /// What stood in the way.
    pub verdict: Verdict,
    /// Handing back wholly free regions would let the pool grow enough, and it is set not to do so itself.
    pub trim_helps: bool,
    /// The cap that stood in the way, where the verdict is [`Verdict::Scope`].
    pub capped: Option<Capped>,
    /// What the memory is used for, if that was looked at: see [`Pool::look_into`](crate::Pool::look_into).
    pub details: Option<Box<Details>>,
}

/// What stood in the way of a refused request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Verdict {
    /// In use and the request together are above the limit: no arrangement would hold them.
    Full,
    /// There is room under the limit, but in pieces that are too small.
    Fragmented,
    /// The request alone is above the limit.
    Limit,
    /// The limit would allow it; the source would not.
    Source,
    /// The cap of a scope does not allow it.
    Scope,
}

impl Verdict {
    /// The word other programs see.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Fragmented => "fragmented",
            Self::Limit => "limit",
            Self::Source => "source",
            Self::Scope => "scope",
        }
    }
}

impl OutOfMemory {
    /// What would help, in one sentence without an end.
    #[must_use]
    pub fn suggestion(&self) -> String {
        let Self { requested, needed, limit, in_use, reserved, .. } = *self;
        if self.trim_helps {
            return "call trim(), or make the pool with trim_on_oom on".to_owned();
        }
        match self.verdict {
            Verdict::Full => {
                let missing = needed - (limit - in_use);
                format!("free {} or more, or raise the limit to {} bytes", Bytes(missing), in_use + needed)
            }
            Verdict::Fragmented => {
                let raise = format!("raise the limit to {} bytes", reserved.saturating_add(needed));
                match self.details.as_ref().and_then(|details| details.splitter.as_ref()) {
                    Some(splitter) if splitter.hole() >= needed => {
                        format!(
                            "free allocation {}: the hole would hold the request; or {raise}",
                            splitter.id
                        )
                    }
                    _ => format!(
                        "free the allocations between the holes, allocate large ones first, or {raise}"
                    ),
                }
            }
            Verdict::Limit => {
                // For alignment, and for red zones: it counts against the limit, too.
                let padding = needed - round_up(requested);
                let most = if padding == 0 {
                    Bytes(limit).to_string()
                } else {
                    format!("{} bytes", round_down(limit).saturating_sub(padding))
                };
                format!("ask for {most} or less, or raise the limit to {needed} bytes")
            }
            Verdict::Source => {
                "free something, or find out what else uses the memory behind the source".to_owned()
            }
            Verdict::Scope => "free something of the scope, or make it with a larger limit".to_owned(),
        }
    }

    fn verdict_text(&self) -> String {
        let text = match self.verdict {
            _ if self.trim_helps => {
                "free regions are in the way: the pool is at its limit and is set to keep them"
            }
            Verdict::Full => "full: what is in use and the request together are above the limit",
            Verdict::Fragmented => {
                "fragmented, not full: the room under the limit is in pieces that are too small"
            }
            Verdict::Limit => "the request alone is above the limit",
            Verdict::Source => "the limit allows it, the source of the memory refused",
            Verdict::Scope => return self.capped.as_ref().map_or_else(String::new, Capped::to_string),
        };
        text.to_owned()
    }
}

/// At most 25 lines.
impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { requested, needed, limit, in_use, reserved, free, largest_free, num_live, .. } = *self;
        write!(f, "out of memory: asked for {} ({requested} bytes", Bytes(requested))?;
        if needed != requested {
            write!(f, ", {needed} rounded up")?;
        }
        writeln!(f, ")")?;
        let mut line = |what: &str, bytes: u64, note: &str| {
            writeln!(f, "  {what:<14} {:>12}  {bytes} bytes{note}", Bytes(bytes))
        };
        line("limit", limit, &format!(", set by {}", self.limit_set_by))?;
        line("in use", in_use, &format!(" in {}", count_of(num_live, "allocation")))?;
        line("reserved", reserved, "")?;
        line("free", free, "")?;
        line("largest free", largest_free, "")?;
        writeln!(f, "  verdict        {}", self.verdict_text())?;
        if let Some(details) = &self.details {
            details.fmt(f)?;
        }
        write!(f, "  what helps     {}", self.suggestion())
    }
}

impl fmt::Display for Capped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, limit, live } = self;
        write!(f, "scope {name:?} holds {} of the {} that it may hold", Bytes(*live), Bytes(*limit))
    }
}

/// Whole lines.
impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(splitter) = &self.splitter {
            writeln!(f, "  in the way     {splitter}")?;
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
        writeln!(f, "  {:<14} {group}", if place == 0 { title } else { "" })?;
    }
    if others > 0 {
        writeln!(f, "  {:<14} and {} more", "", count_of(others as u64, kind))?;
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
