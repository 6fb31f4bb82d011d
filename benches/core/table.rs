//! Tables of figures: printed as Markdown, and written to `target/bench/NAME.csv` for the plots.
#![allow(dead_code, reason = "each benchmark takes its part")]
#![allow(clippy::print_stdout, reason = "the table is what a benchmark is for")]

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;

/// A table that is printed row by row.
pub(crate) struct Table {
    file: File,
}

impl Table {
    /// Starts a table; the first column is text, the others are figures.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub(crate) fn new(name: &str, columns: &[&str]) -> Self {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target/bench");
        fs::create_dir_all(&folder).expect("a folder that can be made");
        let file = File::create(folder.join(format!("{name}.csv"))).expect("a file that can be written");
        println!();
        let mut table = Self { file };
        table.row(columns);
        println!("|---{}|", "|---:".repeat(columns.len() - 1));
        table
    }

    /// Prints and writes a row.
    ///
    /// # Panics
    /// If the file cannot be written.
    pub(crate) fn row<T: AsRef<str>>(&mut self, cells: &[T]) {
        let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
        println!("| {} |", cells.join(" | "));
        // Numbers in text have commas between thousands, and no cell has quotes.
        let quoted: Vec<_> = cells.iter().map(|cell| format!("\"{cell}\"")).collect();
        writeln!(self.file, "{}", quoted.join(",")).expect("a file that can be written");
    }
}

/// A sentence below a table.
pub(crate) fn line(text: &str) {
    println!("\n{text}");
}

/// The cell of what was not measured.
pub(crate) const ABSENT: &str = "–";

/// A sentence for a peer that is not there, if it is not; returns whether it is.
pub(crate) fn is_there(peer: &str, availability: &Result<(), String>) -> bool {
    if let Err(reason) = availability {
        line(&format!("{peer} is left out: {reason}"));
    }
    availability.is_ok()
}

/// A figure with three significant digits, and commas between thousands.
pub(crate) fn figure(value: f64) -> String {
    if value.is_nan() {
        return ABSENT.to_owned();
    }
    match value {
        ..1.0 => format!("{value:.3}"),
        ..10.0 => format!("{value:.2}"),
        ..100.0 => format!("{value:.1}"),
        _ => thousands(&format!("{value:.0}")),
    }
}

/// A count with commas between thousands.
pub(crate) fn count(value: u64) -> String {
    thousands(&value.to_string())
}

fn thousands(digits: &str) -> String {
    let places = digits.len();
    let comma = |place: usize| place > 0 && (places - place).is_multiple_of(3);
    digits
        .char_indices()
        .flat_map(|(place, digit)| comma(place).then_some(',').into_iter().chain([digit]))
        .collect()
}
