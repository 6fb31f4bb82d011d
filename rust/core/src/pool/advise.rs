//! Advice after a refusal: each piece makes the request succeed if it is followed, and says nothing that is not sure.

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
use crate::units::{GRANULE, MAX_BYTES, round_down, round_up};

/// What a pool knows of the memory around it. Found out without its lock: other pools and the source are asked.
#[derive(Debug)]
pub(super) struct Surroundings {
    /// What the source could grant; without limit if it does not say.
    pub(super) supply: Supply,
    /// Whether the source says what it could grant.
    is_known: bool,
    /// Whether each grant starts where the last one ended.
    is_sequential: bool,
    has_siblings: bool,
    /// Pools on the same memory that keep idle regions, and their bytes.
    keeping: Vec<(String, u64)>,
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
        let idle = |trims: bool| {
            let others = others.iter().filter(move |other| other.options.trim_on_oom == trims);
            others.map(|other| (other, other.idle_bytes())).filter(|&(_, bytes)| bytes > 0)
        };
        let supply = self
            .headroom
            .as_ref()
            .map(|headroom| Supply::new(headroom.bytes(), idle(true).map(|(_, bytes)| bytes).sum()));
        Surroundings {
            supply: supply.unwrap_or(Supply::UNLIMITED),
            is_known: supply.is_some(),
            is_sequential: self.headroom.as_ref().is_some_and(|headroom| headroom.is_sequential()),
            has_siblings: !others.is_empty(),
            keeping: idle(false).map(|(other, bytes)| (other.options.name.clone(), bytes)).collect(),
        }
    }

    /// What the source could grant to this pool, its siblings' idle regions included; none if it does not say.
    ///
    /// A change is a reason to repeat a request that the source refused.
    pub(super) fn supply(&self) -> Option<u64> {
        self.headroom.as_ref()?;
        let Supply { now, reclaimable, .. } = self.surroundings(&self.others()).supply;
        Some(now.saturating_add(reclaimable))
    }

    /// Advice for a request that the pool refuses as things are.
    pub(super) fn advise(
        &self,
        request: Request,
        around: &Surroundings,
        depth: Depth,
    ) -> Result<Vec<Advice>, Unusable> {
        self.with_state(|state| {
            let owner = self.owner(state, request);
            let advisor = Advisor { pool: self, state, request, owner, around, depth };
            advisor.advise()
        })
    }
}

struct Advisor<'a> {
    pool: &'a Pool,
    state: &'a State,
    request: Request,
    /// Whom the request is made for.
    owner: Option<OwnerId>,
    around: &'a Surroundings,
    depth: Depth,
}

