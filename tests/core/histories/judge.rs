//! The judge: replays the decisions in their order, and finds a moment for each call that decided nothing.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};

use allotment::source::Call as SourceCall;
use allotment::{Decision, Options};

use crate::event::{Answer, Call, Event, FreeWay, Freed, Key};
use crate::lending::Lending;
use crate::order::{Order, Window, is_silent};
use crate::owners::{Owner, Owners};
use crate::setup::{Kind, Setup};
use crate::shadow::{Round, Shadow};

/// An allocation of the history.
#[derive(Debug, Clone)]
pub(crate) struct Known {
    pub(crate) address: u64,
    pub(crate) requested: u64,
    pub(crate) live: bool,
    pub(crate) held: bool,
    pub(crate) owner: Option<Owner>,
}

/// What a call has done that took several decisions.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Whether the source declined every size of a round.
    pub(crate) declined: bool,
    /// Whether regions were removed, or their removal would not have helped at some moment.
    pub(crate) removal_tried: bool,
    pub(crate) removed: Option<u64>,
    /// The owner that the request counts for, until it is served or refused.
    pub(crate) owner: Option<Owner>,
    /// Whether the call's own decision was found.
    pub(crate) done: bool,
}

/// A round of growth, and the request that it is for.
pub(crate) struct Growing {
    pub(crate) round: Round,
    pub(crate) event: usize,
}

/// A replay.
pub(crate) struct Judge<'a> {
    pub(crate) order: &'a Order,
    pub(crate) calls: std::vec::IntoIter<SourceCall>,
    pub(crate) shadow: Shadow,
    pub(crate) options: Options,
    /// By number; the first is that of zero bytes.
    pub(crate) known: Vec<Known>,
    pub(crate) owners: Owners,
    pub(crate) keys: HashMap<u64, Key>,
    pub(crate) progress: HashMap<usize, Progress>,
    pub(crate) growing: Option<Growing>,
    /// What is lent to thread caches.
    pub(crate) lending: Lending,
    /// The event that freed each allocation.
    pub(crate) freed_in: HashMap<u64, usize>,
    /// The event that allocated each allocation from a cache.
    pub(crate) served_in: HashMap<u64, usize>,
    /// The event that closed each scope.
    pub(crate) closed_in: HashMap<Key, usize>,
    /// Allocations that were held at some moment.
    pub(crate) were_held: HashSet<u64>,
    /// The allocation from a cache that was at the address of a resize.
    pub(crate) resized: HashMap<usize, u64>,
    /// The number of frees so far.
    pub(crate) frees: u64,
    /// Whether the source grants no more than a number of bytes.
    pub(crate) is_capped: bool,
    /// The number of decisions before this moment.
    at: &'a Cell<usize>,
}

/// A call without a decision of its own, and when it can have happened.
struct Pending {
    event: usize,
    window: Window,
}

/// Checks a history; returns the shadow at its end.
///
/// # Panics
/// If no order explains it; the message shows where.
pub(crate) fn judge(order: &Order, calls: Vec<SourceCall>, setup: &Setup, joins: bool) -> Shadow {
    let at = Cell::new(0);
    let judged = catch_unwind(AssertUnwindSafe(|| {
        let mut judge = Judge::new(order, calls, setup, joins, &at);
        judge.replay();
        judge.end()
    }));
    judged.unwrap_or_else(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("?");
        panic!("{text}\nat decision {} of {setup:?}:\n{}", at.get(), order.print(at.get(), 12, 6));
    })
}

impl<'a> Judge<'a> {
    fn new(
        order: &'a Order,
        calls: Vec<SourceCall>,
        setup: &Setup,
        joins: bool,
        at: &'a Cell<usize>,
    ) -> Self {
        let zero = Known { address: 0, requested: 0, live: false, held: false, owner: None };
        Self {
            order,
            calls: calls.into_iter(),
            shadow: Shadow::new(&setup.options, joins),
            options: setup.options.clone(),
            known: vec![zero],
            owners: Owners::new(setup.options.owner_tags),
            keys: HashMap::new(),
            progress: HashMap::new(),
            growing: None,
            lending: Lending::default(),
            freed_in: HashMap::new(),
            served_in: HashMap::new(),
            closed_in: HashMap::new(),
            were_held: HashSet::new(),
            resized: HashMap::new(),
            frees: 0,
            is_capped: matches!(setup.kind, Kind::Capped(_)),
            at,
        }
    }

    fn replay(&mut self) {
        if self.order.has_caches { self.replay_with_caches() } else { self.replay_in_windows() }
    }

    /// Replays all decisions. A call without a decision of its own must fit the state at a moment when it has the lock.
    fn replay_with_caches(&mut self) {
        let order = self.order;
        let mut open: Vec<bool> = (0..order.events.len())
            .map(|event| is_silent(&order.events[event].call) && !self.is_excused(event))
            .collect();
        for at in 0..order.decisions.len() {
            self.at.set(at);
            self.decide(at);
            let event = order.run_in[at];
            if open[event] && self.lock_is_held(at) && self.explains(event) {
                open[event] = false;
            }
        }
        for event in (0..order.events.len()).filter(|&event| open[event]) {
            let explained = self.comes_too_late(event) || self.comes_too_early(event);
            assert!(explained, "no moment explains {:?}", order.events[event]);
        }
    }

    /// Returns whether the thread of a decision has the lock of the pool.
    fn lock_is_held(&self, at: usize) -> bool {
        !matches!(
            self.order.decisions[at].decision,
            Decision::CacheServed { .. } | Decision::CacheFreed { .. }
        )
    }

