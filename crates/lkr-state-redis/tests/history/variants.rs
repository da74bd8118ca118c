//! Stores and queues with a mistake, which the checker must find.

use std::{
    collections::HashMap,
    fmt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr_domain::TaskId;
use lkr_state::{
    Claim, Error, ErrorKind, Expect, Key, Lane, Op, Record, Result, Scan, ScanOrder, StateStore, TaskQueue,
    Work, Write,
};
use lkr_state_redis::{RedisQueue, RedisState};
use tokio::time::timeout;

use crate::disturbance::Disturbance;

/// How long the store that resends steps waits for an answer.
const PATIENCE: Duration = Duration::from_millis(20);

/// A mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// None.
    Correct,
    /// A step without an answer in time is sent again as another step, so it may be applied twice.
    ResendsSteps,
    /// Expectations are checked by the client, and then the step is applied in any case.
    ChecksInClient,
    /// Versions come from a counter that begins again with the process.
    RestartsVersions,
    /// Heartbeats and finishes with an old token are accepted.
    IgnoresTokens,
}

impl Variant {
    pub(crate) const ALL: [Self; 5] = [
        Self::Correct,
        Self::ResendsSteps,
        Self::ChecksInClient,
        Self::RestartsVersions,
        Self::IgnoresTokens,
    ];

    pub(crate) fn name(self) -> String {
        format!("{self:?}")
    }

    /// The disturbance that shows the mistake, if most do not.
    pub(crate) fn met_by(self) -> Option<Disturbance> {
        match self {
            Self::ResendsSteps => Some(Disturbance::Delay),
            Self::IgnoresTokens => Some(Disturbance::Stop),
            Self::Correct | Self::ChecksInClient | Self::RestartsVersions => None,
        }
    }

    pub(crate) fn named(name: &str) -> Self {
        Self::ALL.into_iter().find(|variant| variant.name() == name).unwrap()
    }
}

pub(crate) fn state(variant: Variant, state: RedisState) -> Arc<dyn StateStore> {
    match variant {
        Variant::Correct | Variant::IgnoresTokens => Arc::new(state),
        _ => Arc::new(BrokenState { state, variant, last_version: AtomicU64::new(0) }),
    }
}

pub(crate) fn queue(variant: Variant, queue: RedisQueue) -> Arc<dyn TaskQueue> {
    match variant {
        Variant::IgnoresTokens => Arc::new(BrokenQueue { queue }),
        _ => Arc::new(queue),
    }
}

#[derive(Debug)]
struct BrokenState {
    state: RedisState,
    variant: Variant,
    last_version: AtomicU64,
}

impl BrokenState {
    async fn resend(&self, writes: Vec<Write>) -> Result<()> {
        match timeout(PATIENCE, self.state.apply(writes.clone())).await {
            Ok(answer) => answer,
            Err(_) => self.state.apply(writes).await,
        }
    }

    async fn check_here(&self, mut writes: Vec<Write>) -> Result<()> {
        let keys: Vec<Key> = writes.iter().map(|write| write.key.clone()).collect();
        let found = self.state.get_many(&keys).await?;
        for (write, record) in writes.iter_mut().zip(found) {
            let holds = match write.expect {
                Expect::Any => true,
                Expect::Absent => record.is_none(),
                Expect::Version(version) => record.is_some_and(|record| record.version == version),
            };
            if !holds {
                return Err(conflict(&write.key));
            }
            write.expect = Expect::Any;
        }
        self.state.apply(writes).await
    }

    /// Stores versions of a counter of this process before the values, and expects those of Redis.
    async fn number_here(&self, mut writes: Vec<Write>) -> Result<()> {
        let keys: Vec<Key> = writes.iter().map(|write| write.key.clone()).collect();
        let found = self.state.get_many(&keys).await?;
        let version = self.last_version.fetch_add(1, Ordering::Relaxed) + 1;
        for (write, record) in writes.iter_mut().zip(found) {
            if let Expect::Version(expected) = write.expect {
                let real = record.filter(|record| numbered(record).version == expected);
                write.expect = Expect::Version(real.ok_or_else(|| conflict(&write.key))?.version);
            }
            if let Op::Put { value, .. } = &mut write.op {
                *value = [&version.to_be_bytes(), &value[..]].concat().into();
            }
        }
        self.state.apply(writes).await
    }

    fn shown(&self, key: &str, record: Record) -> Record {
        let is_numbered = self.variant == Variant::RestartsVersions && !key.starts_with("count/");
        if is_numbered { numbered(&record) } else { record }
    }

    fn all_shown(&self, found: Vec<(Key, Record)>) -> Vec<(Key, Record)> {
        found.into_iter().map(|(key, record)| (key.clone(), self.shown(&key, record))).collect()
    }
}

fn numbered(record: &Record) -> Record {
    let (version, _) = record.value.split_first_chunk::<8>().unwrap();
    Record { version: u64::from_be_bytes(*version), value: record.value.slice(8..) }
}

fn conflict(key: &str) -> Error {
    Error::new(ErrorKind::Conflict, "apply", key.to_owned())
}

#[async_trait]
impl StateStore for BrokenState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        let found = self.state.get_many(keys).await?;
        Ok(keys.iter().zip(found).map(|(key, record)| Some(self.shown(key, record?))).collect())
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        match self.variant {
            Variant::ResendsSteps => self.resend(writes).await,
            Variant::ChecksInClient => self.check_here(writes).await,
            Variant::RestartsVersions => self.number_here(writes).await,
            Variant::Correct | Variant::IgnoresTokens => self.state.apply(writes).await,
        }
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let found = self.state.scan(prefix, after, order, limit).await?;
        Ok(self.all_shown(found))
    }

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        let found = self.state.scan_many(scans).await?;
        Ok(found.into_iter().map(|found| self.all_shown(found)).collect())
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.state.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.state.health().await
    }
}

struct BrokenQueue {
    queue: RedisQueue,
}

impl fmt::Debug for BrokenQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrokenQueue")
    }
}

#[async_trait]
impl TaskQueue for BrokenQueue {
    async fn enqueue(&self, task: TaskId, work: Work, delay: Duration) -> Result<()> {
        self.queue.enqueue(task, work, delay).await
    }

    async fn claim_in(&self, lane: Lane, lease: Duration, wait: Duration) -> Result<Option<Claim>> {
        self.queue.claim_in(lane, lease, wait).await
    }

    async fn heartbeat(&self, claim: &Claim, lease: Duration) -> Result<()> {
        accepted(self.queue.heartbeat(claim, lease).await)
    }

    async fn finish(&self, claim: &Claim) -> Result<()> {
        self.queue.remove(claim.task).await.map(drop)
    }

    async fn retry(&self, claim: &Claim, delay: Duration) -> Result<()> {
        self.queue.retry(claim, delay).await
    }

    async fn remove(&self, task: TaskId) -> Result<bool> {
        self.queue.remove(task).await
    }

    async fn len(&self) -> Result<u64> {
        self.queue.len().await
    }

    async fn flows(&self) -> Result<HashMap<String, u64>> {
        self.queue.flows().await
    }

    async fn health(&self) -> Result<()> {
        self.queue.health().await
    }
}

fn accepted(answer: Result<()>) -> Result<()> {
    match answer {
        Err(error) if error.kind() == ErrorKind::LeaseLost => Ok(()),
        answer => answer,
    }
}
