use std::{
    fmt,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use lkr_auth::AuthMergePolicy;
use lkr_state::{
    Error, ErrorKind, Key, MemoryState, MergePolicy, Merged, OfflineChange, Record, Result, Scan, ScanOrder,
    StateStore, StateStoreExt, Write,
};
use lkr_state_fallback::{FallbackConfig, FallbackState};
use tempfile::TempDir;
use tokio::sync::watch;

/// A remote store that can be switched off.
pub(crate) struct Remote {
    store: Arc<dyn StateStore>,
    is_off: AtomicBool,
    /// Whether steps are applied and not answered.
    applies_unanswered: AtomicBool,
    /// Whether steps are refused with `Unavailable` although reads are answered.
    refuses_steps: AtomicBool,
    /// Steps that arrive when the test says so.
    delayed: Mutex<Vec<Vec<Write>>>,
    delays_steps: AtomicBool,
    /// How many steps are applied before further ones are refused.
    steps_left: AtomicU64,
    reads: AtomicU64,
    /// Held answers: whether new ones of steps or of reads are held, and the count of those that wait.
    holds_answers: watch::Sender<bool>,
    holds_reads: watch::Sender<bool>,
    held: AtomicU64,
}

impl Remote {
    pub(crate) fn new() -> Arc<Self> {
        Self::over(Arc::new(MemoryState::new()))
    }

    /// Another way to the same store, which is switched on its own.
    pub(crate) fn over(store: Arc<dyn StateStore>) -> Arc<Self> {
        Arc::new(Self {
            store,
            is_off: AtomicBool::default(),
            applies_unanswered: AtomicBool::default(),
            refuses_steps: AtomicBool::default(),
            delayed: Mutex::default(),
            delays_steps: AtomicBool::default(),
            reads: AtomicU64::default(),
            holds_answers: watch::Sender::new(false),
            holds_reads: watch::Sender::new(false),
            steps_left: AtomicU64::new(u64::MAX),
            held: AtomicU64::default(),
        })
    }

    /// The store without the switch, as another process reaches it.
    pub(crate) fn store(&self) -> Arc<dyn StateStore> {
        Arc::clone(&self.store)
    }

    pub(crate) fn off(&self) {
        self.is_off.store(true, Ordering::SeqCst);
    }

    pub(crate) fn on(&self) {
        self.is_off.store(false, Ordering::SeqCst);
        self.steps_left.store(u64::MAX, Ordering::SeqCst);
        self.applies_unanswered.store(false, Ordering::SeqCst);
        self.refuses_steps.store(false, Ordering::SeqCst);
        self.delays_steps.store(false, Ordering::SeqCst);
    }

    /// Applies steps from now on without answering. Reads are answered.
    pub(crate) fn lose_answers(&self) {
        self.applies_unanswered.store(true, Ordering::SeqCst);
    }

    /// Refuses steps after so many, and answers reads.
    pub(crate) fn refuse_steps_after(&self, count: u64) {
        self.steps_left.store(count, Ordering::SeqCst);
    }

    pub(crate) fn refuse_steps(&self) {
        self.refuses_steps.store(true, Ordering::SeqCst);
    }

    /// Keeps steps from now on until [`deliver`](Self::deliver). Reads are answered.
    pub(crate) fn delay_steps(&self) {
        self.delays_steps.store(true, Ordering::SeqCst);
    }

    /// Applies the delayed steps, and returns how many of them were applied.
    pub(crate) async fn deliver(&self) -> usize {
        let delayed = std::mem::take(&mut *self.delayed.lock().unwrap());
        let mut applied = 0;
        for step in delayed {
            applied += usize::from(self.store.apply(step).await.is_ok());
        }
        applied
    }

    pub(crate) fn reads(&self) -> u64 {
        self.reads.load(Ordering::SeqCst)
    }

    /// Applies steps from now on and answers them at [`release_answers`](Self::release_answers).
    pub(crate) fn hold_answers(&self) {
        self.holds_answers.send_replace(true);
    }

    /// Holds the answers of reads from now on.
    pub(crate) fn hold_reads(&self) {
        self.holds_reads.send_replace(true);
    }

    pub(crate) fn release_answers(&self) {
        self.holds_answers.send_replace(false);
        self.holds_reads.send_replace(false);
    }

    /// Waits if answers are held.
    async fn hold(&self, holds: &watch::Sender<bool>) {
        let mut holds = holds.subscribe();
        if *holds.borrow_and_update() {
            self.held.fetch_add(1, Ordering::SeqCst);
            holds.wait_for(|holds| !holds).await.unwrap();
        }
    }

    /// Waits until so many answers are held.
    pub(crate) async fn wait_for_held(&self, count: u64) {
        while self.held.load(Ordering::SeqCst) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn check(&self, operation: &'static str) -> Result<()> {
        match self.is_off.load(Ordering::SeqCst) {
            true => Err(Error::new(ErrorKind::Unavailable, operation, "switched off")),
            false => Ok(()),
        }
    }
}

#[async_trait]
impl StateStore for Remote {
    async fn get_many(&self, keys: &[Key]) -> Result<Vec<Option<Record>>> {
        self.check("get_many")?;
        self.reads.fetch_add(1, Ordering::SeqCst);
        let records = self.store.get_many(keys).await;
        self.hold(&self.holds_reads).await;
        records
    }

    async fn apply(&self, writes: Vec<Write>) -> Result<()> {
        let is_left = |left: u64| left.checked_sub(1);
        let has_left = self.steps_left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, is_left).is_ok();
        if self.refuses_steps.load(Ordering::SeqCst) || !has_left {
            return Err(Error::new(ErrorKind::Unavailable, "apply", "out of memory"));
        }
        if self.delays_steps.load(Ordering::SeqCst) {
            self.delayed.lock().unwrap().push(writes);
            return Err(Error::new(ErrorKind::Unavailable, "apply", "the answer is late"));
        }
        if self.applies_unanswered.load(Ordering::SeqCst) {
            self.store.apply(writes).await?;
            return Err(Error::new(ErrorKind::Unavailable, "apply", "the answer is lost"));
        }
        self.check("apply")?;
        self.store.apply(writes).await?;
        self.hold(&self.holds_answers).await;
        Ok(())
    }

    async fn scan(
        &self,
        prefix: &str,
        after: Option<&str>,
        order: ScanOrder,
        limit: usize,
    ) -> Result<Vec<(Key, Record)>> {
        self.check("scan")?;
        self.store.scan(prefix, after, order, limit).await
    }

    async fn scan_many(&self, scans: &[Scan]) -> Result<Vec<Vec<(Key, Record)>>> {
        self.check("scan_many")?;
        self.store.scan_many(scans).await
    }

    async fn snapshot(&self, to: &Path) -> Result<()> {
        self.check("snapshot")?;
        self.store.snapshot(to).await
    }

    async fn health(&self) -> Result<()> {
        self.check("health")
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remote").finish_non_exhaustive()
    }
}

/// Mirrors the records under `m/`, and writes those under `log/`. Deletions win; otherwise a change counts if the store's
/// record is unchanged. A record under `m/child/<name>` needs the record `m/parent/<name>`.
#[derive(Debug)]
pub(crate) struct TestPolicy;

impl MergePolicy for TestPolicy {
    fn mirrored(&self) -> &'static [&'static str] {
        &["m/", "case-"]
    }

    fn write_only(&self) -> &'static [&'static str] {
        &["log/"]
    }

    fn depends_on(&self, key: &str, _value: &[u8]) -> Vec<Key> {
        Vec::from_iter(key.strip_prefix("m/child/").map(|name| format!("m/parent/{name}")))
    }

    fn merge(&self, change: &OfflineChange<'_>) -> Merged {
        if change.ours.is_none() {
            return change.accept();
        }
        for parent in self.depends_on(change.key, &[]) {
            if change.related(&parent).is_none() {
                return Merged::overruled(change.key, "it has no parent");
            }
        }
        change.accept_if_unchanged()
    }
}

