//! Where a server keeps its things: defaults < `lkr.toml` < environment < flags, as with the server itself.

use std::{env, fs, io::ErrorKind, path::PathBuf};

use anyhow::{Context, Result, bail};

use super::Args;

/// The file that is read when none is named.
const FILE: &str = "lkr.toml";

/// The folders that are looked at.
pub(super) struct Folders {
    pub(super) data_dir: PathBuf,
    pub(super) blobs_dir: PathBuf,
    pub(super) uploads_dir: PathBuf,
}

impl Folders {
    pub(super) fn find(args: &Args) -> Result<Self> {
        let file = read(args)?;
        let named = |flag: &Option<PathBuf>, variable: &str, key: &str| {
            let in_environment = env::var_os(variable).map(PathBuf::from);
            let in_file = || file.get(key).and_then(toml::Value::as_str).map(PathBuf::from);
            flag.clone().or(in_environment).or_else(in_file)
        };
        let data_dir = named(&args.data_dir, "LKR_DATA_DIR", "data_dir");
        let data_dir = data_dir.unwrap_or_else(|| PathBuf::from("./lkr-data"));
        let blobs = named(&args.blobs, "LKR_BLOBS", "blobs");
        if let Some(blobs) = blobs.as_ref().filter(|blobs| blobs.to_string_lossy().contains("://")) {
            bail!("{} is no folder, and texts elsewhere cannot be looked at", blobs.display());
        }
        Ok(Self {
            blobs_dir: blobs.unwrap_or_else(|| data_dir.join("blobs")),
            uploads_dir: named(&args.upload_dir, "LKR_UPLOAD_DIR", "upload_dir")
                .unwrap_or_else(|| data_dir.join("uploads")),
            data_dir,
        })
    }
}

/// The configuration file; empty where there is none.
fn read(args: &Args) -> Result<toml::Table> {
    let path = args.config.clone().unwrap_or_else(|| FILE.into());
    match fs::read_to_string(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound && args.config.is_none() => Ok(toml::Table::new()),
        read => {
            let text = read.with_context(|| format!("cannot read {}", path.display()))?;
            text.parse().with_context(|| format!("cannot read {}", path.display()))
        }
    }
}
