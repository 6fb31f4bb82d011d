//! Keeps the shared library in memory after `dlclose`: its thread for idle pools ends some time after the last of them, and
//! must find its code until then.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
    }
}
