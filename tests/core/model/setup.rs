//! The setup of a program: a kind of source, and the options of the pool.

use std::sync::OnceLock;

use allotment::source::{AddressSpace, Cap, Capped, FailingSource, RegionSource, ReserveError};
use allotment::{GRANULE, Options, Policy};
use allotment_cuda::{CudaMemory, CudaVirtualMemory, Driver};
use allotment_host::HostMemory;

use crate::misbehaving::{Broken, Habits, Misbehaving};
use crate::numbers::Numbers;
use crate::sources::{Answering, Descending, Faulty, Resized, Scattered};

/// Sizes at the edges of rounding and growth, and a few bytes beside them.
const LIMITS: [u64; 20] = [
    1,
    255,
    256,
    257,
    300,
    511,
    1000,
    4095,
    65_537,
    1_000_001,
    (2 << 20) - 1,
    2 << 20,
    (2 << 20) + 1,
    3 << 20,
    8 << 20,
    100_000_007,
    (256 << 20) + 255,
    1 << 30,
    (4 << 30) - 1,
    64 << 30,
];

/// The last gives a threshold below one byte for most limits.
const FRACTIONS: [f64; 8] = [0.0, 0.0, 0.0, 0.001, 0.01, 0.3, 1.0, 1e-12];

/// The number of combinations of switches; a fifth have thread caches.
pub(crate) const SWITCHES: u8 = 80;

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Each grant at this distance after the previous one.
    Ascending { gap: u64 },
    /// Each grant at this distance below the previous one.
    Descending { gap: u64 },
    /// In no order, often adjacent, and at addresses of former grants.
    Scattered,
    /// Grants at most a fraction of the limit.
    Capped,
    /// Declines requests above a fraction of the limit.
    RefusesLarge,
    /// Declines one request.
    RefusesTheNth,
    /// Declines about every second request.
    RefusesAtRandom,
    /// Fails sometimes.
    Fails,
    /// Grants less than requested, or declines.
    Short,
    /// Grants the next multiple of 2 MiB, or what was requested.
    Long,
    /// Sometimes grants spans that cannot be regions.
    Faulty,
    /// Real memory.
    Host,
    /// Regions of `cuMemAlloc` of a stand-in driver.
    Cuda,
    /// Regions that a stand-in driver maps one after the other.
    CudaMapped,
    /// Every misbehaviour, in any mixture.
    Misbehaving(Habits),
}

/// A kind of source, a seed for its random behaviour, and options.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) kind: Kind,
    pub(crate) seed: u64,
    pub(crate) options: Options,
}

impl Setup {
    /// Creates a setup from numbers; smaller ones give a simpler setup.
    pub(crate) fn new(kind: Kind, switches: u8, limit: u64, fraction: u8, seed: u64) -> Self {
        let options = Options::new(limit)
            .growth(switches & 1 == 0)
            .trim_on_oom(switches & 2 == 0)
            .joins_regions(match switches >> 2 & 3 {
                0 | 1 => None,
                2 => Some(true),
                _ => Some(false),
            })
            .policy(if switches & 0x30 == 0x30 { Policy::Tight } else { Policy::TensorFlow })
            .fragmentation_fraction(FRACTIONS[usize::from(fraction) % FRACTIONS.len()])
            .thread_caches(switches % SWITCHES >= 64);
        Self { kind, seed, options }
    }

