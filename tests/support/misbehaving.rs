//! A misbehaving source: every way not to grant a request, in any mixture.

use std::error::Error;
use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use allotment::source::{AddressSpace, Grant, RegionSource, ReserveError};
use allotment::{GRANULE, Gauge, MAX_BYTES};

use crate::numbers::Numbers;
use crate::sources::{Descending, Scattered};

/// The ways in which a source can misbehave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Misdeed {
    Declines,
    Fails,
    Panics,
    GrantsMore,
    GrantsLess,
    GrantsNothing,
    /// An address that is not a multiple of the granule.
    Misaligned,
    /// A length that is not a multiple of the granule.
    OddLength,
    AtZero,
    /// Beyond the last valid address.
    OutOfRange,
    /// A span that is already granted.
    Overlaps,
}

impl Misdeed {
    pub(crate) const ALL: [Self; 11] = [
        Self::Declines,
        Self::Fails,
        Self::Panics,
        Self::GrantsMore,
        Self::GrantsLess,
        Self::GrantsNothing,
        Self::Misaligned,
        Self::OddLength,
        Self::AtZero,
        Self::OutOfRange,
        Self::Overlaps,
    ];
}

/// The placement of grants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Ascending { gap: u64 },
    Descending { gap: u64 },
    Scattered,
}

/// The misbehaviour of a source, and its timing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Habits {
    pub(crate) place: Place,
    /// The most granted bytes.
    pub(crate) cap: u64,
    /// Declines larger requests.
    pub(crate) largest: u64,
    /// At this request, counted from 0.
    pub(crate) nth: Option<(u64, Misdeed)>,
    /// At this many of 256 requests, one of the misdeeds selected by the bits.
    pub(crate) often: u8,
    pub(crate) misdeeds: u16,
    /// Panics at one of this many releases; 0 for never.
    pub(crate) panics_at_release: u64,
}

/// A misbehaving source. A release must match its grants.
pub(crate) struct Misbehaving {
    upstream: Box<dyn RegionSource>,
    habits: Habits,
    random: Numbers,
    asked: u64,
    out: Vec<Grant>,
    /// The last invalid grant, until its release.
    wrong: Option<Grant>,
}

impl Misbehaving {
    pub(crate) fn new(habits: Habits, seed: u64) -> Self {
        let upstream: Box<dyn RegionSource> = match habits.place {
            Place::Ascending { gap } => Box::new(AddressSpace::new(gap)),
            Place::Descending { gap } => Box::new(Descending::new(gap)),
            Place::Scattered => Box::new(Scattered::new(seed)),
        };
        Self { upstream, habits, random: Numbers::new(seed), asked: 0, out: Vec::new(), wrong: None }
    }

    /// Returns the misdeed of this request, if any.
    fn misdeed(&mut self) -> Option<Misdeed> {
        let number = self.asked;
        self.asked += 1;
        if let Some((nth, misdeed)) = self.habits.nth
            && nth == number
        {
            return Some(misdeed);
        }
        let among = self.habits.misdeeds;
        if among == 0 || self.random.below(256) >= u64::from(self.habits.often) {
            return None;
        }
        let picked = |at: &usize| among >> at & 1 == 1;
        let count = (0..Misdeed::ALL.len()).filter(picked).count();
        let place = self.random.below(count.max(1) as u64);
        let nth = (0..Misdeed::ALL.len()).filter(picked).nth(usize::try_from(place).expect("a small number"));
        nth.map(|at| Misdeed::ALL[at])
    }

    /// Returns a valid grant if the cap allows it.
    fn grant(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let out: u64 = self.out.iter().map(|grant| grant.bytes).sum();
        if bytes > self.habits.largest || out.checked_add(bytes).is_none_or(|sum| sum > self.habits.cap) {
            return Err(ReserveError::Declined);
        }
        let grant = self.upstream.reserve(bytes, alignment)?;
        self.out.push(grant);
        Ok(grant)
    }

    /// Returns an invalid grant.
    fn wrong(&mut self, address: u64, bytes: u64) -> Grant {
        *self.wrong.insert(Grant { address, bytes })
    }

    /// Returns a grant that overlaps another one: all of it, inside it, or across one of its ends.
    fn overlapping(&mut self, bytes: u64) -> Result<Grant, ReserveError> {
        let Some(&out) = self.out.last() else { return Err(ReserveError::Declined) };
        let inside = out.address + GRANULE * self.random.below(out.bytes / GRANULE);
        match self.random.below(4) {
            0 => Ok(out),
            1 => Ok(Grant { address: out.address, bytes: GRANULE }),
            2 if out.address >= bytes => Ok(Grant { address: out.address + GRANULE - bytes, bytes }),
            _ if inside <= MAX_BYTES - bytes => Ok(Grant { address: inside, bytes }),
            _ => Ok(out),
        }
    }
}

