//! Notes of originals that are being stored. If the process ends before their documents are accepted, the next start
//! finds them by these notes.

use lkr_domain::DocId;
use lkr_state::{Expect, ScanOrder, Write};
use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use crate::{Catalog, Error, Result, key};

/// An original that no task refers to yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// The document that it belongs to.
    pub doc_id: DocId,
    /// Its path. The file may be complete, partial or missing.
    pub path: String,
    /// When the upload began.
    pub begun: OffsetDateTime,
    key: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct UploadV1 {
    pub(crate) path: String,
    #[serde(with = "time::serde::rfc3339")]
    pub(crate) begun: OffsetDateTime,
}

impl Catalog {
    /// Records that an original is about to be stored at `path`. The step that accepts its document removes the note.
    pub async fn note_upload(&self, doc_id: DocId, path: &str) -> Result<()> {
        let note = UploadV1 { path: path.to_owned(), begun: self.now() };
        let note = serde_json::to_vec(&note).map_err(|e| Error::corrupt("write upload note", e))?;
        Ok(self.state.apply(vec![Write::put(key::upload(doc_id, path), Expect::Any, note)]).await?)
    }

    /// Up to `limit` notes of originals that no task refers to, beyond `after`.
    pub async fn uploads(&self, after: Option<&Upload>, limit: usize) -> Result<Vec<Upload>> {
        let after = after.map(|upload| upload.key.as_str());
        let records = self.state.scan(key::UPLOADS, after, ScanOrder::Ascending, limit).await?;
        let read = |(key, record): &(String, lkr_state::Record)| {
            let note: UploadV1 =
                serde_json::from_slice(&record.value).map_err(|e| Error::corrupt("read upload note", e))?;
            let suffix = key.strip_prefix(key::UPLOADS).unwrap_or_default();
            // Earlier versions wrote one note for each document, without the digest of the path.
            let doc_id = suffix.split('/').next().unwrap_or_default().parse();
            let doc_id = doc_id.map_err(|e| Error::corrupt("read upload note", e))?;
            Ok(Upload { doc_id, path: note.path, begun: note.begun, key: key.clone() })
        };
        records.iter().map(read).collect()
    }

    /// Removes the note of an original at `path` that was deleted.
    pub async fn forget_upload_at(&self, doc_id: DocId, path: &str) -> Result<()> {
        Ok(self.state.apply(vec![Write::delete(key::upload(doc_id, path), Expect::Any)]).await?)
    }

    /// Removes the note of an original that was deleted.
    pub async fn forget_upload(&self, upload: &Upload) -> Result<()> {
        Ok(self.state.apply(vec![Write::delete(upload.key.clone(), Expect::Any)]).await?)
    }
}
