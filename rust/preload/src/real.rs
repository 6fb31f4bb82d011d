//! The allocator that this library stands before: the C library's, or one that the program brings along.
//!
//! Its functions are found by `dlsym`, which may allocate itself. What is allocated meanwhile comes from a small buffer and
//! is never reused.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

/// Bytes of the buffer for what `dlsym` allocates: some hundred in the C library.
const BUFFER_BYTES: usize = 16 << 10;
/// Alignment of every allocation, as the C library promises it.
pub(crate) const ALIGNMENT: usize = 16;

#[repr(align(16))]
struct Buffer {
    _bytes: [u8; BUFFER_BYTES],
}

static mut BUFFER: Buffer = Buffer { _bytes: [0; BUFFER_BYTES] };
static BUFFER_USED: AtomicUsize = AtomicUsize::new(0);

/// The thread that looks for the functions, by the address of its `errno`; 0 for none.
static RESOLVING: AtomicUsize = AtomicUsize::new(0);
/// Whether the functions are known.
static IS_RESOLVED: AtomicBool = AtomicBool::new(false);

/// Defines a function of the real allocator: a jump to an address. Until the address is known that is a function which
/// finds all of them. While `dlsym` runs, and where the allocator has no such function, the result is `otherwise`.
macro_rules! real {
    ($($name:ident($($argument:ident: $type:ty),*) -> $result:ty { $c_name:literal otherwise $otherwise:expr })*) => {
        /// The addresses.
        mod address {
            use super::*;
            $(
                #[expect(non_upper_case_globals, reason = "named as the function is")]
                pub(super) static $name: AtomicPtr<c_void> = AtomicPtr::new(early::$name as *const () as *mut c_void);
            )*
        }

        /// The functions that the addresses lead to at first.
        mod early {
            use super::*;
            $(
                pub(super) unsafe extern "C" fn $name($($argument: $type),*) -> $result {
                    let early = $name as *const () as *mut c_void;
                    if resolve() && address::$name.load(Ordering::Relaxed) != early {
                        // SAFETY: guaranteed by the caller.
                        return unsafe { super::$name($($argument),*) };
                    }
                    $otherwise
                }
            )*
        }

        $(
            /// As the C function.
            ///
            /// # Safety
            /// As that function.
            #[inline(always)]
            pub(crate) unsafe fn $name($($argument: $type),*) -> $result {
                type Signature = unsafe extern "C" fn($($type),*) -> $result;
                // With what was stored before it: see `careful`.
                let address = address::$name.load(Ordering::Acquire);
                // SAFETY: it is that of a function above, or `dlsym` found it under this name, which has this signature
                // in every C library.
                let function = unsafe { mem::transmute::<*mut c_void, Signature>(address) };
                // SAFETY: guaranteed by the caller.
                unsafe { function($($argument),*) }
            }
        )*

        fn find_all() {
            $(
                // SAFETY: the name ends with a zero byte.
                let found = unsafe { libc::dlsym(libc::RTLD_NEXT, $c_name.as_ptr()) };
                if !found.is_null() {
                    address::$name.store(found, Ordering::Release);
                }
            )*
        }
    };
}

real! {
    malloc(bytes: usize) -> *mut c_void { c"malloc" otherwise from_buffer(bytes) }
    calloc(count: usize, bytes: usize) -> *mut c_void {
        c"calloc" otherwise from_buffer(count.saturating_mul(bytes))
    }
    realloc(block: *mut c_void, bytes: usize) -> *mut c_void { c"realloc" otherwise move_in_buffer(block, bytes) }
    free(_block: *mut c_void) -> () { c"free" otherwise () }
    memalign(_alignment: usize, _bytes: usize) -> *mut c_void { c"memalign" otherwise ptr::null_mut() }
    aligned_alloc(_alignment: usize, _bytes: usize) -> *mut c_void { c"aligned_alloc" otherwise ptr::null_mut() }
    posix_memalign(_block: *mut *mut c_void, _alignment: usize, _bytes: usize) -> c_int {
        c"posix_memalign" otherwise libc::ENOMEM
    }
    usable_size(block: *mut c_void) -> usize {
        c"malloc_usable_size" otherwise bytes_in_buffer(block).unwrap_or(0)
    }
    trim(_keep: usize) -> c_int { c"malloc_trim" otherwise 0 }
}

/// Finds all functions, once; returns false while this thread is doing that.
#[cold]
#[inline(never)]
fn resolve() -> bool {
    // SAFETY: the function has no preconditions.
    let me = unsafe { libc::__errno_location() }.addr();
    loop {
        if IS_RESOLVED.load(Ordering::Acquire) {
            return true;
        }
        match RESOLVING.compare_exchange(0, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => break,
            Err(thread) if thread == me => return false,
            Err(_) => std::hint::spin_loop(),
        }
    }
    find_all();
    if BUFFER_USED.load(Ordering::Relaxed) > 0 {
        careful::install();
    }
    IS_RESOLVED.store(true, Ordering::Release);
    true
}

/// What stands before the real functions if `dlsym` allocated something: it may be freed at any time.
mod careful {
    use std::ffi::c_void;
    use std::mem;
    use std::ptr;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use super::{address, bytes_in_buffer, move_in_buffer};

    type Free = unsafe extern "C" fn(*mut c_void);
    type Realloc = unsafe extern "C" fn(*mut c_void, usize) -> *mut c_void;
    type UsableSize = unsafe extern "C" fn(*mut c_void) -> usize;

