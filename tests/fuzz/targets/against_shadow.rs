#![no_main]
#![allow(dead_code, reason = "the modules are shared with the tests, which use more of them")]

#[path = "../against_shadow.rs"]
mod against_shadow;
#[path = "../../support/misbehaving.rs"]
mod misbehaving;
#[path = "../../support/numbers.rs"]
mod numbers;
#[path = "../../core/model/program.rs"]
mod program;
#[path = "../../core/model/run.rs"]
mod run;
#[path = "../../core/model/setup.rs"]
mod setup;
#[path = "../../support/shadow.rs"]
mod shadow;
#[path = "../../support/sources.rs"]
mod sources;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    against_shadow::play(bytes);
});
