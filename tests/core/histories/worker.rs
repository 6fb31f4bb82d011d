//! A thread of a history: random calls, each recorded with its times and its result.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Barrier;

use allotment::bindings::PoolForBindings as _;
use allotment::{AllocError, Allocation, FreeError, Maker, Pool, Request, Unusable, set_tag};

use crate::event::{AllocateWay, Answer, Call, Event, FreeWay, Freed, Tag};
use crate::numbers::Numbers;
use crate::shared::{Mine, Shared};

/// A thread of a history.
pub(crate) struct Worker<'a> {
    pub(crate) shared: &'a Shared<'a>,
    pub(crate) random: Numbers,
    live: Vec<Mine>,
    pub(crate) tag: Tag,
    events: Vec<Event>,
}

/// What a thread leaves behind.
pub(crate) struct Record {
    /// The number of the thread: see [`Maker::thread`].
    pub(crate) thread: u64,
    pub(crate) events: Vec<Event>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(shared: &'a Shared<'a>, random: Numbers) -> Self {
        Self { shared, random, live: Vec::new(), tag: None, events: Vec::new() }
    }

    /// Makes this many calls; hands over what is live then. With a barrier, all threads rest there now and then.
    pub(crate) fn work(mut self, calls: u64, rests: Option<&Barrier>) -> Record {
        self.events.reserve(usize::try_from(calls).expect("a few"));
        Maker::yield_in_every(self.shared.setup.yields_in_every);
        let mut failure = None;
        for call in 0..calls {
            // A thread that fails comes to every rest, so that the others end.
            if failure.is_none() {
                failure = catch_unwind(AssertUnwindSafe(|| self.step())).err();
            }
            if let Some(all) = rests.filter(|_| call % self.shared.setup.rests_every == 0) {
                if failure.is_none() {
                    failure = catch_unwind(AssertUnwindSafe(|| self.leave_much_behind())).err();
                }
                if all.wait().is_leader() {
                    self.shared.rest();
                }
                all.wait();
            }
        }
        if let Some(cause) = failure {
            resume_unwind(cause);
        }
        self.shared.handed_over.lock().expect("no thread fails").append(&mut self.live);
        self.finish()
    }

    /// Ends with a free that loses its core with the lock held, or with deferred frees, which then meet a held lock.
    fn leave_much_behind(&mut self) {
        let loses = self.random.chance(50);
        let start = self.live.len() - self.live.len().min(if loses { 1 } else { 3 });
        Maker::yield_in_every(u64::from(loses));
        for mine in self.live.split_off(start) {
            let way = if loses { FreeWay::ByAllocation } else { FreeWay::Deferred };
            self.free(mine, if mine.held { FreeWay::Held } else { way });
        }
        Maker::yield_in_every(self.shared.setup.yields_in_every);
    }

    /// Closes every scope and frees all that is left.
    pub(crate) fn clean_up(mut self) -> Record {
        while self.close_scope(true) {}
        let left = std::mem::take(&mut *self.shared.handed_over.lock().expect("no thread fails"));
        for mine in left {
            self.free(mine, if mine.held { FreeWay::Held } else { FreeWay::ByAllocation });
        }
        if self.shared.setup.has_caches() {
            // Nothing is lent afterwards.
            self.snapshot();
        }
        self.finish()
    }

    fn finish(self) -> Record {
        set_tag(None);
        Record { thread: Maker::this().thread, events: self.events }
    }

    /// Makes a call and records it.
    pub(crate) fn call(&mut self, call: impl FnOnce(&Pool) -> Call) -> &Call {
        let first = Maker::this().made;
        let invoked = self.shared.clock.now();
        let call = call(self.shared.pool);
        let returned = self.shared.clock.now();
        self.events.push(Event { invoked, returned, first, made: Maker::this().made - first, call });
        &self.events.last().expect("just pushed").call
    }

    fn step(&mut self) {
        match self.random.below(1024) {
            0..380 => self.free_one(),
            380..440 => self.hand_over(),
            440..500 => self.take_over(),
            500..515 => self.resize(),
            515..535 => self.query(),
            535..550 => self.pin(),
            550..580 if self.shared.setup.scopes => self.scope(),
            580..584 => self.change(),
            _ => self.allocate(),
        }
    }

    fn allocate(&mut self) {
        if self.live.len() >= self.shared.setup.most_live {
            return self.free_one();
        }
        let bytes = self.bytes();
        let (alignment, way) = match self.random.below(16) {
            0..11 => (1, AllocateWay::Plain),
            11 | 12 => (1 << self.random.below(13), AllocateWay::Aligned),
            13 | 14 => (1 << self.random.below(13), AllocateWay::Try),
            _ => (1, AllocateWay::Held),
        };
        let tag = self.tag.clone();
        let called = self.call(|pool| {
            let served = match way {
                AllocateWay::Plain => pool.allocate(bytes).map(Some),
                AllocateWay::Aligned => {
                    pool.allocate_with_retry(Request::new(bytes).align(alignment), |_| false).map(Some)
                }
                AllocateWay::Try => pool.try_allocate(Request::new(bytes).align(alignment)),
                AllocateWay::Held => pool.allocate_held(bytes, |_| false).map(Some),
            };
            let answer = match served {
                Ok(Some(allocation)) => Answer::Served(allocation),
                Ok(None) => Answer::NotNow,
                Err(AllocError::OutOfMemory(refused)) => Answer::Refused(refused),
                Err(AllocError::Unusable(Unusable::Closed)) => Answer::Closed,
                Err(other) => panic!("{other}"),
            };
            Call::Allocate { bytes, alignment, way, tag, answer }
        });
        match called {
            Call::Allocate { answer: Answer::Served(allocation), .. } => {
                let mine = Mine { allocation: *allocation, held: way == AllocateWay::Held, shared: false };
                self.live.push(mine);
            }
            Call::Allocate { answer: Answer::Refused(_), .. } => {
                for _ in 0..self.random.below(4) {
                    self.free_one();
                }
            }
            _ => {}
        }
    }

