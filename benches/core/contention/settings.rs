//! Command-line options, and the two tables of a race: speed and fairness.

use std::str::FromStr;
use std::time::Duration;

use crate::race::Speed;
use crate::table::{self, Table};

/// The options of the benchmark.
pub(crate) struct Settings {
    pub(crate) threads: Vec<usize>,
    pub(crate) window: Duration,
    pub(crate) runs: usize,
    /// Names of the parts that run; all if empty.
    parts: Vec<String>,
}

impl Settings {
    /// `[--quick] [--threads=1,2,…] [--milliseconds=N] [--runs=N] [PART …]`
    ///
    /// # Panics
    /// If a number is none.
    pub(crate) fn from_arguments() -> Self {
        let mut settings = Self {
            threads: vec![1, 2, 4, 8, 16],
            window: Duration::from_millis(200),
            runs: 5,
            parts: Vec::new(),
        };
        for argument in std::env::args().skip(1) {
            match argument.split_once('=').unwrap_or((&argument, "")) {
                ("--quick", _) => (settings.window, settings.runs) = (Duration::from_millis(100), 1),
                ("--threads", list) => {
                    settings.threads = list.split(',').map(number).collect();
                }
                ("--milliseconds", text) => settings.window = Duration::from_millis(number(text)),
                ("--runs", text) => settings.runs = number(text),
                // Cargo passes options of its own.
                (option, _) if option.starts_with("--") => {}
                (part, _) => settings.parts.push(part.to_owned()),
            }
        }
        settings
    }

    /// Returns whether a part was asked for.
    pub(crate) fn wants(&self, part: &str) -> bool {
        self.parts.is_empty() || self.parts.iter().any(|wanted| wanted == part)
    }
}

fn number<T: FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| panic!("{text:?} is no number"))
}

/// Returns "1 thread", "2 threads", …
pub(crate) fn threads(number: usize) -> String {
    if number == 1 { "1 thread".to_owned() } else { format!("{number} threads") }
}

/// A table of speeds that grows row by row, and one of fairness that follows it.
pub(crate) struct Tables {
    speeds: Table,
    name: &'static str,
    columns: Vec<String>,
    fairness: Vec<Vec<String>>,
}

impl Tables {
    pub(crate) fn new(name: &'static str, what: &str, columns: &[&str]) -> Self {
        let mut head = vec![what];
        head.extend(columns);
        let speeds = Table::new(name, &head);
        Self {
            speeds,
            name,
            columns: columns.iter().map(|&column| column.to_owned()).collect(),
            fairness: Vec::new(),
        }
    }

    pub(crate) fn row(&mut self, name: &str, row: &[Speed]) {
        let cells = |figure: fn(&Speed) -> String| -> Vec<String> {
            std::iter::once(name.to_owned()).chain(row.iter().map(figure)).collect()
        };
        self.speeds.row(&cells(|speed| table::figure(speed.nanoseconds)));
        self.fairness.push(cells(|speed| table::figure(speed.fairness)));
    }

    pub(crate) fn finish(self) {
        let mut head = vec!["slowest thread by the mean of all"];
        head.extend(self.columns.iter().map(String::as_str));
        let mut table = Table::new(&format!("{}_fairness", self.name), &head);
        for row in &self.fairness {
            table.row(row);
        }
    }
}
