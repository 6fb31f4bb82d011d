//! The options of a pool.

use std::ffi::c_char;
use std::mem::offset_of;
use std::time::Duration;

use allotment::{MAX_WAIT, Options, Policy};

use crate::headroom::HeadroomFunction;
use crate::pages::PageSource;
use crate::plan::{PlanBuffer, plan_option};
use crate::status::{Failure, Status, null, run, text_argument};
use crate::versioned::{check_size, copy_of, write_to};

/// The split rule of TensorFlow's allocator: a chunk of up to twice the request stays whole.
pub const ALLOTMENT_POLICY_TENSORFLOW: i32 = 0;
/// Every remainder of 256 bytes or more is split off.
pub const ALLOTMENT_POLICY_TIGHT: i32 = 1;
/// The source decides whether adjacent regions are joined.
pub const ALLOTMENT_JOIN_AS_SOURCE: i32 = -1;
/// A quarantine of an eighth of the limit, at most 64 MiB.
pub const ALLOTMENT_QUARANTINE_DEFAULT: u64 = u64::MAX;

/// Options of a pool. Call `allotment_options_init` first, then change fields. A pool copies all that the options point
/// to. Later versions add fields at the end, of which 0 is the default.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct PoolOptions {
    /// The size of this structure in bytes, as the caller was compiled.
    pub struct_size: usize,
    /// The most bytes that the pool reserves, at least 1.
    pub limit: u64,
    /// Not 0: regions start at 2 MiB and double. 0: the first region takes the whole limit. 1 by default.
    pub growth: i32,
    /// Not 0: a refusal first releases wholly free regions and grows again. 1 by default.
    pub trim_on_oom: i32,
    /// 1: a region that starts where another ends is joined to it; 0: never; `ALLOTMENT_JOIN_AS_SOURCE` by default.
    pub joins_regions: i32,
    /// `ALLOTMENT_POLICY_TENSORFLOW` (the default) or `ALLOTMENT_POLICY_TIGHT`.
    pub policy: i32,
    /// How long a refused request waits for another thread's free, in seconds, up to a year. 0 by default. What is
    /// freed goes to the request that has waited longest and fits.
    pub wait_seconds: f64,
    /// Remainders from this fraction of the limit on are split off; 0, the default, means 128 MiB.
    pub fragmentation_fraction: f64,
    /// Not 0: allocations are recorded under the tag of their thread, `allotment_set_tag`. 0 by default.
    pub owner_tags: i32,
    /// Not 0: each thread keeps small chunks for its next requests, without the lock. Without effect with guard mode or
    /// owner tags. 0 by default.
    pub thread_caches: i32,
    /// Not 0: guard mode, over memory of this process: it finds writes past an end and after a free. 0 by default.
    pub guard: i32,
    /// The most bytes of freed memory in quarantine in guard mode; `ALLOTMENT_QUARANTINE_DEFAULT` by default.
    pub quarantine: u64,
    /// The pool's name in reports; null for "pool". Copied.
    pub name: *const c_char,
    /// The setting that defined the limit, for reports; null for "limit". Copied.
    pub limit_set_by: *const c_char,
    /// Not 0: an elastic pool, over a source with pages, such as memory of this process. 0 by default.
    pub elastic: i32,
    /// The page size of an elastic pool in bytes; 0, the default, leaves it to the source.
    pub page_size: u64,
    /// A static plan that the pool follows; null, the default, for none. Each request of the planned size, in the order
    /// of the plan, which begins again at its end, gets its planned place in one arena; other requests are served as in
    /// any pool. Not with guard mode, an elastic pool, or thread caches.
    pub plan: *const PlanBuffer,
    /// The number of buffers in `plan`.
    pub plan_length: usize,
    /// The alignment of the plan in bytes, a power of two from 256 on: offsets are multiples of it, and sizes are
    /// rounded up to it. 0, the default, means 256.
    pub plan_alignment: u64,
    /// Functions of the caller's source for an elastic pool; null, the default: it has whole regions only. For
    /// `allotment_pool_create`, with `elastic`.
    pub pages: *const PageSource,
    /// Not 0: the memory of the caller's source is memory of this process, which the pool may read and write, as guard
    /// mode does. 0 by default. For `allotment_pool_create`.
    pub source_is_host_memory: i32,
    /// After about this many seconds without an allocation and a free, a thread of the library trims the pool, once
    /// until its next use. 0, the default: never. The thread ends some time after the last such pool;
    /// the shared library stays loaded after `dlclose`.
    pub idle_trim_seconds: f64,
    /// A function of the caller's source that says how much it could grant, for advice after refusals and for
    /// `allotment_can_allocate`; null, the default: it is not known. `context` is that of the source. Several threads
    /// may call it at once, also while one is in another function of the source. A source that grants more than
    /// requested must leave it null. For `allotment_pool_create`.
    pub headroom: HeadroomFunction,
}

