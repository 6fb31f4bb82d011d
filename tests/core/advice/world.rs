//! A pool with its surroundings, and the steps of a program.

use std::sync::Arc;

use crate::gauged::{Blind, Plenty};
use crate::numbers::Numbers;
use crate::sources::Descending;
use allotment::source::{AddressSpace, Cap, Capped, FailingSource, RegionSource};
use allotment::{
    AllocError, Allocation, Options, OutOfMemory, Policy, Pool, Request, Scope, Siblings, set_tag,
};

/// The source of a pool's regions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Touching,
    Apart,
    /// Grants at most this many bytes.
    Capped(u64),
    /// Declines requests above this many bytes, without a gauge.
    Silent(u64),
    Falling,
    /// Grants at most this many bytes, shared with another pool; whether that pool releases idle regions by itself.
    Shared(u64, bool),
    /// As `Shared`, over a source without a gauge.
    SharedSilent(u64, bool),
}

#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) options: Options,
}

impl Setup {
    pub(crate) fn random(random: &mut Numbers) -> Self {
        let limit = (64 << 10) << random.below(9);
        let limit = limit + random.below(3) * random.below(limit);
        let share = limit / 8 * (2 + random.below(9));
        let kind = match random.below(8) {
            0 | 1 => Kind::Touching,
            2 => Kind::Apart,
            3 => Kind::Capped(share),
            4 => Kind::Silent(share),
            5 => Kind::Falling,
            6 => Kind::Shared(share, random.chance(60)),
            _ => Kind::SharedSilent(share, random.chance(60)),
        };
        let mut options = Options::new(limit)
            .growth(random.chance(50))
            .trim_on_oom(random.chance(70))
            .joins_regions([None, None, Some(true), Some(false)][random.place(4)])
            .policy(if random.chance(70) { Policy::TensorFlow } else { Policy::Tight })
            .fragmentation_fraction(if random.chance(90) { 0.0 } else { 0.01 })
            .owner_tags(random.chance(20))
            .guard(random.chance(15));
        options.quarantine = random.chance(50).then(|| random.below(limit));
        Self { kind, options }
    }

    fn source(&self, cap: &Arc<Cap>) -> Box<dyn RegionSource> {
        match self.kind {
            Kind::Touching => Box::new(AddressSpace::new(0)),
            Kind::Apart => Box::new(AddressSpace::new(4096)),
            Kind::Silent(most) => {
                Box::new(FailingSource::new(AddressSpace::new(256), move |_, bytes| bytes > most))
            }
            Kind::Falling => Box::new(Plenty(Descending::new(4096))),
            Kind::Capped(_) | Kind::Shared(..) => {
                Box::new(Capped::new(AddressSpace::new(4096), Arc::clone(cap)))
            }
            Kind::SharedSilent(..) => Box::new(Capped::new(Descending::new(4096), Arc::clone(cap))),
        }
    }
}

/// One step of a program. The outcome depends only on the pool's decisions.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Allocate {
        bytes: u64,
        alignment: u64,
    },
    /// As `Allocate`, but the pool only explains the request.
    Explain {
        bytes: u64,
    },
    /// Frees one of the live allocations, by index modulo their number.
    Free(usize),
    /// Resizes one of the live allocations.
    Resize(usize, u64),
    OpenScope {
        limit: u64,
    },
    CloseScope,
    Trim,
    SetLimit(u64),
    /// The sibling pool allocates, or frees.
    SiblingAllocate(u64),
    SiblingFree(usize),
}

impl Step {
    pub(crate) fn random(random: &mut Numbers, setup: &Setup) -> Self {
        let limit = setup.options.limit;
        let bytes = |random: &mut Numbers| {
            let most = limit >> random.below(7);
            1 + random.below(most.max(1) * 9 / 8)
        };
        match random.below(100) {
            0..50 => {
                let alignment = if random.chance(90) { 256 } else { 1 << random.below(13) };
                Self::Allocate { bytes: bytes(random), alignment }
            }
            50..58 => Self::Explain { bytes: bytes(random) },
            58..82 => Self::Free(random.place(1000)),
            82 => Self::Resize(random.place(1000), bytes(random)),
            83..87 => Self::OpenScope { limit: limit / 16 * (1 + random.below(16)) },
            87..90 => Self::CloseScope,
            90 => Self::Trim,
            91 => Self::SetLimit(limit / 4 * (1 + random.below(8))),
            92..97 => Self::SiblingAllocate(bytes(random)),
            _ => Self::SiblingFree(random.place(1000)),
        }
    }
}

