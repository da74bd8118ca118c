//! What all requests share.

use std::{
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
};

use ipnet::IpNet;
use lkr::{KnowledgeBase, files::FileReader};
use lkr_auth::Auth;
use lkr_outgoing::Outgoing;
use lkr_settings::Settings;
use lkr_webhooks::Webhooks;
use tokio::sync::Semaphore;

use crate::{
    chat_models::ChatModels,
    embedders::Embedders,
    error::{ApiError, Code},
    http::{AnswerRoom, BodyBudget, InFlight},
    metrics::Metrics,
};

/// The memory that bodies may take together: two of the largest, and a crowd of usual ones.
const BODIES_BYTES: usize = 256 * 1024 * 1024;

/// The memory that large answers may take together until they are sent.
const ANSWERS_BYTES: u32 = 256 * 1024 * 1024;

/// How many may watch tasks at a time: each has a connection, and is told within moments.
const WATCHERS: usize = 1_000;

/// The stores behind the service.
#[derive(Debug, Clone)]
pub struct Services {
    /// Documents and searches.
    pub kb: KnowledgeBase,
    /// What reads files.
    pub files: FileReader,
    /// Accounts, sessions and keys.
    pub auth: Auth,
    /// What can be changed while the service runs.
    pub settings: Settings,
    /// The embedding model that the settings name.
    pub embedders: Embedders,
    /// Who is told of what happens.
    pub webhooks: Webhooks,
    /// The language models that the settings name.
    pub chat_models: ChatModels,
    /// What calls models on other machines.
    pub outgoing: Outgoing,
}

/// What of the configuration requests depend on.
#[derive(Debug, Clone, Default)]
pub struct AppOptions {
    /// Whether reading needs a login too.
    pub require_login_for_reads: bool,
    /// The file with the first admin's password, which goes with that password.
    pub initial_password_file: Option<PathBuf>,
    /// Whether anybody may make an account.
    pub register_enabled: bool,
    /// Proxies whose X-Forwarded-For is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The extensions of files that may be uploaded, in lower case with their dots.
    pub upload_extensions: Vec<String>,
    /// The largest file that may be uploaded, in bytes.
    pub upload_max_bytes: u64,
}

/// What all requests share: the options, and the services once they are open.
#[derive(Debug)]
pub struct AppState {
    pub(crate) options: AppOptions,
    pub(crate) metrics: Metrics,
    pub(crate) bodies: BodyBudget,
    pub(crate) answers: AnswerRoom,
    pub(crate) in_flight: InFlight,
    /// Those who may watch tasks at a time.
    pub(crate) watchers: Arc<Semaphore>,
    services: OnceLock<Services>,
    stopping: AtomicBool,
}

impl AppState {
    /// A state whose services are not open yet.
    #[must_use]
    pub fn new(options: AppOptions) -> Self {
        Self {
            options,
            metrics: Metrics::new(),
            bodies: BodyBudget::new(BODIES_BYTES),
            answers: AnswerRoom::new(ANSWERS_BYTES),
            in_flight: InFlight::default(),
            watchers: Arc::new(Semaphore::new(WATCHERS)),
            services: OnceLock::new(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Puts the services in place; from now on requests are answered. The first ones stay.
    pub fn open(&self, services: Services) {
        if self.services.set(services).is_err() {
            tracing::error!("services were opened twice");
        }
    }

    /// How many requests are in flight.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.count()
    }

    /// Takes no more requests: those that still come over open connections are refused.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    pub(crate) fn services(&self) -> Result<&Services, ApiError> {
        self.services.get().ok_or_else(|| ApiError::new(Code::Overloaded, "the service is starting"))
    }
}
