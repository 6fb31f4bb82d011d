//! Advice for a refused request: each piece makes the request succeed. Uncertain advice is omitted, or names its
//! condition.
//!
//! Longer than 300 lines: every kind of advice, of one state and for one request.

use std::sync::Arc;

use super::Pool;
use super::state::State;
use crate::error::Unusable;
use crate::policy::Policy;
use crate::report::advice::{Action, Advice};
use crate::report::history::Event;
use crate::report::rerun::Rerun;
use crate::source::Headroom;
use crate::tables::owner::{ExceededLimit, OwnerId};
use crate::tables::{ChunkRequest, FreePlan, Supply};
use crate::units::{MAX_BYTES, round_down, round_up};

/// Memory outside the pool: that of its source and its sibling pools. Collected without the pool's lock, as it takes
/// other pools' locks.
#[derive(Debug)]
pub(super) struct ExternalMemory {
    headroom: Headroom,
    /// Idle bytes of sibling pools that release them on demand.
    reclaimable: u64,
    has_siblings: bool,
    /// Sibling pools that are configured to keep idle regions, with the bytes of those.
    keeping: Vec<(String, u64)>,
}

impl ExternalMemory {
    /// Returns the supply that the source guarantees.
    fn guaranteed(&self) -> Supply {
        let Headroom { guaranteed, maximum, grants_released, .. } = self.headroom;
        // Addresses are nothing that a gauge tells; a source that knows what it has does not run out of them.
        let grants_addresses = guaranteed > 0 || guaranteed == maximum;
        Supply::new(guaranteed, self.reclaimable, grants_released).with_addresses(grants_addresses)
    }

    /// Returns the largest possible supply of the source.
    pub(super) fn possible(&self) -> Supply {
        Supply::new(self.headroom.maximum, self.reclaimable, true).with_addresses(true)
    }
}

/// How much work the advice may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Linear in the number of regions.
    Quick,
    /// Linear in the number of chunks; also replays the program.
    Thorough,
}

impl Pool {
    pub(super) fn external_memory(&self, others: &[Arc<Self>]) -> ExternalMemory {
        let idle = |hands_back: bool| {
            let others = others.iter().filter(move |other| other.options.trim_on_oom == hands_back);
            others.map(|other| (other, other.idle_bytes())).filter(|&(_, bytes)| bytes > 0)
        };
        ExternalMemory {
            headroom: self.gauge.as_ref().map_or(Headroom::UNKNOWN, |gauge| gauge.headroom()),
            reclaimable: idle(true).map(|(_, bytes)| bytes).sum(),
            has_siblings: !others.is_empty(),
            keeping: idle(false).map(|(other, bytes)| (other.options.name.clone(), bytes)).collect(),
        }
    }

    /// Returns the most bytes that the source may grant, idle regions of sibling pools included.
    ///
    /// A change is a reason to retry a request that the source declined.
    pub(super) fn possible_bytes(&self) -> u64 {
        let external = self.external_memory(&self.others());
        external.headroom.maximum.saturating_add(external.reclaimable)
    }

    /// Returns advice for a request that the pool refuses now; empty if the request would be served by now.
    pub(super) fn advise(
        &self,
        request: ChunkRequest,
        external: &ExternalMemory,
        depth: Depth,
    ) -> Result<Vec<Advice>, Unusable> {
        let (mut advice, rerun) = self.with_settled_state(|state| {
            let owner = self.owner(state, request, None);
            let advisor = Advisor { pool: self, state, request, owner, external, depth };
            (advisor.advise(), advisor.rerun())
        })?;
        // The replay runs without the lock.
        if let Some(rerun) = rerun {
            advice.extend(rerun.advise());
        }
        Ok(advice)
    }
}

struct Advisor<'a> {
    pool: &'a Pool,
    state: &'a State,
    request: ChunkRequest,
    /// The scope or tag that the request counts for.
    owner: Option<OwnerId>,
    external: &'a ExternalMemory,
    depth: Depth,
}

