//! Advice after a refusal: each piece makes the request succeed if it is followed. What is not sure is left out, or
//! says on what it depends.

use std::sync::Arc;

use super::Pool;
use super::state::State;
use crate::advice::{Action, Advice};
use crate::allocator::{Request, Supply, Vacated};
use crate::error::Unusable;
use crate::history::Event;
use crate::owner::{BrokenCap, OwnerId};
use crate::policy::Policy;
use crate::rerun::Rerun;
use crate::source::Headroom;
use crate::units::{MAX_BYTES, round_down, round_up};

/// What the source and the pools beside this one have. It is found without the lock of the pool, as it takes theirs.
#[derive(Debug)]
pub(super) struct Surroundings {
    headroom: Headroom,
    /// Idle bytes of the pools beside it that hand them back.
    reclaimable: u64,
    has_siblings: bool,
    /// Pools beside it that are set to keep idle regions, and the bytes of those.
    keeping: Vec<(String, u64)>,
}

impl Surroundings {
    /// What the source grants for sure.
    fn sure(&self) -> Supply {
        let Headroom { sure, grants_released, .. } = self.headroom;
        Supply::new(sure, self.reclaimable, grants_released)
    }

    /// What the source may grant at the most.
    pub(super) fn possible(&self) -> Supply {
        Supply::new(self.headroom.most, self.reclaimable, true)
    }
}

/// How much work advice may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Depth {
    /// Linear in the regions.
    Quick,
    /// Linear in the chunks; also plays the program again.
    Thorough,
}

impl Pool {
    pub(super) fn surroundings(&self, others: &[Arc<Self>]) -> Surroundings {
        let idle = |hands_back: bool| {
            let others = others.iter().filter(move |other| other.options.trim_on_oom == hands_back);
            others.map(|other| (other, other.idle_bytes())).filter(|&(_, bytes)| bytes > 0)
        };
        Surroundings {
            headroom: self.gauge.as_ref().map_or(Headroom::UNKNOWN, |gauge| gauge.headroom()),
            reclaimable: idle(true).map(|(_, bytes)| bytes).sum(),
            has_siblings: !others.is_empty(),
            keeping: idle(false).map(|(other, bytes)| (other.options.name.clone(), bytes)).collect(),
        }
    }

    /// What the source may grant at the most, idle regions of the pools beside it included.
    ///
    /// A change is a reason to repeat a request that the source refused.
    pub(super) fn possible_bytes(&self) -> u64 {
        let around = self.surroundings(&self.others());
        around.headroom.most.saturating_add(around.reclaimable)
    }

    /// Advice for a request that the pool refuses as things are; none if it would be served by now.
    pub(super) fn advise(
        &self,
        request: Request,
        around: &Surroundings,
        depth: Depth,
    ) -> Result<Vec<Advice>, Unusable> {
        let (mut advice, rerun) = self.with_state(|state| {
            let owner = self.owner(state, request);
            let advisor = Advisor { pool: self, state, request, owner, around, depth };
            (advisor.advise(), advisor.rerun())
        })?;
        // The program is played without the lock.
        if let Some(rerun) = rerun {
            advice.extend(rerun.advise());
        }
        Ok(advice)
    }
}

struct Advisor<'a> {
    pool: &'a Pool,
    state: &'a State,
    request: Request,
    /// The scope or tag that the request counts for.
    owner: Option<OwnerId>,
    around: &'a Surroundings,
    depth: Depth,
}

