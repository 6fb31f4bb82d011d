//! The memory of the machine, total and available: Linux's figures, limited by the control groups of the process.

use std::fs;
use std::path::{Path, PathBuf};

/// The memory that this process can use, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineMemory {
    /// The machine's memory, or the lowest limit of a control group.
    pub total: u64,
    /// The memory that is available without swapping, reclaimable file caches included.
    pub available: u64,
}

impl MachineMemory {
    /// Returns the current figures; `None` if the system does not report them.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::under(Path::new("/"))
    }

    /// Returns the figures from the files under `root`.
    fn under(root: &Path) -> Option<Self> {
        let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
        let bytes = |name| field(&text, name).and_then(|kilobytes| kilobytes.checked_mul(1024));
        let mut machine_memory = Self { total: bytes("MemTotal:")?, available: bytes("MemAvailable:")? };
        for group in groups(root) {
            machine_memory.total = machine_memory.total.min(group.total);
            machine_memory.available = machine_memory.available.min(group.available);
        }
        Some(machine_memory)
    }
}

/// Returns the number after a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// Returns the limits of the control groups of the process, for both versions of control groups.
fn groups(root: &Path) -> Vec<MachineMemory> {
    let membership = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let mounted = root.join("sys/fs/cgroup");
    let mut found = Vec::new();
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        if controllers.is_empty() {
            let files = ["memory.max", "memory.current", "inactive_file "];
            found.extend(groups_above(&mounted, path).iter().filter_map(|group| limits(group, files)));
        } else if controllers.split(',').any(|controller| controller == "memory") {
            let files = ["memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "];
            let mounted = mounted.join("memory");
            found.extend(groups_above(&mounted, path).iter().filter_map(|group| limits(group, files)));
        }
    }
    found
}

/// Returns the directory of a group and those of the groups above it. In a container the innermost group may be
/// mounted as the root.
fn groups_above(mounted: &Path, path: &str) -> Vec<PathBuf> {
    let inner = mounted.join(path.trim_start_matches('/'));
    inner.ancestors().take_while(|folder| folder.starts_with(mounted)).map(Path::to_path_buf).collect()
}

/// Returns the limit of a group and what is left of it, if it has one. Inactive file pages are reclaimable.
fn limits(group: &Path, [limit, used, reclaimable]: [&str; 3]) -> Option<MachineMemory> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (total, used) = (number(limit)?, number(used)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let reclaimable = field(&stat, reclaimable).unwrap_or(0);
    let available = total.saturating_sub(used.saturating_sub(reclaimable));
    Some(MachineMemory { total, available })
}

#[cfg(test)]
mod tests;
