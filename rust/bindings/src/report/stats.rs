//! The `PoolStats` class: an immutable copy of a pool's counters.

use allotment::Stats;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::report::fields::{Reduced, reduced};

/// The counters of a pool at one moment. Amounts are bytes.
#[pyclass(frozen, eq, module = "allotment", skip_from_py_object)]
#[derive(Clone, Copy, PartialEq)]
pub(crate) struct PoolStats(pub(crate) Stats);

/// Defines one getter per field.
macro_rules! getters {
    ($($(#[$doc:meta])* $field:ident: $kind:ty,)*) => {
        #[pymethods]
        impl PoolStats {
            #[new]
            #[expect(clippy::too_many_arguments, reason = "one for each counter, by name")]
            fn new($($field: $kind),*) -> Self {
                Self(Stats { $($field),* })
            }

            $($(#[$doc])* #[getter] fn $field(&self) -> $kind { self.0.$field })*

            /// Return the fields by name.
            #[pyo3(name = "_asdict")]
            fn fields<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
                let fields = PyDict::new(py);
                $(fields.set_item(stringify!($field), self.0.$field)?;)*
                Ok(fields)
            }

            fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
                Ok(reduced::<Self>(&self.fields(py)?))
            }

            fn __repr__(&self) -> String {
                let fields = [$(format!("{}={:?}", stringify!($field), self.0.$field)),*];
                format!("PoolStats({})", fields.join(", "))
            }
        }
    };
}

getters! {
    /// Bytes requested by the live allocations.
    requested: u64,
    /// Bytes of the chunks in use.
    in_use: u64,
    /// Bytes lost inside chunks, ``in_use - requested``.
    ///
    /// Rounding, alignment, red zones of guard mode, and remainders that were not split off take them.
    internal_fragmentation: u64,
    /// Bytes of all regions, in use or free.
    reserved: u64,
    /// The most bytes that the pool may reserve.
    limit: u64,
    /// Free bytes in the regions, ``reserved - in_use``; 0 in a paused pool.
    free: u64,
    /// The part of ``free`` that thread caches keep.
    thread_cached: u64,
    /// Bytes of the largest free chunk, 0 if there is none; chunks that thread caches keep do not count.
    ///
    /// In an elastic pool: of the largest request that its memory serves. Free pages move, and pages in use have room
    /// beside their allocations.
    largest_free: u64,
    /// Share of the free bytes beyond ``largest_free``, from 0 to 1; 0 if nothing is free.
    fragmentation: f64,
    /// The highest value of ``requested`` since the last ``reset_peaks()``.
    ///
    /// With thread caches it counts chunks that caches keep, and all of each chunk that was served from one: it may be
    /// too high by what the caches keep at most.
    peak_requested: u64,
    /// The highest value of ``in_use`` since the last ``reset_peaks()``.
    ///
    /// With thread caches it counts chunks that caches keep: it may be too high by what they keep at most.
    peak_in_use: u64,
    /// The highest value of ``reserved`` since the last ``reset_peaks()``.
    peak_reserved: u64,
    /// Bytes of the largest request that was served.
    largest_requested: u64,
    /// Number of allocations since the pool was made, without those of zero bytes.
    num_allocs: u64,
    /// The part of ``num_allocs`` that thread caches served.
    num_from_thread_caches: u64,
    /// Number of live allocations.
    num_live: u64,
    /// Number of regions now.
    num_regions: u64,
    /// Number of regions, or ranges of addresses, that the source has granted since the pool was made.
    num_grants: u64,
    /// Bytes with memory: ``reserved``, which counts the committed pages of elastic pools.
    committed: u64,
    /// How often a page of an elastic pool received memory, from the source or another page; 0 in other pools.
    num_commits: u64,
    /// Number of requests that got their place in the pool's plan; 0 in pools without one.
    num_planned: u64,
    /// Number of requests that were refused since the pool was made.
    num_refused: u64,
}
