use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// A small file system that is unmounted on drop.
#[derive(Debug)]
pub struct SmallDisk(PathBuf);

impl SmallDisk {
    /// A file system of this size on an empty folder; `None`, with a printed reason, if this user may not
    /// mount.
    ///
    /// # Panics
    /// If root may not mount in CI.
    #[must_use]
    pub fn mount(at: &Path, megabytes: u32) -> Option<Self> {
        let size = format!("size={megabytes}m,mode=700");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).output();
        let reason = match mounted {
            Ok(output) if output.status.success() => return Some(Self(at.to_owned())),
            Ok(output) => String::from_utf8_lossy(&output.stderr).trim().to_owned(),
            Err(error) => error.to_string(),
        };
        if is_root() {
            lkr_test_support::skip(&format!("mount: {reason}"));
        } else {
            lkr_test_support::note_skip(&format!("mount: {reason}"));
        }
        None
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().any(|line| line.starts_with("Uid:\t0\t"))
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
