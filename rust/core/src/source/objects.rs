//! Regions that are objects of a driver, with offsets from 0.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Grant, RegionSource, ReserveError};
use crate::chunk::region::RegionId;
use crate::units::{GRANULE, MAX_BYTES, align_up};

/// Makes objects that hold memory, such as a `VkDeviceMemory` or a buffer of wgpu. Callers address their memory by
/// object and offset.
pub trait ObjectSource: Send {
    /// The object: a handle that can be copied, or an `Arc`.
    type Object: Clone + Send;

    /// Makes an object with `bytes` bytes of memory.
    ///
    /// # Errors
    /// If there is no such memory.
    fn create(&mut self, bytes: u64) -> Result<Self::Object, ReserveError>;

    /// Destroys an object, whose memory no allocation uses.
    fn destroy(&mut self, object: Self::Object);
}

/// A source whose regions are objects. Each region starts at an address of its own that only the pool uses, so that
/// two objects differ; an alignment up to an object's size holds for the offsets in it. No region starts where another
/// ends, so that no option of a pool joins two of them.
///
/// ```
/// use allotment::source::{ObjectSource, Objects, ReserveError};
/// use allotment::{Options, Pool, Request};
///
/// /// A driver that numbers its blocks of memory.
/// struct Driver { made: u32 }
///
/// impl ObjectSource for Driver {
///     type Object = u32;
///
///     fn create(&mut self, _bytes: u64) -> Result<u32, ReserveError> {
///         self.made += 1;
///         Ok(self.made)
///     }
///
///     fn destroy(&mut self, _object: u32) {}
/// }
///
/// let (source, objects) = Objects::new(Driver { made: 0 });
/// let pool = Pool::new(source, Options::new(1 << 30))?;
/// let first = pool.block(2 << 20)?;
/// let second = pool.block(1000)?;
/// let third = pool.block(Request::new(1000).align(1 << 16))?;
/// assert_eq!((objects.get(first.region()), first.offset()), (Some(1), 0));
/// assert_eq!((objects.get(second.region()), second.offset()), (Some(2), 0));
/// assert_eq!((objects.get(third.region()), third.offset()), (Some(2), 1 << 16));
/// assert_eq!(objects.locate(third.address()), Some((2, 1 << 16)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Objects<S: ObjectSource> {
    upstream: S,
    table: ObjectTable<S::Object>,
    /// The end of the last region, and of a gap behind it.
    end: u64,
    starts_at_zero: bool,
}

/// The objects of a pool by region; clones share one table.
pub struct ObjectTable<O>(Arc<Mutex<BTreeMap<u64, O>>>);

impl<S: ObjectSource> Objects<S> {
    /// Wraps a driver; returns the source for a pool, and the table of its objects.
    #[must_use]
    pub fn new(upstream: S) -> (Self, ObjectTable<S::Object>) {
        let table = ObjectTable(Arc::default());
        (Self { upstream, table: table.clone(), end: 0, starts_at_zero: true }, table)
    }

    /// Leaves address 0 out, for callers to which it means that there is no memory. Before the first region.
    #[must_use]
    pub fn without_zero(self) -> Self {
        Self { end: self.end.max(GRANULE), starts_at_zero: false, ..self }
    }
}

impl<O: Clone> ObjectTable<O> {
    /// Returns the object that is a region; `None` if the region went back.
    #[must_use]
    pub fn get(&self, region: RegionId) -> Option<O> {
        self.objects().get(&region.start()).cloned()
    }

    /// Returns the object with the memory of an allocation, and the offset of the allocation in it; `None` if the pool has
    /// no region at or before its address.
    #[must_use]
    pub fn locate(&self, address: u64) -> Option<(O, u64)> {
        let objects = self.objects();
        let (&start, object) = objects.range(..=address).next_back()?;
        Some((object.clone(), address - start))
    }
}

impl<O> ObjectTable<O> {
    fn objects(&self) -> MutexGuard<'_, BTreeMap<u64, O>> {
        // A panic of a clone leaves the table as it was.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O> Clone for ObjectTable<O> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<O> fmt::Debug for ObjectTable<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectTable").field("objects", &self.objects().len()).finish()
    }
}

impl<S: ObjectSource> RegionSource for Objects<S> {
    fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
        // An address is aligned if its offset is.
        let step = bytes.checked_next_power_of_two().ok_or(ReserveError::Declined)?.max(alignment);
        let address = align_up(self.end, step);
        let end = address.checked_add(bytes).filter(|&end| end <= MAX_BYTES).ok_or(ReserveError::Declined)?;
        let object = self.upstream.create(bytes)?;
        self.end = end + GRANULE;
        self.table.objects().insert(address, object);
        Ok(Grant { address, bytes })
    }

    fn release(&mut self, region: Grant) {
        let object = self.table.objects().remove(&region.address);
        if let Some(object) = object {
            self.upstream.destroy(object);
        }
    }

    fn starts_at_zero(&self) -> bool {
        self.starts_at_zero
    }
}
