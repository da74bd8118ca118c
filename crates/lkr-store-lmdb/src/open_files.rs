//! Whether the files of an open store are still at their paths. A folder that was moved or removed under a running process
//! keeps working for it, but what is written then is at another path, or gone once the process ends.

use std::{
    fs::{self, File, Metadata},
    io,
    path::{Path, PathBuf},
};

use crate::{env::DATA, error::InternalResult, lock::LOCK};

/// The files of an open store.
#[derive(Debug)]
pub(crate) struct OpenFiles([OpenFile; 2]);

/// A file or folder in use, and which one it is: another may come to its path.
#[derive(Debug)]
pub struct OpenFile {
    path: PathBuf,
    id: FileId,
    /// Open where the system allows it: a file system may give a file that nobody has open another number, and a mount that nobody uses
    /// may end by itself.
    _handle: Option<File>,
}

/// What two files of a system never have in common while both exist.
#[derive(Debug, PartialEq, Eq)]
struct FileId {
    device: u64,
    number: u64,
}

impl OpenFiles {
    /// Those of the store in `dir`, which was opened just now.
    pub(crate) fn of(dir: &Path) -> io::Result<Self> {
        Ok(Self([OpenFile::at(dir.join(LOCK))?, OpenFile::at(dir.join("kb").join(DATA))?]))
    }

    /// Checks that they are still at their paths. Takes about two microseconds.
    ///
    /// # Errors
    /// `Unavailable` if one of them is not; it may be moved back.
    pub(crate) fn verify(&self) -> InternalResult<()> {
        Ok(self.0.iter().try_for_each(OpenFile::verify)?)
    }
}

impl OpenFile {
    /// The one that is at a path now.
    ///
    /// # Errors
    /// That there is none, or that it cannot be read.
    pub fn at(path: PathBuf) -> io::Result<Self> {
        let handle = File::open(&path).ok();
        let id = FileId::of(&fs::metadata(&path)?);
        Ok(Self { path, id, _handle: handle })
    }

    /// Checks that it [is still at its path](Self::is_in_place).
    ///
    /// # Errors
    /// That it is not, with the path; it may be moved back.
    pub fn verify(&self) -> io::Result<()> {
        if self.is_in_place() {
            return Ok(());
        }
        let path = self.path.display();
        Err(io::Error::other(format!("{path} was moved, removed or replaced while it was in use")))
    }

    /// Where it was.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is still at its path; takes about a microsecond. A path that cannot be read for another reason than that nothing is
    /// there counts as one at which it is.
    #[must_use]
    pub fn is_in_place(&self) -> bool {
        match fs::metadata(&self.path) {
            Ok(found) => FileId::of(&found) == self.id,
            Err(error) => error.kind() != io::ErrorKind::NotFound,
        }
    }
}

impl FileId {
    #[cfg(unix)]
    fn of(metadata: &Metadata) -> Self {
        use std::os::unix::fs::MetadataExt as _;
        Self { device: metadata.dev(), number: metadata.ino() }
    }

    /// Elsewhere, files in use can hardly be moved, and only whether a file exists is checked.
    #[cfg(not(unix))]
    fn of(_: &Metadata) -> Self {
        Self { device: 0, number: 0 }
    }
}
