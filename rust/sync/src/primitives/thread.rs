//! What tells a thread from all others that are there: a multiple of 8 above 0 and below 2^48.
//!
//! On Linux it is the address of the thread's own block of memory, which the machine keeps in a register: thread-local
//! data of a shared library would be found by a call of a function, this is one instruction. Whoever gives a thread
//! the block of an earlier one has waited for that one's end, so what the earlier one did comes before what the later
//! one does.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
#[inline(always)]
pub(crate) fn this_thread() -> u64 {
    let address: u64;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the block starts with its own address, which never changes (System V ABI).
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) address, options(pure, readonly, nostack, preserves_flags));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: reads a register that every program may read.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) address, options(pure, nomem, nostack, preserves_flags));
    }
    address
}

/// Elsewhere it is a number of the thread's own, never used twice.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"), not(miri))))]
#[inline]
pub(crate) fn this_thread() -> u64 {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicU64, Ordering};

    const STEP: u64 = 8;
    static NEXT: AtomicU64 = AtomicU64::new(STEP);
    thread_local! {
        static NUMBER: Cell<u64> = const { Cell::new(0) };
    }
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(STEP, Ordering::Relaxed));
        }
        number.get()
    })
}
