//! The folders of a server. As in the server, flags take precedence over the environment, then `lkr.toml`, then
//! defaults.

use std::{env, fs, io::ErrorKind, path::PathBuf};

use anyhow::{Context, Result, bail};
use lkr::Folders;

/// The default configuration file.
const FILE: &str = "lkr.toml";

/// The folders of a knowledge base. Missing flags are taken from the environment and the server's configuration file.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FolderArgs {
    /// Use this data folder instead of LKR_DATA_DIR, data_dir of lkr.toml, or ./lkr-data.
    #[arg(long, value_name = "FOLDER")]
    data_dir: Option<PathBuf>,
    /// Use this folder of texts instead of LKR_BLOBS, blobs of lkr.toml, or <data-dir>/blobs.
    #[arg(long, value_name = "FOLDER")]
    blobs: Option<PathBuf>,
    /// Use this folder of uploaded files instead of LKR_UPLOAD_DIR, upload_dir of lkr.toml, or <data-dir>/uploads.
    #[arg(long, value_name = "FOLDER")]
    upload_dir: Option<PathBuf>,
    /// Read this configuration file instead of lkr.toml in the working folder.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl FolderArgs {
    /// Whether a flag names a folder or a configuration file.
    pub(crate) const fn has_flag(&self) -> bool {
        self.data_dir.is_some() || self.blobs.is_some() || self.upload_dir.is_some() || self.config.is_some()
    }

    /// The configuration file that a flag names.
    pub(crate) fn config(&self) -> Option<PathBuf> {
        self.config.clone()
    }

    /// The folders, for a command that reads the embedded stores in them. Fails if records or points are elsewhere by the configuration:
    /// what is in the folders then is not the knowledge base. `remedy` says what to do.
    pub(crate) fn find_embedded(&self, remedy: &str) -> Result<Folders> {
        let file = self.read()?;
        for (variable, key, embedded) in
            [("LKR_STATE", "state", "embedded"), ("LKR_VECTORS", "vectors", "embedded")]
        {
            let in_file = || file.get(key).and_then(toml::Value::as_str).map(str::to_owned);
            let value = env::var(variable).ok().filter(|value| !value.is_empty()).or_else(in_file);
            if let Some(value) = value.filter(|value| value != embedded) {
                bail!("{key} is {value}, so the knowledge base is not in this folder alone: {remedy}");
            }
        }
        self.find()
    }

    pub(crate) fn find(&self) -> Result<Folders> {
        let file = self.read()?;
        let configured = |flag: &Option<PathBuf>, variable: &str, key: &str| {
            let in_environment = env::var_os(variable).map(PathBuf::from);
            let in_file = || file.get(key).and_then(toml::Value::as_str).map(PathBuf::from);
            // An empty value counts as not set, as in the server.
            let path = flag.clone().or(in_environment).or_else(in_file);
            path.filter(|path| !path.as_os_str().is_empty())
        };
        let data_dir = configured(&self.data_dir, "LKR_DATA_DIR", "data_dir");
        let defaults = Folders::new(data_dir.unwrap_or_else(|| PathBuf::from("./lkr-data")));
        let blobs = configured(&self.blobs, "LKR_BLOBS", "blobs");
        if let Some(blobs) = blobs.as_ref().filter(|blobs| blobs.to_string_lossy().contains("://")) {
            bail!("{} is not a folder; only texts in a local folder are supported", blobs.display());
        }
        Ok(Folders {
            blobs_dir: blobs.unwrap_or(defaults.blobs_dir),
            uploads_dir: configured(&self.upload_dir, "LKR_UPLOAD_DIR", "upload_dir")
                .unwrap_or(defaults.uploads_dir),
            data_dir: defaults.data_dir,
        })
    }

    /// Reads the configuration file; an empty table if there is none.
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
