//! Staging folders: a backup is unpacked beside its target and moved into place at the end.

use std::{
    ffi::{OsStr, OsString},
    fs, io,
    path::{Path, PathBuf},
};

use lkr_store_lmdb::FolderLock;

use super::{BLOBS, RESTORE, UPLOADS, io_error};
use crate::{
    Error, ErrorKind, Folders, Result,
    embedded_store::{COMMITTING, create_private_dir, open_error},
};

/// The staging folder inside each target folder. Inside, so that moving into place is a rename even if the target
/// folder is a symbolic link or a mount point.
pub(crate) const STAGING: &str = ".restoring";

/// The lock file of a store, and the folder of its data.
const LOCK: &str = "lock";
const DATA: &str = "kb";

/// The target folders of a restore with their staging folders. Dropping it removes the staging folders, and what was moved into
/// place without a store.
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
    /// Fails if a target folder is in use or contains other data than an interrupted restore moved there, and removes what that
    /// left.
    pub(super) fn prepare(folders: &Folders) -> Result<Self> {
        let (store, blobs, uploads) = (
            StagedFolder::new(&folders.store()),
            StagedFolder::new(&folders.blobs_dir),
            StagedFolder::new(&folders.uploads_dir),
        );
        // Looked at before anything is created, and again once no other restore can be under way.
        moved_by_restore(&store, [&blobs, &uploads])?;
        let created = missing_folders(folders, [&store.target, &blobs.target, &uploads.target]);
        create_private_dir(&folders.data_dir)?;
        let lock = FolderLock::take(&store.target).map_err(open_error)?;
        let secret_key = SecretKeyFile { path: folders.secret_key(), new: None };
        let staged = Self { store, blobs, uploads, secret_key, created, is_committed: false, _lock: lock };
        staged.remove_moved()?;
        staged.all().into_iter().try_for_each(StagedFolder::clear).map_err(io_error(RESTORE))?;
        Ok(staged)
    }

    /// Removes what was moved into place, unless the store was too.
    fn remove_moved(&self) -> Result<()> {
        let moved = moved_by_restore(&self.store, [&self.blobs, &self.uploads])?;
        let remove = |path: &PathBuf| match path.is_dir() {
            true => super::remove(path),
            false => fs::remove_file(path),
        };
        moved.iter().try_for_each(remove).map_err(io_error(RESTORE))
    }

    /// In the order of the commit. The store is last, because a folder without one is not a knowledge base, and because its
    /// staging folder says what was moved.
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
            self.note_moves()?;
            if let Some(key) = &self.secret_key.new {
                write_private(&self.secret_key.path, key)?;
            }
            self.all().into_iter().try_for_each(StagedFolder::commit)
        };
        result().map_err(io_error(RESTORE))?;
        self.is_committed = true;
        Ok(())
    }

    /// Writes down what is about to be moved into place before the data of the store.
    fn note_moves(&self) -> io::Result<()> {
        let mut paths = Vec::new();
        for folder in self.all() {
            for name in folder.staged_names()?.iter().filter(|name| *name != DATA) {
                paths.extend_from_slice(folder.placed(name)?.as_os_str().as_encoded_bytes());
                paths.push(b'\n');
            }
        }
        let mut file = fs::File::create(self.store.staging.join(COMMITTING))?;
        io::Write::write_all(&mut file, &paths)?;
        file.sync_all()?;
        fs::File::open(&self.store.staging)?.sync_all()
    }
}

impl Drop for StagedRestore {
    fn drop(&mut self) {
        if !self.is_committed
            && self.store.staging.join(COMMITTING).exists()
            && let Err(error) = self.remove_moved()
        {
            // The staging folder says what the next restore may remove.
            let folder = self.store.staging.display();
            tracing::warn!(%folder, %error, "what a restore moved into place could not be removed");
            return;
        }
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
        if !store.join(DATA).exists() {
            let _ = fs::remove_file(store.join(LOCK));
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
        for name in self.staged_names()? {
            fs::rename(self.staging.join(&name), self.target.join(&name))?;
        }
        fs::File::open(&self.target)?.sync_all()
    }

    /// What is moved into place, the data of a store last. The target's lock file is held by this process; the one in the staging
    /// folder is not used.
    fn staged_names(&self) -> io::Result<Vec<OsString>> {
        let mut names = names_in(&self.staging, &[LOCK, COMMITTING])?;
        names.sort_by_key(|name| name == DATA);
        Ok(names)
    }

    /// Where a name is once it is in place, whatever the path by which the folder is reached.
    fn placed(&self, name: &OsStr) -> io::Result<PathBuf> {
        Ok(self.target.canonicalize()?.join(name))
    }
}

/// The folders that do not exist yet, inner ones first: the targets, the data folder and its parents.
fn missing_folders(folders: &Folders, targets: [&PathBuf; 3]) -> Vec<PathBuf> {
    let outer = folders.data_dir.ancestors().map(Path::to_owned);
    let all = targets.into_iter().cloned().chain(outer);
    all.filter(|folder| !folder.as_os_str().is_empty() && folder.symlink_metadata().is_err()).collect()
}

/// What an interrupted restore moved into place; nothing in unused folders.
///
/// # Errors
/// `Conflict` if there is other data: it was not noted, or what was noted is still in the staging folder, or the store is in
/// place.
fn moved_by_restore(store: &StagedFolder, others: [&StagedFolder; 2]) -> Result<Vec<PathBuf>> {
    let noted = match fs::read(store.staging.join(COMMITTING)) {
        Err(error) if is_absent(&error) => Vec::new(),
        noted => noted.map_err(io_error(RESTORE))?,
    };
    let mut moved = Vec::new();
    for folder in std::iter::once(store).chain(others) {
        let in_use = || conflict(format!("there is data in {} already", folder.target.display()));
        let names = match names_in(&folder.target, &[LOCK, STAGING]) {
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => return Err(in_use()),
            names => names.map_err(io_error(RESTORE))?,
        };
        for name in names {
            let path = folder.placed(&name).map_err(io_error(RESTORE))?;
            let is_noted =
                noted.split(|byte| *byte == b'\n').any(|line| line == path.as_os_str().as_encoded_bytes());
            if !is_noted || folder.staging.join(&name).exists() {
                return Err(in_use());
            }
            moved.push(path);
        }
    }
    Ok(moved)
}

/// The names in a folder that are not among `without`; none if there is no folder.
fn names_in(folder: &Path, without: &[&str]) -> io::Result<Vec<OsString>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let names = entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<Vec<_>>>()?;
    Ok(names.into_iter().filter(|name| !without.iter().any(|other| *name == **other)).collect())
}