/// A configuration under which the background task does nothing on its own.
pub(crate) fn config(folder: &Path) -> FallbackConfig {
    let hour = Duration::from_secs(3600);
    FallbackConfig { refresh_interval: hour, probe_interval: hour, ..FallbackConfig::new(folder) }
}

pub(crate) async fn open(remote: &Arc<Remote>, folder: &Path) -> Arc<FallbackState> {
    try_open(remote, folder).await.unwrap()
}

pub(crate) async fn try_open(remote: &Arc<Remote>, folder: &Path) -> Result<Arc<FallbackState>> {
    let policies: Vec<Arc<dyn MergePolicy>> = vec![Arc::new(TestPolicy), Arc::new(AuthMergePolicy)];
    Ok(Arc::new(FallbackState::open(Arc::clone(remote) as _, policies, config(folder)).await?))
}

/// A decorator over a new remote store, and the folder of its journal.
pub(crate) async fn fallback() -> (Arc<FallbackState>, Arc<Remote>, TempDir) {
    let (remote, folder) = (Remote::new(), tempfile::tempdir().unwrap());
    (open(&remote, folder.path()).await, remote, folder)
}

/// Ends a decorator as a kill does: without merging. Its folder can be opened again.
pub(crate) async fn kill(state: Arc<FallbackState>) {
    state.close().await;
    let state = Arc::into_inner(state).expect("nothing else uses the store");
    drop(state);
}

pub(crate) async fn text(store: &dyn StateStore, key: &str) -> Option<String> {
    store.get(key).await.unwrap().map(|record| String::from_utf8(record.value.to_vec()).unwrap())
}

pub(crate) async fn version(store: &dyn StateStore, key: &str) -> u64 {
    store.get(key).await.unwrap().unwrap().version
}

#[track_caller]
pub(crate) fn assert_kind<T: fmt::Debug>(result: Result<T>, kind: ErrorKind) {
    assert_eq!(result.unwrap_err().kind(), kind);
}
