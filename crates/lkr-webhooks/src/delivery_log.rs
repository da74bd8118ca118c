//! The log of each webhook's last deliveries. An entry is written in the same step as what happens to its delivery, so after a
//! crash the two agree.

use lkr_domain::{DocId, EventId, TaskId, WebhookId};
use lkr_state::{Expect, Key, Record, ScanOrder, StateStore, Write};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{
    Result,
    records::{DeliveryV1, LOG, decode, encode},
};

/// The most deliveries that the log of a webhook has. Later ones push out the earliest.
pub const MAX_LOGGED: usize = 100;

/// The most characters of an error that the log keeps. Chosen, not measured.
const MAX_ERROR_CHARS: usize = 500;

/// Entries per scan. More than [`MAX_LOGGED`] are there only until the next deliveries are created.
const PAGE: usize = 1_000;

/// A delivery in the log of its webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedDelivery {
    /// The id of its event, which each attempt sends as `X-Lkr-Delivery`.
    pub id: EventId,
    /// The name of the event's kind.
    pub event: String,
    /// The task that the event is about, if it is about one.
    pub task_id: Option<TaskId>,
    /// The document that the event is about, if it is about one.
    pub doc_id: Option<DocId>,
    /// When the event happened.
    pub at: OffsetDateTime,
    /// How far the delivery is.
    pub state: DeliveryState,
    /// How many attempts have ended.
    pub attempts: u32,
    /// The HTTP status of the last attempt; `None` if there was no response.
    pub status: Option<u16>,
    /// Why the last attempt failed; `None` if none failed or the last one succeeded.
    pub error: Option<String>,
    /// When the last attempt ended.
    pub attempted_at: Option<OffsetDateTime>,
    /// When the next attempt is due, if there will be one.
    pub next_attempt_at: Option<OffsetDateTime>,
}

/// How far a delivery is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DeliveryState {
    /// It waits for its first or next attempt.
    Waiting,
    /// The receiver accepted it.
    Delivered,
    /// It was retried for a day and given up.
    Expired,
    /// It was never attempted, because too many deliveries waited.
    Dropped,
}

impl DeliveryState {
    /// The name in responses.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivered => "delivered",
            Self::Expired => "expired",
            Self::Dropped => "dropped",
        }
    }
}

/// What happened to a delivery.
#[derive(Debug)]
pub(crate) struct LogEntry<'a> {
    pub(crate) state: DeliveryState,
    /// The number of attempts that have ended.
    pub(crate) attempts: u32,
    /// When the last attempt ended, in milliseconds since 1970.
    pub(crate) attempted_ms: Option<u64>,
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<&'a str>,
    /// When the next attempt is due.
    pub(crate) next_ms: Option<u64>,
}

impl LogEntry<'_> {
    /// The entry of a delivery that was not attempted yet.
    pub(crate) const fn new(state: DeliveryState, next_ms: Option<u64>) -> Self {
        Self { state, attempts: 0, attempted_ms: None, status: None, error: None, next_ms }
    }

    /// The write of the entry.
    pub(crate) fn put(&self, webhook: WebhookId, event: EventId, delivery: &DeliveryV1) -> Result<Write> {
        let Subject { event: kind, data } = serde_json::from_str(&delivery.body).unwrap_or_default();
        let SubjectIds { task_id, doc_id } = data.unwrap_or_default();
        let record = LogEntryV1 {
            event: kind,
            task_id,
            doc_id,
            at_ms: delivery.at_ms,
            state: self.state,
            attempts: self.attempts,
            attempted_ms: self.attempted_ms,
            status: self.status,
            error: self.error.map(|error| error.chars().take(MAX_ERROR_CHARS).collect()),
            next_ms: self.next_ms,
        };
        Ok(Write::put(format!("{}{event}", log_prefix(webhook)), Expect::Any, encode(record)?))
    }
}

/// The last deliveries of a webhook, by the time of their events, the newest first.
pub(crate) async fn read(state: &dyn StateStore, webhook: WebhookId) -> Result<Vec<LoggedDelivery>> {
    let prefix = log_prefix(webhook);
    let mut entries = scan(state, &prefix).await?;
    // The ids of events begin with their time.
    entries.reverse();
    let read = |(key, record): &(Key, Record)| {
        let id = key.strip_prefix(&prefix)?.parse().ok()?;
        Some(decode::<LogEntryV1>(&record.value).ok()?.into_logged(id))
    };
    Ok(entries.iter().filter_map(read).take(MAX_LOGGED).collect())
}

/// Removes the earliest entries of a webhook's log beyond [`MAX_LOGGED`].
pub(crate) async fn prune(state: &dyn StateStore, webhook: WebhookId) -> Result<()> {
    let entries = scan(state, &log_prefix(webhook)).await?;
    let surplus = entries.len().saturating_sub(MAX_LOGGED);
    let deletes: Vec<Write> =
        entries.into_iter().take(surplus).map(|(key, _)| Write::delete(key, Expect::Any)).collect();
    if deletes.is_empty() {
        return Ok(());
    }
    Ok(state.apply(deletes).await?)
}

async fn scan(state: &dyn StateStore, prefix: &str) -> Result<Vec<(Key, Record)>> {
    let (mut entries, mut after) = (Vec::new(), None::<Key>);
    loop {
        let page = state.scan(prefix, after.as_deref(), ScanOrder::Ascending, PAGE).await?;
        after = page.last().map(|(key, _)| key.clone());
        let is_last = page.len() < PAGE;
        entries.extend(page);
        if is_last {
            return Ok(entries);
        }
    }
}

/// The key prefix of the log of a webhook.
fn log_prefix(webhook: WebhookId) -> String {
    format!("{LOG}{webhook}/")
}

/// What the body of an event says it is about.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Subject {
    event: String,
    data: Option<SubjectIds>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SubjectIds {
    task_id: Option<TaskId>,
    doc_id: Option<DocId>,
}

/// Version 1 of an entry. Times are in milliseconds since 1970.
#[derive(Debug, Serialize, Deserialize)]
struct LogEntryV1 {
    event: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    task_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    doc_id: Option<DocId>,
    at_ms: u64,
    state: DeliveryState,
    attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    attempted_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next_ms: Option<u64>,
}

impl LogEntryV1 {
    fn into_logged(self, id: EventId) -> LoggedDelivery {
        LoggedDelivery {
            id,
            event: self.event,
            task_id: self.task_id,
            doc_id: self.doc_id,
            at: time_of(self.at_ms),
            state: self.state,
            attempts: self.attempts,
            status: self.status,
            error: self.error,
            attempted_at: self.attempted_ms.map(time_of),
            next_attempt_at: self.next_ms.map(time_of),
        }
    }
}

/// The time of milliseconds since 1970; 1970 itself for a number beyond all years.
fn time_of(ms: u64) -> OffsetDateTime {
    let nanoseconds = i128::from(ms) * 1_000_000;
    OffsetDateTime::from_unix_timestamp_nanos(nanoseconds).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}
