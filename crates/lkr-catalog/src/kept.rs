//! What the records need of texts and originals.

use lkr_domain::DocId;
use lkr_state::{Order, Record};

use crate::{
    Catalog, Error, ErrorKind, Result, Trash,
    catalog::{key, read_document},
    present::read_held,
};

/// A revision whose text, and original where it has one, belong to something: to a live document, to a task that has not
/// ended, or to one that failed and may be tried again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The document.
    pub doc_id: DocId,
    /// The revision.
    pub revision: u64,
    /// Where its original is stored, where it has one.
    pub original: Option<String>,
}

/// The records that keep a revision, in the order in which they are read.
const KEEPERS: [&str; 3] = [key::DOCUMENTS, key::ACTIVE, key::HELD];

impl Catalog {
    /// What is kept, from some `limit` records beyond `after`, and where the next ones begin; `None` after the last.
    pub async fn kept(&self, after: Option<&str>, limit: usize) -> Result<(Vec<Kept>, Option<String>)> {
        let after = after.unwrap_or(key::DOCUMENTS);
        let mut keepers = KEEPERS.into_iter().skip_while(|prefix| !after.starts_with(prefix));
        let Some(prefix) = keepers.next() else { return Ok((Vec::new(), None)) };
        let records = self.state.scan(prefix, Some(after), Order::Ascending, limit).await?;
        let mut kept = Vec::with_capacity(records.len());
        for (key, record) in &records {
            kept.extend(self.kept_by(key, record).await?);
        }
        let last = records.last().filter(|_| records.len() == limit).map(|(key, _)| key.clone());
        Ok((kept, last.or_else(|| keepers.next().map(str::to_owned))))
    }

    async fn kept_by(&self, key: &str, record: &Record) -> Result<Option<Kept>> {
        if let Some(id) = key.strip_prefix(key::DOCUMENTS) {
            let doc_id = id.parse().map_err(|e| Error::corrupt("read document key", e))?;
            let document = read_document(doc_id, record)?.value;
            return Ok(Some(Trash::of_document(&document).into()));
        }
        if key.starts_with(key::ACTIVE) {
            let task_id = std::str::from_utf8(&record.value).ok().and_then(|id| id.parse().ok());
            let task_id = task_id.ok_or_else(|| wrong("read active task", key))?;
            let task = self.task(task_id).await?;
            let task = task.filter(|task| task.kind.is_about_a_document());
            return Ok(task.map(|task| Trash::of_task(&task).into()));
        }
        let named = key.strip_prefix(key::HELD).and_then(|rest| rest.split_once('/'));
        let named = named.and_then(|(id, revision)| Some((id.parse().ok()?, revision.parse().ok()?)));
        let (doc_id, revision) = named.ok_or_else(|| wrong("read held input", key))?;
        Ok(Some(Kept { doc_id, revision, original: read_held(&record.value)?.original }))
    }
}

fn wrong(operation: &'static str, key: &str) -> Error {
    Error::new(ErrorKind::Corrupt, operation, format!("the record {key} is none"))
}

impl From<Trash> for Kept {
    /// What would be trash, were it not kept.
    fn from(Trash { doc_id, revision, original }: Trash) -> Self {
        Self { doc_id, revision, original }
    }
}
