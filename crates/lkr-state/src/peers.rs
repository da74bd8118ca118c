//! The processes that work on one store: which of them run, and which of them does what one alone should do.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::{sync::watch, task::AbortHandle};
use uuid::Uuid;

use crate::{Error, ErrorKind, Expect, Process, Record, Result, ScanOrder, StateStore, StateStoreExt, Write};

/// The key prefix of the records of running processes; the id follows.
const PROCESSES: &str = "process/";

/// The key prefix of the records of leaders; the role follows.
const LEADERS: &str = "leader/";

/// The record of the latest format that a process has asked to upgrade the store to. It never expires.
const LATEST_FORMAT: &str = "process-format";

/// Ends the record of an exclusive process.
const EXCLUSIVE: &str = " exclusive";

/// Records per scan.
const BATCH: usize = 1_000;

/// How often a process that waits for others to end looks whether they have.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// The processes that work on one store.
///
/// Each keeps a record that expires unless it is renewed, so a process that was killed or lost the store counts as running
/// for some time. Cheap to clone.
#[derive(Clone)]
pub struct Peers {
    inner: Arc<PeersInner>,
}

struct PeersInner {
    id: Uuid,
    shared: Option<SharedStore>,
}

/// How a process is known to the others.
struct SharedStore {
    state: Arc<dyn StateStore>,
    options: PeerOptions,
    format: u64,
    renewal: AbortHandle,
    /// Whether this process may lead.
    may_lead: AtomicBool,
    /// When this process last renewed its record, and saw nobody who excludes it.
    renewed: Arc<Mutex<Instant>>,
    is_exclusive: bool,
    /// Why this process must end: another one has asked for a format that this one does not write, or works in its place.
    superseded: watch::Receiver<Option<String>>,
}

/// How processes notice each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerOptions {
    /// How long a process counts as running after the last renewal of its record. It must be at least as long as the leases
    /// of tasks: what a process holds is given to others only when its tasks are.
    pub process_ttl: Duration,
    /// How long a leader leads after it last asked to.
    pub leader_ttl: Duration,
}

impl Default for PeerOptions {
    fn default() -> Self {
        Self { process_ttl: Duration::from_secs(60), leader_ttl: Duration::from_secs(45) }
    }
}

impl Default for Peers {
    fn default() -> Self {
        Self::alone()
    }
}

impl Peers {
    /// For a store that no other process can use meanwhile.
    #[must_use]
    pub fn alone() -> Self {
        Self { inner: Arc::new(PeersInner { id: Uuid::new_v4(), shared: None }) }
    }

    /// Joins the processes of a store that several use at once. The record of this process is renewed until the value is
    /// dropped or [left](Self::leave); that of its predecessor is removed, so that what it left is repaired at once.
    ///
    /// # Errors
    /// `Invalid` if a process of a later format has [superseded](Self::supersede_earlier) this one, or if this process or
    /// another one is exclusive; those of the store.
    pub async fn join(state: Arc<dyn StateStore>, process: Process, options: PeerOptions) -> Result<Self> {
        let (id, format, begun) = (process.id.own, process.format, Instant::now());
        renew(&*state, process, options).await?;
        if let Some(predecessor) = process.id.predecessor {
            remove_records(&*state, predecessor).await?;
        }
        // Looked up after this process is known: of two that exclude each other, at least one sees the other.
        if let Some(reason) = refusal(&*state, process).await? {
            remove_records(&*state, id).await?;
            return Err(Error::new(ErrorKind::Invalid, "join the other processes", reason));
        }
        let (supersede, superseded) = watch::channel(None);
        let renewed = Arc::new(Mutex::new(begun));
        let renewal = tokio::spawn({
            let (state, renewed) = (Arc::clone(&state), Arc::clone(&renewed));
            async move {
                loop {
                    tokio::time::sleep(options.process_ttl / 6).await;
                    let begun = Instant::now();
                    match renew_or_end(&*state, process, options).await {
                        Ok(Renewal::Goes) => {
                            *renewed.lock().unwrap_or_else(PoisonError::into_inner) = begun;
                        }
                        Ok(Renewal::Ends(reason)) => _ = supersede.send_replace(Some(reason)),
                        Ok(Renewal::Over(reason)) => {
                            supersede.send_replace(Some(reason));
                            return;
                        }
                        Err(error) => {
                            tracing::debug!(%error, "cannot renew the record of this process; will retry");
                        }
                    }
                }
            }
        });
        let (renewal, may_lead, is_exclusive) =
            (renewal.abort_handle(), AtomicBool::new(true), process.is_exclusive);
        let shared =
            SharedStore { state, options, format, renewal, may_lead, renewed, is_exclusive, superseded };
        Ok(Self { inner: Arc::new(PeersInner { id, shared: Some(shared) }) })
    }

