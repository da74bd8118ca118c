use std::path::{Path, PathBuf};

use lkr::backup::Folders;

/// The folders of a knowledge base that need not lie in its data folder.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FolderArgs {
    /// The folder of the texts, where it is another than `blobs` in the data folder.
    #[arg(long, value_name = "DIR")]
    blobs_dir: Option<PathBuf>,
    /// The folder of the originals, where it is another than `uploads` in the data folder.
    #[arg(long, value_name = "DIR")]
    uploads_dir: Option<PathBuf>,
}

impl FolderArgs {
    pub(crate) fn with(&self, data_dir: &Path) -> Folders {
        let Folders { data_dir, blobs_dir, uploads_dir } = Folders::new(data_dir);
        Folders {
            blobs_dir: self.blobs_dir.clone().unwrap_or(blobs_dir),
            uploads_dir: self.uploads_dir.clone().unwrap_or(uploads_dir),
            data_dir,
        }
    }
}
