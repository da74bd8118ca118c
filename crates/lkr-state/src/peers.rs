//! The processes that work on one store: which of them run, and which of them does what one alone should do.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::task::AbortHandle;
use uuid::Uuid;

use crate::{ErrorKind, Expect, Result, ScanOrder, StateStore, StateStoreExt, Write};

/// The key prefix of the records of running processes; the id follows.
const PROCESSES: &str = "process/";

/// The key prefix of the records of leaders; the role follows.
const LEADERS: &str = "leader/";

/// Records per scan.
const BATCH: usize = 1_000;

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
    renewal: AbortHandle,
    /// Whether this process may lead.
    may_lead: AtomicBool,
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
    /// dropped or [left](Self::leave).
    ///
    /// # Errors
    /// Those of the store.
    pub async fn join(state: Arc<dyn StateStore>, options: PeerOptions) -> Result<Self> {
        let id = Uuid::new_v4();
        renew(&*state, id, options).await?;
        let renewed = Arc::clone(&state);
        let renewal = tokio::spawn(async move {
            loop {
                tokio::time::sleep(options.process_ttl / 6).await;
                if let Err(error) = renew(&*renewed, id, options).await {
                    tracing::debug!(%error, "cannot renew the record of this process; will retry");
                }
            }
        });
        let may_lead = AtomicBool::new(true);
        let shared = SharedStore { state, options, renewal: renewal.abort_handle(), may_lead };
        Ok(Self { inner: Arc::new(PeersInner { id, shared: Some(shared) }) })
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
        let (mut running, mut after) = (BTreeSet::new(), None::<String>);
        loop {
            let page = state.scan(PROCESSES, after.as_deref(), ScanOrder::Ascending, BATCH).await?;
            let id = |key: &String| Uuid::parse_str(key.strip_prefix(PROCESSES)?).ok();
            running.extend(page.iter().filter_map(|(key, _)| id(key)));
            if page.len() < BATCH {
                return Ok(running);
            }
            after = page.into_iter().next_back().map(|(key, _)| key);
        }
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
        if let Err(error) = self.remove_records(shared).await {
            tracing::debug!(%error, "cannot remove the record of this process; it will expire");
        }
    }

    async fn remove_records(&self, shared: &SharedStore) -> Result<()> {
        let own = self.inner.id.to_string();
        let leaders = shared.state.scan(LEADERS, None, ScanOrder::Ascending, BATCH).await?;
        for (key, record) in leaders.into_iter().filter(|(_, record)| record.value == own) {
            match shared.state.apply(vec![Write::delete(key, Expect::Version(record.version))]).await {
                Err(error) if error.kind() != ErrorKind::Conflict => return Err(error),
                _ => {}
            }
        }
        shared.state.apply(vec![Write::delete(process_key(self.inner.id), Expect::Any)]).await
    }
}

async fn renew(state: &dyn StateStore, id: Uuid, options: PeerOptions) -> Result<()> {
    state.apply(vec![Write::put_for(process_key(id), Expect::Any, Vec::new(), options.process_ttl)]).await
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
    use std::time::Instant;

    use super::*;
    use crate::MemoryState;

    /// So short that expiry is awaited quickly, so long that a renewal is not late on a busy machine.
    const OPTIONS: PeerOptions =
        PeerOptions { process_ttl: Duration::from_millis(1_200), leader_ttl: Duration::from_millis(600) };

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
        let one = Peers::join(Arc::clone(&state), OPTIONS).await.unwrap();
        let other = Peers::join(Arc::clone(&state), OPTIONS).await.unwrap();
        let both = BTreeSet::from([one.id(), other.id()]);
        // Longer than the records live without a renewal.
        let begun = Instant::now();
        while begun.elapsed() < 2 * OPTIONS.process_ttl {
            assert_eq!(one.running().await.unwrap(), both);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        drop(other);
        eventually(async || one.running().await.unwrap() == BTreeSet::from([one.id()])).await;
        let third = Peers::join(Arc::clone(&state), OPTIONS).await.unwrap();
        one.leave().await;
        assert_eq!(third.running().await.unwrap(), BTreeSet::from([third.id()]));
        assert_eq!(Peers::running_on(&*state).await.unwrap(), BTreeSet::from([third.id()]));
        third.leave().await;
        assert_eq!(Peers::running_on(&*state).await.unwrap(), BTreeSet::new());
    }

    #[tokio::test]
    async fn one_process_leads_until_it_stops_asking() {
        let state: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let one = Peers::join(Arc::clone(&state), OPTIONS).await.unwrap();
        let other = Peers::join(Arc::clone(&state), OPTIONS).await.unwrap();
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
            let peers = Peers::join(Arc::clone(&state), PeerOptions::default()).await.unwrap();
            asking.spawn(async move { (peers.leads("janitor").await.unwrap(), peers) });
        }
        let asked = asking.join_all().await;
        assert_eq!(asked.iter().filter(|(leads, _)| *leads).count(), 1);
    }
}