/// Whether a file is not there, nor a folder for it.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::embedded_store::has_knowledge_base;

    const FILES: [&str; 4] = ["blobs/texts/a", "blobs/knowledge-base", "uploads/2026/b", "store/kb/data.mdb"];

    /// A restore that has unpacked its archive.
    fn unpacked(folders: &Folders) -> StagedRestore {
        let staged = StagedRestore::prepare(folders).unwrap();
        for file in FILES {
            write(&staged.staging_path(file).unwrap(), "restored");
        }
        staged
    }

    fn write(path: &Path, content: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Leaves the folders as a restore does that is killed after some of its moves. Returns the paths of all of them.
    fn killed_after(moves: usize, folders: &Folders) -> Vec<PathBuf> {
        let staged = unpacked(folders);
        staged.note_moves().unwrap();
        let mut paths = Vec::new();
        for folder in staged.all() {
            for name in folder.staged_names().unwrap() {
                let to = folder.target.join(&name);
                if paths.len() < moves {
                    fs::rename(folder.staging.join(&name), &to).unwrap();
                }
                paths.push(to);
            }
        }
        // Dropping it removes nothing while the folder is elsewhere.
        let elsewhere = folders.data_dir.with_extension("elsewhere");
        fs::rename(&folders.data_dir, &elsewhere).unwrap();
        drop(staged);
        fs::rename(elsewhere, &folders.data_dir).unwrap();
        paths
    }

    fn assert_refused(folders: &Folders) {
        let refused = StagedRestore::prepare(folders).err().unwrap();
        assert_eq!(refused.kind(), ErrorKind::Conflict, "{refused}");
    }

    #[test]
    fn restore_that_is_killed_after_any_move_can_be_repeated() {
        // After the fourth, the store is in place.
        for moves in 0..4 {
            let parent = tempfile::tempdir().unwrap();
            let folders = Folders::new(parent.path().join("data"));
            let paths = killed_after(moves, &folders);
            assert_eq!(paths.iter().filter(|path| path.exists()).count(), moves);
            let told = has_knowledge_base(&folders.data_dir).unwrap_err().to_string();
            assert!(told.contains("was interrupted"), "{told}");
            for path in &paths[..moves] {
                assert!(told.contains(&path.canonicalize().unwrap().display().to_string()), "{told}");
            }
            let again = unpacked(&folders);
            assert!(paths.iter().all(|path| !path.exists()), "what was moved is removed");
            again.commit().unwrap();
            assert!(FILES.iter().all(|file| folders.data_dir.join(file).exists()));
            assert!(!folders.data_dir.join("store").join(STAGING).exists());
            assert_refused(&folders);
        }
    }

    #[test]
    fn restore_that_fails_after_some_moves_removes_what_it_moved() {
        let parent = tempfile::tempdir().unwrap();
        let folders = Folders::new(parent.path().join("data"));
        let staged = unpacked(&folders);
        staged.note_moves().unwrap();
        staged.blobs.commit().unwrap();
        assert!(folders.blobs_dir.join("texts/a").exists());
        drop(staged);
        assert!(!folders.data_dir.exists());

        let staged = unpacked(&folders);
        // The originals cannot take the place of this folder.
        let mine = folders.uploads_dir.join("2026/mine");
        write(&mine, "mine");
        assert!(staged.commit().is_err());
        assert_refused(&folders);
        assert!(mine.exists());
        fs::remove_dir_all(&folders.uploads_dir).unwrap();
        unpacked(&folders).commit().unwrap();
    }

    #[test]
    fn data_that_no_restore_moved_is_refused_and_kept() {
        let parent = tempfile::tempdir().unwrap();
        let folders = Folders::new(parent.path().join("data"));
        let mine = folders.blobs_dir.join("texts/mine");
        write(&mine, "mine");
        assert_refused(&folders);
        assert!(mine.exists(), "no restore was interrupted");
        fs::remove_dir_all(&folders.blobs_dir).unwrap();

        killed_after(2, &folders);
        // Not noted, and noted but not moved.
        for file in ["notes.txt", "2026/mine"] {
            let file = folders.uploads_dir.join(file);
            write(&file, "mine");
            assert_refused(&folders);
            assert!(file.exists() && folders.blobs_dir.join("texts/a").exists());
            fs::remove_file(&file).unwrap();
            let _ = fs::remove_dir(folders.uploads_dir.join("2026"));
        }
        // The folders of another knowledge base.
        let other = Folders { blobs_dir: parent.path().join("other"), ..folders.clone() };
        write(&other.blobs_dir.join("texts/mine"), "mine");
        assert_refused(&other);
        assert!(other.blobs_dir.join("texts/mine").exists());
        // With the store, the restore is complete.
        write(&folders.data_dir.join("store/kb/data.mdb"), "data");
        assert_refused(&folders);
        assert!(folders.blobs_dir.join("texts/a").exists());
    }
}
