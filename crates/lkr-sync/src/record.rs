//! What `.lkr/folder.json` holds: the id of the folder, and where the folder was last.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result, durable, error::OPEN, error::folder_error, folder::OWN_FOLDER};

const VERSION: u32 = 1;

/// The id of a folder, and where it was when it was last opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    version: u32,
    pub(crate) id: String,
    #[serde(flatten)]
    pub(crate) place: Place,
}

/// Where a folder is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    pub(crate) machine: String,
    pub(crate) path: PathBuf,
    /// `None` in records of earlier versions, and on systems that number no files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) inode: Option<Inode>,
}

/// The directory `.lkr` itself. It stays the same if the folder is moved within a file system, and a copy has another
/// one. That of the folder would tell less: in every file system of a kind, the topmost folder has the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inode {
    device: u64,
    number: u64,
}

impl Place {
    /// The place of a folder on this machine.
    pub(crate) fn of(root: &Path, machine: &str) -> Self {
        Self { machine: machine.to_owned(), path: root.to_path_buf(), inode: inode(&root.join(OWN_FOLDER)) }
    }
}

impl Record {
    pub(crate) const fn new(id: String, place: Place) -> Self {
        Self { version: VERSION, id, place }
    }

    /// Reads the record of a folder; `None` if it has none.
    pub(crate) fn read(root: &Path) -> Result<Option<Self>> {
        let path = file(root);
        let content = match fs::read(&path) {
            Ok(content) => content,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(folder_error(OPEN, &path, &error)),
        };
        let record: Self =
            serde_json::from_slice(&content).map_err(|error| folder_error(OPEN, &path, &error.into()))?;
        if record.version > VERSION {
            let message =
                format!("{}: version {}, at most {VERSION} is known", path.display(), record.version);
            return Err(Error::new(ErrorKind::UnsupportedVersion, OPEN, message));
        }
        Ok(Some(record))
    }

    /// Replaces the record of a folder.
    pub(crate) fn write(&self, root: &Path) -> Result<()> {
        let path = file(root);
        let content = serde_json::to_vec_pretty(self).map_err(io::Error::from);
        let result = content.and_then(|content| durable::write(&path, &content));
        result.map_err(|error| folder_error(OPEN, &path, &error))
    }
}

fn file(root: &Path) -> PathBuf {
    root.join(OWN_FOLDER).join("folder.json")
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<Inode> {
    use std::os::unix::fs::MetadataExt as _;

    let metadata = fs::metadata(path).ok()?;
    Some(Inode { device: metadata.dev(), number: metadata.ino() })
}

/// The standard library of other systems tells none.
#[cfg(not(unix))]
const fn inode(_: &Path) -> Option<Inode> {
    None
}
