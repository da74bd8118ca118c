//! Staging folders: a backup is unpacked beside its target and moved into place at the end.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use lkr_store_lmdb::FolderLock;

use super::{BLOBS, RESTORE, UPLOADS, io_error};
use crate::{
    Error, ErrorKind, Folders, Result,
    embedded_store::{create_private_dir, open_error},
};

/// The staging folder inside each target folder. Inside, so that moving into place is a rename even if the target
/// folder is a symbolic link or a mount point.
pub(crate) const STAGING: &str = ".restoring";

/// The target folders of a restore with their staging folders. Dropping it removes the staging folders.
pub(super) struct StagedRestore {
    store: StagedFolder,
    blobs: StagedFolder,
    uploads: StagedFolder,
    secret_key: SecretKeyFile,
    /// The folders that this restore created, if a restore fails to be removed; inner ones first.
    created: Vec<PathBuf>,
    /// Whether everything is in place.
    is_committed: bool,
    /// Keeps servers from starting on the target folder during the restore.
    _lock: FolderLock,
}

struct StagedFolder {
    target: PathBuf,
    staging: PathBuf,
}

/// The file of the key that seals stored secrets.
struct SecretKeyFile {
    path: PathBuf,
    /// The key to write; `None` if the archive has none or the file contains it already.
    new: Option<Vec<u8>>,
}

impl StagedRestore {
    /// Fails if a target folder is in use, and removes what an interrupted restore left.
    pub(super) fn prepare(folders: &Folders) -> Result<Self> {
        let (store, blobs, uploads) = (
            StagedFolder::new(&folders.store()),
            StagedFolder::new(&folders.blobs_dir),
            StagedFolder::new(&folders.uploads_dir),
        );
        for StagedFolder { target, .. } in [&store, &blobs, &uploads] {
            if !is_unused(target).map_err(io_error(RESTORE))? {
                return Err(conflict(format!("there is data in {} already", target.display())));
            }
        }
        let created = missing_folders(folders, [&store.target, &blobs.target, &uploads.target]);
        create_private_dir(&folders.data_dir)?;
        let lock = FolderLock::take(&store.target).map_err(open_error)?;
        let secret_key = SecretKeyFile { path: folders.secret_key(), new: None };
        let staged = Self { store, blobs, uploads, secret_key, created, is_committed: false, _lock: lock };
        staged.all().into_iter().try_for_each(StagedFolder::clear).map_err(io_error(RESTORE))?;
        Ok(staged)
    }

    /// In the order of the commit. The store is last, because a folder without one is not a knowledge base.
    fn all(&self) -> [&StagedFolder; 3] {
        [&self.blobs, &self.uploads, &self.store]
    }

    /// The staging path of an archive entry.
    pub(super) fn staging_path(&self, path: &str) -> Result<PathBuf> {
        let (top, rest) = path.split_once('/').unwrap_or((path, ""));
        let folder = match top {
            "store" => &self.store,
            BLOBS => &self.blobs,
            UPLOADS => &self.uploads,
            _ => {
                let reason = format!("the archive contains an unknown entry: {path}");
                return Err(Error::new(ErrorKind::Invalid, RESTORE, reason));
            }
        };
        Ok(folder.staging.join(rest))
    }

    /// The staging folder of the store.
    pub(super) fn staged_store(&self) -> &Path {
        &self.store.staging
    }

    /// Takes the key that seals stored secrets. It is written by [`commit`](Self::commit), unless the same key exists
    /// already.
    ///
    /// # Errors
    /// `Conflict` if a different key exists.
    pub(super) fn put_secret_key(&mut self, key: Vec<u8>) -> Result<()> {
        let path = &self.secret_key.path;
        match fs::read(path) {
            Ok(existing) if existing == key => Ok(()),
            Ok(_) => Err(conflict(format!("{} contains a different key already", path.display()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.secret_key.new = Some(key);
                Ok(())
            }
            Err(error) => Err(io_error(RESTORE)(error)),
        }
    }

    /// Syncs the staging folders, then moves their content and the key into place.
    pub(super) fn commit(mut self) -> Result<()> {
        let result = || {
            self.all().into_iter().try_for_each(|folder| sync_below(&folder.staging))?;
            if let Some(key) = &self.secret_key.new {
                write_private(&self.secret_key.path, key)?;
            }
            self.all().into_iter().try_for_each(StagedFolder::commit)
        };
        result().map_err(io_error(RESTORE))?;
        self.is_committed = true;
        Ok(())
    }
}

impl Drop for StagedRestore {
    fn drop(&mut self) {
        for folder in self.all() {
            if let Err(error) = folder.clear() {
                let folder = folder.staging.display();
                tracing::warn!(%folder, %error, "staging folder of a restore could not be removed");
            }
        }
        if self.is_committed {
            return;
        }
        // If no store was moved into place, the lock file is removed too.
        let store = &self.store.target;
        if !store.join("kb").exists() {
            let _ = fs::remove_file(store.join("lock"));
        }
        // Folders with data are not removed.
        for folder in &self.created {
            let _ = fs::remove_dir(folder);
        }
    }
}

impl StagedFolder {
    fn new(target: &Path) -> Self {
        Self { target: target.to_owned(), staging: target.join(STAGING) }
    }

    fn clear(&self) -> io::Result<()> {
        super::remove(&self.staging)
    }

    fn commit(&self) -> io::Result<()> {
        if !self.staging.exists() {
            return Ok(());
        }
        for entry in fs::read_dir(&self.staging)? {
            let entry = entry?;
            // The target's lock file is held by this process; the one in the staging folder is not used.
            if entry.file_name() != "lock" {
                fs::rename(entry.path(), self.target.join(entry.file_name()))?;
            }
        }
        fs::File::open(&self.target)?.sync_all()
    }
}

/// The folders that do not exist yet, inner ones first: the targets, the data folder and its parents.
fn missing_folders(folders: &Folders, targets: [&PathBuf; 3]) -> Vec<PathBuf> {
    let outer = folders.data_dir.ancestors().map(Path::to_owned);
    let all = targets.into_iter().cloned().chain(outer);
    all.filter(|folder| !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err()).collect()
}

/// Whether a folder does not exist, is empty, or contains only what an interrupted restore left.
fn is_unused(path: &Path) -> io::Result<bool> {
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

/// Syncs the whole file system of a folder, which is faster than syncing each file.
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

/// Writes a file that only its owner can read, atomically.
fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let temporary = path.with_added_extension("restoring");
    let _ = fs::remove_file(&temporary);
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    io::Write::write_all(&mut file, content)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

fn conflict(reason: String) -> Error {
    Error::new(ErrorKind::Conflict, RESTORE, reason)
}
