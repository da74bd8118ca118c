//! The stores of a knowledge base that are not the embedded ones, and all of them for commands.

use std::sync::Arc;

use lkr_catalog::Originals;
use lkr_state::{ProcessId, RecordExport, StateStore, TaskQueue};
use lkr_store_lmdb::LmdbStore;
use lkr_vectors::VectorStore;
use object_store::ObjectStore;

use crate::{
    Error, ErrorKind, Folders, Result,
    blocking::blocking,
    embedded_store::{
        create_private_dir, inspection_options, open_blobs, open_store, require_knowledge_base,
    },
};

/// Stores that take the place of the embedded ones.
#[derive(Debug, Clone, Default)]
pub struct OtherStores {
    /// The store of points; embedded by default.
    pub vectors: Option<Arc<dyn VectorStore>>,
    /// The records, and the queue of tasks; embedded by default. Other processes may use them at the same time.
    pub state: Option<SharedState>,
    /// The store of texts and originals; two folders by default. A `put` of it must be durable when it returns.
    pub blobs: Option<Arc<dyn ObjectStore>>,
}

/// All stores of a knowledge base, opened without workers.
#[derive(Debug, Clone)]
pub struct AllStores {
    /// The points.
    pub vectors: Arc<dyn VectorStore>,
    /// The records.
    pub records: Arc<dyn StateStore>,
    /// The texts.
    pub blobs: Arc<dyn ObjectStore>,
    /// The originals.
    pub originals: Originals,
}

impl OtherStores {
    /// These stores, and the embedded ones in place of those that are missing. An embedded store is created if it does not
    /// exist, and stays locked until the last clone of its parts is dropped. `embedded` shares one that is open already.
    ///
    /// # Errors
    /// `Conflict` if another process has the folder open.
    pub async fn or_embedded(
        self,
        folders: &Folders,
        embedded: &mut Option<OpenFolder>,
    ) -> Result<AllStores> {
        let folders = folders.clone();
        let data_dir = folders.data_dir.clone();
        let needs_store = (self.vectors.is_none() || self.state.is_none()) && embedded.is_none();
        let open = move || {
            create_private_dir(&data_dir)?;
            needs_store.then(|| open_store(&data_dir, inspection_options())).transpose()
        };
        if let Some(opened) = blocking("open store", open).await? {
            *embedded = Some(OpenFolder(opened));
        }
        let store = embedded.as_ref().map(|OpenFolder(store)| store);
        let missing = || Error::new(ErrorKind::Internal, "open store", "no store is open");
        let vectors = match (self.vectors, store) {
            (Some(vectors), _) => vectors,
            (None, Some(store)) => Arc::new(store.vectors()),
            (None, None) => return Err(missing()),
        };
        let records = match (self.state, store) {
            (Some(state), _) => state.records,
            (None, Some(store)) => Arc::new(store.state()),
            (None, None) => return Err(missing()),
        };
        let (blobs, originals) = match self.blobs {
            Some(blobs) => (Arc::clone(&blobs), Originals::on(blobs)),
            None => {
                let folder = folders.blobs_dir;
                let blobs = blocking("open texts", move || open_blobs(&folder)).await?;
                (Arc::new(blobs) as Arc<dyn ObjectStore>, Originals::in_folder(folders.uploads_dir))
            }
        };
        Ok(AllStores { vectors, records, blobs, originals })
    }
}

impl ConfiguredStores {
    /// Fails if a part is embedded, and there is no knowledge base in the folder.
    ///
    /// # Errors
    /// `NotFound` if there is none, `Internal` if a restore into the folder was interrupted.
    pub fn require_embedded(&self) -> Result<()> {
        let is_embedded = self.stores.vectors.is_none() || self.stores.state.is_none();
        if is_embedded { require_knowledge_base(&self.folders.data_dir) } else { Ok(()) }
    }
}

/// An embedded store that is open for maintenance.
#[derive(Debug, Clone)]
pub struct OpenFolder(pub(crate) LmdbStore);

/// Records and tasks that several processes work on.
#[derive(Debug, Clone)]
pub struct SharedState {
    /// The records.
    pub records: Arc<dyn StateStore>,
    /// The tasks.
    pub queue: Arc<dyn TaskQueue>,
    /// How the others know this process.
    pub process: ProcessId,
    /// Reads the records for backups.
    pub export: Arc<dyn RecordExport>,
}

/// The stores of a configuration, for commands that work on them without a server.
#[derive(Debug, Clone)]
pub struct ConfiguredStores {
    /// Those that are not in the folders.
    pub stores: OtherStores,
    /// The folders of what is.
    pub folders: Folders,
    /// Where the records are, for people. Two configurations with the same text share them; likewise for points and blobs.
    pub records: String,
    /// Where the points are.
    pub points: String,
    /// Where the texts and originals are.
    pub blobs: String,
    /// The changes that were made while the state store was away and that it does not have yet; `None` if a process that uses
    /// the data folder has them.
    pub unmerged: Option<usize>,
    /// The key that seals secrets, as hexadecimal digits; `None` if there is none yet.
    pub secret_key: Option<String>,
}
