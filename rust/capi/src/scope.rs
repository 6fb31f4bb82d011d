//! Scopes: what a part of a program holds, and how much it may hold.

use std::ffi::c_char;
use std::ptr;
use std::sync::{Arc, Weak};

use allotment::ScopeStats;

use crate::pool::{Pool, core_of, require, store};
use crate::status::{Failure, Status, null, run, text_argument};

/// A scope without a limit.
pub const ALLOTMENT_NO_LIMIT: u64 = u64::MAX;

/// An open scope of a pool, which `allotment_scope_close` frees. It ends with its pool: calls on it then return
/// `ALLOTMENT_SCOPE_CLOSED`.
#[derive(Debug)]
pub struct Scope {
    pool: Weak<allotment::Pool>,
    inner: allotment::Scope,
}

impl Scope {
    fn pool(&self) -> Result<Arc<allotment::Pool>, Failure> {
        self.pool.upgrade().ok_or_else(closed)
    }
}

/// The figures of a scope in bytes: requests rounded up to 256 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct ScopeFigures {
    /// The most bytes it may hold; `ALLOTMENT_NO_LIMIT` without a limit.
    pub limit: u64,
    /// Bytes held now, or at the close of the scope.
    pub live: u64,
    /// Allocations held at the same moment.
    pub num_live: u64,
    /// The high-water mark of the bytes held.
    pub peak: u64,
    /// Total bytes allocated in it.
    pub allocated: u64,
    /// Total bytes freed of those.
    pub freed: u64,
}

impl From<ScopeStats> for ScopeFigures {
    fn from(stats: ScopeStats) -> Self {
        let ScopeStats { limit, live, num_live, peak, allocated, freed, .. } = stats;
        Self { limit: limit.unwrap_or(ALLOTMENT_NO_LIMIT), live, num_live, peak, allocated, freed }
    }
}

fn limit_of(bytes: u64) -> Option<u64> {
    Some(bytes).filter(|&bytes| bytes != ALLOTMENT_NO_LIMIT)
}

fn closed() -> Failure {
    let text = "the scope is not open any more: its pool has ended".to_owned();
    Failure { status: Status::AllotmentScopeClosed, text, refusal: None }
}

/// Opens a scope inside this thread's current one, and stores it; null on failure. Later allocations of this thread
/// count for it. With `shared` not 0, it counts those of all threads, in scopes that they open meanwhile, too; not
/// those of a thread in a scope that it opened before. `limit` bounds the bytes that it holds; `ALLOTMENT_NO_LIMIT` for
/// no limit. The name is copied. In a destructor at the very end of a thread only a shared scope can be opened.
///
/// # Safety
/// `pool` is a pool; `name` ends with a null byte; `scope` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_scope_open(
    pool: *const Pool,
    name: *const c_char,
    limit: u64,
    shared: i32,
    scope: *mut *mut Scope,
) -> Status {
    run(|| {
        require(scope, "scope")?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            store(scope, ptr::null_mut());
            let pool = core_of(pool)?;
            let name = text_argument(name, "name")?.ok_or_else(|| null("name"))?;
            let inner = pool.open_scope(name, limit_of(limit), shared != 0)?;
            store(scope, Box::into_raw(Box::new(Scope { pool: Arc::downgrade(pool), inner })));
        }
        Ok(())
    })
}

/// Returns a scope argument.
///
/// # Safety
/// `scope` is null or a scope that is not closed.
unsafe fn scope_of<'a>(scope: *const Scope) -> Result<&'a Scope, Failure> {
    // SAFETY: guaranteed by the caller.
    unsafe { scope.as_ref() }.ok_or_else(|| null("scope"))
}

/// Stores the figures of an open scope.
///
/// # Safety
/// `scope` is a scope; `figures` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_scope_stats_get(
    scope: *const Scope,
    figures: *mut ScopeFigures,
) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let scope = unsafe { scope_of(scope)? };
        require(figures, "figures")?;
        let stats = scope.pool()?.scope_stats(scope.inner)?.ok_or_else(closed)?;
        // SAFETY: guaranteed by the caller.
        unsafe { store(figures, stats.into()) };
        Ok(())
    })
}

/// Changes the limit of an open scope; `ALLOTMENT_NO_LIMIT` removes it. A scope that holds more gets nothing more until
/// it holds less.
///
/// # Safety
/// `scope` is a scope.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_scope_set_limit(scope: *const Scope, limit: u64) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let scope = unsafe { scope_of(scope)? };
        let is_open = scope.pool()?.set_scope_limit(scope.inner, limit_of(limit))?;
        if is_open { Ok(()) } else { Err(closed()) }
    })
}

/// Closes a scope from any thread, stores its final figures, and frees it, also on failure. Its live allocations keep
/// counting for the enclosing scopes, and scopes inside it stay open. Null is accepted.
///
/// # Safety
/// `scope` is a scope, which is not used afterwards, or null; `figures` is null or can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_scope_close(scope: *mut Scope, figures: *mut ScopeFigures) -> Status {
    run(|| {
        if scope.is_null() {
            return Ok(());
        }
        // SAFETY: guaranteed by the caller; it came from `Box::into_raw`.
        let scope = unsafe { Box::from_raw(scope) };
        let stats = scope.pool()?.close_scope(scope.inner)?.ok_or_else(closed)?;
        // SAFETY: guaranteed by the caller.
        unsafe { store(figures, stats.into()) };
        Ok(())
    })
}
