//! The knowledge base in a data folder.

use std::{env, fmt, path::PathBuf, str::FromStr, sync::Arc};

use anyhow::{Context, Result, anyhow};
use lkr::{Creator, ErrorKind, Folders, KnowledgeBase, OpenOptions};
use lkr_mcp::{FullAccess, McpServer, serve_stdio};

/// The creator of documents that are added.
const CREATOR: &str = "mcp";

/// Opens the folders and serves until the input ends. Documents that were added are ingested before it returns.
pub(super) fn run(folders: Folders, model: Option<PathBuf>, read_only: bool) -> Result<()> {
    let runtime = tokio::runtime::Runtime::new().context("start the runtime")?;
    runtime.block_on(serve(folders, model, read_only))?;
    // A read of the input cannot be interrupted.
    runtime.shutdown_background();
    Ok(())
}

/// The value of an environment variable, if it is set.
fn parsed<T: FromStr<Err: fmt::Display>>(variable: &str) -> Result<Option<T>> {
    let value = env::var(variable).ok().filter(|value| !value.is_empty());
    value.map(|value| value.parse().map_err(|error| anyhow!("{variable}: {error}"))).transpose()
}

async fn serve(folders: Folders, model: Option<PathBuf>, read_only: bool) -> Result<()> {
    let shown = folders.data_dir.display().to_string();
    let mut options = OpenOptions::new(&folders.data_dir);
    options.blobs_dir = folders.blobs_dir;
    options.uploads_dir = folders.uploads_dir;
    let configured = env::var_os("LKR_MODEL_DIR").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    if let Some(dir) = model.or(configured) {
        options.model_dir = dir;
    }
    if let Some(precision) = parsed("LKR_MODEL_PRECISION")? {
        options.model_precision = precision;
    }
    options.model_dims = parsed("LKR_MODEL_DIMS")?;
    if let Some(precision) = parsed("LKR_RERANK_PRECISION")? {
        options.rerank_precision = precision;
    }
    let kb = KnowledgeBase::open_with(options).await.map_err(|error| match error.kind() {
        ErrorKind::Conflict => {
            anyhow!("{shown} is in use by another process: if that is a server, pass --server")
        }
        _ => anyhow::Error::new(error),
    })?;
    let creator = Creator { name: CREATOR.to_owned(), id: String::new() };
    let access = FullAccess::new(kb.clone(), creator, !read_only);
    let served = serve_stdio(McpServer::new(kb.clone(), Arc::new(access))).await;
    kb.close().await;
    Ok(served?)
}
