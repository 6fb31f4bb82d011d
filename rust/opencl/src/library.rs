//! The opened library: each function of the table as a method that returns a `Result`, and never in a forked child.

use std::ffi::c_void;
use std::process;
use std::ptr;
use std::sync::{Mutex, PoisonError};

use libloading::Library;

use crate::error::OpenClError;
use crate::sys::{self, Destroyed, Functions, Handle, Part, Status, SvmFunctions};

/// OpenCL of this process. Copies share it. Nothing is closed at the end: drivers have threads of their own.
#[derive(Debug, Clone, Copy)]
pub struct OpenCl(&'static Opened);

/// The opened libraries, by path. Never dropped: buffers refer to them without counting, as making one takes
/// less than a tenth of a microsecond.
static OPENED: Mutex<Vec<(String, OpenCl)>> = Mutex::new(Vec::new());

#[derive(Debug)]
struct Opened {
    functions: Functions,
    /// Those of shared virtual memory, or why there are none.
    svm: Result<SvmFunctions, OpenClError>,
    process: u32,
}

impl OpenCl {
    /// Opens OpenCL: `library` is a path or a name for the system's search, of OpenCL's own library or of one that was
    /// linked with it. A program that has handles names the library that made them.
    ///
    /// # Errors
    /// If there is no such library, or it lacks a function of OpenCL 1.2; or a process opened it from which this one was
    /// forked, as what it made does not survive that.
    pub fn open(library: &str) -> Result<Self, OpenClError> {
        let mut known = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&(_, opencl)) = known.iter().find(|(path, _)| path == library) {
            return opencl.check_process().map(|()| opencl);
        }
        // SAFETY: the library is the machine's OpenCL, or one that the program has loaded.
        let opened = unsafe { Library::new(library) };
        let opened = opened
            .map_err(|error| OpenClError::NotFound { path: library.to_owned(), reason: error.to_string() })?;
        // SAFETY: as above; the library is never unloaded, see below.
        let functions = unsafe { Functions::load(&opened, library) }?;
        // SAFETY: as above.
        let svm = unsafe { SvmFunctions::load(&opened, library) };
        std::mem::forget(opened);
        let opencl = Self::of(functions, svm);
        known.push((library.to_owned(), opencl));
        Ok(opencl)
    }

    pub(crate) fn of(functions: Functions, svm: Result<SvmFunctions, OpenClError>) -> Self {
        Self(Box::leak(Box::new(Opened { functions, svm, process: process::id() })))
    }

    /// Returns an error in a process that was forked from the one that opened the library.
    pub(crate) fn check_process(self) -> Result<(), OpenClError> {
        if self.0.process == process::id() { Ok(()) } else { Err(OpenClError::Forked) }
    }

    /// Calls a function. It does not ask for the process, which takes as long as the shortest of them: pools refuse
    /// requests in forked children themselves.
    #[inline]
    fn call(self, name: &'static str, call: impl FnOnce(&Functions) -> Status) -> Result<(), OpenClError> {
        match call(&self.0.functions) {
            sys::SUCCESS => Ok(()),
            code => Err(OpenClError::of_call(name, code)),
        }
    }

    /// # Safety
    /// The handle is a context's.
    pub(crate) unsafe fn retain_context(self, context: Handle) -> Result<(), OpenClError> {
        // SAFETY: guaranteed by the caller.
        self.call("clRetainContext", |functions| unsafe { (functions.retain_context)(context) })
    }

    /// # Safety
    /// The caller has retained the context, and does not use it any more.
    pub(crate) unsafe fn release_context(self, context: Handle) {
        if self.check_process().is_err() {
            return;
        }
        // SAFETY: guaranteed by the caller. At the end of the process there may be no context any more.
        let _ = self.call("clReleaseContext", |functions| unsafe { (functions.release_context)(context) });
    }

    /// Returns the devices of a context.
    ///
    /// # Safety
    /// The handle is a context's.
    pub(crate) unsafe fn devices(self, context: Handle) -> Result<Vec<Handle>, OpenClError> {
        let mut bytes = 0;
        // SAFETY: guaranteed by the caller; the pointer is to a local variable.
        self.call("clGetContextInfo", |functions| unsafe {
            (functions.context_info)(context, sys::CONTEXT_DEVICES, 0, ptr::null_mut(), &raw mut bytes)
        })?;
        let mut devices: Vec<Handle> = vec![ptr::null_mut(); bytes / size_of::<Handle>()];
        let bytes = devices.len() * size_of::<Handle>();
        // SAFETY: as above; the vector has that many bytes.
        self.call("clGetContextInfo", |functions| unsafe {
            let first = devices.as_mut_ptr().cast();
            (functions.context_info)(context, sys::CONTEXT_DEVICES, bytes, first, ptr::null_mut())
        })?;
        Ok(devices)
    }

    /// Returns a number that OpenCL knows of a device, a `cl_ulong` or a `cl_bitfield`.
    ///
    /// # Safety
    /// The handle is a device's, and `name` asks for such a number.
    pub(crate) unsafe fn device_info(self, device: Handle, name: u32) -> Result<u64, OpenClError> {
        let mut value = 0_u64;
        // SAFETY: guaranteed by the caller; the pointer is to a local variable of that length.
        self.call("clGetDeviceInfo", |functions| unsafe {
            (functions.device_info)(device, name, 8, (&raw mut value).cast(), ptr::null_mut())
        })?;
        Ok(value)
    }

    /// Returns the functions of shared virtual memory.
    ///
    /// # Errors
    /// If the library has none, as before OpenCL 2.0.
    pub(crate) fn svm(self) -> Result<&'static SvmFunctions, OpenClError> {
        self.0.svm.as_ref().map_err(Clone::clone)
    }

    /// # Safety
    /// The handle is a queue's.
    pub(crate) unsafe fn retain_queue(self, queue: Handle) -> Result<(), OpenClError> {
        // SAFETY: guaranteed by the caller.
        self.call("clRetainCommandQueue", |functions| unsafe { (functions.retain_queue)(queue) })
    }

    /// # Safety
    /// The caller has retained the queue, and does not use it any more.
    pub(crate) unsafe fn release_queue(self, queue: Handle) {
        if self.check_process().is_err() {
            return;
        }
        // SAFETY: guaranteed by the caller.
        let _ = self.call("clReleaseCommandQueue", |functions| unsafe { (functions.release_queue)(queue) });
    }

    /// Returns what OpenCL knows of a queue: a number, or a handle.
    ///
    /// # Safety
    /// The handle is a queue's, and `T` the type of what `name` asks for.
    pub(crate) unsafe fn queue_info<T: Copy>(
        self,
        queue: Handle,
        name: u32,
        mut value: T,
    ) -> Result<T, OpenClError> {
        // SAFETY: guaranteed by the caller; the pointer is to a local variable of that length.
        self.call("clGetCommandQueueInfo", |functions| unsafe {
            let value = (&raw mut value).cast::<c_void>();
            (functions.queue_info)(queue, name, size_of::<T>(), value, ptr::null_mut())
        })?;
        Ok(value)
    }

    /// # Safety
    /// The handle is a context's; with `USE_HOST_PTR` the buffer ends before the memory at `host` does.
    pub(crate) unsafe fn create_buffer(
        self,
        context: Handle,
        flags: u64,
        bytes: usize,
        host: *mut c_void,
    ) -> Result<Handle, OpenClError> {
        let mut made = ptr::null_mut();
        self.call("clCreateBuffer", |functions| {
            let mut status = sys::SUCCESS;
            // SAFETY: guaranteed by the caller; the pointer is to a local variable.
            made = unsafe { (functions.create_buffer)(context, flags, bytes, host, &raw mut status) };
            status
        })?;
        Ok(made)
    }

    /// # Safety
    /// The handle is a buffer's that is no part of another.
    #[inline]
    pub(crate) unsafe fn create_part(self, parent: Handle, part: Part) -> Result<Handle, OpenClError> {
        let mut made = ptr::null_mut();
        self.call("clCreateSubBuffer", |functions| {
            let mut status = sys::SUCCESS;
            // SAFETY: guaranteed by the caller; the pointers are to local variables. OpenCL checks the range.
            made = unsafe {
                (functions.create_part)(parent, sys::READ_WRITE, sys::PART, &raw const part, &raw mut status)
            };
            status
        })?;
        Ok(made)
    }

    /// # Safety
    /// The caller has a reference to the buffer, and does not use it any more.
    pub(crate) unsafe fn release_buffer(self, buffer: Handle) {
        if self.check_process().is_err() {
            return;
        }
        // SAFETY: guaranteed by the caller.
        let _ = self.call("clReleaseMemObject", |functions| unsafe { (functions.release_buffer)(buffer) });
    }

    /// # Safety
    /// The handle is a buffer's, and `destroyed` may be called with `data` once, on any thread.
    #[inline]
    pub(crate) unsafe fn on_destruction(
        self,
        buffer: Handle,
        destroyed: Destroyed,
        data: *mut c_void,
    ) -> Result<(), OpenClError> {
        // SAFETY: guaranteed by the caller.
        self.call("clSetMemObjectDestructorCallback", |functions| unsafe {
            (functions.on_destruction)(buffer, destroyed, data)
        })
    }

    /// Writes a zero to the start of a buffer of at least a byte; returns when the device has the buffer's memory.
    ///
    /// # Safety
    /// Both are handles of one context.
    pub(crate) unsafe fn touch(self, queue: Handle, buffer: Handle) -> Result<(), OpenClError> {
        let zero = 0_u8;
        let (blocking, data) = (1, (&raw const zero).cast::<c_void>());
        // SAFETY: guaranteed by the caller; OpenCL has read the local variable when the call returns.
        self.call("clEnqueueWriteBuffer", |functions| unsafe {
            (functions.write)(queue, buffer, blocking, 0, 1, data, 0, ptr::null(), ptr::null_mut())
        })
    }

    /// Returns an event behind all commands that are in a queue, which runs them.
    ///
    /// # Safety
    /// The handle is a queue's. The caller releases the event.
    pub(crate) unsafe fn marker(self, queue: Handle) -> Result<Handle, OpenClError> {
        let mut event = ptr::null_mut();
        // SAFETY: guaranteed by the caller; the pointer is to a local variable.
        self.call("clEnqueueMarkerWithWaitList", |functions| unsafe {
            (functions.marker)(queue, 0, ptr::null(), &raw mut event)
        })?;
        // A queue waits for an event of another one only if that one was told to run.
        // SAFETY: guaranteed by the caller.
        let flushed = self.call("clFlush", |functions| unsafe { (functions.flush)(queue) });
        match flushed {
            Ok(()) => Ok(event),
            Err(error) => {
                // SAFETY: the event was just made.
                unsafe { self.release_event(event) };
                Err(error)
            }
        }
    }

    /// Lets all commands that are added to a queue from now on wait for events.
    ///
    /// # Safety
    /// All are handles, of the context of the queue.
    pub(crate) unsafe fn barrier(self, queue: Handle, events: &[Handle]) -> Result<(), OpenClError> {
        let count = u32::try_from(events.len()).unwrap_or(u32::MAX);
        // SAFETY: guaranteed by the caller.
        self.call("clEnqueueBarrierWithWaitList", |functions| unsafe {
            (functions.barrier)(queue, count, events.as_ptr(), ptr::null_mut())
        })
    }

    /// # Safety
    /// The caller has a reference to the event, and does not use it any more.
    pub(crate) unsafe fn release_event(self, event: Handle) {
        // SAFETY: guaranteed by the caller.
        let _ = self.call("clReleaseEvent", |functions| unsafe { (functions.release_event)(event) });
    }

    /// Waits until all commands of a queue are done.
    ///
    /// # Safety
    /// The handle is a queue's.
    pub(crate) unsafe fn finish(self, queue: Handle) -> Result<(), OpenClError> {
        self.check_process()?;
        // SAFETY: guaranteed by the caller.
        self.call("clFinish", |functions| unsafe { (functions.finish)(queue) })
    }
}
