//! Files for the content of paused pools, which replace the file at their path only when they are complete.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, ErrorKind};
use std::path::{self, Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

/// The number of the next file: its name is the process's own.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// A new file in the folder of its path, under a name of its own. It is removed if it does not get its path.
#[derive(Debug)]
pub(super) struct NewFile {
    own_path: PathBuf,
    path: PathBuf,
}

impl NewFile {
    /// Opens a file for reading and writing that replaces the one at `path` later. A block device there is opened itself,
    /// and nothing replaces it.
    pub(super) fn open(path: &Path) -> io::Result<(File, Option<Self>)> {
        let path = match fs::canonicalize(path) {
            // The target of a link is replaced, not the link.
            Ok(path) => path,
            Err(error) if error.kind() == ErrorKind::NotFound && path.file_name().is_some() => {
                path::absolute(path)?
            }
            Err(error) => return Err(error),
        };
        // Before it is opened, which some devices take for a command. A folder has an error of its own.
        if let Ok(there) = fs::metadata(&path)
            && !there.is_dir()
        {
            check_kind(&there)?;
        }
        // A file that this process may not write is not replaced either, although its folder allows that.
        let there = OpenOptions::new().read(true).write(true).open(&path);
        match there {
            Ok(file) if !file.metadata()?.is_file() => return Ok((file, None)),
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let folder = path.parent().unwrap_or(Path::new("/")).to_owned();
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let own_path = folder.join(format!(".allotment-{}-{number}", process::id()));
            match private().open(&own_path) {
                Ok(file) => return Ok((file, Some(Self { own_path, path }))),
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Gives the file its path; a file that was there is replaced.
    pub(super) fn replace(self) -> io::Result<()> {
        fs::rename(&self.own_path, &self.path)
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        // It has another name if it was renamed.
        let _ = fs::remove_file(&self.own_path);
    }
}

/// Checks that what is written to a file can be read back from it: others, such as `/dev/null`, lose it or have no end.
pub(super) fn check_kind(metadata: &Metadata) -> io::Result<()> {
    #[cfg(unix)]
    let is_block_device = std::os::unix::fs::FileTypeExt::is_block_device(&metadata.file_type());
    #[cfg(not(unix))]
    let is_block_device = false;
    if metadata.is_file() || is_block_device {
        return Ok(());
    }
    let text = "it is neither a regular file nor a block device, so that nothing could be read back from it";
    Err(io::Error::new(ErrorKind::InvalidInput, text))
}

/// Returns options for a new file that no other user may open: it is an image of memory.
fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
