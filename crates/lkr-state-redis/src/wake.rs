//! Wakes the claims that wait for a task, when another process queues one.

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use deadpool::managed::Manager as _;
use deadpool_redis::redis::{Cmd, RedisResult, Value, cmd};
use tokio::{
    sync::{Notify, futures::Notified},
    task::AbortHandle,
    time::{sleep, timeout},
};

use crate::{client::RedisClient, link::Link, reply};

/// How long the server waits for a new entry before it answers that there is none.
const BLOCK: Duration = Duration::from_secs(5);
/// The pause before the next attempt to connect.
const PAUSE: Duration = Duration::from_millis(500);

/// The wake-ups of a queue. A task of its own waits for them on a connection of its own; dropping this ends it.
#[derive(Debug)]
pub(crate) struct Wake {
    shared: Arc<Shared>,
    task: AbortHandle,
}

#[derive(Debug, Default)]
struct Shared {
    changed: Notify,
    is_up: AtomicBool,
}

impl Wake {
    pub(crate) fn start(client: Arc<RedisClient>) -> Self {
        let shared = Arc::<Shared>::default();
        let task = tokio::spawn(listen(Arc::downgrade(&shared), client)).abort_handle();
        Self { shared, task }
    }

    /// Wakes the claims of this process.
    pub(crate) fn notify(&self) {
        self.shared.changed.notify_waiters();
    }

    pub(crate) fn notified(&self) -> Notified<'_> {
        self.shared.changed.notified()
    }

    /// Whether wake-ups of other processes arrive.
    pub(crate) fn is_up(&self) -> bool {
        self.shared.is_up.load(Ordering::Relaxed)
    }
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn listen(shared: Weak<Shared>, client: Arc<RedisClient>) {
    loop {
        let error = listen_once(&shared, &client).await;
        let Some(shared) = shared.upgrade() else { return };
        shared.is_up.store(false, Ordering::Relaxed);
        // Those that wait look again, and then poll.
        shared.changed.notify_waiters();
        tracing::debug!(error, "wake-ups of the queue do not arrive; polling");
        sleep(PAUSE).await;
    }
}

/// Listens until something fails; returns the reason.
async fn listen_once(shared: &Weak<Shared>, client: &RedisClient) -> String {
    let limit = client.config.connect_timeout;
    let mut link = match timeout(limit.saturating_mul(2), client.links().create()).await {
        Ok(Ok(link)) => link,
        Ok(Err(error)) => return error.to_string(),
        Err(_) => return "connecting took too long".to_owned(),
    };
    let stream = client.keys.wake();
    let last = cmd("XREVRANGE").arg(&stream).arg("+").arg("-").arg("COUNT").arg(1).to_owned();
    let mut last = match send(&mut link, &last, client.config.command_timeout).await {
        Ok(value) => last_id(&value).unwrap_or_else(|| "0-0".to_owned()),
        Err(reason) => return reason,
    };
    let Some(listening) = shared.upgrade() else { return "dropped".to_owned() };
    listening.is_up.store(true, Ordering::Relaxed);
    // What was queued before the last entry has been read.
    listening.changed.notify_waiters();
    drop(listening);
    loop {
        let mut read = cmd("XREAD");
        read.arg("BLOCK").arg(u64::try_from(BLOCK.as_millis()).unwrap_or(1));
        read.arg("STREAMS").arg(&stream).arg(&last);
        match send(&mut link, &read, BLOCK.saturating_add(client.config.command_timeout)).await {
            Ok(Value::Nil) => {}
            Ok(value) => match (newest(&value), shared.upgrade()) {
                (Some(id), Some(shared)) => {
                    last = id;
                    shared.changed.notify_waiters();
                }
                _ => return "the stream has an unknown form".to_owned(),
            },
            Err(reason) => return reason,
        }
    }
}

async fn send(link: &mut Link, command: &Cmd, limit: Duration) -> Result<Value, String> {
    let sent: Result<RedisResult<Value>, _> = timeout(limit, link.send(command)).await;
    sent.map_err(|_| "no answer in time".to_owned())?.map_err(|error| error.to_string())
}

/// The id of the last of these entries.
fn last_id(entries: &Value) -> Option<String> {
    let Value::Array(entries) = entries else { return None };
    let Value::Array(entry) = entries.last()? else { return None };
    reply::text(entry.first()?)
}

/// The id of the last entry in an answer of XREAD: streams, each a name and its entries.
fn newest(value: &Value) -> Option<String> {
    match value {
        Value::Array(streams) => match streams.first()? {
            Value::Array(stream) => last_id(stream.get(1)?),
            _ => None,
        },
        Value::Map(streams) => last_id(&streams.first()?.1),
        _ => None,
    }
}
