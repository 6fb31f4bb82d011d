//! Notifies the core in a forked child: only the unsafe code for it.

#![allow(unsafe_code)]

use std::ffi::c_int;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
use std::ffi::c_void;
use std::sync::Once;

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    /// What glibc's `pthread_atfork` calls. A wheel for an old glibc, linked by zig, would get a compatibility symbol
    /// of that name, whose handler ends a child that C code forks. `dso` is null: the module is never unloaded.
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    fn __register_atfork(prepare: Handler, parent: Handler, child: Handler, dso: *mut c_void) -> c_int;

    /// POSIX: registers handlers that run inside `fork`; the child handler runs before anything else in the child.
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

/// Registers a handler that runs inside `fork`, in the child, before anything else there.
///
/// # Safety
/// The handler takes no lock, and its code is never unloaded.
unsafe fn run_in_children(child: unsafe extern "C" fn()) -> c_int {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: guaranteed by the caller; glibc declares the function like this since 2.3.2.
    unsafe {
        __register_atfork(None, None, Some(child), std::ptr::null_mut::<c_void>())
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    // SAFETY: guaranteed by the caller.
    unsafe {
        pthread_atfork(None, None, Some(child))
    }
}

/// Registers the fork handler, once.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the handler changes two atomic numbers and takes no lock, as required in the child of a process
        // with threads. The module is never unloaded.
        unsafe { run_in_children(entered_child) };
    });
}

unsafe extern "C" fn entered_child() {
    allotment::fork::entered_child();
}
