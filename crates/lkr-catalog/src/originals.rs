use std::{
    fs::File,
    io,
    ops::Range,
    path::{Path as FilePath, PathBuf},
    pin::pin,
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};

use crate::{
    Error, ErrorKind, Result,
    blob::{delete, put_file},
    original_path::is_original_path,
    verified,
};

/// The files as they were sent, by path.
#[derive(Debug, Clone)]
pub struct Originals {
    storage: OriginalStorage,
}

#[derive(Debug, Clone)]
enum OriginalStorage {
    /// A folder, which is made when the first file comes.
    Folder(PathBuf),
    Blobs(Arc<dyn ObjectStore>),
}

/// A file that is stored.
#[derive(Debug, Clone)]
pub struct StoredOriginal {
    blobs: Arc<dyn ObjectStore>,
    path: Path,
    /// Its length in bytes.
    pub size_bytes: u64,
}

impl Originals {
    /// Originals in a folder, which is made when the first one comes. Symbolic links below it are not followed.
    #[must_use]
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { storage: OriginalStorage::Folder(folder) }
    }

    /// Originals on a blob store. What it answers to a `put` must be durable.
    #[must_use]
    pub const fn on(blobs: Arc<dyn ObjectStore>) -> Self {
        Self { storage: OriginalStorage::Blobs(blobs) }
    }

    /// Stores the first `length` bytes of a file under a path that [`original_path`] made; durable when it answers
    /// its SHA-256.
    pub async fn put(&self, path: &str, file: &File, length: u64) -> Result<String> {
        let path = parse(path)?;
        if let OriginalStorage::Folder(folder) = &self.storage {
            tokio::fs::create_dir_all(folder).await.map_err(|e| Error::blob("make the upload folder", e))?;
        }
        let blobs = self.open_store(&path).await?.ok_or_else(link_error)?;
        put_file(&blobs, &path, file, 0..length).await
    }

    /// A stored file; `None` where there is none, or the path leads elsewhere than below the place of originals.
    pub async fn get(&self, path: &str) -> Result<Option<StoredOriginal>> {
        let Ok(path) = parse(path) else { return Ok(None) };
        let Some(blobs) = self.open_store(&path).await? else { return Ok(None) };
        if !self.is_file(&path).await {
            return Ok(None);
        }
        match blobs.head(&path).await {
            Ok(meta) => Ok(Some(StoredOriginal { blobs, path, size_bytes: meta.size })),
            Err(object_store::Error::NotFound { .. }) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file, also one that was stored in part; nothing where there is none.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let Ok(path) = parse(path) else { return Ok(()) };
        let Some(blobs) = self.open_store(&path).await? else { return Ok(()) };
        delete(&blobs, &path).await?;
        match &self.storage {
            OriginalStorage::Folder(folder) => {
                let file = on_disk(folder, &path);
                let removed = tokio::task::spawn_blocking(move || remove_half_written(&file)).await;
                removed
                    .map_err(|e| Error::blob("remove a file", e))?
                    .map_err(|e| Error::blob("remove a file", e))
            }
            OriginalStorage::Blobs(_) => Ok(()),
        }
    }

    /// The paths of all files that are stored as [`original_path`] and [`replaced_path`] would have them.
    pub async fn stored(&self) -> Result<Vec<String>> {
        let blobs: Arc<dyn ObjectStore> = match &self.storage {
            OriginalStorage::Blobs(blobs) => Arc::clone(blobs),
            OriginalStorage::Folder(folder) if folder.is_dir() => {
                Arc::new(LocalFileSystem::new_with_prefix(folder)?)
            }
            OriginalStorage::Folder(_) => return Ok(Vec::new()),
        };
        let mut stored = Vec::new();
        let mut list = blobs.list(None);
        while let Some(meta) = list.try_next().await? {
            stored.extend(Some(meta.location.as_ref().to_owned()).filter(|path| is_original_path(path)));
        }
        Ok(stored)
    }

    /// Whether what a folder holds there is a file; anything that a blob store holds is one.
    async fn is_file(&self, path: &Path) -> bool {
        match &self.storage {
            OriginalStorage::Blobs(_) => true,
            OriginalStorage::Folder(folder) => {
                let meta = tokio::fs::symlink_metadata(on_disk(folder, path)).await;
                meta.is_ok_and(|meta| meta.is_file())
            }
        }
    }

    /// The store that holds `path`; `None` where there is none, or a link leads out of the folder.
    async fn open_store(&self, path: &Path) -> Result<Option<Arc<dyn ObjectStore>>> {
        let folder = match &self.storage {
            OriginalStorage::Blobs(blobs) => return Ok(Some(Arc::clone(blobs))),
            OriginalStorage::Folder(folder) => folder.clone(),
        };
        let path = path.clone();
        let reached = tokio::task::spawn_blocking(move || {
            if !folder.exists() || has_link(&folder, &path) {
                return Ok(None);
            }
            let blobs = LocalFileSystem::new_with_prefix(&folder)?;
            let blobs: Arc<dyn ObjectStore> = Arc::new(blobs.with_fsync(true).with_automatic_cleanup(false));
            Ok::<_, object_store::Error>(Some(blobs))
        });
        Ok(reached.await.map_err(|e| Error::blob("open the upload folder", e))??)
    }
}

