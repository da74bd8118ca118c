//! Checking stores that several processes may use, and restoring records that they lost.

use std::sync::Arc;

use lkr_catalog::{Catalog, ListFilter, Originals, Texts};
use lkr_doctor::{Ports, ReadDeletion, Restorer};
use lkr_domain::{Layer, Scope};
use lkr_spaces::Spaces;
use lkr_state::{Peers, StateStore, TaskQueue, Write};
use lkr_store_lmdb::LmdbStore;
use lkr_vectors::{Filter, VectorStore};
use object_store::ObjectStore;

use super::{DoctorOptions, DoctorReport, examine_embedded, examine_ports, existing_blobs};
use crate::{Error, ErrorKind, OtherStores, Result, error::During};

/// The options of a check of stores that several processes may use.
#[derive(Debug, Clone)]
pub struct StoresDoctorOptions {
    /// The folders, what is not in other stores, and the readers.
    pub doctor: DoctorOptions,
    /// The stores that are not in the folders.
    pub stores: OtherStores,
    /// Readers of records that prove deletions. A document of which one does is not restored.
    pub deletions: Vec<ReadDeletion>,
    /// Written in the step that ends the restoration of a store that had lost all records. A server puts here that accounts
    /// existed, so that it creates no first admin again.
    pub marks: Vec<Write>,
    /// Whether to repair although processes may be running on the store.
    pub force: bool,
}

/// Checks the knowledge base in given stores, and in a folder what is not in them. Records that a shared state store lost are
/// restored from points and texts. Nothing is changed unless `repair` is set.
///
/// Processes may run during a check; what they change meanwhile may be reported as a problem.
///
/// # Errors
/// `Conflict` if a repair is asked for while processes may be running on the store, unless it is forced; a process that was
/// killed counts for a minute. Those of [`examine`](super::examine).
pub async fn examine_stores(options: StoresDoctorOptions) -> Result<DoctorReport> {
    let StoresDoctorOptions { doctor, stores, deletions, marks, force } = options;
    let running = match &stores.state {
        Some(state) => Peers::running_on(&*state.records).await.during("find running processes")?.len(),
        None => 0,
    };
    if doctor.repair && running > 0 && !force {
        let reason = format!("{running} processes may be running on the store; stop them first");
        return Err(Error::new(ErrorKind::Conflict, "repair knowledge base", reason));
    }
    let restorer = stores.state.as_ref().map(|state| Restorer {
        spaces: Spaces::new(Arc::clone(&state.records)),
        deletions,
        marks,
    });
    let parts = Parts { stores, restorer };
    let mut result = match (&parts.stores.vectors, &parts.stores.state) {
        (Some(vectors), Some(state)) => {
            let ports = parts.ports(Arc::clone(vectors), Arc::clone(&state.records), &doctor, None)?;
            let queue = Arc::clone(&state.queue);
            examine_ports(DoctorReport::default(), ports, queue, &doctor).await?
        }
        _ => examine_embedded(doctor, parts).await?,
    };
    result.running_processes = running;
    Ok(result)
}

/// Whether a state store is empty, as if it was new, although there are points or texts: its records are lost. No process may
/// open it before a repair has restored them.
///
/// # Errors
/// Those of the stores.
pub async fn has_lost_records(
    records: &Arc<dyn StateStore>,
    vectors: &dyn VectorStore,
    blobs: &Arc<dyn ObjectStore>,
) -> Result<bool> {
    let catalog = Catalog::new(Arc::clone(records));
    if catalog.has_version().await.during("read the store's version")? {
        return Ok(false);
    }
    let has_content = has_points(vectors).await?
        || !Texts::new(Arc::clone(blobs)).stored().await.during("list texts")?.is_empty();
    // Another process may have opened a new store meanwhile, and stored a text.
    Ok(has_content && !catalog.has_version().await.during("read the store's version")?)
}

