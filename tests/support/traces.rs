//! Recorded programs from `.npz` files.
//!
//! Reads the format that `NumPy` writes for three columns of integers, and no other array.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use allotment::replay::Program;
use zip::ZipArchive;

/// A recorded program and the name of its file.
pub(crate) struct Trace {
    pub(crate) name: String,
    pub(crate) program: Program,
}

/// Returns the traces with a wanted name of the repository and of the folder in `ALLOTMENT_TRACES`, sorted by name.
pub(crate) fn named(wanted: impl Fn(&str) -> bool) -> Vec<Trace> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut folders = vec![root.join("tests/traces"), root.join("python/allotment/trace/data")];
    folders.extend(std::env::var_os("ALLOTMENT_TRACES").map(PathBuf::from));
    let mut files = BTreeMap::new();
    for file in folders.iter().filter_map(|folder| folder.read_dir().ok()).flatten().flatten() {
        let path = file.path();
        if path.extension().is_some_and(|extension| extension == "npz") {
            files.insert(path.file_stem().unwrap_or_default().to_string_lossy().into_owned(), path);
        }
    }
    let wanted = files.into_iter().filter(|(name, _)| wanted(name));
    wanted.map(|(name, path)| Trace { program: read(&path), name }).collect()
}

fn read(path: &Path) -> Program {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut archive = ZipArchive::new(file).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut column = |name| {
        column(&mut archive, name).unwrap_or_else(|what| panic!("{}: column {name}: {what}", path.display()))
    };
    let (ops, ids, sizes) = (column("op"), column("id"), column("size"));
    Program::from_columns(&ops, &ids, &sizes).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn column(archive: &mut ZipArchive<File>, name: &str) -> Result<Vec<i64>, String> {
    let mut bytes = Vec::new();
    let mut member = archive.by_name(&format!("{name}.npy")).map_err(|error| error.to_string())?;
    member.read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    parse(&bytes).ok_or_else(|| "is no array of whole numbers".to_owned())
}

/// `\x93NUMPY`, version, length of the description (two bytes in version 1), description, data.
fn parse(npy: &[u8]) -> Option<Vec<i64>> {
    let rest = npy.strip_prefix(b"\x93NUMPY\x01\x00")?;
    let (length, rest) = rest.split_first_chunk()?;
    let (description, data) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
    let description = std::str::from_utf8(description).ok()?;
    if description.contains("'descr': '|i1'") {
        Some(data.iter().map(|&byte| i64::from(byte.cast_signed())).collect())
    } else if description.contains("'descr': '<i8'") {
        let (numbers, []) = data.as_chunks() else { return None };
        Some(numbers.iter().map(|&bytes| i64::from_le_bytes(bytes)).collect())
    } else {
        None
    }
}