    /// Returns sizes of all magnitudes, now and then one near the limit.
    pub(crate) fn bytes(&mut self) -> u64 {
        let limit = self.shared.setup.options.limit;
        let most = match self.random.below(64) {
            0 => limit,
            1..5 => limit / 8,
            _ => limit / 64,
        };
        let halvings = self.random.below(12);
        1 + self.random.below((most >> halvings).max(1024))
    }

    fn free_one(&mut self) {
        if self.live.is_empty() {
            return;
        }
        let which = self.random.place(self.live.len());
        let mine = self.live.swap_remove(which);
        let ways = if mine.held {
            [FreeWay::Held; 5]
        } else if mine.shared {
            [
                FreeWay::ByAllocation,
                FreeWay::Deferred,
                FreeWay::TryByAllocation,
                FreeWay::Deferred,
                FreeWay::Deferred,
            ]
        } else {
            [
                FreeWay::ByAddress,
                FreeWay::ByAllocation,
                FreeWay::TryByAddress,
                FreeWay::TryByAllocation,
                FreeWay::Deferred,
            ]
        };
        let way = ways[self.random.place(ways.len())];
        if mine.held && self.random.chance(10) {
            // Fails: it is held.
            self.free(mine, FreeWay::ByAllocation);
        }
        if self.free(mine, way) == Freed::NotNow {
            self.live.push(mine);
        }
    }

    fn free(&mut self, mine: Mine, way: FreeWay) -> Freed {
        let Mine { allocation, .. } = mine;
        let Allocation { address, id, .. } = allocation;
        let called = self.call(|pool| {
            let result = match way {
                FreeWay::ByAddress => pool.free(address).map(Some),
                FreeWay::ByAllocation => pool.free_allocation(&allocation).map(Some),
                FreeWay::TryByAddress => pool.try_free(address),
                FreeWay::TryByAllocation => pool.try_free_allocation(&allocation),
                FreeWay::Held => pool.free_held(address).map(Some),
                FreeWay::Deferred => {
                    pool.free_deferred(&allocation);
                    return Call::Free { address, id, way, answer: Freed::Unknown };
                }
            };
            let answer = match result {
                Ok(Some(())) => Freed::Done,
                Ok(None) => Freed::NotNow,
                Err(FreeError::NotAllocated { .. }) => Freed::NotAllocated,
                Err(FreeError::Pinned { .. }) => Freed::Pinned,
                Err(other) => panic!("{other}"),
            };
            Call::Free { address, id, way, answer }
        });
        let Call::Free { answer, .. } = called else { unreachable!("a free") };
        *answer
    }

    /// Gives an allocation to any thread; sometimes keeps it as well, so that two threads free it.
    fn hand_over(&mut self) {
        if let Some(mut mine) = self.live.pop() {
            if !mine.held && self.random.chance(10) {
                mine.shared = true;
                self.live.push(mine);
            }
            self.shared.handed_over.lock().expect("no thread fails").push(mine);
        }
    }

    fn take_over(&mut self) {
        let other = self.shared.handed_over.lock().expect("no thread fails").pop();
        if let Some(mine) = other {
            self.live.push(mine);
            self.free_one();
        }
    }

    fn resize(&mut self) {
        let Some(Mine { allocation, shared, .. }) = self.live.last().copied() else { return };
        // A shared one may be gone, and its address may be another thread's.
        let Allocation { address, size, .. } = allocation;
        let bytes = 1 + self.random.below(if shared { size } else { size + size / 4 });
        self.call(|pool| Call::Resize {
            address,
            bytes,
            size: pool.resize(address, bytes).ok().map(|resized| resized.size),
        });
    }

    fn pin(&mut self) {
        let Some(mine) = self.live.last().copied().filter(|mine| !mine.held) else { return };
        let Allocation { id, .. } = mine.allocation;
        let called = self.call(|pool| Call::Pin { id, done: pool.pin(&mine.allocation).is_ok() });
        let Call::Pin { done: true, .. } = called else { return };
        if self.random.chance(50) {
            let way = if mine.shared { FreeWay::ByAllocation } else { FreeWay::ByAddress };
            self.free(mine, way);
        }
        if self.random.chance(50) {
            self.free(mine, FreeWay::Deferred);
        }
        self.call(|pool| {
            pool.unpin(&mine.allocation);
            Call::Unpin { id }
        });
    }
}