    /// Returns whether a call finds an allocation freed, or a scope closed. Which of the calls on it came first shows in
    /// the times alone: a cache frees without the lock, and a deferred call has no moment of its own.
    fn comes_too_late(&self, event: usize) -> bool {
        let Event { returned, call, .. } = &self.order.events[event];
        let began_in_time = |other: &usize| self.order.events[*other].invoked <= *returned;
        if let Call::CloseScopeDeferred { key } = call {
            return self.closed_in.get(key).is_some_and(began_in_time);
        }
        let (id, may_be_held) = match call {
            Call::Free { id, answer: Freed::NotAllocated, .. } | Call::Pin { id, .. } => (*id, false),
            Call::Free { id, way: FreeWay::Deferred, .. } => (*id, true),
            Call::Resize { address, .. } => match self.resized.get(&event) {
                Some(&id) => (id, false),
                None => panic!("{address:#x} was in use, and had room"),
            },
            _ => return false,
        };
        self.freed_in.get(&id).is_some_and(began_in_time) || may_be_held && self.were_held.contains(&id)
    }

    /// Returns whether a resize may have found the chunk at its address before a cache served it: the caches serve
    /// without the lock.
    fn comes_too_early(&self, event: usize) -> bool {
        let Event { invoked, call: Call::Resize { .. }, .. } = &self.order.events[event] else {
            return false;
        };
        let served_in = self.resized.get(&event).and_then(|id| self.served_in.get(id));
        served_in.is_some_and(|&other| self.order.events[other].returned >= *invoked)
    }

    pub(crate) fn known_mut(&mut self, id: u64) -> &mut Known {
        let place = usize::try_from(id).expect("a few");
        if self.known.len() <= place {
            let unknown = Known { address: 0, requested: 0, live: false, held: false, owner: None };
            self.known.resize(place + 1, unknown);
        }
        &mut self.known[place]
    }

    /// Returns whether the allocator has made an allocation with this number.
    pub(crate) fn has_known(&self, id: u64) -> bool {
        let known = usize::try_from(id).ok().and_then(|place| self.known.get(place));
        known.is_some_and(|known| known.address != 0)
    }

    fn replay_in_windows(&mut self) {
        let order = self.order;
        let mut silent: Vec<Pending> = (0..order.events.len())
            .filter(|&event| is_silent(&order.events[event].call) && !self.is_excused(event))
            .map(|event| Pending { event, window: order.window(&order.events[event]) })
            .collect();
        silent.sort_by_key(|pending| std::cmp::Reverse(pending.window.first));
        let mut open: Vec<Pending> = Vec::new();
        for at in 0..=order.decisions.len() {
            self.at.set(at);
            while let Some(next) = silent.pop_if(|next| next.window.first <= at) {
                open.push(next);
            }
            if at == 0 || order.is_visible(at - 1) {
                open.retain(|pending| !self.explains(pending.event));
            }
            let missed = open.iter().find(|pending| pending.window.last <= at);
            assert!(
                missed.is_none(),
                "no moment explains {:?}, from decision {} to here",
                missed.map(|pending| &order.events[pending.event]),
                missed.map_or(0, |pending| pending.window.first)
            );
            if at < order.decisions.len() {
                self.decide(at);
            }
        }
    }

    /// Returns whether a call that did not wait needs no other reason: another thread was there.
    fn is_excused(&self, event: usize) -> bool {
        let not_now = match &self.order.events[event].call {
            Call::Allocate { answer, .. } => matches!(answer, Answer::NotNow),
            Call::Free { answer, .. } => *answer == Freed::NotNow,
            _ => false,
        };
        not_now && self.order.has_company(event)
    }

    /// Checks that the source declined every size of a round that ended without a region.
    pub(crate) fn end_round(&mut self) {
        let Some(Growing { mut round, event }) = self.growing.take() else { return };
        while let Some(bytes) = round.next_size() {
            let call = self.calls.next();
            assert_eq!(call, Some(SourceCall::Reserve { bytes, answer: None }), "the source declines this");
        }
        self.progress.entry(event).or_default().declined = true;
    }

    /// Returns whether the last round of growth was for a request, and the source declined every size of it.
    pub(crate) fn is_declined(&self, event: usize) -> bool {
        let now = self.growing.as_ref().is_some_and(|growing| growing.event == event);
        now || self.progress.get(&event).is_some_and(|progress| progress.declined)
    }

    /// Checks that each call has done what it returned.
    fn end(mut self) -> Shadow {
        self.end_round();
        assert_eq!(self.calls.next(), None, "the source is not called again");
        let is_live = |id: u64| {
            self.lending.served.contains_key(&id)
                || self.known.get(usize::try_from(id).expect("a few")).is_some_and(|known| known.live)
        };
        let was_made = |id: u64| self.has_known(id) || self.freed_in.contains_key(&id) || is_live(id);
        for (at, event) in self.order.events.iter().enumerate() {
            let progress = self.progress.get(&at);
            let done = progress.is_some_and(|progress| progress.done);
            let removed = progress.and_then(|progress| progress.removed);
            let right = match &event.call {
                Call::Allocate { answer: Answer::Served(allocation), .. } => was_made(allocation.id),
                Call::Allocate { answer: Answer::Refused(_), .. } | Call::SetGrowth { .. } => done,
                Call::Free { id, answer: Freed::Done, .. } => !is_live(*id),
                Call::Trim { released } => removed == Some(*released),
                Call::SetLimit { released: Ok(released), .. } => done && removed.unwrap_or(0) == *released,
                Call::ResetPeaks
                | Call::Close
                | Call::OpenScope { .. }
                | Call::Resize { size: Some(_), .. }
                | Call::Pin { done: true, .. } => event.made >= 1,
                _ => true,
            };
            assert!(right, "no decision of {event:?}");
        }
        self.shadow
    }
}
