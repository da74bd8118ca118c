use std::{
    collections::{BTreeMap, HashMap},
    sync::Arc,
    time::{Duration, Instant},
};

use lkr_domain::{EventId, WebhookId};
use lkr_state::{Expect, Order, Record, Write};
use tokio::{
    task::{Id, JoinError, JoinHandle, JoinSet},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Outcome, Result,
    attempt::{Tried, attempt},
    clock::{millis, now_ms},
    delivery::{applied, count, sweep, take},
    records::{DeliveryV1, EVENTS, EventV1, HookV1, Hooks, decode, delivery_key, encode},
    webhooks::Inner,
};

/// How many events are put down for the webhooks in one step.
const BATCH: usize = 50;

/// How many bytes of bodies, at least one: each is copied for every webhook.
const BATCH_BYTES: usize = 1024 * 1024;

/// How often deliveries are counted anew, and those of webhooks that are no more looked for.
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

/// A webhook, as its deliveries see it. Each has a lane of its own, so that none waits for another's receiver.
#[derive(Debug, Default)]
struct Lane {
    /// How many deliveries there are.
    waiting: usize,
    /// Whether the last try failed.
    is_failing: bool,
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
        let hooks = self.inner.hooks().await?;
        self.tidy(&hooks).await?;
        self.put_down(&hooks).await?;
        for hook in &hooks.all {
            self.begin(hook).await?;
        }
        Ok(())
    }

    /// Counts what waits, now and then and for new webhooks, and removes what waits for those that are no more.
    async fn tidy(&mut self, hooks: &Hooks) -> Result<()> {
        let lanes = self.lanes.len();
        self.lanes.retain(|id, _| hooks.has(*id));
        let is_due = self.tidied.is_none_or(|at| at.elapsed() > TIDY);
        if is_due || self.lanes.len() < lanes {
            sweep(&*self.inner.parts.state, hooks).await?;
        }
        // Where nobody else is at the store, what was taken before this process began was left in the middle.
        let is_first = self.tidied.is_none() && !self.inner.parts.outbox.is_shared;
        let release = is_first.then(now_ms);
        for hook in &hooks.all {
            if is_due || !self.lanes.contains_key(&hook.id) {
                let waiting = count(&*self.inner.parts.state, hook.id, release).await?;
                self.lanes.entry(hook.id).or_default().waiting = waiting;
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
            let events = state.scan(EVENTS, None, Order::Ascending, BATCH).await?;
            if events.is_empty() {
                return Ok(());
            }
            let is_last = events.len() < BATCH;
            let events = within(events);
            let mut step = vec![hooks.check()];
            let mut sums: BTreeMap<WebhookId, (usize, usize)> = BTreeMap::new();
            for (key, record) in &events {
                step.push(Write::delete(key, Expect::Version(record.version)));
                let id = key.strip_prefix(EVENTS).and_then(|id| id.parse::<EventId>().ok());
                let (Some(id), Ok(event)) = (id, decode::<EventV1>(&record.value)) else {
                    tracing::error!(key, "an event cannot be read, and is told to nobody");
                    continue;
                };
                for hook in hooks.all.iter().filter(|hook| hook.hears(&event.kind)) {
                    let (added, dropped) = sums.entry(hook.id).or_default();
                    let waiting = self.lanes.get(&hook.id).map_or(0, |lane| lane.waiting) + *added;
                    if waiting >= self.inner.parts.options.most_waiting {
                        *dropped += 1;
                        continue;
                    }
                    *added += 1;
                    step.push(put(hook.id, id, &event)?);
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

    /// Notes how many deliveries each webhook got, and how many it did not.
    fn add(&mut self, sums: BTreeMap<WebhookId, (usize, usize)>) {
        for (hook, (added, dropped)) in sums {
            let lane = self.lanes.entry(hook).or_default();
            lane.waiting += added;
            if dropped > 0 {
                tracing::warn!(%hook, dropped, waiting = lane.waiting, "too many deliveries wait: new ones are dropped");
            }
            (0..dropped).for_each(|_| (self.inner.parts.observe)(Outcome::Dropped));
        }
    }

    /// Begins deliveries of a webhook that are due, as many as may be under way.
    async fn begin(&mut self, hook: &HookV1) -> Result<()> {
        let options = &self.inner.parts.options;
        let under_way = self.under_way.values().filter(|id| **id == hook.id).count();
        let free = options.at_once.saturating_sub(under_way);
        // Who shares the store may have put down some that are not counted here.
        let is_alone = !self.inner.parts.outbox.is_shared;
        let is_idle = self.lanes.get(&hook.id).is_none_or(|lane| lane.waiting == 0);
        if free == 0 || is_alone && is_idle {
            return Ok(());
        }
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
        if tried.outcome != Outcome::Retried {
            lane.waiting = lane.waiting.saturating_sub(1);
        }
        tell(hook, lane, &tried);
    }
}

/// Says in the log what an admin should know. A receiver that is away for long is not told of with every delivery.
fn tell(hook: WebhookId, lane: &mut Lane, tried: &Tried) {
    let reason = tried.failure.as_deref().unwrap_or_default();
    match tried.outcome {
        Outcome::Expired => {
            tracing::warn!(%hook, reason, "a delivery was tried for as long as it is, and is dropped");
        }
        Outcome::Gone => tracing::warn!(%hook, reason, "a delivery is not wanted, and is dropped"),
        Outcome::Retried if !lane.is_failing => {
            tracing::warn!(%hook, reason, "deliveries fail; they are tried again");
        }
        Outcome::Delivered if lane.is_failing => tracing::info!(%hook, "deliveries arrive again"),
        _ => tracing::debug!(%hook, reason, outcome = tried.outcome.name(), "a delivery was tried"),
    }
    lane.is_failing = tried.outcome != Outcome::Delivered;
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

fn put(hook: WebhookId, id: EventId, event: &EventV1) -> Result<Write> {
    let EventV1 { at_ms, body, .. } = event;
    let delivery = DeliveryV1 { at_ms: *at_ms, attempts: 0, taken: false, body: body.clone() };
    Ok(Write::put(delivery_key(hook, now_ms(), id), Expect::Absent, encode(delivery)?))
}
