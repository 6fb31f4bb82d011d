//! Where a recording's events go: files that are written without Python, so that a refused thread can do so whether or not
//! it has the interpreter's lock. `python/allotment/trace/journal.py` describes their content.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Log, ROW_BYTES};

const MAGIC: &[u8] = b"allotment events 1\n";

/// Bytes before the text of a block.
const LENGTH_BYTES: usize = 4;

/// Digits of the number of the error that ended a journal, 0 for none.
const ERROR_DIGITS: usize = 6;

/// The number of an error that the system has not given one: `EIO`.
const ERROR_OF_DEVICE: i32 = 5;

/// A program that is refused again and again waits for its file for at most one part in so many of its time.
const SHARE: u32 = 10;

/// The file of a log.
#[derive(Default)]
pub(super) enum Sink {
    #[default]
    None,
    Journal(Journal),
    AtRefusal(RefusalFile),
    /// A journal that could not be written any further: events from then on are counted as lost.
    Failed,
}

/// A file that every event is appended to.
pub(super) struct Journal {
    file: File,
    /// Milliseconds between two calls of [`Sink::flush`].
    behind: u32,
    /// The number of tags in it.
    tags: usize,
    /// Bytes of its whole blocks.
    length: u64,
    /// Where the number of the error is that ended it.
    error_at: u64,
}

/// A file that receives all events of a log after a refusal.
pub(super) struct RefusalFile {
    path: PathBuf,
    /// The number of refusals when it was last written; how long that took, and when it ended.
    refused: u64,
    took: Duration,
    ended: Option<Instant>,
}

impl Journal {
    pub(super) fn create(path: &Path, behind: u32) -> io::Result<Self> {
        let mut file = File::create(path)?;
        // Readers learn of the process before there are events. A full disk takes no new block, but lets the number of the
        // error be changed.
        let facts = facts(0, &[], &BTreeMap::new(), 0, Some(behind));
        let before = format!("{},\"error\":", facts.strip_suffix('}').unwrap_or(&facts));
        let first = [MAGIC, &block(&format!("{before}{:ERROR_DIGITS$}}}", 0), &[])].concat();
        file.write_all(&first)?;
        let error_at = (MAGIC.len() + LENGTH_BYTES + before.len()) as u64;
        Ok(Self { file, behind, tags: 0, length: first.len() as u64, error_at })
    }

    /// Appends a block; returns the number of its rows that are in the file, and why not all are. A reader takes the whole
    /// rows of a last block that is cut off.
    fn append(&mut self, facts: &str, rows: &[u8]) -> (usize, io::Result<()>) {
        let block = block(facts, rows);
        let Err(error) = self.file.write_all(&block) else {
            self.length += block.len() as u64;
            return (rows.len() / ROW_BYTES, Ok(()));
        };
        let before = self.length + (block.len() - rows.len()) as u64;
        let written = self.file.metadata().map_or(0, |file| file.len()).saturating_sub(before);
        let number = error.raw_os_error().unwrap_or(ERROR_OF_DEVICE);
        // The caller has an error already.
        let _ = self.file.seek(SeekFrom::Start(self.error_at));
        let _ = self.file.write_all(format!("{number:ERROR_DIGITS$}").as_bytes());
        (usize::try_from(written).unwrap_or(0) / ROW_BYTES, Err(error))
    }
}

impl RefusalFile {
    /// The file is made by the first refusal.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, refused: 0, took: Duration::ZERO, ended: None }
    }

    /// Whether a refused request waits for the file: not where the last one took too long.
    fn is_due(&self) -> bool {
        self.ended.is_none_or(|ended| ended.elapsed() >= self.took * SHARE)
    }
}

impl Sink {
    /// Writes the events of `log` that are not in the file. After a failure there is no file any more.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(super) fn flush(&mut self, log: &Log) -> io::Result<()> {
        let written = match self {
            Self::None => Ok(()),
            Self::Journal(journal) => append_events(journal, log),
            Self::AtRefusal(file) => write_refused(file, log),
            Self::Failed => {
                log.add_unwritten(log.events.take().len());
                Ok(())
            }
        };
        if written.is_err() {
            *self = if matches!(self, Self::Journal(_)) { Self::Failed } else { Self::None };
        }
        written
    }

    /// Writes them after a refusal, unless the program would wait for its files for a large part of its time.
    ///
    /// # Errors
    /// As [`Sink::flush`].
    pub(super) fn flush_refusal(&mut self, log: &Log) -> io::Result<()> {
        match self {
            Self::AtRefusal(file) if !file.is_due() => Ok(()),
            _ => self.flush(log),
        }
    }
}

fn append_events(journal: &mut Journal, log: &Log) -> io::Result<()> {
    let rows = log.pack(log.events.take(), None);
    if rows.is_empty() {
        return Ok(());
    }
    let (tags, pools) = log.texts(journal.tags);
    let events = rows.len() / ROW_BYTES;
    let facts = facts(events, &tags, &pools, log.events.lost(), Some(journal.behind));
    let (written, result) = journal.append(&facts, &rows);
    log.add_unwritten(events.saturating_sub(written));
    journal.tags += tags.len();
    result
}

fn write_refused(file: &mut RefusalFile, log: &Log) -> io::Result<()> {
    // Before the events: a refusal meanwhile is written another time.
    let refused = log.events.refused();
    if refused == file.refused {
        return Ok(());
    }
    let start = Instant::now();
    file.refused = refused;
    let rows = log.pack_recent();
    let (tags, pools) = log.texts(0);
    let content = block(&facts(rows.len() / ROW_BYTES, &tags, &pools, log.events.lost(), None), &rows);
    replace(&file.path, &[MAGIC, &content].concat())?;
    file.took = start.elapsed();
    file.ended = Some(Instant::now());
    Ok(())
}

/// Returns the text of a block of a journal. `behind` are the milliseconds by which the file may be behind the program,
/// `None` if it is whole and none will follow.
fn facts(
    rows: usize,
    tags: &[String],
    pools: &BTreeMap<u64, String>,
    lost: u64,
    behind: Option<u32>,
) -> String {
    let facts = json!({
        "rows": rows,
        "tags": tags,
        "pools": pools,
        "lost": lost,
        "pid": process::id(),
        "behind_ms": behind,
        "ended": behind.is_none(),
    });
    facts.to_string()
}

/// Returns a block of a journal.
fn block(facts: &str, rows: &[u8]) -> Vec<u8> {
    let length = u32::try_from(facts.len()).unwrap_or(0);
    [&length.to_le_bytes()[..], facts.as_bytes(), rows].concat()
}

/// Writes a file under a new name beside `path`, then renames it, as `python/allotment/trace/files.py` does.
fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    // A link is followed, as opening the file would.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let old = fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(io::Error::other("not the path of a regular file"));
    }
    if old.is_some() {
        // Renaming needs write permission for the folder only.
        drop(OpenOptions::new().append(true).open(&target)?);
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let unfinished = target.with_file_name(format!(".{}-{number}.tmp", process::id()));
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&unfinished)?;
        file.write_all(content)?;
        if let Some(old) = old {
            file.set_permissions(old.permissions())?;
        }
        fs::rename(&unfinished, &target)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}
