//! What a handler does with a pool: take, clear, resize, give back. Never unwinds, never waits for the interpreter.
//!
//! The data is held: a free by its address is refused, and the end of the array frees nothing but its data.

#![allow(unsafe_code)]

use std::ffi::c_void;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use allotment::{AllocError, FreeError, Pool, Refused, Unusable};
use allotment_host::{Watch, end_of_region};

use super::abi::Functions;
use super::refused;
use super::small::{Door, Small};
use crate::guard::log_damage;
use crate::tag;
use crate::watched::admit_data;

/// What came of a request to a pool.
pub(super) enum Taken {
    Data(*mut c_void),
    /// Null, for NumPy to make a `MemoryError` of.
    Refused,
    /// This process was forked off the pool's.
    Forked,
}

/// Where a handler's data is: a pool, and what is kept back of its small data, if anything is.
#[derive(Clone)]
pub(super) struct Home {
    pub(super) pool: Arc<Pool>,
    pub(super) small: Option<Arc<Small>>,
    /// Where the pool may hand out no more than the machine has.
    pub(super) watch: Option<Arc<Watch>>,
}

impl Home {
    /// Takes small data that was kept, if that is a matter of some instructions; [`Home::take`] is for the rest.
    #[inline(always)]
    pub(super) fn take_kept(&self, bytes: usize) -> Option<*mut c_void> {
        self.small.as_ref()?.take(bytes, Door::Owner)
    }

    /// Takes memory; if the pool refuses, the reason is kept.
    ///
    /// It does not wait for a free, whatever the pool's options say: the caller may hold the interpreter, which
    /// whoever would free needs. NumPy's smallest request is one byte; zero would have no address.
    pub(super) fn take(&self, bytes: usize) -> Taken {
        let bytes = bytes.max(1);
        let Some(small) = &self.small else { return self.take_looked_at(bytes) };
        if let Some(data) = small.take(bytes, Door::Any) {
            return Taken::Data(data);
        }
        let taken = self.take_from_pool(bytes, || small.give_back());
        if let Taken::Data(data) = taken {
            small.handed_out(data, bytes);
        }
        taken
    }

    /// Takes memory from a pool that keeps back no small data, because each allocation is looked at or told whose it is.
    // Not where it is called: what it takes would be put aside for all other data, too.
    #[cold]
    #[inline(never)]
    fn take_looked_at(&self, bytes: usize) -> Taken {
        let take = || self.take_from_pool(bytes, || false);
        if self.pool.options().owner_tags { tag::with_line_of_array(take) } else { take() }
    }

    /// `make_room` is tried once before the pool refuses; it says whether anything was given back.
    #[inline]
    fn take_from_pool(&self, bytes: usize, make_room: impl Fn() -> bool) -> Taken {
        if let Some(watch) = &self.watch
            && let Err(refused) = self.admit(watch, bytes)
        {
            return refused;
        }
        take(&self.pool, bytes, make_room)
    }

    #[cold]
    #[inline(never)]
    fn admit(&self, watch: &Arc<Watch>, bytes: usize) -> Result<(), Taken> {
        let admitted = catch_unwind(AssertUnwindSafe(|| admit_data(&self.pool, Some(watch), bytes as u64)));
        match admitted {
            Ok(admitted) => admitted.map_err(|error| keep_refusal(&self.pool, error)),
            Err(_) => Err(Taken::Refused),
        }
    }

    /// Keeps small data of this pool for the next array, if that is a matter of some instructions; whoever's data it
    /// is may be asked. [`Home::give_back`] is for the rest.
    #[inline(always)]
    pub(super) fn keep(&self, data: *mut c_void) -> bool {
        self.small.as_ref().is_some_and(|small| small.keep(data))
    }

    /// Gives memory back; an error if the pool does not know it, or was left behind by a fork.
    pub(super) fn give_back(&self, data: *mut c_void) -> Result<(), FreeError> {
        if self.small.as_ref().is_some_and(|small| small.keep_or_forget(data)) {
            return Ok(());
        }
        give_back(&self.pool, data)
    }

    /// Makes data `bytes` long if its chunk is.
    pub(super) fn resize(&self, data: *mut c_void, bytes: usize) -> Resized {
        let resized = resize(&self.pool, data, bytes);
        if let (Some(small), Resized::InPlace | Resized::Short(_)) = (&self.small, &resized) {
            small.forget_about(data);
        }
        resized
    }

