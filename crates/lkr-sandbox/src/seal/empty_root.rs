//! An empty root folder, for kernels without Landlock.

use rustix::{
    fs::{Mode, OFlags, open},
    io,
    mount::{MountFlags, MountPropagationFlags, UnmountFlags, mount, mount_change, unmount},
    process::{chdir, chroot, fchdir, pivot_root},
    thread::{UnshareFlags, unshare_unsafe},
};

/// A folder that every system has. The empty file system is mounted on it, in a namespace that only this process sees.
const MOUNT_POINT: &str = "/tmp";

/// Replaces the root folder with an empty one: in a mount namespace, which needs unprivileged user namespaces or root;
/// otherwise by `chroot`, which needs root.
pub(super) fn enter() -> io::Result<()> {
    enter_namespace().or_else(|_| enter_removed_folder())
}

fn enter_namespace() -> io::Result<()> {
    unshare(UnshareFlags::NEWNS).or_else(|_| unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let flags = MountFlags::NODEV | MountFlags::NOEXEC | MountFlags::NOSUID | MountFlags::RDONLY;
    mount("none", MOUNT_POINT, "tmpfs", flags, None)?;
    chdir(MOUNT_POINT)?;
    // The old root is stacked on the new one, and then unmounted.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    chdir("/")
}

fn unshare(flags: UnshareFlags) -> io::Result<()> {
    #[expect(unsafe_code, reason = "the call is unsafe only with a flag that is not used here")]
    // SAFETY: the flags do not contain `FILES`, so the table of open files stays shared.
    unsafe {
        unshare_unsafe(flags)
    }
}

/// Enters a folder that was removed, so nothing can be created in it.
fn enter_removed_folder() -> io::Result<()> {
    let folder = tempfile::tempdir().map_err(|_| io::Errno::NOENT)?;
    let opened = open(folder.path(), OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    fchdir(&opened)?;
    folder.close().map_err(|_| io::Errno::IO)?;
    chroot(".")
}

#[cfg(test)]
mod tests {
    use std::{fs, thread};

    use super::*;

    /// Runs in a thread, because namespaces and root folders can be those of a thread.
    fn in_thread(enter: fn() -> io::Result<()>) {
        let attempt = move || {
            if let Err(error) = unshare(UnshareFlags::FS).and_then(|()| enter()) {
                return lkr_test_support::note_skip(&format!("the root folder cannot be replaced: {error}"));
            }
            assert!(fs::metadata("/etc/passwd").is_err(), "files are not even visible");
            assert_eq!(fs::read_dir("/").map_or(0, Iterator::count), 0);
            assert!(fs::write("/file", "x").is_err());
        };
        thread::spawn(attempt).join().unwrap();
    }

    #[test]
    fn namespace_alone_hides_all_files() {
        in_thread(enter_namespace);
    }

    #[test]
    fn removed_folder_alone_hides_all_files() {
        in_thread(enter_removed_folder);
    }
}
