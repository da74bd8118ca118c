//! Opens the services of a configuration.

use std::{num::NonZero, path::Path, sync::Arc, time::Duration};

use anyhow::{Context, Result, anyhow};
use futures_util::FutureExt;
use lkr::{KnowledgeBase, OpenOptions, OtherStores, Taxonomy};
use lkr_auth::{Auth, AuthOptions};
use lkr_outgoing::{Outgoing, Policy};
use lkr_settings::Settings;
use lkr_webhooks::EventOutbox;
use tokio::runtime::Handle;

use crate::{
    chat_models::ChatModels,
    config::{Config, ProcessRole},
    deletions::Deletions,
    embedder_reconciler::{EmbedderReconciler, connect},
    file_reader, first_admin,
    plugins::{available_plugins, find_tools},
    rerankers::Rerankers,
    secret_key,
    state::{AppState, Services},
    stores::{OpenStores, open_stores, until_records_answer},
    webhooks::{address_check, open_webhooks, outbox},
};

/// Opens the stores, creates the first admin and reads the settings. Documents are ingested on `ingestion`.
pub(crate) async fn open_services(config: &Config, app: &AppState, ingestion: &Handle) -> Result<Services> {
    let (rerankers, chat_models) = (Rerankers::default(), ChatModels::default());
    let outbox = if config.is_shared() { outbox().shared() } else { outbox() };
    let deletions = Deletions::default();
    let late = LateBound {
        rerankers: &rerankers,
        chat_models: &chat_models,
        outbox: &outbox,
        deletions: &deletions,
    };
    create_private_dir(&config.data_dir)
        .await
        .with_context(|| format!("cannot create the data folder {}", config.data_dir.display()))?;
    // Boxed, because the compiler bounds how deep futures are nested.
    let OpenStores { stores, fallback } = open_stores(config).boxed_local().await?;
    let kb = open_knowledge_base(config, app, stores, late, ingestion).boxed_local().await?;
    let options = AuthOptions { operator: app.options.operator.clone(), ..AuthOptions::default() };
    let auth = Auth::new(kb.state(), &options)?;
    let spaces = kb.spaces().clone();
    until_records_answer(config, || spaces.ensure_default()).await?;
    deletions.follow(auth.clone(), spaces.clone());
    let password_file = first_admin::password_file(&config.data_dir);
    let ensure_admin = || first_admin::ensure(&auth, &password_file, config.admin_password.as_deref());
    until_records_answer(config, ensure_admin).await?;
    let tools = file_reader::check_pdfium(config, find_tools(config)).await?;
    let checked_tools = tools.clone();
    let plugins = tokio::task::spawn_blocking(move || available_plugins(&checked_tools)).await?;
    let policy = outgoing_policy(config)?;
    let key = secret_key::load(config).await?;
    let settings = Settings::open_checking(kb.state(), key.clone(), plugins, address_check(policy.clone()))?;
    // Report settings that this machine cannot apply now, not when the first file arrives.
    if let Err(error) = settings.current().await {
        tracing::warn!(%error, "cannot read the stored settings");
    }
    let files = file_reader::open_reader(config, tools)?;
    let outgoing = tokio::task::spawn_blocking(move || Outgoing::new(policy)).await??;
    rerankers.follow(&settings, outgoing.clone(), app.call_observer("rerank"));
    chat_models.follow(&settings, outgoing.clone(), |purpose| app.call_observer(purpose));
    let open = || open_webhooks(kb.state(), key.clone(), outgoing.clone(), outbox.clone(), app);
    let webhooks = until_records_answer(config, open).await?;
    let embedder_reconciler = EmbedderReconciler::follow(
        kb.clone(),
        settings.clone(),
        outgoing.clone(),
        (config.model_dir(), config.model_dims.map(NonZero::get)),
        connect(app.call_observer("embed")),
    )
    .await;
    Ok(Services {
        kb,
        files,
        auth,
        spaces,
        settings,
        embedder_reconciler,
        webhooks,
        chat_models,
        outgoing,
        fallback,
    })
}

/// What the knowledge base is opened with and what learns about the other services later.
#[derive(Clone, Copy)]
struct LateBound<'a> {
    rerankers: &'a Rerankers,
    chat_models: &'a ChatModels,
    outbox: &'a EventOutbox,
    deletions: &'a Deletions,
}

async fn open_knowledge_base(
    config: &Config,
    app: &AppState,
    stores: OtherStores,
    late: LateBound<'_>,
    ingestion: &Handle,
) -> Result<KnowledgeBase> {
    let LateBound { rerankers, chat_models, outbox, deletions } = late;
    let path = config.taxonomy_path.clone();
    let taxonomy = tokio::task::spawn_blocking(move || taxonomy(path.as_deref())).await??;
    let mut options = OpenOptions::new(&config.data_dir);
    options.blobs_dir = config.blobs_dir();
    options.uploads_dir = config.upload_dir();
    options.model_dir = config.model_dir();
    options.model_precision = config.model_precision;
    options.model_dims = config.model_dims.map(NonZero::get);
    options.rerank_model_dir = config.rerank_model_dir();
    options.rerank_precision = config.rerank_precision;
    options.taxonomy = taxonomy;
    options.defer_embedder = true;
    options.rerankers = Some(Arc::new(rerankers.clone()));
    options.chat_models = Some(Arc::new(chat_models.clone()));
    options.search.second_round = config.second_round;
    options.outbox = Some(Arc::new(outbox.clone()));
    options.deletion = Some(Arc::new(deletions.clone()));
    options.contention = Some(app.contention_observer());
    options.observer = Some(app.task_observer());
    options.ingest_runtime = Some(ingestion.clone());
    options.ingest.retention = Duration::from_secs(24 * 3600 * config.task_retention_days);
    options.stores = stores;
    options.wait_for_stores = true;
    if config.role == ProcessRole::Api {
        options.ingest.workers = 0;
    }
    KnowledgeBase::open_with(options).await.map_err(|error| match error.kind() {
        lkr::ErrorKind::Conflict => {
            let folder = config.data_dir.display();
            anyhow!(error).context(format!("the data folder {folder} is in use by another process"))
        }
        _ => anyhow!(error),
    })
}

/// Creates a folder that only its owner can enter, unless it exists.
pub(crate) async fn create_private_dir(folder: &Path) -> std::io::Result<()> {
    let mut builder = tokio::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    builder.mode(0o700);
    builder.create(folder).await
}

/// The hosts that outgoing requests may reach.
fn outgoing_policy(config: &Config) -> Result<Policy> {
    Ok(config.outgoing_hosts.as_ref().map_or_else(|| Ok(Policy::any()), Policy::only)?)
}

/// The taxonomy in a file, or the built-in one.
pub(crate) fn taxonomy(path: Option<&Path>) -> Result<Taxonomy> {
    Ok(path.map_or_else(|| Ok(Taxonomy::built_in()), Taxonomy::load)?)
}
