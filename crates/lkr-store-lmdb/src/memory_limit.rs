//! How much memory the process may use.

use std::{fs, path::Path};

/// The memory of the machine, or the lowest limit of the process's control groups, in bytes. `None` if the system does not tell.
pub(crate) fn memory_limit() -> Option<u64> {
    limit_below(Path::new("/"))
}

/// The same with the files of Linux below `root`.
fn limit_below(root: &Path) -> Option<u64> {
    let meminfo = fs::read_to_string(root.join("proc/meminfo")).ok()?;
    let total = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let total = total.trim().strip_suffix(" kB")?.parse::<u64>().ok()?.checked_mul(1024)?;
    let groups = fs::read_to_string(root.join("proc/self/cgroup")).unwrap_or_default();
    let limits = groups.lines().flat_map(|line| group_limits(root, line));
    Some(limits.fold(total, u64::min))
}

/// The limits of a line of `/proc/self/cgroup`, such as `0::/system.slice/lkr.service`, and of the groups that contain it.
fn group_limits(root: &Path, line: &str) -> Vec<u64> {
    let mut fields = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (fields.next(), fields.next()) else { return Vec::new() };
    let (folder, file) = match controllers {
        "" => ("sys/fs/cgroup", "memory.max"),
        _ if controllers.split(',').any(|controller| controller == "memory") => {
            ("sys/fs/cgroup/memory", "memory.limit_in_bytes")
        }
        _ => return Vec::new(),
    };
    let folder = root.join(folder);
    // In a container, the folder may be that of its own group.
    let groups = Path::new(group.trim_start_matches('/')).ancestors();
    groups
        .filter_map(|group| fs::read_to_string(folder.join(group).join(file)).ok()?.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, file: &str, text: &str) {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn limit_is_the_lowest_of_the_machine_and_its_groups() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(limit_below(root), None, "not Linux");
        write(root, "proc/meminfo", "MemTotal:       8000 kB\nMemFree:        10 kB\n");
        assert_eq!(limit_below(root), Some(8_192_000));
        write(root, "proc/self/cgroup", "0::/system.slice/lkr.service\n");
        write(root, "sys/fs/cgroup/system.slice/lkr.service/memory.max", "max\n");
        assert_eq!(limit_below(root), Some(8_192_000));
        write(root, "sys/fs/cgroup/system.slice/memory.max", "4096000\n");
        assert_eq!(limit_below(root), Some(4_096_000), "a group around that of the process");
        write(root, "proc/self/cgroup", "4:cpu,cpuacct:/a\n3:memory:/docker/b\n");
        write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit_below(root), Some(8_192_000), "no limit");
        write(root, "sys/fs/cgroup/memory/docker/b/memory.limit_in_bytes", "1024000\n");
        assert_eq!(limit_below(root), Some(1_024_000));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn limit_of_this_process_is_known() {
        assert!(memory_limit().unwrap() > 1 << 20);
    }
}
