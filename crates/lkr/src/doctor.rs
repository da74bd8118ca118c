//! Looking over a knowledge base in a folder that nobody has open, and mending it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use lkr_catalog::{Catalog, Originals, Texts};
pub use lkr_doctor::{Finding, ReadRecord, RepairOutcome, Report};
use lkr_doctor::{Ports, Repairer};
use lkr_ingest::{IngestOptions, Ingestor};
use lkr_parsers::Markdown;
use lkr_store_lmdb::{LmdbOptions, LmdbStore, StoreCheck};
use object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory};
use time::OffsetDateTime;

use crate::{
    Error, ErrorKind, Folders, Result,
    blocking::blocking,
    embedders::Embedders,
    error::During,
    open::{half_written, not_opened, open_blobs},
};

/// What is looked over, and how.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where it lies.
    pub folders: Folders,
    /// Whether what is wrong is mended, rather than told alone.
    pub repair: bool,
    /// Those who can read the records that are not the knowledge base's own.
    pub readers: Vec<ReadRecord>,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct DoctorReport {
    /// What is wrong, and how much there is.
    pub report: Report,
    /// Whether nothing but the pages of the store could be looked at, because they are damaged.
    pub is_partial: bool,
    /// The folder to which things were moved.
    pub aside: Option<PathBuf>,
}

/// Looks over the knowledge base in a folder. Nothing is changed without `repair`.
///
/// # Errors
/// `NotFound` where there is none, `Conflict` where a process has it open; what else keeps the store from being opened.
pub async fn examine(options: Options) -> Result<DoctorReport> {
    let store = options.folders.store();
    if !LmdbStore::is_in(&store) {
        let reason = format!("no knowledge base in {}", options.folders.data_dir.display());
        return Err(Error::new(ErrorKind::NotFound, "open store", reason));
    }
    let examination =
        blocking("look over", move || StoreCheck::new(&store, LmdbOptions::default()).map_err(not_opened))
            .await?;
    let half_written = half_written(&options.folders.blobs_dir);
    if options.repair {
        return mend(options, examination, &half_written).await;
    }
    let mut examined = DoctorReport::default();
    examined.report.findings = found(&examination, &half_written, &RepairOutcome::Unrepaired);
    let Some(store) = examination.into_store() else {
        examined.is_partial = true;
        return Ok(examined);
    };
    let blobs: Arc<dyn ObjectStore> = match options.folders.blobs_dir.is_dir() {
        true => Arc::new(LocalFileSystem::new_with_prefix(&options.folders.blobs_dir).map_err(internal)?),
        false => Arc::new(InMemory::new()),
    };
    examined.add(lkr_doctor::examine(&ports(&store, blobs, &options), None).await);
    Ok(examined)
}

async fn mend(options: Options, examination: StoreCheck, half_written: &[PathBuf]) -> Result<DoctorReport> {
    let mut examined = DoctorReport::default();
    examined.report.findings = found(&examination, half_written, &RepairOutcome::Repaired);
    let aside = options
        .folders
        .data_dir
        .join("lost+found")
        .join(OffsetDateTime::now_utc().unix_timestamp().to_string());
    let (to, blobs_dir) = (aside.join("store"), options.folders.blobs_dir.clone());
    let opened = blocking("look over", move || {
        let store = examination.repair(&to).map_err(not_opened)?;
        Ok((store, open_blobs(&blobs_dir)?))
    });
    let opened = opened.await;
    examined.aside = Some(aside.clone()).filter(|aside| aside.exists());
    let (store, blobs) = match opened {
        Ok(opened) => opened,
        Err(error) => return examined.without_store(error),
    };
    let ports = ports(&store, Arc::new(blobs), &options);
    let mender = match ingestor(&store, &ports).await {
        Ok(ingestor) => Repairer { ingestor, aside: aside.clone() },
        Err(error) => return examined.without_store(error),
    };
    examined.add(lkr_doctor::examine(&ports, Some(mender)).await);
    examined.aside = Some(aside).filter(|aside| aside.exists());
    drop(ports);
    // Closing waits for what is being written.
    blocking("look over", move || {
        drop(store);
        Ok(())
    })
    .await?;
    Ok(examined)
}

async fn ingestor(store: &LmdbStore, ports: &Ports) -> Result<Ingestor> {
    let ports = lkr_ingest::Ports {
        vectors: Arc::clone(&ports.vectors),
        catalog: ports.catalog.clone(),
        queue: Arc::new(store.queue()),
        texts: ports.texts.clone(),
        originals: ports.originals.clone(),
        embedders: Arc::new(Embedders::default()),
        parser: Arc::new(Markdown),
        classifier: None,
        chat_models: None,
        evaluator: None,
    };
    Ingestor::open_to_accept(ports, IngestOptions::default()).await.during("open knowledge base")
}

fn ports(store: &LmdbStore, blobs: Arc<dyn ObjectStore>, options: &Options) -> Ports {
    Ports {
        vectors: Arc::new(store.vectors()),
        catalog: Catalog::new(Arc::new(store.state())),
        texts: Texts::new(blobs),
        originals: Originals::in_folder(options.folders.uploads_dir.clone()),
        readers: options.readers.clone(),
    }
}

/// What is wrong with the files.
fn found(examination: &StoreCheck, half_written: &[PathBuf], outcome: &RepairOutcome) -> Vec<Finding> {
    let finding = |what: String, remedy: &str| Finding {
        what,
        title: None,
        remedy: remedy.to_owned(),
        outcome: outcome.clone(),
    };
    let half = |path: &PathBuf| finding(format!("the text {} is half written", shown(path)), "it is removed");
    let stored = examination.findings().iter().map(|found| {
        let finding = finding(found.what.clone(), found.remedy);
        if found.is_unrepairable() { Finding { outcome: RepairOutcome::Unrepaired, ..finding } } else { finding }
    });
    stored.chain(half_written.iter().map(half)).collect()
}

fn shown(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl DoctorReport {
    fn add(&mut self, report: Report) {
        let mut findings = std::mem::take(&mut self.report.findings);
        findings.extend(report.findings);
        self.report = Report { findings, ..report };
    }

    /// What is known where the store could not be opened to mend what is in it.
    fn without_store(mut self, error: Error) -> Result<Self> {
        if self.report.findings.is_empty() {
            return Err(error);
        }
        self.report.findings.push(Finding {
            what: "the store cannot be opened".to_owned(),
            title: None,
            remedy: "what is left above keeps it from that".to_owned(),
            outcome: RepairOutcome::Failed(error.to_string()),
        });
        self.is_partial = true;
        Ok(self)
    }
}

fn internal(error: object_store::Error) -> Error {
    Error::new(ErrorKind::Internal, "open blobs", error)
}
