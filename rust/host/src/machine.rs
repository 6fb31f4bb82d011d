//! How much memory this machine has, and how much of it is left: Linux's own figures, under the limits of the control
//! groups that the process is in.

use std::fs;
use std::path::{Path, PathBuf};

/// Memory that a process can use, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// All of it, or the lowest limit of a control group.
    pub total: u64,
    /// What can be used without swapping before something is killed; memory that only caches files counts.
    pub available: u64,
}

impl Machine {
    /// The figures of this moment; none where the system does not tell.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::under(Path::new("/"))
    }

    /// The same, from the files under `root`.
    fn under(root: &Path) -> Option<Self> {
        let text = fs::read_to_string(root.join("proc/meminfo")).ok()?;
        let bytes = |name| field(&text, name).and_then(|kilobytes| kilobytes.checked_mul(1024));
        let mut machine = Self { total: bytes("MemTotal:")?, available: bytes("MemAvailable:")? };
        for group in groups(root) {
            machine.total = machine.total.min(group.total);
            machine.available = machine.available.min(group.available);
        }
        Some(machine)
    }
}

/// The number behind a name at the start of a line.
fn field(text: &str, name: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(name)?.split_whitespace().next()?.parse().ok())
}

/// The limits of the control groups that the process is in, of both versions.
fn groups(root: &Path) -> Vec<Machine> {
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

/// The folder of a group and those of the groups around it. In a container the innermost may be mounted as the root.
fn groups_above(mounted: &Path, path: &str) -> Vec<PathBuf> {
    let inner = mounted.join(path.trim_start_matches('/'));
    inner.ancestors().take_while(|folder| folder.starts_with(mounted)).map(Path::to_path_buf).collect()
}

/// A group's limit and what is left of it, if it has one. Inactive file pages can be reclaimed.
fn limits(group: &Path, [limit, used, reclaimable]: [&str; 3]) -> Option<Machine> {
    let number = |name: &str| fs::read_to_string(group.join(name)).ok()?.trim().parse::<u64>().ok();
    let (total, used) = (number(limit)?, number(used)?);
    let stat = fs::read_to_string(group.join("memory.stat")).unwrap_or_default();
    let reclaimable = field(&stat, reclaimable).unwrap_or(0);
    let available = total.saturating_sub(used.saturating_sub(reclaimable));
    Some(Machine { total, available })
}

#[cfg(test)]
mod tests;
