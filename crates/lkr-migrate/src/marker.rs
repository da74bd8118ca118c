//! The marker of a target that is being filled: it says how far, so that another run goes on there, and no server opens it.

use std::time::Duration;

use lkr_state::{Expect, Record, StateStore, StateStoreExt, Write};
use lkr_vectors::Collection;
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::{Error, ErrorKind, Parts, Result, fingerprint::Fingerprint, retry::retried, stores::Stores};

/// The key of the marker.
pub(crate) const KEY: &str = "migration";

/// A migration that was begun and has not ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnfinishedMigration {
    /// Its id.
    pub id: Uuid,
    /// When its first run began.
    pub started_at: OffsetDateTime,
    /// What it copies.
    pub parts: Parts,
    /// What it was doing last, for messages.
    pub step: &'static str,
}

/// The unfinished migration whose target this store belongs to. A server must not use the store then: only a part of the
/// data may be there.
///
/// # Errors
/// `Corrupt` if the marker cannot be read: the store must not be used then either. Those of the store.
pub async fn unfinished_migration(state: &dyn StateStore) -> Result<Option<UnfinishedMigration>> {
    let record =
        state.get(KEY).await.map_err(|error| Error::store("read the marker of a migration", error))?;
    let Some(record) = record else { return Ok(None) };
    let MarkerV1 { id, started_at, parts, step, .. } = decode(&record)?;
    Ok(Some(UnfinishedMigration { id, started_at, parts, step: step.name() }))
}

/// How far a migration is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Step {
    /// Removing a copy of a source that has changed since.
    Clear,
    /// The points up to this place are copied.
    Points(PointsDone),
    Blobs,
    /// The records up to this key are copied.
    Records {
        after: Option<String>,
        done: u64,
    },
    Verify,
}

impl Step {
    const fn name(&self) -> &'static str {
        match self {
            Self::Clear => "removing an outdated copy",
            Self::Points(_) => "copying points",
            Self::Blobs => "copying texts and originals",
            Self::Records { .. } => "copying records",
            Self::Verify => "verifying",
        }
    }
}

/// A place in the points of all collections, which are copied in the order of their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PointsDone {
    /// The collection that is being copied; earlier ones are complete.
    pub(crate) collection: Option<Collection>,
    /// The cursor of its next page.
    pub(crate) cursor: Option<Vec<u8>>,
    /// The number of copied points.
    pub(crate) done: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "v")]
enum Versioned {
    #[serde(rename = "1")]
    V1(MarkerV1),
}

/// Version 1 of the marker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct MarkerV1 {
    id: Uuid,
    #[serde(with = "time::serde::rfc3339")]
    started_at: OffsetDateTime,
    /// The run that wrote it: another one notices that it is no longer alone.
    run: Uuid,
    parts: Parts,
    fingerprint: Fingerprint,
    step: Step,
}

/// The marker in the target, as this run last wrote it.
#[derive(Debug)]
pub(crate) struct Marker<'a> {
    target: &'a Stores,
    retry_for: Duration,
    content: MarkerV1,
    /// `None` before the first write.
    version: Option<u64>,
}

impl<'a> Marker<'a> {
    /// A marker that is not written yet.
    pub(crate) fn new(
        target: &'a Stores,
        retry_for: Duration,
        parts: Parts,
        fingerprint: Fingerprint,
    ) -> Self {
        let (id, run, started_at) = (Uuid::new_v4(), Uuid::new_v4(), OffsetDateTime::now_utc());
        let step = Step::Points(PointsDone::default());
        let content = MarkerV1 { id, started_at, run, parts, fingerprint, step };
        Self { target, retry_for, content, version: None }
    }

    /// The marker of an earlier run, if there is one.
    pub(crate) async fn read(target: &'a Stores, retry_for: Duration) -> Result<Option<Self>> {
        let found = read(target, retry_for).await?;
        let marker = |record: Record| {
            let content = MarkerV1 { run: Uuid::new_v4(), ..decode(&record)? };
            Ok(Self { target, retry_for, content, version: Some(record.version) })
        };
        found.map(marker).transpose()
    }

    pub(crate) const fn parts(&self) -> Parts {
        self.content.parts
    }

    pub(crate) const fn fingerprint(&self) -> &Fingerprint {
        &self.content.fingerprint
    }

    pub(crate) const fn step(&self) -> &Step {
        &self.content.step
    }

    /// Begins again, with another source.
    pub(crate) async fn restart(&mut self, fingerprint: Fingerprint) -> Result<()> {
        self.content.fingerprint = fingerprint;
        self.advance(Step::Clear, Vec::new()).await
    }

    /// Writes that the migration has come to `step`, together with `writes`.
    ///
    /// # Errors
    /// `InUse` if another run has written the marker meanwhile.
    pub(crate) async fn advance(&mut self, step: Step, writes: Vec<Write>) -> Result<()> {
        self.content.step = step;
        let value = serde_json::to_vec(&Versioned::V1(self.content.clone()))
            .map_err(|error| Error::new(ErrorKind::Internal, "write the marker of the migration", error))?;
        let expect = self.version.map_or(Expect::Absent, Expect::Version);
        let mut step = vec![Write::put(KEY, expect, value.clone())];
        step.extend(writes);
        let applied = self.apply(step).await;
        // A step with an unknown outcome is repeated, and refused if it was applied.
        let stored = match applied {
            Err(error) if error.kind() != ErrorKind::InUse => return Err(error),
            _ => read(self.target, self.retry_for).await?,
        };
        let stored = stored.filter(|stored| stored.value == value).ok_or_else(other_run)?;
        self.version = Some(stored.version);
        lkr_fail_points::reach("migrate.step");
        Ok(())
    }

    /// Removes the marker: the target is complete.
    pub(crate) async fn remove(self) -> Result<()> {
        let Some(version) = self.version else { return Ok(()) };
        lkr_fail_points::reach("migrate.step");
        match self.apply(vec![Write::delete(KEY, Expect::Version(version))]).await {
            Err(error) if error.kind() == ErrorKind::InUse => {
                match read(self.target, self.retry_for).await? {
                    None => Ok(()),
                    Some(_) => Err(other_run()),
                }
            }
            removed => removed,
        }
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        let state = &self.target.state;
        retried(self.retry_for, "write target records", || state.apply(writes.clone())).await
    }
}

async fn read(target: &Stores, retry_for: Duration) -> Result<Option<Record>> {
    retried(retry_for, "read target records", || target.state.get(KEY)).await
}

fn decode(record: &Record) -> Result<MarkerV1> {
    let Versioned::V1(content) = serde_json::from_slice(&record.value).map_err(|error| {
        Error::new(ErrorKind::Corrupt, "read the marker of a migration", format!("record {KEY}: {error}"))
    })?;
    Ok(content)
}

fn other_run() -> Error {
    let reason = "another process goes on with this migration";
    Error::new(ErrorKind::InUse, "write the marker of the migration", reason)
}
