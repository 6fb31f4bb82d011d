use super::*;

/// A directory with these files, removed on drop.
struct Root(PathBuf);

impl Root {
    fn with(name: &str, files: &[(&str, &str)]) -> Self {
        let root =
            std::env::temp_dir().join(format!("allotment-machine-memory-{}-{name}", std::process::id()));
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        Self(root)
    }
}

impl Drop for Root {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

const MEMINFO: (&str, &str) =
    ("proc/meminfo", "MemTotal:  8000 kB\nMemFree: 1 kB\nMemAvailable:    6000 kB\n");
const K: u64 = 1024;

#[test]
fn without_control_groups_the_figures_are_those_of_the_machine() {
    let root = Root::with("plain", &[MEMINFO]);
    assert_eq!(MachineMemory::under(&root.0), Some(MachineMemory { total: 8000 * K, available: 6000 * K }));
}

#[test]
fn the_lowest_limit_of_the_groups_around_counts() {
    let root = Root::with(
        "v2",
        &[
            MEMINFO,
            ("proc/self/cgroup", "0::/outer/inner\n"),
            ("sys/fs/cgroup/outer/memory.max", "4096000\n"),
            ("sys/fs/cgroup/outer/memory.current", "3072000\n"),
            ("sys/fs/cgroup/outer/memory.stat", "anon 1\ninactive_file 1024000\n"),
            ("sys/fs/cgroup/outer/inner/memory.max", "max\n"),
            ("sys/fs/cgroup/outer/inner/memory.current", "1024\n"),
        ],
    );
    assert_eq!(MachineMemory::under(&root.0), Some(MachineMemory { total: 4_096_000, available: 2_048_000 }));
}

#[test]
fn the_first_version_of_groups_counts_also_where_a_container_mounts_its_own_as_the_root() {
    let root = Root::with(
        "v1",
        &[
            MEMINFO,
            ("proc/self/cgroup", "5:cpu:/a\n4:memory:/docker/x\n"),
            ("sys/fs/cgroup/memory/memory.limit_in_bytes", "2048000\n"),
            ("sys/fs/cgroup/memory/memory.usage_in_bytes", "9999999\n"),
        ],
    );
    assert_eq!(MachineMemory::under(&root.0), Some(MachineMemory { total: 2_048_000, available: 0 }));
}

#[test]
fn without_meminfo_there_are_no_figures() {
    let root = Root::with("none", &[("proc/version", "")]);
    assert_eq!(MachineMemory::under(&root.0), None);
}
