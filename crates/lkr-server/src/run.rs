//! The life of the server: bind, open the services, serve, stop.

use std::{future::Future, net::SocketAddr, sync::Arc, time::Duration};

use actix_web::web::Data;
use anyhow::{Result, bail};
use lkr_auth::OperatorToken;
use tokio::runtime::Handle;

use crate::{
    config::{Config, ProcessRole},
    first_admin,
    listener::{HttpServer, serve},
    logging::LogWriter,
    open::open_services,
    state::{AppOptions, AppState},
    traces::{ExporterOptions, SpanReceiver, start_exporter},
};

/// How long requests in flight may take after a stop.
const REQUEST_GRACE_PERIOD: Duration = Duration::from_secs(30);

/// How long running tasks may take after a stop. The next start resumes the others.
const TASK_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// How long webhook deliveries in progress may take after a stop. The next start delivers the others.
const DELIVERY_GRACE_PERIOD: Duration = Duration::from_secs(5);

/// How long the last bytes of the last responses may take to leave the process.
const FLUSH_GRACE_PERIOD: Duration = Duration::from_millis(200);

/// How long the threads of the HTTP server may take to end.
const CLOSE_GRACE_PERIOD: Duration = Duration::from_secs(2);

/// How often the number of requests in flight, and of references to the state, is read after a stop.
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(20);

/// How long sending the last spans of traces may take after a stop.
const TRACE_GRACE_PERIOD: Duration = Duration::from_secs(3);

/// What a start of the server is given besides the configuration.
#[derive(Default)]
pub(crate) struct StartOptions {
    /// The spans that are sent to the collector of the configuration.
    pub(crate) spans: Option<SpanReceiver>,
    /// What writes the log, if it is this server's.
    pub(crate) log: Option<LogWriter>,
    /// A credential of this process.
    pub(crate) operator: Option<OperatorToken>,
    /// Called with the addresses once requests are served.
    pub(crate) on_ready: Option<OnReady>,
}

/// Receives the addresses that the server listens on.
pub(crate) type OnReady = Box<dyn FnOnce(&[SocketAddr]) + Send>;

/// Runs the server until `stop` completes, and ingests on the runtime `ingestion`.
///
/// It listens at once and refuses requests until the stores are open.
///
/// # Errors
/// What prevents a start: an address or a data folder in use, or a store or model that cannot be opened. After a stop in order,
/// that a process of a later version upgrades the stores.
pub(crate) async fn run(
    config: Config,
    started: StartOptions,
    ingestion: &Handle,
    stop: impl Future<Output = ()>,
) -> Result<()> {
    let StartOptions { spans, log, operator, on_ready } = started;
    let state = Data::new(AppState::new(AppOptions {
        require_login_for_reads: config.require_login_for_reads,
        initial_password_file: Some(first_admin::password_file(&config.data_dir)),
        register_enabled: config.auth_register_enabled,
        trusted_proxies: config.trusted_proxies.clone(),
        cors_origins: config.cors_origins.clone(),
        upload_extensions: config.upload_allowed_extensions.clone(),
        upload_max_bytes: config.upload_max_size_mb.saturating_mul(1024 * 1024),
        upload_spool_bytes: config.upload_spool_mb.saturating_mul(1024 * 1024),
        slow_search: Some(Duration::from_millis(config.slow_search_ms)).filter(|limit| !limit.is_zero()),
        operator,
        is_worker_only: config.role == ProcessRole::Worker,
    }));
    if let Some(log) = log {
        tokio::spawn(log.report_dropped(state.metrics.dropped_log_lines.clone()));
    }
    let (server, addresses) = serve(&config.listen, &state, REQUEST_GRACE_PERIOD)?;
    tokio::pin!(stop);
    let services = tokio::select! {
        services = open_services(&config, &state, ingestion) => services,
        () = &mut stop => {
            server.end().await;
            return Ok(());
        }
    };
    let services = match services {
        Ok(services) => services,
        Err(error) => {
            server.end().await;
            return Err(error);
        }
    };
    let exporter = spans.zip(config.otlp_endpoint.clone()).map(|(spans, endpoint)| {
        let outgoing = services.outgoing.clone();
        let counters = state.metrics.trace_spans.clone();
        start_exporter(spans, ExporterOptions { endpoint, outgoing, counters })
    });
    // Those that answer requests do not deliver.
    let deliverer = (config.role != ProcessRole::Api).then(|| services.webhooks.start());
    state.open(services.clone());
    for address in &addresses {
        tracing::info!("ready at http://{address}");
    }
    if let Some(on_ready) = on_ready {
        on_ready(&addresses);
    }
    let superseded = tokio::select! {
        () = stop => None,
        reason = services.kb.superseded() => Some(reason),
    };
    tracing::info!("stopping");
    drain(&state, server).await;
    services.kb.shutdown(TASK_GRACE_PERIOD).await;
    if let Some(deliverer) = deliverer {
        deliverer.shutdown(DELIVERY_GRACE_PERIOD).await;
    }
    if let Some(exporter) = exporter {
        exporter.shutdown(TRACE_GRACE_PERIOD).await;
    }
    if let Some(fallback) = &services.fallback {
        fallback.close().await;
    }
    drop(services);
    close_stores(state).await;
    if let Some(reason) = superseded {
        bail!("{reason}");
    }
    Ok(())
}

/// Refuses new requests and waits for those in flight, but not for idle connections, which it ends.
async fn drain(state: &AppState, server: HttpServer) {
    state.stop();
    let graceful = server.refuse_connections();
    let drained = async {
        while state.in_flight() > 0 {
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        }
        tokio::time::sleep(FLUSH_GRACE_PERIOD).await;
    };
    let done = async {
        tokio::select! {
            () = graceful => {}
            () = drained => {}
        }
    };
    if tokio::time::timeout(REQUEST_GRACE_PERIOD, done).await.is_err() {
        tracing::warn!(
            in_flight = state.in_flight(),
            grace_period_s = REQUEST_GRACE_PERIOD.as_secs(),
            "grace period expired; requests in flight were cut off"
        );
    }
    server.end().await;
}

/// Closes the stores, which the last reference to the state does. The threads of the HTTP server have others until they end: the end
/// of the process would cut them off.
async fn close_stores(state: Data<AppState>) {
    let state = state.into_inner();
    let is_last = async {
        while Arc::strong_count(&state) > 1 {
            tokio::time::sleep(DRAIN_POLL_INTERVAL).await;
        }
    };
    if tokio::time::timeout(CLOSE_GRACE_PERIOD, is_last).await.is_err() {
        tracing::warn!("the stores are still in use and were not closed");
    }
}
