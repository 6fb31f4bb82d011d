//! The judge: replays the decisions in their order, and finds a moment for each call that decided nothing.

use std::cell::Cell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use allotment::Options;
use allotment::source::Call as SourceCall;

use crate::event::{Answer, Call, Freed, Key};
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
            frees: 0,
            is_capped: matches!(setup.kind, Kind::Capped(_)),
            at,
        }
    }

    fn replay(&mut self) {
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
        let freed = |id: u64| !self.known[usize::try_from(id).expect("a few")].live;
        for (at, event) in self.order.events.iter().enumerate() {
            let progress = self.progress.get(&at);
            let done = progress.is_some_and(|progress| progress.done);
            let removed = progress.and_then(|progress| progress.removed);
            let right = match &event.call {
                Call::Allocate { answer: Answer::Served(allocation), .. } => {
                    allocation.id < self.known.len() as u64
                }
                Call::Allocate { answer: Answer::Refused(_), .. } | Call::SetGrowth { .. } => done,
                Call::Free { id, answer: Freed::Done, .. } => freed(*id),
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
