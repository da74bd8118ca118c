//! The life of the server: bind, open, serve, stop.

use std::{future::Future, io::Write, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use actix_web::{HttpServer, dev::ServerHandle, web::Data};
use anyhow::{Context, Result, anyhow};
use lkr::{
    KnowledgeBase, OpenOptions, Taxonomy,
    files::{FilePlugins, FileReader, FileSource, FileTools},
};
use lkr_auth::{Auth, AuthOptions};
use lkr_outgoing::{Outgoing, Policy};
use lkr_settings::Settings;

use crate::{
    app::create_app,
    chat_models::ChatModels,
    config::Config,
    embedders::{Embedders, connect},
    first_admin,
    plugins::{find_tools, plugins},
    rerankers::Rerankers,
    secret_key,
    state::{AppOptions, AppState, Services},
    webhooks::{address_check, open_webhooks, outbox},
};

/// The argument that makes a process of this program a worker which reads one file.
pub const PARSE_WORKER: &str = "parse-worker";

/// How long requests in flight may take to end.
const PATIENCE: Duration = Duration::from_secs(30);

/// How long documents under work may take to end. What is not done by then goes on at the next start.
const TASK_PATIENCE: Duration = Duration::from_secs(5);

/// How long webhooks' deliveries on their way may take to end. What is not delivered by then is at the next start.
const DELIVERY_PATIENCE: Duration = Duration::from_secs(5);

/// How long a connection may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an idle connection is kept.
const KEEP_ALIVE: Duration = Duration::from_secs(30);

/// How long the last bytes of the last answers may take on their way.
const GRACE: Duration = Duration::from_millis(200);

/// Runs the server until `stop` is done.
///
/// It listens at once, and refuses requests as long as the stores are not open.
///
/// # Errors
/// What keeps the server from starting: an address or a data folder in use, a store or model that cannot be opened.
pub async fn run(config: Config, stop: impl Future<Output = ()>) -> Result<()> {
    let password_file = first_admin::password_file(&config.data_dir);
    let state = Data::new(AppState::new(AppOptions {
        require_login_for_reads: config.require_login_for_reads,
        initial_password_file: Some(password_file.clone()),
        register_enabled: config.auth_register_enabled,
        trusted_proxies: config.trusted_proxies.clone(),
        upload_extensions: config.upload_allowed_extensions.clone(),
        upload_max_bytes: config.upload_max_size_mb.saturating_mul(1024 * 1024),
    }));
    let (handle, addresses) = serve(&config, &state)?;
    tokio::pin!(stop);
    let services = tokio::select! {
        services = open(&config, &password_file, &state) => services,
        () = &mut stop => {
            handle.stop(false).await;
            return Ok(());
        }
    };
    let services = match services {
        Ok(services) => services,
        Err(error) => {
            handle.stop(false).await;
            return Err(error);
        }
    };
    let deliverer = services.webhooks.start();
    state.open(services.clone());
    for address in addresses {
        tracing::info!("ready at http://{address}");
    }
    stop.await;
    tracing::info!("stopping");
    finish(&state, &handle).await;
    services.kb.shutdown(TASK_PATIENCE).await;
    deliverer.shutdown(DELIVERY_PATIENCE).await;
    Ok(())
}

/// Binds and serves on threads of their own.
fn serve(config: &Config, state: &Data<AppState>) -> Result<(ServerHandle, Vec<SocketAddr>)> {
    let shared = state.clone();
    let server = HttpServer::new(move || create_app(shared.clone()))
        .client_request_timeout(HEAD_TIMEOUT)
        .client_disconnect_timeout(Duration::from_secs(5))
        // A client that hangs up ends what it asked for, the reading of its file above all. Over TCP that looks the
        // same as a client that has sent all and still listens; few do that, and they are not waited for.
        .h1_allow_half_closed(false)
        .keep_alive(KEEP_ALIVE)
        .shutdown_timeout(PATIENCE.as_secs())
        .disable_signals()
        .bind(&config.listen)
        .with_context(|| format!("cannot listen on {}", config.listen))?;
    let addresses = server.addrs();
    let server = server.run();
    let handle = server.handle();
    tokio::spawn(server);
    Ok((handle, addresses))
}

/// Opens the stores, makes the first admin and reads the settings.
async fn open(config: &Config, password_file: &Path, state: &AppState) -> Result<Services> {
    let taxonomy = load_taxonomy(config).await?;
    make_private(&config.data_dir)
        .await
        .with_context(|| format!("cannot make the data folder {}", config.data_dir.display()))?;
    let mut options = OpenOptions::new(&config.data_dir);
    options.blobs_dir = config.blobs_dir();
    options.uploads_dir = config.upload_dir();
    options.model_dir = config.model_dir();
    options.rerank_model_dir = config.rerank_model_dir();
    options.taxonomy = taxonomy;
    options.embedder_is_named_later = true;
    let (rerankers, chat_models) = (Rerankers::default(), ChatModels::default());
    options.rerankers = Some(Arc::new(rerankers.clone()));
    options.chat_models = Some(Arc::new(chat_models.clone()));
    options.search.second_round = config.second_round;
    let outbox = outbox();
    options.outbox = Some(Arc::new(outbox.clone()));
    options.contention = Some(state.metrics.contention());
    let kb = KnowledgeBase::open_with(options).await.map_err(|error| match error.kind() {
        lkr::ErrorKind::Conflict => {
            let folder = config.data_dir.display();
            anyhow!(error).context(format!("the data folder {folder} is in use by another process"))
        }
        _ => anyhow!(error),
    })?;
    let auth = Auth::new(kb.state(), &AuthOptions::default())?;
    first_admin::ensure(&auth, password_file, config.admin_password.as_deref()).await?;
    let tools = loadable(config, find_tools(config)).await?;
    let asked = tools.clone();
    let plugins = tokio::task::spawn_blocking(move || plugins(&asked)).await?;
    let policy = policy(config)?;
    let key = secret_key::load(config).await?;
    let settings = Settings::open_checking(kb.state(), key.clone(), plugins, address_check(policy.clone()))?;
    // What of the stored settings cannot be had here is told now, and not when the first file comes.
    if let Err(error) = settings.current().await {
        tracing::warn!(%error, "the stored settings cannot be read");
    }
    let files = open_reader(config, tools)?;
    let outgoing = tokio::task::spawn_blocking(move || Outgoing::new(policy)).await??;
    rerankers.follow(&settings, outgoing.clone());
    chat_models.follow(&settings, outgoing.clone(), state);
    let webhooks = open_webhooks(kb.state(), key, outgoing.clone(), outbox, state).await?;
    let (own, named) = (kb.clone(), settings.clone());
    let connect = connect(state.metrics.model_calls("embed"));
    let embedders = Embedders::follow(own, named, outgoing.clone(), config.model_dir(), connect).await;
    Ok(Services { kb, files, auth, settings, embedders, webhooks, chat_models, outgoing })
}

/// What is told to be a PDF, and refused by all who can read one.
const HARDLY_A_PDF: &[u8] = b"%PDF-1.4\n%%EOF\n";

/// The tools without a library that cannot be loaded. Where it was named, that ends the start. A worker tries, because
/// what is no library may end the process that loads it.
async fn loadable(config: &Config, tools: FileTools) -> Result<FileTools> {
    let Some(library) = tools.pdfium.clone() else { return Ok(tools) };
    let reader = open_reader(config, tools.clone())?;
    let mut file = tempfile::tempfile_in(reader.spool()).context("the folder of files on their way")?;
    file.write_all(HARDLY_A_PDF)?;
    let (file_name, length) = ("none.pdf".to_owned(), HARDLY_A_PDF.len() as u64);
    let source = FileSource { file_name, media_type: None, file, length };
    let plugins = FilePlugins { pdf: "pdfium".to_owned(), ..FilePlugins::default() };
    let tried = reader.read(source, &plugins).await;
    // Anything that is said of the file itself was said by the library.
    let Err(error) = tried.map(drop).or_else(|error| match error.kind() {
        lkr::ErrorKind::Invalid => Ok(()),
        _ => Err(error),
    }) else {
        return Ok(tools);
    };
    let reason = error.reason();
    let reason = reason.lines().next().unwrap_or_default();
    if config.pdfium_library.is_some() {
        return Err(anyhow!("pdfium_library {}: it cannot be loaded: {reason}", library.display()));
    }
    tracing::warn!(library = %library.display(), reason, "a PDFium was found that cannot be loaded");
    Ok(FileTools { pdfium: None, ..tools })
}

/// What reads files: parsers in child processes of this very program.
fn open_reader(config: &Config, tools: FileTools) -> Result<FileReader> {
    let program = std::env::current_exe().context("the program's own file cannot be found")?;
    let spool = config.data_dir.join("spool");
    Ok(FileReader::in_workers(program, vec![PARSE_WORKER.into()], spool, tools)?)
}

/// Makes a folder, unless it is there, that nobody else can look into.
async fn make_private(folder: &Path) -> std::io::Result<()> {
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder).await
}

/// Who may be called.
fn policy(config: &Config) -> Result<Policy> {
    Ok(config.outgoing_hosts.as_ref().map_or_else(|| Ok(Policy::any()), Policy::only)?)
}

/// The categories, read once.
async fn load_taxonomy(config: &Config) -> Result<Taxonomy> {
    match config.taxonomy_path.clone() {
        Some(path) => Ok(tokio::task::spawn_blocking(move || Taxonomy::load(&path)).await??),
        None => Ok(Taxonomy::built_in()),
    }
}

/// Takes no more requests and waits for those in flight. Connections that are merely open are not waited for.
async fn finish(state: &AppState, handle: &ServerHandle) {
    state.stop();
    let graceful = handle.stop(true);
    let drained = async {
        while state.in_flight() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(GRACE).await;
    };
    let done = async {
        tokio::select! {
            () = graceful => {}
            () = drained => {}
        }
    };
    if tokio::time::timeout(PATIENCE, done).await.is_err() {
        tracing::warn!(in_flight = state.in_flight(), "requests were cut off");
    }
}
