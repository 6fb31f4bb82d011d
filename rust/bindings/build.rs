//! Puts the library that `allotment run` loads into programs where maturin looks for files of the wheel (`include` in
//! `pyproject.toml`): into this script's folder.
//!
//! Cargo links it only after this script ran, and keeps it with all libraries: a symbolic link leads there.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The library, as cargo names that of `allotment-preload`.
const LIBRARY: &str = "liballotment_preload.so";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it for build scripts"));
    let link = folder.join(LIBRARY);
    // From target/release/build/allotment-python-0123456789abcdef/out.
    let target = Path::new("../../../deps").join(LIBRARY);
    if let Err(error) = make_link(&target, &link) {
        panic!("{}: {error}", link.display());
    }
}

#[cfg(unix)]
fn make_link(target: &Path, link: &Path) -> io::Result<()> {
    if link.is_symlink() {
        fs::remove_file(link)?;
    }
    std::os::unix::fs::symlink(target, link)
}

/// Elsewhere no library is loaded into programs.
#[cfg(not(unix))]
fn make_link(_target: &Path, _link: &Path) -> io::Result<()> {
    Ok(())
}
