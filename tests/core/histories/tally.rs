//! Totals of histories: how much they show.

use std::fmt;
use std::ops::AddAssign;

use allotment::Decision;

use crate::event::{Answer, Call, Freed};
use crate::order::{NO_CALL, Order, is_deferred};

/// Totals of histories.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    pub(crate) histories: usize,
    pub(crate) events: usize,
    /// Decisions of another thread than the one before.
    switches: usize,
    /// Moments at which no thread was in a call.
    rests: usize,
    /// Deferred operations that another thread ran.
    run_by_others: usize,
    /// Frees that did not wait for the lock.
    not_now: usize,
    refused: usize,
    /// Requests that thread caches served, and frees into them.
    by_caches: usize,
}

impl AddAssign for Tally {
    fn add_assign(&mut self, other: Self) {
        self.histories += other.histories;
        self.events += other.events;
        self.switches += other.switches;
        self.rests += other.rests;
        self.run_by_others += other.run_by_others;
        self.not_now += other.not_now;
        self.refused += other.refused;
        self.by_caches += other.by_caches;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { histories, events, switches, rests, run_by_others, not_now, refused, by_caches } = self;
        write!(
            f,
            "{histories} histories of {events} events ({switches} decisions after one of another thread, {rests} \
             rests, {run_by_others} deferred operations run by another thread, {not_now} frees that did not wait, \
             {refused} refused, {by_caches} by thread caches)"
        )
    }
}

impl Tally {
    /// Counts how often the threads met.
    pub(crate) fn of(order: &Order) -> Self {
        let switches = order.decisions.windows(2).filter(|pair| pair[0].thread != pair[1].thread).count();
        let by_others = order.decisions.iter().zip(&order.event_of).filter(|&(decided, &event)| {
            event != NO_CALL
                && is_deferred(&order.events[event].call)
                && order.thread_of(event) != decided.thread
        });
        let not_now = order
            .events
            .iter()
            .filter(|event| matches!(event.call, Call::Free { answer: Freed::NotNow, .. }));
        let refused = order
            .events
            .iter()
            .filter(|event| matches!(event.call, Call::Allocate { answer: Answer::Refused(_), .. }));
        let by_caches = order.decisions.iter().filter(|decided| {
            matches!(decided.decision, Decision::CacheServed { .. } | Decision::CacheFreed { .. })
        });
        Self {
            histories: 1,
            events: order.events.len(),
            switches,
            rests: order.rests.len(),
            run_by_others: by_others.count(),
            not_now: not_now.count(),
            refused: refused.count(),
            by_caches: by_caches.count(),
        }
    }
}
