//! Opens the stores that a configuration names instead of the embedded ones.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result, anyhow};
use futures_util::TryFutureExt;
use lkr::{
    OtherStores, SharedState,
    ports::{
        ObjectStore, StateStore, VectorStore,
        state::{MergePolicy, ProcessId, RecordsLost, RememberedClaims, ScanOrder},
    },
    until_available,
};
use lkr_auth::AuthMergePolicy;
use lkr_blobs_s3::{S3Config, S3Location};
use lkr_settings::SettingsMergePolicy;
use lkr_spaces::SpacesMergePolicy;
use lkr_state_fallback::{FallbackConfig, FallbackState};
use lkr_state_redis::{Opened, RedisConfig, RedisStore};
use lkr_vectors_qdrant::{QdrantOptions, QdrantVectors, Quantization};
use uuid::Uuid;

use crate::{
    config::{Config, QdrantQuantization, ReadConsistency, StateBackend, VectorsBackend},
    open::create_private_dir,
};

/// The file in the data folder with the name of the Redis installation.
const INSTALLATION: &str = "redis-installation";

/// The folder in the data folder with the claims of the process.
const CLAIMS: &str = "claims";

/// The file in the data folder with the id of the process among its peers.
const PROCESS: &str = "process";

/// The stores outside of the data folder.
pub(crate) struct OpenStores {
    /// What the knowledge base works on.
    pub(crate) stores: OtherStores,
    /// The records, if they are in Redis: they tell whether it is away.
    pub(crate) fallback: Option<Arc<FallbackState>>,
}

/// Opens the stores outside of the data folder.
///
/// # Errors
/// A store that cannot be reached or does not keep what it acknowledges.
pub(crate) async fn open_stores(config: &Config) -> Result<OpenStores> {
    let (vectors, state, blobs) =
        tokio::try_join!(open_vectors(config), open_state(config), open_blobs(config))?;
    let (fallback, state) = state.unzip();
    Ok(OpenStores { stores: OtherStores { vectors, state, blobs }, fallback })
}

pub(crate) async fn open_vectors(config: &Config) -> Result<Option<Arc<dyn VectorStore>>> {
    if config.vectors != VectorsBackend::Qdrant {
        return Ok(None);
    }
    let url = config.qdrant_url.as_deref().ok_or_else(|| anyhow!("vectors = qdrant needs qdrant_url"))?;
    let qdrant = qdrant_options(config, url);
    let open = || QdrantVectors::open(qdrant.clone());
    let store = until_available("Qdrant", open, lkr::ports::vectors::Error::is_retryable)
        .await
        .context("cannot open the vector store in Qdrant")?;
    Ok(Some(Arc::new(store)))
}

fn qdrant_options(config: &Config, url: &str) -> QdrantOptions {
    let mut qdrant = QdrantOptions::new(url);
    qdrant.api_key.clone_from(&config.qdrant_api_key);
    qdrant.prefix.clone_from(&config.qdrant_prefix);
    qdrant.shard_number = config.qdrant_shards;
    qdrant.replication_factor = config.qdrant_replicas;
    qdrant.write_consistency_factor = config.qdrant_write_consistency;
    qdrant.read_consistency = config.qdrant_read_consistency.map(|consistency| match consistency {
        ReadConsistency::Majority => lkr_vectors_qdrant::ReadConsistency::Majority,
        ReadConsistency::Quorum => lkr_vectors_qdrant::ReadConsistency::Quorum,
        ReadConsistency::All => lkr_vectors_qdrant::ReadConsistency::All,
    });
    qdrant.on_disk = config.qdrant_on_disk;
    qdrant.quantization = match config.qdrant_quantization {
        QdrantQuantization::None => Quantization::None,
        QdrantQuantization::Int8 => Quantization::ScalarInt8,
        QdrantQuantization::Binary => Quantization::Binary,
    };
    qdrant.read_timeout = Duration::from_millis(config.qdrant_timeout_ms);
    qdrant.connect_timeout = Duration::from_millis(config.qdrant_connect_timeout_ms);
    qdrant.write_timeout = Duration::from_millis(config.qdrant_write_timeout_ms);
    qdrant
}

/// The records in Redis, without what goes on from memory.
///
/// # Errors
/// Redis cannot be reached, or lost its records.
pub(crate) async fn open_redis(config: &Config) -> Result<Arc<dyn StateStore>> {
    create_private_dir(&config.data_dir).await?;
    Ok(Arc::new(open_redis_store(config).await?.state()))
}

