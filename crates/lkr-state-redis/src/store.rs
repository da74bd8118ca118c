//! Opening a store.

use std::{path::Path, sync::Arc};

use deadpool_redis::redis::{Value, cmd};
use lkr_state::{Error, ErrorKind, Result};
use uuid::Uuid;

use crate::{
    RedisConfig, RedisQueue, RedisState,
    client::{Call, RedisClient},
    durability, reply, restore, script,
};

/// A state store and a task queue on Redis. Cheap to clone; all clones share the connections.
#[derive(Debug, Clone)]
pub struct RedisStore {
    client: Arc<RedisClient>,
    queue: RedisQueue,
}

/// A store that was opened, and what was found.
#[derive(Debug)]
pub struct Opened {
    /// The store.
    pub store: RedisStore,
    /// The random name that the first open gave to the installation.
    pub installation: Uuid,
    /// Whether the installation is not the one that the caller remembers: the server was emptied, or another one answers.
    pub found_empty: bool,
    /// Why the server may lose acknowledged writes; empty unless `allow_weak_durability` is set.
    pub warnings: Vec<String>,
}

impl RedisStore {
    /// Opens the store, and checks that the server keeps what it acknowledges. `remembered` is the installation that the
    /// caller saw last, if any. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// `Invalid` if the configuration is invalid, the server is too old, or it may lose acknowledged writes and that is not
    /// allowed. `Unavailable` if the server is unreachable.
    pub async fn open(config: RedisConfig, remembered: Option<Uuid>) -> Result<Opened> {
        let client = Arc::new(RedisClient::new(config)?);
        let warnings = durability::check(&client).await?;
        client.read_clock("open").await?;
        let installation = install(&client).await?;
        client.set_installation(installation.to_string());
        let queue = RedisQueue::new(Arc::clone(&client));
        let found_empty = remembered.is_some_and(|remembered| remembered != installation);
        Ok(Opened { store: Self { client, queue }, installation, found_empty, warnings })
    }

    /// Puts the records of the snapshot in `folder` into the store, which must have none. An interrupted restore is begun
    /// again by calling this again; until then, the store cannot be opened. Tasks are not part of snapshots.
    ///
    /// # Errors
    /// `Invalid` if the store has records. `Corrupt` if the snapshot is damaged; then nothing was written.
    pub async fn restore(config: RedisConfig, folder: &Path) -> Result<()> {
        let client = RedisClient::new(config)?;
        durability::check(&client).await?;
        restore::restore(&client, folder).await
    }

    /// The records.
    #[must_use]
    pub fn state(&self) -> RedisState {
        RedisState::new(Arc::clone(&self.client))
    }

    /// The tasks.
    #[must_use]
    pub fn queue(&self) -> RedisQueue {
        self.queue.clone()
    }

    /// The name of the installation that the server has now; `None` if it was emptied. Once it differs from the opened one,
    /// every read and write of this store is `Unavailable`.
    ///
    /// # Errors
    /// `Unavailable` if the server is unreachable.
    pub async fn installation(&self) -> Result<Option<Uuid>> {
        let command = cmd("HGET").arg(self.client.keys.any()).arg("installation").to_owned();
        let name = self.client.command("installation", &command).await?;
        reply::text(&name).map(|name| parse(&name)).transpose()
    }
}

/// Names the installation if it has no name, and returns its name. One that has a name is only read, so that it can be opened while
/// the server refuses writes.
async fn install(client: &RedisClient) -> Result<Uuid> {
    let read = cmd("HMGET").arg(client.keys.any()).arg("installation").arg("restoring").to_owned();
    if let Value::Array(parts) = client.command("open", &read).await?
        && let [name, Value::Nil] = parts.as_slice()
        && let Some(name) = reply::text(name)
    {
        return parse(&name);
    }
    let (keys, name) = (client.keys.meta(), Uuid::new_v4().to_string());
    let call = Call { script: &script::INSTALL, keys: &keys, arguments: &[name.as_bytes()] };
    let answer = client.write("open", call).await?;
    let Value::Array(parts) = answer.value else { return crate::error::unexpected("open") };
    if parts.get(1) == Some(&Value::Int(1)) {
        let message = "restoring a snapshot into this store was interrupted; restore it again";
        return Err(Error::new(ErrorKind::Invalid, "open", message));
    }
    parse(&parts.first().and_then(reply::text).unwrap_or_default())
}

fn parse(name: &str) -> Result<Uuid> {
    let corrupt = |error| Error::new(ErrorKind::Corrupt, "open", error);
    Uuid::parse_str(name).map_err(corrupt)
}
