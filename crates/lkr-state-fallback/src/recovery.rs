//! The background task: asks whether the remote store is back, merges the journal, and keeps the mirror current.

use std::{
    sync::{Arc, Weak},
    time::{Duration, Instant},
};

use lkr_state::{Error, ErrorKind, Key, Result, ScanOrder, StateStoreExt};
use tokio::time::timeout;

use crate::{
    journal::Journal,
    merge::{MergedRecord, Outcome, merge_step},
    mirror::{Known, Mirror},
    shared::Shared,
};

/// The records that one scan reads.
const BATCH: usize = 1_000;

/// The shortest pause between two questions whether the remote store is back.
const MIN_PAUSE: Duration = Duration::from_millis(50);

/// Runs until the store is dropped.
pub(crate) async fn run(shared: Weak<Shared>) {
    let Some((wake, config)) =
        shared.upgrade().map(|shared| (Arc::clone(&shared.wake), shared.config.clone()))
    else {
        return;
    };
    let mut refreshed = Instant::now();
    loop {
        let is_away = match shared.upgrade() {
            Some(shared) => shared.mirror.lock().away_since.is_some(),
            None => return,
        };
        let pause = if is_away {
            config.probe_interval
        } else {
            config.refresh_interval.saturating_sub(refreshed.elapsed())
        };
        let _woken_or_elapsed = timeout(pause, wake.notified()).await;
        let Some(shared) = shared.upgrade() else { return };
        if shared.mirror.lock().away_since.is_some() {
            let result = shared.recover().await;
            if result.is_ok() {
                refreshed = Instant::now();
            }
            log_failure("the remote store is not used yet", result);
            if refreshed.elapsed() >= config.refresh_interval {
                shared.mirror.lock().slots.sweep(Instant::now());
                refreshed = Instant::now();
            }
            drop(shared);
            tokio::time::sleep(MIN_PAUSE).await;
            continue;
        }
        log_failure("records could not be read again", shared.read_uncertain().await);
        if refreshed.elapsed() >= config.refresh_interval {
            log_failure("the mirror could not be refreshed", shared.refresh().await);
            refreshed = Instant::now();
        }
    }
}

/// An outage was logged when it began.
fn log_failure(message: &'static str, result: Result<()>) {
    match result {
        Err(error) if error.kind() != ErrorKind::Unavailable => tracing::error!(%error, "{message}"),
        _ => {}
    }
}

impl Shared {
    /// If the remote store is away and answers again, merges the journal and uses the remote store from then on.
    pub(crate) async fn recover(&self) -> Result<()> {
        let _recovering = self.recovering.lock().await;
        if self.mirror.lock().away_since.is_none() {
            return Ok(());
        }
        self.remote.health().await.inspect_err(|error| self.note_if_lost(error))?;
        self.check_sentinel().await?;
        let mut merged = 0_usize;
        while !self.come_back().await {
            let Some(entry) = self.journal.lock().await.first().cloned() else { continue };
            let outcome = merge_step(&*self.remote, &self.policies, &entry).await?;
            self.note_merged(outcome).await?;
            merged += 1;
        }
        tracing::info!(merged, "the remote store is back");
        self.refresh().await
    }

    /// Uses the remote store if nothing waits to be merged.
    async fn come_back(&self) -> bool {
        let journal = self.journal.lock().await;
        let is_merged = journal.len() == 0;
        if is_merged {
            self.mirror.lock().come_back();
        }
        is_merged
    }

    /// Removes a merged step from the journal, and takes the merged records. A record that a later step changes is kept as
    /// that step left it.
    ///
    /// The receipt stays in the remote store until it expires, because the first attempt of the step may still arrive.
    async fn note_merged(&self, outcome: Outcome) -> Result<()> {
        let mut journal = Arc::clone(&self.journal).lock_owned().await;
        let journal = tokio::task::spawn_blocking(move || {
            journal.remove_first();
            journal
        });
        let journal =
            journal.await.map_err(|error| Error::new(ErrorKind::Internal, "merge journal", error))?;
        self.take_merged(&journal, outcome)
    }

    fn take_merged(&self, journal: &Journal, outcome: Outcome) -> Result<()> {
        let mut mirror = self.mirror.lock();
        for (key, record) in outcome {
            if self.policies.is_mirrored(&key) && !journal.is_pending(&key) {
                self.take_record(&mut mirror, &key, record)?;
            }
        }
        Ok(())
    }

