//! What texts and originals do alike on a blob store.

use std::{fs::File, io::SeekFrom, ops::Range, sync::Arc};

use bytes::Bytes;
use lkr_domain::hex;
use object_store::{ObjectStore, ObjectStoreExt, buffered::BufWriter, path::Path};
use sha2::{Digest, Sha256};
use tokio::io::{AsyncReadExt, AsyncSeekExt, AsyncWriteExt};

use crate::{Error, Result};

/// How much of a file is in memory while it is stored: the least that stores which know parts take as one.
const PART_BYTES: usize = 5 * 1024 * 1024;

/// How much of a file is read at a time.
const READ_BYTES: usize = 64 * 1024;

/// Stores a part of a file without having it whole in memory, and answers its SHA-256; durable when it answers. Where
/// it fails, nothing is stored.
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
        // A writer that was told to finish must not be told to stop any more.
        Err(error) => {
            let _ = writer.abort().await;
            Err(error)
        }
    };
    lkr_fail_points::reach("blob.written");
    copied.map_err(|error| Error::blob("store a file", error))
}

/// Stores what is in memory; durable when it answers.
pub(crate) async fn put(blobs: &Arc<dyn ObjectStore>, path: &Path, content: Bytes) -> Result<()> {
    lkr_fail_points::reach("blob.write");
    blobs.put(path, content.into()).await?;
    lkr_fail_points::reach("blob.written");
    Ok(())
}

/// Removes a blob; nothing where there is none.
pub(crate) async fn delete(blobs: &Arc<dyn ObjectStore>, path: &Path) -> Result<()> {
    lkr_fail_points::reach("blob.write");
    let deleted = blobs.delete(path).await;
    lkr_fail_points::reach("blob.written");
    match deleted {
        Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
