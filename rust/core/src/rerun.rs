//! Plays the history of a pool again under another limit or policy: is its last request served then?

use crate::history::Event;
use crate::policy::Policy;
use crate::pool::{Options, Pool};
use crate::source::{Grant, Refusal, RegionSource};
use crate::units::{MAX_BYTES, round_up};

/// By which shares of the smallest limit in question larger ones are tried: a 64th more, a 32nd more, up to twice.
const SHARES: [u64; 7] = [64, 32, 16, 8, 4, 2, 1];

/// How often the gap between a limit that fails and one that serves is halved.
const HALVINGS: usize = 3;

/// A program, and what all its runs have in common.
#[derive(Debug)]
pub(crate) struct Rerun {
    /// What the program does; the last event is the request in question.
    pub(crate) events: Vec<Event>,
    /// Options that stay: growth, trimming, the fraction.
    pub(crate) options: Options,
    /// Whether regions that touch are joined. If so, each grant starts where the last one ended.
    pub(crate) joins_regions: bool,
    /// The most that the source can have out at once, in bytes.
    pub(crate) capacity: u64,
}

impl Rerun {
    /// Whether every request is served under this limit and policy.
    ///
    /// Which of two equal chunks is taken depends on addresses, and regions that are not joined may lie in any order:
    /// the requests have to be served with rising and with falling addresses.
    pub(crate) fn serves(&self, limit: u64, policy: Policy) -> bool {
        let rising: &[bool] = if self.joins_regions { &[true] } else { &[true, false] };
        rising.iter().all(|&rising| self.serves_with(rising, limit, policy))
    }

    /// A limit of at least `least` bytes under which every request is served. Limits between the ones that are tried
    /// are not: a smaller one may serve, too.
    pub(crate) fn limit_from(&self, least: u64, policy: Policy) -> Option<u64> {
        if self.serves(least, policy) {
            return Some(least);
        }
        let mut fails = least;
        for share in SHARES {
            let limit = round_up(least.saturating_add(least / share).min(MAX_BYTES));
            if self.serves(limit, policy) {
                return Some(self.narrowed(fails, limit, policy));
            }
            fails = limit;
        }
        None
    }

    fn narrowed(&self, mut fails: u64, mut serves: u64, policy: Policy) -> u64 {
        for _ in 0..HALVINGS {
            let middle = round_up(fails.midpoint(serves));
            if self.serves(middle, policy) { serves = middle } else { fails = middle }
        }
        serves
    }

    fn serves_with(&self, rising: bool, limit: u64, policy: Policy) -> bool {
        let options =
            Options { limit, policy, joins_regions: Some(self.joins_regions), ..self.options.clone() };
        let source = MadeUp { next: 1 << 62, rising, left: self.capacity };
        let Ok(pool) = Pool::new(source, options) else { return false };
        let mut addresses = Vec::new();
        self.events.iter().all(|&event| match event {
            Event::Allocated(bytes) => {
                let served = pool.allocate(bytes).map(|allocation| addresses.push(allocation.address));
                served.is_ok()
            }
            Event::Freed(id) => {
                let index = usize::try_from(id).map_or(0, |id| id - 1);
                addresses.get(index).is_some_and(|&address| pool.free(address).is_ok())
            }
        })
    }
}

/// Grants made-up addresses, each beside the last one.
struct MadeUp {
    next: u64,
    rising: bool,
    left: u64,
}

impl RegionSource for MadeUp {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, Refusal> {
        self.left = self.left.checked_sub(bytes).ok_or(Refusal::Declined)?;
        let (address, next) = if self.rising {
            (self.next, self.next.saturating_add(bytes))
        } else {
            let address = self.next.saturating_sub(bytes);
            (address, address)
        };
        self.next = next;
        Ok(Grant { address, bytes })
    }

    fn release(&mut self, region: Grant) {
        self.left += region.bytes;
    }
}

#[cfg(test)]
mod tests;
