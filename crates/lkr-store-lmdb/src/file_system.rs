//! The file system of a folder and its free space.

use std::{fs, path::Path};

/// Linux's names of network file systems.
const NETWORK: [&str; 9] = ["nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "ceph", "afs", "fuse.sshfs"];

/// The type of the network file system that contains `dir`; `None` if it is local or unknown.
pub(crate) fn network_file_system(dir: &Path) -> Option<&'static str> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    network_mount(&mounts, &dir.canonicalize().ok()?)
}

/// The free bytes of the file system of `dir`; `None` if unknown.
#[cfg(unix)]
pub(crate) fn free_space(dir: &Path) -> Option<u64> {
    let file_system = rustix::fs::statvfs(dir).ok()?;
    Some(file_system.f_bavail.saturating_mul(file_system.f_frsize))
}

#[cfg(not(unix))]
pub(crate) fn free_space(_: &Path) -> Option<u64> {
    None
}

/// Of the mounts that contain `dir`, the longest and last one counts. The fields of a line: the mount point is the
/// fifth, the type is the first after the dash.
fn network_mount(mounts: &str, dir: &Path) -> Option<&'static str> {
    let above = mounts.lines().filter_map(|line| {
        let (mount_point, kind) = line.split_once(" - ")?;
        let mount_point = Path::new(mount_point.split(' ').nth(4)?);
        dir.starts_with(mount_point).then_some((mount_point.components().count(), kind.split(' ').next()?))
    });
    let (_, kind) = above.max_by_key(|(depth, _)| *depth)?;
    NETWORK.into_iter().find(|network| *network == kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn innermost_mount_counts() {
        let mounts = "21 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw\n\
                      30 21 0:44 / /srv rw - nfs4 host:/srv rw\n\
                      31 30 8:2 / /srv/local rw - xfs /dev/sdb rw";
        let kind = |dir| network_mount(mounts, Path::new(dir));
        assert_eq!(kind("/srv/kb"), Some("nfs4"));
        assert_eq!(kind("/srv/local/kb"), None);
        assert_eq!(kind("/srvother"), None);
        assert_eq!(network_mount("", Path::new("/")), None);
    }

    #[cfg(unix)]
    #[test]
    fn free_space_of_a_missing_folder_is_none() {
        let dir = tempfile::tempdir().unwrap();
        assert!(free_space(dir.path()).is_some_and(|free_space| free_space > 0));
        assert_eq!(free_space(&dir.path().join("not there")), None);
    }
}
