//! How a pool is set up.

use std::time::Duration;

use crate::error::OptionsError;
use crate::policy::Policy;
use crate::units::MAX_BYTES;

/// The longest [`Options::wait`]: a year.
pub const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// How a pool is set up.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, by name")]
pub struct Options {
    /// The most it may reserve, in bytes, at least 1.
    pub limit: u64,
    /// Start with 2 MiB and double (the default), or reserve the whole limit at first use.
    pub growth: bool,
    /// Before refusing, hand back wholly free regions and grow again. On by default.
    pub trim_on_oom: bool,
    /// Whether a region that starts where another ends is joined to it. The source's answer by default.
    pub joins_regions: Option<bool>,
    /// How long a refused request waits for another thread's free, at most [`MAX_WAIT`]. Zero by default.
    pub wait: Duration,
    /// Under TensorFlow's policy: split off a remainder from this share of the limit on; 0, the default, means from
    /// 128 MiB on.
    pub fragmentation_fraction: f64,
    /// When the remainder of a chunk is split off. TensorFlow's rule by default.
    pub policy: Policy,
    /// Note allocations under what their thread calls its work: see [`set_tag`](crate::set_tag). Off by default.
    pub owner_tags: bool,
    /// Who set the limit, for reports.
    pub limit_set_by: String,
    /// Name in reports.
    pub name: String,
    /// Find overruns and writes after a free, at the price of memory and time. Off by default.
    ///
    /// Each request takes at least 512 bytes more, for a red zone on both sides; whoever frees is told of bytes
    /// written there. What was freed is filled with poison and kept in quarantine, and looked at before it is used
    /// again. The source must have a [`guard`](crate::RegionSource::guard).
    pub guard: bool,
    /// In guard mode, the most bytes of freed chunks that are in quarantine; a request that would be refused
    /// empties it first, so it counts as free everywhere. By default an eighth of the limit that the pool is made with,
    /// at most 64 MiB.
    pub quarantine: Option<u64>,
}

impl Options {
    /// The defaults with a limit in bytes.
    #[must_use]
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            growth: true,
            trim_on_oom: true,
            joins_regions: None,
            wait: Duration::ZERO,
            fragmentation_fraction: 0.0,
            policy: Policy::TensorFlow,
            owner_tags: false,
            limit_set_by: "limit".to_owned(),
            name: "pool".to_owned(),
            guard: false,
            quarantine: None,
        }
    }

    pub(super) fn check(&self) -> Result<(), OptionsError> {
        let Self { limit, fragmentation_fraction: fraction, .. } = *self;
        if limit == 0 || limit > MAX_BYTES {
            return Err(OptionsError::Limit { limit });
        }
        if !(0.0..=1.0).contains(&fraction) {
            return Err(OptionsError::Fraction { fraction });
        }
        if self.wait > MAX_WAIT {
            return Err(OptionsError::Wait { wait: self.wait });
        }
        Ok(())
    }
}
