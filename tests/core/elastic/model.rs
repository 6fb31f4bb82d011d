//! The model: all live allocations, and the pages that they touch, counted one by one.
//!
//! Longer than 300 lines: each step of a random program, and the check after it, on one state.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use allotment::source::{CheckedPages, CommittedPages, Grant, RegionSource};
use allotment::{
    Action, AllocError, GRANULE, LimitError, Options, OutOfMemory, PauseError, Pool, Request, ResizeError,
    TrimError, Verdict,
};

use crate::numbers::Numbers;

/// What a run depends on.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a property of a source, by name")]
pub(crate) struct Setup {
    pub(crate) seed: u64,
    pub(crate) page_size: u64,
    pub(crate) growth: bool,
    /// The pages that the source has, if it has fewer than any limit allows.
    pub(crate) most: Option<u64>,
    /// Whether the source fails: then a request may be refused for that.
    pub(crate) fails: bool,
    /// Whether the source loses ranges: then pages there are of no use.
    pub(crate) loses: bool,
    /// Whether the source promises more than it has, and more ranges of addresses.
    pub(crate) overpromises: bool,
}

/// A pool over a checked source, and what is live in it.
pub(crate) struct Run {
    pub(crate) pool: Pool,
    pub(crate) pages: CommittedPages,
    setup: Setup,
    random: Numbers,
    /// Address to chunk size and requested bytes.
    live: BTreeMap<u64, (u64, u64)>,
    limit: u64,
    pub(crate) refused: u64,
    /// Whether the source may fail now.
    may_fail: Switch,
}

/// Turns failures of a source off for a while.
pub(crate) type Switch = Arc<AtomicBool>;

impl Run {
    pub(crate) fn new(source: impl RegionSource + 'static, setup: Setup, may_fail: &Switch) -> Self {
        let mut random = Numbers::one_of(setup.seed, setup.page_size);
        let limit = setup.page_size * (3 + random.below(60)) + random.below(setup.page_size);
        let (source, pages) = CheckedPages::new(source, setup.page_size);
        let options = Options::new(limit).elastic(true).page_size(setup.page_size).growth(setup.growth);
        let pool = Pool::new(source, options).expect("valid options");
        Self {
            pool,
            pages,
            setup,
            random,
            live: BTreeMap::new(),
            limit,
            refused: 0,
            may_fail: Arc::clone(may_fail),
        }
    }

    /// Plays random steps, then frees everything and closes the pool.
    pub(crate) fn play(mut self, steps: u64) {
        for step in 0..steps {
            self.step();
            self.check(step);
        }
        while let Some((&address, _)) = self.live.first_key_value() {
            self.pool.free(address).expect("live");
            self.live.remove(&address);
        }
        if self.setup.fails {
            return;
        }
        self.pool.close().expect("usable");
        assert_eq!((self.pages.bytes(), self.pages.ranges().len()), (0, 0), "{:?}", self.setup);
        assert!(steps < 1000 || self.refused > 0, "nothing was refused: {:?}", self.setup);
    }

    fn size(&mut self) -> u64 {
        let page = self.setup.page_size;
        match self.random.below(8) {
            0..=2 => 1 + self.random.below(page / 4),
            3 | 4 => 1 + self.random.below(page * 2),
            5 => page * (1 + self.random.below(4)),
            6 => 1 + self.random.below(page * 10),
            _ => 1 + self.random.below(self.limit + page),
        }
    }

    fn any_live(&mut self) -> Option<u64> {
        let count = self.live.len();
        (count > 0).then(|| *self.live.keys().nth(self.random.place(count)).expect("below the count"))
    }

    fn step(&mut self) {
        match self.random.below(100) {
            0..=49 => self.allocate(GRANULE),
            50..=57 => {
                let unit = if self.random.chance(50) { GRANULE } else { self.setup.page_size / 2 };
                let alignment = unit << self.random.below(6);
                self.allocate(alignment);
            }
            58..=89 => {
                if let Some(address) = self.any_live() {
                    self.pool.free(address).expect("live");
                    self.live.remove(&address);
                    self.pool.free(address).expect_err("freed twice");
                }
            }
            90..=93 => self.resize(),
            94 => {
                self.trim(Pool::trim);
                if !self.setup.fails {
                    assert_eq!(self.pages.bytes(), self.touched().len() as u64 * self.setup.page_size);
                }
            }
            95 => {
                let target = self.random.below(self.limit);
                self.trim(|pool| pool.trim_to(target));
                let least = self.touched().len() as u64 * self.setup.page_size;
                assert!(self.setup.fails || self.pages.bytes() <= target.max(least));
            }
            96 | 97 => self.set_limit(),
            98 => self.pause(),
            _ => self.pool.set_growth(self.random.chance(70)).expect("usable"),
        }
    }