/// A pool, its live allocations, and its surroundings.
pub(crate) struct World {
    pub(crate) pool: Arc<Pool>,
    pub(crate) sibling: Option<Arc<Pool>>,
    pub(crate) held: Vec<Allocation>,
    pub(crate) scopes: Vec<(String, Scope)>,
    sibling_held: Vec<Allocation>,
    opened: usize,
}

impl World {
    pub(crate) fn new(setup: &Setup) -> Self {
        let cap = match setup.kind {
            Kind::Capped(bytes) | Kind::Shared(bytes, _) | Kind::SharedSilent(bytes, _) => Cap::new(bytes),
            _ => Cap::new(1),
        };
        let pool = |options: Options| {
            Arc::new(Pool::new(Blind(setup.source(&cap)), options).expect("options in range"))
        };
        let main = pool(setup.options.clone());
        let sibling = match setup.kind {
            Kind::Shared(_, trims) | Kind::SharedSilent(_, trims) => {
                let options = setup.options.clone().trim_on_oom(trims).name("sibling");
                let sibling = pool(options);
                let siblings = Arc::new(Siblings::default());
                assert!(main.join(&siblings) && sibling.join(&siblings) && !main.join(&siblings));
                Some(sibling)
            }
            _ => None,
        };
        if setup.options.owner_tags {
            set_tag(Some("work".into()));
        }
        Self {
            pool: main,
            sibling,
            held: Vec::new(),
            scopes: Vec::new(),
            sibling_held: Vec::new(),
            opened: 0,
        }
    }

    /// Performs a step; returns the refusal with all advice if the pool refused.
    pub(crate) fn take(&mut self, step: &Step) -> Option<OutOfMemory> {
        match *step {
            Step::Allocate { bytes, alignment } => match self.request(bytes, alignment) {
                Ok(()) => None,
                Err(mut refused) => {
                    self.pool.add_details(&mut refused).expect("this process");
                    Some(*refused)
                }
            },
            Step::Explain { bytes } => self.pool.explain(bytes).expect("in range").map(|refused| *refused),
            Step::Free(which) => {
                self.free(which);
                None
            }
            Step::Resize(which, bytes) => {
                if !self.held.is_empty() {
                    let place = which % self.held.len();
                    if let Ok(resized) = self.pool.resize(self.held[place].address, bytes) {
                        self.held[place] = resized;
                    }
                }
                None
            }
            Step::OpenScope { limit } => {
                self.opened += 1;
                let name = format!("scope {}", self.opened);
                let scope = self.pool.open_scope(&name, Some(limit), false).expect("this process");
                self.scopes.push((name, scope));
                None
            }
            Step::CloseScope => {
                if let Some((_, scope)) = self.scopes.pop() {
                    self.pool.close_scope(scope).expect("this process");
                }
                None
            }
            Step::Trim => {
                self.pool.trim().expect("this process");
                None
            }
            Step::SetLimit(limit) => {
                // A limit below the reserved bytes changes nothing.
                let _ = self.pool.set_limit(limit, false, "a test");
                None
            }
            Step::SiblingAllocate(bytes) => {
                let served = self.sibling.as_ref().and_then(|sibling| sibling.allocate(bytes).ok());
                self.sibling_held.extend(served);
                None
            }
            Step::SiblingFree(which) => {
                if let Some(sibling) = &self.sibling
                    && !self.sibling_held.is_empty()
                {
                    let held = self.sibling_held.swap_remove(which % self.sibling_held.len());
                    sibling.free_allocation(&held).expect("live");
                }
                None
            }
        }
    }

    /// Makes a request and keeps the allocation.
    pub(crate) fn request(&mut self, bytes: u64, alignment: u64) -> Result<(), Box<OutOfMemory>> {
        match self.pool.allocate_with_retry(Request::new(bytes).align(alignment), |_| false) {
            Ok(allocation) => {
                self.held.push(allocation);
                Ok(())
            }
            Err(AllocError::OutOfMemory(refused)) => Err(refused),
            Err(other) => panic!("not a refusal: {other}"),
        }
    }

    fn free(&mut self, which: usize) {
        if !self.held.is_empty() {
            let held = self.held.swap_remove(which % self.held.len());
            self.pool.free_allocation(&held).expect("live");
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        while let Some((_, scope)) = self.scopes.pop() {
            self.pool.close_scope(scope).expect("this process");
        }
        set_tag(None);
        // Guard mode would report these as leaks.
        for held in self.held.drain(..) {
            self.pool.free_allocation(&held).expect("live");
        }
    }
}
