#![doc = include_str!("../README.md")]

mod documents;
mod finding;
mod misplaced;
mod records;
mod repair;
mod strangers;

use std::{collections::HashSet, fmt, path::PathBuf};

use lkr_catalog::{Catalog, Originals, Texts};
use lkr_domain::{Counts, DocId, Layer};
use lkr_ingest::Ingestor;
use lkr_vectors::VectorStore;
use std::sync::Arc;

pub use finding::{Finding, RepairOutcome};
pub use repair::RepairAction;

/// Whether a record can be read, by its key and value; `None` where it is another's.
pub type ReadRecord = fn(&str, &[u8]) -> Option<bool>;

/// What is looked over.
#[derive(Debug, Clone)]
pub struct Ports {
    /// The points.
    pub vectors: Arc<dyn VectorStore>,
    /// The records.
    pub catalog: Catalog,
    /// The texts.
    pub texts: Texts,
    /// The files as they were sent.
    pub originals: Originals,
    /// Those who can read the records that are not the catalog's.
    pub readers: Vec<ReadRecord>,
}

/// What mends.
#[derive(Debug, Clone)]
pub struct Repairer {
    /// What accepts documents to be ingested again. Its workers need not run.
    pub ingestor: Ingestor,
    /// Where that goes of which there may be no other copy.
    pub aside: PathBuf,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// What is wrong, in the order of the records that it is about.
    pub findings: Vec<Finding>,
    /// How many live documents there are.
    pub documents: u64,
    /// Their points by layer.
    pub counts: Counts,
}

/// Looks everything over, and mends what is wrong where there is a `mender`. Nobody else may write meanwhile. What
/// cannot be read is a finding, and the rest is looked at all the same.
pub async fn examine(ports: &Ports, mender: Option<Repairer>) -> Report {
    let mut doctor = Doctor {
        ports,
        mender,
        report: Report::default(),
        known: strangers::Known::default(),
        misplaced: HashSet::new(),
    };
    doctor.misplaced().await;
    doctor.records().await;
    doctor.strangers().await;
    doctor.report
}

/// The one who looks.
struct Doctor<'p> {
    ports: &'p Ports,
    mender: Option<Repairer>,
    report: Report,
    known: strangers::Known,
    /// The documents of which the one may be the other's record: nothing of theirs is touched.
    misplaced: HashSet<DocId>,
}

impl Doctor<'_> {
    /// Notes what is wrong, and does what can be done about it.
    async fn found(&mut self, what: String, title: Option<&str>, cure: RepairAction) {
        let outcome = match &self.mender {
            Some(mender) => cure.apply(self.ports, mender).await,
            None => RepairOutcome::Left,
        };
        let remedy = cure.described().to_owned();
        self.report.findings.push(Finding { what, title: title.map(str::to_owned), remedy, outcome });
    }
}

impl Doctor<'_> {
    /// Notes what could not be looked at.
    async fn unread(&mut self, what: impl fmt::Display, error: impl fmt::Display) {
        let what = format!("{what} cannot be looked at: {error}");
        self.found(what, None, RepairAction::Lost("look again when what is damaged is mended")).await;
    }
}

fn layers() -> impl Iterator<Item = Layer> {
    Layer::ALL.into_iter()
}