    /// Moves data of `held` bytes to a longer chunk; null, and nothing happened, if the pool refuses.
    ///
    /// # Safety
    /// `data` is the pool's, `held` bytes long, shorter than `bytes`, and the caller has it to itself.
    pub(super) unsafe fn grow(&self, data: *mut c_void, held: usize, bytes: usize) -> *mut c_void {
        let Taken::Data(longer) = self.take(bytes) else { return ptr::null_mut() };
        // SAFETY: the caller's promise, and what was just taken is nobody else's.
        unsafe { longer.cast::<u8>().copy_from_nonoverlapping(data.cast(), held) };
        let _ = self.give_back(data);
        longer
    }
}

/// `make_room` is tried once before the pool refuses; it says whether anything was given back.
fn take(pool: &Pool, bytes: usize, make_room: impl Fn() -> bool) -> Taken {
    let bytes = bytes as u64;
    // A host source never needs the interpreter, so waiting for the turn cannot stop whoever has it.
    let allocate = || {
        let mut tried = false;
        let make_room = |_: &Refused| !mem::replace(&mut tried, true) && make_room();
        pool.allocate_held(bytes, make_room).map_err(|mut error| {
            if let AllocError::OutOfMemory(refused) = &mut error {
                // In a forked child the text goes without.
                let _ = pool.look_into(refused);
            }
            error
        })
    };
    let taken = catch_unwind(AssertUnwindSafe(|| {
        loop {
            match allocate() {
                // An array that is not made could only say that memory is short, and it is not.
                Err(AllocError::Damaged(damage)) => log_damage(&pool.options().name, &damage),
                taken => return taken,
            }
        }
    }));
    match taken {
        Ok(Ok(allocation)) => Taken::Data(pointer(allocation.address)),
        Ok(Err(error)) => keep_refusal(pool, error),
        Err(_) => Taken::Refused,
    }
}

/// Keeps the reason of a refusal.
fn keep_refusal(pool: &Pool, error: AllocError) -> Taken {
    let forked = matches!(error, AllocError::Unusable(Unusable::Forked));
    refused::keep(pool, error);
    if forked { Taken::Forked } else { Taken::Refused }
}

/// Makes what was just taken read as zero.
///
/// # Safety
/// `data` is that many bytes of host memory that the caller has to itself.
pub(super) unsafe fn clear(data: *mut c_void, bytes: usize) {
    // SAFETY: the caller's promise. A panic (there is none known) must not unwind into C.
    let _ = catch_unwind(|| unsafe { allotment_host::clear(data.cast(), bytes) });
}

/// NumPy has nobody to tell of a failure; damage is told by the next call that can.
fn give_back(pool: &Pool, data: *mut c_void) -> Result<(), FreeError> {
    let freed = catch_unwind(AssertUnwindSafe(|| match pool.free_held(data.expose_provenance() as u64) {
        Err(FreeError::Damaged(damage)) => {
            pool.keep_damage(damage);
            Ok(())
        }
        freed => freed,
    }));
    freed.unwrap_or(Ok(()))
}

/// What came of asking a pool to make room where the data is.
pub(super) enum Resized {
    InPlace,
    /// It does not fit; so many bytes of the data are worth copying elsewhere.
    Short(usize),
    /// The pool knows no such data, or was left behind by a fork.
    Unknown,
}

fn resize(pool: &Pool, data: *mut c_void, bytes: usize) -> Resized {
    let (address, bytes) = (data.expose_provenance() as u64, bytes.max(1) as u64);
    match catch_unwind(AssertUnwindSafe(|| pool.resize_in_place(address, bytes))) {
        Ok(Ok(held)) if held >= bytes => Resized::InPlace,
        // A chunk shorter than `bytes`, so its length fits.
        Ok(Ok(held)) => Resized::Short(usize::try_from(held).unwrap_or(0)),
        _ => Resized::Unknown,
    }
}

/// Moves data that a forked child cannot free to where NumPy's own handler keeps it.
///
/// # Safety
/// `data` lies in a region of host memory that stays where it is; `original` are the functions of a live handler.
pub(super) unsafe fn move_out(original: &Functions, data: *mut c_void, bytes: usize) -> *mut c_void {
    let start = data.expose_provenance() as u64;
    let Some(end) = end_of_region(start) else { return ptr::null_mut() };
    // How long the data is only the parent's tables say. What lies behind it up to the region's end can be read, too,
    // and means as little to NumPy as new memory does.
    let readable = usize::try_from(end - start).unwrap_or(usize::MAX);
    // SAFETY: the caller's promise; a region's bytes can be read to its end.
    unsafe {
        let moved = (original.malloc)(original.ctx, bytes);
        if !moved.is_null() {
            moved.cast::<u8>().copy_from_nonoverlapping(data.cast(), readable.min(bytes));
        }
        moved
    }
}

fn pointer(address: u64) -> *mut c_void {
    usize::try_from(address).map_or(ptr::null_mut(), ptr::with_exposed_provenance_mut)
}
