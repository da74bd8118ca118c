//! Opening the embedded store and the texts in folders.

use std::{path::Path, sync::Arc};

use lkr_state::StateStore;
use lkr_store_lmdb::{LmdbOptions, LmdbStore};
use object_store::local::LocalFileSystem;

use crate::{
    Error, ErrorKind, Result,
    blocking::blocking,
    text_files::{has_texts, remove_partial_texts},
};

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

/// Opens an existing store for inspection.
///
/// # Errors
/// `NotFound` if there is none, `Conflict` if a process has it open.
pub(crate) fn open_existing(data_dir: &Path) -> Result<LmdbStore> {
    if !LmdbStore::is_in(&data_dir.join("store")) {
        let reason = format!("no knowledge base in {}", data_dir.display());
        return Err(Error::new(ErrorKind::NotFound, "open store", reason));
    }
    open_store(data_dir, inspection_options())
}

/// Fails if there are texts but no store: a new store would treat all of them as garbage.
pub(crate) fn refuse_texts_without_store(data_dir: &Path, blobs_dir: &Path) -> Result<()> {
    let store = data_dir.join("store");
    if LmdbStore::is_in(&store) || !has_texts(blobs_dir) {
        return Ok(());
    }
    let reason = format!(
        "there are texts in {} but no store in {}: restore a backup, or move the texts away",
        blobs_dir.display(),
        store.display()
    );
    Err(Error::new(ErrorKind::Conflict, "open knowledge base", reason))
}

pub(crate) fn open_store(data_dir: &Path, options: LmdbOptions) -> Result<LmdbStore> {
    LmdbStore::open(&data_dir.join("store"), options).map_err(open_error)
}

pub(crate) fn open_error(error: lkr_store_lmdb::Error) -> Error {
    let kind = match error.kind() {
        lkr_store_lmdb::ErrorKind::Locked => ErrorKind::Conflict,
        _ => ErrorKind::Internal,
    };
    Error::new(kind, "open store", error)
}

pub(crate) fn open_blobs(dir: &Path) -> Result<LocalFileSystem> {
    let open_blobs_error = |error: &dyn std::fmt::Display| {
        Error::new(ErrorKind::Internal, "open blobs", format!("{}: {error}", dir.display()))
    };
    std::fs::create_dir_all(dir).map_err(|e| open_blobs_error(&e))?;
    remove_partial_texts(dir);
    let blobs = LocalFileSystem::new_with_prefix(dir).map_err(|e| open_blobs_error(&e))?;
    Ok(blobs.with_fsync(true).with_automatic_cleanup(false))
}
