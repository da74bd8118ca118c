//! Texts and originals as files with a path, wherever they are.

use std::{io, path::Path as FilePath, sync::Arc};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream, stream::BoxStream};
use lkr_catalog::{Error as CatalogError, ErrorKind as CatalogErrorKind, Originals, Texts};
use object_store::{ObjectStore, ObjectStoreExt, buffered::BufWriter, path::Path};
use sha2::{Digest, Sha256};
use tokio::io::AsyncWriteExt;

use crate::{
    Error, MigrateOptions, Parts, Result,
    checksum::{ItemDigest, ItemHasher},
    retry::retried,
    stores::Stores,
};

/// Bytes of a text that are in memory while it is copied: the smallest part that stores with multipart uploads accept.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// A file by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Blob {
    /// A text, its blocks or its notes.
    Text(Path),
    Original(String),
}

/// The length and the digest of a file's path and content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlobDigest {
    pub(crate) size: u64,
    pub(crate) digest: ItemDigest,
}

/// All files of a side. An original may be a symbolic link, which is no file and has no content.
pub(crate) async fn list<'a>(
    stores: &'a Stores,
    parts: Parts,
    options: &MigrateOptions,
    operation: &'static str,
) -> Result<BoxStream<'a, Result<Blob>>> {
    let mut lists = Vec::new();
    if let Some(texts) = stores.texts.as_ref().filter(|_| parts.texts) {
        lists.extend(Texts::FOLDERS.map(|folder| {
            let list = texts.list(Some(&Path::from(folder)));
            list.map_ok(|meta| Blob::Text(meta.location))
                .map_err(move |error| Error::store(operation, error))
                .boxed()
        }));
    }
    if let Some(originals) = stores.originals.as_ref().filter(|_| parts.originals) {
        let stored = retried(options.retry_for, operation, || originals.stored()).await?;
        lists.push(stream::iter(stored).map(|path| Ok(Blob::Original(path))).boxed());
    }
    Ok(stream::iter(lists).flatten().boxed())
}

impl Blob {
    pub(crate) fn path(&self) -> &str {
        match self {
            Self::Text(path) => path.as_ref(),
            Self::Original(path) => path,
        }
    }

    /// The length in bytes; `None` if there is no such file.
    pub(crate) async fn size(&self, stores: &Stores) -> lkr_catalog::Result<Option<u64>> {
        match self {
            Self::Text(path) => match texts(stores)?.head(path).await {
                Ok(meta) => Ok(Some(meta.size)),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Self::Original(path) => Ok(originals(stores)?.get(path).await?.map(|stored| stored.size_bytes)),
        }
    }

    /// Reads the file and computes its digest; `None` if there is no such file.
    pub(crate) async fn digest(&self, stores: &Stores) -> lkr_catalog::Result<Option<BlobDigest>> {
        let Some(mut content) = self.content(stores).await? else { return Ok(None) };
        let (mut size, mut hasher) = (0, Sha256::new());
        while let Some(part) = content.try_next().await.map_err(read_error)? {
            size += part.len() as u64;
            hasher.update(&part);
        }
        let mut item = ItemHasher::default();
        item.bytes(self.path().as_bytes());
        item.number(size);
        item.bytes(&hasher.finalize());
        Ok(Some(BlobDigest { size, digest: item.finish() }))
    }

    /// Copies the file and returns its length; 0 if there is no such file. An existing file is replaced.
    pub(crate) async fn copy(
        &self,
        source: &Stores,
        target: &Stores,
        spool: &FilePath,
    ) -> lkr_catalog::Result<u64> {
        let Some(content) = self.content(source).await? else { return Ok(0) };
        match self {
            Self::Text(path) => write_text(texts(target)?, path, content).await,
            Self::Original(path) => write_original(originals(target)?, path, content, spool).await,
        }
    }

    async fn content(
        &self,
        stores: &Stores,
    ) -> lkr_catalog::Result<Option<BoxStream<'static, io::Result<Bytes>>>> {
        match self {
            Self::Text(path) => match texts(stores)?.get(path).await {
                Ok(got) => Ok(Some(got.into_stream().map_err(io::Error::other).boxed())),
                Err(object_store::Error::NotFound { .. }) => Ok(None),
                Err(error) => Err(error.into()),
            },
            Self::Original(path) => match originals(stores)?.get(path).await? {
                Some(stored) => Ok(Some(stored.read(0..stored.size_bytes).await?.boxed())),
                None => Ok(None),
            },
        }
    }
}

/// Stores a text without holding all of a long one in memory.
async fn write_text(
    texts: &Arc<dyn ObjectStore>,
    path: &Path,
    mut content: impl Stream<Item = io::Result<Bytes>> + Unpin,
) -> lkr_catalog::Result<u64> {
    let mut writer = BufWriter::with_capacity(Arc::clone(texts), path.clone(), PART_BYTES);
    let copied = async {
        let mut size = 0;
        while let Some(part) = content.try_next().await? {
            size += part.len() as u64;
            writer.put(part).await?;
        }
        Ok::<_, io::Error>(size)
    };
    match copied.await {
        Ok(size) => writer.shutdown().await.map(|()| size).map_err(read_error),
        // A writer that was shut down must not be aborted.
        Err(error) => {
            let _ = writer.abort().await;
            Err(read_error(error))
        }
    }
}

/// Stores an original by way of a temporary file.
async fn write_original(
    originals: &Originals,
    path: &str,
    mut content: impl Stream<Item = io::Result<Bytes>> + Unpin,
    spool: &FilePath,
) -> lkr_catalog::Result<u64> {
    let folder = spool.to_owned();
    let file = tokio::task::spawn_blocking(move || tempfile::tempfile_in(folder)).await;
    let mut file = tokio::fs::File::from_std(file.map_err(io::Error::other).flatten().map_err(read_error)?);
    let mut size = 0;
    while let Some(part) = content.try_next().await.map_err(read_error)? {
        size += part.len() as u64;
        file.write_all(&part).await.map_err(read_error)?;
    }
    file.flush().await.map_err(read_error)?;
    originals.put(path, &file.into_std().await, size).await?;
    Ok(size)
}

fn texts(stores: &Stores) -> lkr_catalog::Result<&Arc<dyn ObjectStore>> {
    stores.texts.as_ref().ok_or_else(no_store)
}

fn originals(stores: &Stores) -> lkr_catalog::Result<&Originals> {
    stores.originals.as_ref().ok_or_else(no_store)
}

fn no_store() -> CatalogError {
    CatalogError::new(CatalogErrorKind::Internal, "copy a file", "there is no store of such files")
}

fn read_error(error: io::Error) -> CatalogError {
    CatalogError::new(CatalogErrorKind::Unavailable, "copy a file", error)
}
