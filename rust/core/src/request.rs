//! A request for memory: how many bytes, at which alignment, under which tag.

use crate::units::GRANULE;

/// The largest alignment of a request: 2^62.
pub const MAX_ALIGNMENT: u64 = 1 << 62;

/// A request for memory. A number of bytes is a request, too.
///
/// ```
/// use allotment::source::AddressSpace;
/// use allotment::{Options, Pool, Request};
///
/// let pool = Pool::new(AddressSpace::new(0), Options::new(64 << 20))?;
/// let small = pool.allocate(1000)?;
/// let image = pool.allocate(Request::new(1 << 20).align(1 << 16).tag("images"))?;
/// assert_eq!(image.address % (1 << 16), 0);
/// pool.free(image.address)?;
/// pool.free(small.address)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "a request does nothing until a pool or an allocator serves it"]
pub struct Request<'a> {
    bytes: u64,
    alignment: u64,
    tag: Option<&'a str>,
}

impl<'a> Request<'a> {
    /// Returns a request for `bytes` bytes at a multiple of [`GRANULE`].
    #[inline]
    pub const fn new(bytes: u64) -> Self {
        Self { bytes, alignment: GRANULE, tag: None }
    }

    /// Sets the alignment of the address: any power of two up to [`MAX_ALIGNMENT`] that a region can hold.
    ///
    /// Above the granule, the search is for a free chunk that holds an aligned piece. What lies before that piece
    /// stays free.
    #[inline]
    pub const fn align(self, alignment: u64) -> Self {
        Self { alignment, ..self }
    }

    /// Sets the tag under which reports list the allocation, instead of the thread's own: see
    /// [`set_tag`](crate::set_tag).
    #[inline]
    pub const fn tag(self, tag: &'a str) -> Self {
        Self { tag: Some(tag), ..self }
    }

    /// Returns the requested bytes.
    #[must_use]
    #[inline]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the alignment.
    #[must_use]
    #[inline]
    pub const fn alignment(&self) -> u64 {
        self.alignment
    }

    /// Returns the tag, if one was set.
    #[must_use]
    #[inline]
    pub const fn tag_name(&self) -> Option<&'a str> {
        self.tag
    }
}

impl Request<'_> {
    /// Returns whether the alignment is a power of two that a request may have.
    #[inline(always)]
    pub(crate) fn has_valid_alignment(&self) -> bool {
        self.alignment.is_power_of_two() && self.alignment <= MAX_ALIGNMENT
    }

    /// Returns whether free chunks alone decide the request: it is valid, not empty, and has no tag.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.bytes > 0 && self.tag.is_none() && self.has_valid_alignment()
    }
}

impl From<u64> for Request<'_> {
    #[inline]
    fn from(bytes: u64) -> Self {
        Self::new(bytes)
    }
}
