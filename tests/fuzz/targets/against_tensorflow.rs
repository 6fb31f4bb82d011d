#![no_main]
#![allow(dead_code, reason = "the modules are shared with the tests, which use more of them")]

#[path = "../against_tensorflow.rs"]
mod against_tensorflow;
#[path = "../../core/oracle/compare.rs"]
mod compare;
#[path = "../../support/numbers.rs"]
mod numbers;
#[path = "../../support/oracle.rs"]
mod reference;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    against_tensorflow::play(bytes);
});