    /// Asks the processes that write an earlier format to end, and waits until none runs any more. From then on none can
    /// join, so the store can be upgraded to the format of this process. One that was killed is waited for until its record
    /// expires.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn supersede_earlier(&self) -> Result<()> {
        let Some(SharedStore { state, format, .. }) = &self.inner.shared else { return Ok(()) };
        announce_format(&**state, *format).await?;
        let mut is_told = false;
        loop {
            let processes = processes_of(&**state).await?;
            let earlier = processes.iter().filter(|other| other.format < *format).count();
            if earlier == 0 {
                return Ok(());
            }
            if !is_told {
                is_told = true;
                tracing::info!(
                    processes = earlier,
                    "waiting until the processes of an earlier version have ended"
                );
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Completes, with the reason, if this process should end in order: a process of a later format waits to upgrade the store, or
    /// this one stood still for so long that it counted as ended, and another one works in its place that excludes it.
    pub async fn superseded(&self) -> String {
        if let Some(shared) = &self.inner.shared
            && let Ok(reason) = shared.superseded.clone().wait_for(Option::is_some).await
            && let Some(reason) = &*reason
        {
            return reason.clone();
        }
        std::future::pending().await
    }

    /// Checks that no other process can have taken the place of this one. Only the record of an exclusive process keeps others
    /// away, so such a process must not take work on itself while the record may have expired: after it stood still, for
    /// example. Costs no access to the store.
    ///
    /// # Errors
    /// `Unavailable` until the record is renewed.
    pub fn verify(&self) -> Result<()> {
        let Some(shared) = &self.inner.shared else { return Ok(()) };
        let renewed = *shared.renewed.lock().unwrap_or_else(PoisonError::into_inner);
        if !shared.is_exclusive || renewed.elapsed() < shared.options.process_ttl {
            return Ok(());
        }
        let reason = "this process could not tell the others in time that it runs, so another one may work in its place";
        Err(Error::new(ErrorKind::Unavailable, "verify process", reason))
    }

    /// The id of this process, which no other process has, nor an earlier one.
    #[must_use]
    pub fn id(&self) -> Uuid {
        self.inner.id
    }

    /// Whether other processes may use the store at the same time.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        self.inner.shared.is_some()
    }

    /// The processes that may be running, this one included. A process that is not among them has ended, or has lost what it
    /// held.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn running(&self) -> Result<BTreeSet<Uuid>> {
        let mut running = match &self.inner.shared {
            Some(SharedStore { state, .. }) => Self::running_on(&**state).await?,
            None => BTreeSet::new(),
        };
        running.insert(self.inner.id);
        Ok(running)
    }

