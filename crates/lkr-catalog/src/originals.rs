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
use lkr_domain::Original;
use object_store::{GetOptions, ObjectStore, ObjectStoreExt, local::LocalFileSystem, path::Path};

use crate::{
    Error, ErrorKind, Result,
    blob::{delete, put_file},
    original_path::is_original_path,
    verified,
};

/// The longest file that is read and checked as a whole before a part of it is served. A browser asks for a large PDF file in hundreds of
/// parts, each of which would otherwise cost a read of the whole. Chosen, not measured: hashing this much takes some ten milliseconds.
const MAX_CHECKED_BYTES: u64 = 8 * 1024 * 1024;

/// The original files, by path.
#[derive(Debug, Clone)]
pub struct Originals {
    storage: OriginalStorage,
}

#[derive(Debug, Clone)]
enum OriginalStorage {
    /// A folder, created when the first file is stored.
    Folder(PathBuf),
    Blobs(Arc<dyn ObjectStore>),
}

/// A stored file.
#[derive(Debug, Clone)]
pub struct StoredOriginal {
    blobs: Arc<dyn ObjectStore>,
    path: Path,
    /// The length in bytes.
    pub size_bytes: u64,
}

impl Originals {
    /// Originals in a folder, which is created when the first one is stored. Symbolic links below it are not followed.
    #[must_use]
    pub const fn in_folder(folder: PathBuf) -> Self {
        Self { storage: OriginalStorage::Folder(folder) }
    }

    /// Originals on a blob store. A `put` of that store must be durable once it returns.
    #[must_use]
    pub const fn on(blobs: Arc<dyn ObjectStore>) -> Self {
        Self { storage: OriginalStorage::Blobs(blobs) }
    }

    /// Stores the first `length` bytes of a file under a path that [`original_path`](crate::original_path()) made, and
    /// returns their SHA-256. The file is durable once this returns.
    pub async fn put(&self, path: &str, file: &File, length: u64) -> Result<String> {
        let path = parse(path)?;
        if let OriginalStorage::Folder(folder) = &self.storage {
            tokio::fs::create_dir_all(folder)
                .await
                .map_err(|e| Error::blob("create the upload folder", e))?;
        }
        let blobs = self.open_store(&path).await?.ok_or_else(link_error)?;
        put_file(&blobs, &path, file, 0..length).await
    }

    /// A stored file; `None` if there is none or the path leads out of the folder of originals.
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

    /// Removes a file, even if it was stored only in part. A missing file is no error.
    pub async fn delete(&self, path: &str) -> Result<()> {
        let Ok(path) = parse(path) else { return Ok(()) };
        let Some(blobs) = self.open_store(&path).await? else { return Ok(()) };
        delete(&blobs, &path).await?;
        match &self.storage {
            OriginalStorage::Folder(folder) => {
                let file = on_disk(folder, &path);
                let removed = tokio::task::spawn_blocking(move || remove_partial_files(&file)).await;
                removed
                    .map_err(|e| Error::blob("remove a file", e))?
                    .map_err(|e| Error::blob("remove a file", e))
            }
            OriginalStorage::Blobs(_) => Ok(()),
        }
    }

    /// The paths of all stored files that have the form of [`original_path`](crate::original_path()) or
    /// [`replaced_path`](crate::replaced_path).
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

    /// Whether a path of a folder is a regular file. Every object of a blob store counts as a file.
    async fn is_file(&self, path: &Path) -> bool {
        match &self.storage {
            OriginalStorage::Blobs(_) => true,
            OriginalStorage::Folder(folder) => {
                let meta = tokio::fs::symlink_metadata(on_disk(folder, path)).await;
                meta.is_ok_and(|meta| meta.is_file())
            }
        }
    }

