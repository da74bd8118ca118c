//! The folder's own files in `.lkr`: its identity, its lock, and where the states are.

use std::{
    fs::{self, File, TryLockError},
    path::{Path, PathBuf},
};

use crate::{
    Digest, Error, ErrorKind, Identity, Options, Result,
    error::{OPEN, READ, folder_error},
    record::{Place, Record},
};

/// The name of the folder that holds the files of this crate.
pub(crate) const OWN_FOLDER: &str = ".lkr";

/// How a folder was found when it was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Opening {
    /// Where it was before.
    Known,
    /// It was never synchronised and got an id.
    New,
    /// It was moved and keeps its id.
    Moved {
        /// Its path before.
        from: PathBuf,
    },
    /// It is a copy and got an id of its own.
    Copied {
        /// The path of the original.
        from: PathBuf,
    },
}

/// A folder, and which one it is.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    id: String,
    opening: Opening,
    /// The id in `folder.json`; `None` if the folder has no such file.
    recorded: Option<String>,
    /// Unlocked when it is closed. `None` if the folder is only read.
    _lock: Option<File>,
}

impl Folder {
    /// Locks the folder, finds out which one it is, and records that.
    pub(crate) fn open(folder: &Path, options: &Options) -> Result<Self> {
        let failed = |error| folder_error(OPEN, folder, &error);
        let root = fs::canonicalize(folder).map_err(failed)?;
        let own = root.join(OWN_FOLDER);
        fs::create_dir_all(&own).map_err(failed)?;
        let lock = lock(&own.join("lock"))?;
        fs::write(own.join(".gitignore"), "*\n").map_err(failed)?;
        let before = Record::read(&root)?;
        let here = Place::of(&root, &options.machine);
        let (id, opening) = identify(before.as_ref(), &here, options)?;
        let record = Record::new(id, here);
        if before.as_ref() != Some(&record) {
            record.write(&root)?;
        }
        Ok(Self { root, id: record.id.clone(), opening, recorded: Some(record.id), _lock: Some(lock) })
    }

    /// Finds out which folder it is, and writes nothing, so that it may be read-only. Nothing keeps out others.
    pub(crate) fn inspect(folder: &Path, options: &Options) -> Result<Self> {
        let root = fs::canonicalize(folder).map_err(|error| folder_error(OPEN, folder, &error))?;
        let record = Record::read(&root)?;
        let here = Place::of(&root, &options.machine);
        let (id, opening) = identify(record.as_ref(), &here, options)?;
        Ok(Self { root, id, opening, recorded: record.map(|record| record.id), _lock: None })
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn opening(&self) -> &Opening {
        &self.opening
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// What the source of each document begins with.
    pub(crate) fn source_prefix(&self) -> String {
        format!("sync:{}/", self.id)
    }

    /// The file that holds the state of a target.
    pub(crate) fn state_file(&self, target: &str) -> PathBuf {
        let name = format!("state-{:016x}.json", Digest::of(target.as_bytes()).number());
        self.root.join(OWN_FOLDER).join(name)
    }

    /// Fails if the folder is no longer there, as after its volume was unmounted: an empty folder in its place must not
    /// delete all documents.
    pub(crate) fn check_present(&self) -> Result<()> {
        // Without a record, a run may make one meanwhile.
        let found = Record::read(&self.root)?.map(|record| record.id);
        if self.recorded.is_none() || found == self.recorded {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Folder, READ, format!("{} vanished", self.root.display())))
    }
}

fn lock(path: &Path) -> Result<File> {
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|error| folder_error(OPEN, path, &error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            let message = format!("another process synchronises the folder: {} is locked", path.display());
            Err(Error::new(ErrorKind::Busy, OPEN, message))
        }
        Err(TryLockError::Error(error)) => Err(folder_error(OPEN, path, &error)),
    }
}

/// The id of a folder with this record, and how it was found.
fn identify(before: Option<&Record>, here: &Place, options: &Options) -> Result<(String, Opening)> {
    if let Some(id) = &options.id {
        let is_known = before.is_some_and(|record| record.id == id.as_str());
        return Ok((id.as_str().to_owned(), if is_known { Opening::Known } else { Opening::New }));
    }
    let Some(record) = before else { return Ok((new_id(), Opening::New)) };
    let from = record.place.path.clone();
    Ok(match identity(record, here, options)? {
        None => (record.id.clone(), Opening::Known),
        Some(Identity::Moved) => (record.id.clone(), Opening::Moved { from }),
        Some(Identity::Copied) => (new_id(), Opening::Copied { from }),
    })
}

/// Whether a folder with this record was moved or copied; `None` if it is where it was.
///
/// A path tells more than an inode: a folder that was restored in its place, or whose volume was mounted again, has
/// another inode and goes on.
fn identity(record: &Record, here: &Place, options: &Options) -> Result<Option<Identity>> {
    let before = &record.place;
    if before.machine != here.machine {
        let what = format!("{} was synchronised on {}", here.path.display(), before.machine);
        return told(&what, before, options).map(Some);
    }
    // One folder may have two paths.
    if before.path == here.path || same_file::is_same_file(&here.path, &before.path).unwrap_or(false) {
        return Ok(None);
    }
    // This comes before the inodes: if a copy took the place of the original, the copy has gone on with the id.
    if has_id(&before.path, &record.id) {
        return Ok(Some(Identity::Copied));
    }
    match (before.inode, here.inode) {
        // It came from a backup or another file system, or it is a copy whose original was moved.
        (Some(before_inode), Some(inode)) if before_inode != inode => {
            let what = format!("{} was synchronised", here.path.display());
            told(&what, before, options).map(Some)
        }
        _ => Ok(Some(Identity::Moved)),
    }
}

/// What the caller says about a folder that may have been moved or copied.
fn told(what: &str, before: &Place, options: &Options) -> Result<Identity> {
    options.identity.ok_or_else(|| {
        let from = before.path.display();
        let message = format!("{what} as {from}; say whether it was moved or copied from there");
        Error::new(ErrorKind::MovedOrCopied, OPEN, message)
    })
}

/// Whether a path is a folder with this id.
fn has_id(root: &Path, id: &str) -> bool {
    Record::read(root).is_ok_and(|record| record.is_some_and(|record| record.id == id))
}

fn new_id() -> String {
    format!("{:016x}", rand::random::<u64>())
}
