//! Advice: changes that make a refused request succeed, with their numbers and the time from which they apply.

use alloc::format;
use alloc::string::String;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::fmt;

use crate::units::Bytes;

/// The number of allocations that a text lists individually.
const MAX_LISTED: usize = 8;

/// The kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
#[non_exhaustive]
pub enum Action {
    /// Free all of [`Advice::allocations`].
    Free,
    /// Set the limit of the pool to [`Advice::bytes`].
    RaiseLimit,
    /// Request [`Advice::bytes`] bytes instead.
    AskFor,
    /// Trim the pool, or the pools in [`Advice::targets`] that share its memory.
    Trim,
    /// Set the limit of each scope in [`Advice::targets`] to the number there.
    RaiseScope,
    /// Create the pool with the tight policy.
    Policy,
    /// Create the pool as an elastic one, with pages of [`Advice::bytes`].
    Elastic,
}

impl Action {
    /// Returns the name used by other languages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Free => "free",
            Self::RaiseLimit => "raise_limit",
            Self::AskFor => "ask_for",
            Self::Trim => "trim",
            Self::RaiseScope => "raise_scope",
            Self::Policy => "policy",
            Self::Elastic => "elastic",
        }
    }
}

/// The time from which the advice applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub enum When {
    /// Change the pool now and repeat the request.
    #[cfg_attr(feature = "serde", serde(rename = "now"))]
    Now,
    /// Start the same program again with the change.
    #[cfg_attr(feature = "serde", serde(rename = "next run"))]
    NextRun,
}

impl When {
    /// Returns the name used by other languages.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Now => "now",
            Self::NextRun => "next run",
        }
    }
}

/// One change that makes a refused request succeed. Its `Display` is one line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Advice {
    /// The kind of change.
    pub action: Action,
    /// The number of the action in bytes: the new limit (the largest of several scopes), the size to request, the
    /// page size, or the bytes that the action frees.
    pub bytes: u64,
    /// The time from which the advice applies.
    pub when: When,
    /// For [`Action::Free`], the numbers of the allocations to free, in ascending order; else empty.
    pub allocations: Vec<u64>,
    /// For [`Action::RaiseScope`], the scopes and their new limits, the outermost first; for [`Action::Trim`], the
    /// sibling pools to trim and the bytes that each releases. Else empty.
    pub targets: Vec<(String, u64)>,
    /// Whether the number is known to be optimal: no smaller limit serves, or no larger size is served.
    pub exact: bool,
    /// Whether the advice requires a grant that the source does not guarantee.
    pub needs_grant: bool,
}

impl Advice {
    /// Creates advice that applies now.
    pub(crate) fn now(action: Action, bytes: u64) -> Self {
        Self {
            action,
            bytes,
            when: When::Now,
            allocations: Vec::new(),
            targets: Vec::new(),
            exact: false,
            needs_grant: false,
        }
    }

    /// Creates advice for the next run.
    pub(crate) fn next_run(action: Action, bytes: u64) -> Self {
        Self { when: When::NextRun, ..Self::now(action, bytes) }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { action, bytes, when, ref allocations, ref targets, exact, needs_grant } = *self;
        let size = Exact(bytes);
        match (action, when) {
            (Action::Free, _) => write!(f, "free {} ({})", numbered(allocations), Bytes(bytes))?,
            (Action::RaiseLimit, When::Now) => write!(f, "raise the limit to {size}")?,
            (Action::RaiseLimit, When::NextRun) => {
                write!(f, "start the program again with a limit of {size}")?;
            }
            (Action::AskFor, _) if exact => write!(f, "ask for at most {size}")?,
            (Action::AskFor, _) => write!(f, "ask for {size} or less")?,
            (Action::Trim, _) if targets.is_empty() => {
                write!(f, "call trim(), which hands back {}", Bytes(bytes))?;
            }
            (Action::Trim, _) => {
                let pools: Vec<_> = targets.iter().map(|(name, _)| format!("{name:?}")).collect();
                let plural = if pools.len() == 1 { "" } else { "s" };
                let pools = joined(&pools);
                let bytes = Bytes(bytes);
                write!(
                    f,
                    "call trim() of pool{plural} {pools} on the same memory, which hands back {bytes}"
                )?;
            }
            (Action::RaiseScope, _) => {
                let scopes =
                    targets.iter().map(|(name, limit)| format!("scope {name:?} to {}", Exact(*limit)));
                write!(f, "raise the limit of {}", joined(&scopes.collect::<Vec<_>>()))?;
            }
            (Action::Policy, _) => f.write_str("start the program again with policy \"tight\"")?,
            (Action::Elastic, _) => {
                write!(f, "start the program again with an elastic pool, in pages of {size}")?;
            }
        }
        if exact && matches!(action, Action::RaiseLimit | Action::RaiseScope) {
            write!(f, ", the smallest that serves it")?;
        }
        if needs_grant { write!(f, ", provided that the source grants it") } else { Ok(()) }
    }
}

/// A number of bytes, followed by the same number with a unit if it is large.
struct Exact(u64);

impl fmt::Display for Exact {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(bytes) = *self;
        write!(f, "{bytes} bytes")?;
        if bytes >= 1024 { write!(f, " ({})", Bytes(bytes)) } else { Ok(()) }
    }
}

/// Formats `allocation 3`, or `allocations 3, 5 and 7`, truncated after the first few.
fn numbered(allocations: &[u64]) -> String {
    let named: Vec<_> = allocations.iter().take(MAX_LISTED).map(u64::to_string).collect();
    let others = allocations.len() - named.len();
    let list = if others > 0 { format!("{} and {others} more", named.join(", ")) } else { joined(&named) };
    format!("allocation{} {list}", if allocations.len() == 1 { "" } else { "s" })
}

/// Joins items with commas and a final "and".
fn joined(items: &[String]) -> String {
    match items {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        _ => items.concat(),
    }
}

#[cfg(test)]
mod tests;
