//! A program without the standard library that divides a device's memory: the crate `allotment` with `alloc` alone.
//!
//! A panic handler of its own is an error of the compiler where any crate brings the standard library along.

#![no_std]
#![no_main]

use core::alloc::{GlobalAlloc, Layout};
use core::ffi::{c_int, c_void};
use core::panic::PanicInfo;

use allotment::source::{Grant, RegionSource, ReserveError};
use allotment::{AllocError, Allocator, Options, Request, Verdict};

unsafe extern "C" {
    fn aligned_alloc(alignment: usize, bytes: usize) -> *mut c_void;
    fn free(memory: *mut c_void);
    fn abort() -> !;
}

/// Memory for the allocator's tables: the C library's, as this example runs on a machine that has one.
struct CLibrary;

// SAFETY: `aligned_alloc` returns memory of that size and alignment, or null; `free` takes what it returned.
unsafe impl GlobalAlloc for CLibrary {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the alignment is a power of two, and the size a multiple of it.
        unsafe {
            aligned_alloc(layout.align().max(16), layout.pad_to_align().size().next_multiple_of(16)).cast()
        }
    }

    unsafe fn dealloc(&self, memory: *mut u8, _layout: Layout) {
        // SAFETY: guaranteed by the caller.
        unsafe { free(memory.cast()) }
    }
}

#[global_allocator]
static MEMORY: CLibrary = CLibrary;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    // SAFETY: it has no conditions.
    unsafe { abort() }
}

/// The compiled crate `alloc` refers to this function for unwinding, which a panic here never does.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// The memory of a device: 8 MiB from offset 0 on.
struct Device {
    next: u64,
}

impl RegionSource for Device {
    fn reserve(&mut self, bytes: u64, _alignment: u64) -> Result<Grant, ReserveError> {
        if bytes > (8 << 20) - self.next {
            return Err(ReserveError::Declined);
        }
        let grant = Grant { address: self.next, bytes };
        self.next += bytes;
        Ok(grant)
    }

    fn release(&mut self, _region: Grant) {}

    fn starts_at_zero(&self) -> bool {
        true
    }
}

fn divide() -> Result<(), AllocError> {
    let mut allocator = Allocator::new(Device { next: 0 }, Options::new(8 << 20)).expect("options in range");
    let image = allocator.allocate(Request::new(1 << 20).align(1 << 16))?;
    let buffer = allocator.allocate(1000)?;
    assert_eq!((image.address, buffer.size), (0, 1024));
    assert_eq!(allocator.resize(buffer.address, 2000).expect("room after it").size, 2048);
    let Err(AllocError::OutOfMemory(refused)) = allocator.allocate(16 << 20) else {
        panic!("more than it has")
    };
    assert_eq!(refused.verdict, Verdict::Limit);
    allocator.free(image.address).expect("live");
    allocator.free(buffer.address).expect("live");
    assert_eq!(allocator.stats().num_live, 0);
    Ok(())
}

/// The function that C calls first; returns 0 if all is as it should be.
#[unsafe(no_mangle)]
extern "C" fn main() -> c_int {
    c_int::from(divide().is_err())
}
