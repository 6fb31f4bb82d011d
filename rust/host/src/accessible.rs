//! Sources of memory that this process may read and write.

use allotment::source::{Capped, CheckedPages, FailingPages, FailingSource, Recording, RegionSource};

use crate::HostMemory;

/// A source of memory that unsafe code may access through the addresses of its grants.
///
/// [`RegionSource`] itself is a safe trait. A pool only calculates with the addresses that a source grants, and most
/// sources grant numbers that no program of the host may dereference: memory of a device, offsets in an object of a
/// driver, made-up addresses. An `unsafe` [`RegionSource`] would demand a promise of all of them that only memory of the
/// host can keep, and would not say whether it can be accessed. Code that does access it, such as `PoolAllocator`,
/// asks for this trait instead.
///
/// # Safety
/// Each granted span is memory of this process that all threads may read and write, from its grant until
/// [`RegionSource::release`] of a region that contains it, or until the process ends if no such call comes: the end of
/// the source takes no granted memory back. For [`RegionSource::pages`] a span is granted when it is committed or moved
/// to, until it is decommitted or moved away. It overlaps no other live grant, and no memory that other code uses. The
/// source accesses it only as [`RegionSource::discard`], [`RegionSource::pages`] and [`RegionSource::guard`] say, within
/// the spans that are passed.
///
/// ```
/// use allotment::source::{Grant, RegionSource, ReserveError};
/// use allotment_host::{HostAccessible, HostMemory};
///
/// /// Memory of the host, of which no region is larger than 1 GiB.
/// struct SmallRegions(HostMemory);
///
/// impl RegionSource for SmallRegions {
///     fn reserve(&mut self, bytes: u64, alignment: u64) -> Result<Grant, ReserveError> {
///         if bytes > 1 << 30 { Err(ReserveError::Declined) } else { self.0.reserve(bytes, alignment) }
///     }
///
///     fn release(&mut self, region: Grant) {
///         self.0.release(region);
///     }
/// }
///
/// // SAFETY: all grants are those of `HostMemory`, and are released to it alone.
/// unsafe impl HostAccessible for SmallRegions {}
/// ```
pub unsafe trait HostAccessible: RegionSource {}

// SAFETY: a grant is a private mapping that can be read and written, at addresses that the system chose. Only `release`
// unmaps it, and only the source that made it; `discard` and the guard refuse spans outside of live grants.
unsafe impl HostAccessible for HostMemory {}

// SAFETY: the methods are those of the source in the box.
unsafe impl<S: HostAccessible + ?Sized> HostAccessible for Box<S> {}

// SAFETY: grants and calls pass through unchanged, or are declined.
unsafe impl<S: HostAccessible> HostAccessible for Capped<S> {}

// SAFETY: the same.
unsafe impl<S: HostAccessible, R> HostAccessible for FailingSource<S, R> where Self: RegionSource {}

// SAFETY: the same.
unsafe impl<S: HostAccessible> HostAccessible for Recording<S> {}

// SAFETY: the same.
unsafe impl<S: HostAccessible> HostAccessible for CheckedPages<S> {}

// SAFETY: the same.
unsafe impl<S: HostAccessible, R> HostAccessible for FailingPages<S, R> where Self: RegionSource {}
