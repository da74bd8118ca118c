//! What must be true of the target before it is filled, and how it is emptied again.

use futures_util::TryStreamExt;
use lkr_catalog::Texts;
use lkr_state::{Expect, ScanOrder, StateStore, Write};
use object_store::{ObjectStoreExt, path::Path};

use crate::{
    Error, ErrorKind, MigrateOptions, Parts, Result, marker,
    progress::Meter,
    retry::retried,
    stores::Stores,
    table::{Treatment, treatment_of},
};

/// Collections and keys that a message names at most.
const NAMED: usize = 3;

/// Fails if the target has data.
///
/// # Errors
/// `NotEmpty`, naming what is there.
pub(crate) async fn check_empty(target: &Stores, parts: Parts, options: &MigrateOptions) -> Result<()> {
    let mut found = Vec::new();
    if parts.records {
        found.extend(records_in(&*target.state, options).await?);
    }
    if let Some(vectors) = target.vectors.as_ref().filter(|_| parts.points) {
        let specs = retried(options.retry_for, "read target collections", || vectors.collections()).await?;
        let names: Vec<&str> = specs.iter().map(|spec| spec.collection.name()).take(NAMED).collect();
        found.extend(
            (!names.is_empty()).then(|| format!("{} collections ({}…)", specs.len(), names.join(", "))),
        );
    }
    if let Some(texts) = target.texts.as_ref().filter(|_| parts.texts) {
        for folder in Texts::FOLDERS {
            let prefix = Path::from(folder);
            let first = retried(options.retry_for, "list target texts", || async {
                texts.list(Some(&prefix)).try_next().await
            });
            found.extend(first.await?.map(|meta| format!("texts ({}…)", meta.location)));
        }
    }
    if let Some(originals) = target.originals.as_ref().filter(|_| parts.originals) {
        let stored = retried(options.retry_for, "list target originals", || originals.stored()).await?;
        found.extend(stored.first().map(|path| format!("{} originals ({path}…)", stored.len())));
    }
    match found.is_empty() {
        true => Ok(()),
        false => {
            let reason = format!(
                "the target is not empty: {}; if a migration to it is complete already, --verify compares both",
                found.join(", ")
            );
            Err(Error::new(ErrorKind::NotEmpty, "check the target", reason))
        }
    }
}

/// Names the first records that count.
async fn records_in(state: &dyn StateStore, options: &MigrateOptions) -> Result<Option<String>> {
    let (mut named, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = retried(options.retry_for, "read target records", || {
            state.scan("", after.as_deref(), ScanOrder::Ascending, options.records_per_batch)
        });
        let page = page.await?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        let keys = page.into_iter().map(|(key, _)| key);
        named.extend(keys.filter(|key| treatment_of(key) != Treatment::LeaveOut));
        if named.len() >= NAMED {
            break;
        }
    }
    named.truncate(NAMED);
    Ok((!named.is_empty()).then(|| format!("records ({}…)", named.join(", "))))
}

/// Removes everything that a migration of these parts may have copied, except the marker.
pub(crate) async fn clear(
    target: &Stores,
    parts: Parts,
    options: &MigrateOptions,
    meter: &Meter<'_>,
) -> Result<()> {
    if parts.records {
        clear_records(target, options, meter).await?;
    }
    if let Some(vectors) = target.vectors.as_ref().filter(|_| parts.points) {
        let specs = retried(options.retry_for, "read target collections", || vectors.collections()).await?;
        for spec in specs {
            let drop = || vectors.drop_collection(&spec.collection);
            retried(options.retry_for, "remove target collections", drop).await?;
            meter.add(1, 0);
        }
    }
    if let Some(texts) = target.texts.as_ref().filter(|_| parts.texts) {
        for folder in Texts::FOLDERS {
            let prefix = Path::from(folder);
            let mut list = texts.list(Some(&prefix));
            while let Some(meta) = list.try_next().await.map_err(|e| Error::store("list target texts", e))? {
                let delete = || async {
                    match texts.delete(&meta.location).await {
                        Err(object_store::Error::NotFound { .. }) => Ok(()),
                        deleted => deleted,
                    }
                };
                retried(options.retry_for, "remove target texts", delete).await?;
                meter.add(1, 0);
            }
        }
    }
    if let Some(originals) = target.originals.as_ref().filter(|_| parts.originals) {
        for path in retried(options.retry_for, "list target originals", || originals.stored()).await? {
            retried(options.retry_for, "remove target originals", || originals.delete(&path)).await?;
            meter.add(1, 0);
        }
    }
    Ok(())
}

async fn clear_records(target: &Stores, options: &MigrateOptions, meter: &Meter<'_>) -> Result<()> {
    let mut after: Option<String> = None;
    loop {
        let page = retried(options.retry_for, "read target records", || {
            target.state.scan("", after.as_deref(), ScanOrder::Ascending, options.records_per_batch)
        });
        let page = page.await?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = Some(last.clone());
        let others = page.into_iter().map(|(key, _)| key).filter(|key| key != marker::KEY);
        let deletes: Vec<Write> = others.map(|key| Write::delete(key, Expect::Any)).collect();
        meter.add(deletes.len() as u64, 0);
        let apply = || target.state.apply(deletes.clone());
        retried(options.retry_for, "remove target records", apply).await?;
    }
}