    fn take_record(&self, mirror: &mut Mirror, key: &Key, record: Option<MergedRecord>) -> Result<()> {
        let Some(MergedRecord { value, version, ttl }) = record else {
            mirror.slots.insert_absent(key);
            return Ok(());
        };
        let before = match mirror.slots.known(key, Instant::now()) {
            Known::Present(slot) => Some((slot.value.clone(), slot.version)),
            Known::Absent(version) => version.map(|version| (None, version)),
            Known::Unknown => None,
        };
        let shown = match version {
            Some(version) => crate::version::shown(version)?,
            // Callers that have read the value keep its version.
            None => match before {
                Some((Some(known), version)) if known == value => version,
                before => mirror.versions.next(before.map(|(_, version)| version)),
            },
        };
        mirror.versions.note(shown);
        let left = ttl.or_else(|| self.policies.expires_in(key, &value));
        let expires = left.and_then(|left| Instant::now().checked_add(left));
        mirror.slots.force(key, value, shown, expires);
        Ok(())
    }

    /// Refuses a remote store that has lost its records.
    async fn check_sentinel(&self) -> Result<()> {
        let Some(sentinel) = &self.config.sentinel else { return Ok(()) };
        let is_there = self.remote.get(sentinel).await?.is_some();
        let mut mirror = self.mirror.lock();
        mirror.has_seen_sentinel |= is_there;
        let is_lost = mirror.has_seen_sentinel && !is_there;
        mirror.is_remote_empty &= is_lost;
        drop(mirror);
        if is_lost {
            let error = Error::records_lost("probe");
            self.note_if_lost(&error);
            return Err(error);
        }
        Ok(())
    }

    /// Reads all mirrored records. Records with the version that is in memory already cost no more than the read.
    pub(crate) async fn refresh(&self) -> Result<()> {
        let (era, is_used) = {
            let mut mirror = self.mirror.lock();
            mirror.slots.begin_refresh();
            (mirror.era(), mirror.away_since.is_none())
        };
        if !is_used {
            return Ok(());
        }
        if let Err(error) = self.check_sentinel().await {
            if error.kind() == ErrorKind::Unavailable {
                self.leave(&self.mirror.begin(), &error);
            }
            return Err(error);
        }
        for prefix in self.policies.prefixes() {
            self.refresh_prefix(prefix).await?;
        }
        let mut mirror = self.mirror.lock();
        mirror.slots.sweep(Instant::now());
        if mirror.era() == era {
            mirror.slots.end_refresh();
        }
        Ok(())
    }

    async fn refresh_prefix(&self, prefix: &str) -> Result<()> {
        let mut after: Option<Key> = None;
        loop {
            let Ok(flight) = self.mirror.begin_or(|_| ()) else { return Ok(()) };
            let found = self.remote.scan(prefix, after.as_deref(), ScanOrder::Ascending, BATCH).await;
            let found = found.inspect_err(|error| {
                if error.kind() == ErrorKind::Unavailable {
                    self.leave(&flight, error);
                }
            })?;
            let last = found.last().filter(|_| found.len() == BATCH).map(|(key, _)| key.clone());
            let mut mirror = self.mirror.lock();
            if !mirror.is_current(&flight) {
                return Ok(());
            }
            let gone = mirror.slots.keys_between(prefix, after.as_deref(), last.as_deref());
            let keys: std::collections::BTreeSet<&str> = found.iter().map(|(key, _)| key.as_str()).collect();
            for key in gone.iter().filter(|key| !keys.contains(key.as_str())) {
                mirror.observe(&flight, key, None, &self.policies);
            }
            for (key, record) in &found {
                let record = self.shown(key, record.clone())?;
                mirror.observe(&flight, key, Some(&record), &self.policies);
            }
            drop(mirror);
            if last.is_none() {
                return Ok(());
            }
            after = last;
        }
    }

    /// Reads records again whose calls overlapped.
    async fn read_uncertain(&self) -> Result<()> {
        let keys: Vec<Key> = std::mem::take(&mut self.mirror.lock().uncertain).into_iter().collect();
        for keys in keys.chunks(BATCH) {
            let Ok(flight) = self.mirror.begin_or(|_| ()) else { return Ok(()) };
            let found = self.remote.get_many(keys).await?;
            let mut mirror = self.mirror.lock();
            if !mirror.is_current(&flight) {
                return Ok(());
            }
            for (key, record) in keys.iter().zip(found) {
                let record = record.map(|record| self.shown(key, record)).transpose()?;
                mirror.observe(&flight, key, record.as_ref(), &self.policies);
            }
        }
        Ok(())
    }
}