impl RegionSource for Misbehaving {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        let somewhere = 1 << 40;
        match self.misdeed() {
            None => self.grant(bytes, alignment),
            Some(Misdeed::Declines) => Err(ReserveError::Declined),
            Some(Misdeed::Fails) => Err(ReserveError::Failed(Arc::new(Broken))),
            Some(Misdeed::Panics) => Err(ReserveError::Failed(Arc::new(OnPurpose))),
            Some(Misdeed::GrantsMore) => {
                let more = [GRANULE, 4096, 2 << 20, bytes][self.random.place(4)];
                self.grant(bytes.saturating_add(more), alignment)
            }
            Some(Misdeed::GrantsLess) => match self.random.below(bytes / GRANULE) {
                0 => Ok(self.wrong(somewhere, 0)),
                granules => self.grant(granules * GRANULE, alignment),
            },
            Some(Misdeed::GrantsNothing) => Ok(self.wrong(somewhere, 0)),
            Some(Misdeed::Misaligned) => {
                let off = 1 + self.random.below(GRANULE - 1);
                Ok(self.wrong(somewhere + off, bytes))
            }
            Some(Misdeed::OddLength) => {
                let off = 1 + self.random.below(GRANULE - 1);
                Ok(self.wrong(somewhere, bytes + off))
            }
            Some(Misdeed::AtZero) => Ok(self.wrong(0, bytes)),
            Some(Misdeed::OutOfRange) => {
                let beyond = [MAX_BYTES + GRANULE - bytes, MAX_BYTES, 1 << 63, u64::MAX - 255];
                let address = beyond[self.random.place(4)];
                Ok(self.wrong(address, bytes))
            }
            Some(Misdeed::Overlaps) => self.overlapping(bytes),
        }
    }

    /// Takes a region back.
    ///
    /// # Panics
    /// If the region is neither the invalid grant nor exactly one or several live grants.
    fn release(&mut self, region: Grant) {
        if self.wrong == Some(region) {
            self.wrong = None;
            return;
        }
        let within = |out: &Grant| region.address <= out.address && out.end() <= region.end();
        let back: u64 = self.out.iter().filter(|out| within(out)).map(|out| out.bytes).sum();
        assert_eq!(back, region.bytes, "{region:?} is not what was granted");
        self.out.retain(|out| !within(out));
        self.upstream.release(region);
    }

    fn joins_regions(&self) -> bool {
        self.upstream.joins_regions()
    }
}

/// The error of a failing source.
#[derive(Debug)]
pub(crate) struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "broken on purpose")
    }
}

impl Error for Broken {}

/// A planned panic. As a failure it makes [`Panicking`] panic.
#[derive(Debug)]
pub(crate) struct OnPurpose;

impl fmt::Display for OnPurpose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "to panic on purpose")
    }
}

impl Error for OnPurpose {}

/// Panics on its upstream's command; a recorder between the two records the call first.
pub(crate) struct Panicking<S> {
    upstream: S,
    panics: Arc<AtomicU64>,
    /// Panics at one of this many releases; 0 for never.
    at_release: u64,
    releases: u64,
}

impl<S: RegionSource> Panicking<S> {
    pub(crate) fn new(upstream: S, at_release: u64) -> Self {
        Self { upstream, panics: Arc::default(), at_release, releases: 0 }
    }

    /// Returns the number of panics so far.
    pub(crate) fn panics(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.panics)
    }

    /// Unwinds without calling the panic hook.
    fn panic(&self) -> ! {
        self.panics.fetch_add(1, Ordering::Relaxed);
        resume_unwind(Box::new(OnPurpose))
    }
}

impl<S: RegionSource> RegionSource for Panicking<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        match self.upstream.reserve(bytes, alignment) {
            Err(ReserveError::Failed(failure)) if failure.is::<OnPurpose>() => self.panic(),
            answer => answer,
        }
    }

    fn release(&mut self, region: Grant) {
        self.upstream.release(region);
        self.releases += 1;
        if self.releases.checked_rem(self.at_release) == Some(0) {
            self.panic();
        }
    }

    fn gauge(&self) -> Option<Arc<dyn Gauge>> {
        self.upstream.gauge()
    }

    fn joins_regions(&self) -> bool {
        self.upstream.joins_regions()
    }
}
