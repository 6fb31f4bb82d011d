//! Pools on the same memory, which release idle regions for each other.

use std::ptr;
use std::sync::{Arc, Mutex, PoisonError};

use allotment::Siblings;
use allotment_sync::PerProcess;

use crate::pool::{Pool, core_of};
use crate::status::{Failure, Status, run};

/// Lets one thread join pools at a time: of two joins in opposite directions one succeeds. A forked child has a lock of
/// its own.
static JOINING: PerProcess<Mutex<()>> = PerProcess::new(Mutex::new(()), Mutex::default);

/// Makes `pool` a sibling of `other`, and of the siblings that `other` has: pools over sources that share one memory.
/// Before one of them refuses a request that its source declined, the others release wholly free regions, the largest
/// first. Pools without `trim_on_oom` keep theirs. It lasts until the end of the pools. A pool that has siblings
/// already cannot join others.
///
/// # Safety
/// `pool` and `other` are pools.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn allotment_pool_join(pool: *const Pool, other: *const Pool) -> Status {
    run(|| {
        // SAFETY: guaranteed by the caller.
        let (joined, to) = unsafe {
            for pool in [pool, other] {
                core_of(pool)?.limit()?;
            }
            (&*pool, &*other)
        };
        if ptr::eq(joined, to) {
            return Err(Failure::invalid("pool and other are the same pool"));
        }
        let _joining = JOINING.get().lock().unwrap_or_else(PoisonError::into_inner);
        let refused =
            || Failure::invalid("pool has siblings already: make it a sibling before other pools join it");
        if joined.siblings.get().is_some() {
            return Err(refused());
        }
        let siblings = to.siblings.get_or_init(|| {
            let siblings = Arc::<Siblings>::default();
            to.core.join(&siblings);
            siblings
        });
        joined.siblings.set(Arc::clone(siblings)).map_err(|_| refused())?;
        joined.core.join(siblings);
        Ok(())
    })
}