    fn allocate(&mut self, alignment: u64) {
        let bytes = self.size();
        let fits = self.fits(bytes, alignment);
        let moved = self.moved();
        match self.pool.allocate(Request::new(bytes).align(alignment)) {
            Ok(allocation) => {
                let start = allocation.address;
                assert!(start.is_multiple_of(alignment));
                assert_eq!(allocation.size, bytes.next_multiple_of(GRANULE), "chunks are tight");
                let before = self.live.range(..start).next_back();
                assert!(before.is_none_or(|(&at, &(size, _))| at + size <= start), "overlap");
                let after = self.live.range(start..).next();
                assert!(after.is_none_or(|(&at, _)| start + allocation.size <= at), "overlap");
                self.live.insert(start, (allocation.size, bytes));
            }
            Err(AllocError::OutOfMemory(refused)) => {
                self.refused += 1;
                self.judge(&refused, bytes, alignment, fits);
                if !self.setup.fails {
                    assert_eq!(self.moved(), moved, "a page moved in vain: {refused}");
                    self.follow_advice(refused, alignment);
                }
            }
            Err(other) => assert!(self.setup.fails, "{other}"),
        }
    }

    fn judge(&self, refused: &OutOfMemory, bytes: u64, alignment: u64, fits: bool) {
        let Setup { fails, loses, overpromises, page_size, most, .. } = self.setup;
        let verdict = refused.verdict;
        let by_source = verdict == Verdict::Source;
        assert!(!by_source || fails || most.is_some(), "no source refused: {refused}");
        if !(by_source && (fails || overpromises)) && !loses {
            assert!(!fits, "{bytes} bytes fit: {refused}");
        }
        let is_served = || self.pool.can_allocate(bytes).expect("usable");
        assert!(fails || overpromises || alignment > GRANULE || !is_served());
        let size = bytes.next_multiple_of(GRANULE);
        let is_above = size.next_multiple_of(page_size) > self.limit / page_size * page_size;
        assert_eq!(verdict == Verdict::Limit, is_above, "{refused}");
        if !by_source && !is_above {
            let in_use = self.live.values().map(|(size, _)| size).sum::<u64>();
            let is_full = in_use + size > self.limit / page_size * page_size;
            let expected = if is_full { Verdict::Full } else { Verdict::Fragmented };
            assert_eq!(verdict, expected, "{refused}");
            assert!(is_full || refused.free > 0 || fails, "{refused}");
        }
    }

    /// Follows each piece of advice for a refused request, which must be served then.
    fn follow_advice(&mut self, mut refused: Box<OutOfMemory>, alignment: u64) {
        let bytes = refused.requested;
        self.pool.add_details(&mut refused).expect("usable");
        if self.setup.overpromises && refused.verdict != Verdict::Source {
            // The pool does not know yet what it was promised in vain.
            return;
        }
        self.expect_advice(&refused);
        for advice in &refused.advice {
            let asked = match advice.action {
                Action::RaiseLimit => {
                    self.pool.set_limit(advice.bytes, false, "advice").expect("a higher limit");
                    bytes
                }
                Action::AskFor => advice.bytes,
                Action::Free => {
                    let snapshot = self.pool.snapshot().expect("usable");
                    let chunks = snapshot.regions.iter().flat_map(|region| &region.chunks);
                    for chunk in chunks.filter(|chunk| advice.allocations.contains(&chunk.id)) {
                        self.pool.free(chunk.address).expect("live");
                        self.live.remove(&chunk.address);
                    }
                    bytes
                }
                other => panic!("{other:?} is no advice for an elastic pool"),
            };
            if self.setup.overpromises && advice.needs_grant {
                continue;
            }
            let served = self.pool.allocate(Request::new(asked).align(alignment));
            let served = served.unwrap_or_else(|error| panic!("{advice}: {error}"));
            self.pool.free(served.address).expect("live");
            if advice.action == Action::RaiseLimit {
                // Frees made room for the old limit, or pages stay; the model goes on with what holds.
                let back = self.pool.set_limit(self.limit, true, "a test").is_ok();
                self.limit = if back { self.limit } else { advice.bytes };
            }
        }
    }

