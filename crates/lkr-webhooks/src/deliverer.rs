use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::{
    FutureExt,
    future::{BoxFuture, join_all},
};
use lkr_domain::WebhookId;
use tokio::{
    task::{Id, JoinError, JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    DeliveryOptions, Error, ErrorKind, Result,
    attempt::{DeliveryAttempt, attempt},
    backlog::Backlog,
    clock::{millis, now_ms},
    delivery::{LeasedDelivery, lease_due, list_backlog, release_postponed, remove_orphans},
    delivery_log,
    records::{WebhookSet, WebhookV1},
    shared::WebhooksShared,
};

/// How often the store is searched for deliveries of deleted webhooks and for deliveries that are postponed too far. Chosen,
/// not measured.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(60);

/// The wait after a round that the store failed. Chosen, not measured.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Sends deliveries in the background until it is shut down or dropped. What was not delivered by then is delivered
/// after the next start.
#[derive(Debug)]
pub struct Deliverer {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Deliverer {
    pub(crate) fn start(shared: Arc<WebhooksShared>) -> Self {
        let stop = CancellationToken::new();
        let delivery_loop = DeliveryLoop::new(shared);
        Self { task: tokio::spawn(delivery_loop.run(stop.clone())), stop }
    }

    /// Starts no further attempt, and waits up to `grace_period` for those in flight.
    pub async fn shutdown(mut self, grace_period: Duration) {
        self.stop.cancel();
        let _ = timeout(grace_period, &mut self.task).await;
    }
}

impl Drop for Deliverer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

pub(crate) struct DeliveryLoop {
    pub(crate) shared: Arc<WebhooksShared>,
    pub(crate) backlogs: BTreeMap<WebhookId, Backlog>,
    attempts: JoinSet<Result<DeliveryAttempt>>,
    in_flight: HashMap<Id, WebhookId>,
    last_maintenance: Option<Instant>,
}

impl DeliveryLoop {
    fn new(shared: Arc<WebhooksShared>) -> Self {
        let (backlogs, attempts, in_flight) = (BTreeMap::new(), JoinSet::new(), HashMap::new());
        Self { shared, backlogs, attempts, in_flight, last_maintenance: None }
    }

    async fn run(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.round().await
                && !is_concurrent_change(&error)
            {
                tracing::warn!(%error, "webhook delivery round failed; retrying in 1 s");
                tokio::select! {
                    () = sleep(RETRY_DELAY) => {}
                    () = stop.cancelled() => {}
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.shared.wake.notified() => {}
                () = sleep(self.shared.deps.options.poll_interval) => {}
                Some(ended) = self.attempts.join_next_with_id() => self.record(ended),
            }
            while let Some(ended) = self.attempts.try_join_next_with_id() {
                self.record(ended);
            }
        }
        while let Some(ended) = self.attempts.join_next_with_id().await {
            self.record(ended);
        }
    }

    /// Creates deliveries of new events, and starts those that are due.
    async fn round(&mut self) -> Result<()> {
        let webhooks = match self.shared.load().await {
            // Webhooks are off, which was logged when it was found.
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(()),
            webhooks => webhooks?,
        };
        self.maintain(&webhooks).await?;
        self.create_deliveries(&webhooks).await?;
        self.start_due(&webhooks).await
    }

    /// Counts the backlogs of webhooks that are new to this process, and removes those of deleted webhooks.
    async fn maintain(&mut self, webhooks: &WebhookSet) -> Result<()> {
        let state = &*self.shared.deps.state;
        let known = self.backlogs.len();
        self.backlogs.retain(|id, _| webhooks.has(*id));
        let is_due = self.last_maintenance.is_none_or(|at| at.elapsed() > MAINTENANCE_INTERVAL);
        if is_due || self.backlogs.len() < known {
            remove_orphans(state, webhooks).await?;
        }
        // If no other process uses the store, every lease from before this start was left by a process that ended.
        let is_shared = self.shared.deps.outbox.is_shared;
        let release_at = (self.last_maintenance.is_none() && !is_shared).then(|| now_ms(state));
        for webhook in &webhooks.all {
            // Other processes on a shared store create and finish deliveries too, so the count must be renewed.
            if is_due && is_shared || !self.backlogs.contains_key(&webhook.id) {
                let stored = list_backlog(state, webhook.id, release_at).await?;
                self.backlogs.entry(webhook.id).or_default().recount(stored);
            }
            if is_due {
                let DeliveryOptions { max_age, lease, .. } = self.shared.deps.options;
                let (now, longest) = (now_ms(state), millis(max_age).saturating_add(millis(lease)));
                release_postponed(state, webhook.id, now, now.saturating_add(longest)).await?;
                delivery_log::prune(state, webhook.id).await?;
            }
        }
        if is_due {
            self.last_maintenance = Some(Instant::now());
        }
        Ok(())
    }

    /// Starts due deliveries of each webhook, up to its concurrency limit. The webhooks do not wait for each other's steps.
    async fn start_due(&mut self, webhooks: &WebhookSet) -> Result<()> {
        let shared = Arc::clone(&self.shared);
        let (state, options) = (&*shared.deps.state, &shared.deps.options);
        let now = now_ms(state);
        let lease_end = now.saturating_add(millis(options.lease));
        let mut leases: Vec<BoxFuture<'_, Result<Vec<LeasedDelivery>>>> = Vec::new();
        for webhook in &webhooks.all {
            let in_flight = self.in_flight.values().filter(|id| **id == webhook.id).count();
            let free = options.concurrency.saturating_sub(in_flight);
            leases.push(lease_due(state, webhook.id, free, now, lease_end).boxed());
        }
        let mut failure = None;
        for (webhook, leased) in webhooks.all.iter().zip(join_all(leases).await) {
            match leased {
                Ok(leased) => leased.into_iter().for_each(|leased| self.start(webhook, leased)),
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(()), Err)
    }

    fn start(&mut self, webhook: &WebhookV1, leased: LeasedDelivery) {
        let started = self.attempts.spawn(attempt(Arc::clone(&self.shared), webhook.clone(), leased));
        self.in_flight.insert(started.id(), webhook.id);
    }

    /// Records how an attempt ended.
    fn record(&mut self, ended: Result<(Id, Result<DeliveryAttempt>), JoinError>) {
        let (id, attempt) = match ended {
            Ok((id, Ok(attempt))) => (id, Some(attempt)),
            Ok((id, Err(error))) => {
                tracing::warn!(%error, "webhook delivery outcome not stored; the delivery may be sent again");
                (id, None)
            }
            Err(error) => {
                tracing::error!(%error, "webhook delivery attempt panicked");
                (error.id(), None)
            }
        };
        let (Some(webhook), Some(attempt)) = (self.in_flight.remove(&id), attempt) else { return };
        (self.shared.deps.observe)(attempt.outcome);
        if let Some(backlog) = self.backlogs.get_mut(&webhook) {
            backlog.record(webhook, &attempt);
        }
    }
}

/// Whether an error only says that another process was faster. The store works, so the next round comes as usual.
fn is_concurrent_change(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conflict | ErrorKind::Contention)
}
