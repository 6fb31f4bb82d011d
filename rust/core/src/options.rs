//! Options of pools and allocators.

use alloc::borrow::ToOwned;
use alloc::string::String;
use alloc::sync::Arc;
use core::time::Duration;

use crate::error::OptionsError;
use crate::plan::Plan;
#[cfg(feature = "std")]
use crate::policy::elastic::MAX_PAGE_SIZE;
use crate::policy::{Policy, SplitRule};
use crate::source::RegionSource;
use crate::tables::{Limit, Tables};
#[cfg(feature = "std")]
use crate::units::GRANULE;
use crate::units::MAX_BYTES;

/// The longest [`Options::wait`]: a year.
pub const MAX_WAIT: Duration = Duration::from_secs(365 * 24 * 3600);

/// Options of a pool or an allocator: [`Options::new`] has the defaults, and each option has a method that sets it.
///
/// ```
/// use std::time::Duration;
///
/// use allotment::{Options, Policy};
///
/// let options = Options::new(64 << 20).growth(false).policy(Policy::Tight).wait(Duration::from_secs(1));
/// assert!(!options.growth && options.trim_on_oom);
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
#[must_use = "options do nothing until a pool or an allocator is made with them"]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own, by name")]
pub struct Options {
    /// The most bytes the pool reserves, at least 1.
    pub limit: u64,
    /// Whether regions start at 2 MiB and double (the default), or the first region takes the whole limit.
    pub growth: bool,
    /// Whether a refusal first releases wholly free regions and grows again. On by default.
    pub trim_on_oom: bool,
    /// Whether a region that starts where another ends is joined to it. Defaults to the source's answer.
    pub joins_regions: Option<bool>,
    /// How long a refused request waits for another thread's free, at most [`MAX_WAIT`]. Zero by default.
    ///
    /// What is freed goes to the request that has waited longest and fits. A request that comes later lets it go first,
    /// for 20 ms at most, and gets what does not fit it: a large request waits until so much is free in one piece.
    pub wait: Duration,
    /// Under TensorFlow's policy: split off remainders from this fraction of the limit on. The default 0 means from
    /// 128 MiB on.
    pub fragmentation_fraction: f64,
    /// When the remainder of a chunk is split off. TensorFlow's rule by default.
    pub policy: Policy,
    /// Whether allocations are recorded under the tag of their thread: see [`set_tag`](crate::set_tag). Off by
    /// default.
    pub owner_tags: bool,
    /// Whether each thread keeps small chunks for its next requests, so that most allocations and frees of up to 32 KiB
    /// need no lock. Off by default.
    ///
    /// A cache keeps at most 7 MiB, and 256 threads at a time have one. Decisions differ from those of TensorFlow's
    /// allocator then. What caches keep is free for every request: it is given back before a refusal, and by each trim,
    /// snapshot, explanation, and scope. Guard mode and owner tags leave the caches unused.
    pub thread_caches: bool,
    /// Whether addresses are plentiful and only pages in use must have memory. Off by default.
    ///
    /// Such a pool reserves several times its limit in addresses, and commits memory to pages that an allocation
    /// touches. Where memory is short, free pages give theirs to those that need it. A request is refused only if the
    /// pages of all allocations and its own are above the limit. The source must have [`pages`](RegionSource::pages).
    /// What stays reserved are the committed pages; every remainder of a chunk is split off. Decisions differ from
    /// those of TensorFlow's allocator.
    pub elastic: bool,
    /// The page size of an elastic pool in bytes: a power of two and a multiple of the source's granule. Defaults to
    /// the source's.
    pub page_size: Option<u64>,
    /// A plan to follow. None by default.
    ///
    /// One region is the plan's arena, reserved before others and never joined to one. The requests of the pool,
    /// zero-byte ones aside, are taken for those of the plan in their order, which begins again at its end: each gets
    /// its planned place there. A request that is not in the plan, or has its place taken, gets the best fit like any
    /// other; so nothing is lost where a program departs from the plan. After that, requests of the planned sizes lead
    /// back: four in a row from any place in the plan, or one that is at most sixteen requests ahead. A trim gives the
    /// arena back when it is wholly free. Threads share the order. No thread caches, no guard mode and no elastic pool
    /// has a plan.
    pub plan: Option<Arc<Plan>>,
    /// The setting that defined the limit, for reports.
    pub limit_set_by: String,
    /// The pool's name in reports.
    pub name: String,
    /// Guard mode: finds overruns and writes after a free, at the cost of memory and time. Off by default.
    ///
    /// Each request takes at least 512 bytes more, for a red zone on both sides; the free reports bytes written
    /// there. Freed memory is filled with poison and kept in quarantine, and checked before its reuse. The source
    /// must have a [`guard`](crate::RegionSource::guard).
    pub guard: bool,
    /// In guard mode, the most bytes of freed chunks in quarantine. A request that would be refused empties it first,
    /// so its bytes count as free. Defaults to an eighth of the initial limit, at most 64 MiB.
    pub quarantine: Option<u64>,
}

