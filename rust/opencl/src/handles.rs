//! Contexts and queues, retained as long as they are used here.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;

use crate::error::OpenClError;
use crate::library::OpenCl;
use crate::sys::{self, Handle};

/// A `cl_context`. Clones share it; the last one releases it.
#[derive(Debug, Clone)]
pub struct Context(Arc<RetainedContext>);

#[derive(Debug)]
struct RetainedContext {
    opencl: OpenCl,
    handle: Handle,
}

// SAFETY: OpenCL's functions may be called with a context from every thread; nothing here follows the pointer.
unsafe impl Send for RetainedContext {}
// SAFETY: as above.
unsafe impl Sync for RetainedContext {}

impl Context {
    /// Retains a context.
    ///
    /// # Safety
    /// The handle is a context's, made by the same library.
    ///
    /// # Errors
    /// If OpenCL does not know it.
    pub unsafe fn retain(opencl: OpenCl, handle: *mut c_void) -> Result<Self, OpenClError> {
        // SAFETY: guaranteed by the caller.
        unsafe { opencl.retain_context(handle) }?;
        Ok(Self(Arc::new(RetainedContext { opencl, handle })))
    }

    /// Returns the handle, valid while this lives.
    #[must_use]
    pub fn handle(&self) -> *mut c_void {
        self.0.handle
    }

    /// Returns the library that made it.
    #[must_use]
    pub fn opencl(&self) -> OpenCl {
        self.0.opencl
    }
}

impl Drop for RetainedContext {
    fn drop(&mut self) {
        // SAFETY: it was retained.
        unsafe { self.opencl.release_context(self.handle) };
    }
}

/// A `cl_command_queue`. Clones share it; the last one releases it.
#[derive(Debug, Clone)]
pub struct Queue(Arc<RetainedQueue>);

#[derive(Debug)]
struct RetainedQueue {
    opencl: OpenCl,
    handle: Handle,
    context: Handle,
    runs_in_order: bool,
}

// SAFETY: as for contexts.
unsafe impl Send for RetainedQueue {}
// SAFETY: as above.
unsafe impl Sync for RetainedQueue {}

impl Queue {
    /// Retains a queue.
    ///
    /// # Safety
    /// The handle is a queue's, made by the same library.
    ///
    /// # Errors
    /// If OpenCL does not know it.
    pub unsafe fn retain(opencl: OpenCl, handle: *mut c_void) -> Result<Self, OpenClError> {
        // SAFETY: guaranteed by the caller.
        let properties = unsafe { opencl.queue_info(handle, sys::QUEUE_PROPERTIES, 0_u64) }?;
        // SAFETY: as above.
        let context = unsafe { opencl.queue_info(handle, sys::QUEUE_CONTEXT, ptr::null_mut::<c_void>()) }?;
        // SAFETY: as above.
        unsafe { opencl.retain_queue(handle) }?;
        let runs_in_order = properties & sys::OUT_OF_ORDER == 0;
        Ok(Self(Arc::new(RetainedQueue { opencl, handle, context, runs_in_order })))
    }

    /// Returns the handle, valid while this lives.
    #[must_use]
    pub fn handle(&self) -> *mut c_void {
        self.0.handle
    }

    /// Returns the handle of the queue's context, valid while this lives.
    #[must_use]
    pub fn context(&self) -> *mut c_void {
        self.0.context
    }

    /// Returns whether each command starts when the one before it is done.
    #[must_use]
    pub fn runs_in_order(&self) -> bool {
        self.0.runs_in_order
    }

    /// Waits until all commands of the queue are done.
    ///
    /// # Errors
    /// If OpenCL fails.
    pub fn finish(&self) -> Result<(), OpenClError> {
        // SAFETY: the queue is retained.
        unsafe { self.0.opencl.finish(self.0.handle) }
    }

    /// Lets commands that are added from now on wait for those that are in `others` now.
    pub(crate) fn wait_for(&self, others: &[&Self]) -> Result<(), OpenClError> {
        let opencl = &self.0.opencl;
        let mut events = Vec::with_capacity(others.len());
        let marked = others.iter().try_for_each(|other| {
            // SAFETY: the queues are retained.
            events.push(unsafe { opencl.marker(other.0.handle) }?);
            Ok(())
        });
        let waits = marked.and_then(|()| {
            // SAFETY: the queue is retained, and the events live.
            unsafe { opencl.barrier(self.0.handle, &events) }
        });
        for event in events {
            // SAFETY: of `marker`; the queue has a reference of its own.
            unsafe { opencl.release_event(event) };
        }
        waits
    }

    /// Returns when the device has memory for a buffer. The first byte of the buffer becomes zero.
    pub(crate) fn touch(&self, buffer: Handle) -> Result<(), OpenClError> {
        // SAFETY: the queue is retained, and the caller's buffer is of its context.
        unsafe { self.0.opencl.touch(self.0.handle, buffer) }
    }
}

impl Drop for RetainedQueue {
    fn drop(&mut self) {
        // SAFETY: it was retained.
        unsafe { self.opencl.release_queue(self.handle) };
    }
}
