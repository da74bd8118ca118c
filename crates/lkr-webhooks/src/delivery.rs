//! The stored deliveries. Each one is one record, whose key contains its due time. A process that takes a delivery moves
//! it to the end of a lease, so it becomes due again if the process ends.

use lkr_domain::{EventId, WebhookId};
use lkr_state::{ErrorKind as StateErrorKind, Expect, Record, ScanOrder, StateStore, Write};

use crate::{
    Result,
    delivery_log::LogEntry,
    records::{
        DELIVERIES, DeliveryV1, LOG, WebhookSet, decode, delivery_key, delivery_prefix, encode,
        parse_delivery_key,
    },
};

/// Records per scan. Chosen, not measured, to bound memory: each may have 256 KiB and more.
const PAGE: usize = 50;

/// A delivery that this process owns until its lease ends.
#[derive(Debug)]
pub(crate) struct LeasedDelivery {
    pub(crate) webhook: WebhookId,
    pub(crate) event: EventId,
    pub(crate) delivery: DeliveryV1,
    key: String,
    version: u64,
}

/// A delivery that is due.
struct DueDelivery {
    event: EventId,
    /// As it is while it is leased.
    delivery: DeliveryV1,
    key: String,
    version: u64,
    leased_key: String,
}

impl DueDelivery {
    /// The step that leases it.
    fn lease(&self) -> Result<Vec<Write>> {
        Ok(move_delivery(&self.key, self.version, &self.leased_key, encode(&self.delivery)?))
    }
}

/// Leases up to `limit` due deliveries of a webhook until `lease_end_ms`. Mostly it is one step, because each step waits for the
/// disk.
pub(crate) async fn lease_due(
    state: &dyn StateStore,
    webhook: WebhookId,
    limit: usize,
    now_ms: u64,
    lease_end_ms: u64,
) -> Result<Vec<LeasedDelivery>> {
    let due = read_due(state, webhook, limit, now_ms, lease_end_ms).await?;
    if due.is_empty() {
        return Ok(Vec::new());
    }
    let step = due.iter().map(DueDelivery::lease).collect::<Result<Vec<_>>>()?.concat();
    let taken = match apply_if_unchanged(state, step).await? {
        true => due,
        // Another process took one of them.
        false => lease_each(state, due).await?,
    };
    // If this fails, they are due again when the lease ends.
    let keys: Vec<_> = taken.iter().map(|due| due.leased_key.clone()).collect();
    let records = state.get_many(&keys).await?;
    let leased = taken.into_iter().zip(records).filter_map(|(due, record)| {
        let DueDelivery { event, delivery, leased_key, .. } = due;
        Some(LeasedDelivery { webhook, event, delivery, key: leased_key, version: record?.version })
    });
    Ok(leased.collect())
}

/// Leases deliveries one by one, and returns those that no other process took.
async fn lease_each(state: &dyn StateStore, due: Vec<DueDelivery>) -> Result<Vec<DueDelivery>> {
    let mut taken = Vec::new();
    for due in due {
        if apply_if_unchanged(state, due.lease()?).await? {
            taken.push(due);
        }
    }
    Ok(taken)
}

/// Up to `limit` due deliveries of a webhook, by their due times.
async fn read_due(
    state: &dyn StateStore,
    webhook: WebhookId,
    limit: usize,
    now_ms: u64,
    lease_end_ms: u64,
) -> Result<Vec<DueDelivery>> {
    let (mut due, mut after) = (Vec::new(), None::<String>);
    // One scan each: so at most one delivery is read that is not due.
    for _ in 0..limit {
        let next = state.scan(&delivery_prefix(webhook), after.as_deref(), ScanOrder::Ascending, 1).await?;
        let Some((key, record)) = next.into_iter().next() else { break };
        after = Some(key.clone());
        let Some((due_ms, event, delivery)) = parse_delivery(&key, &record) else {
            tracing::error!(key, "webhook delivery is damaged; dropped");
            apply_if_unchanged(state, vec![Write::delete(key, Expect::Version(record.version))]).await?;
            continue;
        };
        if due_ms > now_ms {
            break;
        }
        // A delivery that was written while the clock was ahead is retried for a day from now on.
        let at_ms = delivery.at_ms.min(now_ms);
        let delivery = DeliveryV1 { is_leased: true, at_ms, ..delivery };
        let leased_key = delivery_key(webhook, lease_end_ms, event);
        due.push(DueDelivery { event, delivery, key, version: record.version, leased_key });
    }
    Ok(due)
}