    /// Creates the source.
    pub(crate) fn source(&self) -> Box<dyn RegionSource> {
        let mut random = Numbers::new(self.seed);
        let touching = AddressSpace::new(0);
        match self.kind {
            Kind::Ascending { gap } => Box::new(AddressSpace::new(gap)),
            Kind::Descending { gap } => Box::new(Descending::new(gap)),
            Kind::Scattered => Box::new(Scattered::new(self.seed)),
            Kind::Capped => Box::new(Capped::new(AddressSpace::new(256), Cap::new(self.share(&mut random)))),
            Kind::RefusesLarge => {
                let most = self.options.limit / (2 + random.below(30));
                Box::new(FailingSource::new(touching, move |_, bytes| bytes > most))
            }
            Kind::RefusesTheNth => {
                let nth = random.below(20);
                Box::new(FailingSource::new(touching, move |number, _| number == nth))
            }
            Kind::RefusesAtRandom => {
                let percent = [20, 50, 95][random.place(3)];
                Box::new(FailingSource::new(touching, move |_, _| random.chance(percent)))
            }
            Kind::Fails => {
                let mut upstream = touching;
                Box::new(Answering(move |bytes| match random.below(4) {
                    0 => Err(ReserveError::Failed(std::sync::Arc::new(Broken))),
                    1 => Err(ReserveError::Declined),
                    _ => upstream.reserve(bytes, GRANULE),
                }))
            }
            Kind::Short => {
                let upstream = FailingSource::new(touching, |_, bytes| bytes == 0);
                let rule = move |bytes: u64| match random.below(4) {
                    0 => bytes,
                    1 => bytes.saturating_sub(GRANULE * random.below(4)),
                    _ => random.below(bytes / GRANULE + 1) * GRANULE,
                };
                Box::new(Resized { upstream, rule })
            }
            Kind::Long => {
                let rule = move |bytes: u64| {
                    if random.chance(80) { bytes.next_multiple_of(2 << 20) } else { bytes }
                };
                Box::new(Resized { upstream: touching, rule })
            }
            Kind::Faulty => Box::new(Faulty::new(touching, self.seed)),
            Kind::Host => Box::new(HostMemory::new()),
            Kind::Cuda => Box::new(CudaMemory::new(cuda_driver(), 0).expect("a device")),
            Kind::CudaMapped => Box::new(CudaVirtualMemory::new(cuda_driver(), 0).expect("a device")),
            Kind::Misbehaving(habits) => Box::new(Misbehaving::new(habits, self.seed)),
        }
    }

    /// Returns the most bytes that the source grants at once, if it reports that and it is below any limit.
    pub(crate) fn capacity(&self) -> Option<u64> {
        (self.kind == Kind::Capped).then(|| self.share(&mut Numbers::new(self.seed)))
    }

    fn share(&self, random: &mut Numbers) -> u64 {
        self.options.limit / 64 * (1 + random.below(64))
    }

    /// The source panics once per this many releases; 0 for never.
    pub(crate) fn panics_at_release(&self) -> u64 {
        if let Kind::Misbehaving(habits) = self.kind { habits.panics_at_release } else { 0 }
    }

    /// Returns whether the source grants every request in one piece.
    pub(crate) fn is_obliging(&self) -> bool {
        matches!(self.kind, Kind::Ascending { .. } | Kind::Descending { .. } | Kind::Scattered)
    }
}

/// Returns a limit from 1 byte to 64 GiB: one of the list, or any size, more often one that holds a few regions.
pub(crate) fn limit(a: u32, b: u16) -> u64 {
    if b.is_multiple_of(4) {
        LIMITS[a as usize % LIMITS.len()]
    } else {
        let power = 1_u64 << if b % 4 == 1 { b / 4 % 36 } else { 16 + b / 4 % 20 };
        power + u64::from(a >> 8) * power / (1 << 24)
    }
}

/// Returns the driver that stands in for NVIDIA's, with one device of 1 TiB. Cargo builds it beside the tests.
fn cuda_driver() -> &'static Driver {
    static DRIVER: OnceLock<Driver> = OnceLock::new();
    DRIVER.get_or_init(|| {
        let (prefix, suffix) = (std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
        let name = format!("{prefix}allotment_cuda_stand_in{suffix}");
        let path = std::env::current_exe().expect("a path").with_file_name(name);
        // SAFETY: the library is ours, and so is the function. It stays open until the driver is.
        let library = unsafe { libloading::Library::new(&path) }.expect("a library beside the test");
        // SAFETY: as above.
        let configure =
            unsafe { library.get::<unsafe extern "C" fn(u64, u64, u64, u32)>(b"standInConfigure") };
        // SAFETY: numbers only.
        unsafe { configure.expect("a function")(1, 1 << 40, 2 << 20, 1) };
        Driver::open(path.to_str()).expect("a driver")
    })
}
