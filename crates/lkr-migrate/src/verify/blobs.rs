use futures_util::TryStreamExt;
use tokio::sync::Mutex;

use super::{Checksums, different};
use crate::{
    MigrateOptions, Parts, Result,
    blob::{Blob, BlobDigest, list},
    checksum::Checksum,
    copy::blobs::count,
    progress::Meter,
    retry::retried,
    stores::Stores,
};

/// The compared files.
#[derive(Debug, Default)]
pub(crate) struct ComparedBlobs {
    /// Texts, blocks and notes.
    pub(crate) texts: u64,
    pub(crate) originals: u64,
    pub(crate) bytes: u64,
    pub(crate) checksum: Checksum,
}

/// Reads all files of both sides and compares them, several at once.
///
/// # Errors
/// `Different`, with a file that differs.
pub(crate) async fn compare(
    source: &Stores,
    target: &Stores,
    parts: Parts,
    options: &MigrateOptions,
    meter: &Meter<'_>,
) -> Result<ComparedBlobs> {
    let sides = Mutex::new((ComparedBlobs::default(), Checksums::default()));
    let compared = &sides;
    let blobs = list(source, parts, options, "list source files").await?;
    let comparisons = blobs.map_ok(|blob| async move {
        let digests = compare_one(&blob, source, target, options).await?;
        let Some([ours, theirs]) = digests else { return Ok(()) };
        let (compared, sums) = &mut *compared.lock().await;
        match blob {
            Blob::Text(_) => compared.texts += 1,
            Blob::Original(_) => compared.originals += 1,
        }
        compared.bytes += ours.size;
        sums.source.add(&ours.digest);
        sums.target.add(&theirs.digest);
        meter.add(1, ours.size);
        Ok(())
    });
    comparisons.try_buffer_unordered(options.concurrent_blobs.max(1)).try_collect::<()>().await?;
    let (mut compared, sums) = sides.into_inner();
    let there = count(target, parts, options, "list target files").await?;
    if there != compared.texts + compared.originals {
        return Err(different(match extra(source, target, parts, options).await? {
            Some(path) => format!("file {path} is in the target and not in the source"),
            None => "the number of files changed while they were compared".to_owned(),
        }));
    }
    compared.checksum = sums.equal("files")?;
    Ok(compared)
}

/// The digests of a file on both sides; `None` if the source has no such file, as for a symbolic link.
async fn compare_one(
    blob: &Blob,
    source: &Stores,
    target: &Stores,
    options: &MigrateOptions,
) -> Result<Option<[BlobDigest; 2]>> {
    let ours = retried(options.retry_for, "read source files", || blob.digest(source));
    let theirs = retried(options.retry_for, "read target files", || blob.digest(target));
    let path = blob.path();
    match tokio::try_join!(ours, theirs)? {
        (None, _) => Ok(None),
        (Some(_), None) => Err(different(format!("file {path} is missing in the target"))),
        (Some(ours), Some(theirs)) if ours != theirs => {
            let (ours, theirs) = (ours.size, theirs.size);
            Err(different(format!(
                "file {path} differs ({ours} bytes in the source, {theirs} in the target)"
            )))
        }
        (Some(ours), Some(theirs)) => Ok(Some([ours, theirs])),
    }
}

/// A file that only the target has.
async fn extra(
    source: &Stores,
    target: &Stores,
    parts: Parts,
    options: &MigrateOptions,
) -> Result<Option<String>> {
    let mut blobs = list(target, parts, options, "list target files").await?;
    while let Some(blob) = blobs.try_next().await? {
        if retried(options.retry_for, "read source files", || blob.size(source)).await?.is_none() {
            return Ok(Some(blob.path().to_owned()));
        }
    }
    Ok(None)
}