    /// The processes that may be running on a store, which the caller does not join. One that was killed is among them until
    /// its record expires.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn running_on(state: &dyn StateStore) -> Result<BTreeSet<Uuid>> {
        Ok(processes_of(state).await?.into_iter().map(|process| process.id).collect())
    }

    /// Never leads from now on: this process leaves the work of leaders to others. A process that is alone still leads.
    pub fn follow_only(&self) {
        if let Some(shared) = &self.inner.shared {
            shared.may_lead.store(false, Ordering::Relaxed);
        }
    }

    /// Whether this process leads in a role now. It becomes the leader if there is none, and stays it as long as it asks often
    /// enough. Two processes may believe to lead if one of them stood still, so the work of leaders must bear that; that only
    /// one does it saves effort.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn leads(&self, role: &str) -> Result<bool> {
        let Some(shared) = &self.inner.shared else { return Ok(true) };
        if !shared.may_lead.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let (key, own) = (format!("{LEADERS}{role}"), self.inner.id.to_string());
        let current = shared.state.get(&key).await?;
        let expect = match &current {
            None => Expect::Absent,
            Some(record) if record.value == own => Expect::Version(record.version),
            Some(_) => return Ok(false),
        };
        let claim = Write::put_for(key, expect, own, shared.options.leader_ttl);
        match shared.state.apply(vec![claim]).await {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Tells the others that this process ends, so that they need not wait for its record to expire. What it held must be
    /// finished.
    pub async fn leave(&self) {
        let Some(shared) = &self.inner.shared else { return };
        shared.renewal.abort();
        if let Err(error) = remove_records(&*shared.state, self.inner.id).await {
            tracing::debug!(%error, "cannot remove the record of this process; it will expire");
        }
    }
}

/// Removes what says that a process runs and leads.
async fn remove_records(state: &dyn StateStore, id: Uuid) -> Result<()> {
    let own = id.to_string();
    let leaders = state.scan(LEADERS, None, ScanOrder::Ascending, BATCH).await?;
    for (key, record) in leaders.into_iter().filter(|(_, record)| record.value == own) {
        match state.apply(vec![Write::delete(key, Expect::Version(record.version))]).await {
            Err(error) if error.kind() != ErrorKind::Conflict => return Err(error),
            _ => {}
        }
    }
    state.apply(vec![Write::delete(process_key(id), Expect::Any)]).await
}

/// What becomes of a process whose record was to be renewed.
enum Renewal {
    /// It goes on.
    Goes,
    /// It must end, for this reason; others wait until it has.
    Ends(String),
    /// Others believe already that it has ended, and it has no record any more. It must end, for this reason.
    Over(String),
}

/// Renews the record of a process, unless it must not go on because others may have believed meanwhile that it had ended.
async fn renew_or_end(state: &dyn StateStore, process: Process, options: PeerOptions) -> Result<Renewal> {
    let was_known = state.get(&process_key(process.id.own)).await?.is_some();
    renew(state, process, options).await?;
    if latest_format(state).await? > process.format {
        let reason = "a later version of lkr upgrades the stores; start that version in place of this one";
        return Ok(Renewal::Ends(reason.to_owned()));
    }
    let refusal = if was_known { None } else { refusal(state, process).await? };
    let Some(reason) = refusal else { return Ok(Renewal::Goes) };
    // The other one must not wait for this one.
    remove_records(state, process.id.own).await?;
    Ok(Renewal::Over(reason))
}

/// Why a process cannot work on a store.
async fn refusal(state: &dyn StateStore, process: Process) -> Result<Option<String>> {
    let (format, latest) = (process.format, latest_format(state).await?);
    if latest > format {
        return Ok(Some(format!(
            "a later lkr upgrades the store to version {latest}, or has done so; this program writes version {format}"
        )));
    }
    let mut others = processes_of(state).await?;
    others.retain(|other| other.id != process.id.own);
    if others.iter().any(|other| other.is_exclusive) {
        let reason =
            "another process works on the same records, and keeps points or texts in its own data folder";
        return Ok(Some(format!("{reason} (one that was killed counts for a minute)")));
    }
    Ok((process.is_exclusive && !others.is_empty()).then(|| {
        format!(
            "other processes ({}) may work on the same records (one that was killed counts for a minute), and this one keeps \
             points or texts in its own data folder, where they cannot find them",
            others.len()
        )
    }))
}

async fn renew(state: &dyn StateStore, process: Process, options: PeerOptions) -> Result<()> {
    let exclusive = if process.is_exclusive { EXCLUSIVE } else { "" };
    let record = format!("{}{exclusive}", process.format);
    state
        .apply(vec![Write::put_for(process_key(process.id.own), Expect::Any, record, options.process_ttl)])
        .await
}

/// A process as its record describes it.
#[derive(Debug, PartialEq, Eq)]
struct Peer {
    id: Uuid,
    format: u64,
    is_exclusive: bool,
}

