//! The order of the decisions, and the moments at which each call can have happened in it.
//!
//! Longer than 300 lines: how a decision is assigned to its call decides which moments the call has.

use std::collections::HashMap;

use allotment::{Decided, Decision};

use crate::event::{AllocateWay, Answer, Call, Event, FreeWay, Freed, Key};
use crate::merge;
use crate::shared::{Rest, Rests};
use crate::worker::Record;

/// A decision of no call: a closed pool gives its last regions back in whichever call comes to it.
pub(crate) const NO_CALL: usize = usize::MAX;

/// The calls of a history, and which of them made each decision.
pub(crate) struct Order {
    pub(crate) decisions: Vec<Decided>,
    /// When no thread was in a call.
    pub(crate) rests: Vec<Rest>,
    /// All events, thread by thread.
    pub(crate) events: Vec<Event>,
    /// The index of the first event of each thread, and the number of the thread.
    threads: Vec<(usize, u64)>,
    /// For each decision, the index of its event.
    pub(crate) event_of: Vec<usize>,
    /// For each decision, the index of the event in which its thread ran it.
    pub(crate) run_in: Vec<usize>,
    /// Whether thread caches made some of the decisions.
    pub(crate) has_caches: bool,
    /// The time in which a released lock is seen to be free by other processors, in ticks of the clock.
    release_delay: u64,
    /// For each decision, the latest start of a call among it and those before.
    latest_start: Vec<u64>,
    /// For each decision, the earliest end of a call among it and those after.
    earliest_end: Vec<u64>,
}

/// The moments at which a call can have happened: after `first` to `last` decisions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

impl Order {
    /// Assigns each decision to its call.
    ///
    /// # Panics
    /// If a decision has no call, or if a call began after another one had ended and was decided before it.
    pub(crate) fn new(
        rests: Rests,
        records: Vec<Record>,
        caches: Option<Vec<(u64, Vec<Decided>)>>,
        release_delay: u64,
    ) -> Self {
        let Rests { decisions, moments: rests } = rests;
        let mut events = Vec::with_capacity(records.iter().map(|record| record.events.len()).sum());
        let mut threads = Vec::new();
        for record in records {
            threads.push((events.len(), record.thread));
            events.extend(record.events);
        }
        let has_caches = caches.is_some();
        let calls = Calls::new(&events, &threads);
        let mut record = calls.assign(decisions);
        if let Some(caches) = caches {
            let caches = caches.into_iter().map(|(cache, own)| (cache, calls.assign(own))).collect();
            record = merge::merge(record, caches, |record, at| calls.times(record, at));
        }
        let merge::Record { decisions, event_of, run_in } = record;
        let (latest_start, earliest_end) = (Vec::new(), Vec::new());
        let mut order = Self {
            decisions,
            rests,
            events,
            threads,
            event_of,
            run_in,
            has_caches,
            release_delay,
            latest_start,
            earliest_end,
        };
        // The merge has checked it.
        if !has_caches {
            order.check_time();
        }
        order
    }

    /// Returns the start and the end of the call of a decision. A deferred free may run after its end: another rule
    /// limits that.
    fn times(&self, at: usize) -> (u64, u64) {
        match self.event_of[at] {
            NO_CALL => (0, u64::MAX),
            event => {
                let Event { invoked, returned, call, .. } = &self.events[event];
                (*invoked, if is_deferred(call) { u64::MAX } else { *returned })
            }
        }
    }

    fn check_time(&mut self) {
        let mut latest = (0, 0);
        for at in 0..self.decisions.len() {
            let (start, end) = self.times(at);
            assert!(
                end >= latest.0,
                "{:?} of {:?} comes after {:?} of {:?}, which began after it had ended",
                self.decisions[at],
                self.events[self.event_of[at]],
                self.decisions[latest.1],
                self.events[self.event_of[latest.1]],
            );
            latest = latest.max((start, at));
            self.latest_start.push(latest.0);
        }
        self.earliest_end = vec![u64::MAX; self.decisions.len()];
        let mut earliest = u64::MAX;
        for at in (0..self.decisions.len()).rev() {
            earliest = earliest.min(self.times(at).1);
            self.earliest_end[at] = earliest;
        }
    }

    /// Returns the moments at which a call can have happened. The last one comes before the first decision of a call
    /// that began after it had ended, and before the next rest.
    pub(crate) fn window(&self, event: &Event) -> Window {
        let last = self.latest_start.partition_point(|&start| start <= event.returned);
        let rest = self.rests.partition_point(|rest| rest.time <= event.returned);
        Window {
            first: self.earliest_end.partition_point(|&end| end < event.invoked),
            last: self.rests.get(rest).map_or(last, |rest| rest.decisions.min(last)),
        }
    }

