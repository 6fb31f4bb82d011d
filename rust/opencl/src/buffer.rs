//! Buffers, parts of them, buffers over memory of the host, and what is called when OpenCL destroys them.

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use crate::error::OpenClError;
use crate::handles::Context;
use crate::library::OpenCl;
use crate::sys::{self, Handle, Part};

/// A reference to a `cl_mem`; dropping it releases it.
#[derive(Debug)]
pub struct Buffer {
    opencl: OpenCl,
    handle: Handle,
}

// SAFETY: OpenCL's functions may be called with a buffer from every thread; nothing here follows the pointer.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl Buffer {
    /// Makes a buffer of a context.
    pub(crate) fn new(context: &Context, bytes: usize) -> Result<Self, OpenClError> {
        let opencl = context.opencl();
        opencl.check_process()?;
        // SAFETY: the context is retained, and there is no memory of the host.
        let handle =
            unsafe { opencl.create_buffer(context.handle(), sys::READ_WRITE, bytes, ptr::null_mut()) }?;
        Ok(Self { opencl, handle })
    }

    /// Returns the handle, valid while this lives.
    #[must_use]
    pub fn handle(&self) -> *mut c_void {
        self.handle
    }

    /// Returns the handle together with the reference: the caller releases it.
    #[must_use]
    pub fn into_handle(self) -> *mut c_void {
        ManuallyDrop::new(self).handle
    }

    /// Makes a buffer of a part of this one, which must not be a part itself.
    ///
    /// OpenCL calls `destroyed` once, on any thread, when it destroys the part. After an error it is dropped, not called.
    ///
    /// # Errors
    /// If OpenCL refuses: `offset` must be a multiple of what the device demands, and the part must have a byte and end
    /// in this buffer.
    #[inline]
    pub fn sub_buffer<F: FnOnce() + Send + 'static>(
        self: &Arc<Self>,
        offset: usize,
        bytes: usize,
        destroyed: F,
    ) -> Result<Self, OpenClError> {
        // SAFETY: this buffer is alive.
        let handle = unsafe { self.opencl.create_part(self.handle, Part { origin: offset, size: bytes }) }?;
        Self { opencl: self.opencl, handle }.with_end(destroyed)
    }

    /// Calls `destroyed` when OpenCL destroys the buffer.
    #[inline]
    fn with_end<F: FnOnce() + Send + 'static>(self, destroyed: F) -> Result<Self, OpenClError> {
        let data = Box::into_raw(Box::new(destroyed));
        // SAFETY: the function takes the box, once.
        match unsafe { self.opencl.on_destruction(self.handle, call::<F>, data.cast()) } {
            Ok(()) => Ok(self),
            Err(error) => {
                // SAFETY: OpenCL has not kept it.
                drop(unsafe { Box::from_raw(data) });
                Err(error)
            }
        }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the reference is this one's.
        unsafe { self.opencl.release_buffer(self.handle) };
    }
}

impl Context {
    /// Makes a buffer over memory of the host, in which devices that share the host's memory work.
    ///
    /// OpenCL calls `destroyed` once, on any thread, when it destroys the buffer. After an error it is dropped, not called.
    ///
    /// # Safety
    /// `bytes` bytes from `address` on are memory of this process until `destroyed` is called.
    ///
    /// # Errors
    /// If OpenCL refuses.
    #[inline]
    pub unsafe fn host_buffer<F: FnOnce() + Send + 'static>(
        &self,
        address: *mut c_void,
        bytes: usize,
        destroyed: F,
    ) -> Result<Buffer, OpenClError> {
        let opencl = self.opencl();
        // SAFETY: the context is retained; the memory is guaranteed by the caller.
        let handle = unsafe {
            opencl.create_buffer(self.handle(), sys::READ_WRITE | sys::USE_HOST_PTR, bytes, address)
        }?;
        Buffer { opencl, handle }.with_end(destroyed)
    }
}

/// Calls a closure when OpenCL destroys a buffer. A panic ends here.
unsafe extern "C" fn call<F: FnOnce()>(_buffer: Handle, data: *mut c_void) {
    // SAFETY: of `with_end`, which OpenCL passes once.
    let destroyed = unsafe { Box::from_raw(data.cast::<F>()) };
    let _ = catch_unwind(AssertUnwindSafe(destroyed));
}