/// Whether there is a point of a document.
async fn has_points(vectors: &dyn VectorStore) -> Result<bool> {
    let l1 = Layer::L1.into();
    let count = async {
        match vectors.describe(&l1).await? {
            Some(_) => vectors.count(&l1, &Filter::all()).await,
            None => Ok(0),
        }
    };
    Ok(count.await.map_err(lkr_catalog::Error::from).during("read points")? > 0)
}

/// Fails if the shared state store has documents, but the vector store has no point: searches would find nothing.
pub(crate) async fn refuse_lost_points(
    records: &Arc<dyn StateStore>,
    vectors: &dyn VectorStore,
) -> Result<()> {
    let catalog = Catalog::new(Arc::clone(records));
    // After a repair, each document is being replaced by itself.
    let has_documents = async || {
        let newest = catalog.list(&Scope::All, &ListFilter::default(), None, 1).await;
        let Some(newest) = newest.during("list documents")?.items.pop() else { return Ok(false) };
        let state = catalog.document_state(newest.doc_id).await.during("read document")?;
        Ok::<_, Error>(state.replacement().is_none())
    };
    // The last document may be deleted meanwhile.
    if !has_documents().await? || has_points(vectors).await? || !has_documents().await? {
        return Ok(());
    }
    let reason = "there are documents, but no points at all: name the data folder or the vector store that has them, or mount its disk; \
                  if they are lost, run 'lkr doctor --shared --repair', after which the documents are ingested again from their texts";
    Err(Error::new(ErrorKind::Invalid, "open knowledge base", reason))
}

/// Fails if there are points or texts, but the shared state store is empty: a new store would treat all of them as garbage.
pub(crate) async fn refuse_lost_records(
    records: &Arc<dyn StateStore>,
    vectors: &dyn VectorStore,
    blobs: &Arc<dyn ObjectStore>,
) -> Result<()> {
    if !has_lost_records(records, vectors, blobs).await? {
        return Ok(());
    }
    let reason = "the state store is empty, but there are points or texts: if they are those of a migration that was interrupted, run \
                  its command again; if the state store has lost its records, run 'lkr doctor --shared --repair' to restore them; else use \
                  empty stores";
    // Unlike a store that is away, waiting does not help.
    Err(Error::new(ErrorKind::Invalid, "open knowledge base", reason))
}

/// Stores in place of the embedded ones, and what restores records.
#[derive(Default)]
pub(super) struct Parts {
    pub(super) stores: OtherStores,
    restorer: Option<Restorer>,
}

impl Parts {
    /// The ports; `blobs` are those of the folder.
    fn ports(
        &self,
        vectors: Arc<dyn VectorStore>,
        records: Arc<dyn StateStore>,
        options: &DoctorOptions,
        blobs: Option<Arc<dyn ObjectStore>>,
    ) -> Result<Ports> {
        let (blobs, originals) = match &self.stores.blobs {
            Some(blobs) => (Arc::clone(blobs), Originals::on(Arc::clone(blobs))),
            None => {
                let blobs = blobs.map_or_else(|| existing_blobs(&options.folders), Ok)?;
                (blobs, Originals::in_folder(options.folders.uploads_dir.clone()))
            }
        };
        Ok(Ports {
            vectors,
            catalog: Catalog::new(records),
            texts: Texts::new(blobs),
            originals,
            readers: options.readers.clone(),
            restorer: self.restorer.clone(),
        })
    }

    /// The ports over the stores and, in place of those that are not given, the embedded store.
    pub(super) fn ports_with(
        &self,
        store: &LmdbStore,
        options: &DoctorOptions,
        blobs: Option<Arc<dyn ObjectStore>>,
    ) -> Result<Ports> {
        let vectors = self.stores.vectors.clone().unwrap_or_else(|| Arc::new(store.vectors()));
        let records = self.stores.state.as_ref().map(|state| Arc::clone(&state.records));
        self.ports(vectors, records.unwrap_or_else(|| Arc::new(store.state())), options, blobs)
    }

    pub(super) fn queue(&self, store: &LmdbStore) -> Arc<dyn TaskQueue> {
        let queue = self.stores.state.as_ref().map(|state| Arc::clone(&state.queue));
        queue.unwrap_or_else(|| Arc::new(store.queue()))
    }
}
