//! The table of keys. A key `data_dir` is `data_dir` in the file, `LKR_DATA_DIR` in the environment and
//! `--data-dir` as a flag.

use super::{Config, values as v};

/// How a value is written in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Integer,
    Boolean,
    /// Texts, or one text with commas.
    List,
}

/// Whether a value may be shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Show {
    Plain,
    /// As asterisks.
    Secret,
    /// Without what stands before an `@`.
    Url,
}

/// A key.
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) kind: Kind,
    pub(super) show: Show,
    /// Puts a value, or answers why it is none.
    pub(super) set: fn(&mut Config, &str) -> Result<(), String>,
    /// The value in force; `None` when it is not set and has no default.
    pub(super) get: fn(&Config) -> Option<String>,
}

impl Key {
    pub(super) fn env(&self) -> String {
        format!("LKR_{}", self.name.to_ascii_uppercase())
    }

    pub(super) fn flag(&self) -> String {
        self.name.replace('_', "-")
    }
}

macro_rules! key {
    ($name:ident, $kind:ident, $show:ident, $parse:expr, $get:expr, $help:literal) => {
        Key {
            name: stringify!($name),
            help: $help,
            kind: Kind::$kind,
            show: Show::$show,
            set: |config, text| {
                config.$name = $parse(text)?;
                Ok(())
            },
            get: $get,
        }
    };
}

/// Every key there is.
pub(super) const KEYS: &[Key] = &[
    key!(listen, Text, Plain, v::listen, |c| Some(c.listen.clone()), "Address to listen on, host:port"),
    key!(data_dir, Text, Plain, v::path, |c| v::shown(&c.data_dir), "Folder that holds everything"),
    key!(
        admin_password,
        Text,
        Secret,
        v::password,
        |c| c.admin_password.clone(),
        "The first admin's password, used at the first start alone; a random one when not set"
    ),
    key!(secret_key, Text, Secret, v::secret_key, |c| c.secret_key.clone(), "Key that seals stored secrets"),
    key!(
        model_dir,
        Text,
        Plain,
        v::optional_path,
        |c| v::shown(&c.model_dir()),
        "Folder of the embedding model; <data_dir>/models/default when not set"
    ),
    key!(
        rerank_model_dir,
        Text,
        Plain,
        v::optional_path,
        |c| v::shown(&c.rerank_model_dir()),
        "Folder of the reranker; <data_dir>/models/reranker, if it is there, when not set"
    ),
    key!(vectors, Text, Plain, v::vectors, |c| Some(v::name_of(c.vectors)), "embedded or qdrant"),
    key!(qdrant_url, Text, Url, v::optional_url, |c| c.qdrant_url.clone(), "Address of Qdrant"),
    key!(qdrant_api_key, Text, Secret, v::optional, |c| c.qdrant_api_key.clone(), "Key of Qdrant"),
    key!(state, Text, Plain, v::state, |c| Some(v::name_of(c.state)), "embedded or redis"),
    key!(redis_url, Text, Url, v::optional_url, |c| c.redis_url.clone(), "Address of Redis"),
    key!(
        blobs,
        Text,
        Url,
        v::blobs,
        |c| c.blobs.clone().or_else(|| v::shown(&c.blobs_dir())),
        "Where texts are kept: a folder or s3://…; <data_dir>/blobs when not set"
    ),
    key!(role, Text, Plain, v::role, |c| Some(v::name_of(c.role)), "all, api or worker"),
    key!(
        require_login_for_reads,
        Boolean,
        Plain,
        v::boolean,
        |c| Some(c.require_login_for_reads.to_string()),
        "Whether reading needs a login too"
    ),
    key!(
        second_round,
        Boolean,
        Plain,
        v::boolean,
        |c| Some(c.second_round.to_string()),
        "Whether a search asks a second time with what the first round showed"
    ),
    key!(
        outgoing_hosts,
        List,
        Plain,
        v::hosts,
        |c| c.outgoing_hosts.as_ref().map(|hosts| hosts.join(",")),
        "The only hosts that webhooks and models may be called at; any when not set"
    ),
    key!(
        trusted_proxies,
        List,
        Plain,
        v::proxies,
        |c| Some(v::networks(&c.trusted_proxies)),
        "Addresses or networks (CIDR) whose X-Forwarded-For is believed"
    ),
    key!(
        cors_origins,
        List,
        Plain,
        v::origins,
        |c| Some(c.cors_origins.join(",")),
        "Origins that browsers may call from"
    ),
    key!(
        upload_allowed_extensions,
        List,
        Plain,
        v::extensions,
        |c| Some(c.upload_allowed_extensions.join(",")),
        "Extensions of files that may be uploaded"
    ),
    key!(
        upload_max_size_mb,
        Integer,
        Plain,
        v::megabytes,
        |c| Some(c.upload_max_size_mb.to_string()),
        "The largest upload in megabytes (1024 × 1024 bytes)"
    ),
    key!(
        upload_dir,
        Text,
        Plain,
        v::optional_path,
        |c| v::shown(&c.upload_dir()),
        "Folder of uploaded files; <data_dir>/uploads when not set"
    ),
    key!(
        pdfium_library,
        Text,
        Plain,
        v::optional_path,
        |c| c.pdfium_library.as_deref().and_then(v::shown),
        "The library PDFium, which reads PDF files best; looked for when not set"
    ),
    key!(
        auth_register_enabled,
        Boolean,
        Plain,
        v::boolean,
        |c| Some(c.auth_register_enabled.to_string()),
        "Whether anybody may make an account"
    ),
    key!(
        taxonomy_path,
        Text,
        Plain,
        v::optional_path,
        |c| c.taxonomy_path.as_deref().and_then(v::shown),
        "File of categories; the built-in ones when not set"
    ),
];
