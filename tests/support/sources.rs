//! Sources for tests only.

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{GRANULE, MAX_BYTES};

use super::numbers::Numbers;

/// Answers with a function; accepts every release.
pub(crate) struct Answering<F>(pub(crate) F);

impl<F: FnMut(u64) -> Result<Grant, ReserveError> + Send> RegionSource for Answering<F> {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        (self.0)(bytes)
    }

    fn release(&mut self, _region: Grant) {}
}

/// Requests a different length from its upstream.
pub(crate) struct Resized<S, F> {
    pub(crate) upstream: S,
    /// Maps requested bytes to the bytes to request.
    pub(crate) rule: F,
}

impl<S: RegionSource, F: FnMut(u64) -> u64 + Send> RegionSource for Resized<S, F> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        self.upstream.reserve((self.rule)(bytes), alignment)
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
    }

    fn joins_regions(&self) -> bool {
        self.upstream.joins_regions()
    }
}

/// Grants each span below the previous one, plus a gap.
pub(crate) struct Descending {
    next_end: u64,
    gap: u64,
}

impl Descending {
    pub(crate) fn new(gap: u64) -> Self {
        Self { next_end: 1 << 60, gap }
    }
}

impl RegionSource for Descending {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        let address = self.next_end.checked_sub(bytes).filter(|&start| start > self.gap);
        let address = address.ok_or(ReserveError::Declined)?;
        self.next_end = address - self.gap;
        Ok(Grant { address, bytes })
    }

    fn release(&mut self, _region: Grant) {}

    fn joins_regions(&self) -> bool {
        true
    }
}

/// Grants spans in no order: often adjacent to a live grant, or at a former grant.
pub(crate) struct Scattered {
    random: Numbers,
    out: Vec<Grant>,
    /// Former grants; a new one may reuse their addresses.
    known: Vec<Grant>,
    fresh: u64,
}

impl Scattered {
    pub(crate) fn new(seed: u64) -> Self {
        Self { random: Numbers::new(seed), out: Vec::new(), known: Vec::new(), fresh: 0 }
    }

    /// Returns an address adjacent to or at a known span, if it is free.
    fn near_a_known_one(&mut self, bytes: u64) -> Option<u64> {
        if self.known.is_empty() {
            return None;
        }
        let known = self.known[self.random.place(self.known.len())];
        let address = match self.random.below(3) {
            0 => known.address.checked_sub(bytes).filter(|&start| start > 0)?,
            1 => known.address,
            _ => known.end(),
        };
        let end = address + bytes;
        let free = self.out.iter().all(|out| end <= out.address || out.end() <= address);
        (free && end <= MAX_BYTES).then_some(address)
    }
}

impl RegionSource for Scattered {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        let near = (0..4).find_map(|_| self.near_a_known_one(bytes));
        let address = near.unwrap_or_else(|| {
            // Bit reversal scatters a counter; one slot is larger than any test's limit.
            self.fresh += 1;
            (self.fresh.reverse_bits() >> 43) << 40
        });
        let grant = Grant { address, bytes };
        if self.out.iter().any(|out| address < out.end() && out.address < grant.end()) {
            return Err(ReserveError::Declined);
        }
        self.out.push(grant);
        self.known.push(grant);
        Ok(grant)
    }

    /// Takes a region back.
    ///
    /// # Panics
    /// If the region is not exactly one or several live grants.
    fn release(&mut self, region: Grant) {
        let within = |out: &Grant| region.address <= out.address && out.end() <= region.end();
        let back: u64 = self.out.iter().filter(|out| within(out)).map(|out| out.bytes).sum();
        assert_eq!(back, region.bytes, "{region:?} is not what was granted");
        self.out.retain(|out| !within(out));
    }

    fn joins_regions(&self) -> bool {
        true
    }
}

/// Sometimes grants invalid spans, between valid ones of its upstream.
pub(crate) struct Faulty<S> {
    upstream: S,
    random: Numbers,
    last: Option<Grant>,
}

impl<S: RegionSource> Faulty<S> {
    pub(crate) fn new(upstream: S, seed: u64) -> Self {
        Self { upstream, random: Numbers::new(seed), last: None }
    }
}

impl<S: RegionSource> RegionSource for Faulty<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let last = self.last.unwrap_or(Grant { address: 1 << 20, bytes });
        let faulty = match self.random.below(20) {
            0 => Grant { address: 0, bytes },
            1 => Grant { address: last.end() + 1, bytes },
            2 => Grant { address: last.end(), bytes: bytes + 1 },
            3 => Grant { address: MAX_BYTES + GRANULE - bytes, bytes },
            4 => Grant { address: last.address + GRANULE, bytes },
            5 => last,
            6 => Grant { address: last.address, bytes: 0 },
            7 => Grant { address: u64::MAX - 255, bytes },
            _ => {
                let grant = self.upstream.reserve(bytes, alignment)?;
                self.last = Some(grant);
                return Ok(grant);
            }
        };
        Ok(faulty)
    }

    fn release(&mut self, _region: Grant) {}

    fn joins_regions(&self) -> bool {
        self.upstream.joins_regions()
    }
}
