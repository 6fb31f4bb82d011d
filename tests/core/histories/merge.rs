//! One order of the decisions of a pool and of its thread caches.
//!
//! A thread cache decides under its own lock, so that there is one record for each cache beside that of the pool. The
//! records are merged into an order of all decisions in which
//!
//! - each record, and the decisions of each thread, keep their order,
//! - the decisions of a cache that had been made when the pool locked it come before those that the pool made then, and
//!   all others after them,
//! - an allocation is served before it is freed or withdrawn,
//! - no call decides before a call that had ended before it began.
//!
//! All of these are edges of one graph, and any order in which no edge points back is as good as another one. There is
//! none if the edges have a circle: that is a fault.

use std::collections::{HashMap, HashSet};

use allotment::{Decided, Decision};

/// A record: decisions that one lock ordered.
#[derive(Default)]
pub(crate) struct Record {
    pub(crate) decisions: Vec<Decided>,
    /// For each decision, the index of its event.
    pub(crate) event_of: Vec<usize>,
    /// For each decision, the index of the event in which its thread ran it: that of another call if it was deferred.
    pub(crate) run_in: Vec<usize>,
}

impl Record {
    fn push(&mut self, other: &Self, at: usize) {
        self.decisions.push(other.decisions[at]);
        self.event_of.push(other.event_of[at]);
        self.run_in.push(other.run_in[at]);
    }
}

/// A record on its way into the order.
struct Source {
    record: Record,
    /// The number of decisions that are in the order.
    taken: usize,
    /// For each decision, the earliest and the latest time.
    times: Vec<(u64, u64)>,
    /// For each decision, the earliest end among it and those after.
    earliest_end: Vec<u64>,
}

/// The state of a merge. The first source is the pool, the others are the caches.
struct Merge {
    sources: Vec<Source>,
    /// The source of each cache.
    of_cache: HashMap<u64, usize>,
    /// For each cache, how many decisions it had made each time that the pool locked it; the next time is last.
    locked_at: HashMap<u64, Vec<u64>>,
    /// The numbers of the decisions of each thread; the next one is last.
    of_thread: HashMap<u64, Vec<u64>>,
    /// The allocations that caches have served.
    served: HashSet<u64>,
    merged: Record,
}

/// Merges the record of a pool with those of its caches.
///
/// # Panics
/// If there is no such order.
pub(crate) fn merge(
    pool: Record,
    caches: Vec<(u64, Record)>,
    times: impl Fn(&Record, usize) -> (u64, u64),
) -> Record {
    let of_cache = caches.iter().zip(1..).map(|((cache, _), at)| (*cache, at)).collect();
    let records: Vec<Record> = std::iter::once(pool).chain(caches.into_iter().map(|(_, own)| own)).collect();
    let mut of_thread: HashMap<u64, Vec<u64>> = HashMap::new();
    let mut locked_at: HashMap<u64, Vec<u64>> = HashMap::new();
    for &Decided { thread, number, decision } in records.iter().flat_map(|record| &record.decisions) {
        of_thread.entry(thread).or_default().push(number);
        if let Decision::CacheLocked { cache, decided } = decision {
            locked_at.entry(cache).or_default().push(decided);
        }
    }
    for numbers in of_thread.values_mut() {
        numbers.sort_unstable_by(|one, other| other.cmp(one));
    }
    for times in locked_at.values_mut() {
        times.reverse();
    }
    let sources = records.into_iter().map(|record| {
        let times: Vec<(u64, u64)> = (0..record.decisions.len()).map(|at| times(&record, at)).collect();
        let mut earliest_end: Vec<u64> = times.iter().map(|&(_, end)| end).collect();
        for at in (1..earliest_end.len()).rev() {
            earliest_end[at - 1] = earliest_end[at - 1].min(earliest_end[at]);
        }
        Source { record, taken: 0, times, earliest_end }
    });
    let mut merge = Merge {
        sources: sources.collect(),
        of_cache,
        locked_at,
        of_thread,
        served: HashSet::new(),
        merged: Record::default(),
    };
    merge.run();
    merge.merged
}

