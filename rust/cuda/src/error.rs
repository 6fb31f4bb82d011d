//! Errors of the CUDA driver and of the way to it.

use std::sync::Arc;

use allotment::source::ReserveError;
use thiserror::Error;

/// Why the CUDA driver did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The library was not opened.
    #[error("the CUDA driver was not found: {path} could not be opened ({reason})")]
    NotFound {
        /// The library's name or path.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// The library has no such function.
    #[error("{path} is not a CUDA driver that can be used: it lacks {symbol}")]
    MissingSymbol {
        /// The library's name or path.
        path: String,
        /// The function.
        symbol: &'static str,
    },
    /// A call of the driver failed.
    #[error("{call} failed: {name} ({code}), {text}")]
    Call {
        /// The driver's function.
        call: &'static str,
        /// The driver's number of the error.
        code: u32,
        /// The driver's name of the error, such as `CUDA_ERROR_INVALID_VALUE`.
        name: String,
        /// The driver's text about the error.
        text: String,
    },
    /// There is no such device.
    #[error("there is no CUDA device {ordinal}: {}", existing(*count))]
    NoSuchDevice {
        /// The requested index.
        ordinal: u32,
        /// The devices that the driver lists, after `CUDA_VISIBLE_DEVICES`.
        count: u32,
    },
    /// The device or the driver cannot map memory at chosen addresses.
    #[error(
        "CUDA device {ordinal} has no virtual memory management, which regions that grow in place need: use regions \
         of cuMemAlloc"
    )]
    NoVirtualMemory {
        /// The device's index.
        ordinal: u32,
    },
    /// The process was forked after the driver was used.
    #[error(
        "the process was forked after its parent used the CUDA driver, which does not survive that: start the child \
         with spawn, or use the driver in the child alone"
    )]
    Forked,
}

impl CudaError {
    /// Returns whether the call failed for want of device memory or addresses.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Call { code: crate::sys::OUT_OF_MEMORY, .. })
    }
}

/// Converts an error of a request: without memory the source declines, everything else is its failure.
pub(crate) fn refusal(error: CudaError) -> ReserveError {
    if error.is_out_of_memory() { ReserveError::Declined } else { ReserveError::Failed(Arc::new(error)) }
}

fn existing(count: u32) -> String {
    match count {
        0 => "the driver lists none (CUDA_VISIBLE_DEVICES may hide some)".to_owned(),
        1 => "the driver lists one, 0".to_owned(),
        _ => format!("the driver lists {count}, from 0 to {}", count - 1),
    }
}
