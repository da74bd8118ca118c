use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_domain::{EventId, WebhookId};
use lkr_state::{Expect, Record, ScanOrder, Write};
use tokio::{
    task::{Id, JoinError, JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    DeliveryOptions, DeliveryOutcome, ErrorKind, Result,
    attempt::{Tried, attempt},
    clock::{millis, now_ms},
    delivery::{applied, count, pull_back, sweep, take},
    lane::Lane,
    records::{DeliveryV1, EVENTS, EventV1, HookV1, Hooks, decode, delivery_key, encode},
    webhooks::Inner,
};

/// How many events are put down for the webhooks in one step.
const BATCH: usize = 50;

/// How many bytes of bodies, at least one: each is copied for every webhook.
const BATCH_BYTES: usize = 1024 * 1024;

/// How often deliveries of webhooks that are no more are looked for, and such as are put off for too long.
const TIDY: Duration = Duration::from_secs(60);

/// What delivers. It ends when it is shut down or dropped; what was not delivered by then is at the next start.
#[derive(Debug)]
pub struct Deliverer {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl Deliverer {
    pub(crate) fn start(inner: Arc<Inner>) -> Self {
        let stop = CancellationToken::new();
        let run = Run::new(inner);
        Self { task: tokio::spawn(run.until(stop.clone())), stop }
    }

    /// Begins no further delivery, and gives those on their way some `patience`.
    pub async fn shutdown(mut self, patience: Duration) {
        self.stop.cancel();
        let _ = timeout(patience, &mut self.task).await;
    }
}

impl Drop for Deliverer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

struct Run {
    inner: Arc<Inner>,
    lanes: BTreeMap<WebhookId, Lane>,
    tries: JoinSet<Result<Tried>>,
    under_way: HashMap<Id, WebhookId>,
    tidied: Option<Instant>,
}

impl Run {
    fn new(inner: Arc<Inner>) -> Self {
        let (lanes, tries, under_way) = (BTreeMap::new(), JoinSet::new(), HashMap::new());
        Self { inner, lanes, tries, under_way, tidied: None }
    }

    async fn until(mut self, stop: CancellationToken) {
        while !stop.is_cancelled() {
            if let Err(error) = self.round().await {
                tracing::warn!(%error, "webhooks cannot be seen to; it will be tried again");
                tokio::select! {
                    () = sleep(Duration::from_secs(1)) => {}
                    () = stop.cancelled() => {}
                }
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = self.inner.wake.notified() => {}
                () = sleep(self.inner.parts.options.look) => {}
                Some(ended) = self.tries.join_next_with_id() => self.note(ended),
            }
            while let Some(ended) = self.tries.try_join_next_with_id() {
                self.note(ended);
            }
        }
        while let Some(ended) = self.tries.join_next_with_id().await {
            self.note(ended);
        }
    }

    /// Puts down what happened, and begins what is due.
    async fn round(&mut self) -> Result<()> {
        let hooks = match self.inner.hooks().await {
            // Webhooks are off, which has been said.
            Err(error) if error.kind() == ErrorKind::Corrupt => return Ok(()),
            hooks => hooks?,
        };
        self.tidy(&hooks).await?;
        self.put_down(&hooks).await?;
        for hook in &hooks.all {
            self.begin(hook).await?;
        }
        Ok(())
    }

    /// Counts what waits for webhooks that are new here, and removes what waits for those that are no more.
    async fn tidy(&mut self, hooks: &Hooks) -> Result<()> {
        let lanes = self.lanes.len();
        self.lanes.retain(|id, _| hooks.has(*id));
        let is_due = self.tidied.is_none_or(|at| at.elapsed() > TIDY);
        if is_due || self.lanes.len() < lanes {
            sweep(&*self.inner.parts.state, hooks).await?;
        }
        // Where nobody else is at the store, what was taken before this process began was left in the middle.
        let is_shared = self.inner.parts.outbox.is_shared;
        let release = (self.tidied.is_none() && !is_shared).then(now_ms);
        for hook in &hooks.all {
            // Others at the store put down and deliver too.
            if is_due && is_shared || !self.lanes.contains_key(&hook.id) {
                let waiting = count(&*self.inner.parts.state, hook.id, release).await?;
                self.lanes.entry(hook.id).or_default().recount(waiting);
            }
            if is_due {
                let DeliveryOptions { keep, lease, .. } = self.inner.parts.options;
                let (now, longest) = (now_ms(), millis(keep).saturating_add(millis(lease)));
                let latest = now.saturating_add(longest);
                pull_back(&*self.inner.parts.state, hook.id, now, latest).await?;
            }
        }
        if is_due {
            self.tidied = Some(Instant::now());
        }
        Ok(())
    }

    /// Makes deliveries of what happened, one for each webhook that wants to hear it.
    async fn put_down(&mut self, hooks: &Hooks) -> Result<()> {
        loop {
            let state = &*self.inner.parts.state;
            let events = state.scan(EVENTS, None, ScanOrder::Ascending, BATCH).await?;
            if events.is_empty() {
                return Ok(());
            }
            let is_last = events.len() < BATCH;
            let events = within(events);
            let mut step = vec![hooks.check()];
            let mut sums: BTreeMap<WebhookId, Sum> = BTreeMap::new();
            for (key, record) in &events {
                step.push(Write::delete(key, Expect::Version(record.version)));
                let id = key.strip_prefix(EVENTS).and_then(|id| id.parse::<EventId>().ok());
                let (Some(id), Ok(event)) = (id, decode::<EventV1>(&record.value)) else {
                    tracing::error!(key, "an event cannot be read, and is told to nobody");
                    continue;
                };
                for hook in hooks.all.iter().filter(|hook| hook.hears(&event.kind)) {
                    let record = fresh(&event)?;
                    let sum = sums.entry(hook.id).or_default();
                    if self.has_room(hook.id, sum, record.len()) {
                        sum.add(id, record.len());
                        step.push(Write::put(delivery_key(hook.id, now_ms(), id), Expect::Absent, record));
                    } else {
                        sum.dropped += 1;
                    }
                }
            }
            if !applied(state, step).await? {
                // The webhooks changed meanwhile, or another process was faster.
                return Ok(());
            }
            self.add(sums);
            if is_last {
                // Those that were too much for one step come with the next round.
                return Ok(());
            }
        }
    }

    /// Whether one more delivery of so many bytes may wait for a webhook that gets `sum` besides.
    fn has_room(&self, hook: WebhookId, sum: &Sum, bytes: usize) -> bool {
        let options = &self.inner.parts.options;
        let (count, stored) = self.lanes.get(&hook).map_or((0, 0), |lane| (lane.count(), lane.bytes()));
        count + sum.added.len() < options.most_waiting
            && stored + sum.bytes + bytes <= options.most_waiting_bytes
    }

    /// Notes which deliveries each webhook got, and how many it did not.
    fn add(&mut self, sums: BTreeMap<WebhookId, Sum>) {
        for (hook, Sum { added, dropped, .. }) in sums {
            let lane = self.lanes.entry(hook).or_default();
            added.into_iter().for_each(|(event, bytes)| lane.add(event, bytes));
            if dropped > 0 {
                let (waiting, bytes) = (lane.count(), lane.bytes());
                tracing::warn!(%hook, dropped, waiting, bytes, "too many deliveries wait: new ones are dropped");
            }
            (0..dropped).for_each(|_| (self.inner.parts.observe)(DeliveryOutcome::Dropped));
        }
    }

    /// Begins deliveries of a webhook that are due, as many as may be under way.
    async fn begin(&mut self, hook: &HookV1) -> Result<()> {
        let options = &self.inner.parts.options;
        let under_way = self.under_way.values().filter(|id| **id == hook.id).count();
        let free = options.at_once.saturating_sub(under_way);
        let now = now_ms();
        let until = now.saturating_add(millis(options.lease));
        for taken in take(&*self.inner.parts.state, hook.id, free, now, until).await? {
            let started = self.tries.spawn(attempt(Arc::clone(&self.inner), hook.clone(), taken));
            self.under_way.insert(started.id(), hook.id);
        }
        Ok(())
    }

    /// Notes how a try ended.
    fn note(&mut self, ended: Result<(Id, Result<Tried>), JoinError>) {
        let (id, tried) = match ended {
            Ok((id, Ok(tried))) => (id, Some(tried)),
            Ok((id, Err(error))) => {
                tracing::warn!(%error, "what came of a delivery cannot be written; it may be made again");
                (id, None)
            }
            Err(error) => {
                tracing::error!(%error, "a delivery failed by a programming error");
                (error.id(), None)
            }
        };
        let (Some(hook), Some(tried)) = (self.under_way.remove(&id), tried) else { return };
        (self.inner.parts.observe)(tried.outcome);
        let Some(lane) = self.lanes.get_mut(&hook) else { return };
        lane.note(hook, &tried);
    }
}

/// What one step puts down for a webhook.
#[derive(Default)]
struct Sum {
    added: Vec<(EventId, usize)>,
    bytes: usize,
    dropped: usize,
}

impl Sum {
    fn add(&mut self, event: EventId, bytes: usize) {
        self.added.push((event, bytes));
        self.bytes += bytes;
    }
}

/// The first records, as many as may be copied in one step.
fn within(events: Vec<(String, Record)>) -> Vec<(String, Record)> {
    let mut bytes = 0;
    let fits = |(_, record): &(String, Record)| {
        let is_first = bytes == 0;
        bytes += record.value.len().max(1);
        is_first || bytes <= BATCH_BYTES
    };
    events.into_iter().take_while(fits).collect()
}

/// A delivery that was not tried yet, as it is stored.
fn fresh(event: &EventV1) -> Result<Vec<u8>> {
    let EventV1 { at_ms, body, .. } = event;
    encode(DeliveryV1 { at_ms: *at_ms, attempts: 0, taken: false, body: body.clone() })
}
