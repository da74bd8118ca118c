//! Where a backup is unpacked, and where it goes.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use lkr_store_lmdb::FolderLock;

use super::{BLOBS, RESTORE, UPLOADS, failed};
use crate::{Error, ErrorKind, Folders, Result, open::not_opened};

/// What is unpacked lies in here, in the very folder that it is for, so that it needs but be renamed, also where that
/// folder is a link or a file system of its own.
const STAGING: &str = ".restoring";

/// Where things go, and where they lie until then. What lies there goes with this.
pub(super) struct Places {
    store: Place,
    blobs: Place,
    uploads: Place,
    secret_key: PathBuf,
    /// No server may begin there meanwhile.
    _lock: FolderLock,
}

struct Place {
    target: PathBuf,
    staging: PathBuf,
}

impl Places {
    /// Refuses where something is there, and removes what a restoration that was killed left.
    pub(super) fn prepare(folders: &Folders) -> Result<Self> {
        let (store, blobs, uploads) =
            (Place::new(&folders.store()), Place::new(&folders.blobs_dir), Place::new(&folders.uploads_dir));
        for Place { target, .. } in [&store, &blobs, &uploads] {
            if !is_free(target).map_err(failed(RESTORE))? {
                return Err(conflict(format!("there is something in {} already", target.display())));
            }
        }
        let lock = FolderLock::take(&store.target).map_err(not_opened)?;
        let places = Self { store, blobs, uploads, secret_key: folders.secret_key(), _lock: lock };
        places.all().into_iter().try_for_each(Place::clear).map_err(failed(RESTORE))?;
        Ok(places)
    }

    /// The store's last: without one, there is no knowledge base.
    fn all(&self) -> [&Place; 3] {
        [&self.blobs, &self.uploads, &self.store]
    }

    /// Where the content of an entry is put for now.
    pub(super) fn staged(&self, path: &str) -> Result<PathBuf> {
        let (top, rest) = path.split_once('/').unwrap_or((path, ""));
        let place = match top {
            "store" => &self.store,
            BLOBS => &self.blobs,
            UPLOADS => &self.uploads,
            _ => {
                let reason = format!("it holds {path}, which this program does not know");
                return Err(Error::new(ErrorKind::Invalid, RESTORE, reason));
            }
        };
        Ok(place.staging.join(rest))
    }

    /// The folder of the store that was unpacked.
    pub(super) fn staged_store(&self) -> &Path {
        &self.store.staging
    }

    /// Writes the key that seals stored secrets, unless it is there already.
    ///
    /// # Errors
    /// `Conflict` where another one is there.
    pub(super) fn put_secret_key(&self, key: &[u8]) -> Result<()> {
        match fs::read(&self.secret_key) {
            Ok(there) if there == key => Ok(()),
            Ok(_) => Err(conflict(format!("{} is another key already", self.secret_key.display()))),
            Err(_) => write_private(&self.secret_key, key).map_err(failed(RESTORE)),
        }
    }

    /// Makes what was unpacked durable, and puts it in its place.
    pub(super) fn settle(&self) -> Result<()> {
        let settled = || {
            self.all().into_iter().try_for_each(|place| sync_below(&place.staging))?;
            self.all().into_iter().try_for_each(Place::settle)
        };
        settled().map_err(failed(RESTORE))
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        for place in self.all() {
            if let Err(error) = place.clear() {
                let folder = place.staging.display();
                tracing::warn!(%folder, %error, "what was unpacked could not be removed");
            }
        }
        // Nor does the lock stay of a store that did not come.
        let store = &self.store.target;
        if !store.join("kb").exists() {
            let _ = fs::remove_file(store.join("lock"));
            let _ = fs::remove_dir(store);
        }
    }
}

impl Place {
    fn new(target: &Path) -> Self {
        Self { target: target.to_owned(), staging: target.join(STAGING) }
    }

    fn clear(&self) -> io::Result<()> {
        super::remove(&self.staging)
    }

    fn settle(&self) -> io::Result<()> {
        if !self.staging.exists() {
            return Ok(());
        }
        for entry in fs::read_dir(&self.staging)? {
            let entry = entry?;
            // The store's own lock is held, and the one of what was unpacked means nothing.
            if entry.file_name() != "lock" {
                fs::rename(entry.path(), self.target.join(entry.file_name()))?;
            }
        }
        fs::File::open(&self.target)?.sync_all()
    }
}

/// Whether there is nothing in a folder but what a restoration that was killed left, or no folder.
fn is_free(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(entries) => {
            let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
            Ok(names.iter().all(|name| name == STAGING || name == "lock"))
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Makes what was written to the file system of a folder durable, all at once.
#[cfg(target_os = "linux")]
fn sync_below(folder: &Path) -> io::Result<()> {
    match fs::File::open(folder) {
        Ok(folder) => Ok(rustix::fs::syncfs(folder)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn sync_below(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        fs::read_dir(folder)?.try_for_each(|entry| sync_below(&entry?.path()))?;
    }
    if folder.exists() { fs::File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let draft = path.with_added_extension("restoring");
    let _ = fs::remove_file(&draft);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_all()?;
    fs::rename(draft, path)
}

fn conflict(reason: String) -> Error {
    Error::new(ErrorKind::Conflict, RESTORE, reason)
}