    /// Returns whether the lock is released between a decision and the next one, as far as is known.
    pub(crate) fn is_visible(&self, at: usize) -> bool {
        let Some(next) = self.decisions.get(at + 1) else { return true };
        let continues = matches!(
            (self.decisions[at].decision, next.decision),
            (Decision::Adopted(_), Decision::Allocated(_))
                | (Decision::RegionsRemoved, Decision::Changed { .. })
                | (Decision::Emptied, Decision::RegionsRemoved)
                | (Decision::Allocated(_), Decision::Held { .. })
        );
        !(continues && self.event_of[at] == self.event_of[at + 1])
    }

    /// Returns the number of the thread of an event.
    pub(crate) fn thread_of(&self, event: usize) -> u64 {
        self.threads[self.threads.partition_point(|&(first, _)| first <= event) - 1].1
    }

    /// Returns whether another thread was in a call while an event lasted, or just before: a release is a plain store,
    /// and other processors see it a little later.
    pub(crate) fn has_company(&self, event: usize) -> bool {
        let Event { invoked, returned, .. } = self.events[event];
        let mut threads = self.threads.iter().enumerate();
        threads.any(|(at, &(first, _))| {
            let end = self.threads.get(at + 1).map_or(self.events.len(), |&(next, _)| next);
            let events = &self.events[first..end];
            let other = !(first..end).contains(&event);
            // The last call of that thread that began before this one ended.
            let began = events.partition_point(|other| other.invoked <= returned);
            other && began > 0 && events[began - 1].returned + self.release_delay >= invoked
        })
    }

    /// Prints the decisions around a place, and the calls that can have happened there.
    pub(crate) fn print(&self, at: usize, before: usize, after: usize) -> String {
        let range = at.saturating_sub(before)..(at + after).min(self.decisions.len());
        let lines = range.map(|place| {
            let Decided { thread, decision, .. } = self.decisions[place];
            let mark = if place == at { ">" } else { " " };
            let event = self.event_of[place];
            let event = if event == NO_CALL { String::new() } else { format!("{:?}", self.events[event]) };
            format!("{mark} {place} thread {thread}: {decision:?} of {event}\n")
        });
        lines.collect()
    }
}

pub(crate) fn is_deferred(call: &Call) -> bool {
    matches!(call, Call::Free { way: FreeWay::Deferred, .. } | Call::CloseScopeDeferred { .. })
}

/// The calls that made decisions which carry a number, and what threads ran.
struct Calls<'a> {
    events: &'a [Event],
    threads: &'a [(usize, u64)],
    indices: HashMap<u64, usize>,
    /// By the number of the allocation: numbers count up from 1.
    allocated: Vec<usize>,
    freed: Vec<usize>,
    closed: HashMap<Key, usize>,
    /// The time at which an allocation is free at the latest, as calls promise that have returned then.
    freed_by: HashMap<u64, u64>,
}

fn place(id: u64) -> usize {
    usize::try_from(id).expect("a few")
}

/// Notes the event of a number; returns the one before.
fn note(calls: &mut Vec<usize>, id: u64, event: usize) -> usize {
    if calls.len() <= place(id) {
        calls.resize(place(id) + 1, NO_CALL);
    }
    std::mem::replace(&mut calls[place(id)], event)
}

impl<'a> Calls<'a> {
    fn new(events: &'a [Event], threads: &'a [(usize, u64)]) -> Self {
        let indices = threads.iter().enumerate().map(|(index, &(_, thread))| (thread, index)).collect();
        let capacity = events.len() + 1;
        let mut calls = Self {
            events,
            threads,
            indices,
            allocated: Vec::with_capacity(capacity),
            freed: Vec::with_capacity(capacity),
            closed: HashMap::new(),
            freed_by: HashMap::new(),
        };
        let mut pinned = Vec::new();
        for (at, event) in events.iter().enumerate() {
            calls.add(at, event);
            if let Call::Pin { id, .. } = event.call {
                pinned.push(id);
            }
        }
        for id in pinned {
            // A deferred free has no effect on it while it is held.
            calls.freed_by.remove(&id);
        }
        calls
    }

    fn add(&mut self, at: usize, event: &Event) {
        let events = self.events;
        match &event.call {
            Call::Allocate { answer: Answer::Served(allocation), .. } => {
                let before = note(&mut self.allocated, allocation.id, at);
                assert_eq!(before, NO_CALL, "two calls made allocation {}", allocation.id);
            }
            // A call that says that it freed did so; else the earliest that may have done it.
            Call::Free { id, answer: Freed::Done, .. } => {
                let before = note(&mut self.freed, *id, at);
                let again = before != NO_CALL && !is_deferred(&events[before].call);
                assert!(!again, "two calls freed allocation {id}");
            }
            Call::Free { id, way: FreeWay::Deferred, .. } => {
                let before = note(&mut self.freed, *id, at);
                if before != NO_CALL {
                    self.freed[place(*id)] = before;
                }
                earlier(events, &mut self.freed[place(*id)], at);
                let promised = self.freed_by.entry(*id).or_insert(u64::MAX);
                *promised = event.returned.min(*promised);
            }
            Call::CloseScope { key, figures: Some(_) } => {
                self.closed.insert(*key, at);
            }
            Call::CloseScopeDeferred { key } => earlier(events, self.closed.entry(*key).or_insert(at), at),
            _ => {}
        }
    }

