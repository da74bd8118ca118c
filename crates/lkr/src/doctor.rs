//! Checking and repairing a knowledge base: a closed one in a folder, or one in stores that several processes use.

mod stores;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub use lkr_doctor::{Finding, ReadDeletion, ReadRecord, RepairOutcome, Report};
use lkr_doctor::{Ports, Repairer};
use lkr_ingest::{IngestOptions, Ingestor};
use lkr_parsers::Markdown;
use lkr_state::{Peers, TaskQueue};
use lkr_store_lmdb::{LmdbOptions, LmdbStore, StoreCheck};
use object_store::{ObjectStore, local::LocalFileSystem, memory::InMemory};
use time::OffsetDateTime;

use self::stores::Parts;
pub use self::stores::{StoresDoctorOptions, examine_stores, has_lost_records};
pub(crate) use self::stores::{refuse_lost_points, refuse_lost_records};

use crate::{
    Error, ErrorKind, Folders, Result,
    blocking::blocking,
    embedded_store::{open_blobs, open_error, require_knowledge_base},
    embedders::Embedders,
    error::During,
    text_files::partial_texts,
};

/// The options of a check.
#[derive(Debug, Clone)]
pub struct DoctorOptions {
    /// The folders of the knowledge base.
    pub folders: Folders,
    /// Whether problems are repaired; otherwise they are only reported.
    pub repair: bool,
    /// Readers of the records that do not belong to the knowledge base itself.
    pub readers: Vec<ReadRecord>,
}

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct DoctorReport {
    /// The findings and counts.
    pub report: Report,
    /// Whether only the pages of the store could be checked, because they are damaged.
    pub is_partial: bool,
    /// The folder to which data was moved, if any was.
    pub aside: Option<PathBuf>,
    /// How many processes may have been running on the stores. What they changed meanwhile may be reported as a problem.
    pub running_processes: usize,
}

/// Checks the knowledge base in a folder. Nothing is changed unless `repair` is set.
///
/// # Errors
/// `NotFound` if there is none, `Conflict` if a process has it open, and other errors of opening the store.
pub async fn examine(options: DoctorOptions) -> Result<DoctorReport> {
    examine_embedded(options, Parts::default()).await
}

/// Checks the embedded store, and the given ones in place of its parts.
async fn examine_embedded(options: DoctorOptions, parts: Parts) -> Result<DoctorReport> {
    let store = options.folders.store();
    require_knowledge_base(&options.folders.data_dir)?;
    let check = blocking("check knowledge base", move || {
        StoreCheck::new(&store, LmdbOptions::default()).map_err(open_error)
    })
    .await?;
    let partial_texts = match parts.stores.blobs {
        Some(_) => Vec::new(),
        None => partial_texts(&options.folders.blobs_dir),
    };
    if options.repair {
        return repair(options, check, &partial_texts, &parts).await;
    }
    let mut result = DoctorReport::default();
    result.report.findings = file_findings(&check, &partial_texts, &RepairOutcome::Unrepaired);
    let Some(store) = check.into_store() else {
        result.is_partial = true;
        return Ok(result);
    };
    result.add(lkr_doctor::examine(&parts.ports_with(&store, &options, None)?, None).await);
    Ok(result)
}

async fn repair(
    options: DoctorOptions,
    check: StoreCheck,
    partial_texts: &[PathBuf],
    parts: &Parts,
) -> Result<DoctorReport> {
    let mut result = DoctorReport::default();
    result.report.findings = file_findings(&check, partial_texts, &RepairOutcome::Repaired);
    let aside = aside_dir(&options.folders);
    let (to, blobs_dir) = (aside.join("store"), options.folders.blobs_dir.clone());
    let has_folder = parts.stores.blobs.is_none();
    let opened = blocking("check knowledge base", move || {
        let store = check.repair(&to).map_err(open_error)?;
        let blobs = if has_folder { Some(open_blobs(&blobs_dir)?) } else { None };
        Ok((store, blobs))
    });
    let opened = opened.await;
    result.aside = Some(aside.clone()).filter(|aside| aside.exists());
    let (store, blobs) = match opened {
        Ok(opened) => opened,
        Err(error) => return result.without_store(error),
    };
    let ports =
        parts.ports_with(&store, &options, blobs.map(|blobs| Arc::new(blobs) as Arc<dyn ObjectStore>))?;
    let result = repair_ports(result, ports, parts.queue(&store), aside).await;
    close(store).await?;
    result
}

