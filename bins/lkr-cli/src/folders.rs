use std::path::PathBuf;

use lkr::backup::Folders;

/// Which folders a knowledge base is in.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct FolderArgs {
    /// The data folder.
    #[arg(long, value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
    /// The folder of the texts, where it is another than `blobs` in the data folder.
    #[arg(long, value_name = "DIR")]
    blobs_dir: Option<PathBuf>,
    /// The folder of the originals, where it is another than `uploads` in the data folder.
    #[arg(long, value_name = "DIR")]
    uploads_dir: Option<PathBuf>,
}

impl FolderArgs {
    pub(crate) fn folders(&self) -> Folders {
        let usual = Folders::new(&self.data_dir);
        Folders {
            blobs_dir: self.blobs_dir.clone().unwrap_or(usual.blobs_dir),
            uploads_dir: self.uploads_dir.clone().unwrap_or(usual.uploads_dir),
            data_dir: usual.data_dir,
        }
    }
}
