//! The folder's own files in `.lkr`: its identity, its lock, and where the states are.

use std::{
    fs::{self, File, TryLockError},
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use crate::{
    Digest, Error, ErrorKind, Identity, Options, Result, durable,
    error::{OPEN, READ, folder_error},
};

/// The name of the folder that holds the files of this crate.
pub(crate) const OWN_FOLDER: &str = ".lkr";
const VERSION: u32 = 1;

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

/// What `folder.json` holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Record {
    version: u32,
    id: String,
    machine: String,
    path: PathBuf,
}

/// A folder that is locked by this process.
#[derive(Debug)]
pub(crate) struct Folder {
    root: PathBuf,
    id: String,
    opening: Opening,
    /// Unlocked when it is closed.
    _lock: File,
}

impl Folder {
    /// Locks the folder and finds out which one it is.
    pub(crate) fn open(folder: &Path, options: &Options) -> Result<Self> {
        let failed = |error| folder_error(OPEN, folder, &error);
        let root = fs::canonicalize(folder).map_err(failed)?;
        let own = root.join(OWN_FOLDER);
        fs::create_dir_all(&own).map_err(failed)?;
        let lock = lock(&own.join("lock"))?;
        fs::write(own.join(".gitignore"), "*\n").map_err(failed)?;
        let (record, opening) = identify(&root, options)?;
        Ok(Self { root, id: record.id, opening, _lock: lock })
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
        match read_record(&self.root)? {
            Some(record) if record.id == self.id => Ok(()),
            _ => Err(Error::new(ErrorKind::Folder, READ, format!("{} vanished", self.root.display()))),
        }
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

fn identify(root: &Path, options: &Options) -> Result<(Record, Opening)> {
    let record = read_record(root)?;
    if let Some(id) = &options.id {
        check_id(id)?;
        let is_known = record.is_some_and(|record| record.id == *id);
        let record = Record { id: id.clone(), ..new_record(root, options) };
        return written(root, record, if is_known { Opening::Known } else { Opening::New });
    }
    let Some(record) = record else {
        return written(root, new_record(root, options), Opening::New);
    };
    if record.machine == options.machine && record.path == root {
        return Ok((record, Opening::Known));
    }
    let from = record.path.clone();
    match identity(root, &record, options)? {
        Identity::Copied => written(root, new_record(root, options), Opening::Copied { from }),
        Identity::Moved => {
            let moved = Record { machine: options.machine.clone(), path: root.to_path_buf(), ..record };
            written(root, moved, Opening::Moved { from })
        }
    }
}

/// Refuses an id that could not be told apart in a source.
fn check_id(id: &str) -> Result<()> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if (1..=64).contains(&id.len()) && id.chars().all(is_allowed) {
        return Ok(());
    }
    let message = format!("the id {id:?} must have 1 to 64 characters of A-Z a-z 0-9 . _ -");
    Err(Error::new(ErrorKind::Folder, OPEN, message))
}

/// Whether the folder, whose record names another place, was moved or copied from there.
fn identity(root: &Path, record: &Record, options: &Options) -> Result<Identity> {
    if record.machine == options.machine {
        return Ok(if is_original(root, record) { Identity::Copied } else { Identity::Moved });
    }
    options.identity.ok_or_else(|| {
        let message = format!(
            "{} was synchronised on {} as {}; say whether it was moved or copied from there",
            root.display(),
            record.machine,
            record.path.display()
        );
        Error::new(ErrorKind::OtherMachine, OPEN, message)
    })
}

/// Whether the recorded path is another folder with the same id. One folder may have two paths.
fn is_original(root: &Path, record: &Record) -> bool {
    let same_id =
        read_record(&record.path).is_ok_and(|other| other.is_some_and(|other| other.id == record.id));
    same_id && !same_file::is_same_file(root, &record.path).unwrap_or(false)
}

fn new_record(root: &Path, options: &Options) -> Record {
    let id = format!("{:016x}", rand::random::<u64>());
    Record { version: VERSION, id, machine: options.machine.clone(), path: root.to_path_buf() }
}

fn record_file(root: &Path) -> PathBuf {
    root.join(OWN_FOLDER).join("folder.json")
}

fn written(root: &Path, record: Record, opening: Opening) -> Result<(Record, Opening)> {
    let path = record_file(root);
    let content = serde_json::to_vec_pretty(&record).map_err(io::Error::from);
    let result = content.and_then(|content| durable::write(&path, &content));
    result.map_err(|error| folder_error(OPEN, &path, &error))?;
    Ok((record, opening))
}

fn read_record(root: &Path) -> Result<Option<Record>> {
    let path = record_file(root);
    let content = match fs::read(&path) {
        Ok(content) => content,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(folder_error(OPEN, &path, &error)),
    };
    let record: Record =
        serde_json::from_slice(&content).map_err(|error| folder_error(OPEN, &path, &error.into()))?;
    if record.version > VERSION {
        let message = format!("{}: version {}, at most {VERSION} is known", path.display(), record.version);
        return Err(Error::new(ErrorKind::UnsupportedVersion, OPEN, message));
    }
    Ok(Some(record))
}