    /// Assigns each decision of a record to its call. Allocations and frees are found by their number, closed scopes by
    /// the number of the scope, and the others by their thread, which counts its decisions.
    fn assign(&self, decisions: Vec<Decided>) -> merge::Record {
        // The index of the event that each thread is in.
        let mut at_work: Vec<usize> = self.threads.iter().map(|&(first, _)| first).collect();
        let mut last = (u64::MAX, 0);
        let mut keys = HashMap::new();
        let mut emptied = false;
        let mut event_of = Vec::with_capacity(decisions.len());
        let mut run_in = Vec::with_capacity(decisions.len());
        for Decided { thread, number, decision } in &decisions {
            if *thread != last.0 {
                last = (*thread, *self.indices.get(thread).expect("a thread of the history"));
            }
            let event = &mut at_work[last.1];
            while *number >= self.events[*event].first + self.events[*event].made {
                *event += 1;
            }
            assert!(*number >= self.events[*event].first, "{decision:?} between two calls of its thread");
            let by_number =
                |calls: &[usize], id: u64| calls.get(place(id)).copied().filter(|&event| event != NO_CALL);
            let found = match decision {
                Decision::Allocated(id) => by_number(&self.allocated, *id),
                Decision::Freed(id) => by_number(&self.freed, *id),
                Decision::ScopeClosed(serial) => {
                    keys.get(serial).and_then(|key| self.closed.get(key)).copied()
                }
                Decision::Emptied => Some(NO_CALL),
                Decision::RegionsRemoved if emptied => Some(NO_CALL),
                Decision::ScopeOpened(serial) => {
                    let Call::OpenScope { key, .. } = self.events[*event].call else {
                        panic!("{decision:?}")
                    };
                    keys.insert(*serial, key);
                    Some(*event)
                }
                _ => Some(*event),
            };
            emptied = *decision == Decision::Emptied;
            event_of.push(found.unwrap_or_else(|| panic!("no call made this decision: {decision:?}")));
            run_in.push(*event);
        }
        merge::Record { decisions, event_of, run_in }
    }

    /// Returns when a decision of a pool with caches can have been made. Where deferred operations run, and what moves
    /// between a cache and the pool, depends on other calls: other rules order that.
    fn times(&self, record: &merge::Record, at: usize) -> (u64, u64) {
        let event = record.event_of[at];
        let decision = record.decisions[at].decision;
        if event == NO_CALL || is_untimed(decision) {
            return (0, u64::MAX);
        }
        let Event { invoked, returned, call, .. } = &self.events[event];
        let end = match decision {
            Decision::Freed(id) if is_deferred(call) => self.freed_by.get(&id).copied().unwrap_or(u64::MAX),
            _ if is_deferred(call) && event != record.run_in[at] => u64::MAX,
            _ => *returned,
        };
        (*invoked, end)
    }
}

/// Returns whether a decision moves chunks between a cache and the pool, locks a cache for that, or begins to run
/// deferred operations.
pub(crate) fn is_untimed(decision: Decision) -> bool {
    matches!(
        decision,
        Decision::RunsDeferred
            | Decision::CacheLocked { .. }
            | Decision::NumbersSetAside { .. }
            | Decision::Lent { .. }
            | Decision::TakenBack { .. }
            | Decision::Withdrawn { .. }
            | Decision::Counted
    )
}

/// Replaces a deferred call by another one that began earlier.
fn earlier(events: &[Event], known: &mut usize, other: usize) {
    if is_deferred(&events[*known].call) && events[other].invoked < events[*known].invoked {
        *known = other;
    }
}

/// Returns whether a call leaves no decision that shows when it happened.
pub(crate) fn is_silent(call: &Call) -> bool {
    match call {
        Call::Allocate { way, answer, .. } => match answer {
            Answer::Served(_) => false,
            Answer::Refused(_) | Answer::Closed => true,
            Answer::NotNow => *way == AllocateWay::Try,
        },
        Call::Free { answer, .. } => *answer != Freed::Done,
        Call::Resize { size, .. } => size.is_none(),
        Call::Pin { done, .. } => !done,
        Call::SetLimit { released, .. } => released.is_err(),
        Call::CloseScope { figures, .. } => figures.is_none(),
        Call::CloseScopeDeferred { .. }
        | Call::Stats(_)
        | Call::Snapshot(_)
        | Call::CanAllocate { .. }
        | Call::Limit(_)
        | Call::Activity(_)
        | Call::ScopeStats { .. } => true,
        Call::Unpin { .. }
        | Call::Trim { .. }
        | Call::SetGrowth { .. }
        | Call::ResetPeaks
        | Call::Close
        | Call::OpenScope { .. }
        | Call::LimitScope { .. } => false,
    }
}
