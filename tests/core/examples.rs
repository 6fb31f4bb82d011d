//! The programs that are packages of their own, built and run.

use std::path::Path;
use std::process::Command;

#[test]
fn the_allocator_needs_no_standard_library() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let status = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--offline", "--manifest-path"])
        .arg(root.join("examples/rust/no_std/Cargo.toml"))
        .arg("--target-dir")
        .arg(root.join("target/no_std"))
        .status()
        .expect("Cargo runs");
    assert!(status.success(), "examples/rust/no_std: {status}");
}