    /// Opens the store that contains `path`; `None` if the folder is missing or a symbolic link is on the path.
    async fn open_store(&self, path: &Path) -> Result<Option<Arc<dyn ObjectStore>>> {
        let folder = match &self.storage {
            OriginalStorage::Blobs(blobs) => return Ok(Some(Arc::clone(blobs))),
            OriginalStorage::Folder(folder) => folder.clone(),
        };
        let path = path.clone();
        let opened = tokio::task::spawn_blocking(move || {
            if !folder.exists() || has_link(&folder, &path) {
                return Ok(None);
            }
            let blobs = LocalFileSystem::new_with_prefix(&folder)?;
            let blobs: Arc<dyn ObjectStore> = Arc::new(blobs.with_fsync(true).with_automatic_cleanup(false));
            Ok::<_, object_store::Error>(Some(blobs))
        });
        Ok(opened.await.map_err(|e| Error::blob("open the upload folder", e))??)
    }
}

impl StoredOriginal {
    /// Streams a range of the file.
    pub async fn read(
        &self,
        range: Range<u64>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        // Stores refuse empty ranges.
        if range.is_empty() {
            return Ok(stream::empty().boxed());
        }
        let options = GetOptions { range: Some(range.into()), ..GetOptions::default() };
        let got = self.blobs.get_opts(&self.path, options).await?;
        Ok(got.into_stream().map_err(io::Error::other).boxed())
    }
}

impl StoredOriginal {
    /// Reads the whole file and compares its SHA-256.
    pub async fn check(&self, sha256: Option<&str>) -> Result<()> {
        let Some(sha256) = sha256 else { return Ok(()) };
        let parts = pin!(self.read_verified(Some(sha256)).await?);
        let checked = parts.try_for_each(|_| async { Ok(()) }).await;
        checked.map_err(|error| Error::corrupt("read a file", error))
    }

    /// Streams a range of the file that was stored as `original`. A part cannot be verified by the SHA-256 of the whole. So a file of
    /// up to 8 MiB is checked as a whole before, and of a longer one only its length is compared.
    ///
    /// # Errors
    /// `Corrupt` if the file was checked and is damaged, or has another length than it was stored with.
    pub async fn read_part(
        &self,
        range: Range<u64>,
        original: &Original,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        if self.size_bytes <= MAX_CHECKED_BYTES {
            self.check(original.sha256.as_deref()).await?;
        } else if self.size_bytes != original.size_bytes {
            return Err(verified::damaged(&format!("the file {}", self.path)));
        }
        self.read(range).await
    }

    /// Streams the whole file. If its SHA-256 is not `sha256`, the stream ends with an error.
    pub async fn read_verified(
        &self,
        sha256: Option<&str>,
    ) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + use<>> {
        let parts = self.read(0..self.size_bytes).await?;
        Ok(verified::parts(parts, sha256.map(str::to_owned), format!("the file {}", self.path)))
    }
}

fn parse(path: &str) -> Result<Path> {
    let invalid = |reason: String| Error::new(ErrorKind::Corrupt, "read the path of an original", reason);
    let path = Path::parse(path).map_err(|error| invalid(error.to_string()))?;
    if path.as_ref().is_empty() { Err(invalid("the path is empty".to_owned())) } else { Ok(path) }
}

fn link_error() -> Error {
    Error::new(ErrorKind::Internal, "store a file", "a symbolic link is on the path below the upload folder")
}

fn on_disk(folder: &FilePath, path: &Path) -> PathBuf {
    folder.join(path.as_ref())
}

/// Whether any component of the path below the folder is a symbolic link.
fn has_link(folder: &FilePath, path: &Path) -> bool {
    let mut current = folder.to_owned();
    path.as_ref().split('/').any(|part| {
        current.push(part);
        current.symlink_metadata().is_ok_and(|meta| meta.is_symlink())
    })
}

/// Removes the partial file that a killed process left. Its name is the file's name, `#` and a number.
fn remove_partial_files(file: &FilePath) -> io::Result<()> {
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