    static FREE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    static REALLOC: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
    static USABLE_SIZE: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());

    pub(super) fn install() {
        let put_before = |address: &AtomicPtr<c_void>, real: &AtomicPtr<c_void>, function: *const ()| {
            real.store(address.load(Ordering::Acquire), Ordering::Release);
            // After the real function's: what calls this one finds it.
            address.store(function.cast_mut().cast(), Ordering::Release);
        };
        put_before(&address::free, &FREE, free as *const ());
        put_before(&address::realloc, &REALLOC, realloc as *const ());
        put_before(&address::usable_size, &USABLE_SIZE, usable_size as *const ());
    }

    unsafe extern "C" fn free(block: *mut c_void) {
        if bytes_in_buffer(block).is_none() {
            // SAFETY: the address was that of the function, and the caller keeps to its rules.
            unsafe { mem::transmute::<*mut c_void, Free>(FREE.load(Ordering::Acquire))(block) }
        }
    }

    unsafe extern "C" fn realloc(block: *mut c_void, bytes: usize) -> *mut c_void {
        if bytes_in_buffer(block).is_some() {
            return move_in_buffer(block, bytes);
        }
        // SAFETY: as above.
        unsafe { mem::transmute::<*mut c_void, Realloc>(REALLOC.load(Ordering::Acquire))(block, bytes) }
    }

    unsafe extern "C" fn usable_size(block: *mut c_void) -> usize {
        bytes_in_buffer(block).unwrap_or_else(|| {
            // SAFETY: as above.
            unsafe { mem::transmute::<*mut c_void, UsableSize>(USABLE_SIZE.load(Ordering::Acquire))(block) }
        })
    }
}

/// Moves an allocation out of the buffer, or to another place in it.
fn move_in_buffer(block: *mut c_void, bytes: usize) -> *mut c_void {
    // SAFETY: any size is allowed.
    let moved = unsafe { malloc(bytes) };
    if let Some(held) = bytes_in_buffer(block)
        && !moved.is_null()
    {
        // SAFETY: both are at least that long, and the new one has no other user.
        unsafe { moved.cast::<u8>().copy_from_nonoverlapping(block.cast(), held.min(bytes)) };
    }
    moved
}

/// Takes zeroed memory from the buffer; null when it is used up.
#[cold]
fn from_buffer(bytes: usize) -> *mut c_void {
    let Some(needed) = bytes.checked_add(2 * ALIGNMENT - 1).map(|sum| sum / ALIGNMENT * ALIGNMENT) else {
        return ptr::null_mut();
    };
    let taken = BUFFER_USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
        used.checked_add(needed).filter(|&used| used <= BUFFER_BYTES)
    });
    let Ok(start) = taken else { return ptr::null_mut() };
    let buffer: *mut u8 = (&raw mut BUFFER).cast();
    // SAFETY: no other thread has these bytes of the buffer; the first of them hold the size.
    unsafe {
        let header = buffer.add(start);
        #[expect(clippy::cast_ptr_alignment, reason = "a multiple of 16")]
        header.cast::<usize>().write(bytes);
        header.add(ALIGNMENT).cast()
    }
}

/// Returns the size of an allocation from the buffer; `None` for all others.
#[inline(always)]
fn bytes_in_buffer(block: *mut c_void) -> Option<usize> {
    let buffer: *mut u8 = (&raw mut BUFFER).cast();
    if block.addr().wrapping_sub(buffer.addr()) >= BUFFER_BYTES {
        return None;
    }
    // SAFETY: an address in the buffer is one that `from_buffer` returned, behind its size.
    #[expect(clippy::cast_ptr_alignment, reason = "a multiple of 16")]
    Some(unsafe { block.cast::<u8>().sub(ALIGNMENT).cast::<usize>().read() })
}

/// The most bytes at the end of the C library's heap that are kept.
const MAX_KEPT: u64 = 16 << 20;
/// From here on the C library maps each block by default, and keeps this much.
const LEAST_KEPT: usize = 128 << 10;

/// Sets what the C library learns otherwise from the large blocks that a program frees, and from now on does not see: that
/// blocks below the threshold are not mapped one by one, and that free memory at the end of its heap stays for the next
/// ones. Without that it gives this memory back and takes it again all the time.
pub(crate) fn keep_small_blocks(threshold: usize, keep: u64) {
    let is_set =
        [c"GLIBC_TUNABLES", c"MALLOC_TRIM_THRESHOLD_", c"MALLOC_MMAP_THRESHOLD_", c"MALLOC_TOP_PAD_"];
    if is_set.iter().any(|name| variable(name).is_some()) {
        return;
    }
    let number = |bytes: usize| c_int::try_from(bytes).unwrap_or(c_int::MAX);
    let kept = usize::try_from(keep.min(MAX_KEPT)).unwrap_or(LEAST_KEPT).max(LEAST_KEPT);
    // SAFETY: the calls have no preconditions; values out of range are refused.
    unsafe {
        libc::mallopt(libc::M_MMAP_THRESHOLD, number(threshold.max(LEAST_KEPT)));
        libc::mallopt(libc::M_TRIM_THRESHOLD, number(kept));
    }
}

/// Returns a variable of the environment.
pub(crate) fn variable(name: &CStr) -> Option<&'static CStr> {
    // SAFETY: the name ends with a zero byte; what is returned does too, and is copied at once by the callers, which run
    // before the program's `main`.
    unsafe {
        let text: *mut c_char = libc::getenv(name.as_ptr());
        if text.is_null() { None } else { Some(CStr::from_ptr(text)) }
    }
}
