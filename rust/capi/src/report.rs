//! What a pool holds, and why it refuses: figures and JSON.

use std::ffi::{CString, c_char};
use std::mem::offset_of;
use std::ptr;

use allotment::OutOfMemory;
use serde_json::{Value, json};

use crate::pool::{Pool, core_of, require, store};
use crate::status::{Failure, Status, run};
use crate::versioned::{check_size, write_to};

/// The counters of a pool at one moment, in bytes where nothing else is said. Later versions add fields at the end.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PoolStats {
    /// Requested bytes of all live allocations.
    pub requested: u64,
    /// Bytes of the chunks in use.
    pub in_use: u64,
    /// Bytes of all regions.
    pub reserved: u64,
    /// The most bytes that may be reserved.
    pub limit: u64,
    /// `reserved` - `in_use`; 0 in a paused pool.
    pub free: u64,
    /// The size of the largest free chunk; in an elastic pool, of the largest request that its memory serves.
    pub largest_free: u64,
    /// High-water mark of `requested` since the last reset of the peaks.
    pub peak_requested: u64,
    /// High-water mark of `in_use`.
    pub peak_in_use: u64,
    /// High-water mark of `reserved`.
    pub peak_reserved: u64,
    /// The largest request ever served.
    pub largest_requested: u64,
    /// The number of allocations ever made.
    pub num_allocs: u64,
    /// The number of live allocations.
    pub num_live: u64,
    /// The number of regions.
    pub num_regions: u64,
    /// The number of regions ever granted, or of ranges of addresses.
    pub num_grants: u64,
    /// The number of requests refused for lack of memory.
    pub num_refused: u64,
    /// The part of `free` that thread caches keep.
    pub thread_cached: u64,
    /// The part of `num_allocs` that thread caches served.
    pub num_from_thread_caches: u64,
    /// How often a page of an elastic pool received memory.
    pub num_commits: u64,
    /// Requests that got their place in the pool's plan; 0 in pools without one.
    pub num_planned: u64,
}

impl From<allotment::Stats> for PoolStats {
    fn from(stats: allotment::Stats) -> Self {
        Self {
            requested: stats.requested,
            in_use: stats.in_use,
            reserved: stats.reserved,
            limit: stats.limit,
            free: stats.free,
            largest_free: stats.largest_free,
            peak_requested: stats.peak_requested,
            peak_in_use: stats.peak_in_use,
            peak_reserved: stats.peak_reserved,
            largest_requested: stats.largest_requested,
            num_allocs: stats.num_allocs,
            num_live: stats.num_live,
            num_regions: stats.num_regions,
            num_grants: stats.num_grants,
            num_refused: stats.num_refused,
            thread_cached: stats.thread_cached,
            num_from_thread_caches: stats.num_from_thread_caches,
            num_commits: stats.num_commits,
            num_planned: stats.num_planned,
        }
    }
}

/// The size of the first version of the counters, which ended with this field.
const FIRST_VERSION: usize = offset_of!(PoolStats, num_refused) + size_of::<u64>();

/// Stores the counters. `struct_size` is `sizeof(allotment_stats)`: a program that was compiled against an earlier
/// version gets the fields of that version, and fields that this library does not know are 0.
///
/// # Safety
/// `pool` is a pool; `stats` points to that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_stats_get(
    pool: *const Pool,
    stats: *mut PoolStats,
    struct_size: usize,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let pool = unsafe { core_of(pool)? };
        require(stats, "stats")?;
        check_size(struct_size, FIRST_VERSION, "allotment_stats")?;
        let current = PoolStats::from(pool.stats()?);
        // SAFETY: guaranteed by the caller.
        unsafe { write_to(stats, &current, struct_size) };
        Ok(())
    })
}

/// Sets every peak to its current value.
///
/// # Safety
/// `pool` is a pool.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_reset_peaks(pool: *const Pool) -> Status {
    // SAFETY: guaranteed by the caller.
    run(|| Ok(unsafe { core_of(pool)? }.reset_peaks()?))
}

