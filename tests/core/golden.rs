//! The recorded behaviour of TensorFlow 2.21's allocator, without TensorFlow: worked traces, long checks, and our
//! behaviour for each of its defects.
//!
//! Every expected number was observed on TensorFlow's own binary, or follows from the rule named beside it.
#![allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]

#[path = "golden/defects.rs"]
mod defects;
#[path = "golden/long_checks.rs"]
mod long_checks;
#[path = "golden/probe.rs"]
mod probe;
#[path = "golden/worked_traces.rs"]
mod worked_traces;