impl Advisor<'_> {
    /// Returns the advice that applies now.
    fn advise(&self) -> Vec<Advice> {
        let exceeded = self.exceeded_scope_limits();
        let mut advice = Vec::new();
        if exceeded.is_empty() {
            if self.would_serve(self.guaranteed_supply()) {
                return advice;
            }
            advice.extend(self.trim());
            advice.extend(self.trim_siblings());
            advice.extend(self.free());
            advice.extend(self.raise_limit());
        } else if self.would_serve(self.guaranteed_supply()) {
            advice.extend(self.free_owned(&exceeded));
            advice.extend(self.raise_scopes(&exceeded));
        }
        advice.extend(self.ask_for());
        advice
    }

    fn exceeded_scope_limits(&self) -> Vec<ExceededLimit> {
        let owners = &self.state.allocator.owners;
        self.owner.map_or(Vec::new(), |owner| owners.exceeded_limits(owner, self.request.rounded()))
    }

    /// Returns the guaranteed supply; nothing if the source has just declined less than it guaranteed.
    fn guaranteed_supply(&self) -> Supply {
        if self.state.source_declined_guaranteed {
            return Supply::NONE;
        }
        let supply = self.external.guaranteed();
        supply.with_addresses(supply.grants_addresses && !self.state.addresses_declined)
    }

    /// Returns the possible supply. A source that has just declined and does not know its exact headroom is not
    /// expected to grant more; it may grant addresses unless it has just declined those.
    fn possible_supply(&self) -> Supply {
        let Headroom { guaranteed, maximum, .. } = self.external.headroom;
        let declined =
            self.state.source_declined_guaranteed || (self.state.source_declined && guaranteed < maximum);
        let supply = if declined { self.guaranteed_supply() } else { self.external.possible() };
        supply.with_addresses(!self.state.addresses_declined)
    }

    fn would_serve(&self, supply: Supply) -> bool {
        self.state.allocator.would_serve(self.request, self.pool.options.trim_on_oom, supply)
    }

    /// Advises to trim this pool, if it is configured to keep idle regions.
    fn trim(&self) -> Option<Advice> {
        let allocator = &self.state.allocator;
        // Free pages of an elastic pool serve every request anyway.
        let is_possible = !self.pool.options.trim_on_oom && !self.pool.options.elastic;
        let idle = if is_possible { allocator.releasable() } else { 0 };
        let served = |supply| idle > 0 && allocator.would_serve(self.request, true, supply);
        served(self.possible_supply()).then(|| Advice {
            needs_grant: !served(self.guaranteed_supply()),
            ..Advice::now(Action::Trim, idle)
        })
    }

    /// Advises to trim sibling pools that are configured to keep idle regions.
    fn trim_siblings(&self) -> Option<Advice> {
        let mut supply = self.guaranteed_supply();
        let mut targets = Vec::new();
        for (name, idle) in &self.external.keeping {
            supply = supply.after_release(*idle);
            targets.push((name.clone(), *idle));
            if self.would_serve(supply) {
                let bytes = targets.iter().map(|(_, idle)| idle).sum();
                return Some(Advice { targets, ..Advice::now(Action::Trim, bytes) });
            }
        }
        None
    }

    fn free(&self) -> Option<Advice> {
        if self.depth == Depth::Quick {
            return None;
        }
        let Self { pool, state, request, .. } = self;
        let plan =
            |supply| free(state.allocator.plan_frees_for(*request, pool.options.trim_on_oom, supply)?);
        plan(self.guaranteed_supply()).or_else(|| {
            // Addresses that the source may grant.
            let advice = if pool.options.elastic { plan(self.possible_supply()) } else { None };
            Some(Advice { needs_grant: true, ..advice? })
        })
    }

    /// Advises to free allocations of the innermost scope whose limit is exceeded; they also count for the enclosing
    /// scopes.
    fn free_owned(&self, exceeded: &[ExceededLimit]) -> Option<Advice> {
        if self.depth == Depth::Quick {
            return None;
        }
        let lacking = exceeded.iter().map(|cap| cap.lacking).max()?;
        free(self.state.allocator.plan_frees_of_owner(exceeded.first()?.owner, lacking)?)
    }

    /// Advises to raise all exceeded scope limits, the outermost first, each to the smallest sufficient value.
    fn raise_scopes(&self, exceeded: &[ExceededLimit]) -> Option<Advice> {
        let owners = &self.state.allocator.owners;
        let targets: Vec<_> = exceeded.iter().rev().map(|cap| (owners.path(cap.owner), cap.wanted)).collect();
        let bytes = targets.iter().map(|&(_, wanted)| wanted).max().filter(|&bytes| bytes <= MAX_BYTES)?;
        Some(Advice { targets, exact: true, ..Advice::now(Action::RaiseScope, bytes) })
    }

    fn raise_limit(&self) -> Option<Advice> {
        let (request, trim_on_oom) = (self.request, self.pool.options.trim_on_oom);
        let smallest = |supply| self.state.allocator.smallest_limit(request, trim_on_oom, supply);
        let limit = smallest(self.possible_supply())?;
        let needs_grant = smallest(self.guaranteed_supply()) != Some(limit);
        Some(Advice { exact: true, needs_grant, ..Advice::now(Action::RaiseLimit, limit) })
    }

    /// Advises the largest smaller request with the same alignment and margins that would be served.
    fn ask_for(&self) -> Option<Advice> {
        let allocator = &self.state.allocator;
        let room = self.owner.map_or(u64::MAX, |owner| allocator.owners.room_under_limits(owner));
        let largest = |supply| {
            let bytes = allocator.largest_servable(self.request, self.pool.options.trim_on_oom, supply);
            bytes.min(round_down(room))
        };
        let bytes = largest(self.possible_supply());
        let Headroom { guaranteed, maximum, .. } = self.external.headroom;
        // A source that is not expected to grant more might still do so, and a chunk may happen to hold a larger aligned
        // piece. In an elastic pool all aligned pieces are known.
        let padding = self.request.needed - self.request.rounded();
        let exact = !self.state.source_declined_guaranteed
            && !self.state.addresses_declined
            && (guaranteed == maximum || !self.state.source_declined)
            && (padding == self.pool.margins() || self.pool.options.elastic);
        let needs_grant = bytes > largest(self.guaranteed_supply());
        let is_less = bytes > 0 && bytes < self.request.bytes;
        is_less.then(|| Advice { exact, needs_grant, ..Advice::now(Action::AskFor, bytes) })
    }

    /// Returns the program so far with the refused request, if a second run would repeat it.
    fn rerun(&self) -> Option<Rerun> {
        let Self { pool, state, external, .. } = self;
        let allocator = &state.allocator;
        let joins_regions = allocator.joins_regions();
        let repeats = !external.has_siblings && (external.headroom.is_sequential || !joins_regions);
        if self.depth == Depth::Quick
            || pool.options.guard
            || !repeats
            || !self.exceeded_scope_limits().is_empty()
        {
            return None;
        }
        let mut events: Vec<_> = allocator.history.events_before(self.request.needed)?.collect();
        events.push(Event::Allocated(self.request.needed));
        // A second run can use the reserved bytes of this run and the remaining supply.
        let capacity = self.guaranteed_supply().now.saturating_add(allocator.counters.reserved());
        Some(Rerun {
            events,
            limit: allocator.limit,
            growth: allocator.grows(),
            trim_on_oom: pool.options.trim_on_oom,
            policy: pool.options.policy,
            fraction: pool.options.fragmentation_fraction,
            joins_regions,
            capacity,
            capacity_is_exact: external.headroom.guaranteed == external.headroom.maximum,
            internal_fragmentation: allocator.counters.internal_fragmentation(),
            live: allocator.counters.requested(),
            // A source without a gauge may decline many pages at once.
            page_sizes: Some(pool.page_sizes)
                .filter(|sizes| sizes.exist && pool.gauge.is_some() && !pool.options.elastic),
        })
    }
}

impl Rerun {
    /// Returns other settings under which the same program is served to its end.
    fn advise(&self) -> Vec<Advice> {
        // The replay must reproduce the refusal.
        if self.serves(self.limit, self.policy) {
            return Vec::new();
        }
        let tight = (self.policy != Policy::Tight && self.serves(self.limit, Policy::Tight))
            .then(|| Advice::next_run(Action::Policy, self.internal_fragmentation));
        let needed = match self.events.last() {
            Some(Event::Allocated(needed)) => *needed,
            _ => 0,
        };
        let above = round_up(self.limit.saturating_add(1).min(MAX_BYTES));
        let least = above.max(round_down(self.live.saturating_add(needed).min(MAX_BYTES)));
        let raised = self.limit_from(least).map(|limit| Advice::next_run(Action::RaiseLimit, limit));
        let elastic = self.page_size().map(|page_size| Advice::next_run(Action::Elastic, page_size));
        tight.into_iter().chain(elastic).chain(raised).collect()
    }
}

fn free(plan: FreePlan) -> Option<Advice> {
    let FreePlan { allocations, bytes } = plan;
    (!allocations.is_empty()).then(|| Advice { allocations, ..Advice::now(Action::Free, bytes) })
}