impl PoolOptions {
    fn new(limit: u64) -> Self {
        Self {
            struct_size: size_of::<Self>(),
            limit,
            growth: 1,
            trim_on_oom: 1,
            joins_regions: ALLOTMENT_JOIN_AS_SOURCE,
            policy: ALLOTMENT_POLICY_TENSORFLOW,
            wait_seconds: 0.0,
            fragmentation_fraction: 0.0,
            owner_tags: 0,
            thread_caches: 0,
            guard: 0,
            quarantine: ALLOTMENT_QUARANTINE_DEFAULT,
            name: std::ptr::null(),
            limit_set_by: std::ptr::null(),
            elastic: 0,
            page_size: 0,
            plan: std::ptr::null(),
            plan_length: 0,
            plan_alignment: 0,
            pages: std::ptr::null(),
            source_is_host_memory: 0,
            idle_trim_seconds: 0.0,
            headroom: None,
        }
    }
}

/// Sets all options to their defaults, with a limit in bytes. `struct_size` is `sizeof(allotment_options)`.
///
/// # Safety
/// `options` points to that many writable bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_options_init(
    options: *mut PoolOptions,
    struct_size: usize,
    limit: u64,
) -> Status {
    run(|| {
        let defaults = PoolOptions { struct_size, ..PoolOptions::new(limit) };
        if options.is_null() {
            return Err(null("options"));
        }
        check_size(struct_size, FIRST_VERSION, NAME)?;
        // SAFETY: guaranteed by the caller.
        unsafe { write_to(options, &defaults, struct_size) };
        Ok(())
    })
}

/// The size of the first version of the options, which ended with this field.
const FIRST_VERSION: usize = offset_of!(PoolOptions, limit_set_by) + size_of::<*const c_char>();
const NAME: &str = "allotment_options";

/// Returns a copy of the caller's options.
///
/// # Safety
/// `options` is null or points to options.
pub(crate) unsafe fn copy_options(options: *const PoolOptions) -> Result<PoolOptions, Failure> {
    if options.is_null() {
        return Err(null("options"));
    }
    // SAFETY: guaranteed by the caller.
    unsafe { copy_of(options, PoolOptions::new(0), FIRST_VERSION, NAME) }
}

/// Returns the time after which an idle pool is trimmed.
pub(crate) fn idle_trim(passed: &PoolOptions) -> Result<Option<Duration>, Failure> {
    let seconds = passed.idle_trim_seconds;
    if seconds == 0.0 {
        return Ok(None);
    }
    let after = Duration::try_from_secs_f64(seconds).ok().filter(|&after| after <= MAX_WAIT);
    let text = || Failure::invalid(format!("idle_trim_seconds {seconds} is not between 0 and a year"));
    after.ok_or_else(text).map(Some)
}

/// Returns the core's options.
///
/// # Safety
/// The texts of the options are null or end with a null byte, and `plan` is null or points to `plan_length` buffers.
pub(crate) unsafe fn core_options(passed: &PoolOptions) -> Result<Options, Failure> {
    let policy = match passed.policy {
        ALLOTMENT_POLICY_TENSORFLOW => Policy::TensorFlow,
        ALLOTMENT_POLICY_TIGHT => Policy::Tight,
        other => {
            return Err(Failure::invalid(format!("policy {other} is neither 0 (tensorflow) nor 1 (tight)")));
        }
    };
    let joins_regions = match passed.joins_regions {
        ALLOTMENT_JOIN_AS_SOURCE => None,
        0 => Some(false),
        1 => Some(true),
        other => return Err(Failure::invalid(format!("joins_regions {other} is not -1, 0 or 1"))),
    };
    let wait = Duration::try_from_secs_f64(passed.wait_seconds).map_err(|_| {
        Failure::invalid(format!("wait_seconds {} is not between 0 and a year", passed.wait_seconds))
    })?;
    // SAFETY: guaranteed by the caller.
    let (name, limit_set_by, plan) = unsafe {
        (
            text_argument(passed.name, "name")?,
            text_argument(passed.limit_set_by, "limit_set_by")?,
            plan_option(passed.plan, passed.plan_length, passed.plan_alignment)?,
        )
    };
    let mut options = Options::new(passed.limit);
    options.growth = passed.growth != 0;
    options.trim_on_oom = passed.trim_on_oom != 0;
    options.joins_regions = joins_regions;
    options.policy = policy;
    options.wait = wait;
    options.fragmentation_fraction = passed.fragmentation_fraction;
    options.owner_tags = passed.owner_tags != 0;
    options.thread_caches = passed.thread_caches != 0;
    options.elastic = passed.elastic != 0;
    options.page_size = Some(passed.page_size).filter(|&bytes| bytes > 0);
    options.guard = passed.guard != 0;
    options.plan = plan.map(Into::into);
    options.quarantine = Some(passed.quarantine).filter(|&bytes| bytes != ALLOTMENT_QUARANTINE_DEFAULT);
    if let Some(name) = name {
        name.clone_into(&mut options.name);
    }
    if let Some(text) = limit_set_by {
        text.clone_into(&mut options.limit_set_by);
    }
    Ok(options)
}
