//! The shadow: a slow and simple model of a pool.
//!
//! A shadow receives every call of a pool with its result and the source calls. It computes the expected behaviour
//! and fails on any difference: a wrong choice, a wrong size, an overlap, a gap, an unexpected or missing source
//! call, a wrong counter, or a refusal of a request that could have been served.
//!
//! It is single-threaded: nothing changes between two calls.

use allotment::source::Call;
use allotment::{Allocation, FreeError, Options, ResizeError, Snapshot, Stats};

#[path = "shadow/answers.rs"]
mod answers;
#[path = "shadow/decisions.rs"]
#[allow(dead_code, reason = "only for histories of several threads")]
mod decisions;
#[path = "shadow/queries.rs"]
mod queries;
#[path = "shadow/requests.rs"]
mod requests;
#[path = "shadow/rules.rs"]
mod rules;
#[path = "shadow/space.rs"]
mod space;

#[allow(unused_imports, reason = "histories have no whole calls")]
pub(crate) use answers::Outcome;
use answers::{Answers, Ending};
#[allow(unused_imports, reason = "only for histories of several threads")]
pub(crate) use decisions::Round;
use requests::Request;
use rules::Rules;
use space::{Space, Sums};

/// The expected state of a pool.
#[derive(Debug)]
pub(crate) struct Shadow {
    rules: Rules,
    name: String,
    space: Space,
    step: u128,
    /// The highest number given to an allocation, to a lent chunk, or to a thread cache.
    allocs: u64,
    /// Those of `allocs` that no allocation had when they were given away.
    set_aside: u64,
    /// Allocations that thread caches served.
    from_caches: u64,
    grants: u64,
    refused: u64,
    /// Unavoidable refusals, including those of retried attempts.
    confirmed: u64,
    largest_requested: u64,
    /// High-water marks since the last reset: requested, in use, reserved.
    peaks: [u64; 3],
    closed: bool,
    /// Addresses that must not be freed.
    pins: Vec<u64>,
}

impl Shadow {
    /// Creates the shadow of a new pool on a source that says whether it joins regions.
    pub(crate) fn new(options: &Options, source_joins: bool) -> Self {
        let rules = Rules::new(options, source_joins);
        Self {
            step: rules.first_step,
            rules,
            name: options.name.clone(),
            space: Space::default(),
            allocs: 0,
            set_aside: 0,
            from_caches: 0,
            grants: 0,
            refused: 0,
            confirmed: 0,
            largest_requested: 0,
            peaks: [0; 3],
            closed: false,
            pins: Vec::new(),
        }
    }

    /// Checks a free of `address` (only number `id`, if given) with its `result`; `None` if the source panicked.
    pub(crate) fn freed(
        &mut self,
        address: u64,
        id: Option<u64>,
        result: Option<Result<(), FreeError>>,
        calls: Vec<Call>,
    ) {
        let mut answers = Answers::new(calls, Ending::panic_if(result.is_none()));
        let expected = if address == 0 {
            Ok(())
        } else if self.keeps_off(address, id) {
            Err(FreeError::Pinned { address })
        } else if self.holds(address, id) {
            self.space.free_at(address);
            Ok(())
        } else {
            Err(FreeError::NotAllocated { address })
        };
        let panicked = expected.is_ok() && self.hand_back_the_last(&mut answers);
        assert_eq!(result, (!panicked).then_some(expected), "free of {address:#x}");
        answers.end();
    }

    /// Checks a deferred free of exactly this allocation, which returns nothing.
    pub(crate) fn freed_deferred(&mut self, allocation: &Allocation, panicked: bool, calls: Vec<Call>) {
        let Allocation { address, id, .. } = *allocation;
        // The result that it would have had; its effect shows in the counters.
        let result = if self.keeps_off(address, Some(id)) {
            Err(FreeError::Pinned { address })
        } else if address == 0 || self.holds(address, Some(id)) {
            Ok(())
        } else {
            Err(FreeError::NotAllocated { address })
        };
        self.freed(address, Some(id), (!panicked).then_some(result), calls);
    }

    /// Checks a resize in place of the allocation at `address` to `bytes` bytes, with its `result`.
    pub(crate) fn resized(&mut self, address: u64, bytes: u64, result: &Result<Allocation, ResizeError>) {
        let live = self.space.chunk_at(address).and_then(|chunk| Some((chunk.size, chunk.holder?.id)));
        let expected = match live {
            _ if bytes == 0 => Err(ResizeError::ZeroBytes { address }),
            None => Err(ResizeError::NotAllocated { address }),
            Some(_) if self.pins.contains(&address) => Err(ResizeError::Pinned { address }),
            Some((size, id)) => {
                let possible = self.space.possible_at(address);
                if bytes > possible {
                    Err(ResizeError::NoRoom { address, bytes, size, possible })
                } else {
                    Ok(Allocation { address, size: bytes.div_ceil(256) * 256, requested: bytes, id })
                }
            }
        };
        assert_eq!(*result, expected, "resize of {address:#x} to {bytes} bytes");
        if expected.is_ok() {
            self.resize(address, bytes);
        }
    }

    /// Checks a pin, with its `result`.
    pub(crate) fn pinned(&mut self, allocation: &Allocation, result: Result<(), FreeError>) {
        let Allocation { address, id, .. } = *allocation;
        let holds = self.holds(address, Some(id));
        let expected = if holds || address == 0 { Ok(()) } else { Err(FreeError::NotAllocated { address }) };
        assert_eq!(result, expected, "pin of {allocation:?}");
        if holds && !self.pins.contains(&address) {
            self.pins.push(address);
        }
    }