    /// There is advice whenever a change helps, and its numbers are the best ones where it says so.
    fn expect_advice(&self, refused: &OutOfMemory) {
        let (page, size) = (self.setup.page_size, refused.requested.next_multiple_of(GRANULE));
        let alignment = GRANULE + refused.needed - size;
        let find = |action| refused.advice.iter().find(|advice| advice.action == action);
        let touched = self.touched().len() as u64;
        if self.setup.overpromises {
            // What the pool holds serves, whatever the source declines.
            let held = refused.reserved / page;
            let ask_helps = self.fits_in(held - touched, 1, alignment, false) && size > GRANULE;
            assert!(!ask_helps || find(Action::AskFor).is_some(), "{refused}");
            let is_long = |range: Grant| range.bytes >= refused.needed;
            let frees_help = size.div_ceil(page) <= held && self.live.len() <= 256;
            let frees_help = frees_help && self.pages.ranges().into_iter().any(is_long);
            assert!(!frees_help || find(Action::Free).is_some(), "{refused}");
        } else {
            // With everything free a new range serves it.
            let most = (self.limit / page).min(self.setup.most.unwrap_or(u64::MAX));
            let frees_help = size.div_ceil(page) <= most && self.live.len() <= 256;
            assert!(!frees_help || find(Action::Free).is_some(), "{refused}");
            let ask_helps = self.fits(1, alignment) && size > GRANULE;
            assert!(!ask_helps || find(Action::AskFor).is_some(), "{refused}");
        }
        if let Some(ask) = find(Action::AskFor).filter(|advice| advice.exact) {
            assert!(!self.fits(ask.bytes + 1, alignment), "{ask}: {refused}");
        }
        if let Some(raise) = find(Action::RaiseLimit).filter(|advice| advice.exact) {
            let room = (raise.bytes / page - touched).checked_sub(1);
            let fits = room.is_some_and(|room| self.fits_in(room, size, alignment, true));
            assert!(!fits, "{raise}: {refused}");
        }
    }

    /// The numbers of all touched pages.
    fn touched(&self) -> BTreeSet<u64> {
        let page = self.setup.page_size;
        let of = |(&start, &(size, _)): (&u64, &(u64, u64))| start / page..(start + size).div_ceil(page);
        self.live.iter().flat_map(of).collect()
    }

    /// A number that rises with each page that moves, and with each that the source gives and gets back.
    fn moved(&self) -> u64 {
        let stats = self.pool.stats().expect("usable");
        stats.num_commits - stats.committed / self.setup.page_size
    }

    /// Returns whether some place for a request touches few enough new pages.
    fn fits(&self, bytes: u64, alignment: u64) -> bool {
        let most = (self.limit / self.setup.page_size).min(self.setup.most.unwrap_or(u64::MAX));
        let room = most.saturating_sub(self.touched().len() as u64);
        self.fits_in(room, bytes, alignment, true)
    }

    /// Returns whether some place touches at most `room` new pages: in a new range, if there may be one, or in a gap
    /// between two allocations at one of its ends.
    fn fits_in(&self, room: u64, bytes: u64, alignment: u64, has_ranges: bool) -> bool {
        let (page, size) = (self.setup.page_size, bytes.next_multiple_of(GRANULE));
        let touched = self.touched();
        if has_ranges && size.div_ceil(page) <= room {
            return true;
        }
        let new_pages = |start: u64| {
            let pages = start / page..(start + size).div_ceil(page);
            pages.filter(|number| !touched.contains(number)).count() as u64
        };
        self.pages.ranges().into_iter().any(|range: Grant| {
            let live = self.live.range(range.address..range.end());
            let mut at = range.address;
            let mut gaps = Vec::new();
            for (&start, &(length, _)) in live {
                gaps.push((at, start));
                at = start + length;
            }
            gaps.push((at, range.end()));
            gaps.into_iter().any(|(start, end)| {
                let Some(last) = end.checked_sub(size) else { return false };
                let starts = [start.next_multiple_of(alignment), last / alignment * alignment];
                starts.into_iter().any(|at| start <= at && at <= last && new_pages(at) <= room)
            })
        })
    }

    fn resize(&mut self) {
        let Some(address) = self.any_live() else { return };
        let (size, _) = self.live[&address];
        let bytes = if self.random.chance(50) { 1 + self.random.below(size) } else { self.size() };
        match self.pool.resize(address, bytes) {
            Ok(resized) => {
                assert_eq!(resized.size, bytes.next_multiple_of(GRANULE));
                self.live.insert(address, (resized.size, bytes));
                let after = self.live.range(address + 1..).next();
                assert!(after.is_none_or(|(&at, _)| address + resized.size <= at), "overlap");
            }
            Err(ResizeError::NoRoom { size: has, possible, .. }) => {
                assert_eq!(has, size);
                assert!(possible < bytes.next_multiple_of(GRANULE) && possible >= size);
            }
            Err(other) => panic!("{other}"),
        }
    }