impl LeasedDelivery {
    /// Removes the delivery from the store, and logs why.
    pub(crate) async fn remove(&self, state: &dyn StateStore, entry: &LogEntry<'_>) -> Result<()> {
        let entry = entry.put(self.webhook, self.event, &self.delivery)?;
        Ok(state.apply(vec![Write::delete(&self.key, Expect::Any), entry]).await?)
    }

    /// Counts a failed attempt, logs it and makes the delivery due at `due_ms`. Does nothing if the delivery was removed, or
    /// another process took it after the lease ended.
    pub(crate) async fn reschedule(
        &self,
        state: &dyn StateStore,
        due_ms: u64,
        entry: &LogEntry<'_>,
    ) -> Result<()> {
        let attempts = self.delivery.attempts.saturating_add(1);
        let delivery = DeliveryV1 { attempts, is_leased: false, ..self.delivery.clone() };
        let to = delivery_key(self.webhook, due_ms, self.event);
        let mut step = move_delivery(&self.key, self.version, &to, encode(&delivery)?);
        step.push(entry.put(self.webhook, self.event, &delivery)?);
        apply_if_unchanged(state, step).await.map(drop)
    }
}

/// The due time, the event and the delivery of a record; `None` if it is damaged.
fn parse_delivery(key: &str, record: &Record) -> Option<(u64, EventId, DeliveryV1)> {
    let (_, due_ms, event) = parse_delivery_key(key)?;
    Some((due_ms, event, decode(&record.value).ok()?))
}

/// The step that moves a delivery to another key. Both keys may be equal, and a step may name each key only once.
fn move_delivery(from: &str, version: u64, to: &str, delivery: Vec<u8>) -> Vec<Write> {
    if from == to {
        return vec![Write::put(to, Expect::Version(version), delivery)];
    }
    vec![Write::delete(from, Expect::Version(version)), Write::put(to, Expect::Absent, delivery)]
}

/// The deliveries that wait for a webhook, with their sizes in bytes. If `release_at` is given, leased deliveries become
/// due at that time.
pub(crate) async fn list_backlog(
    state: &dyn StateStore,
    webhook: WebhookId,
    release_at: Option<u64>,
) -> Result<Vec<(EventId, usize)>> {
    let (mut backlog, mut after) = (Vec::new(), None::<String>);
    loop {
        let page =
            state.scan(&delivery_prefix(webhook), after.as_deref(), ScanOrder::Ascending, PAGE).await?;
        for entry @ (key, record) in &page {
            // A damaged delivery is not counted: it is dropped when it is due.
            let Some((_, event, delivery)) = parse_delivery(key, record) else { continue };
            backlog.push((event, record.value.len()));
            if let Some(now_ms) = release_at.filter(|_| delivery.is_leased) {
                make_due(state, webhook, entry, now_ms).await?;
            }
        }
        if page.len() < PAGE {
            return Ok(backlog);
        }
        after = page.into_iter().next_back().map(|(key, _)| key);
    }
}

/// Makes deliveries due now whose due time is after `latest_ms`. No delivery is postponed that far, so they were written
/// while the clock was ahead.
pub(crate) async fn release_postponed(
    state: &dyn StateStore,
    webhook: WebhookId,
    now_ms: u64,
    latest_ms: u64,
) -> Result<()> {
    let prefix = delivery_prefix(webhook);
    let mut after = format!("{prefix}{latest_ms:015}");
    loop {
        let page = state.scan(&prefix, Some(&after), ScanOrder::Ascending, PAGE).await?;
        for entry in &page {
            make_due(state, webhook, entry, now_ms).await?;
        }
        match page.into_iter().next_back() {
            Some((key, _)) => after = key,
            None => return Ok(()),
        }
    }
}

