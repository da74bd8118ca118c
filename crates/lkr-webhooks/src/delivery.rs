//! The stored deliveries, step by step. Each is one record, whose key tells when it is due: whoever takes it moves it
//! behind the end of its lease, where it is due again should nobody come back.

use lkr_domain::{EventId, WebhookId};
use lkr_state::{ErrorKind as StateErrorKind, Expect, Record, ScanOrder, StateStore, StateStoreExt, Write};

use crate::{
    Result,
    records::{DELIVERIES, DeliveryV1, Hooks, decode, deliveries_of, delivery_key, encode, parse_delivery},
};

/// How many records are read at once; each may be of 256 KiB and more.
const PAGE: usize = 50;

/// A delivery that somebody is at.
#[derive(Debug)]
pub(crate) struct Taken {
    pub(crate) hook: WebhookId,
    pub(crate) event: EventId,
    pub(crate) delivery: DeliveryV1,
    key: String,
    version: u64,
}

/// Takes up to `limit` deliveries of a webhook that are due, until `until_ms`.
pub(crate) async fn take(
    state: &dyn StateStore,
    hook: WebhookId,
    limit: usize,
    now_ms: u64,
    until_ms: u64,
) -> Result<Vec<Taken>> {
    let mut taken = Vec::new();
    // One after the other: those that are not due are not read, but for the first.
    for _ in 0..limit {
        let first = state.scan(&deliveries_of(hook), None, ScanOrder::Ascending, 1).await?.pop();
        let Some((key, record)) = first else { break };
        let read = parse_delivery(&key).zip(decode::<DeliveryV1>(&record.value).ok());
        let Some(((_, due_ms, event), delivery)) = read else {
            tracing::error!(key, "a delivery cannot be read, and is dropped");
            applied(state, vec![Write::delete(key, Expect::Version(record.version))]).await?;
            continue;
        };
        if due_ms > now_ms {
            break;
        }
        // What was written while the clock ran ahead has its day from now on.
        let at_ms = delivery.at_ms.min(now_ms);
        let delivery = DeliveryV1 { taken: true, at_ms, ..delivery };
        let to = delivery_key(hook, until_ms, event);
        if applied(state, moving(&key, record.version, &to, encode(&delivery)?)).await?
            && let Some(record) = state.get(&to).await?
        {
            taken.push(Taken { hook, event, delivery, key: to, version: record.version });
        }
    }
    Ok(taken)
}

impl Taken {
    /// Removes it.
    pub(crate) async fn finish(&self, state: &dyn StateStore) -> Result<()> {
        Ok(state.apply(vec![Write::delete(&self.key, Expect::Any)]).await?)
    }

    /// Gives it back, to be tried again. Nothing happens where it went meanwhile, or somebody else took it.
    pub(crate) async fn give_back(&self, state: &dyn StateStore, due_ms: u64) -> Result<()> {
        let attempts = self.delivery.attempts.saturating_add(1);
        let delivery = DeliveryV1 { attempts, taken: false, ..self.delivery.clone() };
        let to = delivery_key(self.hook, due_ms, self.event);
        applied(state, moving(&self.key, self.version, &to, encode(&delivery)?)).await.map(drop)
    }
}

/// The step that moves a delivery from one key to another, which may be the same: each key stands once in a step.
fn moving(from: &str, version: u64, to: &str, delivery: Vec<u8>) -> Vec<Write> {
    if from == to {
        return vec![Write::put(to, Expect::Version(version), delivery)];
    }
    vec![Write::delete(from, Expect::Version(version)), Write::put(to, Expect::Absent, delivery)]
}

/// The deliveries that wait for a webhook, with how many bytes each is; those that somebody took are made due where
/// `release` is asked for.
pub(crate) async fn count(
    state: &dyn StateStore,
    hook: WebhookId,
    release: Option<u64>,
) -> Result<Vec<(EventId, usize)>> {
    let (mut waiting, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = state.scan(&deliveries_of(hook), after.as_deref(), ScanOrder::Ascending, PAGE).await?;
        for entry @ (key, record) in &page {
            // What cannot be read does not wait: it is dropped when it is due.
            let read = parse_delivery(key).zip(decode::<DeliveryV1>(&record.value).ok());
            let Some(((_, _, event), delivery)) = read else { continue };
            waiting.push((event, record.value.len()));
            if let Some(now_ms) = release.filter(|_| delivery.taken) {
                make_due(state, hook, entry, now_ms).await?;
            }
        }
        if page.len() < PAGE {
            return Ok(waiting);
        }
        after = page.into_iter().next_back().map(|(key, _)| key);
    }
}

