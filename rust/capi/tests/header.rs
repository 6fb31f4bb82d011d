//! The published header is that of the sources.

use std::fs;
use std::path::Path;

/// Set to write the header anew.
const WRITE: &str = "ALLOTMENT_WRITE_HEADER";

#[test]
fn the_header_is_that_of_the_sources() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_root_or_default(folder);
    let mut text = Vec::new();
    cbindgen::Builder::new()
        .with_config(config)
        .with_src(folder.join("src/lib.rs"))
        .generate()
        .expect("the sources have an interface of C")
        .write(&mut text);
    let header = folder.join("include/allotment.h");
    if std::env::var_os(WRITE).is_some() {
        fs::write(&header, &text).expect("a folder that can be written");
    }
    let published = fs::read(&header).expect("the header");
    assert!(published == text, "include/allotment.h is stale: run this test with {WRITE}=1");
}

#[test]
fn the_version_is_that_of_the_crate() {
    let version = allotment_capi::allotment_version();
    let text = format!("{}.{}.{}", version >> 16, version >> 8 & 255, version & 255);
    assert_eq!(text, env!("CARGO_PKG_VERSION"));
}