impl Advisor<'_> {
    /// Advice that holds now.
    fn advise(&self) -> Vec<Advice> {
        let broken = self.broken_caps();
        let mut advice = Vec::new();
        if broken.is_empty() {
            if self.would_serve(self.sure_supply()) {
                return advice;
            }
            advice.extend(self.trim());
            advice.extend(self.trim_siblings());
            advice.extend(self.free());
            advice.extend(self.raise_limit());
        } else if self.would_serve(self.sure_supply()) {
            advice.extend(self.free_owned(&broken));
            advice.extend(self.raise_scopes(&broken));
        }
        advice.extend(self.ask_for());
        advice
    }

    fn broken_caps(&self) -> Vec<BrokenCap> {
        let owners = &self.state.allocator.owners;
        self.owner.map_or(Vec::new(), |owner| owners.caps_broken(owner, self.request.rounded()))
    }

    /// What the source grants for sure. One that just declined less than it promised has nothing.
    fn sure_supply(&self) -> Supply {
        if self.state.source_broke_promise { Supply::NONE } else { self.around.sure() }
    }

    /// What the source may grant. One that just declined a request, and does not know exactly what it has, is not
    /// expected to grant another one.
    fn possible_supply(&self) -> Supply {
        let Headroom { sure, most, .. } = self.around.headroom;
        let declined = self.state.source_broke_promise || (self.state.source_declined && sure < most);
        if declined { self.sure_supply() } else { self.around.possible() }
    }

    fn would_serve(&self, supply: Supply) -> bool {
        self.state.allocator.would_serve(self.request.needed, self.pool.options.trim_on_oom, supply)
    }

    /// Own idle regions, which the pool is set to keep.
    fn trim(&self) -> Option<Advice> {
        let allocator = &self.state.allocator;
        let idle = if self.pool.options.trim_on_oom { 0 } else { allocator.releasable() };
        let served = |supply| idle > 0 && allocator.would_serve(self.request.needed, true, supply);
        served(self.possible_supply())
            .then(|| Advice { needs_grant: !served(self.sure_supply()), ..Advice::now(Action::Trim, idle) })
    }

    /// Idle regions of pools on the same memory that are set to keep them.
    fn trim_siblings(&self) -> Option<Advice> {
        let mut supply = self.sure_supply();
        let mut targets = Vec::new();
        for (name, idle) in &self.around.keeping {
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
        free(state.allocator.vacate_for(request.needed, pool.options.trim_on_oom, self.sure_supply())?)
    }

    /// Allocations of the innermost scope whose cap is broken: they count for the scopes around it, too.
    fn free_owned(&self, broken: &[BrokenCap]) -> Option<Advice> {
        if self.depth == Depth::Quick {
            return None;
        }
        let lacking = broken.iter().map(|cap| cap.lacking).max()?;
        free(self.state.allocator.vacate_owned(broken.first()?.owner, lacking)?)
    }

    /// All scopes whose caps are broken, the outermost first, each to the smallest limit that allows the request.
    fn raise_scopes(&self, broken: &[BrokenCap]) -> Option<Advice> {
        let owners = &self.state.allocator.owners;
        let targets: Vec<_> = broken.iter().rev().map(|cap| (owners.path(cap.owner), cap.wanted)).collect();
        let bytes = targets.iter().map(|&(_, wanted)| wanted).max().filter(|&bytes| bytes <= MAX_BYTES)?;
        Some(Advice { targets, exact: true, ..Advice::now(Action::RaiseScope, bytes) })
    }

    fn raise_limit(&self) -> Option<Advice> {
        let (needed, trim_on_oom) = (self.request.needed, self.pool.options.trim_on_oom);
        let smallest = |supply| self.state.allocator.smallest_limit(needed, trim_on_oom, supply);
        let limit = smallest(self.possible_supply())?;
        let needs_grant = smallest(self.sure_supply()) != Some(limit);
        Some(Advice { exact: true, needs_grant, ..Advice::now(Action::RaiseLimit, limit) })
    }

    /// The largest smaller request with the same alignment and margins that is served.
    fn ask_for(&self) -> Option<Advice> {
        let allocator = &self.state.allocator;
        let padding = self.request.needed - self.request.rounded();
        let room = self.owner.map_or(u64::MAX, |owner| allocator.owners.room_under_caps(owner));
        let largest = |supply| {
            let chunk = allocator.largest_servable(self.pool.options.trim_on_oom, supply);
            chunk.saturating_sub(padding).min(round_down(room))
        };
        let bytes = largest(self.possible_supply());
        let Headroom { sure, most, .. } = self.around.headroom;
        // A source that is not expected to grant more might.
        let exact = !self.state.source_broke_promise && (sure == most || !self.state.source_declined);
        let needs_grant = bytes > largest(self.sure_supply());
        let is_less = bytes > 0 && bytes < self.request.bytes;
        is_less.then(|| Advice { exact, needs_grant, ..Advice::now(Action::AskFor, bytes) })
    }

    /// The program so far and the request, where a second run would go the same way.
    fn rerun(&self) -> Option<Rerun> {
        let Self { pool, state, around, .. } = self;
        let allocator = &state.allocator;
        let joins_regions = allocator.joins_regions();
        let repeats = !around.has_siblings && (around.headroom.is_sequential || !joins_regions);
        if self.depth == Depth::Quick || pool.options.guard || !repeats || !self.broken_caps().is_empty() {
            return None;
        }
        let mut events: Vec<_> = allocator.history.events_before(self.request.needed)?.collect();
        events.push(Event::Allocated(self.request.needed));
        // A second run has what this one has reserved, and what the source still has.
        let capacity = self.sure_supply().now.saturating_add(allocator.counters.reserved());
        Some(Rerun {
            events,
            limit: allocator.limit,
            growth: allocator.grows(),
            trim_on_oom: pool.options.trim_on_oom,
            policy: pool.options.policy,
            fraction: pool.options.fragmentation_fraction,
            joins_regions,
            capacity,
            capacity_is_exact: around.headroom.sure == around.headroom.most,
            lost: allocator.counters.internal_fragmentation(),
            live: allocator.counters.requested(),
        })
    }
}

impl Rerun {
    /// Other settings under which the same program is served to its end.
    fn advise(&self) -> Vec<Advice> {
        // The replay has to agree with what happened.
        if self.serves(self.limit, self.policy) {
            return Vec::new();
        }
        let tight = (self.policy != Policy::Tight && self.serves(self.limit, Policy::Tight))
            .then(|| Advice::next_run(Action::Policy, self.lost));
        let needed = match self.events.last() {
            Some(Event::Allocated(needed)) => *needed,
            _ => 0,
        };
        let above = round_up(self.limit.saturating_add(1).min(MAX_BYTES));
        let least = above.max(round_down(self.live.saturating_add(needed).min(MAX_BYTES)));
        let raised = self.limit_from(least).map(|limit| Advice::next_run(Action::RaiseLimit, limit));
        tight.into_iter().chain(raised).collect()
    }
}

fn free(vacated: Vacated) -> Option<Advice> {
    let Vacated { allocations, bytes } = vacated;
    (!allocations.is_empty()).then(|| Advice { allocations, ..Advice::now(Action::Free, bytes) })
}
