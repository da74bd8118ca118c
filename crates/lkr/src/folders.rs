use std::path::{Path, PathBuf};

use crate::OpenOptions;

/// The folders of a knowledge base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// The folder of the stores, and of the key that seals stored secrets.
    pub data_dir: PathBuf,
    /// The folder of the texts.
    pub blobs_dir: PathBuf,
    /// The folder of the originals.
    pub uploads_dir: PathBuf,
}

impl Folders {
    /// The default folders below `data_dir`.
    pub fn new(data_dir: impl AsRef<Path>) -> Self {
        Self::from(&OpenOptions::new(data_dir))
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.data_dir.join("store")
    }

    pub(crate) fn secret_key(&self) -> PathBuf {
        self.data_dir.join("secret.key")
    }
}

impl From<&OpenOptions> for Folders {
    fn from(options: &OpenOptions) -> Self {
        let OpenOptions { data_dir, blobs_dir, uploads_dir, .. } = options;
        Self { data_dir: data_dir.clone(), blobs_dir: blobs_dir.clone(), uploads_dir: uploads_dir.clone() }
    }
}
