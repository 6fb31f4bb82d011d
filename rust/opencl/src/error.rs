//! Errors of OpenCL and of the way to it.

use std::sync::Arc;

use allotment::source::ReserveError;
use thiserror::Error;

use crate::sys::{self, Status};

/// Why OpenCL did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum OpenClError {
    /// The library was not opened.
    #[error("OpenCL was not found: {path} could not be opened ({reason})")]
    NotFound {
        /// The library's name or path.
        path: String,
        /// The system's words.
        reason: String,
    },
    /// The library has no such function.
    #[error("{path} is not an OpenCL {version} or newer: it lacks {symbol}")]
    MissingSymbol {
        /// The library's name or path.
        path: String,
        /// The function.
        symbol: &'static str,
        /// The version that has it.
        version: &'static str,
    },
    /// A device of a context has no memory that it shares with the host.
    #[error(
        "the host cannot read and write memory of the device: it has no fine-grained shared virtual memory \
         (CL_DEVICE_SVM_FINE_GRAIN_BUFFER is not among its CL_DEVICE_SVM_CAPABILITIES, {capabilities:#x})"
    )]
    NoSharedMemory {
        /// The device's `CL_DEVICE_SVM_CAPABILITIES`.
        capabilities: u64,
    },
    /// A call failed.
    #[error("{call} failed: {name} ({code})")]
    Call {
        /// The function.
        call: &'static str,
        /// OpenCL's number of the error.
        code: i32,
        /// Its name in `cl.h`, such as `CL_INVALID_VALUE`.
        name: &'static str,
    },
    /// The process was forked after the library was opened.
    #[error(
        "the process was forked after its parent used OpenCL, which does not survive that: start the child with \
         spawn, or use OpenCL in the child alone"
    )]
    Forked,
}

impl OpenClError {
    pub(crate) fn of_call(call: &'static str, code: Status) -> Self {
        Self::Call { call, code, name: sys::name_of(code) }
    }

    /// Returns whether the call failed for want of memory, or of a buffer as large as that.
    #[must_use]
    pub fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::Call { code, .. } if sys::OUT_OF_MEMORY.contains(code))
    }
}

/// Converts an error of a request: without memory the source declines, everything else is its failure.
pub(crate) fn refusal(error: OpenClError) -> ReserveError {
    if error.is_out_of_memory() { ReserveError::Declined } else { ReserveError::Failed(Arc::new(error)) }
}