async fn open_state(config: &Config) -> Result<Option<(Arc<FallbackState>, SharedState)>> {
    if config.state != StateBackend::Redis {
        return Ok(None);
    }
    let store = open_redis_store(config).await?;
    let policies: Vec<Arc<dyn MergePolicy>> =
        vec![Arc::new(AuthMergePolicy), Arc::new(SpacesMergePolicy), Arc::new(SettingsMergePolicy)];
    let mut options = FallbackConfig::new(journal_dir(config));
    options.sentinel = Some(lkr_auth::INITIALISED.to_owned());
    let records = FallbackState::open(Arc::new(store.state()), policies, options)
        .await
        .context("cannot open the journal of changes made while Redis is away")?;
    let records = Arc::new(records);
    // The journal is locked, so no other process works with this folder.
    let file = config.data_dir.join(PROCESS);
    let process = ProcessId::remembered(file.clone())
        .await
        .with_context(|| format!("cannot read and replace {}", file.display()))?;
    let claims = config.data_dir.join(CLAIMS);
    let queue = RememberedClaims::open(Arc::new(store.queue()), claims.clone())
        .await
        .with_context(|| format!("cannot use {}", claims.display()))?;
    let export = Arc::new(store.state());
    let state = SharedState { records: Arc::clone(&records) as _, queue: Arc::new(queue), process, export };
    Ok(Some((records, state)))
}

/// The folder with the changes made while Redis was away.
pub(crate) fn journal_dir(config: &Config) -> PathBuf {
    config.data_dir.join("redis-journal")
}

async fn open_redis_store(config: &Config) -> Result<RedisStore> {
    let redis = redis_config(config).await?;
    let file = config.data_dir.join(INSTALLATION);
    let remembered = remembered_installation(&file).await;
    let open = || RedisStore::open(redis.clone(), remembered);
    let Opened { store, installation, found_empty, warnings } =
        until_available("Redis", open, lkr::ports::state::Error::is_retryable)
            .await
            .context("cannot open the state store in Redis")?;
    // Records that a repair restored are in a new installation. An empty store would treat every text as garbage, and make
    // a new first admin.
    let is_empty = || is_empty(&store);
    if found_empty && until_available("Redis", is_empty, lkr::ports::state::Error::is_retryable).await? {
        return Err(anyhow!(
            "Redis has lost its records: its installation is {installation} and no longer {}. Restore them from the points and \
             texts with `lkr doctor --shared --repair`, or remove {} if an empty Redis is intended",
            remembered.unwrap_or_default(),
            file.display()
        ));
    }
    tokio::fs::write(&file, installation.to_string())
        .await
        .with_context(|| format!("cannot write {}", file.display()))?;
    warn_of(&warnings);
    Ok(store)
}

/// The store in Redis, for commands: it may have lost its records.
///
/// # Errors
/// Redis cannot be reached.
pub(crate) async fn open_redis_for_repair(config: &Config) -> Result<SharedState> {
    let Opened { store, warnings, .. } = RedisStore::open(redis_config(config).await?, None)
        .await
        .context("cannot open the state store in Redis")?;
    warn_of(&warnings);
    let (records, queue) = (Arc::new(store.state()), Arc::new(store.queue()));
    Ok(SharedState { export: Arc::clone(&records) as _, records, queue, process: ProcessId::new() })
}

fn warn_of(warnings: &[String]) {
    for warning in warnings {
        tracing::warn!("Redis may lose acknowledged writes: {warning}");
    }
}

async fn redis_config(config: &Config) -> Result<RedisConfig> {
    let url = config.redis_url.as_deref().ok_or_else(|| anyhow!("state = redis needs redis_url"))?;
    let mut redis = RedisConfig::new(url);
    redis.prefix.clone_from(&config.redis_prefix);
    redis.wait_replicas = config.redis_wait_replicas;
    redis.allow_weak_durability = config.redis_allow_weak_durability;
    redis.tls_authorities = match &config.redis_ca_file {
        Some(file) => Some(read(file).await?),
        None => None,
    };
    Ok(redis)
}

