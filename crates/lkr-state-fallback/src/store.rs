use std::{
    fmt,
    path::Path,
    slice,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use async_trait::async_trait;
use lkr_state::{
    Error, ErrorKind, Key, MergePolicy, Op, Record, Result, Scan, ScanOrder, StateStore, StateStoreExt, Write,
};
use time::OffsetDateTime;
use tokio::task::JoinHandle;

use crate::{
    FallbackConfig, FallbackStatus,
    journal::Journal,
    limits,
    mirror::{Flight, Known, Mirror},
    receipt,
    records::Policies,
    recovery,
    shared::Shared,
};

/// How often a call goes on because the remote store left or returned meanwhile.
const MAX_TURNS: usize = 8;

/// A store that goes on with the most important records while its remote store is away. See the crate's documentation.
pub struct FallbackState {
    shared: Arc<Shared>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl FallbackState {
    /// Opens the journal, merges what it contains into `remote`, and loads the mirror. If `remote` is away, it is opened
    /// all the same: then only what the journal contains can be read, and the background task does the rest later.
    ///
    /// `policies` say which records are mirrored, and how they are merged. Needs a tokio runtime.
    ///
    /// # Errors
    /// `Invalid` if another process uses the folder, `Corrupt` if the journal is damaged, `Internal` if it cannot be read.
    /// Those of `remote` except `Unavailable`.
    pub async fn open(
        remote: Arc<dyn StateStore>,
        policies: Vec<Arc<dyn MergePolicy>>,
        config: FallbackConfig,
    ) -> Result<Self> {
        let folder = config.folder.clone();
        let journal = tokio::task::spawn_blocking(move || Journal::open(&folder))
            .await
            .map_err(|error| Error::new(ErrorKind::Internal, "open journal", error))??;
        let shared = Arc::new(Shared::new(remote, Policies::new(policies), config, journal));
        match shared.recover().await {
            Err(error) if error.kind() == ErrorKind::Unavailable => {
                tracing::warn!(%error, "the remote store is away at the start; few records can be read");
            }
            result => result?,
        }
        let task = tokio::spawn(recovery::run(Arc::downgrade(&shared)));
        Ok(Self { shared, task: Mutex::new(Some(task)) })
    }

    /// The changes in the journal in `folder` that wait to be merged into the remote store; 0 if there is no journal. Does
    /// blocking I/O.
    ///
    /// # Errors
    /// `Invalid` if a process has the journal open, `Corrupt` if it is damaged, `Internal` if it cannot be read.
    pub fn unmerged(folder: &Path) -> Result<usize> {
        if !Journal::exists(folder) {
            return Ok(0);
        }
        let mut journal = Journal::open(folder)?;
        let steps = journal.len();
        journal.close();
        Ok(steps)
    }

    /// What a readiness probe says.
    pub async fn status(&self) -> FallbackStatus {
        let journal_entries = self.shared.journal.lock().await.len();
        let mirror = self.shared.mirror.lock();
        let (mirror_records, mirror_bytes) = mirror.slots.size();
        FallbackStatus {
            is_remote_used: mirror.away_since.is_none(),
            away_since: mirror.away_since,
            is_remote_empty: mirror.is_remote_empty,
            journal_entries,
            is_mirror_complete: mirror.slots.is_complete(),
            mirror_records,
            mirror_bytes,
        }
    }

    /// Asks now whether the remote store is back, as the background task does from time to time. When this returns without
    /// an error, the journal is merged and the remote store is used.
    ///
    /// # Errors
    /// `Unavailable` if it is still away.
    pub async fn recover(&self) -> Result<()> {
        self.shared.recover().await
    }

    /// Compares the mirror with the remote store now, as the background task does from time to time.
    ///
    /// # Errors
    /// Those of the remote store.
    pub async fn refresh(&self) -> Result<()> {
        self.shared.refresh().await
    }

    /// Ends the background task and closes the journal, so that another process can open it. Calls that come later fail
    /// with `Unavailable` when they need the journal.
    pub async fn close(&self) {
        let task = self.task.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(task) = task {
            task.abort();
            // An aborted task always ends with an error.
            drop(task.await);
        }
        self.shared.journal.lock().await.close();
    }

    /// A call that does not touch mirrored records. If it succeeds while the remote store is away, the remote store is
    /// probably back.
    async fn pass<T>(&self, call: impl Future<Output = Result<T>>) -> Result<T> {
        let result = call.await;
        if result.is_ok() && self.shared.mirror.lock().away_since.is_some() {
            self.shared.wake.notify_one();
        }
        result
    }

    fn observe(&self, flight: &Flight<'_>, mirror: &mut Mirror, key: &str, record: Option<&Record>) {
        if self.shared.policies.is_mirrored(key) {
            mirror.observe(flight, key, record, &self.shared.policies);
        }
    }

    /// Runs some scans by `call`, which asks the remote store. While it is away, the mirror answers if it has all
    /// prefixes.
    async fn run_scans<F: Future<Output = Result<Vec<Vec<(Key, Record)>>>>>(
        &self,
        operation: &'static str,
        scans: &[Scan],
        call: impl Fn() -> F,
    ) -> Result<Vec<Vec<(Key, Record)>>> {
        let shared = &self.shared;
        let mirrored = scans.iter().filter(|scan| shared.policies.is_mirrored(&scan.prefix)).count();
        if mirrored == 0 {
            return shared.all_shown(self.pass(call()).await?);
        }
        let scan_mirror = |mirror: &mut Mirror| {
            mirror.check_not_lost(operation)?;
            if mirrored < scans.len() || !mirror.slots.is_complete() {
                return Err(away(operation));
            }
            let now = Instant::now();
            Ok(scans.iter().map(|scan| mirror.slots.scan(scan, now)).collect())
        };
        for _ in 0..MAX_TURNS {
            let flight = match shared.mirror.begin_or(scan_mirror) {
                Ok(flight) => flight,
                Err(answer) => return answer,
            };
            match call().await {
                Ok(found) => {
                    let found = shared.all_shown(found)?;
                    let mut mirror = shared.mirror.lock();
                    if mirror.is_current(&flight) {
                        for (key, record) in found.iter().flatten() {
                            self.observe(&flight, &mut mirror, key, Some(record));
                        }
                        return Ok(found);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => shared.leave(&flight, &error),
                Err(error) => return Err(error),
            }
        }
        Err(away(operation))
    }

    async fn has_receipt(&self, id: &str) -> Result<bool> {
        Ok(self.shared.remote.get(&receipt::key(id)).await?.is_some())
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl StateStore for FallbackState {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        let shared = &self.shared;
        let mirrored = keys.iter().filter(|key| shared.policies.is_mirrored(key)).count();
        if mirrored == 0 {
            return self.pass(shared.remote.get_many(keys)).await;
        }
        let read_mirror = |mirror: &mut Mirror| {
            mirror.check_not_lost("get_many")?;
            if mirrored < keys.len() {
                return Err(away("get_many"));
            }
            limits::check_keys("get_many", keys)?;
            let now = Instant::now();
            keys.iter().map(|key| known_record(mirror, key, now)).collect()
        };
        for _ in 0..MAX_TURNS {
            let flight = match shared.mirror.begin_or(read_mirror) {
                Ok(flight) => flight,
                Err(answer) => return answer,
            };
            match shared.remote.get_many(keys).await {
                Ok(records) => {
                    let shown = keys.iter().zip(records);
                    let shown =
                        shown.map(|(key, record)| record.map(|record| shared.shown(key, record)).transpose());
                    let records = shown.collect::<Result<Vec<_>>>()?;
                    let mut mirror = shared.mirror.lock();
                    // If it left meanwhile, the records may have been changed without it since they were read.
                    if mirror.is_current(&flight) {
                        for (key, record) in keys.iter().zip(&records) {
                            self.observe(&flight, &mut mirror, key, record.as_ref());
                        }
                        return Ok(records);
                    }
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => shared.leave(&flight, &error),
                Err(error) => return Err(error),
            }
        }
        Err(away("get_many"))
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        let shared = &self.shared;
        let is_covered = shared.policies.covers(&writes);
        let touches_mirror = writes.iter().any(|write| shared.policies.is_mirrored(&write.key));
        if writes.is_empty() || !(is_covered || touches_mirror) {
            return self.pass(shared.remote.apply(writes)).await;
        }
        let changes = writes.iter().any(|write| write.op != Op::Check);
        let id = (is_covered && changes).then(receipt::new_id);
        // The error of an attempt of which it is unknown whether the remote store applied it.
        let mut unknown: Option<Error> = None;
        for _ in 0..MAX_TURNS {
            let begun = shared.mirror.begin_or(|mirror| mirror.check_not_lost("apply"));
            let Ok(mut flight) = begun else {
                begun.map(drop).or_else(|lost| lost)?;
                if !is_covered {
                    return Err(unknown.unwrap_or_else(|| away("apply")));
                }
                limits::check_step(&writes)?;
                let id = id.as_deref().unwrap_or_default();
                match (shared.apply_away(id, writes.clone()).await, unknown) {
                    // Whether anything was written is not known, so this is no conflict.
                    (Some(Err(_)), Some(error)) => return Err(error),
                    (Some(result), _) => return result,
                    (None, earlier) => unknown = earlier,
                }
                continue;
            };
            let step = shared.remote_step(&writes, id.as_deref())?;
            flight.changes(
                writes.iter().map(|write| &write.key).filter(|key| shared.policies.is_mirrored(key)),
            );
            match shared.remote.apply(step).await {
                Ok(()) => {
                    flight.end();
                    // The receipt must stay if an earlier attempt may still arrive.
                    let answered = id.as_deref().filter(|_| unknown.is_none());
                    shared.take_applied(flight, answered, &writes).await;
                    return Ok(());
                }
                Err(error) if error.kind() == ErrorKind::Unavailable => {
                    shared.leave(&flight, &error);
                    unknown = Some(error);
                }
                Err(error) => {
                    flight.end();
                    let may_be_own = unknown.is_some() && error.kind() == ErrorKind::Conflict;
                    if let Some(id) = id.as_deref().filter(|_| may_be_own)
                        && self.has_receipt(id).await?
                    {
                        shared.take_applied(flight, Some(id), &writes).await;
                        return Ok(());
                    }
                    return Err(error);
                }
            }
        }
        Err(away("apply"))
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        let scan = Scan { prefix: prefix.to_owned(), after: after.map(str::to_owned), order, limit };
        let call = || async { Ok(vec![self.shared.remote.scan(prefix, after, order, limit).await?]) };
        Ok(self.run_scans("scan", slice::from_ref(&scan), call).await?.pop().unwrap_or_default())
    }

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        self.run_scans("scan_many", scans, || self.shared.remote.scan_many(scans)).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.shared.remote.snapshot(to).await
    }

    /// Whether the remote store is used and reachable. [`FallbackState::status`] says whether the service goes on without
    /// it.
    async fn health(&self) -> Result<()> {
        self.shared.remote.health().await?;
        match self.shared.mirror.lock().away_since {
            Some(_) => Err(away("health")),
            None => Ok(()),
        }
    }

    fn now(&self) -> OffsetDateTime {
        self.shared.remote.now()
    }

    fn report_contention(&self, operation: &'static str) {
        self.shared.remote.report_contention(operation);
    }
}

impl Drop for FallbackState {
    fn drop(&mut self) {
        if let Some(task) = self.task.lock().unwrap_or_else(PoisonError::into_inner).take() {
            task.abort();
        }
    }
}

impl fmt::Debug for FallbackState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackState").field("remote", &self.shared.remote).finish_non_exhaustive()
    }
}

fn known_record(mirror: &Mirror, key: &str, now: Instant) -> Result<Option<Record>> {
    match mirror.slots.known(key, now) {
        Known::Present(slot) => Ok(slot.record(now)),
        Known::Absent(_) => Ok(None),
        Known::Unknown => Err(away("get_many")),
    }
}

fn away(operation: &'static str) -> Error {
    let message = "the remote store is away, and the records are not all in memory";
    Error::new(ErrorKind::Unavailable, operation, message)
}
