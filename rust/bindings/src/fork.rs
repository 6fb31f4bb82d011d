//! Tells the core when this process is a forked child: the unsafe of it, and nothing else.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::sync::Once;

unsafe extern "C" {
    /// POSIX; its handlers run inside `fork`, before anything else in the child, whoever forks.
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

/// Watches for forks, from the first call on.
pub(crate) fn watch() {
    static WATCHING: Once = Once::new();
    WATCHING.call_once(|| {
        // SAFETY: the handler adds to an atomic number and clears a number of its own thread, which has no
        // destructor: it takes no lock, as a child of a process with threads must not. The module that holds it
        // is never unloaded.
        unsafe { pthread_atfork(None, None, Some(entered_child)) };
    });
}

unsafe extern "C" fn entered_child() {
    allotment::fork::entered_child();
}
