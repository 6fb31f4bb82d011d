//! How much a source of the caller could grant.

use std::ffi::c_void;
use std::sync::Arc;

use allotment::Gauge;

/// How much a source could grant in one region at one moment. A function of the source changes the fields that it
/// knows.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Headroom {
    /// Regions of up to this many bytes are granted for sure, at exactly the requested length. 0 at first.
    pub guaranteed: u64,
    /// Longer regions than this are declined for sure until something is released. `UINT64_MAX` at first.
    pub maximum: u64,
    /// Not 0: released bytes add to `guaranteed`. 0 at first.
    pub grants_released: i32,
    /// Not 0: each grant starts where the last one ended. 0 at first.
    pub is_sequential: i32,
}

/// The type of the option `headroom`.
pub type HeadroomFunction = Option<unsafe extern "C" fn(context: *mut c_void, headroom: *mut Headroom)>;

/// The function of a source that says how much it could grant.
#[derive(Debug)]
pub(crate) struct CGauge {
    context: *mut c_void,
    function: unsafe extern "C" fn(*mut c_void, *mut Headroom),
}

// SAFETY: the caller of `CSource::new` guarantees functions that any thread may call; this one several at a time.
unsafe impl Send for CGauge {}
// SAFETY: the same.
unsafe impl Sync for CGauge {}

impl std::panic::RefUnwindSafe for CGauge {}

impl CGauge {
    /// Returns the gauge of a source, if it has that function.
    pub(crate) fn of(context: *mut c_void, function: HeadroomFunction) -> Option<Arc<dyn Gauge>> {
        Some(Arc::new(Self { context, function: function? }))
    }
}

impl Gauge for CGauge {
    fn headroom(&self) -> allotment::Headroom {
        let allotment::Headroom { guaranteed, maximum, .. } = allotment::Headroom::UNKNOWN;
        let mut headroom = Headroom { guaranteed, maximum, grants_released: 0, is_sequential: 0 };
        // SAFETY: the contract of `CSource::new`; the structure is writable.
        unsafe { (self.function)(self.context, &raw mut headroom) };
        allotment::Headroom {
            guaranteed: headroom.guaranteed,
            maximum: headroom.maximum,
            grants_released: headroom.grants_released != 0,
            is_sequential: headroom.is_sequential != 0,
        }
    }
}