impl Peer {
    fn read(key: &str, record: &Record) -> Option<Self> {
        let id = Uuid::parse_str(key.strip_prefix(PROCESSES)?).ok()?;
        let text = std::str::from_utf8(&record.value).unwrap_or_default();
        let (format, is_exclusive) = match text.strip_suffix(EXCLUSIVE) {
            Some(format) => (format, true),
            None => (text, false),
        };
        // The first versions wrote nothing.
        Some(Self { id, format: format.parse().unwrap_or_default(), is_exclusive })
    }
}

/// The processes that may be running on a store.
async fn processes_of(state: &dyn StateStore) -> Result<Vec<Peer>> {
    let (mut processes, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = state.scan(PROCESSES, after.as_deref(), ScanOrder::Ascending, BATCH).await?;
        processes.extend(page.iter().filter_map(|(key, record)| Peer::read(key, record)));
        if page.len() < BATCH {
            return Ok(processes);
        }
        after = page.into_iter().next_back().map(|(key, _)| key);
    }
}

/// The format in a record; 0 if there is none.
fn format_in(record: &Record) -> u64 {
    std::str::from_utf8(&record.value).ok().and_then(|text| text.parse().ok()).unwrap_or_default()
}

async fn latest_format(state: &dyn StateStore) -> Result<u64> {
    Ok(state.get(LATEST_FORMAT).await?.as_ref().map_or(0, format_in))
}

/// Records that a process waits to upgrade the store to `format`, unless another one asked for a later format.
async fn announce_format(state: &dyn StateStore, format: u64) -> Result<()> {
    loop {
        let record = state.get(LATEST_FORMAT).await?;
        if record.as_ref().is_some_and(|record| format_in(record) >= format) {
            return Ok(());
        }
        let expect = record.map_or(Expect::Absent, |record| Expect::Version(record.version));
        match state.apply(vec![Write::put(LATEST_FORMAT, expect, format.to_string())]).await {
            Err(error) if error.kind() == ErrorKind::Conflict => {}
            announced => return announced,
        }
    }
}

fn process_key(id: Uuid) -> String {
    format!("{PROCESSES}{}", id.simple())
}

impl Drop for PeersInner {
    fn drop(&mut self) {
        if let Some(shared) = &self.shared {
            shared.renewal.abort();
        }
    }
}

impl fmt::Debug for Peers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Peers").field("id", &self.inner.id).field("is_shared", &self.is_shared()).finish()
    }
}

#[cfg(test)]
mod tests {
    use lkr_domain::TaskId;

    use super::*;
    use crate::{FailingState, FencedQueue, MemoryQueue, MemoryState, ProcessId, TaskQueue};

    /// So short that expiry is awaited quickly, so long that a renewal is not late on a busy machine.
    const OPTIONS: PeerOptions =
        PeerOptions { process_ttl: Duration::from_millis(1_200), leader_ttl: Duration::from_millis(600) };

    fn process(format: u64) -> Process {
        Process { id: ProcessId::new(), format, is_exclusive: false }
    }

    async fn join(state: &Arc<dyn StateStore>, format: u64) -> Result<Peers> {
        Peers::join(Arc::clone(state), process(format), OPTIONS).await
    }

