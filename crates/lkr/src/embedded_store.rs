//! Opening the embedded store and the texts in folders.

use std::{path::Path, sync::Arc};

use lkr_state::StateStore;
use lkr_store_lmdb::{LmdbOptions, LmdbStore};

use crate::{
    Error, ErrorKind, Result,
    backup::STAGING,
    blocking::blocking,
    folder_blobs::FolderBlobs,
    text_files::{has_texts, remove_partial_texts},
};

/// The file in the staging folder of the store that names, one a line, what a restore moves into place before the store.
pub(crate) const COMMITTING: &str = "committing";

/// Opens only the state store of the knowledge base in a folder, for offline maintenance. The store is closed when the
/// last clone of the returned value is dropped.
///
/// # Errors
/// `NotFound` if there is no knowledge base, `Conflict` if a process has it open.
pub async fn open_state(data_dir: impl AsRef<Path>) -> Result<Arc<dyn StateStore>> {
    let data_dir = data_dir.as_ref().to_path_buf();
    let open = move || Ok(Arc::new(open_existing(&data_dir)?.state()) as Arc<dyn StateStore>);
    blocking("open store", open).await
}

/// Store options without background work.
pub(crate) fn inspection_options() -> LmdbOptions {
    let mut options = LmdbOptions::default();
    options.build_threads = 0;
    options
}

/// Whether there is a knowledge base in the embedded store of a data folder, damaged or not.
///
/// # Errors
/// `Internal` if a restore into the folder was interrupted, so that it lacks what is still in the archive.
pub fn has_knowledge_base(data_dir: impl AsRef<Path>) -> Result<bool> {
    let store = data_dir.as_ref().join("store");
    if LmdbStore::is_in(&store) {
        return Ok(true);
    }
    let staging = store.join(STAGING);
    if staging.symlink_metadata().is_err() {
        return Ok(false);
    }
    let folder = data_dir.as_ref().display();
    let noted = std::fs::read(staging.join(COMMITTING)).unwrap_or_default();
    let noted = String::from_utf8_lossy(&noted);
    let moved = noted.lines().filter(|path| Path::new(path).exists());
    let left: Vec<String> =
        std::iter::once(staging.display().to_string()).chain(moved.map(str::to_owned)).collect();
    let reason = format!(
        "a restore into {folder} is under way or was interrupted; if none is running, restore again, or remove {}",
        left.join(" and ")
    );
    Err(Error::new(ErrorKind::Internal, "open store", reason))
}

/// Fails if there is no knowledge base in the embedded store of a data folder.
pub(crate) fn require_knowledge_base(data_dir: &Path) -> Result<()> {
    if has_knowledge_base(data_dir)? {
        return Ok(());
    }
    let reason = format!("no knowledge base in {}", data_dir.display());
    Err(Error::new(ErrorKind::NotFound, "open store", reason))
}

/// Opens an existing store for inspection.
///
/// # Errors
/// `NotFound` if there is none, `Conflict` if a process has it open.
pub(crate) fn open_existing(data_dir: &Path) -> Result<LmdbStore> {
    require_knowledge_base(data_dir)?;
    open_store(data_dir, inspection_options())
}

/// Fails if there are texts but no store: a new store would treat all of them as garbage.
pub(crate) fn refuse_texts_without_store(data_dir: &Path, blobs_dir: &Path) -> Result<()> {
    if has_knowledge_base(data_dir)? || !has_texts(blobs_dir) {
        return Ok(());
    }
    let reason = format!(
        "there are texts in {} but no store in {}: restore a backup, or move the texts away",
        blobs_dir.display(),
        data_dir.join("store").display()
    );
    Err(Error::new(ErrorKind::Invalid, "open knowledge base", reason))
}

/// Creates a data folder that its owner alone can read, and its parents; one that exists stays as it is.
pub(crate) fn create_private_dir(data_dir: &Path) -> Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(data_dir).map_err(|error| {
        let reason = format!("{}: {error}", data_dir.display());
        Error::new(ErrorKind::Internal, "create data folder", reason)
    })
}

/// Opens the store, or creates it.
pub(crate) fn open_store(data_dir: &Path, options: LmdbOptions) -> Result<LmdbStore> {
    has_knowledge_base(data_dir)?;
    let dir = data_dir.join("store");
    let store = LmdbStore::open(&dir, options).map_err(open_error)?;
    // A restore that was killed once it was complete leaves what would tell the next one to remove the texts.
    if let Err(error) = std::fs::remove_dir_all(dir.join(STAGING))
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(dir = %dir.display(), %error, "staging folder of a restore could not be removed");
    }
    Ok(store)
}

pub(crate) fn open_error(error: lkr_store_lmdb::Error) -> Error {
    let kind = match error.kind() {
        lkr_store_lmdb::ErrorKind::Locked => ErrorKind::Conflict,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, "open store", error)
}

pub(crate) fn open_blobs(dir: &Path) -> Result<FolderBlobs> {
    let open_blobs_error = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Internal, "open blobs", format!("{}: {error}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(|e| open_blobs_error(&e))?;
    remove_partial_texts(dir);
    FolderBlobs::open(dir).map_err(|e| open_blobs_error(&e))
}
