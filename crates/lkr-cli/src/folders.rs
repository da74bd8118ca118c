//! Where a server keeps its things: defaults < `lkr.toml` < environment < flags, as with the server itself.

use std::{env, fs, io::ErrorKind, path::PathBuf};

use anyhow::{Context, Result, bail};
use lkr::Folders;

/// The file that is read when none is named.
const FILE: &str = "lkr.toml";

/// Where a knowledge base lies. What is not given here is taken from the environment and the server's configuration file,
/// as the server does.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FolderArgs {
    /// The server's data folder; else that of LKR_DATA_DIR, of lkr.toml, or ./lkr-data.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// The folder of texts; else that of LKR_BLOBS, of lkr.toml, or `<data-dir>/blobs`.
    #[arg(long, value_name = "FOLDER")]
    blobs: Option<PathBuf>,
    /// The folder of uploaded files; else that of LKR_UPLOAD_DIR, of lkr.toml, or `<data-dir>/uploads`.
    #[arg(long, value_name = "FOLDER")]
    upload_dir: Option<PathBuf>,
    /// The server's configuration file; else lkr.toml in the working folder, where there is one.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl FolderArgs {
    pub(crate) fn find(&self) -> Result<Folders> {
        let file = self.read()?;
        let named = |flag: &Option<PathBuf>, variable: &str, key: &str| {
            let in_environment = env::var_os(variable).map(PathBuf::from);
            let in_file = || file.get(key).and_then(toml::Value::as_str).map(PathBuf::from);
            // What is empty is none, as it is for the server.
            let named = flag.clone().or(in_environment).or_else(in_file);
            named.filter(|path| !path.as_os_str().is_empty())
        };
        let data_dir = named(&self.data_dir, "LKR_DATA_DIR", "data_dir");
        let usual = Folders::new(data_dir.unwrap_or_else(|| PathBuf::from("./lkr-data")));
        let blobs = named(&self.blobs, "LKR_BLOBS", "blobs");
        if let Some(blobs) = blobs.as_ref().filter(|blobs| blobs.to_string_lossy().contains("://")) {
            bail!("{} is no folder, and texts elsewhere cannot be looked at", blobs.display());
        }
        Ok(Folders {
            blobs_dir: blobs.unwrap_or(usual.blobs_dir),
            uploads_dir: named(&self.upload_dir, "LKR_UPLOAD_DIR", "upload_dir").unwrap_or(usual.uploads_dir),
            data_dir: usual.data_dir,
        })
    }

    /// The configuration file; empty where there is none.
    fn read(&self) -> Result<toml::Table> {
        let path = self.config.clone().unwrap_or_else(|| FILE.into());
        match fs::read_to_string(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && self.config.is_none() => {
                Ok(toml::Table::new())
            }
            read => {
                let text = read.with_context(|| format!("cannot read {}", path.display()))?;
                text.parse().with_context(|| format!("cannot read {}", path.display()))
            }
        }
    }
}
