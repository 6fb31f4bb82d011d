//! Links the C library, which is not linked where there is no standard library.

fn main() {
    println!("cargo:rustc-link-lib=c");
}