impl Options {
    /// Returns the default options with a limit in bytes.
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
            thread_caches: false,
            elastic: false,
            page_size: None,
            plan: None,
            limit_set_by: "limit".to_owned(),
            name: "pool".to_owned(),
            guard: false,
            quarantine: None,
        }
    }

    /// Sets the most bytes the pool reserves, at least 1.
    pub fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// Sets whether regions start at 2 MiB and double (the default), or the first region takes the whole limit.
    pub fn growth(mut self, growth: bool) -> Self {
        self.growth = growth;
        self
    }

    /// Sets whether a refusal first releases wholly free regions and grows again. On by default.
    pub fn trim_on_oom(mut self, trim_on_oom: bool) -> Self {
        self.trim_on_oom = trim_on_oom;
        self
    }

    /// Sets whether a region that starts where another ends is joined to it; `None`, the default, leaves it to the
    /// source.
    pub fn joins_regions(mut self, joins_regions: impl Into<Option<bool>>) -> Self {
        self.joins_regions = joins_regions.into();
        self
    }

    /// Sets how long a refused request waits for another thread's free, at most [`MAX_WAIT`]. Zero by default. See
    /// [`Options::wait`](field@Self::wait) for the order of those that wait.
    pub fn wait(mut self, wait: Duration) -> Self {
        self.wait = wait;
        self
    }

    /// Sets the fraction of the limit from which remainders are split off under TensorFlow's policy. The default 0
    /// means from 128 MiB on.
    pub fn fragmentation_fraction(mut self, fraction: f64) -> Self {
        self.fragmentation_fraction = fraction;
        self
    }

    /// Sets when the remainder of a chunk is split off. TensorFlow's rule by default.
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = policy;
        self
    }

    /// Sets whether allocations are recorded under the tag of their thread. Off by default.
    pub fn owner_tags(mut self, owner_tags: bool) -> Self {
        self.owner_tags = owner_tags;
        self
    }

    /// Sets whether each thread keeps small chunks for its next requests: see the field. Off by default.
    pub fn thread_caches(mut self, thread_caches: bool) -> Self {
        self.thread_caches = thread_caches;
        self
    }

    /// Sets whether addresses are plentiful and only pages in use must have memory: see [`Options::elastic`]. Off by
    /// default.
    pub fn elastic(mut self, elastic: bool) -> Self {
        self.elastic = elastic;
        self
    }

    /// Sets the page size of an elastic pool in bytes; `None`, the default, leaves it to the source.
    pub fn page_size(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.page_size = bytes.into();
        self
    }

    /// Sets the plan to follow: see the field.
    pub fn plan(mut self, plan: impl Into<Option<Arc<Plan>>>) -> Self {
        self.plan = plan.into();
        self
    }

    /// Sets the name that reports give to the setting that defined the limit.
    pub fn limit_set_by(mut self, setting: impl Into<String>) -> Self {
        self.limit_set_by = setting.into();
        self
    }

    /// Sets the pool's name in reports.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Sets guard mode, which finds overruns and writes after a free: see the field. Off by default.
    pub fn guard(mut self, guard: bool) -> Self {
        self.guard = guard;
        self
    }

    /// Sets the most bytes of freed chunks in quarantine in guard mode: see the field.
    pub fn quarantine(mut self, bytes: u64) -> Self {
        self.quarantine = Some(bytes);
        self
    }

    pub(crate) fn check(&self) -> Result<(), OptionsError> {
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
        if self.elastic && self.guard {
            return Err(OptionsError::NotElastic { option: "guard" });
        }
        if !self.elastic && self.page_size.is_some() {
            return Err(OptionsError::OnlyForElastic);
        }
        self.plan.as_deref().map_or(Ok(()), |plan| self.check_plan(plan))
    }

    fn check_plan(&self, plan: &Plan) -> Result<(), OptionsError> {
        let Self { limit, guard, elastic, thread_caches, .. } = *self;
        let others = [(guard, "guard"), (elastic, "elastic"), (thread_caches, "thread_caches")];
        if let Some((_, option)) = others.into_iter().find(|(is_on, _)| *is_on) {
            return Err(OptionsError::NotPlanned { option });
        }
        if !plan.fits_pools() {
            return Err(OptionsError::PlanAlignment { alignment: plan.alignment() });
        }
        if plan.arena() > limit {
            return Err(OptionsError::PlanAboveLimit { arena: plan.arena(), limit });
        }
        Ok(())
    }

    /// Returns whether threads keep chunks: where every operation counts, or pages move, the caches would always be
    /// empty.
    #[cfg(feature = "std")]
    pub(crate) fn has_thread_caches(&self) -> bool {
        self.thread_caches && !self.guard && !self.owner_tags && !self.elastic
    }

    /// Returns the page size of an elastic pool over `source`, `None` for other pools.
    #[cfg(feature = "std")]
    pub(crate) fn page_size_of(&self, source: &mut impl RegionSource) -> Result<Option<u64>, OptionsError> {
        if !self.elastic {
            return Ok(None);
        }
        let pages = source.pages().ok_or(OptionsError::NotPaged)?;
        let (granule, limit) = (pages.granule(), self.limit);
        let page_size = self.page_size.unwrap_or_else(|| pages.page_size());
        let is_valid = page_size.is_power_of_two()
            && page_size.is_multiple_of(granule.max(GRANULE))
            && page_size <= limit.min(MAX_PAGE_SIZE);
        if is_valid { Ok(Some(page_size)) } else { Err(OptionsError::PageSize { page_size, granule, limit }) }
    }

    /// Returns empty tables with these options, for regions of `source`.
    pub(crate) fn tables(&self, source: &impl RegionSource) -> Tables {
        let joins = self.joins_regions.unwrap_or_else(|| source.joins_regions());
        let limit = Limit { bytes: self.limit, set_by: self.limit_set_by.as_str().into() };
        let split_rule = SplitRule { policy: self.policy, fraction: self.fragmentation_fraction };
        let mut tables = Tables::new(limit, self.growth, split_rule, joins);
        tables.is_zero_based = source.starts_at_zero();
        if let Some(plan) = &self.plan {
            tables.follow(plan);
        }
        tables
    }
}
