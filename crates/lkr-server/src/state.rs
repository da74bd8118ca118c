//! The application's state, shared by all requests.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use ipnet::IpNet;
use lkr::{
    KnowledgeBase,
    files::FileReader,
    ports::{ingest::TaskObserver, models::CallObserver, state::ContentionObserver},
};
use lkr_auth::{Auth, OperatorToken};
use lkr_outgoing::Outgoing;
use lkr_settings::Settings;
use lkr_spaces::{Directory, Spaces};
use lkr_state_fallback::FallbackState;
use lkr_webhooks::Webhooks;

use crate::{
    answer_cache::AnswerCache,
    chat_models::ChatModels,
    embedder_reconciler::EmbedderReconciler,
    error::{ApiError, ErrorCode},
    http::{self, BODY_LIMITS, ClientQuota, InFlight, QuotaLimits, ResponseMemory, Rights},
    metrics::Metrics,
    page_cache::PageCache,
    task_feed::TaskFeed,
    task_watch::TaskWatch,
};

/// The most streams of task events at once. Each holds a connection, and its task is read several times a second. See
/// docs/studies.md#limits-by-client.
const WATCHER_LIMITS: QuotaLimits =
    QuotaLimits { accounts: 1_000, per_account: 100, anonymous: 500, per_address: 50 };

/// The most pages that are shown at once. Each holds a copy of its file. Chosen, not measured: a browser sends six requests
/// at once.
const PAGE_LIMITS: QuotaLimits = QuotaLimits { accounts: 32, per_account: 8, anonymous: 16, per_address: 8 };

/// The most bytes of uploads on the disk that are not stored yet. All accounts together have what is free there.
fn upload_limits(options: &AppOptions) -> QuotaLimits {
    let bytes = options.upload_spool_bytes.max(options.upload_max_bytes);
    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
    QuotaLimits { accounts: usize::MAX, per_account: bytes, anonymous: usize::MAX, per_address: bytes }
}

/// The libraries behind the service.
#[derive(Debug, Clone)]
pub struct Services {
    /// Documents and searches.
    pub kb: KnowledgeBase,
    /// Parses uploaded files.
    pub files: FileReader,
    /// Accounts, sessions and API keys.
    pub auth: Auth,
    /// Spaces, groups and members.
    pub spaces: Spaces,
    /// The settings that can be changed while the service runs.
    pub settings: Settings,
    /// Applies the settings' embedding model.
    pub embedder_reconciler: EmbedderReconciler,
    /// Webhooks and their deliveries.
    pub webhooks: Webhooks,
    /// The settings' language models.
    pub chat_models: ChatModels,
    /// The client for outgoing requests.
    pub outgoing: Outgoing,
    /// The records, if they are in Redis: they tell whether it is away.
    pub fallback: Option<Arc<FallbackState>>,
}

impl Services {
    /// What a caller may do in spaces now, for a request that reads: an unavailable store is an internal error.
    pub(crate) async fn rights(&self, caller: Option<&http::Caller>) -> Result<Rights, ApiError> {
        Ok(Rights::of(caller, self.directory().await?))
    }

    /// What a caller may do in spaces now, for a request that may be sent again if a store is unavailable.
    pub(crate) async fn rights_to_write(&self, caller: Option<&http::Caller>) -> Result<Rights, ApiError> {
        Ok(Rights::of(caller, self.spaces.directory().await?))
    }

    /// The spaces, groups and members, for a request that reads: an unavailable store is an internal error.
    pub(crate) async fn directory(&self) -> Result<Arc<Directory>, ApiError> {
        self.spaces.directory().await.map_err(|error| match error.kind() {
            lkr_spaces::ErrorKind::Unavailable => ApiError::internal(&error),
            _ => error.into(),
        })
    }
}

/// The part of the configuration that requests depend on.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// Whether reads need a login too.
    pub require_login_for_reads: bool,
    /// The file with the first admin's generated password. It is removed when that password changes.
    pub initial_password_file: Option<PathBuf>,
    /// Whether anybody may register an account.
    pub register_enabled: bool,
    /// Proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// The origins of pages that browsers may send requests from.
    pub cors_origins: Vec<String>,
    /// The extensions of files that may be uploaded, in lower case with their dots.
    pub upload_extensions: Vec<String>,
    /// The largest file that may be uploaded, in bytes.
    pub upload_max_bytes: u64,
    /// The most bytes of uploads of one account at once; at least [`upload_max_bytes`](Self::upload_max_bytes) count.
    pub upload_spool_bytes: u64,
    /// Searches that take longer are logged; `None` for none.
    pub slow_search: Option<Duration>,
    /// A credential of this process, for a program that works on its own data folder.
    pub operator: Option<OperatorToken>,
    /// Whether this process only ingests: it answers nothing but questions about itself.
    pub is_worker_only: bool,
}

/// What all requests share: the options, and the services once they are open.
#[derive(Debug)]
pub struct AppState {
    pub(crate) options: AppOptions,
    pub(crate) metrics: Metrics,
    /// The memory of request bodies, in bytes.
    pub(crate) body_quota: Arc<ClientQuota>,
    /// The uploads that are on the disk and not stored yet, in bytes.
    pub(crate) upload_quota: Arc<ClientQuota>,
    pub(crate) response_memory: ResponseMemory,
    pub(crate) in_flight: InFlight,
    /// The streams of task events.
    pub(crate) watcher_quota: Arc<ClientQuota>,
    /// The pages that are being shown.
    pub(crate) page_quota: Arc<ClientQuota>,
    pub(crate) page_cache: PageCache,
    pub(crate) answer_cache: AnswerCache,
    pub(crate) task_feed: TaskFeed,
    services: OnceLock<Services>,
    stopping: AtomicBool,
}

impl AppState {
    /// A state whose services are not open yet.
    #[must_use]
    pub fn new(options: AppOptions) -> Self {
        Self {
            upload_quota: ClientQuota::new(upload_limits(&options)),
            options,
            metrics: Metrics::new(),
            body_quota: ClientQuota::new(BODY_LIMITS),
            response_memory: ResponseMemory::default(),
            in_flight: InFlight::default(),
            watcher_quota: ClientQuota::new(WATCHER_LIMITS),
            page_quota: ClientQuota::new(PAGE_LIMITS),
            page_cache: PageCache::default(),
            answer_cache: AnswerCache::default(),
            task_feed: TaskFeed::default(),
            services: OnceLock::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Sets the services; requests are served from now on. A second call changes nothing.
    pub fn open(&self, services: Services) {
        if self.services.set(services).is_err() {
            tracing::error!("services opened twice; the first ones stay");
        }
    }

    /// The number of requests in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Refuses requests from now on, including those over open connections.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    /// Counts the model calls of a purpose: embed, rerank, summarize or classify.
    #[must_use]
    pub fn call_observer(&self, purpose: &'static str) -> Arc<dyn CallObserver> {
        self.metrics.model_calls(purpose)
    }

    /// Counts and traces tasks.
    #[must_use]
    pub fn task_observer(&self) -> Arc<dyn TaskObserver> {
        Arc::new(TaskWatch::new(&self.metrics))
    }

    /// Counts operations that gave up because of contention.
    pub(crate) fn contention_observer(&self) -> ContentionObserver {
        self.metrics.contention()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(crate) fn services(&self) -> Result<&Services, ApiError> {
        self.services.get().ok_or_else(|| ApiError::new(ErrorCode::Overloaded, "the service is starting"))
    }
}