/// Makes deliveries due that are so beyond `latest_ms`: nothing is put off for that long, so that they were written
/// while the clock ran ahead.
pub(crate) async fn pull_back(
    state: &dyn StateStore,
    hook: WebhookId,
    now_ms: u64,
    latest_ms: u64,
) -> Result<()> {
    let prefix = deliveries_of(hook);
    let mut after = format!("{prefix}{latest_ms:015}");
    loop {
        let page = state.scan(&prefix, Some(&after), ScanOrder::Ascending, PAGE).await?;
        for entry in &page {
            make_due(state, hook, entry, now_ms).await?;
        }
        match page.into_iter().next_back() {
            Some((key, _)) => after = key,
            None => return Ok(()),
        }
    }
}

/// Moves a delivery to where it is due now and nobody's. Nothing happens where it cannot be read or went meanwhile.
async fn make_due(
    state: &dyn StateStore,
    hook: WebhookId,
    (key, record): &(String, Record),
    now_ms: u64,
) -> Result<()> {
    let read = parse_delivery(key).zip(decode::<DeliveryV1>(&record.value).ok());
    let Some(((_, _, event), delivery)) = read else { return Ok(()) };
    let free = encode(DeliveryV1 { taken: false, ..delivery })?;
    let to = delivery_key(hook, now_ms, event);
    applied(state, moving(key, record.version, &to, free)).await.map(drop)
}

/// Removes deliveries of webhooks that are no more. It ends where the webhooks are not these any more.
pub(crate) async fn sweep(state: &dyn StateStore, hooks: &Hooks) -> Result<()> {
    let mut after = None::<String>;
    while let Some((key, _)) =
        state.scan(DELIVERIES, after.as_deref(), ScanOrder::Ascending, 1).await?.into_iter().next()
    {
        let hook = key.strip_prefix(DELIVERIES).and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let prefix = format!("{DELIVERIES}{hook}/");
        if !hook.parse().is_ok_and(|id| hooks.has(id)) && !remove(state, &prefix, hooks).await? {
            return Ok(());
        }
        // The character behind the slash: beyond all of this webhook's.
        after = Some(format!("{DELIVERIES}{hook}0"));
    }
    Ok(())
}

async fn remove(state: &dyn StateStore, prefix: &str, hooks: &Hooks) -> Result<bool> {
    loop {
        let page = state.scan(prefix, None, ScanOrder::Ascending, PAGE).await?;
        let count = page.len();
        let deletes = page.into_iter().map(|(key, _)| Write::delete(key, Expect::Any));
        if !applied(state, deletes.chain([hooks.check()]).collect()).await? {
            return Ok(false);
        }
        if count < PAGE {
            return Ok(true);
        }
    }
}

/// Does a step; `false` where something was not as it expects.
pub(crate) async fn applied(state: &dyn StateStore, step: Vec<Write>) -> Result<bool> {
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

    /// A receiver may ask to be left alone for just as long as the delivery is taken for.
    #[tokio::test]
    async fn what_is_given_back_at_the_end_of_its_lease_is_tried_again() {
        let (state, hook, event) = (MemoryState::new(), WebhookId::new(), EventId::new());
        let delivery = DeliveryV1 { at_ms: 1_000, attempts: 0, taken: false, body: "{}".to_owned() };
        let key = delivery_key(hook, 1_000, event);
        state.apply(vec![Write::put(key, Expect::Absent, encode(&delivery).unwrap())]).await.unwrap();
        for (attempts, now) in [(1, 2_000), (2, 5_000)] {
            let taken = take(&state, hook, 1, now, now + 3_000).await.unwrap().remove(0);
            taken.give_back(&state, now + 3_000).await.unwrap();
            let (key, record) =
                state.scan(&deliveries_of(hook), None, ScanOrder::Ascending, 2).await.unwrap().remove(0);
            assert_eq!(key, delivery_key(hook, now + 3_000, event));
            let left: DeliveryV1 = decode(&record.value).unwrap();
            assert_eq!((left.attempts, left.taken), (attempts, false));
        }
    }
}
