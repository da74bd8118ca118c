//! Blob store operations that texts and originals share.

use std::{fs::File, io::SeekFrom, ops::Range, sync::Arc};

use bytes::Bytes;
use lkr_domain::hex;
use object_store::{ObjectStore, ObjectStoreExt, buffered::BufWriter, path::Path};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use crate::{Error, Result};

/// Bytes of a file that are in memory while it is stored: the smallest part that stores with multipart uploads accept.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// Bytes that are read at a time.
const READ_BYTES: usize = 64 * 1024;

/// Stores a range of a file without holding all of it in memory, and returns its SHA-256. It is durable once this
/// returns; after an error nothing is stored.
pub(crate) async fn put_file(
    blobs: &Arc<dyn ObjectStore>,
    path: &Path,
    file: &File,
    range: Range<u64>,
) -> Result<String> {
    let length = range.end.saturating_sub(range.start);
    let file = file.try_clone().map_err(|error| Error::blob("store a file", error))?;
    let mut file = tokio::fs::File::from_std(file);
    let mut writer = BufWriter::with_capacity(Arc::clone(blobs), path.clone(), PART_BYTES);
    lkr_fail_points::reach("blob.write");
    let copied = async {
        file.seek(SeekFrom::Start(range.start)).await?;
        let (mut left, mut hasher, mut buffer) = (file.take(length), Sha256::new(), vec![0; READ_BYTES]);
        loop {
            let read = left.read(&mut buffer).await?;
            let part = buffer.get(..read).unwrap_or_default();
            if part.is_empty() {
                break;
            }
            hasher.update(part);
            writer.write_all(part).await?;
        }
        if left.limit() > 0 {
            return Err(std::io::Error::from(std::io::ErrorKind::UnexpectedEof));
        }
        Ok(hex(&hasher.finalize()))
    };
    let copied = match copied.await {
        Ok(sha256) => writer.shutdown().await.map(|()| sha256),
        // A writer that was shut down must not be aborted.
        Err(error) => {
            let _ = writer.abort().await;
            Err(error)
        }
    };
    lkr_fail_points::reach("blob.written");
    copied.map_err(|error| Error::blob("store a file", error))
}

/// Stores bytes. They are durable once this returns.
pub(crate) async fn put(blobs: &Arc<dyn ObjectStore>, path: &Path, content: Bytes) -> Result<()> {
    lkr_fail_points::reach("blob.write");
    blobs.put(path, content.into()).await?;
    lkr_fail_points::reach("blob.written");
    Ok(())
}

/// Removes a blob. A missing blob is no error.
pub(crate) async fn delete(blobs: &Arc<dyn ObjectStore>, path: &Path) -> Result<()> {
    lkr_fail_points::reach("blob.write");
    let deleted = blobs.delete(path).await;
    lkr_fail_points::reach("blob.written");
    match deleted {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
