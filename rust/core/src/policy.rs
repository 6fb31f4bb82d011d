//! The split rule: from which size on the remainder of a chunk is split off.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use crate::units::share_of;

/// A remainder of this many bytes is split off, however large the request, unless a fraction is set.
const SPLIT_THRESHOLD: u64 = 128 << 20;

/// Decides when the remainder of a chunk is split off and stays free.
///
/// A chunk is split when the remainder is at least as large as the request, or reaches a threshold. The policy
/// sets the threshold; everything else an allocator decides is the same under both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Policy {
    /// TensorFlow's rule (the default): the threshold is 128 MiB, or a fraction of the limit if one is set. A
    /// request may get a chunk of up to twice its size.
    #[default]
    TensorFlow,
    /// Every remainder is split off, from one granule on: no request gets a larger chunk than it needs. A fraction
    /// has no effect.
    Tight,
}

/// A text that names no policy.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("policy {0:?} is neither \"tensorflow\" nor \"tight\"")]
pub struct PolicyError(pub String);

impl Policy {
    /// The name of the policy in options, reports and command lines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TensorFlow => "tensorflow",
            Self::Tight => "tight",
        }
    }
}

/// The options that the threshold depends on, besides the limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitRule {
    pub(crate) policy: Policy,
    /// Share of the limit; 0 is none.
    pub(crate) fraction: f64,
}

impl SplitRule {
    /// The threshold in bytes, at least 1, under a limit of `limit` bytes.
    ///
    /// Chunk sizes are multiples of the granule, so a threshold of 1 splits off every remainder; 0 would split off
    /// chunks of zero bytes.
    pub(crate) fn threshold(self, limit: u64) -> u64 {
        match self.policy {
            Policy::Tight => 1,
            Policy::TensorFlow if self.fraction > 0.0 => share_of(limit, self.fraction).max(1),
            Policy::TensorFlow => SPLIT_THRESHOLD,
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Policy {
    type Err = PolicyError;

    fn from_str(name: &str) -> Result<Self, PolicyError> {
        match name {
            "tensorflow" => Ok(Self::TensorFlow),
            "tight" => Ok(Self::Tight),
            _ => Err(PolicyError(name.to_owned())),
        }
    }
}
