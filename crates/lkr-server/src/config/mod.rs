//! Configuration: defaults < `lkr.toml` < environment < flags. One table of keys, in `keys`, is what all four
//! are read by.

mod keys;
mod load;
mod show;
mod values;

use std::path::PathBuf;

use ipnet::IpNet;

pub use load::{Loaded, Sources, load};
pub use show::show;

/// What is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Where to listen: `host:port`.
    pub listen: String,
    /// The folder that holds everything.
    pub data_dir: PathBuf,
    /// The first admin's password; a random one is made when it is not set.
    pub admin_password: Option<String>,
    /// The key that seals secrets.
    pub secret_key: Option<String>,
    /// The folder of the embedding model; `<data_dir>/models/default` when it is not set.
    pub model_dir: Option<PathBuf>,
    /// The folder of the reranker; `<data_dir>/models/reranker`, if that is there, when it is not set.
    pub rerank_model_dir: Option<PathBuf>,
    /// Where points are kept.
    pub vectors: VectorsBackend,
    /// Qdrant's address.
    pub qdrant_url: Option<String>,
    /// Qdrant's key.
    pub qdrant_api_key: Option<String>,
    /// Where records are kept.
    pub state: StateBackend,
    /// Redis' address.
    pub redis_url: Option<String>,
    /// Where texts are kept: a folder, `<data_dir>/blobs` when it is not set, or `s3://…`.
    pub blobs: Option<String>,
    /// What this process does.
    pub role: ProcessRole,
    /// Whether reading needs a login too.
    pub require_login_for_reads: bool,
    /// Whether searches ask a second time with what the first round showed.
    pub second_round: bool,
    /// The only hosts that may be called; any when it is not set.
    pub outgoing_hosts: Option<Vec<String>>,
    /// Proxies whose X-Forwarded-For is believed.
    pub trusted_proxies: Vec<IpNet>,
    /// Origins that browsers may call from.
    pub cors_origins: Vec<String>,
    /// Extensions of files that may be uploaded, with their dot.
    pub upload_allowed_extensions: Vec<String>,
    /// The largest file that may be uploaded, in MiB.
    pub upload_max_size_mb: u64,
    /// Where uploaded files are kept; `<data_dir>/uploads` when it is not set.
    pub upload_dir: Option<PathBuf>,
    /// The library PDFium; looked for when it is not set.
    pub pdfium_library: Option<PathBuf>,
    /// Whether anybody may make an account.
    pub auth_register_enabled: bool,
    /// The file of categories; the built-in ones when it is not set.
    pub taxonomy_path: Option<PathBuf>,
}

/// Where points are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VectorsBackend {
    /// In the data folder.
    Embedded,
    /// In Qdrant.
    Qdrant,
}

/// Where records are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateBackend {
    /// In the data folder.
    Embedded,
    /// In Redis.
    Redis,
}

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessRole {
    /// Answers requests and ingests.
    All,
    /// Answers requests.
    Api,
    /// Ingests.
    Worker,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: "127.0.0.1:8080".to_owned(),
            data_dir: PathBuf::from("./lkr-data"),
            admin_password: None,
            secret_key: None,
            model_dir: None,
            rerank_model_dir: None,
            vectors: VectorsBackend::Embedded,
            qdrant_url: None,
            qdrant_api_key: None,
            state: StateBackend::Embedded,
            redis_url: None,
            blobs: None,
            role: ProcessRole::All,
            require_login_for_reads: false,
            second_round: false,
            outgoing_hosts: None,
            trusted_proxies: Vec::new(),
            cors_origins: Vec::new(),
            upload_allowed_extensions: [".txt", ".md", ".html", ".htm", ".pdf", ".docx"]
                .map(str::to_owned)
                .to_vec(),
            upload_max_size_mb: 50,
            upload_dir: None,
            pdfium_library: None,
            auth_register_enabled: false,
            taxonomy_path: None,
        }
    }
}

impl Config {
    /// The folder of the embedding model.
    #[must_use]
    pub fn model_dir(&self) -> PathBuf {
        self.model_dir.clone().unwrap_or_else(|| self.data_dir.join("models/default"))
    }

    /// The folder of the reranker.
    #[must_use]
    pub fn rerank_model_dir(&self) -> PathBuf {
        self.rerank_model_dir.clone().unwrap_or_else(|| self.data_dir.join("models/reranker"))
    }

    /// The folder of texts.
    #[must_use]
    pub fn blobs_dir(&self) -> PathBuf {
        self.blobs.as_ref().map_or_else(|| self.data_dir.join("blobs"), PathBuf::from)
    }

    /// The folder of uploaded files.
    #[must_use]
    pub fn upload_dir(&self) -> PathBuf {
        self.upload_dir.clone().unwrap_or_else(|| self.data_dir.join("uploads"))
    }

    /// Refuses what asks for something that this build does not have. What only restricts is kept as it is: with
    /// nothing there to restrict, the restriction holds.
    fn check_built_in(&self) -> Result<(), String> {
        if let Some(library) = self.pdfium_library.as_ref().filter(|library| !library.is_file()) {
            return Err(format!("pdfium_library: there is no file {}", library.display()));
        }
        if let Some(folder) = self.rerank_model_dir.as_ref().filter(|folder| !folder.is_dir()) {
            return Err(format!("rerank_model_dir: there is no folder {}", folder.display()));
        }
        let absent = [
            (self.vectors == VectorsBackend::Qdrant, "vectors = qdrant"),
            (self.qdrant_url.is_some(), "qdrant_url"),
            (self.qdrant_api_key.is_some(), "qdrant_api_key"),
            (self.state == StateBackend::Redis, "state = redis"),
            (self.redis_url.is_some(), "redis_url"),
            (self.blobs.as_ref().is_some_and(|blobs| blobs.contains("://")), "blobs in an object store"),
            (self.role != ProcessRole::All, "a role other than all"),
            (!self.cors_origins.is_empty(), "cors_origins"),
        ];
        match absent.iter().find(|(asked, _)| *asked) {
            Some((_, what)) => Err(format!("this build does not have {what}")),
            None => Ok(()),
        }
    }
}