    async fn eventually(condition: impl AsyncFn() -> bool) {
        let begun = Instant::now();
        while !condition().await {
            assert!(begun.elapsed() < Duration::from_secs(20), "the condition does not become true");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    #[tokio::test]
    async fn process_alone_runs_and_leads() {
        let peers = Peers::alone();
        assert!(!peers.is_shared());
        assert_eq!(peers.running().await.unwrap(), BTreeSet::from([peers.id()]));
        assert!(peers.leads("janitor").await.unwrap());
    }

    #[tokio::test]
    async fn processes_know_each_other_until_they_leave_or_are_dropped() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let one = join(&state, 4).await.unwrap();
        let other = join(&state, 4).await.unwrap();
        let both = BTreeSet::from([one.id(), other.id()]);
        // Longer than the records live without a renewal.
        let begun = Instant::now();
        while begun.elapsed() < 2 * OPTIONS.process_ttl {
            assert_eq!(one.running().await.unwrap(), both);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(other);
        eventually(async || one.running().await.unwrap() == BTreeSet::from([one.id()])).await;
        let third = join(&state, 4).await.unwrap();
        one.leave().await;
        assert_eq!(third.running().await.unwrap(), BTreeSet::from([third.id()]));
        assert_eq!(Peers::running_on(&*state).await.unwrap(), BTreeSet::from([third.id()]));
        third.leave().await;
        assert_eq!(Peers::running_on(&*state).await.unwrap(), BTreeSet::new());
    }

    #[tokio::test]
    async fn one_process_leads_until_it_stops_asking() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let one = join(&state, 4).await.unwrap();
        let other = join(&state, 4).await.unwrap();
        assert!(one.leads("janitor").await.unwrap());
        assert!(one.leads("janitor").await.unwrap(), "a leader stays the leader");
        assert!(!other.leads("janitor").await.unwrap());
        assert!(other.leads("backfill").await.unwrap(), "roles are independent");
        eventually(async || other.leads("janitor").await.unwrap()).await;
        assert!(!one.leads("janitor").await.unwrap());
        other.leave().await;
        assert!(one.leads("janitor").await.unwrap(), "a leader that leaves makes room at once");
        one.follow_only();
        assert!(!one.leads("backfill").await.unwrap());
    }

    #[tokio::test]
    async fn of_several_that_ask_at_once_one_leads() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let mut asking = tokio::task::JoinSet::new();
        for _ in 0..16 {
            let peers = Peers::join(Arc::clone(&state), process(4), PeerOptions::default()).await.unwrap();
            asking.spawn(async move { (peers.leads("janitor").await.unwrap(), peers) });
        }
        let asked = asking.join_all().await;
        assert_eq!(asked.iter().filter(|(leads, _)| *leads).count(), 1);
    }

