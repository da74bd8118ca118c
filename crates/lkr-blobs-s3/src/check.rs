//! What a store must be able to do, tried once at the start of a service.

use std::sync::Arc;

use futures_util::TryStreamExt;
use object_store::{
    MultipartUpload as _, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    path::Path,
};
use uuid::Uuid;

use crate::{Error, ErrorKind, Result, S3Location, error::explain};

/// The folder of the objects that a check writes.
const FOLDER: &str = "lkr-check";

const FIRST: &[u8] = b"this object may be deleted";
const SECOND: &[u8] = b"this object was overwritten";

/// Probes that are older than this, in seconds, were left by a process that was killed.
const LEFT_OVER_SECS: i64 = 3600;

/// Checks that a store does what lkr needs: the bucket exists, objects can be written, conditionally, read, read in part,
/// listed at once, deleted, and uploaded in parts. What it writes below `lkr-check/` is deleted again, with what an earlier
/// check left there that was killed more than an hour ago.
///
/// # Errors
/// `NotFound` if the bucket does not exist, `Denied` if the access key is unknown or lacks a permission, `Unsupported` if the
/// store lacks a feature, `Invalid` if the region is wrong, `Unavailable` if the store does not answer.
pub async fn check(store: &Arc<dyn ObjectStore>, location: &S3Location) -> Result<()> {
    let probe = Probe {
        store,
        location,
        path: Path::from_iter([FOLDER, &Uuid::now_v7().to_string()]),
        missing: Path::from_iter([FOLDER, &Uuid::now_v7().to_string()]),
    };
    let checked = probe.all().await;
    if checked.as_ref().is_err_and(|error| !error.is_retryable()) {
        // The first error is told; a store that is away would only cost the time again.
        let _ = store.delete(&probe.path).await;
    }
    checked
}

struct Probe<'a> {
    store: &'a Arc<dyn ObjectStore>,
    location: &'a S3Location,
    path: Path,
    missing: Path,
}

impl Probe<'_> {
    async fn all(&self) -> Result<()> {
        self.creates().await?;
        self.refuses_to_create_again().await?;
        self.reads_ranges().await?;
        self.tells_what_is_missing(&self.missing).await?;
        let left_over = self.lists().await?;
        self.aborts_uploads().await?;
        for path in left_over.iter().chain([&self.path]) {
            self.deletes(path).await?;
        }
        self.tells_what_is_missing(&self.path).await
    }

    async fn creates(&self) -> Result<()> {
        let created = self.create(FIRST).await;
        created.map_err(|error| self.failed("writing an object", "s3:PutObject", &error))
    }

    async fn refuses_to_create_again(&self) -> Result<()> {
        match self.create(SECOND).await {
            Err(object_store::Error::AlreadyExists { .. }) => Ok(()),
            Err(error) => Err(self.failed("a put with If-None-Match", "s3:PutObject", &error)),
            Ok(()) => {
                Err(self.lacks("it does not honour If-None-Match: a conditional put overwrote an object"))
            }
        }
    }

    async fn create(&self, content: &'static [u8]) -> object_store::Result<()> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        self.store.put_opts(&self.path, PutPayload::from_static(content), options).await.map(drop)
    }

    async fn reads_ranges(&self) -> Result<()> {
        let range = self.store.get_range(&self.path, 5..11).await;
        let range = range.map_err(|error| self.failed("reading a range", "s3:GetObject", &error))?;
        match FIRST.get(5..11) {
            Some(expected) if range == expected => Ok(()),
            _ => Err(self.lacks("a range of an object has other bytes than were written")),
        }
    }

    /// A missing object must be told from a forbidden one: without the right to list, Amazon S3 answers 403 for both.
    async fn tells_what_is_missing(&self, path: &Path) -> Result<()> {
        match self.store.head(path).await {
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(self.failed("reading a missing object", "s3:ListBucket", &error)),
            Ok(_) => Err(self.lacks("an object that was deleted can be read")),
        }
    }

    /// The probes that earlier checks left.
    async fn lists(&self) -> Result<Vec<Path>> {
        let listed: object_store::Result<Vec<ObjectMeta>> =
            self.store.list(Some(&Path::from(FOLDER))).try_collect().await;
        let listed = listed.map_err(|error| self.failed("listing", "s3:ListBucket", &error))?;
        let own = listed.iter().find(|meta| meta.location == self.path && meta.size == FIRST.len() as u64);
        let Some(own) = own else {
            return Err(self.lacks("its listing is not consistent: it lacks an object that was just written"));
        };
        Ok(left_over(&listed, own))
    }

    async fn aborts_uploads(&self) -> Result<()> {
        let aborted = async {
            let mut upload = self.store.put_multipart(&self.missing).await?;
            upload.put_part(PutPayload::from_static(FIRST)).await?;
            upload.abort().await
        };
        aborted.await.map_err(|error| self.failed("aborting an upload", "s3:AbortMultipartUpload", &error))
    }

    async fn deletes(&self, path: &Path) -> Result<()> {
        let deleted = self.store.delete(path).await;
        deleted.map_err(|error| self.failed("deleting an object", "s3:DeleteObject", &error))
    }

    fn lacks(&self, what: &str) -> Error {
        let reason = format!("{}: the store cannot be used: {what}", self.location);
        Error::new(ErrorKind::Unsupported, "check the object store", reason)
    }

    fn failed(&self, step: &str, action: &str, error: &object_store::Error) -> Error {
        let (kind, reason) = explain(error);
        let reason = match kind {
            ErrorKind::NotFound => format!("the bucket {} does not exist", self.location.bucket()),
            ErrorKind::Denied => format!(
                "{}: {step} was refused ({reason}); the access key needs the permission {action}",
                self.location
            ),
            _ => format!("{}: {step} failed: {reason}", self.location),
        };
        Error::new(kind, "check the object store", reason)
    }
}

/// The objects that are much older than `own`, by the clock of the store.
fn left_over(listed: &[ObjectMeta], own: &ObjectMeta) -> Vec<Path> {
    let is_old = |meta: &&ObjectMeta| (own.last_modified - meta.last_modified).num_seconds() > LEFT_OVER_SECS;
    listed.iter().filter(is_old).map(|meta| meta.location.clone()).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use object_store::memory::InMemory;

    use super::*;

    #[test]
    fn probes_of_killed_processes_are_removed_and_those_of_running_ones_are_not() {
        let meta = |name: &str, seconds| {
            let (location, last_modified) = (Path::from(name), Default::default());
            let mut meta = ObjectMeta { location, last_modified, size: 1, e_tag: None, version: None };
            meta.last_modified += Duration::from_secs(seconds);
            meta
        };
        let listed = [meta("killed", 399), meta("running", 400), meta("own", 4_000), meta("later", 9_000)];
        assert_eq!(left_over(&listed, &listed[2]), [Path::from("killed")]);
    }

    /// A check depends on nothing that is peculiar to S3.
    #[tokio::test]
    async fn store_in_memory_passes() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        check(&store, &"s3://lkr".parse().unwrap()).await.unwrap();
        assert!(store.list(None).try_collect::<Vec<_>>().await.unwrap().is_empty());
    }
}