impl Merge {
    fn run(&mut self) {
        loop {
            let before = self.merged.decisions.len();
            for source in 0..self.sources.len() {
                while self.advance(source) {}
            }
            if self.merged.decisions.len() == before {
                break;
            }
        }
        let stuck: Vec<String> = self.sources.iter().filter_map(Source::next).collect();
        assert!(
            stuck.is_empty(),
            "no order: each of these decisions must come after another one of them:\n{}",
            stuck.join("\n")
        );
    }

    /// Adds the next decision of a source, with all that follow while the same caches are locked; returns whether it
    /// can come next.
    fn advance(&mut self, source: usize) -> bool {
        let end = if source == 0 { self.end_of_batch() } else { self.sources[source].taken + 1 };
        if end > self.sources[source].times.len() || !self.may_come_next(source, end) {
            return false;
        }
        for at in self.sources[source].taken..end {
            self.take(source, at);
        }
        self.sources[source].taken = end;
        true
    }

    /// Returns the end of the decisions that the pool makes with the same caches locked, from its next one on.
    fn end_of_batch(&self) -> usize {
        let Source { record, taken, .. } = &self.sources[0];
        let mut locked = HashSet::new();
        let mut end = *taken;
        for Decided { decision, .. } in &record.decisions[*taken..] {
            match decision {
                Decision::CacheLocked { cache, .. } if locked.insert(*cache) => {}
                Decision::NumbersSetAside { .. }
                | Decision::Lent { .. }
                | Decision::TakenBack { .. }
                | Decision::Withdrawn { .. }
                | Decision::Counted
                    if !locked.is_empty() => {}
                _ => break,
            }
            end += 1;
        }
        end.max(taken + 1)
    }

    fn may_come_next(&self, source: usize, end: usize) -> bool {
        let Source { record, taken, times, .. } = &self.sources[source];
        let Decided { thread, number, .. } = record.decisions[*taken];
        let is_turn = self.of_thread[&thread].last() == Some(&number);
        let start = (*taken..end).map(|at| times[at].0).max().unwrap_or(0);
        is_turn
            && (*taken..end).all(|at| self.is_ready(source, record.decisions[at].decision))
            && self.sources.iter().all(|other| other.earliest_end().is_none_or(|end| start <= end))
    }

    /// Returns whether the order has what a decision needs.
    fn is_ready(&self, source: usize, decision: Decision) -> bool {
        match decision {
            Decision::CacheLocked { cache, decided } => {
                let progress = self.of_cache.get(&cache).map_or(0, |&own| self.sources[own].taken as u64);
                progress == decided
            }
            Decision::Withdrawn { id, .. } => self.served.contains(&id),
            Decision::CacheServed { cache, .. } => self.is_unlocked(source, cache),
            Decision::CacheFreed { cache, id } => {
                self.served.contains(&id) && self.is_unlocked(source, cache)
            }
            _ => true,
        }
    }

    /// Returns whether the pool locks a cache only after its next decision.
    fn is_unlocked(&self, source: usize, cache: u64) -> bool {
        let next = self.locked_at.get(&cache).and_then(|times| times.last());
        next.is_none_or(|&decided| decided > self.sources[source].taken as u64)
    }

    fn take(&mut self, source: usize, at: usize) {
        let record = &self.sources[source].record;
        let Decided { thread, number, decision } = record.decisions[at];
        let taken = self.of_thread.get_mut(&thread).and_then(Vec::pop);
        assert_eq!(taken, Some(number), "a thread makes one decision after the other");
        match decision {
            Decision::CacheServed { id, .. } => {
                self.served.insert(id);
            }
            Decision::CacheLocked { cache, .. } => {
                self.locked_at.get_mut(&cache).and_then(Vec::pop);
            }
            _ => {}
        }
        self.merged.push(record, at);
    }
}

impl Source {
    /// Returns the earliest end of a decision that is not in the order; `None` if all are.
    fn earliest_end(&self) -> Option<u64> {
        self.earliest_end.get(self.taken).copied()
    }

    /// Returns the next decision, as text.
    fn next(&self) -> Option<String> {
        let decided = self.record.decisions.get(self.taken)?;
        Some(format!("{decided:?} between {:?}", self.times[self.taken]))
    }
}