impl StoredOriginal {
    /// The bytes of a range of it, as they come from the store.
    pub async fn read(
        &self,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        // A store refuses a range of nothing.
        if range.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        let got = self.blobs.get_opts(&self.path, options).await?;
        Ok(got.into_stream().map_err(io::Error::other).boxed())
    }
}

impl StoredOriginal {
    /// Reads all of it, and refuses it where its SHA-256 is not this: before a part is shown, of which that cannot be told.
    pub async fn check(&self, sha256: Option<&str>) -> Result<()> {
        let Some(sha256) = sha256 else { return Ok(()) };
        let all = pin!(self.read_verified(Some(sha256)).await?);
        let checked = all.try_for_each(|_| async { Ok(()) }).await;
        checked.map_err(|error| Error::corrupt("read a file", error))
    }

    /// All bytes of it. Those whose SHA-256 is not this end with an error.
    pub async fn read_verified(
        &self,
        sha256: Option<&str>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let parts = self.read(0..self.size_bytes).await?;
        Ok(verified::parts(parts, sha256.map(str::to_owned), format!("the file {}", self.path)))
    }
}

fn parse(path: &str) -> Result<Path> {
    let wrong = |reason: String| Error::new(ErrorKind::Corrupt, "read the path of an original", reason);
    let path = Path::parse(path).map_err(|error| wrong(error.to_string()))?;
    if path.as_ref().is_empty() { Err(wrong("it is empty".to_owned())) } else { Ok(path) }
}

fn link_error() -> Error {
    Error::new(ErrorKind::Internal, "store a file", "a symbolic link leads out of the upload folder")
}

fn on_disk(folder: &FilePath, path: &Path) -> PathBuf {
    folder.join(path.as_ref())
}

/// Whether a symbolic link stands somewhere on the way from the folder to the file.
fn has_link(folder: &FilePath, path: &Path) -> bool {
    let mut way = folder.to_owned();
    path.as_ref().split('/').any(|part| {
        way.push(part);
        way.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
    })
}

/// Removes what a process that ended midway had written of a file: it lies under the file's name, `#` and a number.
fn remove_half_written(file: &FilePath) -> io::Result<()> {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return Ok(()) };
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    let prefix = format!("{}#", name.to_string_lossy());
    for entry in entries.flatten() {
        let entry_name = entry.file_name().to_string_lossy().into_owned();
        let number = entry_name.strip_prefix(&prefix);
        if number.is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())) {
            std::fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
