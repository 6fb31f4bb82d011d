//! The allocator of tensors that functions of tvm-ffi create: a function of DLPack's, without a context of its own.
//!
//! So the guest that serves it is that of the thread, or else that of the process.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::ffi::{CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::memory::{Guest, last_refusal};
use crate::allocation::dlpack::abi::{CPU, Tensor};

/// The alignment that DLPack asks of data.
const ALIGNMENT: usize = 256;

/// The version of DLPack whose structures these are.
const VERSION: (u32, u32) = (1, 1);

type SetError = unsafe extern "C" fn(context: *mut c_void, kind: *const c_char, text: *const c_char);

/// `DLManagedTensorVersioned`, and what it points to.
#[repr(C)]
struct Managed {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: unsafe extern "C" fn(*mut Managed),
    flags: u64,
    tensor: Tensor,
    guest: &'static Guest,
    /// The shape, then the strides, in elements.
    lengths: Box<[i64]>,
}

thread_local! {
    static OF_THREAD: Cell<Option<&'static Guest>> = const { Cell::new(None) };
}
/// Null without one.
static OF_PROCESS: AtomicPtr<Guest> = AtomicPtr::new(ptr::null_mut());

/// Makes a guest, or none, that of this thread.
pub(super) fn serve_thread(guest: Option<&'static Guest>) {
    OF_THREAD.set(guest);
}

/// Makes a guest, or none, that of the process.
pub(super) fn serve_process(guest: Option<&'static Guest>) {
    OF_PROCESS
        .store(guest.map_or(ptr::null_mut(), |guest| ptr::from_ref(guest).cast_mut()), Ordering::Release);
}

/// Returns the address of the allocator, a `DLPackManagedTensorAllocator`.
pub(super) fn allocator() -> usize {
    (allocate as *const ()).expose_provenance()
}

fn serving() -> Option<&'static Guest> {
    // SAFETY: null, or a guest, which is never dropped.
    OF_THREAD
        .try_with(Cell::get)
        .ok()
        .flatten()
        .or_else(|| unsafe { OF_PROCESS.load(Ordering::Acquire).as_ref() })
}

/// Creates a tensor like `prototype`, or calls `set_error`.
///
/// # Safety
/// As `dlpack.h` says: `prototype` has a type, a device and a shape, and `out` can be written.
unsafe extern "C" fn allocate(
    prototype: *const Tensor,
    out: *mut *mut Managed,
    error_context: *mut c_void,
    set_error: SetError,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    match unsafe { create(&*prototype) } {
        Ok(managed) => {
            // SAFETY: guaranteed by the caller.
            unsafe { out.write(Box::into_raw(managed)) };
            0
        }
        Err(Failure::Refused) => {
            // SAFETY: both texts end with a zero and live until the call returns.
            unsafe { set_error(error_context, c"MemoryError".as_ptr(), last_refusal()) };
            -1
        }
        Err(Failure::Invalid(text)) => {
            let text = CString::new(text).unwrap_or_default();
            // SAFETY: as above.
            unsafe { set_error(error_context, c"ValueError".as_ptr(), text.as_ptr()) };
            -1
        }
    }
}

enum Failure {
    /// The text is the guest's last refusal.
    Refused,
    Invalid(String),
}

/// # Safety
/// The prototype's shape has as many lengths as it has dimensions.
unsafe fn create(prototype: &Tensor) -> Result<Box<Managed>, Failure> {
    let guest =
        serving().ok_or_else(|| Failure::Invalid("no pool is installed for tvm-ffi any more".into()))?;
    let device = prototype.device;
    if device.kind != CPU {
        return Err(Failure::Invalid(format!(
            "a tensor on a device of DLPack's kind {} cannot be in the pool, which holds memory of the CPU",
            device.kind
        )));
    }
    let dimensions = usize::try_from(prototype.ndim).unwrap_or(0);
    let shape = if dimensions == 0 {
        &[]
    } else {
        // SAFETY: guaranteed by the caller.
        unsafe { std::slice::from_raw_parts(prototype.shape, dimensions) }
    };
    let (lengths, elements) =
        compact(shape).ok_or_else(|| Failure::Invalid(format!("no tensor can have the shape {shape:?}")))?;
    let bits = u64::from(prototype.dtype.bits) * u64::from(prototype.dtype.lanes);
    let bytes = u128::from(elements) * u128::from(bits);
    let bytes = usize::try_from(bytes.div_ceil(8)).unwrap_or(usize::MAX);
    let data = guest.allocate(bytes, ALIGNMENT);
    if data.is_null() {
        return Err(Failure::Refused);
    }
    let mut managed = Box::new(Managed {
        major: VERSION.0,
        minor: VERSION.1,
        context: ptr::null_mut(),
        deleter: delete,
        flags: 0,
        tensor: Tensor {
            data,
            byte_offset: 0,
            shape: ptr::null_mut(),
            strides: ptr::null_mut(),
            ..*prototype
        },
        guest,
        lengths,
    });
    managed.tensor.shape = managed.lengths.as_mut_ptr();
    // SAFETY: the strides follow the shape.
    managed.tensor.strides = unsafe { managed.tensor.shape.add(dimensions) };
    Ok(managed)
}

/// Returns a shape, followed by the strides of a compact tensor, and the number of its elements. `None` for a negative
/// length, or too many elements.
fn compact(shape: &[i64]) -> Option<(Box<[i64]>, u64)> {
    let mut lengths = [shape, shape].concat().into_boxed_slice();
    let mut elements = 1_i64;
    for (stride, &length) in lengths[shape.len()..].iter_mut().zip(shape).rev() {
        *stride = elements;
        elements = elements.checked_mul(length).filter(|&elements| elements >= 0 && length >= 0)?;
    }
    Some((lengths, u64::try_from(elements).ok()?))
}

/// Destroys a tensor, on any thread.
///
/// # Safety
/// `managed` is of [`allocate`], and not in use any more.
unsafe extern "C" fn delete(managed: *mut Managed) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        let managed = Box::from_raw(managed);
        managed.guest.free(managed.tensor.data);
    }
}
