//! The lock on a store's folder.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
    thread,
    time::{Duration, Instant},
};

use crate::error::{Error, ErrorKind, Result};

/// How long a folder that is in use is tried again. A store that was closed may still be held by a thread that is about to end, and
/// a process that was told to end may be about to.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// An exclusive lock on a folder. It is released when it is dropped or when the process ends in any way.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held for its lock")] File);

/// The name of the file that is locked.
pub(crate) const LOCK: &str = "lock";

impl FolderLock {
    /// Creates the folder if necessary, and locks it. Waits a second for one that is in use.
    ///
    /// # Errors
    /// `Locked` where another process, or another store of this process, has it.
    pub fn take(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|error| Error::io("open", with_path(dir, &error)))?;
        let path = dir.join(LOCK);
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| Error::io("open", with_path(&path, &error)))?;
        let began = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self(file)),
                Err(TryLockError::WouldBlock) if began.elapsed() < PATIENCE => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let message = format!(
                        "{} is in use by another process, or by this one, which has opened it before",
                        dir.display()
                    );
                    return Err(Error::new(ErrorKind::Locked, "open", message));
                }
                Err(TryLockError::Error(error)) => return Err(Error::io("open", with_path(&path, &error))),
            }
        }
    }
}

fn with_path(path: &Path, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folder_that_is_released_soon_is_locked_then() {
        let folder = tempfile::tempdir().unwrap();
        let first = FolderLock::take(folder.path()).unwrap();
        let releasing = thread::spawn(move || {
            thread::sleep(4 * PAUSE);
            drop(first);
        });
        let second = FolderLock::take(folder.path()).unwrap();
        releasing.join().unwrap();
        let third = FolderLock::take(folder.path()).unwrap_err();
        assert_eq!(third.kind(), ErrorKind::Locked);
        drop(second);
    }
}