    /// Trims the pool: what is released is gone, and only failures of the source are errors.
    fn trim(&self, trim: impl FnOnce(&Pool) -> Result<u64, TrimError>) {
        let before = self.pages.bytes();
        let released = trim(&self.pool).unwrap_or_else(|error| {
            assert!(self.setup.fails, "{error}");
            error.released()
        });
        assert_eq!(before - self.pages.bytes(), released);
    }

    fn set_limit(&mut self) {
        let page = self.setup.page_size;
        let limit = page * (1 + self.random.below(90)) + self.random.below(page);
        let trim = self.random.chance(60);
        let least = self.touched().len() as u64 * page;
        match self.pool.set_limit(limit, trim, "a test") {
            Ok(_) => self.limit = limit,
            Err(LimitError::BelowReserved { reserved, .. }) => {
                assert!(reserved > limit);
                assert!(self.setup.fails || !trim || least > limit, "a trim would do");
            }
            Err(LimitError::SourceFailed { reserved, .. }) => {
                assert!(self.setup.fails && trim && least <= limit && reserved > limit);
                assert_eq!(self.pages.bytes(), reserved);
            }
            Err(other) => panic!("{other}"),
        }
    }

    fn pause(&mut self) {
        let Ok(_) = self.pool.pause(allotment::PausedContent::Discard) else {
            assert!(self.setup.fails, "nothing failed");
            // A source that fails to return what it took leaves the pool paused.
            if self.pool.is_paused().expect("usable") {
                self.resume();
            }
            return;
        };
        assert!(self.pool.allocate(1).is_err());
        if self.random.chance(50)
            && let Some(address) = self.any_live()
        {
            self.pool.free(address).expect("a free is taken");
            self.live.remove(&address);
        }
        self.pool.check().expect("sound while paused");
        self.resume();
    }

    fn resume(&mut self) {
        for _ in 0..3 {
            match self.pool.resume() {
                Ok(_) => return,
                Err(PauseError::AddressesLost) => return self.resume_empty(),
                Err(error) => assert!(self.setup.fails, "{error}"),
            }
            self.pool.check().expect("still paused");
        }
        self.may_fail.store(false, Ordering::Relaxed);
        match self.pool.resume() {
            Ok(_) => {}
            Err(PauseError::AddressesLost) => self.resume_empty(),
            Err(other) => panic!("nothing fails now: {other}"),
        }
        self.may_fail.store(true, Ordering::Relaxed);
    }

    /// Frees all allocations of a paused pool, so that no page needs an address that the source lost, and resumes it.
    fn resume_empty(&mut self) {
        assert!(self.setup.loses);
        for (address, _) in std::mem::take(&mut self.live) {
            self.pool.free(address).expect("a free is taken");
        }
        self.pool.resume().expect("no page is wanted");
    }

    fn check(&self, step: u64) {
        let place = || format!("step {step} of {:?}", self.setup);
        self.pool.check().unwrap_or_else(|broken| panic!("{}: {broken:?}", place()));
        let stats = self.pool.stats().expect("usable");
        assert!(stats.reserved <= self.limit, "{}", place());
        assert_eq!(stats.in_use, self.live.values().map(|(size, _)| size).sum::<u64>(), "{}", place());
        assert_eq!(stats.requested, self.live.values().map(|(_, bytes)| bytes).sum::<u64>(), "{}", place());
        if step.is_multiple_of(8) && !self.setup.fails {
            let held = stats.reserved / self.setup.page_size - self.touched().len() as u64;
            let (largest, next) = (stats.largest_free, stats.largest_free + GRANULE);
            assert!(largest <= stats.free, "{}", place());
            assert!(largest == 0 || self.fits_in(held, largest, GRANULE, false), "{}", place());
            assert!(!self.fits_in(held, next, GRANULE, false), "{}", place());
        }
        // A source that fails to take memory back, or to return it, keeps it or loses it; the pool knows that.
        assert_eq!(stats.reserved, self.pages.bytes(), "{}", place());
        for (&address, &(size, _)) in &self.live {
            let page = self.setup.page_size;
            let (first, end) = (address / page * page, (address + size).next_multiple_of(page));
            assert!(self.pages.covers(Grant { address: first, bytes: end - first }), "{}", place());
        }
    }
}
