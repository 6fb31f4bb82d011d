//! A filter of system calls, for tests.

use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};

/// Forbids the system call `membarrier` to the calling thread, and to those that it starts from now on.
pub(crate) fn forbid_membarrier() {
    #[cfg(target_arch = "x86_64")]
    const MEMBARRIER: i64 = 324;
    #[cfg(target_arch = "aarch64")]
    const MEMBARRIER: i64 = 283;
    const EPERM: u32 = 1;
    let program = SeccompFilter::new(
        [(MEMBARRIER, Vec::new())].into(),
        SeccompAction::Allow,
        SeccompAction::Errno(EPERM),
        std::env::consts::ARCH.try_into().expect("a known processor"),
    )
    .and_then(BpfProgram::try_from)
    .expect("a valid filter");
    apply_filter(&program).expect("the system has filters");
}