impl Advisor<'_> {
    fn advise(&self) -> Vec<Advice> {
        let broken = self.owner.map_or(Vec::new(), |owner| {
            self.state.allocator.owners.caps_broken(owner, self.request.rounded())
        });
        let mut advice = Vec::new();
        if broken.is_empty() {
            advice.extend(self.trim());
            advice.extend(self.trim_siblings());
            advice.extend(self.free());
            advice.extend(self.raise_limit());
            advice.extend(self.ask_for());
            advice.extend(self.next_run());
        } else {
            // Within the cap the pool itself must still serve the request.
            if self.would_serve(self.sure_supply()) {
                advice.extend(self.free_owned(&broken));
                advice.extend(self.raise_scopes(&broken));
            }
            advice.extend(self.ask_for());
        }
        advice
    }

    /// What the source grants for sure.
    fn sure_supply(&self) -> Supply {
        if self.around.is_known { self.around.supply } else { Supply::NONE }
    }

    /// What the source may grant: it has not refused anything yet, or says what it has.
    fn possible_supply(&self) -> Supply {
        if self.around.is_known || !self.state.source_declined { self.around.supply } else { Supply::NONE }
    }

    fn would_serve(&self, supply: Supply) -> bool {
        self.state.allocator.would_serve(self.request.needed, self.pool.options.trim_on_oom, supply)
    }

    /// Own idle regions, which the pool is set to keep.
    fn trim(&self) -> Option<Advice> {
        let allocator = &self.state.allocator;
        let helps = |supply| allocator.would_serve(self.request.needed, true, supply);
        let idle = if self.pool.options.trim_on_oom { 0 } else { allocator.releasable() };
        let possible = self.possible_supply();
        (idle > 0 && helps(possible))
            .then(|| Advice { needs_grant: !self.around.is_known, ..Advice::now(Action::Trim, idle) })
    }

    /// Idle regions of pools on the same memory that are set to keep them.
    fn trim_siblings(&self) -> Option<Advice> {
        let mut supply = self.around.supply;
        let mut names = Vec::new();
        let mut bytes = 0;
        for (name, idle) in &self.around.keeping {
            supply = supply.after_release(*idle);
            bytes += idle;
            names.push(name.clone());
            if self.would_serve(supply) {
                return Some(Advice { names, ..Advice::now(Action::Trim, bytes) });
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

    fn raise_scopes(&self, broken: &[BrokenCap]) -> Option<Advice> {
        let bytes = broken.iter().map(|cap| cap.wanted).max().filter(|&bytes| bytes <= MAX_BYTES)?;
        let names = broken.iter().rev().map(|cap| self.state.allocator.owners.path(cap.owner)).collect();
        Some(Advice { names, ..Advice::now(Action::RaiseScope, bytes) })
    }

    fn raise_limit(&self) -> Option<Advice> {
        let (needed, trim_on_oom) = (self.request.needed, self.pool.options.trim_on_oom);
        let limit = self.state.allocator.smallest_limit(needed, trim_on_oom, self.possible_supply())?;
        Some(Advice { needs_grant: !self.around.is_known, ..Advice::now(Action::RaiseLimit, limit) })
    }

    /// The largest request with the same alignment and margins that is served.
    fn ask_for(&self) -> Option<Advice> {
        let allocator = &self.state.allocator;
        let padding = self.request.needed - self.request.rounded();
        let largest = |supply| allocator.largest_servable(self.pool.options.trim_on_oom, supply);
        let room = self.owner.map_or(u64::MAX, |owner| allocator.owners.room_under_caps(owner));
        let bytes = largest(self.possible_supply()).saturating_sub(padding).min(round_down(room));
        let needs_grant = bytes + padding > largest(self.sure_supply());
        // A source that has refused once and does not say what it has may still grant a little more.
        let exact = self.around.is_known || !self.state.source_declined;
        (bytes > 0).then(|| Advice { exact, needs_grant, ..Advice::now(Action::AskFor, bytes) })
    }

    /// Other settings under which the same program, played again, is served to the end.
    fn next_run(&self) -> Vec<Advice> {
        let Some(rerun) = self.rerun() else { return Vec::new() };
        let (limit, policy) = (self.state.allocator.limit, self.pool.options.policy);
        // The replay has to agree with what happened.
        if rerun.serves(limit, policy) {
            return Vec::new();
        }
        let counters = &self.state.allocator.counters;
        let tight = (policy != Policy::Tight && rerun.serves(limit, Policy::Tight))
            .then(|| Advice::next_run(Action::Policy, counters.internal_fragmentation()));
        let least = round_up(limit.saturating_add(1).min(MAX_BYTES))
            .max(counters.requested().saturating_add(self.request.needed).min(MAX_BYTES) / GRANULE * GRANULE);
        let raised = rerun.limit_from(least, policy).filter(|&found| found > limit);
        let raised = raised.map(|limit| Advice::next_run(Action::RaiseLimit, limit));
        tight.into_iter().chain(raised).collect()
    }

    /// The program so far and the request, where a second run would go the same way.
    fn rerun(&self) -> Option<Rerun> {
        let Self { pool, state, around, .. } = self;
        let joins_regions = state.allocator.joins_regions();
        let repeats = around.is_known && !around.has_siblings && (around.is_sequential || !joins_regions);
        if self.depth == Depth::Quick || pool.options.guard || !repeats {
            return None;
        }
        let mut events: Vec<_> = state.allocator.history.events_before(self.request.needed)?.collect();
        events.push(Event::Allocated(self.request.needed));
        let capacity = around.supply.now.saturating_add(state.allocator.counters.reserved());
        Some(Rerun { events, options: pool.options.clone(), joins_regions, capacity })
    }
}

fn free(vacated: Vacated) -> Option<Advice> {
    let Vacated { allocations, bytes } = vacated;
    (!allocations.is_empty()).then(|| Advice { allocations, ..Advice::now(Action::Free, bytes) })
}