    /// Checks an unpin.
    pub(crate) fn unpinned(&mut self, allocation: &Allocation) {
        self.pins.retain(|&address| address != allocation.address);
    }

    /// Returns whether a free at `address` (only number `id`, if given) fails because of a pin.
    fn keeps_off(&self, address: u64, id: Option<u64>) -> bool {
        self.pins.contains(&address) && self.holds(address, id)
    }

    /// Checks a trim with its released bytes; `None` if the source panicked.
    pub(crate) fn trimmed(&mut self, released: Option<u64>, calls: Vec<Call>) {
        let mut answers = Answers::new(calls, Ending::panic_if(released.is_none()));
        let releasable = self.space.releasable();
        let panicked = self.release_regions(&mut answers);
        assert_eq!(released, (!panicked).then_some(releasable), "trim");
        answers.end();
    }

    /// Checks the close of the pool.
    pub(crate) fn closed(&mut self, panicked: bool, calls: Vec<Call>) {
        let mut answers = Answers::new(calls, Ending::panic_if(panicked));
        self.closed = true;
        assert_eq!(panicked, self.hand_back_the_last(&mut answers), "close");
        answers.end();
    }

    /// Checks the drop of the pool.
    pub(crate) fn dropped(mut self, panicked: bool, calls: Vec<Call>) {
        let mut answers = Answers::new(calls, Ending::panic_if(panicked));
        assert_eq!(panicked, self.release_regions(&mut answers), "drop");
        answers.end();
    }

    /// Checks a reset of the peaks.
    pub(crate) fn reset_peaks(&mut self) {
        self.peaks = self.amounts();
    }

    /// Returns whether a source that grants whatever the limit allows, or up to `capacity` bytes in total, lets the
    /// request be served.
    pub(crate) fn can_allocate(&self, bytes: u64, capacity: Option<u64>) -> bool {
        let Some(Request { needed, .. }) = Request::new(bytes, 1) else { return false };
        let fits = bytes == 0
            || self.space.best_fit(needed).is_some()
            || self.would_grow(needed, self.space.reserved(), capacity)
            || (self.rules.trim_on_oom
                && self.releasing_helps(needed)
                && self.would_grow(needed, self.space.reserved() - self.space.releasable(), capacity));
        fits && !self.closed
    }

    /// Returns whether one of the requested sizes is within the source's remaining bytes.
    fn would_grow(&self, needed: u64, reserved: u64, capacity: Option<u64>) -> bool {
        let room = self.rules.room(reserved);
        let has = capacity.map_or(u64::MAX, |capacity| capacity - reserved);
        let mut step = self.step;
        while step < u128::from(needed) {
            step *= 2;
        }
        let first = u64::try_from(step).map_or(room, |step| step.min(room));
        let less = |&asked: &u64| (asked > 0).then(|| rules::less_than(asked));
        let sizes = std::iter::successors(Some(first), less);
        needed <= room && sizes.take_while(|&asked| asked >= needed).any(|asked| asked <= has)
    }

    /// Returns all counters, summed up from the chunks.
    #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
    pub(crate) fn stats(&self) -> Stats {
        let Sums { requested, in_use, held, free, largest_free, .. } = self.space.sums();
        let reserved = self.space.reserved();
        assert_eq!(free, reserved - in_use, "chunks in use and free chunks are all there is");
        assert!(reserved <= self.rules.limit, "reserved is above the limit");
        Stats {
            requested,
            in_use,
            internal_fragmentation: in_use - requested,
            reserved,
            limit: self.rules.limit,
            free,
            thread_cached: 0,
            largest_free,
            fragmentation: if free == 0 { 0.0 } else { (free - largest_free) as f64 / free as f64 },
            peak_requested: self.peaks[0],
            peak_in_use: self.peaks[1],
            peak_reserved: self.peaks[2],
            largest_requested: self.largest_requested,
            num_allocs: self.allocs - self.set_aside + self.from_caches,
            num_from_thread_caches: self.from_caches,
            num_live: held,
            num_regions: self.space.regions().len() as u64,
            num_grants: self.grants,
            committed: reserved,
            num_commits: 0,
            num_planned: 0,
            num_refused: self.refused,
        }
    }

    /// Returns all regions and chunks.
    pub(crate) fn snapshot(&self) -> Snapshot {
        Snapshot { name: self.name.clone(), stats: self.stats(), regions: self.space.snapshot() }
    }

    fn amounts(&self) -> [u64; 3] {
        let Sums { requested, in_use, .. } = self.space.sums();
        [requested, in_use, self.space.reserved()]
    }

    fn raise_peaks(&mut self) {
        let now = self.amounts();
        for (peak, now) in self.peaks.iter_mut().zip(now) {
            *peak = now.max(*peak);
        }
    }

    fn releasing_helps(&self, needed: u64) -> bool {
        let releasable = self.space.releasable();
        releasable > 0 && needed <= self.rules.limit - self.space.reserved() + releasable
    }

    /// Returns whether the allocation at `address` is live, with number `id` if given.
    fn holds(&self, address: u64, id: Option<u64>) -> bool {
        let holder = self.space.chunk_at(address).and_then(|chunk| chunk.holder);
        holder.is_some_and(|holder| id.is_none_or(|id| id == holder.id))
    }

    /// Checks the release of every wholly free region; returns whether the source panicked.
    fn release_regions(&mut self, answers: &mut Answers) -> bool {
        // After a panic, the others are still released.
        self.space.give_up().into_iter().fold(false, |_, region| answers.handed_back(region))
    }

    /// Checks that a closed pool keeps nothing after its last free.
    fn hand_back_the_last(&mut self, answers: &mut Answers) -> bool {
        self.closed && self.space.held().next().is_none() && self.release_regions(answers)
    }
}