/// Checks stores, and repairs them if the options say so.
async fn examine_ports(
    mut result: DoctorReport,
    ports: Ports,
    queue: Arc<dyn TaskQueue>,
    options: &DoctorOptions,
) -> Result<DoctorReport> {
    if options.repair {
        return repair_ports(result, ports, queue, aside_dir(&options.folders)).await;
    }
    result.add(lkr_doctor::examine(&ports, None).await);
    Ok(result)
}

async fn repair_ports(
    mut result: DoctorReport,
    ports: Ports,
    queue: Arc<dyn TaskQueue>,
    aside: PathBuf,
) -> Result<DoctorReport> {
    let repairer = match ingestor(queue, &ports).await {
        Ok(ingestor) => Repairer { ingestor, aside: aside.clone() },
        Err(error) => return result.without_store(error),
    };
    result.add(lkr_doctor::examine(&ports, Some(repairer)).await);
    result.aside = Some(aside).filter(|aside| aside.exists());
    Ok(result)
}

/// The texts in the folder; none if it does not exist.
fn existing_blobs(folders: &Folders) -> Result<Arc<dyn ObjectStore>> {
    Ok(match folders.blobs_dir.is_dir() {
        true => Arc::new(LocalFileSystem::new_with_prefix(&folders.blobs_dir).map_err(internal)?),
        false => Arc::new(InMemory::new()),
    })
}

/// The folder for the data that one repair moves aside.
fn aside_dir(folders: &Folders) -> PathBuf {
    let now = OffsetDateTime::now_utc().unix_timestamp().to_string();
    folders.data_dir.join("lost+found").join(now)
}

/// Closes the store, which waits for its pending writes.
async fn close(store: LmdbStore) -> Result<()> {
    blocking("check knowledge base", move || {
        drop(store);
        Ok(())
    })
    .await
}

async fn ingestor(queue: Arc<dyn TaskQueue>, ports: &Ports) -> Result<Ingestor> {
    let is_restoring =
        ports.restorer.is_some() && !ports.catalog.has_version().await.during("read the store's version")?;
    let ports = lkr_ingest::Ports {
        vectors: Arc::clone(&ports.vectors),
        catalog: ports.catalog.clone(),
        queue,
        texts: ports.texts.clone(),
        originals: ports.originals.clone(),
        embedders: Arc::new(Embedders::default()),
        parser: Arc::new(Markdown),
        classifier: None,
        chat_models: None,
        evaluator: None,
        deletion: None,
        spaces: None,
        observer: None,
        peers: Peers::alone(),
    };
    match is_restoring {
        true => Ok(Ingestor::open_without_records(ports, IngestOptions::default())),
        false => {
            Ingestor::open_to_accept(ports, IngestOptions::default()).await.during("open knowledge base")
        }
    }
}

/// The findings about the files of the store and about partial texts.
fn file_findings(check: &StoreCheck, partial_texts: &[PathBuf], outcome: &RepairOutcome) -> Vec<Finding> {
    let finding = |what: String, remedy: &str| Finding {
        what,
        title: None,
        remedy: remedy.to_owned(),
        outcome: outcome.clone(),
    };
    let partial_text = |path: &PathBuf| {
        finding(format!("the text {} is partially written", file_name(path)), "it is removed")
    };
    let stored = check.findings().iter().map(|stored| {
        let finding = finding(stored.what.clone(), stored.remedy);
        if stored.is_unrepairable() {
            Finding { outcome: RepairOutcome::Unrepaired, ..finding }
        } else {
            finding
        }
    });
    stored.chain(partial_texts.iter().map(partial_text)).collect()
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

impl DoctorReport {
    fn add(&mut self, report: Report) {
        let mut findings = std::mem::take(&mut self.report.findings);
        findings.extend(report.findings);
        self.report = Report { findings, ..report };
    }

    /// The report if the store could not be opened for the repair; the error if there is nothing to report.
    fn without_store(mut self, error: Error) -> Result<Self> {
        if self.report.findings.is_empty() {
            return Err(error);
        }
        self.report.findings.push(Finding {
            what: "the store cannot be opened".to_owned(),
            title: None,
            remedy: "repair the findings above that remain, then run the check again".to_owned(),
            outcome: RepairOutcome::Failed(error.to_string()),
        });
        self.is_partial = true;
        Ok(self)
    }
}

fn internal(error: object_store::Error) -> Error {
    Error::new(ErrorKind::Internal, "open blobs", error)
}
