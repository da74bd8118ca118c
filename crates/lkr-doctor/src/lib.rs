#![doc = include_str!("../README.md")]

mod cure;
mod documents;
mod finding;
mod records;
mod strangers;

use std::path::PathBuf;

use lkr_catalog::{Catalog, Originals, Result, Texts};
use lkr_domain::{Counts, Layer};
use lkr_ingest::Ingestor;
use lkr_vectors::VectorStore;
use std::sync::Arc;

pub use cure::Cure;
pub use finding::{Finding, Outcome};

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
pub struct Mender {
    /// What accepts documents to be ingested again. Its workers need not run.
    pub ingestor: Ingestor,
    /// Where that goes of which there may be no other copy.
    pub aside: PathBuf,
    /// Whether records were lost already: then what seems to belong to nothing may have belonged to them.
    pub records_lost: bool,
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

/// Looks everything over, and mends what is wrong where there is a `mender`. Nobody else may write meanwhile.
///
/// # Errors
/// Those of the stores. What cannot be read in them is no error but a finding.
pub async fn examine(ports: &Ports, mender: Option<Mender>) -> Result<Report> {
    let mut doctor = Doctor { ports, mender, report: Report::default(), known: strangers::Known::default() };
    doctor.records().await?;
    doctor.strangers().await?;
    Ok(doctor.report)
}

/// The one who looks.
struct Doctor<'p> {
    ports: &'p Ports,
    mender: Option<Mender>,
    report: Report,
    known: strangers::Known,
}

impl Doctor<'_> {
    /// Notes what is wrong, and does what can be done about it.
    async fn found(&mut self, what: String, title: Option<&str>, cure: Cure) {
        let outcome = match &mut self.mender {
            Some(mender) => cure.apply(self.ports, mender).await,
            None => Outcome::Left,
        };
        let remedy = cure.described().to_owned();
        self.report.findings.push(Finding { what, title: title.map(str::to_owned), remedy, outcome });
    }
}

fn layers() -> impl Iterator<Item = Layer> {
    Layer::ALL.into_iter()
}
