//! The `PoolStats` class: an immutable copy of a pool's counters.

use allotment::Stats;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::fields::{Reduced, reduced};

/// The counters of a pool: one consistent copy. Amounts are in bytes.
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

            /// Return the counters by name.
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
    /// Requested bytes of all live allocations.
    requested: u64,
    /// Bytes of the chunks in use.
    in_use: u64,
    /// `in_use - requested`: bytes lost inside chunks.
    internal_fragmentation: u64,
    /// Bytes of all regions, in use or not.
    reserved: u64,
    /// The most bytes that may be reserved.
    limit: u64,
    /// `reserved - in_use`.
    free: u64,
    /// Size of the largest free chunk, 0 if there is none.
    largest_free: u64,
    /// `(free - largest_free) / free`, 0 when nothing is free.
    fragmentation: f64,
    /// High-water mark of `requested` since the last reset of the peaks.
    peak_requested: u64,
    /// High-water mark of `in_use` since the last reset of the peaks.
    peak_in_use: u64,
    /// High-water mark of `reserved` since the last reset of the peaks.
    peak_reserved: u64,
    /// The largest request ever served.
    largest_requested: u64,
    /// Allocations ever made; zero-byte requests do not count.
    num_allocs: u64,
    /// Live allocations.
    num_live: u64,
    /// Current regions.
    num_regions: u64,
    /// Regions ever granted by the source.
    num_grants: u64,
    /// Refused requests.
    num_refused: u64,
}
