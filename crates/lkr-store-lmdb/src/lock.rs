//! The lock on a store's folder.

use std::{
    fs::{self, File, TryLockError},
    path::Path,
};

use crate::error::{Error, ErrorKind, Result};

/// An exclusive lock on a folder. It is released when it is dropped or when the process ends in any way.
#[derive(Debug)]
pub struct FolderLock(#[expect(dead_code, reason = "held for its lock")] File);

impl FolderLock {
    /// Creates the folder if necessary, and locks it.
    ///
    /// # Errors
    /// `Locked` where another process, or another store of this process, has it.
    pub fn take(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).map_err(|error| Error::io("open", with_path(dir, &error)))?;
        let path = dir.join("lock");
        let file = File::options().create(true).truncate(false).write(true).open(&path);
        let file = file.map_err(|error| Error::io("open", with_path(&path, &error)))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(TryLockError::WouldBlock) => {
                let message = format!("{} is in use by another process", dir.display());
                Err(Error::new(ErrorKind::Locked, "open", message))
            }
            Err(TryLockError::Error(error)) => Err(Error::io("open", with_path(&path, &error))),
        }
    }
}

fn with_path(path: &Path, error: &std::io::Error) -> std::io::Error {
    std::io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