    #[tokio::test]
    async fn process_of_a_later_format_waits_until_those_of_earlier_ones_have_ended() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let (earlier, same) = (join(&state, 4).await.unwrap(), join(&state, 5).await.unwrap());
        let later = join(&state, 5).await.unwrap();
        let waiting = later.clone();
        let superseding = tokio::spawn(async move { waiting.supersede_earlier().await });
        earlier.superseded().await;
        // It goes on until it has ended in order.
        tokio::time::sleep(2 * OPTIONS.process_ttl).await;
        assert!(!superseding.is_finished());
        assert!(earlier.running().await.unwrap().contains(&earlier.id()));
        earlier.leave().await;
        superseding.await.unwrap().unwrap();
        let error = join(&state, 4).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{error}");
        assert_eq!(later.running().await.unwrap(), BTreeSet::from([same.id(), later.id()]));
        for unconcerned in [&same, &later] {
            let superseded = tokio::time::timeout(OPTIONS.process_ttl, unconcerned.superseded());
            assert!(superseded.await.is_err(), "a process of the same format is superseded");
        }
    }

    #[tokio::test]
    async fn killed_process_of_an_earlier_format_is_waited_for_until_its_record_expires() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        drop(join(&state, 4).await.unwrap());
        let later = join(&state, 5).await.unwrap();
        later.supersede_earlier().await.unwrap();
        assert_eq!(later.running().await.unwrap(), BTreeSet::from([later.id()]));
        Peers::alone().supersede_earlier().await.unwrap();
    }

    #[tokio::test]
    async fn records_of_versions_without_formats_count_as_earlier() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let id = Uuid::new_v4();
        let record = Write::put_for(process_key(id), Expect::Any, Vec::new(), OPTIONS.process_ttl);
        state.apply(vec![record]).await.unwrap();
        assert_eq!(processes_of(&*state).await.unwrap(), [Peer { id, format: 0, is_exclusive: false }]);
    }

    #[tokio::test]
    async fn process_that_is_restarted_ends_the_records_of_its_predecessor() {
        let (state, folder) = (Arc::new(MemoryState::new()), tempfile::tempdir().unwrap());
        let state: Arc<dyn StateStore> = state;
        let file = folder.path().join("process");
        let first = ProcessId::remembered(file.clone()).await.unwrap();
        assert_eq!(first.predecessor, None);
        let options = PeerOptions::default();
        let peers =
            Peers::join(Arc::clone(&state), Process { id: first, ..process(4) }, options).await.unwrap();
        assert!(peers.leads("janitor").await.unwrap());
        // Its record lives for a minute, as after a kill.
        drop(peers);
        let second = ProcessId::remembered(file.clone()).await.unwrap();
        assert_eq!(second.predecessor, Some(first.own));
        let peers =
            Peers::join(Arc::clone(&state), Process { id: second, ..process(4) }, options).await.unwrap();
        assert_eq!(peers.running().await.unwrap(), BTreeSet::from([second.own]));
        assert!(peers.leads("janitor").await.unwrap());
        std::fs::write(&file, "12").unwrap();
        assert_eq!(ProcessId::remembered(file).await.unwrap().predecessor, None);
    }

    #[tokio::test]
    async fn exclusive_process_works_alone() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let exclusive = || Process { is_exclusive: true, ..process(4) };
        let join = async |process| Peers::join(Arc::clone(&state), process, OPTIONS).await;
        let alone = join(exclusive()).await.unwrap();
        for process in [exclusive(), process(4)] {
            let error = join(process).await.unwrap_err();
            assert!(
                error.kind() == ErrorKind::Invalid && error.to_string().contains("another process"),
                "{error}"
            );
        }
        assert_eq!(alone.running().await.unwrap(), BTreeSet::from([alone.id()]), "who was refused has left");
        alone.leave().await;
        let shared = join(process(4)).await.unwrap();
        let error = join(exclusive()).await.unwrap_err();
        assert!(error.to_string().contains("other processes (1)"), "{error}");
        shared.leave().await;
        join(exclusive()).await.unwrap();
    }

    /// As a process that is stopped and continued, or whose machine is suspended.
    #[tokio::test]
    async fn exclusive_process_that_stood_still_takes_no_work_until_it_knows_that_it_is_alone() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        for is_replaced in [false, true] {
            let stands_still = Arc::new(AtomicBool::new(false));
            let faults = Arc::clone(&stands_still);
            let fault = move |_: &str| faults.load(Ordering::SeqCst).then_some(ErrorKind::Unavailable);
            let own: Arc<dyn StateStore> = Arc::new(FailingState::new(Arc::clone(&state), fault));
            let exclusive = || Process { is_exclusive: true, ..process(4) };
            let peers = Peers::join(own, exclusive(), OPTIONS).await.unwrap();
            peers.verify().unwrap();
            let queue = FencedQueue::new(Arc::new(MemoryQueue::new()), peers.clone());
            let claim = async || queue.claim(Duration::from_secs(60), Duration::ZERO).await;
            queue.push(TaskId::from_bytes([1; 16]), Duration::ZERO).await.unwrap();
            stands_still.store(true, Ordering::SeqCst);
            let ended = Peers::running_on(&*state);
            assert_eq!(ended.await.unwrap(), BTreeSet::from([peers.id()]));
            eventually(async || Peers::running_on(&*state).await.unwrap().is_empty()).await;
            let error = peers.verify().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert_eq!(claim().await.unwrap_err().kind(), ErrorKind::Unavailable);
            let other = match is_replaced {
                true => Some(Peers::join(Arc::clone(&state), exclusive(), OPTIONS).await.unwrap()),
                false => None,
            };
            stands_still.store(false, Ordering::SeqCst);
            let Some(other) = other else {
                eventually(async || peers.verify().is_ok()).await;
                assert!(claim().await.unwrap().is_some());
                peers.leave().await;
                continue;
            };
            let reason = peers.superseded().await;
            assert!(reason.contains("another process works on the same records"), "{reason}");
            peers.verify().unwrap_err();
            claim().await.unwrap_err();
            assert_eq!(other.running().await.unwrap(), BTreeSet::from([other.id()]));
            other.verify().unwrap();
        }
    }
}