pub(crate) async fn open_blobs(config: &Config) -> Result<Option<Arc<dyn ObjectStore>>> {
    let Some(location) = config.object_store() else { return Ok(None) };
    let location: S3Location = location.parse()?;
    let (id, secret) = (config.s3_access_key_id.clone(), config.s3_secret_access_key.clone());
    let (id, secret) = id.zip(secret).ok_or_else(|| anyhow!("blobs in an object store need a key"))?;
    let mut s3 = S3Config::new(location.clone(), config.s3_region.clone(), id, secret);
    s3.endpoint = config.s3_endpoint.as_deref().map(str::parse).transpose().context("bad s3_endpoint")?;
    s3.ca_file.clone_from(&config.s3_ca_file);
    let store = lkr_blobs_s3::open(&s3).with_context(|| format!("cannot open {location}"))?;
    let check = || lkr_blobs_s3::check(&store, &location);
    until_available("the object store", check, lkr_blobs_s3::Error::is_retryable)
        .await
        .with_context(|| format!("cannot use {location}"))?;
    Ok(Some(store))
}

async fn is_empty(store: &RedisStore) -> lkr::ports::state::Result<bool> {
    Ok(store.state().scan("", None, ScanOrder::Ascending, 1).await?.is_empty())
}

/// Repeats a step of the start that works on the records while these are away. Redis that lost them is not waited for, nor is a
/// full disk of the data folder.
///
/// # Errors
/// What is not ended by waiting.
pub(crate) async fn until_records_answer<T, E, F>(config: &Config, step: impl Fn() -> F) -> Result<T>
where
    E: Into<anyhow::Error>,
    F: Future<Output = Result<T, E>>,
{
    let is_shared = config.is_shared();
    let step = || step().map_err(Into::into);
    until_available("Redis", step, |error| is_shared && is_away(error)).await
}

/// Whether a service failed because its store is away.
fn is_away(error: &anyhow::Error) -> bool {
    let is_retryable = error.chain().any(|cause| {
        cause.downcast_ref().is_some_and(lkr_auth::Error::is_retryable)
            || cause.downcast_ref().is_some_and(lkr_spaces::Error::is_retryable)
            || cause.downcast_ref().is_some_and(lkr_webhooks::Error::is_retryable)
    });
    is_retryable && !RecordsLost::caused(error.as_ref())
}

/// The name of the Redis installation that the data folder was used with last.
async fn remembered_installation(file: &Path) -> Option<Uuid> {
    let text = tokio::fs::read_to_string(file).await.ok()?;
    text.trim().parse().ok()
}

async fn read(file: &Path) -> Result<Vec<u8>> {
    tokio::fs::read(file).await.with_context(|| format!("cannot read {}", file.display()))
}

#[cfg(test)]
mod tests {
    use lkr::ports::state::{Error as StateError, ErrorKind as StateErrorKind};

    use super::*;

    #[test]
    fn time_limits_of_qdrant_are_those_of_the_configuration() {
        let limits =
            |options: QdrantOptions| [options.connect_timeout, options.read_timeout, options.write_timeout];
        let url = "http://127.0.0.1:6334";
        assert_eq!(limits(qdrant_options(&Config::default(), url)), limits(QdrantOptions::new(url)));
        let config = Config {
            qdrant_connect_timeout_ms: 1,
            qdrant_timeout_ms: 2,
            qdrant_write_timeout_ms: 3,
            ..Config::default()
        };
        assert_eq!(limits(qdrant_options(&config, url)), [1, 2, 3].map(Duration::from_millis));
    }

    #[test]
    fn start_waits_for_redis_unless_its_records_are_lost() {
        let failure = |cause: StateError| anyhow::Error::new(lkr_auth::Error::from(cause)).context("a step");
        let unavailable = StateError::new(StateErrorKind::Unavailable, "get", "connection refused");
        assert!(is_away(&failure(unavailable)));
        assert!(!is_away(&failure(StateError::records_lost("get"))));
        assert!(!is_away(&failure(StateError::new(StateErrorKind::Corrupt, "get", "bad record"))));
        assert!(!is_away(&anyhow!("cannot write a file")));
    }

    #[tokio::test]
    async fn installation_is_remembered_unless_its_file_is_damaged() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(INSTALLATION);
        assert_eq!(remembered_installation(&file).await, None);
        let id = Uuid::from_u128(7);
        std::fs::write(&file, format!("{id}\n")).unwrap();
        assert_eq!(remembered_installation(&file).await, Some(id));
        std::fs::write(&file, "half").unwrap();
        assert_eq!(remembered_installation(&file).await, None);
    }
}
