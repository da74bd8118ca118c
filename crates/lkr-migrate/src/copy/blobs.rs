use futures_util::TryStreamExt;

use crate::{
    MigrateOptions, Parts, Result,
    blob::{Blob, list},
    progress::{Meter, Phase, ProgressSink},
    retry::retried,
    stores::Stores,
};

/// Copies texts, blocks, notes and originals, several at once. With `resumed`, those that the target has are left as they
/// are: a path has its object whole or not at all, and the target was empty before.
pub(crate) async fn copy(
    source: &Stores,
    target: &Stores,
    parts: Parts,
    options: &MigrateOptions,
    resumed: bool,
    sink: ProgressSink<'_>,
) -> Result<()> {
    let total = count(source, parts, options, "list source files").await?;
    let meter = &Meter::begin(sink, Phase::Blobs, Some(total), 0);
    let blobs = list(source, parts, options, "list source files").await?;
    blobs
        .map_ok(|blob| async move {
            let bytes = copy_one(&blob, source, target, options, resumed).await?;
            meter.add(1, bytes);
            lkr_fail_points::reach("migrate.blob");
            Ok(())
        })
        .try_buffer_unordered(options.concurrent_blobs.max(1))
        .try_collect::<()>()
        .await
}

/// The number of files of a side.
pub(crate) async fn count(
    stores: &Stores,
    parts: Parts,
    options: &MigrateOptions,
    operation: &'static str,
) -> Result<u64> {
    let blobs = list(stores, parts, options, operation).await?;
    blobs.try_fold(0, async |count, _| Ok(count + 1)).await
}

/// Copies a file, and returns how many bytes were copied.
async fn copy_one(
    blob: &Blob,
    source: &Stores,
    target: &Stores,
    options: &MigrateOptions,
    resumed: bool,
) -> Result<u64> {
    if resumed {
        let found = retried(options.retry_for, "read target files", || blob.size(target)).await?;
        let expected = retried(options.retry_for, "read source files", || blob.size(source)).await?;
        if found.is_some() && found == expected {
            return Ok(0);
        }
    }
    retried(options.retry_for, "copy files", || blob.copy(source, target, &options.spool)).await
}
