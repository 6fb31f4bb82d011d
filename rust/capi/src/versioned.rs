//! Structures that grow: a program and the library may have been built with different versions of them.
//!
//! Fields are only added at the end, and 0 means for each of them that nothing changes. So what an older program leaves
//! out is 0, and what a newer program has beyond this version may be ignored while it is 0.

use crate::status::Failure;

/// No version of a structure is longer: a longer size is one that the caller never set.
const LONGEST: usize = 4096;

/// Refuses the size of a structure that is shorter than its first version, or longer than any.
pub(crate) fn check_size(struct_size: usize, first_version: usize, name: &str) -> Result<(), Failure> {
    if (first_version..=LONGEST).contains(&struct_size) {
        return Ok(());
    }
    Err(Failure::invalid(format!("struct_size {struct_size} is not sizeof({name}): set it before the call")))
}

/// Returns a copy of the caller's structure; fields that the caller's version lacks are those of `defaults`.
///
/// # Safety
/// `passed` points to a structure of C that begins with its size in bytes, a `usize`, and has that many; every bit
/// pattern is valid for the fields of `T`.
pub(crate) unsafe fn copy_of<T: Copy>(
    passed: *const T,
    defaults: T,
    first_version: usize,
    name: &str,
) -> Result<T, Failure> {
    // SAFETY: guaranteed by the caller; it may be shorter than a `T`.
    let struct_size = unsafe { passed.cast::<usize>().read() };
    check_size(struct_size, first_version, name)?;
    let known = struct_size.min(size_of::<T>());
    // SAFETY: the caller's structure has `struct_size` bytes.
    let beyond = unsafe { std::slice::from_raw_parts(passed.cast::<u8>().add(known), struct_size - known) };
    if beyond.iter().any(|&byte| byte != 0) {
        let version = env!("CARGO_PKG_VERSION");
        return Err(Failure::invalid(format!(
            "{name} has fields behind byte {known} that this library, version {version}, does not know, and they are \
             not 0: use a newer library, or leave them out"
        )));
    }
    let mut copy = defaults;
    // SAFETY: the source has that many bytes, and so has a `T`, for which every bit pattern is valid.
    unsafe { std::ptr::from_mut(&mut copy).cast::<u8>().copy_from_nonoverlapping(passed.cast(), known) };
    Ok(copy)
}

/// Writes a structure to the caller's one of `struct_size` bytes: bytes of a newer version become 0.
///
/// # Safety
/// `out` points to `struct_size` writable bytes.
pub(crate) unsafe fn write_to<T: Copy>(out: *mut T, value: &T, struct_size: usize) {
    let known = struct_size.min(size_of::<T>());
    // SAFETY: guaranteed by the caller; the value has `known` bytes.
    unsafe {
        out.cast::<u8>().copy_from_nonoverlapping(std::ptr::from_ref(value).cast(), known);
        out.cast::<u8>().add(known).write_bytes(0, struct_size - known);
    }
}