/// Makes a delivery due now and ends its lease. Does nothing if the record is damaged or was changed meanwhile.
async fn make_due(
    state: &dyn StateStore,
    webhook: WebhookId,
    (key, record): &(String, Record),
    now_ms: u64,
) -> Result<()> {
    let Some((_, event, delivery)) = parse_delivery(key, record) else { return Ok(()) };
    let released = encode(DeliveryV1 { is_leased: false, ..delivery })?;
    let to = delivery_key(webhook, now_ms, event);
    apply_if_unchanged(state, move_delivery(key, record.version, &to, released)).await.map(drop)
}

/// Removes the deliveries and the logs of deleted webhooks. Stops if `webhooks` has changed meanwhile.
pub(crate) async fn remove_orphans(state: &dyn StateStore, webhooks: &WebhookSet) -> Result<()> {
    for records in [DELIVERIES, LOG] {
        let mut after = None::<String>;
        while let Some((key, _)) =
            state.scan(records, after.as_deref(), ScanOrder::Ascending, 1).await?.into_iter().next()
        {
            let id = key.strip_prefix(records).and_then(|rest| rest.split('/').next()).unwrap_or_default();
            let prefix = format!("{records}{id}/");
            if !id.parse().is_ok_and(|id| webhooks.has(id)) && !remove_all(state, &prefix, webhooks).await? {
                return Ok(());
            }
            // `0` is the character after `/`, so this sorts after all records of this webhook.
            after = Some(format!("{records}{id}0"));
        }
    }
    Ok(())
}

async fn remove_all(state: &dyn StateStore, prefix: &str, webhooks: &WebhookSet) -> Result<bool> {
    loop {
        let page = state.scan(prefix, None, ScanOrder::Ascending, PAGE).await?;
        let count = page.len();
        let deletes = page.into_iter().map(|(key, _)| Write::delete(key, Expect::Any));
        if !apply_if_unchanged(state, deletes.chain([webhooks.check()]).collect()).await? {
            return Ok(false);
        }
        if count < PAGE {
            return Ok(true);
        }
    }
}

/// Applies a step; `false` if it met a conflict.
pub(crate) async fn apply_if_unchanged(state: &dyn StateStore, step: Vec<Write>) -> Result<bool> {
    match state.apply(step).await {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == StateErrorKind::Conflict => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use lkr_state::MemoryState;

    use super::*;
    use crate::DeliveryState;

    /// A receiver may ask to wait for exactly the length of the lease: then both keys are equal.
    #[tokio::test]
    async fn reschedule_to_the_end_of_the_lease_keeps_the_delivery() {
        let (state, webhook, event) = (MemoryState::new(), WebhookId::new(), EventId::new());
        let delivery = DeliveryV1 { at_ms: 1_000, attempts: 0, is_leased: false, body: "{}".to_owned() };
        let key = delivery_key(webhook, 1_000, event);
        state.apply(vec![Write::put(key, Expect::Absent, encode(&delivery).unwrap())]).await.unwrap();
        for (attempts, now) in [(1, 2_000), (2, 5_000)] {
            let leased = lease_due(&state, webhook, 1, now, now + 3_000).await.unwrap().remove(0);
            let entry = LogEntry::new(DeliveryState::Waiting, Some(now + 3_000));
            leased.reschedule(&state, now + 3_000, &entry).await.unwrap();
            let (key, record) =
                state.scan(&delivery_prefix(webhook), None, ScanOrder::Ascending, 2).await.unwrap().remove(0);
            assert_eq!(key, delivery_key(webhook, now + 3_000, event));
            let stored: DeliveryV1 = decode(&record.value).unwrap();
            assert_eq!((stored.attempts, stored.is_leased), (attempts, false));
        }
    }
}
