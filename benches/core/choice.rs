//! Command-line options of benchmarks over recorded programs.

use crate::traces::{self, Trace};

/// `[--quick] [PART OF A TRACE'S NAME …]`
pub(crate) struct Choice {
    quick: bool,
    parts: Vec<String>,
}

impl Choice {
    pub(crate) fn from_arguments() -> Self {
        let (options, parts): (Vec<_>, Vec<_>) =
            std::env::args().skip(1).partition(|argument| argument.starts_with("--"));
        // Cargo passes options of its own.
        Self { quick: options.iter().any(|option| option == "--quick"), parts }
    }

    /// Returns how often each side plays a program: once with `--quick`.
    pub(crate) fn runs(&self, runs: usize) -> usize {
        if self.quick { 1 } else { runs }
    }

    pub(crate) fn traces(&self) -> Vec<Trace> {
        traces::named(|name| self.parts.is_empty() || self.parts.iter().any(|part| name.contains(part)))
    }
}
