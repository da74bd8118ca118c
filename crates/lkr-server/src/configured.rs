//! The stores of a configuration, for commands that work on them without a server.

use std::{ffi::OsString, path::PathBuf, time::Duration};

use anyhow::{Context, Result, anyhow};
use futures_util::FutureExt;
use lkr::{ConfiguredStores, Folders, OtherStores};
use lkr_state_fallback::FallbackState;

use crate::{
    config::{Config, ConfigSources, StateBackend, VectorsBackend, load, masked_url},
    secret_key,
    stores::{journal_dir, open_blobs, open_redis_for_repair, open_vectors},
};

/// How long a command waits for a store that is away. A server waits for ever.
const PATIENCE: Duration = Duration::from_secs(20);

/// Opens the stores of a configuration: that of a file alone, or that of this process as a server would have it. Creates no
/// folder and no file.
///
/// # Errors
/// What is wrong with the configuration, or a store that cannot be opened.
pub async fn open_configured(file: Option<PathBuf>) -> Result<ConfiguredStores> {
    let config = read_config(file)?;
    // Boxed, because the compiler bounds how deep futures are nested.
    let opening = async {
        let state = match config.state {
            StateBackend::Redis => Some(open_redis_for_repair(&config).await?),
            StateBackend::Embedded => None,
        };
        let (vectors, blobs) = tokio::try_join!(open_vectors(&config), open_blobs(&config))?;
        anyhow::Ok(OtherStores { vectors, state, blobs })
    }
    .boxed_local();
    let stores =
        tokio::time::timeout(PATIENCE, opening).await.map_err(|_| anyhow!("a store does not answer"))??;
    let folders = Folders {
        data_dir: config.data_dir.clone(),
        blobs_dir: config.blobs_dir(),
        uploads_dir: config.upload_dir(),
    };
    let in_folder = |folder: &PathBuf| {
        std::path::absolute(folder).unwrap_or_else(|_| folder.clone()).display().to_string()
    };
    let journal = journal_dir(&config);
    let unmerged = match tokio::task::spawn_blocking(move || FallbackState::unmerged(&journal)).await? {
        Err(error) if error.kind() == lkr::ports::state::ErrorKind::Invalid => None,
        unmerged => Some(unmerged.context("cannot read the journal of changes made while Redis was away")?),
    };
    Ok(ConfiguredStores {
        stores,
        unmerged,
        records: match config.state {
            StateBackend::Redis => {
                format!("Redis {} {}", shown(config.redis_url.as_deref()), config.redis_prefix)
            }
            StateBackend::Embedded => format!("the folder {}", in_folder(&config.data_dir)),
        },
        points: match config.vectors {
            VectorsBackend::Qdrant => {
                format!("Qdrant {} {}", shown(config.qdrant_url.as_deref()), config.qdrant_prefix)
            }
            VectorsBackend::Embedded => format!("the folder {}", in_folder(&config.data_dir)),
        },
        blobs: match config.object_store() {
            Some(store) => format!("{store} at {}", shown(config.s3_endpoint.as_deref())),
            None => format!(
                "the folders {} and {}",
                in_folder(&folders.blobs_dir),
                in_folder(&folders.uploads_dir)
            ),
        },
        secret_key: secret_key::existing(&config).await?.map(|key| key.to_hex()),
        folders,
    })
}

fn read_config(file: Option<PathBuf>) -> Result<Config> {
    let sources = match file {
        Some(file) => ConfigSources {
            folder: PathBuf::new(),
            environment: Vec::new(),
            arguments: ["lkr".into(), "--config".into(), file.into_os_string()].into(),
        },
        None => ConfigSources::of_process(vec![OsString::from("lkr")]),
    };
    Ok(load(&sources)?.config)
}

/// An address as people may see it.
fn shown(url: Option<&str>) -> String {
    url.map_or_else(|| "its provider".to_owned(), masked_url)
}
