//! The split rule: the size from which the remainder of a chunk is split off.

use alloc::borrow::ToOwned;
use alloc::string::String;
use core::fmt;
use core::str::FromStr;

use thiserror::Error;

use crate::units::share_of;

/// Remainders of this many bytes are split off whatever the request, unless a fraction is set.
const SPLIT_THRESHOLD: u64 = 128 << 20;

/// Decides when the remainder of a chunk is split off and stays free.
///
/// A chunk is split if the remainder is at least as large as the request or reaches a threshold. The policy sets the
/// threshold; all other decisions are the same under every policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Policy {
    /// TensorFlow's rule (the default): the threshold is 128 MiB, or a fraction of the limit if one is set. A request
    /// may get a chunk of up to twice its size.
    #[default]
    TensorFlow,
    /// Splits off every remainder of a granule or more: no request gets a larger chunk than it needs. A fraction has
    /// no effect.
    Tight,
}

/// Reports an unknown policy name.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("policy {0:?} is neither \"tensorflow\" nor \"tight\"")]
pub struct PolicyError(pub String);

impl Policy {
    /// Returns the name of the policy in options, reports and command lines.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::TensorFlow => "tensorflow",
            Self::Tight => "tight",
        }
    }
}

/// The options that define the threshold, besides the limit.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SplitRule {
    pub(crate) policy: Policy,
    /// Fraction of the limit; 0 for none.
    pub(crate) fraction: f64,
}

impl SplitRule {
    /// Returns the threshold in bytes, at least 1, for a limit of `limit` bytes.
    ///
    /// Chunk sizes are multiples of the granule, so 1 splits off every remainder; 0 would create chunks of zero
    /// bytes.
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

pub(crate) mod elastic;
pub(crate) mod growth;
