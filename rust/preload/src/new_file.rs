//! Files under names that may be taken: by other processes, and by this one before it ran another program (`exec`).

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::path::PathBuf;

/// The most names that are tried.
const MAX_NAMES: usize = 10_000;

/// Makes a file, for reading and writing, under the first of the names that is not taken; returns it and its name. A file
/// that is there is not opened.
pub(crate) fn create(names: impl Iterator<Item = PathBuf>) -> Result<(File, PathBuf), Error> {
    for name in names.take(MAX_NAMES) {
        match OpenOptions::new().read(true).write(true).create_new(true).open(&name) {
            Ok(file) => return Ok((file, name)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}