/// Stores all regions and chunks as JSON: `name`, `stats`, and `regions` with their `chunks`. The caller frees the
/// text with `allotment_string_free`; null on failure.
///
/// # Safety
/// `pool` is a pool; `json` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_snapshot_json(pool: *const Pool, json: *mut *mut c_char) -> Status {
    // SAFETY: guaranteed by the caller.
    unsafe {
        store_json(pool, json, |pool| {
            let snapshot = pool.snapshot()?;
            serde_json::to_string(&snapshot).map_err(|error| Failure {
                status: Status::AllotmentInternal,
                text: error.to_string(),
                refusal: None,
            })
        })
    }
}

/// Stores why a request of `bytes` bytes would be refused now, as JSON: the figures of the pool, the verdict and the
/// advice; `null` if it would be served. The caller frees the text with `allotment_string_free`; null on failure.
///
/// # Safety
/// `pool` is a pool; `json` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_explain_json(
    pool: *const Pool,
    bytes: u64,
    json: *mut *mut c_char,
) -> Status {
    // SAFETY: guaranteed by the caller.
    unsafe {
        store_json(pool, json, |pool| {
            let refusal = pool.explain(bytes)?;
            Ok(refusal.map_or(Value::Null, |refusal| refusal_json(&refusal)).to_string())
        })
    }
}

/// Stores whether a request of `bytes` bytes would be served now, as far as the source says what it has: 1 or 0. A
/// closed pool serves nothing.
///
/// # Safety
/// `pool` is a pool; `served` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_can_allocate(pool: *const Pool, bytes: u64, served: *mut i32) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        unsafe {
            let pool = core_of(pool)?;
            require(served, "served")?;
            store(served, i32::from(pool.can_allocate(bytes)?));
        }
        Ok(())
    })
}

/// Checks all memory of a pool in guard mode, and stores the damage that no call has reported, as a JSON list: of each
/// the `place`, the `address`, the `requested` bytes and the `id` of the allocation, the `offset` of the first damaged
/// byte, and a `text`. Damage to live allocations is in it each time. The caller frees the text with
/// `allotment_string_free`; null on failure.
///
/// # Safety
/// `pool` is a pool; `json` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_inspect_json(pool: *const Pool, json: *mut *mut c_char) -> Status {
    // SAFETY: guaranteed by the caller.
    unsafe {
        store_json(pool, json, |pool| {
            let damages = pool.inspect()?.into_iter().map(|damage| {
                json!({
                    "place": damage.place.as_str(),
                    "address": damage.address,
                    "requested": damage.requested,
                    "id": damage.id,
                    "offset": damage.offset,
                    "text": damage.to_string(),
                })
            });
            Ok(damages.collect::<Value>().to_string())
        })
    }
}

/// Stores a text that the caller frees.
///
/// # Safety
/// `pool` is null or a pool; `out` is null or can be written.
unsafe fn store_json(
    pool: *const Pool,
    out: *mut *mut c_char,
    make: impl FnOnce(&allotment::Pool) -> Result<String, Failure>,
) -> Status {
    run(|| {
        require(out, "json")?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            store(out, ptr::null_mut());
            // JSON escapes null bytes.
            let text = CString::new(make(core_of(pool)?)?)
                .map_err(|_| Failure::invalid("a name contains a null byte"))?;
            store(out, text.into_raw());
        }
        Ok(())
    })
}

/// Returns the figures, the verdict and the advice of a refusal.
pub(crate) fn refusal_json(refusal: &OutOfMemory) -> Value {
    let advice = refusal.advice.iter().map(|advice| {
        json!({
            "action": advice.action.as_str(),
            "bytes": advice.bytes,
            "when": advice.when.as_str(),
            "text": advice.to_string(),
        })
    });
    json!({
        "requested": refusal.requested,
        "needed": refusal.needed,
        "limit": refusal.limit,
        "limit_set_by": &*refusal.limit_set_by,
        "live_requested": refusal.live_requested,
        "in_use": refusal.in_use,
        "internal_fragmentation": refusal.internal_fragmentation,
        "reserved": refusal.reserved,
        "free": refusal.free,
        "largest_free": refusal.largest_free,
        "num_live": refusal.num_live,
        "verdict": refusal.verdict.as_str(),
        "scope": refusal.scope_limit.as_ref().map(|scope| {
            json!({ "name": scope.name, "limit": scope.limit, "live": scope.live })
        }),
        "advice": advice.collect::<Vec<_>>(),
        "text": refusal.to_string(),
    })
}
