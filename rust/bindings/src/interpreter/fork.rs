//! Notifies the core in a forked child: only the unsafe code for it.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Once;

type Handler = Option<unsafe extern "C" fn()>;

unsafe extern "C" {
    /// POSIX: registers handlers that run inside `fork`; the child handler runs before anything else in the child.
    fn pthread_atfork(prepare: Handler, parent: Handler, child: Handler) -> c_int;
}

/// Registers the fork handler, once.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the handler changes two atomic numbers and takes no lock, as required in the child of a process
        // with threads. The module is never unloaded.
        unsafe { pthread_atfork(None, None, Some(entered_child)) };
    });
}

unsafe extern "C" fn entered_child() {
    allotment::fork::entered_child();
}
