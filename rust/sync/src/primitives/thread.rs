//! Identifies the calling thread by a number above 0 and below 2^48.
//!
//! On Linux the number is the address of the thread control block, which a register holds. Reading it takes one
//! instruction; thread-local data of a shared library would take a function call. Two threads that run at the same time
//! have two control blocks. A thread gets the control block of an earlier one only after the C library has ordered all
//! use of that memory by the one before all use by the other, as everything must that gives memory out again.

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
    // SAFETY: every program may read this register.
    unsafe {
        std::arch::asm!("mrs {}, tpidr_el0", out(reg) address, options(pure, nomem, nostack, preserves_flags));
    }
    address
}

/// Elsewhere the number is a thread-local counter value that is never reused.
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
